#include "../core/rlx_begin.h"

#include <stdio.h>
#if defined(RLX_X86)
#include <cpuid.h>
#endif

#include "../../common/memory.h"
#include "isa.h"
#include "load.h"
#include "probe.h"
#include "registry.h"
#include "weights.h"

namespace rlx {
namespace {

pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
int open_devices;  // under the lock; all of them use one instruction set

constexpr int kMaxThreads = 256;

#define NEED(ok, name) \
  if (!(ok)) return set_error(error, RLX_BAD_ARGUMENT, -1, name ": a pointer is null")

int32_t device_count(int32_t *count, rlx_error *error) {
  NEED(count != nullptr, "device_count");
  *count = 1;
  return RLX_OK;
}

// The set called name, -1 if this machine has none of that name. supported becomes the list of the names it has.
int isa_by_name(const char *name, char *supported, size_t size) {
  int found = -1, n = 0;
  for (int isa = ISA_GENERIC; isa <= ISA_NEON; isa++) {
    if (!isa_runs(isa)) continue;
    if (std::strcmp(name, isa_name(isa)) == 0) found = isa;
    n += snprintf(supported + n, size - size_t(n), "%s%s", n == 0 ? "" : " ", isa_name(isa));
  }
  return found;
}

// Chooses the set; open_lock is held. Without a name a second device joins the first.
int32_t choose_isa(const char *name, rlx_error *error) {
  char supported[64] = "";
  const bool any = name == nullptr || *name == 0;
  const int isa = any ? (open_devices > 0 ? isa_active() : isa_supported()) : isa_by_name(name, supported, sizeof supported);
  if (isa < 0) return set_error(error, RLX_BAD_ARGUMENT, -1, "open: instruction set %s is unknown or not supported, expected one of %s", name, supported);
  if (open_devices > 0 && isa != isa_active())
    return set_error(error, RLX_BAD_ARGUMENT, -1, "open: got instruction set %s, but an open device uses %s", isa_name(isa), isa_name(isa_active()));
  if (open_devices == 0) {
    isa_set(isa);
    registry_select(isa);
  }
  return RLX_OK;
}

int32_t open(int32_t index, const rlx_open_options *o, rlx_device **out, rlx_error *error) {
  NEED(o != nullptr && out != nullptr, "open");
  if (index != 0) return set_error(error, RLX_NO_DEVICE, -1, "open: device %d, there is one", index);
  if (o->size != sizeof(rlx_open_options)) return set_error(error, RLX_BAD_ARGUMENT, -1, "open: rlx_open_options has %u bytes, expected %u", o->size, unsigned(sizeof(rlx_open_options)));
  if (o->max_threads < 1) return set_error(error, RLX_BAD_ARGUMENT, -1, "open: %d threads, expected at least 1", o->max_threads);
  pthread_mutex_lock(&open_lock);
  int32_t code = choose_isa(o->isa, error);
  rlx_device *d = nullptr;
  if (code == RLX_OK && (d = static_cast<rlx_device *>(memory_alloc(sizeof(rlx_device)))) == nullptr) code = set_error(error, RLX_NO_MEMORY, -1, "open: no memory");
  if (code == RLX_OK) {
    d->threads = o->max_threads < kMaxThreads ? o->max_threads : kMaxThreads;
    d->pool = pool_acquire(d->threads);
    d->users.store(0, std::memory_order_relaxed);
    d->lean = o->lean == 1;
    open_devices++;
    *out = d;
  }
  pthread_mutex_unlock(&open_lock);
  return code;
}

int32_t close(rlx_device *d, rlx_error *error) {
  NEED(d != nullptr, "close");
  const int32_t users = d->users.load(std::memory_order_acquire);
  if (users != 0) return set_error(error, RLX_BAD_ARGUMENT, -1, "close: %d programs or weights are still open", users);
  pthread_mutex_lock(&open_lock);
  pool_release(d->pool);
  memory_free(d);
  open_devices--;
  pthread_mutex_unlock(&open_lock);
  return RLX_OK;
}

void processor_name(char *name, size_t size) {
  snprintf(name, size, "CPU");
#if defined(RLX_X86)
  unsigned r[13] = {};  // 48 bytes of text and a zero
  for (unsigned i = 0; i < 3; i++)
    if (!__get_cpuid(0x80000002u + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3])) return;
  const char *text = reinterpret_cast<const char *>(r);
  while (*text == ' ') text++;
  if (*text != 0) snprintf(name, size, "%s", text);
  for (size_t n = std::strlen(name); n > 0 && name[n - 1] == ' '; n--) name[n - 1] = 0;
#endif
}

int32_t info(rlx_device *d, rlx_device_info *i, rlx_error *error) {
  NEED(d != nullptr && i != nullptr, "info");
  processor_name(i->name, sizeof i->name);
  snprintf(i->isa, sizeof i->isa, "%s", isa_name(isa_active()));
  i->threads = d->threads;
  i->native_bytes = memory_bytes();
  i->max_tensor_bytes = 0;
  i->runs_inline = 1;
  return RLX_OK;
}

int32_t device_capabilities(rlx_device *d, const rlx_capability **list, uint32_t *count, rlx_error *error) {
  NEED(d != nullptr && list != nullptr && count != nullptr, "device_capabilities");
  *list = registry_capabilities(count);
  return RLX_OK;
}

int32_t open_weights(rlx_device *d, rlx_weights *parent, const rlx_constant *constants, uint32_t count, rlx_weights **out, rlx_error *error) {
  NEED(d != nullptr && out != nullptr && (count == 0 || constants != nullptr), "weights_open");
  for (uint32_t i = 0; i < count; i++) NEED(constants[i].data != nullptr || constants[i].bytes == 0, "weights_open");
  if (parent != nullptr && parent->device != d) return set_error(error, RLX_BAD_ARGUMENT, -1, "weights_open: the parent is of another device");
  return weights_open(d, parent, constants, count, out, error);
}

int32_t close_weights(rlx_weights *w, rlx_error *error) {
  NEED(w != nullptr, "weights_close");
  return weights_close(w, error);
}

int32_t trim_weights(rlx_weights *w, uint8_t *where, rlx_error *error) {
  NEED(w != nullptr && (where != nullptr || w->count == w->first), "weights_trim");
  weights_trim(w, where);
  return RLX_OK;
}

int32_t read_weights(rlx_weights *w, uint32_t index, void *to, uint64_t bytes, rlx_error *error) {
  NEED(w != nullptr && (to != nullptr || bytes == 0), "weights_read");
  if (index >= w->count - w->first || bytes != w->bytes[w->first + index])
    return set_error(error, RLX_BAD_ARGUMENT, -1, "weights_read: constant %u of %llu bytes, there are %u of their own", index, (unsigned long long)bytes, w->count - w->first);
  weights_read(w, w->first + index, to);
  return RLX_OK;
}

int32_t load_program(rlx_device *d, rlx_weights *w, const uint32_t *words, uint64_t count, rlx_program **out, rlx_program_info *i, rlx_error *error) {
  NEED(d != nullptr && (words != nullptr || count == 0) && out != nullptr && i != nullptr, "load");
  if (w != nullptr && w->device != d) return set_error(error, RLX_BAD_ARGUMENT, -1, "load: the weights are of another device");
  return load(d, w, words, count, out, i, error);
}

int32_t unload_program(rlx_program *p, rlx_error *error) {
  NEED(p != nullptr, "unload");
  return unload(p, error);
}

int32_t open_arena(rlx_program *p, rlx_arena **out, void **host, rlx_error *error) {
  NEED(p != nullptr && out != nullptr && host != nullptr, "arena_open");
  return arena_open(p, out, host, error);
}

int32_t close_arena(rlx_arena *a, rlx_error *error) {
  NEED(a != nullptr, "arena_close");
  arena_close(a);
  return RLX_OK;
}

// For callers that do not use the host's address of an arena.
int32_t copy_regions(const char *name, rlx_arena *a, const rlx_region *regions, uint32_t count, bool write, rlx_error *error) {
  const int32_t code = check_regions(*a->program, name, regions, count, error);
  for (uint32_t i = 0; i < count && code == RLX_OK; i++) {
    if (regions[i].bytes == 0) continue;
    if (write) std::memcpy(a->memory + regions[i].offset, regions[i].host, regions[i].bytes);
    else std::memcpy(regions[i].host, a->memory + regions[i].offset, regions[i].bytes);
  }
  return code;
}

int32_t write_arena(rlx_arena *a, const rlx_region *regions, uint32_t count, rlx_error *error) {
  NEED(a != nullptr && (regions != nullptr || count == 0), "arena_write");
  return copy_regions("arena_write", a, regions, count, true, error);
}

int32_t read_arena(rlx_arena *a, const rlx_region *regions, uint32_t count, rlx_error *error) {
  NEED(a != nullptr && (regions != nullptr || count == 0), "arena_read");
  return copy_regions("arena_read", a, regions, count, false, error);
}

int32_t probe(rlx_device *d, int32_t what, int32_t threads, uint64_t bytes, double seconds, double *rate, rlx_error *error) {
  NEED(d != nullptr && rate != nullptr, "probe");
  if (what < RLX_PROBE_F32 || what > RLX_PROBE_COPY_STREAMING)
    return set_error(error, RLX_BAD_ARGUMENT, -1, "probe: limit %d, expected %d to %d", what, RLX_PROBE_F32, RLX_PROBE_COPY_STREAMING);
  if (threads < 1 || threads > kMaxThreads || bytes == 0 || bytes > uint64_t(INT64_MAX) || !(seconds > 0))
    return set_error(error, RLX_BAD_ARGUMENT, -1, "probe: %d threads, %llu bytes, %g seconds: expected positive numbers and at most %d threads", threads, (unsigned long long)bytes, seconds, kMaxThreads);
  *rate = probe_limit(rlx_probe(what), threads, int64_t(bytes), seconds);
  if (!(*rate > 0)) return set_error(error, RLX_NO_MEMORY, -1, "probe: no memory for %d buffers of %llu bytes", threads, (unsigned long long)bytes);
  return RLX_OK;
}

rlx_backend table = {RLX_ABI, sizeof(rlx_backend), RLX_TABLE_HASH, "cpu", nullptr, 0, device_count, open, close, info, device_capabilities,
                     open_weights, close_weights, trim_weights, read_weights, load_program, unload_program, open_arena, close_arena, write_arena, read_arena, run, probe};
pthread_once_t once = PTHREAD_ONCE_INIT;
void fill_table() { table.capabilities = registry_capabilities(&table.num_capabilities); }

}  // namespace
}  // namespace rlx

extern "C" __attribute__((visibility("default"))) const rlx_backend *rlx_backend_cpu(void) {
  pthread_once(&rlx::once, rlx::fill_table);
  return &rlx::table;
}
