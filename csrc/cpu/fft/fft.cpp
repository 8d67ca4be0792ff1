// Fft: lengths, factors and memory.
#include "../core/rlx_begin.h"

#include "fft.h"

namespace rlx {
namespace fft {
namespace {

int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

// The passes of length m; false where a prime factor is too large for one.
bool factor(Plan *p, int64_t m) {
  p->m = m, p->passes = 0;
  if (m % 8 == 0) p->radix[p->passes++] = 8, m /= 8;  // once: it makes the inner loops of the next passes long
  for (; m % 4 == 0; m /= 4) p->radix[p->passes++] = 4;
  for (int64_t f = 2; m > 1 && f <= MAX_PRIME; f++)
    for (; m % f == 0; m /= f) p->radix[p->passes++] = int(f);
  return m == 1;
}

// The least length of at least `least` that short passes do.
int64_t smooth(int64_t least) {
  int64_t best = INT64_MAX;
  constexpr int64_t odds[] = {1, 3, 5, 9, 15};
  for (const int64_t odd : odds) {
    int64_t v = odd;
    while (v < least) v *= 2;
    best = min64(best, v);
  }
  return best;
}

double factor_of(int64_t norm, bool inverse, double n) {
  if (norm == rlx_FftNorm_ortho) return 1 / ::sqrt(n);
  return norm == (inverse ? rlx_FftNorm_backward : rlx_FftNorm_forward) ? 1 / n : 1;
}

template <class T> int32_t prepare_numbers(Prepare &prepare) {
  Command &c = *prepare.cmd;
  c.scratch = c.out[0].count == 0 ? 0 : layout_of(plan_of(c), prepare.max_threads).total * int64_t(sizeof(T));
  return RLX_OK;
}

}  // namespace

Plan plan_of(const Command &c) {
  const rlx_FftAttrs &a = *static_cast<const rlx_FftAttrs *>(c.attrs);
  Plan p;
  const int axis = axis_of(a.axis, c.in[0]);
  const bool real = a.real != 0;
  p.inverse = a.inverse != 0, p.block = a.layout == rlx_FftLayout_block;
  p.real_in = real && !p.inverse, p.real_out = real && p.inverse;
  p.have = c.in[0].dims[axis] / (p.block && !p.real_in ? 2 : 1);
  p.give = c.out[0].dims[axis] / (p.block && !p.real_out ? 2 : 1);
  p.n = a.n_fft != 0 ? a.n_fft : p.real_out ? 2 * (p.have - 1) : p.have;
  p.scale = factor_of(a.norm, p.inverse, double(p.n));
  p.lines = lines_of(c.in[0], a.axis, c.out[0].dims[axis]);
  p.half = real && p.n % 2 == 0 && p.n > 2;
  p.length = p.half ? p.n / 2 : p.n;
  if (!factor(&p, p.length)) {
    p.chirp = true;
    factor(&p, smooth(2 * p.length - 1));
  }
  return p;
}

Layout layout_of(const Plan &p, int threads) {
  Layout l = {};
  l.roots = 0;
  l.twiddles = l.roots + 2 * p.m;
  l.chirp = l.twiddles + 2 * p.m;
  l.image = l.chirp + (p.chirp ? 2 * p.length : 0);
  l.turns = l.image + (p.chirp ? 2 * p.m : 0);
  l.slots = l.turns + (p.half ? 2 * p.length : 0);
  l.width = p.m > p.length ? p.m : p.length + 1;  // bins of half a transform are one more
  l.per_slot = 4 * l.width;
  l.total = l.slots + threads * l.per_slot;
  return l;
}

void exact_root(int64_t k, int64_t n, double *re, double *im) {
  const bool below = 2 * k > n;  // the real axis, after the sign of the exponent
  if (below) k = n - k;
  int64_t whole = n;  // angles are k / whole turns
  const bool left = 4 * k > whole;
  if (left) k = whole - 2 * k, whole *= 2;
  const bool steep = 8 * k > whole;
  if (steep) k = whole - 4 * k, whole *= 4;
  const double a = 6.283185307179586476925 * double(k) / double(whole);
  double c = ::cos(a), s = ::sin(a);
  if (steep) {
    const double t = c;
    c = s, s = t;
  }
  *re = left ? -c : c, *im = below ? s : -s;
}

int32_t fft_f32_prepare(Prepare &prepare) { return prepare_numbers<float>(prepare); }
int32_t fft_f64_prepare(Prepare &prepare) { return prepare_numbers<double>(prepare); }

}  // namespace fft
}  // namespace rlx
