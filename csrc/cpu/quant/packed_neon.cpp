// DequantMatMul, 4 lanes. See packed_body.h.
#include "../core/rlx_begin.h"

#include "code_books_gen.h"
#include "packed.h"

#if defined(RLX_NEON)
namespace rlx {
namespace quant {

namespace {
#include "../core/vec_neon.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
RLX_FN vf codes_at(const int8_t *p) {
  uint32_t w;
  std::memcpy(&w, p, sizeof w);
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(w))))))};
}
RLX_FN vf codes_at(const uint8_t *p) {
  uint32_t w;
  std::memcpy(&w, p, sizeof w);
  return {vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(w))))))};
}
typedef uint8_t u8x16 __attribute__((vector_size(16)));
RLX_FN float half_at(const uint8_t *p) {
  uint16_t h;
  std::memcpy(&h, p, sizeof h);
  return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h))), 0);
}
RLX_FN u8x16 pick16(u8x16 table, u8x16 at) { return u8x16(vqtbl1q_u8(uint8x16_t(table), uint8x16_t(at))); }
#include "codes_body.h"
#include "rows_body.h"
RowForm form_of(int64_t scheme) { return form_of_rows(scheme); }
#include "packed_body.h"
}  // namespace

void dequant_matmul_neon(const Call &c, Range) { dequant_matmul(c); }
void dequant_matmul_region_neon(const Call &c, Range) { dequant_matmul_region(c); }

}  // namespace quant
}  // namespace rlx

#endif
