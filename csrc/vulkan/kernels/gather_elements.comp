#version 450
#extension GL_GOOGLE_include_directive : enable
#define INDEX_OPERAND 1
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#include "index.glsl"

// y[i] = x[i with i[axis] replaced by index[i]].
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };

void main() {
  const uint unit = thread_unit();
  if (unit >= P[P_UNITS] || stopped()) return;
  const uint axis = axis_of(attr_int(GatherElements_axis), rank_of(1));
  int from = int(offset_of(1)), where = int(offset_of(2));
  uint i = unit;
  for (uint d = rank_of(0); d-- > 0;) {
    const uint n = dim(0, d);
    const int c = int(i % n);
    i /= n;
    where += c * stride(2, d);
    if (d != axis) from += c * stride(1, d);
  }
  uint at;
  const bool legal = index_within(uint(where), dim(1, axis), at);
  y[offset_of(0) + unit] = legal ? x[from + int(at) * stride(1, axis)] : STORE(0);
}
