// ending.h: bodies that run over blocks of a matrix product while those are in cache: what MatMulRegion and QMatMulRegion share. Operand 0 of the body
// is the product, its other operands are those of the command behind the first two. Contract: the bits of the body over the bits of the product.
#pragma once

#include "../region/tile.h"

namespace rlx {
namespace matmul {

// The product of command c as an operand: its results have this shape.
Operand product_operand(const Command &c, uint32_t dtype);

// The body of c, over the elements of the product.
region::Region ending_of(const Command &c, const Operand &product);
int32_t number_ending(region::Region *r, Command *c);

// The result that is the memory of the product too: of elements as long, each of which is read before the result is put in its place. -1: none.
int result_for_product(const Command &c, const Operand &product);

// The body of most products of codes, which runs in registers: a product of i32 as f32, then factors and summands one after the other, each with
// its own rounding. Element (i, j) of a step's operand is data[i * row + j * column]; column is 0 or 1.
struct ScaleStep {
  bool add;
  const float *data;
  int64_t row, column;
};
constexpr int MAX_SCALE_STEPS = 4;
struct Scaling;
// n elements of a row; operands[k] is what step k has for the first of them. y may be x.
typedef void (*ScaleRow)(const Scaling &s, const float *const *operands, const int32_t *x, float *y, int64_t n);
struct Scaling {
  int steps;
  ScaleStep step[MAX_SCALE_STEPS];
  const int32_t *product;
  ScaleRow run;
};
extern const ScaleRow scale_row_generic, scale_row_avx2, scale_row_avx512, scale_row_neon;

// Whether the body is one, which number_ending found out; else the region must be open.
bool scaling_of(const Call &c, const region::Region &r, const void *product, Scaling *s);

struct Ending {
  const Call &call;
  const region::Region &region;
  char *const *results;
  const Scaling *scaling = nullptr;
};

// Runs the body over the m rows of n elements, from element `at` of the product on.
void end_block(const Ending &e, int64_t at, int64_t m, int64_t n, int64_t row, int slot);

}  // namespace matmul
}  // namespace rlx
