// fft_body.h: the transforms, as loops that compilers turn into vectors. V is a number T, or a vector of numbers of as many lines, which has
// their bits: each of its lanes does what one line alone does. Text for the anonymous namespace of an instruction set, whose VECTOR is the
// bytes of its vectors.

template <class T> struct vector_of { typedef T type __attribute__((vector_size(VECTOR))); };

// Real and imaginary parts.
template <class V> struct Parts {
  V *re, *im;
  Parts swapped() const { return {im, re}; }
};
template <class T> RLX_FN Parts<T> parts(T *at, int64_t n) { return {at, at + n}; }

// Roots of 1, and the factors of passes.
template <class T> struct Stages {
  Parts<T> roots, twiddles;
};

// exp(-2 pi i k / n) for all k below count, in products of two roots.
template <class T> void fill_roots(const Call &c, Parts<T> r, int64_t n, int64_t count) {
  constexpr int64_t MOST = 1024;
  double low[MOST][2];
  int64_t step = 1;
  while (step < MOST && step * step < count) step *= 2;
  for (int64_t k = 0; k < step && k < count; k++) exact_root(k, n, &low[k][0], &low[k][1]);
  for (int64_t base = 0; base < count; base += step) {
    if (base % PIECE_OF_LINE == PIECE_OF_LINE - step && c.stopped()) return;
    double a, b;
    exact_root(base, n, &a, &b);
    const int64_t m = count - base < step ? count - base : step;
    for (int64_t k = 0; k < m; k++) {
      r.re[base + k] = T(a * low[k][0] - b * low[k][1]);
      r.im[base + k] = T(a * low[k][1] + b * low[k][0]);
    }
  }
}

// Transforms of R numbers in place.
template <class V> RLX_FN void turn2(V *re, V *im, int a, int b) {
  const V r = re[a], i = im[a];
  re[a] = r + re[b], im[a] = i + im[b];
  re[b] = r - re[b], im[b] = i - im[b];
}
template <class V, class T, int R> struct Turn;
template <class V, class T> struct Turn<V, T, 2> {
  static RLX_FN void run(V *re, V *im) { turn2(re, im, 0, 1); }
};
template <class V, class T> struct Turn<V, T, 3> {
  static RLX_FN void run(V *re, V *im) {
    const T h = T(0.86602540378443864676);
    const V sr = re[1] + re[2], si = im[1] + im[2], dr = h * (re[1] - re[2]), di = h * (im[1] - im[2]);
    const V mr = re[0] - T(0.5) * sr, mi = im[0] - T(0.5) * si;
    re[0] += sr, im[0] += si;
    re[1] = mr + di, im[1] = mi - dr;
    re[2] = mr - di, im[2] = mi + dr;
  }
};
template <class V, class T> struct Turn<V, T, 4> {
  static RLX_FN void run(V *re, V *im) {
    turn2(re, im, 0, 2);
    turn2(re, im, 1, 3);
    const V r = re[1], i = im[1], dr = re[2], di = im[2], er = im[3], ei = -re[3];  // e = -i (x1 - x3)
    re[1] = dr + er, im[1] = di + ei;
    re[2] = re[0] - r, im[2] = im[0] - i;
    re[0] += r, im[0] += i;
    re[3] = dr - er, im[3] = di - ei;
  }
};
template <class V, class T> struct Turn<V, T, 5> {
  static RLX_FN void run(V *re, V *im) {
    const T c1 = T(0.30901699437494742410), c2 = T(-0.80901699437494742410), s1 = T(0.95105651629515357212), s2 = T(0.58778525229247312917);
    const V ar = re[1] + re[4], ai = im[1] + im[4], br = re[2] + re[3], bi = im[2] + im[3];
    const V cr = re[1] - re[4], ci = im[1] - im[4], dr = re[2] - re[3], di = im[2] - im[3];
    const V mr = re[0] + c1 * ar + c2 * br, mi = im[0] + c1 * ai + c2 * bi, nr = re[0] + c2 * ar + c1 * br, ni = im[0] + c2 * ai + c1 * bi;
    const V pr = s1 * cr + s2 * dr, pi = s1 * ci + s2 * di, qr = s2 * cr - s1 * dr, qi = s2 * ci - s1 * di;
    re[0] += ar + br, im[0] += ai + bi;
    re[1] = mr + pi, im[1] = mi - pr;
    re[4] = mr - pi, im[4] = mi + pr;
    re[2] = nr + qi, im[2] = ni - qr;
    re[3] = nr - qi, im[3] = ni + qr;
  }
};
template <class V, class T> struct Turn<V, T, 8> {
  static RLX_FN void run(V *re, V *im) {
    const T h = T(0.70710678118654752440);
    V er[4] = {re[0], re[2], re[4], re[6]}, ei[4] = {im[0], im[2], im[4], im[6]};
    V odr[4] = {re[1], re[3], re[5], re[7]}, odi[4] = {im[1], im[3], im[5], im[7]};
    Turn<V, T, 4>::run(er, ei);
    Turn<V, T, 4>::run(odr, odi);
    const V r1 = h * (odr[1] + odi[1]), i1 = h * (odi[1] - odr[1]);
    const V r2 = odi[2], i2 = -odr[2];
    const V r3 = h * (odi[3] - odr[3]), i3 = -h * (odr[3] + odi[3]);
    const V wr[4] = {odr[0], r1, r2, r3}, wi[4] = {odi[0], i1, i2, i3};
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
      re[k] = er[k] + wr[k], im[k] = ei[k] + wi[k];
      re[k + 4] = er[k] - wr[k], im[k + 4] = ei[k] - wi[k];
    }
  }
};

// One pass: y[q + s (R p + k)] = w(p, k) * sum over j of x[q + s (p + m j)] exp(-2 pi i j k / R), with tables of m roots for each k > 0;
// w is 1 in the last pass, whose m is.
template <class V, class T> struct Pass {
  int64_t m, s;
  Parts<V> x, y;
  Parts<T> w, roots;  // roots of 1, R of them `step` apart
  int64_t step;
};
// The p and q that a call does.
struct Part {
  int64_t p0, p1, q0, q1;
};

// Calls f for the parts of a pass of radix r, whose work grows with its square.
template <class V, class T, class F> RLX_FN void in_parts(const Call &c, const Pass<V, T> &a, int r, const F &f) {
  const int64_t turns = ((1 << 18) / (r * r) + 63) & ~INT64_C(63);
  if (a.m * a.s <= turns) return f(Part{0, a.m, 0, a.s});
  const int64_t q = a.s < turns ? a.s : turns, p = (turns / q + 15) & ~INT64_C(15);
  for (int64_t p0 = 0; p0 < a.m; p0 += p)
    for (int64_t q0 = 0; q0 < a.s; q0 += q) {
      if (c.stopped()) return;
      f(Part{p0, a.m - p0 < p ? a.m : p0 + p, q0, a.s - q0 < q ? a.s : q0 + q});
    }
}

template <class V, class T, int R, bool LAST> void long_pass(const Pass<V, T> &a, const Part &part) {
  for (int64_t p = part.p0; p < part.p1; p++) {
    T wr[R], wi[R];
#pragma GCC unroll 8
    for (int k = 1; k < R && !LAST; k++) wr[k] = a.w.re[(k - 1) * a.m + p], wi[k] = a.w.im[(k - 1) * a.m + p];
    const V *__restrict xr = a.x.re + p * a.s, *__restrict xi = a.x.im + p * a.s;
    V *__restrict yr = a.y.re + R * p * a.s, *__restrict yi = a.y.im + R * p * a.s;
    const int64_t in = a.m * a.s, s = a.s;
    for (int64_t q = part.q0; q < part.q1; q++) {
      V re[R], im[R];
#pragma GCC unroll 8
      for (int j = 0; j < R; j++) re[j] = xr[q + j * in], im[j] = xi[q + j * in];
      Turn<V, T, R>::run(re, im);
      yr[q] = re[0], yi[q] = im[0];
#pragma GCC unroll 8
      for (int k = 1; k < R; k++) {
        if constexpr (LAST) yr[q + k * s] = re[k], yi[q + k * s] = im[k];
        else yr[q + k * s] = re[k] * wr[k] - im[k] * wi[k], yi[q + k * s] = re[k] * wi[k] + im[k] * wr[k];
      }
    }
  }
}

// The same where s is small: loops over p, a piece at a time.
template <class T, int R> void short_pass(const Pass<T, T> &a, const Part &part) {
  constexpr int PIECE = 16;
  T ur[R][PIECE], ui[R][PIECE];
  const int64_t in = a.m * a.s, s = a.s;
  for (int64_t q = part.q0; q < part.q1; q++)
    for (int64_t p = part.p0; p < part.p1; p += PIECE) {
      const int n = int(part.p1 - p < PIECE ? part.p1 - p : PIECE);
      const T *__restrict xr = a.x.re + q + p * s, *__restrict xi = a.x.im + q + p * s, *__restrict wr = a.w.re + p, *__restrict wi = a.w.im + p;
      for (int i = 0; i < n; i++) {
        T re[R], im[R];
#pragma GCC unroll 8
        for (int j = 0; j < R; j++) re[j] = xr[i * s + j * in], im[j] = xi[i * s + j * in];
        Turn<T, T, R>::run(re, im);
        ur[0][i] = re[0], ui[0][i] = im[0];
#pragma GCC unroll 8
        for (int k = 1; k < R; k++) {
          const T c = wr[(k - 1) * a.m + i], d = wi[(k - 1) * a.m + i];
          ur[k][i] = re[k] * c - im[k] * d, ui[k][i] = re[k] * d + im[k] * c;
        }
      }
      T *__restrict yr = a.y.re + q + R * p * s, *__restrict yi = a.y.im + q + R * p * s;
      for (int i = 0; i < n; i++)
#pragma GCC unroll 8
        for (int k = 0; k < R; k++) yr[(R * i + k) * s] = ur[k][i], yi[(R * i + k) * s] = ui[k][i];
    }
}

template <class V, class T, int R> void pass(const Call &c, const Pass<V, T> &a) {
  if (a.m == 1) return in_parts(c, a, R, [&](const Part &part) { long_pass<V, T, R, true>(a, part); });
  if constexpr (sizeof(V) == sizeof(T))
    if (a.s < 8) return in_parts(c, a, R, [&](const Part &part) { short_pass<T, R>(a, part); });
  in_parts(c, a, R, [&](const Part &part) { long_pass<V, T, R, false>(a, part); });
}

// A pass of any odd radix r, for a few q at a time: with a and b the sum and the difference of entries j and r - j, and c + i s a root of 1,
// those two add (c a - s b') + i (c a' + s b) to entry k, and the same with -s to entry r - k.
template <class V, class T> void any_pass(const Pass<V, T> &a, const Part &part, int r) {
  constexpr int Q = sizeof(V) > sizeof(T) ? 1 : 16;
  const int64_t in = a.m * a.s, s = a.s;
  const int half = r / 2;
  V ar[MAX_PRIME / 2][Q], ai[MAX_PRIME / 2][Q], br[MAX_PRIME / 2][Q], bi[MAX_PRIME / 2][Q];
  const auto part_of = [&](int64_t p, int64_t q0, int n) __attribute__((always_inline)) {
    const V *__restrict xr = a.x.re + p * s + q0, *__restrict xi = a.x.im + p * s + q0;
    V *__restrict yr = a.y.re + r * p * s + q0, *__restrict yi = a.y.im + r * p * s + q0;
    for (int q = 0; q < n; q++) yr[q] = xr[q], yi[q] = xi[q];
    for (int j = 0; j < half; j++)
      for (int q = 0; q < n; q++) {
        const int64_t u = q + (j + 1) * in, v = q + (r - 1 - j) * in;
        ar[j][q] = xr[u] + xr[v], ai[j][q] = xi[u] + xi[v], br[j][q] = xr[u] - xr[v], bi[j][q] = xi[u] - xi[v];
        yr[q] += ar[j][q], yi[q] += ai[j][q];
      }
    for (int k = 1; k <= half; k++) {
      V pr[Q], pi[Q], qr[Q], qi[Q];
      for (int q = 0; q < n; q++) pr[q] = xr[q], pi[q] = xi[q], qr[q] = qi[q] = V{};
      for (int j = 0, e = 0; j < half; j++) {
        e = e + k < r ? e + k : e + k - r;
        const T c = a.roots.re[e * a.step], d = a.roots.im[e * a.step];
        for (int q = 0; q < n; q++) pr[q] += c * ar[j][q], pi[q] += c * ai[j][q], qr[q] += d * bi[j][q], qi[q] += d * br[j][q];
      }
      const T *w = a.w.re + (k - 1) * a.m + p, *v = a.w.im + (k - 1) * a.m + p;
      const int64_t other = (r - 2 * k) * a.m;
      for (int q = 0; q < n; q++) {
        const V ur = pr[q] - qr[q], ui = pi[q] + qi[q], tr = pr[q] + qr[q], ti = pi[q] - qi[q];
        yr[q + k * s] = ur * *w - ui * *v, yi[q + k * s] = ur * *v + ui * *w;
        yr[q + (r - k) * s] = tr * w[other] - ti * v[other], yi[q + (r - k) * s] = tr * v[other] + ti * w[other];
      }
    }
  };
  for (int64_t p = part.p0; p < part.p1; p++) {
    int64_t q = part.q0;
    for (; q + Q <= part.q1; q += Q) part_of(p, q, Q);
    if (q < part.q1) part_of(p, q, int(part.q1 - q));
  }
}

// The transform of x, in x or y.
template <class V, class T> Parts<V> stockham(const Call &c, const Passes &p, const Stages<T> &t, Parts<V> x, Parts<V> y) {
  int64_t left = p.n, s = 1, used = 0;
  for (int i = 0; i < p.count && !c.stopped(); i++) {
    const int r = p.radix[i];
    const int64_t m = left / r;
    const Pass<V, T> a = {m, s, x, y, {t.twiddles.re + used, t.twiddles.im + used}, t.roots, p.n / r};
    switch (r) {
      case 2: pass<V, T, 2>(c, a); break;
      case 3: pass<V, T, 3>(c, a); break;
      case 4: pass<V, T, 4>(c, a); break;
      case 5: pass<V, T, 5>(c, a); break;
      case 8: pass<V, T, 8>(c, a); break;
      default: in_parts(c, a, r, [&](const Part &part) { any_pass<V, T>(a, part, r); }); break;
    }
    used += (r - 1) * m, left = m, s *= r;
    const Parts<V> z = x;
    x = y, y = z;
  }
  return x;
}

template <class T> void fill_stages(const Call &c, const Passes &p, const Stages<T> &t) {
  fill_roots(c, t.roots, p.n, p.n);
  int64_t left = p.n, s = 1, at = 0;
  for (int i = 0; i < p.count; i++) {
    const int64_t r = p.radix[i], m = left / r;
    for (int64_t k = 1; k < r; k++, at += m)
      in_pieces(c, 0, m, [&](int64_t begin, int64_t end) {
        for (int64_t q = begin; q < end; q++) t.twiddles.re[at + q] = t.roots.re[q * k * s], t.twiddles.im[at + q] = t.roots.im[q * k * s];
      });
    left = m, s *= r;
  }
}

#include "fft_split_body.h"
#include "fft_lines_body.h"
