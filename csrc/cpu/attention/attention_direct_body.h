// attention_direct_body.h: a block of keys whose scores become weights without leaving the registers, where 16 lanes have as many. The weights of
// a tile are computed between the products of the next one, of which they take no time but their own multiplications. What softmax takes off
// is that of the blocks before: where a score grows too much, the block goes the way of soften instead. The bits are the same. Text for the
// anonymous namespace of an instruction set; one of 16 lanes defines Steps first:
//   Steps t(k, rs, panel): the products of 4 keys, rs bytes apart, with a panel of 32 queries
//   t.products(n, c): c[4][2] += the next n > 0 of them

struct Steps;
// Keys i, i + LANES, .. of a block make a tile, which is part i of the sum of its weights.
constexpr int TILE_KEYS = 4, TILE_VECTORS = 2, PIECES = TILE_KEYS * TILE_VECTORS;
constexpr bool HAS_DIRECT = LANES == 16;
static_assert(KEYS == TILE_KEYS * LANES || !HAS_DIRECT, "a part is a tile");
constexpr double MOST = 256;  // 2^SLACK: no sum of weights so small has one of a score that changes what softmax takes off

// Lines of rows, fetched with the pieces of tiles.
struct Fetch {
  const char *at;
  int64_t step, lines;  // of the rows of a tile
  RLX_FN void piece(int64_t p) const {
    for (; p < lines; p += PIECES) __builtin_prefetch(at + p % TILE_KEYS * step + p / TILE_KEYS * 64, 0, 2);
  }
  void next() { at += TILE_KEYS * step; }
};
Fetch fetch_of(const Lines &l) { return {l.at, l.step, l.left * TILE_KEYS}; }

typedef vf Tile[TILE_KEYS][TILE_VECTORS];
RLX_FN void clear(Tile &c) {
  const vf zero = splat<vf>(0.0);
  c[0][0] = zero, c[0][1] = zero, c[1][0] = zero, c[1][1] = zero, c[2][0] = zero, c[2][1] = zero, c[3][0] = zero, c[3][1] = zero;
}

// The weights of piece p of a tile, and their sum so far.
template <int P> RLX_FN void direct_piece(const Tile &c, const vf *base, float *to, vf *sum) {
  constexpr int r = P / TILE_VECTORS, w = P % TILE_VECTORS;
  const vf e = weight<true>(c[r][w], base[w]);
  store(to + r * LANES * QUERIES + w * LANES, e);
  sum[w] = r == 0 ? e : sum[w] + e;
}

// The products of a tile, and between them the weights of the one before, c, with their sums.
template <bool NEXT, bool BEFORE, int P = 0, class S>
RLX_FN void direct_tile(S t, int64_t d, const Fetch &fetch, Tile &next, const Tile &c, const vf *base, float *to, vf *sum) {
  if constexpr (NEXT) {
    if (P == 0) clear(next);
    t.products(d / PIECES + (P < d % PIECES ? 1 : 0), next);
    fetch.piece(P);
  }
  if constexpr (BEFORE) direct_piece<P>(c, base, to, sum);
  if constexpr (P + 1 < PIECES) direct_tile<NEXT, BEFORE, P + 1>(t, d, fetch, next, c, base, to, sum);
}

// The block of keys t against the 32 queries from `first` on; at least PIECES products for each. False: nothing is done, as some score is too
// great, or no number, or as a query has seen no key so far.
template <class S> bool direct_panel(const State &s, const matmul::TileF32 &t, Fetch fetch, int64_t first, float *p) {
  constexpr int HALF = LANES / 2;
  alignas(64) float parts[HALF][TILE_VECTORS * LANES];
  const char *k = reinterpret_cast<const char *>(t.a);
  const vf none = splat<vf>(-INFINITY);  // of a query that has seen no key: its base comes of this block
  if (any(mor(eq(load(s.base + first), none), eq(load(s.base + first + LANES), none)))) return false;
  const vf base[TILE_VECTORS] = {base_of(load(s.base + first)), base_of(load(s.base + first + LANES))};
  Tile a, b;
  vf even[TILE_VECTORS], odd[TILE_VECTORS];
  const auto steps = [&](int i) __attribute__((always_inline)) { return S(k + i * t.a_rs, LANES * t.a_rs, t.b); };
  const auto put = [&](int i) __attribute__((always_inline)) {
    for (int w = 0; w < TILE_VECTORS; w++) store(parts[i] + w * LANES, even[w] + odd[w]);
  };
  direct_tile<true, false>(steps(0), t.k, fetch, a, b, base, p, odd);
  fetch.next();
  for (int i = 0; i + 1 < HALF; i++) {
    direct_tile<true, true>(steps(i + HALF), t.k, fetch, b, a, base, p + i * QUERIES, even);
    fetch.next();
    direct_tile<true, true>(steps(i + 1), t.k, fetch, a, b, base, p + (i + HALF) * QUERIES, odd);
    fetch.next(), put(i);
  }
  direct_tile<true, true>(steps(2 * HALF - 1), t.k, fetch, b, a, base, p + (HALF - 1) * QUERIES, even);
  direct_tile<false, true>(steps(0), t.k, fetch, a, b, base, p + (2 * HALF - 1) * QUERIES, odd);
  put(HALF - 1);
  for (int w = 0; w < TILE_VECTORS; w++) {
    vf sum[HALF], most = splat<vf>(0.0);
    for (int i = 0; i < HALF; i++) sum[i] = load(parts[i] + w * LANES), most = raw_max(sum[i], most);
    for (int n = HALF / 2; n > 0; n /= 2)
      for (int i = 0; i < n; i++) sum[i] = sum[i] + sum[i + n];
    store(parts[0] + w * LANES, sum[0]);
    if (!all(mand(le(most, splat<vf>(MOST)), eq(sum[0], sum[0])))) return false;
  }
  for (int64_t w = 0; w < TILE_VECTORS * LANES; w += LANES) {
    float *const to = s.sum + first + w;
    store(to, load(to) + load(parts[0] + w)), store(s.factor + first + w, splat<vf>(1.0));
  }
  return true;
}
