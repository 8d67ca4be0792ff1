// The GEMM engine: C = A B, batched, any element strides for A and B.
//
// Each element of C is +0 + a(i,0)*b(0,j) + a(i,1)*b(1,j) + ..., k ascending, in one accumulator with fma (the generic x86 set multiplies and
// adds). Its bits depend on its row of A, its column of B and the instruction set, and on nothing else: not on M, N, the batch, the threads,
// the blocking or the packing.
//
//   GemmF32 g = {};
//   g.m = ...;  ...                          // the problem
//   gemm_f32_plan(&g, threads);              // the blocking; g.scratch_bytes
//   gemm_f32(pool, threads, &g, scratch, cancel);
//
// f32 has K groups of one element. Engines with groups of 2 (bf16) and 4 (int8) take the same shape: panels of [K/group][cols][group].
#pragma once

#include <cstdint>

#include "../core/pool.h"
#include "gemm_tile.h"

namespace rlx {
namespace matmul {

constexpr int kMaxGemmBatchRank = 8;

// Called once for each block of C, when its sum is complete and still in cache: rows [i0, i0+m) and columns [j0, j0+n) of the matrix that
// starts at element c_offset of GemmF32::c. c points at the block's first element; slot is that of gemm_f32_run.
typedef void (*GemmFinishF32)(void *ctx, int64_t c_offset, int64_t i0, int64_t j0, int64_t m, int64_t n, float *c, int64_t c_rs, int slot);

// Fills dst with rows [k0, k0+kc) of column panel q of b, as gemm_pack_b does: [kc][gemm_panel_cols()], zero-padded.
typedef void (*GemmWidenF32)(const void *ctx, int64_t q, int64_t k0, int64_t kc, float *dst);

struct GemmF32 {
  // The problem. Strides count elements and may be zero or negative, except c_rs. C must not overlap A or B.
  int64_t m, n, k;
  const float *a;
  int64_t a_rs, a_cs;
  const float *b;  // unused when packed_b is set
  int64_t b_rs, b_cs;
  const float *packed_b;  // from gemm_pack_b, or null; b_bs then counts the floats of the packed buffer
  GemmWidenF32 widen;     // or null; makes the panels of b, one for all matrices, as they are used. b and packed_b are then unused
  const void *widen_ctx;
  float *c;               // rows contiguous
  int64_t c_rs;
  int batch_rank;  // matrices: the product of batch[], strides per batch dim
  int64_t batch[kMaxGemmBatchRank], a_bs[kMaxGemmBatchRank], b_bs[kMaxGemmBatchRank], c_bs[kMaxGemmBatchRank];
  GemmFinishF32 finish;  // or null; finish_ctx is its first argument
  void *finish_ctx;

  // Filled by gemm_f32_plan.
  int64_t scratch_bytes;            // 64-byte aligned memory that pack and run need
  int64_t pack_units, pack_grain;   // first gemm_f32_pack over all of [0, pack_units)
  int64_t units, grain;             // then gemm_f32_run over [0, units)
  const TileSetF32 *tiles;
  int64_t matrices, b_matrices;
  int64_t row_panels, col_panels;   // of one matrix
  int64_t row_block, col_block;     // in panels
  int64_t row_blocks, col_blocks;
  int64_t kc;                       // depth of a block
  int64_t slot_floats, shared_floats;
  bool pack_a, b_shared;
};

// Columns of a packed panel under the set in use. Panels are [K][gemm_panel_cols()], zero-padded.
int64_t gemm_panel_cols();

// Bytes of a packed K x N matrix. Packed data fits only the set that was in use when it was packed.
int64_t gemm_packed_b_bytes(int64_t k, int64_t n);

// Packs columns [n0, n1) of the K x N matrix b; n0 is a multiple of gemm_panel_cols(), n1 one too or n. Ranges may be packed in parallel.
void gemm_pack_b(float *dst, const float *b, int64_t b_rs, int64_t b_cs, int64_t k, int64_t n, int64_t n0, int64_t n1);

// Chooses the blocking for at most threads threads. May rewrite the problem into an equal one (batch into rows, n == 1 into its transpose).
void gemm_f32_plan(GemmF32 *g, int threads);

// Any split of the unit ranges, in any order, on any threads with slot < threads; all of pack before any of run. cancel (may be null) is
// read between pieces of a unit, which may be as long as k: non-zero leaves c unfinished.
void gemm_f32_pack(const GemmF32 *g, void *scratch, int64_t begin, int64_t end, int slot, const volatile uint32_t *cancel);
void gemm_f32_run(const GemmF32 *g, void *scratch, int64_t begin, int64_t end, int slot, const volatile uint32_t *cancel);

// Both phases on the pool.
void gemm_f32(Pool *pool, int threads, const GemmF32 *g, void *scratch, const volatile uint32_t *cancel);

}  // namespace matmul
}  // namespace rlx
