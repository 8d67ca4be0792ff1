// heap.h: memory of the device. Blocks of memory, each under one buffer that covers it; pieces of them are handed out first fit. A block
// that is empty goes back to the driver at once, so that what is held is what is used.
#pragma once
#include "array.h"
#include "vk.h"

namespace rlx {

// A piece of a block: a range of a buffer.
struct Piece {
  VkBuffer buffer;
  uint64_t offset, bytes;
  char *host;  // its first byte where the host can reach it, else null
};

// What a piece is for: the kind of memory that it is taken from.
enum Use {
  kOnDevice = 0,  // kernels read and write it; fastest for the device
  kStaging = 1,   // the host writes and reads it, the device copies
  kFlags = 2,     // both read and write it while kernels run
  kUses = 3
};

struct Span {
  uint64_t offset, bytes;
  bool used;
};

struct Block {
  VkDeviceMemory memory;
  VkBuffer buffer;
  uint64_t bytes;
  char *host;
  Use use;
  Array<Span> spans;  // in order of offset, without gaps
};

constexpr uint64_t kPieceAlign = 256;  // the most that Vulkan lets a device ask for buffer offsets

struct Context;
int32_t heap_alloc(Context *, Use, uint64_t bytes, Piece *, rlx_error *);
void heap_free(Context *, Piece *);  // clears the piece; an empty one is ignored

// What all contexts hold of device memory.
uint64_t heap_bytes();

}  // namespace rlx
