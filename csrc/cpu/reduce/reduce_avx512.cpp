// Reduce, ArgMax and ArgMin of f32, f16 and bf16, 16 lanes. See reduce_body.h and arg_body.h.
#include "../core/rlx_begin.h"

#include "arg.h"
#include "lines.h"
#include "reduce.h"

#if defined(RLX_X86)
namespace rlx {
namespace reduce {

RLX_TARGET_AVX512_BEGIN
namespace {
#include "../core/vec_avx512.h"
#include "../core/vec_math.h"
#include "forms.h"

// The lanes of sums and products joined by halves until two are left, without a way through memory. Both operations are one on any vector.
#define RLX_TWO_LANES
template <class Op> RLX_FN void two_lanes(vd a, double *t) {
  const __m512d b = Op::join(vd{a.lo, a.lo}, vd{a.hi, a.hi}).lo;
  const __m512d c = Op::join(vd{b, b}, vd{_mm512_shuffle_f64x2(b, b, 0x4e), b}).lo;  // its lowest four lanes
  const __m512d d = Op::join(vd{c, c}, vd{_mm512_shuffle_f64x2(c, c, 0xb1), c}).lo;  // its lowest two
  _mm_storeu_pd(t, _mm512_castpd512_pd128(d));
}

#include "reduce_body.h"
#include "arg_body.h"
}  // namespace

void reduce_f32_avx512(const Call &c, Range r) { Driver<Floats<f32_form>>::run(c, r); }
void reduce_f16_avx512(const Call &c, Range r) { Driver<Floats<f16_form>>::run(c, r); }
void reduce_bf16_avx512(const Call &c, Range r) { Driver<Floats<bf16_form>>::run(c, r); }
void arg_f32_avx512(const Call &c, Range r) { arg_floats<f32_form>(c, r); }
void arg_f16_avx512(const Call &c, Range r) { arg_floats<f16_form>(c, r); }
void arg_bf16_avx512(const Call &c, Range r) { arg_floats<bf16_form>(c, r); }

RLX_TARGET_END

}  // namespace reduce
}  // namespace rlx

#endif
