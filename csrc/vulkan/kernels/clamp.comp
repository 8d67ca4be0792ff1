#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"
#include "convert.glsl"

// y = min(max(x, min), max), on bits; NaN stays. A bound is the number in the dtype of x: rounded, or the end of an integer range.
layout(constant_id = S_IN_DTYPE) const uint DTYPE_X = 0;

layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };

void main() {
  const uint i = thread_unit();
  if (i >= P[P_UNITS] || stopped()) return;
  uvec2 v = bits_in(x[broadcast_of(1, i)]);
  const bool nan = nan_bits(v, DTYPE_X);
  for (uint a = Clamp_min; a <= Clamp_max; a++) { // min is the attribute before max
    if (attr_word(a, 0) == 0u) continue; // absent
    const uvec2 b = number_bits(a, DTYPE_X), at = order_bits(v, DTYPE_X), end = order_bits(b, DTYPE_X);
    const bool raised = minus_bits(v, DTYPE_X) && !minus_bits(b, DTYPE_X), lowered = minus_bits(b, DTYPE_X) && !minus_bits(v, DTYPE_X); // -0 is below 0
    if (!nan && (a == Clamp_min ? less64(at, end) || (at == end && raised) : less64(end, at) || (at == end && lowered))) v = b;
  }
  y[offset_of(0) + i] = bits_out(v);
}
