#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#include "math.glsl"
#include "reduce.glsl"

// Softmax along an axis: exp(x - max) / sum. A line of elements is done by a workgroup where it is long, else by an invocation, which
// then has its neighbours beside it.
layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };

#define SHORT 32  // elements of a line that one invocation does at once
#define FEW 256   // lines that are too few for an invocation each

GROUP_JOIN(float, group_max, rlx_max)
GROUP_JOIN(Total, group_total, total_join)

uint n, inner; // elements of a line, and from one to the next in y
int x_step;

float at(uint start, uint k) { return load(x[int(start) + int(k) * x_step]); }

float max_of(uint start, uint first, uint step_) {
  float top = -RLX_INF;
  uint k = first;
  for (; k < n; k += step_) top = rlx_max(top, at(start, k));
  expect_end(k, n);
  return top;
}

Total sum_of(uint start, uint first, uint step_, float top) {
  Total t = Total(0, 0);
  uint k = first;
  for (; k < n; k += step_) t = total_add(t, rlx_exp(rlx_sub(at(start, k), top)));
  expect_end(k, n);
  return t;
}

// A maximum of NaN or an infinity makes the line NaN.
void put(uint line, uint start, uint first, uint step_, float top, Total sum) {
  const uint to = offset_of(0) + line_start(line, n, inner);
  const float scale = magnitude(top) >= 0x7f800000u ? RLX_NAN : 1.0 / total_of(sum);
  uint k = first;
  for (; k < n; k += step_) y[to + k * inner] = store(rlx_mul(rlx_exp(rlx_sub(at(start, k), top)), scale));
  expect_end(k, n);
}

uint start_of(uint line) { return element_of(1, line_start(line, n, inner)); }

void main() {
  const uint rank = rank_of(1), axis = axis_of(attr_int(Softmax_axis), rank);
  n = dim(1, axis);
  x_step = stride(1, axis);
  inner = extent(1, axis + 1, rank);
  const uint lines = count_of(0) / n, me = gl_LocalInvocationID.x;
  if (n <= SHORT || (inner > 1 && lines >= FEW)) {
    uint line = thread_unit();
    for (; line < lines; line += GROUPS * LOCAL) {
      if (stopped()) return;
      const uint start = start_of(line);
      const float top = max_of(start, 0, 1);
      put(line, start, 0, 1, top, sum_of(start, 0, 1, top));
    }
    expect_end(line, lines);
    return;
  }
  uint line = group_unit();
  for (; line < lines; line += GROUPS) {
    if (group_stopped()) return;
    const uint start = start_of(line);
    const float top = group_max(max_of(start, me, LOCAL));
    const Total sum = group_total(sum_of(start, me, LOCAL, top));
    put(line, start, me, LOCAL, top, sum);
  }
  expect_end(line, lines);
}
