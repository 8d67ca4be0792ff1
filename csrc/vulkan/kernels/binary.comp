#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"
#ifdef IS_FLOAT
#include "scalar_gen.glsl"
#elif defined(BITS)
#include "scalar_int.glsl"
#endif

// y = fn(a, b)
layout(constant_id = S_ATTR + Binary_fn) const uint FN = 0;

layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer A { STORE a[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer B { STORE b[]; };

void main() {
  const uint i = thread_unit();
  if (i >= P[P_UNITS] || stopped()) return;
  const COMPUTE u = load(a[broadcast_of(1, i)]), v = load(b[broadcast_of(2, i)]);
#if defined(IS_FLOAT)
  const COMPUTE r = binary(FN, u, v);
#elif defined(BITS)
  const COMPUTE r = int_binary(FN, u, v);
#else
  const COMPUTE r = FN == BinaryFn_and_ ? u & v : FN == BinaryFn_or_ ? u | v : u ^ v;
#endif
  y[offset_of(0) + i] = store(r);
}
