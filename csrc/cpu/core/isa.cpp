#include "../core/rlx_begin.h"

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "isa.h"

namespace rlx {
namespace {

struct Features {
  int best = ISA_GENERIC;
  bool bf16 = false, vnni512 = false, avxvnni = false, dot = false;
};

#if defined(__x86_64__)
bool bit(unsigned word, int n) { return (word >> n & 1) != 0; }

Features detect() {
  Features f;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return f;
  const bool fma = bit(c, 12), osxsave = bit(c, 27), f16c = bit(c, 29);
  if (!osxsave) return f;
  // The system must save the wide registers, or their contents would be lost at a context switch.
  unsigned lo, hi;
  __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  const bool ymm = (lo & 0x06) == 0x06, zmm = (lo & 0xe6) == 0xe6;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return f;
  if (!(ymm && fma && f16c && bit(b, 5) && bit(b, 8))) return f;
  f.best = ISA_AVX2;
  const unsigned leaf7 = a;
  const bool vnni = bit(c, 11);
  if (zmm && bit(b, 16) && bit(b, 17) && bit(b, 30) && bit(b, 31)) {
    f.best = ISA_AVX512;
    f.vnni512 = vnni;
  }
  if (leaf7 >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) {
    f.avxvnni = bit(a, 4);
    f.bf16 = f.best == ISA_AVX512 && bit(a, 5);
  }
  return f;
}
#elif defined(__aarch64__)
bool has_dot() {
#if defined(__ARM_FEATURE_DOTPROD)
  return true;  // what is built may run nowhere else: so on every Mac
#elif defined(__linux__)
  constexpr unsigned long ASIMDDP = 1ul << 20;
  return (getauxval(AT_HWCAP) & ASIMDDP) != 0;
#else
  return false;
#endif
}

Features detect() {
  Features f;
  f.best = ISA_NEON;
  f.dot = has_dot();
  return f;
}
#else
Features detect() { return Features(); }
#endif

// Plain words instead of a function-local static, whose guard would need the C++ run-time library.
std::atomic<uint32_t> detected{0};  // 0 not yet, else 0x100 | bits
std::atomic<int> chosen{-1};

uint32_t features() {
  uint32_t w = detected.load(std::memory_order_relaxed);
  if (w == 0) {
    const Features f = detect();
    w = 0x100u | static_cast<uint32_t>(f.best) | (f.bf16 ? 0x10u : 0) | (f.vnni512 ? 0x20u : 0) | (f.avxvnni ? 0x40u : 0) | (f.dot ? 0x80u : 0);
    detected.store(w, std::memory_order_relaxed);
  }
  return w;
}

}  // namespace

int isa_supported() { return static_cast<int>(features() & 0xfu); }

bool isa_runs(int isa) {
  const int best = isa_supported();
  if (isa == ISA_GENERIC || isa == best) return true;
  return isa == ISA_AVX2 && best == ISA_AVX512;
}

int isa_active() {
  const int c = chosen.load(std::memory_order_relaxed);
  return c >= 0 ? c : isa_supported();
}

bool isa_set(int isa) {
  if (!isa_runs(isa)) return false;
  chosen.store(isa, std::memory_order_relaxed);
  return true;
}

const char *isa_name(int isa) {
  switch (isa) {
    case ISA_GENERIC: return "generic";
    case ISA_AVX2: return "avx2";
    case ISA_AVX512: return "avx512";
    case ISA_NEON: return "neon";
  }
  return "unknown";
}

bool isa_has_avx512_bf16() { return isa_active() == ISA_AVX512 && (features() & 0x10u); }
bool isa_has_avx512_vnni() { return isa_active() == ISA_AVX512 && (features() & 0x20u); }
bool isa_has_avx_vnni() { return (isa_active() == ISA_AVX2 || isa_active() == ISA_AVX512) && (features() & 0x40u); }
bool isa_has_neon_dot() { return isa_active() == ISA_NEON && (features() & 0x80u); }

}  // namespace rlx
