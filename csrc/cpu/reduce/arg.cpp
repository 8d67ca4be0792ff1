// ArgMax and ArgMin of f64, integers and bool. Lines are searched side by side, so that memory is read in its order where the axis is
// not the last one.
#include "../core/rlx_begin.h"

#include "arg.h"

namespace rlx {
namespace reduce {
namespace {

template <class T> void find_tile(const T *x, int64_t side, const ArgWork &w, int n, int64_t *index) {
  T best[ARG_TILE];
  for (int j = 0; j < n; j++) best[j] = x[j * side], index[j] = 0;
  for (int64_t k = 1; k < w.lines.length; k++) {
    const T *row = x + k * w.lines.x_step;
    for (int j = 0; j < n; j++)
      if (const T v = row[j * side]; beats(v, best[j], w.least, w.last)) best[j] = v, index[j] = k;
  }
}

template <class T> void arg(const Call &c, Range r) {
  const ArgWork w = arg_work(c);
  const T *x = c.in_ptr<T>(0);
  int64_t index[ARG_TILE], out = r.begin;
  for (Walk<2> l = w.lines.walk(r.begin, r.end); l.next();)
    for (int64_t i = 0; i < l.n;) {
      if (c.stopped()) return;
      const int n = w.lines.x_step == 1 ? 1 : int(l.n - i < ARG_TILE ? l.n - i : ARG_TILE);
      find_tile(x + l.at[0] + i * l.step[0], l.step[0], w, n, index);
      for (int j = 0; j < n; j++) put_index(c.out_data[0], w.dtype, out + j, index[j]);
      i += n, out += n;
    }
}

}  // namespace

Split arg_split(const Call &c) {
  const Lines l = arg_work(c).lines;
  return split_lines(l.count, l.length, 1 << 15);
}

void arg_f64(const Call &c, Range r) { arg<double>(c, r); }
void arg_int(const Call &c, Range r) {
  switch (c.in(0).dtype) {
    case RLX_I8: return arg<int8_t>(c, r);
    case RLX_I16: return arg<int16_t>(c, r);
    case RLX_I32: return arg<int32_t>(c, r);
    case RLX_I64: return arg<int64_t>(c, r);
    case RLX_U16: return arg<uint16_t>(c, r);
    case RLX_U32: return arg<uint32_t>(c, r);
    case RLX_U64: return arg<uint64_t>(c, r);
    default: return arg<uint8_t>(c, r);  // u8 and bool
  }
}

}  // namespace reduce
}  // namespace rlx
