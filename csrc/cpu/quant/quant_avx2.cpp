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
#include "quant_body.h"
}  // namespace

void quantize_avx2(const Call &c, Range r) { quantize_units(c, r); }
void dequantize_avx2(const Call &c, Range r) { dequantize_units(c, r); }

RLX_TARGET_END

}  // namespace quant
}  // namespace rlx

#endif
