// record.cpp: a stretch becomes a command buffer: copies in, dispatches with a barrier wherever one needs what another wrote, copies out.
#include "kernels/layout.h"
#include "program.h"

namespace rlx {
namespace {

// Bytes of the arena's piece that dispatches since the last barrier read or wrote.
struct Touched {
  uint64_t lo, hi;
  bool written;
};

struct Recorder {
  rlx_arena *arena;
  VkCommandBuffer to;
  Context *context;
  Array<Touched> touched;

  void barrier(VkPipelineStageFlags from, VkAccessFlags before, VkPipelineStageFlags stage, VkAccessFlags after) const {
    commands_barrier(context, to, from, before, stage, after);
  }
};

// Where a binding lies in the arena's piece; false for constants and nothing.
bool place(const rlx_program *p, const Binding &b, Touched *t) {
  uint64_t at = b.offset;
  if (b.slot == RLX_INPUT) at += p->input(b.index).offset;
  else if (b.slot == RLX_OUTPUT) at += p->output(b.index).offset;
  else if (b.slot != RLX_ARENA) return false;
  *t = {at, at + b.range, b.written};
  return true;
}

bool conflicts(const Recorder &r, const Dispatched &d) {
  const rlx_program *p = r.arena->program;
  for (uint32_t k = 0; k < d.bindings; k++) {
    Touched t;
    if (!place(p, p->bindings[d.first_binding + k], &t)) continue;
    for (const Touched &o : r.touched)
      if (t.lo < o.hi && o.lo < t.hi && (t.written || o.written)) return true;
  }
  return false;
}

int32_t dispatch(Recorder &r, uint64_t i, rlx_error *error) {
  const rlx_program *p = r.arena->program;
  const Dispatched &d = p->dispatches[i];
  if (conflicts(r, d)) {
    r.barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
    r.touched.n = 0;
  }
  for (uint32_t k = 0; k < d.bindings; k++) {
    Touched t;
    if (place(p, p->bindings[d.first_binding + k], &t) && !r.touched.push(t)) return set_error(error, RLX_NO_MEMORY, -1, "no host memory");
  }
  VkDescriptorSetLayout unused;
  VkPipelineLayout layout;
  const int32_t code = layout_get(r.context, BIND_TENSORS + d.bindings, &unused, &layout, error);
  if (code != RLX_OK) return code;
  r.context->vk.vkCmdBindPipeline(r.to, VK_PIPELINE_BIND_POINT_COMPUTE, d.pipeline);
  r.context->vk.vkCmdBindDescriptorSets(r.to, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &r.arena->sets[i], 0, nullptr);
  r.context->vk.vkCmdDispatch(r.to, d.groups[0], d.groups[1], 1);
  return RLX_OK;
}

// Copies the bindings of this stretch between staging and the arena; true if there were any.
bool copies(const Recorder &r, uint32_t stretch, bool in) {
  const rlx_program *p = r.arena->program;
  bool any = false;
  for (uint64_t i = 0; i < p->bound.n; i++) {
    const Bound &b = p->bound[i];
    const uint64_t inputs = p->slots[RLX_INPUT];
    const uint64_t bytes = uint64_t(i < inputs ? p->slot_bytes[RLX_INPUT][i] : p->slot_bytes[RLX_OUTPUT][i - inputs]);
    if ((in ? b.upload : b.download) != stretch || bytes == 0) continue;
    const uint64_t device = r.arena->memory.offset + b.offset, staging = r.arena->staging.offset + b.offset - p->words_bytes;
    const VkBufferCopy region = {in ? staging : device, in ? device : staging, bytes};
    r.context->vk.vkCmdCopyBuffer(r.to, in ? r.arena->staging.buffer : r.arena->memory.buffer, in ? r.arena->memory.buffer : r.arena->staging.buffer, 1, &region);
    any = true;
  }
  return any;
}

int32_t body(Recorder &r, uint32_t stretch, bool timestamps, rlx_error *error) {
  const rlx_program *p = r.arena->program;
  const Stretch &s = p->stretches[stretch];
  Context *c = r.context;
  if (timestamps) c->vk.vkCmdResetQueryPool(r.to, r.arena->queries, 2 * s.first, 2 * (s.end - s.first));
  // The semaphore wait of the host orders this submission behind earlier ones on this arena; the barrier makes their writes visible.
  r.barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  if (copies(r, stretch, true))
    r.barrier(VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
  uint64_t d = s.first_dispatch;
  for (uint32_t i = s.first; i < s.end; i++) {
    if (timestamps) c->vk.vkCmdWriteTimestamp(r.to, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, r.arena->queries, 2 * i);
    for (; d < s.end_dispatch && p->dispatches[d].command == i; d++) {
      const int32_t code = dispatch(r, d, error);
      if (code != RLX_OK) return code;
    }
    if (timestamps) c->vk.vkCmdWriteTimestamp(r.to, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, r.arena->queries, 2 * i + 1);
  }
  r.barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_HOST_READ_BIT);
  if (copies(r, stretch, false)) r.barrier(VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  return RLX_OK;
}

}  // namespace

int32_t record(rlx_arena *a, uint32_t stretch, VkCommandBuffer to, bool timestamps, rlx_error *error) {
  Recorder r = {a, to, a->program->device->context, {}};
  int32_t code = commands_begin(r.context, to, 0, error);
  if (code != RLX_OK) return code;
  code = body(r, stretch, timestamps, error);
  r.touched.release();
  const int32_t ended = commands_end(r.context, to, code == RLX_OK ? error : nullptr);
  return code == RLX_OK ? ended : code;
}

}  // namespace rlx
