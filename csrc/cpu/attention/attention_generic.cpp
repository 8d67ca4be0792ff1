// Attention and Rope of f32, f16 and bf16, on any machine. See attention_body.h and rope_body.h.
#include "../core/rlx_begin.h"

#include "attention.h"

namespace rlx {
namespace attention {

namespace {
#include "../core/vec_generic.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
#include "../norm/power.h"

RLX_FN void columns4(const float *rows, int64_t rs, vf *c) {
  float x[4][LANES];
  for (int k = 0; k < LANES; k++)
    for (int t = 0; t < 4; t++) x[t][k] = reinterpret_cast<const float *>(reinterpret_cast<const char *>(rows) + k * rs)[t];
  for (int t = 0; t < 4; t++) c[t] = load(x[t]);
}

#include "attention_body.h"
#include "rope_body.h"
}  // namespace

extern const Set set_generic = {&matmul::kTilesF32Generic, attention_unit<f32_form>, attention_unit<f16_form>, attention_unit<bf16_form>,
                            rope_token<f32_form>, rope_token<f16_form>, rope_token<bf16_form>};

}  // namespace attention
}  // namespace rlx
