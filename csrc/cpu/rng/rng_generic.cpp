// Random numbers on any machine. See rng_body.h.
#include "../core/rlx_begin.h"

#include "rng.h"

namespace rlx {
namespace rng {
namespace {
#include "../core/vec_generic.h"
#include "rng_body.h"
}  // namespace

void stream_words(const Stream &s, int64_t u, uint32_t *words) { unit_words(s, u, words); }

void uniform_generic(const Call &c, Range r) { uniform_units(c, r); }
void normal_generic(const Call &c, Range r) { normal_units(c, r); }

}  // namespace rng
}  // namespace rlx
