#include <dlfcn.h>
#include <stdlib.h>

#include <cstring>

#include "vk.h"

namespace rlx {

int32_t loader_open(Loader *l, rlx_error *error) {
  std::memset(l, 0, sizeof *l);
  const char *named = getenv("RLX_VULKAN_LOADER");
#if defined(__APPLE__)
  const char *names[] = {"libvulkan.1.dylib", "libMoltenVK.dylib"};
#else
  const char *names[] = {"libvulkan.so.1"};
#endif
  if (named != nullptr && *named != 0) l->library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
  else
    for (const char *name : names)
      if (l->library == nullptr) l->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (l->library == nullptr) {
    const char *why = dlerror();
    return set_error(error, RLX_NO_DEVICE, -1, "no Vulkan loader: %s", why == nullptr ? "not found" : why);
  }
  l->vkGetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(l->library, "vkGetInstanceProcAddr"));
  const char *missing = l->vkGetInstanceProcAddr == nullptr ? "vkGetInstanceProcAddr" : nullptr;
#define RLX_VK_GET(name) \
  if (missing == nullptr && (l->name = reinterpret_cast<PFN_##name>(l->vkGetInstanceProcAddr(nullptr, #name))) == nullptr) missing = #name;
  RLX_VK_GLOBAL(RLX_VK_GET)
#undef RLX_VK_GET
  if (missing == nullptr) return RLX_OK;
  loader_close(l);
  return set_error(error, RLX_NO_DEVICE, -1, "the Vulkan loader has no %s: it is older than Vulkan 1.1", missing);
}

void loader_close(Loader *l) {
  if (l->library != nullptr) dlclose(l->library);
  l->library = nullptr;
}

int32_t load_instance_functions(const Loader &l, VkInstance instance, bool validation, InstanceFunctions *f, rlx_error *error) {
  const char *missing = nullptr;
#define RLX_VK_GET(name) \
  if ((f->name = reinterpret_cast<PFN_##name>(l.vkGetInstanceProcAddr(instance, #name))) == nullptr) missing = #name;
  RLX_VK_INSTANCE(RLX_VK_GET)
  if (validation) {
    RLX_VK_GET(vkCreateDebugUtilsMessengerEXT)
    RLX_VK_GET(vkDestroyDebugUtilsMessengerEXT)
  }
#undef RLX_VK_GET
  return missing == nullptr ? int32_t(RLX_OK) : set_error(error, RLX_NO_DEVICE, -1, "the Vulkan instance has no %s", missing);
}

int32_t load_device_functions(const InstanceFunctions &i, VkDevice device, DeviceFunctions *f, rlx_error *error) {
  const char *missing = nullptr;
#define RLX_VK_GET(name) \
  if ((f->name = reinterpret_cast<PFN_##name>(i.vkGetDeviceProcAddr(device, #name))) == nullptr) missing = #name;
  RLX_VK_DEVICE(RLX_VK_GET)
#undef RLX_VK_GET
  return missing == nullptr ? int32_t(RLX_OK) : set_error(error, RLX_NO_DEVICE, -1, "the Vulkan device has no %s", missing);
}

const char *result_name(VkResult r) {
  switch (r) {
    case VK_SUCCESS: return "VK_SUCCESS";
    case VK_TIMEOUT: return "VK_TIMEOUT";
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_OUT_OF_POOL_MEMORY: return "VK_ERROR_OUT_OF_POOL_MEMORY";
    case VK_ERROR_FRAGMENTED_POOL: return "VK_ERROR_FRAGMENTED_POOL";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_INVALID_SHADER_NV: return "VK_ERROR_INVALID_SHADER_NV";
    default: return "another VkResult";
  }
}

int32_t result_status(VkResult r) {
  switch (r) {
    case VK_ERROR_OUT_OF_HOST_MEMORY: case VK_ERROR_OUT_OF_DEVICE_MEMORY: case VK_ERROR_OUT_OF_POOL_MEMORY: case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_MEMORY_MAP_FAILED: case VK_ERROR_TOO_MANY_OBJECTS:
      return RLX_NO_MEMORY;
    case VK_ERROR_DEVICE_LOST: return RLX_DEVICE_LOST;
    default: return RLX_DRIVER;
  }
}

int32_t vk_error(rlx_error *error, VkResult r, int32_t command, const char *call) {
  return set_error(error, result_status(r), command, "%s: %s (%d)", call, result_name(r), int(r));
}

}  // namespace rlx
