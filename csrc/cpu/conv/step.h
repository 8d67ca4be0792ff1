// step.h: rows of elements to f32 and back, also of elements that do not lie together. Text for the anonymous namespace of an instruction
// set, after vec_<isa>.h and ../reduce/forms.h.

// p[0], p[2], ... of two vectors of which the second starts one element early, so as not to pass the last one.
template <class V> RLX_FN V every_second(V a, V b) {
  if constexpr (LANES == 16) return {__builtin_shufflevector(a.v, b.v, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31)};
  else if constexpr (LANES == 8) return {__builtin_shufflevector(a.v, b.v, 0, 2, 4, 6, 9, 11, 13, 15)};
  else return {__builtin_shufflevector(a.v, b.v, 0, 2, 5, 7)};
}

// Elements that lie step apart: the next n of them.
template <class F, class T> RLX_FN vf get_step(const T *p, int64_t step, int n) {
  if (step == 1) return n == LANES ? F::get(p) : F::get_part(p, n);
  if constexpr (sizeof(*p) == 4) {
    const int more = 2 * n - LANES;  // elements of the second vector
    if (step == 2 && n == LANES) return every_second(load(p), load(p + LANES - 1));
    if (step == 2) return every_second(more > 0 ? load(p) : load_part(p, 2 * n - 1), load_part(p + LANES - 1, more > 0 ? more : 0));
  }
  T near[LANES] = {};
  for (int i = 0; i < n; i++) near[i] = p[i * step];
  return n == LANES ? F::get(near) : F::get_part(near, n);
}

RLX_FN void put_n(float *p, vf x, int n) { n == LANES ? store(p, x) : store_part(p, x, n); }

// n elements that lie step apart, as f32.
template <class F> void take(float *dst, const void *from, int64_t step, int64_t n) {
  const typename F::T *src = static_cast<const typename F::T *>(from);
  for (int64_t i = 0; i < n; i += LANES) {
    const int m = int(n - i < LANES ? n - i : LANES);
    put_n(dst + i, get_step<F>(src + i * step, step, m), m);
  }
}

// n of f32, each rounded, to elements that lie together.
template <class F> void put(void *to, const float *src, int64_t n) {
  typename F::T *dst = static_cast<typename F::T *>(to);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) F::put(dst + i, load(src + i));
  if (i < n) F::put_part(dst + i, load_part(src + i, int(n - i)), int(n - i));
}
