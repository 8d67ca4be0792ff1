#include "../core/rlx_begin.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "load.h"

namespace rlx {

struct Run {
  const rlx_program *program;
  const rlx_run_args *args;
  const volatile uint32_t *cancel;
  int threads;
  std::atomic<uint32_t> failed;  // 0, 1 while the first failure is written, 2 after
  rlx_error error;
};

void Call::fail(const char *constraint, const char *format, ...) const {
  uint32_t none = 0;
  if (!run->failed.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) return;
  rlx_error &e = run->error;
  e.code = RLX_BAD_VALUE, e.command = int32_t(cmd->index);
  const int n = snprintf(e.text, sizeof e.text, "%s: %s: ", rlx_op_names[cmd->op], constraint);
  va_list list;
  va_start(list, format);
  if (n >= 0 && size_t(n) < sizeof e.text) vsnprintf(e.text + n, sizeof e.text - size_t(n), format, list);
  va_end(list);
  run->failed.store(2, std::memory_order_release);
}

namespace {

bool cancelled(const volatile uint32_t *word) { return word != nullptr && __atomic_load_n(word, __ATOMIC_RELAXED) != 0; }

uint64_t now_ns() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

void units_of(void *ctx, int64_t begin, int64_t end, int) {
  const Call &c = *static_cast<const Call *>(ctx);
  if (c.run->failed.load(std::memory_order_relaxed) == 0) c.cmd->kernel(c, Range{begin, end});
}

void execute(const Call &c) {
  const Split s = c.cmd->split(c);
  if (s.units <= s.grain || s.units == 1) {
    if (s.units > 0) c.cmd->kernel(c, Range{0, s.units});
    return;
  }
  c.parallel(s.units, s.grain, units_of, const_cast<Call *>(&c));
}

// The start of each tensor of a slot.
struct Bases {
  void *arena[1];
  void *const *slot[kSlots];
};

int32_t bind(const rlx_program *p, const rlx_run_args *a, Bases *b) {
  if (a->arena == nullptr || a->arena->program != p) return set_error(a->error, RLX_BAD_ARGUMENT, -1, "run: the arena is missing or of another program");
  b->arena[0] = a->arena->memory;
  b->slot[RLX_ARENA] = b->arena;
  b->slot[RLX_INPUT] = a->inputs;
  b->slot[RLX_OUTPUT] = a->outputs;
  b->slot[RLX_STATE] = a->states;
  b->slot[RLX_CONST] = p->constants;
  for (int s = RLX_INPUT; s <= RLX_STATE; s++)
    for (uint32_t i = 0; i < p->slots[s] && s != RLX_CONST; i++)
      if (b->slot[s] == nullptr || (b->slot[s][i] == nullptr && p->slot_bytes[s][i] != 0))
        return set_error(a->error, RLX_BAD_ARGUMENT, -1, "run: tensor %u of slot %d has no memory", i, s);
  return RLX_OK;
}

// Of a constant that has a packed form instead this is the address of nothing.
inline void *address(const Bases &b, const Operand &o) {
  return o.present ? reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(b.slot[o.slot][o.index]) + uintptr_t(o.offset)) : nullptr;
}

// Where a command finds its memory.
void point(const Command &c, const rlx_program *p, const Bases &b, char *arena, void **stack, Call *call) {
  void **pointers = c.num_out + c.num_in > kStackPointers ? reinterpret_cast<void **>(arena + p->pointers_at) : stack;
  for (uint32_t k = 0; k < c.num_out + c.num_in; k++) pointers[k] = address(b, c.out[k]);  // operands lie behind results
  call->cmd = &c;
  call->out_data = pointers;
  call->in_data = pointers + c.num_out;
  call->scratch = c.scratch > 0 ? arena + p->scratch_at : nullptr;  // a kernel that asked for none must not have any
}

int32_t commands(Run &r, const Bases &b) {
  const rlx_program *p = r.program;
  const rlx_run_args *a = r.args;
  void *stack[kStackPointers];
  Call call = {};
  call.run = &r;
  if (a->first > p->first_update) r.cancel = nullptr;  // an earlier stretch wrote a state, or the host did between them
  for (uint32_t i = a->first; i < a->first + a->count; i++) {
    if (cancelled(r.cancel)) return set_error(a->error, RLX_CANCELLED, int32_t(i), "cancelled");
    if (i == p->first_update) r.cancel = nullptr;  // a step happens wholly or not at all
    const Command &c = p->command(i);
    const uint32_t at = i - a->first;
    point(c, p, b, a->arena->memory, stack, &call);
    if (a->profile != nullptr) a->profile[2 * at] = now_ns();
    execute(call);
    if (a->profile != nullptr) a->profile[2 * at + 1] = now_ns();
    if (r.failed.load(std::memory_order_acquire) != 0) {
      if (a->error != nullptr) *a->error = r.error;
      return r.error.code;
    }
    if (a->counters != nullptr) a->counters[at]++;
  }
  if (cancelled(r.cancel)) return set_error(a->error, RLX_CANCELLED, -1, "cancelled");  // the last command may have left early
  return RLX_OK;
}

}  // namespace

int32_t run(rlx_program *p, const rlx_run_args *a) {
  if (a == nullptr || a->size != sizeof(rlx_run_args))
    return set_error(a == nullptr ? nullptr : a->error, RLX_BAD_ARGUMENT, -1, "run: rlx_run_args has %u bytes, expected %u", a == nullptr ? 0u : a->size, unsigned(sizeof(rlx_run_args)));
  Run r;
  r.program = p;
  r.args = a;
  r.cancel = a->cancel;
  r.threads = a->max_threads > 0 && a->max_threads < p->device->threads ? a->max_threads : p->device->threads;
  r.failed.store(0, std::memory_order_relaxed);
  Bases b;
  int32_t code = check_stretch(*p, a);
  if (code == RLX_OK) code = bind(p, a, &b);
  return code != RLX_OK ? code : commands(r, b);
}

bool Call::run_body(uint32_t i, char *memory, void *const *inputs, void *const *outputs) const {
  const rlx_program *body = static_cast<const rlx_program *>(body_of(*cmd, i));
  Bases b;
  b.arena[0] = memory;
  b.slot[RLX_ARENA] = b.arena;
  b.slot[RLX_INPUT] = inputs;
  b.slot[RLX_OUTPUT] = outputs;
  b.slot[RLX_STATE] = nullptr;
  b.slot[RLX_CONST] = body->constants;
  void *stack[kStackPointers];
  Call call = {};
  call.run = run;
  for (uint32_t k = 0; k < body->num_commands; k++) {
    if (stopped()) return false;
    point(body->command(k), body, b, memory, stack, &call);
    execute(call);
  }
  return !stopped();
}

int64_t body_memory(const Command &c, uint32_t i) { return static_cast<const rlx_program *>(body_of(c, i))->arena_bytes; }

int64_t body_bytes(const Command &c, uint32_t i, uint32_t slot, uint32_t k) {
  const DecodedProgram *body = body_of(c, i);
  return k < body->slots[slot] ? body->slot_bytes[slot][k] : -1;
}

bool Call::stopped() const { return run->failed.load(std::memory_order_relaxed) != 0 || cancelled(run->cancel); }
int Call::threads() const { return run->threads; }
uint64_t Call::seed() const { return run->args->seed; }
Pool *Call::pool() const { return run->program->device->pool; }
const volatile uint32_t *Call::cancel() const { return run->cancel; }

void Call::parallel(int64_t units, int64_t grain, void (*fn)(void *, int64_t, int64_t, int), void *ctx) const {
  rlx::parallel(pool(), run->threads, units, grain > 0 ? grain : 1, fn, ctx, run->cancel);
}

namespace {

constexpr int64_t kGrainBytes = 16384;

Split rows_of(const Operand &o) {
  const int64_t n = o.rank == 0 ? 1 : o.dims[o.rank - 1];
  int64_t units = 1;
  for (int d = 0; d + 1 < int(o.rank); d++) units *= o.dims[d];
  const int64_t bytes = n * int64_t(rlx_dtype_sizes[o.dtype]);
  return {units, bytes < kGrainBytes ? kGrainBytes / (bytes > 0 ? bytes : 1) : 1};
}

}  // namespace

Split whole(const Call &) { return {1, 1}; }
Split elements(const Call &c) { return {c.out(0).count, kGrainBytes / int64_t(rlx_dtype_sizes[c.out(0).dtype])}; }
Split rows(const Call &c) { return rows_of(c.out(0)); }
Split in_rows(const Call &c) { return rows_of(c.in(0)); }

}  // namespace rlx
