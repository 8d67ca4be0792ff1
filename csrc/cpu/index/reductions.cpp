// The steps of reductions.h. f16 and bf16 sums and products run in f32 from the first update to the last: a first step brings what is there
// into f32, a second one combines, a third one rounds. Bounds: one rounding an update in f32 and f64, one in all for the halves.
#include "../core/rlx_begin.h"

#include "reductions.h"

namespace rlx {
namespace index {
namespace {

struct c64 { float re, im; };
struct f16 { uint16_t bits; };
struct bf16 { uint16_t bits; };

RLX_FN float value(f16 h) { return float(elementwise::f64_from_f16(h.bits)); }
RLX_FN float value(bf16 h) { return float(elementwise::f64_from_bf16(h.bits)); }
RLX_FN void round_to(f16 &h, float v) { h.bits = elementwise::f16_from_f64(double(v)); }
RLX_FN void round_to(bf16 &h, float v) { h.bits = elementwise::bf16_from_f64(double(v)); }

template <class T> RLX_FN T sum_of(T a, T b) { return T(uint64_t(a) + uint64_t(b)); }
template <> RLX_FN float sum_of(float a, float b) { return a + b; }
template <> RLX_FN double sum_of(double a, double b) { return a + b; }
template <> RLX_FN c64 sum_of(c64 a, c64 b) { return {a.re + b.re, a.im + b.im}; }

template <class T> RLX_FN T product_of(T a, T b) { return T(uint64_t(a) * uint64_t(b)); }
template <> RLX_FN float product_of(float a, float b) { return a * b; }
template <> RLX_FN double product_of(double a, double b) { return a * b; }
template <> RLX_FN c64 product_of(c64 a, c64 b) {
  const double ar = double(a.re), ai = double(a.im), br = double(b.re), bi = double(b.im);
  return {float(ar * br - ai * bi), float(ar * bi + ai * br)};
}

template <class T> RLX_FN bool less(T a, T b) { return a < b; }
template <> RLX_FN bool less(c64 a, c64 b) { return a.re < b.re || (a.re == b.re && a.im < b.im); }
template <> RLX_FN bool less(f16 a, f16 b) { return value(a) < value(b); }
template <> RLX_FN bool less(bf16 a, bf16 b) { return value(a) < value(b); }
template <class T> RLX_FN bool is_nan(T a) { return a != a; }
template <> RLX_FN bool is_nan(c64 a) { return a.re != a.re || a.im != a.im; }
template <> RLX_FN bool is_nan(f16 a) { return (a.bits & 0x7fff) > 0x7c00; }
template <> RLX_FN bool is_nan(bf16 a) { return (a.bits & 0x7fff) > 0x7f80; }

// Takes b where it is better than a or NaN; a NaN stays.
template <class T> RLX_FN T larger(T a, T b) { return !is_nan(a) && (less(a, b) || is_nan(b)) ? b : a; }
template <class T> RLX_FN T smaller(T a, T b) { return !is_nan(a) && (less(b, a) || is_nan(b)) ? b : a; }

// f(place in y, update) over a line. Two loops, so that slices need no list of places.
template <class U, class F> RLX_FN void over(const Line &l, const F &f) {
  const U *u = static_cast<const U *>(l.u);
  if (l.places == nullptr) {
    for (int64_t i = 0; i < l.n; i++) f(l.at + i, u[i * l.u_step]);
  } else {
    for (int64_t i = 0; i < l.n; i++) f(l.at + l.places[i], u[i * l.u_step]);
  }
}

template <class T> void put(const Line &l) {
  T *__restrict y = static_cast<T *>(l.y);
  over<T>(l, [=](int64_t p, T u) { y[p] = u; });
}
template <class T, T (*F)(T, T)> void meet(const Line &l) {
  T *__restrict y = static_cast<T *>(l.y);
  over<T>(l, [=](int64_t p, T u) { y[p] = F(y[p], u); });
}

template <class H> void open_sums(const Line &l) {
  const H *y = static_cast<const H *>(l.y);
  float *sums = l.sums;
  over<H>(l, [=](int64_t p, H) { sums[p] = value(y[p]); });
}
template <class H, float (*F)(float, float)> void meet_sums(const Line &l) {
  float *sums = l.sums;
  over<H>(l, [=](int64_t p, H u) { sums[p] = F(sums[p], value(u)); });
}
template <class H> void close_sums(const Line &l) {
  H *y = static_cast<H *>(l.y);
  const float *sums = l.sums;
  over<H>(l, [=](int64_t p, H) { round_to(y[p], sums[p]); });
}

Steps one(Step s) { return {1, {s}}; }

template <class T> Steps of(int reduction) {
  switch (reduction) {
    case rlx_ScatterReduction_add: return one(meet<T, sum_of<T>>);
    case rlx_ScatterReduction_mul: return one(meet<T, product_of<T>>);
    case rlx_ScatterReduction_max: return one(meet<T, larger<T>>);
    default: return one(meet<T, smaller<T>>);
  }
}
template <class H> Steps half_of(int reduction) {
  switch (reduction) {
    case rlx_ScatterReduction_add: return {3, {open_sums<H>, meet_sums<H, sum_of<float>>, close_sums<H>}};
    case rlx_ScatterReduction_mul: return {3, {open_sums<H>, meet_sums<H, product_of<float>>, close_sums<H>}};
    case rlx_ScatterReduction_max: return one(meet<H, larger<H>>);
    default: return one(meet<H, smaller<H>>);
  }
}

}  // namespace

Steps steps_of(uint32_t dtype, int reduction) {
  if (reduction == rlx_ScatterReduction_none) {
    switch (rlx_dtype_sizes[dtype]) {
      case 1: return one(put<uint8_t>);
      case 2: return one(put<uint16_t>);
      case 4: return one(put<uint32_t>);
      default: return one(put<uint64_t>);
    }
  }
  switch (dtype) {
    case RLX_I8: return of<int8_t>(reduction);
    case RLX_I16: return of<int16_t>(reduction);
    case RLX_I32: return of<int32_t>(reduction);
    case RLX_I64: return of<int64_t>(reduction);
    case RLX_U8: return of<uint8_t>(reduction);
    case RLX_U16: return of<uint16_t>(reduction);
    case RLX_U32: return of<uint32_t>(reduction);
    case RLX_U64: return of<uint64_t>(reduction);
    case RLX_F16: return half_of<f16>(reduction);
    case RLX_BF16: return half_of<bf16>(reduction);
    case RLX_F32: return of<float>(reduction);
    case RLX_F64: return of<double>(reduction);
    case RLX_C64: return of<c64>(reduction);
    default: return {};
  }
}

}  // namespace index
}  // namespace rlx
