// vec_avx512.h: 16 lanes of f32 on AVX-512 F + BW + DQ + VL.
//
// Textual include, inside an anonymous namespace and an RLX_TARGET_AVX512_BEGIN region: no guard, one vec_<isa>.h per
// namespace. vec_generic.h states the contract of the interface; every name below means what it means there.

constexpr int LANES = 16;

struct vf { __m512 v; };
struct vi { __m512i v; };
struct vm { __mmask16 v; };
struct vd { __m512d lo, hi; };  // lanes 0-7, lanes 8-15

template <class V> V splat(double x);
template <> RLX_FN vf splat<vf>(double x) { return {_mm512_set1_ps(static_cast<float>(x))}; }
template <> RLX_FN vd splat<vd>(double x) { return {_mm512_set1_pd(x), _mm512_set1_pd(x)}; }
RLX_FN vi splat_i(int32_t x) { return {_mm512_set1_epi32(x)}; }

// ---- memory

RLX_FN __mmask16 part_mask(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
RLX_FN vf load(const float* p) { return {_mm512_loadu_ps(p)}; }
RLX_FN void store(float* p, vf x) { _mm512_storeu_ps(p, x.v); }
RLX_FN void stream(float* p, vf x) { _mm512_stream_ps(p, x.v); }
RLX_FN vf load_part(const float* p, int n) { return {_mm512_maskz_loadu_ps(part_mask(n), p)}; }
RLX_FN void store_part(float* p, vf x, int n) { _mm512_mask_storeu_ps(p, part_mask(n), x.v); }
RLX_FN vi load_i(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
RLX_FN void store_i(int32_t* p, vi x) { _mm512_storeu_si512(p, x.v); }

RLX_FN __m512 canonical_nan(__m512 x) {
  const __m512i s = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN));
  const __m512i q = _mm512_or_si512(s, _mm512_set1_epi32(0x7fc00000));
  return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_castsi512_ps(q));
}
RLX_FN __m256i to_f16(vf x) { return _mm512_cvtps_ph(canonical_nan(x.v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
RLX_FN __m256i to_bf16(vf x) {
  const __m512i b = _mm512_castps_si512(canonical_nan(x.v));
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(b, 16), _mm512_set1_epi32(1));
  // The rounding carry never leaves a NaN's 16 bits: the canonical one has zeros below bit 22.
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_add_epi32(b, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16));
}
RLX_FN __m512 from_bf16(__m256i h) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16)); }
RLX_FN __m256i load_halves(const uint16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
RLX_FN vf load_f16(const uint16_t* p) { return {_mm512_cvtph_ps(load_halves(p))}; }
RLX_FN vf load_f16_part(const uint16_t* p, int n) { return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(part_mask(n), p))}; }
RLX_FN vf load_bf16(const uint16_t* p) { return {from_bf16(load_halves(p))}; }
RLX_FN vf load_bf16_part(const uint16_t* p, int n) { return {from_bf16(_mm256_maskz_loadu_epi16(part_mask(n), p))}; }
RLX_FN void store_f16(uint16_t* p, vf x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_f16(x)); }
RLX_FN void store_f16_part(uint16_t* p, vf x, int n) { _mm256_mask_storeu_epi16(p, part_mask(n), to_f16(x)); }
RLX_FN void store_bf16(uint16_t* p, vf x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_bf16(x)); }
RLX_FN void store_bf16_part(uint16_t* p, vf x, int n) { _mm256_mask_storeu_epi16(p, part_mask(n), to_bf16(x)); }

RLX_FN vm load_b8(const uint8_t* p) {
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm_test_epi8_mask(b, b)};
}
RLX_FN vm load_b8_part(const uint8_t* p, int n) {
  const __m128i b = _mm_maskz_loadu_epi8(part_mask(n), p);
  return {_mm_test_epi8_mask(b, b)};
}
RLX_FN void store_b8(uint8_t* p, vm m) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_maskz_set1_epi8(m.v, 1)); }
RLX_FN void store_b8_part(uint8_t* p, vm m, int n) { _mm_mask_storeu_epi8(p, part_mask(n), _mm_maskz_set1_epi8(m.v, 1)); }

// ---- f32 arithmetic

RLX_FN vf operator+(vf a, vf b) { return {_mm512_add_ps(a.v, b.v)}; }
RLX_FN vf operator-(vf a, vf b) { return {_mm512_sub_ps(a.v, b.v)}; }
RLX_FN vf operator*(vf a, vf b) { return {_mm512_mul_ps(a.v, b.v)}; }
RLX_FN vf operator/(vf a, vf b) { return {_mm512_div_ps(a.v, b.v)}; }
RLX_FN vf operator-(vf a) { return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))}; }
RLX_FN vf abs(vf a) { return {_mm512_abs_ps(a.v)}; }
RLX_FN vf sqrt(vf a) { return {_mm512_sqrt_ps(a.v)}; }
RLX_FN vf fma(vf a, vf b, vf c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
RLX_FN vf fma_exact(vf a, vf b, vf c) { return fma(a, b, c); }
RLX_FN vf mul_error(vf a, vf b, vf p) { return fma(a, b, -p); }
RLX_FN vf raw_min(vf a, vf b) { return {_mm512_min_ps(a.v, b.v)}; }
RLX_FN vf raw_max(vf a, vf b) { return {_mm512_max_ps(a.v, b.v)}; }
// minps and maxps give the second operand for a NaN in either: a NaN in b passes, one in a is put back.
RLX_FN vf min(vf a, vf b) { return {_mm512_mask_mov_ps(_mm512_min_ps(a.v, b.v), _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q), a.v)}; }
RLX_FN vf max(vf a, vf b) { return {_mm512_mask_mov_ps(_mm512_max_ps(a.v, b.v), _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q), a.v)}; }
RLX_FN vf round(vf a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
RLX_FN vf floor(vf a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
RLX_FN vf ceil(vf a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)}; }
RLX_FN vf trunc(vf a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }
RLX_FN vf copysign(vf mag, vf sgn) {
  // 0xe4: bit-wise c ? a : b for the operands (a, b, c), c the sign bit.
  return {_mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_castps_si512(sgn.v), _mm512_castps_si512(mag.v),
                                                        _mm512_set1_epi32(INT32_MIN), 0xe4))};
}

// ---- compare and select

RLX_FN vm lt(vf a, vf b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
RLX_FN vm le(vf a, vf b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
RLX_FN vm gt(vf a, vf b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
RLX_FN vm ge(vf a, vf b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ)}; }
RLX_FN vm eq(vf a, vf b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
RLX_FN vm ne(vf a, vf b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NEQ_UQ)}; }
RLX_FN vm mand(vm a, vm b) { return {static_cast<__mmask16>(a.v & b.v)}; }
RLX_FN vm mor(vm a, vm b) { return {static_cast<__mmask16>(a.v | b.v)}; }
RLX_FN vm mxor(vm a, vm b) { return {static_cast<__mmask16>(a.v ^ b.v)}; }
RLX_FN vm mnot(vm a) { return {static_cast<__mmask16>(~a.v)}; }
RLX_FN vf select(vm m, vf a, vf b) { return {_mm512_mask_mov_ps(b.v, m.v, a.v)}; }
RLX_FN vi select(vm m, vi a, vi b) { return {_mm512_mask_mov_epi32(b.v, m.v, a.v)}; }
RLX_FN unsigned mask_bits(vm m) { return m.v; }

// ---- i32 lanes

RLX_FN vi bits(vf a) { return {_mm512_castps_si512(a.v)}; }
RLX_FN vf from_bits(vi a) { return {_mm512_castsi512_ps(a.v)}; }
RLX_FN vi operator+(vi a, vi b) { return {_mm512_add_epi32(a.v, b.v)}; }
RLX_FN vi operator-(vi a, vi b) { return {_mm512_sub_epi32(a.v, b.v)}; }
RLX_FN vi operator&(vi a, vi b) { return {_mm512_and_si512(a.v, b.v)}; }
RLX_FN vi operator|(vi a, vi b) { return {_mm512_or_si512(a.v, b.v)}; }
RLX_FN vi operator^(vi a, vi b) { return {_mm512_xor_si512(a.v, b.v)}; }
template <int N> RLX_FN vi shl(vi a) { return {_mm512_slli_epi32(a.v, N)}; }
template <int N> RLX_FN vi shr(vi a) { return {_mm512_srli_epi32(a.v, N)}; }
template <int N> RLX_FN vi sra(vi a) { return {_mm512_srai_epi32(a.v, N)}; }
RLX_FN vm eq_i(vi a, vi b) { return {_mm512_cmpeq_epi32_mask(a.v, b.v)}; }
RLX_FN vm gt_i(vi a, vi b) { return {_mm512_cmpgt_epi32_mask(a.v, b.v)}; }
RLX_FN vf to_f(vi a) { return {_mm512_cvtepi32_ps(a.v)}; }
RLX_FN vi to_i(vf a) { return {_mm512_cvtps_epi32(a.v)}; }

RLX_FN vf scale2(vf p, vf n) { return {_mm512_scalef_ps(p.v, n.v)}; }

constexpr int LOOKUP = 16;
RLX_FN vf lookup(const float* t, vi i) { return {_mm512_permutexvar_ps(i.v, _mm512_load_ps(t))}; }
RLX_FN vf lookup2(const float* t, vi i) { return {_mm512_permutex2var_ps(_mm512_load_ps(t), i.v, _mm512_load_ps(t + LOOKUP))}; }

// ---- horizontal

RLX_FN __m256 upper(__m512 a) { return _mm512_extractf32x8_ps(a, 1); }
RLX_FN float sum(vf a) {
  const __m256 q = _mm256_add_ps(_mm512_castps512_ps256(a.v), upper(a.v));
  __m128 h = _mm_add_ps(_mm256_castps256_ps128(q), _mm256_extractf128_ps(q, 1));
  h = _mm_add_ps(h, _mm_movehl_ps(h, h));
  return _mm_cvtss_f32(_mm_add_ss(h, _mm_shuffle_ps(h, h, 1)));
}
RLX_FN __m128 max_keep_nan(__m128 a, __m128 b) { return _mm_mask_mov_ps(_mm_max_ps(a, b), _mm_cmp_ps_mask(a, a, _CMP_UNORD_Q), a); }
RLX_FN float hmax(vf a) {
  const vf s = max(a, vf{_mm512_shuffle_f32x4(a.v, a.v, 0x4e)});
  const __m256 q = _mm512_castps512_ps256(s.v);
  __m128 h = max_keep_nan(_mm256_castps256_ps128(q), _mm256_extractf128_ps(q, 1));
  h = max_keep_nan(h, _mm_movehl_ps(h, h));
  return _mm_cvtss_f32(max_keep_nan(h, _mm_shuffle_ps(h, h, 1)));
}

// ---- f64 lanes

RLX_FN vd wide(vf a) { return {_mm512_cvtps_pd(_mm512_castps512_ps256(a.v)), _mm512_cvtps_pd(upper(a.v))}; }
RLX_FN vf narrow(vd a) { return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a.lo)), _mm512_cvtpd_ps(a.hi), 1)}; }
RLX_FN vd operator+(vd a, vd b) { return {_mm512_add_pd(a.lo, b.lo), _mm512_add_pd(a.hi, b.hi)}; }
RLX_FN vd operator-(vd a, vd b) { return {_mm512_sub_pd(a.lo, b.lo), _mm512_sub_pd(a.hi, b.hi)}; }
RLX_FN vd operator*(vd a, vd b) { return {_mm512_mul_pd(a.lo, b.lo), _mm512_mul_pd(a.hi, b.hi)}; }
RLX_FN vd operator/(vd a, vd b) { return {_mm512_div_pd(a.lo, b.lo), _mm512_div_pd(a.hi, b.hi)}; }
RLX_FN vd sqrt(vd a) { return {_mm512_sqrt_pd(a.lo), _mm512_sqrt_pd(a.hi)}; }
RLX_FN vd fma(vd a, vd b, vd c) { return {_mm512_fmadd_pd(a.lo, b.lo, c.lo), _mm512_fmadd_pd(a.hi, b.hi, c.hi)}; }
RLX_FN vd raw_min(vd a, vd b) { return {_mm512_min_pd(a.lo, b.lo), _mm512_min_pd(a.hi, b.hi)}; }
RLX_FN vd raw_max(vd a, vd b) { return {_mm512_max_pd(a.lo, b.lo), _mm512_max_pd(a.hi, b.hi)}; }
RLX_FN vd trunc(vd a) {
  return {_mm512_roundscale_pd(a.lo, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC), _mm512_roundscale_pd(a.hi, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
}

RLX_FN __m512d pow2_half(__m512d n) {
  const __m512d t = _mm512_add_pd(n, _mm512_set1_pd(6755399441055744.0 + 1023.0));
  return _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_castpd_si512(t), 52));
}
RLX_FN vd pow2(vd n) { return {pow2_half(n.lo), pow2_half(n.hi)}; }

RLX_FN __m512d split_half(__m512d x, __m512d& e) {
  const __m512i base = _mm512_set1_epi64(0x3fe6a09e00000000ll);  // 0.70710... : m lies in [it, 2 * it)
  const __m512i t = _mm512_add_epi64(_mm512_castpd_si512(x), _mm512_set1_epi64(0x3ff0000000000000ll - 0x3fe6a09e00000000ll));
  e = _mm512_cvtepi64_pd(_mm512_sub_epi64(_mm512_srli_epi64(t, 52), _mm512_set1_epi64(1023)));
  return _mm512_castsi512_pd(_mm512_add_epi64(_mm512_and_si512(t, _mm512_set1_epi64(0x000fffffffffffffll)), base));
}
RLX_FN vd split(vd x, vd& e) { return {split_half(x.lo, e.lo), split_half(x.hi, e.hi)}; }
