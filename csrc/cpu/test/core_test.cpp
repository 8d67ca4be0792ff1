#include "../core/rlx_begin.h"

// Tests what kernels use of core: Walk, merge_axes, and the cache of packed constants.
#include <stdio.h>

#include "../../common/memory.h"
#include "../core/kernel.h"
#include "../core/weights.h"

using namespace rlx;

namespace {

int failures;

void check(bool ok, const char *what) {
  if (ok) return;
  failures++;
  fprintf(stderr, "FAIL %s\n", what);
}

// Every range of a 3 x 4 x 5 shape under two operands: runs must visit the elements in order, at the offsets that the strides give.
void walk() {
  Operand out;
  const int64_t shape[] = {3, 4, 5};
  out.rank = 3, out.dims = shape;
  const int64_t strides[2][RLX_MAX_RANK] = {{20, -5, 1}, {7, 0, 3}};
  for (int64_t begin = 0; begin <= 60; begin++)
    for (int64_t end = begin; end <= 60; end++) {
      int64_t at = begin;
      for (Walk<2> w(out, strides, begin, end); w.next();) {
        check(w.n > 0 && w.n <= 5, "a run stays in its row");
        for (int64_t i = 0; i < w.n; i++, at++)
          for (int k = 0; k < 2; k++)
            check(w.at[k] + i * w.step[k] == at / 20 * strides[k][0] + at / 5 % 4 * strides[k][1] + at % 5 * strides[k][2], "offset of an element");
      }
      check(at == end, "the runs cover the range");
    }
  Operand scalar;
  int n = 0;
  for (Walk<2> w(scalar, strides, 0, 1); w.next(); n++) check(w.n == 1 && w.at[0] == 0, "rank 0");
  check(n == 1, "rank 0 has one run");
}

// Shapes of more than 2^31 elements, which no memory is behind: where their last elements lie, by hand.
void far() {
  const struct {
    int64_t dims[3], strides[1][RLX_MAX_RANK], begin, at, back;  // the element `begin` of the walk is at `at`, the last one at `back`
  } cases[] = {
      {{1, 46341, 46341}, {{0, 46341, 1}}, 2147441939, 2147441939, 2147488280},          // from the end of the last row but one
      {{131072, 128, 128}, {{16384, 128, 1}}, 2147483520, 2147483520, 2147483647},       // the last row begins 128 before 2^31
      {{131072, 128, 128}, {{16384, 1, 128}}, 2147483520, 2147467391, 2147483647},       // transposed: 131071 * 16384 + 127
      {{1, 24901, 131072}, {{0, 131072, 1}}, 3263692800, 3263692800, 3263823871},        // row 24900
      {{1, 24901, 131072}, {{0, -131072, -1}}, 3263692800, -3263692800, -3263823871},    // the same from behind
      {{2, 65536, 65536}, {{5000000000, 0, 65536}}, 8589869056, 5000000000, 9294901760}, // an axis stands still: 5e9 + 65535 * 65536
  };
  for (const auto &c : cases) {
    const int64_t end = c.dims[0] * c.dims[1] * c.dims[2];
    int64_t left = end - c.begin, at = 0;
    bool first = true;
    for (Walk<1> w(c.dims, 3, c.strides, c.begin, end); w.next(); left -= w.n, first = false) {
      if (first) check(w.at[0] == c.at, "offset of a far element");
      at = w.at[0] + (w.n - 1) * w.step[0];
    }
    check(left == 0 && at == c.back, "offset of the last element");
  }
  int64_t dims[] = {131072, 128, 128}, strides[1][RLX_MAX_RANK] = {{16384, 128, 1}};
  check(merge_axes(dims, 3, strides, 1) == 1 && dims[0] == int64_t(1) << 31 && strides[0][0] == 1, "merge_axes beyond 31 bits");
}

void merge() {
  int64_t dims[] = {2, 1, 3, 4, 5}, strides[2][RLX_MAX_RANK] = {{60, 7, 20, 5, 1}, {0, 9, 20, 5, 1}};
  check(merge_axes(dims, 5, strides, 2) == 2 && dims[0] == 2 && dims[1] == 60 && strides[0][0] == 60 && strides[1][0] == 0 && strides[1][1] == 1, "merge_axes");
  int64_t ones[] = {1, 1}, any[1][RLX_MAX_RANK] = {{3, 4}};
  check(merge_axes(ones, 2, any, 1) == 0, "merge_axes of ones");
}

void cache() {
  const uint64_t before = memory_bytes();
  rlx_device device;
  std::memset(static_cast<void *>(&device), 0, sizeof device);
  const float a[] = {1, 2, 3}, b[] = {4};
  const rlx_constant first = {a, sizeof a, 0}, second = {b, sizeof b, 0};
  rlx_weights *parent = nullptr, *child = nullptr;
  rlx_error error = {};
  check(weights_open(&device, nullptr, &first, 1, &parent, &error) == RLX_OK, "open a parent");
  check(weights_open(&device, parent, &second, 1, &child, &error) == RLX_OK, "open a child");
  float got[3] = {};
  weights_read(child, 1, got);
  check(child->count == 2 && got[0] == 4, "constants follow the parent's");
  weights_read(child, 0, got);
  check(std::memcmp(got, a, sizeof a) == 0, "which a child can read");
  int64_t dim = 3, stride = 1;
  Operand o;
  o.dtype = RLX_F32, o.rank = 1, o.slot = RLX_CONST, o.index = 0, o.dims = &dim, o.strides = &stride;
  bool fresh = false;
  const PackedForm form = {7, 100, nullptr, {}};
  void *packed = weights_packed(child, o, form, &fresh);
  check(packed != nullptr && fresh && (reinterpret_cast<uintptr_t>(packed) & 63) == 0, "a first packed form is fresh and aligned");
  weights_settle(child, true);
  check(weights_packed(parent, o, form, &fresh) == packed && !fresh, "it lives with the parent");
  stride = -1;
  check(weights_packed(parent, o, form, &fresh) != packed && fresh, "another view is another form");
  weights_settle(parent, false);
  check(weights_packed(parent, o, form, &fresh) != nullptr && fresh, "a form that was never filled is dropped");
  weights_settle(parent, true);
  check(weights_close(parent, &error) == RLX_BAD_ARGUMENT, "a parent closes after its children");
  check(weights_close(child, &error) == RLX_OK && weights_close(parent, &error) == RLX_OK, "close");
  check(memory_bytes() == before, "memory comes back");
}

// Constants that stay are used where they lie, if they are aligned.
void borrow() {
  const uint64_t before = memory_bytes();
  rlx_device device;
  std::memset(static_cast<void *>(&device), 0, sizeof device);
  alignas(64) float a[32] = {1, 2, 3};
  const rlx_constant c[] = {{a, 64, 1}, {a + 16, 64, 0}, {a + 1, 16, 1}};
  rlx_weights *w = nullptr;
  rlx_error error = {};
  check(weights_open(&device, nullptr, c, 3, &w, &error) == RLX_OK, "open");
  check(weights_use(w, 0) == a, "what stays and is aligned is borrowed");
  const void *copies[] = {weights_use(w, 1), weights_use(w, 2)};
  check(copies[0] != a + 16 && copies[1] != a + 1 && std::memcmp(copies[1], a + 1, 16) == 0 && w->own_bytes == 144, "the others are copied");
  int64_t dim = 16, stride = 1;
  Operand o;
  o.dtype = RLX_F32, o.rank = 1, o.slot = RLX_CONST, o.index = 0, o.dims = &dim, o.strides = &stride, o.count = 16;
  check(weights_may_pack(w, o), "small constants are packed");
  bool fresh = false;
  check(weights_packed(w, o, {7, 100, nullptr, {}}, &fresh) != nullptr && w->packed_bytes == 100, "packed forms are counted");
  w->own_bytes = uint64_t(3) << 30;
  dim = o.count = 8;
  w->packed_bytes = w->own_bytes / 16 - 32;
  check(weights_may_pack(w, o), "packed forms of large constants take a sixteenth of them");
  w->packed_bytes++;
  check(!weights_may_pack(w, o), "and no more");
  dim = o.count = 16;
  check(weights_may_pack(w, o), "but what is packed already is found");
  device.lean = true;
  check(!weights_may_pack(w, o), "a lean device packs nothing");
  w->packed_bytes = 100;
  check(weights_close(w, &error) == RLX_OK && memory_bytes() == before && a[0] == 1, "borrowed memory is left alone");
}

// The second half of a form is the constant backwards.
void backwards(const Operand &view, const int64_t *how, const char *packed, char *raw) {
  for (int64_t i = 0; i < view.count; i++) std::memcpy(raw + 4 * i, packed + 4 * (how[0] - i), 4);
}

void trim() {
  const uint64_t before = memory_bytes();
  rlx_device device;
  std::memset(static_cast<void *>(&device), 0, sizeof device);
  float a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, got[8] = {};
  const rlx_constant c[] = {{a, sizeof a, 2}, {a, sizeof a, 2}, {a + 1, 16, 1}, {a, sizeof a, 0}, {a, sizeof a, 2}};
  rlx_weights *w = nullptr;
  rlx_error error = {};
  check(weights_open(&device, nullptr, c, 5, &w, &error) == RLX_OK, "open");
  int64_t dim = 8, stride = 1;
  Operand o;
  o.dtype = RLX_F32, o.rank = 1, o.slot = RLX_CONST, o.index = 0, o.dims = &dim, o.strides = &stride, o.count = 8;
  bool fresh = false;
  float *packed = static_cast<float *>(weights_packed(w, o, {7, 64, backwards, {15}}, &fresh));
  check(weights_source(w, o) == a, "a form is made of the caller's memory");
  for (int i = 0; i < 8; i++) packed[15 - i] = a[i];
  weights_settle(w, true);
  const void *used = weights_use(w, 1);
  check(used != nullptr && used != a, "what a kernel reads is copied where the caller wants its memory back");
  o.index = 3, o.count = dim = 4;
  check(weights_packed(w, o, {7, 64, backwards, {15}}, &fresh) != nullptr, "a form of a part");
  weights_settle(w, true);
  uint8_t where[5] = {};
  weights_trim(w, where);
  check(where[0] == 2 && where[1] == 1 && where[2] == 0 && where[3] == 1 && where[4] == 1, "only a whole form stands for its constant, and what is wanted back is copied");
  a[0] = a[7] = 0;
  weights_read(w, 0, got);
  check(got[0] == 1 && got[7] == 8, "a form gives its constant back");
  const float *again = static_cast<const float *>(weights_use(w, 0));
  check(again != nullptr && again[0] == 1 && again[7] == 8, "for a kernel too");
  weights_trim(w, where);
  check(again[7] == 8 && where[0] == 1, "which keeps it while it reads");
  weights_unuse(w, 0);
  const uint64_t held = memory_bytes();
  weights_trim(w, where);
  check(memory_bytes() < held, "and no longer");
  check(weights_close(w, &error) == RLX_OK && memory_bytes() == before, "memory comes back");
}

}  // namespace

int main() {
  walk();
  far();
  merge();
  cache();
  borrow();
  trim();
  printf("core_test: %d failures\n", failures);
  return failures != 0;
}
