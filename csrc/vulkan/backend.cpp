// backend.cpp: the functions of rlx.h: checks of their arguments, and what validation has to say behind each.
#include <stdio.h>

#include "program.h"

namespace rlx {
namespace {

#define NEED(ok, name) \
  if (!(ok)) return set_error(error, RLX_BAD_ARGUMENT, -1, name ": a pointer is null")

int32_t device_count(int32_t *count, rlx_error *error) {
  NEED(count != nullptr, "device_count");
  return context_count(count, error);
}

int32_t open(int32_t index, const rlx_open_options *o, rlx_device **out, rlx_error *error) {
  NEED(o != nullptr && out != nullptr, "open");
  if (o->size != sizeof(rlx_open_options)) return set_error(error, RLX_BAD_ARGUMENT, -1, "open: rlx_open_options has %u bytes, expected %u", o->size, unsigned(sizeof(rlx_open_options)));
  rlx_device *d = static_cast<rlx_device *>(memory_alloc(sizeof(rlx_device)));
  if (d == nullptr) return set_error(error, RLX_NO_MEMORY, -1, "open: no host memory");
  std::memset(static_cast<void *>(d), 0, sizeof *d);
  const int32_t code = context_acquire(index, &d->context, error);
  if (code != RLX_OK) {
    memory_free(d);
    return code;
  }
  *out = d;
  return RLX_OK;
}

int32_t close(rlx_device *d, rlx_error *error) {
  NEED(d != nullptr, "close");
  const int32_t users = d->users.load(std::memory_order_acquire);
  if (users != 0) return set_error(error, RLX_BAD_ARGUMENT, -1, "close: %d programs or weights are still open", users);
  Context *c = d->context;
  memory_free(d);
  return context_release(c, error);
}

int32_t info(rlx_device *d, rlx_device_info *i, rlx_error *error) {
  NEED(d != nullptr && i != nullptr, "info");
  const Context *c = d->context;
  snprintf(i->name, sizeof i->name, "%s", c->name);
  snprintf(i->isa, sizeof i->isa, "Vulkan %u.%u, subgroups of %u%s", VK_API_VERSION_MAJOR(c->version), VK_API_VERSION_MINOR(c->version), c->subgroup, c->validation ? ", validated" : "");
  i->threads = 1;
  i->native_bytes = memory_bytes() + heap_bytes();
  // Indices have 32 bits, and a binding may begin before its tensor.
  const uint64_t range = c->limits.maxStorageBufferRange < uint32_t(INT32_MAX) ? c->limits.maxStorageBufferRange : uint32_t(INT32_MAX);
  i->max_tensor_bytes = (range < c->max_buffer ? range : c->max_buffer) - kPieceAlign;
  i->runs_inline = 0;
  return RLX_OK;
}

int32_t device_capabilities(rlx_device *d, const rlx_capability **list, uint32_t *count, rlx_error *error) {
  NEED(d != nullptr && list != nullptr && count != nullptr, "device_capabilities");
  *list = d->context->capabilities;
  *count = d->context->num_capabilities;
  return RLX_OK;
}

int32_t open_weights(rlx_device *d, rlx_weights *parent, const rlx_constant *constants, uint32_t count, rlx_weights **out, rlx_error *error) {
  NEED(d != nullptr && out != nullptr && (count == 0 || constants != nullptr), "weights_open");
  for (uint32_t i = 0; i < count; i++) NEED(constants[i].data != nullptr || constants[i].bytes == 0, "weights_open");
  if (parent != nullptr && parent->device != d) return set_error(error, RLX_BAD_ARGUMENT, -1, "weights_open: the parent is of another device");
  int32_t code = weights_open(d, parent, constants, count, out, error);
  if (code != RLX_OK) return code;
  if ((code = context_checked(d->context, code, error)) != RLX_OK) weights_close(*out);
  return code;
}

int32_t close_weights(rlx_weights *w, rlx_error *error) {
  NEED(w != nullptr, "weights_close");
  const int32_t users = w->users.load(std::memory_order_acquire);
  if (users != 0) return set_error(error, RLX_BAD_ARGUMENT, -1, "weights_close: %d programs or children still use the weights", users);
  Context *c = w->device->context;
  weights_close(w);
  return context_checked(c, RLX_OK, error);
}

int32_t load_program(rlx_device *d, rlx_weights *w, const uint32_t *words, uint64_t count, rlx_program **out, rlx_program_info *i, rlx_error *error) {
  NEED(d != nullptr && (words != nullptr || count == 0) && out != nullptr && i != nullptr, "load");
  if (w != nullptr && w->device != d) return set_error(error, RLX_BAD_ARGUMENT, -1, "load: the weights are of another device");
  int32_t code = load(d, w, words, count, out, i, error);
  if (code != RLX_OK) return code;
  if ((code = context_checked(d->context, code, error)) != RLX_OK) unload(*out);
  return code;
}

int32_t unload_program(rlx_program *p, rlx_error *error) {
  NEED(p != nullptr, "unload");
  const int32_t arenas = p->arenas.load(std::memory_order_acquire);
  if (arenas != 0) return set_error(error, RLX_BAD_ARGUMENT, -1, "unload: %d arenas are still open", arenas);
  Context *c = p->device->context;
  unload(p);
  return context_checked(c, RLX_OK, error);
}

int32_t open_arena(rlx_program *p, rlx_arena **out, void **host, rlx_error *error) {
  NEED(p != nullptr && out != nullptr && host != nullptr, "arena_open");
  *host = nullptr;
  int32_t code = arena_open(p, out, error);
  if (code != RLX_OK) return code;
  if ((code = context_checked(p->device->context, code, error)) != RLX_OK) arena_close(*out);
  return code;
}

int32_t close_arena(rlx_arena *a, rlx_error *error) {
  NEED(a != nullptr, "arena_close");
  Context *c = a->program->device->context;
  arena_close(a);
  return context_checked(c, RLX_OK, error);
}

int32_t write_arena(rlx_arena *a, const rlx_region *regions, uint32_t count, rlx_error *error) {
  NEED(a != nullptr && (regions != nullptr || count == 0), "arena_write");
  const int32_t code = arena_copy("arena_write", a, regions, count, true, error);
  return code != RLX_OK ? code : context_checked(a->program->device->context, code, error);
}

int32_t read_arena(rlx_arena *a, const rlx_region *regions, uint32_t count, rlx_error *error) {
  NEED(a != nullptr && (regions != nullptr || count == 0), "arena_read");
  const int32_t code = arena_copy("arena_read", a, regions, count, false, error);
  return code != RLX_OK ? code : context_checked(a->program->device->context, code, error);
}

int32_t run_program(rlx_program *p, const rlx_run_args *a) {
  if (p == nullptr || a == nullptr || a->size != sizeof(rlx_run_args))
    return set_error(a == nullptr ? nullptr : a->error, RLX_BAD_ARGUMENT, -1, "run: rlx_run_args has %u bytes, expected %u", a == nullptr ? 0u : a->size, unsigned(sizeof(rlx_run_args)));
  const int32_t code = run(p, a);
  return code != RLX_OK ? code : context_checked(p->device->context, code, a->error);
}

rlx_backend table = {RLX_ABI, sizeof(rlx_backend), RLX_TABLE_HASH, "vulkan", nullptr, 0, device_count, open, close, info, device_capabilities,
                     open_weights, close_weights, nullptr, nullptr, load_program, unload_program, open_arena, close_arena, write_arena, read_arena, run_program, nullptr};
pthread_once_t once = PTHREAD_ONCE_INIT;
void fill_table() { table.capabilities = library_capabilities(&table.num_capabilities); }

}  // namespace
}  // namespace rlx

extern "C" __attribute__((visibility("default"))) const rlx_backend *rlx_backend_vulkan(void) {
  pthread_once(&rlx::once, rlx::fill_table);
  return &rlx::table;
}
