// Depthwise convolutions of f32 with square kernels of 3 or 5 and strides of 1 or 2: several rows of results at once, straight from x.
#pragma once
#include "finish.h"
#include "window.h"

namespace rlx {
namespace conv {

struct Form;

// Some rows of results of a channel.
struct DepthRows {
  const float *x;               // row `top` of the channel, which may lie outside
  int64_t pitch, top, size[2];  // between rows; rows and columns of x
  const float *kernel;
  Finish finish;                // without a residual
  float *y;                     // rows of cols
  int64_t rows, cols;
  bool ahead;                   // fetch what lies behind these rows in x and in y meanwhile
};

// The kernels of a size that there are: strides of rows and columns, and columns of padding in front, which are half the size or one less.
enum DepthKind { kDepth11, kDepth21, kDepth22, kDepth22Less, kDepthKinds };
struct DepthTable {
  void (*run[kDepthKinds])(const DepthRows &);
};
extern const DepthTable depth3_generic, depth3_avx2, depth3_avx512, depth3_neon, depth5_generic, depth5_avx2, depth5_avx512, depth5_neon;

bool depth_fits(const Command &c, const Window &w);
void depth_run(const Call &c, const Window &w, const DepthTable &table, const Form &form, int isa);

}  // namespace conv
}  // namespace rlx
