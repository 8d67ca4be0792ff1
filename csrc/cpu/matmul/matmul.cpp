// MatMul of f32: the GEMM engine (gemm.h) on the operands as they lie. Contract: k ascending in one accumulator per element, so that a row
// of y has the same bits whatever the batch, the threads and the packing. Bound: 1.5 K eps sum |a||b|.
#include "../core/rlx_begin.h"

#include "ending.h"
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

// g->finish is set, or null, before.
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

// ---- MatMulRegion: the body runs over each block of the product while that is in cache. Contract: the bits of the body over the bits of MatMul.

namespace {

// One column is a row of the transposed product, which has no blocks: the body follows then.
bool in_blocks(const Command &c) {
  Product p;
  product_of(c, packed_floats(c), &p);
  return p.n > 1;
}

}  // namespace

int32_t matmul_region_f32_prepare(Prepare &prepare) {
  Command &c = *prepare.cmd;
  const Operand product = product_operand(c, RLX_F32);
  int32_t code = prepare_ending(prepare, product);
  if (code != RLX_OK || product.count == 0) return code;
  if ((code = pack_constant_b(prepare, int(gemm_panel_cols()), sizeof(float), RLX_F32, pack)) != RLX_OK) return code;
  for (int threads = 1; threads <= prepare.max_threads; threads++) {
    GemmF32 g = {};
    if (in_blocks(c)) g.finish = end_gemm_block;
    plan(c, threads, &g);
    const int64_t bytes = align64(ending_of(c).layout->bytes(threads)) + align64(g.scratch_bytes);
    if (bytes > c.scratch) c.scratch = bytes;
  }
  if (result_for_product(c, product) < 0) c.scratch += align64(product.count * int64_t(sizeof(float)));
  return RLX_OK;
}

void matmul_region_f32(const Call &c, Range) {
  const Operand product = product_operand(*c.cmd, RLX_F32);
  if (product.count == 0) return;
  region::Region r(*ending_of(*c.cmd).layout);
  char *scratch = static_cast<char *>(c.scratch), *const *results = reinterpret_cast<char *const *>(c.out_data);
  Scaling scaling;
  Ending e = {c, r, results};
  GemmF32 g = {};
  if (in_blocks(*c.cmd)) g.finish = end_gemm_block, g.finish_ctx = &e;
  g.a = c.in_ptr<float>(0), g.b = c.in_ptr<float>(1);
  const int k = result_for_product(*c.cmd, product);
  g.c = k >= 0 ? c.out_ptr<float>(k) : reinterpret_cast<float *>(scratch + c.cmd->scratch - align64(product.count * int64_t(sizeof(float))));
  float *y = g.c;
  if (g.finish != nullptr && scaling_of(c, y, &scaling)) e.scaling = &scaling;
  else r.open(scratch, [&](uint32_t j) { return j == 0 ? y : c.in_data[j + 1]; });
  plan(*c.cmd, c.threads(), &g);
  gemm_f32(c.pool(), c.threads(), &g, scratch + align64(r.layout.bytes(c.threads())), c.cancel());
  if (g.finish == nullptr && !c.stopped()) region::run_all(c, r, results);
}

}  // namespace matmul
}  // namespace rlx
