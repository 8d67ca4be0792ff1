// index.h: reading index operands. X1 and X2 of the family: indices of any integer dtype or integers encoded as f32, addressed in 64 bits,
// legal in [-d, d). The element that an error names is the first bad one in row-major order, whatever the threads do: all indices are read
// before anything is written.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"
#include "../shape/box.h"

namespace rlx {
namespace index {

using shape::Box;
using shape::box_fill;
using shape::box_move;
using shape::box_of;
using shape::box_run;
using shape::box_to;
using shape::dense_strides;
using shape::each;
using shape::Moves;
using shape::wrap_axis;

// What stands for a value that is no integer; no length admits it as an index either.
constexpr int64_t NO_INDEX = INT64_MIN;
constexpr int64_t CHUNK = 256;       // indices that are read at a time
constexpr int64_t READ_GRAIN = 8192;

// Elements [begin, end) of operand o, row-major, as 64-bit integers. Those of u64 beyond 2^63 become the largest.
void read_indices(const Operand &o, const void *data, int64_t begin, int64_t end, int64_t *out);
// n of them in a line, step elements apart, from element `at` on.
void read_line(uint32_t dtype, const void *data, int64_t at, int64_t step, int64_t n, int64_t *out);

// Adds d to negatives; returns the first place that is out of range, or n. The check is the sign of v or of d-1-v.
inline int64_t wrap_indices(int64_t *v, int64_t n, int64_t d) {
  uint64_t bad = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t w = v[i] + ((v[i] >> 63) & d);
    bad |= uint64_t(w) | (uint64_t(d - 1) - uint64_t(w));
    v[i] = w;
  }
  if (bad >> 63 == 0) return n;
  int64_t i = 0;
  while (uint64_t(v[i]) < uint64_t(d)) i++;
  return i;
}

// Fails with C8 if element i of operand k is no integer, and returns whether it did.
bool fail_fraction(const Call &c, int k, int64_t i);
// Fails with C7 or C8 for element i of operand k, along a length d.
void fail_index(const Call &c, int k, int64_t i, int64_t d);

// The least element that some thread found bad.
class FirstBad {
 public:
  void found(int64_t i) {
    int64_t have = at_.load(std::memory_order_relaxed);
    while (i < have && !at_.compare_exchange_weak(have, i, std::memory_order_relaxed)) {}
  }
  bool any() const { return at() != INT64_MAX; }
  int64_t at() const { return at_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> at_{INT64_MAX};
};

// All indices of operand k along a length d, checked, wrapped, times scale. False: the run has failed or is cancelled.
bool load_indices(const Call &c, int k, int64_t d, int64_t scale, int64_t *out);

// The same without keeping them.
bool check_indices(const Call &c, int k, int64_t d);

// Operand k holds tuples along its last axis: coordinates from axis `lead` on of a tensor with these dims and strides, whose axes before
// are those of the tuples. Gives one distance in elements for each tuple.
bool load_tuples(const Call &c, int k, int lead, const int64_t *dims, const int64_t *strides, int64_t *out);

inline int64_t product(const int64_t *dims, int begin, int end) {
  int64_t n = 1;
  for (int d = begin; d < end; d++) n *= dims[d];
  return n;
}

}  // namespace index
}  // namespace rlx
