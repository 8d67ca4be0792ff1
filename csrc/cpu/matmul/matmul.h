// MatMul as matrices: what its kernels have in common.
#pragma once
#include "../core/kernel.h"

namespace rlx {
namespace matmul {

// y = a b for every index of the batch dims. Strides count elements; y is contiguous.
struct Product {
  int64_t m, n, k;
  int64_t a_rs, a_cs, b_rs, b_cs;
  int rank;  // of the batch, merged as far as it goes
  int64_t batch[RLX_MAX_RANK];
  int64_t strides[3][RLX_MAX_RANK];  // of a, b and y along the batch
  int64_t matrices;                  // the product of batch
};

// The matrices of a MatMul. A packed b is panels of each of its matrices, packed_size elements apart (0: b lies as the command says);
// then only its batch strides count.
void product_of(const Command &c, int64_t packed_size, Product *p);

// The different matrices of operand 1, in the order that packing puts them: batch dims of stride 0 count once.
int64_t matrices_of_b(const Operand &b);
// Where matrix i of them starts, in elements.
int64_t matrix_of_b(const Operand &b, int64_t i);

// Packs constant operand 1 into the weights, in panels of k rows by cols columns: pack fills one from columns that start at src. layout
// (16 bits) tells packed forms of one width apart. panel_bytes is the size of a panel, 0 for its elements alone. Leaves cmd->packed null where
// packing gains nothing.
typedef void (*PackPanel)(const Product &p, void *panel, int cols, const void *src, int64_t columns);
int32_t pack_constant_b(Prepare &prepare, int cols, int elem_bytes, uint32_t layout, PackPanel pack, int64_t panel_bytes = 0, int64_t head_bytes = 0, int group = 1);

}  // namespace matmul
}  // namespace rlx
