// loops.h: the loops of f32 (with f16 and bf16 widened to it), written once over the vector types. Text for the anonymous namespace of an
// instruction set, after vec_<isa>.h, vec_math.h and scalar_gen.h. A tail shorter than a vector takes the same path as a whole one.

// The functors stay calls otherwise: where one is used by many functions, every constant would be loaded again.
#define RLX_FLAT __attribute__((flatten))

#define RLX_EACH(n, whole, part)                    \
  int64_t i = 0;                                    \
  for (; i + LANES <= (n); i += LANES) {            \
    whole;                                          \
  }                                                 \
  if (const int left = int((n)-i); left > 0) {      \
    part;                                           \
  }

const float *f32_of(const void *const *in, int k) { return static_cast<const float *>(in[k]); }

template <class F> RLX_FLAT void unary_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  const float *x = f32_of(in, 0);
  float *y = static_cast<float *>(out);
  const vf alpha = splat<vf>(w.alpha), beta = splat<vf>(w.beta);
  RLX_EACH(n, store(y + i, F::of(load(x + i), alpha, beta)), store_part(y + i, F::of(load_part(x + i, left), alpha, beta), left))
}
template <class F> RLX_FLAT void predicate_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  const float *x = f32_of(in, 0);
  uint8_t *y = static_cast<uint8_t *>(out);
  const vf alpha = splat<vf>(w.alpha), beta = splat<vf>(w.beta);
  RLX_EACH(n, store_b8(y + i, F::of(load(x + i), alpha, beta)), store_b8_part(y + i, F::of(load_part(x + i, left), alpha, beta), left))
}
template <class F> RLX_FLAT void backward_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  const float *x = f32_of(in, 0), *dy = f32_of(in, 1);
  float *y = static_cast<float *>(out);
  const vf alpha = splat<vf>(w.alpha), beta = splat<vf>(w.beta);
  RLX_EACH(n, store(y + i, F::of(load(x + i), load(dy + i), alpha, beta)),
           store_part(y + i, F::of(load_part(x + i, left), load_part(dy + i, left), alpha, beta), left))
}
template <class F> RLX_FLAT void binary_loop(const Work &, const void *const *in, void *out, int64_t n) {
  const float *a = f32_of(in, 0), *b = f32_of(in, 1);
  float *y = static_cast<float *>(out);
  RLX_EACH(n, store(y + i, F::of(load(a + i), load(b + i))), store_part(y + i, F::of(load_part(a + i, left), load_part(b + i, left)), left))
}
template <class F> RLX_FLAT void compare_loop(const Work &, const void *const *in, void *out, int64_t n) {
  const float *a = f32_of(in, 0), *b = f32_of(in, 1);
  uint8_t *y = static_cast<uint8_t *>(out);
  RLX_EACH(n, store_b8(y + i, F::of(load(a + i), load(b + i))),
           store_b8_part(y + i, F::of(load_part(a + i, left), load_part(b + i, left)), left))
}
