// pool_body.h: Pool of f32, f16 and bf16 in f32 lanes. Text for the anonymous namespace of an instruction set, after vec_<isa>.h and forms.h.
//
// Contract: max is exact, NaN propagates. Sums run over parts of a window in f32, and over their totals in f32, or in f64 where rows of a
// window are stretches of vectors. Bound: (32 + K / 32) eps sum |x| for windows of K elements.
#include "../conv/halve.h"

struct max_of {
  static RLX_FN vf start() { return splat<vf>(-INFINITY); }
  static RLX_FN vf join(vf a, vf b) { return max(a, b); }
  static RLX_FN vf end(vf a) { return a; }
};
struct sum_of {
  static RLX_FN vf start() { return splat<vf>(0.0); }
  static RLX_FN vf join(vf a, vf b) { return a + b; }
  static RLX_FN vf end(vf a) { return a + start(); }  // a sum of zeros is +0
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

// The rows of a window that lie in x, of which there is one at least.
template <class F> struct LineRows {
  const typename F::T *at[kLineRows] = {};
  int n = 0;

  LineRows(const Window &w, const Row &r, const typename F::T *x) {
    for (int64_t kd = r.d0; kd < r.d1; kd++)
      for (int64_t kh = r.h0; kh < r.h1; kh++) at[n++] = x + r.at(w, kd, kh);
  }
};

// line[i] = the rows at column i. N is their number, or 0 for any.
template <class F, class Fn, int N> RLX_FN void fill_line(const LineRows<F> &rows, float *line, int64_t columns) {
  const int n = N > 0 ? N : rows.n;
  if (columns < LANES) {
    vf a = F::get_part(rows.at[0], int(columns));
    for (int k = 1; k < n; k++) a = Fn::join(a, F::get_part(rows.at[k], int(columns)));
    return store(line, keep(a, int(columns), Fn::start()));
  }
  for (int64_t i = 0; i < columns; i += LANES) {
    if (i > columns - LANES) i = columns - LANES;  // some columns once more: they are the same again
    vf a = F::get(rows.at[0] + i);
    for (int k = 1; k < n; k++) a = Fn::join(a, F::get(rows.at[k] + i));
    store(line + i, a);
  }
}

// A vector of windows of k columns, S apart, the first of which starts at `line`.
template <class Fn, int S> RLX_FN vf along(const float *line, int64_t k) {
  if constexpr (S == 1) {
    vf a = load(line);
    for (int64_t t = 1; t < k; t++) a = Fn::join(a, load(line + t));
    return Fn::end(a);
  } else {
    vf in = load(line), far = load(line + LANES);
    vf a = halve<0>(in, far);
    if (k > 1) a = Fn::join(a, halve<1>(in, far));
    for (int64_t t = 2; t < k; t += 2) {
      in = load(line + t), far = load(line + t + LANES);
      a = Fn::join(a, halve<0>(in, far));
      if (t + 1 < k) a = Fn::join(a, halve<1>(in, far));
    }
    return Fn::end(a);
  }
}

// n results of a line. K is the length of a window, or 0 for any. Averages are divided by count * columns[i].
template <class F, class Fn, int S, int K> void line_results(const float *line, int64_t kernel, const float *columns, double count, typename F::T *y, int64_t n) {
  const int64_t k = K > 0 ? K : kernel;
  const vf c = splat<vf>(count);
  if (n < LANES) {
    const vf a = along<Fn, S>(line, k);
    return F::put_part(y, columns ? a / (c * load_part(columns, int(n))) : a, int(n));
  }
  for (int64_t i = 0; i < n; i += LANES) {
    if (i > n - LANES) i = n - LANES;
    const vf a = along<Fn, S>(line + i * S, k);
    F::put(y + i, columns ? a / (c * load(columns + i)) : a);
  }
}

template <class F, class Fn> void line_patch(const Job &j, const conv::Patch &a, float *lines) {
  typedef typename F::T T;
  const Plan &p = j.p;
  const Window &w = p.w;
  const bool three = w.kernel[2] == 3;
  const auto results = w.stride[2] == 1 ? (three ? line_results<F, Fn, 1, 3> : line_results<F, Fn, 1, 0>) : three ? line_results<F, Fn, 2, 3> : line_results<F, Fn, 2, 0>;
  const int64_t first = (a.channel * w.out[0] + a.od) * w.out[1] + a.oh;
  for (int64_t i = 0; i < a.rows; i++) {
    const Row r = row_of(p, first + i);
    const LineRows<F> rows(w, r, j.c->in_ptr<T>(0) + r.x);
    float *line = lines + i * j.plane.pitch + w.begin[2];
    if (rows.n == 3) fill_line<F, Fn, 3>(rows, line, w.size[2]);
    else fill_line<F, Fn, 0>(rows, line, w.size[2]);
  }
  const bool avg = p.fn == rlx_PoolFn_avg;
  for (int64_t i = 0; i < a.rows; i++) {
    const double count = avg ? double(counted(p, 0, a.od) * counted(p, 1, a.oh + i)) : 1;
    results(lines + i * j.plane.pitch, w.kernel[2], avg ? j.columns : nullptr, count, j.c->out_ptr<T>(0) + (first + i) * w.out[2], w.out[2]);
  }
}

template <class F> void line_patches(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  const bool max = j.p.fn == rlx_PoolFn_max;
  float *lines = j.slots + slot * slot_floats(j.plane);
  const vf padding = max ? max_of::start() : sum_of::start();
  for (int64_t i = 0; i < j.plane.total; i += LANES) store(lines + i, padding);
  for (int64_t u = begin; u < end && !j.c->stopped(); u++) (max ? line_patch<F, max_of> : line_patch<F, sum_of>)(j, conv::patch_of(j.p.w, j.plane, u), lines);
}

// Channels that are one window each.
template <class F> void whole_rows(void *ctx, int64_t begin, int64_t end, int) {
  typedef typename F::T T;
  const Job &j = *static_cast<const Job *>(ctx);
  const Window &w = j.p.w;
  const int64_t n = w.kernel[2];
  const double count = j.p.fn == rlx_PoolFn_avg ? double(n) : 1;
  const T *x = j.c->in_ptr<T>(0) + begin / w.channels * w.xs[0] + begin % w.channels * w.xs[1];
  int64_t channel = begin % w.channels;
  for (int64_t u = begin; u < end && !j.c->stopped(); u++) {
    const vf y = j.p.fn == rlx_PoolFn_max ? splat<vf>(row_max<F>(x, n)) : splat<vf>(run_sum<F>(x, n) / count);
    F::put_part(j.c->out_ptr<T>(0) + u, y, 1);
    x += w.xs[1];
    if (++channel == w.channels) channel = 0, x += w.xs[0] - w.channels * w.xs[1];
  }
}

template <class F> void pool_all(const Call &c, const conv::Form &form) {
  Job j;
  if (!start_job(c, form, &j)) return;
  if (j.p.whole) c.parallel(j.p.rows, j.grain, whole_rows<F>, &j);
  else if (j.p.lone) c.parallel(j.p.rows, j.grain, lone_rows<F>, &j);
  else c.parallel(conv::patches(j.p.w, j.plane, j.p.w.items * j.p.w.channels), j.grain, j.p.lines ? line_patches<F> : pool_patches<F>, &j);
}
