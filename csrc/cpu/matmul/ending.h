// ending.h: bodies that run over blocks of a matrix product while those are in cache: what MatMulRegion and its like share. Operand 0 of the body is
// the product, its other operands are those of the command behind the product's. Contract: the bits of the body over the bits of the product.
#pragma once

#include "../region/tile.h"

namespace rlx {
namespace matmul {

// The product of command c as an operand: its results have this shape.
Operand product_operand(const Command &c, uint32_t dtype);

// The result that is the memory of the product too: of elements as long, each of which is read before the result is put in its place. -1: none.
int result_for_product(const Command &c, const Operand &product);

// The body of most products, which runs in registers: a product of f32, or of i32 as f32, then factors and summands one after the other, each with its own
// rounding. Element (i, j) of a step's operand is data[i * row + j * column]; column is 0 or 1.
struct ScaleStep {
  bool add;
  const float *data;
  int64_t row, column;
};
constexpr int MAX_SCALE_STEPS = 4;
struct Scaling;
// n elements of a row; operands[k] is what step k has for the first of them. y may be x.
typedef void (*ScaleRow)(const Scaling &s, const float *const *operands, const void *x, float *y, int64_t n);
struct Scaling {
  int steps;
  ScaleStep step[MAX_SCALE_STEPS];
  bool codes;           // the product is i32
  const char *product;
  ScaleRow run;
};
extern const ScaleRow scale_row_generic, scale_row_avx2, scale_row_avx512, scale_row_neon;

// What prepare_ending leaves with a command.
struct PreparedEnding {
  const region::Layout *layout;
  bool scales;                        // the body is a Scaling, of which the product and the data of operands are set in a run
  Scaling scaling;
  int32_t operand[MAX_SCALE_STEPS];   // of the command, by step; -1: a constant, whose data is set
};

// Prepares the body of a command over the elements of its product, which has so many of the operands.
int32_t prepare_ending(Prepare &p, const Operand &product, uint32_t operands = 2);
inline const PreparedEnding &ending_of(const Command &c) { return *c.prepared<PreparedEnding>(); }
// Whether the body is a Scaling; else the region must be open.
bool scaling_of(const Call &c, const void *product, Scaling *s);

struct Ending {
  const Call &call;
  const region::Region &region;
  char *const *results;
  const Scaling *scaling = nullptr;
};

// Runs the body over the m rows of n elements, from element `at` of the product on.
void end_block(const Ending &e, int64_t at, int64_t m, int64_t n, int64_t row, int slot);
// The same as a GemmFinishF32 (gemm.h), whose ctx is an Ending.
void end_gemm_block(void *ctx, int64_t c_offset, int64_t i0, int64_t j0, int64_t m, int64_t n, float *c, int64_t c_rs, int slot);

}  // namespace matmul
}  // namespace rlx
