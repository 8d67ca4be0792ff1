// A convolution as kernels that slide over planes of x, with result positions in lanes: where there are few result channels, or windows lie far apart. See
// slide.cpp.
#pragma once
#include "window.h"

namespace rlx {
namespace conv {

constexpr int kMostSliding = 14;  // result channels of a tile

// sums[h*sums_rs + i] = sum over k of w[k][h] * x[offset[k] + i], k ascending in one accumulator.
struct SlideTile {
  const float *x;
  const int32_t *offset;
  int64_t k;
  const float *w;
  float *sums;
  int64_t sums_rs;
};

struct SlideTable {
  int channels, lanes;
  void (*run[kMostSliding + 1])(const SlideTile &, int64_t n);  // [channels]; touches whole vectors of x and of sums
};
extern const SlideTable slide_generic, slide_avx2, slide_avx512, slide_neon;

bool slide_fits(const Command &c, const Window &w, int isa);
int32_t slide_prepare(Prepare &prepare, const Window &w);
void slide_run(const Call &c, const Window &w, int isa);

}  // namespace conv
}  // namespace rlx
