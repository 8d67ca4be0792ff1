// Tiles and conversions of MatMul for NEON. See blocked_body.h.
#include "../core/rlx_begin.h"

#include "blocked.h"

#if defined(RLX_NEON)
namespace rlx {
namespace matmul {

namespace {
constexpr int VEC_BYTES = 16;
typedef double vec_f64 __attribute__((vector_size(16)));
RLX_FN vec_f64 madd(vec_f64 a, vec_f64 b, vec_f64 c) { return (vec_f64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b); }
#include "../core/vec_neon.h"
#include "blocked_body.h"
}  // namespace

extern const BlockedSets blocked_neon = {half_set<F16>(&kTilesF32Neon), half_set<BF16>(&kTilesF32Neon), plain_set<double>(), plain_set<uint32_t>(), plain_set<uint64_t>()};

}  // namespace matmul
}  // namespace rlx
#endif
