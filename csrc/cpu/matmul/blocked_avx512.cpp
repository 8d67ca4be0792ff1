// Tiles and conversions of MatMul for AVX-512. See blocked_body.h.
#include "../core/rlx_begin.h"

#include "blocked.h"

#if defined(RLX_X86)
namespace rlx {
namespace matmul {

RLX_TARGET_AVX512_BEGIN
namespace {
constexpr int VEC_BYTES = 64;
typedef double vec_f64 __attribute__((vector_size(64)));
RLX_FN vec_f64 madd(vec_f64 a, vec_f64 b, vec_f64 c) { return (vec_f64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
#include "../core/vec_avx512.h"
#include "blocked_body.h"
}  // namespace
RLX_TARGET_END

extern const BlockedSets blocked_avx512 = {half_set<F16>(&kTilesF32Avx512), half_set<BF16>(&kTilesF32Avx512), plain_set<double>(), plain_set<uint32_t>(), plain_set<uint64_t>()};

}  // namespace matmul
}  // namespace rlx
#endif
