// Transforms of winograd.h, written once over the vector types. Text for the anonymous namespace of an instruction set, after tile_body.h and shallow_body.h.

// B' d B of LANES quads: columns 2i to 2i + 3 of row k are e[i], o[i], e[i + 1] and o[i + 1], its phases.
RLX_FN void windows_of(const float *strips, int64_t pitch, vf (&v)[4][4]) {
  vf c[4][4];  // B' d
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    const float *at = strips + (j & 1) * pitch + (j >> 1);
    const vf d0 = load(at), d1 = load(at + 2 * pitch), d2 = load(at + 4 * pitch), d3 = load(at + 6 * pitch);
    c[0][j] = d0 - d2, c[1][j] = d1 + d2, c[2][j] = d2 - d1, c[3][j] = d1 - d3;
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) v[i][0] = c[i][0] - c[i][2], v[i][1] = c[i][1] + c[i][2], v[i][2] = c[i][2] - c[i][1], v[i][3] = c[i][1] - c[i][3];
}
void windows(const float *strips, int64_t pitch, float *to, int64_t plane, int64_t n, int64_t room) {
  for (int64_t i = 0; i < n; i += LANES) {
    vf v[4][4];
    windows_of(strips + i, pitch, v);
    const int64_t count = room - i < LANES ? room - i : LANES;
#pragma GCC unroll 16
    for (int e = 0; e < 16; e++) {
      if (count == LANES) store(to + e * plane + i, v[e / 4][e % 4]);
      else store_part(to + e * plane + i, v[e / 4][e % 4], int(count));
    }
  }
}

// a, (a + b + c) / 2, (a - b + c) / 2 and c.
RLX_FN void kernel_line(vf a, vf b, vf c, vf *u, int step) {
  const vf half = splat<vf>(0.5), s = half * (a + c), t = half * b;
  u[0] = a, u[step] = s + t, u[2 * step] = s - t, u[3 * step] = c;
}
void kernels(const float *w, int64_t tap, int64_t channels, float *u, int64_t plane) {
  for (int64_t i = 0; i < channels * WIDE; i += LANES) {
    vf rows[4][3], all[4][4];
#pragma GCC unroll 3
    for (int j = 0; j < 3; j++) {
      const float *at = w + 3 * j * tap + i;
      kernel_line(load(at), load(at + tap), load(at + 2 * tap), &rows[0][j], 3);
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) kernel_line(rows[k][0], rows[k][1], rows[k][2], all[k], 1);
#pragma GCC unroll 16
    for (int e = 0; e < 16; e++) store(u + e * plane + i, all[e / 4][e % 4]);
  }
}

// A' m A of LANES channels of a quad, and the sum of the squares of m.
RLX_FN vf quad(const float *m, int64_t plane, vf (&y)[2][2]) {
  vf r[2][4], squares = splat<vf>(0.0);  // r: A' m
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    const vf m0 = load(m + j * plane), m1 = load(m + (4 + j) * plane), m2 = load(m + (8 + j) * plane), m3 = load(m + (12 + j) * plane);
    r[0][j] = m0 + m1 + m2, r[1][j] = m1 - m2 - m3;
    squares = fma(m0, m0, fma(m1, m1, fma(m2, m2, fma(m3, m3, squares))));
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) y[i][0] = r[i][0] + r[i][1] + r[i][2], y[i][1] = r[i][1] - r[i][2] - r[i][3];
  return squares;
}
RLX_FN int count(vm m) { return __builtin_popcount(mask_bits(m)); }
RLX_FN bool usable(const vf (&y)[2][2], vf squares) {
  const int used = count(gt(squares, splat<vf>(0.0)));
  bool good = count(lt(squares, splat<vf>(INFINITY))) == LANES;
#pragma GCC unroll 4
  for (int k = 0; k < 4; k++) {
    const vf a = y[k / 2][k % 2] * splat<vf>(32.0);
    const int small = count(lt(a * a, squares));
    good = good && (small == 0 || 2 * small < used);
  }
  return good;
}
template <int V> RLX_FN bool quads(const QuadRow &q) {
  bool all = true;
  for (int64_t i = 0; i < q.quads; i++) {
    bool good = true;
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) {
      vf y[2][2];
      const vf squares = quad(q.sums + i * WIDE + v * LANES, q.plane, y);
      good = usable(y, squares) && good;
      const int64_t at = 2 * i * WIDE + v * LANES;
#pragma GCC unroll 2
      for (int k = 0; k < 2; k++) {
        if (q.to[k] == nullptr) continue;
        store(q.to[k] + at, y[k][0]);
        if (2 * i + 1 < q.columns) store(q.to[k] + at + WIDE, y[k][1]);
      }
    }
    q.again[i] = !good, all = all && good;
  }
  return all;
}
bool results(const QuadRow &q) { return q.wide ? quads<2>(q) : quads<1>(q); }

constexpr WinogradTables winograd_tables() { return {lay_strip, windows, kernels, results}; }
