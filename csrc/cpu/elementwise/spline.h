// spline.h: sums of Gaussian bumps for f32, f16 and bf16, in f32. Text for the namespace of an instruction set: see loops.h.

// The sum over the bumps for one vector of x, whose first element belongs to channel c.
template <bool Slope> RLX_FN vf spline_sum(const Spline &s, vf x, int64_t c) {
  const vf h = splat<vf>(s.step);
  vf sum = splat<vf>(0.0);
  for (int64_t g = 0; g < s.bumps; g++) {
    const vf u = (x - splat<vf>(double(s.centers[g]))) * h;
    vf e = exp(-(u * u));
    if (Slope) e = u * e;
    sum = sum + load(s.table + g * s.pitch + c) * e;
  }
  return Slope ? sum * (splat<vf>(-2.0) * h) : sum;
}

template <class H, bool Slope> RLX_FLAT void spline_loop(const Spline &s, int64_t begin, int64_t end) {
  typedef typename H::type T;
  const T *x = static_cast<const T *>(s.x), *dy = static_cast<const T *>(s.dy);
  T *y = static_cast<T *>(s.y);
  int64_t c = begin % s.channels;
  for (int64_t i = begin; i < end; i += LANES) {
    const bool whole = end - i >= LANES;
    const int left = whole ? LANES : int(end - i);
    vf r = spline_sum<Slope>(s, whole ? H::get(x + i) : H::get_part(x + i, left), c);
    if (Slope) r = r * (whole ? H::get(dy + i) : H::get_part(dy + i, left));
    if (whole) H::put(y + i, r);
    else H::put_part(y + i, r, left);
    c = (c + LANES) % s.channels;
  }
}

// One vector of channels from c on, one bump: the rows in order, summed in f64, since a batch has many of them.
template <class H> RLX_FN vf spline_column(const Spline &s, int64_t c, int left, double center) {
  typedef typename H::type T;
  const T *x = static_cast<const T *>(s.x) + c, *dy = static_cast<const T *>(s.dy) + c;
  const vf t = splat<vf>(center), h = splat<vf>(s.step);
  vd total = splat<vd>(0.0);
  for (int64_t at = 0, r = 0; r < s.rows; r++, at += s.channels) {
    const vf xv = left == LANES ? H::get(x + at) : H::get_part(x + at, left);
    const vf dv = left == LANES ? H::get(dy + at) : H::get_part(dy + at, left);
    const vf u = (xv - t) * h;
    total = total + wide(dv) * wide(exp(-(u * u)));
  }
  return narrow(total);
}

// Units are vectors of channels, so that the order of a sum depends on nothing.
template <class H> RLX_FLAT void spline_coeff_loop(const Spline &s, int64_t begin, int64_t end) {
  typedef typename H::type T;
  for (int64_t unit = begin; unit < end; unit++) {
    const int64_t c = unit * s.vector;
    for (int64_t k = c; k < s.channels && k < c + s.vector; k += LANES) {
      const int64_t rest = s.channels - k;
      const int left = rest < LANES ? int(rest) : LANES;
      for (int64_t g = 0; g < s.bumps; g++) {
        alignas(64) T sums[LANES];
        H::put(sums, spline_column<H>(s, k, left, s.low + double(g) / s.step));
        for (int l = 0; l < left; l++) static_cast<T *>(s.y)[(k + l) * s.bumps + g] = sums[l];
      }
    }
  }
}
