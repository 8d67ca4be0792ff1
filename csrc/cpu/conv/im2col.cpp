// Im2Col, and convolutions of f64.
#include "../core/rlx_begin.h"

#include "ending.h"
#include "window.h"

namespace rlx {
namespace conv {
namespace {

// One row: every channel and kernel position of one window. Bits move unchanged; zero bits are +0 in every dtype.
template <class T> void window_row(const Window &w, const T *x, int64_t item, int64_t p, T *y) {
  const int64_t at[3] = {p / (w.out[1] * w.out[2]), p / w.out[2] % w.out[1], p % w.out[2]};
  int64_t first[3];
  for (int a = 0; a < 3; a++) first[a] = at[a] * w.stride[a] - w.begin[a];
  for (int64_t c = 0; c < w.channels; c++)
    for (int64_t kd = 0; kd < w.kernel[0]; kd++)
      for (int64_t kh = 0; kh < w.kernel[1]; kh++) {
        const int64_t d = first[0] + kd * w.dilation[0], h = first[1] + kh * w.dilation[1];
        const bool row = d >= 0 && d < w.size[0] && h >= 0 && h < w.size[1];
        const T *from = x + item * w.xs[0] + c * w.xs[1] + (row ? d * w.xs[2] + h * w.xs[3] : 0);
        int64_t v = first[2];
        for (int64_t kw = 0; kw < w.kernel[2]; kw++, v += w.dilation[2]) *y++ = row && v >= 0 && v < w.size[2] ? from[v * w.xs[4]] : T(0);
      }
}

template <class T> void window_rows(const Call &c, Range r) {
  const Window w = window_of_im2col(*c.cmd);
  const int64_t n = w.channels * w.taps;
  T *y = c.out_ptr<T>(0) + r.begin * n;
  for (int64_t u = r.begin; u < r.end && !c.stopped(); u++, y += n) window_row<T>(w, c.in_ptr<T>(0), u / w.points, u % w.points, y);
}

}  // namespace

void im2col(const Call &c, Range r) {
  switch (rlx_dtype_sizes[c.out(0).dtype]) {
    case 2: return window_rows<uint16_t>(c, r);
    case 4: return window_rows<uint32_t>(c, r);
    default: return window_rows<uint64_t>(c, r);
  }
}

// Units are rows of result 0. Contract: channels, then kernel positions ascending, in one f64 accumulator per element. Bound: 2 K eps
// sum |w||x|.
void conv_f64(const Call &c, Range r) {
  const Window w = window_of_conv(*c.cmd);
  const Ending ending = ending_of(c, ISA_GENERIC);
  const int64_t outs = w.groups * w.outs, step = w.stride[2] * w.xs[4];
  for (int64_t u = r.begin; u < r.end && !c.stopped(); u++) {
    const int64_t oh = u % w.out[1], od = u / w.out[1] % w.out[0], o = u / (w.out[1] * w.out[0]) % outs, item = u / (w.out[1] * w.out[0] * outs);
    double *y = c.out_ptr<double>(0) + u * w.out[2];
    for (int64_t i = 0; i < w.out[2]; i++) y[i] = 0;
    const double *x = c.in_ptr<double>(0) + item * w.xs[0] + o / w.outs * w.per * w.xs[1], *k = c.in_ptr<double>(1) + o * w.ws[0];
    for (int64_t t = 0; t < w.per * w.taps; t++) {
      const int64_t kw = t % w.kernel[2], kh = t / w.kernel[2] % w.kernel[1], kd = t / (w.kernel[2] * w.kernel[1]) % w.kernel[0], ch = t / w.taps;
      const int64_t d = od * w.stride[0] + kd * w.dilation[0] - w.begin[0], h = oh * w.stride[1] + kh * w.dilation[1] - w.begin[1];
      if (d < 0 || d >= w.size[0] || h < 0 || h >= w.size[1]) continue;
      const double v = k[ch * w.ws[1] + kd * w.ws[2] + kh * w.ws[3] + kw * w.ws[4]];
      int64_t lo, hi;
      seen(w, 2, kw, &lo, &hi);
      const double *from = x + ch * w.xs[1] + d * w.xs[2] + h * w.xs[3] + (kw * w.dilation[2] - w.begin[2]) * w.xs[4];
      for (int64_t i = lo; i < hi; i++) y[i] += v * from[i * step];
    }
    if (ending.present) end_row_f64(ending, y, w.out[2], o, u * w.out[2]);
  }
}

// A row of f64 costs as much as its sums.
Split sum_rows(const Call &c) {
  const Window w = window_of_conv(*c.cmd);
  return {w.items * w.groups * w.outs * w.out[0] * w.out[1], 1 + 65536 / max64(1, min64(w.out[2] * w.per * w.taps, 65536))};
}

}  // namespace conv
}  // namespace rlx
