#include "kernel.h"

#include "context.h"
#include "kernels/layout.h"

namespace rlx {
namespace {

// SPIR-V: a module is a header of five words and instructions, word count << 16 | opcode.
enum { kCapability = 17, kFunction = 54, kDecorate = 71, kSpecId = 1 };

// The capabilities that kernels may use, each with its bit of Context::features.
struct Known {
  uint32_t capability;
  int bit;
};
const Known known[] = {{1, 0} /* Shader */, {10, 1} /* Float64 */, {11, 2} /* Int64 */, {22, 3} /* Int16 */, {39, 4} /* Int8 */,
                       {9, 5} /* Float16 */, {4433, 6} /* StorageBuffer16BitAccess */, {4448, 7} /* StorageBuffer8BitAccess */,
                       {61, 8} /* GroupNonUniform */, {62, 9} /* ..Vote */, {63, 10} /* ..Arithmetic */, {64, 11} /* ..Ballot */, {65, 12} /* ..Shuffle */};
constexpr uint64_t kUnknown = uint64_t(1) << 63;

// Visits the instructions ahead of the first function.
template <class F> void instructions(const Module &m, F visit) {
  for (uint64_t at = 5; at < m.words;) {
    const uint32_t words = m.code[at] >> 16;
    if (words == 0 || words > m.words - at || (m.code[at] & 0xffff) == kFunction) return;
    visit(m.code + at, words);
    at += words;
  }
}

// What a module's code says of itself.
struct Facts {
  uint64_t needs;  // features, as bits of Context::features; kUnknown: one that the backend does not know
  uint32_t num_constants, constants[kMaxConstants];  // numbers of its specialisation constants, ascending
};

Facts facts[NUM_MODULES];

void add_constant(Facts *f, uint32_t id) {
  uint32_t i = 0;
  while (i < f->num_constants && f->constants[i] < id) i++;
  if (i < f->num_constants && f->constants[i] == id) return;
  if (f->num_constants == kMaxConstants) {
    f->needs |= kUnknown;  // more than a pipeline is told apart by
    return;
  }
  for (uint32_t k = f->num_constants++; k > i; k--) f->constants[k] = f->constants[k - 1];
  f->constants[i] = id;
}

void read_facts(const Module &m, Facts *f) {
  instructions(m, [f](const uint32_t *w, uint32_t words) {
    const uint32_t op = w[0] & 0xffff;
    if (op == kDecorate && words >= 4 && w[2] == kSpecId) add_constant(f, w[3]);
    if (op != kCapability || words != 2) return;
    uint64_t bit = kUnknown;
    for (const Known &k : known)
      if (k.capability == w[1]) bit = uint64_t(1) << k.bit;
    f->needs |= bit;
  });
}

// Widens rows into capabilities: for each op the dtypes of strided rows and those of dense ones.
uint32_t collect(uint64_t features, rlx_capability *out) {
  uint32_t n = 0;
  for (uint32_t op = 1; op <= RLX_NUM_OPS; op++) {
    uint32_t strided = 0, dense = 0;
    for (uint32_t i = 0; i < num_kernel_rows; i++) {
      const KernelRow &r = kernel_rows[i];
      if (r.op == op && (facts[r.module].needs & ~features) == 0) (r.strided ? strided : dense) |= r.dtypes;
    }
    strided &= ~dense;
    if (strided != 0) out[n++] = {op, strided, RLX_CAP_STRIDED};
    if (dense != 0) out[n++] = {op, dense, 0};
  }
  return n;
}

rlx_capability best[2 * RLX_NUM_OPS];
uint32_t num_best;
pthread_once_t once = PTHREAD_ONCE_INIT;
void read_modules() {
  for (uint32_t i = 0; i < NUM_MODULES; i++) read_facts(modules[i], facts + i);
  num_best = collect(~kUnknown, best);
}

int32_t module_get(Context *c, uint32_t module, int32_t command, VkShaderModule *out, rlx_error *error) {
  if (c->modules == nullptr) {
    c->modules = static_cast<VkShaderModule *>(memory_alloc(sizeof(VkShaderModule) * NUM_MODULES));
    if (c->modules == nullptr) return set_error(error, RLX_NO_MEMORY, command, "no host memory");
    std::memset(static_cast<void *>(c->modules), 0, sizeof(VkShaderModule) * NUM_MODULES);
  }
  if (c->modules[module] == VK_NULL_HANDLE) {
    VkShaderModuleCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    info.codeSize = 4 * modules[module].words;
    info.pCode = modules[module].code;
    const VkResult r = c->vk.vkCreateShaderModule(c->device, &info, nullptr, &c->modules[module]);
    if (r != VK_SUCCESS) {
      c->modules[module] = VK_NULL_HANDLE;
      return context_failed(c, error, r, command, "vkCreateShaderModule");
    }
  }
  *out = c->modules[module];
  return RLX_OK;
}

// The lock is held.
int32_t layout_locked(Context *c, uint32_t bindings, rlx_error *error) {
  Layout *l = &c->layouts[bindings];
  if (l->pipeline != VK_NULL_HANDLE) return RLX_OK;
  VkDescriptorSetLayoutBinding list[kMaxBindings] = {};
  for (uint32_t i = 0; i < bindings; i++) {
    list[i].binding = i;
    list[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    list[i].descriptorCount = 1;
    list[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo set = {};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = bindings;
  set.pBindings = list;
  VkResult r = l->set != VK_NULL_HANDLE ? VK_SUCCESS : c->vk.vkCreateDescriptorSetLayout(c->device, &set, nullptr, &l->set);
  if (r != VK_SUCCESS) {
    l->set = VK_NULL_HANDLE;
    return context_failed(c, error, r, -1, "vkCreateDescriptorSetLayout");
  }
  VkPipelineLayoutCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &l->set;
  r = c->vk.vkCreatePipelineLayout(c->device, &info, nullptr, &l->pipeline);
  if (r == VK_SUCCESS) return RLX_OK;
  l->pipeline = VK_NULL_HANDLE;
  return context_failed(c, error, r, -1, "vkCreatePipelineLayout");
}

int32_t pipeline_create(Context *c, uint32_t module, const uint32_t *ids, const uint32_t *values, uint32_t n, uint32_t bindings, int32_t command, VkPipeline *out, rlx_error *error) {
  int32_t code = layout_locked(c, bindings, error);
  VkShaderModule shader = VK_NULL_HANDLE;
  if (code == RLX_OK) code = module_get(c, module, command, &shader, error);
  if (code != RLX_OK) return code;
  VkSpecializationMapEntry entries[kMaxConstants];
  for (uint32_t i = 0; i < n; i++) entries[i] = {ids[i], 4 * i, 4};
  const VkSpecializationInfo constants = {n, entries, 4 * n, values};
  VkComputePipelineCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  info.layout = c->layouts[bindings].pipeline;
  const VkResult r = c->vk.vkCreateComputePipelines(c->device, VK_NULL_HANDLE, 1, &info, nullptr, out);
  if (r == VK_SUCCESS) return RLX_OK;
  if (r == VK_ERROR_DEVICE_LOST) return context_failed(c, error, r, command, "vkCreateComputePipelines");
  return set_error(error, result_status(r), command, "vkCreateComputePipelines of %s: %s (%d)", modules[module].name, result_name(r), int(r));
}

}  // namespace

#define RLX_FLAG_strided true
#define RLX_FLAG_dense false
#define KERNEL(op, dtypes, flags, dispatch, shader, variant) {RLX_OP_##op, RLX_DTYPES_##dtypes, RLX_FLAG_##flags, DISPATCH_##dispatch, MODULE_##shader##_##variant},

const KernelRow kernel_rows[] = {
#include "kernels.h"
};
const uint32_t num_kernel_rows = sizeof kernel_rows / sizeof kernel_rows[0];
#undef KERNEL

uint64_t features_of(const VkPhysicalDeviceFeatures2 &f, const VkPhysicalDeviceVulkan11Features &v11, const VkPhysicalDeviceVulkan12Features &v12, const VkPhysicalDeviceSubgroupProperties &s) {
  const bool group = (s.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  const VkSubgroupFeatureFlags ops = group ? s.supportedOperations : 0;
  const bool has[] = {true, f.features.shaderFloat64 != 0, f.features.shaderInt64 != 0, f.features.shaderInt16 != 0, v12.shaderInt8 != 0, v12.shaderFloat16 != 0,
                      v11.storageBuffer16BitAccess != 0, v12.storageBuffer8BitAccess != 0, (ops & VK_SUBGROUP_FEATURE_BASIC_BIT) != 0,
                      (ops & VK_SUBGROUP_FEATURE_VOTE_BIT) != 0, (ops & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0, (ops & VK_SUBGROUP_FEATURE_BALLOT_BIT) != 0,
                      (ops & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0};
  uint64_t bits = 0;
  for (const Known &k : known)
    if (has[k.bit]) bits |= uint64_t(1) << k.bit;
  return bits;
}

const rlx_capability *library_capabilities(uint32_t *count) {
  pthread_once(&once, read_modules);
  *count = num_best;
  return best;
}

int32_t context_capabilities(Context *c, rlx_error *error) {
  c->capabilities = static_cast<rlx_capability *>(memory_alloc(sizeof(rlx_capability) * 2 * RLX_NUM_OPS));
  if (c->capabilities == nullptr) return set_error(error, RLX_NO_MEMORY, -1, "no host memory");
  c->num_capabilities = collect(c->features, c->capabilities);
  return RLX_OK;
}

const KernelRow *kernel_find(const Context &c, uint32_t op, uint32_t dtype) {
  for (uint32_t i = 0; i < num_kernel_rows; i++) {
    const KernelRow &r = kernel_rows[i];
    if (r.op == op && (r.dtypes >> dtype & 1) != 0 && (facts[r.module].needs & ~c.features) == 0) return &r;
  }
  return nullptr;
}

int32_t pipeline_get(Context *c, uint32_t module, const Specialisation &s, uint32_t bindings, uint32_t command, VkPipeline *out, rlx_error *error) {
  Pipeline key = {};
  const uint32_t n = facts[module].num_constants, *ids = facts[module].constants;
  uint64_t hash = module * UINT64_C(0x9e3779b97f4a7c15) + bindings;
  for (uint32_t i = 0; i < n; i++) {
    key.constants[i] = ids[i] < sizeof s.value / sizeof s.value[0] ? s.value[ids[i]] : 0;
    hash = (hash ^ key.constants[i]) * UINT64_C(0x100000001b3);
  }
  key.module = module, key.hash = hash;
  pthread_mutex_lock(&c->lock);
  int32_t code = RLX_OK;
  const Pipeline *found = nullptr;
  for (const Pipeline &p : c->pipelines)
    if (p.hash == hash && p.module == module && std::memcmp(p.constants, key.constants, sizeof key.constants) == 0) found = &p;
  if (found != nullptr) *out = found->pipeline;
  else if ((code = pipeline_create(c, module, ids, key.constants, n, bindings, int32_t(command), &key.pipeline, error)) == RLX_OK) {
    *out = key.pipeline;
    if (!c->pipelines.push(key)) {
      c->vk.vkDestroyPipeline(c->device, key.pipeline, nullptr);
      code = set_error(error, RLX_NO_MEMORY, int32_t(command), "no host memory");
    }
  }
  pthread_mutex_unlock(&c->lock);
  return code;
}

int32_t layout_get(Context *c, uint32_t bindings, VkDescriptorSetLayout *set, VkPipelineLayout *layout, rlx_error *error) {
  pthread_mutex_lock(&c->lock);
  const int32_t code = layout_locked(c, bindings, error);
  *set = c->layouts[bindings].set, *layout = c->layouts[bindings].pipeline;
  pthread_mutex_unlock(&c->lock);
  return code;
}

void pipelines_destroy(Context *c) {
  for (const Pipeline &p : c->pipelines) c->vk.vkDestroyPipeline(c->device, p.pipeline, nullptr);
  c->pipelines.n = 0;
  for (uint32_t i = 0; c->modules != nullptr && i < NUM_MODULES; i++)
    if (c->modules[i] != VK_NULL_HANDLE) c->vk.vkDestroyShaderModule(c->device, c->modules[i], nullptr);
  for (const Layout &l : c->layouts) {
    if (l.pipeline != VK_NULL_HANDLE) c->vk.vkDestroyPipelineLayout(c->device, l.pipeline, nullptr);
    if (l.set != VK_NULL_HANDLE) c->vk.vkDestroyDescriptorSetLayout(c->device, l.set, nullptr);
  }
}

}  // namespace rlx
