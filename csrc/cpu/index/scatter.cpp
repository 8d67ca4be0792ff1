// ScatterNd and ScatterElements. All indices are checked before the first store, so that an operand that is written in place keeps its
// value when the op fails. Updates are split by target, never by number: those that meet are met by one thread in row-major order, hence
// the same bits for any number of threads and the last write stays. Bounds: reductions.cpp.
#include "../core/rlx_begin.h"

#include "reductions.h"

namespace rlx {
namespace index {
namespace {

constexpr int64_t PART = 16384;  // updates that are worth a thread

// y = x, unless the planner has put y there.
void copy_base(const Call &c) {
  int64_t strides[RLX_MAX_RANK];
  dense_strides(c.out(0).dims, int(c.out(0).rank), strides);
  Moves moves(c);
  moves.add(box_to(c.in(0), c.in_data[0], c.out_data[0], strides));
  moves.flush();
}

// How many parts of the updates are worth while.
int64_t parts_of(const Call &c, int64_t updates) {
  const int64_t n = updates / PART;
  return n < 1 ? 1 : n < c.threads() ? n : c.threads();
}

// Asks after every PART updates or so whether the run was stopped.
struct Pace {
  const Call &c;
  int64_t done = 0;
  bool goes_on(int64_t updates) {
    if ((done += updates) < PART) return true;
    done = 0;
    return !c.stopped();
  }
};

struct Slices {
  const Call &c;
  const int64_t *distance;
  int64_t n, run;
  Steps steps;
  float *sums;

  // Elements [from, to) of every slice.
  void columns(int64_t from, int64_t to) const {
    const int64_t size = rlx_dtype_sizes[c.out(0).dtype];
    Pace pace{c};
    for (int s = 0; s < steps.count; s++)
      for (int64_t t = 0; t < n && pace.goes_on(to - from); t++)
        steps.step[s](Line{c.out_data[0], sums, c.in_ptr<char>(2) + (t * run + from) * size, nullptr, distance[t] + from, 1, to - from});
  }
  // Slices of one element.
  void elements() const {
    const int64_t size = rlx_dtype_sizes[c.out(0).dtype];
    for (int s = 0; s < steps.count; s++)
      for (int64_t t = 0; t < n && !c.stopped(); t += PART)
        steps.step[s](Line{c.out_data[0], sums, c.in_ptr<char>(2) + t * size, distance + t, 0, 1, n - t < PART ? n - t : PART});
  }
  // The slices that go to elements [from, to) of y.
  void targets(int64_t from, int64_t to) const {
    const int64_t bytes = run * rlx_dtype_sizes[c.out(0).dtype];
    Pace pace{c};
    for (int s = 0; s < steps.count; s++)
      for (int64_t t = 0; t < n && pace.goes_on(run); t++)
        if (distance[t] >= from && distance[t] < to)
          steps.step[s](Line{c.out_data[0], sums, c.in_ptr<char>(2) + t * bytes, nullptr, distance[t], 1, run});
  }
};

}  // namespace

// One distance per tuple, and sums in f32.
int32_t scatter_nd_prepare(Prepare &p) {
  const Command &c = *p.cmd;
  p.cmd->scratch = ((8 * c.in[1].count + 63) & ~int64_t(63)) + sums_bytes(c.out[0], static_cast<const rlx_ScatterNdAttrs *>(c.attrs)->reduction);
  return RLX_OK;
}

// y = x; y[index[q.., :].., r..] (op)= u[q.., r..]. index and u are contiguous.
void scatter_nd(const Call &c, Range) {
  const Operand &y = c.out(0), &index = c.in(1);
  const int q = int(index.rank) - 1, k = int(index.dims[q]);
  int64_t strides[RLX_MAX_RANK], *distance = static_cast<int64_t *>(c.scratch);
  dense_strides(y.dims, int(y.rank), strides);
  if (!load_tuples(c, 1, 0, y.dims, strides, distance)) return;
  copy_base(c);
  if (c.in(2).count == 0 || c.stopped()) return;
  float *sums = reinterpret_cast<float *>(static_cast<char *>(c.scratch) + ((8 * index.count + 63) & ~int64_t(63)));
  const Slices s = {c, distance, product(index.dims, 0, q), product(y.dims, k, int(y.rank)), steps_of(y.dtype, int(c.attrs<rlx_ScatterNdAttrs>().reduction)), sums};
  const int64_t parts = parts_of(c, c.in(2).count);
  if (parts > 1 && s.run >= parts * 512) {
    const int64_t columns = (s.run + parts - 1) / parts;
    each(c, s.run, columns, [&](int64_t begin, int64_t end) { s.columns(begin, end); });
  } else if (parts > 1) {
    const int64_t rows = y.count / s.run, each_part = (rows + parts - 1) / parts;
    each(c, rows, each_part, [&](int64_t begin, int64_t end) { s.targets(begin * s.run, end * s.run); });
  } else if (s.run == 1) {
    s.elements();
  } else {
    s.columns(0, s.run);
  }
}

namespace {

struct Elements {
  const Call &c;
  int axis, rank;
  int64_t length, along;                // of y on the axis: elements and stride
  int64_t strides[3][RLX_MAX_RANK];     // of y off the axis, index, u
  Steps steps;
  float *sums;

  // The updates whose coordinate on axis `split` is in [begin, end).
  void part(int split, int64_t begin, int64_t end) const {
    int64_t dims[RLX_MAX_RANK], total = 1;
    for (int d = 0; d < rank; d++) {
      dims[d] = d == split ? end - begin : c.in(1).dims[d];
      total *= dims[d];
    }
    const int64_t size = rlx_dtype_sizes[c.out(0).dtype], y0 = begin * strides[0][split], i0 = begin * strides[1][split], u0 = begin * strides[2][split];
    int64_t v[CHUNK];
    Pace pace{c};
    for (int s = 0; s < steps.count; s++)
      for (Walk<3> w(dims, rank, strides, 0, total); w.next();)
        for (int64_t at = 0; at < w.n; at += CHUNK) {
          const int64_t n = w.n - at < CHUNK ? w.n - at : CHUNK;
          if (!pace.goes_on(n)) return;
          read_line(c.in(1).dtype, c.in_data[1], i0 + w.at[1] + at * w.step[1], w.step[1], n, v);
          for (int64_t i = 0; i < n; i++) v[i] = (v[i] < 0 ? v[i] + length : v[i]) * along + i * w.step[0];
          const char *u = c.in_ptr<char>(2) + (u0 + w.at[2] + at * w.step[2]) * size;
          steps.step[s](Line{c.out_data[0], sums, u, v, y0 + w.at[0] + at * w.step[0], w.step[2], n});
        }
  }
};

}  // namespace

int32_t scatter_elements_prepare(Prepare &p) {
  p.cmd->scratch = sums_bytes(p.cmd->out[0], static_cast<const rlx_ScatterElementsAttrs *>(p.cmd->attrs)->reduction);
  return RLX_OK;
}

// y = x; y[i with i[axis] replaced by index[i]] (op)= u[i].
void scatter_elements(const Call &c, Range) {
  const rlx_ScatterElementsAttrs &a = c.attrs<rlx_ScatterElementsAttrs>();
  const Operand &y = c.out(0), &index = c.in(1);
  const int rank = int(y.rank), axis = int(wrap_axis(a.axis, rank));
  if (!check_indices(c, 1, y.dims[axis])) return;
  copy_base(c);
  if (index.count == 0 || c.stopped()) return;
  Elements e = {c, axis, rank, y.dims[axis], 0, {}, steps_of(y.dtype, int(a.reduction)), static_cast<float *>(c.scratch)};
  dense_strides(y.dims, rank, e.strides[0]);
  e.along = e.strides[0][axis];
  e.strides[0][axis] = 0;
  for (int d = 0; d < rank; d++) e.strides[1][d] = index.strides[d], e.strides[2][d] = c.in(2).strides[d];
  // Elements that meet have the same coordinates off the axis: the longest axis but this one is cut.
  int split = axis == 0 ? rank - 1 : 0;
  for (int d = 0; d < rank; d++)
    if (d != axis && index.dims[d] > index.dims[split]) split = d;
  if (split == axis) return e.part(0, 0, index.dims[0]);
  const int64_t parts = parts_of(c, index.count), length = index.dims[split];
  each(c, length, (length + parts - 1) / parts, [&](int64_t begin, int64_t end) { e.part(split, begin, end); });
}

}  // namespace index
}  // namespace rlx
