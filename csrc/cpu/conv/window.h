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

Window window_of_conv(const Command &c);  // FusedConvBiasAct too
Window window_of_kernel(const Operand &w, int64_t groups);  // what is known of a convolution by its w
// Gives back the w that was packed as row panels of each group, [depth][height of the panel], whose heights differ by one at most (see Unpack).
// how is the groups and the most rows of a panel.
void unpack_rows(const Operand &w, const int64_t *how, const char *packed, char *raw);
Window window_of_im2col(const Command &c);
// Of a transposed convolution: the windows of the convolution that leads from its result back to x, so size is that of the result, and xs
// and items are those of the result too. per and outs count channels of x and of the result in a group; there is no ws.
Window window_of_transpose(const Command &c);

// The lists of a window kind. Empty ones mean 1s, padding 0s.
struct Lists {
  const Ints *stride, *dilation, *padding;
  int64_t auto_pad;
};
// The spatial part and strides of windows over x with the given kernel. out is what Infer found: it says how far the window goes, so that
// the padding behind is not needed; null leaves it 1.
void fill_window(Window *w, const Operand &x, const int64_t *kernel, const int64_t *out, const Lists &l);

// Floats up to the next 64 bytes.
inline int64_t align16(int64_t floats) { return (floats + 15) & ~int64_t(15); }

// Two result channels of a group at most, of one channel of x: what conv.cpp computes by sliding, if its planes fit.
inline bool few_of_one(const Window &w) { return w.per == 1 && w.outs <= 2; }

// a / b rounded up, for a >= 0 and any b: strides and dilations are mostly 1, and a division takes as long as a row of results.
inline int64_t steps(int64_t a, int64_t b) { return b == 1 ? a : a > 0 ? (a - 1) / b + 1 : 0; }

// To be called when a window is complete: the stride of an axis with one result and the dilation of one with one kernel position mean
// nothing and may be anything up to 2^63 - 1. They become 1, so that no product with them overflows.
inline void settle(Window *w) {
  for (int a = 0; a < 3; a++) {
    if (w->out[a] <= 1) w->stride[a] = 1;
    if (w->kernel[a] == 1) w->dilation[a] = 1;
  }
}

// Windows of one element, as many as x has, whose positions lie one beside the other in x as they do in the result.
inline bool side_by_side(const Window &w) {
  if (w.taps != 1) return false;
  for (int a = 0; a < 3; a++)
    if (w.size[a] != w.out[a] || w.stride[a] != 1 || w.begin[a] != 0) return false;
  if (w.size[2] > 1 && w.xs[4] != 1) return false;
  return (w.size[0] == 1 || w.xs[2] == w.size[1] * w.size[2]) && (w.size[1] == 1 || w.xs[3] == w.size[2]);
}

// The result positions [lo, hi) along an axis that see x through kernel position k.
inline void seen(const Window &w, int axis, int64_t k, int64_t *lo, int64_t *hi) {
  const int64_t first = w.begin[axis] - k * w.dilation[axis], s = w.stride[axis];  // result position p sees p*s - first
  int64_t l = first > 0 ? steps(first, s) : 0;
  int64_t h = w.size[axis] + first > 0 ? steps(w.size[axis] + first, s) : 0;
  if (h > w.out[axis]) h = w.out[axis];
  if (l > h) l = h;
  *lo = l, *hi = h;
}

// The kernel positions [lo, hi) along an axis through which result position p sees an axis of size elements, begin elements of padding
// before them.
inline void inside(const Window &w, int axis, int64_t p, int64_t begin, int64_t size, int64_t *lo, int64_t *hi) {
  const int64_t first = p * w.stride[axis] - begin, d = w.dilation[axis];
  *lo = first < 0 ? steps(-first, d) : 0;
  *hi = first < size ? steps(size - first, d) : 0;
  if (*hi > w.kernel[axis]) *hi = w.kernel[axis];
  if (*lo > *hi) *lo = *hi;
}
inline void inside(const Window &w, int axis, int64_t p, int64_t *lo, int64_t *hi) { inside(w, axis, p, w.begin[axis], w.size[axis], lo, hi); }

// A stretch of the columns of a panel of windows that is one row of one item of the result. Columns are result positions, item by item.
struct Stretch {
  int64_t item, od, oh, ow;  // of its first column
  int32_t at, len;
};
// Those of columns [first, first + n); returns how many.
int stretches(const Window &w, int64_t first, int64_t n, Stretch *list);

// len elements of a channel of x, from src on and w.stride[2] apart, are columns at, at + 1, ... of a panel.
struct Segment {
  int64_t src;
  int32_t at, len;
};
// What kernel position t sees of x in each stretch; returns how many columns that are.
int64_t segments(const Window &w, int64_t t, const Stretch *list, int count, Segment *out, int *n);

}  // namespace conv
}  // namespace rlx
