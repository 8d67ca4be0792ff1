// Pool of f32, f16 and bf16, 16 lanes. See pool_body.h.
#include "../core/rlx_begin.h"

#include "pool.h"

#if defined(RLX_X86)
namespace rlx {
namespace pool {

RLX_TARGET_AVX512_BEGIN
namespace {
#include "../core/vec_avx512.h"
#include "../reduce/forms.h"
#include "pool_body.h"
}  // namespace

void pool_f32_avx512(const Call &c, Range) { pool_all<f32_form>(c, conv::conv_avx512.f32); }
void pool_f16_avx512(const Call &c, Range) { pool_all<f16_form>(c, conv::conv_avx512.f16); }
void pool_bf16_avx512(const Call &c, Range) { pool_all<bf16_form>(c, conv::conv_avx512.bf16); }

RLX_TARGET_END

}  // namespace pool
}  // namespace rlx

#endif
