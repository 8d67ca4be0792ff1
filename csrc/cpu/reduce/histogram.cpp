// Histogram. Every slot of the pool counts on its own; counts are integers, so their sum does not depend on who counted what.
#include "../core/rlx_begin.h"

#include "../elementwise/convert.h"
#include "../core/kernel.h"

namespace rlx {
namespace reduce {
namespace {

constexpr int64_t GRAIN = 1 << 14;
constexpr int64_t SCRATCH = 1 << 24;  // bytes of counts, but for the first slot

struct Bins {
  int64_t n;
  double lo, hi, width;

  explicit Bins(const rlx_HistogramAttrs &a) : n(a.num_bins), lo(a.min), hi(a.max), width((a.max - a.min) / double(a.num_bins)) {
    if (::fabs(width) == double(INFINITY)) width = hi / double(n) - lo / double(n);  // hi - lo is beyond f64
  }
  double edge(int64_t b) const { return b == n ? hi : lo + double(b) * width; }
};

// The order of an element and a number of f64: negative, 0 or positive; exact for integers, which f64 might round.
inline int order(double x, double e) { return x < e ? -1 : x > e ? 1 : 0; }
inline int order(int64_t x, double e) {
  const double whole = ::floor(e);
  if (whole < -0x1p63) return 1;
  if (whole >= 0x1p63) return -1;
  const int64_t i = int64_t(whole);
  return x < i ? -1 : x > i ? 1 : whole == e ? 0 : -1;
}
inline int order(uint64_t x, double e) {
  const double whole = ::floor(e);
  if (whole < 0) return 1;
  if (whole >= 0x1p64) return -1;
  const uint64_t i = uint64_t(whole);
  return x < i ? -1 : x > i ? 1 : whole == e ? 0 : -1;
}

// The bin of x, -1 for none: the last one whose lower edge is not above x. Division nearly always finds it; rounding may miss by one,
// or by many where edges coincide.
template <class V> int64_t bin_of(const Bins &b, V x) {
  if (x != x || order(x, b.lo) < 0 || order(x, b.hi) > 0) return -1;
  const double place = (double(x) - b.lo) / b.width;
  const int64_t guess = !(place > 0) ? 0 : place < double(b.n - 1) ? int64_t(place) : b.n - 1;
  if (order(x, b.edge(guess)) >= 0 && (guess == b.n - 1 || order(x, b.edge(guess + 1)) < 0)) return guess;
  int64_t from = 0, to = b.n;  // edge(from) <= x, and edge(to) > x or to is the end
  while (to - from > 1) {
    const int64_t mid = from + (to - from) / 2;
    if (order(x, b.edge(mid)) >= 0) from = mid;
    else to = mid;
  }
  return from;
}

template <class T, class V, V (*OF)(T)> void count(const Call &c, const Bins &b, int64_t begin, int64_t end, int64_t *counts) {
  int64_t strides[1][RLX_MAX_RANK], dims[RLX_MAX_RANK];
  const Operand &x = c.in(0);
  for (int d = 0; d < int(x.rank); d++) dims[d] = x.dims[d], strides[0][d] = x.strides[d];
  const int rank = merge_axes(dims, int(x.rank), strides, 1);
  for (Walk<1> w(dims, rank, strides, begin, end); w.next();) {
    const T *p = c.in_ptr<T>(0) + w.at[0];
    for (int64_t i = 0; i < w.n; i++)
      if (const int64_t k = bin_of(b, OF(p[i * w.step[0]])); k >= 0) counts[k]++;
  }
}

template <class T, class V> V value(T x) { return V(x); }

void count_any(const Call &c, const Bins &b, int64_t begin, int64_t end, int64_t *n) {
  switch (c.in(0).dtype) {
    case RLX_F16: return count<uint16_t, double, elementwise::f64_from_f16>(c, b, begin, end, n);
    case RLX_BF16: return count<uint16_t, double, elementwise::f64_from_bf16>(c, b, begin, end, n);
    case RLX_F32: return count<float, double, value<float, double>>(c, b, begin, end, n);
    case RLX_F64: return count<double, double, value<double, double>>(c, b, begin, end, n);
    case RLX_I8: return count<int8_t, double, value<int8_t, double>>(c, b, begin, end, n);
    case RLX_I16: return count<int16_t, double, value<int16_t, double>>(c, b, begin, end, n);
    case RLX_I32: return count<int32_t, double, value<int32_t, double>>(c, b, begin, end, n);
    case RLX_I64: return count<int64_t, int64_t, value<int64_t, int64_t>>(c, b, begin, end, n);
    case RLX_U8: return count<uint8_t, double, value<uint8_t, double>>(c, b, begin, end, n);
    case RLX_U16: return count<uint16_t, double, value<uint16_t, double>>(c, b, begin, end, n);
    case RLX_U32: return count<uint32_t, double, value<uint32_t, double>>(c, b, begin, end, n);
    default: return count<uint64_t, uint64_t, value<uint64_t, uint64_t>>(c, b, begin, end, n);
  }
}

struct Job {
  const Call *call;
  Bins bins;
};

void some(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  count_any(*j.call, j.bins, begin, end, static_cast<int64_t *>(j.call->scratch) + slot * j.bins.n);
}

}  // namespace

// detail[0]: how many slots have counts.
int32_t histogram_prepare(Prepare &q) {
  const int64_t bytes = static_cast<const rlx_HistogramAttrs *>(q.cmd->attrs)->num_bins * 8;
  int64_t slots = q.max_threads < SCRATCH / bytes ? q.max_threads : SCRATCH / bytes;
  if (slots < 1) slots = 1;
  q.cmd->detail[0] = slots, q.cmd->scratch = slots * bytes;
  return RLX_OK;
}

void histogram(const Call &c, Range) {
  Job j = {&c, Bins(c.attrs<rlx_HistogramAttrs>())};
  const int64_t n = j.bins.n, total = c.in(0).count, slots = c.cmd->detail[0];
  int64_t *counts = static_cast<int64_t *>(c.scratch);
  std::memset(counts, 0, size_t(slots * n) * 8);
  if (slots >= c.threads()) c.parallel(total, GRAIN, some, &j);
  else
    for (int64_t i = 0; i < total && !c.stopped(); i += GRAIN) some(&j, i, i + GRAIN < total ? i + GRAIN : total, 0);
  for (int64_t b = 0; b < n; b++) {
    int64_t s = 0;
    for (int64_t k = 0; k < slots; k++) s += counts[k * n + b];
    switch (c.out(0).dtype) {
      case RLX_I32: c.out_ptr<int32_t>(0)[b] = int32_t(s); break;
      case RLX_F32: c.out_ptr<float>(0)[b] = float(s); break;
      default: c.out_ptr<int64_t>(0)[b] = s; break;
    }
  }
}

}  // namespace reduce
}  // namespace rlx
