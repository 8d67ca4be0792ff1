// Depthwise rows, written once over the vector types. Text for the anonymous namespace of an instruction set, after vec_<isa>.h and step.h.
// See depth.h.

// Lane i becomes lane i + 1; lane 0 becomes 0.
template <class V> RLX_FN V up(V x) {
  const V zero = splat<V>(0.0);
  if constexpr (LANES == 16) return {__builtin_shufflevector(zero.v, x.v, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)};
  else if constexpr (LANES == 8) return {__builtin_shufflevector(zero.v, x.v, 0, 8, 9, 10, 11, 12, 13, 14)};
  else return {__builtin_shufflevector(zero.v, x.v, 0, 4, 5, 6)};
}
// Elements 0, 2, ... or 1, 3, ... of two vectors.
template <int Odd, class V> RLX_FN V halve(V a, V b) {
  constexpr int o = Odd;
  if constexpr (LANES == 16)
    return {__builtin_shufflevector(a.v, b.v, o, o + 2, o + 4, o + 6, o + 8, o + 10, o + 12, o + 14, o + 16, o + 18, o + 20, o + 22, o + 24, o + 26, o + 28, o + 30)};
  else if constexpr (LANES == 8) return {__builtin_shufflevector(a.v, b.v, o, o + 2, o + 4, o + 6, o + 8, o + 10, o + 12, o + 14)};
  else return {__builtin_shufflevector(a.v, b.v, o, o + 2, o + 4, o + 6)};
}

// The elements from p on of which the first `left` are there; all of them where the vector is not at the right end.
template <bool Right> RLX_FN vf near(const float *p, int64_t left) {
  if (!Right || (LANES == 4 && left >= LANES)) return load(p);  // the wide sets take LANES for a part, without a branch
  return load_part(p, int(left < 0 ? 0 : left < LANES ? left : LANES));
}

// What a vector of results sees of a row of x through a kernel position `At` columns off, S columns apart. row is where position 0 is for its
// first lane, `left` how many columns there are from there on. A vector at the left end has zeros in front.
template <int S, int At, bool Left, bool Right> RLX_FN vf sight(const float *row, int64_t left) {
  constexpr int odd = S == 1 ? 0 : At & 1, whole = (At - odd) / S;
  if constexpr (Left && whole < 0) {
    return up(sight<S, At + S, Left, Right>(row, left));
  } else if constexpr (S == 1) {
    return near<Right>(row + At, left - At);
  } else {
    const float *p = row + 2 * whole;
    return halve<odd>(near<Right>(p, left - 2 * whole), near<Right>(p + LANES, left - 2 * whole - LANES));
  }
}

// Rows of results that are computed together where there are enough.
#if defined(RLX_NEON)
template <int K> constexpr int kDepthRows = K == 3 ? 4 : 2;
#else
template <int K> constexpr int kDepthRows = LANES == 4 ? (K == 3 ? 2 : 1) : K == 3 ? 4 : 3;  // few without vector instructions: they take long to compile
#endif

// Kernel row kh of the results in s[r] where kh = I - r*SR, from a row of x. SR and S are the strides of rows and columns.
template <int K, int SR, int S, int B, int R, bool Left, bool Right, int I, int Kw> RLX_FN void depth_taps(const float *row, int64_t left, const vf *kernel, vf *s) {
  vf a = sight<S, Kw - B, Left, Right>(row, left);
#if defined(__GNUC__) && defined(RLX_X86)
  if constexpr (LANES > 4) __asm__("" : "+v"(a.v));  // or it would be loaded once for each use
#endif
#pragma GCC unroll 4
  for (int r = 0; r < R; r++)
    if (I - r * SR >= 0 && I - r * SR < K) s[r] = fma(kernel[(I - r * SR) * K + Kw], a, s[r]);
  if constexpr (Kw + 1 < K) depth_taps<K, SR, S, B, R, Left, Right, I, Kw + 1>(row, left, kernel, s);
}
template <int K, int SR, int S, int B, int R, bool Left, bool Right, int I = 0> RLX_FN void depth_inputs(const DepthRows &d, int64_t first, const float *row, int64_t left, const vf *kernel, vf *s) {
  if (uint64_t(first + I) < uint64_t(d.size[0])) depth_taps<K, SR, S, B, R, Left, Right, I, 0>(row + I * d.pitch, left, kernel, s);
  if constexpr (I + 1 < (R - 1) * SR + K) depth_inputs<K, SR, S, B, R, Left, Right, I + 1>(d, first, row, left, kernel, s);
}

template <int K, int SR, int S, int B, int R, bool Left, bool Right> RLX_FN void depth_vectors(const DepthRows &d, int64_t r0, int64_t c, const vf *kernel) {
  vf s[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; r++) s[r] = splat<vf>(0.0);
  depth_inputs<K, SR, S, B, R, Left, Right>(d, d.top + r0 * SR, d.x + r0 * SR * d.pitch + c * S, d.size[1] - c * S, kernel, s);
  if (has_bias(d.finish)) {
    const vf bias = bias_of(d.finish, 0);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) s[r] = s[r] + bias;
  }
  finish_all<R>(d.finish.fn, s);
#pragma GCC unroll 4
  for (int r = 0; r < R; r++) {
    float *y = d.y + (r0 + r) * d.cols + c;
    if (!Right || (LANES == 4 && d.cols - c >= LANES)) store(y, s[r]);
    else store_part(y, s[r], int(d.cols - c < LANES ? d.cols - c : LANES));
  }
}

// A vector at an end may be at both.
template <int K, int SR, int S, int B, int R> RLX_FN void depth_block(const DepthRows &d, int64_t r0, const vf *kernel) {
  depth_vectors<K, SR, S, B, R, true, true>(d, r0, 0, kernel);
  int64_t c = LANES;
  if constexpr (R > 1) {
    // Vectors before `inner` have all their columns, those that a load of two vectors touches too.
    const int64_t inner = (d.size[1] - (S * LANES + K)) / S;
    for (; c < inner && c + LANES <= d.cols; c += LANES) depth_vectors<K, SR, S, B, R, false, false>(d, r0, c, kernel);
  }
  for (; c < d.cols; c += LANES) depth_vectors<K, SR, S, B, R, false, true>(d, r0, c, kernel);
}

template <int K, int SR, int S, int B> void depth_rows(const DepthRows &d) {
  vf kernel[K * K];
#pragma GCC unroll 25
  for (int i = 0; i < K * K; i++) kernel[i] = splat<vf>(d.kernel[i]);
  constexpr int R = kDepthRows<K>;
  int64_t r = 0;
  for (; r + R <= d.rows; r += R) depth_block<K, SR, S, B, R>(d, r, kernel);
  if (r < d.rows && R < d.rows) return depth_block<K, SR, S, B, R>(d, d.rows - R, kernel);  // some rows once more: the same again
  for (; r < d.rows; r++) depth_block<K, SR, S, B, 1>(d, r, kernel);
}

template <int K> constexpr DepthTable depth_table() { return {{depth_rows<K, 1, 1, K / 2>, depth_rows<K, 2, 1, K / 2>, depth_rows<K, 2, 2, K / 2>, depth_rows<K, 2, 2, K / 2 - 1>}}; }
