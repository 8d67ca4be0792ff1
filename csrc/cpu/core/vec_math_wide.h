// vec_math_wide.h: functions evaluated in f64 lanes and rounded to f32 once: log2, log10, sinh, cosh, asinh, acosh,
// atanh, pow, mod. Part of vec_math.h. Half an ULP and a little, at about four times the cost of an f32 polynomial, for
// functions that are rare in models or need the digits (pow). One copy each per twin (RLX_MATH).

constexpr double LN2_D = 0.69314718055994529, LOG2_E_D = 1.4426950408889634, LOG10_2_D = 0.3010299956639812, LOG10_E_D = 0.43429448190325176;

// ln m for m in [0.707, 1.415): 2s + s^3 P(s^2) with s = (m - 1) / (m + 1): 2^-51.
RLX_FN vd log_mantissa(vd m) {
  const vd one = splat<vd>(1.0), s = (m - one) / (m + one), z = s * s;
  const vd p = poly(z, 0.6666666666658706, 0.40000000052356083, 0.28571417115245573, 0.22223372789191709, 0.18123604814407132, 0.16820297067022663);
  return fma(s * z, p, s + s);
}
RLX_FN vd log_d(vd x) {
  vd e;
  const vd m = split(x, e);
  return fma(e, splat<vd>(LN2_D), log_mantissa(m));
}
RLX_FN vd log2_d(vd x) {
  vd e;
  const vd m = split(x, e);
  return fma(log_mantissa(m), splat<vd>(LOG2_E_D), e);
}
// 2^n e^(r), |r| <= 0.3467, for |n| <= 1022: 1 + r + r^2 P(r): 2^-44.
RLX_FN vd exp_scaled(vd r, vd n) {
  const vd p = poly(r, 0.49999999999663636, 0.16666666667227209, 0.041666666962712387, 0.0083333330377177821, 0.0013888810250946709,
                    0.00019841682137932329, 2.4881635319968408e-05, 2.7414186230161991e-06);
  return (splat<vd>(1.0) + fma(p, r * r, r)) * pow2(n);
}
RLX_FN vd rint_d(vd x) {
  const vd magic = splat<vd>(6755399441055744.0);  // 1.5 * 2^52
  return (x + magic) - magic;
}
// e^x for |x| <= 700. LN2 in two parts, the first of 40 bits, so that n times it is exact.
RLX_FN vd exp_d(vd x) {
  const vd n = rint_d(x * splat<vd>(LOG2_E_D));
  const vd r = fma(n, splat<vd>(-7.3710025651677989e-13), fma(n, splat<vd>(-0.69314718055920821), x));
  return exp_scaled(r, n);
}
// 2^x for |x| <= 1000.
RLX_FN vd exp2_d(vd x) {
  const vd n = rint_d(x);
  return exp_scaled((x - n) * splat<vd>(LN2_D), n);
}

RLX_MATH vf log2(vf x) { return log_corner(x, narrow(log2_d(wide(x)))); }
RLX_MATH vf log10(vf x) {
  vd e;
  const vd m = split(wide(x), e);
  return log_corner(x, narrow(fma(e, splat<vd>(LOG10_2_D), log_mantissa(m) * splat<vd>(LOG10_E_D))));
}

// x + c x^3 for |x| < 2^-10, where the next term is below 2^-40.
RLX_FN vf cubic(vf x, vf y, double c) {
  return select(lt(abs(x), splat<vf>(0x1p-10)), fma(x * (x * x), splat<vf>(c), x), y);
}

// sinh, cosh: (e^x -+ e^-x) / 2. From 100 on both overflow f32, and narrow makes that infinity.
RLX_MATH vf sinh(vf x) {
  const vd e = exp_d(wide(raw_min(splat<vf>(100.0), abs(x))));
  const vf y = narrow((e - splat<vd>(1.0) / e) * splat<vd>(0.5));
  return copysign(cubic(abs(x), y, 1.0 / 6.0), x);
}
RLX_MATH vf cosh(vf x) {
  const vd e = exp_d(wide(raw_min(splat<vf>(100.0), abs(x))));
  return narrow((e + splat<vd>(1.0) / e) * splat<vd>(0.5));
}

// asinh: ln(a + sqrt(a^2 + 1)) on a = |x|. f64 holds a^2 for every finite f32.
RLX_MATH vf asinh(vf x) {
  const vf a = abs(x);
  const vd w = wide(a);
  const vf y = narrow(log_d(w + sqrt(fma(w, w, splat<vd>(1.0)))));
  return copysign(select(is_finite(a), cubic(a, y, -1.0 / 6.0), a), x);
}
// acosh: ln(x + sqrt(x^2 - 1)); the square of an f32 is exact in f64, so nothing cancels near 1.
RLX_MATH vf acosh(vf x) {
  const vd w = wide(x);
  const vf y = narrow(log_d(w + sqrt(w * w - splat<vd>(1.0))));
  return select(lt(x, splat<vf>(1.0)), splat<vf>(NAN), select(is_finite(x), y, x));
}
// atanh: ln((1 + a) / (1 - a)) / 2.
RLX_MATH vf atanh(vf x) {
  const vf a = abs(x), one = splat<vf>(1.0);
  const vd w = wide(a), one_d = splat<vd>(1.0);
  const vf y = cubic(a, narrow(log_d((one_d + w) / (one_d - w)) * splat<vd>(0.5)), 1.0 / 3.0);
  const vf corner = select(eq(a, one), splat<vf>(INFINITY), splat<vf>(NAN));
  return copysign(select(lt(a, one), y, corner), x);
}

// pow: sign * 2^(b log2|a|). log2 has a relative error of 2^-50 and the product is at most 2^8 before the result
// leaves f32, so the exponent is good to 2^-42. The sign is negative for a < 0 (or -0) and odd b. Corners as IEEE 754.
RLX_MATH vf pow(vf a, vf b) {
  const vf m = abs(a), zero = splat<vf>(0.0), one = splat<vf>(1.0), inf = splat<vf>(INFINITY);
  const vd l = log2_d(wide(select(mand(gt(m, zero), lt(m, inf)), m, one)));
  const vd t = raw_max(splat<vd>(-400.0), raw_min(splat<vd>(400.0), wide(b) * l));
  vf y = narrow(exp2_d(t));
  // |a| is 0 or infinite: 0 or infinity by the sign of b.
  y = select(mor(eq(m, zero), eq(m, inf)), select(mxor(eq(m, zero), gt(b, zero)), inf, zero), y);
  const vf half = b * splat<vf>(0.5);
  const vm whole = eq(trunc(b), b), odd = mand(whole, mand(ne(trunc(half), half), is_finite(b)));
  y = select(odd, copysign(y, a), y);
  y = select(mand(mand(lt(a, zero), is_finite(a)), mnot(whole)), splat<vf>(NAN), y);
  y = select(mor(is_nan(a), is_nan(b)), a + b, y);
  const vm unit = mand(eq(m, one), is_inf(b));  // |a| = 1, b infinite: 1
  return select(mor(mor(eq(b, zero), eq(a, one)), unit), one, y);
}

// f of lane i for every lane in `slow`, the fast result for the others.
RLX_FN vf patch(vf fast, vm slow, vf a, vf b, double (*f)(double, double)) {
  unsigned left = mask_bits(slow);
  if (left == 0) return fast;
  float x[LANES], y[LANES], r[LANES];
  store(x, a);
  store(y, b);
  store(r, fast);
  for (int i = 0; left != 0; i++, left >>= 1)
    if (left & 1) r[i] = static_cast<float>(f(static_cast<double>(x[i]), static_cast<double>(y[i])));
  return load(r);
}
RLX_FN vf patch(vf fast, vm slow, vf a, double (*f)(double)) {
  unsigned left = mask_bits(slow);
  if (left == 0) return fast;
  float x[LANES], r[LANES];
  store(x, a);
  store(r, fast);
  for (int i = 0; left != 0; i++, left >>= 1)
    if (left & 1) r[i] = static_cast<float>(f(static_cast<double>(x[i])));
  return load(r);
}

// mod: a - b trunc(a / b) in f64 while |a / b| < 2^28. Two f32 that are not a whole multiple keep a / b 2^-24 away from
// the next integer (relative to 1), so that the f64 quotient truncates to the right q; q has 28 bits and b 24, so q * b
// is exact, and so is the difference. Other lanes (huge quotients, b = 0 or infinite, NaN) take libm's fmod, exact too.
RLX_MATH vf mod(vf a, vf b) {
  const vd x = wide(a), y = wide(b), q = trunc(x / y);
  const vf r = copysign(narrow(x - q * y), a);
  const vm fast = mand(lt(abs(narrow(q)), splat<vf>(0x1p28)), is_finite(b));
  return patch(r, mnot(fast), a, b, ::fmod);
}
