// Tiles of result channels by vectors of positions, written once over the vector types. Text for the anonymous namespace of an instruction set, after
// vec_<isa>.h. See slide.h.

#if defined(RLX_NEON)
constexpr int SLIDING = 12, REGISTERS = 32;
#else
constexpr int SLIDING = LANES == 16 ? kMostSliding : 6, REGISTERS = LANES == 16 ? 32 : 16;
#endif

template <int H, int V> RLX_FN void slide_vectors(const SlideTile &t, const float *x, float *sums) {
  vf s[H][V];
#pragma GCC unroll 16
  for (int h = 0; h < H; h++)
#pragma GCC unroll 8
    for (int v = 0; v < V; v++) s[h][v] = splat<vf>(0.0);
  const float *w = t.w;
  for (const int32_t *offset = t.offset, *end = offset + t.k; offset < end; offset++, w += H) {
    const float *from = x + *offset;
    vf b[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; v++) b[v] = load(from + v * LANES);
#pragma GCC unroll 16
    for (int h = 0; h < H; h++) {
      const vf a = splat<vf>(w[h]);
#pragma GCC unroll 8
      for (int v = 0; v < V; v++) s[h][v] = fma(a, b[v], s[h][v]);
    }
  }
#pragma GCC unroll 16
  for (int h = 0; h < H; h++, sums += t.sums_rs)
#pragma GCC unroll 8
    for (int v = 0; v < V; v++) store(sums + v * LANES, s[h][v]);
}

// As many vectors as the registers hold, then what is left.
template <int H> void slide_tile(const SlideTile &t, int64_t n) {
  constexpr int FIT = (REGISTERS - 1) / (H + 1), V = FIT < 8 ? FIT : 8, HALF = (V + 1) / 2;
  int64_t i = 0;
  for (; i + (V - 1) * LANES < n; i += V * LANES) slide_vectors<H, V>(t, t.x + i, t.sums + i);
  if constexpr (HALF > 1)
    for (; i + (HALF - 1) * LANES < n; i += HALF * LANES) slide_vectors<H, HALF>(t, t.x + i, t.sums + i);
  for (; i < n; i += LANES) slide_vectors<H, 1>(t, t.x + i, t.sums + i);
}

template <int H> constexpr void list_slide_tiles(SlideTable *t) {
  t->run[H] = slide_tile<H>;
  if constexpr (H > 1) list_slide_tiles<H - 1>(t);
}
constexpr SlideTable slide_table() {
  SlideTable t = {SLIDING, LANES, {}};
  list_slide_tiles<SLIDING>(&t);
  return t;
}
