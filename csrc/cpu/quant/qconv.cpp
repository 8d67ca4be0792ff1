// QConv2d: the rows of w in pairs, and for each run of result positions a panel of the windows there; tiles as QMatMul. Contract as QMatMul.
#include "../core/rlx_begin.h"

#include "../conv/window.h"
#include "../core/isa.h"
#include "../core/pool.h"
#include "product.h"

namespace rlx {
namespace quant {
namespace {

constexpr int64_t WORK = 1 << 15;  // pairs of products of a piece of work

// window_of_conv reads the attributes of Conv, with which these begin.
static_assert(offsetof(rlx_QConv2dAttrs, stride) == offsetof(rlx_ConvAttrs, stride) && offsetof(rlx_QConv2dAttrs, dilation) == offsetof(rlx_ConvAttrs, dilation) &&
              offsetof(rlx_QConv2dAttrs, padding) == offsetof(rlx_ConvAttrs, padding) && offsetof(rlx_QConv2dAttrs, auto_pad) == offsetof(rlx_ConvAttrs, auto_pad) &&
              offsetof(rlx_QConv2dAttrs, groups) == offsetof(rlx_ConvAttrs, groups), "layout");

struct Job {
  const TileSet *set;
  conv::Window w;
  int64_t k, k2, panels, outs;  // panels of the positions of one channel; result channels
  int x_zero, w_zero;
  bool w_signed;
  const void *weights;
  int32_t *to;
  const int32_t *packed;
  int32_t *slots;  // a panel for each worker
  const Call *c;
  Requant q;
};

Job job_of(const Command &c, int isa) {
  const rlx_QConv2dAttrs &a = *static_cast<const rlx_QConv2dAttrs *>(c.attrs);
  Job j = {};
  j.set = &tiles_of(isa);
  j.w = conv::window_of_conv(c);
  j.k = j.w.per * j.w.taps, j.k2 = (j.k + 1) / 2;
  j.outs = j.w.groups * j.w.outs;
  j.panels = (j.w.points + j.set->columns - 1) / j.set->columns;
  j.x_zero = int(a.x_zero_point), j.w_zero = int(a.w_zero_point);
  j.w_signed = c.in[1].dtype == RLX_I8;
  return j;
}

int64_t panel_pairs(const Job &j) { return j.k2 * j.set->columns; }

void pack_w(void *ctx, int64_t begin, int64_t end, int) {
  const Job &j = *static_cast<const Job *>(ctx);
  for (int64_t o = begin; o < end; o++) {
    if (j.w_signed) pack_row(j.to + o * j.k2, static_cast<const int8_t *>(j.weights) + o * j.k, j.k, j.w_zero);
    else pack_row(j.to + o * j.k2, static_cast<const uint8_t *>(j.weights) + o * j.k, j.k, j.w_zero);
  }
}

// Positions [at, at + length) of a panel that lie in one row of the result, and where their first window begins.
struct Stretch {
  int at, length;
  int64_t begin[3];
};

int stretches_of(const conv::Window &w, int64_t first, int n, Stretch *to) {
  int count = 0;
  for (int i = 0; i < n;) {
    const int64_t p = first + i, left = w.out[2] - p % w.out[2];
    Stretch &s = to[count++];
    s.at = i, s.length = left < n - i ? int(left) : n - i;
    const int64_t place[3] = {p / (w.out[1] * w.out[2]), p / w.out[2] % w.out[1], p % w.out[2]};
    for (int a = 0; a < 3; a++) s.begin[a] = place[a] * w.stride[a] - w.begin[a];
    i += s.length;
  }
  return count;
}

// The windows of positions [first, first + n) of a group of an item, as pairs along k. Padding is 0.
template <class T> void windows(const Job &j, int64_t item, int64_t group, int64_t first, int n, int32_t *panel) {
  const conv::Window &w = j.w;
  Stretch stretches[MAX_COLUMNS];
  const int count = stretches_of(w, first, n, stretches);
  std::memset(panel, 0, size_t(panel_pairs(j)) * sizeof(int32_t));
  const T *x = j.c->in_ptr<T>(0) + item * w.xs[0] + group * w.per * w.xs[1];
  const int64_t step = w.stride[2] * w.xs[4];
  for (int64_t k = 0; k < j.k; k++) {
    const int64_t tap = k % w.taps, kd = tap / (w.kernel[1] * w.kernel[2]), kh = tap / w.kernel[2] % w.kernel[1], kw = tap % w.kernel[2];
    int16_t *to = reinterpret_cast<int16_t *>(panel + k / 2 * j.set->columns) + k % 2;
    for (int t = 0; t < count; t++) {
      const Stretch &s = stretches[t];
      const int64_t d = s.begin[0] + kd * w.dilation[0], h = s.begin[1] + kh * w.dilation[1], v = s.begin[2] + kw * w.dilation[2];
      if (uint64_t(d) >= uint64_t(w.size[0]) || uint64_t(h) >= uint64_t(w.size[1])) continue;
      int lo = 0, hi = s.length;  // those that see x
      while (lo < hi && v + lo * w.stride[2] < 0) lo++;
      while (hi > lo && v + (hi - 1) * w.stride[2] >= w.size[2]) hi--;
      const T *from = x + k / w.taps * w.xs[1] + d * w.xs[2] + h * w.xs[3] + v * w.xs[4];
      for (int i = lo; i < hi; i++) to[2 * (s.at + i)] = int16_t(int(from[i * step]) - j.x_zero);
    }
  }
}

// A unit is one panel of one group of one item.
void units(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  const conv::Window &w = j.w;
  const int columns = j.set->columns;
  int32_t *panel = j.slots + slot * panel_pairs(j);
  alignas(64) int32_t sums[4 * MAX_COLUMNS];
  for (int64_t u = begin; u < end && !j.c->stopped(); u++) {
    const int64_t first = u % j.panels * columns, group = u / j.panels % w.groups, item = u / (j.panels * w.groups);
    const int n = int(w.points - first < columns ? w.points - first : columns);
    if (j.c->in(0).dtype == RLX_I8) windows<int8_t>(j, item, group, first, n, panel);
    else windows<uint8_t>(j, item, group, first, n, panel);
    for (int64_t o = group * w.outs, last = o + w.outs; o < last; o += 4) {
      const int h = int(last - o < 4 ? last - o : 4);
      j.set->tile[h](j.packed + o * j.k2, j.k2, panel, sums);
      for (int r = 0; r < h; r++) j.set->finish(j.q, j.c->out_ptr<void>(0), (item * j.outs + o + r) * w.points + first, sums + r * columns, n, o + r, 0);
    }
  }
}

template <int Isa> void run(const Call &c) {
  if (c.out(0).count == 0) return;
  const rlx_QConv2dAttrs &a = c.attrs<rlx_QConv2dAttrs>();
  Job j = job_of(*c.cmd, Isa);
  j.c = &c, j.weights = c.in_ptr<void>(1);
  j.q = {c.out(0).dtype, ends_of(c.out(0).dtype), int32_t(a.out_zero_point), float(a.multiplier), operand<int32_t>(c, 2), operand<float>(c, 3)};
  j.packed = static_cast<const int32_t *>(c.cmd->packed);
  j.slots = static_cast<int32_t *>(c.scratch);
  if (j.packed == nullptr) {
    j.packed = j.to = j.slots;
    j.slots += j.outs * j.k2;
    c.parallel(j.outs, 1 + WORK / (j.k2 + 1), pack_w, &j);
  }
  const int64_t pairs = panel_pairs(j) * (j.w.outs + 8);  // making a panel costs as much as some channels
  c.parallel(j.w.items * j.w.groups * j.panels, 1 + WORK / (pairs + 1), units, &j);
}

}  // namespace

int32_t qconv_prepare(Prepare &prepare) {
  Command &c = *prepare.cmd;
  if (c.out[0].count == 0) return RLX_OK;
  Job j = job_of(c, prepare.isa);
  int64_t bytes = j.outs * j.k2 * int64_t(sizeof(int32_t));
  j.weights = prepare.constant(prepare, 1);
  if (j.weights != nullptr && bytes > 0) {
    bool fresh = false;
    j.to = static_cast<int32_t *>(prepare.cache(prepare, 1, uint64_t(c.op) << 32 | uint64_t(j.w_zero + 256), bytes, &fresh));
    if (j.to == nullptr) return RLX_NO_MEMORY;
    if (fresh) parallel(prepare.pool, prepare.max_threads, j.outs, 1 + WORK / (j.k2 + 1), pack_w, &j, nullptr);
    c.packed = j.to, bytes = 0;
  }
  c.scratch = bytes + prepare.max_threads * panel_pairs(j) * int64_t(sizeof(int32_t));
  return RLX_OK;
}

void qconv_generic(const Call &c, Range) { run<ISA_GENERIC>(c); }
#if defined(RLX_X86)
void qconv_avx2(const Call &c, Range) { run<ISA_AVX2>(c); }
void qconv_avx512(const Call &c, Range) { run<ISA_AVX512>(c); }
#endif

}  // namespace quant
}  // namespace rlx
