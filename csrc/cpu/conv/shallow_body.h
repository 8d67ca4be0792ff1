// Strips of rows of x and tiles over them, written once over the vector types. Text for the anonymous namespace of an instruction set, after panel_body.h
// and its span header. See shallow.h.
#include "halve.h"

// Columns [at, at + LANES) of a row of `width`; zeros outside.
RLX_FN vf look(const float *row, int64_t at, int64_t width) {
  return at >= 0 && at + LANES <= width ? load(row + at) : load_span(row + at, span(lanes_of(-at), lanes_of(width - at)));
}

// A vector of a phase, or of both of them, from where its columns start.
template <int S> RLX_FN void lay_vector(const StripRow &r, vf a, vf b, float *to) {
  store(to, S == 1 ? a : halve<0>(a, b));
  if (S == 2 && r.phases > 1) store(to + r.pitch, halve<1>(a, b));
}
template <int S> RLX_FN void lay_columns(const StripRow &r) {
  const vf none = splat<vf>(0.0);
  float *to = r.to, *const end = to + r.pitch;
  for (int64_t at = r.left; to < end; to += LANES, at += S * LANES) {
    const bool whole = at >= 0 && at + S * LANES <= r.width;
    if (r.ahead != nullptr && whole)
      for (int i = 0; i < S * LANES; i += 16) __builtin_prefetch(r.ahead + at + i, 0, 2);
    if (r.x == nullptr) lay_vector<S>(r, none, none, to);
    else if (whole) lay_vector<S>(r, load(r.x + at), S == 1 ? none : load(r.x + at + LANES), to);
    else lay_vector<S>(r, look(r.x, at, r.width), S == 1 ? none : look(r.x, at + LANES, r.width), to);
  }
}
void lay_strip(const StripRow &r) { r.stride == 1 ? lay_columns<1>(r) : lay_columns<2>(r); }

template <int H, int V> void strip_tile(const ChannelTile &t, const int32_t *offset) {
  vf s[H][V], b[V];
#pragma GCC unroll 16
  for (int h = 0; h < H; h++)
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) s[h][v] = splat<vf>(0.0);
  const bool simple = ends_simply<V>(t);
  const int32_t *const last = offset + (simple ? t.k - 1 : t.k), *const near = offset + (t.k > H ? H : 0);
  const float *w = t.w, *row = t.y;
  const char *ahead = t.ahead;
  // The rows of results are fetched one with each k.
  for (; offset < near; offset++, w += H, row += t.y_rs) {
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) b[v] = load(t.x + *offset + v * LANES), __builtin_prefetch(row + v * LANES, 1, 3);
#pragma GCC unroll 16
    for (int h = 0; h < H; h++) channel_row(w, b, h, s);
  }
  for (; offset < last; offset++, w += H, ahead += t.ahead_step) {
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) b[v] = load(t.x + *offset + v * LANES);
    __builtin_prefetch(ahead, 0, 2);
#pragma GCC unroll 16
    for (int h = 0; h < H; h++) channel_row(w, b, h, s);
  }
  if (!simple) return put_tile<H, V>(t, s);
#pragma GCC unroll 2
  for (int v = 0; v < V; v++) b[v] = load(t.x + *offset + v * LANES);
  channel_end(t, w, b, s);
}

template <int V, int H> constexpr void list_strip_tiles(StripSet *t) {
  t->run[V - 1][H] = strip_tile<H, V>;
  if constexpr (H > 1) list_strip_tiles<V, H - 1>(t);
}
constexpr StripSet strip_set() {
  StripSet t = {lay_strip, {}};
  list_strip_tiles<1, POSITIONS>(&t), list_strip_tiles<2, POSITIONS>(&t);
  return t;
}
