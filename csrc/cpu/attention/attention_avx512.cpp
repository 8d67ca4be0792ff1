// Attention and Rope of f32, f16 and bf16, 16 lanes. See attention_body.h and rope_body.h.
#include "../core/rlx_begin.h"

#include "attention.h"

#if defined(RLX_X86)
namespace rlx {
namespace attention {

RLX_TARGET_AVX512_BEGIN
namespace {
#include "../core/vec_avx512.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
#include "../norm/power_avx512.h"

// Halves by 256-bit inserts, of which two are as dear as one of 512 bits.
RLX_FN __m256 half4(const char *p, const char *q) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(reinterpret_cast<const float *>(p))), _mm_loadu_ps(reinterpret_cast<const float *>(q)), 1);
}
RLX_FN __m512 piece4(const char *const *p, int64_t at) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(half4(p[0] + at, p[1] + at)), half4(p[2] + at, p[3] + at), 1);
}
RLX_FN void columns4(const float *rows, int64_t rs, vf *c) {
  // Bases that the compiler cannot take apart: addresses of all rows would not fit into registers.
  const char *p[4] = {reinterpret_cast<const char *>(rows)};
  __asm__("" : "+r"(p[0]));
  p[1] = p[0] + 4 * rs, p[2] = p[0] + 8 * rs;
  __asm__("" : "+r"(p[1]), "+r"(p[2]));
  p[3] = p[2] + 4 * rs;
  __asm__("" : "+r"(p[3]));
  const __m512 a = piece4(p, 0), b = piece4(p, rs), x = piece4(p, 2 * rs), y = piece4(p, 3 * rs);
  const __m512d ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b)), AB = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
  const __m512d xy = _mm512_castps_pd(_mm512_unpacklo_ps(x, y)), XY = _mm512_castps_pd(_mm512_unpackhi_ps(x, y));
  c[0] = {_mm512_castpd_ps(_mm512_unpacklo_pd(ab, xy))}, c[1] = {_mm512_castpd_ps(_mm512_unpackhi_pd(ab, xy))};
  c[2] = {_mm512_castpd_ps(_mm512_unpacklo_pd(AB, XY))}, c[3] = {_mm512_castpd_ps(_mm512_unpackhi_pd(AB, XY))};
}

// See attention_direct_body.h. Keys 0 to 2 are reached from one base, the last from another.
#define ROW(at, r) "vbroadcastss " at ",%%zmm31\n\tvfmadd231ps %%zmm29,%%zmm31,%[c" #r "0]\n\tvfmadd231ps %%zmm30,%%zmm31,%[c" #r "1]\n\t"
#define SUM(r, w) [c##r##w] "+v"(c[r][w].v)
struct Steps {
  const char *k, *last;
  int64_t rs;
  const float *panel;
  Steps(const char *at, int64_t step, const float *queries) : k(at), last(at + 3 * step), rs(step), panel(queries) {}
  RLX_FN void products(int64_t n, vf (&c)[4][2]) {
    __asm__ volatile("1:\n\tvmovups (%[panel]),%%zmm29\n\tvmovups 64(%[panel]),%%zmm30\n\tsub $-128,%[panel]\n\t"
                     ROW("(%[k])", 0) ROW("(%[k],%[rs])", 1) ROW("(%[k],%[rs],2)", 2) ROW("(%[last])", 3)
                     "add $4,%[k]\n\tadd $4,%[last]\n\tdec %[n]\n\tjnz 1b"
                     : SUM(0, 0), SUM(0, 1), SUM(1, 0), SUM(1, 1), SUM(2, 0), SUM(2, 1), SUM(3, 0), SUM(3, 1), [k] "+&r"(k), [last] "+&r"(last),
                       [panel] "+&r"(panel), [n] "+&r"(n)
                     : [rs] "r"(rs)
                     : "cc", "memory", "xmm29", "xmm30", "xmm31");
  }
};
#undef ROW
#undef SUM

#include "attention_body.h"
#include "rope_body.h"
}  // namespace
RLX_TARGET_END

extern const Set set_avx512 = {&matmul::kTilesF32Avx512, attention_unit<f32_form>, attention_unit<f16_form>, attention_unit<bf16_form>,
                            rope_token<f32_form>, rope_token<f16_form>, rope_token<bf16_form>};

}  // namespace attention
}  // namespace rlx
#endif
