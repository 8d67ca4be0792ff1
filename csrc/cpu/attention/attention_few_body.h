// attention_few_body.h: scores and softmax of a block of few queries, as in decoding: keys are the lanes, so that no lane is idle, and K is
// read once, row by row, for all queries of the block. Sums have the order of the way with one query a lane, so bits are the same.
// Text for the anonymous namespace of an instruction set; it defines columns4 first:
//   c[0..3] become elements 0..3 of LANES rows that lie rs bytes apart, a row a lane.

constexpr int64_t FEW = 8;     // queries
constexpr int64_t GROUP = 16;  // keys whose values are added together
static_assert(FEW <= QUERIES && KEYS % LANES == 0, "whole vectors");

// acc[r] += element t of the rows times query r's, t ascending.
template <int N> RLX_FN void add_columns(const vf *c, int n, const float *queries, int64_t cols, vf *acc) {
  for (int t = 0; t < n; t++)
    for (int r = 0; r < N; r++) acc[r] = fma(c[t], splat<vf>(queries[t * cols + r]), acc[r]);
}

// Memory gives most to some streams side by side, and must not wait for arithmetic. So the next block of K is fetched while the scores of one
// are computed, and that of V while its values are added: a line of each of several rows at a time, and into the second level, as many
// fetches into the first one would hold up its loads.
constexpr int STREAMS = LANES / 4;  // as dots has steps for
constexpr int64_t STREAM_ROWS = KEYS / STREAMS;
struct Stream {
  const char *at;
  int64_t rs, bytes, done, left;  // between rows; of a row, and of this one behind; rows
  RLX_FN void step() {
    if (left == 0) return;
    for (int t = 0; t < STREAMS; t++) __builtin_prefetch(at + done + t * STREAM_ROWS * rs, 0, 2);
    done += 64;
    if (done >= bytes) at += rs, done = 0, left--;
  }
};
// Of keys or values, the block from key j0 on.
Stream ahead_of(const Job &j, const Queries &q, const Heads &x, int operand, int64_t j0, int64_t element) {
  const char *at = j.c->template in_ptr<char>(operand) + x.at(q.b, q.g, j0) * element;
  return {at, x.ss * element, x.d * element, 0, j0 + KEYS <= x.s ? STREAM_ROWS : 0};
}

// Scores of LANES rows with N queries of a panel; `left` rows are there.
template <int N> void dots(const char *rows, int64_t rs, int64_t left, int64_t d, const float *panel, int64_t cols, Stream *ahead, float *out) {
  vf acc[N], c[4];
  for (int r = 0; r < N; r++) acc[r] = splat<vf>(0.0);
  alignas(64) float copy[LANES * 4];
  int64_t i = 0;
  for (; i + 4 <= d && left >= LANES; i += 4) {
    columns4(reinterpret_cast<const float *>(rows + i * 4), rs, c);
    add_columns<N>(c, 4, panel + i * cols, cols, acc);
    ahead->step();
  }
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
void score_few(const Queries &q, const matmul::TileF32 &keys, int64_t n, int64_t d, int64_t cols, const float *panel, Stream ahead, float *scores) {
  typedef void (*Dots)(const char *, int64_t, int64_t, int64_t, const float *, int64_t, Stream *, float *);
  static constexpr Dots of[FEW + 1] = {nullptr, dots<1>, dots<2>, dots<3>, dots<4>, dots<5>, dots<6>, dots<7>, dots<8>};
  for (int64_t i = 0; i < n; i += LANES)
    of[q.n](reinterpret_cast<const char *>(keys.a) + i * keys.a_rs, keys.a_rs, n - i, d, panel, cols, &ahead, scores + i);
}

// As soften, of scores[query][key] and bias[query][key].
template <bool PLAIN> bool soften_few(const Scoring &m, const Queries &q, int64_t n, const float *bias, float *scores, const State &s) {
  const vf none = splat<vf>(-INFINITY), zero = splat<vf>(0.0);
  alignas(64) float tops[QUERIES], bases[QUERIES], sums[QUERIES];
  for (int64_t r = 0; r < QUERIES; r++) tops[r] = -INFINITY, sums[r] = 0;
  for (int64_t r = 0; r < q.n; r++) {
    const vf far = splat<vf>(s.far[r]), digits = far * splat<vf>(0x1.8p-29), lo = splat<vf>(s.lo[r]), hi = splat<vf>(s.hi[r] < n ? s.hi[r] : n);
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
  for (int64_t w = 0; w < q.n; w += LANES) store(bases + w, grown(s, w, in_units<PLAIN>(m, load(tops + w))));
  for (int64_t r = 0; r < q.n; r++) {
    const vf base = base_of(splat<vf>(bases[r]));
    vf a = zero;
    for (int64_t i = 0; i < n; i += LANES) {
      const vf e = weight<PLAIN>(m, load(scores + r * KEYS + i), base);
      store(scores + r * KEYS + i, e);
      a = a + e;
    }
    sums[r] = sum(a);
  }
  bool changed = false;
  for (int64_t w = 0; w < q.n; w += LANES) changed |= go_on<PLAIN>(s, w, load(bases + w), load(sums + w));
  return changed;
}
