#include "../core/rlx_begin.h"

#include "../../common/memory.h"
#include "weights.h"

namespace rlx {
namespace {

// What a program's constants may take together with their packed forms; where they are so large that this leaves no room, packed forms may
// take a sixteenth of them.
constexpr uint64_t kPackFreely = uint64_t(2) << 30;

void drop(rlx_weights *w, Packed *p) {
  w->packed = p->next;
  w->root->packed_bytes -= uint64_t(p->bytes);
  memory_free(p->data);
  memory_free(p);
}

void release(rlx_weights *w) {
  while (w->packed != nullptr) drop(w, w->packed);
  for (uint32_t i = w->first; i < w->count; i++)
    if (!w->borrowed[i]) memory_free(w->data[i]);
  memory_free(w->data);
  memory_free(w->bytes);
  memory_free(w->borrowed);
  memory_free(w);
}

// The next constant of w: used where it lies if it stays there and is aligned like a copy.
bool add(rlx_weights *w, const rlx_constant &from) {
  const uint32_t i = w->count;
  w->bytes[i] = from.bytes, w->own_bytes += from.bytes;
  w->borrowed[i] = from.stays == 1 && from.bytes != 0 && (reinterpret_cast<uintptr_t>(from.data) & 63) == 0;
  if (w->borrowed[i]) {
    w->data[i] = const_cast<void *>(from.data), w->count = i + 1;
    return true;
  }
  w->data[i] = memory_alloc(from.bytes);
  if (w->data[i] == nullptr) return false;
  w->count = i + 1;
  if (from.bytes != 0) std::memcpy(w->data[i], from.data, from.bytes);
  return true;
}

bool same_view(const Packed &p, const Operand &o) {
  if (p.index != o.index || p.dtype != o.dtype || p.rank != o.rank || p.offset != o.offset) return false;
  for (uint32_t i = 0; i < o.rank; i++)
    if (p.dims[i] != o.dims[i] || p.strides[i] != o.strides[i]) return false;
  return true;
}

}  // namespace

int32_t weights_open(rlx_device *device, rlx_weights *parent, const rlx_constant *constants, uint32_t count, rlx_weights **out, rlx_error *error) {
  const uint64_t first = parent == nullptr ? 0 : parent->count, total = first + count;
  if (total >= RLX_ABSENT) return set_error(error, RLX_BAD_ARGUMENT, -1, "weights_open: %llu constants", (unsigned long long)total);
  rlx_weights *w = static_cast<rlx_weights *>(memory_alloc(sizeof(rlx_weights)));
  if (w == nullptr) return set_error(error, RLX_NO_MEMORY, -1, "no memory for weights");
  std::memset(static_cast<void *>(w), 0, sizeof *w);
  w->device = device;
  w->parent = parent, w->root = parent == nullptr ? w : parent->root;
  w->first = w->count = uint32_t(first);
  w->data = static_cast<void **>(memory_alloc(sizeof(void *) * total));
  w->bytes = static_cast<uint64_t *>(memory_alloc(sizeof(uint64_t) * total));
  w->borrowed = static_cast<bool *>(memory_alloc(total));
  bool ok = w->data != nullptr && w->bytes != nullptr && w->borrowed != nullptr;
  if (ok && first != 0) {
    std::memcpy(w->data, parent->data, sizeof(void *) * first);
    std::memcpy(w->bytes, parent->bytes, sizeof(uint64_t) * first);
  }
  for (uint32_t i = 0; ok && i < count; i++) ok = add(w, constants[i]);
  if (!ok) {
    const uint32_t i = w->count;
    release(w);
    return set_error(error, RLX_NO_MEMORY, -1, "no memory for constant %u of %u", i, uint32_t(total));
  }
  pthread_mutex_init(&w->lock, nullptr);
  device->users.fetch_add(1, std::memory_order_relaxed);
  if (parent != nullptr) parent->users.fetch_add(1, std::memory_order_relaxed);
  *out = w;
  return RLX_OK;
}

int32_t weights_close(rlx_weights *w, rlx_error *error) {
  const int32_t users = w->users.load(std::memory_order_acquire);
  if (users != 0) return set_error(error, RLX_BAD_ARGUMENT, -1, "weights_close: %d programs or children still use the weights", users);
  if (w->parent != nullptr) {  // the root counts the packed forms
    pthread_mutex_lock(&w->root->lock);
    while (w->packed != nullptr) drop(w, w->packed);
    pthread_mutex_unlock(&w->root->lock);
  }
  pthread_mutex_destroy(&w->lock);
  w->device->users.fetch_sub(1, std::memory_order_release);
  if (w->parent != nullptr) w->parent->users.fetch_sub(1, std::memory_order_release);
  release(w);
  return RLX_OK;
}

void *weights_packed(rlx_weights *w, const Operand &o, uint64_t layout, int64_t bytes, bool *fresh) {
  *fresh = false;
  while (o.index < w->first) w = w->parent;  // where the constant lives
  for (Packed *p = w->packed; p != nullptr; p = p->next)
    if (p->layout == layout && p->bytes == bytes && same_view(*p, o)) return p->data;
  if (bytes < 0) return nullptr;
  Packed *p = static_cast<Packed *>(memory_alloc(sizeof(Packed)));
  if (p == nullptr) return nullptr;
  p->index = o.index, p->dtype = o.dtype, p->rank = o.rank, p->offset = o.offset;
  for (uint32_t i = 0; i < o.rank; i++) p->dims[i] = o.dims[i], p->strides[i] = o.strides[i];
  p->layout = layout, p->bytes = bytes, p->fresh = true;
  p->data = memory_alloc(uint64_t(bytes));
  if (p->data == nullptr) {
    memory_free(p);
    return nullptr;
  }
  p->next = w->packed;
  w->packed = p;
  w->root->packed_bytes += uint64_t(bytes);
  *fresh = true;
  return p->data;
}

bool weights_may_pack(const rlx_weights *w, const Operand &o) {
  if (w->device->lean) return false;
  while (o.index < w->first) w = w->parent;
  for (const Packed *p = w->packed; p != nullptr; p = p->next)
    if (same_view(*p, o)) return true;
  const uint64_t constants = w->root->own_bytes, most = constants + constants / 16;
  return constants + w->root->packed_bytes + uint64_t(o.count) * rlx_dtype_sizes[o.dtype] <= (most > kPackFreely ? most : kPackFreely);
}

void weights_settle(rlx_weights *w, bool ok) {
  for (; w != nullptr; w = w->parent) {
    while (!ok && w->packed != nullptr && w->packed->fresh) drop(w, w->packed);
    for (Packed *p = w->packed; p != nullptr && p->fresh; p = p->next) p->fresh = false;
  }
}

}  // namespace rlx
