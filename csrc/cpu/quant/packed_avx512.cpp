// DequantMatMul, 16 lanes. See packed_body.h.
#include "../core/rlx_begin.h"

#include "packed.h"

#if defined(RLX_X86)
namespace rlx {
namespace quant {

RLX_TARGET_AVX512_BEGIN
namespace {
#include "../core/vec_avx512.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
#include "packed_body.h"
}  // namespace

void dequant_matmul_avx512(const Call &c, Range) { dequant_matmul(c); }

RLX_TARGET_END

}  // namespace quant
}  // namespace rlx

#endif
