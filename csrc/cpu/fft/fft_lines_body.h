// fft_lines_body.h: lines of the operand and the result, and all that is done to one: V is a number, or a vector with a line in each lane. See
// fft_body.h.

// Numbers in memory: E is the type of an element.
template <class T, class E> RLX_FN T number(E v) { return T(v); }
struct f16_bits { uint16_t b; };
struct bf16_bits { uint16_t b; };
template <class T> RLX_FN T number(f16_bits v) { return T(elementwise::f64_from_f16(v.b)); }
template <class T> RLX_FN T number(bf16_bits v) { return T(elementwise::f64_from_bf16(v.b)); }
RLX_FN void put(float *y, float v) { *y = v; }
RLX_FN void put(double *y, double v) { *y = v; }
RLX_FN void put(f16_bits *y, double v) { y->b = elementwise::f16_from_f64(v); }
RLX_FN void put(bf16_bits *y, double v) { y->b = elementwise::bf16_from_f64(v); }

template <class T, class E> constexpr bool same = false;
template <class T> constexpr bool same<T, T> = true;

// The lines of a vector, or one line. Lanes without a line do what the first one does.
template <class V, class T, class E> struct Group {
  static constexpr int L = int(sizeof(V) / sizeof(T));
  E *line[L];
  int count;
};

template <class V> RLX_FN void clear(const Call &c, Parts<V> z, int64_t from, int64_t to) {
  in_pieces(c, from, to, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) z.re[k] = z.im[k] = V{};
  });
}

// Elements `at`, at + step, ... of lines become z[0..n).
template <class V, class T, class E> void load_plain(const Call &c, const Group<V, T, const E> &g, int64_t at, int64_t step, int64_t n, V *z) {
  constexpr int L = Group<V, T, const E>::L;
  int64_t i = 0;
  if constexpr (L > 1 && same<T, E>)
    for (; step == 1 && i + L <= n; i += L) {
      V r[L];
#pragma GCC unroll 16
      for (int l = 0; l < L; l++) r[l] = load_vector<T>(g.line[l] + at + i);
      transpose<L>(r);
#pragma GCC unroll 16
      for (int l = 0; l < L; l++) z[i + l] = r[l];
    }
  T *to = reinterpret_cast<T *>(z);
  in_pieces(c, i, n, [&](int64_t begin, int64_t end) {
    for (int l = 0; l < L; l++) {
      const E *x = g.line[l] + at;
      if (step == 1) for (int64_t k = begin; k < end; k++) to[k * L + l] = number<T>(x[k]);
      else for (int64_t k = begin; k < end; k++) to[k * L + l] = number<T>(x[k * step]);
    }
  });
}

// The same of pairs of elements that lie together: n pairs, of which first ones become re and second ones im.
template <class V, class T, class E> void load_pairs(const Call &c, const Group<V, T, const E> &g, int64_t n, Parts<V> z) {
  constexpr int L = Group<V, T, const E>::L;
  int64_t i = 0;
  if constexpr (L > 1 && same<T, E>)
    for (; i + L / 2 <= n; i += L / 2) {
      V r[L];
#pragma GCC unroll 16
      for (int l = 0; l < L; l++) r[l] = load_vector<T>(g.line[l] + 2 * i);
      transpose<L>(r);
#pragma GCC unroll 8
      for (int l = 0; l < L / 2; l++) z.re[i + l] = r[2 * l], z.im[i + l] = r[2 * l + 1];
    }
  T *re = reinterpret_cast<T *>(z.re), *im = reinterpret_cast<T *>(z.im);
  in_pieces(c, i, n, [&](int64_t begin, int64_t end) {
    for (int l = 0; l < L; l++) {
      const E *x = g.line[l];
      for (int64_t k = begin; k < end; k++) re[k * L + l] = number<T>(x[2 * k]), im[k * L + l] = number<T>(x[2 * k + 1]);
    }
  });
}

template <class V, class T, class E> void store_plain(const Call &c, const Group<V, T, E> &g, int64_t at, int64_t step, int64_t n, const V *z, T scale) {
  constexpr int L = Group<V, T, E>::L;
  int64_t i = 0;
  if constexpr (L > 1 && same<T, E>)
    for (; step == 1 && i + L <= n; i += L) {
      V r[L];
#pragma GCC unroll 16
      for (int l = 0; l < L; l++) r[l] = z[i + l] * scale;
      transpose<L>(r);
      for (int l = 0; l < g.count; l++) store_vector<T>(g.line[l] + at + i, r[l]);
    }
  const T *from = reinterpret_cast<const T *>(z);
  in_pieces(c, i, n, [&](int64_t begin, int64_t end) {
    for (int l = 0; l < g.count; l++) {
      E *y = g.line[l] + at;
      if (step == 1) for (int64_t k = begin; k < end; k++) put(y + k, from[k * L + l] * scale);
      else for (int64_t k = begin; k < end; k++) put(y + k * step, from[k * L + l] * scale);
    }
  });
}

template <class V, class T, class E> void store_pairs(const Call &c, const Group<V, T, E> &g, int64_t n, Parts<V> z, T scale) {
  constexpr int L = Group<V, T, E>::L;
  int64_t i = 0;
  if constexpr (L > 1 && same<T, E>)
    for (; i + L / 2 <= n; i += L / 2) {
      V r[L];
#pragma GCC unroll 8
      for (int l = 0; l < L / 2; l++) r[2 * l] = z.re[i + l] * scale, r[2 * l + 1] = z.im[i + l] * scale;
      transpose<L>(r);
      for (int l = 0; l < g.count; l++) store_vector<T>(g.line[l] + 2 * i, r[l]);
    }
  const T *re = reinterpret_cast<const T *>(z.re), *im = reinterpret_cast<const T *>(z.im);
  in_pieces(c, i, n, [&](int64_t begin, int64_t end) {
    for (int l = 0; l < g.count; l++) {
      E *y = g.line[l];
      for (int64_t k = begin; k < end; k++) put(y + 2 * k, re[k * L + l] * scale), put(y + 2 * k + 1, im[k * L + l] * scale);
    }
  });
}

// n complex numbers of lines of `of` entries.
template <class V, class T, class E>
void load_complex(const Call &c, const Plan &p, const Group<V, T, const E> &g, int64_t of, int64_t n, Parts<V> z) {
  const int64_t step = p.lines.x_step;
  if (!p.block && step == 1) return load_pairs<V, T, E>(c, g, n, z);  // c64 counts as two
  const int64_t wide = p.block ? step : 2 * step, im = p.block ? of * step : 1;
  load_plain<V, T, E>(c, g, 0, wide, n, z.re);
  load_plain<V, T, E>(c, g, im, wide, n, z.im);
}
template <class V, class T, class E> void store_complex(const Call &c, const Plan &p, const Group<V, T, E> &g, Parts<V> z, T scale) {
  const int64_t step = p.lines.y_step;
  if (!p.block && step == 1) return store_pairs<V, T, E>(c, g, p.give, z, scale);
  const int64_t wide = p.block ? step : 2 * step, im = p.block ? p.give * step : 1;
  store_plain<V, T, E>(c, g, 0, wide, p.give, z.re, scale);
  store_plain<V, T, E>(c, g, im, wide, p.give, z.im, scale);
}

// ---- chirps

// chirp[k] = exp(-pi i k^2 / length), and image the transform of its conjugate, over m. Bluestein 1970.
template <class T> void fill_chirp(const Call &c, const Plan &p, const Tables<T> &t, const Slot<T> &slot) {
  const Parts<T> x = slot.x;
  clear(c, x, 0, p.m);
  const RootsByNumber roots(2 * p.length);
  int64_t square = 0;  // k^2 mod 2 length
  for (int64_t k = 0; k < p.length; k++) {
    if (k % 8192 == 8191 && c.stopped()) return;
    double re, im;
    roots.at(square, &re, &im);
    t.chirp.re[k] = T(re), t.chirp.im[k] = T(im);
    x.re[k] = T(re), x.im[k] = T(-im);
    if (k > 0) x.re[p.m - k] = T(re), x.im[p.m - k] = T(-im);
    square = (square + 2 * k + 1) % (2 * p.length);
  }
  const Parts<T> z = by_passes<T, T>(c, p, t, slot, x, slot.y);
  const T over = T(1) / T(p.m);
  in_pieces(c, 0, p.m, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) t.image.re[k] = z.re[k] * over, t.image.im[k] = z.im[k] * over;
  });
}

// z = z * w over n numbers.
template <class V, class T> void multiply(const Call &c, Parts<V> z, Parts<T> w, int64_t n) {
  in_pieces(c, 0, n, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      const V u = z.re[k], v = z.im[k];
      const T a = w.re[k], b = w.im[k];
      z.re[k] = u * a - v * b, z.im[k] = u * b + v * a;
    }
  });
}

// The transform of the numbers in x as a convolution with the chirp.
template <class V, class T> Parts<V> convolve(const Call &c, const Plan &p, const Tables<T> &t, const Slot<T> &slot, Parts<V> x, Parts<V> y) {
  multiply(c, x, t.chirp, p.length);
  clear(c, x, p.length, p.m);
  Parts<V> z = by_passes<V, T>(c, p, t, slot, x, y);
  multiply(c, z, t.image, p.m);
  z = by_passes<V, T>(c, p, t, slot, z.swapped(), (z.re == x.re ? y : x).swapped()).swapped();
  multiply(c, z, t.chirp, p.length);
  return z;
}

// ---- halves: n real numbers x are n/2 complex ones z[k] = x[2k] + i x[2k+1]; with a = Z[k] and b = conj(Z[n/2 - k]) their transform is
// X[k] = (a + b) / 2 - i/2 exp(-2 pi i k / n) (a - b)

// X times scale, in x.
template <class V, class T> void part_bins(const Call &c, const Plan &p, const Tables<T> &t, Parts<V> z, Parts<V> x) {
  const T scale = T(p.scale), half = scale / 2;
  const int64_t h = p.length;
  x.re[0] = (z.re[0] + z.im[0]) * scale, x.im[0] = V{};
  x.re[h] = (z.re[0] - z.im[0]) * scale, x.im[h] = V{};
  in_pieces(c, 1, h, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      const V sr = z.re[k] + z.re[h - k], si = z.im[k] - z.im[h - k], dr = z.re[k] - z.re[h - k], di = z.im[k] + z.im[h - k];
      x.re[k] = (sr + (di * t.turns.re[k] + dr * t.turns.im[k])) * half;
      x.im[k] = (si + (di * t.turns.im[k] - dr * t.turns.re[k])) * half;
    }
  });
}

// The way back: twice Z out of X, of which z holds n/2 + 1 bins.
template <class V, class T> void join_bins(const Call &c, const Plan &p, const Tables<T> &t, Parts<V> z) {
  const int64_t h = p.length;
  const V first = z.re[0], last = z.re[h];
  z.re[0] = first + last, z.im[0] = first - last;
  in_pieces(c, 1, h / 2 + 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      const int64_t l = h - k;
      const V ar = z.re[k], ai = z.im[k], br = z.re[l], bi = z.im[l];
      // (a - conj b) exp(+2 pi i k / n), and the same of the other: its conjugate, negated
      const V dr = ar - br, di = ai + bi, or_ = dr * t.turns.re[k] + di * t.turns.im[k], oi = di * t.turns.re[k] - dr * t.turns.im[k];
      z.re[k] = (ar + br) - oi, z.im[k] = (ai - bi) + or_;
      z.re[l] = (ar + br) + oi, z.im[l] = (bi - ai) + or_;
    }
  });
}

// ---- a line

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// A line of real numbers, as many as the transform has or pairs of them as its numbers.
template <class V, class T, class E> void load_real(const Call &c, const Plan &p, const Group<V, T, const E> &g, Parts<V> z) {
  const int64_t n = least(p.have, p.n), step = p.lines.x_step;
  if (!p.half) {
    load_plain<V, T, E>(c, g, 0, step, n, z.re);
    clear(c, Parts<V>{z.im, z.im}, 0, n);
    return clear(c, z, n, p.n);
  }
  if (step == 1) {
    load_pairs<V, T, E>(c, g, n / 2, z);
  } else {
    load_plain<V, T, E>(c, g, 0, 2 * step, n / 2, z.re);
    load_plain<V, T, E>(c, g, step, 2 * step, n / 2, z.im);
  }
  if (n % 2 != 0) load_plain<V, T, E>(c, g, (n - 1) * step, 0, 1, z.re + n / 2), z.im[n / 2] = V{};
  clear(c, z, (n + 1) / 2, p.length);
}

// A line as the complex numbers that are transformed.
template <class V, class T, class E> void load_line(const Call &c, const Plan &p, const Tables<T> &t, const Group<V, T, const E> &g, Parts<V> z) {
  if (p.real_in) return load_real<V, T, E>(c, p, g, z);
  const int64_t bins = p.half ? p.length + 1 : p.real_out ? p.n / 2 + 1 : p.n, n = least(p.have, bins);
  load_complex<V, T, E>(c, p, g, p.have, n, z);
  clear(c, z, n, p.half ? bins : p.n);
  if (p.half) return join_bins<V, T>(c, p, t, z);
  if (!p.real_out) return;
  z.im[0] = V{};
  in_pieces(c, 1, n, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      if (2 * k == p.n) z.im[k] = V{};
      else z.re[p.n - k] = z.re[k], z.im[p.n - k] = -z.im[k];
    }
  });
}

template <class V, class T, class E>
void store_line(const Call &c, const Plan &p, const Tables<T> &t, const Group<V, T, E> &g, Parts<V> z, Parts<V> other) {
  const T scale = T(p.scale);
  if (p.half && p.real_in) return part_bins<V, T>(c, p, t, z, other), store_complex<V, T, E>(c, p, g, other, T(1));
  if (!p.real_out) return store_complex<V, T, E>(c, p, g, z, scale);
  const int64_t step = p.lines.y_step;
  if (!p.half) return store_plain<V, T, E>(c, g, 0, step, p.give, z.re, scale);
  if (step == 1) return store_pairs<V, T, E>(c, g, p.length, z, scale);
  store_plain<V, T, E>(c, g, 0, 2 * step, p.length, z.re, scale);
  store_plain<V, T, E>(c, g, step, 2 * step, p.length, z.im, scale);
}

template <class T> struct Job {
  const Call *c;
  Plan p;
  Layout l;
  Tables<T> t;
  int64_t at_once;  // lines of a unit of work
};

// Whether a line is cut in two as it lies in memory.
bool direct(const Plan &p) {
  return p.split && !p.chirp && !p.block && !p.real_in && !p.real_out && p.have >= p.n && p.lines.x_step == 1 && p.lines.y_step == 1;
}

template <class V, class T, class X, class Y> void transform_group(const Job<T> &j, const Slot<T> &slot, const Group<V, T, const X> &from, const Group<V, T, Y> &to) {
  const Call &c = *j.c;
  const Plan &p = j.p;
  if constexpr (sizeof(V) == sizeof(T) && same<T, X>)
    if (direct(p)) {
      if (p.inverse) return by_parts<T>(c, p, j.t, slot, Pairs<T, true>{from.line[0], to.line[0], T(p.scale)}, slot.y);
      return by_parts<T>(c, p, j.t, slot, Pairs<T, false>{from.line[0], to.line[0], T(p.scale)}, slot.y);
    }
  const Parts<V> a = slot.template part<V>(false), b = slot.template part<V>(true);
  load_line<V, T, X>(c, p, j.t, from, p.inverse ? a.swapped() : a);
  Parts<V> z = p.chirp ? convolve<V, T>(c, p, j.t, slot, a, b) : by_passes<V, T>(c, p, j.t, slot, a, b);
  const Parts<V> other = z.re == a.re || z.re == a.im ? b : a;
  store_line<V, T, Y>(c, p, j.t, to, p.inverse ? z.swapped() : z, other);
}

template <class T> Slot<T> slot_of(const Job<T> &j, int slot) {
  T *at = static_cast<T *>(j.c->scratch) + j.l.slots + slot * j.l.per_slot;
  const int64_t w = j.l.width;
  vector<T> *lane = reinterpret_cast<vector<T> *>(at + j.l.lanes);
  const int64_t n = j.l.wide / lanes<T>;
  return {parts(at, w), parts(at + 2 * w, w), parts(lane, n), parts(lane + 2 * n, n)};
}

// X and Y are elements of the operand and the result; a c64 is two of them.
template <class T, class X, class Y> void lines(void *ctx, int64_t begin, int64_t end, int slot_number) {
  constexpr int L = lanes<T>;
  const Job<T> &j = *static_cast<const Job<T> *>(ctx);
  const Plan &p = j.p;
  const Slot<T> slot = slot_of(j, slot_number);
  const int xs = !p.block && !p.real_in ? 2 : 1, ys = !p.block && !p.real_out ? 2 : 1;
  Group<vector<T>, T, const X> from = {};
  Group<vector<T>, T, Y> to = {};
  const auto flush = [&]() {
    const int n = from.count;
    from.count = to.count = 0;
    if constexpr (same<T, X>)
      if (4 * n >= L && j.at_once > 1) {
        for (int l = n; l < L; l++) from.line[l] = from.line[0];
        to.count = n;
        transform_group<vector<T>, T, X, Y>(j, slot, from, to);
        to.count = 0;
        return;
      }
    for (int l = 0; l < n && !j.c->stopped(); l++) transform_group<T, T, X, Y>(j, slot, {{from.line[l]}, 1}, {{to.line[l]}, 1});
  };
  end = least(end * j.at_once, p.lines.count);
  for (Walk<2> w = p.lines.walk(begin * j.at_once, end); w.next();)
    for (int64_t i = 0; i < w.n && !j.c->stopped(); i++) {
      from.line[from.count] = j.c->template in_ptr<X>(0) + xs * (w.at[0] + i * w.step[0]);
      to.line[from.count] = j.c->template out_ptr<Y>(0) + ys * (w.at[1] + i * w.step[1]);
      if (++from.count == L || j.at_once == 1) flush();
    }
  if (from.count > 0 && !j.c->stopped()) flush();
}

template <class T> Stages<T> stages_at(T *at, const Passes &p) {
  const int64_t next = (2 * p.n + MOST_LANES - 1) / MOST_LANES * MOST_LANES;
  return {parts(at, p.n), parts(at + next, p.n)};
}

template <class T> void transform(const Call &c, void (*fn)(void *, int64_t, int64_t, int)) {
  if (c.out(0).count == 0) return;
  Job<T> j = {&c, plan_of(*c.cmd), {}, {}, 1};
  const Plan &p = j.p;
  const Layout &l = j.l = layout_of(p, c.threads());
  T *at = static_cast<T *>(c.scratch);
  j.t = {stages_at(at + l.first, p.split ? p.first : p.whole), stages_at(at + l.second, p.second), parts(at + l.turned, p.m),
         parts(at + l.chirp, p.length), parts(at + l.image, p.m), parts(at + l.turns, p.length)};
  fill_stages(c, p.split ? p.first : p.whole, j.t.first);
  if (p.split) {
    fill_stages(c, p.second, j.t.second);
    const RootsByNumber roots(p.m);
    Turned<T> job = {&c, &roots, j.t.turned, p.second.n};
    c.parallel(p.first.n, 1 + 4096 / p.second.n, fill_turned<T>, &job);
  }
  if (p.half) fill_roots(c, j.t.turns, p.n, p.length);
  if (p.chirp) fill_chirp(c, p, j.t, slot_of(j, 0));
  if (!p.split && l.width <= 2 * MOST_AT_ONCE) j.at_once = lanes<T>;
  const int64_t units = (p.lines.count + j.at_once - 1) / j.at_once;
  c.parallel(units, 1 + 4096 / (p.m * j.at_once), fn, &j);
}

void fft_f32(const Call &c) {
  switch (c.in(0).dtype) {
    case RLX_F16: return transform<float>(c, lines<float, f16_bits, f16_bits>);
    case RLX_BF16: return transform<float>(c, lines<float, bf16_bits, bf16_bits>);
    default: return transform<float>(c, lines<float, float, float>);
  }
}
void fft_f64(const Call &c) { transform<double>(c, lines<double, double, double>); }
