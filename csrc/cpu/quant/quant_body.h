// quant_body.h: Quantize and Dequantize a chunk at a time: operands to f32 and i32, one loop that compilers turn into vectors, results to
// their dtype. Text for the anonymous namespace of an instruction set, after vec_<isa>.h, forms.h, step.h and store_bytes (the lowest byte of each lane).

constexpr int CHUNK = 256;

void load_floats(float *to, uint32_t dtype, const void *from, int64_t at, int n) {
  switch (dtype) {
    case RLX_F16: return take<f16_form>(to, static_cast<const uint16_t *>(from) + at, 1, n);
    case RLX_BF16: return take<bf16_form>(to, static_cast<const uint16_t *>(from) + at, 1, n);
    case RLX_F64:
      for (int i = 0; i < n; i++) to[i] = float(static_cast<const double *>(from)[at + i]);
      return;
    default: std::memcpy(to, static_cast<const float *>(from) + at, size_t(n) * sizeof(float));
  }
}

void store_floats(void *to, uint32_t dtype, int64_t at, const float *from, int n) {
  switch (dtype) {
    case RLX_F16: return put<f16_form>(static_cast<uint16_t *>(to) + at, from, n);
    case RLX_BF16: return put<bf16_form>(static_cast<uint16_t *>(to) + at, from, n);
    default: std::memcpy(static_cast<float *>(to) + at, from, size_t(n) * sizeof(float));
  }
}

template <class T> void load_ints_of(int32_t *to, const void *from, int64_t at, int n) {
  const T *x = static_cast<const T *>(from) + at;
  for (int i = 0; i < n; i++) to[i] = int32_t(x[i]);
}
template <class T> void store_ints_of(void *to, int64_t at, const int32_t *from, int n) {
  T *y = static_cast<T *>(to) + at;
  for (int i = 0; i < n; i++) y[i] = T(from[i]);
}

void load_ints(int32_t *to, uint32_t dtype, const void *from, int64_t at, int n) {
  switch (dtype) {
    case RLX_I8: return load_ints_of<int8_t>(to, from, at, n);
    case RLX_U8: return load_ints_of<uint8_t>(to, from, at, n);
    case RLX_I16: return load_ints_of<int16_t>(to, from, at, n);
    case RLX_U16: return load_ints_of<uint16_t>(to, from, at, n);
    default: return load_ints_of<int32_t>(to, from, at, n);
  }
}

void store_ints(void *to, uint32_t dtype, int64_t at, const int32_t *from, int n) {
  switch (dtype) {
    case RLX_I8: return store_ints_of<int8_t>(to, at, from, n);
    case RLX_U8: return store_ints_of<uint8_t>(to, at, from, n);
    case RLX_I16: return store_ints_of<int16_t>(to, at, from, n);
    default: return store_ints_of<uint16_t>(to, at, from, n);
  }
}

struct Chunk {
  float x[CHUNK], scale[CHUNK];
  int32_t q[CHUNK], zero[CHUNK];
};

// Calls f(chunk, at, n, first scale, whether each element has its own) for the elements of units [begin, end).
template <class Fn> void chunks(const Call &c, Range r, Fn f) {
  const Runs runs = runs_of(c);
  const auto run = [&](const Run &u) {
    for (int64_t i = 0; i < u.length; i += CHUNK) {
      const int n = int(u.length - i < CHUNK ? u.length - i : CHUNK);
      f(u.at + i, n, u.vector ? u.scale + i : u.scale, u.vector);
    }
  };
  if (runs.kind == Runs::TENSOR) return run({r.begin, r.end - r.begin, 0, false});
  for (int64_t u = r.begin; u < r.end && !c.stopped(); u++) run(run_of(runs, u));
}

// Scales and zero points of a chunk; one of each where they are not a vector.
void load_scales(const Call &c, Chunk *k, int64_t at, int n) {
  load_floats(k->scale, c.in(1).dtype, c.in_ptr<void>(1), at, n);
  if (c.has(2)) load_ints(k->zero, c.in(2).dtype, c.in_ptr<void>(2), at, n);
  else std::memset(k->zero, 0, size_t(n) * sizeof(int32_t));
}

// Codes of 8 bits by a product with the reciprocal of the scale. It is less than 2^-14 from the quotient where that is no more than 255, so that both
// round to the same integer unless one lies closer than 2^-13 to a half: false then, for a NaN, and where the reciprocal is not a normal number.
RLX_FN bool small_codes(uint8_t *to, const float *x, int n, float scale, int32_t zero, Ends e) {
  if (!(scale > 0x1p-100f && scale < 0x1p100f)) return false;
  const vf by = splat<vf>(1.0f / scale), lo = splat<vf>(e.lo - zero), hi = splat<vf>(e.hi - zero), half = splat<vf>(0.5f - 0x1p-13f);
  const vf whole = splat<vf>(12582912.0f);  // 1.5 2^23: a sum with it is an integer, whose lowest bits are those of the integer
  const vi z = splat_i(zero);
  vm clear = eq(half, half);
  for (int i = 0; i < n; i += LANES) {
    const vf q = (n - i < LANES ? load_part(x + i, n - i) : load(x + i)) * by;
    const vf v = raw_min(hi, raw_max(lo, q)), t = v + whole;  // NaN stays
    clear = mand(clear, le(abs(v - (t - whole)), half));
    const vi r = bits(t);
    if (n - i >= LANES) {
      store_bytes(to + i, r + z);
      continue;
    }
    uint8_t last[LANES];
    store_bytes(last, r + z);
    std::memcpy(to + i, last, size_t(n - i));
  }
  return mask_bits(mnot(clear)) == 0;
}

// Contract: one f32 division, one rounding to an integer.
void quantize_units(const Call &c, Range r) {
  const uint32_t from = c.in(0).dtype, to = c.out(0).dtype;
  const Ends e = ends_of(to);
  Chunk k;
  chunks(c, r, [&](int64_t at, int n, int64_t scale, bool vector) {
    const float *x = from == RLX_F32 ? c.in_ptr<float>(0) + at : k.x;
    if (from != RLX_F32) load_floats(k.x, from, c.in_ptr<void>(0), at, n);
    load_scales(c, &k, scale, vector ? n : 1);
    const float s = k.scale[0];
    const int32_t z = k.zero[0];
    if (!vector && e.hi <= 255 && small_codes(c.out_ptr<uint8_t>(0) + at, x, n, s, z, e)) return;
    if (vector) {
      for (int i = 0; i < n; i++) k.q[i] = to_code(x[i] / k.scale[i], k.zero[i], e);
    } else {
      for (int i = 0; i < n; i++) k.q[i] = to_code(x[i] / s, z, e);
    }
    store_ints(c.out_ptr<void>(0), to, at, k.q, n);
  });
}

// Contract: an exact difference, rounded once to f32; one f32 product; one rounding to the result.
void dequantize_units(const Call &c, Range r) {
  const uint32_t from = c.in(0).dtype, to = c.out(0).dtype;
  Chunk k;
  chunks(c, r, [&](int64_t at, int n, int64_t scale, bool vector) {
    load_ints(k.q, from, c.in_ptr<void>(0), at, n);
    load_scales(c, &k, scale, vector ? n : 1);
    if (from == RLX_I32) {
      const int step = vector ? 1 : 0;
      for (int i = 0; i < n; i++) k.x[i] = float(int64_t(k.q[i]) - k.zero[i * step]) * k.scale[i * step];
    } else if (vector) {
      for (int i = 0; i < n; i++) k.x[i] = float(k.q[i] - k.zero[i]) * k.scale[i];
    } else {
      const float s = k.scale[0];
      const int32_t z = k.zero[0];
      for (int i = 0; i < n; i++) k.x[i] = float(k.q[i] - z) * s;
    }
    store_floats(c.out_ptr<void>(0), to, at, k.x, n);
  });
}
