// Random numbers, 16 lanes. See rng_body.h.
#include "../core/rlx_begin.h"

#include "rng.h"

#if defined(RLX_X86)
namespace rlx {
namespace rng {

RLX_TARGET_AVX512_BEGIN
namespace {
#include "../core/vec_avx512.h"
#include "rng_body.h"
}  // namespace

void uniform_avx512(const Call &c, Range r) { uniform_units(c, r); }
void normal_avx512(const Call &c, Range r) { normal_units(c, r); }

RLX_TARGET_END

}  // namespace rng
}  // namespace rlx

#endif
