#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#ifdef IS_FLOAT
#include "math.glsl"
#endif
#include "reduce.glsl"

// Reduce. A result is made by a workgroup, or by one invocation where it is made of few elements or neighbours in y are neighbours in x.
layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };

layout(constant_id = S_ATTR + Reduce_fn) const uint FN = ReduceFn_sum;

#define SHORT 32  // elements of a result that one invocation does at once

// ---- what a result is made of

#ifdef IS_FLOAT

#define PART Total

float top; // logsumexp: the maximum, subtracted from all elements

PART start() {
  if (FN == ReduceFn_max) return Total(-RLX_INF, 0);
  if (FN == ReduceFn_min) return Total(RLX_INF, 0);
  return Total(FN == ReduceFn_prod ? 1.0 : 0.0, 0);
}
PART step_by(PART t, float v) {
  switch (FN) {
    case ReduceFn_max: return Total(rlx_max(t.value, v), 0);
    case ReduceFn_min: return Total(rlx_min(t.value, v), 0);
    case ReduceFn_prod: return total_times(t, Total(v, 0));
    case ReduceFn_l1: return total_add(t, rlx_abs(v));
    case ReduceFn_l2:
    case ReduceFn_sum_square: return total_add(t, rlx_mul(v, v));
    case ReduceFn_logsumexp: return total_add(t, rlx_exp(rlx_sub(v, top)));
    default: return total_add(t, v);
  }
}
PART join(PART a, PART b) {
  switch (FN) {
    case ReduceFn_max: return Total(rlx_max(a.value, b.value), 0);
    case ReduceFn_min: return Total(rlx_min(a.value, b.value), 0);
    case ReduceFn_prod: return total_times(a, b);
    default: return total_join(a, b);
  }
}
float finish(PART t, uint n) {
  const float v = total_of(t);
  switch (FN) {
    case ReduceFn_max:
    case ReduceFn_min: return t.value; // -0 + 0 would be 0
    case ReduceFn_mean: return n == 0 ? RLX_NAN : rlx_div(v, float(n));
    case ReduceFn_l2: return rlx_sqrt(v);
    case ReduceFn_log_sum: return rlx_log(v);
    case ReduceFn_logsumexp: return rlx_add(top, rlx_log(v));
    default: return v;
  }
}

#else

#define PART COMPUTE
#ifdef IS_SIGNED
#define LEAST (COMPUTE(-1) << (BITS - 1))
#else
#define LEAST COMPUTE(0)
#endif
#define GREATEST (~LEAST)

PART start() {
  if (FN == ReduceFn_max) return LEAST;
  if (FN == ReduceFn_min) return GREATEST;
  return COMPUTE(FN == ReduceFn_prod ? 1 : 0);
}
PART join(PART a, PART b) {
  switch (FN) {
    case ReduceFn_max: return a > b ? a : b;
    case ReduceFn_min: return a < b ? a : b;
    case ReduceFn_prod: return a * b;
    default: return a + b;
  }
}
PART step_by(PART t, COMPUTE v) {
  if (FN == ReduceFn_sum_square) return t + v * v;
  if (FN == ReduceFn_l1) return v < COMPUTE(0) ? t - v : t + v;
  return join(t, v);
}
COMPUTE finish(PART t, uint n) { return t; }

#endif

GROUP_JOIN(PART, group_join, join)

// ---- where elements lie

// The reduced axes, their bits set, and what they are to the loops: runs of `inner` elements that are inner_step apart, which lie where the
// axes of outer_axes say.
uint along, outer_axes;
uint n, inner;
int inner_step;

void plan() {
  const uint rank = rank_of(1), axes = attr_count(Reduce_axes);
  along = axes == 0 || axes == 0xffffffffu ? 0xffu : 0u;
  for (uint i = 0; i < axes && axes != 0xffffffffu; i++) along |= 1u << axis_of(attr_item(Reduce_axes, i), rank);
  n = inner = 1;
  outer_axes = 0;
  inner_step = 0;
  for (int d = int(rank) - 1; d >= 0; d--) {
    if ((along >> d & 1) == 0) continue;
    n *= dim(1, d);
    if (dim(1, d) <= 1) continue;
    if (inner == 1 && outer_axes == 0) inner_step = stride(1, d);
    if (outer_axes == 0 && stride(1, d) == inner_step * int(inner)) inner *= dim(1, d);
    else outer_axes |= 1u << d;
  }
}

// ---- the work

// Unrolled by hand: spirv-opt forgets NoContraction where it unrolls a loop, which breaks the sums.
PART take(PART t, int at, uint i) {
  if (i < inner) t = step_by(t, load(x[at + int(i) * inner_step]));
  return t;
}
PART take4(PART t, int at, uint i, uint step_) {
  return take(take(take(take(t, at, i), at, i + step_), at, i + 2 * step_), at, i + 3 * step_);
}

PART part_of(int base, Share s) {
  PART t = start();
  uint run = s.run;
  for (; run < n / inner; run += s.runs) {
    const int at = base + distance_of(1, outer_axes, 0, run);
    uint i = s.first;
    for (; i < inner; i += 8 * s.step_) t = take4(take4(t, at, i, s.step_), at, i + 4 * s.step_, s.step_);
    expect_end(i, inner);
  }
  expect_end(run, n / inner);
  return t;
}

#ifdef IS_FLOAT
float part_max(int base, Share s) {
  float m = -RLX_INF;
  for (uint run = s.run; run < n / inner; run += s.runs) {
    const int at = base + distance_of(1, outer_axes, 0, run);
    for (uint i = s.first; i < inner; i += s.step_) m = rlx_max(m, load(x[at + int(i) * inner_step]));
  }
  return m;
}
// An infinite maximum is not subtracted: it would make NaN of itself.
float top_of(float m) { return magnitude(m) == 0x7f800000u ? 0.0 : m; }

GROUP_JOIN(float, group_max, rlx_max)
#endif

void main() {
  plan();
  const uint count = count_of(0);
  if (n <= SHORT || ((outer_axes != 0 || abs(inner_step) != 1) && n / 4 <= count)) {
    uint r = thread_unit();
    for (; r < count; r += GROUPS * LOCAL) {
      if (stopped()) return;
      const int base = int(offset_of(1)) + distance_of(1, ~along, 0, r);
#ifdef IS_FLOAT
      if (FN == ReduceFn_logsumexp) top = top_of(part_max(base, ALL));
#endif
      y[offset_of(0) + r] = store(finish(part_of(base, ALL), n));
    }
    expect_end(r, count);
    return;
  }
  const Share share = group_share(inner);
  uint r = group_unit();
  for (; r < count; r += GROUPS) {
    if (group_stopped()) return;
    const int base = int(offset_of(1)) + distance_of(1, ~along, 0, r);
#ifdef IS_FLOAT
    if (FN == ReduceFn_logsumexp) top = top_of(group_max(part_max(base, share)));
#endif
    const PART t = group_join(part_of(base, share));
    if (gl_LocalInvocationID.x == 0) y[offset_of(0) + r] = store(finish(t, n));
  }
  expect_end(r, count);
}
