// Copy and Concat: boxes as they are. Contract: the bits of the operands, bound exact.
#include "../core/rlx_begin.h"

#include "box.h"

namespace rlx {
namespace shape {
namespace {

Box copy_box(const Call &c) {
  int64_t strides[RLX_MAX_RANK];
  dense_strides(c.out(0).dims, int(c.out(0).rank), strides);
  return box_to(c.in(0), c.in_data[0], c.out_data[0], strides);
}

}  // namespace

Split copy_units(const Call &c) {
  const Box b = copy_box(c);
  return {b.units, b.grain};
}

// y[i...] = x[i...]. The result may be x's own memory, which is then contiguous: no unit is left to move.
void copy(const Call &c, Range r) {
  const Box b = copy_box(c);
  for (int64_t at = r.begin; at < r.end && !c.stopped(); at += b.grain) box_move(b, at, at + b.grain < r.end ? at + b.grain : r.end);
}

// y[.., at_k + i, ..] = x_k[.., i, ..], where at_k is the sum of the lengths before x_k.
void concat(const Call &c, Range) {
  const Operand &out = c.out(0);
  const int64_t axis = wrap_axis(c.attrs<rlx_ConcatAttrs>().axis, out.rank);
  const int size = rlx_dtype_sizes[out.dtype];
  int64_t strides[RLX_MAX_RANK], at = 0;
  dense_strides(out.dims, int(out.rank), strides);
  Moves moves(c);
  for (uint32_t k = 0; k < c.cmd->num_in; k++) {
    moves.add(box_to(c.in(int(k)), c.in_data[k], c.out_ptr<char>(0) + at * strides[axis] * size, strides));
    at += c.in(int(k)).dims[axis];
  }
  moves.flush();
}

}  // namespace shape
}  // namespace rlx
