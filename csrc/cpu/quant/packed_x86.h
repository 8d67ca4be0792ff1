// What codes_body.h asks of an instruction set, of AVX2 and what contains it. Text for the anonymous namespace of one.

typedef uint8_t u8x16 __attribute__((vector_size(16)));
RLX_FN float half_at(const uint8_t *p) {
  uint16_t h;
  std::memcpy(&h, p, sizeof h);
  return _cvtsh_ss(h);
}
RLX_FN u8x16 pick16(u8x16 table, u8x16 at) { return u8x16(_mm_shuffle_epi8(__m128i(table), __m128i(at))); }
