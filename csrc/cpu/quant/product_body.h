// product_body.h: tiles of sums of groups, over vectors of LANES_Q lanes of 32 bits. Text for the anonymous namespace of an instruction set, after
// its vq, load_q, store_q, splat_q and add_groups(c, a, b), bytes_q (a vector of groups of an i8 panel, as add_groups takes them), GROUP and ROWS.

constexpr int COLUMNS = 2 * LANES_Q;

// Into the second level: what lies there in order, the machine itself brings to the first.
RLX_FN void fetch(const char *at) {
#if defined(RLX_X86)
  _mm_prefetch(at, _MM_HINT_T1);
#endif
  (void)at;
}

struct Wide {
  static constexpr int BYTES = 4 * LANES_Q;
  static RLX_FN vq get(const char *p) { return load_q(reinterpret_cast<const int32_t *>(p)); }
  static RLX_FN vq add(vq c, vq a, vq b) { return add_groups(c, a, b); }
};
struct Bytes : Wide {
  static constexpr int BYTES = GROUP * LANES_Q;
  static RLX_FN vq get(const char *p) { return bytes_q(p); }
};
struct Windows : Wide {
  static RLX_FN vq add(vq c, vq a, vq b) { return add_groups(c, b, a); }
};

// One row needs more sums at once than it has.
template <int H, class Panel> void tile(const Tile &t) {
  constexpr int U = H == 1 ? 2 : 1;
  vq sum[U][H][2];
  const vq u0 = load_q(t.start), v0 = load_q(t.start + LANES_Q), zero = splat_q(0);
#pragma GCC unroll 4
  for (int k = 0; k < U; k++) {
#pragma GCC unroll 16
    for (int i = 0; i < H; i++) sum[k][i][0] = k == 0 ? u0 : zero, sum[k][i][1] = k == 0 ? v0 : zero;
  }
  const char *row[(H + 2) / 3], *b = t.b, *ahead = t.ahead;
  const int64_t step = t.a_step;
#pragma GCC unroll 16
  for (int i = 0; i < H; i += 3) row[i / 3] = t.a + i * step;
  const auto group = [&](int k, int64_t at) __attribute__((always_inline)) {
    const vq u = Panel::get(b), v = Panel::get(b + Panel::BYTES);
    fetch(ahead);
    b += 2 * Panel::BYTES, ahead += t.ahead_step;
#pragma GCC unroll 16
    for (int i = 0; i < H; i++) {
      int32_t g;
      std::memcpy(&g, row[i / 3] + (i % 3) * step + at, sizeof g);
      const vq x = splat_q(g);
      sum[k][i][0] = Panel::add(sum[k][i][0], x, u);
      sum[k][i][1] = Panel::add(sum[k][i][1], x, v);
    }
  };
  int64_t g = 0;
  for (; g + U <= t.groups; g += U) {
#pragma GCC unroll 4
    for (int k = 0; k < U; k++) group(k, 4 * k);
#pragma GCC unroll 16
    for (int i = 0; i < H; i += 3) row[i / 3] += 4 * U;
  }
  for (int64_t at = 0; U > 1 && g < t.groups; g++, at += 4) group(0, at);
#pragma GCC unroll 16
  for (int i = 0; i < H; i++) {
#pragma GCC unroll 4
    for (int k = 1; k < U; k++) sum[0][i][0] = add_q(sum[0][i][0], sum[k][i][0]), sum[0][i][1] = add_q(sum[0][i][1], sum[k][i][1]);
    store_q(t.c + i * t.c_step, sum[0][i][0]);
    store_q(t.c + i * t.c_step + LANES_Q, sum[0][i][1]);
  }
}

void finish(const Requant &q, void *y, int64_t at, const int32_t *sums, int32_t add, int n, int64_t channel, int step) {
  if (q.dtype == RLX_I32) {
    int32_t *to = static_cast<int32_t *>(y) + at;
    for (int j = 0; j < n; j++) to[j] = int32_t(uint32_t(sums[j]) + uint32_t(add));
    return;
  }
  uint8_t *to = static_cast<uint8_t *>(y) + at;
  const auto rounded = [&](int j, float m) { return uint8_t(to_code(float(int32_t(uint32_t(sums[j]) + uint32_t(add))) * m, q.zero, q.ends)); };
  if (q.multipliers != nullptr && step != 0) {
    for (int j = 0; j < n; j++) to[j] = rounded(j, q.multipliers[channel + j]);
    return;
  }
  const float m = q.multipliers != nullptr ? q.multipliers[channel] : q.multiplier;
  for (int j = 0; j < n; j++) to[j] = rounded(j, m);
}

#define RLX_TILES_6(P) nullptr, tile<1, P>, tile<2, P>, tile<3, P>, tile<4, P>, tile<5, P>, tile<6, P>
#define RLX_TILES_12(P) RLX_TILES_6(P), tile<7, P>, tile<8, P>, tile<9, P>, tile<10, P>, tile<11, P>, tile<12, P>
