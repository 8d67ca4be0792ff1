// TopK, Sort and ArgSort: lines in order, one worker to a line. See order.h.
#include "../core/rlx_begin.h"

#include "../core/pool.h"
#include "../reduce/lines.h"
#include "order.h"

namespace rlx {
namespace sort {
namespace {

constexpr int64_t WORK = 1 << 14;  // elements of a piece of work

struct Job {
  const Call *call;
  Lines lines;
  int64_t k = 0;
  bool descending = false;
  void *values = nullptr, *index = nullptr;  // values: none for ArgSort
  uint32_t index_dtype = 0;
};

template <class K, class O> struct Sorter {
  typedef typename K::T T;
  typedef typename O::E E;

  static void lines(void *ctx, int64_t begin, int64_t end, int slot) {
    const Job &j = *static_cast<const Job *>(ctx);
    const Lines &l = j.lines;
    E *const room = reinterpret_cast<E *>(slot_memory(*j.call, slot));
    for (Walk<2> w = l.walk(begin, end); w.next();)
      for (int64_t i = 0; i < w.n; i++) {
        if (j.call->stopped()) return;
        const T *x = j.call->template in_ptr<T>(0) + w.at[0] + i * w.step[0];
        const E *e = Order<K, O>{x, l.x_step, l.length, j.k, j.descending, j.call}.first(room);
        if (e == nullptr) return;
        for (int64_t r = 0, at = w.at[1] + i * w.step[1]; r < j.k; r++, at += l.y_step) {
          if (r % POLL == POLL - 1 && j.call->stopped()) return;
          const int64_t from = O::place(e[r]);
          if (j.values != nullptr) static_cast<T *>(j.values)[at] = x[from * l.x_step];
          put_index(j.index, j.index_dtype, at, from);
        }
      }
  }

  static void run(Job &j) {
    const Split s = split_lines(j.lines.count, j.lines.length, WORK);
    parallel(j.call->pool(), num_slots(*j.call), s.units, s.grain, lines, &j, j.call->cancel());
  }
};

template <class K> void run_as(Job &j) {
  if (is_short(j.call->in(0).dtype, j.lines.length)) return Sorter<K, Short>::run(j);
  return Sorter<K, Long>::run(j);
}

void run(Job &j) {
  switch (j.call->in(0).dtype) {
    case RLX_F16: return run_as<f16_key>(j);
    case RLX_BF16: return run_as<bf16_key>(j);
    case RLX_F32: return run_as<f32_key>(j);
    case RLX_F64: return Sorter<f64_key, Long>::run(j);
    case RLX_I8: return run_as<signed_key<uint8_t>>(j);
    case RLX_I16: return run_as<signed_key<uint16_t>>(j);
    case RLX_I32: return run_as<signed_key<uint32_t>>(j);
    case RLX_I64: return Sorter<signed_key<uint64_t>, Long>::run(j);
    case RLX_U16: return run_as<unsigned_key<uint16_t>>(j);
    case RLX_U32: return run_as<unsigned_key<uint32_t>>(j);
    case RLX_U64: return Sorter<unsigned_key<uint64_t>, Long>::run(j);
    default: return run_as<unsigned_key<uint8_t>>(j);  // u8 and bool
  }
}

int32_t prepare(Prepare &q, int64_t axis, int64_t k) {
  const Operand &x = q.cmd->in[0];
  const int64_t n = x.dims[axis_of(axis, x)];
  ask_slots(q, n > 0 ? x.count / n : 0, room_bytes(x.dtype, n, k < 0 ? n : k));
  return RLX_OK;
}

Job job(const Call &c, int64_t axis, int64_t k, bool descending) {
  Job j;
  j.call = &c;
  j.lines = k < 0 ? lines_of(c.in(0), axis) : lines_of(c.in(0), axis, k);
  j.k = k < 0 ? j.lines.length : k;
  j.descending = descending;
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
