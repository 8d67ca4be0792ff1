// Sums of products of codes, 4 pairs a vector, on any machine. See product_body.h.
#include "../core/rlx_begin.h"

#include "product.h"

namespace rlx {
namespace quant {
namespace {

constexpr int LANES_Q = 4, GROUP = 2, ROWS = 6;
#if defined(RLX_X86)
struct vq { __m128i v; };
RLX_FN vq splat_q(int32_t x) { return {_mm_set1_epi32(x)}; }
RLX_FN vq load_q(const int32_t *p) { return {_mm_loadu_si128(reinterpret_cast<const __m128i *>(p))}; }
RLX_FN void store_q(int32_t *p, vq x) { _mm_storeu_si128(reinterpret_cast<__m128i *>(p), x.v); }
RLX_FN vq add_q(vq a, vq b) { return {_mm_add_epi32(a.v, b.v)}; }
RLX_FN vq add_groups(vq c, vq a, vq b) { return {_mm_add_epi32(c.v, _mm_madd_epi16(a.v, b.v))}; }
RLX_FN vq bytes_q(const char *p) {
  const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i *>(p));
  return {_mm_srai_epi16(_mm_unpacklo_epi8(x, x), 8)};
}
#else
struct vq { int32_t v[LANES_Q]; };
RLX_FN vq splat_q(int32_t x) { return {{x, x, x, x}}; }
RLX_FN vq load_q(const int32_t *p) { return {{p[0], p[1], p[2], p[3]}}; }
RLX_FN void store_q(int32_t *p, vq x) { std::memcpy(p, x.v, sizeof x.v); }
RLX_FN vq add_q(vq a, vq b) {
  for (int i = 0; i < LANES_Q; i++) a.v[i] = int32_t(uint32_t(a.v[i]) + uint32_t(b.v[i]));
  return a;
}
RLX_FN vq add_groups(vq c, vq a, vq b) {
  int16_t x[2 * LANES_Q], y[2 * LANES_Q];
  std::memcpy(x, a.v, sizeof x), std::memcpy(y, b.v, sizeof y);
  for (int i = 0; i < LANES_Q; i++) c.v[i] = int32_t(uint32_t(c.v[i]) + uint32_t(x[2 * i] * y[2 * i]) + uint32_t(x[2 * i + 1] * y[2 * i + 1]));
  return c;
}
RLX_FN vq bytes_q(const char *p) {
  int16_t x[2 * LANES_Q];
  for (int i = 0; i < 2 * LANES_Q; i++) x[i] = int8_t(p[i]);
  vq v;
  std::memcpy(v.v, x, sizeof x);
  return v;
}
#endif
#include "product_body.h"

void widen(void *to, const int8_t *from, int64_t codes) {
  for (int64_t i = 0; i < codes; i++) static_cast<int16_t *>(to)[i] = from[i];
}

}  // namespace

const TileSet tiles_generic = {ROWS, COLUMNS, GROUP, 2, {RLX_TILES_6(Bytes)}, {RLX_TILES_6(Wide)}, {RLX_TILES_6(Wide)}, widen, finish};

}  // namespace quant
}  // namespace rlx
