// QMatMul: rows of x and panels of w in pairs, then tiles. Contract: sums modulo 2^32, so that neither order nor blocking changes a result;
// one f32 product and one rounding to the result's dtype.
#include "../core/rlx_begin.h"

#include "../core/pool.h"
#include "product.h"

namespace rlx {
namespace quant {
namespace {

constexpr int64_t ROW_BLOCK = 32;  // rows of a unit of work
constexpr int64_t WORK = 1 << 15;  // pairs of products of a piece of work

struct Job {
  const TileSet *set;
  int64_t m, n, k, k2, panels, row_blocks;
  int x_zero, w_zero;
  bool w_signed;
  const void *w;          // what pack_w packs
  int32_t *to;
  const int32_t *packed;  // panels of w
  int32_t *rows;          // x in pairs
  const Call *c;
  Requant q;
};

Job job_of(const Command &c, int isa) {
  const rlx_QMatMulAttrs &a = *static_cast<const rlx_QMatMulAttrs *>(c.attrs);
  Job j = {};
  j.set = &tiles_of(isa);
  j.k = c.in[1].dims[0], j.n = c.in[1].dims[1], j.k2 = (j.k + 1) / 2;
  j.m = j.n > 0 ? c.out[0].count / j.n : 0;
  j.panels = (j.n + j.set->columns - 1) / j.set->columns, j.row_blocks = (j.m + ROW_BLOCK - 1) / ROW_BLOCK;
  j.x_zero = int(a.x_zero_point), j.w_zero = int(a.w_zero_point);
  j.w_signed = c.in[1].dtype == RLX_I8;
  return j;
}

int64_t panel_bytes(const Job &j) { return j.panels * j.k2 * j.set->columns * int64_t(sizeof(int32_t)); }
int64_t grain(const Job &j, int64_t unit) { return 1 + WORK / (j.k2 * unit + 1); }

void pack_w(void *ctx, int64_t begin, int64_t end, int) {
  const Job &j = *static_cast<const Job *>(ctx);
  const int w = j.set->columns;
  for (int64_t p = begin; p < end; p++) {
    const int n = int(j.n - p * w < w ? j.n - p * w : w);
    int32_t *to = j.to + p * j.k2 * w;
    if (j.w_signed) pack_panel(to, w, static_cast<const int8_t *>(j.w) + p * w, j.n, j.k, n, j.w_zero);
    else pack_panel(to, w, static_cast<const uint8_t *>(j.w) + p * w, j.n, j.k, n, j.w_zero);
  }
}

void pack_x(void *ctx, int64_t begin, int64_t end, int) {
  const Job &j = *static_cast<const Job *>(ctx);
  for (int64_t i = begin; i < end; i++) {
    if (j.c->in(0).dtype == RLX_I8) pack_row(j.rows + i * j.k2, j.c->in_ptr<int8_t>(0) + i * j.k, j.k, j.x_zero);
    else pack_row(j.rows + i * j.k2, j.c->in_ptr<uint8_t>(0) + i * j.k, j.k, j.x_zero);
  }
}

// A unit is one panel and a block of rows.
void units(void *ctx, int64_t begin, int64_t end, int) {
  const Job &j = *static_cast<const Job *>(ctx);
  const int w = j.set->columns;
  alignas(64) int32_t sums[4 * MAX_COLUMNS];
  for (int64_t u = begin; u < end && !j.c->stopped(); u++) {
    const int64_t p = u / j.row_blocks, first = u % j.row_blocks * ROW_BLOCK, last = first + ROW_BLOCK < j.m ? first + ROW_BLOCK : j.m;
    const int n = int(j.n - p * w < w ? j.n - p * w : w);
    for (int64_t i = first; i < last; i += 4) {
      const int h = int(last - i < 4 ? last - i : 4);
      j.set->tile[h](j.rows + i * j.k2, j.k2, j.packed + p * j.k2 * w, sums);
      for (int r = 0; r < h; r++) j.set->finish(j.q, j.c->out_ptr<void>(0), (i + r) * j.n + p * w, sums + r * w, n, p * w, 1);
    }
  }
}

template <int Isa> void run(const Call &c) {
  if (c.out(0).count == 0) return;
  const rlx_QMatMulAttrs &a = c.attrs<rlx_QMatMulAttrs>();
  Job j = job_of(*c.cmd, Isa);
  j.c = &c, j.w = c.in_ptr<void>(1);
  j.q = {c.out(0).dtype, ends_of(c.out(0).dtype), int32_t(a.out_zero_point), float(a.multiplier), operand<int32_t>(c, 2), operand<float>(c, 3)};
  j.packed = static_cast<const int32_t *>(c.cmd->packed);
  j.rows = static_cast<int32_t *>(c.scratch);
  if (j.packed == nullptr) {
    j.packed = j.to = j.rows + j.m * j.k2;
    c.parallel(j.panels, grain(j, j.set->columns), pack_w, &j);
  }
  c.parallel(j.m, grain(j, 1), pack_x, &j);
  c.parallel(j.panels * j.row_blocks, grain(j, j.set->columns * (j.m < ROW_BLOCK ? j.m : ROW_BLOCK)), units, &j);
}

}  // namespace

int32_t qmatmul_prepare(Prepare &prepare) {
  Command &c = *prepare.cmd;
  if (c.out[0].count == 0) return RLX_OK;
  Job j = job_of(c, prepare.isa);
  int64_t bytes = panel_bytes(j);
  j.w = prepare.constant(prepare, 1);
  if (j.w != nullptr && bytes > 0) {
    const uint64_t layout = uint64_t(c.op) << 32 | uint64_t(j.w_zero + 256) << 8 | uint64_t(j.set->columns);
    bool fresh = false;
    j.to = static_cast<int32_t *>(prepare.cache(prepare, 1, layout, bytes, &fresh));
    if (j.to == nullptr) return RLX_NO_MEMORY;
    if (fresh) parallel(prepare.pool, prepare.max_threads, j.panels, grain(j, j.set->columns), pack_w, &j, nullptr);
    c.packed = j.to, bytes = 0;
  }
  c.scratch = j.m * j.k2 * int64_t(sizeof(int32_t)) + bytes;
  return RLX_OK;
}

void qmatmul_generic(const Call &c, Range) { run<ISA_GENERIC>(c); }
#if defined(RLX_X86)
void qmatmul_avx2(const Call &c, Range) { run<ISA_AVX2>(c); }
void qmatmul_avx512(const Call &c, Range) { run<ISA_AVX512>(c); }
#endif

}  // namespace quant
}  // namespace rlx
