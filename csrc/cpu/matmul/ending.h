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

struct Ending {
  const Call &call;
  const region::Region &region;
  char *const *results;
};

// Runs the body over the m rows of n elements, from element `at` of the product on.
void end_block(const Ending &e, int64_t at, int64_t m, int64_t n, int64_t row, int slot);

}  // namespace matmul
}  // namespace rlx
