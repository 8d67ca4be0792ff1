// Panels of the windows of a row of results, for convolutions of f32 with few channels and kernel positions.
#pragma once
#include "window.h"

namespace rlx {
namespace conv {

// The windows of one or two vectors of results of a row, [channel][kernel position][2 vectors]: zeros where there is no x.
struct ShallowPanel {
  const Window *window;
  const float *x;     // channel 0 of the group
  int64_t top, left;  // row and column of the first window
  bool wide;          // two vectors
  float *to;
};

}  // namespace conv
}  // namespace rlx
