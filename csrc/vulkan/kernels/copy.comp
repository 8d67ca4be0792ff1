#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"

// y = x, for operands of any strides.
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };

void main() {
  const uint i = thread_unit();
  if (i >= P[P_UNITS] || stopped()) return;
  y[offset_of(0) + i] = x[broadcast_of(1, i)];
}
