// Tiles of result positions by result channels, written once over the vector types. Text for the anonymous namespace of an instruction set,
// after vec_<isa>.h. See tile.h.

#if defined(RLX_NEON)
constexpr int POSITIONS = 12;
#else
constexpr int POSITIONS = LANES == 16 ? kMostPositions : 6;
#endif
constexpr int WIDE = 2 * LANES;

// H positions, S elements of x apart, by V vectors of channels.
template <int H, int V, int S> void position_tile(const PositionTile &t) {
  float *sums = t.sums;
  vf s[H][V];
#pragma GCC unroll 16
  for (int h = 0; h < H; h++)
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) s[h][v] = t.load ? load(sums + h * WIDE + v * LANES) : splat<vf>(0.0);
  const float *w = t.w;
  const int32_t *offset = t.offset, *end = offset + t.k;
  const char *ahead = t.ahead;
  for (; offset < end; offset++, w += WIDE, ahead += t.ahead_step) {
    const float *x = t.x + *offset;
    vf b[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) b[v] = load(w + v * LANES);
    __builtin_prefetch(ahead, 0, 2);
#pragma GCC unroll 16
    for (int h = 0; h < H; h++) {
      const vf a = splat<vf>(x[h * S]);
#pragma GCC unroll 2
      for (int v = 0; v < V; v++) s[h][v] = fma(a, b[v], s[h][v]);
    }
  }
#pragma GCC unroll 16
  for (int h = 0; h < H; h++)
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) store(sums + h * WIDE + v * LANES, s[h][v]);
}

// The lanes of two vectors in turn: of their lower halves, and of their upper ones.
template <class V> RLX_FN V zip_low(V a, V b) {
  if constexpr (LANES == 16) return {__builtin_shufflevector(a.v, b.v, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)};
  else if constexpr (LANES == 8) return {__builtin_shufflevector(a.v, b.v, 0, 8, 1, 9, 2, 10, 3, 11)};
  else return {__builtin_shufflevector(a.v, b.v, 0, 4, 1, 5)};
}
template <class V> RLX_FN V zip_high(V a, V b) {
  if constexpr (LANES == 16) return {__builtin_shufflevector(a.v, b.v, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)};
  else if constexpr (LANES == 8) return {__builtin_shufflevector(a.v, b.v, 4, 12, 5, 13, 6, 14, 7, 15)};
  else return {__builtin_shufflevector(a.v, b.v, 2, 6, 3, 7)};
}

// r[i] lane j becomes r[j] lane i: each round moves the first bit of i behind j and that of j behind i.
RLX_FN void transpose(vf *r) {
#pragma GCC unroll 4
  for (int round = 1; round < LANES; round *= 2) {
    vf t[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES / 2; i++) t[2 * i] = zip_low(r[i], r[i + LANES / 2]), t[2 * i + 1] = zip_high(r[i], r[i + LANES / 2]);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) r[i] = t[i];
  }
}

// Columns o on of LANES rows of sums as rows of the result from `to` on, of which height are there, with length elements.
template <bool Whole> RLX_FN void turn_square(const float *sums, const Finish &f, float *to, const float *residual, int64_t rs, int height, int length) {
  vf r[LANES];
#pragma GCC unroll 16
  for (int i = 0; i < LANES; i++) r[i] = load(sums + i * WIDE);
  transpose(r);
  if (has_bias(f)) {
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
      if (Whole || i < height) r[i] = r[i] + bias_of(f, i);
  }
  if (residual != nullptr) {
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
      if (Whole || i < height) r[i] = r[i] + (Whole || length == LANES ? load(residual + i * rs) : load_part(residual + i * rs, length));
  }
  finish_all<LANES>(f.fn, r);
#pragma GCC unroll 16
  for (int i = 0; i < LANES; i++)
    if (Whole) store(to + i * rs, r[i]);
    else if (i < height) put_n(to + i * rs, r[i], length);
}

void turn(const float *sums, int64_t n, int64_t outs, float *to, int64_t to_rs, const Finish &finish) {
  for (int64_t o = 0; o < outs; o += LANES) {
    const Finish f = {finish.bias != nullptr ? finish.bias + o : nullptr, nullptr, finish.fn};
    for (int64_t p = 0; p < n; p += LANES) {
      const int height = int(outs - o < LANES ? outs - o : LANES), length = int(n - p < LANES ? n - p : LANES);
      const float *from = sums + p * WIDE + o, *residual = finish.residual != nullptr ? finish.residual + o * to_rs + p : nullptr;
      float *at = to + o * to_rs + p;
      if (height == LANES && length == LANES) turn_square<true>(from, f, at, residual, to_rs, LANES, LANES);
      else turn_square<false>(from, f, at, residual, to_rs, height, length);
    }
  }
}

template <int V, int S, int H> constexpr void list_tiles(TileTables *t) {
  t->run[S - 1][V - 1][H] = position_tile<H, V, S>;
  if constexpr (H > 1) list_tiles<V, S, H - 1>(t);
}
constexpr TileTables tile_tables() {
  TileTables t = {POSITIONS, LANES, {}, turn};
  list_tiles<1, 1, POSITIONS>(&t), list_tiles<1, 2, POSITIONS>(&t);
  list_tiles<2, 1, POSITIONS>(&t), list_tiles<2, 2, POSITIONS>(&t);
  return t;
}
