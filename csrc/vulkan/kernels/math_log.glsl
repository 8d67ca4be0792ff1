// math_log.glsl: logarithms and pow. Part of math.glsl.

// x = m 2^k with m in [2/3, 4/3), for x > 0.
struct parted { float m; int k; };
parted log_part(float x) {
  const int b = floatBitsToInt(lifted(x)) - 0x3f2aaaab; // the bits of 2/3
  return parted(intBitsToFloat((b & 0x007fffff) + 0x3f2aaaab), (b >> 23) - (is_tiny(x) ? 24 : 0));
}
// The value of a logarithm where its argument is not a positive finite number.
float log_corner(float x, float y) {
  if (is_zero(x)) return -RLX_INF;
  if (rlx_is_nan(x)) return x;
  return is_minus(x) ? RLX_NAN : magnitude(x) == 0x7f800000u ? x : y;
}

// ln(m 2^k) for m = 1 + f: k ln2 + f - f^2/2 + f^3 P(f), P: 2^-26. The small terms are added first.
float log_poly(float f, float k) {
  const float p = mad(mad(mad(mad(mad(mad(mad(-0.130358413, f, 0.140080035), f, -0.121553592), f, 0.140032232), f,
      -0.16681774), f, 0.200104564), f, -0.249998093), f, 0.333332151);
  precise float f2 = f * f;
  precise float small = -0.5 * f2 + (p * (f * f2) + k * LN2_LO);
  precise float y = k * LN2_HI + (f + small);
  return y;
}
float rlx_log(float x) {
  const parted d = log_part(x);
  precise float f = d.m - 1.0;
  return log_corner(x, log_poly(f, float(d.k)));
}

// ln u for u = 1 + x rounded, with its rounding error c put back into f = m - 1 (for k = 0 that makes f = x). From 2^25 on, c is below
// half an ULP and 2^-k may leave the range.
float rlx_log1p(float x) {
  precise float u = 1.0 + x;
  precise float c = x >= 1.0 ? 1.0 - (u - x) : x - (u - 1.0);
  const parted d = log_part(u);
  precise float f = d.m - 1.0;
  if (magnitude(x) < 0x4c000000u) f = c * pow2i(-d.k) + f;
  const float y = log_corner(u, log_poly(f, float(d.k)));
  return rlx_is_nan(x) || magnitude(x) < 0x33000000u ? x : y;
}

// Sums of two f32, the second below half an ULP of the first.
vec2 pair(float hi, float lo) {
  precise float s = hi + lo, e = lo - (s - hi);
  return vec2(s, e);
}
vec2 pair_product(vec2 a, vec2 b) {
  precise float p = a.x * b.x, e = mul_error(a.x, b.x, p) + (a.x * b.y + a.y * b.x);
  return pair(p, e);
}
// k + a for whole k, 0 or larger than a.
vec2 pair_plus(float k, vec2 a) {
  precise float s = k + a.x, e = (a.x - (s - k)) + a.y;
  return k == 0.0 ? a : pair(s, e);
}

// ln m = 2s + s z (2/3 + z P(z)) with s = (m - 1) / (m + 1), z = s^2, P: 2^-40. About 2^-33.
vec2 log_pair(float m) {
  precise float n = m - 1.0, d = m + 1.0, d_lo = m - (d - 1.0), q = n / d, p = q * d;
  precise float rest = ((n - p) - mul_error(q, d, p)) - q * d_lo, q_lo = rest / d;
  const vec2 s = pair(q, q_lo), z = pair_product(s, s);
  const float tail = mad(mad(mad(0.199178159, z.x, 0.22155723), z.x, 0.28572464), z.x, 0.399999946);
  precise float t = z.x * tail, c = 0.666666687 + t, c_lo = (t - (c - 0.666666687)) - 1.98682155e-08;
  const vec2 y = pair_product(s, pair_product(z, vec2(c, c_lo)));
  precise float lo = 2.0 * s.y + y.x + y.y;
  return pair(2.0 * s.x, lo);
}
vec2 log2_pair(parted d) { return pair_plus(float(d.k), pair_product(log_pair(d.m), vec2(1.44269502, 1.92596303e-08))); }

float rlx_log2(float x) { return log_corner(x, log2_pair(log_part(x)).x); }
// log10 2 has 16 bits in its first part, so that k times it is exact.
float rlx_log10(float x) {
  const parted d = log_part(x);
  const vec2 l = pair_product(log_pair(d.m), vec2(0.434294492, -1.010305e-08));
  precise float k = float(d.k), lo = k * 4.60503907e-06;
  const vec2 y = pair_plus(k * 0.301025390625, l);
  precise float r = y.x + (y.y + lo);
  return log_corner(x, r);
}

// 2^t for t = b log2 a: whole n and |r| <= 0.5 and a little. Beyond +-400 it is 0 or infinity.
float pow_positive(float a, float b) {
  const vec2 l = log2_pair(log_part(a));
  precise float rough = b * l.x;
  if (!(abs(rough) < 400.0)) return rough < 0.0 ? 0.0 : RLX_INF;
  precise float e = mul_error(b, l.x, rough) + b * l.y;
  precise float n = rlx_round(rough), r = (rough - n) + e;
  return scale2(exp2_poly(r), int(clamp(n, -252.0, 254.0)));
}
// The corners of IEEE 754; the sign is negative for a < 0 (or -0) and odd b.
float rlx_pow(float a, float b) {
  if (is_zero(b) || floatBitsToUint(a) == 0x3f800000u) return 1.0;
  if (rlx_is_nan(a) || rlx_is_nan(b)) return RLX_NAN;
  const float m = rlx_abs(a);
  const int e = exponent_of(b);
  const bool whole = rlx_eq(rlx_trunc(b), b); // infinities too, as even numbers
  const bool odd = whole && e >= 0 && e <= 23 && (mantissa(b) >> uint(23 - e) & 1u) != 0u;
  float y;
  if (is_zero(a) || magnitude(a) == 0x7f800000u) {
    y = is_zero(a) != is_minus(b) ? 0.0 : RLX_INF;
  } else if (magnitude(b) == 0x7f800000u) {
    y = m == 1.0 ? 1.0 : m > 1.0 != is_minus(b) ? RLX_INF : 0.0;
  } else if (is_minus(a) && !whole) {
    return RLX_NAN;
  } else {
    y = pow_positive(m, b);
  }
  return odd ? copysign(y, a) : y;
}
