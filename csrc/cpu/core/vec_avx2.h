// vec_avx2.h: 8 lanes of f32 on AVX2 + FMA + F16C.
//
// Textual include, inside an anonymous namespace and an RLX_TARGET_AVX2_BEGIN region: no guard, one vec_<isa>.h per
// namespace. vec_generic.h states the contract of the interface; every name below means what it means there.

constexpr int LANES = 8;

struct vf { __m256 v; };
struct vi { __m256i v; };
struct vm { __m256 v; };           // all ones or all zeros per lane
struct vd { __m256d lo, hi; };     // lanes 0-3, lanes 4-7

template <class V> V splat(double x);
template <> RLX_FN vf splat<vf>(double x) { return {_mm256_set1_ps(static_cast<float>(x))}; }
template <> RLX_FN vd splat<vd>(double x) { return {_mm256_set1_pd(x), _mm256_set1_pd(x)}; }
RLX_FN vi splat_i(int32_t x) { return {_mm256_set1_epi32(x)}; }

// ---- memory

RLX_FN __m256i part_mask(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
RLX_FN vf load(const float* p) { return {_mm256_loadu_ps(p)}; }
RLX_FN void store(float* p, vf x) { _mm256_storeu_ps(p, x.v); }
RLX_FN void stream(float* p, vf x) { _mm256_stream_ps(p, x.v); }
RLX_FN vf load_part(const float* p, int n) { return {_mm256_maskload_ps(p, part_mask(n))}; }
RLX_FN void store_part(float* p, vf x, int n) { _mm256_maskstore_ps(p, part_mask(n), x.v); }
RLX_FN vi load_i(const int32_t* p) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))}; }
RLX_FN void store_i(int32_t* p, vi x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.v); }

RLX_FN __m128i load_halves(const uint16_t* p, int n) {
  if (n >= LANES) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  alignas(16) uint16_t tmp[8] = {};
  std::memcpy(tmp, p, static_cast<size_t>(n) * 2);
  return _mm_load_si128(reinterpret_cast<const __m128i*>(tmp));
}
RLX_FN void store_halves(uint16_t* p, __m128i h, int n) {
  if (n >= LANES) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), h);
    return;
  }
  alignas(16) uint16_t tmp[8];
  _mm_store_si128(reinterpret_cast<__m128i*>(tmp), h);
  std::memcpy(p, tmp, static_cast<size_t>(n) * 2);
}
RLX_FN __m256 canonical_nan(__m256 x) {
  const __m256 q = _mm256_or_ps(_mm256_and_ps(x, _mm256_set1_ps(-0.0f)),
                                _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)));
  return _mm256_blendv_ps(x, q, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}
RLX_FN __m128i to_f16(vf x) { return _mm256_cvtps_ph(canonical_nan(x.v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
RLX_FN __m128i to_bf16(vf x) {
  const __m256i b = _mm256_castps_si256(canonical_nan(x.v));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(b, 16), _mm256_set1_epi32(1));
  const __m256i r = _mm256_srli_epi32(_mm256_add_epi32(b, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  // The rounding carry never leaves a NaN's 16 bits: the canonical one has zeros below bit 22.
  return _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}
RLX_FN __m256 from_bf16(__m128i h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
RLX_FN vf load_f16(const uint16_t* p) { return {_mm256_cvtph_ps(load_halves(p, LANES))}; }
RLX_FN vf load_f16_part(const uint16_t* p, int n) { return {_mm256_cvtph_ps(load_halves(p, n))}; }
RLX_FN vf load_bf16(const uint16_t* p) { return {from_bf16(load_halves(p, LANES))}; }
RLX_FN vf load_bf16_part(const uint16_t* p, int n) { return {from_bf16(load_halves(p, n))}; }
RLX_FN void store_f16(uint16_t* p, vf x) { store_halves(p, to_f16(x), LANES); }
RLX_FN void store_f16_part(uint16_t* p, vf x, int n) { store_halves(p, to_f16(x), n); }
RLX_FN void store_bf16(uint16_t* p, vf x) { store_halves(p, to_bf16(x), LANES); }
RLX_FN void store_bf16_part(uint16_t* p, vf x, int n) { store_halves(p, to_bf16(x), n); }

RLX_FN uint64_t mask_bytes(vm m) { return _pdep_u64(static_cast<unsigned>(_mm256_movemask_ps(m.v)), 0x0101010101010101ull); }
RLX_FN vm bytes_mask(uint64_t b) {
  const __m256i w = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(b)));
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(w, _mm256_setzero_si256()))};
}
RLX_FN vm load_b8(const uint8_t* p) {
  uint64_t b;
  std::memcpy(&b, p, 8);
  return bytes_mask(b);
}
RLX_FN vm load_b8_part(const uint8_t* p, int n) {
  uint64_t b = 0;
  std::memcpy(&b, p, static_cast<size_t>(n));
  return bytes_mask(b);
}
RLX_FN void store_b8(uint8_t* p, vm m) {
  const uint64_t b = mask_bytes(m);
  std::memcpy(p, &b, 8);
}
RLX_FN void store_b8_part(uint8_t* p, vm m, int n) {
  const uint64_t b = mask_bytes(m);
  std::memcpy(p, &b, static_cast<size_t>(n));
}

// ---- f32 arithmetic

RLX_FN vf operator+(vf a, vf b) { return {_mm256_add_ps(a.v, b.v)}; }
RLX_FN vf operator-(vf a, vf b) { return {_mm256_sub_ps(a.v, b.v)}; }
RLX_FN vf operator*(vf a, vf b) { return {_mm256_mul_ps(a.v, b.v)}; }
RLX_FN vf operator/(vf a, vf b) { return {_mm256_div_ps(a.v, b.v)}; }
RLX_FN vf operator-(vf a) { return {_mm256_xor_ps(a.v, _mm256_set1_ps(-0.0f))}; }
RLX_FN vf abs(vf a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
RLX_FN vf sqrt(vf a) { return {_mm256_sqrt_ps(a.v)}; }
RLX_FN vf fma(vf a, vf b, vf c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
RLX_FN vf fma_exact(vf a, vf b, vf c) { return fma(a, b, c); }
RLX_FN vf mul_error(vf a, vf b, vf p) { return fma(a, b, -p); }
RLX_FN vf raw_min(vf a, vf b) { return {_mm256_min_ps(a.v, b.v)}; }
RLX_FN vf raw_max(vf a, vf b) { return {_mm256_max_ps(a.v, b.v)}; }
// minps and maxps give the second operand for a NaN in either: a NaN in b passes, one in a is put back.
RLX_FN vf min(vf a, vf b) { return {_mm256_blendv_ps(_mm256_min_ps(a.v, b.v), a.v, _mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q))}; }
RLX_FN vf max(vf a, vf b) { return {_mm256_blendv_ps(_mm256_max_ps(a.v, b.v), a.v, _mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q))}; }
RLX_FN vf round(vf a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
RLX_FN vf floor(vf a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
RLX_FN vf ceil(vf a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)}; }
RLX_FN vf trunc(vf a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }
RLX_FN vf copysign(vf mag, vf sgn) {
  const __m256 s = _mm256_set1_ps(-0.0f);
  return {_mm256_or_ps(_mm256_andnot_ps(s, mag.v), _mm256_and_ps(s, sgn.v))};
}

// ---- compare and select

RLX_FN vm lt(vf a, vf b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
RLX_FN vm le(vf a, vf b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
RLX_FN vm gt(vf a, vf b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)}; }
RLX_FN vm ge(vf a, vf b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ)}; }
RLX_FN vm eq(vf a, vf b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
RLX_FN vm ne(vf a, vf b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_NEQ_UQ)}; }
RLX_FN vm mand(vm a, vm b) { return {_mm256_and_ps(a.v, b.v)}; }
RLX_FN vm mor(vm a, vm b) { return {_mm256_or_ps(a.v, b.v)}; }
RLX_FN vm mxor(vm a, vm b) { return {_mm256_xor_ps(a.v, b.v)}; }
RLX_FN vm mnot(vm a) { return {_mm256_xor_ps(a.v, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))}; }
RLX_FN vf select(vm m, vf a, vf b) { return {_mm256_blendv_ps(b.v, a.v, m.v)}; }
RLX_FN vi select(vm m, vi a, vi b) {
  return {_mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(b.v), _mm256_castsi256_ps(a.v), m.v))};
}
RLX_FN unsigned mask_bits(vm m) { return static_cast<unsigned>(_mm256_movemask_ps(m.v)); }

// ---- i32 lanes

RLX_FN vi bits(vf a) { return {_mm256_castps_si256(a.v)}; }
RLX_FN vf from_bits(vi a) { return {_mm256_castsi256_ps(a.v)}; }
RLX_FN vi operator+(vi a, vi b) { return {_mm256_add_epi32(a.v, b.v)}; }
RLX_FN vi operator-(vi a, vi b) { return {_mm256_sub_epi32(a.v, b.v)}; }
RLX_FN vi operator&(vi a, vi b) { return {_mm256_and_si256(a.v, b.v)}; }
RLX_FN vi operator|(vi a, vi b) { return {_mm256_or_si256(a.v, b.v)}; }
RLX_FN vi operator^(vi a, vi b) { return {_mm256_xor_si256(a.v, b.v)}; }
template <int N> RLX_FN vi shl(vi a) { return {_mm256_slli_epi32(a.v, N)}; }
template <int N> RLX_FN vi shr(vi a) { return {_mm256_srli_epi32(a.v, N)}; }
template <int N> RLX_FN vi sra(vi a) { return {_mm256_srai_epi32(a.v, N)}; }
RLX_FN vm eq_i(vi a, vi b) { return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.v, b.v))}; }
RLX_FN vm gt_i(vi a, vi b) { return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(a.v, b.v))}; }
RLX_FN vf to_f(vi a) { return {_mm256_cvtepi32_ps(a.v)}; }
RLX_FN vi to_i(vf a) { return {_mm256_cvtps_epi32(a.v)}; }

RLX_FN vf scale2(vf p, vf n) {
  const __m256i k = _mm256_cvtps_epi32(n.v), half = _mm256_srai_epi32(k, 1), bias = _mm256_set1_epi32(127);
  const __m256 s1 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
  const __m256 s2 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(k, half), bias), 23));
  return {_mm256_mul_ps(_mm256_mul_ps(p.v, s1), s2)};
}

constexpr int LOOKUP = 8;
RLX_FN vf lookup(const float* t, vi i) { return {_mm256_permutevar8x32_ps(_mm256_load_ps(t), i.v)}; }

// ---- horizontal

RLX_FN float sum(vf a) {
  __m128 h = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  h = _mm_add_ps(h, _mm_movehl_ps(h, h));
  return _mm_cvtss_f32(_mm_add_ss(h, _mm_shuffle_ps(h, h, 1)));
}
RLX_FN __m128 max_keep_nan(__m128 a, __m128 b) { return _mm_blendv_ps(_mm_max_ps(a, b), a, _mm_cmpunord_ps(a, a)); }
RLX_FN float hmax(vf a) {
  __m128 h = max_keep_nan(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  h = max_keep_nan(h, _mm_movehl_ps(h, h));
  return _mm_cvtss_f32(max_keep_nan(h, _mm_shuffle_ps(h, h, 1)));
}

// ---- f64 lanes

RLX_FN vd wide(vf a) { return {_mm256_cvtps_pd(_mm256_castps256_ps128(a.v)), _mm256_cvtps_pd(_mm256_extractf128_ps(a.v, 1))}; }
RLX_FN vf narrow(vd a) {
  return {_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(a.lo)), _mm256_cvtpd_ps(a.hi), 1)};
}
RLX_FN vd operator+(vd a, vd b) { return {_mm256_add_pd(a.lo, b.lo), _mm256_add_pd(a.hi, b.hi)}; }
RLX_FN vd operator-(vd a, vd b) { return {_mm256_sub_pd(a.lo, b.lo), _mm256_sub_pd(a.hi, b.hi)}; }
RLX_FN vd operator*(vd a, vd b) { return {_mm256_mul_pd(a.lo, b.lo), _mm256_mul_pd(a.hi, b.hi)}; }
RLX_FN vd operator/(vd a, vd b) { return {_mm256_div_pd(a.lo, b.lo), _mm256_div_pd(a.hi, b.hi)}; }
RLX_FN vd sqrt(vd a) { return {_mm256_sqrt_pd(a.lo), _mm256_sqrt_pd(a.hi)}; }
RLX_FN vd fma(vd a, vd b, vd c) { return {_mm256_fmadd_pd(a.lo, b.lo, c.lo), _mm256_fmadd_pd(a.hi, b.hi, c.hi)}; }
RLX_FN vd raw_min(vd a, vd b) { return {_mm256_min_pd(a.lo, b.lo), _mm256_min_pd(a.hi, b.hi)}; }
RLX_FN vd raw_max(vd a, vd b) { return {_mm256_max_pd(a.lo, b.lo), _mm256_max_pd(a.hi, b.hi)}; }
RLX_FN vd trunc(vd a) {
  return {_mm256_round_pd(a.lo, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC), _mm256_round_pd(a.hi, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
}

RLX_FN __m256d pow2_half(__m256d n) {
  const __m256d t = _mm256_add_pd(n, _mm256_set1_pd(6755399441055744.0 + 1023.0));
  return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(t), 52));
}
RLX_FN vd pow2(vd n) { return {pow2_half(n.lo), pow2_half(n.hi)}; }

RLX_FN __m256d split_half(__m256d x, __m256d& e) {
  const __m256i base = _mm256_set1_epi64x(0x3fe6a09e00000000ll);  // 0.70710... : m lies in [it, 2 * it)
  const __m256i t = _mm256_add_epi64(_mm256_castpd_si256(x), _mm256_set1_epi64x(0x3ff0000000000000ll - 0x3fe6a09e00000000ll));
  const __m256i magic = _mm256_set1_epi64x(0x4330000000000000ll);  // 2^52
  e = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(_mm256_srli_epi64(t, 52), magic)), _mm256_set1_pd(4503599627370496.0 + 1023.0));
  return _mm256_castsi256_pd(_mm256_add_epi64(_mm256_and_si256(t, _mm256_set1_epi64x(0x000fffffffffffffll)), base));
}
RLX_FN vd split(vd x, vd& e) { return {split_half(x.lo, e.lo), split_half(x.hi, e.hi)}; }
