// Integers of every width: they wrap, and every pair of operands has a result. Contract: q*b + r == a for div with mod and for floor_div
// with floor_mod; x/0 gives 0 with rest x, MIN/-1 gives MIN with rest 0.
#include "../core/rlx_begin.h"

#include "elementwise.h"

namespace rlx {
namespace elementwise {
namespace {

#include "../core/vec_generic.h"
#include "../core/vec_math.h"
#include "../core/scalar_gen.h"

template <class T> struct bits_of;  // the unsigned type of the same width
template <> struct bits_of<int8_t> { typedef uint8_t type; };
template <> struct bits_of<int16_t> { typedef uint16_t type; };
template <> struct bits_of<int32_t> { typedef uint32_t type; };
template <> struct bits_of<int64_t> { typedef uint64_t type; };
template <> struct bits_of<uint8_t> { typedef uint8_t type; };
template <> struct bits_of<uint16_t> { typedef uint16_t type; };
template <> struct bits_of<uint32_t> { typedef uint32_t type; };
template <> struct bits_of<uint64_t> { typedef uint64_t type; };

// Arithmetic in at least 32 unsigned bits, so that nothing overflows a signed type on the way, promotions included.
template <class T> struct wide_of { typedef typename bits_of<T>::type type; };
template <> struct wide_of<int8_t> { typedef uint32_t type; };
template <> struct wide_of<int16_t> { typedef uint32_t type; };
template <> struct wide_of<uint8_t> { typedef uint32_t type; };
template <> struct wide_of<uint16_t> { typedef uint32_t type; };

template <class T> struct Int {
  typedef typename wide_of<T>::type U;
  static constexpr bool SIGNED = T(-1) < T(0);
  static constexpr int BITS = 8 * int(sizeof(T));

  static T identity(T a) { return a; }
  static T round(T a) { return a; }
  static T floor(T a) { return a; }
  static T ceil(T a) { return a; }
  static T trunc(T a) { return a; }
  static T neg(T a) { return T(U(0) - U(a)); }
  static T bit_not(T a) { return T(~U(a)); }
  static T abs(T a) { return SIGNED && a < 0 ? neg(a) : a; }
  static T sign(T a) { return T((a > 0) - (SIGNED && a < 0)); }
  static T square(T a) { return mul(a, a); }
  static T relu(T a) { return max(a, 0); }
  static T relu6(T a) { return min(max(a, 0), 6); }

  static T add(T a, T b) { return T(U(a) + U(b)); }
  static T sub(T a, T b) { return T(U(a) - U(b)); }
  static T mul(T a, T b) { return T(U(a) * U(b)); }
  static T max(T a, T b) { return a < b ? b : a; }
  static T min(T a, T b) { return b < a ? b : a; }
  static T bit_and(T a, T b) { return T(a & b); }
  static T bit_or(T a, T b) { return T(a | b); }
  static T bit_xor(T a, T b) { return T(a ^ b); }
  static T div(T a, T b) {
    if (b == 0) return 0;
    if (SIGNED && b == T(-1)) return neg(a);  // MIN / -1 traps
    return T(a / b);
  }
  static T mod(T a, T b) {
    if (b == 0) return a;
    if (SIGNED && b == T(-1)) return 0;
    return T(a % b);
  }
  static bool steps_down(T r, T b) { return SIGNED && b != 0 && r != 0 && (r < 0) != (b < 0); }
  static T floor_div(T a, T b) { return sub(div(a, b), T(steps_down(mod(a, b), b))); }
  static T floor_mod(T a, T b) {
    const T r = mod(a, b);
    return steps_down(r, b) ? add(r, b) : r;
  }
  static T pow(T a, T b) {
    if (SIGNED && b < 0) return a == 1 || (a == T(-1) && (b & 1) == 0) ? T(1) : a == T(-1) ? a : T(0);
    U r = 1, x = U(a);
    for (uint64_t n = uint64_t(b); n != 0; n >>= 1) {
      if ((n & 1) != 0) r *= x;
      x *= x;
    }
    return T(r);
  }
  static bool in_range(T b) { return !(SIGNED && b < 0) && uint64_t(b) < uint64_t(BITS); }
  static T shl(T a, T b) { return in_range(b) ? T(U(a) << b) : T(0); }
  static T shr(T a, T b) { return in_range(b) ? T(a >> b) : SIGNED && a < 0 ? T(-1) : T(0); }

  static bool eq(T a, T b) { return a == b; }
  static bool ne(T a, T b) { return a != b; }
  static bool lt(T a, T b) { return a < b; }
  static bool le(T a, T b) { return a <= b; }
  static bool gt(T a, T b) { return a > b; }
  static bool ge(T a, T b) { return a >= b; }
};

template <class T, T (*F)(T)> void unary_loop(const Work &, const void *const *in, void *out, int64_t n) {
  const T *x = static_cast<const T *>(in[0]);
  T *y = static_cast<T *>(out);
  for (int64_t i = 0; i < n; i++) y[i] = F(x[i]);
}
template <class T, class Y, class R, R (*F)(T, T)> void pair_loop(const Work &, const void *const *in, void *out, int64_t n) {
  const T *a = static_cast<const T *>(in[0]), *b = static_cast<const T *>(in[1]);
  Y *y = static_cast<Y *>(out);
  for (int64_t i = 0; i < n; i++) y[i] = Y(F(a[i], b[i]));
}
template <class T> void fma_loop(const Work &, const void *const *in, void *out, int64_t n) {
  const T *a = static_cast<const T *>(in[0]), *b = static_cast<const T *>(in[1]), *c = static_cast<const T *>(in[2]);
  T *y = static_cast<T *>(out);
  for (int64_t i = 0; i < n; i++) y[i] = Int<T>::add(Int<T>::mul(a[i], b[i]), c[i]);
}
template <class T> void clamp_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  const T *x = static_cast<const T *>(in[0]), lo = T(w.lo), hi = T(w.hi);
  T *y = static_cast<T *>(out);
  for (int64_t i = 0; i < n; i++) y[i] = Int<T>::min(Int<T>::max(x[i], lo), hi);
}

template <class T> Loop unary_of(int fn) {
  switch (fn) {
#define RLX_CASE(f) case UNARY_##f: return unary_loop<T, Int<T>::f>;
    RLX_UNARY_INT_FNS(RLX_CASE)
#undef RLX_CASE
    default: return nullptr;
  }
}
template <class T> Loop binary_of(int fn) {
  switch (fn) {
#define RLX_CASE(f) case BINARY_##f: return pair_loop<T, T, T, Int<T>::f>;
    RLX_BINARY_INT_FNS(RLX_CASE)
#undef RLX_CASE
    default: return nullptr;
  }
}
template <class T> Loop compare_of(int fn) {
  switch (fn) {
#define RLX_CASE(f) case COMPARE_##f: return pair_loop<T, uint8_t, bool, Int<T>::f>;
    RLX_COMPARE_INT_FNS(RLX_CASE)
#undef RLX_CASE
    default: return nullptr;
  }
}

}  // namespace

#define RLX_BY_DTYPE(dtype, of)                 \
  switch (dtype) {                              \
    case RLX_I8: return of(int8_t);             \
    case RLX_I16: return of(int16_t);           \
    case RLX_I32: return of(int32_t);           \
    case RLX_I64: return of(int64_t);           \
    case RLX_U8: return of(uint8_t);            \
    case RLX_U16: return of(uint16_t);          \
    case RLX_U32: return of(uint32_t);          \
    case RLX_U64: return of(uint64_t);          \
    default: return nullptr;                    \
  }

Loop pick_unary_int(int fn, int dtype) {
#define RLX_OF(T) unary_of<T>(fn)
  RLX_BY_DTYPE(dtype, RLX_OF)
#undef RLX_OF
}
Loop pick_binary_int(int fn, int dtype) {
#define RLX_OF(T) binary_of<T>(fn)
  RLX_BY_DTYPE(dtype, RLX_OF)
#undef RLX_OF
}
Loop pick_compare_int(int fn, int dtype) {
#define RLX_OF(T) compare_of<T>(fn)
  RLX_BY_DTYPE(dtype, RLX_OF)
#undef RLX_OF
}
Loop pick_fma_int(int dtype) {
#define RLX_OF(T) fma_loop<T>
  RLX_BY_DTYPE(dtype, RLX_OF)
#undef RLX_OF
}
Loop pick_clamp_int(int dtype) {
#define RLX_OF(T) clamp_loop<T>
  RLX_BY_DTYPE(dtype, RLX_OF)
#undef RLX_OF
}

}  // namespace elementwise
}  // namespace rlx
