// pool_body.h: Pool of f32, f16 and bf16 in f32 lanes. Text for the anonymous namespace of an instruction set, after vec_<isa>.h and forms.h.
//
// Contract: max is exact, NaN propagates. Sums run over parts of a window in f32, and over their totals in f32, or in f64 where rows of a
// window are stretches of vectors. Bound: (32 + K / 32) eps sum |x| for windows of K elements.

struct max_of {
  static RLX_FN vf start() { return splat<vf>(-INFINITY); }
  static RLX_FN vf join(vf a, vf b) { return max(a, b); }
};
struct sum_of {
  static RLX_FN vf start() { return splat<vf>(0.0); }
  static RLX_FN vf join(vf a, vf b) { return a + b; }
};

constexpr int64_t PART = 32;  // positions of a window that are added up before they go to the total

template <class Fn, int N> RLX_FN void window_vectors(const Window &w, const float *x, const int64_t *offset, float *y) {
  vf all[N];
  for (int v = 0; v < N; v++) all[v] = Fn::start();
  for (int64_t t = 0; t < w.taps; t += PART) {
    const int64_t end = t + PART < w.taps ? t + PART : w.taps;
    vf part[N];
    for (int v = 0; v < N; v++) part[v] = load(x + offset[t] + v * LANES);
    for (int64_t k = t + 1; k < end; k++)
      for (int v = 0; v < N; v++) part[v] = Fn::join(part[v], load(x + offset[k] + v * LANES));
    for (int v = 0; v < N; v++) all[v] = Fn::join(all[v], part[v]);
  }
  for (int v = 0; v < N; v++) store(y + v * LANES, all[v]);
}

// y[i] of n windows that start at x + i. Touches whole vectors.
template <class Fn> void windows(const Window &w, const float *x, const int64_t *offset, float *y, int64_t n) {
  int64_t i = 0;
  for (; i + 2 * LANES < n; i += 4 * LANES) window_vectors<Fn, 4>(w, x + i, offset, y + i);
  for (; i < n; i += LANES) window_vectors<Fn, 1>(w, x + i, offset, y + i);
}

// y /= count * columns[i] for a row of n sums.
void divide(float *y, double count, const float *columns, int64_t n) {
  const vf c = splat<vf>(count);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) store(y + i, load(y + i) / (c * load(columns + i)));
  if (const int left = int(n - i); left > 0) store_part(y + i, load_part(y + i, left) / (c * load_part(columns + i, left)), left);
}

constexpr int64_t RUN_BLOCK = 64 * LANES;  // elements added up in f32 before they go to an f64 total

template <class F> double run_sum(const typename F::T *x, int64_t n) {
  double s = 0;
  for (int64_t at = 0; at < n; at += RUN_BLOCK) {
    const int64_t end = at + RUN_BLOCK < n ? at + RUN_BLOCK : n;
    vf a = splat<vf>(0.0), b = a, c = a, d = a;
    int64_t i = at;
    for (; i + 4 * LANES <= end; i += 4 * LANES) {
      a = a + F::get(x + i), b = b + F::get(x + i + LANES);
      c = c + F::get(x + i + 2 * LANES), d = d + F::get(x + i + 3 * LANES);
    }
    for (; i + LANES <= end; i += LANES) a = a + F::get(x + i);
    if (const int left = int(end - i); left > 0) b = b + F::get_part(x + i, left);
    s += double(sum((a + b) + (c + d)));
  }
  return s;
}

// A row of a window in which nothing lies together.
template <class F, class Fn> float far_row(const typename F::T *x, int64_t n, int64_t step) {
  vf s = Fn::start();
  for (int64_t k = 0; k < n; k++) s = Fn::join(s, F::get_part(x + k * step, 1));
  float v[LANES];
  store(v, s);
  return v[0];
}

template <class F> void lone(const Plan &p, const Row &r, const typename F::T *x, typename F::T *y, int64_t ow) {
  const Window &w = p.w;
  const int64_t step = w.dilation[2] * w.xs[4];
  int64_t k0, k1;
  inside(w, 2, ow, &k0, &k1);
  vf top = splat<vf>(-INFINITY);
  double all = 0;
  for (int64_t kd = r.d0; kd < r.d1; kd++)
    for (int64_t kh = r.h0; kh < r.h1; kh++) {
      const typename F::T *from = x + r.at(w, kd, kh) + (ow * w.stride[2] - w.begin[2] + k0 * w.dilation[2]) * w.xs[4];
      if (p.fn == rlx_PoolFn_max) top = max(top, splat<vf>(step == 1 ? row_max<F>(from, k1 - k0) : far_row<F, max_of>(from, k1 - k0, step)));
      else all += step == 1 ? run_sum<F>(from, k1 - k0) : double(far_row<F, sum_of>(from, k1 - k0, step));
    }
  if (p.fn == rlx_PoolFn_avg) all /= double(r.count * counted(p, 2, ow));
  F::put_part(y + ow, p.fn == rlx_PoolFn_max ? top : splat<vf>(all), 1);
}

template <class F> void lone_rows(void *ctx, int64_t begin, int64_t end, int) {
  typedef typename F::T T;
  const Job &j = *static_cast<const Job *>(ctx);
  const Window &w = j.p.w;
  for (int64_t u = begin; u < end && !j.c->stopped(); u++) {
    const Row r = row_of(j.p, u);
    for (int64_t ow = 0; ow < w.out[2]; ow++) lone<F>(j.p, r, j.c->in_ptr<T>(0) + r.x, j.c->out_ptr<T>(0) + u * w.out[2], ow);
  }
}

template <class F> void pool_patches(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  const Plan &p = j.p;
  const Window &w = p.w;
  const conv::Form &f = *j.form;
  const bool max = p.fn == rlx_PoolFn_max;
  float *planes = j.slots + slot * slot_floats(j.plane), *y = planes + j.plane.total;
  for (int64_t u = begin; u < end && !j.c->stopped(); u++) {
    const conv::Patch a = conv::patch_of(w, j.plane, u);
    const char *x = j.c->in_ptr<char>(0) + (a.channel / w.channels * w.xs[0] + a.channel % w.channels * w.xs[1]) * f.bytes;
    f.lay(w, j.plane, a, x, max ? -INFINITY : 0, planes);
    (max ? windows<max_of> : windows<sum_of>)(w, planes, j.offset, y, (a.rows - 1) * j.plane.pitch + a.cols);
    for (int64_t i = 0; i < a.rows; i++) {
      float *row = y + i * j.plane.pitch;
      if (p.fn == rlx_PoolFn_avg) divide(row, double(counted(p, 0, a.od) * counted(p, 1, a.oh + i)), j.columns + a.ow, a.cols);
      f.put(j.c->out_ptr<char>(0) + (((a.channel * w.out[0] + a.od) * w.out[1] + a.oh + i) * w.out[2] + a.ow) * f.bytes, row, a.cols);
    }
  }
}

template <class F> void pool_all(const Call &c, const conv::Form &form) {
  Job j;
  if (!start_job(c, form, &j)) return;
  if (j.p.lone) c.parallel(j.p.rows, j.grain, lone_rows<F>, &j);
  else c.parallel(conv::patches(j.p.w, j.plane, j.p.w.items * j.p.w.channels), j.grain, pool_patches<F>, &j);
}
