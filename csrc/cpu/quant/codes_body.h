// codes_body.h: the block formats of GGUF whose weights are code * scale, or code * scale + offset: a chunk of a row as codes of one byte, and the
// scales of its runs. Contract: code * scale is exact in f32 (25 bits at most), so that a weight is rounded once, as docs/spec/quant-schemes.md has it.
// Text for the anonymous namespace of an instruction set, after vec_<isa>.h, codes_at(p), LANES codes of a byte, u8x16
// (16 bytes), half_at(p), the f16 at p, and pick16(table, codes), bytes of a table.

typedef const uint8_t *__restrict Bytes;

struct Codes {
  alignas(64) int8_t q[CHUNK_K];
  alignas(64) float scale[2 * CHUNK_K / 16];  // of all runs, then their offsets
};

RLX_FN uint32_t word_at(Bytes b) {
  uint32_t w;
  std::memcpy(&w, b, sizeof w);
  return w;
}

// 2^(e - 128): the two smallest are subnormal.
RLX_FN float power_of(int e) {
  const uint32_t bits = e > 1 ? uint32_t(e - 1) << 23 : e == 1 ? 0x400000 : 0x200000;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

RLX_FN u8x16 bytes_at(Bytes b) {
  u8x16 v;
  std::memcpy(&v, b, sizeof v);
  return v;
}
RLX_FN void put_bytes(int8_t *q, u8x16 v) { std::memcpy(q, &v, sizeof v); }

// 32 nibbles that come in halves, minus zero.
RLX_FN void put_halves(int8_t *q, Bytes b, uint8_t zero) {
  const u8x16 v = bytes_at(b);
  put_bytes(q, (v & 15) - zero), put_bytes(q + 16, (v >> 4) - zero);
}
// The same as entries of a table.
RLX_FN void pick_halves(int8_t *q, const int8_t *table, Bytes b) {
  const u8x16 v = bytes_at(b), t = bytes_at(reinterpret_cast<const uint8_t *>(table));
  put_bytes(q, pick16(t, v & 15)), put_bytes(q + 16, pick16(t, v >> 4));
}
// The same with a fifth bit each: bit i of a word belongs to nibble i.
RLX_FN u8x16 fifths(Bytes bits) {
  const u8x16 which = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const u8x16 byte = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  typedef uint16_t u16x8 __attribute__((vector_size(16)));
  const uint16_t w = uint16_t(bits[0] | bits[1] << 8);
  const u8x16 v = pick16(u8x16(u16x8{w, w, w, w, w, w, w, w}), byte);
  return u8x16((v & which) != 0) & 16;
}
RLX_FN void put_fifths(int8_t *q, Bytes b, Bytes bits, uint8_t zero) {
  const u8x16 v = bytes_at(b);
  put_bytes(q, ((v & 15) | fifths(bits)) - zero), put_bytes(q + 16, ((v >> 4) | fifths(bits + 2)) - zero);
}

void q4_0_codes(Bytes b, int n, Codes *__restrict c) {
  for (int i = 0; i < n; i += 32, b += 18) c->scale[i / 32] = half_at(b), put_halves(c->q + i, b + 2, 8);
}
void q4_1_codes(Bytes b, int n, Codes *__restrict c) {
  for (int i = 0; i < n; i += 32, b += 20) c->scale[i / 32] = half_at(b), c->scale[8 + i / 32] = half_at(b + 2), put_halves(c->q + i, b + 4, 0);
}
void q5_0_codes(Bytes b, int n, Codes *__restrict c) {
  for (int i = 0; i < n; i += 32, b += 22) c->scale[i / 32] = half_at(b), put_fifths(c->q + i, b + 6, b + 2, 16);
}
void q5_1_codes(Bytes b, int n, Codes *__restrict c) {
  for (int i = 0; i < n; i += 32, b += 24)
    c->scale[i / 32] = half_at(b), c->scale[8 + i / 32] = half_at(b + 2), put_fifths(c->q + i, b + 8, b + 4, 0);
}
void q8_0_codes(Bytes b, int n, Codes *__restrict c) {
  for (int i = 0; i < n; i += 32, b += 34) c->scale[i / 32] = half_at(b), std::memcpy(c->q + i, b + 2, 32);
}
// Those alone, where codes are read in their blocks.
void q8_0_scales(Bytes b, int n, Codes *__restrict c) {
  for (int i = 0; i < n / 32; i++) c->scale[i] = half_at(b + 34 * i);
}
void mxfp4_codes(Bytes b, int n, Codes *__restrict c) {
  for (int i = 0; i < n; i += 32, b += 17) c->scale[i / 32] = power_of(b[0]), pick_halves(c->q + i, fp4_doubled, b + 1);
}
void iq4_nl_codes(Bytes b, int n, Codes *__restrict c) {
  for (int i = 0; i < n; i += 32, b += 18) c->scale[i / 32] = half_at(b), pick_halves(c->q + i, iq4_values, b + 2);
}

// 256 codes of two bits in planes: plane t of a half holds elements [32 t, 32 t + 32).
RLX_FN void put_planes(int8_t *__restrict q, Bytes b) {
  for (int half = 0; half < 2; half++, q += 128, b += 32) {
    for (int l = 0; l < 32; l++) q[l] = int8_t(b[l] & 3);
    for (int l = 0; l < 32; l++) q[32 + l] = int8_t(b[l] >> 2 & 3);
    for (int l = 0; l < 32; l++) q[64 + l] = int8_t(b[l] >> 4 & 3);
    for (int l = 0; l < 32; l++) q[96 + l] = int8_t(b[l] >> 6);
  }
}

void q2_k_codes(Bytes b, int, Codes *__restrict c) {
  put_planes(c->q, b + 16);
  const float d = half_at(b + 80), m = half_at(b + 82);
  for (int j = 0; j < 16; j++) c->scale[j] = d * float(b[j] & 15);
  for (int j = 0; j < 16; j++) c->scale[16 + j] = -(m * float(b[j] >> 4));
}
// The third bit of sub-block J, minus 4.
template <int J> RLX_FN void third(int8_t *__restrict q, Bytes h) {
  for (int l = 0; l < 32; l++) q[32 * J + l] = int8_t((q[32 * J + l] | ((J < 2 ? h[l] << (2 - J) : h[l] >> (J < 2 ? 0 : J - 2)) & 4)) - 4);
}
void q3_k_codes(Bytes b, int, Codes *__restrict c) {
  put_planes(c->q, b + 32);
  third<0>(c->q, b), third<1>(c->q, b), third<2>(c->q, b), third<3>(c->q, b);
  third<4>(c->q, b), third<5>(c->q, b), third<6>(c->q, b), third<7>(c->q, b);
  const float d = half_at(b + 108);
  for (int j = 0; j < 16; j++) {
    const int low = b[96 + j % 8] >> (4 * (j / 8)) & 15, high = b[104 + j % 4] >> (2 * (j / 4)) & 3;
    c->scale[j] = d * float((low | high << 4) - 32);
  }
}

// The six-bit scales and minima of q4_k and q5_k, four at a time.
RLX_FN void sub_scales(Bytes b, Codes *__restrict c) {
  const uint32_t u = word_at(b + 4), v = word_at(b + 8), w = word_at(b + 12), six = 0x3f3f3f3f, four = 0x0f0f0f0f, two = 0x30303030;
  const uint32_t words[4] = {u & six, (w & four) | (u >> 2 & two), v & six, (w >> 4 & four) | (v >> 2 & two)};
  typedef uint64_t u64x2 __attribute__((vector_size(16)));
  const u64x2 both = {words[0] | uint64_t(words[1]) << 32, words[2] | uint64_t(words[3]) << 32};
  int8_t codes[16];
  std::memcpy(codes, &both, sizeof codes);
  const float d = half_at(b), m = -half_at(b + 2);
  for (int i = 0; i < 16; i += LANES) {
    const vf by = LANES == 16 ? keep(splat<vf>(d), 8, splat<vf>(m)) : splat<vf>(i < 8 ? d : m);
    store(c->scale + i, codes_at(codes + i) * by);
  }
}
void q4_k_codes(Bytes b, int, Codes *__restrict c) {
  sub_scales(b, c);
  b += 16;
  for (int p = 0; p < 4; p++, b += 32) {
    for (int l = 0; l < 32; l++) c->q[64 * p + l] = int8_t(b[l] & 15);
    for (int l = 0; l < 32; l++) c->q[64 * p + 32 + l] = int8_t(b[l] >> 4);
  }
}
// Sub-blocks 2P and 2P + 1, whose fifth bits are bits of these numbers.
template <int P> RLX_FN void fifth(int8_t *__restrict q, Bytes b, Bytes h) {
  constexpr int J = 2 * P;
  for (int l = 0; l < 32; l++) q[64 * P + l] = int8_t((b[32 * P + l] & 15) | ((J < 4 ? h[l] << (J < 4 ? 4 - J : 0) : h[l] >> (J < 4 ? 0 : J - 4)) & 16));
  for (int l = 0; l < 32; l++) q[64 * P + 32 + l] = int8_t((b[32 * P + l] >> 4) | ((J < 3 ? h[l] << (J < 3 ? 3 - J : 0) : h[l] >> (J < 3 ? 0 : J - 3)) & 16));
}
void q5_k_codes(Bytes b, int, Codes *__restrict c) {
  sub_scales(b, c);
  fifth<0>(c->q, b + 48, b + 16), fifth<1>(c->q, b + 48, b + 16), fifth<2>(c->q, b + 48, b + 16), fifth<3>(c->q, b + 48, b + 16);
}
void q6_k_codes(Bytes b, int, Codes *__restrict c) {
  const float d = half_at(b + 208);
  for (int j = 0; j < 16; j++) c->scale[j] = d * float(int8_t(b[192 + j]));
  int8_t *__restrict q = c->q;
  for (int half = 0; half < 2; half++, q += 128) {
    Bytes low = b + 64 * half, high = b + 128 + 32 * half;
    for (int l = 0; l < 32; l++) q[l] = int8_t(((low[l] & 15) | (high[l] << 4 & 48)) - 32);
    for (int l = 0; l < 32; l++) q[32 + l] = int8_t(((low[32 + l] & 15) | (high[l] << 2 & 48)) - 32);
    for (int l = 0; l < 32; l++) q[64 + l] = int8_t(((low[l] >> 4) | (high[l] & 48)) - 32);
    for (int l = 0; l < 32; l++) q[96 + l] = int8_t(((low[32 + l] >> 4) | (high[l] >> 2 & 48)) - 32);
  }
}
void q8_k_codes(Bytes b, int, Codes *__restrict c) {
  float d;
  std::memcpy(&d, b, 4);
  for (int j = 0; j < 8; j++) c->scale[j] = d;
  std::memcpy(c->q, b + 4, 256);
}
void iq4_xs_codes(Bytes b, int, Codes *__restrict c) {
  const float d = half_at(b);
  const uint32_t high = word_at(b) >> 16;
  for (int j = 0; j < 8; j++) c->scale[j] = d * float(int((b[4 + j / 2] >> (4 * (j % 2)) & 15u) | (high >> (2 * j) & 3) << 4) - 32);
  for (int j = 0; j < 8; j++) pick_halves(c->q + 32 * j, iq4_values, b + 8 + 16 * j);
}
