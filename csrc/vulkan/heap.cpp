#include "heap.h"

#include <atomic>

#include "context.h"

namespace rlx {
namespace {

constexpr uint64_t kLeast = uint64_t(1) << 20, kMost = uint64_t(64) << 20;
std::atomic<uint64_t> held{0};

uint64_t align_up(uint64_t n, uint64_t a) { return (n + a - 1) / a * a; }

// The memory type for a use among those that allowed names: the first with all wanted properties, else the first with those needed.
int memory_type(const Context &c, Use use, uint32_t allowed) {
  static const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  static const VkMemoryPropertyFlags need[kUses] = {0, host, host};
  static const VkMemoryPropertyFlags want[kUses] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, host | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
  int fallback = -1;
  for (uint32_t i = 0; i < c.memory.memoryTypeCount; i++) {
    const VkMemoryPropertyFlags flags = c.memory.memoryTypes[i].propertyFlags;
    if ((allowed >> i & 1) == 0 || (flags & need[use]) != need[use]) continue;
    if ((flags & want[use]) == want[use]) return int(i);
    if (fallback < 0) fallback = int(i);
  }
  return fallback;
}

void destroy(Context *c, Block *b) {
  if (b->buffer != VK_NULL_HANDLE) c->vk.vkDestroyBuffer(c->device, b->buffer, nullptr);
  if (b->memory != VK_NULL_HANDLE) {
    c->vk.vkFreeMemory(c->device, b->memory, nullptr);  // unmaps
    held.fetch_sub(b->bytes, std::memory_order_relaxed);
  }
  b->spans.release();
}

// Fills b, whose bytes and use are set. What was made before a failure is left for destroy.
int32_t create(Context *c, Block *b, rlx_error *error) {
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = b->bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  VkResult r = c->vk.vkCreateBuffer(c->device, &info, nullptr, &b->buffer);
  if (r != VK_SUCCESS) return vk_error(error, r, -1, "vkCreateBuffer");
  VkMemoryRequirements need;
  c->vk.vkGetBufferMemoryRequirements(c->device, b->buffer, &need);
  VkMemoryAllocateInfo alloc = {};
  alloc.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  alloc.allocationSize = need.size;
  const int type = memory_type(*c, b->use, need.memoryTypeBits);
  if (type < 0) return set_error(error, RLX_NO_MEMORY, -1, "the device has no memory of the kind needed");
  alloc.memoryTypeIndex = uint32_t(type);
  if ((r = c->vk.vkAllocateMemory(c->device, &alloc, nullptr, &b->memory)) != VK_SUCCESS) {
    b->memory = VK_NULL_HANDLE;
    return set_error(error, result_status(r), -1, "vkAllocateMemory of %llu bytes: %s (%d)", (unsigned long long)need.size, result_name(r), int(r));
  }
  b->bytes = need.size;
  held.fetch_add(b->bytes, std::memory_order_relaxed);
  if ((r = c->vk.vkBindBufferMemory(c->device, b->buffer, b->memory, 0)) != VK_SUCCESS) return vk_error(error, r, -1, "vkBindBufferMemory");
  if (b->use == kOnDevice) return RLX_OK;
  void *host = nullptr;
  if ((r = c->vk.vkMapMemory(c->device, b->memory, 0, VK_WHOLE_SIZE, 0, &host)) != VK_SUCCESS) return vk_error(error, r, -1, "vkMapMemory");
  b->host = static_cast<char *>(host);
  return RLX_OK;
}

// Takes bytes out of a free span of b; false if none is large enough.
bool take(Block *b, uint64_t bytes, Piece *out) {
  for (uint64_t i = 0; i < b->spans.n; i++) {
    Span s = b->spans[i];
    if (s.used || s.bytes < bytes) continue;
    if (s.bytes > bytes) {
      if (b->spans.grow(1) == nullptr) return false;
      std::memmove(&b->spans[i + 2], &b->spans[i + 1], (b->spans.n - i - 2) * sizeof(Span));
      b->spans[i + 1] = {s.offset + bytes, s.bytes - bytes, false};
    }
    b->spans[i] = {s.offset, bytes, true};
    *out = {b->buffer, s.offset, bytes, b->host == nullptr ? nullptr : b->host + s.offset};
    return true;
  }
  return false;
}

// A new block for small pieces is as large as the blocks of its use together, so that their number stays small.
uint64_t block_bytes(const Context &c, Use use, uint64_t bytes) {
  if (use == kFlags) return kLeast / 16;
  uint64_t have = 0;
  for (const Block &b : c.blocks)
    if (b.use == use) have += b.bytes;
  const uint64_t want = have < kLeast ? kLeast : have > kMost ? kMost : have;
  return want < 2 * bytes ? 2 * bytes : align_up(want, kPieceAlign);
}

int32_t alloc_locked(Context *c, Use use, uint64_t bytes, Piece *out, rlx_error *error) {
  for (Block &b : c->blocks)
    if (b.use == use && take(&b, bytes, out)) return RLX_OK;
  Block b = {};
  b.use = use;
  b.bytes = bytes > kMost / 2 ? bytes : block_bytes(*c, use, bytes);
  const uint64_t room = b.bytes;  // of the buffer; its memory may be larger
  int32_t code = create(c, &b, error);
  if (code == RLX_OK && (!b.spans.push({0, room / kPieceAlign * kPieceAlign, false}) || !c->blocks.push(b))) code = set_error(error, RLX_NO_MEMORY, -1, "no host memory");
  if (code != RLX_OK) {
    destroy(c, &b);
    return code;
  }
  if (take(&c->blocks[c->blocks.n - 1], bytes, out)) return RLX_OK;
  destroy(c, &c->blocks[c->blocks.n - 1]);
  c->blocks.n--;
  return set_error(error, RLX_NO_MEMORY, -1, "no host memory");
}

// Frees the span at offset, merges it with free neighbours, and says whether the block is empty.
bool give(Block *b, uint64_t offset) {
  uint64_t i = 0;
  while (b->spans[i].offset != offset) i++;
  b->spans[i].used = false;
  if (i + 1 < b->spans.n && !b->spans[i + 1].used) {
    b->spans[i].bytes += b->spans[i + 1].bytes;
    b->spans.remove(i + 1);
  }
  if (i > 0 && !b->spans[i - 1].used) {
    b->spans[i - 1].bytes += b->spans[i].bytes;
    b->spans.remove(i);
  }
  return b->spans.n == 1 && !b->spans[0].used;
}

}  // namespace

int32_t heap_alloc(Context *c, Use use, uint64_t bytes, Piece *out, rlx_error *error) {
  *out = {};
  const uint64_t most = c->max_buffer;
  if (bytes > most) return set_error(error, RLX_NO_MEMORY, -1, "%llu bytes in one piece, the device allows %llu", (unsigned long long)bytes, (unsigned long long)most);
  bytes = align_up(bytes == 0 ? 1 : bytes, kPieceAlign);
  pthread_mutex_lock(&c->lock);
  const int32_t code = alloc_locked(c, use, bytes, out, error);
  pthread_mutex_unlock(&c->lock);
  return code;
}

void heap_free(Context *c, Piece *p) {
  if (p->buffer == VK_NULL_HANDLE) return;
  pthread_mutex_lock(&c->lock);
  for (uint64_t i = 0; i < c->blocks.n; i++) {
    if (c->blocks[i].buffer != p->buffer) continue;
    if (give(&c->blocks[i], p->offset)) {
      destroy(c, &c->blocks[i]);
      c->blocks.remove(i);
    }
    break;
  }
  pthread_mutex_unlock(&c->lock);
  *p = {};
}

uint64_t heap_bytes() { return held.load(std::memory_order_relaxed); }

}  // namespace rlx
