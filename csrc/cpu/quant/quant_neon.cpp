// Quantize and Dequantize, 4 lanes. See quant_body.h.
#include "../core/rlx_begin.h"

#include "quant.h"

#if defined(RLX_NEON)
namespace rlx {
namespace quant {

namespace {
#include "../core/vec_neon.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
RLX_FN void store_bytes(uint8_t *p, vi x) {
  const uint16x4_t h = vmovn_u32(vreinterpretq_u32_s32(x.v));
  const uint32_t b = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(h, h))), 0);
  std::memcpy(p, &b, sizeof b);
}
#include "quant_body.h"
}  // namespace

void quantize_neon(const Call &c, Range r) { quantize_units(c, r); }
void dequantize_neon(const Call &c, Range r) { dequantize_units(c, r); }

}  // namespace quant
}  // namespace rlx

#endif
