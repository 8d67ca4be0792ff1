// Sums of products of codes, 16 pairs a vector, for machines without instructions of bytes. See product_body.h.
#include "../core/rlx_begin.h"

#include "product.h"

#if defined(RLX_X86)
namespace rlx {
namespace quant {

RLX_TARGET_AVX512_BEGIN
namespace {
constexpr int LANES_Q = 16, GROUP = 2, ROWS = 12;
struct vq { __m512i v; };
RLX_FN vq splat_q(int32_t x) { return {_mm512_set1_epi32(x)}; }
RLX_FN vq load_q(const int32_t *p) { return {_mm512_loadu_si512(p)}; }
RLX_FN void store_q(int32_t *p, vq x) { _mm512_storeu_si512(p, x.v); }
RLX_FN vq add_q(vq a, vq b) { return {_mm512_add_epi32(a.v, b.v)}; }
RLX_FN vq add_groups(vq c, vq a, vq b) { return {_mm512_add_epi32(c.v, _mm512_madd_epi16(a.v, b.v))}; }
RLX_FN vq bytes_q(const char *p) { return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)))}; }
#include "product_body.h"

void widen(void *to, const int8_t *from, int64_t codes) {
  for (int64_t i = 0; i < codes; i += 32) _mm512_storeu_si512(static_cast<int16_t *>(to) + i, bytes_q(reinterpret_cast<const char *>(from) + i).v);
}
}  // namespace

const TileSet tiles_avx512 = {ROWS, COLUMNS, GROUP, 2, {RLX_TILES_12(Bytes)}, {RLX_TILES_12(Wide)}, {RLX_TILES_12(Wide)}, widen, finish};

RLX_TARGET_END

}  // namespace quant
}  // namespace rlx

#endif
