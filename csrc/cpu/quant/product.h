// product.h: what the files of QMatMul and QConv2d share: sums of products of codes minus their zero points. Such numbers have 9 bits and lie as
// i16, two neighbours along k in 32 bits; each pair of products goes to 32 bits, and sums wrap there.
//
// Rows are [rows][k2] pairs, panels [k2][columns] pairs, k2 = ceil(k / 2), filled up with zeros.
#pragma once
#include "../matmul/of_isa.h"
#include "quant.h"

namespace rlx {
namespace quant {

constexpr int MAX_COLUMNS = 32;  // of a panel

// Operand i, or null where it is absent.
template <class T> const T *operand(const Call &c, int i) { return c.has(i) ? c.in_ptr<T>(i) : nullptr; }

inline int32_t code_pair(int a, int b) { return int32_t(uint32_t(uint16_t(a)) | uint32_t(uint16_t(b)) << 16); }

// k codes to k2 pairs.
template <class T> void pack_row(int32_t *to, const T *from, int64_t k, int zero) {
  int64_t i = 0;
  for (; i + 1 < k; i += 2) to[i / 2] = code_pair(from[i] - zero, from[i + 1] - zero);
  if (i < k) to[i / 2] = code_pair(from[i] - zero, 0);
}

// Columns [0, n) of a k x stride matrix to a panel of w columns.
template <class T> void pack_panel(int32_t *to, int w, const T *from, int64_t stride, int64_t k, int n, int zero) {
  for (int64_t i = 0; i < k; i += 2, to += w) {
    const T *a = from + i * stride, *b = a + stride;
    if (i + 1 < k) for (int j = 0; j < n; j++) to[j] = code_pair(a[j] - zero, b[j] - zero);
    else for (int j = 0; j < n; j++) to[j] = code_pair(a[j] - zero, 0);
    for (int j = n; j < w; j++) to[j] = 0;
  }
}

// How sums become results.
struct Requant {
  uint32_t dtype;
  Ends ends;
  int32_t zero;
  float multiplier;         // of all channels, where there are none of their own
  const int32_t *bias;      // one a channel, or null
  const float *multipliers;
};

// An instruction set's tile: c[i][j] = sum over kk of the products of the pairs a[i*k2 + kk] and b[kk*columns + j].
struct TileSet {
  int columns;
  void (*tile[5])(const int32_t *a, int64_t k2, const int32_t *b, int32_t *c);  // of 1 to 4 rows
  // The results y[at + j] of n sums: channel j, or all of one channel where step is 0.
  void (*finish)(const Requant &q, void *y, int64_t at, const int32_t *sums, int n, int64_t channel, int step);
};

extern const TileSet tiles_generic, tiles_avx2, tiles_avx512;
inline const TileSet &tiles_of(int isa) { return matmul::of_isa<tiles_generic, tiles_avx2, tiles_avx512>(isa); }

}  // namespace quant
}  // namespace rlx
