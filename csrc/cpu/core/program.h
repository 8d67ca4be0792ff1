// What stands behind the opaque types of rlx.h.
#pragma once
#include "kernel.h"
#include "pool.h"

namespace rlx {

constexpr uint32_t kStackPointers = 16;  // commands with more operands keep their pointers in the run's arena

// A packed form of a constant. It lies behind its data in one block, and the dims and strides of the view behind it.
struct Packed {
  Packed *next;
  Operand view;  // of the constant
  PackedForm form;
  void *data;
  bool fresh;  // not filled yet
  bool whole;  // every element of the constant is in it once, and it has an inverse
};

// Where the bytes of a constant are.
enum Memory : uint8_t {
  NOWHERE,   // in packed forms alone
  OURS,
  BORROWED,  // the caller's, to be used in place
  CALLERS,   // the caller's, read to pack it, copied to use it
};

struct Constant {
  void *data;
  uint32_t readers;  // loaded programs that read it as it is
  Memory memory;
  bool wanted;  // by the caller, who means to free it
};

inline int64_t align64(int64_t n) { return (n + 63) & ~int64_t(63); }

}  // namespace rlx

struct rlx_device {
  int32_t threads;
  rlx::Pool *pool;
  std::atomic<int32_t> users;  // weights and programs that are open
  bool lean;                   // no packed forms of constants
};

// Constants, those of the parent first.
struct rlx_weights {
  rlx_device *device;
  rlx_weights *parent, *root;
  uint32_t first, count;       // its own constants are [first, count)
  rlx::Constant *own;
  uint64_t *bytes;             // of all
  uint64_t own_bytes;          // of all its own constants
  uint64_t packed_bytes;       // of a root: of the packed forms of the whole tree; under the lock
  std::atomic<int32_t> users;  // programs and children
  pthread_mutex_t lock;        // the root's guards the packed forms of the whole tree, and whoever fills one
  rlx::Packed *packed;         // of its own constants
};

struct rlx_program : rlx::DecodedProgram {
  rlx_device *device;
  rlx_weights *weights;                // null without constants
  void **constants;                    // by number, null for those that no command reads as they are; of a body: those of the program around it
  int64_t pointers_at, scratch_at;     // places in the memory of a run, behind the arena of the words
  int64_t arena_bytes;                 // all of it
  uint32_t first_update;               // the first command that writes a state: from there on a run is not cancelled
  std::atomic<int32_t> arenas;         // open ones

  rlx::Command &command(uint32_t i) const { return static_cast<rlx::Command &>(decoded(i)); }
};

// The memory of one run at a time.
struct rlx_arena {
  rlx_program *program;
  char *memory;
};
