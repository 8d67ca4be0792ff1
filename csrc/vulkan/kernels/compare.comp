#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"
#include "convert.glsl"

// y = a fn b, bool, on bits: any dtype of the size. c64 is two f32, equal if both are.
layout(constant_id = S_IN_DTYPE) const uint DTYPE_A = 0;
layout(constant_id = S_ATTR + Compare_fn) const uint FN = 0;

layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y { uint8_t y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer A { STORE a[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer B { STORE b[]; };

bool equal_parts(uint u, uint v) {
  const uvec2 p = uvec2(u, 0u), q = uvec2(v, 0u);
  return !nan_bits(p, RLX_F32) && !nan_bits(q, RLX_F32) && order_bits(p, RLX_F32) == order_bits(q, RLX_F32);
}

void main() {
  const uint i = thread_unit();
  if (i >= P[P_UNITS] || stopped()) return;
  const uvec2 u = bits_in(a[broadcast_of(1, i)]), v = bits_in(b[broadcast_of(2, i)]);
  bool less, equal, ordered;
  if (DTYPE_A == RLX_C64) {
    less = false;
    equal = equal_parts(u.x, v.x) && equal_parts(u.y, v.y);
    ordered = true;
  } else {
    const uvec2 p = order_bits(u, DTYPE_A), q = order_bits(v, DTYPE_A);
    less = less64(p, q);
    equal = p == q;
    ordered = !nan_bits(u, DTYPE_A) && !nan_bits(v, DTYPE_A);
  }
  bool r;
  switch (FN) {
    case CompareFn_eq: r = ordered && equal; break;
    case CompareFn_ne: r = !(ordered && equal); break;
    case CompareFn_lt: r = ordered && less; break;
    case CompareFn_le: r = ordered && (less || equal); break;
    case CompareFn_gt: r = ordered && !(less || equal); break;
    default: r = ordered && !less;
  }
  y[offset_of(0) + i] = uint8_t(r ? 1u : 0u);
}
