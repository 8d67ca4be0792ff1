// convert.h: single values between the float formats and f64, each in one rounding to nearest even. Plain C++, bit by bit: the wide
// paths of Cast are in loops.h.
#pragma once
#include "../core/rlx_begin.h"

namespace rlx {
namespace elementwise {

inline uint64_t f64_bits(double x) {
  uint64_t b;
  std::memcpy(&b, &x, 8);
  return b;
}
inline double f64_of_bits(uint64_t b) {
  double x;
  std::memcpy(&x, &b, 8);
  return x;
}
constexpr uint64_t F64_ABS = 0x7fffffffffffffffull, F64_INF = 0x7ff0000000000000ull;

// The code, without sign, of a finite |x| given by its bits, in a format with `man` mantissa bits whose smallest normal number is
// 2^emin; as if exponents had no upper end, so that the caller finds overflow by one comparison of codes.
inline uint64_t narrow_bits(uint64_t abs_bits, int man, int emin) {
  const int e = int(abs_bits >> 52) - 1023;
  if (e < emin - man - 1) return 0;  // below half the smallest value, f64's own subnormals included
  const uint64_t m = (abs_bits & 0x000fffffffffffffull) | 0x0010000000000000ull;
  const int shift = 52 - man + (e < emin ? emin - e : 0);
  const uint64_t base = e < emin ? 0 : uint64_t(e - emin) << man;
  const uint64_t q = m >> shift, rest = m & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  return base + q + (rest > half || (rest == half && (q & 1) != 0));  // q has the implicit bit: it steps the exponent field
}
// The value of a code without sign, in a format without reserved codes.
inline double widen_bits(uint64_t code, int man, int emin) {
  const uint64_t f = code & ((1ull << man) - 1);
  const int e = int(code >> man);
  const double unit = f64_of_bits(uint64_t(1023 + (e == 0 ? emin : e - 1 + emin) - man) << 52);
  return double(e == 0 ? f : f | 1ull << man) * unit;
}

inline uint16_t half_from_f64(double x, int man, int emin, uint16_t inf, uint16_t nan) {
  const uint64_t b = f64_bits(x), a = b & F64_ABS;
  const uint16_t s = uint16_t(b >> 63 << 15);
  if (a > F64_INF) return s | nan;
  if (a == F64_INF) return s | inf;
  const uint64_t c = narrow_bits(a, man, emin);
  return uint16_t(s | (c < inf ? uint16_t(c) : inf));
}
inline uint16_t f16_from_f64(double x) { return half_from_f64(x, 10, -14, 0x7c00, 0x7e00); }
inline uint16_t bf16_from_f64(double x) { return half_from_f64(x, 7, -126, 0x7f80, 0x7fc0); }

inline double with_sign(double magnitude, bool negative) {
  return f64_of_bits(f64_bits(magnitude) | (negative ? ~F64_ABS : 0));
}
inline double f64_from_f16(uint16_t h) {
  const uint64_t m = h & 0x7fffu;
  const double v = m < 0x7c00 ? widen_bits(m, 10, -14) : f64_of_bits(F64_INF | (m & 0x3ff) << 42 | (m > 0x7c00 ? 1ull << 51 : 0));
  return with_sign(v, h >> 15 != 0);
}
inline double f64_from_bf16(uint16_t h) {
  const uint32_t b = uint32_t(h) << 16;
  float f;
  std::memcpy(&f, &b, 4);
  return double(f);
}

// The 8-bit floats. What rounds above the largest value gives it, or `over` where Cast does not saturate.
inline uint8_t f8_from_f64(double x, int man, int emin, uint8_t top, uint8_t nan, uint8_t over) {
  const uint64_t b = f64_bits(x), a = b & F64_ABS;
  const uint8_t s = uint8_t(b >> 63 << 7);
  if (a > F64_INF) return s | nan;
  const uint64_t c = a == F64_INF ? 255 : narrow_bits(a, man, emin);
  return uint8_t(s | (c <= top ? uint8_t(c) : over));
}
inline uint8_t f8e4m3_from_f64(double x, bool saturate) { return f8_from_f64(x, 3, -6, 0x7e, 0x7f, saturate ? 0x7e : 0x7f); }
inline uint8_t f8e5m2_from_f64(double x, bool saturate) { return f8_from_f64(x, 2, -14, 0x7b, 0x7e, saturate ? 0x7b : 0x7c); }
inline double f64_from_f8e4m3(uint8_t c) {
  const int m = c & 0x7f;
  return with_sign(m == 0x7f ? double(NAN) : widen_bits(uint64_t(m), 3, -6), c >> 7 != 0);
}
inline double f64_from_f8e5m2(uint8_t c) {
  const int m = c & 0x7f;
  return with_sign(m > 0x7c ? double(NAN) : m == 0x7c ? double(INFINITY) : widen_bits(uint64_t(m), 2, -14), c >> 7 != 0);
}

inline uint8_t f4e2m1_from_f64(double x) {
  const uint64_t b = f64_bits(x), a = b & F64_ABS;
  if (a > F64_INF) return 0;
  const uint64_t c = a == F64_INF ? 7 : narrow_bits(a, 1, 0);
  return uint8_t((b >> 63 << 3) | (c < 7 ? c : 7));
}
inline double f64_from_f4e2m1(uint8_t c) { return with_sign(widen_bits(c & 7u, 1, 0), (c >> 3 & 1) != 0); }

// The least power of two that is not below x.
inline uint8_t e8m0_from_f64(double x) {
  if (!(x >= 0) || x == double(INFINITY)) return 255;
  if (x == 0) return 0;
  const uint64_t b = f64_bits(x) & F64_ABS;
  const int64_t e = int64_t(b >> 52) - 1023 + ((b & 0x000fffffffffffffull) != 0) + 127;  // subnormals come out far below 0, as they are
  return uint8_t(e < 0 ? 0 : e > 254 ? 254 : e);
}
inline double f64_from_e8m0(uint8_t c) { return c == 255 ? double(NAN) : f64_of_bits(uint64_t(int(c) - 127 + 1023) << 52); }

// An integer as f64, rounded to odd: where it does not fit, the last bit is set. A later rounding to at most 51 mantissa bits then gives
// what one rounding of the integer gives.
inline double odd_from_u64(uint64_t v) {
  if (v >> 53 == 0) return double(v);
  const int k = 11 - __builtin_clzll(v);
  uint64_t q = v >> k;
  if (q << k != v) q |= 1;
  return double(q) * double(1ull << k);
}
inline double odd_from_i64(int64_t v) { return v < 0 ? -odd_from_u64(0 - uint64_t(v)) : odd_from_u64(uint64_t(v)); }

// Drops the fraction and clamps to the range; NaN gives 0. The bits of an unsigned 64-bit result.
inline int64_t int_from_f64(double x, int bits, bool is_signed) {
  if (x != x) return 0;
  if (is_signed) {
    const double top = f64_of_bits(uint64_t(1023 + bits - 1) << 52);
    if (x >= top) return int64_t(~0ull >> (65 - bits));
    if (x < -top) return INT64_MIN >> (64 - bits);
    return int64_t(x);
  }
  const double top = f64_of_bits(uint64_t(1023 + bits) << 52);
  if (x <= 0) return 0;
  if (x >= top) return int64_t(~0ull >> (64 - bits));
  return int64_t(uint64_t(x));
}

}  // namespace elementwise
}  // namespace rlx
