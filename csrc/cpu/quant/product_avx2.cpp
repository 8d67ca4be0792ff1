// Sums of products of codes, 8 pairs a vector. See product_body.h.
#include "../core/rlx_begin.h"

#include "product.h"

#if defined(RLX_X86)
namespace rlx {
namespace quant {

RLX_TARGET_AVX2_BEGIN
namespace {
constexpr int PAIRS = 8;
struct vq { __m256i v; };
RLX_FN vq splat_q(int32_t x) { return {_mm256_set1_epi32(x)}; }
RLX_FN vq load_q(const int32_t *p) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i *>(p))}; }
RLX_FN void store_q(int32_t *p, vq x) { _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), x.v); }
RLX_FN vq add_pairs(vq c, vq a, vq b) { return {_mm256_add_epi32(c.v, _mm256_madd_epi16(a.v, b.v))}; }
#include "product_body.h"
}  // namespace

const TileSet tiles_avx2 = set;

RLX_TARGET_END

}  // namespace quant
}  // namespace rlx

#endif
