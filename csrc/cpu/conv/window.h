// The geometry of a sliding window, on three spatial axes: missing ones in front have length 1.
#pragma once
#include "../core/kernel.h"

namespace rlx {
namespace conv {

struct Window {
  int64_t items, channels, size[3];  // of x
  int64_t kernel[3], out[3], stride[3], dilation[3], begin[3];
  int64_t xs[5];                     // strides of x: item, channel, three axes
  int64_t taps, points;              // kernel and result positions

  // Of a convolution only. per and outs count the channels of one group.
  int64_t groups, per, outs;
  int64_t ws[5];                     // strides of w: result channel, channel of the group, three axes
};

Window window_of_conv(const Command &c);
Window window_of_im2col(const Command &c);

// The result positions [lo, hi) along an axis that see x through kernel position k.
inline void seen(const Window &w, int axis, int64_t k, int64_t *lo, int64_t *hi) {
  const int64_t first = w.begin[axis] - k * w.dilation[axis], s = w.stride[axis];  // result position p sees p*s - first
  int64_t l = first > 0 ? (first + s - 1) / s : 0;
  int64_t h = w.size[axis] + first > 0 ? (w.size[axis] + first + s - 1) / s : 0;
  if (h > w.out[axis]) h = w.out[axis];
  if (l > h) l = h;
  *lo = l, *hi = h;
}

}  // namespace conv
}  // namespace rlx
