// norm_body.h: LayerNorm, RmsNorm and Softmax of f32, f16 and bf16 in f32 lanes. Text for the anonymous namespace of an instruction set,
// after vec_math.h, forms.h and a power.

constexpr int64_t SUM_BLOCK = 64 * LANES;  // elements added up in f32 before they go to an f64 total: at most 16 a lane

// Whether to leave a row at element `at`, a multiple of SUM_BLOCK: asked once in a piece of it.
RLX_FN bool leave_row(const Call &c, int64_t at) { return at % PIECE_OF_LINE == PIECE_OF_LINE - SUM_BLOCK && c.stopped(); }

// Whether rows of y are written past the caches: see elementwise.h.
template <class F> bool past_caches(const Call &c, int64_t n) {
  return F::DIRECT && n % LANES == 0 && reinterpret_cast<uintptr_t>(c.out_data[0]) % 64 == 0 && elementwise::streams(c, 0);
}
RLX_FN void put_past(float *y, vf v) { stream(y, v); }
RLX_FN void put_past(uint16_t *, vf) {}
template <class F> RLX_FN void put_row(typename F::T *y, vf v, bool past) {
  if (F::DIRECT && past) put_past(y, v);
  else F::put(y, v);
}

struct Moments {
  double sum = 0, square = 0;
};
// Adds x - origin and its square, or for RMS the square alone, over n elements. beside(i) runs with each whole vector at element i.
template <class F, bool RMS, class B> RLX_FN Moments moments(const Call &c, const typename F::T *x, int64_t n, vf origin, const B &beside) {
  const vf zero = splat<vf>(0.0);
  Moments m;
  for (int64_t at = 0; at < n && !leave_row(c, at); at += SUM_BLOCK) {
    const int64_t end = at + SUM_BLOCK < n ? at + SUM_BLOCK : n;
    vf s[4] = {zero, zero, zero, zero}, q[4] = {zero, zero, zero, zero};
    auto add = [&](int k, vf d) {
      if (!RMS) s[k] = s[k] + d;
      q[k] = fma(d, d, q[k]);
    };
    int64_t i = at;
    for (; i + 4 * LANES <= end; i += 4 * LANES)
      for (int k = 0; k < 4; k++) {
        const vf v = F::get(x + i + k * LANES);
        add(k, RMS ? v : v - origin);
        beside(i + k * LANES);
      }
    for (; i + LANES <= end; i += LANES) {
      const vf v = F::get(x + i);
      add(0, RMS ? v : v - origin);
      beside(i);
    }
    if (const int left = int(end - i); left > 0) add(1, keep(RMS ? F::get_part(x + i, left) : F::get_part(x + i, left) - origin, left, zero));
    if (!RMS) m.sum += double(sum((s[0] + s[1]) + (s[2] + s[3])));
    m.square += double(sum((q[0] + q[1]) + (q[2] + q[3])));
  }
  return m;
}
struct Nothing {
  RLX_FN void operator()(int64_t) const {}
};

// f32 holds the square of every middling number. Outside of that the sum is taken again in f64.
RLX_FN bool in_range(double sum) { return sum > 1e-24 && sum < 1e36; }

template <class F> RLX_MATH double square_sum_f64(const Call &c, const typename F::T *x, int64_t n, double mean) {
  double s = 0;
  for (int64_t i = 0; i < n && !leave_row(c, i); i += LANES) {
    const int left = int(n - i < LANES ? n - i : LANES);
    float v[LANES];
    store(v, left < LANES ? F::get_part(x + i, left) : F::get(x + i));
    for (int k = 0; k < left; k++) s += (double(v[k]) - mean) * (double(v[k]) - mean);
  }
  return s;
}

struct Scale {
  vf mean, minus, inv;  // y = (x - mean) * inv + minus
};

// What the sums are taken about: the mean of the first elements, or the first where there are few, or their sum overflows. Exact in a constant
// row, which then has no variance.
template <class F> RLX_FN vf origin_of(const typename F::T *x, int64_t n) {
  float first[LANES];
  store(first, F::get_part(x, 1));
  if (n < 4 * LANES) return splat<vf>(first[0]);
  const float some = sum((F::get(x) + F::get(x + LANES)) + (F::get(x + 2 * LANES) + F::get(x + 3 * LANES))) / (4 * LANES);
  return splat<vf>(some - some == 0 ? some : first[0]);
}
RLX_FN double lane_of(vf v) {
  float t[LANES];
  store(t, v);
  return double(t[0]);
}

// The scale of a row from its sums about an origin. Where that is further from the mean than two standard deviations, which would cost digits,
// the sums are taken again about the mean. The mean goes in two parts, of which the second is what the first has lost to rounding.
template <class F> Scale layer_scale(const Call &c, const typename F::T *x, int64_t n, double eps, Moments m, vf origin) {
  const double count = double(n);
  if (!(m.sum * m.sum <= 4 * count * (m.square - m.sum * m.sum / count))) {
    origin = splat<vf>(lane_of(origin) + m.sum / count);
    m = moments<F, false>(c, x, n, origin, Nothing());
  }
  const double mean = lane_of(origin) + m.sum / count;
  double square = m.square - m.sum * m.sum / count;
  if (!in_range(square)) square = square_sum_f64<F>(c, x, n, mean);
  const double inv = 1.0 / ::sqrt(square / count + eps), rest = mean - double(float(mean));
  return {splat<vf>(mean), splat<vf>(-rest * inv), splat<vf>(inv)};
}
template <class F> Scale layer_scale(const Call &c, const typename F::T *x, int64_t n, double eps) {
  const vf origin = origin_of<F>(x, n);
  return layer_scale<F>(c, x, n, eps, moments<F, false>(c, x, n, origin, Nothing()), origin);
}

template <class F> Scale rms_scale(const Call &c, const typename F::T *x, int64_t n, double eps, double square) {
  if (!in_range(square)) square = square_sum_f64<F>(c, x, n, 0);
  return {splat<vf>(0.0), splat<vf>(0.0), splat<vf>(1.0 / ::sqrt(square / double(n) + eps))};
}

template <bool RMS> RLX_FN vf scaled(vf x, const Scale &s) { return RMS ? x * s.inv : fma(x - s.mean, s.inv, s.minus); }
template <bool GAMMA, bool BETA> RLX_FN vf shifted(vf v, vf gamma, vf beta) {
  if (GAMMA && BETA) return fma(v, gamma, beta);
  return GAMMA ? v * gamma : BETA ? v + beta : v;
}

template <class F, bool RMS, bool GAMMA, bool BETA>
void affine(const typename F::T *x, typename F::T *y, int64_t n, const Scale &scale, const typename F::T *gamma, const typename F::T *beta, bool past) {
  const Scale s = scale;
  const vf none = splat<vf>(0.0);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    put_row<F>(y + i, shifted<GAMMA, BETA>(scaled<RMS>(F::get(x + i), s), GAMMA ? F::get(gamma + i) : none, BETA ? F::get(beta + i) : none), past);
  if (const int left = int(n - i); left > 0)
    F::put_part(y + i, shifted<GAMMA, BETA>(scaled<RMS>(F::get_part(x + i, left), s), GAMMA ? F::get_part(gamma + i, left) : none,
                                           BETA ? F::get_part(beta + i, left) : none), left);
}
template <class F, bool RMS> void affine_any(const typename F::T *x, typename F::T *y, int64_t n, const Scale &s, const typename F::T *gamma, const typename F::T *beta) {
  if (gamma != nullptr && beta != nullptr) return affine<F, RMS, true, true>(x, y, n, s, gamma, beta, false);
  if (gamma != nullptr) return affine<F, RMS, true, false>(x, y, n, s, gamma, beta, false);
  if (beta != nullptr) return affine<F, RMS, false, true>(x, y, n, s, gamma, beta, false);
  affine<F, RMS, false, false>(x, y, n, s, gamma, beta, false);
}

template <class F, bool RMS> Scale row_scale(const Call &c, const NormPlan &p, const typename F::T *x) {
  if (RMS) return rms_scale<F>(c, x, p.n, p.eps, moments<F, true>(c, x, p.n, splat<vf>(0.0), Nothing()).square);
  return layer_scale<F>(c, x, p.n, p.eps);
}

// Rows of whole vectors, each scaled beside the sums of the next: what follows from sums takes its time, and so do stores past the caches.
template <class F, bool RMS, bool GAMMA, bool BETA>
void rows_beside(const Call &c, const NormPlan &p, Range r, const typename F::T *gamma, const typename F::T *beta, bool past) {
  const typename F::T *x = c.in_ptr<typename F::T>(0) + r.begin * p.n;
  typename F::T *y = c.out_ptr<typename F::T>(0) + r.begin * p.n;
  const vf none = splat<vf>(0.0);
  Scale s = row_scale<F, RMS>(c, p, x);
  for (int64_t row = r.begin + 1; row < r.end && !c.stopped(); row++, x += p.n, y += p.n) {
    const typename F::T *next = x + p.n;
    const vf origin = RMS ? none : origin_of<F>(next, p.n);
    const Scale now = s;
    const Moments m = moments<F, RMS>(c, next, p.n, origin, [&](int64_t i) {
      const vf v = shifted<GAMMA, BETA>(scaled<RMS>(F::get(x + i), now), GAMMA ? F::get(gamma + i) : none, BETA ? F::get(beta + i) : none);
      put_row<F>(y + i, v, past);
    });
    s = RMS ? rms_scale<F>(c, next, p.n, p.eps, m.square) : layer_scale<F>(c, next, p.n, p.eps, m, origin);
  }
  affine<F, RMS, GAMMA, BETA>(x, y, p.n, s, gamma, beta, past);
  if (past) std::atomic_thread_fence(std::memory_order_seq_cst);
}
template <class F, bool RMS>
void rows_beside_any(const Call &c, const NormPlan &p, Range r, const typename F::T *gamma, const typename F::T *beta, bool past) {
  if (gamma != nullptr && beta != nullptr) return rows_beside<F, RMS, true, true>(c, p, r, gamma, beta, past);
  if (gamma != nullptr) return rows_beside<F, RMS, true, false>(c, p, r, gamma, beta, past);
  if (beta != nullptr) return rows_beside<F, RMS, false, true>(c, p, r, gamma, beta, past);
  rows_beside<F, RMS, false, false>(c, p, r, gamma, beta, past);
}

constexpr int64_t ROW_BESIDE = 1 << 13;  // elements of rows that stay near while the next is read

template <class F> void norm_rows(const Call &c, Range r) {
  typedef typename F::T T;
  const NormPlan p = norm_plan(c);
  T gammas[CHUNK], betas[CHUNK];
  const bool whole = (!c.has(1) || c.in(1).contiguous) && (!c.has(2) || c.in(2).contiguous);
  if (whole && p.dense && p.n % LANES == 0 && p.n <= ROW_BESIDE && r.begin < r.end) {
    const T *gamma = affine_chunk(c, 1, 0, p.n, gammas), *beta = affine_chunk(c, 2, 0, p.n, betas);
    const bool past = past_caches<F>(c, p.n);
    return p.rms ? rows_beside_any<F, true>(c, p, r, gamma, beta, past) : rows_beside_any<F, false>(c, p, r, gamma, beta, past);
  }
  for (int64_t row = r.begin; row < r.end && !c.stopped(); row++) {
    const T *x = norm_row<T>(c, p, row);
    T *y = c.out_ptr<T>(0) + row * p.n;
    const Scale s = p.rms ? row_scale<F, true>(c, p, x) : row_scale<F, false>(c, p, x);
    const int64_t chunk = whole ? PIECE_OF_LINE : CHUNK;
    for (int64_t i = 0; i < p.n; i += chunk) {
      if (i > 0 && i % PIECE_OF_LINE == 0 && c.stopped()) return;
      const int64_t n = p.n - i < chunk ? p.n - i : chunk;
      const T *gamma = affine_chunk(c, 1, i, n, gammas), *beta = affine_chunk(c, 2, i, n, betas);
      if (p.rms) affine_any<F, true>(x + i, y + i, n, s, gamma, beta);
      else affine_any<F, false>(x + i, y + i, n, s, gamma, beta);
    }
  }
}

// ---- Softmax

// The greatest of n elements but for NaN, which the sum of the exponentials finds; -inf for none.
template <class F> vf row_top(const typename F::T *x, int64_t n) {
  const vf none = splat<vf>(-INFINITY);
  vf t[4] = {none, none, none, none};
  int64_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES)
    for (int k = 0; k < 4; k++) t[k] = raw_max(F::get(x + i + k * LANES), t[k]);
  for (; i + LANES <= n; i += LANES) t[0] = raw_max(F::get(x + i), t[0]);
  if (const int left = int(n - i); left > 0) t[1] = raw_max(keep(F::get_part(x + i, left), left, none), t[1]);
  return splat<vf>(hmax(raw_max(raw_max(t[0], t[1]), raw_max(t[2], t[3]))));
}

// 2^(i / 8), less i in the highest bits of the mantissa: what adds the whole part of n / 8 to the exponent adds that too.
alignas(64) constexpr float ROOTS_8[8] = {1, 0.982753873, 0.969603539, 0.960919797, 0.957106769, 0.958605409, 0.965896428, 0.979504049};

// exp of U vectors of x <= 0. 8 lanes: 2^(n / 8) e^r by a table and a short polynomial whose square term makes up for r^4 / 24, 0 for x < -87.
// 1.2 ULP. 4 lanes: n would have more bits than the reduction carries without a fused multiply-add.
template <int U> RLX_FN void exp_below(vf *x) {
  const vf magic = splat<vf>(ROUND_MAGIC), one = splat<vf>(1.0);
  vf t[U], r[U], q[U];
  for (int k = 0; k < U; k++) {
    if (LANES < 8) {
      x[k] = exp(x[k]);
      continue;
    }
    t[k] = fma(x[k], splat<vf>(LOG2_E * 8), magic);
    const vf n = t[k] - magic;
    r[k] = fma(n, splat<vf>(-LN2_LO / 8), fma(n, splat<vf>(-LN2_HI / 8), x[k]));
    q[k] = fma(splat<vf>(0.16666667), r[k], splat<vf>(0.500065));
  }
  for (int k = 0; k < U && LANES >= 8; k++) q[k] = r[k] * fma(q[k], r[k], one);
  for (int k = 0; k < U && LANES >= 8; k++) {
    const vf root = from_bits(bits(lookup(ROOTS_8, bits(t[k]))) + shl<20>(bits(t[k])));
    x[k] = select(lt(x[k], splat<vf>(-87.0)), splat<vf>(0.0), fma(root, q[k], root));
  }
}

// The greatest element of a row, and what its exponentials are taken from.
struct Top {
  vf off, power;  // exp(x - top) = 2^((x - off) log2(e) - power)
};
// 16 lanes: one of the two is 0. A small power changes all exponentials alike by being rounded, which drops out of quotients.
RLX_FN Top top_from(vf top) {
  const vf zero = splat<vf>(0.0);
  if (LANES != 16) return {top, zero};
  const vm small = lt(abs(top), splat<vf>(1024.0));
  return {select(small, zero, top), select(small, top * splat<vf>(LOG2_E), zero)};
}
template <int U> RLX_FN void exp_from(const Top &t, vf *x) {
  for (int k = 0; k < U; k++) x[k] = x[k] - t.off;
  if (LANES != 16) return exp_below<U>(x);
  for (int k = 0; k < U; k++) x[k] = power(fma(x[k], splat<vf>(LOG2_E), -t.power));
}
RLX_FN vf exp_from(const Top &t, vf x) {
  exp_from<1>(t, &x);
  return x;
}

// U vectors of exponentials, added to a and b in turns.
template <class F, int U> RLX_FN void exps_of(const typename F::T *x, float *e, const Top &top, vf &a, vf &b) {
  vf v[U];
  for (int k = 0; k < U; k++) v[k] = F::get(x + k * LANES);
  exp_from<U>(top, v);
  for (int k = 0; k < U; k += 2) {
    a = a + v[k], b = b + v[k + 1];
    if (F::DIRECT) store(e + k * LANES, v[k]), store(e + (k + 1) * LANES, v[k + 1]);
  }
}

// e = exp(x - top) of a row, and the f64 total of it. Without e (f16 and bf16 would lose digits) it is computed again when it is scaled.
// beside(i) runs with each pair of vectors, from element i on.
template <class F, class B> double exp_row(const Call &c, const typename F::T *x, float *e, int64_t n, vf greatest, B beside) {
  const Top top = top_from(greatest);
  const vf zero = splat<vf>(0.0);
  double s = 0;
  for (int64_t at = 0; at < n && !leave_row(c, at); at += SUM_BLOCK) {
    const int64_t end = at + SUM_BLOCK < n ? at + SUM_BLOCK : n;
    vf a = zero, b = zero;
    int64_t i = at;
    for (; i + 4 * LANES <= end; i += 4 * LANES) {
      exps_of<F, 4>(x + i, F::DIRECT ? e + i : nullptr, top, a, b);
      beside(i), beside(i + 2 * LANES);
    }
    for (; i + 2 * LANES <= end; i += 2 * LANES) {
      exps_of<F, 2>(x + i, F::DIRECT ? e + i : nullptr, top, a, b);
      beside(i);
    }
    for (; i < end; i += LANES) {
      const int left = int(end - i < LANES ? end - i : LANES);
      const vf u = keep(exp_from(top, left < LANES ? F::get_part(x + i, left) : F::get(x + i)), left, zero);
      a = a + u;
      if (!F::DIRECT) continue;
      if (left < LANES) store_part(e + i, u, left);
      else store(e + i, u);
    }
    s += double(sum(a + b));
  }
  return s;
}

// y = e * inv, or exp(x - top) * inv where there is no e.
template <class F> void scale_exps(const typename F::T *x, const float *e, typename F::T *y, int64_t n, vf greatest, vf inv, bool past) {
  const Top top = top_from(greatest);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) put_row<F>(y + i, (F::DIRECT ? load(e + i) : exp_from(top, F::get(x + i))) * inv, past);
  if (const int left = int(n - i); left > 0)
    F::put_part(y + i, (F::DIRECT ? load_part(e + i, left) : exp_from(top, F::get_part(x + i, left))) * inv, left);
}

template <class F> vf top_of(const Call &c, const typename F::T *x, int64_t n) {
  vf top = splat<vf>(-INFINITY);
  in_pieces(c, 0, n, [&](int64_t begin, int64_t end) { top = raw_max(row_top<F>(x + begin, end - begin), top); });
  return top;
}

// x may be y.
RLX_FN float *held_in(float *y) { return y; }
RLX_FN float *held_in(uint16_t *) { return nullptr; }
template <class F> void softmax_row(const Call &c, const typename F::T *x, typename F::T *y, int64_t n) {
  const vf top = top_of<F>(c, x, n);
  float *e = held_in(y);
  const vf inv = splat<vf>(1.0 / exp_row<F>(c, x, e, n, top, Nothing()));
  in_pieces(c, 0, n, [&](int64_t begin, int64_t end) { scale_exps<F>(x + begin, F::DIRECT ? e + begin : nullptr, y + begin, end - begin, top, inv, false); });
}

// Where in `held` the exponentials of row i, x, go. The processor compares the lowest 12 bits of addresses first, and a load waits for an
// earlier store to what may be its place: so they lie as x does, or half a page from it.
constexpr int64_t HELD = 2048, PAGE = 1024;
RLX_FN float *place_held(float *held, int64_t i, const float *x) {
  return held + i % 2 * (HELD + PAGE + PAGE / 2) + reinterpret_cast<uintptr_t>(x) / 64 * 16 % PAGE;
}
RLX_FN float *place_held(float *, int64_t, const uint16_t *) { return nullptr; }

// Rows of at most HELD elements, a multiple of two vectors, that are written past the caches: their exponentials stay in the first-level cache.
// Beside the exponentials of a row the one before is scaled, whose stores take their time, and the greatest of the next one is found.
template <class F> void softmax_past(const Call &c, const typename F::T *x, int64_t x_side, typename F::T *y, int64_t rows, int64_t n) {
  alignas(4 * PAGE) float held[F::DIRECT ? 2 * HELD + 3 * PAGE : 1];
  if (rows < 1) return;
  float *e = place_held(held, 0, x);
  vf inv = splat<vf>(1.0 / exp_row<F>(c, x, e, n, row_top<F>(x, n), Nothing()));
  vf top = row_top<F>(rows > 1 ? x + x_side : x, n);
  for (int64_t i = 1; i < rows && !c.stopped(); i++, y += n) {
    x += x_side;
    const typename F::T *next = i + 1 < rows ? x + x_side : x;
    float *const now = place_held(held, i, x);
    vf a = splat<vf>(-INFINITY), b = a;
    const double s = exp_row<F>(c, x, now, n, top, [&](int64_t j) {
      const vf u = load(e + j) * inv, v = load(e + j + LANES) * inv;
      a = raw_max(F::get(next + j), a), b = raw_max(F::get(next + j + LANES), b);
      put_row<F>(y + j, u, true), put_row<F>(y + j + LANES, v, true);
      __builtin_prefetch(next + x_side + j), __builtin_prefetch(next + x_side + j + LANES);
    });
    e = now;
    inv = splat<vf>(1.0 / s), top = splat<vf>(hmax(raw_max(a, b)));
  }
  scale_exps<F>(nullptr, e, y, n, inv, inv, true);
}

// The rows of m <= LANES neighbours, one a lane. side is the distance of neighbours in x, 1 in y.
template <class F> RLX_FN vf get_side(const typename F::T *x, int64_t side, int m) {
  if (side == 1) return m == LANES ? F::get(x) : F::get_part(x, m);
  typename F::T t[LANES] = {};
  gather_run(t, x, m, side);
  return F::get(t);
}
RLX_FN bool leave_lines(const Call &c, int64_t k) { return k % 4096 == 4095 && c.stopped(); }
template <class F> void softmax_columns(const Call &c, const typename F::T *x, int64_t side, typename F::T *y, int m, const Lines &l) {
  const int64_t n = l.length;
  vf top = splat<vf>(-INFINITY);
  for (int64_t k = 0; k < n && !leave_lines(c, k); k++) top = max(top, get_side<F>(x + k * l.x_step, side, m));
  vd s = splat<vd>(0.0);
  for (int64_t k = 0; k < n && !leave_lines(c, k); k++) {
    const vf e = exp(get_side<F>(x + k * l.x_step, side, m) - top);
    s = s + wide(e);
    if (!F::DIRECT) continue;
    if (m == LANES) F::put(y + k * l.y_step, e);
    else F::put_part(y + k * l.y_step, e, m);
  }
  const vf inv = narrow(splat<vd>(1.0) / s);
  for (int64_t k = 0; k < n && !leave_lines(c, k); k++) {
    const vf e = F::DIRECT ? get_side<F>(y + k * l.y_step, 1, m) : exp(get_side<F>(x + k * l.x_step, side, m) - top), v = e * inv;
    if (m == LANES) F::put(y + k * l.y_step, v);
    else F::put_part(y + k * l.y_step, v, m);
  }
}

template <class F> void softmax_lines(const Call &c, Range r) {
  typedef typename F::T T;
  const Lines l = lines_of(c.in(0), c.attrs<rlx_SoftmaxAttrs>().axis);
  // The way of summing goes by the axis, not by the step, which is 1 too where what lies behind the axis has one element.
  const bool rows = axis_of(c.attrs<rlx_SoftmaxAttrs>().axis, c.in(0)) == int(c.in(0).rank) - 1;
  const bool past = rows && l.x_step == 1 && l.length <= HELD && l.length % (2 * LANES) == 0 && past_caches<F>(c, l.length);
  for (Walk<2> w = l.walk(r.begin, r.end); w.next();)
    for (int64_t i = 0; i < w.n;) {
      if (c.stopped()) return;
      const T *x = c.in_ptr<T>(0) + w.at[0] + i * w.step[0];
      T *y = c.out_ptr<T>(0) + w.at[1] + i * w.step[1];
      if (past) {
        softmax_past<F>(c, x, w.step[0], y, w.n, l.length);
        break;
      }
      if (rows) {
        if (l.x_step != 1) in_pieces(c, 0, l.length, [&](int64_t begin, int64_t end) { gather_run(y + begin, x + begin * l.x_step, end - begin, l.x_step); });
        softmax_row<F>(c, l.x_step != 1 ? y : x, y, l.length);
        i++;
        continue;
      }
      const int m = l.y_step == 1 ? 1 : int(w.n - i < LANES ? w.n - i : LANES);
      softmax_columns<F>(c, x, w.step[0], y, m, l);
      i += m;
    }
  if (past) std::atomic_thread_fence(std::memory_order_seq_cst);
}
