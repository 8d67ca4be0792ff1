#include <stdlib.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "memory.h"

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

namespace rlx {
namespace {

constexpr uint64_t kHeader = 64;  // holds the size of the block, and keeps what follows aligned
std::atomic<uint64_t> held{0};

// From this size on a block has pages of its own, which the system gets back when it is freed. malloc keeps a heap for each thread that ever
// allocated, and Go's threads come and go: arenas of many sizes left some MiB of holes behind in these. A build that checks memory sees what
// malloc made alone.
#ifdef __SANITIZE_ADDRESS__
constexpr uint64_t kOwnPages = UINT64_MAX;
#else
constexpr uint64_t kOwnPages = uint64_t(32) << 10;
#endif

void *block_alloc(uint64_t total) {
  void *p = nullptr;
  if (total >= kOwnPages) {
    p = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
  }
  return posix_memalign(&p, 64, total) == 0 ? p : nullptr;
}

void block_free(void *p, uint64_t total) {
  if (total >= kOwnPages)
    munmap(p, total);
  else
    free(p);
}

}  // namespace

void *memory_alloc(uint64_t bytes) {
  if (bytes > static_cast<uint64_t>(INT64_MAX) - kHeader) return nullptr;
  const uint64_t total = bytes + kHeader;
  void *p = block_alloc(total);
  if (p == nullptr) return nullptr;
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
  block_free(block, total);
}

uint64_t memory_bytes() { return held.load(std::memory_order_relaxed); }

}  // namespace rlx
