#include "../core/rlx_begin.h"

#include <cstdint>
#include <cstring>

#include "../core/integers.h"
#include "gemm.h"
#include "of_isa.h"

namespace rlx {
namespace matmul {
namespace {

constexpr int64_t kDepth = 1024;           // a panel of B is 128 KB: its lines pass through the first-level cache once per row panel
constexpr int64_t kRowBlockFloats = 61440;  // a block of A, 240 KB: stays in the second-level cache
constexpr int64_t kColBlock = 1024;        // columns of a unit: each packs its rows of A
constexpr int64_t kFinishFloats = 49152;   // of C that are finished together: 192 KB, still in the second-level cache
constexpr int64_t kChunkFma = 1 << 16;     // about a microsecond: less is not worth handing to another thread
constexpr int64_t kChunkPack = 1 << 14;    // elements
constexpr int64_t kPackDepth = 1 << 13;    // rows of a panel packed between two looks at whether the run was cancelled
constexpr int64_t kThinDepthFloats = 8192; // depth times rows when one row panel is all there is

constexpr int64_t kLine = 64;              // bytes that one prefetch brings
constexpr int64_t kAheadPanels = 4;        // of B, where each row is on a page of its own
constexpr int64_t kPackedAColumns = 128;   // columns of a unit that pay for packing its rows of A
constexpr int64_t kPageFloats = 1024;
constexpr int64_t kWidenDepth = 128;       // a panel that was just widened stays in the first-level cache
constexpr int64_t kWidenRowsDepth = 192;   // the same under several row panels
constexpr int64_t kStridedDepth = 8;       // such rows often fall into one cache set: no more than its ways

int64_t round16(int64_t floats) { return (floats + 15) & ~INT64_C(15); }
bool cancelled(const volatile uint32_t *word) { return word != nullptr && __atomic_load_n(word, __ATOMIC_RELAXED) != 0; }

// Rows [row_start(p), row_start(p+1)) are panel p: heights differ by one at most, so that no panel is left nearly empty.
int64_t row_start(const GemmF32 *g, int64_t p) { return p * (g->m / g->row_panels) + min64(p, g->m % g->row_panels); }

void swap64(int64_t *a, int64_t *b) {
  const int64_t t = *a;
  *a = *b;
  *b = t;
}

// Drops batch dims of size 1, and turns batch dims over a shared B into rows.
void fold_batch(GemmF32 *g) {
  int rank = 0;
  for (int d = 0; d < g->batch_rank; d++) {
    if (g->batch[d] == 1) continue;
    g->batch[rank] = g->batch[d];
    g->a_bs[rank] = g->a_bs[d];
    g->b_bs[rank] = g->b_bs[d];
    g->c_bs[rank] = g->c_bs[d];
    rank++;
  }
  while (rank > 0 && g->finish == nullptr && g->m > 0) {
    const int d = rank - 1;
    if (g->m == 1) {
      g->a_rs = g->b_bs[d] == 0 ? g->a_bs[d] : g->a_rs;
      g->c_rs = g->b_bs[d] == 0 ? g->c_bs[d] : g->c_rs;
    }
    if (g->b_bs[d] != 0 || g->a_bs[d] != g->m * g->a_rs || g->c_bs[d] != g->m * g->c_rs || g->c_rs < g->n) break;
    g->m *= g->batch[d];
    rank--;
  }
  g->batch_rank = rank;
}

// A B^T with one column is one row of B A^T; a product commutes, so its bits stay.
void transpose_column(GemmF32 *g) {
  if (g->n != 1 || g->m <= 1 || g->c_rs != 1 || g->finish != nullptr || g->packed_b != nullptr || g->widen != nullptr) return;
  const float *a = g->a;
  g->a = g->b;
  g->b = a;
  swap64(&g->a_rs, &g->b_cs);
  swap64(&g->a_cs, &g->b_rs);
  for (int d = 0; d < g->batch_rank; d++) swap64(&g->a_bs[d], &g->b_bs[d]);
  swap64(&g->m, &g->n);
  g->c_rs = g->n;
}

// Halves the blocks until there are several units per thread, but leaves a chunk's worth of work in each.
void split(GemmF32 *g, int threads) {
  const int64_t panel_fma = ceil_div(g->m, g->row_panels) * g->tiles->cols * max64(g->k, 1);
  for (;;) {
    g->row_blocks = ceil_div(g->row_panels, g->row_block);
    g->col_blocks = ceil_div(g->col_panels, g->col_block);
    g->row_block = ceil_div(g->row_panels, g->row_blocks);
    g->col_block = ceil_div(g->col_panels, g->col_blocks);
    g->units = g->matrices * g->row_blocks * g->col_blocks;
    const int64_t unit_fma = g->row_block * g->col_block * panel_fma;
    g->grain = max64(1, kChunkFma / max64(unit_fma, 1));
    if (threads <= 1 || g->units >= 4 * threads || unit_fma < 2 * kChunkFma) return;
    // Splitting rows makes B be packed in a phase of its own.
    const bool own_b = g->packed_b == nullptr && g->row_blocks == 1;
    if (g->col_block > 4 || (g->col_block > 1 && (own_b || g->row_block <= 1))) g->col_block = ceil_div(g->col_block, 2);
    else if (g->row_block > 1) g->row_block = ceil_div(g->row_block, 2);
    else return;
  }
}

struct View {
  const float *a, *b;
  float *c;
  int64_t b_index;  // among the matrices of B, for the shared packed copy
};

// The operands of one matrix of the batch. Dims over which B does not change do not count for b_index.
View view(const GemmF32 *g, int64_t matrix) {
  int64_t ao = 0, bo = 0, co = 0, index = 0, scale = 1;
  for (int d = g->batch_rank - 1; d >= 0; d--) {
    const int64_t i = matrix % g->batch[d];
    matrix /= g->batch[d];
    ao += i * g->a_bs[d];
    bo += i * g->b_bs[d];
    co += i * g->c_bs[d];
    if (g->b_bs[d] != 0) {
      index += i * scale;
      scale *= g->batch[d];
    }
  }
  return View{g->a + ao, (g->packed_b != nullptr ? g->packed_b : g->b) + bo, g->c + co, index};
}

// The matrix of the batch that holds matrix b_index of B.
int64_t first_matrix(const GemmF32 *g, int64_t b_index) {
  int64_t matrix = 0, scale = 1;
  for (int d = g->batch_rank - 1; d >= 0; d--) {
    if (g->b_bs[d] != 0) {
      matrix += b_index % g->batch[d] * scale;
      b_index /= g->batch[d];
    }
    scale *= g->batch[d];
  }
  return matrix;
}

// Memory of one slot: the packed block of A, one panel of B, a tile for the last columns.
struct Slot {
  float *a, *b, *c;
};
int64_t slot_a_floats(const GemmF32 *g) { return g->pack_a ? round16(g->row_block * g->tiles->rows * g->kc) : 0; }
int64_t slot_b_floats(const GemmF32 *g) { return g->b_shared ? 0 : round16(g->tiles->cols * g->kc); }
Slot slot_of(const GemmF32 *g, void *scratch, int slot) {
  float *base = static_cast<float *>(scratch) + g->shared_floats + slot * g->slot_floats;
  return Slot{base, base + slot_a_floats(g), base + slot_a_floats(g) + slot_b_floats(g)};
}

// One block of C: panels [p0, p1) by [q0, q1), all of K.
struct Block {
  const GemmF32 *g;
  View v;
  Slot s;
  int slot;
  int64_t p0, p1, q0, q1;
};

void pack_rows_of_a(const Block &x, int64_t k0, int64_t kc) {
  const GemmF32 *g = x.g;
  float *dst = x.s.a;
  for (int64_t p = x.p0; p < x.p1; p++) {
    const int64_t i = row_start(g, p);
    const int h = static_cast<int>(row_start(g, p + 1) - i);
    pack_panel_f32(dst, h, x.v.a + i * g->a_rs + k0 * g->a_cs, g->a_cs, g->a_rs, kc, h);
    dst += h * kc;
  }
}

// Where rows [k0, k0+kc) of panel q lie: packed, in place, or packed now.
const float *panel_of_b(const Block &x, int64_t q, int64_t k0, int64_t kc, int64_t *stride) {
  const GemmF32 *g = x.g;
  const int64_t cols = g->tiles->cols;
  *stride = cols;
  if (g->packed_b != nullptr) return x.v.b + (q * g->k + k0) * cols;
  if (g->widen != nullptr) {
    g->widen(g->widen_ctx, q, k0, kc, x.s.b);
    return x.s.b;
  }
  if (g->b_shared) return x.v.b + ((x.v.b_index * g->col_panels + q) * g->k + k0) * cols;
  const float *src = x.v.b + k0 * g->b_rs + q * cols * g->b_cs;
  const int64_t n = min64(cols, g->n - q * cols);
  if (n == cols && g->b_cs == 1 && (g->b_rs == cols || g->row_panels == 1)) {
    *stride = g->b_rs;
    return src;
  }
  pack_panel_f32(x.s.b, static_cast<int>(cols), src, g->b_rs, g->b_cs, kc, static_cast<int>(n));
  return x.s.b;
}

// A tile that is narrower than the registers goes by way of a whole one.
void run_tile(const GemmF32 *g, TileF32 *t, int64_t h, int64_t n, float *spare) {
  const int64_t cols = g->tiles->cols;
  if (n == cols) return g->tiles->run[h](t);
  float *c = t->c;
  const int64_t c_rs = t->c_rs;
  if (t->load)
    for (int64_t i = 0; i < h; i++) memcpy(spare + i * cols, c + i * g->c_rs, n * sizeof(float));
  t->c = spare;
  t->c_rs = cols * static_cast<int64_t>(sizeof(float));
  const bool half = 2 * n <= cols && g->tiles->half[h] != nullptr;
  (half ? g->tiles->half[h] : g->tiles->run[h])(t);
  for (int64_t i = 0; i < h; i++) memcpy(c + i * g->c_rs, spare + i * cols, n * sizeof(float));
  t->c_rs = c_rs;
}

void run_panel(const Block &x, int64_t q, int64_t k0, int64_t kc) {
  const GemmF32 *g = x.g;
  const int64_t f = sizeof(float), cols = g->tiles->cols, j = q * cols, n = min64(cols, g->n - j);
  int64_t b_stride;
  TileF32 t;
  t.b = panel_of_b(x, q, k0, kc, &b_stride);
  t.b_rs = b_stride * f;
  t.c_rs = g->c_rs * f;
  t.k = kc;
  t.load = k0 > 0;
  const bool thin = g->row_panels == 1;
  // The hardware follows rows that lie close together. Of several row panels the first ones fetch the next panel of B, a line per k.
  const int64_t fetching = g->widen != nullptr ? 0 : !thin ? cols * f / kLine : b_stride < kPageFloats ? 0 : 1;
  const char *next = reinterpret_cast<const char *>(t.b) + (thin ? kAheadPanels * cols * f : g->k * cols * f);
  const float *packed = x.s.a;
  for (int64_t p = x.p0; p < x.p1; p++) {
    const int64_t i = row_start(g, p), h = row_start(g, p + 1) - i;
    t.a = g->pack_a ? packed : x.v.a + i * g->a_rs + k0 * g->a_cs;
    t.a_rs = g->pack_a ? f : g->a_rs * f;
    t.a_cs = g->pack_a ? h * f : g->a_cs * f;
    t.c = x.v.c + i * g->c_rs + j;
    const bool fetch = p - x.p0 < fetching;
    t.ahead_step = !fetch ? 0 : thin ? t.b_rs : kLine;
    t.ahead = fetch ? next + (p - x.p0) * kc * kLine : reinterpret_cast<const char *>(t.b);
    run_tile(g, &t, h, n, x.s.c);
    packed += h * kc;
  }
}

// Panels [q0, q1) of the block are complete.
void finish(const Block &x, int64_t q0, int64_t q1) {
  const GemmF32 *g = x.g;
  const int64_t cols = g->tiles->cols, i0 = row_start(g, x.p0), i1 = row_start(g, x.p1), j = q0 * cols;
  g->finish(g->finish_ctx, x.v.c - g->c, i0, j, i1 - i0, min64(q1 * cols, g->n) - j, x.v.c + i0 * g->c_rs + j, g->c_rs, x.slot);
}

void run_block(const Block &x, const volatile uint32_t *cancel) {
  const GemmF32 *g = x.g;
  const int64_t rows = row_start(g, x.p1) - row_start(g, x.p0), group = max64(1, kFinishFloats / (rows * g->tiles->cols));
  int64_t k0 = 0;
  do {
    const int64_t kc = min64(g->kc, g->k - k0);
    if (g->pack_a) pack_rows_of_a(x, k0, kc);
    const bool ends = g->finish != nullptr && k0 + kc >= g->k;
    for (int64_t q = x.q0, first = q; q < x.q1; q++) {
      run_panel(x, q, k0, kc);
      if (!ends || (q + 1 < x.q1 && q + 1 - first < group)) continue;
      finish(x, first, q + 1);
      first = q + 1;
    }
    k0 += kc;
  } while (k0 < g->k && !cancelled(cancel));
}

struct Call {
  const GemmF32 *g;
  void *scratch;
  const volatile uint32_t *cancel;
};
void pack_call(void *ctx, int64_t begin, int64_t end, int slot) {
  const Call *c = static_cast<const Call *>(ctx);
  gemm_f32_pack(c->g, c->scratch, begin, end, slot, c->cancel);
}
void run_call(void *ctx, int64_t begin, int64_t end, int slot) {
  const Call *c = static_cast<const Call *>(ctx);
  gemm_f32_run(c->g, c->scratch, begin, end, slot, c->cancel);
}

}  // namespace

const TileSetF32 *gemm_tiles_f32(int isa) { return &of_isa<kTilesF32Generic, kTilesF32Avx2, kTilesF32Avx512, kTilesF32Neon>(isa); }

int64_t gemm_panel_cols() { return gemm_tiles_f32(isa_active())->cols; }

int64_t gemm_packed_b_bytes(int64_t k, int64_t n) {
  const int64_t cols = gemm_panel_cols();
  return ceil_div(n, cols) * cols * k * static_cast<int64_t>(sizeof(float));
}

void gemm_pack_b(float *dst, const float *b, int64_t b_rs, int64_t b_cs, int64_t k, int64_t n, int64_t n0, int64_t n1) {
  const int64_t cols = gemm_panel_cols();
  for (int64_t j = n0; j < n1; j += cols)
    pack_panel_f32(dst + j * k, static_cast<int>(cols), b + j * b_cs, b_rs, b_cs, k, static_cast<int>(min64(cols, n - j)));
}

void gemm_f32_plan(GemmF32 *g, int threads) {
  if (threads < 1) threads = 1;
  fold_batch(g);
  transpose_column(g);
  const TileSetF32 *t = g->tiles = gemm_tiles_f32(isa_active());
  g->matrices = g->b_matrices = 1;
  for (int d = 0; d < g->batch_rank; d++) {
    g->matrices *= g->batch[d];
    if (g->b_bs[d] != 0) g->b_matrices *= g->batch[d];
  }
  g->scratch_bytes = g->pack_units = g->units = g->shared_floats = g->slot_floats = 0;
  g->pack_grain = g->grain = 1;
  if (g->m <= 0 || g->n <= 0 || g->matrices == 0) return;

  g->row_panels = ceil_div(g->m, t->rows);
  g->col_panels = ceil_div(g->n, t->cols);
  const int64_t height = ceil_div(g->m, g->row_panels);
  const bool held = g->packed_b != nullptr || g->widen != nullptr;  // no copy of b is packed here
  const bool in_place = !held && g->row_panels == 1 && g->b_cs == 1;
  int64_t depth = kDepth;
  if (in_place && g->b_rs >= kPageFloats) depth = height <= 4 ? kStridedDepth : 8 * kStridedDepth;
  else if (g->widen != nullptr) depth = g->row_panels == 1 ? kWidenDepth : kWidenRowsDepth;
  else if (g->row_panels == 1 && g->packed_b != nullptr) depth = max64(kDepth, kThinDepthFloats / height);
  g->kc = max64(1, ceil_div(g->k, ceil_div(max64(g->k, 1), depth)));  // blocks of one depth, or nearly so
  g->row_block = min64(g->row_panels, max64(1, kRowBlockFloats / (height * g->kc)));
  g->col_block = min64(g->col_panels, kColBlock / t->cols);
  split(g, threads);
  // One block of rows uses each panel of B once: it packs them itself, or one row panel takes them in place. Where more than one
  // would pack the same panel, all are packed first.
  g->b_shared = !held && !in_place && (g->row_blocks > 1 || g->b_matrices < g->matrices);
  // The tiles read rows of A where they lie, as fast as packed ones, unless their elements lie apart or the rows a multiple of a page:
  // these share a cache set, which holds 8 of them.
  const bool crowded = height > 8 && g->a_rs % kPageFloats == 0;
  g->pack_a = g->col_block * t->cols >= (crowded ? 2 * t->cols : kPackedAColumns) && (crowded || (g->row_panels > 1 && g->a_cs != 1));

  if (g->b_shared) {
    g->pack_units = g->b_matrices * g->col_panels;
    g->pack_grain = max64(1, kChunkPack / max64(1, g->k * t->cols));
    g->shared_floats = round16(g->pack_units * g->k * t->cols);
  }
  g->slot_floats = slot_a_floats(g) + slot_b_floats(g) + round16(t->rows * t->cols);
  g->scratch_bytes = (g->shared_floats + threads * g->slot_floats) * static_cast<int64_t>(sizeof(float));
}

void gemm_f32_pack(const GemmF32 *g, void *scratch, int64_t begin, int64_t end, int slot, const volatile uint32_t *cancel) {
  (void)slot;
  const int64_t cols = g->tiles->cols;
  for (int64_t u = begin; u < end; u++) {
    const int64_t q = u % g->col_panels;
    const View v = view(g, first_matrix(g, u / g->col_panels));
    for (int64_t k0 = 0; k0 < g->k && !cancelled(cancel); k0 += kPackDepth)
      pack_panel_f32(static_cast<float *>(scratch) + (u * g->k + k0) * cols, static_cast<int>(cols), v.b + k0 * g->b_rs + q * cols * g->b_cs,
                     g->b_rs, g->b_cs, min64(kPackDepth, g->k - k0), static_cast<int>(min64(cols, g->n - q * cols)));
  }
}

void gemm_f32_run(const GemmF32 *g, void *scratch, int64_t begin, int64_t end, int slot, const volatile uint32_t *cancel) {
  for (int64_t u = begin; u < end; u++) {
    const int64_t p = u % g->row_blocks * g->row_block, q = u / g->row_blocks % g->col_blocks * g->col_block;
    Block x{g, view(g, u / (g->row_blocks * g->col_blocks)), slot_of(g, scratch, slot), slot, p, min64(p + g->row_block, g->row_panels),
            q, min64(q + g->col_block, g->col_panels)};
    if (g->b_shared) x.v.b = static_cast<const float *>(scratch);
    run_block(x, cancel);
  }
}

void gemm_f32(Pool *pool, int threads, const GemmF32 *g, void *scratch, const volatile uint32_t *cancel) {
  Call call{g, scratch, cancel};
  parallel(pool, threads, g->pack_units, g->pack_grain, pack_call, &call, cancel);
  parallel(pool, threads, g->units, g->grain, run_call, &call, cancel);
}

}  // namespace matmul
}  // namespace rlx
