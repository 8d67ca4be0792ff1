#version 450
#extension GL_GOOGLE_include_directive : enable
#define INDEX_OPERAND 1
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#include "index.glsl"
#include "combine.glsl"
#include "reduce.glsl"

// y = x; y[i with i[axis] replaced by index[i]] (reduction)= u[i]. An invocation looks at all updates that can meet its element: those that
// differ in axis only. y may be x.
layout(constant_id = S_ATTR + ScatterElements_reduction) const uint REDUCTION = 0;
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 3) readonly buffer U { STORE u[]; };

void main() {
  const uint unit = thread_unit();
  if (unit >= P[P_UNITS] || stopped()) return;
  const uint axis = axis_of(attr_int(ScatterElements_axis), rank_of(0));
  int where = int(offset_of(2)), from = int(offset_of(3));
  uint me = 0, updates = dim(2, axis);
  for (uint d = rank_of(0), i = unit; d-- > 0;) {
    const uint c = i % dim(0, d);
    i /= dim(0, d);
    if (d == axis) {
      me = c;
    } else {
      if (c >= dim(2, d)) updates = 0;
      where += int(c) * stride(2, d);
      from += int(c) * stride(3, d);
    }
  }
  Cell cell = cell_of(x[element_of(1, unit)]);
  uint j = 0;
  for (; j < updates; j++) {
    uint at;
    const bool legal = index_within(uint(where + int(j) * stride(2, axis)), dim(0, axis), at);
    if (legal && at == me) update(cell, REDUCTION, u[from + int(j) * stride(3, axis)]);
  }
  expect_end(j, updates);
  y[offset_of(0) + unit] = cell.bits;
}
