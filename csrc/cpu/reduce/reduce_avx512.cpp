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

// A conversion takes half a vector: from memory without a way through the whole one.
#define RLX_LOAD_WIDE
RLX_FN vd load_wide(const float *x) { return {_mm512_cvtps_pd(_mm256_loadu_ps(x)), _mm512_cvtps_pd(_mm256_loadu_ps(x + 8))}; }

// The lanes of sums and products joined by halves until two are left, without a way through memory. Both operations are one on any vector.
#define RLX_TWO_LANES
template <class Op> RLX_FN void two_lanes(vd a, double *t) {
  const __m512d b = Op::join(vd{a.lo, a.lo}, vd{a.hi, a.hi}).lo;
  const __m512d c = Op::join(vd{b, b}, vd{_mm512_shuffle_f64x2(b, b, 0x4e), b}).lo;  // its lowest four lanes
  const __m512d d = Op::join(vd{c, c}, vd{_mm512_shuffle_f64x2(c, c, 0xb1), c}).lo;  // its lowest two
  _mm_storeu_pd(t, _mm512_castpd512_pd128(d));
}

// The same for four vectors, whose results go to t.
template <class Op> RLX_FN void join_four(vd a, vd b, vd c, vd d, double *t) {
  const vd ab = Op::join(vd{a.lo, b.lo}, vd{a.hi, b.hi}), cd = Op::join(vd{c.lo, d.lo}, vd{c.hi, d.hi});
  const vd e = Op::join(vd{_mm512_shuffle_f64x2(ab.lo, ab.hi, 0x44), _mm512_shuffle_f64x2(cd.lo, cd.hi, 0x44)},
                        vd{_mm512_shuffle_f64x2(ab.lo, ab.hi, 0xee), _mm512_shuffle_f64x2(cd.lo, cd.hi, 0xee)});
  const __m512d f = Op::join(vd{_mm512_shuffle_f64x2(e.lo, e.hi, 0x88), e.lo}, vd{_mm512_shuffle_f64x2(e.lo, e.hi, 0xdd), e.lo}).lo;
  const __m512d g = Op::join(vd{f, f}, vd{_mm512_permute_pd(f, 0x55), f}).lo;
  _mm256_storeu_pd(t, _mm512_castpd512_pd256(_mm512_permutexvar_pd(_mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6), g)));
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
