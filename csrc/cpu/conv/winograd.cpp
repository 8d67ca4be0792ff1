// Contract: a result is a sum of 16 products over the channels of a group, ascending, each in one f32 accumulator, added up as winograd_body.h says. It has
// the same bits whatever the batch and the threads. Bound: 9 (C + 10) eps sum over the C channels of sum |w| of the kernel times sum |x| of the 4 x 4 elements
// that two by two results share. Where that says little, since elements of very different size meet, or a product is not finite, these results
// of a panel are those of tile.cpp: so a NaN, an infinity or a huge number reaches the windows that read it, and no others.
//
// A unit is a block of quads of results, whole rows of them where they are short, by some panels of two vectors of result channels. Its windows are transformed
// once, [entry][channel][quad]; then slice by slice of channels the kernels of a panel, [entry][channel][two vectors], from where tiles find them too.
// The products run on the tiles of tile.h.
#include "../core/rlx_begin.h"

#include "../core/pool.h"
#include "conv.h"
#include "tiling.h"

namespace rlx {
namespace conv {
namespace {

constexpr int64_t kLeast = 16;              // channels of a group, and result channels
constexpr int64_t kLeastQuads = 12;         // of an item: kernels are transformed for them
constexpr int64_t kLeastWork = 1500;        // quads times channels of a group
constexpr int64_t kChannels = 128;          // of a slice
constexpr int64_t kWindows = 1 << 18;       // floats of transformed windows of a unit
constexpr int64_t kMostWindows = 1 << 22;   // at most, where a row has so many
constexpr int64_t kLine = 16;               // floats
constexpr int64_t kQuads = 112;             // of a unit
constexpr int64_t kColumns = 56;            // quads of a row of a unit
constexpr int64_t kChunkFma = 1 << 16;      // about a microsecond: less is not worth handing to another thread

struct Winograd {
  const Tiling *t;
  const WinogradTables *tables;
  int64_t lanes, panels;
  int64_t rows, columns;        // of quads of an item
  int64_t height, width;        // of a block of quads
  int64_t down, across, parts;  // blocks of an item; units that share one
  int64_t pitch, strip;         // floats of a channel of transformed windows; of a phase of a row of x
  int64_t slice;
  int64_t u_plane, v_plane, sums_plane;  // floats of an entry of kernels, windows and sums
  int64_t results, strips, slot;  // floats of scratch of a thread
  const int32_t *offset;
  float *slots;
};

Winograd winograd_of(const Window &w, int lanes, int threads) {
  Winograd q = {};
  q.lanes = lanes, q.panels = ceil_div(w.outs, 2 * lanes);
  q.rows = ceil_div(w.out[1], 2), q.columns = ceil_div(w.out[2], 2);
  q.across = ceil_div(q.columns, kColumns), q.width = ceil_div(q.columns, q.across);
  const int64_t most = min64(kQuads, kWindows / kEntries / w.per) / q.width;
  q.down = ceil_div(q.rows, max64(1, min64(most, q.rows))), q.height = ceil_div(q.rows, q.down);
  const auto units = [&]() { return w.items * w.groups * q.down * q.across; };
  while (q.height > 1 && threads > 1 && units() < 3 * threads && q.height * q.width > 2 * 14) q.down++, q.height = ceil_div(q.rows, q.down);
  q.down = ceil_div(q.rows, q.height);
  q.parts = threads > 1 ? min64(q.panels, ceil_div(2 * threads, max64(1, units()))) : 1;  // each transforms the windows again
  q.pitch = align16(q.height * q.width), q.strip = align16(q.width + 1);
  q.slice = min64(w.per, kChannels);
  const int64_t wide = 2 * lanes, quads = q.height * q.width;
  // A line more than they hold: entries a power of two apart would share a set of the first-level cache.
  q.u_plane = q.slice * wide + kLine, q.v_plane = w.per * q.pitch + kLine, q.sums_plane = quads * wide + kLine;
  q.results = (4 * quads + lanes) * wide, q.strips = (2 * q.height + 2) * 2 * q.strip + align16(lanes + 1);
  q.slot = kEntries * (q.u_plane + q.v_plane + q.sums_plane) + q.results + q.strips + align16(quads);
  return q;
}

// A block: quads [row, row + height) by [column, column + width) of a group of an item, with what lies in scratch of it.
struct Block {
  int64_t item, g, row, height, column, width;
  float *u, *v, *sums, *results, *strips;
  int32_t *again;  // by quad
};

void transform_windows(const Winograd &q, const Block &b) {
  const Window &w = q.t->w;
  const float *x = q.t->c->in_ptr<float>(0) + b.item * w.xs[0] + b.g * w.per * w.xs[1];
  StripRow r = {nullptr, 2 * b.column - w.begin[2], w.size[2], 2, 2, nullptr, nullptr, q.strip};
  for (int64_t c = 0; c < w.per; c++, x += w.xs[1]) {
    for (int64_t k = 0; k < 2 * b.height + 2; k++) {
      const int64_t row = 2 * b.row + k - w.begin[1];
      r.x = row >= 0 && row < w.size[1] ? x + row * w.xs[3] : nullptr;
      r.ahead = r.x != nullptr && c + 1 < w.per ? r.x + w.xs[1] : nullptr;
      r.to = b.strips + 2 * k * q.strip;
      q.tables->lay(r);
    }
    for (int64_t k = 0; k < b.height; k++)
      q.tables->windows(b.strips + 4 * k * q.strip, q.strip, b.v + c * q.pitch + k * b.width, q.v_plane, b.width, q.pitch - k * b.width);
  }
}

// Where tile i of a slice finds the line of each channel of a kernel that it fetches for the next one, of this panel or the next: kernels are longer than caches.
void fetch_kernel(const Tiling &t, const float *next, int64_t i, PositionTile *tile) {
  const int64_t wide = 2 * t.tables->lanes, lines = max64(1, wide / kLine);
  if (next == nullptr || i >= 9 * lines) return;
  tile->ahead = reinterpret_cast<const char *>(next + i / lines * t.w.per * wide + i % lines * kLine);
  tile->ahead_step = wide * int64_t(sizeof(float));
}

// next: the panel behind this one, or null.
void multiply(const Winograd &q, const Block &b, const float *panel, const float *next, bool both) {
  const Window &w = q.t->w;
  const TileTables &tiles = *q.t->tables;
  const int64_t wide = 2 * q.lanes, quads = b.height * b.width, n = ceil_div(quads, tiles.positions);
  PositionTile tile;
  tile.offset = q.offset;
  for (int64_t c = 0; c < w.per; c += q.slice) {
    tile.k = min64(q.slice, w.per - c), tile.load = c > 0;
    q.tables->kernels(panel + c * wide, w.per * wide, tile.k, b.u, q.u_plane);
    const float *then = c + q.slice < w.per ? panel + (c + q.slice) * wide : next;
    for (int64_t e = 0; e < kEntries; e++) {
      tile.w = b.u + e * q.u_plane;
      const float *v = b.v + e * q.v_plane + c * q.pitch;
      for (int64_t i = 0; i < n; i++) {
        const int64_t at = i * quads / n, end = (i + 1) * quads / n;
        tile.x = v + at, tile.sums = b.sums + e * q.sums_plane + at * wide;
        tile.ahead = reinterpret_cast<const char *>(v + end), tile.ahead_step = q.pitch * int64_t(sizeof(float));
        fetch_kernel(*q.t, then, e * n + i, &tile);
        tiles.run[0][both][end - at](tile);
      }
    }
  }
}

// Results [2*row, ...) by [2*column, ...) that exist.
struct Area {
  int64_t rows, columns;
};
Area area_of(const Winograd &q, const Block &b) {
  const Window &w = q.t->w;
  return {min64(2 * b.height, w.out[1] - 2 * b.row), min64(2 * b.width, w.out[2] - 2 * b.column)};
}

bool add_up(const Winograd &q, const Block &b, const Area &a, bool both) {
  const int64_t wide = 2 * q.lanes;
  bool good = true;
  for (int64_t k = 0; k < b.height; k++) {
    float *to = b.results + 2 * k * a.columns * wide;
    const QuadRow row = {b.sums + k * b.width * wide, q.sums_plane, b.width, {to, 2 * k + 1 < a.rows ? to + a.columns * wide : nullptr}, a.columns, both, b.again + k * b.width};
    good = q.tables->results(row) && good;
  }
  return good;
}

// The quads that are not to be used as tile.cpp computes them, and no others: which they are does not depend on the block.
void repeat_directly(const Winograd &q, const Block &b, const Area &a, const float *panel, bool both) {
  const Tiling &t = *q.t;
  const int64_t wide = 2 * q.lanes;
  PositionTile tile;
  tile.ahead = reinterpret_cast<const char *>(panel), tile.ahead_step = 0;
  for (int64_t i = 0; i < b.height * b.width && !t.c->stopped(); i++) {
    if (b.again[i] == 0) continue;
    const int64_t row = i / b.width * 2, column = i % b.width * 2, n = min64(2, a.columns - column);
    for (int64_t k = row; k < min64(row + 2, a.rows); k++) {
      Place p = place_at(t, b.item, b.g, 0, 2 * b.row + k, 2 * b.column + column, n);
      p.sums = b.results + (k * a.columns + column) * wide;
      run_tile(t, p, 0, t.depth, panel, both, &tile);
    }
  }
}

void put_results(const Winograd &q, const Block &b, const Area &a, int64_t panel) {
  const Tiling &t = *q.t;
  const int64_t wide = 2 * q.lanes, outs = min64(wide, t.w.outs - panel * wide), points = t.w.points, o = b.g * t.w.outs + panel * wide;
  const bool whole = a.columns == t.w.out[2];
  const int64_t n = whole ? a.rows * a.columns : a.columns;
  for (int64_t i = 0; i < (whole ? 1 : a.rows); i++) {
    const int64_t at = (b.item * t.w.groups * t.w.outs + o) * points + (2 * b.row + i) * t.w.out[2] + 2 * b.column;
    put_sums(t, b.results + i * a.columns * wide, n, outs, t.c->out_ptr<float>(0) + at, finish_of(t.ending, o, at));
  }
}

void units(void *ctx, int64_t begin, int64_t end, int slot) {
  const Winograd &q = *static_cast<const Winograd *>(ctx);
  const Tiling &t = *q.t;
  Block b = {};
  b.u = q.slots + slot * q.slot, b.v = b.u + kEntries * q.u_plane, b.sums = b.v + kEntries * q.v_plane, b.results = b.sums + kEntries * q.sums_plane, b.strips = b.results + q.results;
  b.again = reinterpret_cast<int32_t *>(b.strips + q.strips);
  int64_t held = -1;  // the block whose windows lie in v
  for (int64_t i = begin; i < end && !t.c->stopped(); i++) {
    const int64_t block = i / q.parts, part = i % q.parts, column = block % q.across, row = block / q.across % q.down, group = block / (q.across * q.down);
    b.item = group / t.w.groups, b.g = group % t.w.groups;
    b.row = row * q.height, b.height = min64(q.height, q.rows - b.row);
    b.column = column * q.width, b.width = min64(q.width, q.columns - b.column);
    if (held != block) transform_windows(q, b), held = block;
    const Area a = area_of(q, b);
    const int64_t last = (part + 1) * q.panels / q.parts;
    for (int64_t p = part * q.panels / q.parts; p < last && !t.c->stopped(); p++) {
      const float *panel = t.weights + (b.g * q.panels + p) * t.panel_floats;
      const bool both = t.w.outs - p * 2 * q.lanes > q.lanes;
      multiply(q, b, panel, p + 1 < last ? panel + t.panel_floats : nullptr, both);
      if (!add_up(q, b, a, both)) repeat_directly(q, b, a, panel, both);
      put_results(q, b, a, p);
    }
  }
}

}  // namespace

bool winograd_fits(const Window &w, int lanes) {
  for (int a = 1; a < 3; a++)
    if (w.kernel[a] != 3 || w.stride[a] != 1 || w.dilation[a] != 1) return false;
  if (w.kernel[0] != 1 || w.size[0] != 1 || w.out[0] != 1 || w.begin[0] != 0) return false;
  const int64_t quads = ceil_div(w.out[1], 2) * ceil_div(w.out[2], 2);
  if (w.per < kLeast || w.outs < max64(kLeast, lanes) || quads < kLeastQuads || quads * w.per < kLeastWork) return false;
  return kEntries * w.per * min64(ceil_div(w.out[2], 2), kColumns) <= kMostWindows;
}
int64_t winograd_slot(const Window &w, int lanes, int threads) { return winograd_of(w, lanes, threads).slot; }
int64_t winograd_offsets(const Window &w) { return align16(w.per); }

void winograd_run(const Tiling &t, const WinogradTables &tables, int32_t *offsets, float *slots) {
  Winograd q = winograd_of(t.w, t.tables->lanes, t.c->threads());
  q.t = &t, q.tables = &tables;
  for (int64_t c = 0; c < t.w.per; c++) offsets[c] = int32_t(c * q.pitch);
  q.offset = offsets, q.slots = slots;
  const int64_t fma = kEntries * q.height * q.width * t.w.per * ceil_div(q.panels, q.parts) * 2 * q.lanes;
  t.c->parallel(t.w.items * t.w.groups * q.down * q.across * q.parts, 1 + kChunkFma / (fma + 1), units, &q);
}

}  // namespace conv
}  // namespace rlx
