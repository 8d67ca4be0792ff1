// LayerNorm, RmsNorm and Softmax of f32, f16 and bf16, on any machine. See norm_body.h.
#include "../core/rlx_begin.h"

#include "norm.h"

namespace rlx {
namespace norm {
namespace {
#include "../core/vec_generic.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "power.h"
#include "norm_body.h"
}  // namespace

void norm_f32_generic(const Call &c, Range r) { norm_rows<f32_form>(c, r); }
void norm_f16_generic(const Call &c, Range r) { norm_rows<f16_form>(c, r); }
void norm_bf16_generic(const Call &c, Range r) { norm_rows<bf16_form>(c, r); }
void softmax_f32_generic(const Call &c, Range r) { softmax_lines<f32_form>(c, r); }
void softmax_f16_generic(const Call &c, Range r) { softmax_lines<f16_form>(c, r); }
void softmax_bf16_generic(const Call &c, Range r) { softmax_lines<bf16_form>(c, r); }

}  // namespace norm
}  // namespace rlx
