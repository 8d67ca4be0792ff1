// Cast of every pair of dtypes in two steps, by way of a block of f64 or i64. Contract: one rounding to nearest even from the exact value,
// since every float fits f64 and a 64-bit integer goes there rounded to odd. The pairs that models use have loops of their own (moves.h).
#include "../core/rlx_begin.h"

#include "elementwise.h"
#include "convert.h"

namespace rlx {
namespace elementwise {
namespace {

constexpr int STEP = 256;  // elements of the middle block

typedef void (*ToF64)(const void *from, double *y, int64_t n);
typedef void (*FromF64)(const double *x, void *to, int64_t n, bool saturate);
typedef void (*ToI64)(const void *from, int64_t *y, int64_t n);
typedef void (*FromI64)(const int64_t *x, void *to, int64_t n);

template <class T> double plain(T v) { return double(v); }
template <class T> double odd(T v) { return T(-1) < T(0) ? odd_from_i64(int64_t(v)) : odd_from_u64(uint64_t(v)); }
double truth(uint8_t v) { return v != 0 ? 1.0 : 0.0; }

template <class T, double (*F)(T)> void to_f64(const void *from, double *y, int64_t n) {
  const T *x = static_cast<const T *>(from);
  for (int64_t i = 0; i < n; i++) y[i] = F(x[i]);
}
ToF64 pick_to_f64(int from, bool to_f64_itself) {
  switch (from) {
    case RLX_BOOL: return to_f64<uint8_t, truth>;
    case RLX_I8: return to_f64<int8_t, plain<int8_t>>;
    case RLX_I16: return to_f64<int16_t, plain<int16_t>>;
    case RLX_I32: return to_f64<int32_t, plain<int32_t>>;
    case RLX_I64: return to_f64_itself ? to_f64<int64_t, plain<int64_t>> : to_f64<int64_t, odd<int64_t>>;
    case RLX_U8: return to_f64<uint8_t, plain<uint8_t>>;
    case RLX_U16: return to_f64<uint16_t, plain<uint16_t>>;
    case RLX_U32: return to_f64<uint32_t, plain<uint32_t>>;
    case RLX_U64: return to_f64_itself ? to_f64<uint64_t, plain<uint64_t>> : to_f64<uint64_t, odd<uint64_t>>;
    case RLX_F16: return to_f64<uint16_t, f64_from_f16>;
    case RLX_BF16: return to_f64<uint16_t, f64_from_bf16>;
    case RLX_F32: return to_f64<float, plain<float>>;
    case RLX_F64: return to_f64<double, plain<double>>;
    case RLX_F8E4M3: return to_f64<uint8_t, f64_from_f8e4m3>;
    case RLX_F8E5M2: return to_f64<uint8_t, f64_from_f8e5m2>;
    case RLX_F4E2M1: return to_f64<uint8_t, f64_from_f4e2m1>;
    case RLX_E8M0: return to_f64<uint8_t, f64_from_e8m0>;
    default: return nullptr;
  }
}

template <class T> T integer(double v, bool) { return T(int_from_f64(v, 8 * int(sizeof(T)), T(-1) < T(0))); }
template <class T> T rounded(double v, bool) { return T(v); }
uint8_t not_zero(double v, bool) { return v != 0; }
uint16_t to_f16(double v, bool) { return f16_from_f64(v); }
uint16_t to_bf16(double v, bool) { return bf16_from_f64(v); }
uint8_t to_f4(double v, bool) { return f4e2m1_from_f64(v); }
uint8_t to_e8m0(double v, bool) { return e8m0_from_f64(v); }
struct Pair { float re, im; };
Pair real_part(double v, bool) { return {float(v), 0.0f}; }

template <class T, T (*F)(double, bool)> void from_f64(const double *x, void *to, int64_t n, bool saturate) {
  T *y = static_cast<T *>(to);
  for (int64_t i = 0; i < n; i++) y[i] = F(x[i], saturate);
}
FromF64 pick_from_f64(int to) {
  switch (to) {
    case RLX_BOOL: return from_f64<uint8_t, not_zero>;
    case RLX_I8: return from_f64<int8_t, integer<int8_t>>;
    case RLX_I16: return from_f64<int16_t, integer<int16_t>>;
    case RLX_I32: return from_f64<int32_t, integer<int32_t>>;
    case RLX_I64: return from_f64<int64_t, integer<int64_t>>;
    case RLX_U8: return from_f64<uint8_t, integer<uint8_t>>;
    case RLX_U16: return from_f64<uint16_t, integer<uint16_t>>;
    case RLX_U32: return from_f64<uint32_t, integer<uint32_t>>;
    case RLX_U64: return from_f64<uint64_t, integer<uint64_t>>;
    case RLX_F16: return from_f64<uint16_t, to_f16>;
    case RLX_BF16: return from_f64<uint16_t, to_bf16>;
    case RLX_F32: return from_f64<float, rounded<float>>;
    case RLX_F64: return from_f64<double, rounded<double>>;
    case RLX_C64: return from_f64<Pair, real_part>;
    case RLX_F8E4M3: return from_f64<uint8_t, f8e4m3_from_f64>;
    case RLX_F8E5M2: return from_f64<uint8_t, f8e5m2_from_f64>;
    case RLX_F4E2M1: return from_f64<uint8_t, to_f4>;
    case RLX_E8M0: return from_f64<uint8_t, to_e8m0>;
    default: return nullptr;
  }
}

template <class T> void to_i64(const void *from, int64_t *y, int64_t n) {
  const T *x = static_cast<const T *>(from);
  for (int64_t i = 0; i < n; i++) y[i] = int64_t(x[i]);
}
void bool_to_i64(const void *from, int64_t *y, int64_t n) {
  const uint8_t *x = static_cast<const uint8_t *>(from);
  for (int64_t i = 0; i < n; i++) y[i] = x[i] != 0;
}
ToI64 pick_to_i64(int from) {
  switch (from) {
    case RLX_BOOL: return bool_to_i64;
    case RLX_I8: return to_i64<int8_t>;
    case RLX_I16: return to_i64<int16_t>;
    case RLX_I32: return to_i64<int32_t>;
    case RLX_U8: return to_i64<uint8_t>;
    case RLX_U16: return to_i64<uint16_t>;
    case RLX_U32: return to_i64<uint32_t>;
    default: return to_i64<uint64_t>;  // the bits of either 64-bit type
  }
}

template <class T> void from_i64(const int64_t *x, void *to, int64_t n) {
  T *y = static_cast<T *>(to);
  for (int64_t i = 0; i < n; i++) y[i] = T(x[i]);
}
void bool_from_i64(const int64_t *x, void *to, int64_t n) {
  uint8_t *y = static_cast<uint8_t *>(to);
  for (int64_t i = 0; i < n; i++) y[i] = x[i] != 0;
}
FromI64 pick_from_i64(int to) {
  if (to == RLX_BOOL) return bool_from_i64;
  switch (rlx_dtype_sizes[to]) {
    case 1: return from_i64<uint8_t>;
    case 2: return from_i64<uint16_t>;
    case 4: return from_i64<uint32_t>;
    default: return from_i64<uint64_t>;
  }
}

constexpr uint32_t WHOLE = RLX_DTYPES_int | RLX_DTYPES_bool;

// The dtypes travel in Work as numbers (lo, hi).
void cast_by_f64(const Work &w, const void *const *in, void *out, int64_t n) {
  const int from = int(w.lo), to = int(w.hi);
  const ToF64 get = pick_to_f64(from, to == RLX_F64);
  const FromF64 put = pick_from_f64(to);
  double block[STEP];
  for (int64_t at = 0; at < n; at += STEP) {
    const int64_t m = n - at < STEP ? n - at : STEP;
    get(static_cast<const char *>(in[0]) + at * rlx_dtype_sizes[from], block, m);
    put(block, static_cast<char *>(out) + at * rlx_dtype_sizes[to], m, w.saturate);
  }
}
void cast_by_i64(const Work &w, const void *const *in, void *out, int64_t n) {
  const int from = int(w.lo), to = int(w.hi);
  const ToI64 get = pick_to_i64(from);
  const FromI64 put = pick_from_i64(to);
  int64_t block[STEP];
  for (int64_t at = 0; at < n; at += STEP) {
    const int64_t m = n - at < STEP ? n - at : STEP;
    get(static_cast<const char *>(in[0]) + at * rlx_dtype_sizes[from], block, m);
    put(block, static_cast<char *>(out) + at * rlx_dtype_sizes[to], m);
  }
}

}  // namespace

Loop pick_cast(int from, int to) {
  if ((WHOLE >> from & 1) != 0 && (WHOLE >> to & 1) != 0) return cast_by_i64;
  return pick_to_f64(from, false) != nullptr && pick_from_f64(to) != nullptr ? cast_by_f64 : nullptr;
}

}  // namespace elementwise
}  // namespace rlx
