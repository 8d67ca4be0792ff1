#version 450
#extension GL_GOOGLE_include_directive : enable
#define INDEX_OPERAND 1
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#include "index.glsl"

// y = x; y[index[q.., :].., r..] (reduction)= u[q.., r..]. y may be x.
layout(constant_id = S_ATTR + ScatterNd_reduction) const uint REDUCTION = 0;
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 3) readonly buffer U { STORE u[]; };

#include "scatter.glsl"

// Rows that a tuple names together: those of the axes between its coordinates and the last axis.
uint inner_rows() { return extent(0, dim(2, rank_of(2) - 1), rank_of(0) - 1); }

uint target_of(uint t, uint row) {
  const uint q = rank_of(2) - 1, k = dim(2, q), rank = rank_of(0);
  int where = int(offset_of(2));
  for (uint d = q, i = t; d-- > 0;) {
    where += int(i % dim(2, d)) * stride(2, d);
    i /= dim(2, d);
  }
  bool legal = true;
  uint at = 0, line = 0;
  for (uint j = 0; j < k; j++) {
    if (!index_within(uint(where + int(j) * stride(2, q)), dim(0, j), at)) legal = false;
    if (j + 1 < rank) line = line * dim(0, j) + at;
  }
  if (!legal || line != row / inner_rows()) return NOWHERE;
  return k == rank ? at : WHOLE_ROW;
}

STORE update_of(uint t, uint row, uint column) {
  if (dim(2, rank_of(2) - 1) == rank_of(0)) return u[element_of(3, t)];
  const uint inner = inner_rows();
  return u[element_of(3, (t * inner + row % inner) * last_dim(0) + column)];
}

STORE base_of(uint row, uint column) { return x[element_of(1, row * last_dim(0) + column)]; }

void main() { scatter_row(REDUCTION, count_of(2) / dim(2, rank_of(2) - 1)); }
