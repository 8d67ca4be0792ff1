// The block formats of GGUF files, as docs/spec/quant-schemes.md, section 4, has them. Contract: a weight is the exact value of its formula,
// rounded once to f32: products of a scale, a sub-scale and a code have at most 25 bits, so f32 arithmetic gives it.
#include "../core/rlx_begin.h"

#include "code_books_gen.h"
#include "packed.h"

namespace rlx {
namespace quant {
namespace {

typedef const uint8_t *Bytes;

uint32_t u16(Bytes b) { return uint32_t(b[0]) | uint32_t(b[1]) << 8; }
uint32_t u32(Bytes b) { return u16(b) | u16(b + 2) << 16; }
float f16(Bytes b) { return float(elementwise::f64_from_f16(uint16_t(u16(b)))); }
int i8(uint8_t b) { return int8_t(b); }
int nib(Bytes b, int i) { return b[i / 2] >> (4 * (i % 2)) & 15; }

// 32 codes whose nibbles come in halves.
void halves(Bytes b, int *q) {
  for (int i = 0; i < 16; i++) q[i] = b[i] & 15, q[i + 16] = b[i] >> 4;
}
void add_high(Bytes b, int *q) {
  const uint32_t h = u32(b);
  for (int i = 0; i < 32; i++) q[i] += int(h >> i & 1) << 4;
}

// 32 weights d * q + m.
void linear(float d, float m, const int *q, float *y) {
  for (int i = 0; i < 32; i++) y[i] = d * float(q[i]) + m;
}
// n weights d * (q - zero).
void centred(float d, int zero, int n, const int *q, float *y) {
  for (int i = 0; i < n; i++) y[i] = d * float(q[i] - zero);
}

void q4_0(Bytes b, float *y) {
  int q[32];
  halves(b + 2, q);
  centred(f16(b), 8, 32, q, y);
}
void q4_1(Bytes b, float *y) {
  int q[32];
  halves(b + 4, q);
  linear(f16(b), f16(b + 2), q, y);
}
void q5_0(Bytes b, float *y) {
  int q[32];
  halves(b + 6, q);
  add_high(b + 2, q);
  centred(f16(b), 16, 32, q, y);
}
void q5_1(Bytes b, float *y) {
  int q[32];
  halves(b + 8, q);
  add_high(b + 4, q);
  linear(f16(b), f16(b + 2), q, y);
}
void q8_0(Bytes b, float *y) {
  const float d = f16(b);
  for (int i = 0; i < 32; i++) y[i] = d * float(i8(b[2 + i]));
}
void iq4_nl(Bytes b, float *y) {
  int q[32];
  halves(b + 2, q);
  const float d = f16(b);
  for (int i = 0; i < 32; i++) y[i] = d * float(iq4_values[q[i]]);
}
void mxfp4(Bytes b, float *y) {
  int q[32];
  halves(b + 1, q);
  const double d = elementwise::f64_of_bits(uint64_t(int(b[0]) - 128 + 1023) << 52);
  for (int i = 0; i < 32; i++) y[i] = float(d * double(fp4_doubled[q[i]]));
}
void nvfp4(Bytes b, float *y) {
  for (int run = 0; run < 4; run++) {
    const int e = b[run] >> 3 & 15, f = b[run] & 7;
    const float s = b[run] == 0x7f ? 0.0f : e == 0 ? float(f) * 0x1p-9f : float(elementwise::f64_of_bits(uint64_t(e - 10 + 1023) << 52)) * float(8 + f);
    for (int r = 0; r < 16; r++) y[16 * run + r] = s / 2 * float(fp4_doubled[b[4 + 8 * run + r % 8] >> (4 * (r / 8)) & 15]);
  }
}

// 256 codes in planes of two bits.
void planes(Bytes b, int *q) {
  for (int half = 0; half < 2; half++)
    for (int t = 0; t < 4; t++)
      for (int l = 0; l < 32; l++) q[128 * half + 32 * t + l] = b[32 * half + l] >> (2 * t) & 3;
}
void add_bit(Bytes b, int shift, int *q) {
  for (int j = 0; j < 8; j++)
    for (int l = 0; l < 32; l++) q[32 * j + l] += (b[l] >> j & 1) << shift;
}

void q2_k(Bytes b, float *y) {
  int q[256];
  planes(b + 16, q);
  const float d = f16(b + 80), m = f16(b + 82);
  for (int j = 0; j < 16; j++) {
    const float s = d * float(b[j] & 15), z = m * float(b[j] >> 4);
    for (int i = 16 * j; i < 16 * j + 16; i++) y[i] = s * float(q[i]) - z;
  }
}
void q3_k(Bytes b, float *y) {
  int q[256];
  planes(b + 32, q);
  add_bit(b, 2, q);
  const float d = f16(b + 108);
  for (int j = 0; j < 16; j++) {
    const int low = b[96 + j % 8] >> (4 * (j / 8)) & 15, high = b[104 + j % 4] >> (2 * (j / 4)) & 3;
    centred(d * float((low | high << 4) - 32), 4, 16, q + 16 * j, y + 16 * j);
  }
}

// 256 codes in nibbles: a byte holds one of sub-block 2p and one of 2p + 1. scales are 12 bytes.
void sub_blocks(Bytes b, Bytes scales, const int *q, float *y) {
  const float d = f16(b), m = f16(b + 2);
  for (int j = 0; j < 8; j++) {
    const int sc = j < 4 ? scales[j] & 63 : (scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4;
    const int mn = j < 4 ? scales[j + 4] & 63 : scales[j + 4] >> 4 | (scales[j] >> 6) << 4;
    const float s = d * float(sc), z = m * float(mn);
    for (int i = 32 * j; i < 32 * j + 32; i++) y[i] = s * float(q[i]) - z;
  }
}
void nibble_pairs(Bytes b, int *q) {
  for (int p = 0; p < 4; p++)
    for (int l = 0; l < 32; l++) q[64 * p + l] = b[32 * p + l] & 15, q[64 * p + 32 + l] = b[32 * p + l] >> 4;
}
void q4_k(Bytes b, float *y) {
  int q[256];
  nibble_pairs(b + 16, q);
  sub_blocks(b, b + 4, q, y);
}
void q5_k(Bytes b, float *y) {
  int q[256];
  nibble_pairs(b + 48, q);
  add_bit(b + 16, 4, q);
  sub_blocks(b, b + 4, q, y);
}
void q6_k(Bytes b, float *y) {
  const float d = f16(b + 208);
  for (int half = 0; half < 2; half++)
    for (int t = 0; t < 4; t++) {
      Bytes low = b + 64 * half + 32 * (t % 2), high = b + 128 + 32 * half;
      const int shift = 4 * (t / 2);
      for (int part = 0; part < 32; part += 16) {
        const int i = 128 * half + 32 * t + part;
        const float s = d * float(i8(b[192 + i / 16]));
        for (int l = 0; l < 16; l++) y[i + l] = s * float(((low[part + l] >> shift & 15) | (high[part + l] >> (2 * t) & 3) << 4) - 32);
      }
    }
}
void q8_k(Bytes b, float *y) {
  float d;
  std::memcpy(&d, b, 4);
  for (int i = 0; i < 256; i++) y[i] = d * float(i8(b[4 + i]));
}
void iq4_xs(Bytes b, float *y) {
  const float d = f16(b);
  for (int j = 0; j < 8; j++) {
    int q[32];
    halves(b + 8 + 16 * j, q);
    const float s = d * float((nib(b + 4, j) | int(u16(b + 2) >> (2 * j) & 3) << 4) - 32);
    for (int i = 0; i < 32; i++) y[32 * j + i] = s * float(iq4_values[q[i]]);
  }
}

// The sign byte of the low 7 bits of k.
int parity_signs(uint32_t k) { return int(k & 127) | int(__builtin_popcount(k & 127) & 1) << 7; }

// N entries of a grid's row, those with a sign bit negative.
template <int N> void entries(float s, int bits, const int8_t *levels, uint32_t codes, int signs, float *y) {
  for (int e = 0; e < N; e++) {
    const float v = s * float(levels[codes >> (bits * e) & ((1u << bits) - 1)]);
    y[e] = signs >> e & 1 ? -v : v;
  }
}

void iq2_xxs(Bytes b, float *y) {
  const float d = f16(b);
  for (int j = 0; j < 8; j++) {
    Bytes g = b + 2 + 8 * j;
    const uint32_t a = u32(g + 4);
    const float s = d * (0.5f + float(a >> 28)) / 4;
    for (int r = 0; r < 4; r++) entries<8>(s, iq2_xxs_bits, iq2_xxs_levels, iq2_xxs_codes[g[r]], parity_signs(a >> (7 * r)), y + 32 * j + 8 * r);
  }
}
void iq2_xs(Bytes b, float *y) {
  const float d = f16(b);
  for (int t = 0; t < 32; t++) {
    const uint32_t v = u16(b + 2 + 2 * t);
    const float s = d * (0.5f + float(nib(b + 66, t / 2))) / 4;
    entries<8>(s, iq2_xs_bits, iq2_xs_levels, iq2_xs_codes[v & 511], parity_signs(v >> 9), y + 8 * t);
  }
}
void iq2_s(Bytes b, float *y) {
  const float d = f16(b);
  for (int t = 0; t < 32; t++) {
    const int row = b[2 + t] + 256 * (b[66 + t / 4] >> (2 * (t % 4)) & 3);
    const float s = d * (0.5f + float(nib(b + 74, t / 2))) / 4;
    entries<8>(s, iq2_s_bits, iq2_s_levels, iq2_s_codes[row], b[34 + t], y + 8 * t);
  }
}
void iq3_xxs(Bytes b, float *y) {
  const float d = f16(b);
  for (int t = 0; t < 32; t++) {
    const uint32_t a = u32(b + 66 + 4 * (t / 4));
    const float s = d * (0.5f + float(a >> 28)) / 2;
    const int signs = parity_signs(a >> (7 * (t % 4)));
    entries<4>(s, iq3_xxs_bits, iq3_xxs_levels, iq3_xxs_codes[b[2 + 2 * t]], signs, y + 8 * t);
    entries<4>(s, iq3_xxs_bits, iq3_xxs_levels, iq3_xxs_codes[b[3 + 2 * t]], signs >> 4, y + 8 * t + 4);
  }
}
void iq3_s(Bytes b, float *y) {
  const float d = f16(b);
  for (int t = 0; t < 64; t++) {
    const int row = b[2 + t] + 256 * (b[66 + t / 8] >> (t % 8) & 1);
    const float s = d * float(1 + 2 * nib(b + 106, t / 8));
    entries<4>(s, iq3_s_bits, iq3_s_levels, iq3_s_codes[row], b[74 + t / 2] >> (4 * (t % 2)), y + 4 * t);
  }
}

// A row of IQ1 plus or minus 1/8.
void ternary(float s, int row, bool negative, float *y) {
  const float off = negative ? -0.125f : 0.125f;
  for (int e = 0; e < 8; e++) y[e] = s * (float(iq1_levels[iq1_codes[row] >> (iq1_bits * e) & 3]) + off);
}
void iq1_s(Bytes b, float *y) {
  const float d = f16(b);
  for (int t = 0; t < 32; t++) {
    const int h = int(u16(b + 34 + 2 * (t / 4)));
    ternary(d * float(2 * (h >> 12 & 7) + 1), b[2 + t] + 256 * (h >> (3 * (t % 4)) & 7), (h >> 15) != 0, y + 8 * t);
  }
}
void iq1_m(Bytes b, float *y) {
  const uint32_t bits = u16(b + 48) >> 12 | (u16(b + 50) >> 12) << 4 | (u16(b + 52) >> 12) << 8 | (u16(b + 54) >> 12) << 12;
  const float d = float(elementwise::f64_from_f16(uint16_t(bits)));
  for (int t = 0; t < 32; t++) {
    const int g = nib(b + 32, t), s = int(u16(b + 48 + 2 * (t / 8)) >> (3 * (t / 2 % 4)) & 7);
    ternary(d * float(2 * s + 1), b[t] + 256 * (g & 7), (g & 8) != 0, y + 8 * t);
  }
}
void tq2_0(Bytes b, float *y) {
  int q[256];
  planes(b, q);
  centred(f16(b + 64), 1, 256, q, y);
}
// Digits of the base-3 numbers in n bytes, all first digits before all second ones.
void trits(Bytes b, int n, int digits, float d, float *y) {
  int power = 1;
  for (int k = 0; k < digits; k++, power *= 3)
    for (int i = 0; i < n; i++) y[k * n + i] = d * float((uint8_t(b[i] * power) * 3 >> 8) - 1);
}
void tq1_0(Bytes b, float *y) {
  const float d = f16(b + 52);
  trits(b, 32, 5, d, y);
  trits(b + 32, 16, 5, d, y + 160);
  trits(b + 48, 4, 4, d, y + 240);
}

constexpr void (*decoders[GGUF_SCHEMES])(Bytes, float *) = {q4_k,   q5_k,    q6_k,   q8_k,  q2_k,    q3_k,  iq4_nl, iq4_xs, tq1_0, tq2_0, mxfp4, nvfp4,
                                                            iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, iq1_s,  iq1_m,  q4_0,  q8_0,  q4_1,  q5_0, q5_1};

}  // namespace

static_assert(rlx_Scheme_q4_k == 0 && rlx_Scheme_iq2_xxs == 12 && rlx_Scheme_q5_1 == GGUF_SCHEMES - 1, "the order of the schemes");

const BlockSize gguf_blocks[GGUF_SCHEMES] = {{256, 144}, {256, 176}, {256, 210}, {256, 292}, {256, 84}, {256, 110}, {32, 18}, {256, 136},
                                             {256, 54},  {256, 66},  {32, 17},   {64, 36},   {256, 66}, {256, 74},  {256, 82}, {256, 98},
                                             {256, 110}, {256, 50},  {256, 56},  {32, 18},   {32, 34},  {32, 20},   {32, 22},  {32, 24}};

void decode_block(int64_t scheme, const uint8_t *block, float *to) { decoders[scheme](block, to); }

}  // namespace quant
}  // namespace rlx
