// Tiles of result channels by result positions, written once over the vector types. Text for the anonymous namespace of an instruction set, after
// finish_body.h and tile_body.h. See panel.h.

template <int H, int V> RLX_FN void finish_tile(const Finish &f, int64_t rs, int rest, vf (&s)[H][V]) {
  if (has_bias(f)) {
#pragma GCC unroll 16
    for (int h = 0; h < H; h++) {
      const vf bias = bias_of(f, h);
#pragma GCC unroll 2
      for (int v = 0; v < V; v++) s[h][v] = s[h][v] + bias;
    }
  }
  if (f.residual != nullptr) {
    const float *r = f.residual;
#pragma GCC unroll 16
    for (int h = 0; h < H; h++, r += rs)
#pragma GCC unroll 2
      for (int v = 0; v < V; v++) s[h][v] = s[h][v] + (v < V - 1 || rest == LANES ? load(r + v * LANES) : load_part(r + v * LANES, rest));
  }
  finish_all<H * V>(f.fn, s[0]);
}

template <int H, int V> void channel_tile(const ChannelTile &t) {
  const int rest = t.n - (V - 1) * LANES;  // lanes of the last vector
  vf s[H][V];
  float *y = t.y;
#pragma GCC unroll 16
  for (int h = 0; h < H; h++, y += t.y_rs)
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) {
      if (!t.load) s[h][v] = splat<vf>(0.0), __builtin_prefetch(y + v * LANES, 1, 3);
      else s[h][v] = v < V - 1 || rest == LANES ? load(y + v * LANES) : load_part(y + v * LANES, rest);
    }
  const float *w = t.w, *x = t.x;
  const char *ahead = t.ahead;
  for (int64_t k = 0; k < t.k; k++, w += H, x += t.x_rs, ahead += t.ahead_step) {
    vf b[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) b[v] = load(x + v * LANES);
    __builtin_prefetch(ahead, 0, 2);
#pragma GCC unroll 16
    for (int h = 0; h < H; h++) {
      const vf a = splat<vf>(w[h]);
#pragma GCC unroll 2
      for (int v = 0; v < V; v++) s[h][v] = fma(a, b[v], s[h][v]);
    }
  }
  if (t.last) finish_tile<H, V>(t.finish, t.y_rs, rest, s);
  y = t.y;
#pragma GCC unroll 16
  for (int h = 0; h < H; h++, y += t.y_rs)
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) {
      if (v < V - 1 || rest == LANES) store(y + v * LANES, s[h][v]);
      else store_part(y + v * LANES, s[h][v], rest);
    }
}

template <int V, int H> constexpr void list_channel_tiles(ChannelTiles *t) {
  t->run[V - 1][H] = channel_tile<H, V>;
  if constexpr (H > 1) list_channel_tiles<V, H - 1>(t);
}
constexpr ChannelTiles channel_tiles() {
  ChannelTiles t = {POSITIONS, WIDE, {}};
  list_channel_tiles<1, POSITIONS>(&t), list_channel_tiles<2, POSITIONS>(&t);
  return t;
}
