// arg.h: ArgMax and ArgMin. A NaN is the extreme of both; of equal elements the first wins, or the last with select_last_index.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"
#include "lines.h"

namespace rlx {
namespace reduce {

struct ArgWork {
  Lines lines;
  bool least, last;
  uint32_t dtype;  // of the result
};

inline ArgWork arg_work(const Call &c) {
  const rlx_ArgAttrs &a = c.attrs<rlx_ArgAttrs>();
  return {lines_of(c.in(0), a.axis, 1), c.cmd->op == RLX_OP_ArgMin, a.select_last_index != 0, c.out(0).dtype};
}

constexpr int ARG_TILE = 64;  // lines that are searched together, or elements gathered together

// Whether a beats b, when a comes after b.
template <class T> inline bool beats(T a, T b, bool least, bool last) {
  if (a != a || b != b) return a != a && (b == b || last);
  if (a == b) return last;
  return least ? a < b : a > b;
}

}  // namespace reduce
}  // namespace rlx
