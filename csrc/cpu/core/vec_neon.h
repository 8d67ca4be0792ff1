// vec_neon.h: 4 lanes of f32 on NEON, as every 64-bit Arm has it.
//
// Textual include, inside an anonymous namespace: no guard, one vec_<isa>.h per namespace. vec_generic.h states the
// contract of the interface; every name below means what it means there.

constexpr int LANES = 4;

struct vf { float32x4_t v; };
struct vi { int32x4_t v; };
struct vm { uint32x4_t v; };            // all ones or all zeros per lane
struct vd { float64x2_t lo, hi; };      // lanes 0-1, lanes 2-3

template <class V> V splat(double x);
template <> RLX_FN vf splat<vf>(double x) { return {vdupq_n_f32(static_cast<float>(x))}; }
template <> RLX_FN vd splat<vd>(double x) { return {vdupq_n_f64(x), vdupq_n_f64(x)}; }
RLX_FN vi splat_i(int32_t x) { return {vdupq_n_s32(x)}; }

RLX_FN vi bits(vf a) { return {vreinterpretq_s32_f32(a.v)}; }
RLX_FN vf from_bits(vi a) { return {vreinterpretq_f32_s32(a.v)}; }

// ---- memory

RLX_FN vf load(const float* p) { return {vld1q_f32(p)}; }
RLX_FN void store(float* p, vf x) { vst1q_f32(p, x.v); }
RLX_FN void stream(float* p, vf x) { store(p, x); }
RLX_FN vf load_part(const float* p, int n) {
  float32x4_t r = vdupq_n_f32(0);
  if ((n & 2) != 0) {
    r = vcombine_f32(vld1_f32(p), vget_high_f32(r));
    if ((n & 1) != 0) r = vld1q_lane_f32(p + 2, r, 2);
  } else if ((n & 1) != 0) {
    r = vld1q_lane_f32(p, r, 0);
  }
  return {r};
}
RLX_FN void store_part(float* p, vf x, int n) {
  if ((n & 2) != 0) {
    vst1_f32(p, vget_low_f32(x.v));
    if ((n & 1) != 0) vst1q_lane_f32(p + 2, x.v, 2);
  } else if ((n & 1) != 0) {
    vst1q_lane_f32(p, x.v, 0);
  }
}
RLX_FN vi load_i(const int32_t* p) { return {vld1q_s32(p)}; }
RLX_FN void store_i(int32_t* p, vi x) { vst1q_s32(p, x.v); }

RLX_FN uint16x4_t load_halves_part(const uint16_t* p, int n) {
  uint16_t t[LANES] = {};
  std::memcpy(t, p, static_cast<size_t>(n) * 2);
  return vld1_u16(t);
}
RLX_FN void store_halves_part(uint16_t* p, uint16x4_t h, int n) {
  uint16_t t[LANES];
  vst1_u16(t, h);
  std::memcpy(p, t, static_cast<size_t>(n) * 2);
}
// The conversions keep what a NaN holds; halves have one NaN of each sign.
RLX_FN float32x4_t canonical_nan(float32x4_t x) {
  const uint32x4_t q = vorrq_u32(vandq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0x80000000)), vdupq_n_u32(0x7fc00000));
  return vbslq_f32(vceqq_f32(x, x), x, vreinterpretq_f32_u32(q));
}
RLX_FN uint16x4_t to_f16(vf x) { return vreinterpret_u16_f16(vcvt_f16_f32(canonical_nan(x.v))); }
RLX_FN uint16x4_t to_bf16(vf x) {
  const uint32x4_t b = vreinterpretq_u32_f32(canonical_nan(x.v)), odd = vandq_u32(vshrq_n_u32(b, 16), vdupq_n_u32(1));
  // The rounding carry never leaves a NaN's 16 bits: the canonical one has zeros below bit 22.
  return vshrn_n_u32(vaddq_u32(b, vaddq_u32(odd, vdupq_n_u32(0x7fff))), 16);
}
RLX_FN vf from_f16(uint16x4_t h) { return {vcvt_f32_f16(vreinterpret_f16_u16(h))}; }
RLX_FN vf from_bf16(uint16x4_t h) { return {vreinterpretq_f32_u32(vshll_n_u16(h, 16))}; }
RLX_FN vf load_f16(const uint16_t* p) { return from_f16(vld1_u16(p)); }
RLX_FN vf load_f16_part(const uint16_t* p, int n) { return from_f16(load_halves_part(p, n)); }
RLX_FN vf load_bf16(const uint16_t* p) { return from_bf16(vld1_u16(p)); }
RLX_FN vf load_bf16_part(const uint16_t* p, int n) { return from_bf16(load_halves_part(p, n)); }
RLX_FN void store_f16(uint16_t* p, vf x) { vst1_u16(p, to_f16(x)); }
RLX_FN void store_f16_part(uint16_t* p, vf x, int n) { store_halves_part(p, to_f16(x), n); }
RLX_FN void store_bf16(uint16_t* p, vf x) { vst1_u16(p, to_bf16(x)); }
RLX_FN void store_bf16_part(uint16_t* p, vf x, int n) { store_halves_part(p, to_bf16(x), n); }

RLX_FN uint32_t mask_bytes(vm m) {
  const uint16x4_t h = vmovn_u32(m.v);
  const uint8x8_t b = vand_u8(vmovn_u16(vcombine_u16(h, h)), vdup_n_u8(1));
  return vget_lane_u32(vreinterpret_u32_u8(b), 0);
}
RLX_FN vm bytes_mask(uint32_t b) {
  const uint32x4_t w = vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(b)))));
  return {vtstq_u32(w, w)};
}
RLX_FN vm load_b8_part(const uint8_t* p, int n) {
  uint32_t b = 0;
  std::memcpy(&b, p, static_cast<size_t>(n));
  return bytes_mask(b);
}
RLX_FN vm load_b8(const uint8_t* p) { return load_b8_part(p, LANES); }
RLX_FN void store_b8_part(uint8_t* p, vm m, int n) {
  const uint32_t b = mask_bytes(m);
  std::memcpy(p, &b, static_cast<size_t>(n));
}
RLX_FN void store_b8(uint8_t* p, vm m) { store_b8_part(p, m, LANES); }

// ---- f32 arithmetic

RLX_FN vf operator+(vf a, vf b) { return {vaddq_f32(a.v, b.v)}; }
RLX_FN vf operator-(vf a, vf b) { return {vsubq_f32(a.v, b.v)}; }
RLX_FN vf operator*(vf a, vf b) { return {vmulq_f32(a.v, b.v)}; }
RLX_FN vf operator/(vf a, vf b) { return {vdivq_f32(a.v, b.v)}; }
RLX_FN vf operator-(vf a) { return {vnegq_f32(a.v)}; }
RLX_FN vf abs(vf a) { return {vabsq_f32(a.v)}; }
RLX_FN vf sqrt(vf a) { return {vsqrtq_f32(a.v)}; }
RLX_FN vf fma(vf a, vf b, vf c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
RLX_FN vf fma_exact(vf a, vf b, vf c) { return fma(a, b, c); }
RLX_FN vf mul_error(vf a, vf b, vf p) { return fma(a, b, -p); }
// The instruction's own minimum is NaN for a NaN in either; these give b.
RLX_FN vf raw_min(vf a, vf b) { return {vbslq_f32(vcltq_f32(a.v, b.v), a.v, b.v)}; }
RLX_FN vf raw_max(vf a, vf b) { return {vbslq_f32(vcgtq_f32(a.v, b.v), a.v, b.v)}; }
RLX_FN vf min(vf a, vf b) { return {vminq_f32(a.v, b.v)}; }
RLX_FN vf max(vf a, vf b) { return {vmaxq_f32(a.v, b.v)}; }
RLX_FN vf round(vf a) { return {vrndnq_f32(a.v)}; }
RLX_FN vf floor(vf a) { return {vrndmq_f32(a.v)}; }
RLX_FN vf ceil(vf a) { return {vrndpq_f32(a.v)}; }
RLX_FN vf trunc(vf a) { return {vrndq_f32(a.v)}; }
RLX_FN vf copysign(vf mag, vf sgn) { return {vbslq_f32(vdupq_n_u32(0x80000000), sgn.v, mag.v)}; }

// ---- compare and select

RLX_FN vm mnot(vm a) { return {vmvnq_u32(a.v)}; }
RLX_FN vm lt(vf a, vf b) { return {vcltq_f32(a.v, b.v)}; }
RLX_FN vm le(vf a, vf b) { return {vcleq_f32(a.v, b.v)}; }
RLX_FN vm gt(vf a, vf b) { return {vcgtq_f32(a.v, b.v)}; }
RLX_FN vm ge(vf a, vf b) { return {vcgeq_f32(a.v, b.v)}; }
RLX_FN vm eq(vf a, vf b) { return {vceqq_f32(a.v, b.v)}; }
RLX_FN vm ne(vf a, vf b) { return mnot(eq(a, b)); }
RLX_FN vm mand(vm a, vm b) { return {vandq_u32(a.v, b.v)}; }
RLX_FN vm mor(vm a, vm b) { return {vorrq_u32(a.v, b.v)}; }
RLX_FN vm mxor(vm a, vm b) { return {veorq_u32(a.v, b.v)}; }
RLX_FN vf select(vm m, vf a, vf b) { return {vbslq_f32(m.v, a.v, b.v)}; }
RLX_FN vi select(vm m, vi a, vi b) { return {vbslq_s32(m.v, a.v, b.v)}; }
RLX_FN unsigned mask_bits(vm m) {
  const uint32x4_t places = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(m.v, places));
}

// ---- i32 lanes

RLX_FN vi operator+(vi a, vi b) { return {vaddq_s32(a.v, b.v)}; }
RLX_FN vi operator-(vi a, vi b) { return {vsubq_s32(a.v, b.v)}; }
RLX_FN vi operator&(vi a, vi b) { return {vandq_s32(a.v, b.v)}; }
RLX_FN vi operator|(vi a, vi b) { return {vorrq_s32(a.v, b.v)}; }
RLX_FN vi operator^(vi a, vi b) { return {veorq_s32(a.v, b.v)}; }
template <int N> RLX_FN vi shl(vi a) { return {vshlq_n_s32(a.v, N)}; }
template <int N> RLX_FN vi shr(vi a) { return {vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.v), N))}; }
template <int N> RLX_FN vi sra(vi a) { return {vshrq_n_s32(a.v, N)}; }
RLX_FN vm eq_i(vi a, vi b) { return {vceqq_s32(a.v, b.v)}; }
RLX_FN vm gt_i(vi a, vi b) { return {vcgtq_s32(a.v, b.v)}; }
RLX_FN vf to_f(vi a) { return {vcvtq_f32_s32(a.v)}; }
RLX_FN vi to_i(vf a) { return {vcvtnq_s32_f32(a.v)}; }

RLX_FN vf scale2(vf p, vf n) {
  const vi k = to_i(n), half = sra<1>(k), bias = splat_i(127);
  return p * from_bits(shl<23>(half + bias)) * from_bits(shl<23>((k - half) + bias));
}

// Bytes 4i to 4i + 3 of the table, for each lane.
constexpr int LOOKUP = 8;
RLX_FN vf lookup(const float* t, vi i) {
  const uint8x16x2_t table = {{vreinterpretq_u8_f32(vld1q_f32(t)), vreinterpretq_u8_f32(vld1q_f32(t + 4))}};
  const uint32x4_t k = vandq_u32(vreinterpretq_u32_s32(i.v), vdupq_n_u32(LOOKUP - 1));
  const uint32x4_t at = vmlaq_u32(vdupq_n_u32(0x03020100), k, vdupq_n_u32(0x04040404));
  return {vreinterpretq_f32_u8(vqtbl2q_u8(table, vreinterpretq_u8_u32(at)))};
}

// ---- horizontal

RLX_FN float sum(vf a) {
  const float32x2_t h = vadd_f32(vget_low_f32(a.v), vget_high_f32(a.v));
  return vget_lane_f32(h, 0) + vget_lane_f32(h, 1);
}
RLX_FN float hmax(vf a) { return vmaxvq_f32(a.v); }

// ---- f64 lanes

RLX_FN vd wide(vf a) { return {vcvt_f64_f32(vget_low_f32(a.v)), vcvt_high_f64_f32(a.v)}; }
RLX_FN vf narrow(vd a) { return {vcvt_high_f32_f64(vcvt_f32_f64(a.lo), a.hi)}; }
RLX_FN vd operator+(vd a, vd b) { return {vaddq_f64(a.lo, b.lo), vaddq_f64(a.hi, b.hi)}; }
RLX_FN vd operator-(vd a, vd b) { return {vsubq_f64(a.lo, b.lo), vsubq_f64(a.hi, b.hi)}; }
RLX_FN vd operator*(vd a, vd b) { return {vmulq_f64(a.lo, b.lo), vmulq_f64(a.hi, b.hi)}; }
RLX_FN vd operator/(vd a, vd b) { return {vdivq_f64(a.lo, b.lo), vdivq_f64(a.hi, b.hi)}; }
RLX_FN vd sqrt(vd a) { return {vsqrtq_f64(a.lo), vsqrtq_f64(a.hi)}; }
RLX_FN vd fma(vd a, vd b, vd c) { return {vfmaq_f64(c.lo, a.lo, b.lo), vfmaq_f64(c.hi, a.hi, b.hi)}; }
RLX_FN vd raw_min(vd a, vd b) { return {vbslq_f64(vcltq_f64(a.lo, b.lo), a.lo, b.lo), vbslq_f64(vcltq_f64(a.hi, b.hi), a.hi, b.hi)}; }
RLX_FN vd raw_max(vd a, vd b) { return {vbslq_f64(vcgtq_f64(a.lo, b.lo), a.lo, b.lo), vbslq_f64(vcgtq_f64(a.hi, b.hi), a.hi, b.hi)}; }
RLX_FN vd trunc(vd a) { return {vrndq_f64(a.lo), vrndq_f64(a.hi)}; }

RLX_FN float64x2_t pow2_half(float64x2_t n) {
  const float64x2_t t = vaddq_f64(n, vdupq_n_f64(6755399441055744.0 + 1023.0));  // 1.5 * 2^52 + bias: the sum's low bits are the exponent field
  return vreinterpretq_f64_s64(vshlq_n_s64(vreinterpretq_s64_f64(t), 52));
}
RLX_FN vd pow2(vd n) { return {pow2_half(n.lo), pow2_half(n.hi)}; }

RLX_FN float64x2_t split_half(float64x2_t x, float64x2_t& e) {
  const int64_t base = 0x3fe6a09e00000000ll;  // 0.70710... : m lies in [it, 2 * it)
  const int64x2_t t = vaddq_s64(vreinterpretq_s64_f64(x), vdupq_n_s64(0x3ff0000000000000ll - base));
  e = vsubq_f64(vcvtq_f64_s64(vreinterpretq_s64_u64(vshrq_n_u64(vreinterpretq_u64_s64(t), 52))), vdupq_n_f64(1023.0));
  return vreinterpretq_f64_s64(vaddq_s64(vandq_s64(t, vdupq_n_s64(0x000fffffffffffffll)), vdupq_n_s64(base)));
}
RLX_FN vd split(vd x, vd& e) { return {split_half(x.lo, e.lo), split_half(x.hi, e.hi)}; }
