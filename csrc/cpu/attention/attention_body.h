// attention_body.h: a block of queries of Attention in f32 lanes, one query a lane: scores are kept as [key][query], so that maxima and
// sums of softmax need no sums across lanes, and k and v are read as they lie. Softmax is online: key block by key block, with sums scaled
// where the greatest score so far grows by more than a little. Blocks stand at multiples of KEYS, and all of a query's steps depend on its
// own scores alone. Keys that no query of a tile sees are left out of its products. Text for the anonymous namespace of an instruction set,
// after vec_math.h, forms.h, step.h and a power; it defines columns4 first, as attention_few_body.h says.

// The block of queries of one unit.
struct Queries {
  int64_t b, h, g, first, n;  // batch item, first head, kv head, first query of the list, queries
  int64_t lanes;              // n rounded up to whole tiles
  int64_t head(const Job &j, int64_t r) const { return j.stack == 1 ? h : h + (first + r) % j.stack; }
  int64_t query(const Job &j, int64_t r) const { return j.stack == 1 ? first + r : (first + r) / j.stack; }
};

Queries queries_of(const Job &j, int64_t u) {
  const int64_t lists = j.q.h / j.stack, list = u / j.blocks;
  Queries q;
  q.b = list / lists, q.h = list % lists * j.stack, q.g = q.h / j.group;
  q.first = u % j.blocks * QUERIES;
  q.n = j.rows - q.first < QUERIES ? j.rows - q.first : QUERIES;
  q.lanes = (q.n + j.tiles->cols - 1) / j.tiles->cols * j.tiles->cols;
  return q;
}

// Rows of a tile. Of 14, as the 16 lane set has them, the stores hold up the next tile, which is dear as k is short.
int64_t tile_rows(const matmul::TileSetF32 &set) { return set.rows > 8 ? 8 : set.rows; }

// What is known of each query while keys go by, and its range of keys.
struct State {
  float *base, *sum, *factor, *far;  // base: what softmax takes off
  int32_t *lo, *hi;                  // within the block of keys
  bool edges;                        // some query does not see every key of the block

  // Those of the keys [at, at + n) of a block that some of queries [r, end) see, counted from `at`.
  Keys seen(int64_t r, int64_t end, int64_t at, int64_t n) const {
    if (!edges) return {0, n};
    int64_t first = at + n, last = at;
    for (; r < end; r++) {
      if (lo[r] >= hi[r]) continue;
      first = lo[r] < first ? lo[r] : first;
      last = hi[r] > last ? hi[r] : last;
    }
    first = first > at ? first - at : 0, last = last - at < n ? last - at : n;
    return {first < last ? first : last, last};
  }
};

// A panel [d][cols] of n queries that lie ss apart, d elements each, times `scale`.
void pack_panel(float *dst, int64_t cols, const float *src, int64_t sd, int64_t ss, int64_t d, int64_t n, vf scale) {
  if (n < cols || sd != 1 || d % 4 != 0) {
    matmul::pack_panel_f32(dst, int(cols), src, sd, ss, d, int(n));
    for (int64_t i = 0; i < d * cols; i += LANES) store(dst + i, load(dst + i) * scale);
    return;
  }
  for (int64_t r = 0; r < cols; r += LANES)
    for (int64_t i = 0; i < d; i += 4) {
      vf c[4];
      columns4(src + r * ss + i, ss * int64_t(sizeof(float)), c);
      for (int t = 0; t < 4; t++) store(dst + (i + t) * cols + r, c[t] * scale);
    }
}

// Panels [d][cols] of queries, times `scale`.
template <class F> void pack_queries(const Job &j, const Queries &q, vf scale, float *dst) {
  const int64_t cols = j.tiles->cols, d = j.q.d;
  const typename F::T *x = j.c->template in_ptr<typename F::T>(0);
  if constexpr (F::DIRECT)
    if (j.stack == 1) {
      const float *src = x + j.q.at(q.b, q.h, q.first);
      for (int64_t r = 0; r < q.n; r += cols)
        pack_panel(dst + r * d, cols, src + r * j.q.ss, j.q.sd, j.q.ss, d, q.n - r < cols ? q.n - r : cols, scale);
      return;
    }
  std::memset(dst, 0, size_t(q.lanes * d) * sizeof(float));
  for (int64_t r = 0; r < q.n; r++) {
    const typename F::T *src = x + j.q.at(q.b, q.head(j, r), q.query(j, r));
    float *to = dst + r / cols * cols * d + r % cols, part[64] = {};
    for (int64_t i = 0; i < d; i += 64) {
      const int64_t n = d - i < 64 ? d - i : 64;
      take<F>(part, src + i * j.q.sd, j.q.sd, n);
      for (int64_t t = 0; t < n; t += LANES) store(part + t, load(part + t) * scale);
      for (int64_t t = 0; t < n; t++) to[(i + t) * cols] = part[t];
    }
  }
}

// Rows that lie `step` bytes apart, to be fetched while tiles run: with each tile the next line of all of them, as far as its k steps go.
struct Lines {
  const char *at;
  int64_t step, left;
  void next(matmul::TileF32 *t) {
    if (left <= 0) return;
    t->ahead = at, t->ahead_step = step;
    at += 64, left--;
  }
};
template <class T> Lines lines_of(const T *rows, const Heads &x) {
  return {reinterpret_cast<const char *>(rows), x.ss * int64_t(sizeof(T)), x.sd == 1 ? (x.d * int64_t(sizeof(T)) + 63) / 64 : 0};
}

// Rows of c = a b, b a panel, by tiles; half says that the first half of the columns is enough.
void tiles_of(const matmul::TileSetF32 &set, matmul::TileF32 t, int64_t rows, bool half, Lines ahead) {
  const char *a = reinterpret_cast<const char *>(t.a);
  char *c = reinterpret_cast<char *>(t.c);
  const int64_t most = tile_rows(set);
  for (int64_t i = 0; i < rows; i += most) {
    const int64_t m = rows - i < most ? rows - i : most;
    t.a = reinterpret_cast<const float *>(a + i * t.a_rs);
    t.c = reinterpret_cast<float *>(c + i * t.c_rs);
    t.ahead = reinterpret_cast<const char *>(t.a) + m * t.a_rs, t.ahead_step = 64;
    ahead.next(&t);
    (half ? set.half[m] : set.run[m])(&t);
  }
}

// Keys [j0, j0 + n) as f32: where they lie, or copied to `keys`; t.a and its strides.
template <class F> void place_keys(const Job &j, const Queries &q, int64_t j0, int64_t n, bool together, float *keys, matmul::TileF32 *t) {
  const int64_t f = sizeof(float), d = j.q.d;
  const typename F::T *k = j.c->template in_ptr<typename F::T>(1) + j.k.at(q.b, q.g, j0);
  if constexpr (F::DIRECT) {
    t->a = k, t->a_rs = j.k.ss * f, t->a_cs = j.k.sd * f;
    if (!together || j.k.sd == 1) return;
  }
  for (int64_t i = 0; i < n; i++) take<F>(keys + i * d, k + i * j.k.ss, j.k.sd, d);
  t->a = keys, t->a_rs = d * f, t->a_cs = f;
}

// scores[key][query] of the n keys of t with the panel of queries from p on: of those keys that one of the queries sees.
void score(const Job &j, const Queries &q, const State &s, int64_t n, matmul::TileF32 t, int64_t p, Lines ahead, float *scores) {
  const int64_t cols = j.tiles->cols;
  const Keys seen = s.seen(p, p + cols, 0, n);
  t.a = reinterpret_cast<const float *>(reinterpret_cast<const char *>(t.a) + seen.lo * t.a_rs), t.c = scores + seen.lo * QUERIES + p;
  tiles_of(*j.tiles, t, seen.hi - seen.lo, j.tiles->half[1] != nullptr && 2 * (q.n - p) <= cols, ahead);
}

// ---- the mask operand

RLX_FN float bias_value(const Job &j, int64_t at) {
  if (j.mask_dtype == RLX_F32) return reinterpret_cast<const float *>(j.mask)[at];
  float x[LANES];
  const uint16_t *p = reinterpret_cast<const uint16_t *>(j.mask) + at;
  store(x, j.mask_dtype == RLX_F16 ? load_f16_part(p, 1) : load_bf16_part(p, 1));
  return x[0];
}

// The greatest bias of keys [lo, hi) of a query if it is finite, else 0. Less that, a large bias does not take the digits of the scores
// that f64 would keep, and no probability changes.
float far_bias(const Job &j, int64_t at, int64_t lo, int64_t hi) {
  float top = -INFINITY;
  const int64_t step = j.mask_step[3];
  if (step == 1 && j.mask_dtype == RLX_F32) {
    top = row_max<f32_form>(reinterpret_cast<const float *>(j.mask) + at + lo, hi - lo);
  } else {
    for (int64_t i = lo; i < hi; i++)
      if (const float v = bias_value(j, at + i * step); v > top || v != v) top = v;
  }
  return top - top == 0 ? top : 0.0f;
}

// Whether every query of the block sees one row of the mask.
bool shared_mask(const Job &j, const Queries &q) { return q.n == 1 || (j.mask_step[2] == 0 && (j.stack == 1 || j.mask_step[1] == 0)); }

// Whether no query of the block loses one of the keys [j0, j0 + n) to a mask of bools.
bool all_kept(const Job &j, const Queries &q, int64_t j0, int64_t n, bool shared) {
  const int64_t step = j.mask_step[3];
  for (int64_t r = 0; r < (shared ? 1 : q.n); r++) {
    const uint8_t *src = reinterpret_cast<const uint8_t *>(j.mask) + j.mask_at(q.b, q.head(j, r), q.query(j, r)) + j0 * step;
    int64_t lost = 0;
    if (step == 1)
      for (int64_t i = 0; i < n; i++) lost += src[i] == 0;
    else
      for (int64_t i = 0; i < n; i++) lost += src[i * step] == 0;
    if (lost != 0) return false;
  }
  return true;
}

// bias[key][query] of keys [j0, j0 + n); [query][key] for few queries; [key] where it is shared.
void fill_bias(const Job &j, const Queries &q, int64_t j0, int64_t n, bool shared, bool few, float *bias) {
  const int64_t step = j.mask_step[3], next = shared || few ? 1 : QUERIES, row = few ? KEYS : 1;
  if (next != 1 && j.mask_dtype == RLX_F32 && j.stack == 1) {
    const float *src = reinterpret_cast<const float *>(j.mask) + j.mask_at(q.b, q.h, q.first) + j0 * step;
    return matmul::pack_panel_f32(bias, int(QUERIES), src, step, j.mask_step[2], n, int(q.n));
  }
  for (int64_t r = 0; r < (shared ? 1 : q.n); r++) {
    const int64_t at = j.mask_at(q.b, q.head(j, r), q.query(j, r)) + j0 * step;
    float *to = bias + r * row;
    if (j.mask_dtype == RLX_BOOL) {
      const uint8_t *src = reinterpret_cast<const uint8_t *>(j.mask) + at;
      for (int64_t i = 0; i < n; i++) to[i * next] = src[i * step] != 0 ? 1.0f : 0.0f;
      continue;
    }
    for (int64_t i = 0; i < n; i++) to[i * next] = bias_value(j, at + i * step);
  }
}

// ---- softmax

struct Scoring {
  vf scale, cap, per_cap;
  bool capped, bias, keep, shared;  // bias or keep: a float or a bool mask
  bool plain;                       // queries are multiplied by scale, which makes powers of two of the scores; bias is one row, of which 0 is the greatest
};
constexpr double SLACK = 8;  // how much the greatest score may grow before what softmax takes off does

// digits: far * 1.5 / 2^29, the f32 whose last place is that of far in f64. Adding it rounds scores there, as a sum with far in f64 does.
RLX_FN vf scored(const Scoring &m, vf z, vf mask, vf far, vf digits) {
  if (m.plain) {
    if (m.bias) z = z + mask;
  } else {
    z = z * m.scale;
    if (m.capped) z = tanh(z * m.per_cap) * m.cap;
    if (m.bias) z = (z + digits) - digits + (mask - far);
  }
  if (m.keep) z = select(eq(mask, splat<vf>(0.0)), splat<vf>(-INFINITY), z);
  return z;
}

// Scores that are plain count in powers of two already.
template <bool PLAIN> RLX_FN vf weight(vf z, vf base) {
  const vf t = z - base;
  return power(PLAIN ? t : t * splat<vf>(LOG2_E));
}

// What softmax takes off, 0 where there is no score yet.
RLX_FN vf base_of(vf base) { return select(eq(base, splat<vf>(-INFINITY)), splat<vf>(0.0), base); }

// The base of queries [w, w + LANES) once their greatest score in a block is top. It grows seldom: sums so far are scaled then.
RLX_FN vf grown(const State &s, int64_t w, vf top) {
  const vf base = load(s.base + w);
  return select(gt(top, base + splat<vf>(SLACK)), top, base);
}

// The state goes on by a block of keys. Returns whether some sum so far must be scaled.
template <bool PLAIN> RLX_FN bool go_on(const State &s, int64_t w, vf base, vf sum) {
  const vf t = load(s.base + w) - base_of(base), factor = power(PLAIN ? t : t * splat<vf>(LOG2_E));
  store(s.base + w, base), store(s.factor + w, factor);
  store(s.sum + w, fma(load(s.sum + w), factor, sum));
  return any(ne(factor, splat<vf>(1.0)));
}

// The weights of LANES queries for the keys [k.lo, k.hi) of a block, in place, and their sum: key i counts in part i % LANES.
template <bool PLAIN> RLX_FN vf weights(float *p, Keys k, vf base) {
  vf part[LANES];
  for (int t = 0; t < LANES; t++) part[t] = splat<vf>(0.0);
  int64_t i = k.lo;
  const auto one = [&](int64_t key) __attribute__((always_inline)) {
    const vf e = weight<PLAIN>(load(p + key * QUERIES), base);
    store(p + key * QUERIES, e);
    return e;
  };
  for (; i < k.hi && i % LANES != 0; i++) part[i % LANES] = part[i % LANES] + one(i);
  for (; i + LANES <= k.hi; i += LANES)
    for (int t = 0; t < LANES; t++) part[t] = part[t] + one(i + t);
  for (; i < k.hi; i++) part[i % LANES] = part[i % LANES] + one(i);
  for (int t = LANES / 2; t > 0; t /= 2)
    for (int u = 0; u < t; u++) part[u] = part[u] + part[u + t];
  return part[0];
}

void clear_keys(float *p, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; i++) store(p + i * QUERIES, splat<vf>(0.0));
}

// Scores of queries [w, w + LANES) with all that masks them; returns the greatest, of numbers.
RLX_FN vf greatest(const Scoring &m, int64_t w, Keys k, const float *bias, float *scores, const State &s) {
  const vf none = splat<vf>(-INFINITY);
  vf top = none;
  if (m.plain && !m.bias && !m.keep && !s.edges) {
    vf other = none;
    int64_t i = k.lo;
    for (; i + 2 <= k.hi; i += 2) top = raw_max(load(scores + i * QUERIES + w), top), other = raw_max(load(scores + (i + 1) * QUERIES + w), other);
    for (; i < k.hi; i++) top = raw_max(load(scores + i * QUERIES + w), top);
    return raw_max(other, top);
  }
  const vf far = load(s.far + w), digits = far * splat<vf>(0x1.8p-29);
  const vi lo = s.edges ? load_i(s.lo + w) : splat_i(0), hi = s.edges ? load_i(s.hi + w) : lo;
  for (int64_t i = k.lo; i < k.hi; i++) {
    vf mask = splat<vf>(0.0);
    if (m.bias || m.keep) mask = m.shared ? splat<vf>(bias[i]) : load(bias + i * QUERIES + w);
    vf z = scored(m, load(scores + i * QUERIES + w), mask, far, digits);
    if (s.edges) z = select(mand(gt_i(hi, splat_i(int32_t(i))), mnot(gt_i(lo, splat_i(int32_t(i))))), z, none);
    store(scores + i * QUERIES + w, z);
    top = raw_max(z, top);
  }
  return top;
}

// Scores of queries [w, end) become weights, and the state goes on. Returns whether some sum so far must be scaled. A NaN shows in the sum alone.
template <bool PLAIN> bool soften(const Scoring &m, int64_t w, int64_t end, int64_t n, const float *bias, float *scores, const State &s) {
  bool changed = false;
  for (; w < end; w += LANES) {
    const Keys k = s.seen(w, w + LANES, 0, n);
    const vf base = grown(s, w, greatest(m, w, k, bias, scores, s));
    changed |= go_on<PLAIN>(s, w, base, weights<PLAIN>(scores + w, k, base_of(base)));
    clear_keys(scores + w, 0, k.lo), clear_keys(scores + w, k.hi, n);
  }
  return changed;
}

#include "attention_direct_body.h"

// Weights of the keys [j0, j0 + n), panel by panel of queries. Meanwhile the next keys and these values are fetched. Returns whether some sum so far must
// be scaled; `more` says that there is one.
template <class F>
bool weigh_keys(const Job &j, const Queries &q, const Scoring &m, const State &s, int64_t j0, int64_t n, const float *panels, float *keys, const float *bias,
                float *scores, bool more) {
  typedef typename F::T T;
  const int64_t f = sizeof(float), cols = j.tiles->cols;
  matmul::TileF32 t = {};
  t.b_rs = cols * f, t.c_rs = QUERIES * f, t.k = j.q.d;
  place_keys<F>(j, q, j0, n, false, keys, &t);
  const Lines next = lines_of(j.c->template in_ptr<T>(1) + j.k.at(q.b, q.g, j0 + KEYS), j.k);
  const Lines values = lines_of(j.c->template in_ptr<T>(2) + j.v.at(q.b, q.g, j0), j.v);
  const bool whole = n == KEYS && !s.edges && !m.bias && !m.keep && cols == TILE_VECTORS * LANES && t.a_cs == f && j.q.d >= PIECES;
  const bool direct = HAS_DIRECT && more && m.plain && whole;
  bool changed = false;
  for (int64_t p = 0; p < q.lanes; p += cols) {
    const Lines ahead = p == 0 ? next : p == cols ? values : Lines{};
    const int64_t end = q.n - p < cols ? q.n : p + cols;
    t.b = panels + p * j.q.d;
    if constexpr (HAS_DIRECT)
      if (direct && end - p > LANES && direct_panel<Steps>(s, t, fetch_of(ahead), p, scores + p)) continue;
    score(j, q, s, n, t, p, ahead, scores);
    changed |= m.plain ? soften<true>(m, p, end, n, bias, scores, s) : soften<false>(m, p, end, n, bias, scores, s);
  }
  return changed;
}

#include "attention_few_body.h"

// ---- values

void scale_sums(const Queries &q, const float *factor, float *sums, int64_t wide, int64_t d) {
  for (int64_t r = 0; r < q.n; r++) {
    if (factor[r] == 1.0f) continue;
    const vf f = splat<vf>(factor[r]);
    for (int64_t i = 0; i < d; i += LANES) store(sums + r * wide + i, load(sums + r * wide + i) * f);
  }
}

// The queries of the next unit, where they lie in rows.
template <class F> Lines next_queries(const Job &j, const Queries &q) {
  const bool here = q.first + QUERIES < j.rows;
  if (j.stack != 1 || (!here && q.h + 1 >= j.q.h)) return {};
  return lines_of(j.c->template in_ptr<typename F::T>(0) + (here ? j.q.at(q.b, q.h, q.first + QUERIES) : j.q.at(q.b, q.h + 1, 0)), j.q);
}

// sums[query] += p[key][query] v[key] for the n keys of the block from j0 on, without those that no query of a tile sees. The first block
// fetches the rows of the result and the next queries.
template <class F>
void add_values(const Job &j, const Queries &q, const State &s, int64_t j0, int64_t n, const float *p, float *values, float *sums, int64_t wide, bool load) {
  const int64_t f = sizeof(float), cols = j.tiles->cols, most = tile_rows(*j.tiles);
  const typename F::T *v = j.c->template in_ptr<typename F::T>(2) + j.v.at(q.b, q.g, j0);
  matmul::TileF32 t = {};
  t.a_rs = f, t.a_cs = QUERIES * f, t.c_rs = wide * f, t.load = load;
  Lines results = lines_of(j.c->template out_ptr<typename F::T>(0) + j.y.at(q.b, q.head(j, 0), q.query(j, 0)), j.y);
  Lines queries = next_queries<F>(j, q);
  if (load) results.left = queries.left = 0;
  for (int64_t i = 0; i < j.v.d; i += cols) {
    const int64_t left = j.v.d - i;
    const bool half = j.tiles->half[1] != nullptr && 2 * left <= cols;
    const int64_t width = half ? cols / 2 : cols, m = left < width ? left : width;
    bool direct = false;
    if constexpr (F::DIRECT) {
      direct = j.v.sd == 1 && m == width;
      if (direct) t.b = v + i, t.b_rs = j.v.ss * f;
    }
    if (!direct) {
      if (m < width) std::memset(values, 0, size_t(n * width * f));
      for (int64_t k = 0; k < n; k++) take<F>(values + k * width, v + k * j.v.ss + i * j.v.sd, j.v.sd, m);
      t.b = values, t.b_rs = width * f;
    }
    const float *b = t.b;
    for (int64_t r = 0; r < q.n; r += most) {
      t.ahead = p, t.ahead_step = 0;
      (results.left > 0 ? results : queries).next(&t);
      const int64_t rows = q.n - r < most ? q.n - r : most;
      const Keys seen = s.seen(r, r + rows, 0, n);
      t.a = p + r + seen.lo * QUERIES, t.b = b + seen.lo * (t.b_rs / f), t.c = sums + r * wide + i, t.k = seen.hi - seen.lo;
      (half ? j.tiles->half[rows] : j.tiles->run[rows])(&t);
    }
  }
}

RLX_FN vf per_sum(vf sum) { return narrow(splat<vd>(1.0) / wide(sum)); }

template <class F> void put_rows(const Job &j, const Queries &q, const State &s, const float *sums, int64_t wide, bool any_keys) {
  typename F::T *y = j.c->template out_ptr<typename F::T>(0);
  for (int64_t w = 0; w < q.n; w += LANES) store(s.factor + w, per_sum(load(s.sum + w)));
  for (int64_t r = 0; r < q.n; r++) {
    typename F::T *to = y + j.y.at(q.b, q.head(j, r), q.query(j, r));
    const bool empty = !any_keys || s.sum[r] == 0;
    const vf per = splat<vf>(s.factor[r]);
    for (int64_t i = 0; i < j.v.d; i += LANES) {
      const int m = int(j.v.d - i < LANES ? j.v.d - i : LANES);
      const vf x = empty ? splat<vf>(0.0) : load(sums + r * wide + i) * per;
      if (m < LANES) F::put_part(to + i, x, m);
      else F::put(to + i, x);
    }
  }
}

// Sets up the state and returns the keys that some query of the block sees; `common` are those that all of them see.
Keys start(const Job &j, const Queries &q, const State &s, Keys *spans, Keys *common) {
  for (int64_t r = 0; r < QUERIES; r += LANES)
    store(s.base + r, splat<vf>(-INFINITY)), store(s.sum + r, splat<vf>(0.0)), store(s.far + r, splat<vf>(0.0));
  Keys all = {0, j.valid(q.b)};
  *common = all;
  if (!j.causal) {
    for (int64_t r = 0; r < QUERIES; r++) spans[r] = r < q.n ? all : Keys{0, 0};
  } else {
    all = {INT64_MAX, 0}, *common = {0, INT64_MAX};
    for (int64_t r = 0; r < QUERIES; r++) {
      spans[r] = r < q.n ? j.keys(q.b, q.query(j, r)) : Keys{0, 0};
      if (r >= q.n) continue;
      common->lo = spans[r].lo > common->lo ? spans[r].lo : common->lo, common->hi = spans[r].hi < common->hi ? spans[r].hi : common->hi;
      if (spans[r].lo >= spans[r].hi) continue;
      all.lo = spans[r].lo < all.lo ? spans[r].lo : all.lo;
      all.hi = spans[r].hi > all.hi ? spans[r].hi : all.hi;
    }
  }
  if (j.mask == nullptr || j.mask_dtype == RLX_BOOL) return all;
  int64_t before = -1;
  for (int64_t r = 0; r < q.n; r++) {
    const int64_t at = j.mask_at(q.b, q.head(j, r), q.query(j, r));
    const bool same = r > 0 && at == before && spans[r].lo == spans[r - 1].lo && spans[r].hi == spans[r - 1].hi;
    s.far[r] = same ? s.far[r - 1] : far_bias(j, at, spans[r].lo, spans[r].hi);
    before = at;
  }
  return all;
}

// Places the ends of each query's keys within the block [j0, j0 + n); returns whether one lies inside it. Every query sees the keys `common`.
bool place_edges(const Queries &q, const Keys *spans, Keys common, int64_t j0, int64_t n, const State &s) {
  if (common.lo <= j0 && j0 + n <= common.hi) return false;
  bool inside = false;
  for (int64_t r = 0; r < QUERIES; r++) {
    const int64_t lo = spans[r].lo - j0, hi = spans[r].hi - j0;
    s.lo[r] = int32_t(lo < 0 ? 0 : lo > n ? n : lo), s.hi[r] = int32_t(hi < 0 ? 0 : hi > n ? n : hi);
    inside |= r < q.n && (lo > 0 || hi < n);
  }
  return inside;
}

Scoring scoring_of(const Job &j, const Queries &q, const State &s) {
  Scoring m = {};
  m.cap = splat<vf>(j.softcap), m.per_cap = splat<vf>(j.softcap > 0 ? 1 / j.softcap : 0.0), m.capped = j.softcap > 0;
  if (j.mask != nullptr) m.bias = j.mask_dtype != RLX_BOOL, m.keep = !m.bias, m.shared = shared_mask(j, q);
  const bool one_row = !j.causal && j.mask_step[2] == 0 && (j.group == 1 || j.mask_step[1] == 0);  // whichever queries a block has
  const double exponent = j.scale * 1.4426950408889634;
  m.plain = !m.capped && exponent > 0 && exponent <= 1 && (!m.bias || (one_row && s.far[0] == 0));  // beyond 1 a query might overflow
  m.scale = splat<vf>(m.plain ? exponent : j.scale);
  return m;
}

// What masks the keys [j0, j0 + n) into `bias`, if anything does.
Scoring masked(Scoring m, const Job &j, const Queries &q, int64_t j0, int64_t n, bool few, float *bias) {
  if (m.keep) m.keep = !all_kept(j, q, j0, n, m.shared);
  if (m.bias || m.keep) fill_bias(j, q, j0, n, m.shared, few, bias);
  if (!m.bias || !m.plain) return m;
  m.bias = false;
  for (int64_t i = 0; i < n; i++) m.bias |= bias[i] != 0, bias[i] *= float(LOG2_E);
  return m;
}

template <class F> void attention_unit(const Job &j, int64_t u, float *slot) {
  const Queries q = queries_of(j, u);
  const Scratch at = scratch_of(j.q.d, j.v.d, j.tiles->cols);
  const int64_t cols = j.tiles->cols, wide = (j.v.d + cols - 1) / cols * cols;
  float *rows = slot + at.rows, *scores = slot + at.scores, *bias = slot + at.bias, *sums = slot + at.sums;
  State s = {rows, rows + QUERIES, rows + 2 * QUERIES, rows + 3 * QUERIES, reinterpret_cast<int32_t *>(rows + 4 * QUERIES),
             reinterpret_cast<int32_t *>(rows + 5 * QUERIES), false};
  Keys spans[QUERIES], common;
  const Keys all = start(j, q, s, spans, &common);
  const Scoring of_unit = scoring_of(j, q, s);
  if (all.lo < all.hi) pack_queries<F>(j, q, of_unit.plain ? of_unit.scale : splat<vf>(1.0), slot + at.queries);
  const bool few = q.n <= FEW;
  const int64_t begin = all.lo / KEYS * KEYS;  // blocks are the same for every query
  for (int64_t j0 = begin; j0 < all.hi && !j.c->stopped(); j0 += KEYS) {
    const int64_t n = all.hi - j0 < KEYS ? all.hi - j0 : KEYS;
    const Scoring m = masked(of_unit, j, q, j0, n, few, bias);
    s.edges = place_edges(q, spans, common, j0, n, s);
    const bool more = j0 > begin;
    bool changed;
    if (few) {
      matmul::TileF32 keys = {};
      place_keys<F>(j, q, j0, n, true, slot + at.keys, &keys);
      const Ahead ahead = next_block(j, q, j.k, 1, all, j0, sizeof(typename F::T));
      few_queries[q.n].score(keys, n, j.q.d, cols, slot + at.queries, ahead, scores);
      changed = m.plain ? soften_few<true>(m, q, n, bias, scores, s) : soften_few<false>(m, q, n, bias, scores, s);
    } else {
      changed = weigh_keys<F>(j, q, m, s, j0, n, slot + at.queries, slot + at.keys, bias, scores, more);
    }
    if (changed && more) scale_sums(q, s.factor, sums, wide, j.v.d);
    if (few) add_values_few<F>(j, q, s, all, j0, n, scores, slot + at.values, sums, wide, more);
    else add_values<F>(j, q, s, j0, n, scores, slot + at.values, sums, wide, more);
  }
  put_rows<F>(j, q, s, sums, wide, all.lo < all.hi);
}
