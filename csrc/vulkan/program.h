// program.h: what stands behind the opaque types of rlx.h.
//
// A program is its dispatches, grouped in stretches between staged commands. An arena holds, for one run at a time, a piece of device memory
// (the words' arena, then a copy of every input and output), a staging piece for the copies of inputs and outputs, the flags, descriptor
// sets, and one recorded command buffer for each stretch: a run only submits them.
#pragma once
#include <atomic>

#include "context.h"

struct rlx_device {
  rlx::Context *context;
  std::atomic<int32_t> users;  // weights and programs that are open
};

// Constants, those of the parent first.
struct rlx_weights {
  rlx_device *device;
  rlx_weights *parent;
  uint32_t first, count;  // its own constants are [first, count)
  rlx::Array<rlx::Piece> pieces;
  rlx::Array<uint64_t> bytes;
  std::atomic<int32_t> users;  // programs and children
};

namespace rlx {

constexpr uint32_t kNoBinding = UINT32_MAX;

// One buffer of a dispatch: bytes [offset, offset + range) of a tensor's slot.
struct Binding {
  uint32_t slot, index;  // slot kNoBinding: nothing, any buffer will do
  uint64_t offset, range;
  bool written;
};

struct Dispatched {
  VkPipeline pipeline;
  uint32_t command, groups[2];
  uint32_t bindings, first_binding;  // tensors only; their place in the program's list
  uint32_t params, param_words;      // in the program's parameters
};

// Commands between staged ones: [first, end), their dispatches, and the bindings that are copied around them.
struct Stretch {
  uint32_t first, end, first_dispatch, end_dispatch;
};

// Where an input or output lies in an arena, and in which stretch it is copied.
struct Bound {
  uint64_t offset;    // in the arena's device piece; staging has the same order without the words' arena
  uint32_t upload;    // the stretch that copies it to the device first, kNoBinding if none reads it
  uint32_t download;  // outputs: the stretch that writes it
};

}  // namespace rlx

struct rlx_program : rlx::DecodedProgram {
  rlx_device *device;
  rlx_weights *weights;  // null without constants
  rlx::Array<rlx::Dispatched> dispatches;
  rlx::Array<rlx::Binding> bindings;
  rlx::Array<uint32_t> params;
  rlx::Array<rlx::Stretch> stretches;
  rlx::Array<rlx::Bound> bound;  // inputs, then outputs
  rlx::Piece params_piece;
  uint64_t device_bytes;  // of an arena's device piece; what is behind words_bytes is staged
  uint64_t words_bytes;   // the words' arena, aligned
  std::atomic<int32_t> arenas;

  const rlx::Bound &input(uint32_t i) const { return bound[i]; }
  const rlx::Bound &output(uint32_t i) const { return bound[uint64_t(slots[RLX_INPUT]) + i]; }
};

struct rlx_arena {
  rlx_program *program;
  rlx::Piece memory, staging, flags;
  VkDescriptorPool sets_pool;
  rlx::Array<VkDescriptorSet> sets;
  VkCommandPool commands_pool;
  rlx::Array<VkCommandBuffer> commands;  // one for each stretch; behind them those with timestamps, null until asked for
  VkQueryPool queries;
  VkSemaphore done;  // timeline
  uint64_t ticket;   // the value that the last submission signals
  bool pending;      // a wait failed: work may still run
};

namespace rlx {

int32_t weights_open(rlx_device *, rlx_weights *parent, const rlx_constant *, uint32_t count, rlx_weights **, rlx_error *);
void weights_close(rlx_weights *);

int32_t load(rlx_device *, rlx_weights *, const uint32_t *words, uint64_t count, rlx_program **, rlx_program_info *, rlx_error *);
void unload(rlx_program *);
// Appends the dispatches of a native command (command.cpp).
int32_t dispatch_command(rlx_program *, const DecodedCommand &, rlx_error *);

int32_t arena_open(rlx_program *, rlx_arena **, rlx_error *);
void arena_close(rlx_arena *);
int32_t arena_copy(const char *name, rlx_arena *, const rlx_region *, uint32_t count, bool write, rlx_error *);
// Records the stretch with timestamps around its commands (record.cpp).
int32_t record(rlx_arena *, uint32_t stretch, VkCommandBuffer, bool timestamps, rlx_error *);

// Copies to or from pieces through staging, with a command pool of its own (transfer.cpp).
struct Copy {
  Piece piece;
  uint64_t offset;  // in the piece
  void *host;
  uint64_t bytes;
};
int32_t copy_through_staging(Context *, const Copy *, uint64_t count, bool write, rlx_error *);

// Waits for what a failed wait has left under way on the arena.
int32_t settle(rlx_arena *, rlx_error *);

int32_t run(rlx_program *, const rlx_run_args *);

}  // namespace rlx
