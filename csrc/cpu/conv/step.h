// step.h: vectors of elements that do not lie together. Text for the anonymous namespace of an instruction set, after vec_<isa>.h. A form F
// of elements T gives get and get_part: see conv_body.h and ../reduce/forms.h.

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
