// Tiles of NEON: 12 x 8 in 24 registers, the row of b in two, the elements of a in three where they lie side by side.
#include "../core/rlx_begin.h"

#include "gemm_tile.h"

#if defined(RLX_NEON)
namespace rlx {
namespace matmul {
namespace {

RLX_FN const float *step(const float *p, int64_t bytes) { return reinterpret_cast<const float *>(reinterpret_cast<const char *>(p) + bytes); }
RLX_FN float *step(float *p, int64_t bytes) { return reinterpret_cast<float *>(reinterpret_cast<char *>(p) + bytes); }

// Few rows stream b from far away into the first level; many rows take the next panel into the second meanwhile.
template <int R> RLX_FN void fetch(const void *ahead) {
  if constexpr (R <= 4) __builtin_prefetch(ahead, 0, 3);
  else __builtin_prefetch(ahead, 0, 2);
}

template <int R, int V> struct Sums {
  float32x4_t at[R][V];
};

// Rows 4i to 4i + 3 of a, side by side.
template <int V> RLX_FN void add_four(float32x4_t (*sum)[V], float32x4_t a, const float32x4_t *b) {
#pragma GCC unroll 2
  for (int v = 0; v < V; v++) {
    sum[0][v] = vfmaq_laneq_f32(sum[0][v], b[v], a, 0);
    sum[1][v] = vfmaq_laneq_f32(sum[1][v], b[v], a, 1);
    sum[2][v] = vfmaq_laneq_f32(sum[2][v], b[v], a, 2);
    sum[3][v] = vfmaq_laneq_f32(sum[3][v], b[v], a, 3);
  }
}

template <int R, int V, bool Packed> RLX_FN void add_products(const TileF32 *t, Sums<R, V> &sum) {
  const float *a = t->a, *b = t->b;
  const char *ahead = static_cast<const char *>(t->ahead);
  const int64_t rs = t->a_rs, cs = t->a_cs, b_rs = t->b_rs, ahead_step = t->ahead_step;
  for (int64_t k = t->k; k > 0; k--) {
    float32x4_t row[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) row[v] = vld1q_f32(b + 4 * v);
    fetch<R>(ahead);
    if constexpr (Packed) {
#pragma GCC unroll 3
      for (int i = 0; i < R; i += 4) add_four<V>(sum.at + i, vld1q_f32(a + i), row);
    } else {
#pragma GCC unroll 12
      for (int i = 0; i < R; i++) {
        const float32x4_t x = vld1q_dup_f32(step(a, i * rs));
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) sum.at[i][v] = vfmaq_f32(sum.at[i][v], row[v], x);
        if (i % 4 == 3) __asm__ volatile("" ::: "memory");  // loads of all rows at once would leave too few registers
      }
    }
    a = step(a, cs), b = step(b, b_rs), ahead += ahead_step;
  }
}

template <int R, int V> void tile(const TileF32 *t) {
  Sums<R, V> sum;
#pragma GCC unroll 12
  for (int i = 0; i < R; i++) {
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) sum.at[i][v] = t->load ? vld1q_f32(step(t->c, i * t->c_rs) + 4 * v) : vdupq_n_f32(0);
  }
  if (R % 4 == 0 && t->a_rs == int64_t(sizeof(float))) add_products<R, V, R % 4 == 0>(t, sum);
  else add_products<R, V, false>(t, sum);
#pragma GCC unroll 12
  for (int i = 0; i < R; i++) {
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) vst1q_f32(step(t->c, i * t->c_rs) + 4 * v, sum.at[i][v]);
  }
}

}  // namespace

#define TILES(V)                                                                                                                            \
  {nullptr,    tile<1, V>, tile<2, V>, tile<3, V>,  tile<4, V>,  tile<5, V>, tile<6, V>,                                                     \
   tile<7, V>, tile<8, V>, tile<9, V>, tile<10, V>, tile<11, V>, tile<12, V>}
const TileSetF32 kTilesF32Neon = {12, 8, TILES(2), TILES(1)};

}  // namespace matmul
}  // namespace rlx

#endif
