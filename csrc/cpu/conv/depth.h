// Depthwise convolutions of f32 with square kernels of 3 or 5 and stride 1 or 2: several rows of results at once, straight from x.
#pragma once
#include "window.h"

namespace rlx {
namespace conv {

struct Form;

// Some rows of results of a channel.
struct DepthRows {
  const float *x;               // row `top` of the channel, which may lie outside
  int64_t pitch, top, size[2];  // between rows; rows and columns of x
  const float *kernel, *bias;   // bias may be null
  float *y;                     // rows of cols
  int64_t rows, cols;
};

// The kernels that there are: size, stride, and columns of padding in front.
enum DepthKind { kDepth311, kDepth320, kDepth321, kDepth512, kDepth521, kDepth522, kDepthKinds };
struct DepthTables {
  void (*run[kDepthKinds])(const DepthRows &);
};

bool depth_fits(const Command &c, const Window &w);
void depth_run(const Call &c, const Window &w, const DepthTables &tables, const Form &form, int isa);

}  // namespace conv
}  // namespace rlx
