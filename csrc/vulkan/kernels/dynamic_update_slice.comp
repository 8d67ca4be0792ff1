#version 450
#extension GL_GOOGLE_include_directive : enable
#define INDEX_OPERAND 2
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#include "index.glsl"

// y = x with u written from start on along axis; start is clamped, so that u fits. y may be x: an element is read by the invocation that
// writes it.
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer U { STORE u[]; };

uint start_of(ivec2 v, uint room) {
  if (index_negative(v)) return 0;
  return v.y != 0 ? room : min(uint(v.x), room);
}

void main() {
  const uint unit = thread_unit();
  if (unit >= P[P_UNITS] || stopped()) return;
  const uint axis = axis_of(attr_int(DynamicUpdateSlice_axis), rank_of(0)), length = dim(2, axis);
  ivec2 v;
  if (!index_value(offset_of(3), v)) return;
  const uint start = start_of(v, dim(0, axis) - length);
  int from = int(offset_of(1)), other = int(offset_of(2));
  bool inside = false;
  uint i = unit;
  for (uint d = rank_of(0); d-- > 0;) {
    const uint n = dim(0, d), c = i % n;
    i /= n;
    from += int(c) * stride(1, d);
    if (d == axis) inside = c >= start && c - start < length;
    other += int(d == axis ? c - start : c) * stride(2, d);
  }
  y[offset_of(0) + unit] = inside ? u[other] : x[from];
}
