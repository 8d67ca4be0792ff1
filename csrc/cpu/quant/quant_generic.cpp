// Quantize and Dequantize on any machine. See quant_body.h.
#include "../core/rlx_begin.h"

#include "quant.h"

namespace rlx {
namespace quant {
namespace {
#include "../core/vec_generic.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
RLX_FN void store_bytes(uint8_t *p, vi x) {
  int32_t lanes[LANES];
  store_i(lanes, x);
  for (int i = 0; i < LANES; i++) p[i] = uint8_t(lanes[i]);
}
#include "quant_body.h"
}  // namespace

void quantize_generic(const Call &c, Range r) { quantize_units(c, r); }
void dequantize_generic(const Call &c, Range r) { dequantize_units(c, r); }

}  // namespace quant
}  // namespace rlx
