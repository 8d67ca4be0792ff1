#include "../core/rlx_begin.h"

#include "memory.h"
#include "weights.h"

namespace rlx {
namespace {

void release(rlx_weights *w) {
  for (uint32_t i = 0; i < w->count; i++) memory_free(w->data[i]);
  memory_free(w->data);
  memory_free(w->bytes);
  memory_free(w);
}

bool same_view(const Packed &p, const Operand &o) {
  if (p.index != o.index || p.dtype != o.dtype || p.rank != o.rank || p.offset != o.offset) return false;
  for (uint32_t i = 0; i < o.rank; i++)
    if (p.dims[i] != o.dims[i] || p.strides[i] != o.strides[i]) return false;
  return true;
}

}  // namespace

int32_t weights_open(rlx_device *device, const rlx_constant *constants, uint32_t count, rlx_weights **out, rlx_error *error) {
  rlx_weights *w = static_cast<rlx_weights *>(memory_alloc(sizeof(rlx_weights)));
  if (w == nullptr) return set_error(error, RLX_NO_MEMORY, -1, "no memory for weights");
  std::memset(static_cast<void *>(w), 0, sizeof *w);
  w->device = device;
  w->data = static_cast<void **>(memory_alloc(sizeof(void *) * uint64_t(count)));
  w->bytes = static_cast<uint64_t *>(memory_alloc(sizeof(uint64_t) * uint64_t(count)));
  bool ok = w->data != nullptr && w->bytes != nullptr;
  uint64_t total = 0;
  for (uint32_t i = 0; ok && i < count; i++) {
    w->bytes[i] = constants[i].bytes;
    w->data[i] = memory_alloc(constants[i].bytes);
    if (!(ok = w->data[i] != nullptr)) break;
    w->count = i + 1;
    total += constants[i].bytes;
    if (constants[i].bytes != 0) std::memcpy(w->data[i], constants[i].data, constants[i].bytes);
  }
  if (!ok) {
    const uint32_t i = w->count;
    const uint64_t bytes = i < count ? constants[i].bytes : 0;
    release(w);
    return set_error(error, RLX_NO_MEMORY, -1, "no memory for constant %u of %llu bytes, after %llu bytes", i, (unsigned long long)bytes, (unsigned long long)total);
  }
  pthread_mutex_init(&w->lock, nullptr);
  device->users.fetch_add(1, std::memory_order_relaxed);
  *out = w;
  return RLX_OK;
}

int32_t weights_close(rlx_weights *w, rlx_error *error) {
  const int32_t users = w->users.load(std::memory_order_acquire);
  if (users != 0) return set_error(error, RLX_BAD_ARGUMENT, -1, "weights_close: %d programs still use the weights", users);
  weights_drop_until(w, nullptr);
  pthread_mutex_destroy(&w->lock);
  w->device->users.fetch_sub(1, std::memory_order_release);
  release(w);
  return RLX_OK;
}

void *weights_packed(rlx_weights *w, const Operand &o, uint64_t layout, int64_t bytes, bool *fresh) {
  *fresh = false;
  for (Packed *p = w->packed; p != nullptr; p = p->next)
    if (p->layout == layout && p->bytes == bytes && same_view(*p, o)) return p->data;
  if (bytes < 0) return nullptr;
  Packed *p = static_cast<Packed *>(memory_alloc(sizeof(Packed)));
  if (p == nullptr) return nullptr;
  p->index = o.index, p->dtype = o.dtype, p->rank = o.rank, p->offset = o.offset;
  std::memcpy(p->dims, o.dims, sizeof p->dims);
  std::memcpy(p->strides, o.strides, sizeof p->strides);
  p->layout = layout, p->bytes = bytes;
  p->data = memory_alloc(uint64_t(bytes));
  if (p->data == nullptr) {
    memory_free(p);
    return nullptr;
  }
  p->next = w->packed;
  w->packed = p;
  *fresh = true;
  return p->data;
}

void weights_drop_until(rlx_weights *w, Packed *first) {
  while (w->packed != first) {
    Packed *p = w->packed;
    w->packed = p->next;
    memory_free(p->data);
    memory_free(p);
  }
}

}  // namespace rlx
