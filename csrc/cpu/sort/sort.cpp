// TopK, Sort and ArgSort. Every element becomes an entry: a key that compares as the elements do (NaN above +inf, -0 equal to +0) and its
// place. Entries are all different, so the order is total and any way of finding it gives the same result.
#include "../core/rlx_begin.h"

#include "../core/pool.h"
#include "../reduce/lines.h"

namespace rlx {
namespace sort {
namespace {

constexpr int64_t WORK = 1 << 14;       // elements of a piece of work
constexpr int64_t SCRATCH = 1 << 28;    // bytes of entries, but for the first slot
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
// equal keys.
template <class O> typename O::E *radix(typename O::E *e, typename O::E *spare, int64_t n, int bytes) {
  for (int b = 0; b < bytes; b++) {
    int64_t at[256] = {};
    const int shift = 8 * b;
    for (int64_t i = 0; i < n; i++) at[O::key(e[i]) >> shift & 255]++;
    if (at[O::key(e[0]) >> shift & 255] == n) continue;
    int64_t sum = 0;
    for (int k = 0; k < 256; k++) {
      const int64_t count = at[k];
      at[k] = sum;
      sum += count;
    }
    for (int64_t i = 0; i < n; i++) spare[at[O::key(e[i]) >> shift & 255]++] = e[i];
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

struct Job {
  const Call *call;
  Lines lines;
  int64_t k = 0;
  bool descending = false;
  void *values = nullptr, *index = nullptr;  // values: none for ArgSort
  uint32_t index_dtype = 0;
  int64_t entries = 0;                       // of a slot
};

// Whether k of n are few enough to be picked by a heap.
bool picks(int64_t k, int64_t n) { return k < n / 8; }

template <class K, class O> struct Order {
  typedef typename K::T T;
  typedef typename O::E E;

  static E entry(const T *x, int64_t step, int64_t i, bool descending) {
    const typename K::Key key = K::of(x[i * step]);
    return O::make(descending ? typename K::Key(~key) : key, i);
  }

  static const E *pick(const T *x, const Job &j, E *e) {
    const int64_t n = j.lines.length, k = j.k, step = j.lines.x_step;
    for (int64_t i = 0; i < k; i++) e[i] = entry(x, step, i, j.descending);
    for (int64_t i = k / 2 - 1; i >= 0; i--) sift<O>(e, k, i, e[i]);
    for (int64_t i = k; i < n; i++) {
      if (i % POLL == 0 && j.call->stopped()) return nullptr;
      const E v = entry(x, step, i, j.descending);
      if (O::before(v, e[0])) sift<O>(e, k, 0, v);
    }
    for (int64_t end = k - 1; end > 0; end--) {
      const E v = e[end];
      e[end] = e[0];
      sift<O>(e, end, 0, v);
    }
    return e;
  }

  static const E *all(const T *x, const Job &j, E *e) {
    const int64_t n = j.lines.length;
    for (int64_t i = 0; i < n; i++) e[i] = entry(x, j.lines.x_step, i, j.descending);
    return n < 1024 ? merge<O>(e, e + n, n) : radix<O>(e, e + n, n, int(sizeof(T)));
  }

  static void lines(void *ctx, int64_t begin, int64_t end, int slot) {
    const Job &j = *static_cast<const Job *>(ctx);
    const Lines &l = j.lines;
    E *const room = static_cast<E *>(j.call->scratch) + slot * j.entries;
    for (Walk<2> w = l.walk(begin, end); w.next();)
      for (int64_t i = 0; i < w.n; i++) {
        if (j.call->stopped()) return;
        const T *x = j.call->template in_ptr<T>(0) + w.at[0] + i * w.step[0];
        const E *e = picks(j.k, l.length) ? pick(x, j, room) : all(x, j, room);
        if (e == nullptr) return;
        for (int64_t r = 0, at = w.at[1] + i * w.step[1]; r < j.k; r++, at += l.y_step) {
          const int64_t from = O::place(e[r]);
          if (j.values != nullptr) static_cast<T *>(j.values)[at] = x[from * l.x_step];
          put_index(j.index, j.index_dtype, at, from);
        }
      }
  }

  static void run(Job &j) {
    const Split s = split_lines(j.lines.count, j.lines.length, WORK);
    parallel(j.call->pool(), int(j.call->cmd->detail[0] < j.call->threads() ? j.call->cmd->detail[0] : j.call->threads()), s.units, s.grain, lines, &j, j.call->cancel());
  }
};

bool is_short(uint32_t dtype, int64_t length) { return rlx_dtype_sizes[dtype] <= 4 && length < int64_t(1) << 32; }

template <class K> void run_as(Job &j) {
  if (is_short(j.call->in(0).dtype, j.lines.length)) return Order<K, Short>::run(j);
  return Order<K, Long>::run(j);
}

void run(Job &j) {
  switch (j.call->in(0).dtype) {
    case RLX_F16: return run_as<float_key<uint16_t, 0x7c00>>(j);
    case RLX_BF16: return run_as<float_key<uint16_t, 0x7f80>>(j);
    case RLX_F32: return run_as<float_key<uint32_t, 0x7f800000>>(j);
    case RLX_F64: return Order<float_key<uint64_t, 0x7ff0000000000000>, Long>::run(j);
    case RLX_I8: return run_as<signed_key<uint8_t>>(j);
    case RLX_I16: return run_as<signed_key<uint16_t>>(j);
    case RLX_I32: return run_as<signed_key<uint32_t>>(j);
    case RLX_I64: return Order<signed_key<uint64_t>, Long>::run(j);
    case RLX_U16: return run_as<unsigned_key<uint16_t>>(j);
    case RLX_U32: return run_as<unsigned_key<uint32_t>>(j);
    case RLX_U64: return Order<unsigned_key<uint64_t>, Long>::run(j);
    default: return run_as<unsigned_key<uint8_t>>(j);  // u8 and bool
  }
}

// detail[0]: slots; detail[1]: entries of a slot.
int32_t prepare(Prepare &q, int64_t axis, int64_t k) {
  const Operand &x = q.cmd->in[0];
  const int64_t n = x.dims[axis_of(axis, x)], lines = n > 0 ? x.count / n : 0;
  const int64_t entries = ((k < 0 || !picks(k, n) ? 2 * n : k) + 7) / 8 * 8;
  const int64_t bytes = entries * int64_t(is_short(x.dtype, n) ? sizeof(Short::E) : sizeof(Long::E));
  int64_t slots = q.max_threads < lines ? q.max_threads : lines;
  if (slots * bytes > SCRATCH) slots = SCRATCH / bytes;
  if (slots < 1) slots = 1;
  q.cmd->detail[0] = slots, q.cmd->detail[1] = entries;
  q.cmd->scratch = slots * bytes;
  return RLX_OK;
}

Job job(const Call &c, int64_t axis, int64_t k, bool descending) {
  Job j;
  j.call = &c;
  j.lines = k < 0 ? lines_of(c.in(0), axis) : lines_of(c.in(0), axis, k);
  j.k = k < 0 ? j.lines.length : k;
  j.descending = descending;
  j.entries = c.cmd->detail[1];
  const int index = int(c.cmd->num_out) - 1;
  if (index > 0) j.values = c.out_data[0];
  j.index = c.out_data[index];
  j.index_dtype = c.out(index).dtype;
  return j;
}

}  // namespace

Split sort_split(const Call &c) { return {c.out(0).count > 0 ? 1 : 0, 1}; }

int32_t top_k_prepare(Prepare &q) {
  const rlx_TopKAttrs &a = *static_cast<const rlx_TopKAttrs *>(q.cmd->attrs);
  return prepare(q, a.axis, a.k);
}
int32_t sort_prepare(Prepare &q) { return prepare(q, static_cast<const rlx_SortAttrs *>(q.cmd->attrs)->axis, -1); }

void top_k(const Call &c, Range) {
  const rlx_TopKAttrs &a = c.attrs<rlx_TopKAttrs>();
  Job j = job(c, a.axis, a.k, a.largest != 0);
  run(j);
}

// Sort, and ArgSort, whose only result is the index.
void sort_lines(const Call &c, Range) {
  const rlx_SortAttrs &a = c.attrs<rlx_SortAttrs>();
  Job j = job(c, a.axis, -1, a.descending != 0);
  run(j);
}

}  // namespace sort
}  // namespace rlx
