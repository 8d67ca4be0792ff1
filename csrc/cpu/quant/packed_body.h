// packed_body.h: DequantMatMul and DequantMatMulRegion. Weights in rows: rows_body.h. Weights that lie as [k, n] are decoded a chunk at a time and used for all rows of a
// block of x. Contract of these: products of f32, summed in f32 over chunks of 256 along k and in f64 over the chunks, in one order for every split; on
// the GEMM engine in f32 over all of k. Text for the anonymous namespace of an instruction set, after vec_<isa>.h, forms.h, step.h and rows_body.h.

constexpr int CHUNK_ROWS = 16;  // rows of x that share decoded weights where those lie as [k, n]
constexpr int DEPTH = 4;        // rows of weights that are added together

struct Job {
  const Call *c;
  Packed p;
  int64_t m, row_blocks;
  const float *x;
  float *wide;
};

void widen_units(void *ctx, int64_t begin, int64_t end, int) {
  const Job &j = *static_cast<const Job *>(ctx);
  const uint16_t *x = j.c->in_ptr<uint16_t>(0) + begin;
  (j.c->in(0).dtype == RLX_F16 ? take<f16_form> : take<bf16_form>)(j.wide + begin, x, 1, end - begin);
}

// part[i] += x[0] * w[0][i] + ..., in this order, over a few rows of weights.
RLX_FN void add_rows(float *__restrict part, const float *x, const float (*w)[CHUNK_K], int rows, int n) {
  if (rows == DEPTH) {
    for (int i = 0; i < n; i++) part[i] = (((part[i] + x[0] * w[0][i]) + x[1] * w[1][i]) + x[2] * w[2][i]) + x[3] * w[3][i];
    return;
  }
  for (int k = 0; k < rows; k++)
    for (int i = 0; i < n; i++) part[i] += x[k] * w[k][i];
}

// Weights as [k, n]: each element of x with a piece of a row of them.
void across_units(void *ctx, int64_t begin, int64_t end, int) {
  const Job &j = *static_cast<const Job *>(ctx);
  const Packed &p = j.p;
  alignas(64) float w[DEPTH][CHUNK_K], part[CHUNK_ROWS][CHUNK_K];
  double sums[CHUNK_ROWS][CHUNK_K];
  for (int64_t u = begin; u < end && !j.c->stopped(); u++) {
    const int64_t first = u % j.row_blocks * CHUNK_ROWS, column = u / j.row_blocks * CHUNK_K;
    const int rows = int(j.m - first < CHUNK_ROWS ? j.m - first : CHUNK_ROWS), n = int(p.n - column < CHUNK_K ? p.n - column : CHUNK_K);
    std::memset(sums, 0, size_t(rows) * sizeof sums[0]);
    for (int64_t k0 = 0; k0 < p.k; k0 += CHUNK_K) {
      std::memset(part, 0, size_t(rows) * sizeof part[0]);
      const int64_t stop = k0 + CHUNK_K < p.k ? k0 + CHUNK_K : p.k;
      for (int64_t k = k0; k < stop; k += DEPTH) {
        const int depth = int(stop - k < DEPTH ? stop - k : DEPTH);
        for (int d = 0; d < depth; d++) decode_across(p, k + d, column, n, w[d]);
        for (int r = 0; r < rows; r++) add_rows(part[r], j.x + (first + r) * p.k + k, w, depth, n);
      }
      for (int r = 0; r < rows; r++)
        for (int i = 0; i < n; i++) sums[r][i] += double(part[r][i]);
    }
    for (int r = 0; r < rows; r++)
      for (int i = 0; i < n; i++) put_sum(p, (first + r) * p.n + column + i, sums[r][i]);
  }
}

// Rows of one panel that share their scales and zeros: codes times the scales, or minus the zeros first. Those `ahead` bytes further on come next.
template <bool Zeros, class Code>
RLX_FN void widen_rows(const Code *w, int64_t step, int64_t ahead, const float *scale, const float *zero, int64_t n, int64_t rows, float *to) {
  const int first = n < LANES ? int(n) : LANES, second = n >= 2 * LANES ? LANES : n > LANES ? int(n) - LANES : 0;
  const vf none = splat<vf>(0.0);
  const vf s0 = first == LANES ? load(scale) : load_part(scale, first), s1 = second == LANES ? load(scale + LANES) : second == 0 ? none : load_part(scale + LANES, second);
  const vf z0 = !Zeros ? none : first == LANES ? load(zero) : load_part(zero, first);
  const vf z1 = !Zeros || second == 0 ? none : second == LANES ? load(zero + LANES) : load_part(zero + LANES, second);
#pragma GCC unroll 4
  for (int64_t k = 0; k < rows; k++, w += step, to += 2 * LANES) {
    __builtin_prefetch(w + ahead, 0, 2);
    const vf a = codes_at(w), b = codes_at(w + LANES);
    store(to, (Zeros ? a - z0 : a) * s0);
    store(to + LANES, (Zeros ? b - z1 : b) * s1);
  }
}

template <class Code> void widen_codes(const Packed &p, const uint8_t *codes, int64_t step, int64_t ahead, int64_t j, int64_t k0, int64_t kc, float *to) {
  const Code *w = reinterpret_cast<const Code *>(codes);
  const float *scale = static_cast<const float *>(p.scale) + j, *zero = p.zero == nullptr ? nullptr : static_cast<const float *>(p.zero) + j;
  for (int64_t k = k0, rows; k < k0 + kc; k += rows, w += rows * step, to += rows * 2 * LANES) {
    const int64_t block = k / p.block, left = (block + 1) * p.block - k;
    rows = left < k0 + kc - k ? left : k0 + kc - k;
    if (p.zero != nullptr) widen_rows<true>(w, step, ahead, scale + block * p.n, zero + block * p.n, p.n - j, rows, to);
    else widen_rows<false>(w, step, ahead, scale + block * p.n, scale, p.n - j, rows, to);
  }
}

// Codes with f32 sides, as most are, where a panel is two vectors wide; widen_panel does the others. Of codes that lie as [k, n] whole panels.
void widen(const void *packed, int64_t q, int64_t k0, int64_t kc, float *to) {
  const Packed &p = *static_cast<const Packed *>(packed);
  const int64_t cols = matmul::gemm_panel_cols(), j = q * cols;
  if (p.scale_dtype != RLX_F32 || (p.zero != nullptr && p.zero_dtype != RLX_F32) || (p.panels == nullptr && p.n - j < cols) || cols != 2 * LANES)
    return widen_panel(packed, q, k0, kc, to);
  const uint8_t *codes = p.panels == nullptr ? p.w + k0 * p.n + j : p.panels + j * p.k + k0 * cols;
  const int64_t step = p.panels == nullptr ? p.n : cols, ahead = p.panels == nullptr ? cols : cols * p.k;  // the next panel's rows
  (p.w_dtype == RLX_I8 ? widen_codes<int8_t> : widen_codes<uint8_t>)(p, codes, step, ahead, j, k0, kc, to);
}

// The product into p.y. Whether the ending, which may be null, has run over it too.
bool multiply(const Call &c, const Packed &p, const matmul::Ending *ending, void *scratch) {
  if (on_engine(*c.cmd)) {
    matmul::GemmF32 g = {};
    g.a = c.in_ptr<float>(0), g.c = static_cast<float *>(p.y), g.widen_ctx = &p;
    engine_plan(*c.cmd, c.threads(), ending, &g);
    g.widen = widen;
    matmul::gemm_f32(c.pool(), c.threads(), &g, scratch, c.cancel());
    return true;
  }
  Job j = {&c, p, c.out(0).count / p.n, 0, c.in_ptr<float>(0), static_cast<float *>(scratch)};
  if (c.in(0).dtype != RLX_F32) {
    c.parallel(j.m * p.k, 1 << 13, widen_units, &j);
    j.x = j.wide;
  }
  if (p.rows) {
    by_rows(c, p, j.x, j.m);
  } else {
    j.row_blocks = (j.m + CHUNK_ROWS - 1) / CHUNK_ROWS;
    c.parallel(j.row_blocks * ((p.n + CHUNK_K - 1) / CHUNK_K), 1 + 32768 / (p.k * CHUNK_K + 1), across_units, &j);
  }
  return false;
}

void dequant_matmul(const Call &c) {
  if (c.out(0).count != 0) multiply(c, packed_of(c), nullptr, c.scratch);
}

// DequantMatMulRegion: the body over blocks of the product on the engine, else behind it.
void dequant_matmul_region(const Call &c) {
  if (c.out(0).count == 0) return;
  const PackedRegion x(c);
  Packed p = packed_of(c);
  p.y = x.y;
  char *const *results = reinterpret_cast<char *const *>(c.out_data);
  const matmul::Ending e = {c, x.r, results, x.scales ? &x.scaling : nullptr};
  if (!multiply(c, p, &e, x.scratch) && !c.stopped()) region::run_all(c, x.r, results);
}
