// fft_split_body.h: transforms of vectors of lines, and long lines cut in two. See fft_body.h.

template <class T> using vector = typename vector_of<T>::type;
template <class T> constexpr int lanes = VECTOR / int(sizeof(T));

template <class T> RLX_FN vector<T> load_vector(const T *p) {
  vector<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T> RLX_FN void store_vector(T *p, vector<T> v) { std::memcpy(p, &v, sizeof v); }

// a0 b0 a1 b1 ...: of the lower halves, or of the upper ones.
template <int N, class V> RLX_FN V mix(V a, V b, bool upper) {
  if constexpr (N == 2) return upper ? __builtin_shufflevector(a, b, 1, 3) : __builtin_shufflevector(a, b, 0, 2);
  else if constexpr (N == 4) return upper ? __builtin_shufflevector(a, b, 2, 6, 3, 7) : __builtin_shufflevector(a, b, 0, 4, 1, 5);
  else if constexpr (N == 8)
    return upper ? __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15) : __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  else return upper ? __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
                    : __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

// a0 a2 ... b0 b2 ..., or the odd ones.
template <int N, class V> RLX_FN V every_other(V a, V b, bool odd) {
  if constexpr (N == 2) return odd ? __builtin_shufflevector(a, b, 1, 3) : __builtin_shufflevector(a, b, 0, 2);
  else if constexpr (N == 4) return odd ? __builtin_shufflevector(a, b, 1, 3, 5, 7) : __builtin_shufflevector(a, b, 0, 2, 4, 6);
  else if constexpr (N == 8)
    return odd ? __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15) : __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
  else return odd ? __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
                  : __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}

// Rows become columns: mixing rows i and i + N/2 as often as N has bits.
template <int N, class V> RLX_FN void transpose(V *r) {
#pragma GCC unroll 4
  for (int w = 1; w < N; w *= 2) {
    V t[N];
#pragma GCC unroll 8
    for (int i = 0; i < N / 2; i++) t[2 * i] = mix<N>(r[i], r[i + N / 2], false), t[2 * i + 1] = mix<N>(r[i], r[i + N / 2], true);
#pragma GCC unroll 16
    for (int i = 0; i < N; i++) r[i] = t[i];
  }
}

// ---- a line of n1 n2 numbers as a matrix of n1 rows: columns are transformed, turned, and then rows

template <class T> struct Tables {
  Stages<T> first, second;
  Parts<T> turned, chirp, image, turns;
};

// Roots of 1 by number, in products of two.
struct RootsByNumber {
  static constexpr int64_t MOST = 1024;
  int64_t n, step = 1;
  double low[MOST][2], high[MOST][2];
  explicit RootsByNumber(int64_t count) : n(count) {
    while (step < MOST && step * step < n) step *= 2;
    for (int64_t k = 0; k < step; k++) {
      if (k < n) exact_root(k, n, &low[k][0], &low[k][1]);
      if (k * step < n) exact_root(k * step, n, &high[k][0], &high[k][1]);
    }
  }
  RLX_FN void at(int64_t k, double *re, double *im) const {
    if (n > MOST * MOST) return exact_root(k, n, re, im);
    const double *a = high[k / step], *b = low[k % step];
    *re = a[0] * b[0] - a[1] * b[1], *im = a[0] * b[1] + a[1] * b[0];
  }
};

// turned[k][j] = exp(-2 pi i j k / m).
template <class T> struct Turned {
  const Call *c;
  const RootsByNumber *roots;
  Parts<T> w;
  int64_t columns;
};
template <class T> void fill_turned(void *ctx, int64_t begin, int64_t end, int) {
  constexpr int64_t SHORT = 32;
  const Turned<T> &t = *static_cast<const Turned<T> *>(ctx);
  double re[SHORT], im[SHORT], a, b;
  for (int64_t k = begin; k < end && !t.c->stopped(); k++) {
    for (int64_t j = 0; j < SHORT && j < t.columns; j++) t.roots->at(j * k, &re[j], &im[j]);
    for (int64_t i = 0; i < t.columns; i += SHORT) {
      const int64_t n = t.columns - i < SHORT ? t.columns - i : SHORT;
      t.roots->at(i * k, &a, &b);
      T *wr = t.w.re + k * t.columns + i, *wi = t.w.im + k * t.columns + i;
      for (int64_t j = 0; j < n; j++) wr[j] = T(a * re[j] - b * im[j]), wi[j] = T(a * im[j] + b * re[j]);
    }
  }
}

// Numbers of a line where columns come from and rows go to: parts apart, or pairs in an operand or a result, which are exchanged for an
// inverse transform.
template <class T> struct Apart {
  Parts<T> z;
  RLX_FN void load(int64_t i, vector<T> *re, vector<T> *im) const { *re = load_vector<T>(z.re + i), *im = load_vector<T>(z.im + i); }
  RLX_FN void store(int64_t i, vector<T> re, vector<T> im) const { store_vector<T>(z.re + i, re), store_vector<T>(z.im + i, im); }
};
template <class T, bool SWAP> struct Pairs {
  const T *from;
  T *to, scale;
  RLX_FN void load(int64_t i, vector<T> *re, vector<T> *im) const {
    const vector<T> a = load_vector<T>(from + 2 * i), b = load_vector<T>(from + 2 * i + lanes<T>);
    *re = every_other<lanes<T>>(a, b, SWAP), *im = every_other<lanes<T>>(a, b, !SWAP);
  }
  RLX_FN void store(int64_t i, vector<T> re, vector<T> im) const {
    const vector<T> a = (SWAP ? im : re) * scale, b = (SWAP ? re : im) * scale;
    store_vector<T>(to + 2 * i, mix<lanes<T>>(a, b, false)), store_vector<T>(to + 2 * i + lanes<T>, mix<lanes<T>>(a, b, true));
  }
};

// Columns of x to y, a vector of them at a time.
template <class T, class X>
void split_columns(const Call &c, const Plan &p, const Tables<T> &t, const X &x, Parts<T> y, Parts<vector<T>> a, Parts<vector<T>> b) {
  constexpr int L = lanes<T>;
  const int64_t rows = p.first.n, n = p.second.n;
  for (int64_t i = 0; i < n && !c.stopped(); i += L) {
    const int64_t at = i + L <= n ? i : n - L;
    for (int64_t k = 0; k < rows; k++) x.load(k * n + at, a.re + k, a.im + k);
    const Parts<vector<T>> z = stockham<vector<T>, T>(c, p.first, t.first, a, b);
    for (int64_t k = 0; k < rows; k++) {
      const vector<T> u = z.re[k], v = z.im[k], wr = load_vector<T>(t.turned.re + k * n + at), wi = load_vector<T>(t.turned.im + k * n + at);
      store_vector<T>(y.re + k * n + at, u * wr - v * wi);
      store_vector<T>(y.im + k * n + at, u * wi + v * wr);
    }
  }
}

// A part of rows [i, i + lanes) of n numbers, a row a lane.
template <class T> void load_rows(const T *x, int64_t n, vector<T> *to) {
  constexpr int L = lanes<T>;
  for (int64_t j = 0; j < n; j += L) {
    const int64_t at = j + L <= n ? j : n - L;
    vector<T> r[L];
#pragma GCC unroll 16
    for (int l = 0; l < L; l++) r[l] = load_vector<T>(x + l * n + at);
    transpose<L>(r);
#pragma GCC unroll 16
    for (int l = 0; l < L; l++) to[at + l] = r[l];
  }
}

// Rows of y to the columns of x.
template <class T, class X>
void split_rows(const Call &c, const Plan &p, const Tables<T> &t, Parts<T> y, const X &x, Parts<vector<T>> a, Parts<vector<T>> b) {
  constexpr int L = lanes<T>;
  const int64_t rows = p.first.n, n = p.second.n;
  for (int64_t i = 0; i < rows && !c.stopped(); i += L) {
    const int64_t at = i + L <= rows ? i : rows - L;
    load_rows<T>(y.re + at * n, n, a.re);
    load_rows<T>(y.im + at * n, n, a.im);
    const Parts<vector<T>> z = stockham<vector<T>, T>(c, p.second, t.second, a, b);
    for (int64_t k = 0; k < n; k++) x.store(k * rows + at, z.re[k], z.im[k]);
  }
}

// Memory of a thread.
template <class T> struct Slot {
  Parts<T> x, y;            // of a line
  Parts<vector<T>> a, b;    // of a vector of lines
  template <class V> RLX_FN Parts<V> part(bool second) const {
    if constexpr (sizeof(V) == sizeof(T)) return second ? y : x;
    else return second ? b : a;
  }
};

// The transform of x in two parts, in x again; y is left with numbers on the way.
template <class T, class X> void by_parts(const Call &c, const Plan &p, const Tables<T> &t, const Slot<T> &slot, const X &x, Parts<T> y) {
  split_columns<T, X>(c, p, t, x, y, slot.a, slot.b);
  split_rows<T, X>(c, p, t, y, x, slot.a, slot.b);
}

// The transform by passes of x, in x or y.
template <class V, class T> Parts<V> by_passes(const Call &c, const Plan &p, const Tables<T> &t, const Slot<T> &slot, Parts<V> x, Parts<V> y) {
  if constexpr (sizeof(V) == sizeof(T))
    if (p.split) {
      by_parts<T>(c, p, t, slot, Apart<T>{x}, y);
      return x;
    }
  return stockham<V, T>(c, p.whole, t.first, x, y);
}
