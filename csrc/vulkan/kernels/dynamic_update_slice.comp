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
  const uint axis = axis_of(attr_int(DynamicUpdateSlice_axis), rank_of(0));
  ivec2 v;
  if (!index_value(offset_of(3), v)) return;
  const uint start = start_of(v, dim(0, axis) - dim(2, axis));
  int kept, by;
  const bool inside = replaced(unit, axis, start, kept, by);
  y[offset_of(0) + unit] = inside ? u[by] : x[kept];
}
