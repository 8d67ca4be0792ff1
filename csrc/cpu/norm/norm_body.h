// norm_body.h: LayerNorm, RmsNorm and Softmax of f32, f16 and bf16 in f32 lanes. Text for the anonymous namespace of an instruction set,
// after vec_math.h and forms.h.

constexpr int64_t SUM_BLOCK = 64 * LANES;  // elements added up in f32 before they go to an f64 total: at most 16 a lane

// Whether to leave a row at element `at`, a multiple of SUM_BLOCK: asked once in a piece of it.
RLX_FN bool leave_row(const Call &c, int64_t at) { return at % PIECE_OF_LINE == PIECE_OF_LINE - SUM_BLOCK && c.stopped(); }

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
void affine(const typename F::T *x, typename F::T *y, int64_t n, const Scale &scale, const typename F::T *gamma, const typename F::T *beta) {
  const Scale s = scale;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    vf v = scaled<RMS>(F::get(x + i), s);
    if (GAMMA) v = v * F::get(gamma + i);
    if (BETA) v = v + F::get(beta + i);
    F::put(y + i, v);
  }
  if (const int left = int(n - i); left > 0) {
    vf v = scaled<RMS>(F::get_part(x + i, left), s);
    if (GAMMA) v = v * F::get_part(gamma + i, left);
    if (BETA) v = v + F::get_part(beta + i, left);
    F::put_part(y + i, v, left);
  }
}
template <class F, bool RMS> void affine_any(const typename F::T *x, typename F::T *y, int64_t n, const Scale &s, const typename F::T *gamma, const typename F::T *beta) {
  if (gamma != nullptr && beta != nullptr) return affine<F, RMS, true, true>(x, y, n, s, gamma, beta);
  if (gamma != nullptr) return affine<F, RMS, true, false>(x, y, n, s, gamma, beta);
  if (beta != nullptr) return affine<F, RMS, false, true>(x, y, n, s, gamma, beta);
  affine<F, RMS, false, false>(x, y, n, s, gamma, beta);
}

template <class F> void norm_rows(const Call &c, Range r) {
  typedef typename F::T T;
  const NormPlan p = norm_plan(c);
  T gammas[CHUNK], betas[CHUNK];
  const bool whole = (!c.has(1) || c.in(1).contiguous) && (!c.has(2) || c.in(2).contiguous);
  for (int64_t row = r.begin; row < r.end && !c.stopped(); row++) {
    const T *x = norm_row<T>(c, p, row);
    T *y = c.out_ptr<T>(0) + row * p.n;
    const Scale s = p.rms ? rms_scale<F>(c, x, p.n, p.eps) : layer_scale<F>(c, x, p.n, p.eps);
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

// y = exp(x - top) of a row, and the f64 total of it. f16 and bf16 would lose digits in y: there it is computed again when it is scaled.
template <class F> double exp_row(const Call &c, const typename F::T *x, typename F::T *y, int64_t n, vf top) {
  const vf zero = splat<vf>(0.0);
  double s = 0;
  for (int64_t at = 0; at < n && !leave_row(c, at); at += SUM_BLOCK) {
    const int64_t end = at + SUM_BLOCK < n ? at + SUM_BLOCK : n;
    vf a = zero, b = zero;
    int64_t i = at;
    for (; i + 2 * LANES <= end; i += 2 * LANES) {
      const vf u = exp(F::get(x + i) - top), v = exp(F::get(x + i + LANES) - top);
      a = a + u, b = b + v;
      if (F::DIRECT) F::put(y + i, u), F::put(y + i + LANES, v);
    }
    for (; i < end; i += LANES) {
      const int left = int(end - i < LANES ? end - i : LANES);
      const vf u = keep(exp((left < LANES ? F::get_part(x + i, left) : F::get(x + i)) - top), left, zero);
      a = a + u;
      if (!F::DIRECT) continue;
      if (left < LANES) F::put_part(y + i, u, left);
      else F::put(y + i, u);
    }
    s += double(sum(a + b));
  }
  return s;
}

// y = y * inv, or exp(x - top) * inv where y does not hold the exponentials.
template <class F> void scale_exps(const typename F::T *x, typename F::T *y, int64_t n, vf top, vf inv) {
  const typename F::T *e = F::DIRECT ? y : x;
  for (int64_t i = 0; i < n; i += LANES) {
    const int left = int(n - i < LANES ? n - i : LANES);
    vf v = left < LANES ? F::get_part(e + i, left) : F::get(e + i);
    if (!F::DIRECT) v = exp(v - top);
    if (left < LANES) F::put_part(y + i, v * inv, left);
    else F::put(y + i, v * inv);
  }
}

// x may be y.
template <class F> void softmax_row(const Call &c, const typename F::T *x, typename F::T *y, int64_t n) {
  vf top = splat<vf>(-INFINITY);
  in_pieces(c, 0, n, [&](int64_t begin, int64_t end) { top = max(top, splat<vf>(row_max<F>(x + begin, end - begin))); });
  const vf inv = splat<vf>(1.0 / exp_row<F>(c, x, y, n, top));
  in_pieces(c, 0, n, [&](int64_t begin, int64_t end) { scale_exps<F>(x + begin, y + begin, end - begin, top, inv); });
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
  for (Walk<2> w = l.walk(r.begin, r.end); w.next();)
    for (int64_t i = 0; i < w.n;) {
      if (c.stopped()) return;
      const T *x = c.in_ptr<T>(0) + w.at[0] + i * w.step[0];
      T *y = c.out_ptr<T>(0) + w.at[1] + i * w.step[1];
      if (l.y_step == 1) {
        if (l.x_step != 1) in_pieces(c, 0, l.length, [&](int64_t begin, int64_t end) { gather_run(y + begin, x + begin * l.x_step, end - begin, l.x_step); });
        softmax_row<F>(c, l.x_step != 1 ? y : x, y, l.length);
        i++;
        continue;
      }
      const int m = int(w.n - i < LANES ? w.n - i : LANES);
      softmax_columns<F>(c, x, w.step[0], y, m, l);
      i += m;
    }
}
