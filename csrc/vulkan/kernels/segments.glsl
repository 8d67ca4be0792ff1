// segments.glsl: slices of operand 0, u, summed by target along an axis: ScatterAdd and GatherBackward, for which the axes of the index
// count as one. Include after index.glsl, with y, u, base_of and SIZE_AXIS defined.
#ifndef RLX_SEGMENTS_GLSL
#define RLX_SEGMENTS_GLSL
#include "scatter.glsl"

// Result 0 is [outer.., size, inner..]; rows are counted without its last axis, which is size itself where axis is the last.
uint segment_axis() { return axis_of(attr_int(SIZE_AXIS), rank_of(0)); }

uint rows_behind(uint axis) { return extent(0, axis + 1, rank_of(0) - 1); }

uint target_of(uint k, uint row) {
  const uint axis = segment_axis();
  uint at;
  if (!index_within(element_of(2, k), dim(0, axis), at)) return NOWHERE;
  if (axis + 1 == rank_of(0)) return at;
  return at == row / rows_behind(axis) % dim(0, axis) ? WHOLE_ROW : NOWHERE;
}

STORE update_of(uint k, uint row, uint column) {
  const uint axis = segment_axis(), slices = count_of(2);
  if (axis + 1 == rank_of(0)) return u[element_of(1, row * slices + k)];
  const uint inner = rows_behind(axis), outer = row / inner / dim(0, axis);
  return u[element_of(1, ((outer * slices + k) * inner + row % inner) * last_dim(0) + column)];
}

#endif
