// The lanes [from, to) of a vector as loads and stores take them. Text for the anonymous namespace of an instruction set without masks, after its
// vec_<isa>.h.
struct Span { int from, to; };

RLX_FN Span span(int from, int to) { return {from, to < from ? from : to}; }
RLX_FN vf load_span(const float *p, Span s) {
  if (s.from == 0) return s.to == LANES ? load(p) : load_part(p, s.to);
  float near[LANES] = {};
  for (int i = s.from; i < s.to; i++) near[i] = p[i];
  return load(near);
}
RLX_FN void store_span(float *p, vf x, Span s) { s.to == LANES ? store(p, x) : store_part(p, x, s.to); }
RLX_FN int lanes_of(int64_t n) { return int(n < 0 ? 0 : n < LANES ? n : LANES); }
