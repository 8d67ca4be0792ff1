// The plan of a Reduce, how it is split, and its kernels for f64, c64, integers and bool. Sums of f64 run in eight lanes, those of c64
// in f64; integers wrap in their dtype.
#include "../core/rlx_begin.h"

#include "lines.h"
#include "plain.h"

namespace rlx {
namespace reduce {
namespace {

constexpr int64_t WORK = 1 << 16;       // elements of a piece of work
constexpr int64_t MAX_BLOCKS = 256;
constexpr int64_t SHORT = 16;           // rows of up to so many elements would waste the lanes
constexpr int64_t FEW_ROWS = 64, FEW_COLUMNS = 2048;  // up to so many results, the reduced elements are cut into blocks

void mark_axes(const rlx_ReduceAttrs &a, const Operand &x, bool *on) {
  for (int d = 0; d < int(x.rank); d++) on[d] = a.axes.n <= 0;
  for (int64_t i = 0; i < a.axes.n; i++) {
    const int64_t d = axis_of(a.axes.v[i], x);
    if (d >= 0 && d < int64_t(x.rank)) on[d] = true;  // words are not trusted
  }
}

// Reduced axes are taken in the order of memory, the closest elements last, and all of them upwards.
void add_reduced(Plan &p, int64_t dim, int64_t stride) {
  if (stride < 0 && dim > 0) {
    p.start += (dim - 1) * stride;
    stride = -stride;
  }
  int at = p.reduced++;
  for (; at > 0 && p.strides[0][at - 1] < stride; at--) p.dims[at] = p.dims[at - 1], p.strides[0][at] = p.strides[0][at - 1];
  p.dims[at] = dim, p.strides[0][at] = stride;
  p.n *= dim;
}

void cut(Plan &p) {
  if (p.fn == rlx_ReduceFn_logsumexp || p.n < 32 || p.count == 0 || p.n < 2 * WORK / p.count) return;
  if (p.count > (p.columns ? FEW_COLUMNS : FEW_ROWS)) return;
  int64_t block = (WORK + p.count - 1) / p.count;
  if (const int64_t least = (p.n + MAX_BLOCKS - 1) / MAX_BLOCKS; block < least) block = least;
  p.block = block;
  p.blocks = (p.n + block - 1) / block;
}

}  // namespace

Plan plan_of(const Command &cmd) {
  Plan p;
  const Operand &x = cmd.in[0];
  const rlx_ReduceAttrs &a = *static_cast<const rlx_ReduceAttrs *>(cmd.attrs);
  bool on[RLX_MAX_RANK];
  mark_axes(a, x, on);
  for (int d = 0; d < int(x.rank); d++) {
    if (on[d]) {
      add_reduced(p, x.dims[d], x.strides[d]);
      continue;
    }
    p.kept_dims[p.kept] = x.dims[d], p.kept_strides[0][p.kept++] = x.strides[d];
    p.count *= x.dims[d];
  }
  p.fn = a.fn;
  p.kept = merge_axes(p.kept_dims, p.kept, p.kept_strides, 1);
  p.reduced = p.n == 0 ? 1 : merge_axes(p.dims, p.reduced, p.strides, 1);
  if (p.n == 0) p.dims[0] = 0, p.strides[0][0] = 1;
  const bool together = p.reduced > 0 && p.strides[0][p.reduced - 1] == 1;
  if (p.kept > 0 && p.fn != rlx_ReduceFn_logsumexp) {
    p.side = p.kept_strides[0][p.kept - 1];
    p.columns = (!together && p.side == 1) || (p.n <= SHORT && p.kept_dims[p.kept - 1] >= SHORT);
  }
  cut(p);
  return p;
}

Split reduce_split(const Call &c) {
  const Plan p = plan_of(*c.cmd);
  if (p.blocks > 1) return {1, 1};
  int64_t grain = WORK / (p.n > 0 ? p.n : 1);
  if (p.columns && grain < TILE) grain = TILE;
  return {p.count, grain > 0 ? grain : 1};
}

int32_t reduce_prepare(Prepare &q) {
  const Plan p = plan_of(*q.cmd);
  if (p.blocks > 1) q.cmd->scratch = p.blocks * p.count * 16;  // no partial result is longer
  return RLX_OK;
}

namespace {

// ---- f64

inline double same(double x) { return x; }
inline double squared(double x) { return x * x; }
inline double zero_of(bool negative) { return negative ? -0.0 : 0.0; }

template <double (*MAP)(double)> struct f64_sum {
  typedef double T, A;
  static A start() { return 0; }
  static A step(A a, T x) { return a + MAP(x); }
  static A join(A a, A b) { return a + b; }
};
struct f64_prod {
  typedef double T, A;
  static A start() { return 1; }
  static A step(A a, T x) { return a * x; }
  static A join(A a, A b) { return a * b; }
};
struct f64_max {
  typedef double T, A;
  static A start() { return -double(INFINITY); }
  static A step(A a, T x) {
    if (a == x) return a != 0 ? a : zero_of(__builtin_signbit(a) && __builtin_signbit(x));
    return a > x || a != a ? a : x;
  }
  static A join(A a, A b) { return step(a, b); }
};
struct f64_min {
  typedef double T, A;
  static A start() { return double(INFINITY); }
  static A step(A a, T x) {
    if (a == x) return a != 0 ? a : zero_of(__builtin_signbit(a) || __builtin_signbit(x));
    return a < x || a != a ? a : x;
  }
  static A join(A a, A b) { return step(a, b); }
};

void logsumexp_f64(const double *x, const Plan &p, int64_t begin, int64_t end, double *out) {
  rows_of<f64_max>(x, p, begin, end, 0, p.n, out);
  for (Walk<1> w = p.results(begin, end); w.next();)
    for (int64_t i = 0; i < w.n; i++) {
      const double *first = x + p.start + w.at[0] + i * w.step[0], top = *out;
      const double m = top == double(INFINITY) || top == -double(INFINITY) ? 0 : top;  // inf - inf would be NaN
      double s = 0;
      for (Walk<1> e = p.elements(0, p.n); e.next();)
        for (int64_t k = 0; k < e.n; k++) s += ::exp(first[e.at[0] + k * e.step[0]] - m);
      *out++ = m + ::log(s);
    }
}

struct F64 {
  typedef double T, Acc;
  static void part(const T *x, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, Acc *out) {
    switch (p.fn) {
      case rlx_ReduceFn_max: return part_of<f64_max>(x, p, begin, end, from, to, out);
      case rlx_ReduceFn_min: return part_of<f64_min>(x, p, begin, end, from, to, out);
      case rlx_ReduceFn_prod: return part_of<f64_prod>(x, p, begin, end, from, to, out);
      case rlx_ReduceFn_l1: return part_of<f64_sum<::fabs>>(x, p, begin, end, from, to, out);
      case rlx_ReduceFn_l2:
      case rlx_ReduceFn_sum_square: return part_of<f64_sum<squared>>(x, p, begin, end, from, to, out);
      case rlx_ReduceFn_logsumexp: return logsumexp_f64(x, p, begin, end, out);
      default: return part_of<f64_sum<same>>(x, p, begin, end, from, to, out);
    }
  }
  static Acc join(int64_t fn, Acc a, Acc b) {
    switch (fn) {
      case rlx_ReduceFn_max: return f64_max::join(a, b);
      case rlx_ReduceFn_min: return f64_min::join(a, b);
      case rlx_ReduceFn_prod: return a * b;
      default: return a + b;
    }
  }
  static void put(const Plan &p, const Acc *a, T *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = finish(p, a[i]);
  }
};

// ---- c64

struct c64 { float re, im; };
struct c128 { double re, im; };

struct c64_sum {
  typedef c64 T;
  typedef c128 A;
  static A start() { return {0, 0}; }
  static A step(A a, T x) { return {a.re + double(x.re), a.im + double(x.im)}; }
  static A join(A a, A b) { return {a.re + b.re, a.im + b.im}; }
};
struct c64_prod {
  typedef c64 T;
  typedef c128 A;
  static A start() { return {1, 0}; }
  static A step(A a, T x) { return join(a, {double(x.re), double(x.im)}); }
  static A join(A a, A b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
};

struct C64 {
  typedef c64 T;
  typedef c128 Acc;
  static void part(const T *x, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, Acc *out) {
    if (p.fn == rlx_ReduceFn_prod) return part_of<c64_prod>(x, p, begin, end, from, to, out);
    return part_of<c64_sum>(x, p, begin, end, from, to, out);
  }
  static Acc join(int64_t fn, Acc a, Acc b) { return fn == rlx_ReduceFn_prod ? c64_prod::join(a, b) : c64_sum::join(a, b); }
  static void put(const Plan &p, const Acc *a, T *y, int64_t n) {
    const bool mean = p.fn == rlx_ReduceFn_mean;
    for (int64_t i = 0; i < n; i++) {
      Acc v = a[i];
      if (mean) v = p.n > 0 ? Acc{v.re / double(p.n), v.im / double(p.n)} : Acc{double(NAN), 0};  // the mean of nothing is a real NaN
      y[i] = {float(one_nan(v.re)), float(one_nan(v.im))};
    }
  }
};

}  // namespace

void reduce_f64(const Call &c, Range r) { Driver<F64>::run(c, r); }
void reduce_c64(const Call &c, Range r) { Driver<C64>::run(c, r); }

}  // namespace reduce
}  // namespace rlx
