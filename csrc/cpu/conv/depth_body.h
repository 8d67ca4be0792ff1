// Depthwise rows, written once over the vector types. Text for the anonymous namespace of an instruction set, after vec_<isa>.h,
// span.h or that of the set, and finish_body.h. See depth.h.
#include "halve.h"

// Lane i becomes lane i + 1, and lane 0 that of `in`.
template <class V> RLX_FN V up(V in, V x) {
  if constexpr (LANES == 16) return {__builtin_shufflevector(in.v, x.v, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)};
  else if constexpr (LANES == 8) return {__builtin_shufflevector(in.v, x.v, 0, 8, 9, 10, 11, 12, 13, 14)};
  else return {__builtin_shufflevector(in.v, x.v, 0, 4, 5, 6)};
}
// Lane i + 1 becomes lane i, and the last one lane 0 of `in`.
template <class V> RLX_FN V down(V x, V in) {
  if constexpr (LANES == 16) return {__builtin_shufflevector(x.v, in.v, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)};
  else if constexpr (LANES == 8) return {__builtin_shufflevector(x.v, in.v, 1, 2, 3, 4, 5, 6, 7, 8)};
  else return {__builtin_shufflevector(x.v, in.v, 1, 2, 3, 4)};
}
// What a vector of results sees of rows of x, whose first lane sees column 0 of its window at `row`. A vector at the left end has zeros in front of the
// rows, and one at the right end behind.
template <int K, int S, int B, bool Left, bool Right> struct Sight {
  Span there[S == 1 ? K : 2];
  int64_t left;  // columns from `row` on
  vf half[2];

  RLX_FN Sight(int64_t first, int64_t columns) : left(columns - first) {
#pragma GCC unroll 5
    for (int i = 0; i < (S == 1 ? K : 2); i++) {
      const int at = S == 1 ? i - B : i * LANES;  // columns that the first lane is off
      there[i] = span(lanes_of(-first - at), lanes_of(left - at));
    }
  }
  RLX_FN void look(const float *row) {
    if constexpr (S == 2) {
      const vf a = Right ? load_span(row, there[0]) : load(row), b = Right ? load_span(row + LANES, there[1]) : load(row + LANES);
      half[0] = halve<0>(a, b), half[1] = halve<1>(a, b);
    }
  }
  // Through the kernel position that is `At` columns off, S columns apart.
  template <int At> RLX_FN vf at(const float *row) const {
    constexpr int behind = 2 * LANES + At - 2;
    if constexpr (S == 1) return (Left && At < 0) || Right ? load_span(row + At, there[At + B]) : load(row + At);
    else if constexpr (At < 0) return up(splat<vf>(Left || (Right && left <= At) ? 0 : row[At]), half[At & 1]);
    else if constexpr (At < 2) return half[At];
    else return down(half[At & 1], splat<vf>(!Right || left > behind ? row[behind] : 0));
  }
};

// Columns c on of all rows of results, of which A are under way at a time: so each row of x is read once. Results r are the first to see rows r*SR and on
// of x, and are complete with row kLast of those that results r + A - 1 are the first to see.
template <int K, int SR, int S, int B, bool Left, bool Right> struct DepthStrip {
  static constexpr int A = (K + SR - 1) / SR, kLast = K - 1 - (A - 1) * SR;
  const vf *const kernel;
  const vf bias;
  const int64_t pitch, cols, high, rows;
  const int32_t fn;
  const Span there;
  const float *row, *ahead_x;
  float *y, *ahead_y;
  int64_t top, r = 0;  // the number of `row`; the next results
  Sight<K, S, B, Left, Right> sight;
  vf s[A];             // results r in s[r % A]

  RLX_FN DepthStrip(const DepthRows &d, const vf *k, vf b, int64_t c)
      : kernel(k), bias(b), pitch(d.pitch), cols(d.cols), high(d.size[0]), rows(d.rows), fn(d.finish.fn), there(span(0, lanes_of(d.cols - c))), row(d.x + c * S),
        ahead_x(d.ahead ? d.x + (pitch + c * S) * rows * SR : nullptr), y(d.y + c), ahead_y(d.y + (cols + c) * rows), top(d.top), sight(c * S, d.size[1]) {}

  template <int J, int I, int Kw = 0> RLX_FN void taps() {
    vf a = sight.template at<Kw - B>(row);
#if defined(__GNUC__) && defined(RLX_X86)
    if constexpr (LANES > 4) __asm__("" : "+v"(a.v));  // or it would be loaded once for each use
#endif
#pragma GCC unroll 5
    for (int m = 0; m < A; m++)
      if (I + m * SR < K) s[(J - m + A) % A] = fma(kernel[(I + m * SR) * K + Kw], a, s[(J - m + A) % A]);
    if constexpr (Kw + 1 < K) taps<J, I, Kw + 1>();
  }
  // Row I of those that results r = J modulo A are the first to see. Rows in the padding are left out.
  template <int J, int I> RLX_FN void input() {
    if (uint64_t(top) < uint64_t(high)) sight.look(row), taps<J, I>();
    top++, row += pitch;
  }
  RLX_FN void put(vf sum) {
    sum = sum + bias;
    if (fn != kFinishNone) finish_all<1>(fn, &sum);
    if (Left) store_span(y, sum, there);
    else store(y, sum);
    y += cols;
  }
  RLX_FN void fetch() {
    if (ahead_x == nullptr) return;
#pragma GCC unroll 4
    for (int i = 0; i < SR * S * LANES; i += 16) __builtin_prefetch(ahead_x + i, 0, 2);
    __builtin_prefetch(ahead_y, 1, 2);
    ahead_x += SR * S * LANES, ahead_y += LANES;
  }
  template <int J> RLX_FN bool step() {
    fetch();
    s[J] = splat<vf>(0.0);
    input<J, 0>();
    if constexpr (kLast == 1) input<J, 1>();
    if (r >= A - 1) put(s[(J + 1) % A]);
    if (++r == rows + A - 1) return false;
    if constexpr (SR == 2 && kLast == 0) input<J, 1>();
    if constexpr (J + 1 < A) return step<J + 1>();
    return true;
  }
  RLX_FN void run() {
#pragma GCC unroll 5
    for (int i = 0; i < A; i++) s[i] = splat<vf>(0.0);
    while (step<0>()) {}
  }
};

#if defined(RLX_NEON)
constexpr bool kNeon = true;
#else
constexpr bool kNeon = false;
#endif

// The columns behind the last whole vector, where vectors of half the length reach: wide sets compute them so.
template <int K, int SR, int S, int B> void depth_rest(const DepthRows &d) {
  vf kernel[K * K];
#pragma GCC unroll 25
  for (int i = 0; i < K * K; i++) kernel[i] = splat<vf>(d.kernel[i]);
  DepthStrip<K, SR, S, B, false, true>(d, kernel, has_bias(d.finish) ? bias_of(d.finish, 0) : splat<vf>(-0.0), d.cols - LANES).run();
}

template <int K, int SR, int S, int B> void depth_rows(const DepthRows &d) {
  vf kernel[K * K];
#pragma GCC unroll 25
  for (int i = 0; i < K * K; i++) kernel[i] = splat<vf>(d.kernel[i]);
  const vf bias = has_bias(d.finish) ? bias_of(d.finish, 0) : splat<vf>(-0.0);  // which changes nothing
  DepthStrip<K, SR, S, B, true, true>(d, kernel, bias, 0).run();  // it may be at both ends
  // Vectors before `inner` have all their columns, those that a load of two vectors touches too. The last vector computes some columns once more: they are
  // the same again.
  const int64_t inner = (d.size[1] - (S * LANES + K)) / S, last = d.cols - LANES;
  int64_t c = LANES;
  if constexpr (LANES > 4 || kNeon)  // few without vector instructions: they take long to compile
    for (; c < inner && c <= last; c += LANES) DepthStrip<K, SR, S, B, false, false>(d, kernel, bias, c).run();
#if defined(RLX_DEPTH_HALF)
  for (; c + half::LANES < d.cols; c += LANES) DepthStrip<K, SR, S, B, false, true>(d, kernel, bias, last < c ? last : c).run();
  if (c < d.cols) return half::depth_rest<K, SR, S, B>(d);
#endif
  for (; c < d.cols; c += LANES) DepthStrip<K, SR, S, B, false, true>(d, kernel, bias, last < c ? last : c).run();
}

template <int K> constexpr DepthTable depth_table() { return {{depth_rows<K, 1, 1, K / 2>, depth_rows<K, 2, 1, K / 2>, depth_rows<K, 2, 2, K / 2>, depth_rows<K, 2, 2, K / 2 - 1>}}; }
