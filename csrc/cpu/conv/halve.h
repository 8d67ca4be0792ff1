// Text for the anonymous namespace of an instruction set, after vec_<isa>.h.

// Elements 0, 2, ... or 1, 3, ... of two vectors.
template <int Odd, class V> RLX_FN V halve(V a, V b) {
  constexpr int o = Odd;
  if constexpr (LANES == 16)
    return {__builtin_shufflevector(a.v, b.v, o, o + 2, o + 4, o + 6, o + 8, o + 10, o + 12, o + 14, o + 16, o + 18, o + 20, o + 22, o + 24, o + 26, o + 28, o + 30)};
  else if constexpr (LANES == 8) return {__builtin_shufflevector(a.v, b.v, o, o + 2, o + 4, o + 6, o + 8, o + 10, o + 12, o + 14)};
  else return {__builtin_shufflevector(a.v, b.v, o, o + 2, o + 4, o + 6)};
}
