// Sums of products of codes, 4 groups of four a vector, for machines that multiply i8 by i8. See product_body.h.
//
// Codes of u8 are moved by 128 on the way: sum of a b = sum of (a - 128) b + 128 * sum of b, whichever of the two is u8. Sums wrap, so it is exact.
#include "../core/rlx_begin.h"

#include "product.h"

#if defined(RLX_NEON)
namespace rlx {
namespace quant {

RLX_TARGET_BEGIN("arch=armv8.2-a+dotprod")
namespace {
constexpr int LANES_Q = 4, GROUP = 4, ROWS = 8;
struct vq { int32x4_t v; };
RLX_FN vq splat_q(int32_t x) { return {vdupq_n_s32(x)}; }
RLX_FN vq load_q(const int32_t *p) { return {vld1q_s32(p)}; }
RLX_FN void store_q(int32_t *p, vq x) { vst1q_s32(p, x.v); }
RLX_FN vq add_q(vq a, vq b) { return {vaddq_s32(a.v, b.v)}; }
RLX_FN int32x4_t dot(int32x4_t c, vq a, vq b) { return vdotq_s32(c, vreinterpretq_s8_s32(a.v), vreinterpretq_s8_s32(b.v)); }
// c + (a - 128) b for a of u8 and b of i8.
RLX_FN vq add_groups(vq c, vq a, vq b) { return {dot(c.v, {veorq_s32(a.v, vdupq_n_s32(int32_t(0x80808080)))}, b)}; }
RLX_FN vq bytes_q(const char *p) { return load_q(reinterpret_cast<const int32_t *>(p)); }
#include "product_body.h"

RLX_FN vq ones() { return {vdupq_n_s32(0x01010101)}; }

template <int H> void bytes_tile(const Tile &t) {
  int32x4_t u = vdupq_n_s32(0), v = u;
  for (int64_t g = 0; g < t.groups; g++) u = dot(u, ones(), bytes_q(t.b + 32 * g)), v = dot(v, ones(), bytes_q(t.b + 32 * g + 16));
  int32_t start[COLUMNS];
  store_q(start, {vaddq_s32(load_q(t.start).v, vshlq_n_s32(u, 7))});
  store_q(start + LANES_Q, {vaddq_s32(load_q(t.start + LANES_Q).v, vshlq_n_s32(v, 7))});
  Tile moved = t;
  moved.start = start;
  tile<H, Wide>(moved);
}

// 128 times the sum of a row's codes.
RLX_FN int32x4_t row_part(const char *row, int64_t groups) {
  int32x4_t s = vdupq_n_s32(0);
  int64_t g = 0;
  for (; g + 4 <= groups; g += 4) s = dot(s, ones(), bytes_q(row + 4 * g));
  int32_t sum = vaddvq_s32(s);
  for (; g < groups; g++) {
    int32_t codes;
    std::memcpy(&codes, row + 4 * g, sizeof codes);
    sum += vgetq_lane_s32(dot(vdupq_n_s32(0), ones(), splat_q(codes)), 0);
  }
  return vdupq_n_s32(int32_t(uint32_t(sum) << 7));
}

template <int H> void windows_tile(const Tile &t) {
  tile<H, Windows>(t);
  for (int i = 0; i < H; i++) {
    int32_t *c = t.c + i * t.c_step;
    const int32x4_t part = row_part(t.a + i * t.a_step, t.groups);
    vst1q_s32(c, vaddq_s32(vld1q_s32(c), part)), vst1q_s32(c + LANES_Q, vaddq_s32(vld1q_s32(c + LANES_Q), part));
  }
}
}  // namespace

const TileSet tiles_dot = {ROWS, COLUMNS, GROUP, 1,
                           {nullptr, bytes_tile<1>, bytes_tile<2>, bytes_tile<3>, bytes_tile<4>, bytes_tile<5>, bytes_tile<6>, bytes_tile<7>, bytes_tile<8>},
                           {},
                           {nullptr, windows_tile<1>, windows_tile<2>, windows_tile<3>, windows_tile<4>, windows_tile<5>, windows_tile<6>, windows_tile<7>, windows_tile<8>},
                           nullptr,
                           finish};

RLX_TARGET_END

}  // namespace quant
}  // namespace rlx

#endif
