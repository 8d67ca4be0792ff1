#version 450
#extension GL_GOOGLE_include_directive : enable
#define INDEX_OPERAND 1
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#include "index.glsl"

// y[a.., i.., b..] = x[a.., index[i..], b..].
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };

void main() {
  const uint unit = thread_unit();
  if (unit >= P[P_UNITS] || stopped()) return;
  const uint axis = axis_of(attr_int(Gather_axis), rank_of(1)), behind = axis + rank_of(2);
  int from = int(offset_of(1)), where = int(offset_of(2));
  uint i = unit;
  for (uint d = rank_of(0); d-- > 0;) {
    const uint n = dim(0, d), c = i % n;
    i /= n;
    if (d < axis) from += int(c) * stride(1, d);
    else if (d < behind) where += int(c) * stride(2, d - axis);
    else from += int(c) * stride(1, d - behind + axis + 1);
  }
  uint at;
  const bool legal = index_within(uint(where), dim(1, axis), at);
  y[offset_of(0) + unit] = legal ? x[from + int(at) * stride(1, axis)] : STORE(0);
}
