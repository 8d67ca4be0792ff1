// Functions of f64 and their gradients, one element at a time by libm: within the f32 bound of a function plus 1 ULP.
#include "../core/rlx_begin.h"

#include "elementwise.h"

namespace rlx {
namespace elementwise {
namespace {

#include "../core/vec_generic.h"
#include "../core/vec_math.h"
#include "../core/scalar_gen.h"

const double *f64_of(const void *const *in, int k) { return static_cast<const double *>(in[k]); }

#define RLX_UNARY_LOOP(name, type, call)                                        \
  void name(const Work &w, const void *const *in, void *out, int64_t n) {       \
    const double *x = f64_of(in, 0), alpha = w.alpha, beta = w.beta;            \
    type *y = static_cast<type *>(out);                                         \
    for (int64_t i = 0; i < n; i++) y[i] = type(call<double>(x[i], alpha, beta)); \
  }
#define RLX_BINARY_LOOP(name, type, call)                                       \
  void name(const Work &, const void *const *in, void *out, int64_t n) {        \
    const double *a = f64_of(in, 0), *b = f64_of(in, 1);                        \
    type *y = static_cast<type *>(out);                                         \
    for (int64_t i = 0; i < n; i++) y[i] = type(call<double>(a[i], b[i]));      \
  }
#define RLX_LOOP(f) RLX_UNARY_LOOP(unary_##f, double, fn_##f)
RLX_UNARY_FLOAT_FNS(RLX_LOOP)
#undef RLX_LOOP
#define RLX_LOOP(f) RLX_UNARY_LOOP(unary_##f, uint8_t, fn_##f)
RLX_UNARY_PREDICATE_FNS(RLX_LOOP)
#undef RLX_LOOP
#define RLX_LOOP(f) RLX_BINARY_LOOP(binary_##f, double, fn_##f)
RLX_BINARY_FLOAT_FNS(RLX_LOOP)
#undef RLX_LOOP
#define RLX_LOOP(f) RLX_BINARY_LOOP(compare_##f, uint8_t, fn_##f)
RLX_COMPARE_FLOAT_FNS(RLX_LOOP)
#undef RLX_LOOP
#define RLX_LOOP(f)                                                                        \
  void backward_##f(const Work &w, const void *const *in, void *out, int64_t n) {          \
    const double *x = f64_of(in, 0), *dy = f64_of(in, 1), alpha = w.alpha, beta = w.beta;  \
    double *y = static_cast<double *>(out);                                                \
    for (int64_t i = 0; i < n; i++) y[i] = bw_##f<double>(x[i], dy[i], alpha, beta);       \
  }
RLX_UNARY_DERIV_FNS(RLX_LOOP)
#undef RLX_LOOP

// As max and min apart, zeros of both signs included.
void clamp_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  const double *x = f64_of(in, 0), lo = w.alpha, hi = w.beta;
  double *y = static_cast<double *>(out);
  for (int64_t i = 0; i < n; i++) y[i] = fn_min<double>(fn_max<double>(x[i], lo), hi);
}

}  // namespace

Loop pick_clamp_f64() { return clamp_loop; }
Loop pick_unary_f64(int fn) {
  switch (fn) {
#define RLX_CASE(f) case UNARY_##f: return unary_##f;
    RLX_UNARY_FLOAT_FNS(RLX_CASE)
    RLX_UNARY_PREDICATE_FNS(RLX_CASE)
#undef RLX_CASE
    default: return nullptr;
  }
}
Loop pick_backward_f64(int fn) {
  switch (fn) {
#define RLX_CASE(f) case UNARY_##f: return backward_##f;
    RLX_UNARY_DERIV_FNS(RLX_CASE)
#undef RLX_CASE
    default: return nullptr;
  }
}
Loop pick_binary_f64(int fn) {
  switch (fn) {
#define RLX_CASE(f) case BINARY_##f: return binary_##f;
    RLX_BINARY_FLOAT_FNS(RLX_CASE)
#undef RLX_CASE
    default: return nullptr;
  }
}
Loop pick_compare_f64(int fn) {
  switch (fn) {
#define RLX_CASE(f) case COMPARE_##f: return compare_##f;
    RLX_COMPARE_FLOAT_FNS(RLX_CASE)
#undef RLX_CASE
    default: return nullptr;
  }
}

}  // namespace elementwise
}  // namespace rlx
