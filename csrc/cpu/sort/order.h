// order.h: the order of elements, for the kernels of the family. Every element becomes an entry: a key that compares as the elements do (NaN
// above +inf, -0 equal to +0) and its place. Entries are all different, so the order is total and any way of finding it gives the same result.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"

namespace rlx {
namespace sort {

constexpr int64_t SCRATCH = 1 << 28;  // bytes of all slots, but for the first
constexpr int64_t POLL = 1 << 16;

// ---- keys

template <class U> constexpr U top_bit() { return U(U(1) << (8 * sizeof(U) - 1)); }

// Unsigned numbers in the order of the elements. INF: the bits of +inf.
template <class U, U INF> struct float_key {
  typedef U T, Key;
  static Key of(T b) {
    const U magnitude = U(b & ~top_bit<U>());
    if (magnitude > INF) return U(~U(0));
    if (magnitude == 0) return top_bit<U>();
    return (b & top_bit<U>()) != 0 ? U(~b) : U(b | top_bit<U>());
  }
};
typedef float_key<uint16_t, 0x7c00> f16_key;
typedef float_key<uint16_t, 0x7f80> bf16_key;
typedef float_key<uint32_t, 0x7f800000> f32_key;
typedef float_key<uint64_t, 0x7ff0000000000000> f64_key;
template <class U> struct signed_key {
  typedef U T, Key;
  static Key of(T b) { return U(b ^ top_bit<U>()); }
};
template <class U> struct unsigned_key {
  typedef U T, Key;
  static Key of(T b) { return b; }
};

// ---- entries, in the order in which they are wanted

// Key and place in one word: for keys of up to 4 bytes and places below 2^32.
struct Short {
  typedef uint64_t E;
  static E make(uint64_t key, int64_t place) { return key << 32 | uint64_t(place); }
  static bool before(E a, E b) { return a < b; }
  static uint64_t key(E e) { return e >> 32; }
  static int64_t place(E e) { return int64_t(e & 0xffffffffu); }
};
struct Pair {
  uint64_t key;
  int64_t place;
};
struct Long {
  typedef Pair E;
  static E make(uint64_t key, int64_t place) { return {key, place}; }
  static bool before(const E &a, const E &b) { return a.key != b.key ? a.key < b.key : a.place < b.place; }
  static uint64_t key(const E &e) { return e.key; }
  static int64_t place(const E &e) { return e.place; }
};

inline bool is_short(uint32_t dtype, int64_t length) { return rlx_dtype_sizes[dtype] <= 4 && length < int64_t(1) << 32; }

// ---- order

template <class O> void insertion(typename O::E *e, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const typename O::E v = e[i];
    int64_t j = i;
    for (; j > 0 && O::before(v, e[j - 1]); j--) e[j] = e[j - 1];
    e[j] = v;
  }
}

constexpr int64_t RUN = 24;

// Sorts n entries; the result is in e or in spare, and is returned.
template <class O> typename O::E *merge(typename O::E *e, typename O::E *spare, int64_t n) {
  typedef typename O::E E;
  for (int64_t i = 0; i < n; i += RUN) insertion<O>(e + i, n - i < RUN ? n - i : RUN);
  for (int64_t run = RUN; run < n; run *= 2) {
    for (int64_t i = 0; i < n; i += 2 * run) {
      const int64_t mid = n - i < run ? n : i + run, end = n - i < 2 * run ? n : i + 2 * run;
      int64_t a = i, b = mid;
      E *to = spare + i;
      while (a < mid && b < end) *to++ = O::before(e[b], e[a]) ? e[b++] : e[a++];
      while (a < mid) *to++ = e[a++];
      while (b < end) *to++ = e[b++];
    }
    E *t = e;
    e = spare, spare = t;
  }
  return e;
}

// The same, one byte of the key at a time, the least significant first; entries come in order of their places, which stay so among
// equal keys. Null if the run was stopped.
template <class O> typename O::E *radix(typename O::E *e, typename O::E *spare, int64_t n, int bytes, const Call &c) {
  for (int b = 0; b < bytes; b++) {
    int64_t at[256] = {};
    const int shift = 8 * b;
    for (int64_t from = 0; from < n; from += POLL) {
      if (c.stopped()) return nullptr;
      for (int64_t i = from, to = n - from < POLL ? n : from + POLL; i < to; i++) at[O::key(e[i]) >> shift & 255]++;
    }
    if (at[O::key(e[0]) >> shift & 255] == n) continue;
    int64_t sum = 0;
    for (int k = 0; k < 256; k++) {
      const int64_t count = at[k];
      at[k] = sum;
      sum += count;
    }
    for (int64_t from = 0; from < n; from += POLL) {
      if (c.stopped()) return nullptr;
      for (int64_t i = from, to = n - from < POLL ? n : from + POLL; i < to; i++) spare[at[O::key(e[i]) >> shift & 255]++] = e[i];
    }
    typename O::E *t = e;
    e = spare, spare = t;
  }
  return e;
}

// A heap whose root is the last in order.
template <class O> void sift(typename O::E *e, int64_t n, int64_t at, typename O::E v) {
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && O::before(e[child], e[child + 1])) child++;
    if (!O::before(v, e[child])) break;
    e[at] = e[child];
  }
  e[at] = v;
}

// ---- lines

// Whether k of n are few enough to be picked by a heap.
inline bool picks(int64_t k, int64_t n) { return k < n / 8; }

// The memory in which Order finds the first k of n, a multiple of 64.
inline int64_t room_bytes(uint32_t dtype, int64_t n, int64_t k) {
  return ((picks(k, n) ? k : 2 * n) + 7) / 8 * 8 * int64_t(is_short(dtype, n) ? sizeof(Short::E) : sizeof(Long::E));
}

// The first k of n elements in order, x[0], x[step], ..
template <class K, class O> struct Order {
  typedef typename K::T T;
  typedef typename O::E E;

  const T *x;
  int64_t step, n, k;
  bool descending;
  const Call *call;

  E entry(int64_t i) const {
    const typename K::Key key = K::of(x[i * step]);
    return O::make(descending ? typename K::Key(~key) : key, i);
  }

  // In room_bytes at e; null if the run was stopped.
  const E *first(E *e) const {
    if (picks(k, n)) return pick(e);
    for (int64_t i = 0; i < n; i++) {
      if (i % POLL == 0 && call->stopped()) return nullptr;
      e[i] = entry(i);
    }
    return n < 1024 ? merge<O>(e, e + n, n) : radix<O>(e, e + n, n, int(sizeof(T)), *call);
  }

  const E *pick(E *e) const {
    for (int64_t i = 0; i < k; i++) e[i] = entry(i);
    for (int64_t i = k / 2 - 1; i >= 0; i--) sift<O>(e, k, i, e[i]);
    for (int64_t i = k; i < n; i++) {
      if (i % POLL == 0 && call->stopped()) return nullptr;
      const E v = entry(i);
      if (O::before(v, e[0])) sift<O>(e, k, 0, v);
    }
    for (int64_t end = k - 1; end > 0; end--) {
      if (end % POLL == 0 && call->stopped()) return nullptr;
      const E v = e[end];
      e[end] = e[0];
      sift<O>(e, end, 0, v);
    }
    return e;
  }
};

// ---- scratch: detail[0] slots of detail[1] bytes each, one for each line that is worked on at a time

inline void ask_slots(Prepare &q, int64_t lines, int64_t bytes) {
  int64_t slots = q.max_threads < lines ? q.max_threads : lines;
  if (slots * bytes > SCRATCH) slots = SCRATCH / bytes;
  if (slots < 1) slots = 1;
  q.cmd->detail[0] = slots, q.cmd->detail[1] = bytes;
  q.cmd->scratch = slots * bytes;
}
inline int num_slots(const Call &c) { return int(c.cmd->detail[0] < c.threads() ? c.cmd->detail[0] : c.threads()); }
inline char *slot_memory(const Call &c, int slot) { return static_cast<char *>(c.scratch) + slot * c.cmd->detail[1]; }

}  // namespace sort
}  // namespace rlx
