// norm.glsl: LayerNorm and RmsNorm. The includer defines MEAN, whether the mean is subtracted, and AXIS and EPS, attributes. A workgroup
// does a row: the elements of the axes from AXIS on.
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#include "math.glsl"
#include "reduce.glsl"

layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer Gamma { STORE gamma[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 3) readonly buffer Beta { STORE beta[]; };

GROUP_JOIN(Total, group_total, total_join)
GROUP_JOIN(float, group_max, rlx_max)

// A row as runs of `inner` elements, in each of which x, gamma and beta go on by steps; outer_axes say where the runs lie.
uint axis, n, inner, outer_axes;
ivec3 steps;
Share share;

int start;        // of the row in x
float mean, rest; // of the row: their sum is the mean

void plan() {
  axis = axis_of(attr_int(AXIS), rank_of(1));
  n = inner = 1;
  outer_axes = 0;
  for (int d = int(rank_of(1)) - 1; d >= int(axis); d--) {
    n *= dim(1, d);
    if (dim(1, d) <= 1) continue;
    const ivec3 s = ivec3(stride(1, d), has(2) ? stride(2, d - axis) : 0, has(3) ? stride(3, d - axis) : 0);
    if (inner == 1 && outer_axes == 0) steps = s;
    if (outer_axes == 0 && s == steps * int(inner)) inner *= dim(1, d);
    else outer_axes |= 1u << d;
  }
  share = group_share(inner);
}

int run_start(uint run) { return start + distance_of(1, outer_axes, 0, run); }
float off(float v) {
  precise float d = MEAN ? (v - mean) - rest : v;
  return d;
}

// The sum over the row of the deviations from mean and rest times scale, or of their squares.
Total total(bool square, float scale) {
  Total t = Total(0, 0);
  uint run = share.run;
  for (; run < n / inner; run += share.runs) {
    const int at = run_start(run);
    uint i = share.first;
    for (; i < inner; i += share.step_) {
      precise float d = off(load(x[at + int(i) * steps.x])) * scale, dd = d * d;
      t = total_add(t, square ? dd : d);
    }
    expect_end(i, inner);
  }
  expect_end(run, n / inner);
  return group_total(t);
}

// Sets mean and rest to t / n, of twice the digits of f32.
void set_mean(Total t) {
  mean = rlx_div(t.value, float(n));
  precise float p = mean * float(n), left = ((t.value - p) - mul_error(mean, float(n), p)) + t.lost;
  rest = rlx_div(left, float(n));
}

// The greatest deviation.
float greatest() {
  float top = 0;
  for (uint run = share.run; run < n / inner; run += share.runs) {
    const int at = run_start(run);
    for (uint i = share.first; i < inner; i += share.step_) top = rlx_max(top, rlx_abs(off(load(x[at + int(i) * steps.x]))));
  }
  return group_max(top);
}

// 1 / sqrt(mean of squares + eps). Squares that f32 does not hold are taken of numbers scaled by a power of 2.
float inverse_root() {
  float scale = 1, sum = total_of(total(true, scale));
  if (!(sum > 1e-24 && sum < 1e36)) {
    const float top = greatest();
    if (magnitude(top) < 0x7f800000u && magnitude(top) >= 0x00800000u) {
      scale = pow2i(-min(exponent_of(top), 126));
      sum = total_of(total(true, scale));
    }
  }
  precise float eps = attr_float(EPS) * scale * scale;
  return rlx_mul(rlx_rsqrt(rlx_add(sum / float(n), eps)), scale);
}

void put(uint row, float inverse) {
  uint run = share.run;
  for (; run < n / inner; run += share.runs) {
    const int at = run_start(run), to = int(offset_of(0) + row * n + run * inner);
    const int at_gamma = has(2) ? int(offset_of(2)) + distance_of(2, outer_axes, axis, run) : 0;
    const int at_beta = has(3) ? int(offset_of(3)) + distance_of(3, outer_axes, axis, run) : 0;
    uint i = share.first;
    for (; i < inner; i += share.step_) {
      float v = rlx_mul(off(load(x[at + int(i) * steps.x])), inverse);
      if (has(2)) v = rlx_mul(v, load(gamma[at_gamma + int(i) * steps.y]));
      if (has(3)) v = rlx_add(v, load(beta[at_beta + int(i) * steps.z]));
      y[to + int(i)] = store(v);
    }
    expect_end(i, inner);
  }
  expect_end(run, n / inner);
}

void main() {
  plan();
  uint row = group_unit();
  for (; row < count_of(0) / n; row += GROUPS) {
    if (group_stopped()) return;
    start = int(element_of(1, row * n));
    mean = rest = 0;
    if (MEAN) set_mean(total(false, 1));
    put(row, inverse_root());
  }
  expect_end(row, count_of(0) / n);
}
