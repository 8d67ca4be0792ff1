// Host memory of a backend: 64-byte aligned, and counted.
#pragma once
#include <cstdint>

namespace rlx {

// Null when memory runs out; bytes may be 0. Uninitialised.
void *memory_alloc(uint64_t bytes);
void memory_free(void *p);

// What all living blocks hold together, headers included.
uint64_t memory_bytes();

}  // namespace rlx
