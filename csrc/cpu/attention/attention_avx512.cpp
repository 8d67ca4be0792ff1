// Attention and Rope of f32, f16 and bf16, 16 lanes. See attention_body.h and rope_body.h.
#include "../core/rlx_begin.h"

#include "attention.h"

#if defined(RLX_X86)
namespace rlx {
namespace attention {

RLX_TARGET_AVX512_BEGIN
namespace {
#include "../core/vec_avx512.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
#include "attention_body.h"
#include "rope_body.h"
}  // namespace
RLX_TARGET_END

extern const Set set_avx512 = {&matmul::kTilesF32Avx512, attention_unit<f32_form>, attention_unit<f16_form>, attention_unit<bf16_form>,
                            rope_token<f32_form>, rope_token<f16_form>, rope_token<bf16_form>};

}  // namespace attention
}  // namespace rlx
#endif
