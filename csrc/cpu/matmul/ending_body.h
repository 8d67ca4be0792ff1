// ending_body.h: a row of a product through its scaling. Text for the anonymous namespace of an instruction set, after vec_<isa>.h.

constexpr int SCALED = 4;  // vectors of the row for which a step is chosen once

// N vectors from element j of the row on. PART: the one vector has n elements.
template <int N, bool PART, bool CODES> RLX_FN void scale_vectors(const Scaling &s, const float *const *operands, const float *x, float *y, int64_t j, int n) {
  vf v[N];
  for (int k = 0; k < N; k++) {
    v[k] = PART ? load_part(x + j, n) : load(x + j + k * LANES);
    if (CODES) v[k] = to_f(bits(v[k]));
  }
  for (int i = 0; i < s.steps; i++) {
    const ScaleStep &step = s.step[i];
    vf w[N];
    if (step.column == 0)
      for (int k = 0; k < N; k++) w[k] = splat<vf>(*operands[i]);
    else
      for (int k = 0; k < N; k++) w[k] = PART ? load_part(operands[i] + j, n) : load(operands[i] + j + k * LANES);
    if (step.add)
      for (int k = 0; k < N; k++) v[k] = v[k] + w[k];
    else
      for (int k = 0; k < N; k++) v[k] = v[k] * w[k];
  }
  for (int k = 0; k < N; k++)
    if (PART) store_part(y + j, v[k], n);
    else store(y + j + k * LANES, v[k]);
}

template <bool CODES> RLX_FN void scale_row_of(const Scaling &s, const float *const *operands, const float *x, float *y, int64_t n) {
  int64_t j = 0;
  for (; j + SCALED * LANES <= n; j += SCALED * LANES) scale_vectors<SCALED, false, CODES>(s, operands, x, y, j, 0);
  for (; j + LANES <= n; j += LANES) scale_vectors<1, false, CODES>(s, operands, x, y, j, 0);
  if (j < n) scale_vectors<1, true, CODES>(s, operands, x, y, j, int(n - j));
}

void scale_row(const Scaling &s, const float *const *operands, const void *x, float *y, int64_t n) {
  (s.codes ? scale_row_of<true> : scale_row_of<false>)(s, operands, static_cast<const float *>(x), y, n);
}
