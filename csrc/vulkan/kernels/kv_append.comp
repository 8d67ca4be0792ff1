#version 450
#extension GL_GOOGLE_include_directive : enable
#define INDEX_OPERAND 2
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#include "index.glsl"
#include "reduce.glsl"

// y = cache; y[.., p : p+n, ..] = rows along axis, where p is one position or one for each index of axis 0. y may be the cache, which stays
// as it was if one position does not fit: so every invocation looks at all of them.
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer Cache { STORE cache[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer Rows { STORE rows[]; };

bool position(uint b, uint room, out uint p) {
  p = attr_word(KvAppend_position, 1);
  if (INDEX_DTYPE == 0) return true;
  ivec2 v;
  const int along = rank_of(3) == 0 ? 0 : stride(3, 0);
  if (!index_value(uint(int(offset_of(3)) + int(b) * along), v)) return false;
  p = uint(v.x);
  if (v.y == 0 && p <= room) return true;
  fail(v, uint(room), uint(C_VALUES), BAD_POSITION);
  return false;
}

void main() {
  const uint unit = thread_unit();
  if (unit >= P[P_UNITS] || stopped()) return;
  const uint axis = axis_of(attr_int(KvAppend_axis), rank_of(0)), room = dim(0, axis) - dim(2, axis);
  const uint positions = INDEX_DTYPE == 0 ? 1 : count_of(3);
  const uint row = positions == 1 ? 0 : unit / (P[P_UNITS] / dim(0, 0));
  uint start = 0, b = 0;
  for (; b < positions; b++) {
    uint p;
    if (!position(b, room, p)) return;
    if (b == row) start = p;
  }
  expect_end(b, positions);
  int kept, by;
  const bool inside = replaced(unit, axis, start, kept, by);
  y[offset_of(0) + unit] = inside ? rows[by] : cache[kept];
}
