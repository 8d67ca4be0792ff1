// Sums of products of codes, 4 pairs a vector, for machines without instructions of bytes. See product_body.h.
#include "../core/rlx_begin.h"

#include "product.h"

#if defined(RLX_NEON)
namespace rlx {
namespace quant {

namespace {
constexpr int LANES_Q = 4, GROUP = 2, ROWS = 8;
struct vq { int32x4_t v; };
RLX_FN vq splat_q(int32_t x) { return {vdupq_n_s32(x)}; }
RLX_FN vq load_q(const int32_t *p) { return {vld1q_s32(p)}; }
RLX_FN void store_q(int32_t *p, vq x) { vst1q_s32(p, x.v); }
RLX_FN vq add_q(vq a, vq b) { return {vaddq_s32(a.v, b.v)}; }
RLX_FN vq add_groups(vq c, vq a, vq b) {
  const int16x8_t x = vreinterpretq_s16_s32(a.v), y = vreinterpretq_s16_s32(b.v);
  return {vaddq_s32(c.v, vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y)))};
}
RLX_FN vq bytes_q(const char *p) { return {vreinterpretq_s32_s16(vmovl_s8(vld1_s8(reinterpret_cast<const int8_t *>(p))))}; }
#include "product_body.h"

void widen(void *to, const int8_t *from, int64_t codes) {
  for (int64_t i = 0; i < codes; i += 8) vst1q_s16(static_cast<int16_t *>(to) + i, vmovl_s8(vld1_s8(from + i)));
}
}  // namespace

#define TILES(P) RLX_TILES_6(P), tile<7, P>, tile<8, P>
const TileSet tiles_neon = {ROWS, COLUMNS, GROUP, 2, {TILES(Bytes)}, {TILES(Wide)}, {TILES(Wide)}, widen, finish};

}  // namespace quant
}  // namespace rlx

#endif
