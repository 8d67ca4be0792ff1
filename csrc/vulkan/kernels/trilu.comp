#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"

// y[.., i, j] = x[.., i, j] where j - i >= diagonal (lower: <=), else zero bits.
layout(constant_id = S_ATTR + Trilu_lower) const uint LOWER = 0;
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };

void main() {
  const uint unit = thread_unit();
  if (unit >= P[P_UNITS] || stopped()) return;
  const uint rank = rank_of(0), rows = dim(0, rank - 2), columns = dim(0, rank - 1);
  const int across = int(unit % columns) - int(unit / columns % rows), diagonal = attr_int(Trilu_diagonal);
  const bool kept = LOWER != 0 ? across <= diagonal : across >= diagonal;
  y[offset_of(0) + unit] = kept ? x[element_of(1, unit)] : STORE(0);
}
