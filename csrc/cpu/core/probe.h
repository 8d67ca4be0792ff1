// The limits of this machine, measured now: what a kernel could reach at most.
#pragma once

#include <cstdint>

namespace rlx {

// What probe_read_gbps measures where its size is one of these, which no buffer has: rlx_backend.probe has one number for all. F64, BF16 and
// I8 are peaks in 1e9 operations a second, of the dot products of the set in use where it has them; without one, bf16 is held against f32,
// and i8 against sums of pairs of bytes. The copies count what they read and what they write, far beyond the caches.
enum ProbeKind : int64_t { PROBE_F32 = 0, PROBE_F64 = 1, PROBE_BF16 = 2, PROBE_I8 = 3, PROBE_COPY = 4, PROBE_COPY_STREAMING = 5 };

// Peak f32 GFLOP/s of the given set (an Isa; -1: the one in use): independent chains of fma without memory operands, on threads threads at
// once. The generic x86 set counts a multiply and an add. The best of short rounds within seconds; 0 if the machine does not run the set.
double probe_f32_gflops(int isa, int threads, double seconds);

// GB/s (1e9 bytes) of reads from a buffer of bytes per thread: give a size that fits the cache level of interest, or far exceeds the last.
// A ProbeKind is measured instead. The best round within seconds; 0 if there is no memory.
double probe_read_gbps(int64_t bytes, int threads, double seconds);

}  // namespace rlx
