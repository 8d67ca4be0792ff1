// Sums of products of codes, 16 groups of four a vector. See product_body.h.
#include "../core/rlx_begin.h"

#include "product.h"

#if defined(RLX_X86)
namespace rlx {
namespace quant {

RLX_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c,bmi2")
namespace {
constexpr int LANES_Q = 16, GROUP = 4, ROWS = 14;
struct vq { __m512i v; };
RLX_FN vq splat_q(int32_t x) { return {_mm512_set1_epi32(x)}; }
RLX_FN vq load_q(const int32_t *p) { return {_mm512_loadu_si512(p)}; }
RLX_FN void store_q(int32_t *p, vq x) { _mm512_storeu_si512(p, x.v); }
RLX_FN vq add_q(vq a, vq b) { return {_mm512_add_epi32(a.v, b.v)}; }
RLX_FN vq add_groups(vq c, vq a, vq b) { return {_mm512_dpbusd_epi32(c.v, a.v, b.v)}; }
RLX_FN vq bytes_q(const char *p) { return {_mm512_loadu_si512(p)}; }
#include "product_body.h"
}  // namespace

const TileSet tiles_vnni = {ROWS, COLUMNS, GROUP, 1,
                            {RLX_TILES_12(Wide), tile<13, Wide>, tile<14, Wide>},
                            {},
                            {RLX_TILES_12(Windows), tile<13, Windows>, tile<14, Windows>},
                            nullptr,
                            finish};

RLX_TARGET_END

}  // namespace quant
}  // namespace rlx

#endif
