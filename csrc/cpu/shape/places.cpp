// Roll, DynamicUpdateSlice, Trilu and ResizeNearest2x. Contract: the bits of the operands (Trilu also zeros), bound exact.
#include "../core/rlx_begin.h"

#include "../index/index.h"
#include "box.h"

namespace rlx {
namespace shape {

// y[.., i, ..] = x[.., (i - shift) mod d, ..]: each axis that moves is cut in two, and every combination of the pieces is a box.
void roll(const Call &c, Range) {
  const rlx_RollAttrs &a = c.attrs<rlx_RollAttrs>();
  const Operand &x = c.in(0);
  const int rank = int(x.rank), size = rlx_dtype_sizes[x.dtype];
  if (x.count == 0) return;
  int64_t shift[RLX_MAX_RANK] = {}, strides[RLX_MAX_RANK];
  for (int64_t i = 0; i < a.axes.n; i++) {
    const int64_t k = wrap_axis(a.axes.v[i], rank), d = x.dims[k];
    shift[k] = (shift[k] + (a.shifts.v[i] % d + d) % d) % d;
  }
  int moved[RLX_MAX_RANK], n = 0;
  for (int d = 0; d < rank; d++)
    if (shift[d] != 0) moved[n++] = d;
  dense_strides(x.dims, rank, strides);
  Moves moves(c);
  for (int pick = 0; pick < 1 << n; pick++) {
    int64_t dims[RLX_MAX_RANK], to = 0, from = 0;
    for (int d = 0; d < rank; d++) dims[d] = x.dims[d];
    for (int m = 0; m < n; m++) {
      const int d = moved[m];
      const int64_t head = x.dims[d] - shift[d];  // of x, which goes behind the tail
      if ((pick >> m & 1) == 0) dims[d] = head, to += shift[d] * strides[d];
      else dims[d] = shift[d], from += head * x.strides[d];
    }
    moves.add(box_of(size, rank, dims, c.out_ptr<char>(0) + to * size, strides, c.in_ptr<char>(0) + from * size, x.strides));
  }
  moves.flush();
}

// y = x with u written from start on along axis; start is clamped, so that u fits.
void dynamic_update_slice(const Call &c, Range) {
  const Operand &y = c.out(0), &u = c.in(1);
  const int axis = int(wrap_axis(c.attrs<rlx_DynamicUpdateSliceAttrs>().axis, y.rank)), size = rlx_dtype_sizes[y.dtype];
  int64_t start, strides[RLX_MAX_RANK];
  index::read_indices(c.in(2), c.in_data[2], 0, 1, &start);
  if (start == index::NO_INDEX && index::fail_fraction(c, 2, 0)) return;
  const int64_t room = y.dims[axis] - u.dims[axis];
  start = start < 0 ? 0 : start > room ? room : start;
  dense_strides(y.dims, int(y.rank), strides);
  Moves moves(c);
  moves.add(box_to(c.in(0), c.in_data[0], c.out_data[0], strides));  // nothing where x is written in place
  moves.flush();
  if (c.stopped()) return;
  moves.add(box_to(u, c.in_data[1], c.out_ptr<char>(0) + start * strides[axis] * size, strides));
  moves.flush();
}

namespace {

// Where the kept elements of row i begin and end. diagonal may be any number.
void kept(const rlx_TriluAttrs &a, int64_t i, int64_t cols, int64_t *begin, int64_t *end) {
  int64_t edge;  // of the diagonal's element in this row, which both parts keep
  if (__builtin_add_overflow(i, a.diagonal, &edge)) edge = cols;  // i >= 0: only upwards
  int64_t cut = edge + (a.lower != 0 && edge < cols ? 1 : 0);
  cut = cut < 0 ? 0 : cut > cols ? cols : cut;
  *begin = a.lower != 0 ? 0 : cut, *end = a.lower != 0 ? cut : cols;
}

}  // namespace

// y[.., i, j] = x[.., i, j] on one side of the diagonal, else zero bits. Units are rows.
void trilu(const Call &c, Range r) {
  const rlx_TriluAttrs &a = c.attrs<rlx_TriluAttrs>();
  const Operand &x = c.in(0);
  const int rank = int(x.rank), size = rlx_dtype_sizes[x.dtype];
  const int64_t height = x.dims[rank - 2], cols = x.dims[rank - 1], step = x.strides[rank - 1], one = 1;
  int64_t k = r.begin;
  int64_t strides[1][RLX_MAX_RANK];
  for (int d = 0; d < rank - 1; d++) strides[0][d] = x.strides[d];
  for (Walk<1> w(x.dims, rank - 1, strides, r.begin, r.end); w.next();)
    for (int64_t row = 0; row < w.n; row++, k++) {
      int64_t begin, end;
      kept(a, k % height, cols, &begin, &end);
      const int64_t n = end - begin;
      char *y = c.out_ptr<char>(0) + k * cols * size;
      const char *from = c.in_ptr<char>(0) + (w.at[0] + row * w.step[0] + begin * step) * size;
      std::memset(y, 0, size_t(begin * size));
      if (n > 0 && step == 1) {
        std::memcpy(y + begin * size, from, size_t(n * size));
      } else if (n > 0) {
        const Box b = box_of(size, 1, &n, y + begin * size, &one, from, &step);
        box_move(b, 0, b.units);
      }
      std::memset(y + end * size, 0, size_t((cols - end) * size));
    }
}

namespace {

// Both rows from one reading: what was just stored in pieces is slow to read as a whole.
template <class T> void twice(T *__restrict y, T *__restrict below, const T *__restrict x, int64_t n, int64_t step) {
  if (step == 1) {
    for (int64_t i = 0; i < n; i++) y[2 * i] = y[2 * i + 1] = below[2 * i] = below[2 * i + 1] = x[i];
  } else {
    for (int64_t i = 0; i < n; i++) y[2 * i] = y[2 * i + 1] = below[2 * i] = below[2 * i + 1] = x[i * step];
  }
}

template <class T> void double_rows(const Call &c, Range r) {
  const Operand &x = c.in(0);
  const int64_t cols = x.dims[3];
  T *y = c.out_ptr<T>(0) + r.begin * 4 * cols;
  int64_t strides[1][RLX_MAX_RANK];
  for (int d = 0; d < 3; d++) strides[0][d] = x.strides[d];
  for (Walk<1> w(x.dims, 3, strides, r.begin, r.end); w.next();)
    for (int64_t row = 0; row < w.n; row++, y += 4 * cols) twice(y, y + 2 * cols, c.in_ptr<T>(0) + w.at[0] + row * w.step[0], cols, x.strides[3]);
}

}  // namespace

// y[n,c,i,j] = x[n,c,i/2,j/2]. Units are rows of x, each of which gives two of y.
void resize_nearest_2x(const Call &c, Range r) {
  if (c.out(0).count == 0) return;
  switch (rlx_dtype_sizes[c.out(0).dtype]) {
    case 1: return double_rows<uint8_t>(c, r);
    case 2: return double_rows<uint16_t>(c, r);
    case 4: return double_rows<uint32_t>(c, r);
    default: return double_rows<uint64_t>(c, r);
  }
}

}  // namespace shape
}  // namespace rlx
