// queue.cpp: command pools and buffers, submissions and waits: the calls around them, with their errors.
#include "context.h"

namespace rlx {
namespace {

constexpr uint64_t kSlice = 1000000;  // ns between two looks at the cancel word

}  // namespace

int32_t semaphore_create(Context *c, VkSemaphore *out, rlx_error *error) {
  VkSemaphoreTypeCreateInfo type = {};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  const VkResult r = c->vk.vkCreateSemaphore(c->device, &info, nullptr, out);
  if (r == VK_SUCCESS) return RLX_OK;
  *out = VK_NULL_HANDLE;
  return context_failed(c, error, r, -1, "vkCreateSemaphore");
}

int32_t commands_pool(Context *c, VkCommandPoolCreateFlags flags, VkCommandPool *out, rlx_error *error) {
  VkCommandPoolCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.flags = flags;
  info.queueFamilyIndex = c->family;
  const VkResult r = c->vk.vkCreateCommandPool(c->device, &info, nullptr, out);
  if (r == VK_SUCCESS) return RLX_OK;
  *out = VK_NULL_HANDLE;
  return context_failed(c, error, r, -1, "vkCreateCommandPool");
}

int32_t commands_allocate(Context *c, VkCommandPool pool, uint32_t n, VkCommandBuffer *out, rlx_error *error) {
  VkCommandBufferAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = n;
  const VkResult r = c->vk.vkAllocateCommandBuffers(c->device, &info, out);
  return r == VK_SUCCESS ? int32_t(RLX_OK) : context_failed(c, error, r, -1, "vkAllocateCommandBuffers");
}

int32_t commands_begin(Context *c, VkCommandBuffer to, VkCommandBufferUsageFlags flags, rlx_error *error) {
  VkCommandBufferBeginInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = flags;
  const VkResult r = c->vk.vkBeginCommandBuffer(to, &info);
  return r == VK_SUCCESS ? int32_t(RLX_OK) : context_failed(c, error, r, -1, "vkBeginCommandBuffer");
}

int32_t commands_end(Context *c, VkCommandBuffer to, rlx_error *error) {
  const VkResult r = c->vk.vkEndCommandBuffer(to);
  return r == VK_SUCCESS ? int32_t(RLX_OK) : context_failed(c, error, r, -1, "vkEndCommandBuffer");
}

void commands_barrier(Context *c, VkCommandBuffer to, VkPipelineStageFlags from, VkAccessFlags before, VkPipelineStageFlags stage, VkAccessFlags after) {
  VkMemoryBarrier b = {};
  b.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  b.srcAccessMask = before, b.dstAccessMask = after;
  c->vk.vkCmdPipelineBarrier(to, from, stage, 0, 1, &b, 0, nullptr, 0, nullptr);
}

int32_t queue_submit(Context *c, VkCommandBuffer commands, VkSemaphore done, uint64_t value, rlx_error *error) {
  VkTimelineSemaphoreSubmitInfo timeline = {};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &value;
  VkSubmitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &done;
  pthread_mutex_lock(&c->queue_lock);
  const VkResult r = c->vk.vkQueueSubmit(c->queue, 1, &info, VK_NULL_HANDLE);
  pthread_mutex_unlock(&c->queue_lock);
  return r == VK_SUCCESS ? int32_t(RLX_OK) : context_failed(c, error, r, -1, "vkQueueSubmit");
}

int32_t queue_wait(Context *c, VkSemaphore done, uint64_t value, const volatile uint32_t *cancel, volatile uint32_t *stop, rlx_error *error) {
  VkSemaphoreWaitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &done;
  info.pValues = &value;
  for (;;) {
    const VkResult r = c->vk.vkWaitSemaphores(c->device, &info, cancel == nullptr ? UINT64_MAX : kSlice);
    if (r == VK_SUCCESS) return RLX_OK;
    if (r != VK_TIMEOUT) return context_failed(c, error, r, -1, "vkWaitSemaphores");
    if (__atomic_load_n(cancel, __ATOMIC_RELAXED) != 0) *stop = 1;
  }
}

int32_t queue_idle(Context *c, rlx_error *error) {
  pthread_mutex_lock(&c->queue_lock);
  const VkResult r = c->vk.vkDeviceWaitIdle(c->device);
  pthread_mutex_unlock(&c->queue_lock);
  return r == VK_SUCCESS ? int32_t(RLX_OK) : context_failed(c, error, r, -1, "vkDeviceWaitIdle");
}

}  // namespace rlx
