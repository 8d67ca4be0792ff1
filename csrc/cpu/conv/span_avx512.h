// The lanes [from, to) of a vector as loads and stores take them. Text for the anonymous namespace of AVX-512, after vec_avx512.h.
struct Span { __mmask16 m; };

RLX_FN Span span(int from, int to) {
  __mmask16 m = static_cast<__mmask16>(part_mask(to) & ~part_mask(from));
#if defined(__GNUC__)
  __asm__("" : "+k"(m));  // or it would be made anew for each use
#endif
  return {m};
}
RLX_FN vf load_span(const float *p, Span s) { return {_mm512_maskz_loadu_ps(s.m, p)}; }
RLX_FN void store_span(float *p, vf x, Span s) { _mm512_mask_storeu_ps(p, s.m, x.v); }
RLX_FN int lanes_of(int64_t n) { return int(n < 0 ? 0 : n < LANES ? n : LANES); }
