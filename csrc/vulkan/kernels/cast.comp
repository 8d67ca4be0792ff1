#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"
#include "convert.glsl"

// y = x in another dtype, on bits: any pair of dtypes.
layout(constant_id = S_OUT_DTYPE) const uint TO = 0;
layout(constant_id = S_IN_DTYPE) const uint FROM = 0;
layout(constant_id = S_ATTR + Cast_saturate) const uint SATURATE = 1;

layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };
layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y1 { uint8_t y1[]; };
layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y2 { uint16_t y2[]; };
layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y4 { uint y4[]; };
layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y8 { uvec2 y8[]; };

void main() {
  const uint i = thread_unit();
  if (i >= P[P_UNITS] || stopped()) return;
  const uint at = offset_of(0) + i;
  const uvec2 b = cast_bits(bits_in(x[broadcast_of(1, i)]), FROM, TO, SATURATE != 0u);
  switch (size_of(TO)) {
    case 1: y1[at] = uint8_t(b.x); break;
    case 2: y2[at] = uint16_t(b.x); break;
    case 4: y4[at] = b.x; break;
    default: y8[at] = b;
  }
}
