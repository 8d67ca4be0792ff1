// DoubleSingle: values held as pairs hi + lo of f32, computed in f64, whose 53 bits hold such a sum to 2^-53. Contract: hi is the result
// rounded to f32 and lo the rest, or 0 where hi is not finite; the order of a sum is that of the indices, for any number of threads.
#include "../core/rlx_begin.h"

#include "elementwise.h"

namespace rlx {
namespace elementwise {
namespace {

double value(const float *p) { return double(p[0]) + double(p[1]); }
void put(float *p, double v) {
  p[0] = float(v);
  p[1] = std::isfinite(p[0]) ? float(v - double(p[0])) : 0.0f;
}

double of_pair(int64_t fn, double a, double b) {
  switch (fn) {
    case rlx_PairFn_add: return a + b;
    case rlx_PairFn_sub: return a - b;
    case rlx_PairFn_mul: return a * b;
    case rlx_PairFn_div: return a / b;
    case rlx_PairFn_sqrt: return ::sqrt(a);
    case rlx_PairFn_exp: return ::exp(a);
    default: return a > b || a != a ? a : b;
  }
}

// The leading shape of an operand of pairs, with strides in f32.
struct Lead {
  int rank;
  int64_t dims[RLX_MAX_RANK], strides[RLX_MAX_RANK];
};
Lead lead_of(const Operand &x) {
  Lead l = {int(x.rank) - 1, {}, {}};
  for (int d = 0; d < l.rank; d++) {
    l.dims[d] = x.dims[d];
    l.strides[d] = x.strides[d];
  }
  return l;
}

// The place of element i of a shape, under strides that are 0 where an axis is stretched.
int64_t place(const int64_t *dims, const int64_t *strides, int rank, int64_t i) {
  int64_t at = 0;
  for (int d = rank - 1; d >= 0; d--) {
    at += i % dims[d] * strides[d];
    i /= dims[d];
  }
  return at;
}
// The strides of the first `axes` leading axes of x under out_axes axes of a result.
void stretch(const Lead &x, int axes, int out_axes, int64_t *strides) {
  for (int d = 0; d < out_axes; d++) {
    const int k = d - (out_axes - axes);
    strides[d] = k < 0 || x.dims[k] == 1 ? 0 : x.strides[k];
  }
}

void elements_of(const Call &c, Range r, int64_t fn) {
  const Lead y = lead_of(c.out(0)), a = lead_of(c.in(0)), b = lead_of(c.in(c.has(1) ? 1 : 0));
  int64_t sa[RLX_MAX_RANK], sb[RLX_MAX_RANK];
  stretch(a, a.rank, y.rank, sa);
  stretch(b, b.rank, y.rank, sb);
  const float *pa = c.in_ptr<float>(0), *pb = c.in_ptr<float>(c.has(1) ? 1 : 0);
  for (int64_t i = r.begin; i < r.end; i++)
    put(c.out_ptr<float>(0) + 2 * i, of_pair(fn, value(pa + place(y.dims, sa, y.rank, i)), value(pb + place(y.dims, sb, y.rank, i))));
}

void matmul(const Call &c, Range r) {
  const Lead y = lead_of(c.out(0)), a = lead_of(c.in(0)), b = lead_of(c.in(1));
  const int batch = y.rank - 2;
  int64_t sa[RLX_MAX_RANK], sb[RLX_MAX_RANK];
  stretch(a, a.rank - 2, batch, sa);
  stretch(b, b.rank - 2, batch, sb);
  const int64_t m = y.dims[batch], n = y.dims[batch + 1], k = a.dims[a.rank - 1];
  for (int64_t i = r.begin; i < r.end && !c.stopped(); i++) {
    const int64_t outer = i / (m * n), row = i / n % m, col = i % n;
    const float *pa = c.in_ptr<float>(0) + place(y.dims, sa, batch, outer) + row * a.strides[a.rank - 2];
    const float *pb = c.in_ptr<float>(1) + place(y.dims, sb, batch, outer) + col * b.strides[b.rank - 1];
    double sum = 0;
    for (int64_t p = 0; p < k; p++) sum += value(pa + p * a.strides[a.rank - 1]) * value(pb + p * b.strides[b.rank - 2]);
    put(c.out_ptr<float>(0) + 2 * i, sum);
  }
}

void reduce(const Call &c, Range r, const rlx_DoubleSingleAttrs &a) {
  const Lead x = lead_of(c.in(0));
  bool gone[RLX_MAX_RANK] = {};
  for (int d = 0; d < x.rank; d++) gone[d] = a.axes.n < 0;
  for (int64_t k = 0; k < a.axes.n; k++) gone[a.axes.v[k] < 0 ? a.axes.v[k] + x.rank : a.axes.v[k]] = true;
  int64_t dims[2][RLX_MAX_RANK], strides[2][RLX_MAX_RANK], terms = 1;  // of what stays, and of what is summed
  int rank[2] = {0, 0};
  for (int d = 0; d < x.rank; d++) {
    const int k = gone[d];
    dims[k][rank[k]] = x.dims[d];
    strides[k][rank[k]++] = x.strides[d];
    if (gone[d]) terms *= x.dims[d];
  }
  for (int64_t i = r.begin; i < r.end && !c.stopped(); i++) {
    const float *p = c.in_ptr<float>(0) + place(dims[0], strides[0], rank[0], i);
    double acc = a.fn == rlx_PairFn_max ? -double(INFINITY) : 0.0;
    for (int64_t t = 0; t < terms; t++) {
      const double v = value(p + place(dims[1], strides[1], rank[1], t));
      acc = a.fn == rlx_PairFn_max ? of_pair(rlx_PairFn_maximum, acc, v) : acc + v;
    }
    put(c.out_ptr<float>(0) + 2 * i, acc);
  }
}

}  // namespace

// Units are result pairs; a product or a reduction does much work for one.
Split pairs_of(const Call &c) {
  const int64_t fn = c.attrs<rlx_DoubleSingleAttrs>().fn;
  const bool heavy = fn == rlx_PairFn_matmul || fn == rlx_PairFn_sum || fn == rlx_PairFn_max;
  return {c.out(0).count / 2, heavy ? 16 : 512};
}

void double_single_f32(const Call &c, Range r) {
  const rlx_DoubleSingleAttrs &a = c.attrs<rlx_DoubleSingleAttrs>();
  switch (a.fn) {
    case rlx_PairFn_matmul: return matmul(c, r);
    case rlx_PairFn_sum:
    case rlx_PairFn_max: return reduce(c, r, a);
    default: return elements_of(c, r, a.fn);
  }
}

}  // namespace elementwise
}  // namespace rlx
