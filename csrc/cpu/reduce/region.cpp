// ReduceRegion: the body of a region runs over a few rows at a time, and the kernel of Reduce over what it made, which is still in cache.
// Contract: the bits of Reduce of the region.
//
//   rows      the kernel sees the whole tensor, of which only the rows that it is asked for exist: what it does with a row depends on the shape alone
//   columns   the kernel asks for the rows that it adds (Made), each column in the order of Reduce
//   products  where columns of f32 are products of two operands and are added up, the kernel multiplies itself: nothing is stored in between
//
// Where the elements of a result lie otherwise, all is made first.
#include "../core/rlx_begin.h"

#include "../core/registry.h"
#include "../region/tile.h"
#include "reduce.h"

namespace rlx {
namespace reduce {
namespace {

constexpr int64_t SLAB_BYTES = 16384;  // of the rows that are made and reduced together, one at least

constexpr int64_t GRAIN = 16;          // slabs of a piece of work
constexpr int64_t PAGE = 4096;

int64_t aligned(int64_t n) { return (n + 63) & ~int64_t(63); }

// The Reduce behind the body, with what it reads.
struct Inner {
  Operand x;
  int64_t strides[RLX_MAX_RANK];
  region::Box box;
  Made made = {};
  Command cmd;
  int64_t row = 0, high = 0;  // elements of a result where they lie together; results of a slab, 0 where they are not made so
  int64_t columns = 0;        // results that lie together in x, where they are made by rows of them, else 0
  int64_t count = 0;          // results

  Inner(const Command &c, const region::Box &b) : box(b), cmd(c) {
    const rlx_ReduceRegionAttrs &a = *static_cast<const rlx_ReduceRegionAttrs *>(c.attrs);
    made.attrs.fn = a.fn, made.attrs.axes = a.axes, made.attrs.keep_dims = a.keep_dims;
    x.dtype = c.out[0].dtype, x.rank = uint32_t(box.rank), x.count = box.count;
    x.present = x.contiguous = true, x.dims = box.dims, x.strides = strides;
    int64_t n = 1;
    for (int d = box.rank - 1; d >= 0; d--) {
      strides[d] = n;
      n *= box.dims[d];
    }
    cmd.op = RLX_OP_Reduce, cmd.num_in = 1, cmd.in = &x, cmd.attrs = &made;
  }
  Inner(const Inner &) = delete;
  Inner &operator=(const Inner &) = delete;

  int64_t size() const { return rlx_dtype_sizes[x.dtype]; }
  int64_t bytes() const { return x.count * size(); }
  // Elements that are made in one call where columns are.
  int64_t most() const {
    const int64_t width = columns < STRIP ? columns : STRIP, n = SLAB_BYTES / size();
    return n > GROUP * width ? n : GROUP * width;
  }
  // What the threads make at one time.
  int64_t made_bytes(int threads) const {
    if (columns == 0 && high == 0) return aligned(bytes());
    return PAGE + threads * slab_bytes();
  }
  int64_t slab_bytes() const { return aligned((columns > 0 ? most() : high * row) * size()); }

  // Rows by themselves, if they are short beside the whole.
  void choose(int threads) {
    const Plan p = plan_of(cmd);
    const bool together = p.reduced <= 1 && (p.n <= 1 || p.strides[0][0] == 1) && p.kept <= 1 && (p.count <= 1 || p.kept_strides[0][0] == p.n);
    row = p.n, high = columns = 0, count = p.count;
    if (x.count > 0 && p.columns && p.side == 1) {
      columns = p.kept_dims[p.kept - 1];
      return;
    }
    if (!together || p.blocks > 1 || x.count == 0) return;
    high = SLAB_BYTES / (row * size());
    if (high > p.count) high = p.count;
    if (high < 1) high = 1;
    if (high * row * size() > bytes() / threads && threads > 1) {
      const int64_t fair = (p.count + threads - 1) / threads;
      if (high > fair) high = fair;
    }
  }
};

// Where the operands broadcast to.
region::Draft draft_of(Command &c) {
  region::Draft r(c, c.num_in);
  r.by_rows = true;
  for (uint32_t k = 0; k < c.num_in; k++)
    if (int(c.in[k].rank) > r.box.rank) r.box.rank = int(c.in[k].rank);
  for (int d = 0; d < r.box.rank; d++) {
    r.box.dims[d] = 1;
    for (uint32_t k = 0; k < c.num_in; k++) {
      const int at = d - (r.box.rank - int(c.in[k].rank));
      if (at >= 0 && c.in[k].dims[at] != 1) r.box.dims[d] = c.in[k].dims[at];
    }
    r.box.count *= r.box.dims[d];
  }
  return r;
}

// What PREPARE leaves with the command.
struct Prepared {
  region::Box box;
  const region::Layout *layout;  // null where nothing is reduced, or nothing made
  Kernel kernel;
  Splitter split;
  bool max_abs, product;
  uint32_t factors[2];  // of a product: its operands
};

struct Job {
  const Call &call;
  const region::Region &region;
  const Call &reduce;
  const Inner &inner;
  Kernel kernel;
  char *slabs;
  int64_t slab;
};

// Half a page from where the operand lies: a load waits for an earlier store whose address has the same lowest 12 bits.
char *apart(char *p, const void *operand) { return p + (reinterpret_cast<uintptr_t>(operand) + PAGE / 2 - reinterpret_cast<uintptr_t>(p)) % PAGE / 64 * 64; }

// Address arithmetic only: element 0 of x may lie outside of the slab.
char *before(char *p, int64_t bytes) { return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(p) - uintptr_t(bytes)); }

void slabs(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  const int64_t row = j.inner.row, high = j.inner.high, tile = j.region.layout.tile, count = j.inner.x.count / row;
  char **table = j.region.enter(slot);
  for (int64_t b = begin; b < end; b++) {
    const int64_t first = b * high, last = count - first < high ? count : first + high;
    char *x = before(j.slabs + slot * j.slab, first * row * j.inner.size());
    for (int64_t at = first * row; at < last * row; at += tile) {
      if (j.call.stopped()) return;
      j.region.run(table, &x, at, last * row - at < tile ? last * row - at : tile, at);
    }
    Call inner = j.reduce;
    const void *in[1] = {x};
    inner.in_data = in;
    j.kernel(inner, Range{first, last});
  }
}

// The columns of one position on the axes before them are a unit, or STRIP of them.
struct Columns {
  const Call &reduce;
  const region::Region &region;
  Inner &inner;
  Kernel kernel;
  char *slabs;
  int64_t slab;
};

const void *make_rows(const void *ctx, int slot, int64_t first, int64_t n, int64_t rows, int64_t step) {
  const Columns &j = *static_cast<const Columns *>(ctx);
  const int64_t tile = j.region.layout.tile;
  char *x = j.slabs + slot * j.slab;
  if (step == n) n *= rows, rows = 1;
  char **table = j.region.table_of(slot);
  for (int64_t k = 0, to = 0; k < rows; k++)
    for (int64_t at = 0, m; at < n; at += m, to += m) {
      m = n - at < tile ? n - at : tile;
      j.region.run(table, &x, first + k * step + at, m, to);
    }
  return x;
}

void column_units(void *ctx, int64_t begin, int64_t end, int slot) {
  const Columns &j = *static_cast<const Columns *>(ctx);
  Made made = j.inner.made;
  made.slot = slot;
  Command cmd = j.inner.cmd;
  cmd.attrs = &made;
  Call c = j.reduce;
  c.cmd = &cmd;
  const int64_t columns = j.inner.columns, strips = (columns + STRIP - 1) / STRIP;
  for (int64_t u = begin; u < end && !c.stopped(); u++) {
    const int64_t first = u / strips * columns, from = u % strips * STRIP, to = from + STRIP < columns ? from + STRIP : columns;
    j.kernel(c, Range{first + from, first + to});
  }
}

void run_columns(const Call &c, const Call &reduce, const region::Region &region, Inner &inner, Kernel kernel, char *made) {
  Columns j = {reduce, region, inner, kernel, apart(made, c.in_data[0]), inner.slab_bytes()};
  inner.made.make = make_rows, inner.made.ctx = &j, inner.made.most = inner.most();
  inner.cmd.op = RLX_OP_ReduceRegion;
  for (int slot = 0; slot < c.threads(); slot++) region.enter(slot);
  if (plan_of(inner.cmd).blocks > 1) return kernel(reduce, Range{0, 1});
  const int64_t strips = (inner.columns + STRIP - 1) / STRIP;
  c.parallel(inner.count / inner.columns * strips, 1, column_units, &j);
}

struct Units {
  const Call &call;
  Kernel kernel;
};
void units(void *ctx, int64_t begin, int64_t end, int) {
  const Units &u = *static_cast<const Units *>(ctx);
  if (!u.call.stopped()) u.kernel(u.call, Range{begin, end});
}

void run_whole(const Call &c, const Call &reduce, Kernel kernel, Splitter split) {
  const Split s = split(reduce);
  Units u = {reduce, kernel};
  if (s.units == 1) return kernel(reduce, Range{0, 1});
  c.parallel(s.units, s.grain, units, &u);
}

// The greatest magnitude of an f32, which quantisation asks for: one loop has it.
bool is_max_abs(const Command &c, const Inner &inner) {
  const rlx_program &body = *static_cast<const rlx_program *>(body_of(c, 0));
  if (inner.made.attrs.fn != rlx_ReduceFn_max || inner.x.dtype != RLX_F32 || c.num_in != 1 || !c.in[0].contiguous || body.num_commands != 1) return false;
  const Command &b = body.command(0);
  return b.out[0].slot == RLX_OUTPUT && b.op == RLX_OP_Activation && static_cast<const rlx_ActivationAttrs *>(b.attrs)->fn == rlx_UnaryFn_abs && b.in[0].slot == RLX_INPUT;
}

// Sums of columns of products of two operands that lie as the product would: the kernel of Reduce multiplies as it adds.
bool is_product(const Command &c, const Inner &inner, uint32_t *factors) {
  const rlx_program &body = *static_cast<const rlx_program *>(body_of(c, 0));
  const int64_t fn = inner.made.attrs.fn;
  if ((fn != rlx_ReduceFn_sum && fn != rlx_ReduceFn_mean) || inner.x.dtype != RLX_F32 || body.num_commands != 1) return false;
  const Command &b = body.command(0);
  if (b.out[0].slot != RLX_OUTPUT || b.op != RLX_OP_Binary || static_cast<const rlx_BinaryAttrs *>(b.attrs)->fn != rlx_BinaryFn_mul) return false;
  for (int k = 0; k < 2; k++) {
    if (b.in[k].slot != RLX_INPUT) return false;
    const Operand &o = c.in[factors[k] = b.in[k].index];
    if (o.dtype != RLX_F32 || !o.contiguous || o.count != inner.x.count) return false;
  }
  const Plan p = plan_of(inner.cmd);
  return p.columns && p.side == 1;
}

}  // namespace

int32_t reduce_region_prepare(Prepare &q) {
  Command &c = *q.cmd;
  region::Draft d = draft_of(c);
  int32_t code = d.number();
  if (code != RLX_OK) return code;
  Prepared *kept = static_cast<Prepared *>(q.keep(sizeof(Prepared)));
  if (kept == nullptr) return RLX_NO_MEMORY;
  *kept = Prepared{};
  c.keep_prepared(kept);
  kept->box = d.box;
  Inner inner(c, d.box);
  if (!registry_find(RLX_OP_Reduce, inner.x.dtype, &kept->kernel, &kept->split)) return RLX_BAD_WORDS;
  kept->max_abs = is_max_abs(c, inner);
  kept->product = is_product(c, inner, kept->factors);
  Prepare p = q;
  p.cmd = &inner.cmd;
  inner.cmd.scratch = 0;
  reduce_prepare(p);
  if (kept->max_abs || kept->product) {  // nothing is made
    c.scratch = inner.cmd.scratch;
    return RLX_OK;
  }
  if (d.box.count > 0 && (code = d.lay_out(q, &kept->layout)) != RLX_OK) return code;
  for (int threads = 1; threads <= q.max_threads; threads++) {
    inner.choose(threads);
    const int64_t bytes = (kept->layout != nullptr ? aligned(kept->layout->bytes(threads)) : 0) + inner.made_bytes(threads) + aligned(inner.cmd.scratch);
    if (bytes > c.scratch) c.scratch = bytes;
  }
  return RLX_OK;
}

void reduce_region(const Call &c, Range) {
  const Prepared &kept = *c.cmd->prepared<Prepared>();
  Inner inner(*c.cmd, kept.box);
  inner.choose(c.threads());
  Call reduce = c;
  reduce.cmd = &inner.cmd;
  if (kept.max_abs) {
    inner.made.attrs.fn = MAX_ABS;
    reduce.in_data = c.in_data;
    return run_whole(c, reduce, kept.kernel, kept.split);
  }
  if (kept.product) {
    const void *in[2] = {c.in_data[kept.factors[0]], c.in_data[kept.factors[1]]};
    inner.cmd.num_in = 2;
    reduce.in_data = in;
    return run_whole(c, reduce, kept.kernel, kept.split);
  }
  char *made = static_cast<char *>(c.scratch);
  if (kept.layout == nullptr) {
    reduce.in_data = reinterpret_cast<const void *const *>(&made);
    return run_whole(c, reduce, kept.kernel, kept.split);
  }
  region::Region r(*kept.layout);
  r.open(made, [&](uint32_t j) { return c.in_data[j]; });
  made += aligned(kept.layout->bytes(c.threads()));
  if (inner.high > 0) {
    Job j = {c, r, reduce, inner, kept.kernel, apart(made, c.in_data[0]), inner.slab_bytes()};
    const int64_t units = (inner.count + inner.high - 1) / inner.high, grain = units / (4 * c.threads());
    return c.parallel(units, c.threads() == 1 ? units : grain < GRAIN ? grain : GRAIN, slabs, &j);
  }
  reduce.scratch = made + inner.made_bytes(c.threads());
  if (inner.columns > 0) return run_columns(c, reduce, r, inner, kept.kernel, made);
  run_all(c, r, &made);
  if (c.stopped()) return;
  const void *in[1] = {made};
  reduce.in_data = in;
  run_whole(c, reduce, kept.kernel, kept.split);
}

}  // namespace reduce
}  // namespace rlx
