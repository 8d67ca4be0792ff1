// vec_math_f64.h: the interface of the vector layer for one double, by libm. Part of vec_math.h.
//
// f64 kernels run one lane at a time; the mask type is bool. glibc, musl and Apple's libm stay within 2 ULP on these
// functions, inside the f64 bound of every one of them (that of f32 plus 1).

template <> RLX_FN double splat<double>(double x) { return x; }
RLX_FN double load(const double* p) { return *p; }
RLX_FN void store(double* p, double x) { *p = x; }

RLX_FN double add(double a, double b) { return a + b; }
RLX_FN double sub(double a, double b) { return a - b; }
RLX_FN double mul(double a, double b) { return a * b; }
RLX_FN double div(double a, double b) { return a / b; }
RLX_FN double neg(double a) { return -a; }
RLX_FN double identity(double a) { return a; }
RLX_FN double square(double a) { return a * a; }
RLX_FN double reciprocal(double a) { return 1.0 / a; }
RLX_FN double abs(double a) { return ::fabs(a); }
RLX_FN double sqrt(double a) { return ::sqrt(a); }
RLX_FN double rsqrt(double a) { return 1.0 / ::sqrt(a); }
RLX_FN double fma(double a, double b, double c) { return ::fma(a, b, c); }
RLX_FN double fma_exact(double a, double b, double c) { return ::fma(a, b, c); }
RLX_FN double raw_max(double a, double b) { return a > b ? a : b; }
RLX_FN double raw_min(double a, double b) { return a < b ? a : b; }
RLX_FN double max(double a, double b) { return a > b || a != a ? a : b; }
RLX_FN double min(double a, double b) { return a < b || a != a ? a : b; }
RLX_FN double copysign(double mag, double sgn) { return ::copysign(mag, sgn); }
RLX_FN double sign(double a) { return a > 0 ? 1.0 : a < 0 ? -1.0 : a == 0 ? 0.0 : a; }
RLX_FN double round(double a) { return ::rint(a); }  // halves to even in the default rounding mode
RLX_FN double floor(double a) { return ::floor(a); }
RLX_FN double ceil(double a) { return ::ceil(a); }
RLX_FN double trunc(double a) { return ::trunc(a); }

RLX_FN bool lt(double a, double b) { return a < b; }
RLX_FN bool le(double a, double b) { return a <= b; }
RLX_FN bool gt(double a, double b) { return a > b; }
RLX_FN bool ge(double a, double b) { return a >= b; }
RLX_FN bool eq(double a, double b) { return a == b; }
RLX_FN bool ne(double a, double b) { return a != b; }
RLX_FN bool mand(bool a, bool b) { return a && b; }
RLX_FN bool mor(bool a, bool b) { return a || b; }
RLX_FN bool mxor(bool a, bool b) { return a != b; }
RLX_FN bool mnot(bool a) { return !a; }
RLX_FN bool any(bool a) { return a; }
RLX_FN bool all(bool a) { return a; }
RLX_FN double select(bool m, double a, double b) { return m ? a : b; }
RLX_FN bool is_nan(double a) { return a != a; }
RLX_FN bool is_inf(double a) { return ::fabs(a) == INFINITY; }
RLX_FN bool is_finite(double a) { return ::fabs(a) < INFINITY; }

RLX_FN double exp(double a) { return ::exp(a); }
RLX_FN double exp2(double a) { return ::exp2(a); }
RLX_FN double expm1(double a) { return ::expm1(a); }
RLX_FN double log(double a) { return ::log(a); }
RLX_FN double log2(double a) { return ::log2(a); }
RLX_FN double log10(double a) { return ::log10(a); }
RLX_FN double log1p(double a) { return ::log1p(a); }
RLX_FN double sin(double a) { return ::sin(a); }
RLX_FN double cos(double a) { return ::cos(a); }
RLX_FN double tan(double a) { return ::tan(a); }
RLX_FN double asin(double a) { return ::asin(a); }
RLX_FN double acos(double a) { return ::acos(a); }
RLX_FN double atan(double a) { return ::atan(a); }
RLX_FN double sinh(double a) { return ::sinh(a); }
RLX_FN double cosh(double a) { return ::cosh(a); }
RLX_FN double tanh(double a) { return ::tanh(a); }
RLX_FN double asinh(double a) { return ::asinh(a); }
RLX_FN double acosh(double a) { return ::acosh(a); }
RLX_FN double atanh(double a) { return ::atanh(a); }
RLX_FN double erf(double a) { return ::erf(a); }
RLX_FN double erfc(double a) { return ::erfc(a); }
RLX_FN double pow(double a, double b) { return ::pow(a, b); }
RLX_FN double mod(double a, double b) { return ::fmod(a, b); }
RLX_FN double atan2(double a, double b) { return ::atan2(a, b); }
