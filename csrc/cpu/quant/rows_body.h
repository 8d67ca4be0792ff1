// rows_body.h: DequantMatMul where each output has a row of weights. Contract: an element is one sum a lane, k ascending, each step one fma in f32,
// and the lanes are added at the end: its bits depend on its row of x and its row of weights only. Text for the anonymous namespace of an instruction
// set, after vec_<isa>.h and codes_body.h.
//
// One row of x meets weights in registers, several of them a panel of rows that are decoded once, a piece of k at a time.

constexpr bool MANY = LANES == 16;               // registers
constexpr int TILE_X = MANY ? 4 : 3;             // rows of x of a tile
constexpr int TILE_W = MANY ? 6 : 4;             // rows of weights of a panel
constexpr int FEW_W = 4;                         // the same for one row of x
constexpr int DEPTH_W = 512;                     // of a panel along k: with its rows of x it stays in the first-level cache
constexpr int MOST_X = 48;                       // rows of x of a unit
constexpr int64_t X_BYTES = 768 << 10;           // they stay in the second-level cache

// How weights lie in rows: a chunk as codes, a scale for each `run` of them, blocks. Where codes is null they are decoded one by one.
struct RowForm {
  void (*codes)(Bytes from, int n, Codes *to);
  void (*decode)(const RowForm &f, const Packed &p, int64_t o, int64_t k, int n, float *to);
  void (*one)(const RowForm &f, const Packed &p, const float *x, int64_t o, int rows, float *y);
  BlockSize block;
};
RLX_FN const uint8_t *row_at(const RowForm &f, const Packed &p, int64_t o, int64_t k) { return p.w + o * p.row_bytes + k / f.block.weights * f.block.bytes; }

template <int Run, bool Offset> RLX_FN vf weight(const Codes &c, int run, const int8_t *at) {
  const vf q = codes_at(at), s = splat<vf>(c.scale[run]);
  return Offset ? fma(q, s, splat<vf>(c.scale[CHUNK_K / Run + run])) : q * s;
}

// Weights [k, k + n) of row o, at most CHUNK_K.
template <int Run, bool Offset> void decode_codes(const RowForm &f, const Packed &p, int64_t o, int64_t k, int n, float *to) {
  Codes c;
  f.codes(row_at(f, p, o, k), n, &c);
  for (int g = 0; g < n; g += Run)
    for (int i = g; i < g + Run; i += LANES) store(to + i, weight<Run, Offset>(c, g / Run, c.q + i));
}
void decode_singly(const RowForm &, const Packed &p, int64_t o, int64_t k, int n, float *to) { decode_row(p, o, k, n, to); }

// Rows are read W at a time, each for a few kilobytes: too short for the machine to see where the next ones lie.
RLX_FN void fetch_ahead(const uint8_t *at, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + i);
}

// Where codes [g, g + Run) of a chunk lie: made, or as they are in the blocks of q8_0.
struct Made {
  static constexpr auto codes = (void (*)(Bytes, int, Codes *)) nullptr;
  static RLX_FN const int8_t *at(const uint8_t *, const Codes &c, int g) { return c.q + g; }
};
struct InBlocks {
  static constexpr auto codes = q8_0_scales;
  static RLX_FN const int8_t *at(const uint8_t *from, const Codes &, int g) { return reinterpret_cast<const int8_t *>(from + g / 32 * 34 + 2); }
};

// One row of x by W rows of weights from row o on.
template <int Run, bool Offset, class Where, int W> RLX_FN void one_by(const RowForm &f, const Packed &p, const float *x, int64_t o, float *y) {
  vf sums[W];
  Codes c[W];
#pragma GCC unroll 8
  for (int r = 0; r < W; r++) sums[r] = splat<vf>(0.0);
  const uint8_t *from = p.w + o * p.row_bytes;
  const int64_t step = CHUNK_K / f.block.weights * f.block.bytes;
  for (int64_t k = 0; k < p.k; k += CHUNK_K, x += CHUNK_K, from += step) {
    const int n = int(p.k - k < CHUNK_K ? p.k - k : CHUNK_K);
    for (int r = 0; r < W; r++) {
      fetch_ahead(from + (W + r) * p.row_bytes, step);
      (Where::codes != nullptr ? Where::codes : f.codes)(from + r * p.row_bytes, n, &c[r]);
    }
    for (int g = 0; g < n; g += Run)
#pragma GCC unroll 8
      for (int i = 0; i < Run; i += LANES) {
        const vf v = load(x + g + i);
#pragma GCC unroll 8
        for (int r = 0; r < W; r++) sums[r] = fma(weight<Run, Offset>(c[r], g / Run, Where::at(from + r * p.row_bytes, c[r], g) + i), v, sums[r]);
      }
  }
#pragma GCC unroll 8
  for (int r = 0; r < W; r++) y[r] = sum(sums[r]);
}
template <int Run, bool Offset, class Where> void one_row(const RowForm &f, const Packed &p, const float *x, int64_t o, int rows, float *y) {
  for (; rows >= FEW_W; rows -= FEW_W, o += FEW_W, y += FEW_W) one_by<Run, Offset, Where, FEW_W>(f, p, x, o, y);
  for (; rows > 0; rows--, o++, y++) one_by<Run, Offset, Where, 1>(f, p, x, o, y);
}

template <int Run, bool Offset, class Where = Made> RowForm form(void (*codes)(Bytes, int, Codes *)) {
  return {codes, decode_codes<Run, Offset>, one_row<Run, Offset, Where>, {}};
}
RowForm form_of_codes(int64_t scheme) {
  switch (scheme) {
    case rlx_Scheme_q4_0: return form<32, false>(q4_0_codes);
    case rlx_Scheme_q4_1: return form<32, true>(q4_1_codes);
    case rlx_Scheme_q5_0: return form<32, false>(q5_0_codes);
    case rlx_Scheme_q5_1: return form<32, true>(q5_1_codes);
    case rlx_Scheme_q8_0: return form<32, false, InBlocks>(q8_0_codes);
    case rlx_Scheme_q2_k: return form<16, true>(q2_k_codes);
    case rlx_Scheme_q3_k: return form<16, false>(q3_k_codes);
    case rlx_Scheme_q4_k: return form<32, true>(q4_k_codes);
    case rlx_Scheme_q5_k: return form<32, true>(q5_k_codes);
    case rlx_Scheme_q6_k: return form<16, false>(q6_k_codes);
    case rlx_Scheme_q8_k: return form<32, false>(q8_k_codes);
    case rlx_Scheme_iq4_nl: return form<32, false>(iq4_nl_codes);
    case rlx_Scheme_iq4_xs: return form<32, false>(iq4_xs_codes);
    case rlx_Scheme_mxfp4: return form<32, false>(mxfp4_codes);
    default: return {nullptr, decode_singly, nullptr, {}};
  }
}
RowForm form_of_rows(int64_t scheme) {
  RowForm f = form_of_codes(scheme);
  if (scheme < GGUF_SCHEMES) f.block = gguf_blocks[scheme];
  return f;
}

RowForm form_of(int64_t scheme);  // with what an instruction set has of its own

void put_sum(const Packed &p, int64_t at, double v) {
  switch (p.y_dtype) {
    case RLX_F16: static_cast<uint16_t *>(p.y)[at] = elementwise::f16_from_f64(double(float(v))); break;
    case RLX_BF16: static_cast<uint16_t *>(p.y)[at] = elementwise::bf16_from_f64(double(float(v))); break;
    default: static_cast<float *>(p.y)[at] = float(v); break;
  }
}

// sums[i][r] += x[i] . w[r], a vector each, over n elements.
template <int X> void tile_of(const float *x, int64_t step, const float (*w)[DEPTH_W], int n, float *sums) {
  vf s[X][TILE_W];
#pragma GCC unroll 4
  for (int i = 0; i < X; i++) {
#pragma GCC unroll 8
    for (int r = 0; r < TILE_W; r++) s[i][r] = load(sums + (i * TILE_W + r) * LANES);
  }
  for (int k = 0; k < n; k += LANES) {
    vf v[X];
#pragma GCC unroll 4
    for (int i = 0; i < X; i++) v[i] = k + LANES <= n ? load(x + i * step + k) : load_part(x + i * step + k, n - k);
#pragma GCC unroll 8
    for (int r = 0; r < TILE_W; r++) {
      const vf u = load(w[r] + k);
#pragma GCC unroll 4
      for (int i = 0; i < X; i++) s[i][r] = fma(v[i], u, s[i][r]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < X; i++) {
#pragma GCC unroll 8
    for (int r = 0; r < TILE_W; r++) store(sums + (i * TILE_W + r) * LANES, s[i][r]);
  }
}
constexpr void (*tiles[])(const float *, int64_t, const float (*)[DEPTH_W], int, float *) = {tile_of<1>, tile_of<2>, tile_of<3>, tile_of<TILE_X>};

struct RowJob {
  const Call *c;
  Packed p;
  RowForm form;
  const float *x;
  int64_t m, x_rows, x_blocks;  // rows of x of a unit, and units of them
};

// Row panel of outputs [o, o + TILE_W) for rows [first, last) of x.
void row_panel(const RowJob &j, int64_t o, int64_t first, int64_t last) {
  const Packed &p = j.p;
  const int rows = int(p.n - o < TILE_W ? p.n - o : TILE_W);
  alignas(64) float w[TILE_W][DEPTH_W], sums[MOST_X * TILE_W * LANES];
  std::memset(sums, 0, size_t(last - first) * TILE_W * LANES * sizeof(float));
  std::memset(w, 0, sizeof w);
  for (int64_t k = 0; k < p.k; k += DEPTH_W) {
    const int depth = int(p.k - k < DEPTH_W ? p.k - k : DEPTH_W);
    for (int r = 0; r < rows; r++) {
      for (int at = 0; at < depth; at += CHUNK_K) j.form.decode(j.form, p, o + r, k + at, depth - at < CHUNK_K ? depth - at : CHUNK_K, w[r] + at);
      for (int i = depth; i % LANES != 0; i++) w[r][i] = 0;
    }
    for (int64_t i = first; i < last; i += TILE_X) {
      const int n = int(last - i < TILE_X ? last - i : TILE_X);
      tiles[n - 1](j.x + i * p.k + k, p.k, w, depth, sums + (i - first) * TILE_W * LANES);
    }
  }
  for (int64_t i = first; i < last; i++)
    for (int r = 0; r < rows; r++) put_sum(p, i * p.n + o + r, double(sum(load(sums + ((i - first) * TILE_W + r) * LANES))));
}

void row_units(void *ctx, int64_t begin, int64_t end, int) {
  const RowJob &j = *static_cast<const RowJob *>(ctx);
  for (int64_t u = begin; u < end; u++) {
    const int64_t first = u % j.x_blocks * j.x_rows, last = first + j.x_rows < j.m ? first + j.x_rows : j.m;
    const int64_t column = u / j.x_blocks * COLUMN_BLOCK, stop = column + COLUMN_BLOCK < j.p.n ? column + COLUMN_BLOCK : j.p.n;
    if (j.m == 1 && j.form.one != nullptr && !j.c->stopped()) {
      float y[COLUMN_BLOCK];
      j.form.one(j.form, j.p, j.x, column, int(stop - column), y);
      for (int64_t o = column; o < stop; o++) put_sum(j.p, o, double(y[o - column]));
      continue;
    }
    for (int64_t o = column; o < stop && !j.c->stopped(); o += TILE_W) row_panel(j, o, first, last);
  }
}

void by_rows(const Call &c, const Packed &p, const float *x, int64_t m) {
  RowJob j = {&c, p, form_of(p.scheme), x, m, 0, 0};
  j.x_rows = X_BYTES / (int64_t(sizeof(float)) * (p.k + 1));
  j.x_rows = j.x_rows < MOST_X / 4 ? MOST_X / 4 : j.x_rows > MOST_X ? MOST_X : j.x_rows;
  j.x_blocks = (m + j.x_rows - 1) / j.x_rows;
  j.x_rows = (m + j.x_blocks - 1) / j.x_blocks;
  c.parallel(j.x_blocks * ((p.n + COLUMN_BLOCK - 1) / COLUMN_BLOCK), 1 + 32768 / (p.k * COLUMN_BLOCK * j.x_rows + 1), row_units, &j);
}
