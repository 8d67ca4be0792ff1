#include "../core/rlx_begin.h"

#include "tile.h"

namespace rlx {
namespace region {
namespace {

// The processor compares the lowest 12 bits of addresses first, and a load waits for an earlier store to what may be its place: the buffers of
// a slot begin half a page from where the operands do, and each this far from the one before.
constexpr int64_t PAGE = 4096, APART = 640;

// Where the elements [begin, begin + n) of an operand begin.
int64_t first_of(const Axes &a, int64_t begin, int64_t n) {
  Walk<1> w(a.dims, a.rank, a.strides, begin, begin + n);
  return w.next() ? w.at[0] : 0;
}

template <class T> void gather_doubled(char *to, const char *data, const Axes &a, int64_t begin, int64_t n) {
  T *y = reinterpret_cast<T *>(to);
  const T *x = reinterpret_cast<const T *>(data);
  // The walk gives rows; where in its row a run begins is counted here.
  const int last = a.rank - 1;
  const int64_t step = a.strides[0][last];
  int64_t strides[1][RLX_MAX_RANK], i = begin % a.dims[last];
  for (int d = 0; d < last; d++) strides[0][d] = a.strides[0][d];
  strides[0][last] = 0;
  for (Walk<1> w(a.dims, a.rank, strides, begin, begin + n); w.next(); y += w.n, i = 0)
    for (int64_t k = 0; k < w.n; k++) y[k] = x[w.at[0] + ((i + k) >> 1) * step];
}

// Puts elements [begin, begin + n) of an operand side by side.
void gather(char *to, const Source &s, const char *data, int64_t begin, int64_t n, elementwise::Repeat repeat) {
  const Axes &a = *s.axes;
  if (!s.doubled && a.rank == 2 && a.strides[0][1] == 0 && s.size == 4) {  // one value for each row
    const int64_t row = a.dims[1], step = a.strides[0][0];
    const float *x = reinterpret_cast<const float *>(data) + begin / row * step;
    return repeat(reinterpret_cast<float *>(to), x, step, row - begin % row, row, n);
  }
  if (!s.doubled) {
    for (Walk<1> w(a.dims, a.rank, a.strides, begin, begin + n); w.next(); to += w.n * s.size)
      elementwise::copy_run(to, data + w.at[0] * s.size, int(s.size), w.step[0], w.n);
    return;
  }
  switch (s.size) {
    case 1: return gather_doubled<uint8_t>(to, data, a, begin, n);
    case 2: return gather_doubled<uint16_t>(to, data, a, begin, n);
    case 4: return gather_doubled<uint32_t>(to, data, a, begin, n);
    default: return gather_doubled<uint64_t>(to, data, a, begin, n);
  }
}

}  // namespace

// The pointers of a slot, where its buffers begin, and what they hold.
int64_t Layout::slot_bytes() const {
  return align64((int64_t(values()) + 1) * 8 + int64_t(buffers) * int64_t(sizeof(Region::Held))) + PAGE + (int64_t(buffers) + inner) * (block() + APART);
}

void Region::repeat() {
  copies_ = reinterpret_cast<char *>(data_) + align64(int64_t(layout.inputs) * 8);
  slots_ = copies_ + layout.copies * layout.block();
  if (layout.copies == 0) return;
  for (uint32_t j = 0; j < layout.inputs; j++)
    if (const Source &s = layout.source[j]; s.form == SAME && s.memory >= 0) elementwise::copy_run(copy(s.memory), data_[j], int(s.size), 0, layout.tile);
  for (uint32_t k = 0; k < layout.constants; k++)
    if (const Constant &o = layout.constant[k]; o.memory >= 0) elementwise::copy_run(copy(o.memory), o.data, int(o.size), 0, layout.tile);
}

char *Region::buffer(char **table, int32_t i) const { return buffers(table) + i * (layout.block() + APART); }

char **Region::enter(int slot) const {
  char **table = table_of(slot), **inner = table + layout.inputs + layout.outputs, **constants = inner + layout.inner;
  char *at = reinterpret_cast<char *>(align64(reinterpret_cast<int64_t>(held_of(table) + layout.buffers)));
  const uint64_t operands = layout.inputs > 0 ? reinterpret_cast<uintptr_t>(data_[0]) : 0;
  buffers(table) = at + (operands + PAGE / 2 - reinterpret_cast<uintptr_t>(at)) % PAGE / 64 * 64;
  for (uint32_t k = 0; k < layout.buffers; k++) held_of(table)[k] = Held{0, 0};
  for (uint32_t k = 0; k < layout.inner; k++) inner[k] = buffer(table, int32_t(layout.buffers + k));
  for (uint32_t k = 0; k < layout.constants; k++) {
    const Constant &o = layout.constant[k];
    constants[k] = o.memory >= 0 ? copy(o.memory) : const_cast<char *>(o.data);
  }
  for (uint32_t j = 0; j < layout.inputs; j++)
    if (const Source &s = layout.source[j]; s.form == SAME) table[j] = s.memory >= 0 ? copy(s.memory) : const_cast<char *>(data_[j]);
  return table;
}

// Makes elements [begin, begin + n) of an operand lie side by side. What has the same rows as the run before is there already.
void Region::gathered(char **table, uint32_t j, int64_t begin, int64_t n) const {
  const Source &s = layout.source[j];
  const Axes &a = *s.axes;
  table[j] = buffer(table, s.memory);
  Held &held = held_of(table)[s.memory];
  const bool repeats = layout.by_rows && !s.doubled && a.rank > 1 && a.strides[0][a.rank - 2] == 0 && begin % a.dims[a.rank - 1] == 0;
  const int64_t rows = repeats ? a.dims[a.rank - 1] * a.dims[a.rank - 2] : 1;
  const int64_t block = repeats && begin % rows + n <= rows ? 1 + begin / rows : 0;
  if (block != 0 && held.block == block && n <= held.n) return;
  held = Held{block, n};
  if (block == 0) return gather(table[j], s, data_[j], begin, n, layout.repeat);
  char *to = table[j];  // equal rows: one is gathered, then what is there is doubled
  int64_t done = n < a.dims[a.rank - 1] ? n : a.dims[a.rank - 1];
  gather(to, s, data_[j], begin, done, layout.repeat);
  for (int64_t more; done < n; done += more) {
    more = n - done < done ? n - done : done;
    std::memcpy(to + done * s.size, to, size_t(more * s.size));
  }
}

void Region::run(char **table, char *const *results, int64_t begin, int64_t n, int64_t to) const {
  for (uint32_t j = 0; j < layout.inputs; j++) {
    const Source &s = layout.source[j];
    char *data = const_cast<char *>(data_[j]);
    if (s.form == DIRECT) table[j] = data + begin * s.size;
    else if (s.form == PIECES && begin % s.axes->dims[s.axes->rank - 1] + n <= s.axes->dims[s.axes->rank - 1]) table[j] = data + first_of(*s.axes, begin, n) * s.size;
    else if (s.rowed) table[j] = data + begin / layout.row * s.axes->strides[0][0] * s.size;
    else if (s.form != SAME) gathered(table, j, begin, n);
  }
  for (uint32_t k = 0; k < layout.outputs; k++) table[layout.inputs + k] = results[k] + to * layout.result_size[k];
  const int64_t phase = layout.row > 0 ? begin % layout.row : 0;
  const void *in[2 + elementwise::MAX_LINKS];
  in[1 + elementwise::MAX_LINKS] = &phase;
  for (uint32_t i = 0; i < layout.steps; i++) {
    const Step &s = layout.step[i];
    in[0] = table[s.in[0]];
    if (s.chain.links == 0)
      for (int k = 1; k < elementwise::MAX_IN; k++) in[k] = table[s.in[k]];
    for (int k = 0; k < s.chain.links; k++) in[1 + k] = table[s.chain.link[k].value];
    if (s.past < 0 || (streamed >> s.past & 1) == 0) {
      s.work.loop(s.work, in, table[s.out], n);
    } else {
      elementwise::Work work = s.work;
      work.stream = true;
      work.loop(work, in, table[s.out], n);
    }
  }
}

namespace {

struct Job {
  const Call &call;
  const Region &region;
  char *const *results;
  int64_t first;
};

void tiles(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  const Region &r = j.region;
  const int64_t tile = r.layout.tile, count = r.layout.count;
  char **table = r.enter(slot);
  for (int64_t at = begin * tile; at < end * tile && at < count && !j.call.stopped(); at += tile) r.run(table, j.results, at, count - at < tile ? count - at : tile, j.first + at);
  if (r.streamed != 0) std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace

void run_all(const Call &c, const Region &r, char *const *results, int64_t first) {
  constexpr int64_t kWork = 16384;  // elements times commands of a piece of work
  const Layout &l = r.layout;
  int64_t grain = kWork / (l.tile * (1 + int64_t(l.commands)));
  if (r.streamed != 0) grain = (grain > 0 ? grain : 1) * elementwise::STREAM_GRAINS;
  Job j = {c, r, results, first};
  c.parallel((l.count + l.tile - 1) / l.tile, grain > 0 ? grain : 1, tiles, &j);
}

}  // namespace region
}  // namespace rlx
