// layer_body.h: a step of a recurrent layer in f32 lanes: h W_hh^T by register tiles on top of x W_ih^T, then the cell, for the hidden
// units of one tile. Text for the anonymous namespace of an instruction set, after vec_math.h, forms.h and step.h.

template <class F> void pack(float *dst, int cols, const void *from, int64_t sk, int64_t sj, int64_t k, int64_t n) {
  const typename F::T *src = static_cast<const typename F::T *>(from);
  if constexpr (F::DIRECT) return matmul::pack_panel_f32(dst, cols, src, sk, sj, k, int(n));
  std::memset(dst, 0, size_t(k * cols) * sizeof(float));
  float part[64];
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < k; i += 64) {
      const int64_t m = k - i < 64 ? k - i : 64;
      take<F>(part, src + j * sj + i * sk, sk, m);
      for (int64_t t = 0; t < m; t++) dst[(i + t) * cols + j] = part[t];
    }
}

RLX_FN vf sigmoid(vf x) { return splat<vf>(1.0) / (splat<vf>(1.0) + exp(-x)); }

// Clamps pre-activations where there is a clip; NaN stays.
struct Clip {
  double at;
  RLX_FN vf operator()(vf z) const { return at > 0 ? hold(z, -at, at) : z; }
};

// out[row][u..] (+)= a[row] W_hh^T of one gate.
void times(const Step &s, int64_t gate, int64_t u, int64_t rows, const float *a, float *out, int64_t out_rs, bool add) {
  const int64_t f = sizeof(float), cols = s.tiles->cols, h = s.l->hidden;
  matmul::TileF32 t = {};
  t.a_rs = s.wide * f, t.a_cs = f;
  t.b = s.w + (gate * s.wide + u) * h, t.b_rs = cols * f;
  t.c_rs = out_rs * f, t.k = h, t.load = add;
  const bool thin = rows <= s.tiles->rows;  // one pass over the panel, else its next one is fetched meanwhile
  t.ahead = t.b + (thin ? 8 : h) * cols, t.ahead_step = thin ? t.b_rs : 64;
  for (int64_t i = 0; i < rows; i += s.tiles->rows) {
    const int64_t m = rows - i < s.tiles->rows ? rows - i : s.tiles->rows;
    t.a = a + i * s.wide, t.c = out + i * out_rs;
    s.tiles->run[m](&t);
  }
}

// The pointers of one row at hidden unit u.
struct Row {
  const float *h, *bias, *after, *peep;
  float *next, *cell, *z, *inner;
  int64_t wide;
  RLX_FN vf gate(int g, int64_t i) const { return load(z + g * wide + i) + load(bias + g * wide + i); }
};

RLX_FN vf lstm_cell(const Row &r, int64_t i, Clip clip) {
  const vf before = load(r.cell + i);
  const vf in = sigmoid(clip(fma(load(r.peep + i), before, r.gate(0, i))));
  const vf forget = sigmoid(clip(fma(load(r.peep + r.wide + i), before, r.gate(1, i))));
  const vf c = fma(forget, before, in * tanh(clip(r.gate(2, i))));
  const vf out = sigmoid(clip(fma(load(r.peep + 2 * r.wide + i), c, r.gate(3, i))));
  store(r.cell + i, c);
  return out * tanh(c);
}
RLX_FN vf mixed(vf z, vf n, vf h) { return fma(z, h, (splat<vf>(1.0) - z) * n); }
RLX_FN vf gru_cell(const Row &r, int64_t i, Clip clip) {
  const vf reset = sigmoid(clip(r.gate(0, i)));
  const vf n = tanh(clip(fma(reset, load(r.inner + i) + load(r.after + i), r.gate(2, i))));
  return mixed(sigmoid(clip(r.gate(1, i))), n, load(r.h + i));
}
// First r*h; the second phase multiplies it by the weights of n.
RLX_FN void gru_reset(const Row &r, int64_t i, Clip clip) { store(r.inner + i, sigmoid(clip(r.gate(0, i))) * load(r.h + i)); }
RLX_FN vf gru_after_reset(const Row &r, int64_t i, Clip clip) {
  const vf n = tanh(clip(r.gate(2, i) + load(r.after + i)));
  return mixed(sigmoid(clip(r.gate(1, i))), n, load(r.h + i));
}
RLX_FN vf relu(vf x) { return select(lt(x, splat<vf>(0.0)), splat<vf>(0.0), x); }

template <Cell C> RLX_FN vf next_state(const Row &r, int64_t i, Clip clip) {
  if (C == LSTM) return lstm_cell(r, i, clip);
  if (C == GRU) return gru_cell(r, i, clip);
  if (C == GRU_RESET_FIRST) return gru_after_reset(r, i, clip);
  const vf z = clip(r.gate(0, i));
  return C == RNN_TANH ? tanh(z) : relu(z);
}

template <Cell C> void cells(const Step &s, const Row &r) {
  for (int64_t i = 0; i < s.tiles->cols; i += LANES) store(r.next + i, next_state<C>(r, i, Clip{s.l->clip}));
}

// The cell of one row at hidden units [u, u + cols), and its part of y.
template <class F> void finish(const Step &s, int64_t u, int64_t row) {
  const Layer &l = *s.l;
  const int64_t at = row * s.wide + u, n = l.hidden - u < s.tiles->cols ? l.hidden - u : s.tiles->cols;
  typename F::T *y = s.c->template out_ptr<typename F::T>(0) + ((row * l.steps + s.t) * l.dirs + s.d) * l.hidden + u;
  if (s.lengths != nullptr && s.t >= s.lengths[row]) {
    std::memcpy(s.next + at, s.h + at, size_t(s.tiles->cols) * sizeof(float));
    std::memset(y, 0, size_t(n) * sizeof(*y));
    return;
  }
  const Row r = {s.h + at, s.bias + u, s.after + u, s.peep + u, s.next + at, s.cell + at, s.z + row * l.gates * s.wide + u, s.inner + at, s.wide};
  switch (l.cell) {
    case LSTM: cells<LSTM>(s, r); break;
    case GRU: cells<GRU>(s, r); break;
    case GRU_RESET_FIRST: cells<GRU_RESET_FIRST>(s, r); break;
    case RNN_TANH: cells<RNN_TANH>(s, r); break;
    case RNN_RELU: cells<RNN_RELU>(s, r); break;
  }
  put<F>(y, s.next + at, n);
}

template <class F> void step_unit(const Step &s, int phase, int64_t u, int64_t row, int64_t rows) {
  const int64_t stride = s.l->gates * s.wide, cols = s.tiles->cols;
  float *z = s.z + row * stride + u;
  const float *h = s.h + row * s.wide;
  const bool reset_first = s.l->cell == GRU_RESET_FIRST;
  for (int64_t g = 0; g < s.l->gates && phase == 0; g++) {
    if (g == 2 && reset_first) break;
    if (g == 2 && s.l->cell == GRU) times(s, g, u, rows, h, s.inner + row * s.wide + u, s.wide, false);
    else times(s, g, u, rows, h, z + g * s.wide, stride, true);
  }
  if (phase == 1) times(s, 2, u, rows, s.inner + row * s.wide, z + 2 * s.wide, stride, true);
  for (int64_t i = row; i < row + rows; i++) {
    if (phase == 1 || !reset_first) {
      finish<F>(s, u, i);
      continue;
    }
    const int64_t at = i * s.wide + u;
    const Row r = {s.h + at, s.bias + u, nullptr, nullptr, nullptr, nullptr, s.z + i * stride + u, s.inner + at, s.wide};
    for (int64_t k = 0; k < cols; k += LANES) gru_reset(r, k, Clip{s.l->clip});
  }
}

// GATES gates of one sequence from `gate` on, and as many rows of the next group's x W_ih^T, of one vector of the unit's 8, as there are
// vectors of gates: the weights of h come from the second level of cache, slower than they are multiplied, and the product with x fills the
// time between.
template <int GATES> void overlapped_pass(const Step &s, int gate, int64_t u) {
  constexpr int N = 2 * GATES;
  const int64_t h = s.l->hidden, in = s.l->in, cols = s.tiles->cols, both = h < in ? h : in, panel = s.wide * h, first = 2 * gate;
  const int64_t column = s.turn / 2 * s.wide + u;
  const float *w = s.w + (gate * s.wide + u) * h, *wih = s.wih + column * in + s.turn % 2 * LANES, *x = s.x + first;
  float *z = s.z + gate * s.wide + u;
  vf a[N], p[N];
#pragma GCC unroll 8
  for (int i = 0; i < N; i++) {
    a[i] = load(z + i / 2 * s.wide + i % 2 * LANES), p[i] = splat<vf>(0.0);
  }
  const auto from_h = [&](int64_t k) __attribute__((always_inline)) {
    const vf e = splat<vf>(s.h[k]);
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) a[i] = fma(load(w + k * cols + i / 2 * panel + i % 2 * LANES), e, a[i]);
  };
  const auto from_x = [&](int64_t k) __attribute__((always_inline)) {
    const vf f = load(wih + k * cols);
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) p[i] = fma(f, splat<vf>(x[k * kGroup + i]), p[i]);
  };
  int64_t k = 0;
  for (; k < both; k++) from_h(k), from_x(k);
  for (int64_t t = k; t < h; t++) from_h(t);
  for (; k < in; k++) from_x(k);
#pragma GCC unroll 8
  for (int i = 0; i < N; i++) {
    store(z + i / 2 * s.wide + i % 2 * LANES, a[i]);
    if (first + i < s.rows) store(s.z_of[first + i] + column + s.turn % 2 * LANES, p[i]);
  }
}

template <class F> void overlapped_unit(const Step &s, int, int64_t u, int64_t, int64_t) {
  constexpr int GATES = LANES == 16 ? 4 : 2;  // as the registers hold
  if (s.rows == 0) return step_unit<F>(s, 0, u, 0, 1);
  for (int gate = 0; gate < 4; gate += GATES) overlapped_pass<GATES>(s, gate, u);
  finish<F>(s, u, 0);
}

template <class F> constexpr Set::Form form(bool overlaps = false) {
  return {step_unit<F>, overlaps && F::DIRECT ? overlapped_unit<F> : nullptr, pack<F>, take<F>, put<F>};
}
