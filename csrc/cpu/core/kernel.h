// kernel.h: what a CPU kernel sees. A kernel is a function of a Call (one command of a running program) and a Range (the part that
// one worker does). Its row in the family's kernels.h is its declaration, dispatch, capability, test and benchmark:
//
//   KERNEL(op, dtypes, isa, flags, split, function)
//     op        kind, as in the op table
//     dtypes    a dtype or a class of them (f32, real, any ...; RLX_DTYPES_<name> in rlx_ops_gen.h) of the first operand
//     isa       generic, avx2, avx512, neon; the best one that the machine has wins, per op and dtype. Every op and dtype has a generic row
//     flags     strided: operands may have any strides; dense: the planner makes them contiguous first
//     split     how work is cut: a function Split(const Call &), one of those below or one of the family's own
//     function  void(const Call &, Range)
//   SPLIT(function)
//     declares a split of the family's own; stands before the rows that use it
//   PREPARE(op, dtypes, function)
//     int32_t(Prepare &): runs once at load, after the kernel is chosen: asks for scratch, packs constant operands, keeps what all runs share
//
// kernels.h holds these rows and comments only, no includes and no guard: core reads it several times, inside namespace rlx::<family>.
//
// What a kernel may rely on: what words.h says of decoded words. Kernels never allocate, and a unit of work gives the same bits whatever Range it came in.
#pragma once
#include "rlx_begin.h"
#include "integers.h"
#include "../../common/words.h"

namespace rlx {

struct Pool;

// Members of the attribute structs of rlx_ops_gen.h.
using Ints = rlx_ints;  // n < 0: absent
using Floats = rlx_floats;
using Text = rlx_text;
using OptInt = rlx_optint;
using Number = rlx_number;
using TensorAttr = rlx_tensor;

struct Range { int64_t begin, end; };
struct Split { int64_t units, grain; };  // units of work, and how many of them one worker takes at a time; without units no kernel is called

struct Call;
typedef void (*Kernel)(const Call &, Range);
typedef Split (*Splitter)(const Call &);

// One command, decoded at load, with its kernel.
struct Command : DecodedCommand {
  Kernel kernel = nullptr;
  Splitter split = nullptr;
  int64_t scratch = 0;           // bytes that a run gives to Call::scratch
  const void *packed = nullptr;  // what PREPARE left in the weights: a packed constant
  uint32_t replaced = 0;         // a bit for each of the first operands that the kernel does not read: it has a packed form
  int64_t detail[4] = {};        // free for PREPARE and its kernel

  // What PREPARE kept in the program, in detail[0].
  template <class T> const T *prepared() const { return reinterpret_cast<const T *>(detail[0]); }
  void keep_prepared(const void *p) { detail[0] = reinterpret_cast<int64_t>(p); }
};

struct Run;  // one running program

// A command with its memory. Copyable; lives on the stack of the run.
struct Call {
  const Command *cmd;
  void *const *out_data;       // element 0 of each result
  const void *const *in_data;  // element 0 (all indices 0) of each operand, null where absent
  void *scratch;               // cmd->scratch bytes, 64-byte aligned
  Run *run;

  const Operand &out(int i) const { return cmd->out[i]; }
  const Operand &in(int i) const { return cmd->in[i]; }
  bool has(int i) const { return uint32_t(i) < cmd->num_in && cmd->in[i].present; }
  template <class T> T *out_ptr(int i) const { return static_cast<T *>(out_data[i]); }
  template <class T> const T *in_ptr(int i) const { return static_cast<const T *>(in_data[i]); }
  template <class A> const A &attrs() const { return *static_cast<const A *>(cmd->attrs); }

  // Records a violated constraint ("C7", "index %lld out of range [-%lld, %lld)"); the first one stops the run. May be called by any worker.
  void fail(const char *constraint, const char *format, ...) const __attribute__((format(printf, 3, 4)));
  bool stopped() const;   // cancelled or failed: leave early
  int threads() const;    // workers that this run may use
  uint64_t seed() const;  // of the run, for random numbers
  // Runs fn over [0, units) in pieces of grain on the pool, this thread included; slot is below threads(). For kernels in phases,
  // whose split is `whole`.
  void parallel(int64_t units, int64_t grain, void (*fn)(void *ctx, int64_t begin, int64_t end, int slot), void *ctx) const;
  // Runs sub-graph i of the command, in body_memory(*cmd, i) bytes at memory, 64-byte aligned: inputs and outputs are element 0 of each, and
  // outputs overlap nothing else. False: the run failed or was cancelled. For kernels whose split is `whole`.
  bool run_body(uint32_t i, char *memory, void *const *inputs, void *const *outputs) const;
  // For engines that take them: the pool, and the word that stops the run (may be null).
  Pool *pool() const;
  const volatile uint32_t *cancel() const;
};

// What PREPARE may ask of sub-graph i of a command: what a run of it needs, and the bytes of its input or output k.
int64_t body_memory(const Command &c, uint32_t i);
int64_t body_bytes(const Command &c, uint32_t i, uint32_t slot, uint32_t k);

// Gives back what a packed form was made of: raw is the whole constant, view the operand in it.
typedef void (*Unpack)(const Operand &view, const int64_t *how, const char *packed, char *raw);

// A packed form of a constant operand.
struct PackedForm {
  uint64_t layout;  // a number that the family makes up, unique with the op in its upper half
  int64_t bytes;
  Unpack unpack;    // null: the constant must be kept beside it
  int64_t how[4];   // for unpack
};

struct Prepare;

// A constant operand, of which a packed form may be kept: its bytes are brought back when the address is asked for, so ask only to fill a form.
struct Source {
  Prepare *prepare;
  int operand;
  bool there;
  explicit operator bool() const { return there; }
  inline operator const void *() const;  // element 0, aligned as its elements are; null where there is none, or memory runs out
};

// What PREPARE gets. It returns an rlx_status, and may change the command: scratch, packed, detail, also kernel and split.
struct Prepare {
  Command *cmd;
  int max_threads;
  int isa;
  Pool *pool;
  bool (*is_constant)(Prepare &, int i, bool whole);
  void *(*packed)(Prepare &, int i, const PackedForm &, bool *fresh);
  const void *(*source)(Prepare &, int i);
  void *impl;

  // Memory that lives as long as the program, aligned for any type: runs share it and only read it. Null when memory runs out.
  void *keep(uint64_t bytes);
  // Operand i if it is a whole, contiguous constant of which a packed form may be kept, else nothing: large ones are packed anew in each run.
  Source constant(Prepare &, int i) { return {this, i, is_constant(*this, i, true)}; }
  // Operand i if it lies in such a constant, whatever its strides.
  Source constant_view(Prepare &, int i) { return {this, i, is_constant(*this, i, false)}; }
  // Memory of the weights for operand i in the given form, 64-byte aligned: *fresh is set when the caller must fill it. Shared by every load
  // with the same view of the constant and the same layout. The kernel must not read the operand itself: its memory may be gone. Null when
  // memory runs out: return RLX_NO_MEMORY. Two loads never prepare with the same weights at once.
  void *cache(Prepare &, int i, const PackedForm &form, bool *fresh) { return packed(*this, i, form, fresh); }
  void *cache(Prepare &, int i, uint64_t layout, int64_t bytes, bool *fresh) { return packed(*this, i, {layout, bytes, nullptr, {}}, fresh); }
};

inline Source::operator const void *() const { return there ? prepare->source(*prepare, operand) : nullptr; }

// The usual splits. A grain is about 16 KiB of results, so that small commands stay on the calling thread.
Split whole(const Call &);     // one unit: the kernel does everything, or calls parallel itself
Split elements(const Call &);  // units are elements of result 0
Split rows(const Call &);      // units are rows of result 0: all dims but the last
Split in_rows(const Call &);   // units are rows of operand 0

// Walks the elements [begin, end) of a shape with up to N operands' strides: gives runs along the last axis.
//   for (Walk<3> w(c.out(0), strides, begin, end); w.next();)  // w.n elements, operand k starts at element w.at[k], step w.step[k]
template <int N> struct Walk {
  int64_t n = 0, at[N] = {}, step[N] = {};

  // out: the result, whose dims are walked; strides[k]: operand k's strides broadcast to it (see broadcast_strides).
  Walk(const Operand &out, const int64_t (*strides)[RLX_MAX_RANK], int64_t begin, int64_t end) : Walk(out.dims, int(out.rank), strides, begin, end) {}
  Walk(const int64_t *dims, int rank, const int64_t (*strides)[RLX_MAX_RANK], int64_t begin, int64_t end)
      : dims_(dims), rank_(rank), strides_(strides), left_(end - begin), last_(rank ? dims[rank - 1] : 1) {
    if (left_ <= 0) return;
    for (int k = 0; k < N; k++) step[k] = rank_ ? strides_[k][rank_ - 1] : 0;
    int64_t rest = begin / last_;
    col_ = begin % last_;
    for (int d = rank_ - 2; d >= 0; d--) {
      idx_[d] = rest % dims_[d];
      rest /= dims_[d];
      for (int k = 0; k < N; k++) row_[k] += idx_[d] * strides_[k][d];
    }
  }
  bool next() {
    if (n != 0 && (col_ += n) == last_) {
      col_ = 0;
      carry();
    }
    left_ -= n;
    if (left_ <= 0) return false;
    n = last_ - col_ < left_ ? last_ - col_ : left_;
    for (int k = 0; k < N; k++) at[k] = row_[k] + col_ * step[k];
    return true;
  }

 private:
  // Steps the axes before the last, as an odometer does.
  void carry() {
    for (int d = rank_ - 2; d >= 0; d--) {
      for (int k = 0; k < N; k++) row_[k] += strides_[k][d];
      if (++idx_[d] < dims_[d]) return;
      for (int k = 0; k < N; k++) row_[k] -= dims_[d] * strides_[k][d];
      idx_[d] = 0;
    }
  }

  const int64_t *dims_;
  int rank_;
  const int64_t (*strides_)[RLX_MAX_RANK];
  int64_t left_, last_, col_ = 0, idx_[RLX_MAX_RANK] = {}, row_[N] = {};
};

// Strides of an operand under the dims of a result that it broadcasts to: 0 where it is stretched.
inline void broadcast_strides(const Operand &in, const Operand &out, int64_t *strides) {
  const int lead = int(out.rank) - int(in.rank);
  for (int d = 0; d < int(out.rank); d++) strides[d] = d < lead || in.dims[d - lead] == 1 ? 0 : in.strides[d - lead];
}

// Merges axes over which every one of n operands moves evenly, and drops axes of length 1: fewer, longer runs for Walk. Changes dims and
// strides in place and returns the new rank.
inline int merge_axes(int64_t *dims, int rank, int64_t (*strides)[RLX_MAX_RANK], int n) {
  int r = 0;
  for (int d = 0; d < rank; d++) {
    if (dims[d] == 1) continue;
    bool even = r > 0;
    for (int k = 0; k < n && even; k++) even = strides[k][r - 1] == strides[k][d] * dims[d];
    if (even) {
      dims[r - 1] *= dims[d];
      for (int k = 0; k < n; k++) strides[k][r - 1] = strides[k][d];
      continue;
    }
    dims[r] = dims[d];
    for (int k = 0; k < n; k++) strides[k][r] = strides[k][d];
    r++;
  }
  return r;
}

}  // namespace rlx
