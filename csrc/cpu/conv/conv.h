// What an instruction set does for a convolution of f32, f16 or bf16. Work elements are f32.
#pragma once
#include "../matmul/gemm_tile.h"
#include "window.h"

namespace rlx {
namespace conv {

// len elements of a channel of x, from src on, are columns at, at + 1, ... of a panel.
struct Segment {
  int64_t src;
  int32_t at, len;
};

// How one dtype is read and written.
struct Form {
  int bytes;
  // For count channels, channel elements apart: dst = the segments of src, whose elements are step apart; the first `zero` columns are
  // cleared before. Rows of dst are dst_rs floats apart.
  void (*columns)(float *dst, int64_t dst_rs, const void *src, int64_t channel, int64_t count, const Segment *segments, int n, int64_t step, int zero);
  // dst[kk*h] = src[kk*sk] for kk < k
  void (*spread)(float *dst, int h, const void *src, int64_t sk, int64_t k);
  void (*put)(void *y, const float *sums, int64_t n);
};

// One row of a result channel that reads one channel of x; see depthwise in conv_body.h.
struct DepthRow {
  const Window *w;
  const float *x, *k;  // the channel, and its kernel
  float *y;
  int64_t od, oh;
};

struct ConvSet {
  const matmul::TileSetF32 *tiles;
  Form f32, f16, bf16;
  void (*depth_row)(const DepthRow &);
};
extern const ConvSet conv_generic, conv_avx2, conv_avx512;

}  // namespace conv
}  // namespace rlx
