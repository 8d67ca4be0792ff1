// The lanes [from, to) of a vector as loads and stores take them. Text for the anonymous namespace of AVX2, after vec_avx2.h.
struct Span {
  __m256i m;
  int to;
};

RLX_FN Span span(int from, int to) { return {_mm256_andnot_si256(part_mask(from), part_mask(to)), to}; }
RLX_FN vf load_span(const float *p, Span s) { return {_mm256_maskload_ps(p, s.m)}; }
RLX_FN void store_span(float *p, vf x, Span s) { s.to == LANES ? store(p, x) : store_part(p, x, s.to); }  // masked stores are slow
RLX_FN int lanes_of(int64_t n) { return int(n < 0 ? 0 : n < LANES ? n : LANES); }
