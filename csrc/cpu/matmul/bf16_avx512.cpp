// Tiles and packing of pairs of bf16 for AVX-512 with AVX512_BF16. See bf16.h.
#include "../core/rlx_begin.h"

#include "bf16.h"

#if defined(RLX_X86)
namespace rlx {
namespace matmul {

RLX_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c,bmi2")
namespace {
#include "../core/vec_avx512.h"

static_assert(kPairCols == 2 * LANES, "two vectors");

RLX_FN __m512i pairs(const void *p) { return _mm512_loadu_si512(p); }
RLX_FN __m512 upper_half(__m512i x) { return _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(int32_t(0xffff0000u)))); }
RLX_FN __m512 lower_half(__m512i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16)); }

struct Dot {
  __m512i v;
  explicit RLX_FN Dot(__m512i x) : v(x) {}
  static RLX_FN __m512 add(__m512 c, Dot a, Dot b) { return _mm512_dpbf16_ps(c, (__m512bh)a.v, (__m512bh)b.v); }
};
struct Exact {
  __m512 first, second;
  explicit RLX_FN Exact(__m512i x) : first(upper_half(x)), second(lower_half(x)) {}
  // The order of operands says which of two NaNs passes; a compiler chooses it anew for each tile.
  static RLX_FN __m512 step(__m512 c, __m512 a, __m512 b) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
  }
  static RLX_FN __m512 add(__m512 c, Exact a, Exact b) { return step(step(c, a.first, b.first), a.second, b.second); }
};

template <class T> RLX_FN T *step(T *p, int64_t bytes) { return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(p) + uintptr_t(bytes)); }

// Every third row has a pointer: the others lie one and two strides on.
template <int H, class P> void tile(const TileF32 *t) {
  __m512 sum[H][2];
  float *c = t->c;
#pragma GCC unroll 16
  for (int i = 0; i < H; i++, c = step(c, t->c_rs)) {
    sum[i][0] = sum[i][1] = _mm512_setzero_ps();
    if (t->load) sum[i][0] = _mm512_loadu_ps(c), sum[i][1] = _mm512_loadu_ps(c + LANES);
  }
  const char *row[(H + 2) / 3], *b = reinterpret_cast<const char *>(t->b), *ahead = static_cast<const char *>(t->ahead);
  const int64_t a_rs = t->a_rs, a_cs = t->a_cs, b_rs = t->b_rs, ahead_step = t->ahead_step;
#pragma GCC unroll 16
  for (int i = 0; i < H; i += 3) row[i / 3] = reinterpret_cast<const char *>(t->a) + i * a_rs;
  for (int64_t k = t->k; k > 0; k--) {
    const P u(pairs(b)), v(pairs(b + 64));
    _mm_prefetch(ahead, _MM_HINT_T1);
    _mm_prefetch(ahead + 64, _MM_HINT_T1);
    b += b_rs, ahead += ahead_step;
#pragma GCC unroll 16
    for (int i = 0; i < H; i++) {
      int32_t pair;
      std::memcpy(&pair, row[i / 3] + i % 3 * a_rs, sizeof pair);
      const P x(_mm512_set1_epi32(pair));
      sum[i][0] = P::add(sum[i][0], x, u);
      sum[i][1] = P::add(sum[i][1], x, v);
    }
#pragma GCC unroll 16
    for (int i = 0; i < H; i += 3) row[i / 3] += a_cs;
  }
  c = t->c;
#pragma GCC unroll 16
  for (int i = 0; i < H; i++, c = step(c, t->c_rs)) _mm512_storeu_ps(c, sum[i][0]), _mm512_storeu_ps(c + LANES, sum[i][1]);
}

// In two parts, since the halves of the operands take registers too.
template <int H> void exact(const TileF32 *t) {
  TileF32 part = *t;
  tile<(H + 1) / 2, Exact>(&part);
  if (H == 1) return;
  part.a = step(t->a, (H + 1) / 2 * t->a_rs);
  part.c = step(t->c, (H + 1) / 2 * t->c_rs);
  tile<H < 2 ? 1 : H / 2, Exact>(&part);
}

// The least of the elements' magnitudes less one, so that zeros are the largest.
struct Least {
  __m512i v;
  RLX_FN Least() : v(_mm512_set1_epi16(-1)) {}
  RLX_FN void see(__m512i x) {
    v = _mm512_min_epu16(v, _mm512_sub_epi16(_mm512_and_si512(x, _mm512_set1_epi16(0x7fff)), _mm512_set1_epi16(1)));
  }
  RLX_FN int exponent() const {
    const __m256i h = _mm256_min_epu16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    const __m128i q = _mm_min_epu16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    return least_exponent(unsigned(_mm_cvtsi128_si32(_mm_minpos_epu16(q))) & 0xffff);
  }
};

RLX_FN __m512i swap_halves(__m512i x) { return _mm512_rol_epi32(x, 16); }

int pack_row(uint32_t *row, const uint16_t *src, int64_t k) {
  Least least;
  int64_t i = 0;
  for (; i + 32 <= k; i += 32) {
    const __m512i x = pairs(src + i);
    least.see(x);
    _mm512_storeu_si512(row + i / 2, swap_halves(x));
  }
  if (i < k) {
    const __m512i x = _mm512_maskz_loadu_epi16((__mmask32(1) << (k - i)) - 1, src + i);
    least.see(x);
    _mm512_storeu_si512(row + i / 2, swap_halves(x));
  }
  return least.exponent();
}

RLX_FN __m512i wide_halves(const uint16_t *p, __mmask16 m) { return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, p)); }

constexpr int64_t kAhead = 2 * kPairCols;  // elements: rows lie on pages of their own, which the hardware does not follow

int pack_rows(uint32_t *dst, int w, const uint16_t *src, int64_t sk, int64_t k, int n, uint16_t after) {
  Least least;
  for (int64_t i = 0; i < k; i += 2, dst += w, src += 2 * sk) {
    const uint16_t *next = i + 1 < k ? src + sk : src;
    _mm_prefetch(reinterpret_cast<const char *>(src + kAhead), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char *>(next + kAhead), _MM_HINT_T0);
    for (int j = 0; j < w; j += LANES) {
      const __mmask16 m = part_mask(n - j >= LANES ? LANES : n > j ? n - j : 0);
      __m512i x = _mm512_slli_epi32(wide_halves(src + j, m), 16);
      x = _mm512_or_si512(x, i + 1 < k ? wide_halves(next + j, m) : _mm512_set1_epi32(after));
      least.see(x);
      if (w - j >= LANES) _mm512_storeu_si512(dst + j, x);
      else _mm512_mask_storeu_epi32(dst + j, part_mask(w - j), x);
    }
  }
  return least.exponent();
}

// x[i] lane j becomes x[j] lane i.
RLX_FN void transpose(__m512i *x) {
  __m512i t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) t[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]), t[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    x[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]), x[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]), x[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {  // x[4q + i] holds, in part p of 4 lanes, rows 4q .. 4q+3 of column 4p + i
    const __m512i a = _mm512_shuffle_i32x4(x[i], x[4 + i], 0x44), b = _mm512_shuffle_i32x4(x[i], x[4 + i], 0xee);
    const __m512i c = _mm512_shuffle_i32x4(x[8 + i], x[12 + i], 0x44), d = _mm512_shuffle_i32x4(x[8 + i], x[12 + i], 0xee);
    t[i] = _mm512_shuffle_i32x4(a, c, 0x88), t[4 + i] = _mm512_shuffle_i32x4(a, c, 0xdd);
    t[8 + i] = _mm512_shuffle_i32x4(b, d, 0x88), t[12 + i] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) x[i] = t[i];
}

int pack_columns(uint32_t *dst, int w, const uint16_t *src, int64_t sj, int64_t k, int n, uint16_t after) {
  Least least;
  for (int64_t i = 0; i < k; i += 32, dst += 16 * w) {
    const int64_t left = k - i < 32 ? k - i : 32, rows = (left + 1) / 2;
    const __mmask32 m = left == 32 ? ~__mmask32(0) : (__mmask32(1) << left) - 1;
    for (int j = 0; j < w; j += LANES) {
      __m512i x[16];
#pragma GCC unroll 16
      for (int c = 0; c < 16; c++) {
        x[c] = _mm512_setzero_si512();
        if (j + c >= n) continue;
        const uint16_t *p = src + (j + c) * sj + i;
        _mm_prefetch(reinterpret_cast<const char *>(p) + 128, _MM_HINT_T0);
        x[c] = swap_halves(_mm512_mask_loadu_epi16(_mm512_set1_epi16(int16_t(after)), m, p));
        least.see(x[c]);
      }
      transpose(x);
      const __mmask16 to = part_mask(w - j >= LANES ? LANES : w - j);
#pragma GCC unroll 16
      for (int r = 0; r < 16; r++)
        if (r < rows) _mm512_mask_storeu_epi32(dst + r * w + j, to, x[r]);
    }
  }
  return least.exponent();
}

int pack_any(uint32_t *dst, int w, const uint16_t *src, int64_t sk, int64_t sj, int64_t k, int n, uint16_t after) {
  unsigned least = 0xffff;
  const auto get = [&](int64_t i, int j) {
    if (j >= n) return uint32_t(0);
    const unsigned x = i < k ? src[i * sk + j * sj] : after, less = ((x & 0x7fff) - 1) & 0xffff;
    least = less < least ? less : least;
    return uint32_t(x);
  };
  for (int64_t i = 0; i < k; i += 2, dst += w)
    for (int j = 0; j < w; j++) dst[j] = get(i, j) << 16 | get(i + 1, j);
  return least_exponent(least);
}

int pack(uint32_t *panel, int w, const uint16_t *src, int64_t sk, int64_t sj, int64_t k, int n, uint16_t after) {
  if (sj == 1) return pack_rows(panel, w, src, sk, k, n, after);
  if (sk == 1) return pack_columns(panel, w, src, sj, k, n, after);
  return pack_any(panel, w, src, sk, sj, k, n, after);
}

void put(uint16_t *y, int64_t y_rs, const float *sums, int64_t sums_rs, int64_t rows, int n) {
  const int first = n < LANES ? n : LANES;
  for (; rows > 0; rows--, y += y_rs, sums += sums_rs) {
    store_bf16_part(y, load(sums), first);
    store_bf16_part(y + first, load(sums + LANES), n - first);
  }
}

// The instruction takes subnormals for zeros, and NaNs get the bits that they have everywhere.
void put_normal(uint16_t *y, int64_t y_rs, const float *sums, int64_t sums_rs, int64_t rows, int n) {
  const __mmask32 m = ~__mmask32(0) >> (kPairCols - n);
  const __m512i sign = _mm512_set1_epi16(INT16_MIN), inf = _mm512_set1_epi16(0x7f80), nan = _mm512_set1_epi16(0x7fc0);
  for (; rows > 0; rows--, y += y_rs, sums += sums_rs) {
    const __m512i x = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(sums + LANES), _mm512_loadu_ps(sums));
    const __mmask32 nans = _mm512_cmpgt_epu16_mask(_mm512_andnot_si512(sign, x), inf);
    _mm512_mask_storeu_epi16(y, m, _mm512_mask_mov_epi16(x, nans, _mm512_or_si512(_mm512_and_si512(x, sign), nan)));
  }
}

}  // namespace
RLX_TARGET_END

#define RLX_TILES_14(f) \
  {nullptr, f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14)}
#define RLX_DOT(h) tile<h, Dot>
#define RLX_EXACT(h) exact<h>
extern const PairSet kPairsAvx512 = {RLX_TILES_14(RLX_DOT), RLX_TILES_14(RLX_EXACT), pack, pack_row, put, put_normal};

}  // namespace matmul
}  // namespace rlx
#endif
