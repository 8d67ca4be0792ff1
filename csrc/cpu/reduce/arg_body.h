// arg_body.h: ArgMax and ArgMin of f32, f16 and bf16. Text for the anonymous namespace of an instruction set, after forms.h.

struct Found {
  float value;
  int64_t index;
};

// The least of n elements; NaN if one is.
template <class F> float row_min(const typename F::T *x, int64_t n) {
  vf a = splat<vf>(INFINITY);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) a = min(a, F::get(x + i));
  if (const int left = int(n - i); left > 0) a = min(a, keep(F::get_part(x + i, left), left, splat<vf>(INFINITY)));
  return -hmax(-a);
}

RLX_FN vm hits(vf x, vf value) { return mor(eq(x, value), mand(ne(x, x), ne(value, value))); }

// The place of the extreme of n >= 1 contiguous elements: first its value, then a search for it from one end.
template <class F> Found find(const typename F::T *x, int64_t n, bool least, bool last) {
  const float value = least ? row_min<F>(x, n) : row_max<F>(x, n);
  const vf v = splat<vf>(value);
  const int64_t whole = n / LANES * LANES;
  const int left = int(n - whole);
  const unsigned valid = (1u << left) - 1u;
  if (last) {
    if (left > 0)
      if (const unsigned m = mask_bits(hits(F::get_part(x + whole, left), v)) & valid; m != 0) return {value, whole + 31 - __builtin_clz(m)};
    for (int64_t i = whole - LANES; i >= 0; i -= LANES)
      if (const unsigned m = mask_bits(hits(F::get(x + i), v)); m != 0) return {value, i + 31 - __builtin_clz(m)};
    return {value, 0};
  }
  for (int64_t i = 0; i < whole; i += LANES)
    if (const unsigned m = mask_bits(hits(F::get(x + i), v)); m != 0) return {value, i + __builtin_ctz(m)};
  if (left > 0)
    if (const unsigned m = mask_bits(hits(F::get_part(x + whole, left), v)) & valid; m != 0) return {value, whole + __builtin_ctz(m)};
  return {value, 0};
}

template <class F> int64_t find_strided(const typename F::T *x, const ArgWork &w) {
  if (w.lines.x_step == 1) return find<F>(x, w.lines.length, w.least, w.last).index;
  typename F::T buffer[ARG_TILE];
  Found best = {0, -1};
  for (int64_t k = 0; k < w.lines.length; k += ARG_TILE) {
    const int64_t n = w.lines.length - k < ARG_TILE ? w.lines.length - k : ARG_TILE;
    gather_run(buffer, x + k * w.lines.x_step, n, w.lines.x_step);
    const Found f = find<F>(buffer, n, w.least, w.last);
    if (best.index < 0 || beats(f.value, best.value, w.least, w.last)) best = {f.value, k + f.index};
  }
  return best.index;
}

// Lines that lie beside each other, one a lane.
template <class F> void find_columns(const typename F::T *x, const ArgWork &w, int n, int32_t *index) {
  vf best = n == LANES ? F::get(x) : F::get_part(x, n);
  vi at = splat_i(0);
  for (int64_t k = 1; k < w.lines.length; k++) {
    x += w.lines.x_step;
    const vf v = n == LANES ? F::get(x) : F::get_part(x, n);
    const vm best_nan = ne(best, best), v_nan = ne(v, v);
    vm better = mor(w.least ? lt(v, best) : gt(v, best), mand(v_nan, mnot(best_nan)));
    if (w.last) better = mor(better, hits(v, best));
    else better = mand(better, mnot(best_nan));
    best = select(better, v, best);
    at = select(better, splat_i(int32_t(k)), at);
  }
  store_i(index, at);
}

template <class F> void arg_floats(const Call &c, Range r) {
  const ArgWork w = arg_work(c);
  const typename F::T *x = c.in_ptr<typename F::T>(0);
  const bool columns = w.lines.x_step != 1 && w.lines.length <= INT32_MAX;
  int32_t index[LANES];
  int64_t out = r.begin;
  for (Walk<2> l = w.lines.walk(r.begin, r.end); l.next();)
    for (int64_t i = 0; i < l.n;) {
      if (c.stopped()) return;
      if (columns && l.step[0] == 1) {
        const int n = int(l.n - i < LANES ? l.n - i : LANES);
        find_columns<F>(x + l.at[0] + i, w, n, index);
        for (int j = 0; j < n; j++) put_index(c.out_data[0], w.dtype, out + j, index[j]);
        i += n, out += n;
      } else {
        put_index(c.out_data[0], w.dtype, out++, find_strided<F>(x + l.at[0] + i * l.step[0], w));
        i++;
      }
    }
}
