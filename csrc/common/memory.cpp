#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

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

void *map_pages(uint64_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

#if defined(MADV_HUGEPAGE)
// Huge pages are 2 MiB, where the others are 4 KiB. On them a pass over weights seldom misses the TLB: products of one row were up to twice as
// fast. Blocks of middle size lie one behind the other in a chunk, so that they share them, but no small page: each goes back alone.
constexpr uint64_t kHuge = uint64_t(2) << 20, kChunk = uint64_t(32) << 20, kLeastInChunk = uint64_t(256) << 10, kMostInChunk = kChunk / 4;
pthread_mutex_t chunk_lock = PTHREAD_MUTEX_INITIALIZER;
char *chunk = nullptr, *chunk_end = nullptr;  // pages that no block has yet

// A mapping that starts on a huge page. It is a huge page too long at first; what lies before and behind goes back.
char *map_huge(uint64_t bytes) {
  char *p = static_cast<char *>(map_pages(bytes + kHuge));
  if (p == nullptr) return nullptr;
  const uint64_t before = (kHuge - reinterpret_cast<uintptr_t>(p) % kHuge) % kHuge;
  if (before != 0) munmap(p, before);
  munmap(p + before + bytes, kHuge - before);
  madvise(p + before, bytes, MADV_HUGEPAGE);  // a kernel without them says no, and the pages are small
  return p + before;
}

char *from_chunk(uint64_t bytes) {
  pthread_mutex_lock(&chunk_lock);
  if (static_cast<uint64_t>(chunk_end - chunk) < bytes) {
    if (chunk != chunk_end) munmap(chunk, static_cast<uint64_t>(chunk_end - chunk));
    chunk = map_huge(kChunk);
    chunk_end = chunk == nullptr ? nullptr : chunk + kChunk;
  }
  char *p = chunk;
  if (p != nullptr) chunk += bytes;
  pthread_mutex_unlock(&chunk_lock);
  return p;
}

void *map_block(uint64_t total) {
  if (total < kLeastInChunk) return map_pages(total);
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), whole = (total + page - 1) & ~(page - 1);
  char *p = whole <= kMostInChunk ? from_chunk(whole) : map_huge(whole);
  return p != nullptr ? p : map_pages(total);
}
#else
void *map_block(uint64_t total) { return map_pages(total); }
#endif

void *block_alloc(uint64_t total) {
  if (total >= kOwnPages) return map_block(total);
  void *p = nullptr;
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
