// Random numbers, 4 lanes. See rng_body.h.
#include "../core/rlx_begin.h"

#include "rng.h"

#if defined(RLX_NEON)
namespace rlx {
namespace rng {

namespace {
#include "../core/vec_neon.h"
#include "rng_body.h"
}  // namespace

void uniform_neon(const Call &c, Range r) { uniform_units(c, r); }
void normal_neon(const Call &c, Range r) { normal_units(c, r); }

}  // namespace rng
}  // namespace rlx

#endif
