// vec_math.h: the scalar function table on vectors (vf) and on single doubles.
//
// Textual include after one vec_<isa>.h, inside the same anonymous namespace (vec_generic.h says how). Every function
// works lane by lane, so that a template<class V> V f(V x) serves V = vf and V = double.
//
//   exact          identity neg abs sign round floor ceil trunc max min mod
//   one rounding   add sub mul div square reciprocal sqrt
//   2 ULP          rsqrt exp exp2 log log2 log10 sin cos
//   3 ULP          expm1 log1p asin acos atan sinh cosh tanh erf erfc
//   3 ULP or 1e-7  gelu
//   4 ULP          tan asinh acosh atanh pow atan2
//   predicates     is_nan is_inf is_finite: vm, or bool for double
//
// The bounds hold for every finite f32; csrc/cpu/test/ulp_test.cpp measures them. NaN in gives NaN out but for
// pow(x, 0) and pow(1, y). Zeros keep their sign in odd functions. Subnormal arguments count fully; subnormal results
// of exp, pow and the like may be flushed or lose bits.

RLX_FN vf add(vf a, vf b) { return a + b; }
RLX_FN vf sub(vf a, vf b) { return a - b; }
RLX_FN vf mul(vf a, vf b) { return a * b; }
RLX_FN vf div(vf a, vf b) { return a / b; }
RLX_FN vf neg(vf a) { return -a; }
RLX_FN vf identity(vf a) { return a; }
RLX_FN vf square(vf a) { return a * a; }
RLX_FN vf reciprocal(vf a) { return splat<vf>(1.0) / a; }
RLX_FN vf rsqrt(vf a) { return splat<vf>(1.0) / sqrt(a); }
RLX_FN vf sign(vf a) {
  const vf zero = splat<vf>(0.0);
  const vf z = select(eq(a, zero), zero, a);  // what is left after both signs: +0 or NaN
  return select(gt(a, zero), splat<vf>(1.0), select(lt(a, zero), splat<vf>(-1.0), z));
}
RLX_FN vm is_nan(vf a) { return ne(a, a); }
RLX_FN vm is_inf(vf a) { return eq(abs(a), splat<vf>(INFINITY)); }
RLX_FN vm is_finite(vf a) { return lt(abs(a), splat<vf>(INFINITY)); }
RLX_FN bool any(vm m) { return mask_bits(m) != 0; }
RLX_FN bool all(vm m) { return mask_bits(m) == (1u << LANES) - 1u; }

// c0 + c1 x + c2 x^2 + ..., Horner's rule.
template <class V> RLX_FN V poly(V, double c) { return splat<V>(c); }
template <class V, class... C> RLX_FN V poly(V x, double c, C... rest) { return fma(poly(x, rest...), x, splat<V>(c)); }

#include "vec_math_f64.h"
#include "vec_math_exp.h"
#include "vec_math_tanh.h"
#include "vec_math_gelu.h"
#include "vec_math_wide.h"
#include "vec_math_trig.h"
