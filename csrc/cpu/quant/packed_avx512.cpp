// DequantMatMul, 16 lanes. See packed_body.h.
#include "../core/rlx_begin.h"

#include "code_books_gen.h"
#include "packed.h"

#if defined(RLX_X86)
namespace rlx {
namespace quant {

RLX_TARGET_AVX512_BEGIN
namespace {
#include "../core/vec_avx512.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
RLX_FN vf codes_at(const int8_t *p) { return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p))))}; }
RLX_FN vf codes_at(const uint8_t *p) { return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p))))}; }
#include "packed_x86.h"
#include "codes_body.h"
#include "rows_body.h"
RLX_FN vi wide_bytes(const uint8_t *p) { return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p)))}; }
RLX_FN vf among(vf table, vi i) { return {_mm512_permutexvar_ps(i.v, table.v)}; }
#include "nibbles_body.h"
#include "packed_body.h"
}  // namespace

void dequant_matmul_avx512(const Call &c, Range) { dequant_matmul(c); }
void dequant_matmul_region_avx512(const Call &c, Range) { dequant_matmul_region(c); }

RLX_TARGET_END

}  // namespace quant
}  // namespace rlx

#endif
