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

// Results are stored as Work::stream says. The branch is kept in the loop: two copies of every loop would be worth less.
RLX_FN bool streams(const Work &w, const float *y) { return w.stream && reinterpret_cast<uintptr_t>(y) % (LANES * sizeof(float)) == 0; }
RLX_FN void put(float *y, vf v, bool &past) {
  __asm__("" : "+r"(past));
  if (past) stream(y, v);
  else store(y, v);
}

const float *f32_of(const void *const *in, int k) { return static_cast<const float *>(in[k]); }

template <class F> RLX_FLAT void unary_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  const float *x = f32_of(in, 0);
  float *y = static_cast<float *>(out);
  const vf alpha = splat<vf>(w.alpha), beta = splat<vf>(w.beta);
  bool past = streams(w, y);
  RLX_EACH(n, put(y + i, F::of(load(x + i), alpha, beta), past), store_part(y + i, F::of(load_part(x + i, left), alpha, beta), left))
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
  bool past = streams(w, y);
  RLX_EACH(n, put(y + i, F::of(load(x + i), load(dy + i), alpha, beta), past),
           store_part(y + i, F::of(load_part(x + i, left), load_part(dy + i, left), alpha, beta), left))
}
template <class F> RLX_FLAT void binary_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  const float *a = f32_of(in, 0), *b = f32_of(in, 1);
  float *y = static_cast<float *>(out);
  bool past = streams(w, y);
  RLX_EACH(n, put(y + i, F::of(load(a + i), load(b + i)), past), store_part(y + i, F::of(load_part(a + i, left), load_part(b + i, left)), left))
}
template <class F> RLX_FLAT void compare_loop(const Work &, const void *const *in, void *out, int64_t n) {
  const float *a = f32_of(in, 0), *b = f32_of(in, 1);
  uint8_t *y = static_cast<uint8_t *>(out);
  RLX_EACH(n, store_b8(y + i, F::of(load(a + i), load(b + i))),
           store_b8_part(y + i, F::of(load_part(a + i, left), load_part(b + i, left)), left))
}

// Eight vectors go through the whole chain in registers. b(k) is vector k of the operand.
#define RLX_LINK(f) v0 = f(v0, b(0)), v1 = f(v1, b(1)), v2 = f(v2, b(2)), v3 = f(v3, b(3)), v4 = f(v4, b(4)), v5 = f(v5, b(5)), v6 = f(v6, b(6)), v7 = f(v7, b(7))
#define RLX_TURNED(f) v0 = f(b(0), v0), v1 = f(b(1), v1), v2 = f(b(2), v2), v3 = f(b(3), v3), v4 = f(b(4), v4), v5 = f(b(5), v5), v6 = f(b(6), v6), v7 = f(b(7), v7)
#define RLX_LINKS                                  \
  case LINK_ADD: RLX_LINK(add); break;             \
  case LINK_SUB: RLX_LINK(sub); break;             \
  case LINK_MUL: RLX_LINK(mul); break;             \
  case LINK_TURNED_ADD: RLX_TURNED(add); break;    \
  case LINK_TURNED_SUB: RLX_TURNED(sub); break;    \
  case LINK_TURNED_MUL: RLX_TURNED(mul); break;

void chain_block(const Work &w, const void *const *in, float *y, int64_t i, bool past) {
  const float *x = f32_of(in, 0) + i;
  vf v0 = load(x), v1 = load(x + LANES), v2 = load(x + 2 * LANES), v3 = load(x + 3 * LANES);
  vf v4 = load(x + 4 * LANES), v5 = load(x + 5 * LANES), v6 = load(x + 6 * LANES), v7 = load(x + 7 * LANES);
  for (int k = 0; k < w.links; k++) {
    const float *p = f32_of(in, k + 1) + i;
    switch (w.link[k]) {
#define b(k) load(p + (k) * LANES)
      RLX_LINKS
#undef b
#define b(k) splat<vf>(0.0)
      default: RLX_LINK(max);
#undef b
    }
  }
  put(y, v0, past), put(y + LANES, v1, past), put(y + 2 * LANES, v2, past), put(y + 3 * LANES, v3, past);
  put(y + 4 * LANES, v4, past), put(y + 5 * LANES, v5, past), put(y + 6 * LANES, v6, past), put(y + 7 * LANES, v7, past);
}
RLX_FN vf some(const float *p, int n) { return n < LANES ? load_part(p, n) : load(p); }
RLX_FN vf chain_of(const Work &w, const void *const *in, int64_t i, int n) {
  vf v = some(f32_of(in, 0) + i, n);
  for (int k = 0; k < w.links; k++) {
    const vf b = w.link[k] == LINK_RELU ? v : some(f32_of(in, k + 1) + i, n);
    switch (w.link[k]) {
      case LINK_ADD: v = add(v, b); break;
      case LINK_SUB: v = sub(v, b); break;
      case LINK_MUL: v = mul(v, b); break;
      case LINK_TURNED_ADD: v = add(b, v); break;
      case LINK_TURNED_SUB: v = sub(b, v); break;
      case LINK_TURNED_MUL: v = mul(b, v); break;
      default: v = max(v, splat<vf>(0.0));
    }
  }
  return v;
}
void chain_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  float *y = static_cast<float *>(out);
  const bool past = streams(w, y);
  int64_t i = 0;
  for (; i + 8 * LANES <= n; i += 8 * LANES) chain_block(w, in, y + i, i, past);
  for (; i < n; i += LANES) {
    const int left = int(n - i < LANES ? n - i : LANES);
    const vf v = chain_of(w, in, i, left);
    if (left < LANES) store_part(y + i, v, left);
    else store(y + i, v);
  }
}
