// Tiles and conversions, written once over vectors of VEC_BYTES. Text for the anonymous namespace of an instruction set, after vec_<isa>.h
// and a madd of vectors of f64: see blocked_avx2.cpp.

template <class T> struct Vector { typedef T type __attribute__((vector_size(VEC_BYTES))); };

template <class V> RLX_FN V madd(V a, V b, V c) { return a * b + c; }  // integers wrap

// H rows by two vectors of columns. The loops have constant bounds: the sums stay in registers.
template <class T, int H> void tile(const void *pa, const void *pb, void *pc, int64_t c_rs, int64_t k, bool keep) {
  typedef typename Vector<T>::type V;
  constexpr int L = VEC_BYTES / int(sizeof(T));
  const T *a = static_cast<const T *>(pa), *b = static_cast<const T *>(pb);
  T *c = static_cast<T *>(pc);
  V sum[H][2];
#pragma GCC unroll 16
  for (int i = 0; i < H; i++) {
    sum[i][0] = sum[i][1] = V{};
    if (keep) std::memcpy(sum[i], c + i * c_rs, sizeof sum[i]);
  }
  for (int64_t kk = 0; kk < k; kk++, a += H, b += 2 * L) {
    V row[2];
    std::memcpy(row, b, sizeof row);
#pragma GCC unroll 16
    for (int i = 0; i < H; i++) {
      const V x = a[i] - V{};
      sum[i][0] = madd(x, row[0], sum[i][0]);
      sum[i][1] = madd(x, row[1], sum[i][1]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < H; i++) std::memcpy(c + i * c_rs, sum[i], sizeof sum[i]);
}

template <class T> void pack_plain(void *panel, int w, const void *from, int64_t sk, int64_t sj, int64_t k, int n) {
  T *dst = static_cast<T *>(panel);
  const T *src = static_cast<const T *>(from);
  for (int64_t kk = 0; kk < k; kk++, dst += w, src += sk) {
    if (sj == 1) std::memcpy(dst, src, size_t(n) * sizeof(T));
    else
      for (int j = 0; j < n; j++) dst[j] = src[j * sj];
    for (int j = n; j < w; j++) dst[j] = 0;
  }
}

template <class T> void put_plain(void *y, const void *c, int64_t n) { std::memcpy(y, c, size_t(n) * sizeof(T)); }

struct F16 {
  static RLX_FN vf get(const uint16_t *p) { return load_f16(p); }
  static RLX_FN vf get_part(const uint16_t *p, int n) { return load_f16_part(p, n); }
  static RLX_FN void put(uint16_t *p, vf x) { store_f16(p, x); }
  static RLX_FN void put_part(uint16_t *p, vf x, int n) { store_f16_part(p, x, n); }
};
struct BF16 {
  static RLX_FN vf get(const uint16_t *p) { return load_bf16(p); }
  static RLX_FN vf get_part(const uint16_t *p, int n) { return load_bf16_part(p, n); }
  static RLX_FN void put(uint16_t *p, vf x) { store_bf16(p, x); }
  static RLX_FN void put_part(uint16_t *p, vf x, int n) { store_bf16_part(p, x, n); }
};

template <class H> RLX_FN void widen(float *dst, const uint16_t *src, int64_t n) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) store(dst + i, H::get(src + i));
  if (i < n) store_part(dst + i, H::get_part(src + i, int(n - i)), int(n - i));
}

template <class H> void put_half(void *y, const void *c, int64_t n) {
  uint16_t *dst = static_cast<uint16_t *>(y);
  const float *src = static_cast<const float *>(c);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) H::put(dst + i, load(src + i));
  if (i < n) H::put_part(dst + i, load_part(src + i, int(n - i)), int(n - i));
}

// Widens along the axis that is contiguous; otherwise elements are brought together first.
template <class H> void pack_half(void *panel, int w, const void *from, int64_t sk, int64_t sj, int64_t k, int n) {
  float *dst = static_cast<float *>(panel);
  const uint16_t *src = static_cast<const uint16_t *>(from);
  constexpr int STEP = 64;
  alignas(64) uint16_t halves[STEP];
  alignas(64) float wide[STEP];
  if (sk == w && sj == 1 && n == w) return widen<H>(dst, src, k * w);
  if (sk == 1 && sj != 1) {
    for (int64_t k0 = 0; k0 < k; k0 += STEP) {
      const int64_t m = k - k0 < STEP ? k - k0 : STEP;
      for (int j = 0; j < w; j++) {
        if (j < n) widen<H>(wide, src + j * sj + k0, m);
        for (int64_t kk = 0; kk < m; kk++) dst[(k0 + kk) * w + j] = j < n ? wide[kk] : 0.0f;
      }
    }
    return;
  }
  for (int64_t kk = 0; kk < k; kk++, dst += w, src += sk) {
    const uint16_t *row = src;
    if (sj != 1) {
      for (int j = 0; j < n; j++) halves[j] = src[j * sj];
      row = halves;
    }
    widen<H>(dst, row, n);
    for (int j = n; j < w; j++) dst[j] = 0;
  }
}

template <class H> constexpr BlockedSet half_set(const TileSetF32 *tiles) {
  return {tiles, 0, sizeof(uint16_t), sizeof(float), pack_half<H>, {}, put_half<H>};
}
template <class T> constexpr BlockedSet plain_set() {
  return {nullptr, 2 * VEC_BYTES / int(sizeof(T)), sizeof(T), sizeof(T), pack_plain<T>,
          {nullptr, tile<T, 1>, tile<T, 2>, tile<T, 3>, tile<T, 4>, tile<T, 5>, tile<T, 6>}, put_plain<T>};
}
