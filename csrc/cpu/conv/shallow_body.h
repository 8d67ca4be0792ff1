// Panels of the windows of a row of results, written once over the vector types. Text for the anonymous namespace of an instruction set, after step.h and
// its span header. See shallow.h.

// Elements at, at + S, ... of a row of `width` elements; zeros outside.
template <int S> RLX_FN vf see(const float *row, int64_t at, int64_t width) {
  const float *p = row + at;
  if (at >= 0 && at + S * (LANES - 1) < width) return S == 1 ? load(p) : every_second(load(p), load(p + LANES - 1));
  const vf a = load_span(p, span(lanes_of(-at), lanes_of(width - at)));
  return S == 1 ? a : every_second(a, load_span(p + LANES - 1, span(lanes_of(1 - LANES - at), lanes_of(width + 1 - LANES - at))));
}

template <int S, int V> RLX_FN void shallow_rows(const ShallowPanel &s) {
  const Window w = *s.window;
  float *to = s.to;
  for (int64_t c = 0; c < w.per; c++)
    for (int64_t i = 0; i < w.kernel[1]; i++) {
      const int64_t row = s.top + i * w.dilation[1];
      const float *x = s.x + c * w.xs[1] + row * w.xs[3];
      const bool inside = uint64_t(row) < uint64_t(w.size[1]);
      if (row + w.stride[1] < w.size[1])  // what the next row of results sees here: other rows lie too far apart to be fetched by themselves
        for (int64_t v = 0; v < V * LANES * S; v += 16) __builtin_prefetch(x + w.stride[1] * w.xs[3] + s.left + v, 0, 3);
      for (int64_t k = 0; k < w.kernel[2]; k++, to += 2 * LANES)
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) store(to + v * LANES, inside ? see<S>(x, s.left + k * w.dilation[2] + v * LANES * S, w.size[2]) : splat<vf>(0.0));
    }
}

void shallow_panel(const ShallowPanel &s) {
  if (s.window->stride[2] == 1) s.wide ? shallow_rows<1, 2>(s) : shallow_rows<1, 1>(s);
  else s.wide ? shallow_rows<2, 2>(s) : shallow_rows<2, 1>(s);
}
