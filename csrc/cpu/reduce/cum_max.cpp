// CumMax: each element's maximum so far and where it stands. Elements are compared as numbers and copied as bits.
#include "../core/rlx_begin.h"

#include "../elementwise/convert.h"
#include "lines.h"

namespace rlx {
namespace reduce {
namespace {

constexpr int64_t POLL = 1 << 16;  // elements of a line between two looks at whether the run was stopped

// Elements as numbers that compare as they do. A NaN compares with nothing.
template <class T> struct plain_value {
  typedef T V;
  static V of(T x) { return x; }
};
struct f16_value {
  typedef double V;
  static V of(uint16_t x) { return elementwise::f64_from_f16(x); }
};
struct bf16_value {
  typedef double V;
  static V of(uint16_t x) { return elementwise::f64_from_bf16(x); }
};

// One line. best is where the maximum so far stands first; value is the element whose bits it has, since +0 is above -0.
template <class T, class P> void max_line(const T *x, int64_t x_step, T *y, void *index, int64_t at, int64_t y_step, T least, int64_t n, const rlx_CumMaxAttrs &a, uint32_t dtype, const Call &c) {
  typedef typename P::V V;
  int64_t best = -1;
  T value = least;
  for (int64_t i = 0; i < n; i++) {
    if (i % POLL == POLL - 1 && c.stopped()) return;
    const int64_t k = a.reverse != 0 ? n - 1 - i : i, old_best = best;
    const T here = x[k * x_step], old_value = value;
    const V v = P::of(here), top = P::of(value);
    if (best < 0 || v > top || (v != v && top == top)) best = k, value = here;
    else if (v == top && v == V(0) && std::memcmp(&here, &value, sizeof(T)) != 0 && !(double(v) < 0) && !__builtin_signbit(double(v))) value = here;
    y[at + k * y_step] = a.exclusive != 0 ? old_value : value;
    put_index(index, dtype, at + k * y_step, a.exclusive != 0 ? old_best : best);
  }
}

template <class T, class P> void max_as(const Call &c, Range r, T least) {
  const rlx_CumMaxAttrs &a = c.attrs<rlx_CumMaxAttrs>();
  const Lines l = lines_of(c.in(0), a.axis);
  for (Walk<2> w = l.walk(r.begin, r.end); w.next();)
    for (int64_t i = 0; i < w.n && !c.stopped(); i++)
      max_line<T, P>(c.in_ptr<T>(0) + w.at[0] + i * w.step[0], l.x_step, c.out_ptr<T>(0), c.out_data[1], w.at[1] + i * w.step[1], l.y_step, least, l.length, a, c.out(1).dtype, c);
}

}  // namespace

void cum_max(const Call &c, Range r) {
  switch (c.in(0).dtype) {
    case RLX_F32: return max_as<float, plain_value<float>>(c, r, -INFINITY);
    case RLX_F64: return max_as<double, plain_value<double>>(c, r, -double(INFINITY));
    case RLX_F16: return max_as<uint16_t, f16_value>(c, r, 0xfc00);
    case RLX_BF16: return max_as<uint16_t, bf16_value>(c, r, 0xff80);
    case RLX_I8: return max_as<int8_t, plain_value<int8_t>>(c, r, INT8_MIN);
    case RLX_I16: return max_as<int16_t, plain_value<int16_t>>(c, r, INT16_MIN);
    case RLX_I32: return max_as<int32_t, plain_value<int32_t>>(c, r, INT32_MIN);
    case RLX_I64: return max_as<int64_t, plain_value<int64_t>>(c, r, INT64_MIN);
    case RLX_U8: return max_as<uint8_t, plain_value<uint8_t>>(c, r, 0);
    case RLX_U16: return max_as<uint16_t, plain_value<uint16_t>>(c, r, 0);
    case RLX_U32: return max_as<uint32_t, plain_value<uint32_t>>(c, r, 0);
    default: return max_as<uint64_t, plain_value<uint64_t>>(c, r, 0);
  }
}

}  // namespace reduce
}  // namespace rlx
