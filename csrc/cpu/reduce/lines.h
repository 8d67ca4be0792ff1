// lines.h: the lines of a tensor along one axis, for kernels that work line by line: scans, ArgMax, Softmax, TopK.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"

namespace rlx {

// Element k of a line stands at at[0] + k * x_step in the operand and at[1] + k * y_step in the result, with at from walk(). Lines are
// numbered as the elements of the shape without the axis.
struct Lines {
  int rank = 0;
  int64_t dims[RLX_MAX_RANK] = {}, strides[2][RLX_MAX_RANK] = {};
  int64_t length = 0, count = 1;  // of a line; of lines
  int64_t x_step = 0, y_step = 0;

  Walk<2> walk(int64_t begin, int64_t end) const { return Walk<2>(dims, rank, strides, begin, end); }
};

inline int axis_of(int64_t axis, const Operand &x) { return int(axis < 0 ? axis + int64_t(x.rank) : axis); }

// The result is contiguous, has the dims of x, and `length` on the axis: 1 where the axis is reduced, kept or not.
inline Lines lines_of(const Operand &x, int64_t attr_axis, int64_t length) {
  Lines l;
  const int axis = axis_of(attr_axis, x);
  int64_t y_stride = 1;
  for (int d = int(x.rank) - 1; d >= 0; d--) {
    l.strides[1][d] = y_stride;
    y_stride *= d == axis ? length : x.dims[d];
  }
  l.length = x.dims[axis], l.x_step = x.strides[axis], l.y_step = l.strides[1][axis];
  int rank = 0;
  for (int d = 0; d < int(x.rank); d++) {
    if (d == axis) continue;
    l.count *= x.dims[d];
    l.dims[rank] = x.dims[d], l.strides[0][rank] = x.strides[d], l.strides[1][rank] = l.strides[1][d];
    rank++;
  }
  l.rank = merge_axes(l.dims, rank, l.strides, 2);
  return l;
}

inline Lines lines_of(const Operand &x, int64_t attr_axis) { return lines_of(x, attr_axis, x.dims[axis_of(attr_axis, x)]); }

// Lines of about `work` elements together make a piece of work.
inline Split split_lines(int64_t count, int64_t length, int64_t work) {
  return {count, length < work ? work / (length > 0 ? length : 1) : 1};
}

// Calls f(begin, end) for pieces of [begin, end), a millisecond of work or less each; false, with the rest left, once the run was stopped.
constexpr int64_t PIECE_OF_LINE = 1 << 16;
template <class F> RLX_FN bool in_pieces(const Call &c, int64_t begin, int64_t end, const F &f) {
  while (end - begin > PIECE_OF_LINE) {
    f(begin, begin + PIECE_OF_LINE);
    if (c.stopped()) return false;
    begin += PIECE_OF_LINE;
  }
  f(begin, end);
  return true;
}

template <class T> inline void gather_run(T *y, const T *x, int64_t n, int64_t step) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i * step];
}

// Elements [begin, begin + n) of an operand, in order.
template <class T> void gather_elements(T *y, const T *x, const Operand &o, int64_t begin, int64_t n) {
  int64_t strides[1][RLX_MAX_RANK];
  for (int d = 0; d < int(o.rank); d++) strides[0][d] = o.strides[d];
  for (Walk<1> w(o.dims, int(o.rank), strides, begin, begin + n); w.next(); y += w.n) gather_run(y, x + w.at[0], w.n, w.step[0]);
}

// Element i of an index result: i64, i32 or f32.
inline void put_index(void *y, uint32_t dtype, int64_t i, int64_t value) {
  switch (dtype) {
    case RLX_I32: static_cast<int32_t *>(y)[i] = int32_t(value); break;
    case RLX_F32: static_cast<float *>(y)[i] = float(value); break;
    default: static_cast<int64_t *>(y)[i] = value; break;
  }
}

}  // namespace rlx
