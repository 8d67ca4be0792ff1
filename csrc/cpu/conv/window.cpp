#include "../core/rlx_begin.h"

#include "window.h"

namespace rlx {
namespace conv {
namespace {

// Padding in front: r entries pad both sides alike, 2r are all begins, then all ends.
int64_t begin_of(const Lists &l, int axis, int64_t size, int64_t eff, int64_t stride) {
  if (l.auto_pad == rlx_AutoPad_none) return l.padding->n > 0 ? l.padding->v[axis] : 0;
  if (l.auto_pad == rlx_AutoPad_valid) return 0;
  const int64_t out = steps(size, stride), need = (out - 1) * stride + eff - size, total = need > 0 ? need : 0;
  return l.auto_pad == rlx_AutoPad_same_upper ? total / 2 : total - total / 2;
}

}  // namespace

void fill_window(Window *w, const Operand &x, const int64_t *kernel, const int64_t *out, const Lists &l) {
  const int r = int(x.rank) - 2;
  w->items = x.dims[0], w->channels = x.dims[1];
  w->xs[0] = x.strides[0], w->xs[1] = x.strides[1];
  for (int a = 0; a < 3; a++) {
    w->size[a] = w->kernel[a] = w->out[a] = w->stride[a] = w->dilation[a] = 1;
    w->begin[a] = w->xs[2 + a] = 0;
  }
  w->taps = w->points = 1;
  for (int i = 0; i < r; i++) {
    const int a = 3 - r + i;
    w->size[a] = x.dims[2 + i], w->kernel[a] = kernel[i], w->xs[2 + a] = x.strides[2 + i];
    w->stride[a] = l.stride->n > 0 ? l.stride->v[i] : 1;
    w->dilation[a] = l.dilation->n > 0 ? l.dilation->v[i] : 1;
    const int64_t eff = w->dilation[a] * (w->kernel[a] - 1) + 1;
    w->begin[a] = begin_of(l, i, w->size[a], eff, w->stride[a]);
    w->taps *= w->kernel[a];
    if (out != nullptr) w->out[a] = out[i];
    w->points *= w->out[a];
  }
}

namespace {

void set_kernel(Window *w, const Operand &k, int64_t groups) {
  w->groups = groups, w->per = k.dims[1], w->outs = k.dims[0] / groups;
  w->ws[0] = k.strides[0], w->ws[1] = k.strides[1];
  for (uint32_t i = 2; i < k.rank; i++) w->ws[5 - k.rank + i] = k.strides[i];
}

}  // namespace

Window window_of_kernel(const Operand &k, int64_t groups) {
  Window w = {};
  w.taps = 1;
  for (int a = 0; a < 3; a++) w.kernel[a] = 1;
  for (uint32_t i = 2; i < k.rank; i++) w.taps *= w.kernel[3 - k.rank + i] = k.dims[i];
  set_kernel(&w, k, groups);
  return w;
}

void unpack_rows(const Operand &v, const int64_t *how, const char *packed, char *raw) {
  const Window w = window_of_kernel(v, how[0]);
  const int64_t panels = (w.outs + how[1] - 1) / how[1];
  const float *from = reinterpret_cast<const float *>(packed);
  for (int64_t u = 0, first = 0; u < w.groups * panels; u++) {
    const int64_t height = w.outs / panels + (u % panels < w.outs % panels ? 1 : 0);
    float *to = reinterpret_cast<float *>(raw) + first * w.ws[0];
    for (int64_t d = 0; d < w.per * w.taps; d++) {
      const int64_t t = d % w.taps, kw = t % w.kernel[2], kh = t / w.kernel[2] % w.kernel[1], kd = t / w.kernel[2] / w.kernel[1];
      const int64_t at = d / w.taps * w.ws[1] + kd * w.ws[2] + kh * w.ws[3] + kw * w.ws[4];
      for (int64_t i = 0; i < height; i++) to[at + i * w.ws[0]] = *from++;
    }
    first += height;
  }
}

Window window_of_conv(const Command &c) {
  Window w = {};
  const Operand &x = c.in[0], &k = c.in[1], &y = c.out[0];
  if (c.op == RLX_OP_FusedConvBiasAct) {
    const rlx_FusedConvAttrs &a = *static_cast<const rlx_FusedConvAttrs *>(c.attrs);
    fill_window(&w, x, k.dims + 2, y.dims + 2, {&a.stride, &a.dilation, &a.padding, a.auto_pad});
    set_kernel(&w, k, a.groups);
  } else {
    const rlx_ConvAttrs &a = *static_cast<const rlx_ConvAttrs *>(c.attrs);
    fill_window(&w, x, k.dims + 2, y.dims + 2, {&a.stride, &a.dilation, &a.padding, a.auto_pad});
    set_kernel(&w, k, a.groups);
  }
  settle(&w);
  return w;
}

Window window_of_transpose(const Command &c) {
  Window w = {};
  const rlx_ConvTransposeAttrs &a = *static_cast<const rlx_ConvTransposeAttrs *>(c.attrs);
  const Operand &x = c.in[0], &k = c.in[1], &y = c.out[0];
  fill_window(&w, y, k.dims + 2, x.dims + 2, {&a.stride, &a.dilation, &a.padding, a.auto_pad});
  for (uint32_t i = 0; i + 2 < x.rank; i++) {
    const uint32_t at = 5 - x.rank + i;
    if (a.auto_pad != rlx_AutoPad_same_upper && a.auto_pad != rlx_AutoPad_same_lower) continue;
    const int64_t more = a.output_padding.n > 0 ? a.output_padding.v[i] : 0;
    const int64_t total = w.dilation[at] * (w.kernel[at] - 1) + 1 + more - w.stride[at], half = total > 0 ? total / 2 : 0;
    w.begin[at] = a.auto_pad == rlx_AutoPad_same_upper || total <= 0 ? half : total - half;
  }
  w.groups = a.groups, w.per = x.dims[1] / a.groups, w.outs = k.dims[1];
  settle(&w);
  return w;
}

Window window_of_im2col(const Command &c) {
  Window w = {};
  const rlx_Im2ColAttrs &a = *static_cast<const rlx_Im2ColAttrs *>(c.attrs);
  const Operand &x = c.in[0];
  const int r = int(x.rank) - 2;
  fill_window(&w, x, a.kernel_size.v, nullptr, {&a.stride, &a.dilation, &a.padding, a.auto_pad});
  w.points = 1;
  for (int i = 0; i < r; i++) {
    const int at = 3 - r + i;
    const int64_t s = w.stride[at], eff = w.dilation[at] * (w.kernel[at] - 1) + 1;
    if (a.auto_pad == rlx_AutoPad_same_upper || a.auto_pad == rlx_AutoPad_same_lower) {
      w.out[at] = steps(w.size[at], s);
    } else {
      const int64_t end = a.auto_pad == rlx_AutoPad_none && a.padding.n > 0 ? a.padding.v[a.padding.n - r + i] : 0;
      w.out[at] = (w.size[at] + w.begin[at] + end - eff) / s + 1;
    }
    w.points *= w.out[at];
  }
  settle(&w);
  return w;
}

int stretches(const Window &w, int64_t first, int64_t n, Stretch *list) {
  int count = 0;
  for (int64_t at = 0; at < n;) {
    Stretch &s = list[count++];
    const int64_t column = first + at, p = column % w.points;
    s.item = column / w.points;
    s.ow = p % w.out[2], s.oh = p / w.out[2] % w.out[1], s.od = p / (w.out[2] * w.out[1]);
    s.at = int32_t(at), s.len = int32_t(min64(n - at, w.out[2] - s.ow));
    at += s.len;
  }
  return count;
}

int64_t segments(const Window &w, int64_t t, const Stretch *list, int count, Segment *out, int *n) {
  const int64_t kd = t / (w.kernel[1] * w.kernel[2]), kh = t / w.kernel[2] % w.kernel[1], kw = t % w.kernel[2];
  int64_t lo, hi, filled = 0;
  seen(w, 2, kw, &lo, &hi);
  *n = 0;
  for (int i = 0; i < count; i++) {
    const Stretch &s = list[i];
    const int64_t d = s.od * w.stride[0] + kd * w.dilation[0] - w.begin[0], h = s.oh * w.stride[1] + kh * w.dilation[1] - w.begin[1];
    if (d < 0 || d >= w.size[0] || h < 0 || h >= w.size[1]) continue;
    const int64_t from = max64(s.ow, lo), to = min64(s.ow + s.len, hi);
    if (from >= to) continue;
    const int64_t v = from * w.stride[2] + kw * w.dilation[2] - w.begin[2];
    out[(*n)++] = {s.item * w.xs[0] + d * w.xs[2] + h * w.xs[3] + v * w.xs[4], int32_t(s.at + from - s.ow), int32_t(to - from)};
    filled += to - from;
  }
  return filled;
}

}  // namespace conv
}  // namespace rlx
