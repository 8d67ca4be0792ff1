// Attention and Rope of f32, f16 and bf16, 4 lanes. See attention_body.h and rope_body.h.
#include "../core/rlx_begin.h"

#include "attention.h"

#if defined(RLX_NEON)
namespace rlx {
namespace attention {

namespace {
#include "../core/vec_neon.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
#include "../norm/power.h"

RLX_FN float32x4_t low_halves(float32x4_t a, float32x4_t b) { return vcombine_f32(vget_low_f32(a), vget_low_f32(b)); }
RLX_FN float32x4_t high_halves(float32x4_t a, float32x4_t b) { return vcombine_f32(vget_high_f32(a), vget_high_f32(b)); }
RLX_FN void columns4(const float *rows, int64_t rs, vf *c) {
  const auto row = [&](int k) __attribute__((always_inline)) { return vld1q_f32(reinterpret_cast<const float *>(reinterpret_cast<const char *>(rows) + k * rs)); };
  const float32x4x2_t ab = vtrnq_f32(row(0), row(1)), xy = vtrnq_f32(row(2), row(3));
  c[0] = {low_halves(ab.val[0], xy.val[0])}, c[1] = {low_halves(ab.val[1], xy.val[1])};
  c[2] = {high_halves(ab.val[0], xy.val[0])}, c[3] = {high_halves(ab.val[1], xy.val[1])};
}

#include "attention_body.h"
#include "rope_body.h"
}  // namespace

extern const Set set_neon = {&matmul::kTilesF32Neon, attention_unit<f32_form>, attention_unit<f16_form>, attention_unit<bf16_form>,
                            rope_token<f32_form>, rope_token<f16_form>, rope_token<bf16_form>};

}  // namespace attention
}  // namespace rlx
#endif
