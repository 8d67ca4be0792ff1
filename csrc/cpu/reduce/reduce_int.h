// Reduce of integers and bool, for reduce_int8.cpp to reduce_int64.cpp: one width each, to keep every file quick to compile. Sums and
// products wrap, so they are taken of the unsigned type of the same size.
#pragma once
#include "lines.h"
#include "plain.h"

namespace rlx {
namespace reduce {
namespace {

// The type in which U multiplies without the promotion to int, which could overflow.
template <int SIZE> struct wide_of { typedef uint32_t type; };
template <> struct wide_of<8> { typedef uint64_t type; };

template <class U> struct int_sum {
  typedef U T, A;
  static A start() { return 0; }
  static A step(A a, T x) { return A(a + x); }
  static A join(A a, A b) { return A(a + b); }
};
template <class U> struct int_prod {
  typedef U T, A;
  typedef typename wide_of<sizeof(U)>::type W;
  static A start() { return 1; }
  static A step(A a, T x) { return A(W(a) * W(x)); }
  static A join(A a, A b) { return step(a, b); }
};
template <class U> struct int_square {
  typedef U T, A;
  typedef typename wide_of<sizeof(U)>::type W;
  static A start() { return 0; }
  static A step(A a, T x) { return A(W(a) + W(x) * W(x)); }
  static A join(A a, A b) { return A(a + b); }
};
// |x| of the signed integer with the bits x.
template <class U> struct int_abs {
  typedef U T, A;
  static A start() { return 0; }
  static A step(A a, T x) { return A((x >> (8 * sizeof(U) - 1)) != 0 ? a - x : a + x); }
  static A join(A a, A b) { return A(a + b); }
};
template <class S, S LEAST> struct int_max {
  typedef S T, A;
  static A start() { return LEAST; }
  static A step(A a, T x) { return a > x ? a : x; }
  static A join(A a, A b) { return step(a, b); }
};
template <class S, S GREATEST> struct int_min {
  typedef S T, A;
  static A start() { return GREATEST; }
  static A step(A a, T x) { return a < x ? a : x; }
  static A join(A a, A b) { return step(a, b); }
};

template <class S> struct limits {
  static constexpr bool SIGNED = S(-1) < S(0);
  static constexpr S GREATEST = SIGNED ? S(~0ull >> (65 - 8 * sizeof(S))) : S(~0ull);
  static constexpr S LEAST = SIGNED ? S(-GREATEST - 1) : S(0);
};
template <class S> using max_of = int_max<S, limits<S>::LEAST>;
template <class S> using min_of = int_min<S, limits<S>::GREATEST>;

// S is the integer, U the unsigned one of its size.
template <class S, class U> struct Integers {
  typedef S T, Acc;

  template <class Op> static void as_unsigned(const S *x, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, Acc *out) {
    part_of<Op>(reinterpret_cast<const U *>(x), p, begin, end, from, to, reinterpret_cast<U *>(out));
  }
  static void part(const T *x, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, Acc *out) {
    switch (p.fn) {
      case rlx_ReduceFn_max: return part_of<max_of<S>>(x, p, begin, end, from, to, out);
      case rlx_ReduceFn_min: return part_of<min_of<S>>(x, p, begin, end, from, to, out);
      case rlx_ReduceFn_prod: return as_unsigned<int_prod<U>>(x, p, begin, end, from, to, out);
      case rlx_ReduceFn_sum_square: return as_unsigned<int_square<U>>(x, p, begin, end, from, to, out);
      case rlx_ReduceFn_l1:
        if (limits<S>::SIGNED) return as_unsigned<int_abs<U>>(x, p, begin, end, from, to, out);
        break;
      default: break;
    }
    as_unsigned<int_sum<U>>(x, p, begin, end, from, to, out);
  }
  static Acc join(int64_t fn, Acc a, Acc b) {
    switch (fn) {
      case rlx_ReduceFn_max: return max_of<S>::join(a, b);
      case rlx_ReduceFn_min: return min_of<S>::join(a, b);
      case rlx_ReduceFn_prod: return S(int_prod<U>::join(U(a), U(b)));
      default: return S(U(U(a) + U(b)));
    }
  }
  static void put(const Plan &, const Acc *a, T *y, int64_t n) { std::memcpy(y, a, size_t(n) * sizeof(T)); }
};

}  // namespace

}  // namespace reduce
}  // namespace rlx
