// The strided move. Contract: every element of the box is written once with the bits of its source; bound: exact. A box is moved in one
// of three forms: RUNS of one long last axis, ROWS of a short last axis (the last two axes in one loop), and TILES where x is contiguous
// along another axis than y, so that both sides are touched in whole cache lines.
#include "../core/rlx_begin.h"

#include "box.h"

namespace rlx {
namespace shape {
namespace {

enum Form { RUNS, ROWS, TILES };

constexpr int64_t LONG_BYTES = 256;     // a last axis from here on is worth a step of Walk each
constexpr int64_t PIECE_BYTES = 32768;  // of work that one thread takes at a time
constexpr int64_t SMALL_TILE = 8;       // shorter sides gain nothing from tiles

constexpr int64_t tile_of(int size) { return size == 8 ? 32 : size == 4 ? 64 : 128; }  // at most the first-level cache

// A short piece, by two overlapping moves where a call of memcpy would cost more than the bytes.
RLX_FN void short_copy(char *y, const char *x, int64_t n) {
  if (n >= 16 && n <= 32) {
    uint64_t a[4];
    std::memcpy(a, x, 16), std::memcpy(a + 2, x + n - 16, 16);
    std::memcpy(y, a, 16), std::memcpy(y + n - 16, a + 2, 16);
  } else if (n >= 8 && n < 16) {
    uint64_t a, b;
    std::memcpy(&a, x, 8), std::memcpy(&b, x + n - 8, 8);
    std::memcpy(y, &a, 8), std::memcpy(y + n - 8, &b, 8);
  } else {
    std::memcpy(y, x, size_t(n));
  }
}

// One run along the last axis.
template <class T> void run(T *y, int64_t ys, const T *x, int64_t xs, int64_t n) {
  if (ys != 1) {
    for (int64_t i = 0; i < n; i++) y[i * ys] = x[i * xs];
  } else if (xs == 1) {
    std::memcpy(y, x, size_t(n) * sizeof(T));
  } else if (xs == 0) {
    const T v = *x;
    for (int64_t i = 0; i < n; i++) y[i] = v;
  } else if (xs == -1) {
    for (int64_t i = 0; i < n; i++) y[i] = x[-i];
  } else {
    for (int64_t i = 0; i < n; i++) y[i] = x[i * xs];
  }
}

template <class T> void move_runs(const Box &b, int64_t begin, int64_t end) {
  T *y = reinterpret_cast<T *>(b.y);
  const T *x = reinterpret_cast<const T *>(b.x);
  for (Walk<2> w(b.dims, b.rank, b.strides, begin, end); w.next();) run(y + w.at[0], w.step[0], x + w.at[1], w.step[1], w.n);
}

// The last two axes of a box: rows and columns.
struct Plane {
  int64_t rows, cols, y_row, y_col, x_row, x_col;
};

// Interleaves N columns: the count is known to the compiler, which unrolls it.
template <class T, int N> void narrow_plane(T *y, const T *x, const Plane &p) {
  for (int64_t r = 0; r < p.rows; r++)
    for (int k = 0; k < N; k++) y[r * N + k] = x[r * p.x_row + k * p.x_col];
}

template <class T> void plane(T *y, const T *x, const Plane &p) {
  if (p.y_col == 1 && p.x_col == 1) {
    const int64_t bytes = p.cols * int64_t(sizeof(T));
    for (int64_t r = 0; r < p.rows; r++) short_copy(reinterpret_cast<char *>(y + r * p.y_row), reinterpret_cast<const char *>(x + r * p.x_row), bytes);
    return;
  }
  if (p.y_col == 1 && p.y_row == p.cols) {
    switch (p.cols) {
      case 2: return narrow_plane<T, 2>(y, x, p);
      case 3: return narrow_plane<T, 3>(y, x, p);
      case 4: return narrow_plane<T, 4>(y, x, p);
      default: break;
    }
  }
  for (int64_t r = 0; r < p.rows; r++) {
    T *to = y + r * p.y_row;
    const T *from = x + r * p.x_row;
    for (int64_t k = 0; k < p.cols; k++) to[k * p.y_col] = from[k * p.x_col];
  }
}

template <class T> void move_rows(const Box &b, int64_t begin, int64_t end) {
  T *y = reinterpret_cast<T *>(b.y);
  const T *x = reinterpret_cast<const T *>(b.x);
  const int r = b.rank - 2, c = b.rank - 1;
  Plane p = {0, b.dims[c], b.strides[0][r], b.strides[0][c], b.strides[1][r], b.strides[1][c]};
  // The walk is over the rows, whose axes are all but the last.
  for (Walk<2> w(b.dims, c, b.strides, begin, end); w.next();) {
    p.rows = w.n;
    plane(y + w.at[0], x + w.at[1], p);
  }
}

typedef uint8_t v8 __attribute__((vector_size(16)));
typedef uint16_t v16 __attribute__((vector_size(16)));
typedef uint32_t v32 __attribute__((vector_size(16)));
typedef uint64_t v64 __attribute__((vector_size(16)));

// Interleaves the lower or upper halves of two vectors.
RLX_FN v64 low(v64 a, v64 b) { return __builtin_shufflevector(a, b, 0, 2); }
RLX_FN v64 high(v64 a, v64 b) { return __builtin_shufflevector(a, b, 1, 3); }
RLX_FN v32 low(v32 a, v32 b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
RLX_FN v32 high(v32 a, v32 b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
RLX_FN v16 low(v16 a, v16 b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
RLX_FN v16 high(v16 a, v16 b) { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
RLX_FN v8 low(v8 a, v8 b) { return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23); }
RLX_FN v8 high(v8 a, v8 b) { return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31); }

// Transposes a block of N rows of N elements, one vector a row, in log2 N rounds: each round interleaves rows that are half the block apart.
template <class T, class V> RLX_FN void turn(T *to, int64_t to_row, const T *from, int64_t from_row) {
  constexpr int N = 16 / int(sizeof(T));
  V r[N], q[N];
  for (int i = 0; i < N; i++) std::memcpy(&r[i], from + i * from_row, 16);
  for (int round = N; round > 1; round /= 2) {
    for (int i = 0; i < N / 2; i++) q[2 * i] = low(r[i], r[i + N / 2]), q[2 * i + 1] = high(r[i], r[i + N / 2]);
    for (int i = 0; i < N; i++) r[i] = q[i];
  }
  for (int i = 0; i < N; i++) std::memcpy(to + i * to_row, &r[i], 16);
}

// y[i*ys + j] = x[j*xs + i] for i < ni, j < nj, by way of a buffer: strides that are powers of two put all rows of a side into the same few
// places of the cache, so each line of x and y is touched in one go.
template <class T, class V> void tile(T *y, int64_t ys, const T *x, int64_t xs, int64_t ni, int64_t nj) {
  constexpr int64_t SIDE = tile_of(sizeof(T)), N = 16 / int64_t(sizeof(T));
  alignas(64) T buffer[SIDE * SIDE];
  int64_t j = 0;
  for (; j + N <= nj; j += N) {
    int64_t i = 0;
    for (; i + N <= ni; i += N) turn<T, V>(buffer + i * SIDE + j, SIDE, x + j * xs + i, xs);
    for (; i < ni; i++)
      for (int64_t k = j; k < j + N; k++) buffer[i * SIDE + k] = x[k * xs + i];
  }
  for (; j < nj; j++)
    for (int64_t i = 0; i < ni; i++) buffer[i * SIDE + j] = x[j * xs + i];
  for (int64_t i = 0; i < ni; i++) std::memcpy(y + i * ys, buffer + i * SIDE, size_t(nj) * sizeof(T));
}

template <class T, class V> void move_tiles(const Box &b, int64_t begin, int64_t end) {
  constexpr int64_t SIDE = tile_of(sizeof(T));
  const int last = b.rank - 1, across = b.across;
  const int64_t ni = b.dims[across], nj = b.dims[last], tiles_j = (nj + SIDE - 1) / SIDE, tiles_i = (ni + SIDE - 1) / SIDE;
  for (int64_t u = begin; u < end; u++) {
    int64_t rest = u / tiles_i, y_at = 0, x_at = 0;
    const int64_t i = u % tiles_i * SIDE, j = rest % tiles_j * SIDE;  // along x first: its reads are what a tile waits for
    rest /= tiles_j;
    for (int d = last - 1; d >= 0; d--) {
      if (d == across) continue;
      const int64_t k = rest % b.dims[d];
      rest /= b.dims[d];
      y_at += k * b.strides[0][d], x_at += k * b.strides[1][d];
    }
    T *y = reinterpret_cast<T *>(b.y) + y_at + i * b.strides[0][across] + j;
    const T *x = reinterpret_cast<const T *>(b.x) + x_at + i + j * b.strides[1][last];
    tile<T, V>(y, b.strides[0][across], x, b.strides[1][last], ni - i < SIDE ? ni - i : SIDE, nj - j < SIDE ? nj - j : SIDE);
  }
}

template <class T, class V> void move_as(const Box &b, int64_t begin, int64_t end) {
  switch (b.form) {
    case TILES: return move_tiles<T, V>(b, begin, end);
    case ROWS: return move_rows<T>(b, begin, end);
    default: return move_runs<T>(b, begin, end);
  }
}

// The axis other than the last along which x is contiguous, if tiles are worth while, else -1.
int across_of(const Box &b) {
  const int last = b.rank - 1;
  const int64_t step = b.strides[1][last];
  if (b.strides[0][last] != 1 || step == 0 || step == 1 || b.dims[last] < SMALL_TILE) return -1;
  for (int d = last - 1; d >= 0; d--)
    if (b.strides[1][d] == 1 && b.dims[d] >= SMALL_TILE) return d;
  return -1;
}

int64_t at_least_1(int64_t n) { return n > 1 ? n : 1; }

void choose(Box &b) {
  const int last = b.rank - 1;
  const int64_t row_bytes = b.dims[last] * b.size;
  b.across = across_of(b);
  if (b.across >= 0) {
    const int64_t side = tile_of(b.size);
    b.form = TILES;
    b.units = b.count / (b.dims[last] * b.dims[b.across]) * ((b.dims[last] + side - 1) / side) * ((b.dims[b.across] + side - 1) / side);
    b.grain = at_least_1(PIECE_BYTES / 2 / (side * side * b.size));
  } else if (b.rank >= 2 && row_bytes < LONG_BYTES) {
    b.form = ROWS;
    b.units = b.count / b.dims[last];
    b.grain = at_least_1(PIECE_BYTES / 2 / row_bytes);
  } else {
    b.form = RUNS;
    b.units = b.count;
    b.grain = PIECE_BYTES / b.size * (b.strides[1][last] == 1 ? 2 : 1);
  }
}

}  // namespace

Box box_of(int size, int rank, const int64_t *dims, void *y, const int64_t *y_strides, const void *x, const int64_t *x_strides) {
  Box b;
  b.size = size, b.y = static_cast<char *>(y), b.x = static_cast<const char *>(x), b.count = 1;
  for (int d = 0; d < rank; d++) {
    b.count *= dims[d];
    b.dims[d] = dims[d], b.strides[0][d] = y_strides[d], b.strides[1][d] = x_strides[d];
  }
  if (b.count == 0 || x == y) {
    b.count = 0;  // no unit; in place everything is where it belongs
    return b;
  }
  b.rank = merge_axes(b.dims, rank, b.strides, 2);
  if (b.rank == 0) b.rank = 1, b.dims[0] = 1, b.strides[0][0] = b.strides[1][0] = 1;
  choose(b);
  return b;
}

Box box_to(const Operand &x, const void *from, void *y, const int64_t *y_strides) {
  return box_of(rlx_dtype_sizes[x.dtype], int(x.rank), x.dims, y, y_strides, from, x.strides);
}

Box box_run(int size, int64_t n, void *y, const void *x) {
  const int64_t one = 1;
  return box_of(size, 1, &n, y, &one, x, &one);
}

Box box_fill(int size, int rank, const int64_t *dims, void *y, const int64_t *y_strides, const void *pattern) {
  const int64_t still[RLX_MAX_RANK] = {};
  return box_of(size, rank, dims, y, y_strides, pattern, still);
}

void box_move(const Box &b, int64_t begin, int64_t end) {
  switch (b.size) {
    case 1: return move_as<uint8_t, v8>(b, begin, end);
    case 2: return move_as<uint16_t, v16>(b, begin, end);
    case 4: return move_as<uint32_t, v32>(b, begin, end);
    default: return move_as<uint64_t, v64>(b, begin, end);
  }
}

void Moves::add(const Box &b) {
  if (b.units == 0) return;
  if (n_ == MAX) flush();
  box_[n_++] = b;
  first_[n_] = first_[n_ - 1] + (b.units + b.grain - 1) / b.grain;
  bytes_ += b.count * b.size;
}

void Moves::flush() {
  const int64_t total = first_[n_];
  if (total > 0) c_.parallel(total, bytes_ <= 2 * PIECE_BYTES ? total : 1, pieces, this);
  n_ = 0, bytes_ = 0;
}

void Moves::pieces(void *self, int64_t begin, int64_t end, int) {
  const Moves &m = *static_cast<const Moves *>(self);
  int k = 0;
  for (int64_t p = begin; p < end && !m.c_.stopped(); p++) {
    while (m.first_[k + 1] <= p) k++;
    const Box &b = m.box_[k];
    const int64_t from = (p - m.first_[k]) * b.grain, to = from + b.grain;
    box_move(b, from, to < b.units ? to : b.units);
  }
}

}  // namespace shape
}  // namespace rlx
