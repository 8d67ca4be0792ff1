// vec_math_tanh.h: tanh of f32. Part of vec_math.h, after vec_math_exp.h.
//
// 16 lanes: tanh x = x F(|x|) for F(a) = tanh(a) / a, which is a polynomial in each of 32 columns of b = a + 2.875: column n has b with n in
// the lowest exponent bit and the four highest mantissa bits, over [2.875, 11.5). u is the distance of b from the middle of its column;
// row k of the table has the coefficients of power k. The fits minimise the relative error: 2^-23.7; the constant of the last column is the
// next f32 above, so that what is held at 8.5 gives 1. 2.5 ULP.
alignas(64) constexpr float TANH_COLUMNS[5][32] = {
    {0.186038539, 0.170210078, 0.156861842, 0.145454228, 0.135593116, 0.12698409, 0.119402982, 0.998699963,
     0.988443732, 0.968671143, 0.940731585, 0.906364381, 0.867452443, 0.825805604, 0.783009648, 0.740347147,
     0.678626895, 0.603432178, 0.537928879, 0.482013792, 0.434678286, 0.394645721, 0.360676259, 0.331684917,
     0.306768507, 0.285193682, 0.266371846, 0.249832332, 0.235198393, 0.222167388, 0.210494801, 0.199981838},
    {-0.0345958136, -0.0289665293, -0.0246039387, -0.0211563464, -0.0183852855, -0.0161248855, -0.0142570427, -0.0415366739,
     -0.121557765, -0.19297348, -0.251705885, -0.29562819, -0.324529111, -0.339695275, -0.343328685, -0.337991834,
     -0.318570793, -0.281817943, -0.242352992, -0.205681756, -0.173872709, -0.147221431, -0.125258893, -0.107272945,
     -0.0925454572, -0.080443643, -0.0704431757, -0.062122833, -0.0551493652, -0.049260851, -0.0442516655, -0.0399600491},
    {0.00642047497, 0.00492510246, 0.00385762076, 0.0030766658, 0.00249270722, 0.00204753107, 0.00170230807, -0.330220014,
     -0.306182384, -0.262392312, -0.206052676, -0.145214692, -0.0868907869, -0.0359442718, 0.00514076417, 0.0358666256,
     0.0645577535, 0.0788337737, 0.0772644877, 0.0687862486, 0.0583835803, 0.0483941212, 0.0397006199, 0.0324852578,
     0.0266362429, 0.0219455492, 0.0181961991, 0.0151956985, 0.0127849793, 0.0108372131, 0.00925312657, 0.00795569643},
    {-0.0011868329, -0.000836547581, -0.000605039415, -0.000447832193, -0.000338335143, -0.0002602819, -0.000203470016, 0.0329739526,
     0.092901513, 0.136748597, 0.15939489, 0.161324993, 0.147161156, 0.123262115, 0.0956255496, 0.0687139779,
     0.0352952741, 0.00622210698, -0.00805672817, -0.0132694244, -0.0138807315, -0.0125408955, -0.0106020812, -0.00867237151,
     -0.00698162103, -0.00558479037, -0.00446442235, -0.00357884029, -0.00288309949, -0.00233702012, -0.00190743024, -0.00156801776},
    {0.000215410357, 0.000140574601, 9.42922488e-05, 6.49291251e-05, 4.58038994e-05, 3.30268449e-05, 2.42863407e-05, 0.129841074,
     0.106438518, 0.0672039911, 0.0235340279, -0.0142739117, -0.0402712747, -0.0533438846, -0.0557331368, -0.0510398783,
     -0.0380134881, -0.0206801947, -0.00881143007, -0.00231495267, 0.00068321405, 0.00178931036, 0.00199543289, 0.00182888878,
     0.0015440936, 0.00125212746, 0.000994906412, 0.00078309048, 0.000614521501, 0.000482712028, 0.000380502199, 0.000301461696},
};
constexpr int TANH_SHIFT = 19;  // of the mantissa bits that choose no column

// A template, since lookup2 is there for 16 lanes alone.
template <class I> RLX_FN vf tanh_column(int power, I n) { return lookup2(TANH_COLUMNS[power], n); }

// U vectors side by side: each alone is one long chain of operations.
template <int U, class V> RLX_FN void tanh_by_table(V *x) {
  V a[U], u[U], p[U];
  vi n[U];
  for (int i = 0; i < U; i++) {
    a[i] = raw_min(splat<vf>(8.5), abs(x[i]));
    const vf b = a[i] + splat<vf>(2.875);
    const vf middle = from_bits((bits(b) & splat_i(-(1 << TANH_SHIFT))) | splat_i(1 << (TANH_SHIFT - 1)));
    u[i] = a[i] - (middle - splat<vf>(2.875));  // exact, as b is not
    n[i] = shr<TANH_SHIFT>(bits(b));
  }
  for (int i = 0; i < U; i++) p[i] = tanh_column(4, n[i]);
  for (int k = 3; k >= 0; k--)
    for (int i = 0; i < U; i++) p[i] = fma(p[i], u[i], tanh_column(k, n[i]));
  for (int i = 0; i < U; i++) x[i] = copysign(a[i] * p[i], x[i]);
}

// e / (e + 2) for e = e^2|x| - 1, 1 from x = 9.02 on. The reduction is that of exp for 2|x|, in units of |x|: n comes from 2 log2(e) |x|, and
// |r| <= 0.1734; what a fused multiply-add leaves of n LN2_LO is beyond the digits of e. e^2r - 1 = 2r + r^2 P(r): 2^-26. 2.5 ULP.
template <int U, class V> RLX_FN void tanh_by_exp(V *x) {
  const vf magic = splat<vf>(ROUND_MAGIC), one = splat<vf>(1.0);
  V t[U], r[U], p[U];
  for (int i = 0; i < U; i++) {
    const vf a = raw_min(splat<vf>(10.0), abs(x[i]));
    t[i] = fma(a, splat<vf>(2 * LOG2_E), magic);
    const vf n = t[i] - magic;
    r[i] = LANES > 4 ? fma(n, splat<vf>(-0.34657359), a) : fma(n, splat<vf>(-0.5 * LN2_LO), fma(n, splat<vf>(-0.5 * LN2_HI), a));
    p[i] = splat<vf>(0.0888479725);
  }
  constexpr double c[4] = {1.99999988, 1.33332348, 0.66667527, 0.267732292};
  for (int k = 3; k >= 0; k--)
    for (int i = 0; i < U; i++) p[i] = fma(p[i], r[i], splat<vf>(c[k]));
  for (int i = 0; i < U; i++) {
    p[i] = fma(r[i] * r[i], p[i], r[i] + r[i]);
    const vf s = pow2i(bits(t[i]) - bits(magic)), e = fma(s, p[i], s - one);
    x[i] = copysign(e / (e + splat<vf>(2.0)), x[i]);
  }
}

template <int U, class V> RLX_FN void tanh_of(V *x) {
  if constexpr (LANES == 16) tanh_by_table<U>(x);
  else tanh_by_exp<U>(x);
}
RLX_FN vf tanh(vf x) {
  tanh_of<1>(&x);
  return x;
}
