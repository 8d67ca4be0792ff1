#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"
#include "convert.glsl"

// dx = x <= 0 ? 0 : dy, on bits; a NaN x passes dy.
layout(constant_id = S_IN_DTYPE) const uint DTYPE_X = 0;

layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer DX { STORE dx[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer DY { STORE dy[]; };

void main() {
  const uint i = thread_unit();
  if (i >= P[P_UNITS] || stopped()) return;
  const uvec2 v = bits_in(x[broadcast_of(1, i)]);
  const bool flat_ = !nan_bits(v, DTYPE_X) && (minus_bits(v, DTYPE_X) || zero_bits(v, DTYPE_X));
  dx[offset_of(0) + i] = flat_ ? STORE(0u) : dy[broadcast_of(2, i)];
}
