// math_trig.glsl: trigonometric functions and their inverses. Part of math.glsl.

// 2/pi behind 32 zeros, from the binary point on.
const uint TWO_OVER_PI[8] = uint[8](0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);

uint two_over_pi(uint bit) { // 32 bits of it from `bit` on
  const uint i = bit >> 5, n = bit & 31u;
  return n == 0u ? TWO_OVER_PI[i] : TWO_OVER_PI[i] << n | TWO_OVER_PI[i + 1u] >> (32u - n);
}

// |x| = q pi/2 + r, q modulo 4, r = hi + lo in [-pi/4, pi/4]. x = m 2^e: m times those 96 bits of 2/pi that matter modulo 4 is the angle
// in units of 2^-62, to 2^-8 of one; no f32 comes within 2^-31 of a multiple of pi/2.
struct quadrant { float hi, lo; uint q; };

quadrant trig_reduce(float x) {
  if (magnitude(x) <= 0x3f490fdau) return quadrant(rlx_abs(x), 0.0, 0u);
  const uint m = mantissa(x), at = uint(unit_exponent(x) + 30);
  uint h1, l1, h2, l2, carry;
  umulExtended(m, two_over_pi(at + 32u), h1, l1);
  umulExtended(m, two_over_pi(at + 64u), h2, l2);
  uvec2 turn;
  turn.x = uaddCarry(l1, h2, carry);
  turn.y = m * two_over_pi(at) + h1 + carry;
  const uint q = (turn.y + 0x20000000u) >> 30;
  turn.y -= q << 30;
  const bool minus = turn.y >> 31 != 0u;
  if (minus) turn = sub64(uvec2(0u), turn);
  const int up = 63 - top_bit(turn);
  turn = shl64(turn, uint(up));
  // 24 bits and 24 more, times pi/2
  precise float f = float(turn.y >> 8) * pow2i(-22 - up), f_lo = float((turn.y & 0xffu) << 16 | turn.x >> 16) * pow2i(-46 - up);
  const vec2 r = pair_product(vec2(f, f_lo), vec2(1.57079637, -4.37113883e-08));
  return quadrant(minus ? -r.x : r.x, minus ? -r.y : r.y, q & 3u);
}

// sin: r + r^3 S(r^2), cos: 1 - r^2/2 + r^4 C(r^2), on |r| <= 0.7856: 2^-32. The low part of r comes in with its derivative.
float sin_poly(quadrant d) {
  precise float z = d.hi * d.hi, p = mad(mad(mad(2.83251029e-06, z, -0.000198530644), z, 0.0083333794), z, -0.166666672);
  precise float y = d.hi + ((d.hi * z) * p + d.lo * (1.0 - 0.5 * z));
  return y;
}
float cos_poly(quadrant d) {
  precise float z = d.hi * d.hi, h = 0.5 * z, w = 1.0 - h, p = mad(mad(2.44323273e-05, z, -0.00138873095), z, 0.0416666456);
  precise float y = w + (((1.0 - w) - h) + (z * z * p - d.hi * d.lo));
  return y;
}

bool no_angle(float x) { return magnitude(x) >= 0x7f800000u; }

float rlx_sin(float x) {
  const quadrant d = trig_reduce(x);
  const float y = (d.q & 1u) != 0u ? cos_poly(d) : sin_poly(d);
  const bool minus = is_minus(x) != ((d.q & 2u) != 0u);
  return no_angle(x) ? RLX_NAN : magnitude(x) < 0x39800000u ? x : minus ? rlx_neg(y) : y;
}
// In quadrants 0 to 3: c, -s, -c, s, so the sign is bit 1 of q + 1.
float rlx_cos(float x) {
  const quadrant d = trig_reduce(x);
  const float y = (d.q & 1u) != 0u ? sin_poly(d) : cos_poly(d);
  return no_angle(x) ? RLX_NAN : ((d.q + 1u) & 2u) != 0u ? rlx_neg(y) : y;
}
// s / c, or -c / s in odd quadrants.
float rlx_tan(float x) {
  const quadrant d = trig_reduce(x);
  const float s = sin_poly(d), c = cos_poly(d);
  const bool odd = (d.q & 1u) != 0u;
  precise float y = (odd ? c : s) / (odd ? s : c);
  return no_angle(x) ? RLX_NAN : magnitude(x) < 0x39800000u ? x : is_minus(x) != odd ? rlx_neg(y) : y;
}

#define PI_2_HI 1.57079637
#define PI_2_LO -4.37113883e-08
#define PI_HI 3.14159274
#define PI_LO -8.74227766e-08

// asin s = s + w, w = s^3 P(s^2), for 0 <= s <= 1/2: 2^-27. Arguments a above 1/2 go by s = sqrt((1 - a) / 2), where
// asin a = pi/2 - 2 asin s; s and w stay apart because pi/2 - 2s is exact where that result is small.
struct arc { float s, w; bool big; };
arc asin_part(float x) {
  const float a = rlx_abs(x);
  const bool big = a > 0.5;
  precise float z = big ? (1.0 - a) * 0.5 : a * a;
  const float s = big ? rlx_sqrt(z) : a;
  precise float w = (s * z) * mad(mad(mad(mad(0.0421582982, z, 0.0241847802), z, 0.0454691499), z, 0.0749530941), z, 0.166667521);
  return arc(s, w, big);
}
bool no_sine(float x) { return magnitude(x) > 0x3f800000u; } // NaN too

float rlx_asin(float x) {
  const arc d = asin_part(x);
  precise float far = (PI_2_HI - (d.s + d.s)) - ((d.w + d.w) - PI_2_LO), near = d.s + d.w;
  return no_sine(x) ? RLX_NAN : magnitude(x) < 0x39800000u ? x : copysign(d.big ? far : near, x);
}
// pi/2 - asin x in the middle, 2 asin s at the right, pi - 2 asin s at the left.
float rlx_acos(float x) {
  const arc d = asin_part(x);
  precise float p = d.s + d.w, twice = p + p, left = PI_HI - (twice - PI_LO), mid = PI_2_HI - (copysign(p, x) - PI_2_LO);
  return no_sine(x) ? RLX_NAN : d.big ? (is_minus(x) ? left : twice) : mid;
}

// atan t = t + t^3 P(t^2) on [0, 1]: 2^-28.
float atan_poly(float t) {
  precise float z = t * t;
  const float p = mad(mad(mad(mad(mad(mad(mad(mad(-0.00178378937, z, 0.0108714476), z, -0.0310995542), z,
      0.0578819327), z, -0.0839926526), z, 0.109508611), z, -0.142640144), z, 0.199985296), z, -0.333332986);
  precise float y = (t * z) * p + t;
  return magnitude(t) < 0x39800000u ? t : y;
}
// Above 1, pi/2 - atan(1 / a).
float rlx_atan(float x) {
  const float a = rlx_abs(x);
  const bool big = a > 1.0;
  const float p = atan_poly(big ? rlx_reciprocal(a) : a);
  precise float far = PI_2_HI - (p - PI_2_LO);
  return rlx_is_nan(x) ? x : copysign(big ? far : p, x);
}
// t = smaller / larger of |y|, |x| (0 for two zeros, 1 for two infinities); base + or - atan t, with base 0, pi/2 or pi by octant; the
// sign of y. Right: p, pi/2 - p. Left: pi - p, pi/2 + p.
float rlx_atan2(float y, float x) {
  const bool steep = magnitude(y) > magnitude(x), left = is_minus(x);
  const float hi = rlx_abs(steep ? y : x), lo = rlx_abs(steep ? x : y);
  const float t = is_zero(hi) ? 0.0 : magnitude(lo) == 0x7f800000u ? 1.0 : rlx_div(lo, hi);
  const float p = atan_poly(t);
  const float base = steep ? PI_2_HI : left ? PI_HI : 0.0, rest = steep ? PI_2_LO : left ? PI_LO : 0.0;
  precise float r = base + ((steep != left ? rlx_neg(p) : p) + rest);
  return rlx_is_nan(x) || rlx_is_nan(y) ? RLX_NAN : copysign(r, y);
}
