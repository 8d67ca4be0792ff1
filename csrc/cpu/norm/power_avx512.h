// power_avx512.h: 2^t of what softmax leaves of scores. Text for the anonymous namespace of 16 lanes, after vec_math.h.

// 2^t for t <= 8; 0 from -150 on, also of -infinity. 2^t = 2^whole root 2^r: root, one of ROOTS, by the bits of t behind the point of which there
// are four in t + magic rounded down, 0 <= r < 1/16, and 2^r = 1 + r P(r): 2^-28.
RLX_FN vf power(vf t) {
  constexpr int DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  const __m512i i = _mm512_castps_si512(_mm512_add_round_ps(t.v, _mm512_set1_ps(float(ROUND_MAGIC / 16)), DOWN));
  const vf r = {_mm512_reduce_ps(t.v, 4 << 4 | DOWN)}, root = lookup(ROOTS, {i});
  const vf q = r * poly(r, 0.6931476, 0.240184247, 0.0566698946);
  return scale2(fma(root, q, root), t);
}
