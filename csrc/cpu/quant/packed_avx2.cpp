// DequantMatMul, 8 lanes. See packed_body.h.
#include "../core/rlx_begin.h"

#include "code_books_gen.h"
#include "packed.h"

#if defined(RLX_X86)
namespace rlx {
namespace quant {

RLX_TARGET_AVX2_BEGIN
namespace {
#include "../core/vec_avx2.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
RLX_FN vf codes_at(const int8_t *p) { return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(p))))}; }
RLX_FN vf codes_at(const uint8_t *p) { return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(p))))}; }
#include "packed_x86.h"
#include "codes_body.h"
#include "rows_body.h"
RowForm form_of(int64_t scheme) { return form_of_rows(scheme); }
#include "packed_body.h"
}  // namespace

void dequant_matmul_avx2(const Call &c, Range) { dequant_matmul(c); }
void dequant_matmul_region_avx2(const Call &c, Range) { dequant_matmul_region(c); }

RLX_TARGET_END

}  // namespace quant
}  // namespace rlx

#endif
