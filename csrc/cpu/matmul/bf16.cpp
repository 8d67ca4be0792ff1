// MatMul of bf16 in pairs: see bf16.h. Contract: that of blocked.cpp, to the bit.
//
// A unit is a block of y. For each slice of depth its rows of a are packed; then each panel of b meets all of them, from the second-level
// cache. A constant b is packed at load, a variable one by the unit that uses it, or before all units where several would.
#include "../core/rlx_begin.h"

#include "../core/isa.h"
#include "bf16.h"
#include "matmul.h"

namespace rlx {
namespace matmul {

#if defined(RLX_X86)
namespace {

constexpr int64_t kDepth = 512;              // pairs of a slice: a panel of b is 64 KB
constexpr int64_t kThinDepthPairs = 8192;    // depth times rows when one row panel is all there is
constexpr int64_t kStridedDepth = 16;        // of such rows against rows of b on pages of their own
constexpr int64_t kPageElements = 2048;     // of bf16
constexpr int64_t kRowBlockPairs = 61440;    // a block of a, 240 KB: stays in the second-level cache
constexpr int64_t kRowBlock = 64, kColBlock = 32;  // panels of a unit at most
constexpr int64_t kChunkFma = 1 << 17;       // about a microsecond: less is not worth handing to another thread
constexpr int64_t kChunkPack = 1 << 14;      // elements
constexpr int64_t kPackDepth = 1 << 13;      // pairs of a panel packed between two looks at whether the run was cancelled
constexpr int64_t kHead = 16;                // pairs before a packed panel, a cache line: the first word is its least exponent
constexpr int64_t kAhead = 4096;             // pairs of b, which few rows read as fast as memory gives them

constexpr int64_t kRows = kPairRows, kCols = kPairCols;
constexpr uint16_t kMinusZero = 0x8000;

const PairSet &set = kPairsAvx512;

struct Plan {
  Product p;
  int64_t pairs, kc, row_stride;  // of all depth, of a slice, between rows of packed a
  int64_t row_panels, col_panels, row_block, col_block, row_blocks, col_blocks, units, grain;
  int64_t panel;                  // pairs of a packed panel of b, its head included
  int64_t b_matrices, sums_rs, slot_a, slot_b, slot, shared;  // sizes in words of 32 bits
  bool held, pack_first;          // b is packed at load; before all units
  bool swapped;                   // y is the transpose of b a, as one column
};

int64_t round16(int64_t words) { return (words + 15) & ~int64_t(15); }
int64_t row_start(const Plan &g, int64_t p) { return p * (g.p.m / g.row_panels) + min64(p, g.p.m % g.row_panels); }

template <class T> void swap(T &a, T &b) {
  const T t = a;
  a = b, b = t;
}

// One column is a row of the transposed product: the same bits, in whole vectors.
void transpose_column(Product *p) {
  swap(p->m, p->n);
  swap(p->a_rs, p->b_cs), swap(p->a_cs, p->b_rs);
  for (int d = 0; d < p->rank; d++) swap(p->strides[0][d], p->strides[1][d]);
}

// Halves the blocks until there are several units per thread, but leaves a chunk's worth of work in each.
void split(Plan *g, int threads) {
  const int64_t panel_fma = ceil_div(g->p.m, g->row_panels) * kCols * max64(g->p.k, 1);
  for (;;) {
    g->row_blocks = ceil_div(g->row_panels, g->row_block), g->col_blocks = ceil_div(g->col_panels, g->col_block);
    g->row_block = ceil_div(g->row_panels, g->row_blocks), g->col_block = ceil_div(g->col_panels, g->col_blocks);
    g->units = g->p.matrices * g->row_blocks * g->col_blocks;
    const int64_t fma = g->row_block * g->col_block * panel_fma;
    g->grain = max64(1, kChunkFma / fma);
    if (threads <= 1 || g->units >= 4 * threads || fma < 2 * kChunkFma) return;
    // Splitting rows makes b be packed in a phase of its own.
    const bool own_b = !g->held && g->row_blocks == 1;
    if (g->col_block > 4 || (g->col_block > 1 && (own_b || g->row_block <= 1))) g->col_block = ceil_div(g->col_block, 2);
    else if (g->row_block > 1) g->row_block = ceil_div(g->row_block, 2);
    else return;
  }
}

int64_t panel_size(int64_t k) { return kHead + (k + 1) / 2 * kCols; }

void plan(const Command &c, int threads, Plan *g) {
  const Operand &b = c.in[1];
  g->held = c.packed != nullptr;
  const int64_t packed = g->held ? ceil_div(b.dims[b.rank - 1], kCols) * panel_size(b.dims[b.rank - 2]) : 0;
  product_of(c, packed, &g->p);
  Product &p = g->p;
  g->swapped = p.n == 1 && !g->held;
  if (g->swapped) transpose_column(&p);
  g->units = g->slot = g->shared = 0;
  if (p.matrices == 0 || p.n == 0 || p.m == 0) return;
  g->pairs = (p.k + 1) / 2, g->panel = panel_size(p.k);
  g->row_panels = ceil_div(p.m, kRows), g->col_panels = ceil_div(p.n, kCols);
  const int64_t height = ceil_div(p.m, g->row_panels);
  int64_t depth = kDepth;
  if (g->row_panels == 1) depth = g->held ? max64(kDepth, kThinDepthPairs / height) : p.b_cs == 1 && p.b_rs >= kPageElements ? kStridedDepth : kDepth;
  g->kc = max64(1, ceil_div(g->pairs, ceil_div(max64(g->pairs, 1), depth)));  // slices of one depth, or nearly so
  g->row_stride = round16(g->kc) | 16;                                        // rows do not share a cache set
  g->row_block = min64(min64(g->row_panels, kRowBlock), max64(1, kRowBlockPairs / (height * g->kc)));
  g->col_block = min64(g->col_panels, kColBlock);
  split(g, threads);
  g->b_matrices = 1;
  for (int d = 0; d < p.rank; d++)
    if (p.strides[1][d] != 0) g->b_matrices *= p.batch[d];
  g->pack_first = !g->held && (g->row_blocks > 1 || g->b_matrices < p.matrices);
  const bool sliced = g->kc < g->pairs;
  g->sums_rs = sliced ? g->col_block * kCols + kHead : kCols;
  g->slot_a = g->row_block * kRows * g->row_stride;
  g->slot_b = g->held || g->pack_first ? 0 : g->kc * kCols;
  g->slot = g->slot_a + g->slot_b + (sliced ? g->row_block : 1) * kRows * g->sums_rs;
  if (g->pack_first) g->shared = g->b_matrices * g->col_panels * g->panel;
}

int64_t bytes_of(const Plan &g, int threads) { return (g.shared + threads * g.slot) * int64_t(sizeof(uint32_t)); }

struct Job {
  const Call *c;
  Plan g;
  const uint16_t *a, *b;
  const uint32_t *panels;  // of b, or null: a unit packs its own
  char *y;
  bool wide;  // y is of f32
};

// Where a matrix of the batch lies. Dims over which b does not change do not count for b_index.
struct View { int64_t a, b, y, b_index; };
View view(const Product &p, int64_t matrix) {
  View v = {};
  int64_t scale = 1;
  for (int d = p.rank - 1; d >= 0; d--) {
    const int64_t i = matrix % p.batch[d];
    matrix /= p.batch[d];
    v.a += i * p.strides[0][d], v.b += i * p.strides[1][d], v.y += i * p.strides[2][d];
    if (p.strides[1][d] != 0) v.b_index += i * scale, scale *= p.batch[d];
  }
  return v;
}
int64_t start_of_b(const Product &p, int64_t b_index) {
  int64_t at = 0;
  for (int d = p.rank - 1; d >= 0; d--) {
    if (p.strides[1][d] == 0) continue;
    at += b_index % p.batch[d] * p.strides[1][d];
    b_index /= p.batch[d];
  }
  return at;
}

// Packs a whole panel. Its head comes last.
void pack_whole(const Product &p, uint32_t *panel, const uint16_t *src, int64_t columns, const Call *c) {
  int least = kNoExponent;
  for (int64_t k = 0; k < p.k && (c == nullptr || !c->stopped()); k += 2 * kPackDepth) {
    const int64_t depth = min64(2 * kPackDepth, p.k - k);
    const int e = set.pack(panel + kHead + k / 2 * kCols, int(kCols), src + k * p.b_rs, p.b_rs, p.b_cs, depth, int(columns), kMinusZero);
    least = e < least ? e : least;
  }
  panel[0] = uint32_t(least);
}

void pack_constant(const Product &p, void *panel, int, const void *src, int64_t columns) {
  pack_whole(p, static_cast<uint32_t *>(panel), static_cast<const uint16_t *>(src), columns, nullptr);
}

void pack_units(void *ctx, int64_t begin, int64_t end, int) {
  const Job &job = *static_cast<const Job *>(ctx);
  const Plan &g = job.g;
  for (int64_t u = begin; u < end && !job.c->stopped(); u++) {
    const int64_t j = u % g.col_panels * kCols, at = start_of_b(g.p, u / g.col_panels) + j * g.p.b_cs;
    pack_whole(g.p, static_cast<uint32_t *>(job.c->scratch) + u * g.panel, job.b + at, min64(kCols, g.p.n - j), job.c);
  }
}

// One block of y: panels [p0, p1) by [q0, q1) of a matrix.
struct Block {
  const Job &job;
  const uint16_t *a, *b;
  const uint32_t *panels;
  char *y;
  int64_t p0, p1, q0, q1;
  uint32_t *rows, *panel;
  float *sums;
  int least_a[kRowBlock], least_b[kColBlock];  // exponents up to the slice
};

// Pairs [k0, k0 + kc) of the rows, one row after the other or, where that is how they lie, side by side.
void pack_rows(Block &x, int64_t k0, int64_t kc) {
  const Plan &g = x.job.g;
  const Product &p = g.p;
  const int64_t k = min64(2 * kc, p.k - 2 * k0);
  for (int64_t q = x.p0; q < x.p1; q++) {
    const int64_t i = row_start(g, q), h = row_start(g, q + 1) - i;
    const uint16_t *src = x.a + i * p.a_rs + 2 * k0 * p.a_cs;
    uint32_t *dst = x.rows + (q - x.p0) * kRows * g.row_stride;
    int &least = x.least_a[q - x.p0];
    if (k0 == 0) least = kNoExponent;
    if (p.a_cs != 1) {
      const int e = set.pack(dst, int(h), src, p.a_cs, p.a_rs, k, int(h), 0);
      least = e < least ? e : least;
      continue;
    }
    for (int64_t r = 0; r < h; r++) {
      const int e = set.pack_row(dst + r * g.row_stride, src + r * p.a_rs, k);
      least = e < least ? e : least;
    }
  }
}

const uint32_t *panel_of_b(Block &x, int64_t q, int64_t k0, int64_t kc) {
  const Plan &g = x.job.g;
  const Product &p = g.p;
  int &least = x.least_b[q - x.q0];
  if (x.panels != nullptr) {
    const uint32_t *panel = x.panels + q * g.panel;
    least = int(panel[0]);
    return panel + kHead + k0 * kCols;
  }
  const int e = set.pack(x.panel, int(kCols), x.b + 2 * k0 * p.b_rs + q * kCols * p.b_cs, p.b_rs, p.b_cs, min64(2 * kc, p.k - 2 * k0),
                         int(min64(kCols, p.n - q * kCols)), kMinusZero);
  least = k0 > 0 && least < e ? least : e;
  return x.panel;
}

void put(const Block &x, int64_t i, int64_t h, int64_t q, const float *sums, bool normal) {
  const Plan &g = x.job.g;
  const int64_t j = q * kCols, n = min64(kCols, g.p.n - j), at = i * g.p.n + j;
  if (!x.job.wide) return (normal ? set.put_normal : set.put)(reinterpret_cast<uint16_t *>(x.y) + at, g.p.n, sums, g.sums_rs, h, int(n));
  float *y = reinterpret_cast<float *>(x.y) + at;
  for (int64_t r = 0; r < h; r++, y += g.p.n, sums += g.sums_rs) std::memcpy(y, sums, size_t(n) * sizeof(float));
}

// All rows of the block by panel q, over a slice.
void column(Block &x, int64_t q, int64_t k0, int64_t kc) {
  const Plan &g = x.job.g;
  const bool sliced = g.kc < g.pairs, thin = g.row_panels == 1, beside = g.p.a_cs != 1;
  const uint32_t *panel = panel_of_b(x, q, k0, kc);
  TileF32 t;
  t.b = reinterpret_cast<const float *>(panel), t.b_rs = kCols * int64_t(sizeof(uint32_t));
  t.c_rs = g.sums_rs * int64_t(sizeof(float)), t.k = kc, t.load = k0 > 0;
  for (int64_t p = x.p0; p < x.p1; p++) {
    const int64_t i = row_start(g, p), h = row_start(g, p + 1) - i, at = (p - x.p0) * kRows;
    t.a = reinterpret_cast<const float *>(x.rows + at * g.row_stride);
    t.a_rs = 4 * (beside ? 1 : g.row_stride), t.a_cs = 4 * (beside ? h : 1);
    t.c = sliced ? x.sums + at * g.sums_rs + (q - x.q0) * kCols : x.sums;
    // The first rows fetch the next panel; if there are no others, further on in the stream of panels.
    const bool fetch = x.panels != nullptr && p == x.p0;
    t.ahead = fetch ? reinterpret_cast<const char *>(panel) + 4 * (thin ? kAhead : g.panel) : reinterpret_cast<const char *>(panel);
    t.ahead_step = fetch ? t.b_rs : 0;
    const bool normal = never_subnormal(x.least_a[p - x.p0], x.least_b[q - x.q0]);
    (normal ? set.dot : set.exact)[h](&t);
    if (k0 + kc >= g.pairs) put(x, i, h, q, t.c, normal);
  }
}

void block(Block &x) {
  const Plan &g = x.job.g;
  int64_t k0 = 0;
  do {
    const int64_t kc = min64(g.kc, g.pairs - k0);
    pack_rows(x, k0, kc);
    for (int64_t q = x.q0; q < x.q1; q++) column(x, q, k0, kc);
    k0 += kc;
  } while (k0 < g.pairs && !x.job.c->stopped());
}

void units(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &job = *static_cast<const Job *>(ctx);
  const Plan &g = job.g;
  uint32_t *memory = static_cast<uint32_t *>(job.c->scratch) + g.shared + slot * g.slot;
  for (int64_t u = begin; u < end && !job.c->stopped(); u++) {
    const int64_t p = u % g.row_blocks * g.row_block, q = u / g.row_blocks % g.col_blocks * g.col_block;
    const View v = view(g.p, u / (g.row_blocks * g.col_blocks));
    Block x = {job, job.a + v.a, job.b + v.b, job.panels, job.y + v.y * (job.wide ? 4 : 2), p, min64(p + g.row_block, g.row_panels),
               q, min64(q + g.col_block, g.col_panels), memory, memory + g.slot_a, reinterpret_cast<float *>(memory + g.slot_a + g.slot_b), {}, {}};
    if (job.panels != nullptr) x.panels += g.held ? v.b : v.b_index * g.col_panels * g.panel;
    block(x);
  }
}

void matmul_bf16(const Call &c, Range) {
  Job job = {};
  job.c = &c;
  plan(*c.cmd, c.threads(), &job.g);
  const Plan &g = job.g;
  if (g.units == 0) return;
  job.a = c.in_ptr<uint16_t>(0), job.b = c.in_ptr<uint16_t>(1), job.y = c.out_ptr<char>(0);
  if (g.swapped) swap(job.a, job.b);
  job.wide = c.out(0).dtype == RLX_F32;
  job.panels = g.held ? static_cast<const uint32_t *>(c.cmd->packed) : g.pack_first ? static_cast<const uint32_t *>(c.scratch) : nullptr;
  if (g.pack_first) c.parallel(g.b_matrices * g.col_panels, max64(1, kChunkPack / (max64(1, g.p.k) * kCols)), pack_units, &job);
  c.parallel(g.units, g.grain, units, &job);
}

// Whether the machine's sums of pairs are those of bf16.h, also where a product alone would overflow.
bool sums_as_expected() {
  constexpr int K = 8;
  alignas(64) uint32_t a[K] = {0xf1800000, 0x5f800000}, b[K * 32];
  alignas(64) float c[2][32];
  uint32_t seed = 1;
  const auto next = [&seed] { return seed = seed * 1664525u + 1013904223u, (seed >> 9 & 0x9fff) + 0x2800; };
  for (int i = 2; i < K; i++) a[i] = next() << 16 | next();
  for (int i = 0; i < K * 32; i++) b[i] = next() << 16 | next();
  b[0] = 0x4d000000, b[32] = 0x5f800000;  // -2^100 2^27 + 2^64 2^64
  TileF32 t = {reinterpret_cast<const float *>(a), 4 * K, 4, reinterpret_cast<const float *>(b), 128, nullptr, 128, K, 0, b, 0};
  t.c = c[0], set.dot[1](&t);
  t.c = c[1], set.exact[1](&t);
  return std::memcmp(c[0], c[1], sizeof c[0]) == 0;
}

}  // namespace

bool matmul_bf16_prepare(Prepare &prepare, int32_t *code) {
  if (prepare.isa != ISA_AVX512 || !isa_has_avx512_bf16() || !sums_as_expected()) return false;
  Command &c = *prepare.cmd;
  const int64_t k = c.in[0].dims[c.in[0].rank - 1];
  constexpr uint32_t kLayout = 0x100 | RLX_BF16;  // unlike what the other kernels pass
  *code = pack_constant_b(prepare, int(kCols), sizeof(uint16_t), kLayout, pack_constant, panel_size(k) * int64_t(sizeof(uint32_t)),
                          kHead * int64_t(sizeof(uint32_t)), 2);
  for (int threads = 1; threads <= prepare.max_threads && *code == RLX_OK; threads++) {
    Plan g;
    plan(c, threads, &g);
    c.scratch = max64(c.scratch, bytes_of(g, threads));
  }
  c.kernel = matmul_bf16;
  return true;
}
#else
bool matmul_bf16_prepare(Prepare &, int32_t *) { return false; }
#endif

}  // namespace matmul
}  // namespace rlx
