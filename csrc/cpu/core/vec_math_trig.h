// vec_math_trig.h: sin, cos, tan in f64 lanes; asin, acos, atan, atan2 in f32. Part of vec_math.h.

// x = q pi/2 + r for |x| <= TRIG_FAST, in f64: pi/2 = P1 + P2 with 33 bits in P1, so that q * P1 and x - q * P1 are
// exact (q < 2^20); P2 leaves an absolute error below 2^-65, while no f32 in range comes within 2^-31 of a multiple.
// Larger arguments, infinities and NaN go to libm lane by lane, in double: exact reduction for every f32.
constexpr double TRIG_FAST = 1e6;

struct quadrant { vd s, c; vi q; };  // sin r, cos r, q

RLX_FN quadrant trig_reduce(vf x) {
  const vd w = wide(x), magic = splat<vd>(6755399441055744.0);
  const vd q = (w * splat<vd>(0.63661977236758138) + magic) - magic;
  const vd r = (w - q * splat<vd>(1.5707963267341256)) - q * splat<vd>(6.0771005065061922e-11);
  const vd z = r * r;
  // sin: r + r^3 S(r^2): 2^-47. cos: 1 + r^2 C(r^2): 2^-53, on |r| <= 0.7856.
  const vd s = poly(z, -0.16666666666630256, 0.0083333333250605809, -0.00019841263719101197, 2.7555337599809178e-06, -2.4760303239441618e-08);
  const vd c = poly(z, -0.49999999999999412, 0.041666666666487266, -0.0013888888870544156, 2.4801578632502534e-05, -2.7555239715578134e-07, 2.0630477116622833e-09);
  return {fma(r * z, s, r), fma(z, c, splat<vd>(1.0)), to_i(narrow(q))};
}
RLX_FN vm odd_quadrant(vi q) { return eq_i(q & splat_i(1), splat_i(1)); }
RLX_FN vm trig_slow(vf x) { return mnot(le(abs(x), splat<vf>(TRIG_FAST))); }
// Bit 1 of q, moved to the sign.
RLX_FN vf quadrant_sign(vf y, vi q) { return from_bits(bits(y) ^ shl<30>(q & splat_i(2))); }

RLX_MATH vf sin(vf x) {
  const quadrant d = trig_reduce(x);
  const vf y = quadrant_sign(select(odd_quadrant(d.q), narrow(d.c), narrow(d.s)), d.q);
  return patch(select(eq(x, splat<vf>(0.0)), x, y), trig_slow(x), x, ::sin);
}
RLX_MATH vf cos(vf x) {
  const quadrant d = trig_reduce(x);
  const vf y = quadrant_sign(select(odd_quadrant(d.q), narrow(d.s), narrow(d.c)), d.q + splat_i(1));
  // cos in quadrants 0 to 3: c, -s, -c, s, so the sign is bit 1 of q + 1.
  return patch(y, trig_slow(x), x, ::cos);
}
// tan: s / c, or -c / s in odd quadrants; two roundings and the division. 2 ULP.
RLX_MATH vf tan(vf x) {
  const quadrant d = trig_reduce(x);
  const vf s = narrow(d.s), c = narrow(d.c);
  const vm odd = odd_quadrant(d.q);
  const vf y = select(odd, -c, s) / select(odd, s, c);
  return patch(select(eq(x, splat<vf>(0.0)), x, y), trig_slow(x), x, ::tan);
}

constexpr double PI_2_HI = 1.57079637, PI_2_LO = -4.37113883e-08, PI_HI = 3.14159274, PI_LO = -8.74227766e-08;

// asin s = s + w, w = s^3 P(s^2), for 0 <= s <= 1/2: 2^-27. Arguments a above 1/2 go by s = sqrt((1 - a) / 2), where
// asin a = pi/2 - 2 asin s; s and w stay apart because pi/2 - 2s is exact where that result is small.
struct arc { vf s, w; vm big; };
RLX_FN arc asin_part(vf x) {
  const vf a = abs(x), half = splat<vf>(0.5);
  const vm big = gt(a, half);
  const vf z = select(big, (splat<vf>(1.0) - a) * half, a * a), s = select(big, sqrt(z), a);
  const vf p = poly(z, 0.166667521, 0.0749530941, 0.0454691499, 0.0241847802, 0.0421582982);
  return {s, (s * z) * p, big};
}
// asin: 2 ULP. Outside [-1, 1] the square root is already NaN.
RLX_MATH vf asin(vf x) {
  const arc d = asin_part(x);
  const vf far = (splat<vf>(PI_2_HI) - (d.s + d.s)) - ((d.w + d.w) - splat<vf>(PI_2_LO));
  return copysign(select(d.big, far, d.s + d.w), x);
}
// acos: pi/2 - asin x in the middle, 2 asin s at the right, pi - 2 asin s at the left. 2 ULP.
RLX_MATH vf acos(vf x) {
  const arc d = asin_part(x);
  const vf p = d.s + d.w, twice = p + p;
  const vf left = splat<vf>(PI_HI) - (twice - splat<vf>(PI_LO));
  const vf mid = splat<vf>(PI_2_HI) - (copysign(p, x) - splat<vf>(PI_2_LO));
  return select(d.big, select(lt(x, splat<vf>(0.0)), left, twice), mid);
}

// atan t = t + t^3 P(t^2) on [0, 1]: 2^-28.
RLX_FN vf atan_poly(vf t) {
  const vf z = t * t;
  const vf p = poly(z, -0.333332986, 0.199985296, -0.142640144, 0.109508611, -0.0839926526, 0.0578819327, -0.0310995542, 0.0108714476, -0.00178378937);
  return fma(t * z, p, t);
}
// atan: above 1, pi/2 - atan(1 / a). 2 ULP.
RLX_MATH vf atan(vf x) {
  const vf a = abs(x), one = splat<vf>(1.0);
  const vm big = gt(a, one);
  const vf p = atan_poly(select(big, one / a, a));
  const vf far = splat<vf>(PI_2_HI) - (p - splat<vf>(PI_2_LO));
  return copysign(select(big, far, p), x);
}
// atan2(y, x): t = smaller / larger of |y|, |x| (0 for two zeros, 1 for two infinities); base + or - atan t, with base
// 0, pi/2 or pi by octant; the sign of y. 3 ULP.
RLX_MATH vf atan2(vf y, vf x) {
  const vf ay = abs(y), ax = abs(x), zero = splat<vf>(0.0);
  const vm steep = gt(ay, ax), left = gt_i(splat_i(0), bits(x));
  const vf hi = select(steep, ay, ax), lo = select(steep, ax, ay);
  const vf t = select(eq(hi, zero), zero, select(is_inf(lo), splat<vf>(1.0), lo / hi));
  const vf p = atan_poly(t);
  // Quadrant right: p, pi/2 - p. Left: pi - p, pi/2 + p.
  const vf base = select(steep, splat<vf>(PI_2_HI), select(left, splat<vf>(PI_HI), zero));
  const vf rest = select(steep, splat<vf>(PI_2_LO), select(left, splat<vf>(PI_LO), zero));
  const vf turn = select(mxor(steep, left), -p, p);
  const vf r = copysign(base + (turn + rest), y);
  return select(mor(is_nan(x), is_nan(y)), x + y, r);
}
