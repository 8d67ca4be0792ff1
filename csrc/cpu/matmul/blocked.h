// MatMul of the dtypes that the GEMM engine does not take: f16, bf16, f64 and the integers. One loop nest for all of them, over the tiles and
// conversions of an instruction set.
#pragma once
#include "../core/kernel.h"
#include "gemm_tile.h"

namespace rlx {
namespace matmul {

constexpr int kMaxPlainRows = 6;

// What an instruction set does for one operand dtype. Panels and sums hold work elements: f32 for halves, else the dtype itself.
struct BlockedSet {
  const TileSetF32 *f32;  // the tiles of halves; null for the others, which have those below
  int plain_cols;
  int elem_bytes, work_bytes;
  // panel[kk*w + j] = src[kk*sk + j*sj] for j < n, 0 for n <= j < w.
  void (*pack)(void *panel, int w, const void *src, int64_t sk, int64_t sj, int64_t k, int n);
  // c[i][j] = (load ? c[i][j] : 0) + sum over kk of a[kk*h + i] * b[kk*cols + j], kk ascending, in one accumulator.
  void (*tile[kMaxPlainRows + 1])(const void *a, const void *b, void *c, int64_t c_rs, int64_t k, bool load);
  // Sums to the elements of a result of the operands' dtype.
  void (*put)(void *y, const void *c, int64_t n);

  int rows() const { return f32 != nullptr ? f32->rows : kMaxPlainRows; }
  int cols() const { return f32 != nullptr ? f32->cols : plain_cols; }
};

struct BlockedSets { BlockedSet f16, bf16, f64, u32, u64; };
extern const BlockedSets blocked_generic, blocked_avx2, blocked_avx512, blocked_neon;

}  // namespace matmul
}  // namespace rlx
