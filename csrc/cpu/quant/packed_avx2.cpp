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
typedef uint8_t u8x16 __attribute__((vector_size(16)));
RLX_FN float half_at(const uint8_t *p) {
  uint16_t h;
  std::memcpy(&h, p, sizeof h);
  return _cvtsh_ss(h);
}
RLX_FN u8x16 pick16(u8x16 table, u8x16 at) { return u8x16(_mm_shuffle_epi8(__m128i(table), __m128i(at))); }
#include "codes_body.h"
#include "rows_body.h"
RowForm form_of(int64_t scheme) { return form_of_rows(scheme); }
#include "packed_body.h"
}  // namespace

void dequant_matmul_avx2(const Call &c, Range) { dequant_matmul(c); }

RLX_TARGET_END

}  // namespace quant
}  // namespace rlx

#endif
