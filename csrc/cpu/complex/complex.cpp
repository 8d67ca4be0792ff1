// The kinds on c64: one pass over memory each.
#include "../core/rlx_begin.h"

#include "../core/kernel.h"

namespace rlx {
namespace complex {
namespace {

// Calls f(y, i, operands, steps, n) for each run of elements [begin, end) that the N operands cross evenly.
template <int N, class Fn> void runs(const Call &c, Range r, Fn f) {
  int64_t strides[N][RLX_MAX_RANK];
  for (int k = 0; k < N; k++) broadcast_strides(c.in(k), c.out(0), strides[k]);
  int64_t i = r.begin;
  for (Walk<N> w(c.out(0), strides, r.begin, r.end); w.next(); i += w.n) f(i, w);
}

}  // namespace

// Contract: two rounded squares and one rounded sum. Bound: 1.5 ULP.
void norm_sq_c64(const Call &c, Range r) {
  runs<1>(c, r, [&](int64_t i, const Walk<1> &w) {
    const float *z = c.in_ptr<float>(0) + 2 * w.at[0];
    float *y = c.out_ptr<float>(0) + i;
    for (int64_t k = 0, at = 0; k < w.n; k++, at += 2 * w.step[0]) y[k] = z[at] * z[at] + z[at + 1] * z[at + 1];
  });
}

// Contract: 2 g part in f64, which holds it, rounded once.
void norm_sq_backward_c64(const Call &c, Range r) {
  runs<2>(c, r, [&](int64_t i, const Walk<2> &w) {
    const float *z = c.in_ptr<float>(0) + 2 * w.at[0], *g = c.in_ptr<float>(1) + w.at[1];
    float *y = c.out_ptr<float>(0) + 2 * i;
    for (int64_t k = 0; k < w.n; k++) {
      const double twice = 2 * double(g[k * w.step[1]]), re = z[2 * k * w.step[0]], im = z[2 * k * w.step[0] + 1];
      y[2 * k] = float(twice * re);
      y[2 * k + 1] = float(twice * im);
    }
  });
}

// Contract: bits move, the sign bit of the imaginary part flips.
void conjugate_c64(const Call &c, Range r) {
  runs<1>(c, r, [&](int64_t i, const Walk<1> &w) {
    const uint64_t *z = c.in_ptr<uint64_t>(0) + w.at[0];
    uint64_t *y = c.out_ptr<uint64_t>(0) + i;
    for (int64_t k = 0; k < w.n; k++) y[k] = z[k * w.step[0]] ^ 0x8000000000000000ull;
  });
}

}  // namespace complex
}  // namespace rlx
