// vk.h: Vulkan as this backend sees it: the loader found at run time, its functions behind tables, failures as errors.
#pragma once
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "../common/words.h"

namespace rlx {

#define RLX_VK_GLOBAL(X) X(vkCreateInstance) X(vkEnumerateInstanceVersion) X(vkEnumerateInstanceLayerProperties)
#define RLX_VK_INSTANCE(X)                                                                                                                \
  X(vkDestroyInstance) X(vkEnumeratePhysicalDevices) X(vkGetPhysicalDeviceProperties) X(vkGetPhysicalDeviceProperties2)                   \
  X(vkGetPhysicalDeviceFeatures2) X(vkGetPhysicalDeviceMemoryProperties) X(vkGetPhysicalDeviceQueueFamilyProperties) X(vkCreateDevice)    \
  X(vkGetDeviceProcAddr)
#define RLX_VK_DEVICE(X)                                                                                                                  \
  X(vkDestroyDevice) X(vkDeviceWaitIdle) X(vkGetDeviceQueue) X(vkAllocateMemory) X(vkFreeMemory) X(vkMapMemory) X(vkCreateBuffer)         \
  X(vkDestroyBuffer) X(vkGetBufferMemoryRequirements) X(vkBindBufferMemory) X(vkCreateShaderModule) X(vkDestroyShaderModule)              \
  X(vkCreateDescriptorSetLayout) X(vkDestroyDescriptorSetLayout) X(vkCreatePipelineLayout) X(vkDestroyPipelineLayout)                     \
  X(vkCreateComputePipelines) X(vkDestroyPipeline) X(vkCreateDescriptorPool) X(vkDestroyDescriptorPool) X(vkAllocateDescriptorSets)       \
  X(vkUpdateDescriptorSets) X(vkCreateCommandPool) X(vkDestroyCommandPool) X(vkAllocateCommandBuffers) X(vkBeginCommandBuffer)            \
  X(vkEndCommandBuffer) X(vkCmdBindPipeline) X(vkCmdBindDescriptorSets) X(vkCmdDispatch) X(vkCmdCopyBuffer) X(vkCmdPipelineBarrier)       \
  X(vkCreateQueryPool) X(vkDestroyQueryPool) X(vkCmdResetQueryPool) X(vkCmdWriteTimestamp) X(vkGetQueryPoolResults) X(vkCreateSemaphore)  \
  X(vkDestroySemaphore) X(vkWaitSemaphores) X(vkQueueSubmit)

// The loader: one dlopen for all contexts, closed with the last.
struct Loader {
  void *library;
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;
#define RLX_VK_FIELD(name) PFN_##name name;
  RLX_VK_GLOBAL(RLX_VK_FIELD)
};

struct InstanceFunctions {
  RLX_VK_INSTANCE(RLX_VK_FIELD)
  PFN_vkCreateDebugUtilsMessengerEXT vkCreateDebugUtilsMessengerEXT;    // null without validation
  PFN_vkDestroyDebugUtilsMessengerEXT vkDestroyDebugUtilsMessengerEXT;
};

struct DeviceFunctions {
  RLX_VK_DEVICE(RLX_VK_FIELD)
};
#undef RLX_VK_FIELD

// Opens the loader: libvulkan.so.1, or the library that RLX_VULKAN_LOADER names. RLX_NO_DEVICE with the reason where there is none.
int32_t loader_open(Loader *, rlx_error *);
void loader_close(Loader *);
int32_t load_instance_functions(const Loader &, VkInstance, bool validation, InstanceFunctions *, rlx_error *);
int32_t load_device_functions(const InstanceFunctions &, VkDevice, DeviceFunctions *, rlx_error *);

// The name of a VkResult, and the status it becomes: out of memory, device lost, or a driver that failed.
const char *result_name(VkResult);
int32_t result_status(VkResult);
// An error that says which call failed and how; command -1 for none.
int32_t vk_error(rlx_error *, VkResult, int32_t command, const char *call);

}  // namespace rlx
