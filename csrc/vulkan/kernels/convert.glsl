// convert.glsl: elements of any dtype as bits, in two words: what they are worth, how they compare, and every cast. No dtype needs a feature
// of the device. Include after types.glsl and tensor.glsl. The dtype is a specialisation constant, so that a driver keeps the cases of one dtype.
#ifndef RLX_CONVERT_GLSL
#define RLX_CONVERT_GLSL
#include "wide.glsl"

uint size_of(uint dtype) {
  switch (dtype) {
    case RLX_I16: case RLX_U16: case RLX_F16: case RLX_BF16: return 2u;
    case RLX_I32: case RLX_U32: case RLX_F32: return 4u;
    case RLX_I64: case RLX_U64: case RLX_F64: case RLX_C64: return 8u;
    default: return 1u;
  }
}
bool is_signed(uint dtype) { return dtype >= RLX_I8 && dtype <= RLX_I64; }
bool is_whole(uint dtype) { return dtype >= RLX_BOOL && dtype <= RLX_U64; }

// A float format with an infinity: mantissa bits, the least exponent of normal numbers, the code of infinity.
int man_of(uint dtype) { return dtype == RLX_F16 ? 10 : dtype == RLX_BF16 ? 7 : dtype == RLX_F64 ? 52 : 23; }
int emin_of(uint dtype) { return dtype == RLX_F16 ? -14 : dtype == RLX_F64 ? -1022 : -126; }
uvec2 inf_of(uint dtype) {
  return dtype == RLX_F16 ? uvec2(0x7c00u, 0u) : dtype == RLX_BF16 ? uvec2(0x7f80u, 0u) : dtype == RLX_F64 ? uvec2(0u, 0x7ff00000u) : uvec2(0x7f800000u, 0u);
}

// The sign bit of the dtype, apart from the rest.
bool minus_bits(uvec2 b, uint dtype) {
  const uint n = 8u * size_of(dtype);
  return n == 64u ? b.y >> 31 != 0u : (b.x >> (n - 1u) & 1u) != 0u;
}
uvec2 magnitude_bits(uvec2 b, uint dtype) {
  const uint n = 8u * size_of(dtype);
  return n == 64u ? uvec2(b.x, b.y & 0x7fffffffu) : uvec2(b.x & ((1u << (n - 1u)) - 1u), 0u);
}
bool nan_bits(uvec2 b, uint dtype) { return !is_whole(dtype) && less64(inf_of(dtype), magnitude_bits(b, dtype)); }
bool zero_bits(uvec2 b, uint dtype) { return magnitude_bits(b, dtype) == uvec2(0u); }

// An integer, or a bool as 0 and 1, in 64 bits.
uvec2 whole_value(uvec2 b, uint dtype) {
  if (dtype == RLX_BOOL) return uvec2(b.x != 0u ? 1u : 0u, 0u);
  const uint n = 8u * size_of(dtype);
  if (!is_signed(dtype) || n == 64u) return b;
  const int v = int(b.x << (32u - n)) >> (32u - n);
  return uvec2(uint(v), uint(v >> 31));
}

// Unsigned integers in the order of the numbers that are no NaN, equal for both zeros.
uvec2 order_bits(uvec2 b, uint dtype) {
  const uvec2 middle = uvec2(0u, 0x80000000u);
  if (is_whole(dtype)) return is_signed(dtype) ? whole_value(b, dtype) ^ middle : whole_value(b, dtype);
  const uvec2 m = magnitude_bits(b, dtype);
  return minus_bits(b, dtype) ? sub64(middle, m) : add64(middle, m);
}

// ---- casts

#define FINITE 0u
#define INFINITE 1u
#define NOT_A_NUMBER 2u
struct number { wide v; uint kind; };

// A code of 8 bits or less: man mantissa bits, least normal number 2^emin, codes beyond top are NaN, or infinite where one is.
number small_number(uint m, bool minus, int man, int emin, uint top, bool has_inf) {
  const int e = int(m >> uint(man));
  const uint f = (m & ((1u << uint(man)) - 1u)) | (e == 0 ? 0u : 1u << uint(man));
  return number(wide(uvec2(f, 0u), max(e, 1) - 1 + emin - man, minus), m <= top ? FINITE : has_inf && m == top + 1u ? INFINITE : NOT_A_NUMBER);
}

number number_of(uvec2 b, uint dtype) {
  if (is_whole(dtype)) {
    const uvec2 v = whole_value(b, dtype);
    const bool minus = is_signed(dtype) && v.y >> 31 != 0u;
    return number(wide(minus ? sub64(uvec2(0u), v) : v, 0, minus), FINITE);
  }
  switch (dtype) {
    case RLX_F8E4M3: return small_number(b.x & 0x7fu, (b.x & 0x80u) != 0u, 3, -6, 0x7eu, false);
    case RLX_F8E5M2: return small_number(b.x & 0x7fu, (b.x & 0x80u) != 0u, 2, -14, 0x7bu, true);
    case RLX_F4E2M1: return small_number(b.x & 7u, (b.x & 8u) != 0u, 1, 0, 7u, false);
    case RLX_E8M0: return number(wide(uvec2(1u, 0u), int(b.x) - 127, false), b.x == 255u ? NOT_A_NUMBER : FINITE);
  }
  const int man = man_of(dtype);
  const uvec2 m = magnitude_bits(b, dtype), inf = inf_of(dtype), f = sub64(m, shl64(shr64(m, uint(man)), uint(man)));
  const int e = int(shr64(m, uint(man)).x);
  const uvec2 implicit_ = e == 0 ? uvec2(0u) : shl64(uvec2(1u, 0u), uint(man));
  return number(wide(f | implicit_, max(e, 1) - 1 + emin_of(dtype) - man, minus_bits(b, dtype)), m == inf ? INFINITE : less64(inf, m) ? NOT_A_NUMBER : FINITE);
}

// Integers: the fraction is dropped and what is out of range goes to its end; NaN is 0.
uvec2 whole_of(number x, uint dtype) {
  const uint n = 8u * size_of(dtype);
  const bool has_sign = is_signed(dtype);
  if (x.kind == NOT_A_NUMBER) return uvec2(0u);
  const uvec2 most = shr64(uvec2(0xffffffffu), has_sign ? 65u - n : 64u - n);
  const uvec2 limit = !x.v.minus ? most : has_sign ? add64(most, uvec2(1u, 0u)) : uvec2(0u);
  const bool beyond = x.kind == INFINITE || (x.v.m != uvec2(0u) && top_bit(x.v.m) + x.v.e > 63);
  uvec2 m = x.v.e < 0 ? shr64(x.v.m, uint(min(-x.v.e, 64))) : shl64(x.v.m, uint(min(x.v.e, 63)));
  if (beyond || less64(limit, m)) m = limit;
  return x.v.minus ? sub64(uvec2(0u), m) : m;
}

// The 8-bit floats: `over` is the code of what rounds above the largest, infinities too.
uint small_of(number x, int man, int emin, uint top, uint over, uint nan) {
  const uvec2 c = rounded(x.v, man, emin);
  return x.kind == NOT_A_NUMBER ? nan : x.kind == INFINITE || c.y != 0u || c.x > top ? over : c.x;
}
// The least power of two that is not below x.
uint e8m0_of(number x) {
  const bool zero = x.v.m == uvec2(0u);
  if (x.kind != FINITE || (x.v.minus && !zero)) return 255u;
  const int top = top_bit(x.v.m);
  const bool whole_power = x.v.m == shl64(uvec2(1u, 0u), uint(max(top, 0)));
  return zero ? 0u : uint(clamp(top + x.v.e + (whole_power ? 0 : 1) + 127, 0, 254));
}

// f16, bf16, f32, f64; c64 has it as its real part.
uvec2 float_of(number x, uint dtype) {
  const int man = man_of(dtype);
  const uvec2 inf = inf_of(dtype), c = rounded(x.v, man, emin_of(dtype));
  const uvec2 m = x.kind == NOT_A_NUMBER ? inf | shl64(uvec2(1u, 0u), uint(man - 1)) : x.kind == INFINITE || !less64(c, inf) ? inf : c;
  const uint width = dtype == RLX_C64 ? 32u : 8u * size_of(dtype);
  return x.v.minus ? m | shl64(uvec2(1u, 0u), width - 1u) : m;
}

uvec2 bits_of_number(number x, uint dtype, bool saturate) {
  const uint sign = x.v.minus ? 0x80u : 0u;
  switch (dtype) {
    case RLX_BOOL: return uvec2(x.kind != FINITE || x.v.m != uvec2(0u) ? 1u : 0u, 0u);
    case RLX_F8E4M3: return uvec2(sign | small_of(x, 3, -6, 0x7eu, saturate ? 0x7eu : 0x7fu, 0x7fu), 0u);
    case RLX_F8E5M2: return uvec2(sign | small_of(x, 2, -14, 0x7bu, saturate ? 0x7bu : 0x7cu, 0x7eu), 0u);
    case RLX_F4E2M1: return uvec2(x.kind == NOT_A_NUMBER ? 0u : sign >> 4 | small_of(x, 1, 0, 7u, 7u, 0u), 0u);
    case RLX_E8M0: return uvec2(e8m0_of(x), 0u);
  }
  return is_whole(dtype) ? whole_of(x, dtype) : float_of(x, dtype);
}

// Between integers and bools the low bits; else one rounding, half to even.
uvec2 cast_bits(uvec2 b, uint from, uint to, bool saturate) {
  if (from == to) return b;
  if (is_whole(from) && is_whole(to)) {
    const uvec2 v = whole_value(b, from);
    return to == RLX_BOOL ? uvec2(v == uvec2(0u) ? 0u : 1u, 0u) : v;
  }
  return bits_of_number(number_of(b, from), to, saturate);
}

// Number attribute a in a dtype: rounded, or the end of an integer range; 0 if absent.
uvec2 number_bits(uint a, uint dtype) {
  const uint kind = attr_word(a, 0), from = kind == 1u ? RLX_I64 : kind == 2u ? RLX_U64 : RLX_F64;
  return bits_of_number(number_of(uvec2(attr_word(a, 1), attr_word(a, 2)), from), dtype, false);
}

#ifdef VARIANT_size8
uvec2 bits_in(STORE v) { return v; }
STORE bits_out(uvec2 b) { return b; }
#else
uvec2 bits_in(STORE v) { return uvec2(uint(v), 0u); }
STORE bits_out(uvec2 b) { return STORE(b.x); }
#endif

#endif
