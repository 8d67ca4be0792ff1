// Conv, Conv3d and FusedConvBiasAct of f32, f16 and bf16 as a product: y[o, (n, p)] = sum over (c, t) of w[o, (c, t)] * x[n, c, p + t], for
// each group.
// Contract: channels, then kernel positions ascending in one f32 accumulator per element, one rounding at the end; an element has the same
// bits whatever the batch and the threads. Bound: 1.5 K eps sum |w||x|, K = channels of a group times kernel positions.
//
// A unit is a block of result channels by some panels of columns (n, p). Slices of the matrix of windows are made panel by panel as they
// are used, so that scratch does not grow with x. w lies packed in panels of tile rows: in the weights when it is constant, else in scratch.
// Most convolutions of f32 whose windows have several elements are computed in tiles without such a matrix: see tile.cpp, and winograd.cpp for
// those of 3 x 3 that move by 1; of few channels and kernel positions, from strips of rows of x: see shallow_units. Depthwise ones have
// kernels of their own: see depth.cpp. Where each result channel reads one channel of x, shares it with few others and none of those does,
// the kernel slides over planes of x: see plane.h. Other groups of few result channels, and windows that lie far apart, slide too: see slide.cpp.
#include "../core/rlx_begin.h"

#include "../core/pool.h"
#include "conv.h"
#include "ending.h"
#include "slide.h"

namespace rlx {
namespace conv {
namespace {

constexpr int64_t kSlice = 512;         // depth: a slice of a panel is 64 KB
constexpr int64_t kSums = 32768;        // floats of sums of a unit
constexpr int64_t kBlockRows = 512, kBlockPanels = 4;
constexpr int64_t kChunkFma = 1 << 16;  // about a microsecond: less is not worth handing to another thread
constexpr int64_t kFewPanels = 2;       // row panels that read x where it lies: copying it pays with more
constexpr int64_t kShallow = 64;        // channels of a group times kernel positions that read strips of rows
constexpr int64_t kShallowWide = 160, kWide = 64;  // or so many, where so many result channels share them and tiles of positions are small
constexpr int kSmallTile = 6;
constexpr int64_t kStemChannels = 4;    // or would walk few channels
constexpr int64_t kStripReach = 256;    // columns that kernel positions reach further than the first
constexpr int64_t kStripTiles = 8;      // tiles of a piece of a row of results
constexpr int64_t kFar = 1 << 20;       // of a dilation
constexpr int kMostColumns = 32;        // of a tile

int64_t align64_bytes(int64_t n) { return (n + 63) & ~int64_t(63); }

struct Job {
  const Call *c;
  const ConvSet *set;
  const Form *form;
  Window w;
  int64_t depth, columns;            // channels of a group times kernel positions; items times points
  int64_t row_panels, col_panels;    // of a group
  int64_t row_block, col_block;      // in panels
  int64_t row_blocks, col_blocks;
  int64_t packed_bytes, slot_bytes;  // scratch: w when it is not constant, then one slot for each thread
  bool straight;                     // columns of an item lie in x as they do in the matrix of windows
  const float *packed;
  const char *x;
  char *y;
  Ending ending;
};

// Rows [row_start(p), row_start(p + 1)) of a group are row panel p: heights differ by one at most.
int64_t row_start(const Job &j, int64_t p) { return p * (j.w.outs / j.row_panels) + min64(p, j.w.outs % j.row_panels); }

bool direct(const Window &w) { return few_of_one(w) && plane_of(w).fits; }

// Everything but the memory. The slot is as large as any number of threads makes it.
void plan(const Command &c, const ConvSet &s, const Window &w, int threads, Job *j) {
  j->set = &s, j->form = &form_of(s, c.in[0].dtype), j->w = w;
  const int64_t rows = s.tiles.channels, cols = s.tiles.columns;
  j->depth = w.per * w.taps, j->columns = w.items * w.points;
  j->straight = j->form == &s.f32 && side_by_side(w);
  j->row_panels = ceil_div(w.outs, rows), j->col_panels = ceil_div(j->columns, cols);
  j->packed_bytes = c.packed != nullptr ? 0 : align64_bytes(w.groups * w.outs * j->depth * int64_t(sizeof(float)));
  j->slot_bytes = (kSums + kBlockRows * cols + kBlockPanels * kSlice * cols) * int64_t(sizeof(float));
  if (j->row_panels == 0 || j->col_panels == 0) return;
  j->row_block = min64(j->row_panels, kBlockRows / rows);
  j->col_block = max64(1, min64(min64(j->col_panels, kBlockPanels), kSums / (j->row_block * rows * cols)));
  // Narrower blocks, then lower ones, until each thread has a few: lower ones make the matrix of windows again.
  for (;;) {
    j->row_blocks = ceil_div(j->row_panels, j->row_block), j->col_blocks = ceil_div(j->col_panels, j->col_block);
    const int64_t units = w.groups * j->row_blocks * j->col_blocks, fma = j->row_block * rows * j->col_block * cols * (j->depth + 1);
    if (threads <= 1 || units >= 3 * threads || fma < 2 * kChunkFma) return;
    if (j->col_block > 1) j->col_block = ceil_div(j->col_block, 2);
    else if (j->row_block > 2 && units < threads) j->row_block = ceil_div(j->row_block, 2);
    else return;
  }
}

// w as row panels of each group, [depth][height of the panel].
struct Packing {
  const Job *j;
  const char *w;
  float *dst;
};
void pack_rows(void *ctx, int64_t begin, int64_t end, int) {
  const Packing &k = *static_cast<const Packing *>(ctx);
  const Job &j = *k.j;
  const Window &w = j.w;
  for (int64_t u = begin; u < end; u++) {
    const int64_t g = u / j.row_panels, p = u % j.row_panels, i0 = row_start(j, p), h = row_start(j, p + 1) - i0;
    float *panel = k.dst + (g * w.outs + i0) * j.depth;
    for (int64_t i = 0; i < h; i++) {
      int64_t dims[4] = {w.per, w.kernel[0], w.kernel[1], w.kernel[2]}, strides[1][RLX_MAX_RANK] = {{w.ws[1], w.ws[2], w.ws[3], w.ws[4]}};
      const int rank = merge_axes(dims, 4, strides, 1);
      const char *row = k.w + (g * w.outs + i0 + i) * w.ws[0] * j.form->bytes;
      int64_t at = 0;
      for (Walk<1> walk(dims, rank, strides, 0, j.depth); walk.next(); at += walk.n)
        j.form->spread(panel + at * h + i, int(h), row + walk.at[0] * j.form->bytes, rank == 0 ? 1 : walk.step[0], walk.n);
    }
  }
}

// Rows [k0, k1) of the matrix of windows of group g, for n columns from `first` on.
void make_panel(const Job &j, int64_t g, int64_t first, int64_t n, int64_t k0, int64_t k1, float *panel) {
  const Window &w = j.w;
  const int cols = j.set->tiles.columns;
  Stretch list[kMostColumns];
  Segment seg[kMostColumns];
  const int64_t at = first % w.points;
  if (j.straight && at + n <= w.points) {
    seg[0] = {first / w.points * w.xs[0] + at, 0, int32_t(n)};
    j.form->columns(panel, cols, j.x + (g * w.per + k0) * w.xs[1] * j.form->bytes, w.xs[1], k1 - k0, seg, 1, 1, n == cols ? 0 : cols);
    return;
  }
  const int count = stretches(w, first, n, list);
  for (int64_t t = 0; t < min64(w.taps, k1); t++) {
    const int64_t c0 = t >= k0 ? 0 : ceil_div(k0 - t, w.taps), c1 = ceil_div(k1 - t, w.taps);
    if (c0 >= c1) continue;
    int ns;
    const int64_t filled = segments(w, t, list, count, seg, &ns);
    const char *x = j.x + (g * w.per + c0) * w.xs[1] * j.form->bytes;
    j.form->columns(panel + (c0 * w.taps + t - k0) * cols, w.taps * cols, x, w.xs[1], c1 - c0, seg, ns, w.stride[2] * w.xs[4], filled == cols ? 0 : cols);
  }
}

// Panels [p0, p1) of rows by [q0, q1) of columns of group g. Sums are those of the block, or y itself where it holds them: f32, and columns of one item.
struct Block {
  int64_t g, p0, p1, q0, q1;
  float *sums, *panels;
  bool made;    // the panels of columns
  float *c;
  int64_t c_rs, at;  // at: of y, where c is
};

void place_sums(const Job &j, Block *b) {
  const Window &w = j.w;
  const int64_t cols = j.set->tiles.columns, first = b->q0 * cols, last = min64(b->q1 * cols, j.columns), item = first / w.points, top = row_start(j, b->p0);
  b->c = b->sums, b->c_rs = (b->q1 - b->q0) * cols;
  if (j.form != &j.set->f32 || last > (item + 1) * w.points) return;
  b->at = ((item * w.groups + b->g) * w.outs + top) * w.points + first - item * w.points;
  b->c = reinterpret_cast<float *>(j.y) + b->at, b->c_rs = w.points;
}

// Where a tile finds rows k0 on of its columns: in x, or in a panel that is made of them.
void read_columns(const Job &j, const Block &b, int64_t q, int64_t k0, int64_t kc, ChannelTile *t) {
  const Window &w = j.w;
  const int64_t cols = j.set->tiles.columns, first = q * cols, n = min64(cols, j.columns - first), item = first / w.points, f = sizeof(float);
  t->n = int32_t(n);
  if (j.straight && b.p1 - b.p0 <= kFewPanels && n == cols && first + n <= (item + 1) * w.points) {
    t->x = reinterpret_cast<const float *>(j.x) + item * w.xs[0] + (b.g * w.per + k0) * w.xs[1] + first - item * w.points, t->x_rs = w.xs[1];
    t->ahead = reinterpret_cast<const char *>(t->x + cols), t->ahead_step = w.xs[1] * f;
    return;
  }
  float *panel = b.panels + (q - b.q0) * kc * cols;
  t->x = panel, t->x_rs = cols, t->ahead_step = 64;
  if (!b.made) make_panel(j, b.g, first, n, k0, k0 + kc, panel);
}

// The first panels of columns of a row panel fetch the next one; the others fetch, line by line, what the next block of columns sees: its rows lie too far
// apart to be fetched by themselves.
void fetch_columns(const Job &j, const Block &b, int64_t p, int64_t q, int64_t k0, ChannelTile *t) {
  const int64_t cols = j.set->tiles.columns, f = sizeof(float), wide = b.q1 - b.q0, part = (p - b.p0) * (wide - 1) + q - b.q0 - 1;
  if (!j.straight || b.p1 - b.p0 <= kFewPanels || q == b.q0 || part * 64 >= wide * cols * f || b.q1 + wide > j.col_panels) return;
  const int64_t first = b.q1 * cols, item = first / j.w.points;
  t->ahead = j.x + (item * j.w.xs[0] + (b.g * j.w.per + k0) * j.w.xs[1] + first - item * j.w.points) * f + part * 64, t->ahead_step = j.w.xs[1] * f;
}

// The slice of w's panel p, hot in the first-level cache, meets every panel of columns.
void multiply(const Job &j, Block b, int64_t k0, int64_t kc) {
  const int64_t cols = j.set->tiles.columns, top = row_start(j, b.p0);
  ChannelTile t = {};
  t.y_rs = b.c_rs;
  t.k = kc, t.load = k0 > 0, t.last = k0 + kc == j.depth && b.c != b.sums;
  b.made = false;
  for (int64_t p = b.p0; p < b.p1; p++, b.made = true) {
    const int64_t i = row_start(j, p), h = row_start(j, p + 1) - i;
    t.w = j.packed + (b.g * j.w.outs + i) * j.depth + k0 * h;
    for (int64_t q = b.q0; q < b.q1; q++) {
      const int64_t at = (i - top) * b.c_rs + (q - b.q0) * cols;
      t.ahead = reinterpret_cast<const char *>(t.w + h * j.depth);
      read_columns(j, b, q, k0, kc, &t);
      fetch_columns(j, b, p, q, k0, &t);
      t.y = b.c + at;
      if (t.last) t.finish = finish_of(j.ending, b.g * j.w.outs + i, b.at + at);
      j.set->tiles.run[2 * t.n > cols][h](t);
    }
  }
}

// What tiles have not done: the sums of a block to y, item by item, or the function over what lies there.
void put_block(const Job &j, const Block &b) {
  const Window &w = j.w;
  const int64_t cols = j.set->tiles.columns, top = row_start(j, b.p0), rows = row_start(j, b.p1) - top, first = b.q0 * cols, last = min64(j.columns, b.q1 * cols);
  if (b.c != b.sums) {
    if (j.ending.swept && last - first == b.c_rs) return sweep(j.ending, b.c, rows * b.c_rs);
    for (int64_t i = 0; i < rows && j.ending.swept; i++) sweep(j.ending, b.c + i * b.c_rs, last - first);
    return;
  }
  for (int64_t at = first; at < last;) {
    const int64_t item = at / w.points, p = at % w.points, n = min64(last - at, w.points - p);
    char *y = j.y + ((item * w.groups * w.outs + b.g * w.outs + top) * w.points + p) * j.form->bytes;
    for (int64_t i = 0; i < rows; i++) {
      float *sums = b.c + i * b.c_rs + at - first;
      const int64_t o = b.g * w.outs + top + i;
      if (j.ending.present) end_sums(j.ending, *j.form, sums, n, o, (item * w.groups * w.outs + o) * w.points + p);
      j.form->put(y + i * w.points * j.form->bytes, sums, n);
    }
    at += n;
  }
}

void units(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  const int64_t cols = j.set->tiles.columns;
  Block b;
  b.sums = reinterpret_cast<float *>(static_cast<char *>(j.c->scratch) + j.packed_bytes + slot * j.slot_bytes);
  b.panels = b.sums + kSums + kBlockRows * cols;
  for (int64_t u = begin; u < end && !j.c->stopped(); u++) {
    b.p0 = u % j.row_blocks * j.row_block, b.p1 = min64(b.p0 + j.row_block, j.row_panels);
    b.q0 = u / j.row_blocks % j.col_blocks * j.col_block, b.q1 = min64(b.q0 + j.col_block, j.col_panels);
    b.g = u / (j.row_blocks * j.col_blocks);
    place_sums(j, &b);
    int64_t k0 = 0;
    do {
      const int64_t kc = min64(kSlice, j.depth - k0);
      multiply(j, b, k0, kc);
      k0 += kc;
    } while (k0 < j.depth);
    put_block(j, b);
  }
}

// Few channels and kernel positions: a unit is a piece of a row of results of a group, whose rows of x lie in strips (see shallow.h).
bool shallow(const Command &c, const Window &w, const ConvSet &s) {
  const int64_t half = s.tiles.columns / 2;
  const bool filled = ceil_div(w.out[2], half) * half * 8 <= w.out[2] * 9;  // vectors of results
  const bool many = w.outs >= kWide && (s.positions.positions <= kSmallTile || (w.per <= kStemChannels && filled));
  const int64_t most = many ? kShallowWide : kShallow;
  return c.in[0].dtype == RLX_F32 && w.size[0] == 1 && w.kernel[0] == 1 && w.out[0] == 1 && w.begin[0] == 0 && w.taps > 1 && w.per * w.taps <= most && w.stride[2] <= 2 &&
         w.dilation[1] <= kFar && w.dilation[2] <= kStripReach && (w.kernel[2] - 1) * w.dilation[2] <= kStripReach && w.xs[4] == 1 && w.outs >= s.tiles.columns / 4 &&
         w.out[1] > 0 && w.out[2] >= half && w.per > 0;
}

struct Strips {
  int64_t piece, pieces;  // columns of a unit; units of a row of results
  int64_t phases, pitch;  // of a row of x
  int64_t floats;         // of all of them: each kernel row of each channel has one
};
Strips strips_of(const Window &w, const ConvSet &s) {
  Strips p;
  p.piece = min64(w.out[2], kStripTiles * s.tiles.columns), p.pieces = ceil_div(w.out[2], p.piece);
  p.phases = w.kernel[2] > 1 ? w.stride[2] : 1;
  p.pitch = align16(align16(p.piece) + (w.kernel[2] - 1) * w.dilation[2] / w.stride[2]);
  p.floats = w.per * w.kernel[1] * p.phases * p.pitch;
  return p;
}

// The rows of x that the strips of a thread hold.
struct Held {
  int64_t owner;                // the item, group and piece, as one number; -1 for none
  int64_t row[kShallowWide];    // by the place of a strip: a row of x and its padding, or -1
};

// Lays the rows that results `oh` see and no strip has, and lists where depth k starts.
void lay_rows(const Job &j, const Strips &p, const float *x, int64_t oh, int64_t left, float *strips, Held *held, int32_t *offset) {
  const Window &w = j.w;
  const int64_t halved = w.stride[2] - 1;  // a stride of 2, whose divisions would take as long as the products
  StripRow r = {nullptr, left, w.size[2], w.stride[2], p.phases, nullptr, nullptr, p.pitch};
  for (int64_t i = 0; i < w.kernel[1]; i++) {
    const int64_t row = oh * w.stride[1] + i * w.dilation[1], at = row / w.dilation[1] % w.kernel[1], h = row - w.begin[1];
    for (int64_t c = 0; c < w.per; c++) {
      const int64_t strip = (c * w.kernel[1] + at) * p.phases * p.pitch;
      if (held->row[at] != row) {
        const float *channel = x + c * w.xs[1];
        r.x = uint64_t(h) < uint64_t(w.size[1]) ? channel + h * w.xs[3] : nullptr;
        r.ahead = uint64_t(h + w.stride[1]) < uint64_t(w.size[1]) ? channel + (h + w.stride[1]) * w.xs[3] : nullptr;
        r.to = strips + strip;
        j.set->strips.lay(r);
      }
      for (int64_t k = 0; k < w.kernel[2]; k++) {
        const int64_t column = k * w.dilation[2];
        offset[(c * w.kernel[1] + i) * w.kernel[2] + k] = int32_t(strip + (column & halved) * p.pitch + (column >> halved));
      }
    }
    held->row[at] = row;
  }
}

void shallow_units(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  const Window &w = j.w;
  const int64_t cols = j.set->tiles.columns;
  const Strips p = strips_of(w, *j.set);
  float *strips = reinterpret_cast<float *>(static_cast<char *>(j.c->scratch) + j.packed_bytes + slot * j.slot_bytes);
  int32_t offset[kShallowWide];
  Held held;
  held.owner = -1;
  ChannelTile t = {};
  t.y_rs = w.points, t.k = j.depth, t.last = true, t.ahead_step = 64;
  for (int64_t u = begin; u < end && !j.c->stopped(); u++) {
    const int64_t oh = u % w.out[1], owner = u / w.out[1], g = owner / p.pieces % w.groups, item = owner / (p.pieces * w.groups);
    const int64_t from = owner % p.pieces * p.piece, to = min64(from + p.piece, w.out[2]);
    if (held.owner != owner) {
      held.owner = owner;
      for (int64_t &row : held.row) row = -1;
    }
    const float *x = reinterpret_cast<const float *>(j.x) + item * w.xs[0] + g * w.per * w.xs[1];
    lay_rows(j, p, x, oh, from * w.stride[2] - w.begin[2], strips, &held, offset);
    for (int64_t q = 0; q < j.row_panels; q++) {
      const int64_t i = g * w.outs + row_start(j, q), h = row_start(j, q + 1) - row_start(j, q), at = (item * w.groups * w.outs + i) * w.points + oh * w.out[2];
      t.w = j.packed + i * j.depth, t.ahead = reinterpret_cast<const char *>(t.w + h * j.depth);
      for (int64_t col = from; col < to; col += cols) {
        t.n = int32_t(min64(cols, to - col)), t.x = strips + col - from;
        t.y = reinterpret_cast<float *>(j.y) + at + col, t.finish = finish_of(j.ending, i, at + col);
        j.set->strips.run[2 * t.n > cols][h](t, offset);
      }
    }
    for (int64_t o = 0; o < w.outs && j.ending.swept; o++)
      sweep(j.ending, reinterpret_cast<float *>(j.y) + ((item * w.groups + g) * w.outs + o) * w.points + oh * w.out[2] + from, to - from);
  }
}

// Sliding over planes. Scratch: the offsets of kernel positions, then for each thread a kernel, the planes and the sums of a patch.
struct Sliding {
  const Job *j;
  Plane p;
  int64_t *offset;
  int64_t kernel, slot;  // floats
  float *slots;
};

Sliding sliding_of(const Job &j, void *scratch) {
  Sliding s = {&j, plane_of(j.w), static_cast<int64_t *>(scratch), align64_bytes(j.w.taps * int64_t(sizeof(float))) / int64_t(sizeof(float)), 0, nullptr};
  s.slot = align16(s.kernel + s.p.total + s.p.sums);
  s.slots = reinterpret_cast<float *>(static_cast<char *>(scratch) + align64_bytes(j.w.taps * int64_t(sizeof(int64_t))));
  return s;
}

void depth_patches(void *ctx, int64_t begin, int64_t end, int slot) {
  const Sliding &s = *static_cast<const Sliding *>(ctx);
  const Job &j = *s.j;
  const Window &w = j.w;
  const Form &f = *j.form;
  float *kernel = s.slots + slot * s.slot, *planes = kernel + s.kernel, *sums = planes + s.p.total;
  for (int64_t u = begin; u < end && !j.c->stopped(); u++) {
    const Patch a = patch_of(w, s.p, u);
    const int64_t o = a.channel % (w.groups * w.outs), item = a.channel / (w.groups * w.outs);
    const char *k = j.c->in_ptr<char>(1) + o * w.ws[0] * f.bytes;
    for (int64_t t = 0; t < w.taps; t += w.kernel[2])
      f.spread(kernel + t, 1, k + (t / (w.kernel[1] * w.kernel[2]) * w.ws[2] + t / w.kernel[2] % w.kernel[1] * w.ws[3]) * f.bytes, w.ws[4], w.kernel[2]);
    f.lay(w, s.p, a, j.x + (item * w.xs[0] + o / w.outs * w.xs[1]) * f.bytes, 0, planes);
    const int64_t n = (a.rows - 1) * s.p.pitch + a.cols;
    j.set->depth_sums(planes, s.offset, kernel, w.taps, sums, n);
    const bool by_rows = j.ending.residual != nullptr;
    if (j.ending.present && !by_rows) end_sums(j.ending, f, sums, n, o, 0);
    for (int64_t i = 0; i < a.rows; i++) {
      const int64_t at = ((a.channel * w.out[0] + a.od) * w.out[1] + a.oh + i) * w.out[2] + a.ow;
      if (by_rows) end_sums(j.ending, f, sums + i * s.p.pitch, a.cols, o, at);
      f.put(j.y + at * f.bytes, sums + i * s.p.pitch, a.cols);
    }
  }
}

template <int Isa> void run(const Call &c) {
  Job j = {};
  const Window w = window_of_conv(*c.cmd);
  if (depth_fits(*c.cmd, w)) return depth_run(c, w, w.kernel[2] == 3 ? *set_of(Isa).depth3 : *set_of(Isa).depth5, set_of(Isa).f32, Isa);
  if (slide_fits(*c.cmd, w, Isa)) return slide_run(c, w, Isa);
  const bool by_rows = shallow(*c.cmd, w, set_of(Isa));
  if (!direct(w) && !by_rows && tiles_fit(*c.cmd, w, set_of(Isa).positions)) return tiles_run(c, w, set_of(Isa), Isa);
  plan(*c.cmd, set_of(Isa), w, c.threads(), &j);
  j.c = &c, j.x = c.in_ptr<char>(0), j.y = c.out_ptr<char>(0);
  j.ending = ending_of(c, Isa);
  if (direct(w)) {
    Sliding s = sliding_of(j, c.scratch);
    plane_offsets(w, s.p, s.offset);
    return c.parallel(patches(w, s.p, w.items * w.groups * w.outs), 1 + kChunkFma / 2 / (1 + s.p.sums * w.taps), depth_patches, &s);
  }
  if (j.row_panels == 0 || j.col_panels == 0) return;
  j.packed = static_cast<const float *>(c.cmd->packed);
  if (j.packed == nullptr) {
    Packing k = {&j, c.in_ptr<char>(1), static_cast<float *>(c.scratch)};
    c.parallel(w.groups * j.row_panels, 1 + kChunkFma / 4 / (j.set->tiles.channels * (j.depth + 1)), pack_rows, &k);
    j.packed = k.dst;
  }
  if (by_rows) {
    const Strips p = strips_of(w, *j.set);
    j.slot_bytes = align64_bytes(p.floats * int64_t(sizeof(float)));
    return c.parallel(w.items * w.groups * w.out[1] * p.pieces, 1 + kChunkFma / (p.piece * w.outs * j.depth), shallow_units, &j);
  }
  const int64_t fma = j.row_block * j.set->tiles.channels * j.col_block * j.set->tiles.columns * (j.depth + 1);
  c.parallel(w.groups * j.row_blocks * j.col_blocks, 1 + kChunkFma / fma, units, &j);
}

}  // namespace

int32_t conv_prepare(Prepare &prepare) {
  Command &c = *prepare.cmd;
  const Window w = window_of_conv(c);
  if (depth_fits(c, w)) return RLX_OK;
  if (slide_fits(c, w, prepare.isa)) return slide_prepare(prepare, w);
  Job j = {};
  if (direct(w)) {
    j.w = w;
    const Sliding d = sliding_of(j, nullptr);
    c.scratch = align64_bytes(w.taps * int64_t(sizeof(int64_t))) + prepare.max_threads * d.slot * int64_t(sizeof(float));
    return RLX_OK;
  }
  const ConvSet &s = set_of(prepare.isa);
  const bool by_rows = shallow(c, w, s);
  if (!by_rows && tiles_fit(c, w, s.positions)) return tiles_prepare(prepare, w, s);
  plan(c, s, w, prepare.max_threads, &j);
  if (by_rows) j.slot_bytes = align64_bytes(strips_of(w, s).floats * int64_t(sizeof(float)));
  if (prepare.constant_view(prepare, 1) && j.packed_bytes > 0 && w.groups < (1 << 24)) {
    // The height of panels depends on the groups.
    const uint64_t layout = uint64_t(c.op) << 32 | uint64_t(w.groups) << 8 | uint64_t(s.tiles.channels);
    const PackedForm form = {layout, j.packed_bytes, j.form->bytes == 4 ? unpack_rows : nullptr, {w.groups, s.tiles.channels}};
    bool fresh = false;
    Packing k = {&j, nullptr, static_cast<float *>(prepare.cache(prepare, 1, form, &fresh))};
    k.w = fresh ? static_cast<const char *>(prepare.source(prepare, 1)) : nullptr;
    if (k.dst == nullptr || (fresh && k.w == nullptr)) return RLX_NO_MEMORY;
    if (fresh) parallel(prepare.pool, prepare.max_threads, w.groups * j.row_panels, 1 + kChunkFma / 4 / (s.tiles.channels * (j.depth + 1)), pack_rows, &k, nullptr);
    c.packed = k.dst, j.packed_bytes = 0;
  }
  c.scratch = j.packed_bytes + prepare.max_threads * j.slot_bytes;
  return RLX_OK;
}

void conv_f32_generic(const Call &c, Range) { run<ISA_GENERIC>(c); }
#if defined(RLX_X86)
void conv_f32_avx2(const Call &c, Range) { run<ISA_AVX2>(c); }
void conv_f32_avx512(const Call &c, Range) { run<ISA_AVX512>(c); }
#elif defined(RLX_NEON)
void conv_f32_neon(const Call &c, Range) { run<ISA_NEON>(c); }
#endif

}  // namespace conv
}  // namespace rlx
