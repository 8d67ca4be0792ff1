// box.h: moving a box of elements from one strided place to another, bits unchanged. What Copy, Concat, Pad, Roll, KvAppend and the
// scatter kinds do to memory is made of boxes.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"

namespace rlx {
namespace shape {

// Element i of the box goes from x + sum i_k*strides[1][k] to y + sum i_k*strides[0][k]; strides count elements of `size` bytes. The two
// places are the same or do not overlap. A Box is ready to move in units, which are equal in number and meaning for equal layouts.
struct Box {
  int size = 1, rank = 0;
  int64_t dims[RLX_MAX_RANK] = {}, strides[2][RLX_MAX_RANK] = {};
  char *y = nullptr;
  const char *x = nullptr;
  int64_t count = 0;
  int form = 0, across = 0;          // how it is moved; the axis along which x is contiguous, for tiles
  int64_t units = 0, grain = 1;
};

// Reduces the axes and chooses the form.
Box box_of(int size, int rank, const int64_t *dims, void *y, const int64_t *y_strides, const void *x, const int64_t *x_strides);
// Operand x to a result or a piece of one, given the strides of the result.
Box box_to(const Operand &x, const void *from, void *y, const int64_t *y_strides);
// n elements in one piece.
Box box_run(int size, int64_t n, void *y, const void *x);
// `pattern`, one element, to every place of dims.
Box box_fill(int size, int rank, const int64_t *dims, void *y, const int64_t *y_strides, const void *pattern);

// Moves the units [begin, end).
void box_move(const Box &b, int64_t begin, int64_t end);

// Row-major strides.
inline void dense_strides(const int64_t *dims, int rank, int64_t *strides) {
  int64_t n = 1;
  for (int d = rank - 1; d >= 0; d--) strides[d] = n, n *= dims[d];
}

inline int64_t wrap_axis(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

// A list of boxes that move at the same time, on all threads. What is added is moved at the latest by flush.
class Moves {
 public:
  explicit Moves(const Call &c) : c_(c) {}
  void add(const Box &b);
  void flush();

 private:
  static constexpr int MAX = 16;
  static void pieces(void *self, int64_t begin, int64_t end, int slot);
  const Call &c_;
  Box box_[MAX];
  int64_t first_[MAX + 1] = {};  // pieces, of one grain each, before box k
  int64_t bytes_ = 0;
  int n_ = 0;
};

// Runs f(begin, end) over units on the pool.
template <class F> void each(const Call &c, int64_t units, int64_t grain, const F &f) {
  if (units <= 0) return;
  c.parallel(units, grain, [](void *p, int64_t begin, int64_t end, int) { (*static_cast<const F *>(p))(begin, end); }, const_cast<F *>(&f));
}

}  // namespace shape
}  // namespace rlx
