// QConv2d: rows of weights, and for each run of result positions a panel of the windows there, then tiles (product.h). Contract as QMatMul.
#include "../core/rlx_begin.h"

#include "../conv/window.h"
#include "../core/pool.h"
#include "product.h"

namespace rlx {
namespace quant {
namespace {

constexpr int64_t WORK = 1 << 15;  // groups of products of a piece of work

// window_of_conv reads the attributes of Conv, with which these begin.
static_assert(offsetof(rlx_QConv2dAttrs, stride) == offsetof(rlx_ConvAttrs, stride) && offsetof(rlx_QConv2dAttrs, dilation) == offsetof(rlx_ConvAttrs, dilation) &&
              offsetof(rlx_QConv2dAttrs, padding) == offsetof(rlx_ConvAttrs, padding) && offsetof(rlx_QConv2dAttrs, auto_pad) == offsetof(rlx_ConvAttrs, auto_pad) &&
              offsetof(rlx_QConv2dAttrs, groups) == offsetof(rlx_ConvAttrs, groups), "layout");

struct Job {
  const TileSet *set;
  conv::Window w;
  int64_t k, groups, row_step, panels, outs;  // panels of the positions of one channel; result channels
  Shift x, weight;
  const void *weights;
  char *to;
  const char *packed;  // rows of weights, then their sums
  char *slots;         // a panel for each worker
  const Call *c;
  Requant q;
  const int32_t *bias;
};

Job job_of(const Command &c, int isa) {
  const rlx_QConv2dAttrs &a = *static_cast<const rlx_QConv2dAttrs *>(c.attrs);
  Job j = {};
  j.set = &tiles_of(isa);
  j.w = conv::window_of_conv(c);
  j.k = j.w.per * j.w.taps, j.groups = groups_of(*j.set, j.k), j.row_step = row_bytes(*j.set, j.k);
  j.outs = j.w.groups * j.w.outs;
  j.panels = (j.w.points + j.set->columns - 1) / j.set->columns;
  j.x = to_unsigned(c.in[0].dtype, a.x_zero_point), j.weight = to_signed(c.in[1].dtype, a.w_zero_point);
  return j;
}

int64_t aligned(int64_t bytes) { return (bytes + 63) & ~int64_t(63); }
int64_t packed_bytes(const Job &j) { return aligned(j.outs * j.row_step) + j.outs * int64_t(sizeof(int32_t)); }
int64_t slot_bytes(const Job &j) { return aligned(wide_panel(*j.set, j.k)); }
const int32_t *row_sums(const Job &j, const char *packed) { return reinterpret_cast<const int32_t *>(packed + aligned(j.outs * j.row_step)); }

void pack_w(void *ctx, int64_t begin, int64_t end, int) {
  const Job &j = *static_cast<const Job *>(ctx);
  int32_t *sums = const_cast<int32_t *>(row_sums(j, j.to));
  for (int64_t o = begin; o < end; o++) sums[o] = pack_row<int8_t>(*j.set, j.to + o * j.row_step, static_cast<const char *>(j.weights) + o * j.k, j.k, j.weight.flip);
}

// The inverse of pack_w; how is the bytes of a row and of a code, and the bit that is changed.
void unpack_w(const Operand &w, const int64_t *how, const char *packed, char *raw) {
  const int64_t k = w.dims[0] == 0 ? 0 : w.count / w.dims[0];
  for (int64_t o = 0; o < w.dims[0]; o++, packed += how[0])
    for (int64_t i = 0; i < k; i++) raw[o * k + i] = char(packed[i * how[1]] ^ how[2]);  // the first byte of a code is the low one
}

// The windows of columns [first, first + n) of a group, in groups along k. Padding is the zero point. Code is that of a wide panel.
template <class Code> void windows(const Job &j, int64_t group, int64_t first, int n, Code *panel) {
  const conv::Window &w = j.w;
  conv::Stretch list[MAX_COLUMNS];
  conv::Segment seg[MAX_COLUMNS];
  const int count = conv::stretches(w, first, n, list), size = j.set->group;
  const uint8_t *x = j.c->in_ptr<uint8_t>(0) + group * w.per * w.xs[1], flip = j.x.flip;
  const int64_t step = w.stride[2] * w.xs[4];
  for (int64_t i = 0, codes = j.groups * size * j.set->columns; i < codes; i++) panel[i] = Code(j.x.zero);
  for (int64_t t = 0; t < w.taps; t++) {
    int ns;
    conv::segments(w, t, list, count, seg, &ns);
    for (int64_t ch = 0; ch < w.per; ch++) {
      const int64_t k = ch * w.taps + t;
      Code *to = panel + k / size * size * j.set->columns + k % size;
      for (int s = 0; s < ns; s++) {
        const uint8_t *from = x + ch * w.xs[1] + seg[s].src;
        for (int i = 0; i < seg[s].len; i++) to[size * (seg[s].at + i)] = Code(uint8_t(from[i * step] ^ flip));
      }
    }
  }
}

// What the sums of columns start from: their codes' sum times minus the zero point of the weights.
template <class Code> void starts(const Job &j, const Code *panel, int32_t *start) {
  const int w = j.set->columns, size = j.set->group;
  std::memset(start, 0, size_t(w) * sizeof(int32_t));
  if (j.weight.zero == 0) return;
  for (int64_t k = 0; k < j.k; k++)
    for (int i = 0; i < w; i++) start[i] = int32_t(uint32_t(start[i]) + uint32_t(panel[k / size * size * w + size * i + k % size]));
  for (int i = 0; i < w; i++) start[i] = int32_t(-uint32_t(j.weight.zero) * uint32_t(start[i]));
}

template <class Code> void make_panel(const Job &j, int64_t group, int64_t first, int n, char *at, int32_t *start) {
  windows(j, group, first, n, reinterpret_cast<Code *>(at));
  starts(j, reinterpret_cast<const Code *>(at), start);
}

// A unit is one panel of one group of one item.
void units(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  const TileSet &set = *j.set;
  const conv::Window &w = j.w;
  const int columns = set.columns;
  alignas(64) int32_t sums[MAX_ROWS * MAX_COLUMNS], start[MAX_COLUMNS];
  Tile t = {};
  t.a_step = j.row_step, t.groups = j.groups, t.start = start, t.c = sums, t.c_step = columns;
  t.b = t.ahead = j.slots + slot * slot_bytes(j);
  for (int64_t u = begin; u < end; u++) {
    const int64_t first = u % j.panels * columns, group = u / j.panels % w.groups, item = u / (j.panels * w.groups);
    const int n = int(w.points - first < columns ? w.points - first : columns);
    char *panel = j.slots + slot * slot_bytes(j);
    if (set.code_bytes == 1) make_panel<uint8_t>(j, group, item * w.points + first, n, panel, start);
    else make_panel<int16_t>(j, group, item * w.points + first, n, panel, start);
    for (int64_t o = group * w.outs, last = o + w.outs; o < last && !j.c->stopped(); o += set.rows) {
      const int h = int(last - o < set.rows ? last - o : set.rows);
      t.a = j.packed + o * j.row_step;
      set.windows[h](t);
      for (int r = 0; r < h; r++) {
        const int32_t add = start_of(j.bias == nullptr ? 0 : j.bias[o + r], row_sums(j, j.packed)[o + r], j.x.zero, j.weight.zero, j.k);
        set.finish(j.q, j.c->out_ptr<void>(0), (item * j.outs + o + r) * w.points + first, sums + r * columns, add, n, o + r, 0);
      }
    }
  }
}

template <int Isa> void run(const Call &c) {
  if (c.out(0).count == 0) return;
  const rlx_QConv2dAttrs &a = c.attrs<rlx_QConv2dAttrs>();
  Job j = job_of(*c.cmd, Isa);
  j.c = &c, j.weights = c.in_ptr<void>(1), j.bias = operand<int32_t>(c, 2);
  j.q = {c.out(0).dtype, ends_of(c.out(0).dtype), int32_t(a.out_zero_point), float(a.multiplier), operand<float>(c, 3)};
  j.packed = static_cast<const char *>(c.cmd->packed);
  j.slots = static_cast<char *>(c.scratch);
  if (j.packed == nullptr) {
    j.packed = j.to = j.slots;
    j.slots += aligned(packed_bytes(j));
    c.parallel(j.outs, 1 + WORK / (j.k + 1), pack_w, &j);
  }
  const int64_t work = j.groups * j.set->columns * (j.w.outs + 8);  // making a panel costs as much as some channels
  c.parallel(j.w.items * j.w.groups * j.panels, 1 + WORK / (work + 1), units, &j);
}

}  // namespace

int32_t qconv_prepare(Prepare &prepare) {
  Command &c = *prepare.cmd;
  if (c.out[0].count == 0) return RLX_OK;
  Job j = job_of(c, prepare.isa);
  int64_t bytes = aligned(packed_bytes(j));
  if (j.k > 0 && prepare.constant(prepare, 1)) {
    const PackedForm form = {uint64_t(c.op) << 32 | uint64_t(j.set->group), packed_bytes(j), unpack_w, {j.row_step, j.set->code_bytes, j.weight.flip}};
    bool fresh = false;
    j.to = static_cast<char *>(prepare.cache(prepare, 1, form, &fresh));
    j.weights = fresh ? prepare.source(prepare, 1) : nullptr;
    if (j.to == nullptr || (fresh && j.weights == nullptr)) return RLX_NO_MEMORY;
    if (fresh) parallel(prepare.pool, prepare.max_threads, j.outs, 1 + WORK / (j.k + 1), pack_w, &j, nullptr);
    c.packed = j.to, bytes = 0;
  }
  c.scratch = bytes + prepare.max_threads * slot_bytes(j);
  return RLX_OK;
}

void qconv_generic(const Call &c, Range) { run<ISA_GENERIC>(c); }
#if defined(RLX_X86)
void qconv_avx2(const Call &c, Range) { run<ISA_AVX2>(c); }
void qconv_avx512(const Call &c, Range) { run<ISA_AVX512>(c); }
#elif defined(RLX_NEON)
void qconv_neon(const Call &c, Range) { run<ISA_NEON>(c); }
#endif

}  // namespace quant
}  // namespace rlx
