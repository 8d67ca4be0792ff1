// Gather, GatherNd and GatherElements. Contract: the bits of the elements that the indices name, bound exact.
#include "../core/rlx_begin.h"

#include "index.h"

namespace rlx {
namespace index {
namespace {

constexpr int64_t PIECE_BYTES = 32768;

// Slices of x, one after the other: y[o, i, ..] = x[outer o, distance i, ..].
struct Slices {
  const Call &c;
  const int64_t *distance;  // of each slice from its outer start, in elements
  int64_t n;                // distances
  int outer;                // axes of x before the one that is indexed
  int first;                // the first axis of x inside a slice
  int size;

  int64_t outer_start(int64_t o) const {
    const Operand &x = c.in(0);
    int64_t at = 0;
    for (int d = outer - 1; d >= 0; d--) at += o % x.dims[d] * x.strides[d], o /= x.dims[d];
    return at;
  }
};

// How often each element follows itself where the slices are neighbours in order, each that often; 0 elsewhere.
int64_t repeats(const int64_t *distance, int64_t n) {
  int64_t r = 1;
  while (r < n && distance[r] == distance[0]) r++;
  if (r == 1 || n % r != 0) return 0;
  for (int64_t k = r; k < n; k++) {
    if (distance[k] != distance[0] + k / r) return 0;
  }
  return r;
}

// y is each of the n elements of x so many times.
template <int R, class T> void repeat(T *y, const T *x, int64_t n, int64_t times) {
  const int64_t r = R > 0 ? R : times;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t k = 0; k < r; k++) y[i * r + k] = x[i];
  }
}

// Slices of one element. A fixed number of repeats is shuffles.
template <class T> void gather_elements_of(const Slices &s, int64_t begin, int64_t end) {
  const T *x = s.c.in_ptr<T>(0);
  T *y = s.c.out_ptr<T>(0);
  const int64_t r = repeats(s.distance, s.n);
  for (int64_t at = begin; at < end;) {
    const int64_t o = at / s.n, i = at % s.n, m = s.n - i < end - at ? s.n - i : end - at;
    const T *from = x + s.outer_start(o);
    if (r == 0 || i % r != 0 || m % r != 0) {
      for (int64_t k = 0; k < m; k++) y[at + k] = from[s.distance[i + k]];
    } else {
      const T *line = from + s.distance[i];
      switch (r) {
        case 2: repeat<2>(y + at, line, m / r, r); break;
        case 4: repeat<4>(y + at, line, m / r, r); break;
        case 8: repeat<8>(y + at, line, m / r, r); break;
        default: repeat<0>(y + at, line, m / r, r); break;
      }
    }
    at += m;
  }
}

// Slices that lie in one piece of so many bytes; short ones of a fixed length are moved without a call.
template <int64_t Bytes> void gather_pieces(const Slices &s, int64_t run, int64_t begin, int64_t end) {
  const char *x = s.c.in_ptr<char>(0);
  char *y = s.c.out_ptr<char>(0);
  const int64_t bytes = Bytes > 0 ? Bytes : run;
  for (int64_t at = begin; at < end;) {
    const int64_t o = at / s.n, i = at % s.n, m = s.n - i < end - at ? s.n - i : end - at;
    const char *from = x + s.outer_start(o) * s.size;
    for (int64_t k = 0; k < m; k++) std::memcpy(y + (at + k) * bytes, from + s.distance[i + k] * s.size, size_t(bytes));
    at += m;
  }
}

void gather_short(const Slices &s, int64_t bytes, int64_t begin, int64_t end) {
  if (bytes == s.size) {
    switch (s.size) {
      case 1: return gather_elements_of<uint8_t>(s, begin, end);
      case 2: return gather_elements_of<uint16_t>(s, begin, end);
      case 4: return gather_elements_of<uint32_t>(s, begin, end);
      default: return gather_elements_of<uint64_t>(s, begin, end);
    }
  }
  switch (bytes) {
    case 8: return gather_pieces<8>(s, bytes, begin, end);
    case 16: return gather_pieces<16>(s, bytes, begin, end);
    case 32: return gather_pieces<32>(s, bytes, begin, end);
    case 64: return gather_pieces<64>(s, bytes, begin, end);
    default: return gather_pieces<0>(s, bytes, begin, end);
  }
}

void gather_slices(const Slices &s) {
  const Call &c = s.c;
  const Operand &x = c.in(0);
  if (c.out(0).count == 0) return;
  const int rank = int(x.rank) - s.first;
  const int64_t slices = s.n * product(x.dims, 0, s.outer), run = product(x.dims, s.first, int(x.rank)), bytes = run * s.size;
  int64_t dense[RLX_MAX_RANK];
  dense_strides(x.dims + s.first, rank, dense);
  const char *from = c.in_ptr<char>(0);
  char *to = c.out_ptr<char>(0);
  const auto slice = [&](int64_t k) {
    return box_of(s.size, rank, x.dims + s.first, to + k * bytes, dense, from + (s.outer_start(k / s.n) + s.distance[k % s.n]) * s.size, x.strides + s.first);
  };
  const Box shape = slice(0);
  const bool one_piece = shape.rank == 1 && (shape.strides[1][0] == 1 || run == 1);
  if (bytes < PIECE_BYTES && one_piece) {
    each(c, slices, PIECE_BYTES / bytes, [&](int64_t begin, int64_t end) {
      if (!c.stopped()) gather_short(s, bytes, begin, end);
    });
  } else if (bytes < PIECE_BYTES) {
    each(c, slices, PIECE_BYTES / bytes, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end && !c.stopped(); k++) {
        const Box b = slice(k);
        box_move(b, 0, b.units);
      }
    });
  } else {
    Moves moves(c);
    for (int64_t k = 0; k < slices && !c.stopped(); k++) moves.add(slice(k));
    moves.flush();
  }
}

}  // namespace

// Memory for one distance per index.
int32_t gather_prepare(Prepare &p) {
  p.cmd->scratch = 8 * p.cmd->in[1].count;
  return RLX_OK;
}

// y[a.., i.., b..] = x[a.., index[i..], b..].
void gather(const Call &c, Range) {
  const Operand &x = c.in(0);
  const int axis = int(wrap_axis(c.attrs<rlx_GatherAttrs>().axis, x.rank));
  int64_t *distance = static_cast<int64_t *>(c.scratch);
  if (!load_indices(c, 1, x.dims[axis], x.strides[axis], distance)) return;
  gather_slices(Slices{c, distance, c.in(1).count, axis, axis + 1, rlx_dtype_sizes[x.dtype]});
}

// y[b.., q.., r..] = x[b.., index[b.., q.., :].., r..].
void gather_nd(const Call &c, Range) {
  const Operand &x = c.in(0), &index = c.in(1);
  const int lead = int(c.attrs<rlx_GatherNdAttrs>().batch_dims), q = int(index.rank) - 1;
  int64_t *distance = static_cast<int64_t *>(c.scratch);
  if (!load_tuples(c, 1, lead, x.dims, x.strides, distance)) return;
  gather_slices(Slices{c, distance, product(index.dims, 0, q), 0, lead + int(index.dims[q]), rlx_dtype_sizes[x.dtype]});
}

namespace {

template <class T> void gather_line(T *y, const T *x, int64_t x_step, const int64_t *v, int64_t v_step, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i * x_step + v[i] * v_step];
}

}  // namespace

// y[i] = x[i with i[axis] replaced by index[i]].
void gather_elements(const Call &c, Range) {
  const Operand &x = c.in(0), &index = c.in(1);
  const int axis = int(wrap_axis(c.attrs<rlx_GatherAttrs>().axis, x.rank)), size = rlx_dtype_sizes[x.dtype];
  int64_t strides[2][RLX_MAX_RANK];
  for (int d = 0; d < int(x.rank); d++) strides[0][d] = d == axis ? 0 : x.strides[d], strides[1][d] = index.strides[d];
  const int64_t length = x.dims[axis], along = x.strides[axis];
  FirstBad bad;
  each(c, index.count, READ_GRAIN, [&](int64_t begin, int64_t end) {
    int64_t v[CHUNK], to = begin;
    for (Walk<2> w(index.dims, int(index.rank), strides, begin, end); w.next();) {
      for (int64_t at = 0; at < w.n; at += CHUNK) {
        const int64_t n = w.n - at < CHUNK ? w.n - at : CHUNK, from = w.at[0] + at * w.step[0];
        read_line(index.dtype, c.in_data[1], w.at[1] + at * w.step[1], w.step[1], n, v);
        const int64_t wrong = wrap_indices(v, n, length);
        if (wrong < n) return bad.found(to + wrong);
        switch (size) {
          case 1: gather_line(c.out_ptr<uint8_t>(0) + to, c.in_ptr<uint8_t>(0) + from, w.step[0], v, along, n); break;
          case 2: gather_line(c.out_ptr<uint16_t>(0) + to, c.in_ptr<uint16_t>(0) + from, w.step[0], v, along, n); break;
          case 4: gather_line(c.out_ptr<uint32_t>(0) + to, c.in_ptr<uint32_t>(0) + from, w.step[0], v, along, n); break;
          default: gather_line(c.out_ptr<uint64_t>(0) + to, c.in_ptr<uint64_t>(0) + from, w.step[0], v, along, n); break;
        }
        to += n;
      }
    }
  });
  if (bad.any()) fail_index(c, 1, bad.at(), length);
}

}  // namespace index
}  // namespace rlx
