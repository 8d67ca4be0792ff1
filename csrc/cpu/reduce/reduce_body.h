// reduce_body.h: Reduce of f32, f16 and bf16. Text for the anonymous namespace of an instruction set, after vec_math.h and forms.h.
// The loops read f32; Source widens or gathers what lies otherwise, piece by piece.
//
// Sums and products run in f64 lanes: exact to 2^-52 a step, which bounds the relative error of a sum of 2^24 equal-signed values by
// 2^-24, the rounding of the result. max and min run in f32.

#if !defined(RLX_LOAD_WIDE)
RLX_FN vd load_wide(const float *x) { return wide(load(x)); }
#endif

// What is added up: an element, its magnitude, its square. A multiply-add by 1 has the bits of an addition, and leaves the pipes that add to the
// conversions. Squares of f32 are exact in f64.
struct same {
  static RLX_FN vd add(vd a, vd x) { return fma(x, splat<vd>(1.0), a); }
  static RLX_FN vd first(vd x) { return x; }
  static RLX_FN vd of(vf x) { return wide(x); }
  static RLX_FN vd at(const float *x) { return load_wide(x); }
};
struct magnitude : same {
  static RLX_FN vd of(vf x) { return wide(abs(x)); }
  static RLX_FN vd at(const float *x) { return of(load(x)); }
};
struct squared : same {
  static RLX_FN vd add(vd a, vd x) { return fma(x, x, a); }
  static RLX_FN vd first(vd x) { return x * x; }
};

template <class Map> struct sum_of {
  typedef vd A;
  static constexpr double START = 0;
  static RLX_FN A start() { return splat<vd>(0.0); }
  static RLX_FN A step(A a, vf x) { return Map::add(a, Map::of(x)); }
  static RLX_FN A step_at(A a, const float *x) { return Map::add(a, Map::at(x)); }
  static RLX_FN A first_at(const float *x) { return Map::first(Map::at(x)); }
  static RLX_FN A join(A a, A b) { return same::add(a, b); }
  static RLX_FN double started(double a) { return START + a; }
  static RLX_FN double join(double a, double b) { return a + b; }
};
struct prod_of {
  typedef vd A;
  static constexpr double START = 1;
  static RLX_FN A start() { return splat<vd>(1.0); }
  static RLX_FN A step(A a, vf x) { return a * wide(x); }
  static RLX_FN A step_at(A a, const float *x) { return a * load_wide(x); }
  static RLX_FN A first_at(const float *x) { return load_wide(x); }
  static RLX_FN double started(double a) { return a; }
  static RLX_FN A join(A a, A b) { return a * b; }
  static RLX_FN double join(double a, double b) { return a * b; }
};
RLX_FN double of_zeros(double a, bool negative) { return a != 0 ? a : negative ? -0.0 : 0.0; }
struct max_of {
  typedef vf A;
  static constexpr double START = -INFINITY;
  static RLX_FN A start() { return splat<vf>(START); }
  static RLX_FN A step(A a, vf x) { return max_strict(a, x); }
  static RLX_FN A step_at(A a, const float *x) { return step(a, load(x)); }
  static RLX_FN A join(A a, A b) { return max_strict(a, b); }
  static RLX_FN double join(double a, double b) {
    if (a == b) return of_zeros(a, __builtin_signbit(a) && __builtin_signbit(b));
    return a > b || a != a ? a : b;
  }
};
struct max_abs_of : max_of {
  static constexpr double START = 0;
  static RLX_FN A step(A a, vf x) { return max_strict(a, abs(x)); }
  static RLX_FN A step_at(A a, const float *x) { return step(a, load(x)); }
};
struct min_of {
  typedef vf A;
  static constexpr double START = INFINITY;
  static RLX_FN A start() { return splat<vf>(START); }
  static RLX_FN A step(A a, vf x) { return min_strict(a, x); }
  static RLX_FN A step_at(A a, const float *x) { return step(a, load(x)); }
  static RLX_FN A join(A a, A b) { return min_strict(a, b); }
  static RLX_FN double join(double a, double b) {
    if (a == b) return of_zeros(a, __builtin_signbit(a) || __builtin_signbit(b));
    return a < b || a != a ? a : b;
  }
};

RLX_FN void lanes_to(double *t, vd a) { std::memcpy(t, &a, sizeof a); }
RLX_FN void lanes_to(double *t, vf a) {
  const vd w = wide(a);
  std::memcpy(t, &w, sizeof w);
}

RLX_FN void lanes_from(vd &a, const double *t) { std::memcpy(&a, t, sizeof a); }
RLX_FN void lanes_from(vf &a, const double *t) {
  vd w;
  std::memcpy(&w, t, sizeof w);
  a = narrow(w);  // exact: they were f32
}

// Where elements come from. fetch writes n of them, from element `at` on, step apart.
struct Source {
  const void *x;
  void (*fetch)(float *to, const void *x, int64_t at, int64_t n, int64_t step);
  bool direct;  // x is f32
};

template <class F> void fetch(float *to, const void *from, int64_t at, int64_t n, int64_t step) {
  typedef typename F::T T;
  const T *x = static_cast<const T *>(from) + at;
  for (int64_t i = 0; i < n; i += LANES, to += LANES) {
    const int m = int(n - i < LANES ? n - i : LANES);
    T t[LANES] = {};
    const T *p = x + i;
    if (step != 1) {
      for (int j = 0; j < m; j++) t[j] = x[(i + j) * step];
      p = t;
    }
    if (m == LANES) store(to, F::get(p));
    else store_part(to, F::get_part(p, m), m);
  }
}

// Joins the second half of the lanes to the first, and so on.
template <class Op, class V> RLX_FN double join_lanes(V a) {
  double t[LANES];
  lanes_to(t, a);
  for (int w = LANES / 2; w > 0; w /= 2)
    for (int i = 0; i < w; i++) t[i] = Op::join(t[i], t[i + w]);
  return t[0];
}
#if defined(RLX_TWO_LANES)
template <class Op> RLX_FN double join_lanes(vd a) {
  double t[2];
  two_lanes<Op>(a, t);
  return Op::join(t[0], t[1]);
}
#else
template <class Op> RLX_FN void join_four(vd a, vd b, vd c, vd d, double *t) {
  t[0] = join_lanes<Op>(a), t[1] = join_lanes<Op>(b), t[2] = join_lanes<Op>(c), t[3] = join_lanes<Op>(d);
}
#endif

// One result: four vectors of lanes take turns, whatever runs the elements come in.
template <class Op> struct RowSum {
  typename Op::A a[4];

  // Written out: an implicit constructor would not take the instruction set.
  RLX_FN RowSum() {
    for (int k = 0; k < 4; k++) a[k] = Op::start();
  }
  RLX_FN void add(const float *x, int64_t n) {
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
      for (int k = 0; k < 4; k++) a[k] = Op::step_at(a[k], x + i + k * LANES);
    for (; i + LANES <= n; i += LANES) a[0] = Op::step_at(a[0], x + i);
    if (const int left = int(n - i); left > 0) a[1] = Op::step(a[1], keep(load_part(x + i, left), left, splat<vf>(Op::START)));
  }
  RLX_FN typename Op::A lanes() const { return Op::join(Op::join(a[0], a[1]), Op::join(a[2], a[3])); }
  RLX_FN double value() const { return join_lanes<Op>(lanes()); }
};

// The extreme of a row that has no NaN, with the NaN of one that has. Zeros of both signs count as equal: a result of 0 is found again by RowSum.
template <bool LEAST, bool ABS> struct RowTop {
  vf a[4];
  vm nan[4];

  RLX_FN RowTop() {
    for (int k = 0; k < 4; k++) {
      a[k] = splat<vf>(LEAST ? INFINITY : -INFINITY);
      nan[k] = ne(a[k], a[k]);
    }
  }
  RLX_FN void step(int k, vf x) {
    a[k] = LEAST ? raw_min(x, a[k]) : raw_max(ABS ? abs(x) : x, a[k]);
    nan[k] = mor(nan[k], ne(x, x));
  }
  RLX_FN void add(const float *x, int64_t n) {
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
      for (int k = 0; k < 4; k++) step(k, load(x + i + k * LANES));
    for (; i + LANES <= n; i += LANES) step(0, load(x + i));
    if (const int left = int(n - i); left > 0) step(1, keep(load_part(x + i, left), left, splat<vf>(LEAST ? INFINITY : ABS ? 0.0 : -INFINITY)));
  }
  RLX_FN double value() const {
    if (mask_bits(mor(mor(nan[0], nan[1]), mor(nan[2], nan[3]))) != 0) return double(NAN);
    if (LEAST) return -double(hmax(-raw_min(raw_min(a[0], a[1]), raw_min(a[2], a[3]))));
    return double(hmax(raw_max(raw_max(a[0], a[1]), raw_max(a[2], a[3]))));
  }
};

RLX_FN bool in_line(const Source &x, const Plan &p) { return x.direct && p.reduced == 1 && p.strides[0][0] == 1; }

// Hands the reduced elements [from, to) of the result at element `at` of x to s, in contiguous pieces.
template <class S> RLX_MATH void each_run(const Source &x, int64_t at, const Plan &p, int64_t from, int64_t to, S &s) {
  if (in_line(x, p)) return s.add(static_cast<const float *>(x.x) + at + from, to - from);
  alignas(64) float buffer[GATHER];
  for (Walk<1> w = p.elements(from, to); w.next();) {
    if (x.direct && w.step[0] == 1) {
      s.add(static_cast<const float *>(x.x) + at + w.at[0], w.n);
      continue;
    }
    for (int64_t i = 0; i < w.n; i += GATHER) {
      const int64_t n = w.n - i < GATHER ? w.n - i : GATHER;
      x.fetch(buffer, x.x, at + w.at[0] + i * w.step[0], n, w.step[0]);
      s.add(buffer, n);
    }
  }
}

// The lanes of a row. They begin with its first elements: to what they begin with elsewhere, started() joins them.
template <class Op> RLX_FN vd line_lanes(const float *x, int64_t n) {
  RowSum<Op> s;
  if (n >= 4 * LANES) {
    for (int k = 0; k < 4; k++) s.a[k] = Op::first_at(x + k * LANES);
    x += 4 * LANES, n -= 4 * LANES;
  }
  if (n > 0) s.add(x, n);
  return s.lanes();
}
// The sums or products of n rows that lie together, `step` apart. The lanes of four are joined at once.
template <class Op> RLX_FN void lines_of(const float *x, int64_t step, int64_t length, int64_t n, double *out) {
  for (; n >= 4; n -= 4, x += 4 * step, out += 4) {
    const vd a = line_lanes<Op>(x, length), b = line_lanes<Op>(x + step, length);
    const vd c = line_lanes<Op>(x + 2 * step, length), d = line_lanes<Op>(x + 3 * step, length);
    join_four<Op>(a, b, c, d, out);
    for (int k = 0; k < 4; k++) out[k] = Op::started(out[k]);
  }
  for (; n > 0; n--, x += step, out++) *out = Op::started(join_lanes<Op>(line_lanes<Op>(x, length)));
}

template <class Op> void rows_of(const Source &x, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, double *out) {
  constexpr bool WIDE = std::is_same<typename Op::A, vd>::value;
  const bool line = WIDE && in_line(x, p);
  for (Walk<1> w = p.results(begin, end); w.next(); out += w.n) {
    const int64_t at = p.start + w.at[0], step = w.step[0];
    if constexpr (WIDE)
      if (line) lines_of<Op>(static_cast<const float *>(x.x) + at + from, step, to - from, w.n, out);
    for (int64_t i = 0; i < w.n && !line; i++) {
      RowSum<Op> s;
      each_run(x, at + i * step, p, from, to, s);
      out[i] = s.value();
    }
  }
}

template <class Op, bool LEAST, bool ABS> void tops_of(const Source &x, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, double *out) {
  for (Walk<1> w = p.results(begin, end); w.next();)
    for (int64_t i = 0; i < w.n; i++, out++) {
      const int64_t at = p.start + w.at[0] + i * w.step[0];
      RowTop<LEAST, ABS> s;
      each_run(x, at, p, from, to, s);
      *out = s.value();
      if (*out != 0 || ABS) continue;
      RowSum<Op> again;
      each_run(x, at, p, from, to, again);
      *out = again.value();
    }
}

// Adds `rows` rows that are `step` apart to the accumulators of n columns.
template <class Op> RLX_FN void column_rows(typename Op::A *a, const float *x, int64_t n, int rows, int64_t step) {
  int64_t j = 0;
  for (; j + LANES <= n; j += LANES, a++) {
    typename Op::A s = *a;
    for (int r = 0; r < rows; r++) s = Op::step_at(s, x + j + r * step);
    if (rows > 1)
      for (int r = 0; r < rows; r++) __builtin_prefetch(x + j + (rows + r) * step);
    *a = s;
  }
  if (const int left = int(n - j); left > 0)
    for (int r = 0; r < rows; r++) *a = Op::step(*a, load_part(x + j + r * step, left));
}

// The same for any number of rows, as long as the columns are whole fours of vectors: their accumulators stay in registers. Returns the columns.
template <class Op> RLX_FN int64_t column_fours(typename Op::A *a, const float *x, int64_t n, int64_t rows, int64_t step) {
  int64_t j = 0;
  for (; j + 4 * LANES <= n; j += 4 * LANES, a += 4) {
    typename Op::A s0 = a[0], s1 = a[1], s2 = a[2], s3 = a[3];
    const float *p = x + j;
    for (int64_t r = 0; r < rows; r++, p += step) {
      s0 = Op::step_at(s0, p), s1 = Op::step_at(s1, p + LANES);
      s2 = Op::step_at(s2, p + 2 * LANES), s3 = Op::step_at(s3, p + 3 * LANES);
    }
    a[0] = s0, a[1] = s1, a[2] = s2, a[3] = s3;
  }
  return j;
}

// Adds rows of products, each of which is rounded before it is added.
RLX_FN void product_rows(vd *a, const float *x, const float *y, int64_t n, int rows, int64_t step) {
  typedef sum_of<same> Op;
  int64_t j = 0;
  for (; j + LANES <= n; j += LANES, a++) {
    vd s = *a;
    for (int r = 0; r < rows; r++) s = Op::step(s, mul(load(x + j + r * step), load(y + j + r * step)));
    *a = s;
  }
  if (const int left = int(n - j); left > 0)
    for (int r = 0; r < rows; r++) *a = Op::step(*a, mul(load_part(x + j + r * step, left), load_part(y + j + r * step, left)));
}

// n <= TILE neighbouring results, the first at element `at` of x.
template <class Op> void column_tile(const Source &x, int64_t at, const Plan &p, int64_t n, int64_t from, int64_t to, double *out) {
  typename Op::A a[TILE / LANES];
  alignas(64) float buffer[TILE];
  const bool direct = x.direct && p.side == 1, near = p.made || n <= 4 * LANES;  // else rows are read as wide as they come
  for (int64_t j = 0; j < n; j += LANES) {
    typename Op::A &v = a[j / LANES];
    if (!p.resume) {
      v = Op::start();
    } else if (n - j >= LANES) {
      lanes_from(v, out + j);
    } else {
      double t[LANES] = {};
      std::memcpy(t, out + j, sizeof(double) * size_t(n - j));
      lanes_from(v, t);
    }
  }
  for (Walk<1> w = p.elements(from, to); w.next();) {
    const int64_t step = w.step[0], first = at + w.at[0];
    int64_t i = 0;
    if constexpr (std::is_same<Op, sum_of<same>>::value)
      if (p.factor != nullptr) {
        const float *one = static_cast<const float *>(x.x) + first, *other = p.factor + first;
        for (; i + GROUP <= w.n; i += GROUP) product_rows(a, one + i * step, other + i * step, n, GROUP, step);
        for (; i < w.n; i++) product_rows(a, one + i * step, other + i * step, n, 1, step);
        continue;
      }
    if (direct && near) {
      const float *p = static_cast<const float *>(x.x) + first;
      const int64_t j = column_fours<Op>(a, p, n, w.n, step);
      for (; i < w.n && j < n; i++) column_rows<Op>(a + j / LANES, p + j + i * step, n - j, 1, 0);
      continue;
    }
    if (direct)
      for (; i + GROUP <= w.n; i += GROUP) column_rows<Op>(a, static_cast<const float *>(x.x) + first + i * step, n, GROUP, step);
    for (; i < w.n; i++) {
      if (!direct) x.fetch(buffer, x.x, first + i * step, n, p.side);
      column_rows<Op>(a, direct ? static_cast<const float *>(x.x) + first + i * step : buffer, n, 1, 0);
    }
  }
  int64_t j = 0;
  for (; j + LANES <= n; j += LANES) lanes_to(out + j, a[j / LANES]);
  if (j == n) return;
  double t[LANES];
  lanes_to(t, a[j / LANES]);
  std::memcpy(out + j, t, sizeof(double) * size_t(n - j));
}

template <class Op> void columns_of(const Source &x, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, double *out) {
  for (Walk<1> w = p.results(begin, end); w.next();)
    for (int64_t i = 0; i < w.n; i += TILE) {
      const int64_t n = w.n - i < TILE ? w.n - i : TILE;
      column_tile<Op>(x, p.start + w.at[0] + i * p.side, p, n, from, to, out);
      out += n;
    }
}

// sum exp(x - m).
struct ExpSum {
  vf m;
  vd a;
  RLX_FN explicit ExpSum(double top) : m(splat<vf>(top)), a(splat<vd>(0.0)) {}
  RLX_FN void add(const float *x, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) a = a + wide(exp(load(x + i) - m));
    if (const int left = int(n - i); left > 0) a = a + wide(keep(exp(load_part(x + i, left) - m), left, splat<vf>(0.0)));
  }
};

// m + log(sum exp(x - m)); an infinite maximum counts as 0, since inf - inf would be NaN.
void logsumexp_of(const Source &x, const Plan &p, int64_t begin, int64_t end, double *out) {
  rows_of<max_of>(x, p, begin, end, 0, p.n, out);
  for (Walk<1> w = p.results(begin, end); w.next();)
    for (int64_t i = 0; i < w.n; i++) {
      const double m = *out == double(INFINITY) || *out == -double(INFINITY) ? 0 : *out;
      ExpSum s(m);
      each_run(x, p.start + w.at[0] + i * w.step[0], p, 0, p.n, s);
      *out++ = m + ::log(total(s.a));
    }
}

template <class Op> void part_of(const Source &x, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, double *out) {
  return p.columns ? columns_of<Op>(x, p, begin, end, from, to, out) : rows_of<Op>(x, p, begin, end, from, to, out);
}

void floats(const Source &x, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, double *out) {
  switch (p.fn) {
    case rlx_ReduceFn_max: return p.columns ? columns_of<max_of>(x, p, begin, end, from, to, out) : tops_of<max_of, false, false>(x, p, begin, end, from, to, out);
    case rlx_ReduceFn_min: return p.columns ? columns_of<min_of>(x, p, begin, end, from, to, out) : tops_of<min_of, true, false>(x, p, begin, end, from, to, out);
    case MAX_ABS: return p.columns ? columns_of<max_abs_of>(x, p, begin, end, from, to, out) : tops_of<max_abs_of, false, true>(x, p, begin, end, from, to, out);
    case rlx_ReduceFn_prod: return part_of<prod_of>(x, p, begin, end, from, to, out);
    case rlx_ReduceFn_l1: return part_of<sum_of<magnitude>>(x, p, begin, end, from, to, out);
    case rlx_ReduceFn_l2:
    case rlx_ReduceFn_sum_square: return part_of<sum_of<squared>>(x, p, begin, end, from, to, out);
    case rlx_ReduceFn_logsumexp: return logsumexp_of(x, p, begin, end, out);
    default: return part_of<sum_of<same>>(x, p, begin, end, from, to, out);
  }
}

template <class F> struct Floats {
  typedef typename F::T T;
  typedef double Acc;

  static void part(const T *x, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, Acc *out) {
    floats({x, fetch<F>, F::DIRECT}, p, begin, end, from, to, out);
  }
  static Acc join(int64_t fn, Acc a, Acc b) {
    switch (fn) {
      case MAX_ABS:
      case rlx_ReduceFn_max: return max_of::join(a, b);
      case rlx_ReduceFn_min: return min_of::join(a, b);
      case rlx_ReduceFn_prod: return a * b;
      default: return a + b;
    }
  }
  static void put(const Plan &p, const Acc *a, T *y, int64_t n) {
    const bool roots = p.fn == rlx_ReduceFn_l2 || p.fn == rlx_ReduceFn_log_sum;
    const bool mean = p.fn == rlx_ReduceFn_mean, exact = (p.n & (p.n - 1)) == 0;  // a power of two has an exact inverse
    const vd over = splat<vd>(mean ? double(p.n) : 1), times = splat<vd>(mean && p.n > 0 && exact ? 1 / double(p.n) : 1);
    const bool divide = mean && (p.n == 0 || !exact);
    for (int64_t i = 0; i < n; i += LANES) {
      const int64_t m = n - i < LANES ? n - i : LANES;
      double t[LANES] = {};
      std::memcpy(t, a + i, sizeof(double) * size_t(m));
      if (roots)
        for (int64_t j = 0; j < m; j++) t[j] = finish(p, t[j]);
      vd v;
      std::memcpy(&v, t, sizeof v);
      const vf y32 = narrow(divide ? v / over : v * times), y1 = select(ne(y32, y32), splat<vf>(NAN), y32);
      if (m == LANES) F::put(y + i, y1);
      else F::put_part(y + i, y1, int(m));
    }
  }
};
