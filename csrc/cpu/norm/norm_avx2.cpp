// LayerNorm, RmsNorm and Softmax of f32, f16 and bf16, 8 lanes. See norm_body.h.
#include "../core/rlx_begin.h"

#include "norm.h"

#if defined(RLX_X86)
namespace rlx {
namespace norm {

RLX_TARGET_AVX2_BEGIN
namespace {
#include "../core/vec_avx2.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "power.h"
#include "norm_body.h"
}  // namespace

void norm_f32_avx2(const Call &c, Range r) { norm_rows<f32_form>(c, r); }
void norm_f16_avx2(const Call &c, Range r) { norm_rows<f16_form>(c, r); }
void norm_bf16_avx2(const Call &c, Range r) { norm_rows<bf16_form>(c, r); }
void softmax_f32_avx2(const Call &c, Range r) { softmax_lines<f32_form>(c, r); }
void softmax_f16_avx2(const Call &c, Range r) { softmax_lines<f16_form>(c, r); }
void softmax_bf16_avx2(const Call &c, Range r) { softmax_lines<bf16_form>(c, r); }

RLX_TARGET_END

}  // namespace norm
}  // namespace rlx

#endif
