#include <time.h>

#include "kernels/layout.h"
#include "program.h"

namespace rlx {
namespace {

uint64_t now_ns() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

bool cancelled(const volatile uint32_t *word) { return word != nullptr && __atomic_load_n(word, __ATOMIC_RELAXED) != 0; }

volatile uint32_t *stop_of(const rlx_arena *a) { return reinterpret_cast<volatile uint32_t *>(a->flags.host); }
volatile uint32_t *failed_of(const rlx_arena *a) { return reinterpret_cast<volatile uint32_t *>(a->flags.host + FLAG_BYTES); }

// The slot's memory of bound tensor i.
void *host_of(const rlx_program *p, const rlx_run_args *a, uint64_t i, uint64_t *bytes) {
  const uint64_t inputs = p->slots[RLX_INPUT];
  *bytes = uint64_t(i < inputs ? p->slot_bytes[RLX_INPUT][i] : p->slot_bytes[RLX_OUTPUT][i - inputs]);
  return i < inputs ? a->inputs[i] : a->outputs[i - inputs];
}

void copy_bound(const rlx_program *p, const rlx_run_args *a, uint32_t stretch, bool in) {
  for (uint64_t i = 0; i < p->bound.n; i++) {
    const Bound &b = p->bound[i];
    if ((in ? b.upload : b.download) != stretch) continue;
    uint64_t bytes;
    void *host = host_of(p, a, i, &bytes);
    char *staged = a->arena->staging.host + b.offset - p->words_bytes;
    if (bytes == 0) continue;
    if (in) std::memcpy(staged, host, bytes);
    else std::memcpy(host, staged, bytes);
  }
}

int32_t check(const rlx_program *p, const rlx_run_args *a) {
  if (a->arena == nullptr || a->arena->program != p) return set_error(a->error, RLX_BAD_ARGUMENT, -1, "run: the arena is missing or of another program");
  for (uint64_t i = 0; i < p->bound.n; i++) {
    const uint64_t inputs = p->slots[RLX_INPUT];
    uint64_t bytes = 0;
    const bool list = i < inputs ? a->inputs != nullptr : a->outputs != nullptr;
    if (!list || (host_of(p, a, i, &bytes) == nullptr && bytes != 0)) return set_error(a->error, RLX_BAD_ARGUMENT, -1, "run: %s %llu has no memory", i < inputs ? "input" : "output", (unsigned long long)(i < inputs ? i : i - inputs));
  }
  return check_stretch(*p, a);
}

// The command buffer with timestamps of a stretch, recorded when first wanted; null where the queue has no timestamps.
int32_t timed(rlx_arena *a, uint32_t stretch, VkCommandBuffer *out, rlx_error *error) {
  const rlx_program *p = a->program;
  Context *c = p->device->context;
  *out = VK_NULL_HANDLE;
  if (c->timestamp_bits == 0) return RLX_OK;
  if (a->queries == VK_NULL_HANDLE) {
    VkQueryPoolCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = 2 * p->num_commands;
    const VkResult r = c->vk.vkCreateQueryPool(c->device, &info, nullptr, &a->queries);
    if (r != VK_SUCCESS) {
      a->queries = VK_NULL_HANDLE;
      return context_failed(c, error, r, -1, "vkCreateQueryPool");
    }
  }
  VkCommandBuffer &slot = a->commands[p->stretches.n + stretch];
  if (slot == VK_NULL_HANDLE) {
    VkCommandBuffer fresh;
    int32_t code = commands_allocate(c, a->commands_pool, 1, &fresh, error);
    if (code == RLX_OK) code = record(a, stretch, fresh, true, error);
    if (code != RLX_OK) return code;
    slot = fresh;
  }
  *out = slot;
  return RLX_OK;
}

// Start and end of each command in nanoseconds; the first begins when the stretch was submitted.
int32_t read_profile(const rlx_arena *a, const Stretch &s, uint64_t submitted, uint64_t *profile, rlx_error *error) {
  Context *c = a->program->device->context;
  const uint32_t n = 2 * (s.end - s.first);
  const VkResult r = c->vk.vkGetQueryPoolResults(c->device, a->queries, 2 * s.first, n, 8 * uint64_t(n), profile, 8, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  if (r != VK_SUCCESS) return context_failed(c, error, r, -1, "vkGetQueryPoolResults");
  const uint64_t mask = c->timestamp_bits >= 64 ? UINT64_MAX : (uint64_t(1) << c->timestamp_bits) - 1, first = profile[0];
  for (uint32_t i = 0; i < n; i++) profile[i] = submitted + uint64_t(double((profile[i] - first) & mask) * double(c->limits.timestampPeriod));
  return RLX_OK;
}

// The error that a kernel left in the flags.
int32_t read_flags(const rlx_arena *a, rlx_error *error) {
  const volatile uint32_t *f = failed_of(a);
  const uint32_t failed = f[F_FAILED];
  if (failed == 0) return RLX_OK;
  const rlx_program *p = a->program;
  const char *op = failed <= p->num_commands ? rlx_op_names[p->decoded(failed - 1).op] : "a kernel";
  const int64_t value = int64_t(f[F_VALUE] | uint64_t(f[F_VALUE + 1]) << 32);
  const uint32_t limit = f[F_LIMIT], bits = f[F_VALUE];
  float fraction;
  std::memcpy(&fraction, &bits, sizeof fraction);
  const int32_t command = int32_t(failed) - 1;
  switch (f[F_FORM]) {
    case BAD_INDEX: return set_error(error, RLX_BAD_VALUE, command, "%s: C%u: index %lld out of range [-%u, %u)", op, f[F_CONSTRAINT], (long long)value, limit, limit);
    case BAD_POSITION: return set_error(error, RLX_BAD_VALUE, command, "%s: C%u: position %lld out of range [0, %u]", op, f[F_CONSTRAINT], (long long)value, limit);
    case BAD_FRACTION: return set_error(error, RLX_BAD_VALUE, command, "%s: C%u: index %g is not an integer", op, f[F_CONSTRAINT], double(fraction));
    default: return set_error(error, RLX_DRIVER, command, "%s: the driver left a loop of %u steps at step %lld", op, limit, (long long)value);
  }
}

// Submits and waits; when cancel turns non-zero the kernels are told to leave.
int32_t submit(rlx_arena *a, VkCommandBuffer commands, const volatile uint32_t *cancel, rlx_error *error) {
  Context *c = a->program->device->context;
  int32_t code = queue_submit(c, commands, a->done, a->ticket + 1, error);
  if (code != RLX_OK) return code;
  a->ticket++;
  code = queue_wait(c, a->done, a->ticket, cancel, stop_of(a), error);
  a->pending = a->pending || code != RLX_OK;
  return code;
}

int32_t run_stretch(rlx_program *p, const rlx_run_args *a, uint32_t stretch) {
  const Stretch &s = p->stretches[stretch];
  VkCommandBuffer commands = a->arena->commands[stretch];
  bool profiled = false;
  if (a->profile != nullptr) {
    VkCommandBuffer with;
    const int32_t code = timed(a->arena, stretch, &with, a->error);
    if (code != RLX_OK) return code;
    if ((profiled = with != VK_NULL_HANDLE)) commands = with;
  }
  *stop_of(a->arena) = 0;
  for (int i = 0; i < F_WORDS; i++) failed_of(a->arena)[i] = 0;
  copy_bound(p, a, stretch, true);
  const uint64_t submitted = now_ns();
  int32_t code = submit(a->arena, commands, a->cancel, a->error);
  if (code == RLX_OK) code = read_flags(a->arena, a->error);
  if (code == RLX_OK && cancelled(a->cancel)) code = set_error(a->error, RLX_CANCELLED, -1, "cancelled");
  if (code != RLX_OK) return code;
  copy_bound(p, a, stretch, false);
  if (profiled) code = read_profile(a->arena, s, submitted, a->profile, a->error);
  else if (a->profile != nullptr)
    for (uint32_t i = 0; i < s.end - s.first; i++) a->profile[2 * i] = submitted, a->profile[2 * i + 1] = now_ns();
  if (a->counters != nullptr)
    for (uint32_t i = 0; i < s.end - s.first; i++) a->counters[i]++;
  return code;
}

}  // namespace

int32_t settle(rlx_arena *a, rlx_error *error) {
  if (!a->pending) return RLX_OK;
  const int32_t code = queue_idle(a->program->device->context, error);
  if (code != RLX_OK) return code;
  a->pending = false;
  return RLX_OK;
}

int32_t run(rlx_program *p, const rlx_run_args *a) {
  int32_t code = check(p, a);
  if (code == RLX_OK) code = context_alive(p->device->context, a->error);
  if (code == RLX_OK && cancelled(a->cancel)) code = set_error(a->error, RLX_CANCELLED, -1, "cancelled");
  if (code == RLX_OK) code = settle(a->arena, a->error);
  if (code != RLX_OK || a->count == 0) return code;
  uint32_t stretch = 0;
  while (p->stretches[stretch].first != a->first) stretch++;
  return run_stretch(p, a, stretch);
}

}  // namespace rlx
