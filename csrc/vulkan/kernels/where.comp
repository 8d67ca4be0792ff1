#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"
#include "convert.glsl"

// y = c ? a : b, by the size of the elements.
layout(constant_id = S_OUT_DTYPE) const uint DTYPE_Y = 0;

layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer C { STORE c[]; };
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y1 { uint8_t y1[]; };
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y2 { uint16_t y2[]; };
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y4 { uint y4[]; };
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y8 { uvec2 y8[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer A1 { uint8_t a1[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer A2 { uint16_t a2[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer A4 { uint a4[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer A8 { uvec2 a8[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 3) readonly buffer B1 { uint8_t b1[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 3) readonly buffer B2 { uint16_t b2[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 3) readonly buffer B4 { uint b4[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 3) readonly buffer B8 { uvec2 b8[]; };

void main() {
  const uint i = thread_unit();
  if (i >= P[P_UNITS] || stopped()) return;
  const bool t = load(c[broadcast_of(1, i)]) != 0u;
  const uint at = offset_of(0) + i, from = t ? broadcast_of(2, i) : broadcast_of(3, i);
  switch (size_of(DTYPE_Y)) {
    case 1: y1[at] = uint8_t(t ? uint(a1[from]) : uint(b1[from])); break;
    case 2: y2[at] = uint16_t(t ? uint(a2[from]) : uint(b2[from])); break;
    case 4: y4[at] = t ? a4[from] : b4[from]; break;
    default: y8[at] = t ? a8[from] : b8[from];
  }
}
