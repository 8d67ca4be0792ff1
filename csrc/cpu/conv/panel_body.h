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

// One k of a tile: sums of row h of channels from w[h] and the positions in b.
template <int H, int V> RLX_FN void channel_row(const float *w, const vf (&b)[V], int h, vf (&s)[H][V]) {
  const vf a = splat<vf>(w[h]);
#pragma GCC unroll 2
  for (int v = 0; v < V; v++) s[h][v] = fma(a, b[v], s[h][v]);
}

// Whether a tile may end with channel_end: nothing but whole vectors, a bias and functions that only cut.
template <int V> RLX_FN bool ends_simply(const ChannelTile &t) {
  return t.n == V * LANES && t.k > 0 && (!t.last || (t.finish.residual == nullptr && t.finish.fn != kFinishHardSwish));
}

// The last k with what follows it, row by row: stores wait for few sums then, and the next tile starts meanwhile. Bias and the functions that only cut are
// there always: -0 added and infinite bounds change nothing.
template <int H, int V> RLX_FN void channel_end(const ChannelTile &t, const float *w, const vf (&b)[V], vf (&s)[H][V]) {
  static_assert(kMostChannels == 14, "as many zeros as channels");
  static const float none[kMostChannels] = {-0.f, -0.f, -0.f, -0.f, -0.f, -0.f, -0.f, -0.f, -0.f, -0.f, -0.f, -0.f, -0.f, -0.f};
  const int32_t fn = t.last ? t.finish.fn : int32_t(kFinishNone);
  const float *bias = t.last && t.finish.bias != nullptr ? t.finish.bias : none;
  const vf zero = splat<vf>(fn == kFinishNone ? -0.0 : 0.0);  // see bias_of
  const vf low = splat<vf>(fn == kFinishNone ? -INFINITY : 0.0), high = splat<vf>(fn == kFinishRelu6 ? 6.0 : INFINITY);
  float *y = t.y;
#pragma GCC unroll 16
  for (int h = 0; h < H; h++, y += t.y_rs) {
    channel_row(w, b, h, s);
    const vf more = splat<vf>(bias[h]) + zero;
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) store(y + v * LANES, raw_min(high, raw_max(low, s[h][v] + more)));
  }
}

// Finishes the sums of a tile where they are complete, and stores them.
template <int H, int V> RLX_FN void put_tile(const ChannelTile &t, vf (&s)[H][V]) {
  const int rest = t.n - (V - 1) * LANES;  // lanes of the last vector
  if (t.last) finish_tile<H, V>(t.finish, t.y_rs, rest, s);
  float *y = t.y;
#pragma GCC unroll 16
  for (int h = 0; h < H; h++, y += t.y_rs)
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) {
      if (v < V - 1 || rest == LANES) store(y + v * LANES, s[h][v]);
      else store_part(y + v * LANES, s[h][v], rest);
    }
}

template <int H, int V> void channel_tile(const ChannelTile &t) {
  const int rest = t.n - (V - 1) * LANES;  // lanes of the last vector
  vf s[H][V];
  float *y = t.y;
  if (t.load) {
#pragma GCC unroll 16
    for (int h = 0; h < H; h++, y += t.y_rs)
#pragma GCC unroll 2
      for (int v = 0; v < V; v++) s[h][v] = v < V - 1 || rest == LANES ? load(y + v * LANES) : load_part(y + v * LANES, rest);
  } else {
#pragma GCC unroll 16
    for (int h = 0; h < H; h++)
#pragma GCC unroll 2
      for (int v = 0; v < V; v++) s[h][v] = splat<vf>(0.0);
  }
  const bool simple = ends_simply<V>(t);
  const float *w = t.w, *x = t.x;
  const char *ahead = t.ahead;
  vf b[V];
  // What the tile will read and write is fetched row by row while the first k pass: all at once is more than the first level waits for at a time.
  const float *const rows[3] = {t.load ? nullptr : t.y, t.last ? t.finish.residual : nullptr, t.w};
  int64_t k = simple ? t.k - 1 : t.k;
  for (int i = 0; i < 3; i++) {
    const float *row = rows[i];
    const int64_t rs = i < 2 ? t.y_rs : 0;
    if (i == 0 && row != nullptr && t.k < 4 * H) {
#pragma GCC unroll 16
      for (int h = 0; h < H; h++)
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) __builtin_prefetch(row + h * rs + v * LANES, 1, 3);
      continue;
    }
    int64_t n = row == nullptr ? 0 : i == 2 || k < H ? k : H;
    for (k -= n; n > 0; n--, w += H, x += t.x_rs, ahead += t.ahead_step, row += rs) {
#pragma GCC unroll 2
      for (int v = 0; v < V; v++) b[v] = load(x + v * LANES), __builtin_prefetch(row + v * LANES, 0, 3);
      __builtin_prefetch(ahead, 0, 2);
#pragma GCC unroll 16
      for (int h = 0; h < H; h++) channel_row(w, b, h, s);
    }
  }
  if (simple) {
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) b[v] = load(x + v * LANES);
    return channel_end(t, w, b, s);
  }
  put_tile<H, V>(t, s);
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
