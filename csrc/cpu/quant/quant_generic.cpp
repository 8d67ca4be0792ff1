// Quantize and Dequantize on any machine. See quant_body.h.
#include "../core/rlx_begin.h"

#include "quant.h"

namespace rlx {
namespace quant {
namespace {
#include "../core/vec_generic.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
#include "quant_body.h"
}  // namespace

void quantize_generic(const Call &c, Range r) { quantize_units(c, r); }
void dequantize_generic(const Call &c, Range r) { dequantize_units(c, r); }

}  // namespace quant
}  // namespace rlx
