// Tiles and conversions of MatMul for AVX2. See blocked_body.h.
#include "../core/rlx_begin.h"

#include "blocked.h"

#if defined(RLX_X86)
namespace rlx {
namespace matmul {

RLX_TARGET_AVX2_BEGIN
namespace {
constexpr int VEC_BYTES = 32;
typedef double vec_f64 __attribute__((vector_size(32)));
RLX_FN vec_f64 madd(vec_f64 a, vec_f64 b, vec_f64 c) { return (vec_f64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
#include "../core/vec_avx2.h"
#include "blocked_body.h"
}  // namespace
RLX_TARGET_END

extern const BlockedSets blocked_avx2 = {half_set<F16>(&kTilesF32Avx2), half_set<BF16>(&kTilesF32Avx2), plain_set<double>(), plain_set<uint32_t>(), plain_set<uint64_t>()};

}  // namespace matmul
}  // namespace rlx
#endif
