#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"
#define RLX_GRADIENTS
#include "scalar_gen.glsl"

// dx = dy * fn'(x)
layout(constant_id = S_ATTR + ActivationBackward_fn) const uint FN = 0;

layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer DX { STORE dx[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer DY { STORE dy[]; };

void main() {
  const uint i = thread_unit();
  if (i >= P[P_UNITS] || stopped()) return;
  const float v = load(x[broadcast_of(1, i)]), d = load(dy[broadcast_of(2, i)]);
  dx[offset_of(0) + i] = store(backward(FN, v, d, attr_float(ActivationBackward_alpha), attr_float(ActivationBackward_beta)));
}
