// forms.h: f32, f16 and bf16 in memory as f32 lanes. Text for the anonymous namespace of an instruction set, after vec_<isa>.h.

struct f32_form {
  typedef float T;
  static constexpr bool DIRECT = true;  // lies in memory as in lanes
  static RLX_FN vf get(const T *p) { return load(p); }
  static RLX_FN vf get_part(const T *p, int n) { return load_part(p, n); }
  static RLX_FN void put(T *p, vf x) { store(p, x); }
  static RLX_FN void put_part(T *p, vf x, int n) { store_part(p, x, n); }
};
struct f16_form {
  typedef uint16_t T;
  static constexpr bool DIRECT = false;  // lies in memory as in lanes
  static RLX_FN vf get(const T *p) { return load_f16(p); }
  static RLX_FN vf get_part(const T *p, int n) { return load_f16_part(p, n); }
  static RLX_FN void put(T *p, vf x) { store_f16(p, x); }
  static RLX_FN void put_part(T *p, vf x, int n) { store_f16_part(p, x, n); }
};
struct bf16_form {
  typedef uint16_t T;
  static constexpr bool DIRECT = false;  // lies in memory as in lanes
  static RLX_FN vf get(const T *p) { return load_bf16(p); }
  static RLX_FN vf get_part(const T *p, int n) { return load_bf16_part(p, n); }
  static RLX_FN void put(T *p, vf x) { store_bf16(p, x); }
  static RLX_FN void put_part(T *p, vf x, int n) { store_bf16_part(p, x, n); }
};

alignas(64) const float lane_numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// x in the first n lanes, fill in the others.
RLX_FN vf keep(vf x, int n, vf fill) { return select(lt(load(lane_numbers), splat<vf>(n)), x, fill); }

// The lanes of an f64 vector, added in one fixed order.
RLX_FN double total(vd a) {
  double t[LANES];
  std::memcpy(t, &a, sizeof t);
  for (int w = LANES / 2; w > 0; w /= 2)
    for (int i = 0; i < w; i++) t[i] += t[i + w];
  return t[0];
}

// max and min as the specs of the ops have them: NaN propagates, and +0 is above -0.
RLX_FN vf max_strict(vf a, vf b) { return select(eq(a, b), from_bits(bits(a) & bits(b)), max(a, b)); }
RLX_FN vf min_strict(vf a, vf b) { return select(eq(a, b), from_bits(bits(a) | bits(b)), min(a, b)); }

// The greatest of n contiguous elements; NaN if one is, -inf for none. The sign of a zero is either.
template <class F> float row_max(const typename F::T *x, int64_t n) {
  const vf none = splat<vf>(-INFINITY);
  vf a = none, b = none, c = none, d = none;
  int64_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES) {
    a = max(a, F::get(x + i)), b = max(b, F::get(x + i + LANES));
    c = max(c, F::get(x + i + 2 * LANES)), d = max(d, F::get(x + i + 3 * LANES));
  }
  for (; i + LANES <= n; i += LANES) a = max(a, F::get(x + i));
  if (const int left = int(n - i); left > 0) b = max(b, keep(F::get_part(x + i, left), left, none));
  return hmax(max(max(a, b), max(c, d)));
}
