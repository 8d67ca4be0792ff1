// norm.h: what the files of LayerNorm, RmsNorm and Softmax share. A row is all that is normalised together; rows do not depend on each
// other, so results do not depend on how they are split.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"
#include "../elementwise/elementwise.h"
#include "../reduce/lines.h"

namespace rlx {
namespace norm {

struct NormPlan {
  int64_t rows = 0, n = 1;  // n elements a row
  bool rms = false, dense = false;  // dense: rows of x lie as those of y
  double eps = 0;
};

inline NormPlan norm_plan(const Call &c) {
  const rlx_LayerNormAttrs &a = c.attrs<rlx_LayerNormAttrs>();
  const Operand &x = c.in(0);
  NormPlan p;
  for (int d = axis_of(a.axis, x); d < int(x.rank); d++) p.n *= x.dims[d];
  p.rows = p.n > 0 ? c.out(0).count / p.n : 0;
  p.rms = c.cmd->op == RLX_OP_RmsNorm;
  p.dense = x.contiguous;
  p.eps = a.eps;
  return p;
}

constexpr int CHUNK = 512;  // elements of gamma and beta gathered together where they are not contiguous

// Elements [i, i + n) of gamma or beta: in place, or in buffer; null where the operand is absent.
template <class T> const T *affine_chunk(const Call &c, int operand, int64_t i, int64_t n, T *buffer) {
  if (!c.has(operand)) return nullptr;
  const T *x = c.in_ptr<T>(operand);
  if (c.in(operand).contiguous) return x + i;
  gather_elements(buffer, x, c.in(operand), i, n);
  return buffer;
}

// Row r of x; where x is strided its elements are moved to the row of y first, which is then normalised in place.
template <class T> const T *norm_row(const Call &c, const NormPlan &p, int64_t r) {
  const T *x = c.in_ptr<T>(0);
  if (p.dense) return x + r * p.n;
  T *y = c.out_ptr<T>(0) + r * p.n;
  in_pieces(c, 0, p.n, [&](int64_t begin, int64_t end) { gather_elements(y + begin, x, c.in(0), r * p.n + begin, end - begin); });
  return y;
}

}  // namespace norm
}  // namespace rlx
