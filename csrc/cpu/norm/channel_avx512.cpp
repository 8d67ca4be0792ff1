// LayerNorm2d, GroupNorm and BatchNormInference of f32, f16 and bf16, 16 lanes. See channel_body.h.
#include "../core/rlx_begin.h"

#include "channel.h"

#if defined(RLX_X86)
namespace rlx {
namespace norm {

RLX_TARGET_AVX512_BEGIN
namespace {
#include "../core/vec_avx512.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "power_avx512.h"
#include "norm_body.h"
#include "channel_body.h"
}  // namespace

void layer_norm2d_f32_avx512(const Call &c, Range r) { sides_of<f32_form>(c, r); }
void layer_norm2d_f16_avx512(const Call &c, Range r) { sides_of<f16_form>(c, r); }
void layer_norm2d_bf16_avx512(const Call &c, Range r) { sides_of<bf16_form>(c, r); }
void group_norm_f32_avx512(const Call &c, Range r) { group_rows<f32_form>(c, r); }
void group_norm_f16_avx512(const Call &c, Range r) { group_rows<f16_form>(c, r); }
void group_norm_bf16_avx512(const Call &c, Range r) { group_rows<bf16_form>(c, r); }
void batch_norm_f32_avx512(const Call &c, Range r) { batch_rows<f32_form>(c, r); }
void batch_norm_f16_avx512(const Call &c, Range r) { batch_rows<f16_form>(c, r); }
void batch_norm_bf16_avx512(const Call &c, Range r) { batch_rows<bf16_form>(c, r); }

RLX_TARGET_END

}  // namespace norm
}  // namespace rlx

#endif
