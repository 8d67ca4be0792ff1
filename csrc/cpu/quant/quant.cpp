// Quantize and Dequantize: how work is cut.
#include "../core/rlx_begin.h"

#include "quant.h"

namespace rlx {
namespace quant {

constexpr int64_t WORK = 1 << 13;  // elements of a piece of work

Runs runs_of(const Call &c) {
  // Both kinds begin with the same attributes.
  static_assert(offsetof(rlx_QuantizeAttrs, axis) == offsetof(rlx_DequantizeAttrs, axis) &&
                offsetof(rlx_QuantizeAttrs, block_size) == offsetof(rlx_DequantizeAttrs, block_size), "layout");
  const rlx_QuantizeAttrs &a = c.attrs<rlx_QuantizeAttrs>();
  const Operand &x = c.in(0);
  Runs r;
  r.count = x.count;
  if (!a.axis.present || x.count == 0) return r;
  const int axis = int(a.axis.v < 0 ? a.axis.v + int64_t(x.rank) : a.axis.v);
  for (int d = axis + 1; d < int(x.rank); d++) r.inner *= x.dims[d];
  r.n = x.dims[axis];
  const int64_t outer = x.count / (r.n * r.inner);
  if (a.block_size == 0) {
    r.kind = r.inner == 1 ? Runs::CHANNEL_ROW : Runs::CHANNEL;
    r.count = r.inner == 1 ? outer : outer * r.n;
    return r;
  }
  r.block = a.block_size < r.n ? a.block_size : r.n;
  r.blocks = (r.n + r.block - 1) / r.block;
  r.kind = r.inner == 1 ? Runs::BLOCK : Runs::BLOCK_ROW;
  r.count = r.inner == 1 ? outer * r.blocks : outer * r.n;
  return r;
}

Split quantize_split(const Call &c) {
  const Runs r = runs_of(c);
  if (r.kind == Runs::TENSOR || r.count == 0) return {r.count, WORK};
  const int64_t length = c.in(0).count / r.count;
  return {r.count, 1 + WORK / (length + 1)};
}

}  // namespace quant
}  // namespace rlx
