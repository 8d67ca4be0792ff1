// What an instruction set does for a convolution of f32, f16 or bf16. Work elements are f32.
#pragma once
#include "../matmul/of_isa.h"
#include "depth.h"
#include "panel.h"
#include "plane.h"
#include "shallow.h"
#include "tile.h"
#include "winograd.h"

namespace rlx {
namespace conv {

// How one dtype is read and written.
struct Form {
  int bytes;
  // For count channels, channel elements apart: dst = the segments of src, whose elements are step apart; the first `zero` columns are
  // cleared before. Rows of dst are dst_rs floats apart.
  void (*columns)(float *dst, int64_t dst_rs, const void *src, int64_t channel, int64_t count, const Segment *segments, int n, int64_t step, int zero);
  // dst[kk*h] = src[kk*sk] for kk < k
  void (*spread)(float *dst, int h, const void *src, int64_t sk, int64_t k);
  void (*put)(void *y, const float *sums, int64_t n);
  // The planes of a patch of a channel, as plane.h says; pad stands where there is no x.
  void (*lay)(const Window &w, const Plane &p, const Patch &a, const void *channel, float pad, float *to);
};

struct ConvSet {
  Form f32, f16, bf16;
  // sums[i] = sum over t of k[t] * x[offset[t] + i]; touches whole vectors
  void (*depth_sums)(const float *x, const int64_t *offset, const float *k, int64_t taps, float *sums, int64_t n);
  const DepthTable *depth3, *depth5;
  TileTables positions;
  ChannelTiles tiles;
  StripSet strips;
  WinogradTables winograd;
};
extern const ConvSet conv_generic, conv_avx2, conv_avx512, conv_neon;

inline const ConvSet &set_of(int isa) { return matmul::of_isa<conv_generic, conv_avx2, conv_avx512, conv_neon>(isa); }

inline const Form &form_of(const ConvSet &s, uint32_t dtype) { return dtype == RLX_F16 ? s.f16 : dtype == RLX_BF16 ? s.bf16 : s.f32; }

}  // namespace conv
}  // namespace rlx
