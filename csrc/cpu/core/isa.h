// Which instruction set the kernels use. Chosen once per process, from cpuid and what the system saves on a context switch.
#pragma once

namespace rlx {

enum Isa { ISA_GENERIC = 0, ISA_AVX2 = 1, ISA_AVX512 = 2, ISA_NEON = 3 };

// The best set that this machine runs. AVX2 means avx2, fma, f16c and bmi2; AVX512 adds f, bw, dq and vl.
int isa_supported();

// Whether kernels for isa run on this machine: ISA_GENERIC always does.
bool isa_runs(int isa);

// The set in use: isa_supported() unless isa_set lowered it.
int isa_active();

// Lowers the choice; false, and no change, if this machine does not run isa. Packed weights depend on the choice:
// call it before anything is packed.
bool isa_set(int isa);

// "generic", "avx2", "avx512", "neon"; "unknown" for any other number.
const char *isa_name(int isa);

// Extensions that single kernels ask for beside the set. False when the set in use is lower than the one they extend.
bool isa_has_avx512_bf16();
bool isa_has_avx512_vnni();
bool isa_has_avx_vnni();
bool isa_has_neon_dot();  // products of i8 in groups of four

// Tells the processor that this is a loop of waiting.
inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace rlx
