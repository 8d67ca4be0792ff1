#include "../core/rlx_begin.h"

#include <cstdint>
#include <cstring>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "gemm_tile.h"

namespace rlx {
namespace matmul {
namespace {

#if defined(__aarch64__)
constexpr int kRows = 8;
#else
constexpr int kRows = 4;
#endif
constexpr int kCols = 8;

typedef float v4 __attribute__((vector_size(16)));

inline v4 load4(const float *p) {
  v4 v;
  memcpy(&v, p, sizeof v);
  return v;
}
inline void store4(float *p, v4 v) { memcpy(p, &v, sizeof v); }

// One rounding where the baseline has FMA (aarch64), two where it has none (x86-64): bits are equal within one set, not across.
inline v4 mul_add(float a, v4 b, v4 c) {
#if defined(__aarch64__)
  return reinterpret_cast<v4>(vfmaq_n_f32(reinterpret_cast<float32x4_t>(c), reinterpret_cast<float32x4_t>(b), a));
#else
  return c + b * a;
#endif
}

inline const float *step(const float *p, int64_t bytes) { return reinterpret_cast<const float *>(reinterpret_cast<const char *>(p) + bytes); }
inline float *step(float *p, int64_t bytes) { return reinterpret_cast<float *>(reinterpret_cast<char *>(p) + bytes); }

template <int R>
void tile(const TileF32 *t) {
  v4 acc[R][2];
  for (int i = 0; i < R; i++) {
    const float *c = step(t->c, i * t->c_rs);
    acc[i][0] = t->load ? load4(c) : v4{};
    acc[i][1] = t->load ? load4(c + 4) : v4{};
  }
  const float *a = t->a, *b = t->b;
  for (int64_t k = 0; k < t->k; k++, a = step(a, t->a_cs), b = step(b, t->b_rs)) {
    const v4 b0 = load4(b), b1 = load4(b + 4);
    for (int i = 0; i < R; i++) {
      const float x = *step(a, i * t->a_rs);
      acc[i][0] = mul_add(x, b0, acc[i][0]);
      acc[i][1] = mul_add(x, b1, acc[i][1]);
    }
  }
  for (int i = 0; i < R; i++) {
    float *c = step(t->c, i * t->c_rs);
    store4(c, acc[i][0]);
    store4(c + 4, acc[i][1]);
  }
}

// Copies 4 columns of b that lie along k: four loads, a transpose, four stores.
inline void transpose4(float *dst, int w, const float *s0, const float *s1, const float *s2, const float *s3) {
  const v4 r0 = load4(s0), r1 = load4(s1), r2 = load4(s2), r3 = load4(s3);
#if defined(__clang__)
#define RLX_SHUFFLE(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#else
  typedef int32_t i4 __attribute__((vector_size(16)));
#define RLX_SHUFFLE(x, y, a, b, c, d) __builtin_shuffle(x, y, i4{a, b, c, d})
#endif
  const v4 t0 = RLX_SHUFFLE(r0, r1, 0, 4, 1, 5), t1 = RLX_SHUFFLE(r0, r1, 2, 6, 3, 7);
  const v4 t2 = RLX_SHUFFLE(r2, r3, 0, 4, 1, 5), t3 = RLX_SHUFFLE(r2, r3, 2, 6, 3, 7);
  store4(dst, RLX_SHUFFLE(t0, t2, 0, 1, 4, 5));
  store4(dst + w, RLX_SHUFFLE(t0, t2, 2, 3, 6, 7));
  store4(dst + 2 * w, RLX_SHUFFLE(t1, t3, 0, 1, 4, 5));
  store4(dst + 3 * w, RLX_SHUFFLE(t1, t3, 2, 3, 6, 7));
#undef RLX_SHUFFLE
}

constexpr int64_t kPackAhead = 64;  // floats: columns lie on pages of their own, which the hardware does not follow

void pack_rows(float *dst, int w, const float *src, int64_t sk, int64_t k, int n) {
  for (int64_t i = 0; i < k; i++, dst += w, src += sk) {
    int j = 0;
    for (; j + 4 <= n; j += 4) store4(dst + j, load4(src + j));
    for (; j < n; j++) dst[j] = src[j];
    for (; j < w; j++) dst[j] = 0;
  }
}

void pack_any(float *dst, int w, const float *src, int64_t sk, int64_t sj, int64_t k, int n) {
  for (int64_t i = 0; i < k; i++, dst += w, src += sk) {
    for (int j = 0; j < n; j++) dst[j] = src[j * sj];
    for (int j = n; j < w; j++) dst[j] = 0;
  }
}

// Blocks of 16 along k use each cache line of the source whole before the next column may evict it.
void pack_columns(float *dst, int w, const float *src, int64_t sj, int64_t k, int n) {
  int64_t i = 0;
  for (; i + 16 <= k; i += 16) {
    for (int j = 0; j < n; j++) __builtin_prefetch(src + j * sj + i + kPackAhead, 0, 2);
    for (int j0 = 0; j0 < n && n >= 4; j0 += 4) {
      const int j = j0 + 4 <= n ? j0 : n - 4;  // the last four overlap those before
      for (int u = 0; u < 16; u += 4) {
        const float *s = src + j * sj + i + u;
        transpose4(dst + (i + u) * w + j, w, s, s + sj, s + 2 * sj, s + 3 * sj);
      }
    }
    for (int j = n >= 4 ? n : 0; j < w; j++)
      for (int u = 0; u < 16; u++) dst[(i + u) * w + j] = j < n ? src[j * sj + i + u] : 0;
  }
  pack_any(dst + i * w, w, src + i, 1, sj, k - i, n);
}

}  // namespace

void pack_panel_f32(float *dst, int w, const float *src, int64_t sk, int64_t sj, int64_t k, int n) {
  if (sj == 1) return pack_rows(dst, w, src, sk, k, n);
  if (sk == 1) return pack_columns(dst, w, src, sj, k, n);
  pack_any(dst, w, src, sk, sj, k, n);
}

#if defined(__aarch64__)
const TileSetF32 kTilesF32Generic = {kRows, kCols, {nullptr, tile<1>, tile<2>, tile<3>, tile<4>, tile<5>, tile<6>, tile<7>, tile<8>}, {}};
#else
const TileSetF32 kTilesF32Generic = {kRows, kCols, {nullptr, tile<1>, tile<2>, tile<3>, tile<4>}, {}};
#endif

}  // namespace matmul
}  // namespace rlx
