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
  w->root->packed_bytes -= uint64_t(p->form.bytes);
  memory_free(p->data);  // p with it
}

void forget(Constant &c) {
  if (c.memory == OURS) memory_free(c.data);
  c.data = nullptr, c.memory = NOWHERE;
}

void release(rlx_weights *w) {
  while (w->packed != nullptr) drop(w, w->packed);
  for (uint32_t i = w->first; i < w->count; i++) forget(w->own[i - w->first]);
  memory_free(w->own);
  memory_free(w->bytes);
  memory_free(w);
}

// Makes a copy of what c has, or had, in memory of our own.
bool copy(Constant *c, const void *from, uint64_t bytes) {
  void *to = memory_alloc(bytes);
  if (to == nullptr) return false;
  if (bytes != 0) std::memcpy(to, from, bytes);
  c->data = to, c->memory = OURS;
  return true;
}

// The next constant of w: what stays is used where it lies, if it is aligned like a copy.
bool add(rlx_weights *w, const rlx_constant &from) {
  const uint32_t i = w->count;
  Constant *c = w->own + (i - w->first);
  *c = {const_cast<void *>(from.data), 0, CALLERS, from.stays == 2};
  w->bytes[i] = from.bytes, w->own_bytes += from.bytes;
  if (from.stays == 1 && from.bytes != 0 && (reinterpret_cast<uintptr_t>(from.data) & 63) == 0) c->memory = BORROWED;
  if ((from.stays == 0 || from.bytes == 0) && !copy(c, from.data, from.bytes)) return false;
  w->count = i + 1;
  return true;
}

bool same_view(const Packed &p, const Operand &o) {
  const Operand &v = p.view;
  if (v.index != o.index || v.dtype != o.dtype || v.rank != o.rank || v.offset != o.offset) return false;
  for (uint32_t i = 0; i < o.rank; i++)
    if (v.dims[i] != o.dims[i] || v.strides[i] != o.strides[i]) return false;
  return true;
}

// Whether o has every element of a constant of that many bytes once.
bool covers(const Operand &o, uint64_t bytes) {
  const int64_t size = int64_t(rlx_dtype_sizes[o.dtype]);
  int64_t low = o.offset, step = 1;
  bool taken[RLX_MAX_RANK] = {};
  for (uint32_t i = 0; i < o.rank; i++)
    if (o.strides[i] < 0) low += (o.dims[i] - 1) * o.strides[i] * size;
  if (low != 0 || uint64_t(o.count * size) != bytes || bytes == 0) return false;
  for (uint32_t n = 0; n < o.rank; n++)
    for (uint32_t i = 0; i < o.rank; i++)
      if (!taken[i] && o.dims[i] > 1 && (o.strides[i] == step || o.strides[i] == -step)) {
        taken[i] = true, step *= o.dims[i];
        break;
      }
  return step == o.count;
}

// The weights that a constant is of.
rlx_weights *home(rlx_weights *w, uint32_t index) {
  while (index < w->first) w = w->parent;
  return w;
}

Constant &constant_at(rlx_weights *w, uint32_t index) { return w->own[index - w->first]; }

// The packed form that gives constant index of w back, null if none does.
const Packed *inverse_of(const rlx_weights *w, uint32_t index) {
  for (const Packed *p = w->packed; p != nullptr; p = p->next)
    if (p->view.index == index && p->whole && !p->fresh) return p;
  return nullptr;
}

// Brings the bytes of constant index of w back.
bool restore(rlx_weights *w, uint32_t index) {
  Constant &c = constant_at(w, index);
  if (c.memory != NOWHERE) return true;
  void *raw = memory_alloc(w->bytes[index]);
  if (raw == nullptr) return false;
  const Packed *p = inverse_of(w, index);
  p->form.unpack(p->view, p->form.how, static_cast<const char *>(p->data), static_cast<char *>(raw));
  c.data = raw, c.memory = OURS;
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
  w->own = static_cast<Constant *>(memory_alloc(sizeof(Constant) * count));
  w->bytes = static_cast<uint64_t *>(memory_alloc(sizeof(uint64_t) * total));
  bool ok = w->own != nullptr && w->bytes != nullptr;
  if (ok && first != 0) std::memcpy(w->bytes, parent->bytes, sizeof(uint64_t) * first);
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

void *weights_packed(rlx_weights *w, const Operand &o, const PackedForm &form, bool *fresh) {
  *fresh = false;
  w = home(w, o.index);
  for (Packed *p = w->packed; p != nullptr; p = p->next)
    if (p->form.layout == form.layout && p->form.bytes == form.bytes && same_view(*p, o)) return p->data;
  if (form.bytes < 0) return nullptr;
  if (form.bytes > INT64_MAX / 2) return nullptr;
  const uint64_t behind = (uint64_t(form.bytes) + alignof(Packed) - 1) & ~uint64_t(alignof(Packed) - 1);
  char *data = static_cast<char *>(memory_alloc(behind + sizeof(Packed) + 2 * sizeof(int64_t) * o.rank));
  if (data == nullptr) return nullptr;
  Packed *p = reinterpret_cast<Packed *>(data + behind);
  int64_t *dims = reinterpret_cast<int64_t *>(p + 1), *strides = dims + o.rank;
  for (uint32_t i = 0; i < o.rank; i++) dims[i] = o.dims[i], strides[i] = o.strides[i];
  p->view = o, p->view.dims = dims, p->view.strides = strides;
  p->form = form, p->fresh = true, p->whole = form.unpack != nullptr && covers(o, w->bytes[o.index]);
  p->data = data;
  p->next = w->packed;
  w->packed = p;
  w->root->packed_bytes += uint64_t(form.bytes);
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

const void *weights_source(rlx_weights *w, const Operand &o) {
  w = home(w, o.index);
  Constant &c = constant_at(w, o.index);
  const bool apart = c.memory == CALLERS && reinterpret_cast<uintptr_t>(c.data) % rlx_dtype_sizes[o.dtype] != 0;
  if (!restore(w, o.index) || (apart && !copy(&c, c.data, w->bytes[o.index]))) return nullptr;
  return static_cast<const char *>(c.data) + o.offset;
}

void *weights_use(rlx_weights *w, uint32_t index) {
  w = home(w, index);
  Constant &c = constant_at(w, index);
  if (!restore(w, index) || (c.memory == CALLERS && !copy(&c, c.data, w->bytes[index]))) return nullptr;
  c.readers++;
  return c.data;
}

void weights_unuse(rlx_weights *w, uint32_t index) { constant_at(home(w, index), index).readers--; }

void weights_trim(rlx_weights *w, uint8_t *where) {
  pthread_mutex_lock(&w->root->lock);
  for (uint32_t i = w->first; i < w->count; i++) {
    Constant &c = constant_at(w, i);
    if (c.readers == 0 && c.memory != NOWHERE && inverse_of(w, i) != nullptr) forget(c);
    if (c.memory == CALLERS && c.wanted) copy(&c, c.data, w->bytes[i]);
    where[i - w->first] = c.memory == NOWHERE ? 2 : c.memory == OURS ? 1 : 0;
  }
  pthread_mutex_unlock(&w->root->lock);
}

void weights_read(rlx_weights *w, uint32_t index, void *to) {
  pthread_mutex_lock(&w->root->lock);
  w = home(w, index);
  const Constant &c = constant_at(w, index);
  const Packed *p = c.memory == NOWHERE ? inverse_of(w, index) : nullptr;
  if (p != nullptr) p->form.unpack(p->view, p->form.how, static_cast<const char *>(p->data), static_cast<char *>(to));
  else if (w->bytes[index] != 0) std::memcpy(to, c.data, w->bytes[index]);
  pthread_mutex_unlock(&w->root->lock);
}

void weights_settle(rlx_weights *w, bool ok) {
  for (; w != nullptr; w = w->parent) {
    while (!ok && w->packed != nullptr && w->packed->fresh) drop(w, w->packed);
    for (Packed *p = w->packed; p != nullptr && p->fresh; p = p->next) p->fresh = false;
  }
}

}  // namespace rlx
