// Steps of recurrent layers of f32, f16 and bf16, on any machine. See layer_body.h.
#include "../core/rlx_begin.h"

#include "layer.h"

namespace rlx {
namespace sequence {

namespace {
#include "../core/vec_generic.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
#include "layer_body.h"
}  // namespace

extern const Set set_generic = {&matmul::kTilesF32Generic, form<f32_form>(), form<f16_form>(), form<bf16_form>()};

}  // namespace sequence
}  // namespace rlx
