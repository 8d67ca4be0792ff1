// Steps of recurrent layers of f32, f16 and bf16, 16 lanes. See layer_body.h.
#include "../core/rlx_begin.h"

#include "layer.h"

#if defined(RLX_X86)
namespace rlx {
namespace sequence {

RLX_TARGET_AVX512_BEGIN
namespace {
#include "../core/vec_avx512.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
#include "layer_body.h"
}  // namespace
RLX_TARGET_END

extern const Set set_avx512 = {&matmul::kTilesF32Avx512, form<f32_form>(true), form<f16_form>(), form<bf16_form>()};

}  // namespace sequence
}  // namespace rlx
#endif
