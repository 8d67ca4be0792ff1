// Sums of products of codes, 4 pairs a vector, on any machine. See product_body.h.
#include "../core/rlx_begin.h"

#include "product.h"

namespace rlx {
namespace quant {
namespace {

constexpr int PAIRS = 4;
#if defined(RLX_X86)
struct vq { __m128i v; };
RLX_FN vq splat_q(int32_t x) { return {_mm_set1_epi32(x)}; }
RLX_FN vq load_q(const int32_t *p) { return {_mm_loadu_si128(reinterpret_cast<const __m128i *>(p))}; }
RLX_FN void store_q(int32_t *p, vq x) { _mm_storeu_si128(reinterpret_cast<__m128i *>(p), x.v); }
RLX_FN vq add_pairs(vq c, vq a, vq b) { return {_mm_add_epi32(c.v, _mm_madd_epi16(a.v, b.v))}; }
#else
struct vq { int32_t v[PAIRS]; };
RLX_FN vq splat_q(int32_t x) { return {{x, x, x, x}}; }
RLX_FN vq load_q(const int32_t *p) { return {{p[0], p[1], p[2], p[3]}}; }
RLX_FN void store_q(int32_t *p, vq x) { std::memcpy(p, x.v, sizeof x.v); }
RLX_FN int32_t low(int32_t x) { return int16_t(uint32_t(x)); }
RLX_FN int32_t high(int32_t x) { return int16_t(uint32_t(x) >> 16); }
RLX_FN vq add_pairs(vq c, vq a, vq b) {
  for (int i = 0; i < PAIRS; i++) c.v[i] = int32_t(uint32_t(c.v[i]) + uint32_t(low(a.v[i]) * low(b.v[i])) + uint32_t(high(a.v[i]) * high(b.v[i])));
  return c;
}
#endif
#include "product_body.h"

}  // namespace

const TileSet tiles_generic = set;

}  // namespace quant
}  // namespace rlx
