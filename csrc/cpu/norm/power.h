// power.h: 2^t of what softmax leaves of scores. Text for the anonymous namespace of an instruction set, after vec_math.h; 16 lanes have power_avx512.h.

// 2^t for t <= 0; 0 from -150 on. The reduction t - n is exact; 2^r = 1 + r P(r) on |r| <= 0.5: 2^-27.
RLX_FN vf power(vf t) {
  const vf y = raw_max(splat<vf>(-152.0), t), magic = splat<vf>(ROUND_MAGIC);
  const vf n = (y + magic) - magic, r = y - n;
  const vf p = poly(r, 0.693147182, 0.240226492, 0.0555035882, 0.00961823296, 0.0013392301, 0.000154368172);
  return scale2(fma(p, r, splat<vf>(1.0)), n);
}
