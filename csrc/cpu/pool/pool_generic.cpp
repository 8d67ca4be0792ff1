// Pool of f32, f16 and bf16, on any machine. See pool_body.h.
#include "../core/rlx_begin.h"

#include "pool.h"

namespace rlx {
namespace pool {

namespace {
#include "../core/vec_generic.h"
#include "../reduce/forms.h"
#include "pool_body.h"
}  // namespace

void pool_f32_generic(const Call &c, Range) { pool_all<f32_form>(c, conv::conv_generic.f32); }
void pool_f16_generic(const Call &c, Range) { pool_all<f16_form>(c, conv::conv_generic.f16); }
void pool_bf16_generic(const Call &c, Range) { pool_all<bf16_form>(c, conv::conv_generic.bf16); }

}  // namespace pool
}  // namespace rlx
