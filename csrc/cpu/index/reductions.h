// reductions.h: how an update meets what is there, for ScatterNd and ScatterElements. Integers wrap, max and min keep NaN, c64 orders by
// the real part and then the imaginary one.
#pragma once
#include "index.h"
#include "../elementwise/convert.h"

namespace rlx {
namespace index {

// A line of updates: update i, at u + i*u_step, meets element at + (places == null ? i : places[i]) of y. sums stands beside y where
// values stay in f32 until the last update.
struct Line {
  void *y;
  float *sums;
  const void *u;
  const int64_t *places;
  int64_t at, u_step, n;
};
typedef void (*Step)(const Line &);

// The steps of a reduction: each is taken for all lines before the next one begins.
struct Steps {
  int count = 0;
  Step step[3] = {};
};

Steps steps_of(uint32_t dtype, int reduction);

// Bytes of memory that the reduction needs beside y.
inline int64_t sums_bytes(const Operand &y, int64_t reduction) {
  const bool half = y.dtype == RLX_F16 || y.dtype == RLX_BF16;
  return half && (reduction == rlx_ScatterReduction_add || reduction == rlx_ScatterReduction_mul) ? 4 * y.count : 0;
}

}  // namespace index
}  // namespace rlx
