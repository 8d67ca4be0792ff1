// attention_few_body.h: a block of few queries, as in decoding. Keys are the lanes of scores and softmax, so that no lane is idle, and columns
// those of the values; K and V are read once for all queries of the block. Sums have the order of the way with one query a lane, so bits are the same.
// Text for the anonymous namespace of an instruction set, which defines columns4(rows, rs, c) first:
//   c[0..3] become elements 0..3 of LANES rows that lie rs bytes apart, a row a lane.

constexpr int64_t FEW = 8;  // queries
static_assert(FEW <= QUERIES && KEYS % LANES == 0, "whole vectors");

// Memory gives most to some pages side by side, each read in order, and must not wait for arithmetic. So a later block of K is fetched while
// the scores of one are computed, and that of V while its values are added: into the second level, as many fetches into the first one would
// hold up its loads.
constexpr int STREAMS = LANES < 8 ? LANES : 8;
constexpr int64_t STREAM_ROWS = KEYS / STREAMS;
struct Ahead {
  const char *at;     // row 0 of the block, null for none
  int64_t rs, bytes;  // between rows; of a row
};
struct Stream {
  Ahead to;
  int64_t row, byte;  // of each stream
  int stream;         // the next one
  // Fetches N lines of each of M streams.
  template <int M, int N> RLX_FN void step() {
    if (to.at == nullptr || row >= STREAM_ROWS) return;
    const char *p = to.at + (stream * STREAM_ROWS + row) * to.rs + byte;
    for (int m = 0; m < M; m++)
      for (int n = 0; n < N; n++) __builtin_prefetch(p + m * STREAM_ROWS * to.rs + n * 64, 0, 2);
    stream += M;
    if (stream < STREAMS) return;
    stream = 0, byte += 64 * N;
    if (byte >= to.bytes) byte = 0, row++;
  }
};

// The block of keys or values after that of key j0, in the order in which units read them.
Ahead next_block(const Job &j, const Queries &q, const Heads &x, int operand, Keys all, int64_t j0, int64_t element) {
  int64_t g = q.g, to = j0 + KEYS;
  if (to >= all.hi) to = all.lo / KEYS * KEYS, g++;
  if (g >= x.h) return {nullptr, 0, 0};
  return {j.c->template in_ptr<char>(operand) + x.at(q.b, g, to) * element, x.ss * element, x.sd == 1 ? x.d * element : 0};
}

// acc[r] += element t of the rows times query r's, t ascending.
template <int N> RLX_FN void add_columns(const vf *c, int n, const float *queries, int64_t cols, vf *acc) {
  for (int t = 0; t < n; t++)
    for (int r = 0; r < N; r++) acc[r] = fma(c[t], splat<vf>(queries[t * cols + r]), acc[r]);
}

// Scores of LANES rows with N queries of a panel; `left` rows are there.
template <int N> void dots(const char *rows, int64_t rs, int64_t left, int64_t d, const float *panel, int64_t cols, Stream ahead, float *out) {
  vf acc[N], c[4];
  for (int r = 0; r < N; r++) acc[r] = splat<vf>(0.0);
  int64_t i = 0;
  for (; i + 4 <= d && left >= LANES; i += 4) {
    columns4(reinterpret_cast<const float *>(rows + i * 4), rs, c);
    add_columns<N>(c, 4, panel + i * cols, cols, acc);
    ahead.template step<LANES / 4, 1>();
  }
  alignas(64) float copy[LANES * 4];
  for (; i < d; i += 4) {
    const int m = int(d - i < 4 ? d - i : 4);
    std::memset(copy, 0, sizeof copy);
    for (int64_t k = 0; k < LANES && k < left; k++) std::memcpy(copy + 4 * k, rows + k * rs + i * 4, size_t(m) * sizeof(float));
    columns4(copy, 4 * sizeof(float), c);
    add_columns<N>(c, m, panel + i * cols, cols, acc);
  }
  for (int r = 0; r < N; r++) store(out + r * KEYS, acc[r]);
}

// scores[query][key] of n keys.
template <int N> void score_few(const matmul::TileF32 &keys, int64_t n, int64_t d, int64_t cols, const float *panel, Ahead ahead, float *scores) {
  const char *rows = reinterpret_cast<const char *>(keys.a);
  for (int64_t i = 0; i < n; i += LANES)
    dots<N>(rows + i * keys.a_rs, keys.a_rs, n - i, d, panel, cols, Stream{ahead, i / STREAMS, 0, 0}, scores + i);
}

// sums[r][0..W) += p[r][key] v[key][0..W) for n keys, key ascending, in vectors.
template <int N, int W> void weigh(const float *p, const char *v, int64_t rs, int64_t n, float *sums, int64_t wide, bool more, Stream *stream) {
  constexpr int LINES = LANES * W < 16 ? 1 : LANES * W / 16;
  Stream ahead = *stream;
  vf acc[N][W], x[W];
  for (int r = 0; r < N; r++)
    for (int w = 0; w < W; w++) acc[r][w] = more ? load(sums + r * wide + w * LANES) : splat<vf>(0.0);
  for (int64_t k = 0; k < n; k++, v += rs) {
    for (int w = 0; w < W; w++) x[w] = load(reinterpret_cast<const float *>(v) + w * LANES);
    for (int r = 0; r < N; r++) {
      const vf f = splat<vf>(p[r * KEYS + k]);
      for (int w = 0; w < W; w++) acc[r][w] = fma(f, x[w], acc[r][w]);
    }
    ahead.template step<1, LINES>();
  }
  for (int r = 0; r < N; r++)
    for (int w = 0; w < W; w++) store(sums + r * wide + w * LANES, acc[r][w]);
  *stream = ahead;
}

// How many vectors N queries have accumulators for, beside one of each of v and a factor.
constexpr int width_of(int n) {
  int w = 8;
  while (w > 1 && n * w + w + 1 > (LANES == 16 ? 32 : 16)) w /= 2;
  return w;
}

// The same of all columns: `vectors` of them from v on.
template <int N, int W = width_of(N)>
void weigh_all(const float *p, const char *v, int64_t rs, int64_t n, float *sums, int64_t wide, int64_t vectors, bool more, Stream *ahead) {
  for (; vectors >= W; vectors -= W, v += W * LANES * sizeof(float), sums += W * LANES) weigh<N, W>(p, v, rs, n, sums, wide, more, ahead);
  if constexpr (W > 1) weigh_all<N, W / 2>(p, v, rs, n, sums, wide, vectors, more, ahead);
}

// By number of queries.
struct Few {
  void (*score)(const matmul::TileF32 &, int64_t, int64_t, int64_t, const float *, Ahead, float *);
  void (*weigh)(const float *, const char *, int64_t, int64_t, float *, int64_t, int64_t, bool, Stream *);
};
template <int N> constexpr Few few_of() { return {score_few<N>, weigh_all<N>}; }
constexpr Few few_queries[FEW + 1] = {{}, few_of<1>(), few_of<2>(), few_of<3>(), few_of<4>(), few_of<5>(), few_of<6>(), few_of<7>(), few_of<8>()};

// As add_values, of p[query][key].
template <class F>
void add_values_few(const Job &j, const Queries &q, const State &s, Keys all, int64_t j0, int64_t n, const float *p, float *values, float *sums, int64_t wide,
                    bool more) {
  const Keys seen = s.seen(0, q.n, 0, n);
  const int64_t vectors = (j.v.d + LANES - 1) / LANES, f = sizeof(float);
  const typename F::T *v = j.c->template in_ptr<typename F::T>(2) + j.v.at(q.b, q.g, j0);
  const char *rows = reinterpret_cast<const char *>(v);
  int64_t rs = j.v.ss * f;
  if (!F::DIRECT || j.v.sd != 1 || j.v.d % LANES != 0) {
    rows = reinterpret_cast<const char *>(values), rs = vectors * LANES * f;
    for (int64_t k = 0; k < n; k++) {
      float *to = values + k * vectors * LANES;
      store(to + (vectors - 1) * LANES, splat<vf>(0.0));
      take<F>(to, v + k * j.v.ss, j.v.sd, j.v.d);
    }
  }
  Stream stream = {next_block(j, q, j.v, 2, all, j0, sizeof(typename F::T)), 0, 0, 0};
  few_queries[q.n].weigh(p + seen.lo, rows + seen.lo * rs, rs, seen.hi - seen.lo, sums, wide, vectors, more, &stream);
}

// As soften, of scores[query][key] and bias[query][key].
template <bool PLAIN> bool soften_few(const Scoring &m, const Queries &q, int64_t n, const float *bias, float *scores, const State &s) {
  const vf none = splat<vf>(-INFINITY), zero = splat<vf>(0.0);
  alignas(64) float tops[QUERIES], bases[QUERIES], sums[QUERIES];
  for (int64_t r = 0; r < QUERIES; r++) tops[r] = -INFINITY, sums[r] = 0;
  for (int64_t r = 0; r < q.n; r++) {
    const vf far = splat<vf>(s.far[r]), digits = far * splat<vf>(0x1.8p-29), lo = splat<vf>(s.edges ? s.lo[r] : 0), hi = splat<vf>(s.edges ? s.hi[r] : n);
    vf top = none;
    for (int64_t i = 0; i < n; i += LANES) {
      float *p = scores + r * KEYS + i;
      const vf at = load(lane_numbers) + splat<vf>(i), mask = m.bias || m.keep ? load(bias + (m.shared ? 0 : r * KEYS) + i) : zero;
      const vf z = select(mand(lt(at, hi), ge(at, lo)), scored(m, load(p), mask, far, digits), none);
      store(p, z);
      top = raw_max(z, top);
    }
    tops[r] = hmax(top);
  }
  for (int64_t w = 0; w < q.n; w += LANES) store(bases + w, grown(s, w, load(tops + w)));
  for (int64_t r = 0; r < q.n; r++) {
    const vf base = base_of(splat<vf>(bases[r]));
    vf a = zero;
    for (int64_t i = 0; i < n; i += LANES) {
      const vf e = weight<PLAIN>(load(scores + r * KEYS + i), base);
      store(scores + r * KEYS + i, e);
      a = a + e;
    }
    sums[r] = sum(a);
  }
  bool changed = false;
  for (int64_t w = 0; w < q.n; w += LANES) changed |= go_on<PLAIN>(s, w, load(bases + w), load(sums + w));
  return changed;
}
