// Sums of products of codes, 16 pairs a vector. See product_body.h.
#include "../core/rlx_begin.h"

#include "product.h"

#if defined(RLX_X86)
namespace rlx {
namespace quant {

RLX_TARGET_AVX512_BEGIN
namespace {
constexpr int PAIRS = 16;
struct vq { __m512i v; };
RLX_FN vq splat_q(int32_t x) { return {_mm512_set1_epi32(x)}; }
RLX_FN vq load_q(const int32_t *p) { return {_mm512_loadu_si512(reinterpret_cast<const __m512i *>(p))}; }
RLX_FN void store_q(int32_t *p, vq x) { _mm512_storeu_si512(reinterpret_cast<__m512i *>(p), x.v); }
RLX_FN vq add_pairs(vq c, vq a, vq b) { return {_mm512_add_epi32(c.v, _mm512_madd_epi16(a.v, b.v))}; }
#include "product_body.h"
}  // namespace

const TileSet tiles_avx512 = set;

RLX_TARGET_END

}  // namespace quant
}  // namespace rlx

#endif
