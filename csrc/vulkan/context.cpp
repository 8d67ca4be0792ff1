#include "context.h"

#include <stdio.h>
#include <stdlib.h>

namespace rlx {
namespace {

pthread_mutex_t global_lock = PTHREAD_MUTEX_INITIALIZER;
Array<Context *> contexts;  // those in use

constexpr char kValidationLayer[] = "VK_LAYER_KHRONOS_validation";

// RLX_VULKAN_VALIDATE: 1 for the validation layers with synchronisation checks, gpu for GPU-assisted checks besides, auto for 1 where the
// layers are installed.
const char *validation_wish() {
  const char *v = getenv("RLX_VULKAN_VALIDATE");
  return v == nullptr || *v == 0 || std::strcmp(v, "0") == 0 ? nullptr : v;
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT, const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  Context *c = static_cast<Context *>(user);
  pthread_mutex_lock(&c->message_lock);
  if (c->messages.fetch_add(1, std::memory_order_relaxed) == 0) snprintf(c->message, sizeof c->message, "%s", data->pMessage == nullptr ? "" : data->pMessage);
  pthread_mutex_unlock(&c->message_lock);
  return VK_FALSE;
}

bool has_layer(const Loader &l, const char *name) {
  uint32_t n = 0;
  if (l.vkEnumerateInstanceLayerProperties(&n, nullptr) != VK_SUCCESS) return false;
  Array<VkLayerProperties> list;
  bool found = false;
  if (n != 0 && list.grow(n) != nullptr && l.vkEnumerateInstanceLayerProperties(&n, list.data) >= VK_SUCCESS)
    for (uint32_t i = 0; i < n; i++) found = found || std::strcmp(list[i].layerName, name) == 0;
  list.release();
  return found;
}

// Makes c->instance; c->validation says whether with the layers.
int32_t create_instance(Context *c, rlx_error *error) {
  VkApplicationInfo app = {};
  app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  app.pEngineName = "rlx";
  app.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &app;
  const char *layer = kValidationLayer;
  const char *extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  const VkValidationFeatureEnableEXT enable[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT, VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT};
  VkValidationFeaturesEXT features = {};
  VkDebugUtilsMessengerCreateInfoEXT messenger = {};
  const char *wish = validation_wish();
  c->validation = wish != nullptr && has_layer(c->loader, layer);
  if (wish != nullptr && !c->validation && std::strcmp(wish, "auto") != 0)
    return set_error(error, RLX_BAD_ARGUMENT, -1, "RLX_VULKAN_VALIDATE is set, but %s is not installed", layer);
  if (c->validation) {
    features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
    c->gpu_assisted = std::strcmp(wish, "gpu") == 0;
    features.enabledValidationFeatureCount = c->gpu_assisted ? 2 : 1;
    features.pEnabledValidationFeatures = enable;
    messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messenger.pfnUserCallback = on_message;
    messenger.pUserData = c;
    info.pNext = &features;
    info.enabledLayerCount = 1, info.ppEnabledLayerNames = &layer;
    info.enabledExtensionCount = 2, info.ppEnabledExtensionNames = extensions;
  }
  VkResult r = c->loader.vkCreateInstance(&info, nullptr, &c->instance);
  if (r != VK_SUCCESS) {
    c->instance = VK_NULL_HANDLE;
    const bool none = r == VK_ERROR_INCOMPATIBLE_DRIVER || r == VK_ERROR_INITIALIZATION_FAILED;
    return none ? set_error(error, RLX_NO_DEVICE, -1, "vkCreateInstance: %s: no driver that works", result_name(r)) : vk_error(error, r, -1, "vkCreateInstance");
  }
  const int32_t code = load_instance_functions(c->loader, c->instance, c->validation, &c->in, error);
  if (code != RLX_OK || !c->validation) return code;
  r = c->in.vkCreateDebugUtilsMessengerEXT(c->instance, &messenger, nullptr, &c->messenger);
  return r == VK_SUCCESS ? int32_t(RLX_OK) : vk_error(error, r, -1, "vkCreateDebugUtilsMessengerEXT");
}

// Rank of a device type: the lower the better.
int rank_of(VkPhysicalDeviceType t) {
  switch (t) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    default: return 3;
  }
}

// The family for compute, UINT32_MAX if the device has none.
uint32_t compute_family(const Context &c, VkPhysicalDevice d, uint32_t *timestamp_bits) {
  VkQueueFamilyProperties list[32];
  uint32_t n = 32;
  c.in.vkGetPhysicalDeviceQueueFamilyProperties(d, &n, list);
  for (uint32_t i = 0; i < n; i++)
    if (list[i].queueFlags & VK_QUEUE_COMPUTE_BIT) {
      *timestamp_bits = list[i].timestampValidBits;
      return i;
    }
  return UINT32_MAX;
}

struct Features {
  VkPhysicalDeviceFeatures2 all;
  VkPhysicalDeviceVulkan11Features v11;
  VkPhysicalDeviceVulkan12Features v12;
};

void chain(Features *f) {
  *f = {};
  f->all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  f->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  f->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  f->all.pNext = &f->v11;
  f->v11.pNext = &f->v12;
}

// Vulkan 1.2 with timeline semaphores and a compute queue.
bool usable(const Context &c, VkPhysicalDevice d) {
  VkPhysicalDeviceProperties p;
  c.in.vkGetPhysicalDeviceProperties(d, &p);
  if (p.apiVersion < VK_API_VERSION_1_2) return false;
  Features f;
  chain(&f);
  c.in.vkGetPhysicalDeviceFeatures2(d, &f.all);
  uint32_t bits;
  return f.v12.timelineSemaphore && compute_family(c, d, &bits) != UINT32_MAX;
}

// The usable devices in order of rank.
int32_t list_devices(const Context &c, Array<VkPhysicalDevice> *out, rlx_error *error) {
  uint32_t n = 0;
  VkResult r = c.in.vkEnumeratePhysicalDevices(c.instance, &n, nullptr);
  Array<VkPhysicalDevice> all;
  if (r == VK_SUCCESS && n != 0) r = all.grow(n) == nullptr ? VK_ERROR_OUT_OF_HOST_MEMORY : c.in.vkEnumeratePhysicalDevices(c.instance, &n, all.data);
  bool ok = true;
  if (r >= VK_SUCCESS)
    for (int rank = 0; rank < 4; rank++)
      for (uint32_t i = 0; i < n; i++) {
        VkPhysicalDeviceProperties p;
        c.in.vkGetPhysicalDeviceProperties(all[i], &p);
        if (rank_of(p.deviceType) == rank && usable(c, all[i])) ok = ok && out->push(all[i]);
      }
  all.release();
  if (!ok) r = VK_ERROR_OUT_OF_HOST_MEMORY;
  if (r < VK_SUCCESS) return r == VK_ERROR_INITIALIZATION_FAILED ? set_error(error, RLX_NO_DEVICE, -1, "vkEnumeratePhysicalDevices: %s: no driver that works", result_name(r)) : vk_error(error, r, -1, "vkEnumeratePhysicalDevices");
  if (out->n == 0) return set_error(error, RLX_NO_DEVICE, -1, "no device with Vulkan 1.2, timeline semaphores and a compute queue (%u devices seen)", n);
  return RLX_OK;
}

void read_properties(Context *c, const Features &f) {
  VkPhysicalDeviceVulkan11Properties v11 = {};
  v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  VkPhysicalDeviceSubgroupProperties sub = {};
  sub.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  v11.pNext = &sub;
  VkPhysicalDeviceProperties2 p = {};
  p.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  p.pNext = &v11;
  c->in.vkGetPhysicalDeviceProperties2(c->physical, &p);
  c->in.vkGetPhysicalDeviceMemoryProperties(c->physical, &c->memory);
  snprintf(c->name, sizeof c->name, "%s", p.properties.deviceName);
  c->version = p.properties.apiVersion;
  c->limits = p.properties.limits;
  c->max_buffer = v11.maxMemoryAllocationSize;
  c->subgroup = sub.subgroupSize;
  const uint32_t most = c->limits.maxComputeWorkGroupInvocations < c->limits.maxComputeWorkGroupSize[0] ? c->limits.maxComputeWorkGroupInvocations : c->limits.maxComputeWorkGroupSize[0];
  c->group = c->subgroup > 64 && c->subgroup <= most ? c->subgroup : 64;  // a whole subgroup at least
  c->single = most < 256 ? c->group : 256;
  c->features = features_of(f.all, f.v11, f.v12, sub);
}

// What kernels may use is switched on, nothing else.
int32_t create_device(Context *c, rlx_error *error) {
  Features have, want;
  chain(&have);
  chain(&want);
  c->in.vkGetPhysicalDeviceFeatures2(c->physical, &have.all);
  want.all.features.shaderInt64 = have.all.features.shaderInt64;
  want.all.features.shaderInt16 = have.all.features.shaderInt16;
  want.all.features.shaderFloat64 = have.all.features.shaderFloat64;
  want.v11.storageBuffer16BitAccess = have.v11.storageBuffer16BitAccess;
  want.v12.storageBuffer8BitAccess = have.v12.storageBuffer8BitAccess;
  want.v12.shaderInt8 = have.v12.shaderInt8;
  want.v12.shaderFloat16 = have.v12.shaderFloat16;
  want.v12.timelineSemaphore = VK_TRUE;
  if (c->gpu_assisted) {  // the layer's own code in the shaders needs these
    want.all.features.fragmentStoresAndAtomics = have.all.features.fragmentStoresAndAtomics;
    want.all.features.vertexPipelineStoresAndAtomics = have.all.features.vertexPipelineStoresAndAtomics;
  }
  read_properties(c, want);
  c->family = compute_family(*c, c->physical, &c->timestamp_bits);
  const float priority = 1;
  VkDeviceQueueCreateInfo queue = {};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = c->family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &want.all;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  const VkResult r = c->in.vkCreateDevice(c->physical, &info, nullptr, &c->device);
  if (r != VK_SUCCESS) {
    c->device = VK_NULL_HANDLE;
    return vk_error(error, r, -1, "vkCreateDevice");
  }
  const int32_t code = load_device_functions(c->in, c->device, &c->vk, error);
  if (code == RLX_OK) c->vk.vkGetDeviceQueue(c->device, c->family, 0, &c->queue);
  return code;
}

// A context without device; destroyed by destroy, also when it fails.
int32_t create_bare(Context **out, rlx_error *error) {
  Context *c = static_cast<Context *>(memory_alloc(sizeof(Context)));
  if (c == nullptr) return set_error(error, RLX_NO_MEMORY, -1, "no host memory");
  std::memset(static_cast<void *>(c), 0, sizeof *c);
  pthread_mutex_init(&c->lock, nullptr);
  pthread_mutex_init(&c->queue_lock, nullptr);
  pthread_mutex_init(&c->message_lock, nullptr);
  *out = c;
  const int32_t code = loader_open(&c->loader, error);
  return code == RLX_OK ? create_instance(c, error) : code;
}

// Everything goes; code, or what validation found on the way.
int32_t destroy(Context *c, int32_t code, rlx_error *error) {
  if (c->device != VK_NULL_HANDLE && c->vk.vkDestroyDevice != nullptr) {
    c->vk.vkDeviceWaitIdle(c->device);
    pipelines_destroy(c);
    c->vk.vkDestroyDevice(c->device, nullptr);
  }
  if (code == RLX_OK) code = context_checked(c, code, error);
  if (c->messenger != VK_NULL_HANDLE) c->in.vkDestroyDebugUtilsMessengerEXT(c->instance, c->messenger, nullptr);
  if (c->instance != VK_NULL_HANDLE && c->in.vkDestroyInstance != nullptr) c->in.vkDestroyInstance(c->instance, nullptr);
  loader_close(&c->loader);
  c->blocks.release();
  c->pipelines.release();
  memory_free(c->modules);
  memory_free(c->capabilities);
  pthread_mutex_destroy(&c->lock);
  pthread_mutex_destroy(&c->queue_lock);
  pthread_mutex_destroy(&c->message_lock);
  memory_free(c);
  return code;
}

int32_t create(int32_t index, Context *c, rlx_error *error) {
  Array<VkPhysicalDevice> list;
  int32_t code = list_devices(*c, &list, error);
  if (code == RLX_OK && (index < 0 || uint64_t(index) >= list.n)) code = set_error(error, RLX_NO_DEVICE, -1, "open: device %d, there are %llu", index, (unsigned long long)list.n);
  if (code == RLX_OK) {
    c->physical = list[uint64_t(index)];
    c->index = index;
    code = create_device(c, error);
  }
  list.release();
  if (code == RLX_OK) code = context_capabilities(c, error);
  return code == RLX_OK ? context_checked(c, code, error) : code;
}

}  // namespace

int32_t context_count(int32_t *count, rlx_error *error) {
  Context *c = nullptr;
  int32_t code = create_bare(&c, error);
  Array<VkPhysicalDevice> list;
  if (code == RLX_OK) code = list_devices(*c, &list, error);
  *count = int32_t(list.n);
  list.release();
  return c == nullptr ? code : destroy(c, code, error);
}

int32_t context_acquire(int32_t index, Context **out, rlx_error *error) {
  pthread_mutex_lock(&global_lock);
  int32_t code = RLX_OK;
  Context *found = nullptr;
  for (Context *c : contexts)
    if (c->index == index && !c->lost.load(std::memory_order_relaxed)) found = c;
  if (found == nullptr) {
    code = create_bare(&found, error);
    if (code == RLX_OK) code = create(index, found, error);
    if (code == RLX_OK && !contexts.push(found)) code = set_error(error, RLX_NO_MEMORY, -1, "no host memory");
    if (code != RLX_OK && found != nullptr) destroy(found, code, error);
  }
  if (code == RLX_OK) {
    found->users++;
    *out = found;
  }
  pthread_mutex_unlock(&global_lock);
  return code;
}

int32_t context_release(Context *c, rlx_error *error) {
  int32_t code = RLX_OK;
  pthread_mutex_lock(&global_lock);
  if (--c->users == 0) {
    for (uint64_t i = 0; i < contexts.n; i++)
      if (contexts[i] == c) contexts.remove(i--);
    if (contexts.n == 0) contexts.release();
    code = destroy(c, RLX_OK, error);
  }
  pthread_mutex_unlock(&global_lock);
  return code;
}

int32_t context_checked(Context *c, int32_t code, rlx_error *error) {
  if (c->messages.load(std::memory_order_relaxed) == 0) return code;
  pthread_mutex_lock(&c->message_lock);
  const uint32_t n = c->messages.exchange(0, std::memory_order_relaxed);
  if (n != 0) code = set_error(error, RLX_DRIVER, -1, "validation: %u messages, the first: %s", n, c->message);
  pthread_mutex_unlock(&c->message_lock);
  return code;
}

int32_t context_failed(Context *c, rlx_error *error, VkResult r, int32_t command, const char *call) {
  if (r == VK_ERROR_DEVICE_LOST) c->lost.store(true, std::memory_order_relaxed);
  return vk_error(error, r, command, call);
}

int32_t context_alive(Context *c, rlx_error *error) {
  if (!c->lost.load(std::memory_order_relaxed)) return RLX_OK;
  return set_error(error, RLX_DEVICE_LOST, -1, "the device was lost: close the program and compile it again");
}

}  // namespace rlx
