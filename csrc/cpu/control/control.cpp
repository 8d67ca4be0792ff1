// If, While and Scan. A sub-graph is a program of its own that runs in the command's scratch. Carries live in two sets of buffers there: a trip
// reads one and writes the other, so that a body may return its inputs in any order. Rows of what is scanned and of what is stacked are read and
// written where they lie.
#include "../core/rlx_begin.h"

#include <cstring>

#include "../core/kernel.h"

namespace rlx {
namespace control {
namespace {

constexpr int64_t kNoFit = INT64_MAX - 63;  // a size that no run has memory for: the load refuses it

// a and n bytes more, the sum aligned; sizes come from words, which may say anything.
int64_t grown(int64_t a, int64_t n) {
  int64_t sum;
  if (__builtin_add_overflow(a, n, &sum) || sum > kNoFit) return kNoFit;
  return (sum + 63) & ~int64_t(63);
}
int64_t bytes_of(const Operand &o) { return o.count * int64_t(rlx_dtype_sizes[o.dtype]); }
// Of a row of a stack, or of what is scanned. A stack of no rows may have rows whose size does not fit.
int64_t row_bytes(const Operand &o) {
  int64_t n = rlx_dtype_sizes[o.dtype];
  for (uint32_t d = 1; d < o.rank; d++)
    if (o.dims[d] == 0) return 0;
  for (uint32_t d = 1; d < o.rank; d++)
    if (__builtin_mul_overflow(n, o.dims[d], &n)) return kNoFit;
  return n;
}

// Where things lie in the scratch of a command: memory of the bodies, pointers to their inputs and outputs, the flag that a condition
// writes, two sets of carries, and a row for each of the last stacks, which takes what its stack has no memory for.
struct Layout {
  int64_t inputs, outputs, flag, carries[2], spill, end;
};

Layout layout(const Command &c, uint32_t bodies, uint32_t n, uint32_t stacks) {
  int64_t memory = 0;
  for (uint32_t i = 0; i < bodies; i++) memory = body_memory(c, i) > memory ? body_memory(c, i) : memory;
  Layout l = {};
  l.inputs = grown(memory, 0);
  l.outputs = grown(l.inputs, 8 * int64_t(c.num_in));
  l.flag = grown(l.outputs, 8 * (int64_t(c.num_out) + 1));
  int64_t at = grown(l.flag, 64);
  for (int64_t &set : l.carries) {
    set = at;
    for (uint32_t i = 0; i < n; i++) at = grown(at, bytes_of(c.in[i]));
  }
  l.spill = at;
  for (uint32_t i = n; i < n + stacks; i++) at = grown(at, row_bytes(c.out[i]));
  l.end = at;
  return l;
}

// Whether input or output k of sub-graph i has the size of a tensor that stands for it: the words are not trusted.
bool takes(const Command &c, uint32_t i, uint32_t k, int64_t bytes) { return body_bytes(c, i, RLX_INPUT, k) == bytes; }
bool gives(const Command &c, uint32_t i, uint32_t k, int64_t bytes) { return body_bytes(c, i, RLX_OUTPUT, k) == bytes; }
bool ends(const Command &c, uint32_t i, uint32_t inputs, uint32_t outputs) {
  return body_bytes(c, i, RLX_INPUT, inputs) < 0 && body_bytes(c, i, RLX_OUTPUT, outputs) < 0;
}

uint32_t carries_of(const Call &c) { return uint32_t(c.cmd->detail[0]); }

// The carries of a loop on their way: in the operands first, then in one of the two sets.
struct Carries {
  const Call &c;
  const Layout l;
  uint32_t n;
  char *scratch;
  void **inputs, **outputs;
  int next = 0;  // the set that the trip writes

  Carries(const Call &call, uint32_t bodies, uint32_t stacks)
      : c(call), l(layout(*call.cmd, bodies, carries_of(call), stacks)), n(carries_of(call)), scratch(static_cast<char *>(call.scratch)),
        inputs(reinterpret_cast<void **>(scratch + l.inputs)), outputs(reinterpret_cast<void **>(scratch + l.outputs)) {
    for (uint32_t i = 0; i < call.cmd->num_in; i++) inputs[i] = const_cast<void *>(call.in_data[i]);
    aim();
  }
  // Points the outputs of the body at the next set.
  void aim() {
    int64_t at = l.carries[next];
    for (uint32_t i = 0; i < n; i++) {
      outputs[i] = scratch + at;
      at = grown(at, bytes_of(c.in(int(i))));
    }
  }
  void step() {
    for (uint32_t i = 0; i < n; i++) inputs[i] = outputs[i];
    next = 1 - next;
    aim();
  }
  void finish() const {
    for (uint32_t i = 0; i < n; i++) std::memmove(c.out_data[i], inputs[i], size_t(bytes_of(c.in(int(i)))));
  }
};

bool flag_of(const void *p) { return *static_cast<const unsigned char *>(p) != 0; }

}  // namespace

int32_t if_prepare(Prepare &p) {
  Command &c = *p.cmd;
  if (num_bodies(c) != 2 || !c.in[0].present || c.in[0].dtype != RLX_BOOL || c.in[0].count != 1) return RLX_BAD_WORDS;
  for (uint32_t b = 0; b < 2; b++) {
    for (uint32_t i = 1; i < c.num_in; i++)
      if (!takes(c, b, i - 1, bytes_of(c.in[i]))) return RLX_BAD_WORDS;
    for (uint32_t i = 0; i < c.num_out; i++)
      if (!gives(c, b, i, bytes_of(c.out[i]))) return RLX_BAD_WORDS;
    if (!ends(c, b, c.num_in - 1, c.num_out)) return RLX_BAD_WORDS;
    if (body_memory(c, b) > c.scratch) c.scratch = body_memory(c, b);
  }
  return RLX_OK;
}

void if_branch(const Call &c, Range) {
  c.run_body(flag_of(c.in_data[0]) ? 0 : 1, static_cast<char *>(c.scratch), const_cast<void *const *>(c.in_data) + 1, c.out_data);
}

int32_t while_prepare(Prepare &p) {
  Command &c = *p.cmd;
  const rlx_WhileAttrs &a = *static_cast<const rlx_WhileAttrs *>(c.attrs);
  const int64_t n = a.num_carries.present ? a.num_carries.v : int64_t(c.num_in), emits = a.num_emits;
  if (num_bodies(c) != 2 || n < 0 || n > int64_t(c.num_in) || emits < 0 || emits > int64_t(c.num_out)) return RLX_BAD_WORDS;
  if (int64_t(c.num_out) != n + emits + (emits > 0)) return RLX_BAD_WORDS;
  for (uint32_t b = 0; b < 2; b++)
    for (uint32_t i = 0; i < c.num_in; i++)
      if (!takes(c, b, i, bytes_of(c.in[i]))) return RLX_BAD_WORDS;
  if (!gives(c, 0, 0, 1) || !ends(c, 0, c.num_in, 1) || !ends(c, 1, c.num_in, uint32_t(n + emits))) return RLX_BAD_WORDS;
  for (uint32_t i = 0; i < uint32_t(n + emits); i++) {
    const bool carry = int64_t(i) < n;
    if (!carry && c.out[i].rank == 0) return RLX_BAD_WORDS;
    if (carry && bytes_of(c.in[i]) != bytes_of(c.out[i])) return RLX_BAD_WORDS;
    if (!gives(c, 1, i, carry ? bytes_of(c.out[i]) : row_bytes(c.out[i]))) return RLX_BAD_WORDS;
    if (!carry && c.out[i].dims[0] != c.out[n].dims[0]) return RLX_BAD_WORDS;
  }
  if (emits > 0 && bytes_of(c.out[n + emits]) != 8) return RLX_BAD_WORDS;
  c.detail[0] = n;
  c.scratch = layout(c, 2, uint32_t(n), uint32_t(emits)).end;
  return RLX_OK;
}

void while_loop(const Call &c, Range) {
  const rlx_WhileAttrs &a = c.attrs<rlx_WhileAttrs>();
  const uint32_t stacks = uint32_t(a.num_emits);
  Carries v(c, 2, stacks);
  void *flag[1] = {v.scratch + v.l.flag};
  const int64_t rows = stacks > 0 ? c.out(int(v.n)).dims[0] : 0;
  int64_t trips = 0;
  for (; a.max_trips < 0 || trips < a.max_trips; trips++) {
    if (!c.run_body(0, v.scratch, v.inputs, flag)) return;
    if (!flag_of(flag[0])) break;
    int64_t spill = v.l.spill;
    for (uint32_t i = v.n; i < v.n + stacks; i++) {  // beyond the rows there is memory for, only the trips are counted
      const int64_t row = row_bytes(c.out(int(i)));
      v.outputs[i] = trips < rows ? static_cast<char *>(c.out_data[i]) + trips * row : v.scratch + spill;
      spill = grown(spill, row);
    }
    if (!c.run_body(1, v.scratch, v.inputs, v.outputs)) return;
    v.step();
  }
  v.finish();
  if (stacks > 0) std::memcpy(c.out_data[v.n + stacks], &trips, 8);
}

int32_t scan_prepare(Prepare &p) {
  Command &c = *p.cmd;
  const rlx_ScanAttrs &a = *static_cast<const rlx_ScanAttrs *>(c.attrs);
  const int64_t n = a.num_carries, saved = a.num_checkpoints > 0 ? n : 0;
  if (num_bodies(c) != 1 || n < 0 || a.num_captures < 0 || n > int64_t(c.num_in) || a.num_captures > int64_t(c.num_in) - n) return RLX_BAD_WORDS;
  const int64_t first = n + a.num_captures;
  const int64_t ys = int64_t(c.num_out) - n - saved;
  int64_t length = a.length.v;
  if (!a.length.present) {
    if (first >= int64_t(c.num_in) || c.in[first].rank == 0) return RLX_BAD_WORDS;
    length = c.in[first].dims[0];
  }
  if (ys < 0 || length < 0 || a.num_checkpoints < 0 || !ends(c, 0, c.num_in, uint32_t(n + ys))) return RLX_BAD_WORDS;
  for (uint32_t i = 0; i < c.num_in; i++) {
    const bool scanned = int64_t(i) >= first;
    if (scanned && (c.in[i].rank == 0 || c.in[i].dims[0] != length)) return RLX_BAD_WORDS;
    if (!takes(c, 0, i, scanned ? row_bytes(c.in[i]) : bytes_of(c.in[i]))) return RLX_BAD_WORDS;
  }
  for (uint32_t i = 0; i < c.num_out; i++) {
    const Operand &o = c.out[i];
    if (int64_t(i) < n) {
      if (bytes_of(o) != bytes_of(c.in[i]) || !gives(c, 0, i, bytes_of(o))) return RLX_BAD_WORDS;
    } else if (int64_t(i) < n + ys) {
      if (o.rank == 0 || o.dims[0] != length || !gives(c, 0, i, row_bytes(o))) return RLX_BAD_WORDS;
    } else if (o.rank == 0 || o.dims[0] != (length < a.num_checkpoints ? length : a.num_checkpoints) || row_bytes(o) != bytes_of(c.in[i - n - ys])) {
      return RLX_BAD_WORDS;
    }
  }
  c.detail[0] = n, c.detail[1] = length, c.detail[2] = ys;
  c.scratch = layout(c, 1, uint32_t(n), 0).end;
  return RLX_OK;
}

void scan_loop(const Call &c, Range) {
  const rlx_ScanAttrs &a = c.attrs<rlx_ScanAttrs>();
  Carries v(c, 1, 0);
  const int64_t length = c.cmd->detail[1], ys = c.cmd->detail[2];
  const int64_t saved = a.num_checkpoints < length ? a.num_checkpoints : length;
  const uint32_t first = uint32_t(a.num_carries + a.num_captures);
  int64_t row = 0;  // the next checkpoint
  for (int64_t s = 0; s < length; s++) {
    if (row < saved && s == int64_t(__int128(row) * length / saved)) {
      for (uint32_t i = 0; i < v.n; i++) {
        const int64_t bytes = bytes_of(c.in(int(i)));
        std::memcpy(static_cast<char *>(c.out_data[v.n + ys + i]) + row * bytes, v.inputs[i], size_t(bytes));
      }
      row++;
    }
    const int64_t t = a.reverse ? length - 1 - s : s;
    for (uint32_t i = first; i < c.cmd->num_in; i++) v.inputs[i] = static_cast<char *>(const_cast<void *>(c.in_data[i])) + t * row_bytes(c.in(int(i)));
    for (uint32_t i = v.n; i < v.n + ys; i++) v.outputs[i] = static_cast<char *>(c.out_data[i]) + t * row_bytes(c.out(int(i)));
    if (!c.run_body(0, v.scratch, v.inputs, v.outputs)) return;
    v.step();
  }
  v.finish();
}

}  // namespace control
}  // namespace rlx
