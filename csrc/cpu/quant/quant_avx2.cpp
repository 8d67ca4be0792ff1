// Quantize and Dequantize, 8 lanes. See quant_body.h.
#include "../core/rlx_begin.h"

#include "quant.h"

#if defined(RLX_X86)
namespace rlx {
namespace quant {

RLX_TARGET_AVX2_BEGIN
namespace {
#include "../core/vec_avx2.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
RLX_FN void store_bytes(uint8_t *p, vi x) {
  const __m256i lowest = _mm256_set1_epi32(0x0c080400);  // of the four lanes of each half
  const __m256i b = _mm256_shuffle_epi8(x.v, lowest);
  _mm_storel_epi64(reinterpret_cast<__m128i *>(p), _mm_unpacklo_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1)));
}
#include "quant_body.h"
}  // namespace

void quantize_avx2(const Call &c, Range r) { quantize_units(c, r); }
void dequantize_avx2(const Call &c, Range r) { dequantize_units(c, r); }

RLX_TARGET_END

}  // namespace quant
}  // namespace rlx

#endif
