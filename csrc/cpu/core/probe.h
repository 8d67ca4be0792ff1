// The limits of this machine, measured now: what a kernel could reach at most.
#pragma once

#include <cstdint>

namespace rlx {

// Peak f32 GFLOP/s of the given set (an Isa; -1: the one in use): independent chains of fma without memory operands, on threads threads at
// once. The generic x86 set counts a multiply and an add. The best of short rounds within seconds; 0 if the machine does not run the set.
double probe_f32_gflops(int isa, int threads, double seconds);

// GB/s (1e9 bytes) of reads from a buffer of bytes per thread: give a size that fits the cache level of interest, or far exceeds the last.
// The best round within seconds; 0 if there is no memory.
double probe_read_gbps(int64_t bytes, int threads, double seconds);

}  // namespace rlx
