// moves.h: f16 and bf16 by way of f32, selection, and the fast pairs of Cast. Text: see loops.h. Loops over plain integers are left to
// the compiler, which vectorises them for the instruction set of the region.

template <class H> void widen_half(const void *from, float *y, int64_t n) {
  const uint16_t *x = static_cast<const uint16_t *>(from);
  RLX_EACH(n, store(y + i, H::get(x + i)), store_part(y + i, H::get_part(x + i, left), left))
}
template <class H> void narrow_half(const float *x, void *to, int64_t n) {
  uint16_t *y = static_cast<uint16_t *>(to);
  RLX_EACH(n, H::put(y + i, load(x + i)), H::put_part(y + i, load_part(x + i, left), left))
}

// Work::inner on blocks of f32. Bytes: the inner loop gives bytes, which are the result.
template <class H, int N, bool Bytes> void half_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  alignas(64) float x[N][HALF_BLOCK], y[HALF_BLOCK];
  for (int64_t at = 0; at < n; at += HALF_BLOCK) {
    const int64_t m = n - at < HALF_BLOCK ? n - at : HALF_BLOCK;
    const void *blocks[MAX_IN] = {};
    for (int k = 0; k < N; k++) {
      widen_half<H>(static_cast<const uint16_t *>(in[k]) + at, x[k], m);
      blocks[k] = x[k];
    }
    if (Bytes) {
      w.inner(w, blocks, static_cast<uint8_t *>(out) + at, m);
    } else {
      w.inner(w, blocks, y, m);
      narrow_half<H>(y, static_cast<uint16_t *>(out) + at, m);
    }
  }
}

// A selection of bits, so that NaN payloads stay.
template <class T> void where_loop(const Work &, const void *const *in, void *out, int64_t n) {
  const uint8_t *c = static_cast<const uint8_t *>(in[0]);
  const T *a = static_cast<const T *>(in[1]), *b = static_cast<const T *>(in[2]);
  T *y = static_cast<T *>(out);
  for (int64_t i = 0; i < n; i++) {
    const T av = a[i], bv = b[i];
    y[i] = c[i] != 0 ? av : bv;
  }
}
void where_f32(const Work &, const void *const *in, void *out, int64_t n) {
  const uint8_t *c = static_cast<const uint8_t *>(in[0]);
  const float *a = f32_of(in, 1), *b = f32_of(in, 2);
  float *y = static_cast<float *>(out);
  RLX_EACH(n, store(y + i, select(load_b8(c + i), load(a + i), load(b + i))),
           store_part(y + i, select(load_b8_part(c + i, left), load_part(a + i, left), load_part(b + i, left)), left))
}
Loop where_of(int size) {
  switch (size) {
    case 1: return where_loop<uint8_t>;
    case 2: return where_loop<uint16_t>;
    case 4: return where_f32;
    default: return where_loop<uint64_t>;
  }
}

// x <= 0 in the bits of a half: a zero, or the sign and no NaN. Top is infinity.
template <uint16_t Top> RLX_FN uint16_t relu_gradient(uint16_t x, uint16_t dy) {
  const uint16_t m = uint16_t(x & 0x7fff);
  const bool low = m == 0 || (x > 0x8000 && m <= Top);
  return low ? uint16_t(0) : dy;
}
void relu_backward_half(const Work &w, const void *const *in, void *out, int64_t n) {
  const uint16_t *x = static_cast<const uint16_t *>(in[0]), *dy = static_cast<const uint16_t *>(in[1]);
  uint16_t *y = static_cast<uint16_t *>(out);
  if (w.alpha == 0) {
    for (int64_t i = 0; i < n; i++) y[i] = relu_gradient<0x7c00>(x[i], dy[i]);
  } else {
    for (int64_t i = 0; i < n; i++) y[i] = relu_gradient<0x7f80>(x[i], dy[i]);
  }
}

template <class H> void cast_widen(const Work &, const void *const *in, void *out, int64_t n) { widen_half<H>(in[0], static_cast<float *>(out), n); }
template <class H> void cast_narrow(const Work &, const void *const *in, void *out, int64_t n) { narrow_half<H>(f32_of(in, 0), out, n); }

void cast_f32_bool(const Work &, const void *const *in, void *out, int64_t n) {
  const float *x = f32_of(in, 0);
  uint8_t *y = static_cast<uint8_t *>(out);
  const vf zero = splat<vf>(0.0);
  RLX_EACH(n, store_b8(y + i, ne(load(x + i), zero)), store_b8_part(y + i, ne(load_part(x + i, left), zero), left))
}
void cast_bool_f32(const Work &, const void *const *in, void *out, int64_t n) {
  const uint8_t *x = static_cast<const uint8_t *>(in[0]);
  float *y = static_cast<float *>(out);
  const vf zero = splat<vf>(0.0), one = splat<vf>(1.0);
  RLX_EACH(n, store(y + i, select(load_b8(x + i), one, zero)), store_part(y + i, select(load_b8_part(x + i, left), one, zero), left))
}

// Toward zero; NaN gives 0, and the caller's bounds, floats that the integers hold, clamp.
RLX_FN vi toward_zero(vf x, vf lo, vf hi) { return to_i(trunc(raw_max(raw_min(select(eq(x, x), x, splat<vf>(0.0)), hi), lo))); }

// 2^31 is no i32 and the f32 below it is 2^31 - 128, so that what clamps above is put in.
RLX_FN vi to_i32(vf x) {
  const vi y = toward_zero(x, splat<vf>(-0x1p31), splat<vf>(2147483520.0));
  return select(ge(x, splat<vf>(0x1p31)), splat_i(INT32_MAX), y);
}
void cast_f32_i32(const Work &, const void *const *in, void *out, int64_t n) {
  const float *x = f32_of(in, 0);
  int32_t *y = static_cast<int32_t *>(out);
  RLX_EACH(n, store_i(y + i, to_i32(load(x + i))), store_part(reinterpret_cast<float *>(y) + i, from_bits(to_i32(load_part(x + i, left))), left))
}
template <class T> void cast_f32_small(const Work &, const void *const *in, void *out, int64_t n) {
  const float *x = f32_of(in, 0);
  T *y = static_cast<T *>(out);
  const vf lo = splat<vf>(double(T(-1) < T(0) ? -128 : 0)), hi = splat<vf>(double(T(-1) < T(0) ? 127 : 255));
  alignas(64) int32_t wide[HALF_BLOCK];
  for (int64_t at = 0; at < n; at += HALF_BLOCK) {
    const int64_t m = n - at < HALF_BLOCK ? n - at : HALF_BLOCK;
    const float *from = x + at;
    RLX_EACH(m, store_i(wide + i, toward_zero(load(from + i), lo, hi)),
             store_part(reinterpret_cast<float *>(wide) + i, from_bits(toward_zero(load_part(from + i, left), lo, hi)), left))
    for (int64_t k = 0; k < m; k++) y[at + k] = T(wide[k]);
  }
}
void cast_f32_i64(const Work &, const void *const *in, void *out, int64_t n) {
  const float *x = f32_of(in, 0);
  int64_t *y = static_cast<int64_t *>(out);
  for (int64_t i = 0; i < n; i++) {
    const float v = x[i];
    y[i] = v != v ? 0 : v >= 0x1p63f ? INT64_MAX : v < -0x1p63f ? INT64_MIN : int64_t(v);
  }
}
// One rounding: the processor's own conversion.
template <class T> void cast_int_f32(const Work &, const void *const *in, void *out, int64_t n) {
  const T *x = static_cast<const T *>(in[0]);
  float *y = static_cast<float *>(out);
  for (int64_t i = 0; i < n; i++) y[i] = float(x[i]);
}
template <class A, class B> void cast_int_int(const Work &, const void *const *in, void *out, int64_t n) {
  const A *x = static_cast<const A *>(in[0]);
  B *y = static_cast<B *>(out);
  for (int64_t i = 0; i < n; i++) y[i] = B(x[i]);
}

// f16 and bf16 to what f32 has a loop for, and what has one to f32: f32 holds the operand, so that the second step alone rounds.
Loop cast_of(int from, int to);
void cast_through_f32(const Work &w, const void *const *in, void *out, int64_t n) {
  const int from = int(w.lo), to = int(w.hi);
  const Loop get = cast_of(from, RLX_F32), put = cast_of(RLX_F32, to);
  alignas(64) float block[HALF_BLOCK];
  for (int64_t at = 0; at < n; at += HALF_BLOCK) {
    const int64_t m = n - at < HALF_BLOCK ? n - at : HALF_BLOCK;
    const void *x[MAX_IN] = {static_cast<const char *>(in[0]) + at * rlx_dtype_sizes[from]};
    get(w, x, block, m);
    x[0] = block;
    put(w, x, static_cast<char *>(out) + at * rlx_dtype_sizes[to], m);
  }
}
constexpr uint32_t IN_F32 = RLX_DTYPES_half | RLX_DTYPES_bool | RLX_DTYPES_i8 | RLX_DTYPES_u8;

Loop cast_of(int from, int to) {
#define RLX_PAIR(a, b) ((a) * RLX_NUM_DTYPES + (b))
  switch (RLX_PAIR(from, to)) {
    case RLX_PAIR(RLX_F16, RLX_F32): return cast_widen<f16_form>;
    case RLX_PAIR(RLX_BF16, RLX_F32): return cast_widen<bf16_form>;
    case RLX_PAIR(RLX_F32, RLX_F16): return cast_narrow<f16_form>;
    case RLX_PAIR(RLX_F32, RLX_BF16): return cast_narrow<bf16_form>;
    case RLX_PAIR(RLX_F32, RLX_BOOL): return cast_f32_bool;
    case RLX_PAIR(RLX_F32, RLX_I32): return cast_f32_i32;
    case RLX_PAIR(RLX_F32, RLX_I64): return cast_f32_i64;
    case RLX_PAIR(RLX_F32, RLX_I8): return cast_f32_small<int8_t>;
    case RLX_PAIR(RLX_F32, RLX_U8): return cast_f32_small<uint8_t>;
    case RLX_PAIR(RLX_BOOL, RLX_F32): return cast_bool_f32;
    case RLX_PAIR(RLX_I8, RLX_F32): return cast_int_f32<int8_t>;
    case RLX_PAIR(RLX_U8, RLX_F32): return cast_int_f32<uint8_t>;
    case RLX_PAIR(RLX_I32, RLX_F32): return cast_int_f32<int32_t>;
    case RLX_PAIR(RLX_I64, RLX_F32): return cast_int_f32<int64_t>;
    case RLX_PAIR(RLX_I32, RLX_I64): return cast_int_int<int32_t, int64_t>;
    case RLX_PAIR(RLX_I64, RLX_I32): return cast_int_int<int64_t, int32_t>;
    default: break;
  }
#undef RLX_PAIR
  const bool half = (RLX_DTYPES_half >> from & 1) != 0 || (RLX_DTYPES_half >> to & 1) != 0;
  return half && (IN_F32 >> from & 1) != 0 && cast_of(RLX_F32, to) != nullptr ? cast_through_f32 : nullptr;
}
