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
  const uint axis = axis_of(attr_int(KvAppend_axis), rank_of(0)), length = dim(2, axis), room = dim(0, axis) - length;
  const uint positions = INDEX_DTYPE == 0 ? 1 : count_of(3);
  const uint row = positions == 1 ? 0 : unit / (P[P_UNITS] / dim(0, 0));
  uint start = 0, b = 0;
  for (; b < positions; b++) {
    uint p;
    if (!position(b, room, p)) return;
    if (b == row) start = p;
  }
  expect_end(b, positions);
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
  y[offset_of(0) + unit] = inside ? rows[other] : cache[from];
}
