// Contract: channels of a group, then kernel positions ascending in one f32 accumulator per element, one rounding at the end; padding is zeros. An element
// has the same bits whatever the batch and the threads. Bound: 1.5 K eps sum |w||x|, K = channels of a group times kernel positions.
//
// A unit is a patch of result positions of a group of an item, with all of its result channels. The channels of x that it reads are laid out as plane.h says
// once, small enough for the second-level cache, and every kernel position then reads neighbours, whatever the strides and the padding. w lies packed in
// panels of result channels, [channel][kernel position][height of the panel], in the weights when it is constant, else in scratch.
#include "../core/rlx_begin.h"

#include "../core/pool.h"
#include "ending.h"
#include "slide.h"

namespace rlx {
namespace conv {
namespace {

constexpr int64_t kPlanes = 1 << 17;    // floats of all planes of a unit, where results have enough rows
constexpr int64_t kMostPlanes = 1 << 20;
constexpr int64_t kChunkFma = 1 << 16;  // about a microsecond: less is not worth handing to another thread

const SlideTable &table_of(int isa) { return matmul::of_isa<slide_generic, slide_avx2, slide_avx512, slide_neon>(isa); }

struct Sliding {
  const Call *c;
  const SlideTable *table;
  const Form *form;
  Window w;
  Plane p;
  int64_t depth, panels;
  int64_t offsets, packed, slot;  // floats of scratch: places in the planes, w when it is not constant, planes and sums of a thread
  bool by_rows;                   // rows of results one by one: what lies between them in a plane costs more than what vectors have behind them
  const int32_t *offset;
  const float *weights;
  Ending ending;
};

// Rows [first_of(p), first_of(p + 1)) of a group are panel p: heights differ by one at most.
int64_t first_of(const Sliding &s, int64_t p) { return p * (s.w.outs / s.panels) + min64(p, s.w.outs % s.panels); }

// Large patches, smaller ones until each thread has a few: what they share is laid out again.
Plane plane_for(const Window &w, int threads) {
  for (int64_t floats = min64(kPlaneFloats, kPlanes / max64(1, w.per));; floats /= 2) {
    const Plane p = plane_of(w, floats);
    if (!p.fits || threads <= 1 || floats == 0 || patches(w, p, w.items * w.groups) >= 3 * threads || w.per * w.taps * w.outs * p.sums < 2 * kChunkFma) return p;
  }
}

Sliding sliding_of(const Window &w, const SlideTable &table, const Form &form, int threads) {
  Sliding s = {};
  s.table = &table, s.form = &form, s.w = w, s.p = plane_for(w, threads);
  s.depth = w.per * w.taps, s.panels = ceil_div(w.outs, table.channels);
  s.offsets = align16(s.depth), s.packed = align16(w.groups * w.outs * s.depth);
  s.slot = align16(w.per * s.p.total) + align16(min64(w.outs, table.channels) * s.p.sums);
  const int64_t lanes = table.lanes, cols = min64(s.p.tile, w.out[2]);
  s.by_rows = ceil_div(cols, lanes) * lanes < s.p.pitch;
  return s;
}

// offset[k] of depth k from the first result.
void list_places(const Sliding &s, int32_t *offset) {
  const int64_t taps = s.w.taps;
  for (int64_t t = 0; t < taps; t++) offset[t] = int32_t(plane_offset(s.w, s.p, t));
  for (int64_t k = taps; k < s.depth; k++) offset[k] = offset[k - taps] + int32_t(s.p.total);
}

// Units are result channels.
struct Packing {
  const Sliding *s;
  const char *w;
  float *to;
};
void pack(void *ctx, int64_t begin, int64_t end, int) {
  const Packing &k = *static_cast<const Packing *>(ctx);
  const Sliding &s = *k.s;
  const Window &w = s.w;
  int64_t panel = 0;
  for (int64_t u = begin; u < end; u++) {
    const int64_t g = u / w.outs, o = u % w.outs;
    if (u == begin || o == 0) panel = 0;
    while (first_of(s, panel + 1) <= o) panel++;
    const int64_t first = first_of(s, panel), h = first_of(s, panel + 1) - first;
    float *to = k.to + (g * w.outs + first) * s.depth + o - first;
    int64_t dims[4] = {w.per, w.kernel[0], w.kernel[1], w.kernel[2]}, strides[1][RLX_MAX_RANK] = {{w.ws[1], w.ws[2], w.ws[3], w.ws[4]}};
    const int rank = merge_axes(dims, 4, strides, 1);
    const char *row = k.w + u * w.ws[0] * s.form->bytes;
    int64_t at = 0;
    for (Walk<1> walk(dims, rank, strides, 0, s.depth); walk.next(); at += walk.n)
      s.form->spread(to + at * h, int(h), row + walk.at[0] * s.form->bytes, rank == 0 ? 1 : walk.step[0], walk.n);
  }
}
int64_t pack_grain(const Sliding &s) { return 1 + kChunkFma / 8 / (1 + s.depth); }

// The results of a panel from its sums, row by row; a bias and a function alone may run over all of them at once.
void put_rows(const Sliding &s, const Patch &a, int64_t item, int64_t g, int64_t panel, float *sums) {
  const Window &w = s.w;
  const int64_t first = first_of(s, panel), outs = first_of(s, panel + 1) - first, n = (a.rows - 1) * s.p.pitch + a.cols;
  const bool at_once = s.ending.residual == nullptr && !s.by_rows;
  for (int64_t k = 0; k < outs; k++, sums += s.p.sums) {
    const int64_t o = g * w.outs + first + k, channel = item * w.groups * w.outs + o;
    if (s.ending.present && at_once) end_sums(s.ending, *s.form, sums, n, o, 0);
    for (int64_t i = 0; i < a.rows; i++) {
      const int64_t at = ((channel * w.out[0] + a.od) * w.out[1] + a.oh + i) * w.out[2] + a.ow;
      if (s.ending.present && !at_once) end_sums(s.ending, *s.form, sums + i * s.p.pitch, a.cols, o, at);
      s.form->put(s.c->out_ptr<char>(0) + at * s.form->bytes, sums + i * s.p.pitch, a.cols);
    }
  }
}

void units(void *ctx, int64_t begin, int64_t end, int slot) {
  const Sliding &s = *static_cast<const Sliding *>(ctx);
  const Window &w = s.w;
  float *planes = static_cast<float *>(s.c->scratch) + s.offsets + s.packed + slot * s.slot, *sums = planes + align16(w.per * s.p.total);
  for (int64_t u = begin; u < end && !s.c->stopped(); u++) {
    const Patch a = patch_of(w, s.p, u);
    const int64_t g = a.channel % w.groups, item = a.channel / w.groups;
    for (int64_t c = 0; c < w.per; c++)
      s.form->lay(w, s.p, a, s.c->in_ptr<char>(0) + (item * w.xs[0] + (g * w.per + c) * w.xs[1]) * s.form->bytes, 0, planes + c * s.p.total);
    for (int64_t panel = 0; panel < s.panels && !s.c->stopped(); panel++) {
      const int64_t first = first_of(s, panel), h = first_of(s, panel + 1) - first;
      SlideTile t = {planes, s.offset, s.depth, s.weights + (g * w.outs + first) * s.depth, sums, s.p.sums};
      if (!s.by_rows) s.table->run[h](t, (a.rows - 1) * s.p.pitch + a.cols);
      for (int64_t i = 0; i < a.rows && s.by_rows; i++, t.x += s.p.pitch, t.sums += s.p.pitch) s.table->run[h](t, a.cols);
      put_rows(s, a, item, g, panel, sums);
    }
  }
}

// The positions that are computed for each 64 results, about.
int64_t computed(const Window &w, const Plane &p, int lanes) {
  const int64_t by_rows = p.blocks * p.block * ceil_div(p.tile, lanes), at_once = p.blocks * ceil_div((p.block - 1) * p.pitch + p.tile, lanes);
  return min64(by_rows, at_once) * lanes * 64 / (p.blocks * p.block * p.tile);
}

// Whether tiles with channels in lanes would leave too many of them empty, or there are none for the strides.
bool pays(const Window &w, const Plane &p, int lanes) {
  if (few_of_one(w)) return false;
  if (w.taps == 1 || w.out[1] * w.out[2] < 2 * lanes) return false;
  if (w.stride[2] > 2 || w.outs < lanes / 2) return true;
  return computed(w, p, lanes) * w.outs * 9 < ceil_div(w.outs, lanes) * lanes * 64 * 8;
}

}  // namespace

bool slide_fits(const Command &c, const Window &w, int isa) {
  if (w.per == 0 || w.outs == 0 || w.points == 0) return false;
  const Plane p = plane_of(w, min64(kPlaneFloats, kPlanes / w.per));
  return p.fits && pays(w, p, table_of(isa).lanes) && w.per * p.total <= kMostPlanes && min64(w.outs, kMostSliding) * p.sums <= kMostPlanes;
}

int32_t slide_prepare(Prepare &prepare, const Window &w) {
  Command &c = *prepare.cmd;
  const SlideTable &table = table_of(prepare.isa);
  Sliding s = sliding_of(w, table, form_of(set_of(prepare.isa), c.in[0].dtype), 1);
  if (prepare.constant_view(prepare, 1) && w.groups < (1 << 20)) {
    const uint64_t layout = uint64_t(c.op) << 32 | uint64_t(3) << 30 | uint64_t(w.groups) << 7 | uint64_t(table.channels);
    const PackedForm form = {layout, s.packed * int64_t(sizeof(float)), s.form->bytes == 4 ? unpack_rows : nullptr, {w.groups, table.channels}};
    bool fresh = false;
    Packing k = {&s, nullptr, static_cast<float *>(prepare.cache(prepare, 1, form, &fresh))};
    k.w = fresh ? static_cast<const char *>(prepare.source(prepare, 1)) : nullptr;
    if (k.to == nullptr || (fresh && k.w == nullptr)) return RLX_NO_MEMORY;
    if (fresh) parallel(prepare.pool, prepare.max_threads, w.groups * w.outs, pack_grain(s), pack, &k, nullptr);
    c.packed = k.to, s.packed = 0;
  }
  c.scratch = (s.offsets + s.packed + prepare.max_threads * s.slot) * int64_t(sizeof(float));  // patches of more threads are no larger
  return RLX_OK;
}

void slide_run(const Call &c, const Window &w, int isa) {
  Sliding s = sliding_of(w, table_of(isa), form_of(set_of(isa), c.cmd->in[0].dtype), c.threads());
  s.c = &c;
  s.ending = ending_of(c, isa);
  int32_t *offset = static_cast<int32_t *>(c.scratch);
  list_places(s, offset);
  s.offset = offset;
  s.weights = static_cast<const float *>(c.cmd->packed);
  if (s.weights == nullptr) {
    Packing k = {&s, c.in_ptr<char>(1), static_cast<float *>(c.scratch) + s.offsets};
    c.parallel(w.groups * w.outs, pack_grain(s), pack, &k);
    s.weights = k.to;
  } else {
    s.packed = 0;
  }
  const int64_t fma = s.p.sums * s.depth * w.outs;
  c.parallel(patches(w, s.p, w.items * w.groups), 1 + kChunkFma / (fma + 1), units, &s);
}

}  // namespace conv
}  // namespace rlx
