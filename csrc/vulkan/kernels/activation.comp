#version 450
#extension GL_GOOGLE_include_directive : enable
#include "types.glsl"
#include "tensor.glsl"
#ifdef IS_FLOAT
#include "scalar_gen.glsl"
#elif defined(BITS)
#include "scalar_int.glsl"
#endif

// y = fn(x); bool for predicates. c64 (size8) has identity and neg.
layout(constant_id = S_ATTR + Activation_fn) const uint FN = 0;

layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };
#ifdef IS_FLOAT
layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Truth { uint8_t truth[]; };
#endif

void main() {
  const uint i = thread_unit();
  if (i >= P[P_UNITS] || stopped()) return;
  const uint at = offset_of(0) + i;
  const STORE v = x[broadcast_of(1, i)];
  if (FN == UnaryFn_identity) {
    y[at] = v;
    return;
  }
#if defined(IS_FLOAT)
  if (FN == UnaryFn_is_nan || FN == UnaryFn_is_inf || FN == UnaryFn_is_finite) {
    truth[at] = uint8_t(predicate(FN, load(v)) ? 1u : 0u);
  } else {
    y[at] = store(unary(FN, load(v), attr_float(Activation_alpha), attr_float(Activation_beta)));
  }
#elif defined(BITS)
  y[at] = store(int_unary(FN, load(v)));
#elif defined(VARIANT_bool)
  y[at] = store(load(v) ^ 1u);
#else
  y[at] = v ^ 0x80000000u;
#endif
}
