// channel_body.h: LayerNorm2d, GroupNorm and BatchNormInference of f32, f16 and bf16. Text for the anonymous namespace of an instruction
// set, after norm_body.h.

template <class F> RLX_FN float value_of(const typename F::T *p) {
  float v[LANES];
  store(v, F::get_part(p, 1));
  return v[0];
}
// Entry i of an operand of one entry per channel, or what stands for an absent one.
template <class F> RLX_FN float entry(const Call &c, int operand, int64_t i, float absent) {
  return c.has(operand) ? value_of<F>(c.in_ptr<typename F::T>(operand) + i) : absent;
}

// y = ((x - mean) - rest) * inv * gamma + beta over n elements of one channel.
template <class F> void one_piece(const typename F::T *x, typename F::T *y, int64_t n, const Scale &scale, float gamma, float beta) {
  const Scale s = scale;
  const vf g = splat<vf>(gamma), b = splat<vf>(beta);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) F::put(y + i, scaled<false>(F::get(x + i), s) * g + b);
  if (const int left = int(n - i); left > 0) F::put_part(y + i, scaled<false>(F::get_part(x + i, left), s) * g + b, left);
}

template <class F> void one_channel(const Call &c, const typename F::T *x, typename F::T *y, int64_t n, const Scale &s, float gamma, float beta) {
  in_pieces(c, 0, n, [&](int64_t begin, int64_t end) { one_piece<F>(x + begin, y + begin, end - begin, s, gamma, beta); });
}

// Units are groups.
template <class F> void group_rows(const Call &c, Range r) {
  typedef typename F::T T;
  const ChannelPlan p = channel_plan(c);
  const int64_t channels = p.channels / p.groups, n = channels * p.points;
  for (int64_t u = r.begin; u < r.end && !c.stopped(); u++) {
    const T *x = c.in_ptr<T>(0) + u * n;
    T *y = c.out_ptr<T>(0) + u * n;
    const Scale s = layer_scale<F>(c, x, n, p.eps);
    const int64_t first = u % p.groups * channels;
    if (p.points == 1) {
      affine_any<F, false>(x, y, n, s, c.has(1) ? c.in_ptr<T>(1) + first : nullptr, c.has(2) ? c.in_ptr<T>(2) + first : nullptr);
      continue;
    }
    for (int64_t k = 0; k < channels && !c.stopped(); k++)
      one_channel<F>(c, x + k * p.points, y + k * p.points, p.points, s, entry<F>(c, 1, first + k, 1), entry<F>(c, 2, first + k, 0));
  }
}

// The positions of a block, with n lanes of the last vector of each channel: vectors of positions side by side, sums of each in f64 lanes.
template <class F> void side_block(const Call &c, const ChannelPlan &p, const typename F::T *x, typename F::T *y, int64_t n) {
  constexpr int V = SIDE / LANES;
  const int vectors = int((n + LANES - 1) / LANES), last = int(n - (vectors - 1) * LANES);
  auto get = [&](const typename F::T *from, int v) { return v + 1 < vectors || last == LANES ? F::get(from + v * LANES) : F::get_part(from + v * LANES, last); };
  vd mean[V], inv[V];
  const vd count = splat<vd>(double(p.channels));
  for (int v = 0; v < vectors; v++) mean[v] = inv[v] = splat<vd>(0.0);
  for (int64_t k = 0; k < p.channels; k++)
    for (int v = 0; v < vectors; v++) mean[v] = mean[v] + wide(get(x + k * p.points, v));
  for (int v = 0; v < vectors; v++) mean[v] = mean[v] / count;
  for (int64_t k = 0; k < p.channels; k++)
    for (int v = 0; v < vectors; v++) {
      const vd d = wide(get(x + k * p.points, v)) - mean[v];
      inv[v] = inv[v] + d * d;
    }
  for (int v = 0; v < vectors; v++) inv[v] = splat<vd>(1.0) / sqrt(inv[v] / count + splat<vd>(p.eps));
  for (int64_t k = 0; k < p.channels; k++) {
    const vf gamma = splat<vf>(entry<F>(c, 1, k, 1)), beta = splat<vf>(entry<F>(c, 2, k, 0));
    for (int v = 0; v < vectors; v++) {
      const vf s = narrow((wide(get(x + k * p.points, v)) - mean[v]) * inv[v]) * gamma + beta;
      typename F::T *to = y + k * p.points + v * LANES;
      if (v + 1 < vectors || last == LANES) F::put(to, s);
      else F::put_part(to, s, last);
    }
  }
}

// Units are blocks of positions.
template <class F> void sides_of(const Call &c, Range r) {
  typedef typename F::T T;
  const ChannelPlan p = channel_plan(c);
  for (int64_t u = r.begin; u < r.end && !c.stopped(); u++) {
    const int64_t first = u % sides(p) * SIDE, at = u / sides(p) * p.channels * p.points + first;
    side_block<F>(c, p, c.in_ptr<T>(0) + at, c.out_ptr<T>(0) + at, p.points - first < SIDE ? p.points - first : SIDE);
  }
}

// What BatchNormInference multiplies x - mean by.
template <class F> RLX_FN double factor_of(const Call &c, const ChannelPlan &p, int64_t k) {
  return double(entry<F>(c, 1, k, 1)) / ::sqrt(double(entry<F>(c, 4, k, 0)) + p.eps);
}

// Channels last: units are rows of them. The factors of a chunk of channels serve all rows.
template <class F> void batch_columns(const Call &c, const ChannelPlan &p, Range r) {
  typedef typename F::T T;
  float means[CHUNK], factors[CHUNK], betas[CHUNK];
  for (int64_t at = 0; at < p.channels; at += CHUNK) {
    const int64_t n = p.channels - at < CHUNK ? p.channels - at : CHUNK;
    for (int64_t k = 0; k < n; k++)
      means[k] = entry<F>(c, 3, at + k, 0), factors[k] = float(factor_of<F>(c, p, at + k)), betas[k] = entry<F>(c, 2, at + k, 0);
    for (int64_t u = r.begin; u < r.end && !c.stopped(); u++) {
      const T *x = c.in_ptr<T>(0) + u * p.channels + at;
      T *y = c.out_ptr<T>(0) + u * p.channels + at;
      int64_t i = 0;
      for (; i + LANES <= n; i += LANES) F::put(y + i, (F::get(x + i) - load(means + i)) * load(factors + i) + load(betas + i));
      if (const int left = int(n - i); left > 0)
        F::put_part(y + i, (F::get_part(x + i, left) - load_part(means + i, left)) * load_part(factors + i, left) + load_part(betas + i, left), left);
    }
  }
}

// Units are channels of items, or rows where channels are last.
template <class F> void batch_rows(const Call &c, Range r) {
  typedef typename F::T T;
  const ChannelPlan p = channel_plan(c);
  if (p.points == 1) return batch_columns<F>(c, p, r);
  for (int64_t u = r.begin; u < r.end && !c.stopped(); u++) {
    const int64_t k = u % p.channels;
    const Scale s = {splat<vf>(entry<F>(c, 3, k, 0)), splat<vf>(0.0), splat<vf>(factor_of<F>(c, p, k))};
    one_channel<F>(c, c.in_ptr<T>(0) + u * p.points, c.out_ptr<T>(0) + u * p.points, p.points, s, 1, entry<F>(c, 2, k, 0));
  }
}
