// Pool of f32, f16 and bf16, 4 lanes. See pool_body.h.
#include "../core/rlx_begin.h"

#include "pool.h"

#if defined(RLX_NEON)
namespace rlx {
namespace pool {

namespace {
#include "../core/vec_neon.h"
#include "../reduce/forms.h"
#include "pool_body.h"
}  // namespace

void pool_f32_neon(const Call &c, Range) { pool_all<f32_form>(c, conv::conv_neon.f32); }
void pool_f16_neon(const Call &c, Range) { pool_all<f16_form>(c, conv::conv_neon.f16); }
void pool_bf16_neon(const Call &c, Range) { pool_all<bf16_form>(c, conv::conv_neon.bf16); }

}  // namespace pool
}  // namespace rlx

#endif
