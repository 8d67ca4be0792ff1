#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"
#include "convert.glsl"

// y = x with a border of before and after elements on each axis; negative counts crop.
layout(constant_id = S_OUT_DTYPE) const uint OUT_DTYPE = 0;
layout(constant_id = S_ATTR + Pad_mode) const uint MODE = 0;
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };

// The element that position i reads of the n that are left; i counts from the first of these. -1: the value.
int source(int i, int n) {
  if (i >= 0 && i < n) return i;
  const uint far = uint(abs(i));
  if (MODE == PadMode_replicate) return i < 0 ? 0 : n - 1;
  if (MODE == PadMode_circular) {
    const int m = int(far % uint(n));
    return i < 0 && m != 0 ? n - m : m;
  }
  if (MODE != PadMode_reflect) return -1;
  if (n == 1) return 0;
  const uint period = 2u * uint(n - 1), m = far % period;
  return int(min(m, period - m));
}

void main() {
  const uint unit = thread_unit();
  if (unit >= P[P_UNITS] || stopped()) return;
  const uint rank = rank_of(0), behind = attr_count(Pad_padding) == rank ? 0 : rank;
  int from = int(offset_of(1));
  bool outside = false;
  uint i = unit;
  for (uint d = rank; d-- > 0;) {
    const uint n = dim(0, d);
    const int before = attr_item(Pad_padding, d), after = attr_item(Pad_padding, behind + d);
    const int left = int(dim(1, d)) + min(before, 0) + min(after, 0), s = source(int(i % n) - max(before, 0), left);
    i /= n;
    outside = outside || s < 0;
    from += (s + max(-before, 0)) * stride(1, d);
  }
  y[offset_of(0) + unit] = outside ? bits_out(number_bits(Pad_value, OUT_DTYPE)) : x[from];
}
