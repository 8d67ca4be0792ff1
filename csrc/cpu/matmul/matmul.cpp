// MatMul of f32: the GEMM engine (gemm.h) on the operands as they lie. Contract: k ascending in one accumulator per element, so that a row
// of y has the same bits whatever the batch, the threads and the packing. Bound: 1.5 K eps sum |a||b|.
#include "../core/rlx_begin.h"

#include "gemm.h"
#include "matmul.h"

namespace rlx {
namespace matmul {
namespace {

// Distances between packed matrices count floats.
int64_t packed_floats(const Command &c) {
  const Operand &b = c.in[1];
  return c.packed == nullptr ? 0 : gemm_packed_b_bytes(b.dims[b.rank - 2], b.dims[b.rank - 1]) / int64_t(sizeof(float));
}

void plan(const Command &c, int threads, GemmF32 *g) {
  Product p;
  product_of(c, packed_floats(c), &p);
  g->m = p.m, g->n = p.n, g->k = p.k;
  g->a_rs = p.a_rs, g->a_cs = p.a_cs;
  g->b_rs = p.b_rs, g->b_cs = p.b_cs;
  g->packed_b = static_cast<const float *>(c.packed);
  g->c_rs = p.n;
  g->batch_rank = p.rank;
  for (int d = 0; d < p.rank; d++) g->batch[d] = p.batch[d], g->a_bs[d] = p.strides[0][d], g->b_bs[d] = p.strides[1][d], g->c_bs[d] = p.strides[2][d];
  gemm_f32_plan(g, threads);
}

void pack(const Product &p, void *panel, int, const void *src, int64_t columns) {
  gemm_pack_b(static_cast<float *>(panel), static_cast<const float *>(src), p.b_rs, p.b_cs, p.k, columns, 0, columns);
}

}  // namespace

int32_t matmul_f32_prepare(Prepare &prepare) {
  const int32_t code = pack_constant_b(prepare, int(gemm_panel_cols()), sizeof(float), RLX_F32, pack);
  if (code != RLX_OK) return code;
  // A run may use fewer threads: fewer slots, but larger blocks.
  for (int threads = 1; threads <= prepare.max_threads; threads++) {
    GemmF32 g = {};
    plan(*prepare.cmd, threads, &g);
    if (g.scratch_bytes > prepare.cmd->scratch) prepare.cmd->scratch = g.scratch_bytes;
  }
  return RLX_OK;
}

void matmul_f32(const Call &c, Range) {
  GemmF32 g = {};
  g.a = c.in_ptr<float>(0), g.b = c.in_ptr<float>(1), g.c = c.out_ptr<float>(0);
  plan(*c.cmd, c.threads(), &g);
  gemm_f32(c.pool(), c.threads(), &g, c.scratch, c.cancel());
}

}  // namespace matmul
}  // namespace rlx
