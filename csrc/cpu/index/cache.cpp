// KvAppend and OneHot. Contract: bits move unchanged, bound exact.
#include "../core/rlx_begin.h"

#include "index.h"
#include "../shape/number.h"

namespace rlx {
namespace index {
namespace {

// The positions, all of them checked before the first store.
bool positions(const Call &c, int64_t n, int64_t capacity, int64_t *out, int64_t count) {
  const rlx_KvAppendAttrs &a = c.attrs<rlx_KvAppendAttrs>();
  if (c.has(2)) read_indices(c.in(2), c.in_data[2], 0, count, out);
  else out[0] = a.position.v;
  for (int64_t i = 0; i < count; i++) {
    if (c.has(2) && out[i] == NO_INDEX && fail_fraction(c, 2, i)) return false;
    if (out[i] >= 0 && out[i] <= capacity - n) continue;
    c.fail("C4", "position %lld and %lld rows overflow the cache of %lld", static_cast<long long>(out[i]), static_cast<long long>(n), static_cast<long long>(capacity));
    return false;
  }
  return true;
}

}  // namespace

int32_t kv_append_prepare(Prepare &p) {
  p.cmd->scratch = p.cmd->num_in > 2 && p.cmd->in[2].present ? 8 * p.cmd->in[2].count : 8;
  return RLX_OK;
}

// y = cache; y[.., p : p+n, ..] = rows along axis.
void kv_append(const Call &c, Range) {
  const Operand &y = c.out(0), &rows = c.in(1);
  const int axis = int(wrap_axis(c.attrs<rlx_KvAppendAttrs>().axis, y.rank)), size = rlx_dtype_sizes[y.dtype];
  const int64_t count = c.has(2) ? c.in(2).count : 1;
  int64_t strides[RLX_MAX_RANK], *at = static_cast<int64_t *>(c.scratch);
  if (!positions(c, rows.dims[axis], y.dims[axis], at, count)) return;
  dense_strides(y.dims, int(y.rank), strides);
  Moves moves(c);
  moves.add(box_to(c.in(0), c.in_data[0], c.out_data[0], strides));  // nothing where the cache is written in place
  moves.flush();
  if (rows.count == 0 || c.stopped()) return;
  if (count == 1) {
    moves.add(box_to(rows, c.in_data[1], c.out_ptr<char>(0) + at[0] * strides[axis] * size, strides));
  } else {
    for (int64_t b = 0; b < count; b++)  // one batch row at a time
      moves.add(box_of(size, int(rows.rank) - 1, rows.dims + 1, c.out_ptr<char>(0) + (b * strides[0] + at[b] * strides[axis]) * size, strides + 1,
                       c.in_ptr<char>(1) + b * rows.strides[0] * size, rows.strides + 1));
  }
  moves.flush();
}

// y[.., j, ..] = on if j is the index, else off.
void one_hot(const Call &c, Range) {
  const rlx_OneHotAttrs &a = c.attrs<rlx_OneHotAttrs>();
  const Operand &y = c.out(0), &index = c.in(0);
  const int axis = int(wrap_axis(a.axis, y.rank)), size = rlx_dtype_sizes[y.dtype];
  const int64_t inner = product(y.dims, axis + 1, int(y.rank));
  uint64_t on = 0, off = 0;
  shape::number_as(a.on_value, y.dtype, &on);
  shape::number_as(a.off_value, y.dtype, &off);
  const int64_t one = 1;
  Moves moves(c);
  moves.add(box_fill(size, 1, &y.count, c.out_data[0], &one, &off));
  moves.flush();
  FirstBad bad;
  each(c, index.count, READ_GRAIN, [&](int64_t begin, int64_t end) {
    int64_t v[CHUNK];
    for (int64_t at = begin; at < end; at += CHUNK) {
      const int64_t n = end - at < CHUNK ? end - at : CHUNK;
      read_indices(index, c.in_data[0], at, at + n, v);
      for (int64_t i = 0; i < n; i++) {
        if (v[i] == NO_INDEX && index.dtype == RLX_F32) bad.found(at + i);
        const int64_t j = v[i] < 0 ? v[i] + a.depth : v[i], k = at + i;
        if (uint64_t(j) < uint64_t(a.depth)) std::memcpy(c.out_ptr<char>(0) + ((k / inner * a.depth + j) * inner + k % inner) * size, &on, size_t(size));
      }
    }
  });
  // -2^63 and less are integers, which only mean no place; the first fraction may come after one.
  for (int64_t i = bad.at(); bad.any() && i < index.count; i++)
    if (fail_fraction(c, 0, i)) return;
}

}  // namespace index
}  // namespace rlx
