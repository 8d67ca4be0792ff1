// Quantize and Dequantize, 16 lanes. See quant_body.h.
#include "../core/rlx_begin.h"

#include "quant.h"

#if defined(RLX_X86)
namespace rlx {
namespace quant {

RLX_TARGET_AVX512_BEGIN
namespace {
#include "../core/vec_avx512.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
RLX_FN void store_bytes(uint8_t *p, vi x) { _mm_storeu_si128(reinterpret_cast<__m128i *>(p), _mm512_cvtepi32_epi8(x.v)); }
#include "quant_body.h"
}  // namespace

void quantize_avx512(const Call &c, Range r) { quantize_units(c, r); }
void dequantize_avx512(const Call &c, Range r) { dequantize_units(c, r); }

RLX_TARGET_END

}  // namespace quant
}  // namespace rlx

#endif
