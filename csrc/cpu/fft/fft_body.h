// fft_body.h: the transforms, written as loops that compilers turn into vectors. Text for the anonymous namespace of an instruction set.

// Real and imaginary parts.
template <class T> struct Parts {
  T *re, *im;
  Parts swapped() const { return {im, re}; }
};
template <class T> RLX_FN Parts<T> parts(T *at, int64_t n) { return {at, at + n}; }

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
template <class T> RLX_FN void turn2(T *re, T *im, int a, int b) {
  const T r = re[a], i = im[a];
  re[a] = r + re[b], im[a] = i + im[b];
  re[b] = r - re[b], im[b] = i - im[b];
}
template <class T, int R> struct Turn;
template <class T> struct Turn<T, 2> {
  static RLX_FN void run(T *re, T *im) { turn2(re, im, 0, 1); }
};
template <class T> struct Turn<T, 3> {
  static RLX_FN void run(T *re, T *im) {
    const T h = T(0.86602540378443864676);
    const T sr = re[1] + re[2], si = im[1] + im[2], dr = h * (re[1] - re[2]), di = h * (im[1] - im[2]);
    const T mr = re[0] - T(0.5) * sr, mi = im[0] - T(0.5) * si;
    re[0] += sr, im[0] += si;
    re[1] = mr + di, im[1] = mi - dr;
    re[2] = mr - di, im[2] = mi + dr;
  }
};
template <class T> struct Turn<T, 4> {
  static RLX_FN void run(T *re, T *im) {
    turn2(re, im, 0, 2);
    turn2(re, im, 1, 3);
    const T r = re[1], i = im[1], dr = re[2], di = im[2], er = im[3], ei = -re[3];  // e = -i (x1 - x3)
    re[1] = dr + er, im[1] = di + ei;
    re[2] = re[0] - r, im[2] = im[0] - i;
    re[0] += r, im[0] += i;
    re[3] = dr - er, im[3] = di - ei;
  }
};
template <class T> struct Turn<T, 5> {
  static RLX_FN void run(T *re, T *im) {
    const T c1 = T(0.30901699437494742410), c2 = T(-0.80901699437494742410), s1 = T(0.95105651629515357212), s2 = T(0.58778525229247312917);
    const T ar = re[1] + re[4], ai = im[1] + im[4], br = re[2] + re[3], bi = im[2] + im[3];
    const T cr = re[1] - re[4], ci = im[1] - im[4], dr = re[2] - re[3], di = im[2] - im[3];
    const T mr = re[0] + c1 * ar + c2 * br, mi = im[0] + c1 * ai + c2 * bi, nr = re[0] + c2 * ar + c1 * br, ni = im[0] + c2 * ai + c1 * bi;
    const T pr = s1 * cr + s2 * dr, pi = s1 * ci + s2 * di, qr = s2 * cr - s1 * dr, qi = s2 * ci - s1 * di;
    re[0] += ar + br, im[0] += ai + bi;
    re[1] = mr + pi, im[1] = mi - pr;
    re[4] = mr - pi, im[4] = mi + pr;
    re[2] = nr + qi, im[2] = ni - qr;
    re[3] = nr - qi, im[3] = ni + qr;
  }
};
template <class T> struct Turn<T, 8> {
  static RLX_FN void run(T *re, T *im) {
    const T h = T(0.70710678118654752440);
    T er[4] = {re[0], re[2], re[4], re[6]}, ei[4] = {im[0], im[2], im[4], im[6]};
    T odr[4] = {re[1], re[3], re[5], re[7]}, odi[4] = {im[1], im[3], im[5], im[7]};
    Turn<T, 4>::run(er, ei);
    Turn<T, 4>::run(odr, odi);
    const T r1 = h * (odr[1] + odi[1]), i1 = h * (odi[1] - odr[1]);
    const T r2 = odi[2], i2 = -odr[2];
    const T r3 = h * (odi[3] - odr[3]), i3 = -h * (odr[3] + odi[3]);
    const T wr[4] = {odr[0], r1, r2, r3}, wi[4] = {odi[0], i1, i2, i3};
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
      re[k] = er[k] + wr[k], im[k] = ei[k] + wi[k];
      re[k + 4] = er[k] - wr[k], im[k + 4] = ei[k] - wi[k];
    }
  }
};

// One pass: y[q + s (R p + k)] = w(p, k) * sum over j of x[q + s (p + m j)] exp(-2 pi i j k / R), with tables of m roots for each k > 0.
template <class T> struct Pass {
  int64_t m, s;
  Parts<T> x, y, w;
};
// The p and q that a call does.
struct Part {
  int64_t p0, p1, q0, q1;
};

// Calls f for the parts of a pass of radix r, whose work grows with its square.
template <class T, class F> RLX_FN void in_parts(const Call &c, const Pass<T> &a, int r, const F &f) {
  const int64_t turns = ((1 << 18) / (r * r) + 63) & ~INT64_C(63);
  if (a.m * a.s <= turns) return f(Part{0, a.m, 0, a.s});
  const int64_t q = a.s < turns ? a.s : turns, p = (turns / q + 15) & ~INT64_C(15);
  for (int64_t p0 = 0; p0 < a.m; p0 += p)
    for (int64_t q0 = 0; q0 < a.s; q0 += q) {
      if (c.stopped()) return;
      f(Part{p0, a.m - p0 < p ? a.m : p0 + p, q0, a.s - q0 < q ? a.s : q0 + q});
    }
}

template <class T, int R> void long_pass(const Pass<T> &a, const Part &part) {
  for (int64_t p = part.p0; p < part.p1; p++) {
    T wr[R], wi[R];
#pragma GCC unroll 8
    for (int k = 1; k < R; k++) wr[k] = a.w.re[(k - 1) * a.m + p], wi[k] = a.w.im[(k - 1) * a.m + p];
    const T *__restrict xr = a.x.re + p * a.s, *__restrict xi = a.x.im + p * a.s;
    T *__restrict yr = a.y.re + R * p * a.s, *__restrict yi = a.y.im + R * p * a.s;
    const int64_t in = a.m * a.s, s = a.s;
    for (int64_t q = part.q0; q < part.q1; q++) {
      T re[R], im[R];
#pragma GCC unroll 8
      for (int j = 0; j < R; j++) re[j] = xr[q + j * in], im[j] = xi[q + j * in];
      Turn<T, R>::run(re, im);
      yr[q] = re[0], yi[q] = im[0];
#pragma GCC unroll 8
      for (int k = 1; k < R; k++) {
        yr[q + k * s] = re[k] * wr[k] - im[k] * wi[k];
        yi[q + k * s] = re[k] * wi[k] + im[k] * wr[k];
      }
    }
  }
}

// The same where s is small: loops over p, a piece at a time.
template <class T, int R> void short_pass(const Pass<T> &a, const Part &part) {
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
        Turn<T, R>::run(re, im);
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

template <class T, int R> RLX_FN void pass(const Call &c, const Pass<T> &a) {
  if (a.s < 8) in_parts(c, a, R, [&](const Part &part) { short_pass<T, R>(a, part); });
  else in_parts(c, a, R, [&](const Part &part) { long_pass<T, R>(a, part); });
}

// A pass of any radix r; unit holds the roots of its transform, `step` apart.
template <class T> void any_pass(const Pass<T> &a, const Part &part, int r, Parts<T> roots, int64_t step) {
  const int64_t in = a.m * a.s, s = a.s;
  for (int64_t p = part.p0; p < part.p1; p++) {
    const T *__restrict xr = a.x.re + p * s, *__restrict xi = a.x.im + p * s;
    for (int k = 0; k < r; k++) {
      T *__restrict yr = a.y.re + (r * p + k) * s, *__restrict yi = a.y.im + (r * p + k) * s;
      for (int64_t q = part.q0; q < part.q1; q++) yr[q] = xr[q], yi[q] = xi[q];
      for (int j = 1; j < r; j++) {
        const T c = roots.re[j * k % r * step], d = roots.im[j * k % r * step];
        for (int64_t q = part.q0; q < part.q1; q++) {
          const T u = xr[q + j * in], v = xi[q + j * in];
          yr[q] += u * c - v * d, yi[q] += u * d + v * c;
        }
      }
      if (k == 0) continue;
      const T c = a.w.re[(k - 1) * a.m + p], d = a.w.im[(k - 1) * a.m + p];
      for (int64_t q = part.q0; q < part.q1; q++) {
        const T u = yr[q], v = yi[q];
        yr[q] = u * c - v * d, yi[q] = u * d + v * c;
      }
    }
  }
}

template <class T> struct Tables {
  Parts<T> roots, twiddles, chirp, image, turns;
};

// The transform of x, in x or y.
template <class T> Parts<T> stockham(const Call &c, const Plan &p, const Tables<T> &t, Parts<T> x, Parts<T> y) {
  int64_t left = p.m, s = 1, used = 0;
  for (int i = 0; i < p.passes; i++) {
    const int r = p.radix[i];
    const int64_t m = left / r;
    const Pass<T> a = {m, s, x, y, {t.twiddles.re + used, t.twiddles.im + used}};
    switch (r) {
      case 2: pass<T, 2>(c, a); break;
      case 3: pass<T, 3>(c, a); break;
      case 4: pass<T, 4>(c, a); break;
      case 5: pass<T, 5>(c, a); break;
      case 8: pass<T, 8>(c, a); break;
      default: in_parts(c, a, r, [&](const Part &part) { any_pass<T>(a, part, r, t.roots, p.m / r); }); break;
    }
    used += (r - 1) * m, left = m, s *= r;
    const Parts<T> z = x;
    x = y, y = z;
  }
  return x;
}

template <class T> void fill_twiddles(const Call &c, const Plan &p, const Tables<T> &t) {
  int64_t left = p.m, s = 1, at = 0;
  for (int i = 0; i < p.passes; i++) {
    const int64_t r = p.radix[i], m = left / r;
    for (int64_t k = 1; k < r; k++, at += m)
      in_pieces(c, 0, m, [&](int64_t begin, int64_t end) {
        for (int64_t q = begin; q < end; q++) t.twiddles.re[at + q] = t.roots.re[q * k * s], t.twiddles.im[at + q] = t.roots.im[q * k * s];
      });
    left = m, s *= r;
  }
}

template <class T> void clear(const Call &c, Parts<T> z, int64_t from, int64_t to) {
  in_pieces(c, from, to, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) z.re[k] = z.im[k] = 0;
  });
}

// chirp[k] = exp(-pi i k^2 / length), and image the transform of its conjugate, over m. Bluestein 1970.
template <class T> void fill_chirp(const Call &c, const Plan &p, const Tables<T> &t, Parts<T> x, Parts<T> y) {
  clear(c, x, 0, p.m);
  int64_t square = 0;  // k^2 mod 2 length
  for (int64_t k = 0; k < p.length; k++) {
    if (k % 8192 == 8191 && c.stopped()) return;
    double re, im;
    exact_root(square, 2 * p.length, &re, &im);
    t.chirp.re[k] = T(re), t.chirp.im[k] = T(im);
    x.re[k] = T(re), x.im[k] = T(-im);
    if (k > 0) x.re[p.m - k] = T(re), x.im[p.m - k] = T(-im);
    square = (square + 2 * k + 1) % (2 * p.length);
  }
  const Parts<T> z = stockham(c, p, t, x, y);
  const T over = T(1) / T(p.m);
  in_pieces(c, 0, p.m, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) t.image.re[k] = z.re[k] * over, t.image.im[k] = z.im[k] * over;
  });
}

// z = z * w over n numbers.
template <class T> void multiply(const Call &c, Parts<T> z, Parts<T> w, int64_t n) {
  in_pieces(c, 0, n, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      const T u = z.re[k], v = z.im[k], a = w.re[k], b = w.im[k];
      z.re[k] = u * a - v * b, z.im[k] = u * b + v * a;
    }
  });
}

// The transform of the numbers in x as a convolution with the chirp.
template <class T> Parts<T> convolve(const Call &c, const Plan &p, const Tables<T> &t, Parts<T> x, Parts<T> y) {
  multiply(c, x, t.chirp, p.length);
  clear(c, x, p.length, p.m);
  Parts<T> z = stockham(c, p, t, x, y);
  multiply(c, z, t.image, p.m);
  z = stockham(c, p, t, z.swapped(), (z.re == x.re ? y : x).swapped()).swapped();
  multiply(c, z, t.chirp, p.length);
  return z;
}

// Numbers in memory: E is the type of an element.
template <class T, class E> RLX_FN T number(E v) { return T(v); }
struct f16_bits { uint16_t b; };
struct bf16_bits { uint16_t b; };
template <class T> RLX_FN T number(f16_bits v) { return T(elementwise::f64_from_f16(v.b)); }
template <class T> RLX_FN T number(bf16_bits v) { return T(elementwise::f64_from_bf16(v.b)); }
RLX_FN void put(float *y, double v) { *y = float(v); }
RLX_FN void put(double *y, double v) { *y = v; }
RLX_FN void put(f16_bits *y, double v) { y->b = elementwise::f16_from_f64(v); }
RLX_FN void put(bf16_bits *y, double v) { y->b = elementwise::bf16_from_f64(v); }

// A line of the operand as n complex numbers, its parts exchanged before an inverse transform: re and im say where parts go.
template <class T, class E> void load_line(const Call &c, const Plan &p, const E *x, int64_t step, Parts<T> z) {
  const int64_t most = p.real_out ? p.n / 2 + 1 : p.n, n = p.have < most ? p.have : most;
  const E *im = p.block ? x + p.have * step : x + 1;
  if (!p.block && !p.real_in) step *= 2;  // c64 counts as two
  in_pieces(c, 0, n, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) z.re[k] = number<T>(x[k * step]);
    if (p.real_in) for (int64_t k = begin; k < end; k++) z.im[k] = 0;
    else for (int64_t k = begin; k < end; k++) z.im[k] = number<T>(im[k * step]);
  });
  clear(c, z, n, p.n);
  if (!p.real_out) return;
  z.im[0] = 0;
  in_pieces(c, 1, n, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      if (2 * k == p.n) z.im[k] = 0;
      else z.re[p.n - k] = z.re[k], z.im[p.n - k] = -z.im[k];
    }
  });
}

template <class T, class E> void store_line(const Call &c, const Plan &p, Parts<T> z, E *y, int64_t step) {
  E *im = p.block ? y + p.give * step : y + 1;
  if (!p.block && !p.real_out) step *= 2;
  const T scale = T(p.scale);
  in_pieces(c, 0, p.give, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) put(y + k * step, z.re[k] * scale);
    if (!p.real_out) for (int64_t k = begin; k < end; k++) put(im + k * step, z.im[k] * scale);
  });
}

// Halves. n real numbers x are n/2 complex ones z[k] = x[2k] + i x[2k+1]; with a = Z[k] and b = conj(Z[n/2 - k]) their transform is
// X[k] = (a + b) / 2 - i/2 exp(-2 pi i k / n) (a - b).
template <class T, class E> void load_pairs(const Call &c, const Plan &p, const E *x, int64_t step, Parts<T> z) {
  const int64_t n = p.have < p.n ? p.have : p.n;
  in_pieces(c, 0, n / 2, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) z.re[k] = number<T>(x[2 * k * step]), z.im[k] = number<T>(x[(2 * k + 1) * step]);
  });
  int64_t k = n / 2;
  if (n % 2 != 0) z.re[k] = number<T>(x[(n - 1) * step]), z.im[k] = 0, k++;
  clear(c, z, k, p.length);
}

template <class T, class E> void store_bins(const Call &c, const Plan &p, const Tables<T> &t, Parts<T> z, E *y, int64_t step) {
  E *im = p.block ? y + p.give * step : y + 1;
  if (!p.block) step *= 2;
  const T scale = T(p.scale), half = scale / 2;
  const int64_t h = p.length;
  put(y, (z.re[0] + z.im[0]) * scale), put(im, T(0));
  put(y + h * step, (z.re[0] - z.im[0]) * scale), put(im + h * step, T(0));
  in_pieces(c, 1, h, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      const T sr = z.re[k] + z.re[h - k], si = z.im[k] - z.im[h - k], dr = z.re[k] - z.re[h - k], di = z.im[k] + z.im[h - k];
      put(y + k * step, (sr + (di * t.turns.re[k] + dr * t.turns.im[k])) * half);
      put(im + k * step, (si + (di * t.turns.im[k] - dr * t.turns.re[k])) * half);
    }
  });
}

// The way back: twice Z out of X, of which z holds n/2 + 1 bins.
template <class T> void join_bins(const Call &c, const Plan &p, const Tables<T> &t, Parts<T> z) {
  const int64_t h = p.length;
  const T first = z.re[0], last = z.re[h];
  z.re[0] = first + last, z.im[0] = first - last;
  in_pieces(c, 1, h / 2 + 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      const int64_t l = h - k;
      const T ar = z.re[k], ai = z.im[k], br = z.re[l], bi = z.im[l];
      // (a - conj b) exp(+2 pi i k / n), and the same of the other: its conjugate, negated
      const T dr = ar - br, di = ai + bi, or_ = dr * t.turns.re[k] + di * t.turns.im[k], oi = di * t.turns.re[k] - dr * t.turns.im[k];
      z.re[k] = (ar + br) - oi, z.im[k] = (ai - bi) + or_;
      z.re[l] = (ar + br) + oi, z.im[l] = (bi - ai) + or_;
    }
  });
}

template <class T, class E> void load_bins(const Call &c, const Plan &p, const E *x, int64_t step, Parts<T> z) {
  const int64_t bins = p.length + 1, n = p.have < bins ? p.have : bins;
  const E *im = p.block ? x + p.have * step : x + 1;
  if (!p.block) step *= 2;
  in_pieces(c, 0, n, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) z.re[k] = number<T>(x[k * step]), z.im[k] = number<T>(im[k * step]);
  });
  clear(c, z, n, bins);
}

template <class T, class E> void store_pairs(const Call &c, const Plan &p, Parts<T> z, E *y, int64_t step) {
  const T scale = T(p.scale);
  in_pieces(c, 0, p.length, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) put(y + 2 * k * step, z.re[k] * scale), put(y + (2 * k + 1) * step, z.im[k] * scale);
  });
}

template <class T> struct Job {
  const Call *c;
  Plan p;
  Layout l;
  Tables<T> t;
};

// X and Y are elements of the operand and the result; a c64 is two of them.
template <class T, class X, class Y> void lines(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job<T> &j = *static_cast<const Job<T> *>(ctx);
  const Call &c = *j.c;
  const Plan &p = j.p;
  T *buffer = static_cast<T *>(c.scratch) + j.l.slots + slot * j.l.per_slot;
  const Parts<T> a = parts(buffer, j.l.width), b = parts(buffer + 2 * j.l.width, j.l.width);
  const int xs = !p.block && !p.real_in ? 2 : 1, ys = !p.block && !p.real_out ? 2 : 1;
  for (Walk<2> w = p.lines.walk(begin, end); w.next();)
    for (int64_t i = 0; i < w.n && !c.stopped(); i++) {
      const X *from = c.in_ptr<X>(0) + xs * (w.at[0] + i * w.step[0]);
      Y *to = c.out_ptr<Y>(0) + ys * (w.at[1] + i * w.step[1]);
      const Parts<T> x = p.inverse ? a.swapped() : a;
      if (!p.half) load_line<T, X>(c, p, from, p.lines.x_step, x);
      else if (p.real_in) load_pairs<T, X>(c, p, from, p.lines.x_step, x);
      else load_bins<T, X>(c, p, from, p.lines.x_step, x), join_bins(c, p, j.t, x);
      Parts<T> z = p.chirp ? convolve(c, p, j.t, a, b) : stockham(c, p, j.t, a, b);
      if (p.inverse) z = z.swapped();
      if (!p.half) store_line<T, Y>(c, p, z, to, p.lines.y_step);
      else if (p.real_in) store_bins<T, Y>(c, p, j.t, z, to, p.lines.y_step);
      else store_pairs<T, Y>(c, p, z, to, p.lines.y_step);
    }
}

template <class T> void transform(const Call &c, void (*fn)(void *, int64_t, int64_t, int)) {
  if (c.out(0).count == 0) return;
  Job<T> j = {&c, plan_of(*c.cmd), {}, {}};
  j.l = layout_of(j.p, c.threads());
  T *at = static_cast<T *>(c.scratch);
  j.t = {parts(at + j.l.roots, j.p.m), parts(at + j.l.twiddles, j.p.m), parts(at + j.l.chirp, j.p.length), parts(at + j.l.image, j.p.m), parts(at + j.l.turns, j.p.length)};
  fill_roots(c, j.t.roots, j.p.m, j.p.m);
  if (j.p.half) fill_roots(c, j.t.turns, j.p.n, j.p.length);
  fill_twiddles(c, j.p, j.t);
  T *buffer = at + j.l.slots;
  if (j.p.chirp) fill_chirp(c, j.p, j.t, parts(buffer, j.l.width), parts(buffer + 2 * j.l.width, j.l.width));
  c.parallel(j.p.lines.count, 1 + 4096 / j.p.m, fn, &j);
}

void fft_f32(const Call &c) {
  switch (c.in(0).dtype) {
    case RLX_F16: return transform<float>(c, lines<float, f16_bits, f16_bits>);
    case RLX_BF16: return transform<float>(c, lines<float, bf16_bits, bf16_bits>);
    default: return transform<float>(c, lines<float, float, float>);
  }
}
void fft_f64(const Call &c) { transform<double>(c, lines<double, double, double>); }
