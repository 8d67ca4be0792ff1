// Pad. A row is the last axis that has a border, with all axes behind it as its elements: middle rows are one move, and a row that lies in
// a constant border of an outer axis is filled. Contract: the bits of the operand or of the value, bound exact.
#include "../core/rlx_begin.h"

#include "box.h"
#include "number.h"

namespace rlx {
namespace shape {
namespace {

constexpr int64_t GRAIN_BYTES = 32768;

// One axis: n elements of x are left from element crop on, before and after are what is added.
struct Border {
  int64_t before, after, crop, n;
};

struct Plan {
  int last = -1;           // the last axis with a border or a crop, -1: none
  int64_t rows = 1, inner = 1;
  int mode = 0, size = 1;
  Border axis[RLX_MAX_RANK] = {};
  uint64_t value = 0;
};

Plan plan_of(const Call &c) {
  const rlx_PadAttrs &a = c.attrs<rlx_PadAttrs>();
  const Operand &x = c.in(0);
  Plan p;
  p.mode = int(a.mode), p.size = rlx_dtype_sizes[x.dtype];
  number_as(a.value, x.dtype, &p.value);
  const int rank = int(x.rank);
  for (int d = 0; d < rank; d++) {
    const int64_t before = a.padding.v[d], after = a.padding.v[a.padding.n == rank ? d : rank + d];
    const int64_t crop = before < 0 ? -before : 0;
    p.axis[d] = {before > 0 ? before : 0, after > 0 ? after : 0, crop, x.dims[d] - crop - (after < 0 ? -after : 0)};
    if (before != 0 || after != 0) p.last = d;
  }
  for (int d = 0; d < p.last; d++) p.rows *= c.out(0).dims[d];
  for (int d = p.last + 1; d < rank; d++) p.inner *= x.dims[d];
  return p;
}

// The element of x that position i, counted from the first one that is left, reads; -1: the value.
int64_t source(int mode, const Border &b, int64_t i) {
  const int64_t n = b.n;
  if (i >= 0 && i < n) return i + b.crop;
  switch (mode) {
    case rlx_PadMode_replicate: return b.crop + (i < 0 ? 0 : n - 1);
    case rlx_PadMode_circular: return b.crop + (i % n + n) % n;
    case rlx_PadMode_reflect: {
      if (n == 1) return b.crop;
      const int64_t period = 2 * (n - 1), m = (i % period + period) % period;
      return b.crop + (m < period - m ? m : period - m);
    }
    default: return -1;
  }
}

template <class T> void fill_of(char *y, const uint64_t &value, int64_t n) {
  T v, *to = reinterpret_cast<T *>(y);
  std::memcpy(&v, &value, sizeof v);
  for (int64_t i = 0; i < n; i++) to[i] = v;
}

// n elements of the value.
void fill(const Plan &p, char *y, int64_t n) {
  switch (p.size) {
    case 1: return fill_of<uint8_t>(y, p.value, n);
    case 2: return fill_of<uint16_t>(y, p.value, n);
    case 4: return fill_of<uint32_t>(y, p.value, n);
    default: return fill_of<uint64_t>(y, p.value, n);
  }
}

// Counts rows over the axes before p.last, without a division for each.
struct Rows {
  const Plan &p;
  const Operand &x, &y;
  int64_t index[RLX_MAX_RANK] = {};

  Rows(const Plan &plan, const Call &c, int64_t row) : p(plan), x(c.in(0)), y(c.out(0)) {
    for (int d = p.last - 1; d >= 0; d--) index[d] = row % y.dims[d], row /= y.dims[d];
  }
  void next() {
    for (int d = p.last - 1; d >= 0; d--) {
      if (++index[d] < y.dims[d]) return;
      index[d] = 0;
    }
  }
  // The element of x that starts the row; -1: the value.
  int64_t start() const {
    int64_t at = 0, step = p.inner * x.dims[p.last];
    for (int d = p.last - 1; d >= 0; d--) {
      const int64_t i = source(p.mode, p.axis[d], index[d] - p.axis[d].before);
      if (i < 0) return -1;
      at += i * step;
      step *= x.dims[d];
    }
    return at;
  }
};

// Elements [first, first + n) of a row's border, counted as in source.
void border(const Plan &p, char *y, const char *x, int64_t first, int64_t n) {
  if (p.mode == rlx_PadMode_constant) return fill(p, y, n * p.inner);
  const size_t bytes = size_t(p.inner * p.size);
  for (int64_t i = 0; i < n; i++) std::memcpy(y + i * int64_t(bytes), x + source(p.mode, p.axis[p.last], first + i) * int64_t(bytes), bytes);
}

}  // namespace

// One row is for the calling thread, which shares out the move.
Split pad_units(const Call &c) {
  const Plan p = plan_of(c);
  if (c.out(0).count == 0) return {0, 1};
  if (p.last < 0) return {1, 1};
  const int64_t bytes = c.out(0).count / p.rows * p.size;
  return {p.rows, bytes < GRAIN_BYTES ? GRAIN_BYTES / bytes : 1};
}

void pad(const Call &c, Range r) {
  const Plan p = plan_of(c);
  const char *x = c.in_ptr<char>(0);
  char *y = c.out_ptr<char>(0);
  Moves moves(c);
  if (p.last < 0) {
    moves.add(box_run(p.size, c.out(0).count, y, x));
    return moves.flush();
  }
  const Border &b = p.axis[p.last];
  const int64_t bytes = p.inner * p.size, length = b.before + b.n + b.after;
  Rows row(p, c, r.begin);
  for (int64_t k = r.begin; k < r.end && !c.stopped(); k++, row.next()) {
    const int64_t start = row.start();
    char *to = y + k * length * bytes;
    if (start < 0) {
      fill(p, to, length * p.inner);
      continue;
    }
    const char *from = x + start * p.size;
    border(p, to, from, -b.before, b.before);
    if (p.rows == 1) moves.add(box_run(p.size, b.n * p.inner, to + b.before * bytes, from + b.crop * bytes));
    else std::memcpy(to + b.before * bytes, from + b.crop * bytes, size_t(b.n * bytes));
    border(p, to + (b.before + b.n) * bytes, from, b.n, b.after);
  }
  moves.flush();
}

}  // namespace shape
}  // namespace rlx
