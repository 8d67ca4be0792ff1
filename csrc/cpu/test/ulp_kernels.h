// ulp_kernels.h: the functions under test as loops over arrays, for one instruction set. Textual include in the
// anonymous namespace of the set, after vec_<isa>.h, vec_math.h, a power and norm_body.h; the order of the two tables is that of ulp_test.cpp.

vf as_number(vm m) { return select(m, splat<vf>(1.0), splat<vf>(0.0)); }

// 16 lanes have power in its place.
RLX_FN vf below(vf x) {
  if (LANES == 16) return exp(x);
  exp_below<1>(&x);
  return x;
}

// n is a multiple of 16. A lambda, since overloaded names cannot be template arguments of one type.
#define RLX_TEST_LOOP(value) \
  [](const float* a, const float* b, float* y, int n) { \
    (void)b; \
    for (int i = 0; i < n; i += LANES) store(y + i, value); \
  }
#define RLX_TEST_1(f) RLX_TEST_LOOP(f(load(a + i)))
#define RLX_TEST_2(f) RLX_TEST_LOOP(f(load(a + i), load(b + i)))
#define RLX_TEST_M1(f) RLX_TEST_LOOP(as_number(f(load(a + i))))
#define RLX_TEST_M2(f) RLX_TEST_LOOP(as_number(f(load(a + i), load(b + i))))

const kernel unary_kernels[] = {
    RLX_TEST_1(identity), RLX_TEST_1(neg), RLX_TEST_1(abs), RLX_TEST_1(sign), RLX_TEST_1(square), RLX_TEST_1(reciprocal),
    RLX_TEST_1(sqrt), RLX_TEST_1(rsqrt), RLX_TEST_1(round), RLX_TEST_1(floor), RLX_TEST_1(ceil), RLX_TEST_1(trunc),
    RLX_TEST_M1(is_nan), RLX_TEST_M1(is_inf), RLX_TEST_M1(is_finite),
    RLX_TEST_1(exp), RLX_TEST_1(exp2), RLX_TEST_1(expm1), RLX_TEST_1(log), RLX_TEST_1(log2), RLX_TEST_1(log10), RLX_TEST_1(log1p),
    RLX_TEST_1(sin), RLX_TEST_1(cos), RLX_TEST_1(tan), RLX_TEST_1(asin), RLX_TEST_1(acos), RLX_TEST_1(atan),
    RLX_TEST_1(sinh), RLX_TEST_1(cosh), RLX_TEST_1(tanh), RLX_TEST_1(asinh), RLX_TEST_1(acosh), RLX_TEST_1(atanh),
    RLX_TEST_1(erf), RLX_TEST_1(erfc), RLX_TEST_1(gelu), RLX_TEST_LOOP(below(-abs(load(a + i)))),
    RLX_TEST_LOOP(power(-abs(load(a + i)))),
};
const kernel binary_kernels[] = {
    RLX_TEST_2(add), RLX_TEST_2(sub), RLX_TEST_2(mul), RLX_TEST_2(div), RLX_TEST_2(max), RLX_TEST_2(min), RLX_TEST_2(copysign),
    RLX_TEST_M2(lt), RLX_TEST_M2(le), RLX_TEST_M2(gt), RLX_TEST_M2(ge), RLX_TEST_M2(eq), RLX_TEST_M2(ne),
    RLX_TEST_2(pow), RLX_TEST_2(mod), RLX_TEST_2(atan2),
};

// ---- memory forms: each check returns 0 or the number of the one that failed

int check_part(int n) {
  float src[LANES], dst[LANES + 1], full[LANES];
  for (int i = 0; i < LANES; i++) src[i] = static_cast<float>(i + 1);
  const vf v = load_part(src, n);
  store(full, v);
  for (int i = 0; i < LANES; i++)
    if (full[i] != (i < n ? src[i] : 0.0f)) return 1;
  for (int i = 0; i <= LANES; i++) dst[i] = -7.0f;
  store_part(dst, load(src), n);
  for (int i = 0; i <= LANES; i++)
    if (dst[i] != (i < n ? src[i] : -7.0f)) return 2;
  return 0;
}

int check_half_part(int n) {
  uint16_t src[LANES], dst[LANES + 1];
  float full[LANES];
  for (int form = 0; form < 2; form++) {
    for (int i = 0; i < LANES; i++) src[i] = static_cast<uint16_t>(0x3c00 + 16 * i);
    store(full, form ? load_bf16_part(src, n) : load_f16_part(src, n));
    for (int i = 0; i < LANES; i++)
      if ((full[i] != 0.0f) != (i < n)) return 3;
    for (int i = 0; i <= LANES; i++) dst[i] = 0xabcd;
    if (form) store_bf16_part(dst, load_bf16(src), n);
    else store_f16_part(dst, load_f16(src), n);
    for (int i = 0; i <= LANES; i++)
      if (dst[i] != (i < n ? src[i] : 0xabcd)) return 4;
  }
  return 0;
}

int check_mask(unsigned pattern, int n) {
  uint8_t src[LANES], dst[LANES + 1];
  for (int i = 0; i < LANES; i++) src[i] = (pattern >> i) & 1 ? static_cast<uint8_t>(i % 3 + 1) : 0;
  const vm m = load_b8(src);
  const unsigned all_lanes = (1u << LANES) - 1u, want = pattern & all_lanes;
  if (mask_bits(m) != want || mask_bits(load_b8_part(src, n)) != (want & ((1u << n) - 1u))) return 5;
  if (any(m) != (want != 0) || all(m) != (want == all_lanes)) return 6;
  if (mask_bits(mnot(m)) != (~want & all_lanes)) return 7;
  for (int i = 0; i <= LANES; i++) dst[i] = 9;
  store_b8(dst, m);
  for (int i = 0; i <= LANES; i++)
    if (dst[i] != (i < LANES ? (want >> i) & 1u : 9u)) return 8;
  for (int i = 0; i <= LANES; i++) dst[i] = 9;
  store_b8_part(dst, m, n);
  for (int i = 0; i <= LANES; i++)
    if (dst[i] != (i < n ? (want >> i) & 1u : 9u)) return 9;
  return 0;
}

int check_horizontal() {
  float x[LANES];
  float total = 0;
  for (int i = 0; i < LANES; i++) x[i] = static_cast<float>(i * i - 20), total += x[i];
  if (sum(load(x)) != total || hmax(load(x)) != x[LANES - 1]) return 10;
  for (int i = 0; i < LANES; i++) {
    const float keep = x[i];
    x[i] = NAN;
    if (hmax(load(x)) == hmax(load(x))) return 11;
    x[i] = 1e9f;
    if (hmax(load(x)) != 1e9f) return 12;
    x[i] = keep;
  }
  return 0;
}

int check_integers() {
  int32_t a[LANES], r[LANES];
  for (int i = 0; i < LANES; i++) a[i] = (i % 2 ? -1 : 1) * (1000003 * (i + 1));
  const vi v = load_i(a), one = splat_i(1);
  store_i(r, sra<3>(v));
  for (int i = 0; i < LANES; i++)
    if (r[i] != a[i] >> 3) return 13;
  store_i(r, shr<3>(v));
  for (int i = 0; i < LANES; i++)
    if (static_cast<uint32_t>(r[i]) != static_cast<uint32_t>(a[i]) >> 3) return 14;
  store_i(r, (((shl<2>(v) + one) & splat_i(0xff)) | splat_i(0x100)) ^ one);
  for (int i = 0; i < LANES; i++)
    if (r[i] != (static_cast<int32_t>((((static_cast<uint32_t>(a[i]) << 2) + 1u) & 0xffu) | 0x100u) ^ 1)) return 15;
  if (mask_bits(gt_i(v, splat_i(0))) != (0x55555555u & ((1u << LANES) - 1u)) || !all(eq_i(v, v))) return 16;
  const float halves[16] = {0.5f, 1.5f, -0.5f, -1.5f, 2.5f, -2.5f, 2e9f, -2e9f, 0.49999997f, 8388607.5f, 0, 1, 2, 3, 4, 5};
  for (int j = 0; j < 16; j += LANES) {
    store_i(r, to_i(load(halves + j)));
    for (int i = 0; i < LANES; i++)
      if (r[i] != static_cast<int32_t>(::rint(halves[i + j]))) return 17;
  }
  return 0;
}

// (1 + e)(1 - e) - 1 is 0 in two roundings and -e^2 when the compiler fuses them. Compiled for this instruction set, in
// plain code and in vectors.
int check_contraction() {
  volatile float e = 0x1p-13f;
  const float a = 1.0f + e, b = 1.0f - e, r = a * b - 1.0f;
  volatile double e2 = 0x1p-27;
  const double c = 1.0 + e2, d = 1.0 - e2, s = c * d - 1.0;
  if (r != 0 || s != 0) return 18;
  const vf va = splat<vf>(a), vb = splat<vf>(b), one = splat<vf>(1.0);
  if (any(ne(va * vb - one, one - one)) || any(eq(fma_exact(va, vb, -one), one - one))) return 19;
  const vd wc = splat<vd>(c), wd = splat<vd>(d);
  return any(ne(narrow(wc * wd - wide(one)), one - one)) ? 20 : 0;
}

// One template for vectors and for double. The expected value is written out with libm.
template <class V> V composed(V x) {
  const V one = splat<V>(1.0);
  const V y = mul(x, select(lt(x, one), erfc(neg(x)), add(one, tanh(x))));
  return select(mand(is_finite(x), mnot(is_nan(y))), max(y, sub(log1p(abs(x)), one)), x);
}
int check_functor() {
  float x[LANES], y[LANES];
  for (int i = 0; i < LANES; i++) x[i] = 0.37f * static_cast<float>(i) - 1.1f;
  store(y, composed(load(x)));
  for (int i = 0; i < LANES; i++) {
    const double v = static_cast<double>(x[i]);
    const double want = ::fmax(v * (v < 1.0 ? ::erfc(-v) : 1.0 + ::tanh(v)), ::log1p(::fabs(v)) - 1.0);
    if (composed(v) != want) return 21;
    if (::fabs(static_cast<double>(y[i]) - want) > 1e-6) return 22;
  }
  return 0;
}

int check_memory() {
  for (int n = 0; n < LANES; n++) {
    int bad = check_part(n);
    if (bad == 0) bad = check_half_part(n);
    for (unsigned k = 0; k < 64 && bad == 0; k++) bad = check_mask(k * 2654435761u >> 7, n);
    if (bad == 0) bad = check_mask(~0u, n);
    if (bad) return bad;
  }
  int bad = check_horizontal();
  if (bad == 0) bad = check_integers();
  if (bad == 0) bad = check_functor();
  return bad ? bad : check_contraction();
}

void widen_halves(const uint16_t* h, float* f16, float* bf16, int n) {
  for (int i = 0; i < n; i += LANES) {
    store(f16 + i, load_f16(h + i));
    store(bf16 + i, load_bf16(h + i));
  }
}
void narrow_halves(const float* x, uint16_t* f16, uint16_t* bf16, int n) {
  for (int i = 0; i < n; i += LANES) {
    store_f16(f16 + i, load(x + i));
    store_bf16(bf16 + i, load(x + i));
  }
}

const isa_table table = {unary_kernels, binary_kernels, check_memory, widen_halves, narrow_halves, LANES};

#undef RLX_TEST_LOOP
#undef RLX_TEST_1
#undef RLX_TEST_2
#undef RLX_TEST_M1
#undef RLX_TEST_M2
