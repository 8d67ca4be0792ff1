// vec_generic.h: 4 lanes of f32 on whatever every machine has (SSE2, NEON), by the compiler's vector extensions; and
// the contract of the lane interface that vec_avx2.h and vec_avx512.h share.
//
// How it is used. One .cpp per ISA twin: rlx_begin.h and all system headers first; then a target region; in it a
// namespace, in that an anonymous namespace that includes one vec_<isa>.h, then vec_math.h, then kernels written once
// over this interface. These headers have no guards: they are text, and each namespace gets its own copy.
//
//   LANES      f32 lanes per vector
//   vf vi vm   LANES of f32, of i32, of true/false
//   vd         LANES of f64 (two registers): rare functions widen, compute and narrow once
//
//   splat<V>(x)                 all lanes x; V = vf, vd or double. splat_i(k) for vi
//   load, store                 LANES values, no alignment; load_part, store_part: the first n < LANES, the rest reads
//                               as 0 and is never touched in memory (wider sets take n = LANES too). load_i, store_i for vi
//   stream(p, x)                store past the caches, p on a whole vector; a full fence comes before other threads may read
//   load_f16, load_bf16         exact widening; store_f16, store_bf16 round to nearest even, overflow to infinity, keep
//                               subnormals, and write a NaN as the quiet one with its sign (7E00, 7FC0). _part forms
//   load_b8, store_b8           a mask as bytes 0 and 1 (any non-zero byte reads as true). _part forms
//   + - * / neg sqrt            IEEE, one rounding each, subnormals kept. add, sub, mul, div, neg are the same by name
//   fma(a, b, c)                a*b + c: one rounding on AVX2 and AVX-512, and here where the baseline has the instruction (aarch64); else two
//   fma_exact(a, b, c)          one rounding everywhere, by libm here
//   mul_error(a, b, p)          a*b - p exactly, for p = a * b rounded, in f32's middle range
//   max, min                    NaN if either operand is NaN; either zero may come out for zeros of both signs
//   raw_max(a, b)               a > b ? a : b, so b if any is NaN; raw_min likewise
//   round floor ceil trunc      to an integer, halves to even; the sign of zero is kept
//   copysign(mag, sgn)
//   lt le gt ge eq ne           ordered but for ne: with a NaN all are false and ne is true
//   mand mor mxor mnot, select(m, a, b) = m ? a : b, mask_bits(m): bit i is lane i; any(m), all(m)
//   bits, from_bits             reinterpret f32 as i32 and back; on vi: + - & | ^ shl<N> shr<N> (logical) sra<N>,
//                               eq_i, gt_i (signed), to_f (rounds), to_i (halves to even, in range only)
//   scale2(p, n)                p * 2^n for whole n in [-252, 254]: one rounding, overflow and underflow as IEEE; for LANES 16 alone any n,
//                               which is rounded down
//   lookup(t, i)                t[i] for i modulo LOOKUP, the length of the table t, which lies on 64 bytes
//   lookup2(t, i)               the same for a table of 2 LOOKUP, where LANES is 16 alone
//   sum(v), hmax(v)             over the lanes in one fixed tree; hmax is NaN if a lane is
//   wide, narrow                vf to vd exactly, vd to vf with one rounding
//   on vd                       + - * / sqrt fma raw_min raw_max trunc
//   pow2(n)                     2^n as vd for whole n in [-1022, 1023]
//   split(x, e)                 x = m * 2^e, m in [0.7071, 1.4143), for positive normal x
//
// No lane ever depends on another, but in sum and hmax: a tail computed with load_part has the bits of the full body.

constexpr int LANES = 4;

typedef float f32x4 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef double f64x2 __attribute__((vector_size(16)));
typedef int64_t i64x2 __attribute__((vector_size(16)));
typedef uint64_t u64x2 __attribute__((vector_size(16)));

struct vf { f32x4 v; };
struct vi { i32x4 v; };
struct vm { i32x4 v; };         // all ones or all zeros per lane
struct vd { f64x2 lo, hi; };    // lanes 0-1, lanes 2-3

template <class V> V splat(double x);
template <> RLX_FN vf splat<vf>(double x) {
  const float f = static_cast<float>(x);
  return {f32x4{f, f, f, f}};
}
template <> RLX_FN vd splat<vd>(double x) { return {f64x2{x, x}, f64x2{x, x}}; }
RLX_FN vi splat_i(int32_t x) { return {i32x4{x, x, x, x}}; }

RLX_FN vi bits(vf a) { return {(i32x4)a.v}; }
RLX_FN vf from_bits(vi a) { return {(f32x4)a.v}; }

// ---- f32 arithmetic

RLX_FN vf operator+(vf a, vf b) { return {a.v + b.v}; }
RLX_FN vf operator-(vf a, vf b) { return {a.v - b.v}; }
RLX_FN vf operator*(vf a, vf b) { return {a.v * b.v}; }
RLX_FN vf operator/(vf a, vf b) { return {a.v / b.v}; }
RLX_FN vf operator-(vf a) { return {(f32x4)((i32x4)a.v ^ splat_i(INT32_MIN).v)}; }
RLX_FN vf abs(vf a) { return {(f32x4)((i32x4)a.v & splat_i(INT32_MAX).v)}; }
#if defined(__aarch64__)
// As GEMM of this set has it: sums that go on in vectors have its bits.
RLX_FN vf fma(vf a, vf b, vf c) {
  __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c.v) : "w"(a.v), "w"(b.v));
  return c;
}
RLX_FN f64x2 fma_half(f64x2 a, f64x2 b, f64x2 c) {
  __asm__("fmla %0.2d, %1.2d, %2.2d" : "+w"(c) : "w"(a), "w"(b));
  return c;
}
#else
RLX_FN vf fma(vf a, vf b, vf c) { return {a.v * b.v + c.v}; }
RLX_FN f64x2 fma_half(f64x2 a, f64x2 b, f64x2 c) { return a * b + c; }
#endif
RLX_FN vf fma_exact(vf a, vf b, vf c) {
  vf r;
  for (int i = 0; i < LANES; i++) r.v[i] = ::fmaf(a.v[i], b.v[i], c.v[i]);
  return r;
}
// By halves of 12 bits, whose products are exact.
RLX_FN vf mul_error(vf a, vf b, vf p) {
  const i32x4 top = splat_i(static_cast<int32_t>(0xfffff000)).v;
  const vf ah = {(f32x4)((i32x4)a.v & top)}, al = a - ah, bh = {(f32x4)((i32x4)b.v & top)}, bl = b - bh;
  return (((ah * bh - p) + ah * bl) + al * bh) + al * bl;
}
RLX_FN vf sqrt(vf a) {
#if defined(RLX_X86)
  return {_mm_sqrt_ps(a.v)};
#elif defined(__aarch64__)
  // By hand: through the library call the compiler would test every lane for errno.
  f32x4 r;
  __asm__("fsqrt %0.4s, %1.4s" : "=w"(r) : "w"(a.v));
  return {r};
#else
  return {f32x4{sqrtf(a.v[0]), sqrtf(a.v[1]), sqrtf(a.v[2]), sqrtf(a.v[3])}};
#endif
}

// ---- compare and select

RLX_FN vm lt(vf a, vf b) { return {(i32x4)(a.v < b.v)}; }
RLX_FN vm le(vf a, vf b) { return {(i32x4)(a.v <= b.v)}; }
RLX_FN vm gt(vf a, vf b) { return {(i32x4)(a.v > b.v)}; }
RLX_FN vm ge(vf a, vf b) { return {(i32x4)(a.v >= b.v)}; }
RLX_FN vm eq(vf a, vf b) { return {(i32x4)(a.v == b.v)}; }
RLX_FN vm ne(vf a, vf b) { return {(i32x4)(a.v != b.v)}; }
RLX_FN vm mand(vm a, vm b) { return {a.v & b.v}; }
RLX_FN vm mor(vm a, vm b) { return {a.v | b.v}; }
RLX_FN vm mxor(vm a, vm b) { return {a.v ^ b.v}; }
RLX_FN vm mnot(vm a) { return {~a.v}; }
RLX_FN vi select(vm m, vi a, vi b) { return {m.v ? a.v : b.v}; }
RLX_FN vf select(vm m, vf a, vf b) { return {m.v ? a.v : b.v}; }
RLX_FN unsigned mask_bits(vm m) {
#if defined(RLX_X86)
  return static_cast<unsigned>(_mm_movemask_ps((f32x4)m.v));
#else
  return static_cast<unsigned>((m.v[0] & 1) | (m.v[1] & 2) | (m.v[2] & 4) | (m.v[3] & 8));
#endif
}
RLX_FN vf raw_min(vf a, vf b) { return select(lt(a, b), a, b); }
RLX_FN vf raw_max(vf a, vf b) { return select(gt(a, b), a, b); }
RLX_FN vf min(vf a, vf b) { return select(mor(lt(a, b), ne(a, a)), a, b); }
RLX_FN vf max(vf a, vf b) { return select(mor(gt(a, b), ne(a, a)), a, b); }
RLX_FN vf copysign(vf mag, vf sgn) {
  const i32x4 s = splat_i(INT32_MIN).v;
  return {(f32x4)(((i32x4)mag.v & ~s) | ((i32x4)sgn.v & s))};
}

// Rounding by 2^23: above it every float is whole; below, adding it drops the fraction to even.
RLX_FN vf round(vf a) {
  const vf big = splat<vf>(8388608.0), m = abs(a);
  return select(lt(m, big), copysign((m + big) - big, a), a);
}
RLX_FN vf floor(vf a) {
  const vf r = round(a);
  return copysign(select(gt(r, a), r - splat<vf>(1.0), r), a);
}
RLX_FN vf ceil(vf a) {
  const vf r = round(a);
  return copysign(select(lt(r, a), r + splat<vf>(1.0), r), a);
}
RLX_FN vf trunc(vf a) {
  const vf m = abs(a), r = round(m);
  return copysign(select(gt(r, m), r - splat<vf>(1.0), r), a);
}

// ---- i32 lanes

RLX_FN vi operator+(vi a, vi b) { return {(i32x4)((u32x4)a.v + (u32x4)b.v)}; }
RLX_FN vi operator-(vi a, vi b) { return {(i32x4)((u32x4)a.v - (u32x4)b.v)}; }
RLX_FN vi operator&(vi a, vi b) { return {a.v & b.v}; }
RLX_FN vi operator|(vi a, vi b) { return {a.v | b.v}; }
RLX_FN vi operator^(vi a, vi b) { return {a.v ^ b.v}; }
template <int N> RLX_FN vi shl(vi a) { return {(i32x4)((u32x4)a.v << N)}; }
template <int N> RLX_FN vi shr(vi a) { return {(i32x4)((u32x4)a.v >> N)}; }
template <int N> RLX_FN vi sra(vi a) { return {a.v >> N}; }
RLX_FN vm eq_i(vi a, vi b) { return {(i32x4)(a.v == b.v)}; }
RLX_FN vm gt_i(vi a, vi b) { return {(i32x4)(a.v > b.v)}; }
RLX_FN vf to_f(vi a) { return {__builtin_convertvector(a.v, f32x4)}; }
RLX_FN vi to_i(vf a) {
#if defined(RLX_X86)
  return {(i32x4)_mm_cvtps_epi32(a.v)};
#else
  return {__builtin_convertvector(round(a).v, i32x4)};
#endif
}

constexpr int LOOKUP = 8;
RLX_FN vf lookup(const float* t, vi i) { return {f32x4{t[i.v[0] & 7], t[i.v[1] & 7], t[i.v[2] & 7], t[i.v[3] & 7]}}; }

RLX_FN vf scale2(vf p, vf n) {
  const float magic = 12582912.0f;  // 1.5 * 2^23: the sum's low bits are n
  const vi k = bits(n + splat<vf>(magic)) - bits(splat<vf>(magic)), half = sra<1>(k), bias = splat_i(127);
  return p * from_bits(shl<23>(half + bias)) * from_bits(shl<23>((k - half) + bias));
}

// ---- memory

RLX_FN vf load(const float* p) {
  vf r;
  std::memcpy(&r, p, sizeof r);
  return r;
}
RLX_FN void store(float* p, vf x) { std::memcpy(p, &x, sizeof x); }
RLX_FN void stream(float* p, vf x) { store(p, x); }
RLX_FN vf load_part(const float* p, int n) {
  vf r = splat<vf>(0.0);
  for (int i = 0; i < LANES - 1; i++)
    if (i < n) r.v[i] = p[i];
  return r;
}
RLX_FN void store_part(float* p, vf x, int n) {
  for (int i = 0; i < LANES - 1; i++)
    if (i < n) p[i] = x.v[i];
}
RLX_FN vi load_i(const int32_t* p) {
  vi r;
  std::memcpy(&r, p, sizeof r);
  return r;
}
RLX_FN void store_i(int32_t* p, vi x) { std::memcpy(p, &x, sizeof x); }

RLX_FN vi load_halves(const uint16_t* p) { return {i32x4{p[0], p[1], p[2], p[3]}}; }
RLX_FN vi load_halves_part(const uint16_t* p, int n) {
  vi r = splat_i(0);
  for (int i = 0; i < LANES - 1; i++)
    if (i < n) r.v[i] = p[i];
  return r;
}
RLX_FN void store_halves(uint16_t* p, vi h) {
  for (int i = 0; i < LANES; i++) p[i] = static_cast<uint16_t>(h.v[i]);
}
RLX_FN void store_halves_part(uint16_t* p, vi h, int n) {
  for (int i = 0; i < LANES - 1; i++)
    if (i < n) p[i] = static_cast<uint16_t>(h.v[i]);
}
// f16 to f32: the 15 low bits, moved up, are the value times 2^-112, subnormals included; an exponent of 31 becomes 255.
RLX_FN vf from_f16(vi h) {
  const vi mag = h & splat_i(0x7fff), sign = shl<16>(h & splat_i(0x8000));
  const vf finite = from_bits(shl<13>(mag)) * from_bits(splat_i((127 + 112) << 23));
  const vi special = shl<13>(mag) | splat_i(0x7f800000);
  const vi quiet = special | (shl<22>(splat_i(1)) & vi{gt_i(mag, splat_i(0x7c00)).v});
  return from_bits(select(gt_i(mag, splat_i(0x7bff)), quiet, bits(finite)) | sign);
}
RLX_FN vi to_f16(vf x) {
  const vi b = bits(abs(x)), sign = shr<16>(bits(x)) & splat_i(0x8000);
  const vi odd = shr<13>(b) & splat_i(1);
  const vi normal = shr<13>(b + odd + splat_i(0xfff)) - splat_i(112 << 10);
  const vi tiny = bits(abs(x) + splat<vf>(0.5)) - splat_i(0x3f000000);  // ulp(0.5) is f16's smallest subnormal
  const vi finite = select(gt_i(splat_i(0x38800000), b), tiny, normal);
  const vi over = select(gt_i(b, splat_i(0x7f800000)), splat_i(0x7e00), splat_i(0x7c00));
  return select(gt_i(b, splat_i(0x477fefff)), over, finite) | sign;
}
RLX_FN vf from_bf16(vi h) { return from_bits(shl<16>(h)); }
RLX_FN vi to_bf16(vf x) {
  const vi b = bits(x), odd = shr<16>(b) & splat_i(1);
  const vi nan = (shr<16>(b) & splat_i(0x8000)) | splat_i(0x7fc0);
  return select(ne(x, x), nan, shr<16>(b + odd + splat_i(0x7fff)));
}
RLX_FN vf load_f16(const uint16_t* p) { return from_f16(load_halves(p)); }
RLX_FN vf load_f16_part(const uint16_t* p, int n) { return from_f16(load_halves_part(p, n)); }
RLX_FN vf load_bf16(const uint16_t* p) { return from_bf16(load_halves(p)); }
RLX_FN vf load_bf16_part(const uint16_t* p, int n) { return from_bf16(load_halves_part(p, n)); }
RLX_FN void store_f16(uint16_t* p, vf x) { store_halves(p, to_f16(x)); }
RLX_FN void store_f16_part(uint16_t* p, vf x, int n) { store_halves_part(p, to_f16(x), n); }
RLX_FN void store_bf16(uint16_t* p, vf x) { store_halves(p, to_bf16(x)); }
RLX_FN void store_bf16_part(uint16_t* p, vf x, int n) { store_halves_part(p, to_bf16(x), n); }

RLX_FN vm load_b8(const uint8_t* p) { return {(i32x4)(i32x4{p[0], p[1], p[2], p[3]} != splat_i(0).v)}; }
RLX_FN vm load_b8_part(const uint8_t* p, int n) {
  vm r = {splat_i(0).v};
  for (int i = 0; i < LANES - 1; i++)
    if (i < n) r.v[i] = p[i] ? -1 : 0;
  return r;
}
RLX_FN void store_b8(uint8_t* p, vm m) {
  for (int i = 0; i < LANES; i++) p[i] = static_cast<uint8_t>(m.v[i] & 1);
}
RLX_FN void store_b8_part(uint8_t* p, vm m, int n) {
  for (int i = 0; i < LANES - 1; i++)
    if (i < n) p[i] = static_cast<uint8_t>(m.v[i] & 1);
}

// ---- horizontal

RLX_FN float sum(vf a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }
RLX_FN float max_keep_nan(float a, float b) { return a > b || a != a ? a : b; }
RLX_FN float hmax(vf a) { return max_keep_nan(max_keep_nan(a.v[0], a.v[2]), max_keep_nan(a.v[1], a.v[3])); }

// ---- f64 lanes

RLX_FN vd wide(vf a) { return {f64x2{a.v[0], a.v[1]}, f64x2{a.v[2], a.v[3]}}; }
RLX_FN vf narrow(vd a) {
  return {f32x4{static_cast<float>(a.lo[0]), static_cast<float>(a.lo[1]), static_cast<float>(a.hi[0]), static_cast<float>(a.hi[1])}};
}
RLX_FN vd operator+(vd a, vd b) { return {a.lo + b.lo, a.hi + b.hi}; }
RLX_FN vd operator-(vd a, vd b) { return {a.lo - b.lo, a.hi - b.hi}; }
RLX_FN vd operator*(vd a, vd b) { return {a.lo * b.lo, a.hi * b.hi}; }
RLX_FN vd operator/(vd a, vd b) { return {a.lo / b.lo, a.hi / b.hi}; }
RLX_FN vd fma(vd a, vd b, vd c) { return {fma_half(a.lo, b.lo, c.lo), fma_half(a.hi, b.hi, c.hi)}; }
RLX_FN f64x2 sqrt_half(f64x2 a) {
#if defined(RLX_X86)
  return _mm_sqrt_pd(a);
#elif defined(__aarch64__)
  f64x2 r;
  __asm__("fsqrt %0.2d, %1.2d" : "=w"(r) : "w"(a));
  return r;
#else
  return f64x2{::sqrt(a[0]), ::sqrt(a[1])};
#endif
}
RLX_FN vd sqrt(vd a) { return {sqrt_half(a.lo), sqrt_half(a.hi)}; }
RLX_FN f64x2 select_half(i64x2 m, f64x2 a, f64x2 b) { return m ? a : b; }
RLX_FN vd raw_min(vd a, vd b) {
  return {select_half((i64x2)(a.lo < b.lo), a.lo, b.lo), select_half((i64x2)(a.hi < b.hi), a.hi, b.hi)};
}
RLX_FN vd raw_max(vd a, vd b) {
  return {select_half((i64x2)(a.lo > b.lo), a.lo, b.lo), select_half((i64x2)(a.hi > b.hi), a.hi, b.hi)};
}
RLX_FN f64x2 trunc_half(f64x2 a) {
  const f64x2 big = {4503599627370496.0, 4503599627370496.0}, one = {1.0, 1.0};
  const i64x2 s = {INT64_MIN, INT64_MIN};
  const f64x2 m = (f64x2)((i64x2)a & ~s), r = (m + big) - big;
  const f64x2 t = select_half((i64x2)(r > m), r - one, r);
  return select_half((i64x2)(m < big), (f64x2)((i64x2)t | ((i64x2)a & s)), a);
}
RLX_FN vd trunc(vd a) { return {trunc_half(a.lo), trunc_half(a.hi)}; }

RLX_FN f64x2 pow2_half(f64x2 n) {
  const double magic = 6755399441055744.0 + 1023.0;  // 1.5 * 2^52 + bias: the sum's low bits are the exponent field
  return (f64x2)((u64x2)(n + f64x2{magic, magic}) << 52);
}
RLX_FN vd pow2(vd n) { return {pow2_half(n.lo), pow2_half(n.hi)}; }

RLX_FN f64x2 split_half(f64x2 x, f64x2& e) {
  const int64_t b = 0x3fe6a09e00000000ll;  // 0.70710... : m lies in [it, 2 * it)
  const int64_t off = 0x3ff0000000000000ll - b, frac = 0x000fffffffffffffll, two52 = 0x4330000000000000ll;
  const i64x2 t = (i64x2)x + i64x2{off, off};
  const double magic = 4503599627370496.0 + 1023.0;
  e = (f64x2)((i64x2)((u64x2)t >> 52) | i64x2{two52, two52}) - f64x2{magic, magic};
  return (f64x2)((t & i64x2{frac, frac}) + i64x2{b, b});
}
RLX_FN vd split(vd x, vd& e) { return {split_half(x.lo, e.lo), split_half(x.hi, e.hi)}; }
