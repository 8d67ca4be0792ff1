// Steps of recurrent layers of f32, f16 and bf16, 4 lanes. See layer_body.h.
#include "../core/rlx_begin.h"

#include "layer.h"

#if defined(RLX_NEON)
namespace rlx {
namespace sequence {

namespace {
#include "../core/vec_neon.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
#include "layer_body.h"
}  // namespace

extern const Set set_neon = {&matmul::kTilesF32Neon, form<f32_form>(true), form<f16_form>(), form<bf16_form>()};

}  // namespace sequence
}  // namespace rlx
#endif
