#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"

// y[.., at_k + i, ..] = x_k[.., i, ..], where at_k is the sum of the lengths before x_k. Sees the one operand of its piece.
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };

void main() {
  uint i = thread_unit();
  if (i >= P[P_UNITS] || stopped()) return;
  const uint k = operand(0), axis = axis_of(attr_int(Concat_axis), rank_of(0));
  const uint start = P[P_BEFORE] / (count_of(0) / dim(0, axis));
  int from = int(offset_of(k));
  uint to = offset_of(0), step = 1;
  for (int d = int(rank_of(k)) - 1; d >= 0; d--) {
    const uint c = i % dim(k, d);
    i /= dim(k, d);
    from += int(c) * stride(k, d);
    to += (d == axis ? c + start : c) * step;
    step *= dim(0, d);
  }
  y[to] = x[from];
}
