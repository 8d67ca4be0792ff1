// Bool and c64; Fma outside f32, and moves by element size.
#include "../core/rlx_begin.h"

#include "elementwise.h"
#include "convert.h"

namespace rlx {
namespace elementwise {
namespace {

const uint8_t *bytes_of(const void *const *in, int k) { return static_cast<const uint8_t *>(in[k]); }
template <class T> const T *of(const void *const *in, int k) { return static_cast<const T *>(in[k]); }

template <class T> void copy_loop(const Work &, const void *const *in, void *out, int64_t n) {
  std::memmove(out, in[0], size_t(n) * sizeof(T));
}

// ---- bool: any byte but 0 is true

void not_loop(const Work &, const void *const *in, void *out, int64_t n) {
  const uint8_t *x = bytes_of(in, 0);
  uint8_t *y = static_cast<uint8_t *>(out);
  for (int64_t i = 0; i < n; i++) y[i] = x[i] == 0;
}
template <class F> void bool_loop(const Work &, const void *const *in, void *out, int64_t n) {
  const uint8_t *a = bytes_of(in, 0), *b = bytes_of(in, 1);
  uint8_t *y = static_cast<uint8_t *>(out);
  for (int64_t i = 0; i < n; i++) y[i] = F::of(a[i] != 0, b[i] != 0);
}
struct both { static uint8_t of(int a, int b) { return uint8_t(a & b); } };
struct either { static uint8_t of(int a, int b) { return uint8_t(a | b); } };
struct differ { static uint8_t of(int a, int b) { return uint8_t(a ^ b); } };
struct same { static uint8_t of(int a, int b) { return uint8_t(a == b); } };
struct less { static uint8_t of(int a, int b) { return uint8_t(a < b); } };
struct at_most { static uint8_t of(int a, int b) { return uint8_t(a <= b); } };
struct more { static uint8_t of(int a, int b) { return uint8_t(a > b); } };
struct at_least { static uint8_t of(int a, int b) { return uint8_t(a >= b); } };

// ---- c64, in f64: products of f32 are exact there and squares neither overflow nor vanish

struct Complex { double re, im; };

Complex get(const float *p) { return {double(p[0]), double(p[1])}; }
bool infinite(Complex a) { return std::isinf(a.re) || std::isinf(a.im); }
bool finite(Complex a) { return std::isfinite(a.re) && std::isfinite(a.im); }
Complex direction(Complex a) {  // of an infinite value: its infinite parts are 1, the others 0
  return {copysign(std::isinf(a.re) ? 1.0 : 0.0, a.re), copysign(std::isinf(a.im) ? 1.0 : 0.0, a.im)};
}
Complex times_conj(Complex a, Complex b) { return {a.re * b.re + a.im * b.im, a.im * b.re - a.re * b.im}; }

struct c64_add { static Complex of(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; } };
struct c64_sub { static Complex of(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; } };
struct c64_mul { static Complex of(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; } };
struct c64_div {
  static Complex of(Complex a, Complex b) {
    if (infinite(b) && finite(a)) {
      const Complex p = times_conj(a, direction(b));
      return {0 * p.re, 0 * p.im};
    }
    if (infinite(a) && finite(b)) {
      const Complex p = times_conj(direction(a), b);
      return {double(INFINITY) * p.re, double(INFINITY) * p.im};
    }
    const Complex p = times_conj(a, b);
    const double d = b.re * b.re + b.im * b.im;
    return {p.re / d, p.im / d};
  }
};
template <class F> void c64_loop(const Work &, const void *const *in, void *out, int64_t n) {
  const float *a = of<float>(in, 0), *b = of<float>(in, 1);
  float *y = static_cast<float *>(out);
  for (int64_t i = 0; i < 2 * n; i += 2) {
    const Complex r = F::of(get(a + i), get(b + i));
    y[i] = float(r.re);
    y[i + 1] = float(r.im);
  }
}
template <bool Equal> void c64_compare(const Work &, const void *const *in, void *out, int64_t n) {
  const float *a = of<float>(in, 0), *b = of<float>(in, 1);
  uint8_t *y = static_cast<uint8_t *>(out);
  for (int64_t i = 0; i < n; i++) y[i] = (a[2 * i] == b[2 * i] && a[2 * i + 1] == b[2 * i + 1]) == Equal;
}
void c64_neg(const Work &, const void *const *in, void *out, int64_t n) {
  const float *x = of<float>(in, 0);
  float *y = static_cast<float *>(out);
  for (int64_t i = 0; i < 2 * n; i++) y[i] = -x[i];
}

// ---- Fma

// a*b + c of values whose product f64 holds, rounded to odd: the rounding to f16 or bf16 that follows is then the only one.
double fma_odd(double a, double b, double c) {
  const double p = a * b, s = p + c, t = s - p, e = (p - (s - t)) + (c - t);
  const uint64_t bits = f64_bits(s);
  if (!std::isfinite(s) || e == 0 || (bits & 1) != 0) return s;
  return f64_of_bits((e > 0) == (s > 0) ? bits + 1 : bits - 1);
}
template <double (*Get)(uint16_t), uint16_t (*Put)(double)> void fma_half(const Work &, const void *const *in, void *out, int64_t n) {
  const uint16_t *a = of<uint16_t>(in, 0), *b = of<uint16_t>(in, 1), *c = of<uint16_t>(in, 2);
  uint16_t *y = static_cast<uint16_t *>(out);
  for (int64_t i = 0; i < n; i++) y[i] = Put(fma_odd(Get(a[i]), Get(b[i]), Get(c[i])));
}
void fma_f64_loop(const Work &, const void *const *in, void *out, int64_t n) {
  const double *a = of<double>(in, 0), *b = of<double>(in, 1), *c = of<double>(in, 2);
  double *y = static_cast<double *>(out);
  for (int64_t i = 0; i < n; i++) y[i] = ::fma(a[i], b[i], c[i]);
}

}  // namespace

Loop pick_copy(int size) {
  switch (size) {
    case 1: return copy_loop<uint8_t>;
    case 2: return copy_loop<uint16_t>;
    case 4: return copy_loop<uint32_t>;
    default: return copy_loop<uint64_t>;
  }
}

Loop pick_unary_other(int fn, int dtype) {
  if (dtype == RLX_BOOL) return fn == rlx_UnaryFn_not_ ? not_loop : nullptr;
  if (dtype != RLX_C64) return nullptr;
  return fn == rlx_UnaryFn_identity ? copy_loop<uint64_t> : fn == rlx_UnaryFn_neg ? c64_neg : nullptr;
}

Loop pick_binary_other(int fn, int dtype) {
  if (dtype == RLX_BOOL) switch (fn) {
      case rlx_BinaryFn_and_: return bool_loop<both>;
      case rlx_BinaryFn_or_: return bool_loop<either>;
      case rlx_BinaryFn_xor_: return bool_loop<differ>;
      default: return nullptr;
    }
  switch (fn) {
    case rlx_BinaryFn_add: return c64_loop<c64_add>;
    case rlx_BinaryFn_sub: return c64_loop<c64_sub>;
    case rlx_BinaryFn_mul: return c64_loop<c64_mul>;
    case rlx_BinaryFn_div: return c64_loop<c64_div>;
    default: return nullptr;
  }
}

Loop pick_compare_other(int fn, int dtype) {
  if (dtype == RLX_BOOL) switch (fn) {
      case rlx_CompareFn_eq: return bool_loop<same>;
      case rlx_CompareFn_ne: return bool_loop<differ>;
      case rlx_CompareFn_lt: return bool_loop<less>;
      case rlx_CompareFn_le: return bool_loop<at_most>;
      case rlx_CompareFn_gt: return bool_loop<more>;
      case rlx_CompareFn_ge: return bool_loop<at_least>;
      default: return nullptr;
    }
  return fn == rlx_CompareFn_eq ? c64_compare<true> : fn == rlx_CompareFn_ne ? c64_compare<false> : nullptr;
}

Loop pick_fma(int dtype) {
  switch (dtype) {
    case RLX_F16: return fma_half<f64_from_f16, f16_from_f64>;
    case RLX_BF16: return fma_half<f64_from_bf16, bf16_from_f64>;
    case RLX_F64: return fma_f64_loop;
    default: return pick_fma_int(dtype);
  }
}

Loop pick_clamp(int dtype) { return dtype == RLX_F64 ? pick_clamp_f64() : pick_clamp_int(dtype); }

}  // namespace elementwise
}  // namespace rlx
