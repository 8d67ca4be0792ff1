#include "kernels/layout.h"
#include "program.h"

namespace rlx {
namespace {

// What a binding of the words is in this arena: a range of a buffer.
VkDescriptorBufferInfo buffer_of(const rlx_arena *a, const Binding &b) {
  const rlx_program *p = a->program;
  const Piece *piece = &a->memory;
  uint64_t at = b.offset;
  switch (b.slot) {
    case RLX_ARENA: break;
    case RLX_INPUT: at += p->input(b.index).offset; break;
    case RLX_OUTPUT: at += p->output(b.index).offset; break;
    case RLX_CONST: piece = &p->weights->pieces[b.index]; break;
    default: return {a->flags.buffer, a->flags.offset, 4};  // an operand that is absent or empty: never read
  }
  return {piece->buffer, piece->offset + at, b.range};
}

void write_set(const rlx_arena *a, const Dispatched &d, VkDescriptorSet set) {
  const rlx_program *p = a->program;
  Context *c = p->device->context;
  VkDescriptorBufferInfo infos[kMaxBindings];
  VkWriteDescriptorSet writes[kMaxBindings] = {};
  infos[BIND_PARAMS] = {p->params_piece.buffer, p->params_piece.offset + 4 * uint64_t(d.params), 4 * uint64_t(d.param_words)};
  infos[BIND_STOP] = {a->flags.buffer, a->flags.offset, 4};
  infos[BIND_FAILED] = {a->flags.buffer, a->flags.offset + FLAG_BYTES, 4 * F_WORDS};
  for (uint32_t k = 0; k < d.bindings; k++) infos[BIND_TENSORS + k] = buffer_of(a, p->bindings[d.first_binding + k]);
  for (uint32_t k = 0; k < BIND_TENSORS + d.bindings; k++) {
    writes[k].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[k].dstSet = set;
    writes[k].dstBinding = k;
    writes[k].descriptorCount = 1;
    writes[k].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[k].pBufferInfo = &infos[k];
  }
  c->vk.vkUpdateDescriptorSets(c->device, BIND_TENSORS + d.bindings, writes, 0, nullptr);
}

int32_t make_sets(rlx_arena *a, rlx_error *error) {
  const rlx_program *p = a->program;
  Context *c = p->device->context;
  const uint64_t n = p->dispatches.n;
  if (n == 0) return RLX_OK;
  VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 0};
  for (const Dispatched &d : p->dispatches) size.descriptorCount += BIND_TENSORS + d.bindings;
  VkDescriptorPoolCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  info.maxSets = uint32_t(n);
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  VkResult r = c->vk.vkCreateDescriptorPool(c->device, &info, nullptr, &a->sets_pool);
  if (r != VK_SUCCESS) {
    a->sets_pool = VK_NULL_HANDLE;
    return context_failed(c, error, r, -1, "vkCreateDescriptorPool");
  }
  if (a->sets.grow(n) == nullptr) return set_error(error, RLX_NO_MEMORY, -1, "no host memory");
  for (uint64_t i = 0; i < n; i++) {
    VkDescriptorSetLayout layout;
    VkPipelineLayout unused;
    const int32_t code = layout_get(c, BIND_TENSORS + p->dispatches[i].bindings, &layout, &unused, error);
    if (code != RLX_OK) return code;
    VkDescriptorSetAllocateInfo alloc = {};
    alloc.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    alloc.descriptorPool = a->sets_pool;
    alloc.descriptorSetCount = 1;
    alloc.pSetLayouts = &layout;
    if ((r = c->vk.vkAllocateDescriptorSets(c->device, &alloc, &a->sets[i])) != VK_SUCCESS) return context_failed(c, error, r, -1, "vkAllocateDescriptorSets");
    write_set(a, p->dispatches[i], a->sets[i]);
  }
  return RLX_OK;
}

int32_t make_commands(rlx_arena *a, rlx_error *error) {
  const rlx_program *p = a->program;
  Context *c = p->device->context;
  int32_t code = commands_pool(c, 0, &a->commands_pool, error);
  const uint64_t n = p->stretches.n;
  if (code != RLX_OK || n == 0) return code;
  if (a->commands.grow(2 * n) == nullptr) return set_error(error, RLX_NO_MEMORY, -1, "no host memory");
  code = commands_allocate(c, a->commands_pool, uint32_t(n), a->commands.data, error);
  for (uint32_t i = 0; i < n && code == RLX_OK; i++) code = record(a, i, a->commands[i], false, error);
  return code;
}

int32_t make(rlx_arena *a, rlx_error *error) {
  const rlx_program *p = a->program;
  Context *c = p->device->context;
  int32_t code = context_alive(c, error);
  const uint64_t staged = p->device_bytes - p->words_bytes;
  if (code == RLX_OK && p->device_bytes != 0) code = heap_alloc(c, kOnDevice, p->device_bytes, &a->memory, error);
  if (code == RLX_OK && staged != 0) code = heap_alloc(c, kStaging, staged, &a->staging, error);
  if (code == RLX_OK) code = heap_alloc(c, kFlags, FLAG_BYTES + 4 * F_WORDS, &a->flags, error);
  if (code == RLX_OK) code = make_sets(a, error);
  if (code == RLX_OK) code = make_commands(a, error);
  return code == RLX_OK ? semaphore_create(c, &a->done, error) : code;
}

void destroy(rlx_arena *a) {
  Context *c = a->program->device->context;
  if (a->pending) queue_idle(c, nullptr);  // its memory may still be in use
  if (a->done != VK_NULL_HANDLE) c->vk.vkDestroySemaphore(c->device, a->done, nullptr);
  if (a->queries != VK_NULL_HANDLE) c->vk.vkDestroyQueryPool(c->device, a->queries, nullptr);
  if (a->commands_pool != VK_NULL_HANDLE) c->vk.vkDestroyCommandPool(c->device, a->commands_pool, nullptr);
  if (a->sets_pool != VK_NULL_HANDLE) c->vk.vkDestroyDescriptorPool(c->device, a->sets_pool, nullptr);
  heap_free(c, &a->flags);
  heap_free(c, &a->staging);
  heap_free(c, &a->memory);
  a->sets.release();
  a->commands.release();
  memory_free(a);
}

}  // namespace

int32_t arena_open(rlx_program *p, rlx_arena **out, rlx_error *error) {
  rlx_arena *a = static_cast<rlx_arena *>(memory_alloc(sizeof(rlx_arena)));
  if (a == nullptr) return set_error(error, RLX_NO_MEMORY, -1, "no host memory for an arena");
  std::memset(static_cast<void *>(a), 0, sizeof *a);
  a->program = p;
  const int32_t code = make(a, error);
  if (code != RLX_OK) {
    destroy(a);
    return code;
  }
  p->arenas.fetch_add(1, std::memory_order_relaxed);
  *out = a;
  return RLX_OK;
}

void arena_close(rlx_arena *a) {
  a->program->arenas.fetch_sub(1, std::memory_order_release);
  destroy(a);
}

int32_t arena_copy(const char *name, rlx_arena *a, const rlx_region *regions, uint32_t count, bool write, rlx_error *error) {
  Array<Copy> copies;
  int32_t code = check_regions(*a->program, name, regions, count, error);
  if (code == RLX_OK) code = settle(a, error);
  for (uint32_t i = 0; i < count && code == RLX_OK; i++)
    if (regions[i].bytes != 0 && !copies.push({a->memory, regions[i].offset, regions[i].host, regions[i].bytes})) code = set_error(error, RLX_NO_MEMORY, -1, "no host memory");
  if (code == RLX_OK) code = copy_through_staging(a->program->device->context, copies.data, copies.n, write, error);
  copies.release();
  return code;
}

}  // namespace rlx
