// types.glsl: the dtype of a variant. STORE is an element in memory, COMPUTE what kernels calculate with; load and store convert.
// f16 and bf16 are calculated in f32 and rounded half to even by our own code, whatever a device's conversion does.
// IS_FLOAT, or BITS for integers, with IS_SIGNED where they are, say what kind of dtype it is; size1 ... size8 have STORE alone.
#ifndef RLX_TYPES_GLSL
#define RLX_TYPES_GLSL
#extension GL_EXT_shader_16bit_storage : enable
#extension GL_EXT_shader_8bit_storage : enable
#extension GL_EXT_shader_explicit_arithmetic_types : enable
#include "layout.h"

// dtype numbers: as rlx_dtype.
#include "ops_gen.glsl"

float f16_load(uint b) {
  const uint s = (b & 0x8000u) << 16, e = (b >> 10) & 0x1fu, m = b & 0x3ffu;
  if (e == 31u) return uintBitsToFloat(s | 0x7f800000u | m << 13);
  if (e != 0u) return uintBitsToFloat(s | (e + 112u) << 23 | m << 13);
  const float v = float(m) * 5.9604644775390625e-8; // m * 2^-24: exact, and never subnormal
  return s == 0u ? v : -v;
}

uint f16_store(float x) {
  const uint b = floatBitsToUint(x), s = (b >> 16) & 0x8000u, a = b & 0x7fffffffu;
  if (a > 0x7f800000u) return s | 0x7e00u;
  if (a >= 0x477ff000u) return s | 0x7c00u; // rounds to infinity
  if (a >= 0x38800000u) return s | ((a + 0xfffu + ((a >> 13) & 1u)) >> 13) - 0x1c000u;
  if (a < 0x33000000u) return s;
  const uint e = a >> 23, m = (a & 0x7fffffu) | 0x800000u, shift = 126u - e; // subnormal result: m * 2^(e - 150) in units of 2^-24
  const uint q = m >> shift, rest = m & ((1u << shift) - 1u), half_ = 1u << (shift - 1u);
  return s | (q + (rest > half_ || (rest == half_ && (q & 1u) != 0u) ? 1u : 0u));
}

float bf16_load(uint b) { return uintBitsToFloat(b << 16); }

uint bf16_store(float x) {
  const uint b = floatBitsToUint(x);
  if ((b & 0x7fffffffu) > 0x7f800000u) return (b >> 16) | 0x40u;
  return (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
}

#if defined(VARIANT_f32)
#define IS_FLOAT
#define STORE float
#define COMPUTE float
#elif defined(VARIANT_f16) || defined(VARIANT_bf16)
#define IS_FLOAT
#define STORE uint16_t
#define COMPUTE float
#elif defined(VARIANT_f64)
#define IS_FLOAT
#define STORE double
#define COMPUTE double
#elif defined(VARIANT_bool)
#define STORE uint8_t
#define COMPUTE uint
#elif defined(VARIANT_i8)
#define IS_SIGNED
#define BITS 8
#define STORE int8_t
#define COMPUTE int
#elif defined(VARIANT_i16)
#define IS_SIGNED
#define BITS 16
#define STORE int16_t
#define COMPUTE int
#elif defined(VARIANT_i32)
#define IS_SIGNED
#define BITS 32
#define STORE int
#define COMPUTE int
#elif defined(VARIANT_i64)
#define IS_SIGNED
#define BITS 64
#define STORE int64_t
#define COMPUTE int64_t
#elif defined(VARIANT_u8)
#define BITS 8
#define STORE uint8_t
#define COMPUTE uint
#elif defined(VARIANT_u16)
#define BITS 16
#define STORE uint16_t
#define COMPUTE uint
#elif defined(VARIANT_u32)
#define BITS 32
#define STORE uint
#define COMPUTE uint
#elif defined(VARIANT_u64)
#define BITS 64
#define STORE uint64_t
#define COMPUTE uint64_t
#elif defined(VARIANT_size1)
#define STORE uint8_t
#elif defined(VARIANT_size2)
#define STORE uint16_t
#elif defined(VARIANT_size4)
#define STORE uint
#elif defined(VARIANT_size8)
#define STORE uvec2
#endif

#if defined(VARIANT_f16)
COMPUTE load(STORE v) { return f16_load(uint(v)); }
STORE store(COMPUTE v) { return STORE(f16_store(v)); }
#elif defined(VARIANT_bf16)
COMPUTE load(STORE v) { return bf16_load(uint(v)); }
STORE store(COMPUTE v) { return STORE(bf16_store(v)); }
#elif defined(VARIANT_bool)
COMPUTE load(STORE v) { return uint(v) != 0u ? 1u : 0u; }
STORE store(COMPUTE v) { return STORE(v); }
#elif defined(COMPUTE)
COMPUTE load(STORE v) { return COMPUTE(v); }
STORE store(COMPUTE v) { return STORE(v); }
#endif

#endif
