// Generated from the tables of scalar functions (package op). Do not edit.
//
// Included once inside each namespace that has a vector type V and its primitives. fn_ are the functions, d_ (da_, db_) their
// derivatives, bw_ (bwa_, bwb_) gradients: dy times the derivative, with the zeros that hold for any dy already chosen.

#define RLX_UNARY_FNS(X) \
  X(identity) X(neg) X(abs) X(sign) X(square) X(reciprocal) X(sqrt) X(rsqrt) X(exp) X(exp2) X(expm1) X(log) \
  X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) \
  X(acosh) X(atanh) X(erf) X(erfc) X(round) X(floor) X(ceil) X(trunc) X(relu) X(relu6) X(leaky_relu) \
  X(thresholded_relu) X(elu) X(celu) X(selu) X(sigmoid) X(log_sigmoid) X(softplus) X(softsign) X(silu) X(mish) \
  X(gelu) X(gelu_tanh) X(gelu_quick) X(hard_sigmoid) X(hard_swish) X(is_nan) X(is_inf) X(is_finite) X(not) \
  X(bit_not)

#define RLX_UNARY_FLOAT_FNS(X) \
  X(identity) X(neg) X(abs) X(sign) X(square) X(reciprocal) X(sqrt) X(rsqrt) X(exp) X(exp2) X(expm1) X(log) \
  X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) \
  X(acosh) X(atanh) X(erf) X(erfc) X(round) X(floor) X(ceil) X(trunc) X(relu) X(relu6) X(leaky_relu) \
  X(thresholded_relu) X(elu) X(celu) X(selu) X(sigmoid) X(log_sigmoid) X(softplus) X(softsign) X(silu) X(mish) \
  X(gelu) X(gelu_tanh) X(gelu_quick) X(hard_sigmoid) X(hard_swish)

#define RLX_UNARY_PREDICATE_FNS(X) \
  X(is_nan) X(is_inf) X(is_finite)

#define RLX_UNARY_INT_FNS(X) \
  X(identity) X(neg) X(abs) X(sign) X(square) X(round) X(floor) X(ceil) X(trunc) X(relu) X(relu6) X(bit_not)

#define RLX_UNARY_BOOL_FNS(X) \
  X(not)

#define RLX_UNARY_C64_FNS(X) \
  X(identity) X(neg)

#define RLX_UNARY_DERIV_FNS(X) \
  X(identity) X(neg) X(abs) X(sign) X(square) X(reciprocal) X(sqrt) X(rsqrt) X(exp) X(exp2) X(expm1) X(log) \
  X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) \
  X(acosh) X(atanh) X(erf) X(erfc) X(round) X(floor) X(ceil) X(trunc) X(relu) X(relu6) X(leaky_relu) \
  X(thresholded_relu) X(elu) X(celu) X(selu) X(sigmoid) X(log_sigmoid) X(softplus) X(softsign) X(silu) X(mish) \
  X(gelu) X(gelu_tanh) X(gelu_quick) X(hard_sigmoid) X(hard_swish)

enum UnaryFn {
  UNARY_identity = 0,
  UNARY_neg = 1,
  UNARY_abs = 2,
  UNARY_sign = 3,
  UNARY_square = 4,
  UNARY_reciprocal = 5,
  UNARY_sqrt = 6,
  UNARY_rsqrt = 7,
  UNARY_exp = 8,
  UNARY_exp2 = 9,
  UNARY_expm1 = 10,
  UNARY_log = 11,
  UNARY_log2 = 12,
  UNARY_log10 = 13,
  UNARY_log1p = 14,
  UNARY_sin = 15,
  UNARY_cos = 16,
  UNARY_tan = 17,
  UNARY_asin = 18,
  UNARY_acos = 19,
  UNARY_atan = 20,
  UNARY_sinh = 21,
  UNARY_cosh = 22,
  UNARY_tanh = 23,
  UNARY_asinh = 24,
  UNARY_acosh = 25,
  UNARY_atanh = 26,
  UNARY_erf = 27,
  UNARY_erfc = 28,
  UNARY_round = 29,
  UNARY_floor = 30,
  UNARY_ceil = 31,
  UNARY_trunc = 32,
  UNARY_relu = 33,
  UNARY_relu6 = 34,
  UNARY_leaky_relu = 35,
  UNARY_thresholded_relu = 36,
  UNARY_elu = 37,
  UNARY_celu = 38,
  UNARY_selu = 39,
  UNARY_sigmoid = 40,
  UNARY_log_sigmoid = 41,
  UNARY_softplus = 42,
  UNARY_softsign = 43,
  UNARY_silu = 44,
  UNARY_mish = 45,
  UNARY_gelu = 46,
  UNARY_gelu_tanh = 47,
  UNARY_gelu_quick = 48,
  UNARY_hard_sigmoid = 49,
  UNARY_hard_swish = 50,
  UNARY_is_nan = 51,
  UNARY_is_inf = 52,
  UNARY_is_finite = 53,
  UNARY_not = 54,
  UNARY_bit_not = 55,
  UNARY_COUNT = 56
};

#define RLX_BINARY_FNS(X) \
  X(add) X(sub) X(mul) X(div) X(max) X(min) X(pow) X(mod) X(floor_mod) X(floor_div) X(atan2) X(bit_and) \
  X(bit_or) X(bit_xor) X(shl) X(shr) X(and) X(or) X(xor)

#define RLX_BINARY_FLOAT_FNS(X) \
  X(add) X(sub) X(mul) X(div) X(max) X(min) X(pow) X(mod) X(floor_mod) X(floor_div) X(atan2)

#define RLX_BINARY_PREDICATE_FNS(X)

#define RLX_BINARY_INT_FNS(X) \
  X(add) X(sub) X(mul) X(div) X(max) X(min) X(pow) X(mod) X(floor_mod) X(floor_div) X(bit_and) X(bit_or) \
  X(bit_xor) X(shl) X(shr)

#define RLX_BINARY_BOOL_FNS(X) \
  X(and) X(or) X(xor)

#define RLX_BINARY_C64_FNS(X) \
  X(add) X(sub) X(mul) X(div)

#define RLX_BINARY_DERIV_FNS(X) \
  X(add) X(sub) X(mul) X(div) X(max) X(min) X(pow) X(mod) X(floor_mod) X(floor_div) X(atan2)

enum BinaryFn {
  BINARY_add = 0,
  BINARY_sub = 1,
  BINARY_mul = 2,
  BINARY_div = 3,
  BINARY_max = 4,
  BINARY_min = 5,
  BINARY_pow = 6,
  BINARY_mod = 7,
  BINARY_floor_mod = 8,
  BINARY_floor_div = 9,
  BINARY_atan2 = 10,
  BINARY_bit_and = 11,
  BINARY_bit_or = 12,
  BINARY_bit_xor = 13,
  BINARY_shl = 14,
  BINARY_shr = 15,
  BINARY_and = 16,
  BINARY_or = 17,
  BINARY_xor = 18,
  BINARY_COUNT = 19
};

#define RLX_COMPARE_FNS(X) \
  X(eq) X(ne) X(lt) X(le) X(gt) X(ge)

#define RLX_COMPARE_FLOAT_FNS(X) \
  X(eq) X(ne) X(lt) X(le) X(gt) X(ge)

#define RLX_COMPARE_PREDICATE_FNS(X) \
  X(eq) X(ne) X(lt) X(le) X(gt) X(ge)

#define RLX_COMPARE_INT_FNS(X) \
  X(eq) X(ne) X(lt) X(le) X(gt) X(ge)

#define RLX_COMPARE_BOOL_FNS(X) \
  X(eq) X(ne) X(lt) X(le) X(gt) X(ge)

#define RLX_COMPARE_C64_FNS(X) \
  X(eq) X(ne)

#define RLX_COMPARE_DERIV_FNS(X)

enum CompareFn {
  COMPARE_eq = 0,
  COMPARE_ne = 1,
  COMPARE_lt = 2,
  COMPARE_le = 3,
  COMPARE_gt = 4,
  COMPARE_ge = 5,
  COMPARE_COUNT = 6
};

// y = x
template <class V>
inline V fn_identity(V x, V, V) {
  return x;
}

// y = -x; the least integer stays, unsigned wraps
template <class V>
inline V fn_neg(V x, V, V) {
  return neg(x);
}

// y = |x|; the least integer stays
template <class V>
inline V fn_abs(V x, V, V) {
  return abs(x);
}

// y = -1, 0 or 1; 0 for both zeros
template <class V>
inline V fn_sign(V x, V, V) {
  return sign(x);
}

// y = x*x
template <class V>
inline V fn_square(V x, V, V) {
  return mul(x, x);
}

// y = 1/x; 1/+-0 = +-inf
template <class V>
inline V fn_reciprocal(V x, V, V) {
  return reciprocal(x);
}

// y = square root; NaN for x < 0, sqrt(-0) = -0
template <class V>
inline V fn_sqrt(V x, V, V) {
  return sqrt(x);
}

// y = 1/sqrt(x); +-0 gives +-inf
template <class V>
inline V fn_rsqrt(V x, V, V) {
  return rsqrt(x);
}

// y = e^x
template <class V>
inline V fn_exp(V x, V, V) {
  return exp(x);
}

// y = 2^x
template <class V>
inline V fn_exp2(V x, V, V) {
  return exp2(x);
}

// y = e^x - 1, exact near 0
template <class V>
inline V fn_expm1(V x, V, V) {
  return expm1(x);
}

// y = ln x; 0 gives -inf, x < 0 NaN
template <class V>
inline V fn_log(V x, V, V) {
  return log(x);
}

// y = log to base 2
template <class V>
inline V fn_log2(V x, V, V) {
  return log2(x);
}

// y = log to base 10
template <class V>
inline V fn_log10(V x, V, V) {
  return log10(x);
}

// y = ln(1+x), exact near 0; -1 gives -inf
template <class V>
inline V fn_log1p(V x, V, V) {
  return log1p(x);
}

// y = sine of radians; +-inf gives NaN
template <class V>
inline V fn_sin(V x, V, V) {
  return sin(x);
}

// y = cosine of radians; +-inf gives NaN
template <class V>
inline V fn_cos(V x, V, V) {
  return cos(x);
}

// y = sin/cos
template <class V>
inline V fn_tan(V x, V, V) {
  return tan(x);
}

// y = inverse sine; NaN outside [-1, 1]
template <class V>
inline V fn_asin(V x, V, V) {
  return asin(x);
}

// y = inverse cosine; NaN outside [-1, 1]
template <class V>
inline V fn_acos(V x, V, V) {
  return acos(x);
}

// y = inverse tangent; +-inf gives +-pi/2
template <class V>
inline V fn_atan(V x, V, V) {
  return atan(x);
}

// y = (e^x - e^-x)/2
template <class V>
inline V fn_sinh(V x, V, V) {
  return sinh(x);
}

// y = (e^x + e^-x)/2
template <class V>
inline V fn_cosh(V x, V, V) {
  return cosh(x);
}

// y = sinh/cosh; +-inf gives +-1
template <class V>
inline V fn_tanh(V x, V, V) {
  return tanh(x);
}

// y = inverse hyperbolic sine, odd
template <class V>
inline V fn_asinh(V x, V, V) {
  const auto t1 = abs(x);
  const auto t2 = mul(t1, t1);
  const auto t3 = select(gt(t1, splat<V>(2.68435456e+08)), add(log(t1), splat<V>(0.6931471805599453)), log1p(add(t1, div(t2, add(splat<V>(1.0), sqrt(add(t2, splat<V>(1.0))))))));
  return select(lt(t1, splat<V>(7.450580596923828e-09)), x, select(lt(x, splat<V>(0.0)), neg(t3), t3));
}

// y = inverse hyperbolic cosine; NaN below 1
template <class V>
inline V fn_acosh(V x, V, V) {
  const auto t1 = sub(x, splat<V>(1.0));
  return select(gt(x, splat<V>(2.68435456e+08)), add(log(x), splat<V>(0.6931471805599453)), log1p(add(t1, mul(sqrt(t1), sqrt(add(t1, splat<V>(2.0)))))));
}

// y = inverse hyperbolic tangent; +-1 gives +-inf, outside NaN
template <class V>
inline V fn_atanh(V x, V, V) {
  const auto t1 = abs(x);
  const auto t2 = mul(splat<V>(0.5), log1p(div(add(t1, t1), sub(splat<V>(1.0), t1))));
  return select(lt(t1, splat<V>(7.450580596923828e-09)), x, select(lt(x, splat<V>(0.0)), neg(t2), t2));
}

// y = 2/sqrt(pi) integral of e^(-t^2) from 0 to x
template <class V>
inline V fn_erf(V x, V, V) {
  return erf(x);
}

// y = 1 - erf(x) without cancellation
template <class V>
inline V fn_erfc(V x, V, V) {
  return erfc(x);
}

// y = nearest integer, halves to even; the sign of zero stays
template <class V>
inline V fn_round(V x, V, V) {
  return round(x);
}

// y = greatest integer not above x
template <class V>
inline V fn_floor(V x, V, V) {
  return floor(x);
}

// y = least integer not below x
template <class V>
inline V fn_ceil(V x, V, V) {
  return ceil(x);
}

// y = x without its fraction
template <class V>
inline V fn_trunc(V x, V, V) {
  return trunc(x);
}

// y = max(x, 0)
template <class V>
inline V fn_relu(V x, V, V) {
  return max(x, splat<V>(0.0));
}

// y = min(max(x, 0), 6)
template <class V>
inline V fn_relu6(V x, V, V) {
  return min(max(x, splat<V>(0.0)), splat<V>(6.0));
}

// y = x >= 0 ? x : alpha x
template <class V>
inline V fn_leaky_relu(V x, V alpha, V) {
  return select(ge(x, splat<V>(0.0)), x, mul(alpha, x));
}

// y = x <= alpha ? 0 : x
template <class V>
inline V fn_thresholded_relu(V x, V alpha, V) {
  return select(le(x, alpha), splat<V>(0.0), x);
}

// y = x > 0 ? x : alpha (e^x - 1)
template <class V>
inline V fn_elu(V x, V alpha, V) {
  return select(gt(x, splat<V>(0.0)), x, mul(alpha, expm1(x)));
}

// y = x > 0 ? x : alpha (e^(x/alpha) - 1)
template <class V>
inline V fn_celu(V x, V alpha, V) {
  return select(gt(x, splat<V>(0.0)), x, mul(alpha, expm1(div(x, alpha))));
}

// y = beta elu(x; alpha)
template <class V>
inline V fn_selu(V x, V alpha, V beta) {
  return mul(beta, fn_elu(x, alpha, beta));
}

// y = s(x) = 1 / (1 + e^-x)
template <class V>
inline V fn_sigmoid(V x, V, V) {
  return div(splat<V>(1.0), add(splat<V>(1.0), exp(neg(x))));
}

// y = min(x, 0) - ln(1 + e^-|x|)
template <class V>
inline V fn_log_sigmoid(V x, V, V) {
  return sub(min(x, splat<V>(0.0)), log1p(exp(neg(abs(x)))));
}

// y = max(x, 0) + ln(1 + e^-|x|)
template <class V>
inline V fn_softplus(V x, V, V) {
  return add(max(x, splat<V>(0.0)), log1p(exp(neg(abs(x)))));
}

// y = x / (1 + |x|); +-inf gives +-1
template <class V>
inline V fn_softsign(V x, V, V) {
  const auto t1 = abs(x);
  return select(eq(t1, splat<V>(__builtin_inf())), sign(x), div(x, add(splat<V>(1.0), t1)));
}

// y = x s(x); -inf gives 0
template <class V>
inline V fn_silu(V x, V alpha, V beta) {
  return select(eq(x, splat<V>(-__builtin_inf())), splat<V>(0.0), mul(x, fn_sigmoid(x, alpha, beta)));
}

// y = x tanh(softplus(x)); -inf gives 0
template <class V>
inline V fn_mish(V x, V, V) {
  const auto t1 = exp(neg(abs(x)));
  const auto t2 = add(splat<V>(1.0), add(t1, t1));
  const auto t3 = mul(t1, add(t1, splat<V>(2.0)));
  return select(eq(x, splat<V>(-__builtin_inf())), splat<V>(0.0), mul(x, select(gt(x, splat<V>(0.0)), div(t2, add(t2, mul(splat<V>(2.0), mul(t1, t1)))), div(t3, add(t3, splat<V>(2.0))))));
}

// y = x Phi(x) = x/2 erfc(-x/sqrt 2); -inf gives 0
template <class V>
inline V fn_gelu(V x, V, V) {
  return select(eq(x, splat<V>(-__builtin_inf())), splat<V>(0.0), mul(x, mul(splat<V>(0.5), erfc(mul(x, splat<V>(-0.7071067811865476))))));
}

// y = x s(2u), u = sqrt(2/pi) (x + 0.044715 x^3); -inf gives 0
template <class V>
inline V fn_gelu_tanh(V x, V alpha, V beta) {
  return select(eq(x, splat<V>(-__builtin_inf())), splat<V>(0.0), mul(x, fn_sigmoid(mul(x, add(splat<V>(1.5957691216057308), mul(splat<V>(0.07135481627260025), mul(x, x)))), alpha, beta)));
}

// y = x s(alpha x); -inf gives 0
template <class V>
inline V fn_gelu_quick(V x, V alpha, V) {
  const auto t1 = neg(mul(alpha, x));
  const auto t2 = exp(t1);
  const auto t3 = fma(alpha, x, t1);
  return select(eq(x, splat<V>(-__builtin_inf())), splat<V>(0.0), select(eq(x, splat<V>(__builtin_inf())), splat<V>(__builtin_inf()), div(x, add(splat<V>(1.0), select(mand(lt(t2, splat<V>(__builtin_inf())), lt(abs(t3), splat<V>(1.0))), fma(t2, neg(t3), t2), t2)))));
}

// y = min(max(alpha x + beta, 0), 1)
template <class V>
inline V fn_hard_sigmoid(V x, V alpha, V beta) {
  return min(max(add(mul(alpha, x), beta), splat<V>(0.0)), splat<V>(1.0));
}

// y = x min(max(x/6 + 1/2, 0), 1)
template <class V>
inline V fn_hard_swish(V x, V, V) {
  return select(le(x, splat<V>(-3.0)), splat<V>(0.0), select(ge(x, splat<V>(3.0)), x, mul(mul(x, add(x, splat<V>(3.0))), splat<V>(0.16666666666666666))));
}

// y = x is NaN
template <class V>
inline auto fn_is_nan(V x, V, V) {
  return ne(x, x);
}

// y = x is +inf or -inf
template <class V>
inline auto fn_is_inf(V x, V, V) {
  return eq(abs(x), splat<V>(__builtin_inf()));
}

// y = x is neither NaN nor infinite
template <class V>
inline auto fn_is_finite(V x, V, V) {
  return lt(abs(x), splat<V>(__builtin_inf()));
}

// y = a + b
template <class V>
inline V fn_add(V a, V b) {
  return add(a, b);
}

// y = a - b
template <class V>
inline V fn_sub(V a, V b) {
  return sub(a, b);
}

// y = a b
template <class V>
inline V fn_mul(V a, V b) {
  return mul(a, b);
}

// y = a / b; integers: the quotient toward zero, 0 for b = 0
template <class V>
inline V fn_div(V a, V b) {
  return div(a, b);
}

// y = the larger; NaN if either is
template <class V>
inline V fn_max(V a, V b) {
  return max(a, b);
}

// y = the smaller; NaN if either is
template <class V>
inline V fn_min(V a, V b) {
  return min(a, b);
}

// y = a^b of IEEE 754; integers wrap, a negative exponent gives the quotient toward zero of 1 / a^-b
template <class V>
inline V fn_pow(V a, V b) {
  return pow(a, b);
}

// y = a - b trunc(a/b) exactly, with the sign of a; integers: a for b = 0
template <class V>
inline V fn_mod(V a, V b) {
  return mod(a, b);
}

// y = a - b floor(a/b), with the sign of b; integers: a for b = 0
template <class V>
inline V fn_floor_mod(V a, V b) {
  const auto t1 = mod(a, b);
  return select(eq(t1, splat<V>(0.0)), mul(splat<V>(0.0), sign(b)), select(mor(mand(lt(t1, splat<V>(0.0)), gt(b, splat<V>(0.0))), mand(gt(t1, splat<V>(0.0)), lt(b, splat<V>(0.0)))), add(t1, b), t1));
}

// y = floor of the exact quotient a/b; integers: 0 for b = 0
template <class V>
inline V fn_floor_div(V a, V b) {
  const auto t1 = div(a, b);
  const auto t2 = gt(b, splat<V>(0.0));
  const auto t3 = lt(b, splat<V>(0.0));
  const auto t4 = trunc(t1);
  const auto t5 = fma(neg(t4), b, a);
  const auto t6 = floor(div(t5, b));
  const auto t7 = fma(neg(t6), b, t5);
  return select(mor(eq(a, splat<V>(0.0)), eq(b, splat<V>(0.0))), t1, select(eq(abs(a), splat<V>(__builtin_inf())), sub(a, a), select(eq(abs(b), splat<V>(__builtin_inf())), select(mor(mand(lt(a, splat<V>(0.0)), t2), mand(gt(a, splat<V>(0.0)), t3)), splat<V>(-1.0), t1), select(eq(abs(t1), splat<V>(__builtin_inf())), t1, add(t4, select(mor(mand(lt(t7, splat<V>(0.0)), t2), mand(gt(t7, splat<V>(0.0)), t3)), sub(t6, splat<V>(1.0)), t6))))));
}

// y = angle of the point (b, a), in (-pi, pi]
template <class V>
inline V fn_atan2(V a, V b) {
  return atan2(a, b);
}

template <class V>
inline V d_identity(V, V, V) {
  return splat<V>(1.0);
}
template <class V>
inline V bw_identity(V, V dy, V, V) {
  return dy;
}

template <class V>
inline V d_neg(V, V, V) {
  return splat<V>(-1.0);
}
template <class V>
inline V bw_neg(V, V dy, V, V) {
  return neg(dy);
}

template <class V>
inline V d_abs(V x, V, V) {
  return sign(x);
}
template <class V>
inline V bw_abs(V x, V dy, V, V) {
  return mul(dy, sign(x));
}

template <class V>
inline V d_sign(V, V, V) {
  return splat<V>(0.0);
}
template <class V>
inline V bw_sign(V, V dy, V, V) {
  return mul(dy, splat<V>(0.0));
}

template <class V>
inline V d_square(V x, V, V) {
  return mul(splat<V>(2.0), x);
}
template <class V>
inline V bw_square(V x, V dy, V, V) {
  return mul(dy, mul(splat<V>(2.0), x));
}

template <class V>
inline V d_reciprocal(V x, V, V) {
  return div(splat<V>(-1.0), mul(x, x));
}
template <class V>
inline V bw_reciprocal(V x, V dy, V, V) {
  return mul(dy, div(splat<V>(-1.0), mul(x, x)));
}

template <class V>
inline V d_sqrt(V x, V, V) {
  return div(splat<V>(0.5), sqrt(x));
}
template <class V>
inline V bw_sqrt(V x, V dy, V, V) {
  return mul(dy, div(splat<V>(0.5), sqrt(x)));
}

template <class V>
inline V d_rsqrt(V x, V, V) {
  return div(splat<V>(-0.5), mul(x, sqrt(x)));
}
template <class V>
inline V bw_rsqrt(V x, V dy, V, V) {
  return mul(dy, div(splat<V>(-0.5), mul(x, sqrt(x))));
}

template <class V>
inline V d_exp(V x, V, V) {
  return exp(x);
}
template <class V>
inline V bw_exp(V x, V dy, V, V) {
  return mul(dy, exp(x));
}

template <class V>
inline V d_exp2(V x, V, V) {
  return mul(splat<V>(0.6931471805599453), exp2(x));
}
template <class V>
inline V bw_exp2(V x, V dy, V, V) {
  return mul(dy, mul(splat<V>(0.6931471805599453), exp2(x)));
}

template <class V>
inline V d_expm1(V x, V, V) {
  return exp(x);
}
template <class V>
inline V bw_expm1(V x, V dy, V, V) {
  return mul(dy, exp(x));
}

template <class V>
inline V d_log(V x, V, V) {
  return div(splat<V>(1.0), x);
}
template <class V>
inline V bw_log(V x, V dy, V, V) {
  return mul(dy, div(splat<V>(1.0), x));
}

template <class V>
inline V d_log2(V x, V, V) {
  return div(splat<V>(1.0), mul(x, splat<V>(0.6931471805599453)));
}
template <class V>
inline V bw_log2(V x, V dy, V, V) {
  return mul(dy, div(splat<V>(1.0), mul(x, splat<V>(0.6931471805599453))));
}

template <class V>
inline V d_log10(V x, V, V) {
  return div(splat<V>(1.0), mul(x, splat<V>(2.302585092994046)));
}
template <class V>
inline V bw_log10(V x, V dy, V, V) {
  return mul(dy, div(splat<V>(1.0), mul(x, splat<V>(2.302585092994046))));
}

template <class V>
inline V d_log1p(V x, V, V) {
  return div(splat<V>(1.0), add(splat<V>(1.0), x));
}
template <class V>
inline V bw_log1p(V x, V dy, V, V) {
  return mul(dy, div(splat<V>(1.0), add(splat<V>(1.0), x)));
}

template <class V>
inline V d_sin(V x, V, V) {
  return cos(x);
}
template <class V>
inline V bw_sin(V x, V dy, V, V) {
  return mul(dy, cos(x));
}

template <class V>
inline V d_cos(V x, V, V) {
  return neg(sin(x));
}
template <class V>
inline V bw_cos(V x, V dy, V, V) {
  return mul(dy, neg(sin(x)));
}

template <class V>
inline V d_tan(V x, V, V) {
  const auto t1 = tan(x);
  return add(splat<V>(1.0), mul(t1, t1));
}
template <class V>
inline V bw_tan(V x, V dy, V, V) {
  const auto t1 = tan(x);
  return mul(dy, add(splat<V>(1.0), mul(t1, t1)));
}

template <class V>
inline V d_asin(V x, V, V) {
  return div(splat<V>(1.0), sqrt(mul(sub(splat<V>(1.0), x), add(splat<V>(1.0), x))));
}
template <class V>
inline V bw_asin(V x, V dy, V, V) {
  return mul(dy, div(splat<V>(1.0), sqrt(mul(sub(splat<V>(1.0), x), add(splat<V>(1.0), x)))));
}

template <class V>
inline V d_acos(V x, V, V) {
  return div(splat<V>(-1.0), sqrt(mul(sub(splat<V>(1.0), x), add(splat<V>(1.0), x))));
}
template <class V>
inline V bw_acos(V x, V dy, V, V) {
  return mul(dy, div(splat<V>(-1.0), sqrt(mul(sub(splat<V>(1.0), x), add(splat<V>(1.0), x)))));
}

template <class V>
inline V d_atan(V x, V, V) {
  return div(splat<V>(1.0), add(splat<V>(1.0), mul(x, x)));
}
template <class V>
inline V bw_atan(V x, V dy, V, V) {
  return mul(dy, div(splat<V>(1.0), add(splat<V>(1.0), mul(x, x))));
}

template <class V>
inline V d_sinh(V x, V, V) {
  return cosh(x);
}
template <class V>
inline V bw_sinh(V x, V dy, V, V) {
  return mul(dy, cosh(x));
}

template <class V>
inline V d_cosh(V x, V, V) {
  return sinh(x);
}
template <class V>
inline V bw_cosh(V x, V dy, V, V) {
  return mul(dy, sinh(x));
}

template <class V>
inline V d_tanh(V x, V, V) {
  const auto t1 = tanh(x);
  return sub(splat<V>(1.0), mul(t1, t1));
}
template <class V>
inline V bw_tanh(V x, V dy, V, V) {
  const auto t1 = tanh(x);
  return mul(dy, sub(splat<V>(1.0), mul(t1, t1)));
}

template <class V>
inline V d_asinh(V x, V, V) {
  return div(splat<V>(1.0), sqrt(add(mul(x, x), splat<V>(1.0))));
}
template <class V>
inline V bw_asinh(V x, V dy, V, V) {
  return mul(dy, div(splat<V>(1.0), sqrt(add(mul(x, x), splat<V>(1.0)))));
}

template <class V>
inline V d_acosh(V x, V, V) {
  return div(splat<V>(1.0), mul(sqrt(sub(x, splat<V>(1.0))), sqrt(add(x, splat<V>(1.0)))));
}
template <class V>
inline V bw_acosh(V x, V dy, V, V) {
  return mul(dy, div(splat<V>(1.0), mul(sqrt(sub(x, splat<V>(1.0))), sqrt(add(x, splat<V>(1.0))))));
}

template <class V>
inline V d_atanh(V x, V, V) {
  return div(splat<V>(1.0), mul(sub(splat<V>(1.0), x), add(splat<V>(1.0), x)));
}
template <class V>
inline V bw_atanh(V x, V dy, V, V) {
  return mul(dy, div(splat<V>(1.0), mul(sub(splat<V>(1.0), x), add(splat<V>(1.0), x))));
}

template <class V>
inline V d_erf(V x, V, V) {
  return mul(splat<V>(1.1283791670955126), exp(neg(mul(x, x))));
}
template <class V>
inline V bw_erf(V x, V dy, V, V) {
  return mul(dy, mul(splat<V>(1.1283791670955126), exp(neg(mul(x, x)))));
}

template <class V>
inline V d_erfc(V x, V, V) {
  return mul(splat<V>(-1.1283791670955126), exp(neg(mul(x, x))));
}
template <class V>
inline V bw_erfc(V x, V dy, V, V) {
  return mul(dy, mul(splat<V>(-1.1283791670955126), exp(neg(mul(x, x)))));
}

template <class V>
inline V d_round(V, V, V) {
  return splat<V>(1.0);
}
template <class V>
inline V bw_round(V, V dy, V, V) {
  return dy;
}

template <class V>
inline V d_floor(V, V, V) {
  return splat<V>(0.0);
}
template <class V>
inline V bw_floor(V, V dy, V, V) {
  return mul(dy, splat<V>(0.0));
}

template <class V>
inline V d_ceil(V, V, V) {
  return splat<V>(0.0);
}
template <class V>
inline V bw_ceil(V, V dy, V, V) {
  return mul(dy, splat<V>(0.0));
}

template <class V>
inline V d_trunc(V, V, V) {
  return splat<V>(0.0);
}
template <class V>
inline V bw_trunc(V, V dy, V, V) {
  return mul(dy, splat<V>(0.0));
}

template <class V>
inline V d_relu(V x, V, V) {
  return select(le(x, splat<V>(0.0)), splat<V>(0.0), splat<V>(1.0));
}
template <class V>
inline V bw_relu(V x, V dy, V, V) {
  return select(le(x, splat<V>(0.0)), splat<V>(0.0), dy);
}

template <class V>
inline V d_relu6(V x, V, V) {
  return select(mor(le(x, splat<V>(0.0)), ge(x, splat<V>(6.0))), splat<V>(0.0), splat<V>(1.0));
}
template <class V>
inline V bw_relu6(V x, V dy, V, V) {
  return select(mor(le(x, splat<V>(0.0)), ge(x, splat<V>(6.0))), splat<V>(0.0), dy);
}

template <class V>
inline V d_leaky_relu(V x, V alpha, V) {
  return select(le(x, splat<V>(0.0)), alpha, splat<V>(1.0));
}
template <class V>
inline V bw_leaky_relu(V x, V dy, V alpha, V) {
  return mul(dy, select(le(x, splat<V>(0.0)), alpha, splat<V>(1.0)));
}

template <class V>
inline V d_thresholded_relu(V x, V alpha, V) {
  return select(le(x, alpha), splat<V>(0.0), splat<V>(1.0));
}
template <class V>
inline V bw_thresholded_relu(V x, V dy, V alpha, V) {
  return mul(dy, select(le(x, alpha), splat<V>(0.0), splat<V>(1.0)));
}

template <class V>
inline V d_elu(V x, V alpha, V) {
  return select(gt(x, splat<V>(0.0)), splat<V>(1.0), mul(alpha, exp(x)));
}
template <class V>
inline V bw_elu(V x, V dy, V alpha, V) {
  return mul(dy, select(gt(x, splat<V>(0.0)), splat<V>(1.0), mul(alpha, exp(x))));
}

template <class V>
inline V d_celu(V x, V alpha, V) {
  return select(gt(x, splat<V>(0.0)), splat<V>(1.0), exp(div(x, alpha)));
}
template <class V>
inline V bw_celu(V x, V dy, V alpha, V) {
  return mul(dy, select(gt(x, splat<V>(0.0)), splat<V>(1.0), exp(div(x, alpha))));
}

template <class V>
inline V d_selu(V x, V alpha, V beta) {
  return mul(beta, select(gt(x, splat<V>(0.0)), splat<V>(1.0), mul(alpha, exp(x))));
}
template <class V>
inline V bw_selu(V x, V dy, V alpha, V beta) {
  return mul(dy, mul(beta, select(gt(x, splat<V>(0.0)), splat<V>(1.0), mul(alpha, exp(x)))));
}

template <class V>
inline V d_sigmoid(V x, V alpha, V beta) {
  return mul(fn_sigmoid(x, alpha, beta), fn_sigmoid(neg(x), alpha, beta));
}
template <class V>
inline V bw_sigmoid(V x, V dy, V alpha, V beta) {
  return mul(dy, mul(fn_sigmoid(x, alpha, beta), fn_sigmoid(neg(x), alpha, beta)));
}

template <class V>
inline V d_log_sigmoid(V x, V alpha, V beta) {
  return fn_sigmoid(neg(x), alpha, beta);
}
template <class V>
inline V bw_log_sigmoid(V x, V dy, V alpha, V beta) {
  return mul(dy, fn_sigmoid(neg(x), alpha, beta));
}

template <class V>
inline V d_softplus(V x, V alpha, V beta) {
  return fn_sigmoid(x, alpha, beta);
}
template <class V>
inline V bw_softplus(V x, V dy, V alpha, V beta) {
  return mul(dy, fn_sigmoid(x, alpha, beta));
}

template <class V>
inline V d_softsign(V x, V, V) {
  const auto t1 = add(splat<V>(1.0), abs(x));
  return div(splat<V>(1.0), mul(t1, t1));
}
template <class V>
inline V bw_softsign(V x, V dy, V, V) {
  const auto t1 = add(splat<V>(1.0), abs(x));
  return mul(dy, div(splat<V>(1.0), mul(t1, t1)));
}

template <class V>
inline V d_silu(V x, V alpha, V beta) {
  return select(eq(x, splat<V>(-__builtin_inf())), splat<V>(0.0), select(eq(x, splat<V>(__builtin_inf())), splat<V>(1.0), mul(fn_sigmoid(x, alpha, beta), add(splat<V>(1.0), mul(x, fn_sigmoid(neg(x), alpha, beta))))));
}
template <class V>
inline V bw_silu(V x, V dy, V alpha, V beta) {
  return mul(dy, select(eq(x, splat<V>(-__builtin_inf())), splat<V>(0.0), select(eq(x, splat<V>(__builtin_inf())), splat<V>(1.0), mul(fn_sigmoid(x, alpha, beta), add(splat<V>(1.0), mul(x, fn_sigmoid(neg(x), alpha, beta)))))));
}

template <class V>
inline V d_mish(V x, V alpha, V beta) {
  const auto t1 = exp(neg(abs(x)));
  const auto t2 = add(splat<V>(1.0), add(t1, t1));
  const auto t3 = mul(t1, add(t1, splat<V>(2.0)));
  const auto t4 = select(gt(x, splat<V>(0.0)), div(t2, add(t2, mul(splat<V>(2.0), mul(t1, t1)))), div(t3, add(t3, splat<V>(2.0))));
  return select(eq(x, splat<V>(-__builtin_inf())), splat<V>(0.0), select(eq(x, splat<V>(__builtin_inf())), splat<V>(1.0), add(t4, mul(x, mul(mul(sub(splat<V>(1.0), t4), add(splat<V>(1.0), t4)), fn_sigmoid(x, alpha, beta))))));
}
template <class V>
inline V bw_mish(V x, V dy, V alpha, V beta) {
  const auto t1 = exp(neg(abs(x)));
  const auto t2 = add(splat<V>(1.0), add(t1, t1));
  const auto t3 = mul(t1, add(t1, splat<V>(2.0)));
  const auto t4 = select(gt(x, splat<V>(0.0)), div(t2, add(t2, mul(splat<V>(2.0), mul(t1, t1)))), div(t3, add(t3, splat<V>(2.0))));
  return mul(dy, select(eq(x, splat<V>(-__builtin_inf())), splat<V>(0.0), select(eq(x, splat<V>(__builtin_inf())), splat<V>(1.0), add(t4, mul(x, mul(mul(sub(splat<V>(1.0), t4), add(splat<V>(1.0), t4)), fn_sigmoid(x, alpha, beta)))))));
}

template <class V>
inline V d_gelu(V x, V, V) {
  return select(eq(x, splat<V>(-__builtin_inf())), splat<V>(0.0), select(eq(x, splat<V>(__builtin_inf())), splat<V>(1.0), add(mul(splat<V>(0.5), erfc(mul(x, splat<V>(-0.7071067811865476)))), mul(x, mul(splat<V>(0.3989422804014327), exp(mul(splat<V>(-0.5), mul(x, x))))))));
}
template <class V>
inline V bw_gelu(V x, V dy, V, V) {
  return mul(dy, select(eq(x, splat<V>(-__builtin_inf())), splat<V>(0.0), select(eq(x, splat<V>(__builtin_inf())), splat<V>(1.0), add(mul(splat<V>(0.5), erfc(mul(x, splat<V>(-0.7071067811865476)))), mul(x, mul(splat<V>(0.3989422804014327), exp(mul(splat<V>(-0.5), mul(x, x)))))))));
}

template <class V>
inline V d_gelu_tanh(V x, V alpha, V beta) {
  const auto t1 = mul(x, x);
  const auto t2 = fn_sigmoid(mul(x, add(splat<V>(1.5957691216057308), mul(splat<V>(0.07135481627260025), t1))), alpha, beta);
  return select(lt(x, splat<V>(-20.0)), splat<V>(0.0), select(gt(x, splat<V>(20.0)), splat<V>(1.0), add(t2, mul(mul(add(x, x), mul(t2, sub(splat<V>(1.0), t2))), add(splat<V>(0.7978845608028654), mul(splat<V>(0.10703222440890037), t1))))));
}
template <class V>
inline V bw_gelu_tanh(V x, V dy, V alpha, V beta) {
  const auto t1 = mul(x, x);
  const auto t2 = fn_sigmoid(mul(x, add(splat<V>(1.5957691216057308), mul(splat<V>(0.07135481627260025), t1))), alpha, beta);
  return mul(dy, select(lt(x, splat<V>(-20.0)), splat<V>(0.0), select(gt(x, splat<V>(20.0)), splat<V>(1.0), add(t2, mul(mul(add(x, x), mul(t2, sub(splat<V>(1.0), t2))), add(splat<V>(0.7978845608028654), mul(splat<V>(0.10703222440890037), t1)))))));
}

template <class V>
inline V d_gelu_quick(V x, V alpha, V beta) {
  const auto t1 = min(max(mul(alpha, x), splat<V>(-800.0)), splat<V>(800.0));
  return select(eq(x, splat<V>(-__builtin_inf())), splat<V>(0.0), select(eq(x, splat<V>(__builtin_inf())), splat<V>(1.0), mul(fn_sigmoid(t1, alpha, beta), add(splat<V>(1.0), mul(t1, fn_sigmoid(neg(t1), alpha, beta))))));
}
template <class V>
inline V bw_gelu_quick(V x, V dy, V alpha, V beta) {
  const auto t1 = min(max(mul(alpha, x), splat<V>(-800.0)), splat<V>(800.0));
  return mul(dy, select(eq(x, splat<V>(-__builtin_inf())), splat<V>(0.0), select(eq(x, splat<V>(__builtin_inf())), splat<V>(1.0), mul(fn_sigmoid(t1, alpha, beta), add(splat<V>(1.0), mul(t1, fn_sigmoid(neg(t1), alpha, beta)))))));
}

template <class V>
inline V d_hard_sigmoid(V x, V alpha, V beta) {
  const auto t1 = add(mul(alpha, x), beta);
  return select(mor(le(t1, splat<V>(0.0)), ge(t1, splat<V>(1.0))), splat<V>(0.0), alpha);
}
template <class V>
inline V bw_hard_sigmoid(V x, V dy, V alpha, V beta) {
  const auto t1 = add(mul(alpha, x), beta);
  return mul(dy, select(mor(le(t1, splat<V>(0.0)), ge(t1, splat<V>(1.0))), splat<V>(0.0), alpha));
}

template <class V>
inline V d_hard_swish(V x, V, V) {
  return select(le(x, splat<V>(-3.0)), splat<V>(0.0), select(ge(x, splat<V>(3.0)), splat<V>(1.0), add(mul(x, splat<V>(0.3333333333333333)), splat<V>(0.5))));
}
template <class V>
inline V bw_hard_swish(V x, V dy, V, V) {
  return mul(dy, select(le(x, splat<V>(-3.0)), splat<V>(0.0), select(ge(x, splat<V>(3.0)), splat<V>(1.0), add(mul(x, splat<V>(0.3333333333333333)), splat<V>(0.5)))));
}

template <class V>
inline V da_add(V, V) {
  return splat<V>(1.0);
}
template <class V>
inline V bwa_add(V, V, V dy) {
  return dy;
}

template <class V>
inline V db_add(V, V) {
  return splat<V>(1.0);
}
template <class V>
inline V bwb_add(V, V, V dy) {
  return dy;
}

template <class V>
inline V da_sub(V, V) {
  return splat<V>(1.0);
}
template <class V>
inline V bwa_sub(V, V, V dy) {
  return dy;
}

template <class V>
inline V db_sub(V, V) {
  return splat<V>(-1.0);
}
template <class V>
inline V bwb_sub(V, V, V dy) {
  return neg(dy);
}

template <class V>
inline V da_mul(V, V b) {
  return b;
}
template <class V>
inline V bwa_mul(V, V b, V dy) {
  return mul(dy, b);
}

template <class V>
inline V db_mul(V a, V) {
  return a;
}
template <class V>
inline V bwb_mul(V a, V, V dy) {
  return mul(dy, a);
}

template <class V>
inline V da_div(V, V b) {
  return div(splat<V>(1.0), b);
}
template <class V>
inline V bwa_div(V, V b, V dy) {
  return mul(dy, div(splat<V>(1.0), b));
}

template <class V>
inline V db_div(V a, V b) {
  return div(neg(a), mul(b, b));
}
template <class V>
inline V bwb_div(V a, V b, V dy) {
  return mul(dy, div(neg(a), mul(b, b)));
}

template <class V>
inline V da_max(V a, V b) {
  return select(lt(a, b), splat<V>(0.0), select(eq(a, b), splat<V>(0.5), splat<V>(1.0)));
}
template <class V>
inline V bwa_max(V a, V b, V dy) {
  return select(lt(a, b), splat<V>(0.0), mul(dy, select(eq(a, b), splat<V>(0.5), splat<V>(1.0))));
}

template <class V>
inline V db_max(V a, V b) {
  return select(lt(b, a), splat<V>(0.0), select(eq(a, b), splat<V>(0.5), splat<V>(1.0)));
}
template <class V>
inline V bwb_max(V a, V b, V dy) {
  return select(lt(b, a), splat<V>(0.0), mul(dy, select(eq(a, b), splat<V>(0.5), splat<V>(1.0))));
}

template <class V>
inline V da_min(V a, V b) {
  return select(gt(a, b), splat<V>(0.0), select(eq(a, b), splat<V>(0.5), splat<V>(1.0)));
}
template <class V>
inline V bwa_min(V a, V b, V dy) {
  return select(gt(a, b), splat<V>(0.0), mul(dy, select(eq(a, b), splat<V>(0.5), splat<V>(1.0))));
}

template <class V>
inline V db_min(V a, V b) {
  return select(gt(b, a), splat<V>(0.0), select(eq(a, b), splat<V>(0.5), splat<V>(1.0)));
}
template <class V>
inline V bwb_min(V a, V b, V dy) {
  return select(gt(b, a), splat<V>(0.0), mul(dy, select(eq(a, b), splat<V>(0.5), splat<V>(1.0))));
}

template <class V>
inline V da_pow(V a, V b) {
  return select(eq(b, splat<V>(0.0)), splat<V>(0.0), mul(b, pow(a, sub(b, splat<V>(1.0)))));
}
template <class V>
inline V bwa_pow(V a, V b, V dy) {
  return select(eq(b, splat<V>(0.0)), splat<V>(0.0), mul(dy, mul(b, pow(a, sub(b, splat<V>(1.0))))));
}

template <class V>
inline V db_pow(V a, V b) {
  return select(mand(eq(a, splat<V>(0.0)), ge(b, splat<V>(0.0))), splat<V>(0.0), mul(pow(a, b), log(a)));
}
template <class V>
inline V bwb_pow(V a, V b, V dy) {
  return select(mand(eq(a, splat<V>(0.0)), ge(b, splat<V>(0.0))), splat<V>(0.0), mul(dy, mul(pow(a, b), log(a))));
}

template <class V>
inline V da_mod(V, V) {
  return splat<V>(1.0);
}
template <class V>
inline V bwa_mod(V, V, V dy) {
  return dy;
}

template <class V>
inline V db_mod(V a, V b) {
  const auto t1 = fn_floor_div(abs(a), abs(b));
  return neg(select(eq(b, splat<V>(0.0)), div(a, b), select(mor(mand(lt(a, splat<V>(0.0)), gt(b, splat<V>(0.0))), mand(gt(a, splat<V>(0.0)), lt(b, splat<V>(0.0)))), neg(t1), t1)));
}
template <class V>
inline V bwb_mod(V a, V b, V dy) {
  const auto t1 = fn_floor_div(abs(a), abs(b));
  return mul(dy, neg(select(eq(b, splat<V>(0.0)), div(a, b), select(mor(mand(lt(a, splat<V>(0.0)), gt(b, splat<V>(0.0))), mand(gt(a, splat<V>(0.0)), lt(b, splat<V>(0.0)))), neg(t1), t1))));
}

template <class V>
inline V da_floor_mod(V, V) {
  return splat<V>(1.0);
}
template <class V>
inline V bwa_floor_mod(V, V, V dy) {
  return dy;
}

template <class V>
inline V db_floor_mod(V a, V b) {
  return neg(fn_floor_div(a, b));
}
template <class V>
inline V bwb_floor_mod(V a, V b, V dy) {
  return mul(dy, neg(fn_floor_div(a, b)));
}

template <class V>
inline V da_floor_div(V, V) {
  return splat<V>(0.0);
}
template <class V>
inline V bwa_floor_div(V, V, V dy) {
  return mul(dy, splat<V>(0.0));
}

template <class V>
inline V db_floor_div(V, V) {
  return splat<V>(0.0);
}
template <class V>
inline V bwb_floor_div(V, V, V dy) {
  return mul(dy, splat<V>(0.0));
}

template <class V>
inline V da_atan2(V a, V b) {
  return select(mand(eq(a, splat<V>(0.0)), eq(b, splat<V>(0.0))), splat<V>(0.0), div(b, add(mul(a, a), mul(b, b))));
}
template <class V>
inline V bwa_atan2(V a, V b, V dy) {
  return select(mand(eq(a, splat<V>(0.0)), eq(b, splat<V>(0.0))), splat<V>(0.0), mul(dy, div(b, add(mul(a, a), mul(b, b)))));
}

template <class V>
inline V db_atan2(V a, V b) {
  return select(mand(eq(a, splat<V>(0.0)), eq(b, splat<V>(0.0))), splat<V>(0.0), div(neg(a), add(mul(a, a), mul(b, b))));
}
template <class V>
inline V bwb_atan2(V a, V b, V dy) {
  return select(mand(eq(a, splat<V>(0.0)), eq(b, splat<V>(0.0))), splat<V>(0.0), mul(dy, div(neg(a), add(mul(a, a), mul(b, b)))));
}

template <class V>
inline auto fn_eq(V a, V b) {
  return eq(a, b);
}

template <class V>
inline auto fn_ne(V a, V b) {
  return ne(a, b);
}

template <class V>
inline auto fn_lt(V a, V b) {
  return lt(a, b);
}

template <class V>
inline auto fn_le(V a, V b) {
  return le(a, b);
}

template <class V>
inline auto fn_gt(V a, V b) {
  return gt(a, b);
}

template <class V>
inline auto fn_ge(V a, V b) {
  return ge(a, b);
}
