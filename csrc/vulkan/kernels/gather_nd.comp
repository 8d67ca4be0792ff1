#version 450
#extension GL_GOOGLE_include_directive : enable
#define INDEX_OPERAND 1
#include "types.glsl"
#include "tensor.glsl"
#include "index.glsl"

// y[b.., q.., r..] = x[b.., index[b.., q.., :].., r..].
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };

void main() {
  const uint unit = thread_unit();
  if (unit >= P[P_UNITS] || stopped()) return;
  const uint batch = uint(attr_int(GatherNd_batch_dims)), q = rank_of(2) - 1, k = dim(2, q);
  int from = int(offset_of(1)), where = int(offset_of(2));
  uint i = unit;
  for (uint d = rank_of(0); d-- > 0;) {
    const uint n = dim(0, d);
    const int c = int(i % n);
    i /= n;
    if (d < batch) from += c * stride(1, d);
    if (d < q) where += c * stride(2, d);
    else from += c * stride(1, d - q + batch + k);
  }
  bool legal = true;
  for (uint j = 0; j < k; j++) {
    uint at;
    if (!index_within(uint(where + int(j) * stride(2, q)), dim(1, batch + j), at)) legal = false;
    from += int(at) * stride(1, batch + j);
  }
  y[offset_of(0) + unit] = legal ? x[from] : STORE(0);
}
