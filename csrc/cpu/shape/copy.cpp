#include "../core/rlx_begin.h"
#include "../core/kernel.h"

namespace rlx::shape {
namespace {

// One run along the last axis: n elements of type T, step elements apart in x.
template <class T> void run(T *y, const T *x, int64_t n, int64_t step) {
  if (step == 0) {
    const T v = *x;
    for (int64_t i = 0; i < n; i++) y[i] = v;
    return;
  }
  for (int64_t i = 0; i < n; i++) y[i] = x[i * step];
}

template <class T> void copy_as(const Call &c, Range r) {
  const T *x = c.in_ptr<T>(0);
  T *y = c.out_ptr<T>(0) + r.begin;
  int64_t dims[RLX_MAX_RANK], strides[1][RLX_MAX_RANK];
  const Operand &in = c.in(0);
  for (uint32_t d = 0; d < in.rank; d++) dims[d] = in.dims[d], strides[0][d] = in.strides[d];
  const int rank = merge_axes(dims, int(in.rank), strides, 1);
  for (Walk<1> w(dims, rank, strides, r.begin, r.end); w.next(); y += w.n) {
    if (w.step[0] == 1) std::memcpy(y, x + w.at[0], size_t(w.n) * sizeof(T));
    else run(y, x + w.at[0], w.n, w.step[0]);
  }
}

}  // namespace

// y[i...] = x[i...]: bits move unchanged, so a type is its size.
void copy(const Call &c, Range r) {
  switch (rlx_dtype_sizes[c.out(0).dtype]) {
    case 1: return copy_as<uint8_t>(c, r);
    case 2: return copy_as<uint16_t>(c, r);
    case 4: return copy_as<uint32_t>(c, r);
    default: return copy_as<uint64_t>(c, r);
  }
}

}  // namespace rlx::shape
