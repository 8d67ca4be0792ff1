// context.h: one VkInstance with one VkDevice, and what belongs to it: queue, memory, modules, pipelines. Devices that are open at the same
// time share it; the last one to close takes it down, so that nothing stays behind.
#pragma once
#include <pthread.h>

#include <atomic>

#include "heap.h"
#include "kernel.h"
#include "vk.h"

namespace rlx {

constexpr uint32_t kMaxBindings = 32;  // buffers of one dispatch

struct Pipeline {
  uint32_t module;
  uint64_t hash;
  uint32_t constants[kMaxConstants];  // the values of the module's specialisation constants
  VkPipeline pipeline;
};

struct Layout {
  VkDescriptorSetLayout set;
  VkPipelineLayout pipeline;
};

struct Context {
  Loader loader;
  InstanceFunctions in;
  DeviceFunctions vk;
  VkInstance instance;
  VkDebugUtilsMessengerEXT messenger;
  VkPhysicalDevice physical;
  VkDevice device;
  VkQueue queue;
  uint32_t family;
  int32_t index;  // of rlx_backend.open
  int users;      // under the global lock

  char name[64];
  uint32_t version;
  VkPhysicalDeviceMemoryProperties memory;
  VkPhysicalDeviceLimits limits;
  uint64_t max_buffer, features;  // features: bits of SPIR-V capabilities (kernel.cpp)
  uint32_t subgroup, timestamp_bits;
  uint32_t single, group;      // invocations of a workgroup: where each does a unit of its own, and where they do one together

  pthread_mutex_t lock;        // of what follows
  Array<Block> blocks;
  Array<Pipeline> pipelines;
  VkShaderModule *modules;     // made when first used
  Layout layouts[kMaxBindings + 1];
  rlx_capability *capabilities;
  uint32_t num_capabilities;
  pthread_mutex_t queue_lock;  // of the queue

  bool validation, gpu_assisted;
  std::atomic<bool> lost;
  std::atomic<uint32_t> messages;  // of the validation layers
  pthread_mutex_t message_lock;
  char message[200];               // the first one that no error has carried yet
};

// The devices that can be used, best first: discrete, integrated, virtual, then software.
int32_t context_count(int32_t *count, rlx_error *);
// The context of device index: the one in use, or a new one.
int32_t context_acquire(int32_t index, Context **, rlx_error *);
// The last release destroys it and returns what validation had to say until then.
int32_t context_release(Context *, rlx_error *);

// code, unless validation has found something since: then the error that says so.
int32_t context_checked(Context *, int32_t code, rlx_error *);
// Like vk_error; remembers that the device is lost.
int32_t context_failed(Context *, rlx_error *, VkResult, int32_t command, const char *call);
int32_t context_alive(Context *, rlx_error *);

// Command buffers, submissions and waits (queue.cpp). What a create function could not make is null.
int32_t semaphore_create(Context *, VkSemaphore *, rlx_error *);  // timeline
int32_t commands_pool(Context *, VkCommandPoolCreateFlags, VkCommandPool *, rlx_error *);
int32_t commands_allocate(Context *, VkCommandPool, uint32_t n, VkCommandBuffer *, rlx_error *);
int32_t commands_begin(Context *, VkCommandBuffer, VkCommandBufferUsageFlags, rlx_error *);
int32_t commands_end(Context *, VkCommandBuffer, rlx_error *);
void commands_barrier(Context *, VkCommandBuffer, VkPipelineStageFlags from, VkAccessFlags before, VkPipelineStageFlags stage, VkAccessFlags after);
int32_t queue_submit(Context *, VkCommandBuffer, VkSemaphore done, uint64_t value, rlx_error *);
// Waits for the value; looks at cancel (may be null) now and then and sets *stop once it is non-zero.
int32_t queue_wait(Context *, VkSemaphore done, uint64_t value, const volatile uint32_t *cancel, volatile uint32_t *stop, rlx_error *);
// Waits for all that the device does.
int32_t queue_idle(Context *, rlx_error *);

}  // namespace rlx
