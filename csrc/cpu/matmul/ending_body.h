// ending_body.h: a row of a product of codes through its scaling. Text for the anonymous namespace of an instruction set, after vec_<isa>.h.

constexpr int SCALED = 4;  // vectors of the row for which a step is chosen once

// N vectors from element j of the row on. PART: the one vector has n elements.
template <int N, bool PART> RLX_FN void scale_vectors(const Scaling &s, const float *const *operands, const int32_t *x, float *y, int64_t j, int n) {
  vf v[N];
  for (int k = 0; k < N; k++) v[k] = to_f(PART ? bits(load_part(reinterpret_cast<const float *>(x + j), n)) : load_i(x + j + k * LANES));
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

void scale_row(const Scaling &s, const float *const *operands, const int32_t *x, float *y, int64_t n) {
  int64_t j = 0;
  for (; j + SCALED * LANES <= n; j += SCALED * LANES) scale_vectors<SCALED, false>(s, operands, x, y, j, 0);
  for (; j + LANES <= n; j += LANES) scale_vectors<1, false>(s, operands, x, y, j, 0);
  if (j < n) scale_vectors<1, true>(s, operands, x, y, j, int(n - j));
}
