// Packing and depthwise sums, written once over the vector types. Text for the anonymous namespace of an instruction set, after
// vec_<isa>.h and step.h.

template <class F>
void columns(float *dst, int64_t dst_rs, const void *from, int64_t channel, int64_t count, const Segment *segments, int n, int64_t step, int zero) {
  const typename F::T *src = static_cast<const typename F::T *>(from);
  const vf none = splat<vf>(0.0);
  if (n == 1 && segments[0].len == 2 * LANES && segments[0].at == 0 && step == 1) {  // a whole panel
    src += segments[0].src;
    for (int64_t c = 0; c < count; c++, dst += dst_rs, src += channel) {
      const vf a = F::get(src), b = F::get(src + LANES);
      store(dst, a), store(dst + LANES, b);
    }
    return;
  }
  for (int64_t c = 0; c < count; c++, dst += dst_rs, src += channel) {
    for (int j = 0; j < zero; j += LANES) put_n(dst + j, none, zero - j < LANES ? zero - j : LANES);
    for (int s = 0; s < n; s++) {
      const Segment &g = segments[s];
      for (int j = 0; j < g.len; j += LANES) {
        const int m = g.len - j < LANES ? g.len - j : LANES;
        put_n(dst + g.at + j, get_step<F>(src + g.src + j * step, step, m), m);
      }
    }
  }
}

template <class F> void spread(float *dst, int h, const void *from, int64_t sk, int64_t k) {
  const typename F::T *src = static_cast<const typename F::T *>(from);
  for (int64_t kk = 0; kk < k; kk += LANES) {
    const int m = int(k - kk < LANES ? k - kk : LANES);
    float wide[LANES];
    put_n(wide, get_step<F>(src + kk * sk, sk, m), m);
    for (int i = 0; i < m; i++) dst[(kk + i) * h] = wide[i];
  }
}

// The planes of a patch: see plane.h. pad stands where there is no x.
template <class F> void lay(const Window &w, const Plane &p, const Patch &a, const void *channel, float pad, float *to) {
  const int64_t rows = a.rows + p.extra[1], step = w.stride[2] * w.xs[4];
  const vf none = splat<vf>(pad);
  auto fill = [=](float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) put_n(y + i, none, int(n - i < LANES ? n - i : LANES));
  };
  for (int64_t plane = 0; plane < w.kernel[0] * p.slots[1] * p.slots[2]; plane++, to += p.floats) {
    const int64_t kd = plane / (p.slots[1] * p.slots[2]), d = a.od * w.stride[0] + kd * w.dilation[0] - w.begin[0];
    const int64_t top = a.oh * w.stride[1] + start(w, 1, plane / p.slots[2] % p.slots[1]) - w.begin[1];
    const int64_t left = a.ow * w.stride[2] + start(w, 2, plane % p.slots[2]) - w.begin[2];
    int64_t j0 = left < 0 ? steps(-left, w.stride[2]) : 0, j1 = left < w.size[2] ? steps(w.size[2] - left, w.stride[2]) : 0;
    if (j1 > p.pitch) j1 = p.pitch;
    if (j0 > j1) j0 = j1;
    for (int64_t i = 0; i < rows; i++) {
      const int64_t h = top + i * w.stride[1];
      float *y = to + i * p.pitch;
      if (d < 0 || d >= w.size[0] || h < 0 || h >= w.size[1]) {
        fill(y, p.pitch);
        continue;
      }
      const typename F::T *x = static_cast<const typename F::T *>(channel) + d * w.xs[2] + h * w.xs[3] + left * w.xs[4];
      fill(y, j0);
      int64_t j = j0;
      if constexpr (sizeof(typename F::T) == sizeof(float)) {
        for (; j < j1 && step > 2; j++) y[j] = x[j * step];
      }
      for (; j < j1; j += LANES) {
        const int n = int(j1 - j < LANES ? j1 - j : LANES);
        put_n(y + j, get_step<F>(x + j * step, step, n), n);
      }
      fill(y + j1, p.pitch - j1);
    }
  }
}

template <class F> constexpr Form form() { return {int(sizeof(typename F::T)), columns<F>, spread<F>, put<F>, lay<F>}; }

template <int N> RLX_FN void depth_vectors(const float *x, const int64_t *offset, const float *k, int64_t taps, float *sums) {
  vf s[N];
  for (int v = 0; v < N; v++) s[v] = splat<vf>(0.0);
  for (int64_t t = 0; t < taps; t++) {
    const vf weight = splat<vf>(k[t]);
    for (int v = 0; v < N; v++) s[v] = fma(weight, load(x + offset[t] + v * LANES), s[v]);
  }
  for (int v = 0; v < N; v++) store(sums + v * LANES, s[v]);
}

// sums[i] = sum over t of k[t] * x[offset[t] + i], kernel positions ascending in one accumulator. Touches whole vectors.
void depth_sums(const float *x, const int64_t *offset, const float *k, int64_t taps, float *sums, int64_t n) {
  int64_t i = 0;
  for (; i + 8 * LANES <= n; i += 8 * LANES) depth_vectors<8>(x + i, offset, k, taps, sums + i);
  for (; i + 2 * LANES < n; i += 4 * LANES) depth_vectors<4>(x + i, offset, k, taps, sums + i);
  for (; i < n; i += LANES) depth_vectors<1>(x + i, offset, k, taps, sums + i);
}
