// The register tiles under gemm.h, one set per instruction set. Attention uses them directly.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlx {
namespace matmul {

constexpr int kMaxTileRows = 16;
constexpr int kMaxTileCols = 64;

// c[i][j] = (load ? c[i][j] : +0) + a(i,0)*b(0,j) + a(i,1)*b(1,j) + ..., in this order, in one accumulator per element.
// Strides count BYTES. Rows of b and c are contiguous and as wide as the tile. k == 0 stores what it started from.
struct TileF32 {
  const float *a;
  int64_t a_rs, a_cs;
  const float *b;
  int64_t b_rs;
  float *c;
  int64_t c_rs;
  int64_t k;
  int64_t load;
  const void *ahead;  // fetched into the cache while the tile runs: one line, or row of b, per k; may lie outside any object
  int64_t ahead_step;
};

// The assembly reads the fields at these places.
static_assert(offsetof(TileF32, b) == 24 && offsetof(TileF32, c) == 40 && offsetof(TileF32, load) == 64 && offsetof(TileF32, ahead_step) == 80, "layout");

struct TileSetF32 {
  int rows;  // run[1] .. run[rows] exist
  int cols;
  void (*run[kMaxTileRows + 1])(const TileF32 *);
  void (*half[kMaxTileRows + 1])(const TileF32 *);  // the first cols/2 columns only, same bits; null where a set has none
};

extern const TileSetF32 kTilesF32Generic, kTilesF32Avx2, kTilesF32Avx512, kTilesF32Neon;

// The set for isa (an Isa); the generic one for a set without tiles of its own.
const TileSetF32 *gemm_tiles_f32(int isa);

// dst[kk*w + j] = src[kk*sk + j*sj] for j < n, and 0 for n <= j < w. Strides count elements.
void pack_panel_f32(float *dst, int w, const float *src, int64_t sk, int64_t sj, int64_t k, int n);

}  // namespace matmul
}  // namespace rlx
