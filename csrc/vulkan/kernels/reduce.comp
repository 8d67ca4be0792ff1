#version 450
#extension GL_GOOGLE_include_directive : enable
#extension GL_EXT_control_flow_attributes : enable
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#if defined(VARIANT_f32) || defined(VARIANT_f16) || defined(VARIANT_bf16)
#define FLOATS
#include "math.glsl"
#endif
#include "reduce.glsl"

// Reduce. A result is made by a workgroup, or by one invocation where it is made of few elements or neighbours in y are neighbours in x.
layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };

layout(constant_id = S_ATTR + Reduce_fn) const uint FN = ReduceFn_sum;

#define SHORT 32  // elements of a result that one invocation does at once

// ---- what a result is made of

#ifdef FLOATS

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
#if defined(VARIANT_i8) || defined(VARIANT_i16) || defined(VARIANT_i32)
#define LEAST -2147483648
#define GREATEST 2147483647
#elif defined(VARIANT_i64)
#define LEAST (int64_t(1) << 63)
#define GREATEST (~LEAST)
#else
#define LEAST COMPUTE(0)
#define GREATEST (~COMPUTE(0))
#endif

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

uint along;       // bit d: axis d of x is reduced
uint n;           // elements of a result
bool single;      // the reduced axes are as one, with a step
int element_step;

void plan() {
  const uint rank = rank_of(1), axes = attr_count(Reduce_axes);
  along = axes == 0 || axes == 0xffffffffu ? 0xffu : 0u;
  for (uint i = 0; i < axes && axes != 0xffffffffu; i++) along |= 1u << axis_of(attr_item(Reduce_axes, i), rank);
  n = 1;
  single = true;
  element_step = 0;
  for (int d = int(rank) - 1; d >= 0; d--) {
    if ((along >> d & 1) == 0) continue;
    if (dim(1, d) > 1) {
      if (n == 1) element_step = stride(1, d);
      else if (stride(1, d) != element_step * int(n)) single = false;
    }
    n *= dim(1, d);
  }
}

// Element i along the axes of x that are reduced (bits: along) or kept (bits: ~along), as a distance.
int distance_of(uint bits, uint i) {
  int at = 0;
  for (int d = int(rank_of(1)) - 1; d >= 0; d--) {
    if ((bits >> d & 1) == 0) continue;
    at += int(i % dim(1, d)) * stride(1, d);
    i /= dim(1, d);
  }
  return at;
}

COMPUTE element(int base, uint i) { return load(x[base + (single ? int(i) * element_step : distance_of(along, i))]); }

// ---- the work

// Elements first, first + step_ ... of the result at base.
PART part_of(int base, uint first, uint step_) {
  PART t = start();
  uint i = first;
  for (; i < n; i += 8 * step_)
    [[unroll]] for (uint u = 0; u < 8; u++)
      if (i + u * step_ < n) t = step_by(t, element(base, i + u * step_));
  expect_end(i, n);
  return t;
}

#ifdef FLOATS
float part_max(int base, uint first, uint step_) {
  float m = -RLX_INF;
  uint i = first;
  for (; i < n; i += step_) m = rlx_max(m, element(base, i));
  expect_end(i, n);
  return m;
}
// An infinite maximum is not subtracted: it would make NaN of itself.
float top_of(float m) { return magnitude(m) == 0x7f800000u ? 0.0 : m; }

GROUP_JOIN(float, group_max, rlx_max)
#endif

void main() {
  plan();
  const uint count = count_of(0), me = gl_LocalInvocationID.x;
  if (n <= SHORT || ((!single || abs(element_step) != 1) && n / 4 <= count)) {
    for (uint r = thread_unit(); r < count && !stopped(); r += GROUPS * LOCAL) {
      const int base = int(offset_of(1)) + distance_of(~along, r);
#ifdef FLOATS
      if (FN == ReduceFn_logsumexp) top = top_of(part_max(base, 0, 1));
#endif
      y[offset_of(0) + r] = store(finish(part_of(base, 0, 1), n));
    }
    return;
  }
  for (uint r = group_unit(); r < count; r += GROUPS) {
    if (group_stopped()) return;
    const int base = int(offset_of(1)) + distance_of(~along, r);
#ifdef FLOATS
    if (FN == ReduceFn_logsumexp) top = top_of(group_max(part_max(base, me, LOCAL)));
#endif
    const PART t = group_join(part_of(base, me, LOCAL));
    if (me == 0) y[offset_of(0) + r] = store(finish(t, n));
  }
}
