// LayerNorm, RmsNorm and Softmax of f32, f16 and bf16, 4 lanes. See norm_body.h.
#include "../core/rlx_begin.h"

#include "norm.h"

#if defined(RLX_NEON)
namespace rlx {
namespace norm {

namespace {
#include "../core/vec_neon.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "power.h"
#include "norm_body.h"
}  // namespace

void norm_f32_neon(const Call &c, Range r) { norm_rows<f32_form>(c, r); }
void norm_f16_neon(const Call &c, Range r) { norm_rows<f16_form>(c, r); }
void norm_bf16_neon(const Call &c, Range r) { norm_rows<bf16_form>(c, r); }
void softmax_f32_neon(const Call &c, Range r) { softmax_lines<f32_form>(c, r); }
void softmax_f16_neon(const Call &c, Range r) { softmax_lines<f16_form>(c, r); }
void softmax_bf16_neon(const Call &c, Range r) { softmax_lines<bf16_form>(c, r); }

}  // namespace norm
}  // namespace rlx

#endif
