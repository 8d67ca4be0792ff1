// ScatterAdd and GatherBackward: sums of slices by target. The slices of each target are listed in the order of the indices, then every
// row of the result is written once: base or zero, plus its slices in that order. So the rows are independent, and the bits the same
// for any number of threads. f32 and c64 sum in f64, f16 and bf16 in f32, each rounding once; integers wrap. Bound: one rounding of the
// sum in the wider format.
#include "../core/rlx_begin.h"

#include "index.h"

namespace rlx {
namespace index {
namespace {

#include "../core/vec_generic.h"

constexpr int64_t BLOCK = 512;        // elements that are summed at a time
constexpr int64_t POLL = 4096;        // rows added to a block between two looks at whether the run was stopped
constexpr int64_t GRAIN_BYTES = 16384;

// The slices of a row: k = first, then next[k] until it is negative.
struct List {
  int64_t first;
  const int64_t *next;
};

template <class T> struct Plain {
  typedef T Element;
  typedef T Sum;
  static RLX_FN void widen(T *to, const T *x, int64_t n) { std::memcpy(to, x, size_t(n) * sizeof(T)); }
  static RLX_FN void add(T *sum, const T *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) sum[i] = T(sum[i] + x[i]);
  }
  static RLX_FN void narrow(T *y, const T *sum, int64_t n) { std::memcpy(y, sum, size_t(n) * sizeof(T)); }
};

struct Single {
  typedef float Element;
  typedef double Sum;
  static RLX_FN void widen(double *to, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = double(x[i]);
  }
  static RLX_FN void add(double *sum, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) sum[i] += double(x[i]);
  }
  static RLX_FN void narrow(float *y, const double *sum, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = float(sum[i]);
  }
};

RLX_FN float of_bits(uint32_t b) {
  float f;
  std::memcpy(&f, &b, 4);
  return f;
}

template <bool Brain> struct Half {
  typedef uint16_t Element;
  typedef float Sum;
  // By bits and without a branch, so that the loops below become vectors. f16: the 15 low bits, moved up, are the value times 2^-112; an
  // exponent of all ones becomes that of f32.
  static RLX_FN float value(uint16_t h) {
    if (Brain) return of_bits(uint32_t(h) << 16);
    const uint32_t magnitude = uint32_t(h & 0x7fff) << 13, sign = uint32_t(h & 0x8000) << 16;
    const float finite = of_bits(magnitude) * 0x1p112f;
    uint32_t bits;
    std::memcpy(&bits, &finite, 4);
    return of_bits((magnitude >= 0x0f800000 ? magnitude | 0x7f800000 : bits) | sign);
  }
  static RLX_FN void widen(float *to, const uint16_t *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = value(x[i]);
  }
  static RLX_FN void add(float *sum, const uint16_t *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) sum[i] += value(x[i]);
  }
  static RLX_FN void narrow(uint16_t *y, const float *sum, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
      if (Brain) store_bf16(y + i, load(sum + i));
      else store_f16(y + i, load(sum + i));
    }
    if (i == n) return;
    const vf tail = load_part(sum + i, int(n - i));
    if (Brain) store_bf16_part(y + i, tail, int(n - i));
    else store_f16_part(y + i, tail, int(n - i));
  }
};

// y = base (null: zeros) plus the listed rows of u, over n elements.
template <class K> void sum_rows(const Call &c, typename K::Element *y, const typename K::Element *base, const typename K::Element *u, int64_t n, List list) {
  if (list.first < 0) {
    if (base == nullptr) std::memset(y, 0, size_t(n) * sizeof *y);
    else std::memcpy(y, base, size_t(n) * sizeof *y);
    return;
  }
  typename K::Sum sum[BLOCK];
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int64_t m = n - at < BLOCK ? n - at : BLOCK;
    if (base == nullptr) std::memset(sum, 0, size_t(m) * sizeof *sum);
    else K::widen(sum, base + at, m);
    int64_t rows = 0;
    for (int64_t k = list.first; k >= 0; k = list.next[k]) {
      K::add(sum, u + k * n + at, m);
      if (++rows % POLL == 0 && c.stopped()) return;
    }
    K::narrow(y + at, sum, m);
  }
}

struct Segments {
  const Call &c;
  const int64_t *first, *next;
  int64_t n, size, run;  // slices, targets, elements of a slice
};

template <class K> void sum_units(const Segments &s, int64_t begin, int64_t end) {
  typedef typename K::Element T;
  const T *u = s.c.in_ptr<T>(0), *base = s.c.has(2) ? s.c.in_ptr<T>(2) : nullptr;
  T *y = s.c.out_ptr<T>(0);
  for (int64_t r = begin; r < end && !s.c.stopped(); r++) {
    const int64_t o = r / s.size, t = r % s.size;
    sum_rows<K>(s.c, y + r * s.run, base == nullptr ? nullptr : base + r * s.run, u + o * s.n * s.run, s.run, List{s.first[t], s.next});
  }
}

typedef void (*Units)(const Segments &, int64_t, int64_t);

Units units_of(uint32_t dtype) {
  switch (dtype) {
    case RLX_F16: return sum_units<Half<false>>;
    case RLX_BF16: return sum_units<Half<true>>;
    case RLX_F32: case RLX_C64: return sum_units<Single>;  // a sum of complex numbers is two sums
    case RLX_F64: return sum_units<Plain<double>>;
    default: break;
  }
  switch (rlx_dtype_sizes[dtype]) {
    case 1: return sum_units<Plain<uint8_t>>;
    case 2: return sum_units<Plain<uint16_t>>;
    case 4: return sum_units<Plain<uint32_t>>;
    default: return sum_units<Plain<uint64_t>>;
  }
}

}  // namespace

// The indices, the next slice of each slice, and the first one of each target.
int32_t segments_prepare(Prepare &p) {
  const int64_t size = static_cast<const rlx_SegmentAttrs *>(p.cmd->attrs)->size;
  if (p.cmd->out[0].count != 0 && size > INT64_MAX / 64) return RLX_NO_MEMORY;
  p.cmd->scratch = 16 * p.cmd->in[1].count + (p.cmd->out[0].count == 0 ? 0 : 8 * size);
  return RLX_OK;
}

// y = base or zeros; y[.., index[i], ..] += u[.., i, ..] along axis. GatherBackward is the same with the axes of index taken as one, and
// without a base. Operands are contiguous.
void segments(const Call &c, Range) {
  const rlx_SegmentAttrs &a = c.attrs<rlx_SegmentAttrs>();
  const Operand &y = c.out(0);
  const int axis = int(wrap_axis(a.axis, y.rank));
  const int64_t n = c.in(1).count;
  int64_t *index = static_cast<int64_t *>(c.scratch), *next = index + n, *first = next + n;
  if (!load_indices(c, 1, a.size, 1, index) || y.count == 0) return;
  for (int64_t t = 0; t < a.size; t++) first[t] = -1;
  for (int64_t i = n - 1; i >= 0; i--) {
    next[i] = first[index[i]];
    first[index[i]] = i;
  }
  const int64_t outer = product(y.dims, 0, axis), pairs = y.dtype == RLX_C64 ? 2 : 1;
  const Segments s = {c, first, next, n, a.size, pairs * product(y.dims, axis + 1, int(y.rank))};
  const int64_t row_bytes = product(y.dims, axis + 1, int(y.rank)) * rlx_dtype_sizes[y.dtype];
  const int64_t row_cost = row_bytes * (1 + n / a.size) + 16;
  const Units units = units_of(y.dtype);
  each(c, outer * a.size, row_cost < GRAIN_BYTES ? GRAIN_BYTES / row_cost : 1, [&](int64_t begin, int64_t end) { units(s, begin, end); });
}

}  // namespace index
}  // namespace rlx
