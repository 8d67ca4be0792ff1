// norm_body.h: LayerNorm, RmsNorm and Softmax of f32, f16 and bf16 in f32 lanes. Text for the anonymous namespace of an instruction set,
// after vec_math.h and forms.h.

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

// The f64 total of f over n elements. f takes a vector and how many lanes of it count.
template <class F, class Fn> RLX_FN double sum_row(const Call &c, const typename F::T *x, int64_t n, Fn f) {
  const vf zero = splat<vf>(0.0);
  double s = 0;
  for (int64_t at = 0; at < n && !leave_row(c, at); at += SUM_BLOCK) {
    const int64_t end = at + SUM_BLOCK < n ? at + SUM_BLOCK : n;
    vf t[4] = {zero, zero, zero, zero};
    int64_t i = at;
    for (; i + 4 * LANES <= end; i += 4 * LANES) {
      t[0] = t[0] + f(F::get(x + i), LANES), t[1] = t[1] + f(F::get(x + i + LANES), LANES);
      t[2] = t[2] + f(F::get(x + i + 2 * LANES), LANES), t[3] = t[3] + f(F::get(x + i + 3 * LANES), LANES);
    }
    for (; i + LANES <= end; i += LANES) t[0] = t[0] + f(F::get(x + i), LANES);
    if (const int left = int(end - i); left > 0) t[1] = t[1] + f(F::get_part(x + i, left), left);
    s += double(sum((t[0] + t[1]) + (t[2] + t[3])));
  }
  return s;
}

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
  vf mean, rest, inv;  // y = ((x - mean) - rest) * inv
};

// The mean is found as x[0] plus the mean of x - x[0], exact in a constant row, and then corrected by the mean of the deviations.
template <class F> Scale layer_scale(const Call &c, const typename F::T *x, int64_t n, double eps) {
  float first[LANES];
  store(first, F::get_part(x, 1));
  const vf zero = splat<vf>(0.0), origin = splat<vf>(first[0]);
  const double mean = first[0] + sum_row<F>(c, x, n, [=](vf v, int m) { return m == LANES ? v - origin : keep(v - origin, m, zero); }) / double(n);
  const vf center = splat<vf>(mean);
  const float rounded = float(mean);
  const double rest = sum_row<F>(c, x, n, [=](vf v, int m) { return m == LANES ? v - center : keep(v - center, m, zero); }) / double(n);
  const vf r = splat<vf>(rest);
  double square = sum_row<F>(c, x, n, [=](vf v, int m) {
    const vf d = (v - center) - r;
    return m == LANES ? d * d : keep(d * d, m, zero);
  });
  if (!in_range(square)) square = square_sum_f64<F>(c, x, n, double(rounded) + rest);
  return {center, r, splat<vf>(1.0 / ::sqrt(square / double(n) + eps))};
}

template <class F> Scale rms_scale(const Call &c, const typename F::T *x, int64_t n, double eps) {
  double square = sum_row<F>(c, x, n, [](vf v, int) { return v * v; });  // lanes beyond the row are 0
  if (!in_range(square)) square = square_sum_f64<F>(c, x, n, 0);
  return {splat<vf>(0.0), splat<vf>(0.0), splat<vf>(1.0 / ::sqrt(square / double(n) + eps))};
}

template <bool RMS> RLX_FN vf scaled(vf x, const Scale &s) {
  if (RMS) return x * s.inv;
  return ((x - s.mean) - s.rest) * s.inv;
}

template <class F, bool RMS, bool GAMMA, bool BETA>
void affine(const typename F::T *x, typename F::T *y, int64_t n, const Scale &scale, const typename F::T *gamma, const typename F::T *beta, bool past) {
  const Scale s = scale;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    vf v = scaled<RMS>(F::get(x + i), s);
    if (GAMMA) v = v * F::get(gamma + i);
    if (BETA) v = v + F::get(beta + i);
    put_row<F>(y + i, v, past);
  }
  if (const int left = int(n - i); left > 0) {
    vf v = scaled<RMS>(F::get_part(x + i, left), s);
    if (GAMMA) v = v * F::get_part(gamma + i, left);
    if (BETA) v = v + F::get_part(beta + i, left);
    F::put_part(y + i, v, left);
  }
}
template <class F, bool RMS> void affine_any(const typename F::T *x, typename F::T *y, int64_t n, const Scale &s, const typename F::T *gamma, const typename F::T *beta, bool past) {
  if (gamma != nullptr && beta != nullptr) return affine<F, RMS, true, true>(x, y, n, s, gamma, beta, past);
  if (gamma != nullptr) return affine<F, RMS, true, false>(x, y, n, s, gamma, beta, past);
  if (beta != nullptr) return affine<F, RMS, false, true>(x, y, n, s, gamma, beta, past);
  affine<F, RMS, false, false>(x, y, n, s, gamma, beta, past);
}

template <class F> void norm_rows(const Call &c, Range r) {
  typedef typename F::T T;
  const NormPlan p = norm_plan(c);
  T gammas[CHUNK], betas[CHUNK];
  const bool whole = (!c.has(1) || c.in(1).contiguous) && (!c.has(2) || c.in(2).contiguous);
  const bool past = p.dense && past_caches<F>(c, p.n);
  for (int64_t row = r.begin; row < r.end && !c.stopped(); row++) {
    const T *x = norm_row<T>(c, p, row);
    T *y = c.out_ptr<T>(0) + row * p.n;
    const Scale s = p.rms ? rms_scale<F>(c, x, p.n, p.eps) : layer_scale<F>(c, x, p.n, p.eps);
    const int64_t chunk = whole ? PIECE_OF_LINE : CHUNK;
    for (int64_t i = 0; i < p.n; i += chunk) {
      if (i > 0 && i % PIECE_OF_LINE == 0 && c.stopped()) return;
      const int64_t n = p.n - i < chunk ? p.n - i : chunk;
      const T *gamma = affine_chunk(c, 1, i, n, gammas), *beta = affine_chunk(c, 2, i, n, betas);
      if (p.rms) affine_any<F, true>(x + i, y + i, n, s, gamma, beta, past);
      else affine_any<F, false>(x + i, y + i, n, s, gamma, beta, past);
    }
  }
  if (past) std::atomic_thread_fence(std::memory_order_seq_cst);
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

// 2^(i / LOOKUP)
alignas(64) constexpr float ROOTS_16[16] = {1.0f, 1.04427378f, 1.09050773f, 1.13878863f, 1.18920712f, 1.24185781f, 1.29683955f, 1.35425555f,
                                            1.41421356f, 1.47682615f, 1.54221083f, 1.61049033f, 1.68179283f, 1.75625216f, 1.83400809f, 1.91520656f};
alignas(64) constexpr float ROOTS_8[8] = {1.0f, 1.09050773f, 1.18920712f, 1.29683955f, 1.41421356f, 1.54221083f, 1.68179283f, 1.83400809f};

// exp for x <= 0: 2^(n / LOOKUP) e^r by a table and a short polynomial, 0 for x < -87. 1.2 ULP; the wider
// steps of 8 entries take a square term that makes up for r^4 / 24.
RLX_FN vf exp_below(vf x) {
  if (LANES < 8) return exp(x);  // n has more bits than the reduction carries without a fused multiply-add
  constexpr double parts = LOOKUP;
  constexpr int shift = LOOKUP == 16 ? 19 : 20;  // the whole part of n / LOOKUP goes to the exponent
  const vf magic = splat<vf>(ROUND_MAGIC), t = fma(x, splat<vf>(LOG2_E * parts), magic), n = t - magic;
  const vf r = fma(n, splat<vf>(-LN2_LO / parts), fma(n, splat<vf>(-LN2_HI / parts), x));
  const vf q = r * poly(r, 1.0, LOOKUP == 16 ? 0.5 : 0.500065, 0.16666667);
  const vf root = from_bits(bits(lookup(LOOKUP == 16 ? ROOTS_16 : ROOTS_8, bits(t))) + (shl<shift>(bits(t)) & splat_i(-(1 << 23))));
  return select(lt(x, splat<vf>(-87.0)), splat<vf>(0.0), fma(root, q, root));
}

// A row of exponentials that is not scaled yet: y = e * inv.
template <class F> struct Unscaled {
  const float *e;
  typename F::T *y;
  vf inv;
};

// e = exp(x - top) of a row, and the f64 total of it. Without e (f16 and bf16 would lose digits) it is computed again when it is scaled.
// The row before, if any, is scaled beside it: stores past the caches take their time, which the exponentials fill.
template <class F> double exp_row(const Call &c, const typename F::T *x, float *e, int64_t n, vf top, const Unscaled<F> &before) {
  const vf zero = splat<vf>(0.0);
  double s = 0;
  for (int64_t at = 0; at < n && !leave_row(c, at); at += SUM_BLOCK) {
    const int64_t end = at + SUM_BLOCK < n ? at + SUM_BLOCK : n;
    vf a = zero, b = zero;
    int64_t i = at;
    for (; i + 2 * LANES <= end; i += 2 * LANES) {
      const vf u = exp_below(F::get(x + i) - top), v = exp_below(F::get(x + i + LANES) - top);
      a = a + u, b = b + v;
      if (F::DIRECT) store(e + i, u), store(e + i + LANES, v);
      if (F::DIRECT && before.y != nullptr) {
        put_row<F>(before.y + i, load(before.e + i) * before.inv, true);
        put_row<F>(before.y + i + LANES, load(before.e + i + LANES) * before.inv, true);
        __builtin_prefetch(x + n + i), __builtin_prefetch(x + n + i + LANES);
      }
    }
    for (; i < end; i += LANES) {
      const int left = int(end - i < LANES ? end - i : LANES);
      const vf u = keep(exp_below((left < LANES ? F::get_part(x + i, left) : F::get(x + i)) - top), left, zero);
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
template <class F> void scale_exps(const typename F::T *x, const float *e, typename F::T *y, int64_t n, vf top, vf inv, bool past) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) put_row<F>(y + i, (F::DIRECT ? load(e + i) : exp_below(F::get(x + i) - top)) * inv, past);
  if (const int left = int(n - i); left > 0)
    F::put_part(y + i, (F::DIRECT ? load_part(e + i, left) : exp_below(F::get_part(x + i, left) - top)) * inv, left);
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
  const vf inv = splat<vf>(1.0 / exp_row<F>(c, x, e, n, top, Unscaled<F>{nullptr, nullptr, top}));
  in_pieces(c, 0, n, [&](int64_t begin, int64_t end) { scale_exps<F>(x + begin, F::DIRECT ? e + begin : nullptr, y + begin, end - begin, top, inv, false); });
}

// Rows of at most HELD elements, a multiple of two vectors, that are written past the caches: their exponentials stay in the first-level cache.
constexpr int64_t HELD = 2048;
template <class F> void softmax_past(const Call &c, const typename F::T *x, int64_t x_side, typename F::T *y, int64_t rows, int64_t n) {
  alignas(64) float held[2][F::DIRECT ? HELD : 1];
  Unscaled<F> before = {nullptr, nullptr, splat<vf>(0.0)};
  for (int64_t i = 0; i < rows && !c.stopped(); i++, x += x_side, y += n) {
    float *e = held[i % 2];
    const double s = exp_row<F>(c, x, e, n, top_of<F>(c, x, n), before);
    before = {e, y, splat<vf>(1.0 / s)};
  }
  if (before.y != nullptr) scale_exps<F>(nullptr, before.e, before.y, n, before.inv, before.inv, true);
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
