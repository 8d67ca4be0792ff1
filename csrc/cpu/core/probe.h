// The limits of this machine, measured now: what a kernel could reach at most.
#pragma once

#include <cstdint>

#include "../../../cgo/native/rlx.h"

namespace rlx {

// A limit of the set in use as rlx.h tells them, by the best of short rounds within seconds: independent chains of fma without memory operands
// (the generic x86 set counts a multiply and an add), or passes over a buffer of bytes per thread: give a size that fits the cache level of
// interest, or far exceeds the last. 0 if there is no memory.
double probe_limit(rlx_probe what, int threads, int64_t bytes, double seconds);

}  // namespace rlx
