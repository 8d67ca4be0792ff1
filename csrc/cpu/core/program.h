// What stands behind the opaque types of rlx.h.
#pragma once
#include "kernel.h"
#include "pool.h"

namespace rlx {

constexpr int kSlots = 5;            // as rlx_slot
constexpr uint32_t kStackPointers = 16;  // commands with more operands keep their pointers in the run's arena

// A packed form of a constant.
struct Packed {
  Packed *next;
  uint32_t index, dtype, rank;
  int64_t offset, dims[RLX_MAX_RANK], strides[RLX_MAX_RANK];
  uint64_t layout;
  int64_t bytes;
  void *data;
  bool fresh;  // not filled yet
};

inline int64_t align64(int64_t n) { return (n + 63) & ~int64_t(63); }

// Fills e (which may be null) and returns code.
int32_t set_error(rlx_error *e, int32_t code, int32_t command, const char *format, ...) __attribute__((format(printf, 4, 5)));

struct Decoder;
int32_t decode_words(Decoder &d);

}  // namespace rlx

struct rlx_device {
  int32_t threads;
  rlx::Pool *pool;
  std::atomic<int32_t> users;  // weights and programs that are open
};

// Constants, those of the parent first.
struct rlx_weights {
  rlx_device *device;
  rlx_weights *parent, *root;
  uint32_t first, count;       // its own constants are [first, count)
  void **data;
  uint64_t *bytes;
  std::atomic<int32_t> users;  // programs and children
  pthread_mutex_t lock;        // the root's guards the packed forms of the whole tree, and whoever fills one
  rlx::Packed *packed;         // of its own constants
};

struct rlx_program {
  rlx_device *device;
  rlx_weights *weights;  // null without constants
  uint32_t num_commands;
  rlx::Command *commands;
  uint32_t slots[rlx::kSlots];         // tensors in each slot; the arena counts as one
  int64_t *slot_bytes[rlx::kSlots];    // their sizes
  int64_t pointers_at, scratch_at;     // places in the run's arena, behind the arena of the words
  int64_t arena_bytes;                 // all of it
  uint32_t first_update;               // the first command that writes a state: from there on a run is not cancelled
  uint64_t block_bytes;                // of the block of memory that starts with this struct
};

namespace rlx {

// Words on their way to a program. Memory comes from one block whose size the first pass bounds.
struct Decoder {
  const uint32_t *words;
  uint64_t count, at;  // at: the next word
  uint64_t end;        // reads stop here: the end of the current command
  char *block;
  uint64_t used, size;
  rlx_program *program;
  int32_t command;  // for errors
  rlx_error *error;
};

}  // namespace rlx
