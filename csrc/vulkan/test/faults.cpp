// A loader whose calls fail on command, for tests: the backend opens it in place of libvulkan.so.1 (RLX_VULKAN_LOADER), and it passes all
// calls on to that.
//
// RLX_VULKAN_FAULTS names a text file that is read again at each call which can fail. A line
//
//   vkAllocateMemory 3 -2
//
// makes the third call from now return VkResult -2 instead of being passed on, `3+` that call and all later ones. "Now" is when the file's
// text last changed; lines that begin with # are comments, which change it. A vkEnumeratePhysicalDevices that is to return 0 finds no
// device. After -4 from a call on a device, the device is lost: its work is finished first, and every later call that may say so says so.
//
// RLX_VULKAN_LIVE names a file that always holds lines of a name and a number: the objects that are alive now, by kind, and `injected`, the
// calls that failed on command so far.
#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vulkan/vulkan_core.h>

namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of everything below

// The real loader's function, which finds the driver by the handle that it is given. It stays open.
void *real(const char *name) {
  static void *const library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : dlsym(library, name);
}
#define REAL(name) reinterpret_cast<PFN_##name>(real(#name))

struct Rule {
  char name[48];
  int at;      // the call that fails, counted from 1
  bool after;  // and those behind it
  int result;
  int calls;  // so far
};
Rule rules[32];
int num_rules;
char text[4096];  // that the rules come from

enum Kind { Memory, Buffers, Modules, SetLayouts, PipelineLayouts, Pipelines, Pools, CommandPools, QueryPools, Semaphores, Devices, Instances, Injected, kKinds };
const char *const kind_names[kKinds] = {"memory", "buffers", "modules", "set_layouts", "pipeline_layouts", "pipelines", "pools", "command_pools", "query_pools", "semaphores", "devices", "instances", "injected"};
long counts[kKinds];

// The queues and command buffers whose device is known, and the devices that are lost.
struct Child {
  void *handle;
  VkDevice device;
  VkCommandPool pool;  // of a command buffer
};
Child children[4096];
int num_children;
VkDevice lost[64];
int num_lost;

// One line of fixed length for each kind: changes are written in place.
void publish(int kind) {
  static int file = -2;
  char line[48];
  if (file == -2) {
    const char *path = getenv("RLX_VULKAN_LIVE");
    file = path == nullptr ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    for (int k = 0; file >= 0 && k < kKinds; k++) publish(k);
  }
  if (file < 0) return;
  const int n = snprintf(line, sizeof line, "%-20s %10ld\n", kind_names[kind], counts[kind]);
  if (pwrite(file, line, size_t(n), off_t(kind) * n) != n) close(file), file = -1;
}

void count(Kind kind, long n) {
  pthread_mutex_lock(&lock);
  counts[kind] += n;
  publish(kind);
  pthread_mutex_unlock(&lock);
}

void parse() {
  num_rules = 0;
  for (char *save, *line = strtok_r(text, "\n", &save); line != nullptr; line = strtok_r(nullptr, "\n", &save)) {
    Rule r = {};
    char at[16];
    if (line[0] == '#' || num_rules == int(sizeof rules / sizeof rules[0]) || sscanf(line, "%47s %15s %d", r.name, at, &r.result) != 3) continue;
    r.at = atoi(at);
    r.after = strchr(at, '+') != nullptr;
    rules[num_rules++] = r;
  }
}

void read_rules() {
  static char seen[sizeof text];
  const char *path = getenv("RLX_VULKAN_FAULTS");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  text[n < 0 ? 0 : n] = 0;
  if (strcmp(text, seen) == 0) return;
  strcpy(seen, text);
  parse();
}

// Whether this call of name is to fail, and how.
bool injected(const char *name, VkResult *result) {
  bool found = false;
  pthread_mutex_lock(&lock);
  read_rules();
  for (int i = 0; i < num_rules; i++) {
    Rule &r = rules[i];
    if (strcmp(r.name, name) != 0) continue;
    r.calls++;
    if (r.calls != r.at && !(r.after && r.calls > r.at)) continue;
    found = true;
    *result = VkResult(r.result);
    counts[Injected]++;
    publish(Injected);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

void adopt(void *handle, VkDevice device, VkCommandPool pool) {
  pthread_mutex_lock(&lock);
  int i = 0;
  while (i < num_children && children[i].handle != handle) i++;
  if (i < int(sizeof children / sizeof children[0])) children[i] = {handle, device, pool};
  if (i == num_children && i < int(sizeof children / sizeof children[0])) num_children++;
  pthread_mutex_unlock(&lock);
}

VkDevice device_of(void *handle) {
  VkDevice d = VK_NULL_HANDLE;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < num_children; i++)
    if (children[i].handle == handle) d = children[i].device;
  pthread_mutex_unlock(&lock);
  return d;
}

bool is_lost(VkDevice device) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < num_lost; i++) found = found || lost[i] == device;
  pthread_mutex_unlock(&lock);
  return found;
}

void forget(VkCommandPool pool) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < num_children; i++)
    if (children[i].pool == pool) children[i--] = children[--num_children];
  pthread_mutex_unlock(&lock);
}

void forget(VkDevice device) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < num_lost; i++)
    if (lost[i] == device) lost[i--] = lost[--num_lost];
  for (int i = 0; i < num_children; i++)
    if (children[i].device == device) children[i--] = children[--num_children];
  pthread_mutex_unlock(&lock);
}

// Between a look at is_lost and the submission behind it no device gets lost.
pthread_mutex_t gate = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void lose(VkDevice device) {
  pthread_mutex_lock(&gate);
  REAL(vkDeviceWaitIdle)(device);  // what runs may not outlive what the caller is about to destroy
  pthread_mutex_lock(&lock);
  if (num_lost < int(sizeof lost / sizeof lost[0])) lost[num_lost++] = device;
  pthread_mutex_unlock(&lock);
  pthread_mutex_unlock(&gate);
}

// As injected; remembers a loss.
bool injected_on(VkDevice device, const char *name, VkResult *result) {
  if (!injected(name, result)) return false;
  if (*result == VK_ERROR_DEVICE_LOST && !is_lost(device)) lose(device);
  return true;
}

// As injected_on, for calls that may say that the device is lost.
bool failing_on(VkDevice device, const char *name, VkResult *result) {
  if (injected_on(device, name, result)) return true;
  *result = VK_ERROR_DEVICE_LOST;
  return is_lost(device);
}

// Functions that make one object of a device.
#define CREATE(name, Kind, Info, Object)                                                                       \
  VKAPI_ATTR VkResult VKAPI_CALL own_##name(VkDevice d, const Info *info, const VkAllocationCallbacks *a, Object *out) { \
    VkResult r;                                                                                                \
    if (injected_on(d, #name, &r)) return r;                                                                   \
    r = REAL(name)(d, info, a, out);                                                                           \
    if (r == VK_SUCCESS) count(Kind, 1);                                                                       \
    return r;                                                                                                  \
  }
#define DESTROY(name, Kind, Object)                                                                \
  VKAPI_ATTR void VKAPI_CALL own_##name(VkDevice d, Object o, const VkAllocationCallbacks *a) {    \
    REAL(name)(d, o, a);                                                                           \
    if (o != VK_NULL_HANDLE) count(Kind, -1);                                                      \
  }

CREATE(vkAllocateMemory, Memory, VkMemoryAllocateInfo, VkDeviceMemory)
CREATE(vkCreateBuffer, Buffers, VkBufferCreateInfo, VkBuffer)
CREATE(vkCreateShaderModule, Modules, VkShaderModuleCreateInfo, VkShaderModule)
CREATE(vkCreateDescriptorSetLayout, SetLayouts, VkDescriptorSetLayoutCreateInfo, VkDescriptorSetLayout)
CREATE(vkCreatePipelineLayout, PipelineLayouts, VkPipelineLayoutCreateInfo, VkPipelineLayout)
CREATE(vkCreateDescriptorPool, Pools, VkDescriptorPoolCreateInfo, VkDescriptorPool)
CREATE(vkCreateCommandPool, CommandPools, VkCommandPoolCreateInfo, VkCommandPool)
CREATE(vkCreateQueryPool, QueryPools, VkQueryPoolCreateInfo, VkQueryPool)
CREATE(vkCreateSemaphore, Semaphores, VkSemaphoreCreateInfo, VkSemaphore)
DESTROY(vkFreeMemory, Memory, VkDeviceMemory)
DESTROY(vkDestroyBuffer, Buffers, VkBuffer)
DESTROY(vkDestroyShaderModule, Modules, VkShaderModule)
DESTROY(vkDestroyDescriptorSetLayout, SetLayouts, VkDescriptorSetLayout)
DESTROY(vkDestroyPipelineLayout, PipelineLayouts, VkPipelineLayout)
DESTROY(vkDestroyPipeline, Pipelines, VkPipeline)
DESTROY(vkDestroyDescriptorPool, Pools, VkDescriptorPool)
DESTROY(vkDestroyQueryPool, QueryPools, VkQueryPool)
DESTROY(vkDestroySemaphore, Semaphores, VkSemaphore)

VKAPI_ATTR void VKAPI_CALL own_vkDestroyCommandPool(VkDevice d, VkCommandPool pool, const VkAllocationCallbacks *a) {
  if (pool == VK_NULL_HANDLE) return;
  forget(pool);
  REAL(vkDestroyCommandPool)(d, pool, a);
  count(CommandPools, -1);
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkCreateInstance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *a, VkInstance *out) {
  VkResult r;
  if (injected("vkCreateInstance", &r)) return r;
  r = REAL(vkCreateInstance)(info, a, out);
  if (r == VK_SUCCESS) count(Instances, 1);
  return r;
}

VKAPI_ATTR void VKAPI_CALL own_vkDestroyInstance(VkInstance i, const VkAllocationCallbacks *a) {
  REAL(vkDestroyInstance)(i, a);
  if (i != VK_NULL_HANDLE) count(Instances, -1);
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkEnumeratePhysicalDevices(VkInstance i, uint32_t *n, VkPhysicalDevice *out) {
  VkResult r;
  if (!injected("vkEnumeratePhysicalDevices", &r)) return REAL(vkEnumeratePhysicalDevices)(i, n, out);
  *n = 0;
  return r;
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkCreateDevice(VkPhysicalDevice p, const VkDeviceCreateInfo *info, const VkAllocationCallbacks *a, VkDevice *out) {
  VkResult r;
  if (injected("vkCreateDevice", &r)) return r;
  r = REAL(vkCreateDevice)(p, info, a, out);
  if (r == VK_SUCCESS) count(Devices, 1);
  return r;
}

VKAPI_ATTR void VKAPI_CALL own_vkDestroyDevice(VkDevice d, const VkAllocationCallbacks *a) {
  forget(d);
  REAL(vkDestroyDevice)(d, a);
  if (d != VK_NULL_HANDLE) count(Devices, -1);
}

VKAPI_ATTR void VKAPI_CALL own_vkGetDeviceQueue(VkDevice d, uint32_t family, uint32_t index, VkQueue *out) {
  REAL(vkGetDeviceQueue)(d, family, index, out);
  adopt(*out, d, VK_NULL_HANDLE);
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkMapMemory(VkDevice d, VkDeviceMemory m, VkDeviceSize offset, VkDeviceSize size, VkMemoryMapFlags flags, void **out) {
  VkResult r;
  return injected_on(d, "vkMapMemory", &r) ? r : REAL(vkMapMemory)(d, m, offset, size, flags, out);
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkCreateComputePipelines(VkDevice d, VkPipelineCache c, uint32_t n, const VkComputePipelineCreateInfo *info, const VkAllocationCallbacks *a, VkPipeline *out) {
  VkResult r;
  if (injected_on(d, "vkCreateComputePipelines", &r)) {
    for (uint32_t i = 0; i < n; i++) out[i] = VK_NULL_HANDLE;
    return r;
  }
  r = REAL(vkCreateComputePipelines)(d, c, n, info, a, out);
  for (uint32_t i = 0; i < n; i++)
    if (out[i] != VK_NULL_HANDLE) count(Pipelines, 1);
  return r;
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkAllocateDescriptorSets(VkDevice d, const VkDescriptorSetAllocateInfo *info, VkDescriptorSet *out) {
  VkResult r;
  return injected_on(d, "vkAllocateDescriptorSets", &r) ? r : REAL(vkAllocateDescriptorSets)(d, info, out);
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkAllocateCommandBuffers(VkDevice d, const VkCommandBufferAllocateInfo *info, VkCommandBuffer *out) {
  VkResult r;
  if (injected_on(d, "vkAllocateCommandBuffers", &r)) return r;
  r = REAL(vkAllocateCommandBuffers)(d, info, out);
  for (uint32_t i = 0; r == VK_SUCCESS && i < info->commandBufferCount; i++) adopt(out[i], d, info->commandPool);
  return r;
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkBeginCommandBuffer(VkCommandBuffer b, const VkCommandBufferBeginInfo *info) {
  VkResult r;
  return injected_on(device_of(b), "vkBeginCommandBuffer", &r) ? r : REAL(vkBeginCommandBuffer)(b, info);
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkEndCommandBuffer(VkCommandBuffer b) {
  VkResult r;
  return injected_on(device_of(b), "vkEndCommandBuffer", &r) ? r : REAL(vkEndCommandBuffer)(b);
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkQueueSubmit(VkQueue q, uint32_t n, const VkSubmitInfo *info, VkFence fence) {
  VkResult r;
  pthread_mutex_lock(&gate);
  if (!failing_on(device_of(q), "vkQueueSubmit", &r)) r = REAL(vkQueueSubmit)(q, n, info, fence);
  pthread_mutex_unlock(&gate);
  return r;
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkQueueSubmit2(VkQueue q, uint32_t n, const VkSubmitInfo2 *info, VkFence fence) {
  VkResult r;
  return failing_on(device_of(q), "vkQueueSubmit2", &r) ? r : REAL(vkQueueSubmit2)(q, n, info, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkWaitSemaphores(VkDevice d, const VkSemaphoreWaitInfo *info, uint64_t timeout) {
  VkResult r;
  return failing_on(d, "vkWaitSemaphores", &r) ? r : REAL(vkWaitSemaphores)(d, info, timeout);
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkGetQueryPoolResults(VkDevice d, VkQueryPool pool, uint32_t first, uint32_t n, size_t bytes, void *out, VkDeviceSize stride, VkQueryResultFlags flags) {
  VkResult r;
  return failing_on(d, "vkGetQueryPoolResults", &r) ? r : REAL(vkGetQueryPoolResults)(d, pool, first, n, bytes, out, stride, flags);
}

VKAPI_ATTR VkResult VKAPI_CALL own_vkDeviceWaitIdle(VkDevice d) {
  VkResult r;
  return failing_on(d, "vkDeviceWaitIdle", &r) ? r : REAL(vkDeviceWaitIdle)(d);
}

PFN_vkVoidFunction own(const char *name);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL own_vkGetDeviceProcAddr(VkDevice d, const char *name) {
  const PFN_vkVoidFunction f = REAL(vkGetDeviceProcAddr)(d, name), mine = own(name);
  return f != nullptr && mine != nullptr ? mine : f;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL own_vkGetInstanceProcAddr(VkInstance i, const char *name) {
  const auto get = REAL(vkGetInstanceProcAddr);
  const PFN_vkVoidFunction f = get == nullptr ? nullptr : get(i, name), mine = own(name);
  return f != nullptr && mine != nullptr ? mine : f;
}

// The function that stands in for the one called name, null where calls are passed on as they are.
PFN_vkVoidFunction own(const char *name) {
#define OWN(f) if (strcmp(name, #f) == 0) return reinterpret_cast<PFN_vkVoidFunction>(own_##f);
  OWN(vkGetInstanceProcAddr) OWN(vkGetDeviceProcAddr) OWN(vkCreateInstance) OWN(vkDestroyInstance) OWN(vkEnumeratePhysicalDevices)
  OWN(vkCreateDevice) OWN(vkDestroyDevice) OWN(vkGetDeviceQueue) OWN(vkDeviceWaitIdle) OWN(vkAllocateMemory) OWN(vkFreeMemory) OWN(vkMapMemory)
  OWN(vkCreateBuffer) OWN(vkDestroyBuffer) OWN(vkCreateShaderModule) OWN(vkDestroyShaderModule) OWN(vkCreateDescriptorSetLayout)
  OWN(vkDestroyDescriptorSetLayout) OWN(vkCreatePipelineLayout) OWN(vkDestroyPipelineLayout) OWN(vkCreateComputePipelines)
  OWN(vkDestroyPipeline) OWN(vkCreateDescriptorPool) OWN(vkDestroyDescriptorPool) OWN(vkAllocateDescriptorSets) OWN(vkCreateCommandPool)
  OWN(vkDestroyCommandPool) OWN(vkAllocateCommandBuffers) OWN(vkBeginCommandBuffer) OWN(vkEndCommandBuffer) OWN(vkCreateQueryPool)
  OWN(vkDestroyQueryPool) OWN(vkGetQueryPoolResults) OWN(vkCreateSemaphore) OWN(vkDestroySemaphore) OWN(vkWaitSemaphores) OWN(vkQueueSubmit)
  OWN(vkQueueSubmit2)
#undef OWN
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance i, const char *name) {
  static void *const resident = [] {  // the counts outlive a dlclose
    Dl_info me;
    const int found = dladdr(reinterpret_cast<void *>(count), &me);
    return found == 0 ? nullptr : dlopen(me.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  }();
  (void)resident;
  return own_vkGetInstanceProcAddr(i, name);
}
