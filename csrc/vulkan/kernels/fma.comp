#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"
#include "convert.glsl"
#include "math.glsl"

// y = a*b + c in one rounding, on integers for floats too: see wide.glsl. Integers wrap.
layout(constant_id = S_IN_DTYPE) const uint DTYPE_A = 0;

layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer A { STORE a[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer B { STORE b[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 3) readonly buffer C { STORE c[]; };

float widened(uvec2 b) { return DTYPE_A == RLX_F16 ? f16_load(b.x) : DTYPE_A == RLX_BF16 ? bf16_load(b.x) : uintBitsToFloat(b.x); }
uint narrowed(float v) { return DTYPE_A == RLX_F16 ? f16_store(v) : DTYPE_A == RLX_BF16 ? bf16_store(v) : floatBitsToUint(v); }

void main() {
  const uint i = thread_unit();
  if (i >= P[P_UNITS] || stopped()) return;
  const uvec2 u = bits_in(a[broadcast_of(1, i)]), v = bits_in(b[broadcast_of(2, i)]), w = bits_in(c[broadcast_of(3, i)]);
  uvec2 r;
  if (is_whole(DTYPE_A)) {
    r = add64(mul64(u, v), w);
  } else {
    const float p = widened(u), q = widened(v), s = widened(w);
    float special;
    if (fma_special(p, q, s, special)) {
      r = uvec2(narrowed(special), 0u);
    } else {
      r = float_of(number(fma_sum(p, q, s), FINITE), DTYPE_A);
    }
  }
  y[offset_of(0) + i] = bits_out(r);
}
