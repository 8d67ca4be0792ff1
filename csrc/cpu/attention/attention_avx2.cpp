// Attention and Rope of f32, f16 and bf16, 8 lanes. See attention_body.h and rope_body.h.
#include "../core/rlx_begin.h"

#include "attention.h"

#if defined(RLX_X86)
namespace rlx {
namespace attention {

RLX_TARGET_AVX2_BEGIN
namespace {
#include "../core/vec_avx2.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
#include "../norm/power.h"

RLX_FN __m256 piece4(const char *p, int64_t rs4) {
  const __m256 x = _mm256_castps128_ps256(_mm_loadu_ps(reinterpret_cast<const float *>(p)));
  return _mm256_insertf128_ps(x, _mm_loadu_ps(reinterpret_cast<const float *>(p + rs4)), 1);
}
RLX_FN void columns4(const float *rows, int64_t rs, vf *c) {
  const char *p = reinterpret_cast<const char *>(rows);
  const __m256 a = piece4(p, 4 * rs), b = piece4(p + rs, 4 * rs), x = piece4(p + 2 * rs, 4 * rs), y = piece4(p + 3 * rs, 4 * rs);
  const __m256d ab = _mm256_castps_pd(_mm256_unpacklo_ps(a, b)), AB = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
  const __m256d xy = _mm256_castps_pd(_mm256_unpacklo_ps(x, y)), XY = _mm256_castps_pd(_mm256_unpackhi_ps(x, y));
  c[0] = {_mm256_castpd_ps(_mm256_unpacklo_pd(ab, xy))}, c[1] = {_mm256_castpd_ps(_mm256_unpackhi_pd(ab, xy))};
  c[2] = {_mm256_castpd_ps(_mm256_unpacklo_pd(AB, XY))}, c[3] = {_mm256_castpd_ps(_mm256_unpackhi_pd(AB, XY))};
}

#include "attention_body.h"
#include "rope_body.h"
}  // namespace
RLX_TARGET_END

extern const Set set_avx2 = {&matmul::kTilesF32Avx2, attention_unit<f32_form>, attention_unit<f16_form>, attention_unit<bf16_form>,
                            rope_token<f32_form>, rope_token<f16_form>, rope_token<bf16_form>};

}  // namespace attention
}  // namespace rlx
#endif
