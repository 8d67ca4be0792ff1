// Packing and the depthwise row, written once over the vector types. Text for the anonymous namespace of an instruction set, after
// vec_<isa>.h; FUSED says whether its fma rounds once.

struct F32 {
  typedef float type;
  static RLX_FN vf get(const float *p) { return load(p); }
  static RLX_FN vf get_part(const float *p, int n) { return load_part(p, n); }
  static RLX_FN void put(float *p, vf x) { store(p, x); }
  static RLX_FN void put_part(float *p, vf x, int n) { store_part(p, x, n); }
};
struct F16 {
  typedef uint16_t type;
  static RLX_FN vf get(const uint16_t *p) { return load_f16(p); }
  static RLX_FN vf get_part(const uint16_t *p, int n) { return load_f16_part(p, n); }
  static RLX_FN void put(uint16_t *p, vf x) { store_f16(p, x); }
  static RLX_FN void put_part(uint16_t *p, vf x, int n) { store_f16_part(p, x, n); }
};
struct BF16 {
  typedef uint16_t type;
  static RLX_FN vf get(const uint16_t *p) { return load_bf16(p); }
  static RLX_FN vf get_part(const uint16_t *p, int n) { return load_bf16_part(p, n); }
  static RLX_FN void put(uint16_t *p, vf x) { store_bf16(p, x); }
  static RLX_FN void put_part(uint16_t *p, vf x, int n) { store_bf16_part(p, x, n); }
};

// p[0], p[2], ...: the second load starts one element early, so as not to pass the last one.
template <class V> RLX_FN V get_second(const float *p) {
  const V a = load(p), b = load(p + LANES - 1);
  if constexpr (LANES == 16) return {__builtin_shufflevector(a.v, b.v, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31)};
  else if constexpr (LANES == 8) return {__builtin_shufflevector(a.v, b.v, 0, 2, 4, 6, 9, 11, 13, 15)};
  else return {__builtin_shufflevector(a.v, b.v, 0, 2, 5, 7)};
}

// Elements that lie step apart: the next n of them.
template <class F> RLX_FN vf get_step(const typename F::type *p, int64_t step, int n) {
  if (step == 1) return n == LANES ? F::get(p) : F::get_part(p, n);
  if constexpr (sizeof(*p) == 4) {
    if (step == 2 && n == LANES) return get_second<vf>(p);
  }
  typename F::type near[LANES] = {};
  for (int i = 0; i < n; i++) near[i] = p[i * step];
  return n == LANES ? F::get(near) : F::get_part(near, n);
}
RLX_FN void put_n(float *p, vf x, int n) { n == LANES ? store(p, x) : store_part(p, x, n); }

template <class F>
void columns(float *dst, int64_t dst_rs, const void *from, int64_t channel, int64_t count, const Segment *segments, int n, int64_t step, int zero) {
  const typename F::type *src = static_cast<const typename F::type *>(from);
  const vf none = splat<vf>(0.0);
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
  const typename F::type *src = static_cast<const typename F::type *>(from);
  for (int64_t kk = 0; kk < k; kk += LANES) {
    const int m = int(k - kk < LANES ? k - kk : LANES);
    float wide[LANES];
    put_n(wide, get_step<F>(src + kk * sk, sk, m), m);
    for (int i = 0; i < m; i++) dst[(kk + i) * h] = wide[i];
  }
}

template <class F> void put(void *to, const float *sums, int64_t n) {
  typename F::type *y = static_cast<typename F::type *>(to);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) F::put(y + i, load(sums + i));
  if (i < n) F::put_part(y + i, load_part(sums + i, int(n - i)), int(n - i));
}

template <class F> constexpr Form form() { return {int(sizeof(typename F::type)), columns<F>, spread<F>, put<F>}; }

// A depthwise row with the kernel positions of the outer axes that fall into x.
struct Depth {
  const DepthRow &r;
  int64_t d0, d1, h0, h1;
  RLX_FN const float *x(int64_t kd, int64_t kh) const {
    const Window &w = *r.w;
    return r.x + (r.od * w.stride[0] + kd * w.dilation[0] - w.begin[0]) * w.xs[2] + (r.oh * w.stride[1] + kh * w.dilation[1] - w.begin[1]) * w.xs[3];
  }
  RLX_FN const float *k(int64_t kd, int64_t kh) const { return r.k + kd * r.w->ws[2] + kh * r.w->ws[3]; }
};

// N vectors of results, all of whose kernel positions fall into x; the last one has n lanes.
template <int N> RLX_FN void inner(const Depth &t, int64_t ow, int n) {
  const Window &w = *t.r.w;
  const int64_t step = w.stride[2] * w.xs[4], move = w.dilation[2] * w.xs[4];
  vf sum[N];
  for (int v = 0; v < N; v++) sum[v] = splat<vf>(0.0);
  for (int64_t kd = t.d0; kd < t.d1; kd++)
    for (int64_t kh = t.h0; kh < t.h1; kh++) {
      const float *x = t.x(kd, kh) + ow * step - w.begin[2] * w.xs[4], *k = t.k(kd, kh);
      for (int64_t kw = 0; kw < w.kernel[2]; kw++, x += move, k += w.ws[4]) {
        const vf weight = splat<vf>(*k);
        for (int v = 0; v < N; v++) sum[v] = fma(weight, get_step<F32>(x + v * LANES * step, step, v + 1 < N ? LANES : n), sum[v]);
      }
    }
  for (int v = 0; v < N; v++) put_n(t.r.y + ow + v * LANES, sum[v], v + 1 < N ? LANES : n);
}

// One result near the edge: the same sum without the positions outside x.
void edge(const Depth &t, int64_t ow) {
  const Window &w = *t.r.w;
  float sum = 0;
  for (int64_t kd = t.d0; kd < t.d1; kd++)
    for (int64_t kh = t.h0; kh < t.h1; kh++)
      for (int64_t kw = 0; kw < w.kernel[2]; kw++) {
        const int64_t at = ow * w.stride[2] + kw * w.dilation[2] - w.begin[2];
        if (at < 0 || at >= w.size[2]) continue;
        const float k = t.k(kd, kh)[kw * w.ws[4]], x = t.x(kd, kh)[at * w.xs[4]];
        sum = FUSED ? __builtin_fmaf(k, x, sum) : k * x + sum;
      }
  t.r.y[ow] = sum;
}

// The kernel positions [lo, hi) of an axis that fall into x, seen from result position p.
void inside(const Window &w, int axis, int64_t p, int64_t *lo, int64_t *hi) {
  const int64_t first = p * w.stride[axis] - w.begin[axis], d = w.dilation[axis];
  *lo = first < 0 ? (d - 1 - first) / d : 0;
  *hi = first < w.size[axis] ? (w.size[axis] - first + d - 1) / d : 0;
  if (*hi > w.kernel[axis]) *hi = w.kernel[axis];
  if (*lo > *hi) *lo = *hi;
}

// y[ow] = sum over the kernel of k * x, positions ascending, in one accumulator of f32.
void depth_row(const DepthRow &r) {
  const Window &w = *r.w;
  Depth t = {r, 0, 0, 0, 0};
  inside(w, 0, r.od, &t.d0, &t.d1);
  inside(w, 1, r.oh, &t.h0, &t.h1);
  int64_t lo, hi, unused;
  seen(w, 2, 0, &lo, &unused);
  seen(w, 2, w.kernel[2] - 1, &unused, &hi);
  if (lo > hi) lo = hi;  // a kernel wider than x: all results are near the edge
  int64_t ow = 0;
  for (; ow < lo; ow++) edge(t, ow);
  for (; ow + 4 * LANES <= hi; ow += 4 * LANES) inner<4>(t, ow, LANES);
  for (; ow < hi; ow += LANES) inner<1>(t, ow, int(hi - ow < LANES ? hi - ow : LANES));
  for (ow = hi; ow < w.out[2]; ow++) edge(t, ow);
}
