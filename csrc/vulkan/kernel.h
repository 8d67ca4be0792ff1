// kernel.h: the rows of kernels.h with their SPIR-V modules, and the pipelines made of them.
#pragma once
#include "modules_gen.h"  // MODULE_<shader>_<variant> and NUM_MODULES, written by CMake from kernels.h
#include "vk.h"

namespace rlx {

constexpr uint32_t kMaxConstants = 16;  // specialisation constants that one module may have

enum Dispatch { DISPATCH_elements, DISPATCH_each, DISPATCH_results, DISPATCH_rows, DISPATCH_in_rows, DISPATCH_tiles };

struct KernelRow {
  uint32_t op, dtypes;
  bool strided;
  Dispatch dispatch;
  uint32_t module;
};

extern const KernelRow kernel_rows[];
extern const uint32_t num_kernel_rows;

struct Module {
  const char *name;  // shader and variant
  const uint32_t *code;
  uint64_t words;
};

extern const Module modules[NUM_MODULES];  // written by CMake
// The feature bits of a device.
uint64_t features_of(const VkPhysicalDeviceFeatures2 &, const VkPhysicalDeviceVulkan11Features &, const VkPhysicalDeviceVulkan12Features &, const VkPhysicalDeviceSubgroupProperties &);

struct Context;

// What every kernel of the library covers; what the device's features leave of it.
const rlx_capability *library_capabilities(uint32_t *count);
int32_t context_capabilities(Context *, rlx_error *);

// The row for an op and dtype that runs on this device, or null.
const KernelRow *kernel_find(const Context &, uint32_t op, uint32_t dtype);

struct Specialisation {
  uint32_t value[64];  // by constant number; those that the module does not declare are ignored
};

int32_t pipeline_get(Context *, uint32_t module, const Specialisation &, uint32_t bindings, uint32_t command, VkPipeline *, rlx_error *);
int32_t layout_get(Context *, uint32_t bindings, VkDescriptorSetLayout *, VkPipelineLayout *, rlx_error *);
void pipelines_destroy(Context *);

}  // namespace rlx
