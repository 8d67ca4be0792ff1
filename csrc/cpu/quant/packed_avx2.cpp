// DequantMatMul, 8 lanes. See packed_body.h.
#include "../core/rlx_begin.h"

#include "packed.h"

#if defined(RLX_X86)
namespace rlx {
namespace quant {

RLX_TARGET_AVX2_BEGIN
namespace {
#include "../core/vec_avx2.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
#include "packed_body.h"
}  // namespace

void dequant_matmul_avx2(const Call &c, Range) { dequant_matmul(c); }

RLX_TARGET_END

}  // namespace quant
}  // namespace rlx

#endif
