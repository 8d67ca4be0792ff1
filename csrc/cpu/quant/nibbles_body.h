// nibbles_body.h: one row of x by rows of four-bit weights, where a vector holds all 16 values that a run's weights may have: they are computed once
// for the run, and codes pick among them. Contract and bits as rows_body.h. Text for the anonymous namespace of an instruction set, after rows_body.h,
// wide_bytes(p), LANES bytes as lanes, and among(table, i), lanes of a table by the lowest four bits of i.

alignas(64) constexpr float from_zero[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
alignas(64) constexpr float from_less_8[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};

// The scales of a chunk of blocks that begin with one, or with a scale and an offset.
template <int Bytes_, bool Offset> void block_scales(Bytes b, int n, Codes *__restrict c) {
  for (int i = 0; i < n / 32; i++, b += Bytes_) {
    c->scale[i] = half_at(b);
    if (Offset) c->scale[8 + i] = half_at(b + 2);
  }
}
void super_scales(Bytes b, int, Codes *__restrict c) { sub_scales(b, c); }

struct Q4_0 {
  static constexpr int BYTES = 18, AT = 2;
  static constexpr bool OFFSET = false, PAIRS = false;
  static constexpr const float *values = from_less_8;
  static constexpr void (*scales)(Bytes, int, Codes *) = block_scales<18, false>;
};
struct Q4_1 {
  static constexpr int BYTES = 20, AT = 4;
  static constexpr bool OFFSET = true, PAIRS = false;
  static constexpr const float *values = from_zero;
  static constexpr void (*scales)(Bytes, int, Codes *) = block_scales<20, true>;
};
struct Q4K {
  static constexpr int BYTES = 32, AT = 16;  // for 64 weights
  static constexpr bool OFFSET = true, PAIRS = true;
  static constexpr const float *values = from_zero;
  static constexpr void (*scales)(Bytes, int, Codes *) = super_scales;
};

template <class F> RLX_FN vf values_of(const Codes &c, int run) {
  const vf v = load(F::values), s = splat<vf>(c.scale[run]);
  return F::OFFSET ? fma(v, s, splat<vf>(c.scale[8 + run])) : v * s;
}

// W rows of weights from row o on.
template <class F, int W> RLX_FN void nibbles_by(const RowForm &f, const Packed &p, const float *x, int64_t o, float *y) {
  static_assert(LANES == 16, "a half of a run");
  vf sums[W];
  Codes c[W];
#pragma GCC unroll 8
  for (int r = 0; r < W; r++) sums[r] = splat<vf>(0.0);
  const uint8_t *from = p.w + o * p.row_bytes;
  const int64_t step = CHUNK_K / f.block.weights * f.block.bytes;
  for (int64_t k = 0; k < p.k; k += CHUNK_K, x += CHUNK_K, from += step) {
    const int n = int(p.k - k < CHUNK_K ? p.k - k : CHUNK_K);
#pragma GCC unroll 8
    for (int r = 0; r < W; r++) fetch_ahead(from + (W + r) * p.row_bytes, step), F::scales(from + r * p.row_bytes, n, &c[r]);
    const uint8_t *b = from + F::AT;
    for (int i = 0; i < n; i += F::PAIRS ? 64 : 32, b += F::BYTES) {
      const vf x0 = load(x + i), x1 = load(x + i + 16);
#pragma GCC unroll 8
      for (int r = 0; r < W; r++) {
        const vf t = values_of<F>(c[r], i / 32);
        const vi q = wide_bytes(b + r * p.row_bytes);
        if constexpr (F::PAIRS) {
          const vi q1 = wide_bytes(b + r * p.row_bytes + 16);
          const vf u = values_of<F>(c[r], i / 32 + 1);
          sums[r] = fma(among(t, q), x0, sums[r]), sums[r] = fma(among(t, q1), x1, sums[r]);
          sums[r] = fma(among(u, shr<4>(q)), load(x + i + 32), sums[r]), sums[r] = fma(among(u, shr<4>(q1)), load(x + i + 48), sums[r]);
        } else {
          sums[r] = fma(among(t, q), x0, sums[r]), sums[r] = fma(among(t, shr<4>(q)), x1, sums[r]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < W; r++) y[r] = sum(sums[r]);
}
template <class F> void nibble_rows(const RowForm &f, const Packed &p, const float *x, int64_t o, int rows, float *y) {
  for (; rows >= FEW_W; rows -= FEW_W, o += FEW_W, y += FEW_W) nibbles_by<F, FEW_W>(f, p, x, o, y);
  for (; rows > 0; rows--, o++, y++) nibbles_by<F, 1>(f, p, x, o, y);
}

// The forms of rows_body.h with what is faster here.
RowForm form_of(int64_t scheme) {
  RowForm f = form_of_rows(scheme);
  if (scheme == rlx_Scheme_q4_0) f.one = nibble_rows<Q4_0>;
  if (scheme == rlx_Scheme_q4_1) f.one = nibble_rows<Q4_1>;
  if (scheme == rlx_Scheme_q4_k) f.one = nibble_rows<Q4K>;
  return f;
}
