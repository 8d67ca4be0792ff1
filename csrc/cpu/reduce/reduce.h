// reduce.h: what the files of Reduce share. A kernel sees the kept axes, whose elements are the results, and the reduced axes, both
// merged as far as strides allow.
//
//   rows      the reduced elements of a result lie together (or anywhere: then they are gathered): one result at a time, in lanes
//   columns   the results lie together in x, or are made of few elements: lanes are results, each of which adds its elements in order
//
// Few results of many elements are cut into blocks of the reduced elements, whose partial results are combined in order. All of it
// depends on shapes and strides alone, never on threads: a result has the same bits in whatever Range it is computed.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"

namespace rlx {
namespace reduce {

constexpr int64_t MAX_ABS = 64;  // what a region that takes the greatest magnitude runs as: max of |x|, f32 alone

struct Plan {
  int kept = 0, reduced = 0;  // ranks
  int64_t kept_dims[RLX_MAX_RANK] = {}, kept_strides[1][RLX_MAX_RANK] = {};
  int64_t dims[RLX_MAX_RANK] = {}, strides[1][RLX_MAX_RANK] = {};
  int64_t start = 0;            // of the first reduced element, seen from the element of x with all indices 0
  int64_t count = 1, n = 1;     // results; elements that each is made of
  int64_t fn = 0;               // rlx_ReduceFn, or MAX_ABS
  bool columns = false;
  int64_t side = 1;             // from one column to the next
  int64_t blocks = 1, block = 0;  // parts of the reduced elements and their length
  bool resume = false;          // of columns: partial results go on from what stands in their place
  bool made = false;            // x was made a moment ago and lies in cache
  const float *factor = nullptr;  // of sums of columns of f32: lies as x does, and each element is multiplied by it. Operand 1 of the command

  Walk<1> results(int64_t begin, int64_t end) const { return Walk<1>(kept_dims, kept, kept_strides, begin, end); }
  Walk<1> elements(int64_t begin, int64_t end) const { return Walk<1>(dims, reduced, strides, begin, end); }
};

Plan plan_of(const Command &c);
int32_t reduce_prepare(Prepare &);

constexpr int TILE = 256;    // columns that are accumulated together
constexpr int STRIP = 512;   // columns of an x that is made piece by piece
constexpr int GROUP = 8;     // rows of columns that are added at a time: each time all accumulators come and go
constexpr int GATHER = 256;  // elements gathered together

// The attributes of a command whose op is ReduceRegion: a Reduce over columns that lie together, of an x that is not in memory. make writes `rows`
// runs of n of its elements, `step` apart and the first at element `first` of x, one behind the other into memory of the slot, and returns where.
struct Made {
  rlx_ReduceAttrs attrs;
  const void *(*make)(const void *ctx, int slot, int64_t first, int64_t n, int64_t rows, int64_t step);
  const void *ctx;
  int64_t most;  // elements of one call, no less than GROUP rows of STRIP or of all columns
  int slot;      // of the caller, where the kernel does not split the work itself
};

// One NaN for all: which operand's sign and payload an addition keeps is up to the compiler, and would differ between equal results.
inline double one_nan(double x) { return x != x ? double(NAN) : x; }

// What is left to do for a float result when all elements are in.
inline double finish(const Plan &p, double s) {
  s = one_nan(s);
  switch (p.fn) {
    case rlx_ReduceFn_mean: return s / double(p.n);
    case rlx_ReduceFn_l2: return ::sqrt(s);
    case rlx_ReduceFn_log_sum: return ::log(s);
    default: return s;
  }
}

// Runs the kernel of one dtype. M gives
//   Acc                                                      the type of a partial result
//   void part(x, plan, begin, end, from, to, Acc *)          partial results [begin, end) of the reduced elements [from, to)
//   Acc join(fn, Acc, Acc), void put(plan, Acc *, y, n)      combines two; writes n results
template <class M> struct Driver {
  typedef typename M::T T;
  typedef typename M::Acc Acc;

  struct Job {
    const Call *call;
    const Plan *plan;
  };
  static const Made *made_of(const Call &c) { return c.cmd->op == RLX_OP_ReduceRegion ? static_cast<const Made *>(c.cmd->attrs) : nullptr; }

  // M::part over an x that is made as it is added: as many rows at a time as there is room for, each column in the order of the plan.
  static void part_made(const Call &c, const Made &m, int slot, const Plan &p, int64_t begin, int64_t end, int64_t from, int64_t to, Acc *out) {
    Plan piece = p;
    piece.kept = piece.reduced = 1, piece.kept_strides[0][0] = 1, piece.start = 0, piece.made = true;
    for (Walk<1> w = p.results(begin, end); w.next(); out += w.n) {
      piece.kept_dims[0] = piece.count = piece.strides[0][0] = w.n, piece.resume = false;
      const int64_t most = m.most / w.n;
      for (Walk<1> e = p.elements(from, to); e.next();)
        for (int64_t k = 0, rows; k < e.n && !c.stopped(); k += rows, piece.resume = true) {
          rows = e.n - k < most ? e.n - k : most;
          const void *x = m.make(m.ctx, slot, p.start + w.at[0] + e.at[0] + k * e.step[0], w.n, rows, e.step[0]);
          piece.dims[0] = piece.n = rows;
          M::part(static_cast<const T *>(x), piece, 0, w.n, 0, rows, out);
        }
    }
  }

  static void block(void *ctx, int64_t begin, int64_t end, int slot) {
    const Job &j = *static_cast<const Job *>(ctx);
    const Plan &p = *j.plan;
    const Made *made = made_of(*j.call);
    for (int64_t b = begin; b < end && !j.call->stopped(); b++) {
      const int64_t from = b * p.block, to = from + p.block < p.n ? from + p.block : p.n;
      Acc *out = static_cast<Acc *>(j.call->scratch) + b * p.count;
      if (made == nullptr) {
        M::part(j.call->template in_ptr<T>(0), p, 0, p.count, from, to, out);
        continue;
      }
      for (int64_t i = 0; i < p.count; i += STRIP) part_made(*j.call, *made, slot, p, i, i + STRIP < p.count ? i + STRIP : p.count, from, to, out + i);
    }
  }

  static void run_made(const Call &c, const Made &made, const Plan &p, Range r) {
    Acc a[STRIP];
    for (int64_t i = r.begin; i < r.end && !c.stopped(); i += STRIP) {
      const int64_t n = r.end - i < STRIP ? r.end - i : STRIP;
      part_made(c, made, made.slot, p, i, i + n, 0, p.n, a);
      M::put(p, a, c.template out_ptr<T>(0) + i, n);
    }
  }

  static void run(const Call &c, Range r) {
    Plan p = plan_of(*c.cmd);
    if (c.cmd->num_in == 2) p.factor = static_cast<const float *>(c.in_data[1]);
    if (p.blocks > 1) {
      Job j = {&c, &p};
      c.parallel(p.blocks, 1, block, &j);
      if (c.stopped()) return;
      Acc *a = static_cast<Acc *>(c.scratch);
      for (int64_t b = 1; b < p.blocks; b++)
        for (int64_t i = 0; i < p.count; i++) a[i] = M::join(p.fn, a[i], a[b * p.count + i]);
      M::put(p, a, c.template out_ptr<T>(0), p.count);
      return;
    }
    if (const Made *made = made_of(c)) return run_made(c, *made, p, r);
    Acc a[TILE];
    for (int64_t i = r.begin; i < r.end && !c.stopped(); i += TILE) {
      const int64_t n = r.end - i < TILE ? r.end - i : TILE;
      M::part(c.template in_ptr<T>(0), p, i, i + n, 0, p.n, a);
      M::put(p, a, c.template out_ptr<T>(0) + i, n);
    }
  }
};

}  // namespace reduce
}  // namespace rlx
