// scan_rows.h: Cumsum and CumProd of f32 along rows.
//
// ROWS rows go at once: each has a lane of an f64 vector, so the state and the order of its steps are those of
// Scan::line in scan.cpp. Blocks of 16 columns are turned on their side and back.
#pragma once
#include "../core/rlx_begin.h"

#if defined(RLX_X86)
namespace rlx {
namespace reduce {

RLX_TARGET_AVX2_BEGIN
namespace {
constexpr int ROWS = 8, COLUMNS = 16;

RLX_FN void transpose4(__m128 *v) {
  const __m128 a = _mm_unpacklo_ps(v[0], v[1]), b = _mm_unpackhi_ps(v[0], v[1]), c = _mm_unpacklo_ps(v[2], v[3]), d = _mm_unpackhi_ps(v[2], v[3]);
  v[0] = _mm_movelh_ps(a, c), v[1] = _mm_movehl_ps(c, a), v[2] = _mm_movelh_ps(b, d), v[3] = _mm_movehl_ps(d, b);
}

RLX_FN void turn4(__m128 *v) {
  const __m128 a = v[0], b = v[1];
  v[0] = v[3], v[1] = v[2], v[2] = b, v[3] = a;
}

template <bool PRODUCT> RLX_FN __m256d step4(__m256d state, __m128 x) {
  return PRODUCT ? _mm256_mul_pd(state, _mm256_cvtps_pd(x)) : _mm256_add_pd(state, _mm256_cvtps_pd(x));
}
RLX_FN __m128 rounded4(__m256d state) {
  const __m128 y = _mm256_cvtpd_ps(state);
  return _mm_blendv_ps(y, _mm_set1_ps(NAN), _mm_cmpunord_ps(y, y));
}

// 4 columns of 4 rows; backwards: the last column comes first.
template <bool PRODUCT> RLX_FN void scan4(const float *x, int64_t x_side, float *y, int64_t y_side, __m256d &state, bool exclusive, bool backwards) {
  __m128 v[4] = {_mm_loadu_ps(x), _mm_loadu_ps(x + x_side), _mm_loadu_ps(x + 2 * x_side), _mm_loadu_ps(x + 3 * x_side)};
  transpose4(v);
  if (backwards) turn4(v);
  for (int k = 0; k < 4; k++) {
    const __m256d next = step4<PRODUCT>(state, v[k]);
    v[k] = rounded4(exclusive ? state : next);
    state = next;
  }
  if (backwards) turn4(v);
  transpose4(v);
  for (int i = 0; i < 4; i++) _mm_storeu_ps(y + i * y_side, v[i]);
}

// The columns, a multiple of COLUMNS, of ROWS rows; x and y are the first in scan order. past: y lies on 32 bytes and is written past the caches.
template <bool PRODUCT, bool BACK> void scan_rows_of(const float *x, int64_t x_side, float *y, int64_t y_side, int64_t n, bool exclusive, bool past, double *state) {
  __m256d s[2] = {_mm256_loadu_pd(state), _mm256_loadu_pd(state + 4)};
  alignas(64) float block[ROWS][COLUMNS];
  for (int64_t k = 0; k + COLUMNS <= n; k += COLUMNS) {
    const int64_t at = BACK ? -k - COLUMNS + 1 : k;
    for (int j = 0; j < COLUMNS; j += 4) {
      const int64_t col = BACK ? COLUMNS - 4 - j : j;
      scan4<PRODUCT>(x + at + col, x_side, block[0] + col, COLUMNS, s[0], exclusive, BACK);
      scan4<PRODUCT>(x + at + col + 4 * x_side, x_side, block[4] + col, COLUMNS, s[1], exclusive, BACK);
    }
    for (int i = 0; i < ROWS; i++) {
      float *to = y + i * y_side + at;
      const __m256 a = _mm256_load_ps(block[i]), b = _mm256_load_ps(block[i] + 8);
      if (past) _mm256_stream_ps(to, a), _mm256_stream_ps(to + 8, b);
      else _mm256_storeu_ps(to, a), _mm256_storeu_ps(to + 8, b);
    }
  }
  _mm256_storeu_pd(state, s[0]);
  _mm256_storeu_pd(state + 4, s[1]);
}
}  // namespace
RLX_TARGET_END

}  // namespace reduce
}  // namespace rlx
#endif
