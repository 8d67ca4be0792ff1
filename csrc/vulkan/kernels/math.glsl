// math.glsl: the scalar functions that scalar_gen.glsl takes for granted, in f32 on operations that Vulkan bounds: + - * rounded correctly,
// / and sqrt to a few ULP, subnormals maybe flushed, NaN not promised. So comparisons, signs, rounding to integers and NaN go by bits;
// `precise` keeps what is written from being contracted or reassociated. GLSL's fma() may be two roundings (on lavapipe it is): multiply
// and add is written out, polynomials and reductions hold with either, and rlx_fma rounds once by integers. Polynomials:
// csrc/cpu/test/fit_poly.py; the errors named are theirs, relative, before roundings.
//
//   exact          neg abs sign round floor ceil trunc max min mod fma, comparisons
//   1 ULP          exp log log2 log10 sin cos
//   2 ULP          exp2 expm1 log1p tan asin acos atan atan2 sinh cosh tanh erf erfc pow, and those above where / is not exact
//   as the device  add sub mul div sqrt and what is built on them
#ifndef RLX_MATH_GLSL
#define RLX_MATH_GLSL
#include "wide.glsl"

#define RLX_INF uintBitsToFloat(0x7f800000u)
#define RLX_NAN uintBitsToFloat(0x7fc00000u)

// ---- by bits

uint magnitude(float x) { return floatBitsToUint(x) & 0x7fffffffu; }
bool rlx_is_nan(float x) { return magnitude(x) > 0x7f800000u; }
bool is_zero(float x) { return magnitude(x) == 0u; }
bool is_minus(float x) { return floatBitsToInt(x) < 0; }
float copysign(float mag, float sgn) { return uintBitsToFloat(magnitude(mag) | (floatBitsToUint(sgn) & 0x80000000u)); }
float rlx_abs(float x) { return uintBitsToFloat(magnitude(x)); }
float rlx_neg(float x) { return uintBitsToFloat(floatBitsToUint(x) ^ 0x80000000u); }

// Integers in the order of the numbers, both zeros 0.
int order(float x) { return is_minus(x) ? -int(magnitude(x)) : int(magnitude(x)); }
bool ordered(float a, float b) { return !rlx_is_nan(a) && !rlx_is_nan(b); }
bool rlx_eq(float a, float b) { return ordered(a, b) && order(a) == order(b); }
bool rlx_ne(float a, float b) { return !rlx_eq(a, b); }
bool rlx_lt(float a, float b) { return ordered(a, b) && order(a) < order(b); }
bool rlx_le(float a, float b) { return ordered(a, b) && order(a) <= order(b); }
bool rlx_gt(float a, float b) { return ordered(a, b) && order(a) > order(b); }
bool rlx_ge(float a, float b) { return ordered(a, b) && order(a) >= order(b); }
bool rlx_and(bool a, bool b) { return a && b; }
bool rlx_or(bool a, bool b) { return a || b; }
float rlx_select(bool c, float a, float b) { return c ? a : b; }

// NaN if either is; +0 lies above -0.
float rlx_max(float a, float b) {
  const int x = order(a), y = order(b);
  const float r = x == y ? uintBitsToFloat(floatBitsToUint(a) & floatBitsToUint(b)) : x > y ? a : b;
  return rlx_is_nan(a) ? a : rlx_is_nan(b) ? b : r;
}
float rlx_min(float a, float b) {
  const int x = order(a), y = order(b);
  const float r = x == y ? uintBitsToFloat(floatBitsToUint(a) | floatBitsToUint(b)) : x < y ? a : b;
  return rlx_is_nan(a) ? a : rlx_is_nan(b) ? b : r;
}
float rlx_sign(float x) { return rlx_is_nan(x) ? x : is_zero(x) ? 0.0 : copysign(1.0, x); }

uint mantissa(float x) { return (floatBitsToUint(x) & 0x7fffffu) | (magnitude(x) < 0x800000u ? 0u : 0x800000u); }
int unit_exponent(float x) { return max(1, int(magnitude(x) >> 23)) - 150; } // |x| = mantissa * 2^it
int exponent_of(float x) { return int(magnitude(x) >> 23) - 127; }
float rlx_trunc(float x) {
  const int e = exponent_of(x);
  const uint b = floatBitsToUint(x);
  return e < 0 ? uintBitsToFloat(b & 0x80000000u) : e >= 23 ? x : uintBitsToFloat(b & (0xffffffffu << uint(23 - e)));
}
// Half to even: half of the last whole unit is added, one less where that unit is even; a carry goes on into the exponent.
float rlx_round(float x) {
  const int e = exponent_of(x);
  uint b = floatBitsToUint(x);
  if (e >= 23) return x;
  if (e < 0) return uintBitsToFloat((b & 0x80000000u) | (magnitude(x) > 0x3f000000u ? 0x3f800000u : 0u));
  const uint unit = uint(23 - e);
  b += (1u << (unit - 1u)) - 1u + ((b >> unit) & 1u); // e = 0 has its even bit in the exponent field, which is odd for 1
  return uintBitsToFloat(b & (0xffffffffu << unit));
}
float rlx_floor(float x) {
  precise float t = rlx_trunc(x), below = t - 1.0;
  return is_minus(x) && rlx_ne(t, x) && !rlx_is_nan(x) ? below : t;
}
float rlx_ceil(float x) { return rlx_neg(rlx_floor(rlx_neg(x))); }

// ---- arithmetic

float rlx_add(float a, float b) { precise float r = a + b; return r; }
float rlx_sub(float a, float b) { precise float r = a - b; return r; }
float rlx_mul(float a, float b) { precise float r = a * b; return r; }
float times_zero(float x) { return magnitude(x) >= 0x7f800000u ? RLX_NAN : uintBitsToFloat(floatBitsToUint(x) & 0x80000000u); }
float mad(float a, float b, float c) { precise float r = a * b + c; return r; } // in one rounding or two

// A subnormal number times 2^24, made from its bits; others as they are.
bool is_tiny(float x) { return magnitude(x) < 0x00800000u && !is_zero(x); }
float lifted(float x) {
  precise float m = float(magnitude(x)) * uintBitsToFloat(0x01000000u); // the bits in units of 2^-125
  return is_tiny(x) ? copysign(m, x) : x;
}

// Devices bound the error of a / b for b of ordinary size only.
float rlx_div(float a, float b) {
  precise float x = lifted(a), y = lifted(b), unit = 1.0;
  if (is_tiny(a)) unit = 5.9604644775390625e-8;
  if (is_tiny(b)) unit *= 16777216.0;
  if (magnitude(b) >= 0x7e000000u) {
    y *= 5.9604644775390625e-8;
    unit *= 5.9604644775390625e-8;
  }
  precise float q = x / y * unit;
  return q;
}
float rlx_reciprocal(float x) { return rlx_div(1.0, x); }
float rlx_sqrt(float x) {
  precise float root = sqrt(lifted(x)) * (is_tiny(x) ? 2.44140625e-4 : 1.0);
  return is_zero(x) || rlx_is_nan(x) || x == RLX_INF ? x : is_minus(x) ? RLX_NAN : root;
}
float rlx_rsqrt(float x) { return rlx_div(1.0, rlx_sqrt(x)); }

// a * b - p exactly, for p = a * b rounded, by halves of 12 bits, whose products are exact; in f32's middle range.
float mul_error(float a, float b, float p) {
  const float ah = uintBitsToFloat(floatBitsToUint(a) & 0xfffff000u), bh = uintBitsToFloat(floatBitsToUint(b) & 0xfffff000u);
  precise float al = a - ah, bl = b - bh;
  precise float r = (((ah * bh - p) + ah * bl) + al * bh) + al * bl;
  return r;
}

// a*b + c in one rounding. Signs and infinities as with two: special says whether r is the result already.
bool fma_special(float a, float b, float c, out float r) {
  const bool minus = is_minus(a) != is_minus(b), infinite = max(magnitude(a), magnitude(b)) == 0x7f800000u;
  const bool nan = rlx_is_nan(a) || rlx_is_nan(b) || rlx_is_nan(c), clash = magnitude(c) == 0x7f800000u && is_minus(c) != minus;
  r = nan || (infinite && (is_zero(a) || is_zero(b) || clash)) ? RLX_NAN : !infinite ? c : minus ? -RLX_INF : RLX_INF;
  return max(max(magnitude(a), magnitude(b)), magnitude(c)) >= 0x7f800000u;
}
wide fma_sum(float a, float b, float c) {
  const bool minus = is_minus(a) != is_minus(b);
  wide s = product_sum(mantissa(a), unit_exponent(a), mantissa(b), unit_exponent(b), minus, mantissa(c), unit_exponent(c), is_minus(c));
  if (s.m == uvec2(0u)) s.minus = minus && is_minus(c); // what cancels is +0
  return s;
}
float rlx_fma(float a, float b, float c) {
  float r;
  if (fma_special(a, b, c, r)) return r;
  const wide s = fma_sum(a, b, c);
  return uintBitsToFloat((s.minus ? 0x80000000u : 0u) | min(0x7f800000u, rounded(s, 23, -126).x));
}

// a - b trunc(a / b): the remainder of the mantissas, eight bits of the quotient at a time.
float rlx_mod(float a, float b) {
  if (rlx_is_nan(a) || rlx_is_nan(b) || magnitude(a) == 0x7f800000u || is_zero(b)) return RLX_NAN;
  if (magnitude(a) < magnitude(b)) return a;
  uint r = mantissa(a);
  const uint m = mantissa(b);
  const int e = unit_exponent(b);
  int left = unit_exponent(a) - e;
  r %= m;
  while (left > 0 && r != 0u) {
    const uint n = uint(min(left, 8));
    r = (r << n) % m;
    left -= int(n);
  }
  return copysign(uintBitsToFloat(rounded(wide(uvec2(r, 0u), e, false), 23, -126).x), a);
}

// ---- exponentials. x = n ln2 + r with whole n and |r| <= 0.3466. ln2 = LN2_HI + LN2_LO with 15 bits in LN2_HI, so that n * LN2_HI is
// exact and x - n * LN2_HI too. n comes from adding 1.5 * 2^23, which rounds to whole numbers and leaves n in the low bits of the sum.

#define LN2_HI 0.693145751953125
#define LN2_LO 1.42860677e-06
#define LOG2_E 1.44269502
#define ROUND_MAGIC 12582912.0

// e^r - 1 = r + r^2 P(r) on |r| <= 0.3468: 2^-30.
float expm1_poly(float r) {
  precise float p = mad(mad(mad(mad(mad(0.000197801492, r, 0.00139329024), r, 0.00833352935), r, 0.0416664965), r, 0.166666657), r, 0.5);
  precise float y = p * (r * r) + r;
  return y;
}

struct reduced { float r; int n; };

reduced exp_reduce(float x) {
  precise float t = x * LOG2_E + ROUND_MAGIC, n = t - ROUND_MAGIC;
  precise float r = n * -LN2_LO + (n * -LN2_HI + x);
  return reduced(r, floatBitsToInt(t) - floatBitsToInt(ROUND_MAGIC));
}
// 2^n for n in [-126, 127]; p * 2^n for n in [-252, 254], rounded once.
float pow2i(int n) { return intBitsToFloat((n + 127) << 23); }
float scale2(float p, int n) {
  const int half_ = n >> 1;
  precise float r = p * pow2i(half_) * pow2i(n - half_);
  return r;
}

// 2^n (1 + (e^r - 1)). Beyond [-104, 89] the result is 0 or infinity already. n counts extra factors of 2.
float exp_scaled(float x, int n) {
  const reduced d = exp_reduce(clamp(x, -104.0, 90.0));
  precise float p = 1.0 + expm1_poly(d.r);
  return rlx_is_nan(x) ? x : scale2(p, d.n + n);
}
float rlx_exp(float x) { return exp_scaled(x, 0); }

// 2^r = 1 + r P(r) on |r| <= 0.5005: 2^-27.
float exp2_poly(float r) {
  const float p = mad(mad(mad(mad(mad(0.000154368172, r, 0.0013392301), r, 0.00961823296), r, 0.0555035882), r,
      0.240226492), r, 0.693147182);
  return mad(p, r, 1.0);
}
float rlx_exp2(float x) {
  const float y = clamp(x, -151.0, 129.0);
  precise float t = y + ROUND_MAGIC, r = y - (t - ROUND_MAGIC);
  return rlx_is_nan(x) ? x : scale2(exp2_poly(r), floatBitsToInt(t) - floatBitsToInt(ROUND_MAGIC));
}

// 2^n (e^r - 1) + (2^n - 1), half of it doubled, so that n = 128 does not overflow early. Below 2^-25, x to half an ULP.
float rlx_expm1(float x) {
  const reduced d = exp_reduce(clamp(x, -20.0, 89.0));
  const float h = pow2i(d.n - 1);
  precise float y = h * expm1_poly(d.r) + (h - 0.5);
  precise float twice = y + y;
  return rlx_is_nan(x) || magnitude(x) < 0x33000000u ? x : twice;
}

// tanh: x + x^3 P(x^2) below 0.625: 2^-27; above, 1 - 2 / (e^2x + 1), which is 1 from x = 10 on.
float rlx_tanh(float x) {
  const float a = rlx_abs(x);
  precise float z = a * a;
  const float p = mad(mad(mad(mad(-0.00566361519, z, 0.0206032377), z, -0.0537291318), z, 0.133313209), z, -0.333332777);
  precise float near = (a * z) * p + a;
  precise float b = min(a, 10.0), e = rlx_exp(b + b), far = 1.0 - 2.0 / (e + 1.0);
  return rlx_is_nan(x) ? x : magnitude(x) < 0x39800000u ? x : copysign(a < 0.625 ? near : far, x);
}

// sinh: x + x^3 P(x^2) below 1: 2^-31; t = e^x - 1 gives (t + t / (t + 1)) / 2; from 10 on e^x / 2, which overflows later than e^x.
float rlx_sinh(float x) {
  const float a = rlx_abs(x);
  precise float z = a * a;
  precise float near = (a * z) * mad(mad(mad(2.78221319e-06, z, 0.000198428956), z, 0.00833331048), z, 0.166666672) + a;
  precise float t = rlx_expm1(min(a, 10.0)), mid = 0.5 * (t + t / (t + 1.0));
  const float y = a < 1.0 ? near : a < 10.0 ? mid : exp_scaled(a, -1);
  return rlx_is_nan(x) || magnitude(x) < 0x39800000u ? x : copysign(y, x);
}
float rlx_cosh(float x) {
  const float a = rlx_abs(x);
  precise float e = rlx_exp(min(a, 10.0)), y = 0.5 * e + 0.5 / e;
  return rlx_is_nan(x) ? x : a < 10.0 ? y : exp_scaled(a, -1);
}

// P with erf(x) = x + x P(x^2) on [0, 1]: 2^-29. Takes z = x^2.
float erf_poly(float z) {
  return mad(mad(mad(mad(mad(mad(7.80690389e-05, z, -0.00079978531), z, 0.0051871622), z, -0.0268533472), z,
      0.112835787), z, -0.37612626), z, 0.128379166);
}
// erf: above 1, 1 - exp(-x R(x)) with R fitted to -log(erfc x) / x on [1, 4]: 2^-28 of the result, which is 1 from 4 on.
float rlx_erf(float x) {
  const float a = rlx_abs(x);
  precise float near = a * erf_poly(a * a) + a;
  precise float b = min(a, 4.0);
  precise float w = b * mad(mad(mad(mad(mad(-0.000210682818, b, 0.00318736769), b, -0.0228001736), b, 0.105119467),
      b, 0.635828376), b, 1.12848115);
  precise float far = 1.0 - rlx_exp(rlx_neg(w));
  return rlx_is_nan(x) ? x : copysign(a < 1.0 ? near : far, x);
}

// erfc below 0.8125: (1 - x) - x P(x^2), whose first difference is exact where the result is small. Above: e^-x^2 g(x) for x > 0 and
// 2 - that for x < 0, with g(x) = t Q(u), t = 1 / (x + K), u = (x - K) / (x + K) = 1 - 2 K t: 2^-27, for x to 10.2, past which erfc is
// below the smallest subnormal. K = 37/16. The roundings of x + K, t, the last step of Q, t Q and x^2 are computed and put back
// (t + t_lo, q + q_lo, g + g_lo, h + h_lo).
float erfc_tail(float b) {
  precise float s = b + 2.3125, s_lo = b - (s - 2.3125), t = 1.0 / s, ts = t * s;
  precise float t_lo = t * (((1.0 - ts) - mul_error(t, s, ts)) - t * s_lo);
  const float u = mad(t_lo, -4.625, mad(t, -4.625, 1.0));
  const float p = mad(mad(mad(mad(mad(mad(mad(0.000422692247, u, -0.00139579037), u, -0.00199586409), u,
      0.011713407), u, 0.00321267848), u, -0.118440792), u, 0.393041313), u, -0.766156673);
  precise float w = u * p, q = 1.04376626 + w, q_lo = w - (q - 1.04376626);
  precise float g = t * q, g_lo = t_lo * q + (t * q_lo + mul_error(t, q, g));
  precise float h = b * b, h_lo = mul_error(b, b, h);
  precise float m = h * -LOG2_E + ROUND_MAGIC, n = m - ROUND_MAGIC;
  precise float r = (n * -LN2_HI - h) - (n * LN2_LO + h_lo);
  const float e = expm1_poly(r);
  precise float y = g + (g * e + (g_lo * e + g_lo));
  return scale2(y, floatBitsToInt(m) - floatBitsToInt(ROUND_MAGIC));
}
float rlx_erfc(float x) {
  const float a = rlx_abs(x);
  precise float near = (1.0 - x) - x * erf_poly(x * x);
  precise float t = erfc_tail(min(10.2, a)), left = 2.0 - t;
  return rlx_is_nan(x) ? x : a < 0.8125 ? near : is_minus(x) ? left : t;
}

#include "math_log.glsl"
#include "math_trig.glsl"

#endif
