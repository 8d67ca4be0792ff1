#include <stdlib.h>

#include <atomic>
#include <cstring>

#include "memory.h"

namespace rlx {
namespace {

constexpr uint64_t kHeader = 64;  // holds the size of the block, and keeps what follows aligned
std::atomic<uint64_t> held{0};

}  // namespace

void *memory_alloc(uint64_t bytes) {
  if (bytes > static_cast<uint64_t>(INT64_MAX) - kHeader) return nullptr;
  void *p = nullptr;
  if (posix_memalign(&p, 64, bytes + kHeader) != 0) return nullptr;
  const uint64_t total = bytes + kHeader;
  std::memcpy(p, &total, sizeof total);
  held.fetch_add(total, std::memory_order_relaxed);
  return static_cast<char *>(p) + kHeader;
}

void memory_free(void *p) {
  if (p == nullptr) return;
  char *block = static_cast<char *>(p) - kHeader;
  uint64_t total;
  std::memcpy(&total, block, sizeof total);
  held.fetch_sub(total, std::memory_order_relaxed);
  free(block);
}

uint64_t memory_bytes() { return held.load(std::memory_order_relaxed); }

}  // namespace rlx
