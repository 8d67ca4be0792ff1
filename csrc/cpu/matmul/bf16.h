// MatMul of bf16 where the machine multiplies pairs of bf16 (vdpbf16ps): the bits of one chain of fma in f32 per element, k ascending, at twice
// its speed.
//
// Panels and rows hold pairs of 32 bits along k: element 2i in the upper half, 2i+1 in the lower one. After an odd k comes +0 in a and -0 in b,
// whose product changes no sum. The instruction adds the product of the upper halves first, then that of the lower ones, each sum rounded to
// f32 (a product of bf16 is exact there): two steps of the chain. But it takes subnormals for zeros, operands and results alike.
//
// None can arise where the least exponents ea and eb of the nonzero elements of both operands, as they are stored, have ea >= 1, eb >= 1 and
// ea + eb >= 142: all products, hence all sums, are multiples of 2^(ea-127-7) 2^(eb-127-7) >= 2^-126. The rest runs as fma of f32 with the same
// bits, so that they do not depend on what else is in a block.
#pragma once
#include "../core/kernel.h"
#include "gemm_tile.h"

namespace rlx {
namespace matmul {

// The least exponent of nonzero elements, as stored; kNoExponent where all are zeros.
constexpr int kNoExponent = 0x10000 >> 7;
// From the least magnitude less one: 0xffff of a zero.
inline int least_exponent(unsigned least) { return int((least + 1) >> 7); }
inline bool never_subnormal(int ea, int eb) { return ea >= 1 && eb >= 1 && ea + eb >= 142; }

constexpr int kPairRows = 14, kPairCols = 32;  // of a tile

struct PairSet {
  // Tiles as those of f32, but that an element of a and b is a pair: see TileF32.
  void (*dot[kPairRows + 1])(const TileF32 *);
  void (*exact[kPairRows + 1])(const TileF32 *);
  // panel[i*w + j] = the pair of src[2i*sk + j*sj] and src[(2i+1)*sk + j*sj] for j < n, anything for n <= j < w. An odd k is followed by
  // after, +0 or -0. Returns the least exponent.
  int (*pack)(uint32_t *panel, int w, const uint16_t *src, int64_t sk, int64_t sj, int64_t k, int n, uint16_t after);
  // row[i] = the pair of src[2i] and src[2i+1], as pack for one row of a; memory up to a multiple of 16 pairs is written.
  int (*pack_row)(uint32_t *row, const uint16_t *src, int64_t k);
  // A tile of sums, n columns of it, rounded; y_rs and sums_rs count elements. put_normal: sums of dot where no subnormal could arise.
  void (*put)(uint16_t *y, int64_t y_rs, const float *sums, int64_t sums_rs, int64_t rows, int n);
  void (*put_normal)(uint16_t *y, int64_t y_rs, const float *sums, int64_t sums_rs, int64_t rows, int n);
};

extern const PairSet kPairsAvx512;

// Prepares a command of bf16 operands for the kernel of pairs and returns true, on a machine that has one; *code is the result.
bool matmul_bf16_prepare(Prepare &prepare, int32_t *code);

}  // namespace matmul
}  // namespace rlx
