// rope_body.h: Rope of one token in f32. Text for the anonymous namespace of an instruction set, after attention_body.h.

// Plain loops: the compiler finds the lanes, and the shuffles of interleaved pairs.
void turn_halves(const float *x1, const float *x2, float *__restrict y1, float *__restrict y2, const float *c, const float *s, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const float a = x1[i], b = x2[i];
    y1[i] = a * c[i] - b * s[i];
    y2[i] = b * c[i] + a * s[i];
  }
}
void turn_pairs(const float *x, float *__restrict y, const float *c, const float *s, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const float a = x[2 * i], b = x[2 * i + 1];
    y[2 * i] = a * c[i] - b * s[i];
    y[2 * i + 1] = b * c[i] + a * s[i];
  }
}

constexpr int64_t PAIRS = 128;  // at a time, where they are moved

template <class F> void turn_head(const RopeJob &j, const typename F::T *x, typename F::T *y, const float *cos, const float *sin) {
  const int64_t r = j.half, step = j.x.sd;
  if constexpr (F::DIRECT) {
    if (step == 1) {
      if (j.interleaved) turn_pairs(x, y, cos, sin, r);
      else turn_halves(x, x + r, y, y + r, cos, sin, r);
      return;
    }
  }
  float in[2 * PAIRS], out[2 * PAIRS];
  for (int64_t i = 0; i < r; i += PAIRS) {
    const int64_t n = r - i < PAIRS ? r - i : PAIRS;
    if (j.interleaved) {
      take<F>(in, x + 2 * i * step, step, 2 * n);
      turn_pairs(in, out, cos + i, sin + i, n);
      put<F>(y + 2 * i, out, 2 * n);
      continue;
    }
    take<F>(in, x + i * step, step, n);
    take<F>(in + PAIRS, x + (r + i) * step, step, n);
    turn_halves(in, in + PAIRS, out, out + PAIRS, cos + i, sin + i, n);
    put<F>(y + i, out, n);
    put<F>(y + r + i, out + PAIRS, n);
  }
}

template <class F> void rope_token(const RopeJob &j, int64_t b, int64_t s, const float *cos, const float *sin) {
  typedef typename F::T T;
  for (int64_t h = 0; h < j.x.h; h++) {
    const T *x = j.c->template in_ptr<T>(0) + j.x.at(b, h, s);
    T *y = j.c->template out_ptr<T>(0) + j.y.at(b, h, s);
    turn_head<F>(j, x, y, cos, sin);
    for (int64_t i = 2 * j.half; i < j.x.d; i++) y[i] = x[i * j.x.sd];
  }
}
