// vec_math_exp.h: exp, exp2, expm1, log, log1p, erf, erfc in f32: the functions that models are full of.
// Part of vec_math.h. Polynomials: csrc/cpu/test/fit_poly.py; the errors named here are theirs, relative, before the
// roundings of the evaluation.
//
// Shared reduction. x = n ln2 + r with whole n and |r| <= 0.3466. ln2 = LN2_HI + LN2_LO with 15 bits in LN2_HI, so
// that n * LN2_HI is exact and x - n * LN2_HI too, with or without a fused multiply-add. n comes from adding
// 1.5 * 2^23, which rounds to whole numbers and leaves n in the low bits of the sum.

constexpr double LN2_HI = 0.693145751953125, LN2_LO = 1.42860677e-06, LOG2_E = 1.44269502;
constexpr double ROUND_MAGIC = 12582912.0;

// e^r - 1 = r + r^2 P(r) on |r| <= 0.3468: 2^-30.
RLX_FN vf expm1_poly(vf r) {
  const vf p = poly(r, 0.5, 0.166666657, 0.0416664965, 0.00833352935, 0.00139329024, 0.000197801492);
  return fma(p, r * r, r);
}

struct reduced { vf n, r; vi k; };  // k is n as an integer

RLX_FN reduced exp_reduce(vf x) {
  const vf magic = splat<vf>(ROUND_MAGIC);
  const vf t = fma(x, splat<vf>(LOG2_E), magic), n = t - magic;
  const vf r = fma(n, splat<vf>(-LN2_LO), fma(n, splat<vf>(-LN2_HI), x));
  return {n, r, bits(t) - bits(magic)};
}
// 2^k as f32 for k in [-126, 127].
RLX_FN vf pow2i(vi k) { return from_bits(shl<23>(k + splat_i(127))); }
// x held inside [lo, hi]; NaN stays.
RLX_FN vf hold(vf x, double lo, double hi) { return raw_max(splat<vf>(lo), raw_min(splat<vf>(hi), x)); }

// 16 lanes: n is a multiple of 1/16, of which the table has 2^n but for the whole part, and |r| <= 0.0217, so that e^r - 1 = r + r^2 (1/2 + r/6):
// 2^-26. U vectors side by side. 1.2 ULP.
alignas(64) constexpr float ROOTS[16] = {1,          1.04427373, 1.09050775, 1.13878858, 1.18920708, 1.24185777, 1.29683959, 1.35425556,
                                         1.41421354, 1.47682619, 1.54221082, 1.61049032, 1.68179286, 1.75625217, 1.8340081,  1.91520655};
template <int U> RLX_FN void exp_by_table(vf *x) {
  const vf magic = splat<vf>(ROUND_MAGIC / 16);
  vf n[U], r[U], q[U], root[U];
  for (int k = 0; k < U; k++) {
    x[k] = hold(x[k], -104.0, 89.0);
    const vf t = fma(x[k], splat<vf>(LOG2_E), magic);
    n[k] = t - magic, root[k] = lookup(ROOTS, bits(t));
  }
  for (int k = 0; k < U; k++) r[k] = fma(n[k], splat<vf>(-LN2_LO), fma(n[k], splat<vf>(-LN2_HI), x[k]));
  for (int k = 0; k < U; k++) q[k] = fma(fma(splat<vf>(0.16666667), r[k], splat<vf>(0.5)), r[k] * r[k], r[k]);
  for (int k = 0; k < U; k++) x[k] = scale2(fma(root[k], q[k], root[k]), n[k]);
}

// exp elsewhere: 2^n e^r with e^r = 1 + r + r^2 P(r): 2^-28. Beyond [-104, 89] the result is 0 or infinity already. 1 ULP.
RLX_FN vf exp(vf x) {
  if (LANES == 16) {
    exp_by_table<1>(&x);
    return x;
  }
  const reduced d = exp_reduce(hold(x, -104.0, 89.0));
  return scale2(poly(d.r, 1.0, 1.0, 0.49999994, 0.166665196, 0.0416683927, 0.00836875569, 0.00138145173), d.n);
}

// exp2: the reduction x - n is exact; 2^r = 1 + r P(r) on |r| <= 0.5: 2^-27. 1 ULP.
RLX_FN vf exp2(vf x) {
  const vf y = hold(x, -151.0, 129.0), magic = splat<vf>(ROUND_MAGIC);
  const vf n = (y + magic) - magic, r = y - n;
  const vf p = poly(r, 0.693147182, 0.240226492, 0.0555035882, 0.00961823296, 0.0013392301, 0.000154368172);
  return scale2(fma(p, r, splat<vf>(1.0)), n);
}

// expm1: 2^n (e^r - 1) + (2^n - 1). Half of it is computed and doubled, so that n = 128 does not overflow early.
// Below 2^-25 in size expm1(x) = x to half an ULP. 2 ULP.
RLX_FN vf expm1(vf x) {
  const reduced d = exp_reduce(hold(x, -20.0, 89.0));
  const vf half = pow2i(d.k - splat_i(1));
  const vf y = fma(half, expm1_poly(d.r), half - splat<vf>(0.5));
  return select(lt(abs(x), splat<vf>(0x1p-25)), x, y + y);
}

// ln(m 2^k) for m = 1 + f in [2/3, 4/3]: k ln2 + f - f^2/2 + f^3 P(f), P: 2^-26. The small terms are added first.
RLX_FN vf log_poly(vf f, vf k) {
  const vf p = poly(f, 0.333332151, -0.249998093, 0.200104564, -0.16681774, 0.140032232, -0.121553592, 0.140080035, -0.130358413);
  const vf f2 = f * f;
  const vf small = fma(splat<vf>(-0.5), f2, fma(p, f * f2, k * splat<vf>(LN2_LO)));
  return fma(k, splat<vf>(LN2_HI), f + small);
}
struct parted { vf m; vi k; };  // x = m 2^k, m in [2/3, 4/3)
RLX_FN parted log_part(vf x) {
  const vi base = splat_i(0x3f2aaaab), b = bits(x) - base;  // the bits of 2/3
  return {from_bits((b & splat_i(0x007fffff)) + base), sra<23>(b)};
}
// The value of a logarithm where its argument is not a positive finite number.
RLX_FN vf log_corner(vf x, vf y) {
  const vf zero = splat<vf>(0.0), inf = splat<vf>(INFINITY);
  const vf bad = select(eq(x, zero), -inf, select(lt(x, zero), splat<vf>(NAN), x));
  return select(mand(gt(x, zero), lt(x, inf)), y, bad);
}

// log: subnormals are scaled by 2^23 first. 1 ULP.
RLX_FN vf log(vf x) {
  const vm tiny = lt(x, splat<vf>(0x1p-126));
  const parted d = log_part(select(tiny, x * splat<vf>(0x1p23), x));
  const vf k = to_f(d.k) - select(tiny, splat<vf>(23.0), splat<vf>(0.0));
  return log_corner(x, log_poly(d.m - splat<vf>(1.0), k));
}

// log1p: ln u for u = 1 + x rounded, with its rounding error c put back into f = m - 1 (for k = 0 that makes f = x).
// From 2^25 on, c is below half an ULP and 2^-k may leave the range. 2 ULP.
RLX_FN vf log1p(vf x) {
  const vf one = splat<vf>(1.0), u = one + x;
  const vf c = select(ge(x, one), one - (u - x), x - (u - one));
  const parted d = log_part(u);
  const vf f = d.m - one;
  const vf fixed = select(lt(x, splat<vf>(0x1p25)), fma(c, pow2i(splat_i(0) - d.k), f), f);
  const vf y = log_corner(u, log_poly(fixed, to_f(d.k)));
  return select(lt(abs(x), splat<vf>(0x1p-25)), x, y);
}

// P with erf(x) = x + x P(x^2) on [0, 1]: 2^-29. Takes z = x^2.
RLX_FN vf erf_poly(vf z) {
  return poly(z, 0.128379166, -0.37612626, 0.112835787, -0.0268533472, 0.0051871622, -0.00079978531, 7.80690389e-05);
}

// erf: above 1, 1 - exp(-x R(x)) with R fitted to -log(erfc x) / x on [1, 4]: 2^-28 of the result, which is 1 from
// x = 4 on. 2 ULP.
RLX_FN vf erf(vf x) {
  const vf a = abs(x);
  const vf near = fma(a, erf_poly(a * a), a);
  const vf b = raw_min(splat<vf>(4.0), a);
  const vf w = b * poly(b, 1.12848115, 0.635828376, 0.105119467, -0.0228001736, 0.00318736769, -0.000210682818);
  const reduced d = exp_reduce(-w);
  const vf e = fma(pow2i(d.k), expm1_poly(d.r), pow2i(d.k));
  return copysign(select(lt(a, splat<vf>(1.0)), near, splat<vf>(1.0) - e), x);
}

// erfc below 0.8125: (1 - x) - x P(x^2), whose first difference is exact where the result is small. Above:
// e^-x^2 g(x) for x > 0 and 2 - that for x < 0, with g(x) = t Q(u), t = 1 / (x + K), u = (x - K) / (x + K) = 1 - 2 K t:
// 2^-27, for x to 10.2, past which erfc is below the smallest subnormal. K = 37/16 makes Q(0) nearly an f32.
// Plain f32 would lose 3 ULP on the way, so the roundings of x + K, t, the last step of Q, t Q and x^2 are computed and
// put back (t + t_lo, q + q_lo, g + g_lo, h + h_lo). 2.3 ULP without fused multiply-add, 2.2 with it. Long enough to be
// one copy per twin.
RLX_FN vf erfc_tail(vf b) {
  const vf one = splat<vf>(1.0), k = splat<vf>(2.3125), minus_2k = splat<vf>(-4.625);
  const vf s = b + k, s_lo = b - (s - k), t = one / s, ts = t * s;
  const vf t_lo = t * (((one - ts) - mul_error(t, s, ts)) - t * s_lo);
  const vf u = fma(t_lo, minus_2k, fma(t, minus_2k, one));
  const vf c0 = splat<vf>(1.04376626);
  const vf w = u * poly(u, -0.766156673, 0.393041313, -0.118440792, 0.00321267848,
                        0.011713407, -0.00199586409, -0.00139579037, 0.000422692247);
  const vf q = c0 + w, q_lo = w - (q - c0);
  const vf g = t * q, g_lo = fma(t_lo, q, fma(t, q_lo, mul_error(t, q, g)));
  const vf h = b * b, h_lo = mul_error(b, b, h);
  const vf magic = splat<vf>(ROUND_MAGIC), n = fma(h, splat<vf>(-LOG2_E), magic) - magic;
  const vf r = fma(n, splat<vf>(-LN2_HI), -h) - fma(n, splat<vf>(LN2_LO), h_lo);
  const vf e = expm1_poly(r);
  return scale2(g + fma(g, e, fma(g_lo, e, g_lo)), n);
}
RLX_MATH vf erfc(vf x) {
  const vf a = abs(x);
  const vf near = (splat<vf>(1.0) - x) - x * erf_poly(x * x);
  const vf t = erfc_tail(raw_min(splat<vf>(10.2), a));
  const vf far = select(lt(x, splat<vf>(0.0)), splat<vf>(2.0) - t, t);
  return select(lt(a, splat<vf>(0.8125)), near, far);
}
