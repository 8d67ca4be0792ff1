// QMatMul: rows of x, where they do not lie so already, and panels of w, then tiles (product.h). Contract: sums modulo 2^32, so that neither order nor
// blocking changes a result; one f32 product and one rounding to the result's dtype.
#include "../core/rlx_begin.h"

#include "../core/pool.h"
#include "product.h"

namespace rlx {
namespace quant {
namespace {

constexpr int64_t BLOCK_BYTES = 384 << 10;  // rows of a unit: they stay in the second-level cache
constexpr int64_t BLOCK_PANELS = 16;
constexpr int64_t WIDE_BYTES = 256 << 10;   // a larger panel is read as bytes by each tile
constexpr int64_t CHUNK = 1 << 17;          // products of a piece of work
constexpr int64_t CHUNK_PACK = 1 << 14;     // codes
constexpr int64_t LINE = 64;                // bytes

int64_t aligned(int64_t bytes) { return (bytes + 63) & ~int64_t(63); }

struct Job {
  const TileSet *set;
  int64_t m, n, k, groups;
  Shift x, w;
  int64_t row_step, panel_step;      // bytes
  int64_t panels, row_panels;        // of columns and rows
  int64_t col_block, row_block;      // panels of a unit
  int64_t col_blocks, row_blocks;
  bool wide;                         // panels are widened once for all rows of a unit
  bool in_place;                     // rows are read where they lie in x
  const void *codes;                 // of w
  char *panel_at;                    // what pack_w fills
  const char *packed;                // panels, then the sums of their columns
  const char *rows;
  char *packed_rows, *slots;
  int32_t *row_sums;                 // times minus the zero point of w; null where that is 0
  const Call *c;
  Requant q;
  const int32_t *bias;
};

// Whether rows of x are rows of the set as they lie. Those of a tile must not fall into few sets of the cache: see row_bytes.
bool lies_ready(const Job &j) {
  if (j.set->code_bytes != 1 || j.x.flip != 0 || j.w.zero != 0 || j.k % j.set->group != 0) return false;
  return j.m <= 4 || j.k % 2048 != 0;
}

// Halves the blocks until there are several units a thread, but leaves a chunk in each.
void cut(Job *j, int threads) {
  j->row_block = min64(j->row_panels, max64(1, BLOCK_BYTES / (j->set->rows * j->row_step + 1)));
  j->col_block = min64(j->panels, BLOCK_PANELS);
  for (;;) {
    j->row_blocks = ceil_div(j->row_panels, max64(j->row_block, 1)), j->col_blocks = ceil_div(j->panels, max64(j->col_block, 1));
    if (threads <= 1 || j->row_blocks * j->col_blocks >= 4 * threads) break;
    if (j->row_block * j->col_block * j->set->rows * j->set->columns * j->k < 2 * CHUNK) break;
    if (j->col_block > 1) j->col_block = ceil_div(j->col_block, 2);
    else if (j->row_block > 1) j->row_block = ceil_div(j->row_block, 2);
    else break;
  }
  if (j->row_blocks > 0) j->row_block = ceil_div(j->row_panels, j->row_blocks);
}

Job job_of(const Command &c, int isa, int threads) {
  const rlx_QMatMulAttrs &a = *static_cast<const rlx_QMatMulAttrs *>(c.attrs);
  Job j = {};
  const TileSet &s = *(j.set = &tiles_of(isa));
  j.k = c.in[1].dims[0], j.n = c.in[1].dims[1], j.groups = groups_of(s, j.k);
  j.m = j.n > 0 ? c.out[0].count / j.n : 0;
  j.x = to_unsigned(c.in[0].dtype, a.x_zero_point), j.w = to_signed(c.in[1].dtype, a.w_zero_point);
  j.in_place = lies_ready(j);
  j.row_step = j.in_place ? j.k : row_bytes(s, j.k), j.panel_step = byte_panel(s, j.k);
  j.panels = ceil_div(j.n, s.columns), j.row_panels = ceil_div(j.m, s.rows);
  j.wide = s.widen != nullptr && j.row_panels > 1 && wide_panel(s, j.k) <= WIDE_BYTES;
  cut(&j, threads);
  return j;
}

// Parts of the scratch.
int64_t packed_bytes(const Job &j) { return aligned(j.panels * j.panel_step) + j.panels * j.set->columns * int64_t(sizeof(int32_t)); }
int64_t rows_bytes(const Job &j) { return j.in_place ? 0 : aligned(j.m * j.row_step); }
int64_t sums_bytes(const Job &j) { return j.w.zero == 0 ? 0 : aligned(j.m * int64_t(sizeof(int32_t))); }
int64_t slot_bytes(const Job &j) { return j.wide ? aligned(wide_panel(*j.set, j.k)) : 0; }
int64_t grain_of(const Job &j, int64_t lines) { return 1 + CHUNK_PACK / (j.k * lines + 1); }

const int32_t *column_sums(const Job &j, const char *panels) { return reinterpret_cast<const int32_t *>(panels + aligned(j.panels * j.panel_step)); }
// Rows [row_start(p), row_start(p + 1)) are panel p: heights differ by one at most.
int64_t row_start(const Job &j, int64_t p) { return p * (j.m / j.row_panels) + min64(p, j.m % j.row_panels); }
int columns_of(const Job &j, int64_t q) { return int(min64(j.set->columns, j.n - q * j.set->columns)); }

void pack_w(void *ctx, int64_t begin, int64_t end, int) {
  const Job &j = *static_cast<const Job *>(ctx);
  const int64_t w = j.set->columns;
  int32_t *sums = const_cast<int32_t *>(column_sums(j, j.panel_at));
  for (int64_t q = begin; q < end; q++)
    pack_panel(*j.set, reinterpret_cast<int8_t *>(j.panel_at + q * j.panel_step), sums + q * w, static_cast<const char *>(j.codes) + q * w, j.n, j.k, columns_of(j, q),
               j.w.flip);
}

void pack_x(void *ctx, int64_t begin, int64_t end, int) {
  const Job &j = *static_cast<const Job *>(ctx);
  for (int64_t i = begin; i < end; i++) {
    const int32_t sum = pack_row<uint8_t>(*j.set, j.packed_rows + i * j.row_step, j.c->in_ptr<char>(0) + i * j.k, j.k, j.x.flip);
    if (j.row_sums != nullptr) j.row_sums[i] = int32_t(-uint32_t(j.w.zero) * uint32_t(sum));
  }
}

// Row panels [p0, p1) by column panel q.
void columns(const Job &j, int64_t q, int64_t p0, int64_t p1, int slot) {
  const TileSet &s = *j.set;
  const int w = s.columns, n = columns_of(j, q);
  alignas(64) int32_t start[MAX_COLUMNS] = {}, spare[MAX_ROWS * MAX_COLUMNS];
  const int32_t *sums = column_sums(j, j.packed) + q * w;
  for (int i = 0; i < n; i++) start[i] = start_of(j.bias == nullptr ? 0 : j.bias[q * w + i], sums[i], j.x.zero, j.w.zero, j.k);
  Tile t = {};
  t.a_step = j.row_step, t.groups = j.groups, t.start = start;
  const char *panel = t.b = j.packed + q * j.panel_step;
  if (j.wide) {
    char *to = j.slots + slot * slot_bytes(j);
    s.widen(to, reinterpret_cast<const int8_t *>(panel), j.groups * s.group * w);
    t.b = to;
  }
  const bool direct = j.q.dtype == RLX_I32 && n == w && j.row_sums == nullptr;
  for (int64_t p = p0; p < p1 && !j.c->stopped(); p++) {
    const int64_t i = row_start(j, p), h = row_start(j, p + 1) - i;
    const int64_t fetched = (p - p0) * j.groups * LINE;
    // Few rows read the panel as fast as it comes, and the machine sees that: fetches of ours would slow it down.
    const bool fetch = h > 4 && fetched < j.panel_step;
    t.ahead = fetch ? panel + j.panel_step + fetched : panel, t.ahead_step = fetch ? LINE : 0;
    t.a = j.rows + i * j.row_step;
    t.c = direct ? j.c->out_ptr<int32_t>(0) + i * j.n + q * w : spare;
    t.c_step = direct ? j.n : w;
    (j.wide ? s.wide : s.bytes)[h](t);
    for (int64_t r = 0; r < h && !direct; r++)
      s.finish(j.q, j.c->out_ptr<void>(0), (i + r) * j.n + q * w, spare + r * w, j.row_sums == nullptr ? 0 : j.row_sums[i + r], n, q * w, 1);
  }
}

void units(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  for (int64_t u = begin; u < end; u++) {
    const int64_t p = u / j.col_blocks * j.row_block, q = u % j.col_blocks * j.col_block, last = min64(q + j.col_block, j.panels);
    for (int64_t i = q; i < last && !j.c->stopped(); i++) columns(j, i, p, min64(p + j.row_block, j.row_panels), slot);
  }
}

template <int Isa> void run(const Call &c) {
  if (c.out(0).count == 0) return;
  const rlx_QMatMulAttrs &a = c.attrs<rlx_QMatMulAttrs>();
  Job j = job_of(*c.cmd, Isa, c.threads());
  j.c = &c, j.codes = c.in_ptr<void>(1), j.bias = operand<int32_t>(c, 2);
  j.q = {c.out(0).dtype, ends_of(c.out(0).dtype), int32_t(a.out_zero_point), float(a.multiplier), operand<float>(c, 3)};
  j.packed = static_cast<const char *>(c.cmd->packed);
  j.packed_rows = static_cast<char *>(c.scratch);
  j.rows = j.in_place ? c.in_ptr<char>(0) : j.packed_rows;
  j.slots = j.packed_rows + rows_bytes(j) + sums_bytes(j);
  if (j.w.zero != 0) j.row_sums = reinterpret_cast<int32_t *>(j.packed_rows + rows_bytes(j));
  if (j.packed == nullptr) {
    j.packed = j.panel_at = j.slots;
    j.slots += aligned(packed_bytes(j));
    c.parallel(j.panels, grain_of(j, j.set->columns), pack_w, &j);
  }
  if (!j.in_place) c.parallel(j.m, grain_of(j, 1), pack_x, &j);
  c.parallel(j.row_blocks * j.col_blocks, 1 + CHUNK / (j.row_block * j.col_block * j.set->rows * j.set->columns * j.k + 1), units, &j);
}

}  // namespace

int32_t qmatmul_prepare(Prepare &prepare) {
  Command &c = *prepare.cmd;
  if (c.out[0].count == 0) return RLX_OK;
  Job j = job_of(c, prepare.isa, prepare.max_threads);
  int64_t bytes = packed_bytes(j);
  j.codes = j.k > 0 ? prepare.constant(prepare, 1) : nullptr;
  if (j.codes != nullptr) {
    const uint64_t layout = uint64_t(c.op) << 32 | uint64_t(j.set->group) << 8 | uint64_t(j.set->columns);
    bool fresh = false;
    j.panel_at = static_cast<char *>(prepare.cache(prepare, 1, layout, bytes, &fresh));
    if (j.panel_at == nullptr) return RLX_NO_MEMORY;
    if (fresh) parallel(prepare.pool, prepare.max_threads, j.panels, grain_of(j, j.set->columns), pack_w, &j, nullptr);
    c.packed = j.panel_at, bytes = 0;
  }
  c.scratch = rows_bytes(j) + sums_bytes(j) + aligned(bytes) + prepare.max_threads * slot_bytes(j);
  return RLX_OK;
}

void qmatmul_generic(const Call &c, Range) { run<ISA_GENERIC>(c); }
#if defined(RLX_X86)
void qmatmul_avx2(const Call &c, Range) { run<ISA_AVX2>(c); }
void qmatmul_avx512(const Call &c, Range) { run<ISA_AVX512>(c); }
#elif defined(RLX_NEON)
void qmatmul_neon(const Call &c, Range) { run<ISA_NEON>(c); }
#endif

}  // namespace quant
}  // namespace rlx
