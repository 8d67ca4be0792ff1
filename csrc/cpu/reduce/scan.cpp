// Cumsum, CumProd and CumsumBackward. A line is scanned in its order with a state that is at least as wide as the elements: f64
// for f16, bf16 and f32, so that a running sum of 2^24 equal-signed values has a relative error of 2^-24, the rounding of the result.
// Lines that lie beside each other are scanned together, row by row.
#include "../core/rlx_begin.h"

#include "../core/isa.h"
#include "../elementwise/convert.h"
#include "../elementwise/elementwise.h"
#include "lines.h"
#include "scan_rows.h"

namespace rlx {
namespace reduce {
namespace {

constexpr int TILE = 64;  // lines scanned together
constexpr int64_t WORK = 1 << 14;
constexpr int64_t POLL = 1 << 16;  // elements of a line between two looks at whether the run was stopped

struct c64 { float re, im; };
struct c128 { double re, im; };

// One NaN for all: which operand's sign and payload an addition keeps is up to the compiler, and would differ between equal results.
inline double one_nan(double x) { return x != x ? double(NAN) : x; }

// How elements of a dtype become a state and back.
struct as_f32 {
  typedef float T;
  typedef double S;
  static S get(T x) { return double(x); }
  static T put(S s) { return float(one_nan(s)); }
};
struct as_f64 {
  typedef double T, S;
  static S get(T x) { return x; }
  static T put(S s) { return one_nan(s); }
};
struct as_f16 {
  typedef uint16_t T;
  typedef double S;
  static S get(T x) { return elementwise::f64_from_f16(x); }
  static T put(S s) { return elementwise::f16_from_f64(one_nan(s)); }
};
struct as_bf16 {
  typedef uint16_t T;
  typedef double S;
  static S get(T x) { return elementwise::f64_from_bf16(x); }
  static T put(S s) { return elementwise::bf16_from_f64(one_nan(s)); }
};
struct as_c64 {
  typedef c64 T;
  typedef c128 S;
  static S get(T x) { return {double(x.re), double(x.im)}; }
  static T put(S s) { return {float(one_nan(s.re)), float(one_nan(s.im))}; }
};
// Integers wrap, so the unsigned type of their size serves both signs.
template <class U> struct as_int {
  typedef U T;
  typedef uint64_t S;
  static S get(T x) { return x; }
  static T put(S s) { return T(s); }
};

template <class S> S one() { return S(1); }
template <> c128 one<c128>() { return {1, 0}; }
template <class S> S add(S a, S b) { return a + b; }
inline c128 add(c128 a, c128 b) { return {a.re + b.re, a.im + b.im}; }
template <class S> S mul(S a, S b) { return a * b; }
inline c128 mul(c128 a, c128 b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

struct Steps {
  int64_t n, x, y;  // length; from one element of a line to the next in scan order
  bool exclusive, product;
};

template <class F, bool PRODUCT> struct Scan {
  typedef typename F::T T;
  typedef typename F::S S;

  static S start() { return PRODUCT ? one<S>() : S(); }
  static S next(S s, S v) { return PRODUCT ? mul(s, v) : add(s, v); }

  static void line(const T *x, T *y, const Steps &s, const Call &c) { rest(x, y, s, c, start()); }
  // What is left of a line.
  static void rest(const T *x, T *y, const Steps &s, const Call &c, S state) {
    for (int64_t from = 0; from < s.n && !c.stopped(); from += POLL)
      for (int64_t k = from, to = s.n - from < POLL ? s.n : from + POLL; k < to; k++, x += s.x, y += s.y) {
        const S after = next(state, F::get(*x));
        *y = F::put(s.exclusive ? state : after);
        state = after;
      }
  }

  // m lines beside each other in x and y.
  static void rows(const T *__restrict x, T *__restrict y, int m, const Steps &s, const Call &c) {
    S state[TILE];
    for (int j = 0; j < m; j++) state[j] = start();
    for (int64_t k = 0; k < s.n; k++, x += s.x, y += s.y) {
      if (k % 1024 == 1023 && c.stopped()) return;
      if (s.exclusive) {
        for (int j = 0; j < m; j++) y[j] = F::put(state[j]);
        for (int j = 0; j < m; j++) state[j] = next(state[j], F::get(x[j]));
        continue;
      }
      for (int j = 0; j < m; j++) state[j] = next(state[j], F::get(x[j]));
      for (int j = 0; j < m; j++) y[j] = F::put(state[j]);
    }
  }

  static void some(const T *x, int64_t side_x, T *y, int64_t side_y, int m, const Steps &s, const Call &c) {
    if (side_x == 1 && side_y == 1) return rows(x, y, m, s, c);
    for (int j = 0; j < m; j++) line(x + j * side_x, y + j * side_y, s, c);
  }
};

#if defined(RLX_X86)
bool along_rows(const Call &c, const Steps &s) { return c.in(0).dtype == RLX_F32 && s.y * s.y == 1 && s.x == s.y && isa_active() >= ISA_AVX2; }

template <bool PRODUCT> void eight_rows_of(const Call &c, const float *x, int64_t x_side, float *y, int64_t y_side, const Steps &s, bool past) {
  double state[ROWS];
  for (double &v : state) v = Scan<as_f32, PRODUCT>::start();
  const int64_t whole = s.n - s.n % COLUMNS;
  for (int64_t from = 0; from < whole && !c.stopped(); from += POLL / ROWS) {
    const int64_t n = whole - from < POLL / ROWS ? whole - from : POLL / ROWS;
    if (s.x > 0) scan_rows_of<PRODUCT, false>(x + from, x_side, y + from, y_side, n, s.exclusive, past, state);
    else scan_rows_of<PRODUCT, true>(x - from, x_side, y - from, y_side, n, s.exclusive, past, state);
  }
  const Steps left = {s.n - whole, s.x, s.y, s.exclusive, PRODUCT};
  for (int i = 0; i < ROWS; i++) Scan<as_f32, PRODUCT>::rest(x + i * x_side + whole * s.x, y + i * y_side + whole * s.y, left, c, state[i]);
}
void eight_rows(const Call &c, const float *x, int64_t x_side, float *y, int64_t y_side, const Steps &s, bool past) {
  if (s.product) eight_rows_of<true>(c, x, x_side, y, y_side, s, past);
  else eight_rows_of<false>(c, x, x_side, y, y_side, s, past);
}
#else
constexpr int ROWS = 8, COLUMNS = 16;
bool along_rows(const Call &, const Steps &) { return false; }
void eight_rows(const Call &, const float *, int64_t, float *, int64_t, const Steps &, bool) {}
#endif

template <class F> void scan_as(const Call &c, Range r, const Lines &l, const Steps &s, bool reverse) {
  const typename F::T *x = c.in_ptr<typename F::T>(0);
  typename F::T *y = c.out_ptr<typename F::T>(0);
  if (reverse) x -= (s.n - 1) * s.x, y -= (s.n - 1) * s.y;  // steps are negative
  const bool rows = along_rows(c, s), past = rows && s.n % COLUMNS == 0 && elementwise::streams(c, 0);
  for (Walk<2> w = l.walk(r.begin, r.end); w.next();)
    for (int64_t i = 0; i < w.n && !c.stopped();) {
      const int m = l.y_step == 1 ? 1 : int(w.n - i < TILE ? w.n - i : TILE);
      const typename F::T *from = x + w.at[0] + i * w.step[0];
      typename F::T *to = y + w.at[1] + i * w.step[1];
      if (rows && w.n - i >= ROWS) {
        eight_rows(c, reinterpret_cast<const float *>(from), w.step[0], reinterpret_cast<float *>(to), w.step[1], s, past);
        i += ROWS;
        continue;
      }
      if (s.product) Scan<F, true>::some(from, w.step[0], to, w.step[1], m, s, c);
      else Scan<F, false>::some(from, w.step[0], to, w.step[1], m, s, c);
      i += m;
    }
  if (past) std::atomic_thread_fence(std::memory_order_seq_cst);
}

void scan(const Call &c, Range r, bool product, bool backward) {
  const rlx_CumAttrs &a = c.attrs<rlx_CumAttrs>();
  const Lines l = lines_of(c.in(0), a.axis);
  const bool reverse = (a.reverse != 0) != backward;
  const int64_t sign = reverse ? -1 : 1;
  const Steps s = {l.length, sign * l.x_step, sign * l.y_step, a.exclusive != 0, product};
  switch (c.in(0).dtype) {
    case RLX_F32: return scan_as<as_f32>(c, r, l, s, reverse);
    case RLX_F64: return scan_as<as_f64>(c, r, l, s, reverse);
    case RLX_F16: return scan_as<as_f16>(c, r, l, s, reverse);
    case RLX_BF16: return scan_as<as_bf16>(c, r, l, s, reverse);
    case RLX_C64: return scan_as<as_c64>(c, r, l, s, reverse);
    case RLX_I8:
    case RLX_U8: return scan_as<as_int<uint8_t>>(c, r, l, s, reverse);
    case RLX_I16:
    case RLX_U16: return scan_as<as_int<uint16_t>>(c, r, l, s, reverse);
    case RLX_I32:
    case RLX_U32: return scan_as<as_int<uint32_t>>(c, r, l, s, reverse);
    default: return scan_as<as_int<uint64_t>>(c, r, l, s, reverse);
  }
}

}  // namespace

Split scan_split(const Call &c) {
  const Lines l = lines_of(c.in(0), *static_cast<const int64_t *>(c.cmd->attrs));  // the axis is the first attribute of all scans
  Split split = split_lines(l.count, l.length, elementwise::streams(c, 0) ? WORK * elementwise::STREAM_GRAINS : WORK);
  if (l.y_step == 1 && l.count >= 2 * ROWS * c.threads()) split.grain = (split.grain + ROWS - 1) / ROWS * ROWS;
  return split;
}

void cumsum(const Call &c, Range r) { scan(c, r, false, false); }
void cumsum_backward(const Call &c, Range r) { scan(c, r, false, true); }
void cum_prod(const Call &c, Range r) { scan(c, r, true, false); }

}  // namespace reduce
}  // namespace rlx
