// rng_body.h: RngUniform and RngNormal, written as loops over the lanes of a unit that compilers turn into vectors. Text for the anonymous
// namespace of an instruction set, after vec_<isa>.h.

// The words of unit u, in the order of the stream.
void unit_words(const Stream &s, int64_t u, uint32_t *words) {
  uint32_t c0[BLOCKS], c1[BLOCKS], c2[BLOCKS], c3[BLOCKS];
  for (int b = 0; b < BLOCKS; b++) c0[b] = uint32_t(u * BLOCKS + b), c1[b] = s.step, c2[b] = s.key[0], c3[b] = s.key[1];
  uint32_t k0 = s.seed[0], k1 = s.seed[1];
  for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
    for (int b = 0; b < BLOCKS; b++) {
      const uint64_t p = uint64_t(0xD2511F53u) * c0[b], q = uint64_t(0xCD9E8D57u) * c2[b];
      c0[b] = uint32_t(q >> 32) ^ c1[b] ^ k0, c1[b] = uint32_t(q);
      c2[b] = uint32_t(p >> 32) ^ c3[b] ^ k1, c3[b] = uint32_t(p);
    }
  for (int b = 0; b < BLOCKS; b++) words[4 * b] = c0[b], words[4 * b + 1] = c1[b], words[4 * b + 2] = c2[b], words[4 * b + 3] = c3[b];
}

// Elements [0, n) of a unit of values to the result, in its dtype.
void put_unit(const Call &c, int64_t at, int64_t n, const float *v) {
  const uint32_t dtype = c.out(0).dtype;
  if (dtype == RLX_F32) {
    std::memcpy(c.out_ptr<float>(0) + at, v, size_t(n) * sizeof(float));
    return;
  }
  uint16_t *y = c.out_ptr<uint16_t>(0) + at;
  for (int64_t i = 0; i < n; i++) y[i] = half_bits(dtype, v[i]);
}

struct Uniform {
  double low, span, high, below;
};

// f32 in f64, rounded once. Contract: low + u span, each operation rounded; what is not below high is the value below it.
void uniform_f32(const uint32_t *w, const Uniform &a, float *v) {
  if (a.low == 0 && a.high == 1) {
    for (int i = 0; i < WORDS; i++) v[i] = float(int32_t(w[i] >> 8)) * 0x1p-24f;
    return;
  }
  const float high = float(a.high), below = float(a.below);
  for (int i = 0; i < WORDS; i++) {
    const float y = float(a.low + double(int32_t(w[i] >> 8)) * 0x1p-24 * a.span);
    v[i] = y >= high ? below : y;
  }
}

// Halves in f32, rounded once at the end. A span beyond f32 is halved on the way, which is exact.
void uniform_half(const uint32_t *w, const Uniform &a, uint32_t dtype, float *v) {
  const float unit = dtype == RLX_F16 ? 0x1p-11f : 0x1p-8f, up = a.span > 3.4028234663852886e38 ? 2.0f : 1.0f;
  const float low = float(a.low) / up, span = float(a.span / up);
  const int shift = dtype == RLX_F16 ? 21 : 24;
  for (int i = 0; i < WORDS; i++) {
    const float y = half_value(dtype, half_bits(dtype, (low + float(int32_t(w[i] >> shift)) * unit * span) * up));
    v[i] = y >= float(a.high) ? float(a.below) : y;
  }
}

void uniform_f64(const uint32_t *w, const Uniform &a, double *v) {
  for (int i = 0; i < WORDS / 2; i++) {
    const double y = a.low + double(int64_t((uint64_t(w[2 * i + 1]) << 32 | w[2 * i]) >> 11)) * 0x1p-53 * a.span;
    v[i] = y >= a.high ? a.below : y;
  }
}

void uniform_units(const Call &c, Range r) {
  const rlx_RngUniformAttrs &a = c.attrs<rlx_RngUniformAttrs>();
  const Stream s = stream_of(c, a.seed, uint64_t(a.key));
  const uint32_t dtype = c.out(0).dtype;
  Uniform u = {round_to(dtype, a.low), 0, round_to(dtype, a.high), 0};
  u.span = u.high - u.low, u.below = value_below(dtype, u.high);
  const int64_t per = unit_elements(c), count = c.out(0).count;
  uint32_t words[WORDS];
  float v[WORDS];
  double wide[WORDS / 2];
  for (int64_t i = r.begin; i < r.end && !c.stopped(); i++) {
    const int64_t at = i * per, n = count - at < per ? count - at : per;
    unit_words(s, i, words);
    if (dtype == RLX_F64) {
      uniform_f64(words, u, wide);
      std::memcpy(c.out_ptr<double>(0) + at, wide, size_t(n) * sizeof(double));
      continue;
    }
    if (dtype == RLX_F32) uniform_f32(words, u, v);
    else uniform_half(words, u, dtype, v);
    put_unit(c, at, n, v);
  }
}

// ln((k + 1) 2^-24): the exponent and the series of atanh on a mantissa between sqrt(1/2) and sqrt(2).
RLX_FN float log_of_draw(uint32_t k) {
  const float x = float(int32_t(k + 1)) * 0x1p-24f;
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  const int32_t e = (int32_t(bits) - 0x3f3504f3) >> 23;
  bits -= uint32_t(e) << 23;
  float m;
  std::memcpy(&m, &bits, 4);
  const float f = m - 1, s = f / (2 + f), q = s * s;
  const float series = q * (0.6666666667f + q * (0.4f + q * (0.2857142857f + q * 0.2222222222f)));
  return float(e) * 0.6931471806f + (2 * s + s * series);
}

// Box and Muller. Contract: f32 throughout; angles lose their nearest quarter turn exactly. Bound: 5e-7 relative + 2e-7.
void normal_f32(const uint32_t *w, float *z) {
  float even[WORDS / 2], odd[WORDS / 2], radius[WORDS / 2];
  for (int i = 0; i < WORDS / 2; i++) radius[i] = -2 * log_of_draw(w[2 * i] >> 8);
  for (int i = 0; i < WORDS / 2; i += LANES) store(radius + i, sqrt(load(radius + i)));
  for (int i = 0; i < WORDS / 2; i++) {
    const uint32_t kb = w[2 * i + 1] >> 8, quarter = (kb + (1u << 21)) >> 22;
    const float r = radius[i];
    const float a = float(int32_t(kb - (quarter << 22))) * 3.7450703e-07f, q = a * a;  // 2 pi 2^-24
    const float sin = a + a * q * (-1.666666667e-1f + q * (8.333333333e-3f + q * (-1.984126984e-4f + q * 2.755731922e-6f)));
    const float cos = 1 + q * (-0.5f + q * (4.166666667e-2f + q * (-1.388888889e-3f + q * (2.480158730e-5f + q * -2.755731922e-7f))));
    const bool swap = (quarter & 1) != 0;
    const float x = swap ? sin : cos, y = swap ? cos : sin;
    even[i] = ((quarter + 1) & 2) != 0 ? -(r * x) : r * x;
    odd[i] = (quarter & 2) != 0 ? -(r * y) : r * y;
  }
  for (int i = 0; i < WORDS / 2; i++) z[2 * i] = even[i], z[2 * i + 1] = odd[i];
}

void normal_units(const Call &c, Range r) {
  const rlx_RngNormalAttrs &a = c.attrs<rlx_RngNormalAttrs>();
  const Stream s = stream_of(c, a.seed, uint64_t(a.key));
  const int64_t per = unit_elements(c), count = c.out(0).count;
  uint32_t words[WORDS];
  float v[WORDS];
  double wide[WORDS / 2];
  for (int64_t i = r.begin; i < r.end && !c.stopped(); i++) {
    const int64_t at = i * per, n = count - at < per ? count - at : per;
    unit_words(s, i, words);
    if (c.out(0).dtype == RLX_F64) {
      normal_f64_unit(words, wide);
      for (int k = 0; k < WORDS / 2; k++) wide[k] = a.scale == 0 ? a.mean : a.mean + a.scale * wide[k];
      std::memcpy(c.out_ptr<double>(0) + at, wide, size_t(n) * sizeof(double));
      continue;
    }
    normal_f32(words, v);
    for (int k = 0; k < WORDS; k++) v[k] = a.scale == 0 ? float(a.mean) : float(a.mean + a.scale * double(v[k]));  // products may leave f32
    put_unit(c, at, n, v);
  }
}
