// TransformRegion: crops, flips, transposes and doublings in one copy. Contract: the bits of the operand, bound exact.
#include "../core/rlx_begin.h"

#include "../core/kernel.h"

namespace rlx {
namespace region {
namespace {

// Axis d of what the steps have made so far: its element i is element (first + sign * i) >> shift of an axis of x. Doubling a doubled axis
// adds to the shift, and a crop or a flip before it moves with the shift.
struct Axis {
  int from;
  int64_t n, first, sign;
  int shift;
};

struct Map {
  int rank = 0;
  Axis axis[RLX_MAX_RANK];
};

constexpr int kShifts = 62;  // no axis is doubled more often and has elements

void double_axis(Axis *a) {
  // Element i is old element i >> 1: (first + sign * (i >> 1)) >> shift is (2 first + (sign < 0) + sign * i) >> (shift + 1).
  a->n *= 2;
  a->first = 2 * a->first + (a->sign < 0);
  a->shift++;
}

// The axes of the result in terms of those of x; false where the steps do not fit, which inference excludes.
bool map_of(const Operand &x, const Ints &steps, Map *m) {
  m->rank = int(x.rank);
  for (int d = 0; d < m->rank; d++) m->axis[d] = Axis{d, x.dims[d], 0, 1, 0};
  for (int64_t i = 0; i + 1 < steps.n; i += 2 + steps.v[i + 1]) {
    const int64_t args = steps.v[i + 1], *v = steps.v + i + 2;
    if (args < 0 || args > steps.n - i - 2) return false;
    switch (steps.v[i]) {
      case 0:
        if (m->rank != 4) return false;
        for (int d = 2; d < 4; d++) {
          if (m->axis[d].n == 0) continue;
          if (m->axis[d].shift >= kShifts) return false;
          double_axis(&m->axis[d]);
        }
        break;
      case 1:
        if (args != 2 * m->rank) return false;
        for (int d = 0; d < m->rank; d++) {
          Axis &a = m->axis[d];
          if (v[d] < 0 || v[m->rank + d] < 0 || v[d] > a.n || v[m->rank + d] > a.n - v[d]) return false;
          a.first += a.sign * v[d];
          a.n = v[m->rank + d];
        }
        break;
      case 2:
        for (int64_t k = 0; k < args; k++) {
          const int64_t d = v[k] < 0 ? v[k] + m->rank : v[k];
          if (d < 0 || d >= m->rank) return false;
          bool again = false;  // an axis that is named twice is flipped once
          for (int64_t e = 0; e < k; e++) again |= (v[e] < 0 ? v[e] + m->rank : v[e]) == d;
          if (again) continue;
          Axis &a = m->axis[d];
          a.first += a.sign * (a.n > 0 ? a.n - 1 : 0);
          a.sign = -a.sign;
        }
        break;
      default: {
        if (args != m->rank) return false;
        const Map old = *m;
        for (int d = 0; d < m->rank; d++) {
          if (v[d] < 0 || v[d] >= m->rank) return false;
          m->axis[d] = old.axis[v[d]];
        }
      }
    }
  }
  return true;
}

int64_t place(const Axis &a, int64_t i) { return (a.first + a.sign * i) >> a.shift; }

template <class T> void row(T *y, const T *x, const Axis &a, int64_t stride, int64_t n) {
  if (a.shift > 0) {
    for (int64_t i = 0; i < n; i++) y[i] = x[place(a, i) * stride];
    return;
  }
  x += a.first * stride;
  const int64_t step = a.sign * stride;
  if (step == 1) {
    std::memcpy(y, x, size_t(n) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < n; i++) y[i] = x[i * step];
}

template <class T> void transform_of(const Call &c, const Map &m, Range r) {
  const Operand &x = c.in(0), &out = c.out(0);
  const int last = m.rank - 1;
  const int64_t n = out.dims[last];
  for (int64_t u = r.begin; u < r.end && !c.stopped(); u++) {
    int64_t at = 0, rest = u;
    for (int d = last - 1; d >= 0; d--) {
      at += place(m.axis[d], rest % out.dims[d]) * x.strides[m.axis[d].from];
      rest /= out.dims[d];
    }
    row(c.out_ptr<T>(0) + u * n, c.in_ptr<T>(0) + at, m.axis[last], x.strides[m.axis[last].from], n);
  }
}

}  // namespace

void transform_region(const Call &c, Range r) {
  Map m;
  bool fits = map_of(c.in(0), c.attrs<rlx_TransformRegionAttrs>().steps, &m) && m.rank == int(c.out(0).rank);
  for (int d = 0; d < m.rank && fits; d++) fits = m.axis[d].n == c.out(0).dims[d];
  if (!fits) return c.fail("C1", "steps do not give the shape of the result");
  if (c.out(0).count == 0) return;
  const int size = rlx_dtype_sizes[c.out(0).dtype];
  if (m.rank == 0) {
    std::memcpy(c.out_data[0], c.in_data[0], size_t(size));
    return;
  }
  switch (size) {
    case 1: return transform_of<uint8_t>(c, m, r);
    case 2: return transform_of<uint16_t>(c, m, r);
    case 4: return transform_of<uint32_t>(c, m, r);
    default: return transform_of<uint64_t>(c, m, r);
  }
}

}  // namespace region
}  // namespace rlx
