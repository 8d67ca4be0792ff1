// Contract: kernel positions of the last axis, then those of the axes in front of it, then channels of a group, each ascending, in one f32
// accumulator; positions in the padding are left out. An element has the same bits whatever the batch and the threads.
//
// A unit is one panel of result channels, 2 vectors of them, by a block of result positions that lie together. w lies packed in panels,
// [kernel position][channel][2 vectors], in the weights when it is constant, else in scratch. A slice of a panel, small enough for the
// second-level cache, meets every tile of the block. Sums are [position][channel]; they are turned into rows of y at the end.
#include "../core/rlx_begin.h"

#include "../core/pool.h"
#include "conv.h"
#include "tiling.h"

namespace rlx {
namespace conv {
namespace {

constexpr int64_t kSlice = 640;          // depth
constexpr int64_t kBlockTiles = 32;
constexpr int64_t kLeastDepth = 16, kLeastRow = 6;
constexpr int64_t kMostPoints = 256, kLeastChannels = 96, kLeastLanes = 16;
constexpr int64_t kChunkFma = 1 << 16;   // about a microsecond: less is not worth handing to another thread

// Positions that lie side by side are one long row.
void flatten(Window *w) {
  if (!side_by_side(*w)) return;
  w->size[2] = w->out[2] = w->points;
  w->size[0] = w->size[1] = w->out[0] = w->out[1] = 1;
}

int64_t tile_start(const Tiling &t, int64_t i) { return i * t.w.out[2] / t.per_row; }
// The first result position of tile i of an item.
int64_t position(const Tiling &t, int64_t i) { return i / t.per_row * t.w.out[2] + tile_start(t, i % t.per_row); }

Tiling tiling_of(const Window &w, const TileTables &tables, int threads) {
  Tiling t = {};
  t.tables = &tables, t.w = w;
  flatten(&t.w);
  t.depth = w.per * w.taps;
  t.slice = ceil_div(t.depth, max64(1, ceil_div(t.depth, kSlice)));
  t.rows = t.w.out[0] * t.w.out[1], t.per_row = ceil_div(t.w.out[2], tables.positions);
  const int64_t wide = 2 * tables.lanes, tiles = t.rows * t.per_row;
  t.panels = ceil_div(w.outs, wide), t.panel_floats = t.depth * wide;
  t.blocks = max64(1, ceil_div(tiles, kBlockTiles));
  while (threads > 1 && t.blocks < tiles && w.items * w.groups * t.panels * t.blocks < 3 * threads && t.depth * wide * tiles / t.blocks > 2 * kChunkFma) t.blocks++;
  t.block = ceil_div(tiles, t.blocks), t.blocks = t.block > 0 ? ceil_div(tiles, t.block) : 0;
  t.offsets = align16(t.depth), t.packed = w.groups * t.panels * t.panel_floats;
  t.slot = (t.block * tables.positions + tables.lanes) * wide;
  t.winograd = winograd_fits(w, tables.lanes);
  if (t.winograd) t.offsets += winograd_offsets(w), t.slot = winograd_slot(w, tables.lanes, threads);
  for (int64_t k = 0; k < w.kernel[2] && k < kMostWidth; k++) seen(t.w, 2, k, &t.lo[k], &t.hi[k]);
  return t;
}

// offset[k] of depth k from where the window starts.
void list_offsets(const Tiling &t, int32_t *offset) {
  const Window &w = t.w;
  for (int64_t kw = 0; kw < w.kernel[2]; kw++)
    for (int64_t kd = 0; kd < w.kernel[0]; kd++)
      for (int64_t kh = 0; kh < w.kernel[1]; kh++) {
        const int64_t first = kd * w.dilation[0] * w.xs[2] + kh * w.dilation[1] * w.xs[3] + kw * w.dilation[2] * w.xs[4];
        for (int64_t c = 0; c < w.per; c++) *offset++ = int32_t(first + c * w.xs[1]);
      }
}

struct Packing {
  const Tiling *t;
  const float *w;
  float *to;
};
// Units are vectors of kernel positions of a panel.
void pack_panels(void *ctx, int64_t begin, int64_t end, int) {
  const Packing &p = *static_cast<const Packing *>(ctx);
  const Tiling &t = *p.t;
  const Window &w = t.w;
  const int64_t wide = 2 * t.tables->lanes;
  for (int64_t u = begin; u < end; u++) {
    const int64_t tap = u % w.taps, panel = u / w.taps % t.panels, g = u / (w.taps * t.panels);
    const int64_t kh = tap % w.kernel[1], kd = tap / w.kernel[1] % w.kernel[0], kw = tap / (w.kernel[1] * w.kernel[0]);
    const int64_t first = panel * wide, n = min64(wide, w.outs - first);
    float *to = p.to + (g * t.panels + panel) * t.panel_floats + tap * w.per * wide;
    const float *from = p.w + (g * w.outs + first) * w.ws[0] + kd * w.ws[2] + kh * w.ws[3] + kw * w.ws[4];
    for (int64_t c = 0; c < w.per; c++, to += wide, from += w.ws[1]) {
      for (int64_t o = 0; o < n; o++) to[o] = from[o * w.ws[0]];
      for (int64_t o = n; o < wide; o++) to[o] = 0;
    }
  }
}

// The inverse of pack_panels; how is the groups and the lanes.
void unpack_panels(const Operand &v, const int64_t *how, const char *packed, char *raw) {
  const Window k = window_of_kernel(v, how[0]);
  const int64_t wide = 2 * how[1], panels = ceil_div(k.outs, wide);
  const float *from = reinterpret_cast<const float *>(packed);
  float *to = reinterpret_cast<float *>(raw);
  for (int64_t u = 0; u < how[0] * panels * k.taps; u++) {
    const int64_t tap = u % k.taps, panel = u / k.taps % panels, g = u / (k.taps * panels), first = panel * wide;
    const int64_t kh = tap % k.kernel[1], kd = tap / k.kernel[1] % k.kernel[0], kw = tap / (k.kernel[1] * k.kernel[0]);
    const int64_t at = (g * k.outs + first) * k.ws[0] + kd * k.ws[2] + kh * k.ws[3] + kw * k.ws[4];
    for (int64_t c = 0; c < k.per; c++, from += wide)
      for (int64_t o = 0; o < wide && first + o < k.outs; o++) to[at + c * k.ws[1] + o * k.ws[0]] = from[o];
  }
}

// The depths [k0, k1) of a panel for positions [lo, hi) of a tile.
struct Span {
  int64_t k0, k1, lo, hi;
};

void run_span(const Tiling &t, const Place &p, const Span &s, const float *w, bool wide, PositionTile *tile) {
  const int64_t step = t.w.stride[2];
  tile->x = p.x + s.lo * step * t.w.xs[4];
  tile->offset = t.offset + s.k0;
  tile->w = w + s.k0 * 2 * t.tables->lanes;
  tile->sums = p.sums + s.lo * 2 * t.tables->lanes;
  tile->k = s.k1 - s.k0;
  t.tables->run[step - 1][wide][s.hi - s.lo](*tile);
  tile->load = true;
}

}  // namespace

void put_sums(const Tiling &t, const float *sums, int64_t n, int64_t outs, float *y, const Finish &finish) {
  const int64_t points = t.w.points;
  t.tables->turn(sums, n, outs, y, points, finish);
  if (t.ending.swept && n == points) return sweep(t.ending, y, outs * points);
  for (int64_t k = 0; k < outs && t.ending.swept; k++) sweep(t.ending, y + k * points, n);
}

void run_tile(const Tiling &t, const Place &p, int64_t from, int64_t to, const float *w, bool wide, PositionTile *tile) {
  const Window &v = t.w;
  Span s = {0, 0, 0, 0};
  bool first = from == 0;
  auto flush = [&]() {
    if (s.k0 >= s.k1) return;
    // The first stretch sets the sums of all positions of the tile.
    if (first && (s.lo > 0 || s.hi < p.n)) std::memset(p.sums, 0, size_t(p.n * 2 * t.tables->lanes) * sizeof(float)), first = false;
    tile->load = !first;
    first = false;
    run_span(t, p, s, w, wide, tile);
  };
  for (int64_t kw = 0; kw < v.kernel[2]; kw++) {
    const int64_t lo = max64(t.lo[kw] - p.at, 0), hi = min64(t.hi[kw] - p.at, p.n);
    if (lo >= hi) continue;
    for (int64_t kd = p.d0; kd < p.d1; kd++) {
      const int64_t tap = (kw * v.kernel[0] + kd) * v.kernel[1];
      const int64_t k0 = max64((tap + p.h0) * v.per, from), k1 = min64((tap + p.h1) * v.per, to);
      if (k0 >= k1) continue;
      if (k0 == s.k1 && lo == s.lo && hi == s.hi) {
        s.k1 = k1;
        continue;
      }
      flush();
      s = {k0, k1, lo, hi};
    }
  }
  flush();
  if (first) std::memset(p.sums, 0, size_t(p.n * 2 * t.tables->lanes) * sizeof(float));
}

Place place_at(const Tiling &t, int64_t item, int64_t g, int64_t od, int64_t oh, int64_t at, int64_t n) {
  const Window &w = t.w;
  Place p = {};
  p.at = at, p.n = n;
  inside(w, 0, od, &p.d0, &p.d1);
  inside(w, 1, oh, &p.h0, &p.h1);
  const int64_t first = item * w.xs[0] + g * w.per * w.xs[1] + (od * w.stride[0] - w.begin[0]) * w.xs[2] + (oh * w.stride[1] - w.begin[1]) * w.xs[3];
  p.x = t.c->in_ptr<float>(0) + first + (at * w.stride[2] - w.begin[2]) * w.xs[4];
  return p;
}

namespace {

// Lets a tile fetch, a line for each of its depths, the next part of the residual and then of the results, which are `count` floats each.
void fetch_turn(const float *y, const float *residual, int64_t count, int64_t part, PositionTile *tile, int64_t depths) {
  const int64_t bytes = count * int64_t(sizeof(float)), parts = ceil_div(bytes, depths * 64);
  const float *from = residual != nullptr && part < parts ? residual : y;
  if (residual != nullptr && part >= parts) part -= parts;
  if (part < parts) tile->ahead = reinterpret_cast<const char *>(from) + part * depths * 64, tile->ahead_step = 64;
}

void run_unit(const Tiling &t, int64_t item, int64_t g, int64_t panel, int64_t i0, int64_t i1, float *sums) {
  const int64_t wide = 2 * t.tables->lanes, outs = min64(wide, t.w.outs - panel * wide), first = position(t, i0);
  const float *w = t.weights + (g * t.panels + panel) * t.panel_floats;
  const int64_t line = 64 / int64_t(sizeof(float));
  const int64_t n = position(t, i1) - first, points = t.w.points, o = g * t.w.outs + panel * wide, at = (item * t.w.groups * t.w.outs + o) * points + first;
  float *y = t.c->out_ptr<float>(0) + at;
  const Finish finish = finish_of(t.ending, o, at);
  int64_t from = 0;
  do {
    const int64_t to = min64(from + t.slice, t.depth);
    for (int64_t i = i0; i < i1 && !t.c->stopped(); i++) {
      const int64_t row = i / t.per_row, start = tile_start(t, i % t.per_row);
      Place p = place_at(t, item, g, row / t.w.out[1], row % t.w.out[1], start, tile_start(t, i % t.per_row + 1) - start);
      p.sums = sums + (position(t, i) - first) * wide;
      PositionTile tile;
      // Each of the first tiles fetches its part of the next slice; those behind them, in the last one, what turn reads and writes.
      const int64_t part = i - i0, slices = wide / line;
      tile.ahead = reinterpret_cast<const char *>(w + to * wide), tile.ahead_step = 0;
      if (part < slices) tile.ahead += part * 64 * (to - from), tile.ahead_step = 64;
      else if (to == t.depth && n == points) fetch_turn(y, finish.residual, outs * points, part - slices, &tile, to - from);
      run_tile(t, p, from, to, w, outs > t.tables->lanes, &tile);
    }
    from = to;
  } while (from < t.depth);
  put_sums(t, sums, n, outs, y, finish);
}

void units(void *ctx, int64_t begin, int64_t end, int slot) {
  const Tiling &t = *static_cast<const Tiling *>(ctx);
  float *sums = static_cast<float *>(t.c->scratch) + t.offsets + t.packed + slot * t.slot;
  const int64_t tiles = t.rows * t.per_row;
  for (int64_t u = begin; u < end && !t.c->stopped(); u++) {
    const int64_t panel = u % t.panels, b = u / t.panels % t.blocks, g = u / (t.panels * t.blocks) % t.w.groups, item = u / (t.panels * t.blocks * t.w.groups);
    run_unit(t, item, g, panel, b * t.block, min64(tiles, (b + 1) * t.block), sums);
  }
}

int64_t pack_grain(const Tiling &t) { return 1 + kChunkFma / 8 / (1 + t.w.per * 2 * t.tables->lanes); }

}  // namespace

bool tiles_fit(const Command &c, const Window &w, const TileTables &tables) {
  if (c.in[0].dtype != RLX_F32 || w.xs[4] != 1 || w.stride[2] > 2 || w.kernel[2] > kMostWidth || w.per == 0 || w.points == 0) return false;
  int64_t reach = w.xs[1] * w.per;
  for (int a = 0; a < 3; a++) {
    if (w.kernel[a] > 64 || w.dilation[a] > (1 << 20) || w.xs[2 + a] < 0 || w.xs[2 + a] > (1 << 26)) return false;
    reach += (w.kernel[a] - 1) * w.dilation[a] * (w.kernel[a] > 1 ? w.xs[2 + a] : 0);
  }
  if (w.xs[1] < 0 || reach > (1 << 30) || w.per * w.taps > (1 << 24)) return false;
  if (w.outs < tables.lanes / 2 || w.per * w.taps < kLeastDepth) return false;
  if (w.taps > 1) return w.out[2] >= kLeastRow;
  // Tiles take of x what strides leave; those of fewer channels read it too often.
  if ((w.stride[1] > 1 || w.stride[2] > 1) && tables.lanes >= kLeastLanes) return w.out[2] >= kLeastRow && w.per >= kLeastChannels;
  // Many results of one element pay for making panels of x.
  Window flat = w;
  flatten(&flat);
  return flat.out[0] * flat.out[1] == 1 && flat.points <= kMostPoints && w.per >= kLeastChannels;
}

int32_t tiles_prepare(Prepare &prepare, const Window &w, const ConvSet &set) {
  Command &c = *prepare.cmd;
  const TileTables &tables = set.positions;
  Tiling t = tiling_of(w, tables, prepare.max_threads);
  int64_t slots = 0;
  for (int threads = 1; threads <= prepare.max_threads; threads++) slots = max64(slots, threads * tiling_of(w, tables, threads).slot);
  if (prepare.constant_view(prepare, 1) && w.groups < (1 << 24)) {
    const uint64_t layout = uint64_t(c.op) << 32 | uint64_t(1) << 31 | uint64_t(w.groups) << 7 | uint64_t(tables.lanes);
    const PackedForm form = {layout, t.packed * int64_t(sizeof(float)), unpack_panels, {w.groups, tables.lanes}};
    bool fresh = false;
    Packing p = {&t, nullptr, static_cast<float *>(prepare.cache(prepare, 1, form, &fresh))};
    p.w = fresh ? static_cast<const float *>(prepare.source(prepare, 1)) : nullptr;
    if (p.to == nullptr || (fresh && p.w == nullptr)) return RLX_NO_MEMORY;
    if (fresh) parallel(prepare.pool, prepare.max_threads, w.groups * t.panels * w.taps, pack_grain(t), pack_panels, &p, nullptr);
    c.packed = p.to, t.packed = 0;
  }
  c.scratch = (t.offsets + t.packed + slots) * int64_t(sizeof(float));
  return RLX_OK;
}

void tiles_run(const Call &c, const Window &w, const ConvSet &set, int isa) {
  Tiling t = tiling_of(w, set.positions, c.threads());
  t.c = &c;
  t.ending = ending_of(c, isa);
  int32_t *offset = static_cast<int32_t *>(c.scratch);
  list_offsets(t, offset);
  t.offset = offset;
  t.weights = static_cast<const float *>(c.cmd->packed);
  if (t.weights == nullptr) {
    Packing p = {&t, c.in_ptr<float>(1), static_cast<float *>(c.scratch) + t.offsets};
    c.parallel(w.groups * t.panels * w.taps, pack_grain(t), pack_panels, &p);
    t.weights = p.to;
  } else {
    t.packed = 0;
  }
  if (t.winograd) return winograd_run(t, set.winograd, offset + align16(t.depth), static_cast<float *>(c.scratch) + t.offsets + t.packed);
  const int64_t fma = t.block * t.tables->positions * 2 * t.tables->lanes * t.depth;
  c.parallel(w.items * w.groups * t.blocks * t.panels, 1 + kChunkFma / (fma + 1), units, &t);
}

}  // namespace conv
}  // namespace rlx
