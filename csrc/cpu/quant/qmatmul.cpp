// QMatMul: rows of x, where they do not lie so already, and panels of w, then tiles (product.h). Contract: sums modulo 2^32, so that neither order nor
// blocking changes a result; one f32 product and one rounding to the result's dtype. QMatMulRegion: the body over the sums of each row of tiles.
#include "../core/rlx_begin.h"

#include "../core/pool.h"
#include "../matmul/ending.h"
#include "product.h"

namespace rlx {
namespace quant {
namespace {

constexpr int64_t BLOCK_BYTES = 640 << 10;  // panels of a unit: they stay in the second-level cache
constexpr int64_t WIDE_BLOCK = 384 << 10;   // the same of wide ones, and of the rows beside them
constexpr int64_t BLOCK_PANELS = 32, THIN_PANELS = 64;
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
  void *out;                         // results, or sums for the ending
  int32_t *sums;                     // out, where it is the sums of the tiles as they are
  const matmul::Ending *ending;      // or null
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
  // A block of wide panels has few columns, so that rows come often: those of a unit stay in the cache too.
  j->row_block = !j->wide ? j->row_panels : min64(j->row_panels, max64(1, WIDE_BLOCK / (j->set->rows * j->row_step + 1)));
  const int64_t block = j->wide ? WIDE_BLOCK / (wide_panel(*j->set, j->k) + 1) : BLOCK_BYTES / (j->panel_step + 1);
  j->col_block = min64(j->panels, j->row_panels == 1 ? THIN_PANELS : min64(BLOCK_PANELS, max64(1, block)));
  for (;;) {
    j->row_blocks = ceil_div(j->row_panels, max64(j->row_block, 1)), j->col_blocks = ceil_div(j->panels, max64(j->col_block, 1));
    if (threads <= 1 || j->row_blocks * j->col_blocks >= 4 * threads) break;
    if (j->row_block * j->col_block * j->set->rows * j->set->columns * j->k < 2 * CHUNK) break;
    if (j->col_block > 1) j->col_block = ceil_div(j->col_block, 2);
    else if (j->row_block > 1) j->row_block = ceil_div(j->row_block, 2);
    else break;
  }
  if (j->row_blocks > 0) j->row_block = ceil_div(j->row_panels, j->row_blocks);
  if (j->col_blocks > 0) j->col_block = ceil_div(j->panels, j->col_blocks);
}

template <class Attrs> Job job_of(const Command &c, int isa, int threads) {
  const Attrs &a = *static_cast<const Attrs *>(c.attrs);
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
int64_t line_of(const Job &j) { return j.col_block * j.set->columns; }  // sums of a unit side by side
int64_t starts_bytes(const Job &j) { return aligned(line_of(j) * int64_t(sizeof(int32_t))); }
int64_t spare_bytes(const Job &j) { return j.set->rows * starts_bytes(j); }
int64_t slot_bytes(const Job &j) { return starts_bytes(j) + spare_bytes(j) + (j.wide ? j.col_block * aligned(wide_panel(*j.set, j.k)) : 0); }
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

// The inverse of pack_w; how is the codes of a group, the columns and the bytes of a panel, and the bit that is changed.
void unpack_w(const Operand &w, const int64_t *how, const char *packed, char *raw) {
  const int64_t group = how[0], columns = how[1], k = w.dims[0], n = w.dims[1];
  for (int64_t q = 0; q * columns < n; q++, packed += how[2])
    for (int64_t i = 0; i < k; i++)
      for (int64_t j = 0; j < columns && q * columns + j < n; j++)
        raw[i * n + q * columns + j] = char(packed[i / group * group * columns + j * group + i % group] ^ how[3]);
}

void pack_x(void *ctx, int64_t begin, int64_t end, int) {
  const Job &j = *static_cast<const Job *>(ctx);
  for (int64_t i = begin; i < end; i++) {
    const int32_t sum = pack_row<uint8_t>(*j.set, j.packed_rows + i * j.row_step, j.c->in_ptr<char>(0) + i * j.k, j.k, j.x.flip);
    if (j.row_sums != nullptr) j.row_sums[i] = int32_t(-uint32_t(j.w.zero) * uint32_t(sum));
  }
}

// What is the same in all rows of the sums of panels [q0, q1).
void fill_starts(const Job &j, int64_t q0, int64_t q1, int32_t *start) {
  const int w = j.set->columns;
  const int32_t *sums = column_sums(j, j.packed);
  for (int64_t q = q0; q < q1; q++)
    for (int i = 0, n = columns_of(j, q); i < w; i++)
      start[(q - q0) * w + i] = i >= n ? 0 : start_of(j.bias == nullptr ? 0 : j.bias[q * w + i], sums[q * w + i], j.x.zero, j.w.zero, j.k);
}

// A unit: row panels [p0, p1) by column panels [q0, q1), a row panel after the other, whose sums are then results. `wide` is where panels are widened.
struct Unit {
  int64_t p0, p1, q0, q1;
  int32_t *start, *spare;
  char *wide;
  int slot;
};

// The memory that tile (p, q) of a unit fetches, a line a group: the first row panel fetches the next panel, the others the row panel behind
// theirs, of which a tile fetches a part.
const char *ahead_of(const Job &j, const Unit &u, int64_t p, int64_t q, const Tile &t, int64_t h) {
  if (h <= 4) return nullptr;  // few rows read the panel as fast as it comes, and the machine sees that: fetches of ours would slow it down
  if (p == u.p0) return j.packed + (q + 1) * j.panel_step;
  const int64_t fetched = (q - u.q0) * j.groups * LINE;
  return p + 1 < u.p1 && fetched < h * j.row_step ? t.a + h * j.row_step + fetched : nullptr;
}

void row_of_tiles(const Job &j, const Unit &u, int64_t p) {
  const TileSet &s = *j.set;
  const int w = s.columns;
  const int64_t i = row_start(j, p), h = row_start(j, p + 1) - i, line = line_of(j), columns = min64(u.q1 * w, j.n) - u.q0 * w;
  Tile t = {};
  t.a = j.rows + i * j.row_step, t.a_step = j.row_step, t.groups = j.groups;
  bool direct = false;
  for (int64_t q = u.q0; q < u.q1; q++) {
    const char *panel = j.packed + q * j.panel_step;
    char *to = j.wide ? u.wide + (q - u.q0) * aligned(wide_panel(s, j.k)) : nullptr;
    if (j.wide && p == u.p0) s.widen(to, reinterpret_cast<const int8_t *>(panel), j.groups * s.group * w);
    t.b = j.wide ? to : panel;
    const char *ahead = ahead_of(j, u, p, q, t, h);
    t.ahead = ahead != nullptr ? ahead : t.b, t.ahead_step = ahead != nullptr ? LINE : 0;
    t.start = u.start + (q - u.q0) * w;
    direct = j.sums != nullptr && columns_of(j, q) == w;
    t.c = direct ? j.sums + i * j.n + q * w : u.spare + (q - u.q0) * w;
    t.c_step = direct ? j.n : line;
    (j.wide ? s.wide : s.bytes)[h](t);
  }
  const int64_t first = j.sums == nullptr ? 0 : (u.q1 - 1 - u.q0) * w;
  for (int64_t r = 0; r < h && !direct; r++)  // the last panel is not
    s.finish(j.q, j.out, (i + r) * j.n + u.q0 * w + first, u.spare + r * line + first, j.row_sums == nullptr ? 0 : j.row_sums[i + r], int(columns - first),
             u.q0 * w + first, 1);
  if (j.ending != nullptr) matmul::end_block(*j.ending, i * j.n + u.q0 * w, h, columns, j.n, u.slot);
}

void units(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  char *at = j.slots + slot * slot_bytes(j);
  Unit x = {};
  x.slot = slot;
  x.start = reinterpret_cast<int32_t *>(at), x.spare = reinterpret_cast<int32_t *>(at + starts_bytes(j)), x.wide = at + starts_bytes(j) + spare_bytes(j);
  for (int64_t u = begin; u < end; u++) {
    x.p0 = u / j.col_blocks * j.row_block, x.p1 = min64(x.p0 + j.row_block, j.row_panels);
    x.q0 = u % j.col_blocks * j.col_block, x.q1 = min64(x.q0 + j.col_block, j.panels);
    fill_starts(j, x.q0, x.q1, x.start);
    for (int64_t p = x.p0; p < x.p1 && !j.c->stopped(); p++) row_of_tiles(j, x, p);
  }
}

// Runs a job that has its results, with its own part of the scratch.
void run_job(Job *j, const Call &c, char *scratch) {
  j->c = &c, j->codes = c.in_ptr<void>(1);
  j->packed = static_cast<const char *>(c.cmd->packed);
  j->packed_rows = scratch;
  j->rows = j->in_place ? c.in_ptr<char>(0) : j->packed_rows;
  j->slots = j->packed_rows + rows_bytes(*j) + sums_bytes(*j);
  if (j->w.zero != 0) j->row_sums = reinterpret_cast<int32_t *>(j->packed_rows + rows_bytes(*j));
  if (j->q.dtype == RLX_I32 && j->row_sums == nullptr) j->sums = static_cast<int32_t *>(j->out);
  if (j->packed == nullptr) {
    j->packed = j->panel_at = j->slots;
    j->slots += aligned(packed_bytes(*j));
    c.parallel(j->panels, grain_of(*j, j->set->columns), pack_w, j);
  }
  if (!j->in_place) c.parallel(j->m, grain_of(*j, 1), pack_x, j);
  c.parallel(j->row_blocks * j->col_blocks, 1 + CHUNK / (j->row_block * j->col_block * j->set->rows * j->set->columns * j->k + 1), units, j);
}

template <int Isa> void run(const Call &c) {
  if (c.out(0).count == 0) return;
  const rlx_QMatMulAttrs &a = c.attrs<rlx_QMatMulAttrs>();
  Job j = job_of<rlx_QMatMulAttrs>(*c.cmd, Isa, c.threads());
  j.bias = operand<int32_t>(c, 2), j.out = c.out_ptr<void>(0);
  j.q = {c.out(0).dtype, ends_of(c.out(0).dtype), int32_t(a.out_zero_point), float(a.multiplier), operand<float>(c, 3)};
  run_job(&j, c, static_cast<char *>(c.scratch));
}

// Panels of a constant w, and the bytes of scratch that a run needs.
template <class Attrs> int32_t prepare_job(Prepare &prepare, int64_t *scratch) {
  Command &c = *prepare.cmd;
  Job j = job_of<Attrs>(c, prepare.isa, prepare.max_threads);
  int64_t bytes = packed_bytes(j), slots = 0;
  if (j.k > 0 && prepare.constant(prepare, 1)) {
    const uint64_t layout = uint64_t(RLX_OP_QMatMul) << 32 | uint64_t(j.set->group) << 8 | uint64_t(j.set->columns);
    const PackedForm form = {layout, bytes, unpack_w, {j.set->group, j.set->columns, j.panel_step, j.w.flip}};
    bool fresh = false;
    j.panel_at = static_cast<char *>(prepare.cache(prepare, 1, form, &fresh));
    j.codes = fresh ? prepare.source(prepare, 1) : nullptr;
    if (j.panel_at == nullptr || (fresh && j.codes == nullptr)) return RLX_NO_MEMORY;
    if (fresh) parallel(prepare.pool, prepare.max_threads, j.panels, grain_of(j, j.set->columns), pack_w, &j, nullptr);
    c.packed = j.panel_at, bytes = 0;
  }
  for (int threads = 1; threads <= prepare.max_threads; threads++)  // a run may use fewer threads: fewer slots, but larger blocks
    slots = max64(slots, threads * slot_bytes(job_of<Attrs>(c, prepare.isa, threads)));
  *scratch = rows_bytes(j) + sums_bytes(j) + aligned(bytes) + slots;
  return RLX_OK;
}

int64_t sums_scratch(const Command &c, const Operand &sums) {
  return matmul::result_for_product(c, sums) < 0 ? aligned(sums.count * int64_t(sizeof(int32_t))) : 0;
}

}  // namespace

int32_t qmatmul_prepare(Prepare &prepare) {
  return prepare.cmd->out[0].count == 0 ? RLX_OK : prepare_job<rlx_QMatMulAttrs>(prepare, &prepare.cmd->scratch);
}

int32_t qmatmul_region_prepare(Prepare &prepare) {
  Command &c = *prepare.cmd;
  const Operand sums = matmul::product_operand(c, RLX_I32);
  int32_t code = matmul::prepare_ending(prepare, sums);
  if (code != RLX_OK || sums.count == 0) return code;
  int64_t bytes = 0;
  if ((code = prepare_job<rlx_QMatMulRegionAttrs>(prepare, &bytes)) == RLX_OK) c.scratch = aligned(bytes) + aligned(matmul::ending_of(c).layout->bytes(prepare.max_threads)) + sums_scratch(c, sums);
  return code;
}

void qmatmul_region(const Call &c, Range) {
  const Operand sums = matmul::product_operand(*c.cmd, RLX_I32);
  if (sums.count == 0) return;
  region::Region r(*matmul::ending_of(*c.cmd).layout);
  char *scratch = static_cast<char *>(c.scratch), *const *results = reinterpret_cast<char *const *>(c.out_data);
  Job j = job_of<rlx_QMatMulRegionAttrs>(*c.cmd, isa_active(), c.threads());
  const int k = matmul::result_for_product(*c.cmd, sums);
  j.out = k >= 0 ? c.out_ptr<void>(k) : scratch + c.cmd->scratch - sums_scratch(*c.cmd, sums);
  matmul::Scaling s;
  const matmul::Ending e = {c, r, results, matmul::scaling_of(c, j.out, &s) ? &s : nullptr};
  j.q.dtype = RLX_I32, j.ending = &e;
  if (e.scaling == nullptr) r.open(scratch, [&](uint32_t i) { return i == 0 ? j.out : c.in_data[i + 1]; });
  run_job(&j, c, scratch + aligned(r.layout.bytes(c.threads())));
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
