// QConv2d: the rows of w in pairs, and for each run of result positions a panel of the windows there; tiles as QMatMul. Contract as QMatMul.
#include "../core/rlx_begin.h"

#include "../conv/window.h"
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

// The windows of columns [first, first + n) of a group, as pairs along k. Padding is 0.
template <class T> void windows(const Job &j, int64_t group, int64_t first, int n, int32_t *panel) {
  const conv::Window &w = j.w;
  conv::Stretch list[MAX_COLUMNS];
  conv::Segment seg[MAX_COLUMNS];
  const int count = conv::stretches(w, first, n, list);
  std::memset(panel, 0, size_t(panel_pairs(j)) * sizeof(int32_t));
  const T *x = j.c->in_ptr<T>(0) + group * w.per * w.xs[1];
  const int64_t step = w.stride[2] * w.xs[4];
  for (int64_t t = 0; t < w.taps; t++) {
    int ns;
    conv::segments(w, t, list, count, seg, &ns);
    for (int64_t ch = 0; ch < w.per; ch++) {
      const int64_t k = ch * w.taps + t;
      int16_t *to = reinterpret_cast<int16_t *>(panel + k / 2 * j.set->columns) + k % 2;
      for (int s = 0; s < ns; s++) {
        const T *from = x + ch * w.xs[1] + seg[s].src;
        for (int i = 0; i < seg[s].len; i++) to[2 * (seg[s].at + i)] = int16_t(int(from[i * step]) - j.x_zero);
      }
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
    if (j.c->in(0).dtype == RLX_I8) windows<int8_t>(j, group, item * w.points + first, n, panel);
    else windows<uint8_t>(j, group, item * w.points + first, n, panel);
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
