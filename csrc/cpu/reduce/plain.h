// plain.h: the loops of Reduce in plain C++, for the dtypes without twins. Op gives T, A (of a partial result), start(), step(A, T) and
// join(A, A).
#pragma once
#include "../core/rlx_begin.h"
#include "reduce.h"

namespace rlx {
namespace reduce {


template <class Op> struct RowLanes {
  typedef typename Op::T T;
  typedef typename Op::A A;
  static constexpr int N = int(64 / sizeof(A));
  A a[N];

  RowLanes() {
    for (int k = 0; k < N; k++) a[k] = Op::start();
  }
  void add(const T *x, int64_t n, int64_t step) {
    if (step != 1) {
      for (int64_t i = 0; i < n; i++) a[i % N] = Op::step(a[i % N], x[i * step]);
      return;
    }
    int64_t i = 0;
    for (; i + N <= n; i += N)
      for (int k = 0; k < N; k++) a[k] = Op::step(a[k], x[i + k]);
    for (int k = 0; i + k < n; k++) a[k] = Op::step(a[k], x[i + k]);
  }
  A value() {
    for (int w = N / 2; w > 0; w /= 2)
      for (int k = 0; k < w; k++) a[k] = Op::join(a[k], a[k + w]);
    return a[0];
  }
};

template <class Op> void rows_of(const typename Op::T *x, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, typename Op::A *out) {
  for (Walk<1> w = p.results(begin, end); w.next();)
    for (int64_t i = 0; i < w.n; i++) {
      RowLanes<Op> s;
      const typename Op::T *first = x + p.start + w.at[0] + i * w.step[0];
      for (Walk<1> e = p.elements(from, to); e.next();) s.add(first + e.at[0], e.n, e.step[0]);
      *out++ = s.value();
    }
}

template <class Op> void columns_of(const typename Op::T *x, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, typename Op::A *out) {
  for (Walk<1> w = p.results(begin, end); w.next();)
    for (int64_t i = 0; i < w.n; i += TILE) {
      const int n = int(w.n - i < TILE ? w.n - i : TILE);
      const typename Op::T *first = x + p.start + w.at[0] + i * p.side;
      for (int j = 0; j < n && !p.resume; j++) out[j] = Op::start();
      for (Walk<1> e = p.elements(from, to); e.next();)
        for (int64_t k = 0; k < e.n; k++) {
          const typename Op::T *row = first + e.at[0] + k * e.step[0];
          if (p.side == 1) {
            for (int j = 0; j < n; j++) out[j] = Op::step(out[j], row[j]);
          } else {
            for (int j = 0; j < n; j++) out[j] = Op::step(out[j], row[j * p.side]);
          }
        }
      out += n;
    }
}

template <class Op> void part_of(const typename Op::T *x, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, typename Op::A *out) {
  return p.columns ? columns_of<Op>(x, p, begin, end, from, to, out) : rows_of<Op>(x, p, begin, end, from, to, out);
}

}  // namespace reduce
}  // namespace rlx
