// Tiles and conversions of MatMul for SSE2 or what every machine has. See blocked_body.h.
#include "../core/rlx_begin.h"

#include "blocked.h"

namespace rlx {
namespace matmul {

namespace {
constexpr int VEC_BYTES = 16;
typedef double vec_f64 __attribute__((vector_size(16)));
RLX_FN vec_f64 madd(vec_f64 a, vec_f64 b, vec_f64 c) { return a * b + c; }
#include "../core/vec_generic.h"
#include "blocked_body.h"
}  // namespace

extern const BlockedSets blocked_generic = {half_set<F16>(&kTilesF32Generic), half_set<BF16>(&kTilesF32Generic), plain_set<double>(), plain_set<uint32_t>(), plain_set<uint64_t>()};

}  // namespace matmul
}  // namespace rlx
