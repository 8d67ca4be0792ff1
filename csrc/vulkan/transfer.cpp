// transfer.cpp: copies between host memory and pieces of device memory, through one staging piece.
#include "program.h"

namespace rlx {
namespace {

// What a copy needs while it is under way.
struct Transfer {
  Context *context;
  Piece staging;
  VkCommandPool pool;
  VkSemaphore done;
  uint64_t ticket;
};

int32_t transfer_open(Transfer *t, uint64_t bytes, rlx_error *error) {
  int32_t code = heap_alloc(t->context, kStaging, bytes, &t->staging, error);
  if (code == RLX_OK) code = commands_pool(t->context, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT, &t->pool, error);
  return code == RLX_OK ? semaphore_create(t->context, &t->done, error) : code;
}

void transfer_close(Transfer *t, bool pending) {
  Context *c = t->context;
  if (pending) queue_idle(c, nullptr);  // its memory may still be in use
  if (t->done != VK_NULL_HANDLE) c->vk.vkDestroySemaphore(c->device, t->done, nullptr);
  if (t->pool != VK_NULL_HANDLE) c->vk.vkDestroyCommandPool(c->device, t->pool, nullptr);
  heap_free(c, &t->staging);
}

struct Part {
  const Copy *copy;
  uint64_t at, bytes, staged;  // from byte at of the copy; place in staging
};

// Records, submits and waits for one staging load of parts.
int32_t transfer_parts(Transfer *t, const Array<Part> &parts, bool write, rlx_error *error) {
  Context *c = t->context;
  VkCommandBuffer commands;
  int32_t code = commands_allocate(c, t->pool, 1, &commands, error);
  if (code == RLX_OK) code = commands_begin(c, commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, error);
  if (code != RLX_OK) return code;
  commands_barrier(c, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                   VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  for (const Part &p : parts) {
    if (write) std::memcpy(t->staging.host + p.staged, static_cast<const char *>(p.copy->host) + p.at, p.bytes);
    const uint64_t device = p.copy->piece.offset + p.copy->offset + p.at, staging = t->staging.offset + p.staged;
    const VkBufferCopy region = {write ? staging : device, write ? device : staging, p.bytes};
    c->vk.vkCmdCopyBuffer(commands, write ? t->staging.buffer : p.copy->piece.buffer, write ? p.copy->piece.buffer : t->staging.buffer, 1, &region);
  }
  commands_barrier(c, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT,
                   VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT);
  code = commands_end(c, commands, error);
  if (code == RLX_OK) code = queue_submit(c, commands, t->done, ++t->ticket, error);
  if (code == RLX_OK) code = queue_wait(c, t->done, t->ticket, nullptr, nullptr, error);
  for (uint64_t i = 0; code == RLX_OK && !write && i < parts.n; i++) std::memcpy(static_cast<char *>(parts[i].copy->host) + parts[i].at, t->staging.host + parts[i].staged, parts[i].bytes);
  return code;
}

}  // namespace

int32_t copy_through_staging(Context *c, const Copy *copies, uint64_t count, bool write, rlx_error *error) {
  constexpr uint64_t kMost = uint64_t(4) << 20;
  uint64_t total = 0;
  for (uint64_t i = 0; i < count; i++) total += copies[i].bytes;
  if (total == 0) return RLX_OK;
  int32_t code = context_alive(c, error);
  if (code != RLX_OK) return code;
  Transfer t = {c, {}, VK_NULL_HANDLE, VK_NULL_HANDLE, 0};
  const uint64_t room = total < kMost ? total : kMost;
  code = transfer_open(&t, room, error);
  Array<Part> parts;
  uint64_t used = 0;
  for (uint64_t i = 0; i < count && code == RLX_OK; i++)
    for (uint64_t at = 0; at < copies[i].bytes && code == RLX_OK;) {
      const uint64_t left = copies[i].bytes - at, n = left < room - used ? left : room - used;
      if (!parts.push({&copies[i], at, n, used})) code = set_error(error, RLX_NO_MEMORY, -1, "no host memory");
      at += n, used += n;
      if (code != RLX_OK || used < room) continue;
      code = transfer_parts(&t, parts, write, error);
      parts.n = used = 0;
    }
  if (code == RLX_OK && parts.n != 0) code = transfer_parts(&t, parts, write, error);
  parts.release();
  transfer_close(&t, code != RLX_OK);
  return code;
}

}  // namespace rlx
