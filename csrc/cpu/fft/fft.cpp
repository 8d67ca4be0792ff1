// Fft: lengths, factors and memory.
#include "../core/rlx_begin.h"

#include "fft.h"

namespace rlx {
namespace fft {
namespace {

// The passes of length n; false where a prime factor is too large for one. As few passes as may be: eights, but for a last four or two of
// them, as 16 is 4 by 4.
bool factor(Passes *p, int64_t n) {
  p->n = n, p->count = 0;
  const auto add = [p, &n](int64_t f) { p->radix[p->count++] = int(f), n /= f; };
  while (n % 8 == 0 && n % 32 != 16) add(8);
  while (n % 4 == 0) add(4);
  for (int64_t f = 2; n > 1 && f <= MAX_PRIME; f++)
    while (n % f == 0) add(f);
  return n == 1;
}

// Cuts long transforms in two of about the same length; false for short ones, and where a part would not fill a vector.
bool split(Plan *p) {
  if (p->m <= MOST_AT_ONCE) return false;
  int64_t first = 1;
  for (int64_t f = MOST_LANES; f * f <= p->m; f++)
    if (p->m % f == 0) first = f;
  if (first < MOST_LANES) return false;
  return factor(&p->first, p->m / first) && factor(&p->second, first);
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
  p.m = p.length;
  if (!factor(&p.whole, p.m)) {
    p.chirp = true;
    p.m = smooth(2 * p.length - 1);
    factor(&p.whole, p.m);
  }
  p.split = split(&p);
  return p;
}

Layout layout_of(const Plan &p, int threads) {
  Layout l = {};
  int64_t at = 0;
  const auto take = [&at](int64_t numbers) {
    const int64_t here = at;
    at += (2 * numbers + MOST_LANES - 1) / MOST_LANES * MOST_LANES;
    return here;
  };
  const auto stages = [&take](int64_t n) {
    const int64_t here = take(n);
    take(n);
    return here;
  };
  l.first = stages(p.split ? p.first.n : p.m);
  if (p.split) l.second = stages(p.second.n), l.turned = take(p.m);
  if (p.chirp) l.chirp = take(p.length), l.image = take(p.m);
  if (p.half) l.turns = take(p.length);
  l.slots = at;
  l.width = p.m > p.length ? p.m : p.length + 1;  // bins of half a transform are one more
  l.width = (l.width + MOST_LANES - 1) / MOST_LANES * MOST_LANES;
  take(l.width), take(l.width);
  l.lanes = at - l.slots;
  const int64_t most = p.split ? (p.first.n > p.second.n ? p.first.n : p.second.n) : l.width <= 2 * MOST_AT_ONCE ? l.width : 0;
  l.wide = (most + 1) * MOST_LANES;
  take(l.wide), take(l.wide);
  l.per_slot = at - l.slots;
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
