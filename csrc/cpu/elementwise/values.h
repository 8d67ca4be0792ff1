// values.h: the tables of functions of one and two f32, comparisons, Fma, Clamp and the half formats. Text: see loops.h.

#define RLX_VALUE(f) \
  struct unary_##f { static RLX_FN auto of(vf x, vf alpha, vf beta) { return fn_##f(x, alpha, beta); } };
RLX_UNARY_FLOAT_FNS(RLX_VALUE)
RLX_UNARY_PREDICATE_FNS(RLX_VALUE)
#undef RLX_VALUE
template <> struct together<unary_exp> {
  static constexpr int N = LANES == 16 ? 2 : 1;
  static RLX_FN void of(vf *v) {
    if (LANES == 16) exp_by_table<2>(v);
  }
};
template <> struct together<unary_tanh> {
  static constexpr int N = 4;
  static RLX_FN void of(vf *v) { tanh_of<N>(v); }
};

#define RLX_VALUE(f) \
  struct binary_##f { static RLX_FN vf of(vf a, vf b) { return fn_##f(a, b); } };
RLX_BINARY_FLOAT_FNS(RLX_VALUE)
#undef RLX_VALUE
#define RLX_VALUE(f) \
  struct compare_##f { static RLX_FN vm of(vf a, vf b) { return fn_##f(a, b); } };
RLX_COMPARE_FLOAT_FNS(RLX_VALUE)
#undef RLX_VALUE

Loop unary_of(int fn) {
  switch (fn) {
#define RLX_CASE(f) case UNARY_##f: return unary_loop<unary_##f>;
    RLX_UNARY_FLOAT_FNS(RLX_CASE)
#undef RLX_CASE
#define RLX_CASE(f) case UNARY_##f: return predicate_loop<unary_##f>;
    RLX_UNARY_PREDICATE_FNS(RLX_CASE)
#undef RLX_CASE
    default: return nullptr;
  }
}
Loop binary_of(int fn) {
  switch (fn) {
#define RLX_CASE(f) case BINARY_##f: return binary_loop<binary_##f>;
    RLX_BINARY_FLOAT_FNS(RLX_CASE)
#undef RLX_CASE
    default: return nullptr;
  }
}
Loop compare_of(int fn) {
  switch (fn) {
#define RLX_CASE(f) case COMPARE_##f: return compare_loop<compare_##f>;
    RLX_COMPARE_FLOAT_FNS(RLX_CASE)
#undef RLX_CASE
    default: return nullptr;
  }
}

void fma_loop(const Work &, const void *const *in, void *out, int64_t n) {
  const float *a = f32_of(in, 0), *b = f32_of(in, 1), *c = f32_of(in, 2);
  float *y = static_cast<float *>(out);
  RLX_EACH(n, store(y + i, fma_exact(load(a + i), load(b + i), load(c + i))),
           store_part(y + i, fma_exact(load_part(a + i, left), load_part(b + i, left), load_part(c + i, left)), left))
}
struct clamp_to { static RLX_FN vf of(vf x, vf lo, vf hi) { return min(max(x, lo), hi); } };
struct relu_gradient_of { static RLX_FN vf of(vf x, vf dy, vf alpha, vf beta) { return bw_relu(x, dy, alpha, beta); } };
