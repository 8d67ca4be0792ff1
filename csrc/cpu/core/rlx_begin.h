// rlx_begin.h: the first include of every C++ file of the CPU backend.
//
// It does three things that must come before anything else in the file:
//   1. it switches the contraction of a*b + c into a fused multiply-add off, in plain code and in intrinsics, so that
//      a result has the roundings its formula says. Code that wants the fused form says fma(a, b, c);
//   2. it includes the system headers that the backend may use, so that none is first seen inside a target region
//      (an inline function of a system header compiled there could be picked by the linker for baseline code);
//   3. it defines the target regions: code between RLX_TARGET_<ISA>_BEGIN and RLX_TARGET_END is compiled for that
//      instruction set whatever the command line says. It may run only after a cpuid check.
//
// Regions do not nest. Everything inside one belongs in an anonymous namespace, but for the table it exports.
#ifndef RLX_CPU_BEGIN_H
#define RLX_CPU_BEGIN_H

// Ahead of the system headers: gcc inlines an intrinsic freely only into code with the same optimisation options.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma clang fp contract(off)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

#if defined(__FAST_MATH__)
#error "rlx kernels depend on IEEE 754 arithmetic: build without -ffast-math"
#endif

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <pthread.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define RLX_X86 1
#if defined(__GNUC__) && !defined(__clang__)
// gcc 12 takes the undefined vectors of its own AVX-512 intrinsics for uninitialised variables.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif
#endif

#if defined(__aarch64__)
#define RLX_NEON 1
#include <arm_neon.h>
#endif

// The target regions. A machine may run a twin only if it has every feature in the list of its region.
#define RLX_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define RLX_TARGET_BEGIN(features) RLX_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define RLX_TARGET_END RLX_PRAGMA(clang attribute pop)
#else
#define RLX_TARGET_BEGIN(features) RLX_PRAGMA(GCC push_options) RLX_PRAGMA(GCC target(features))
#define RLX_TARGET_END RLX_PRAGMA(GCC pop_options)
#endif

#if defined(RLX_X86)
#define RLX_TARGET_AVX2_BEGIN RLX_TARGET_BEGIN("avx2,fma,f16c,bmi2")
#define RLX_TARGET_AVX512_BEGIN RLX_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2")
#endif

// RLX_FN: a lane-level function, always inlined so that it takes the instruction set of its caller.
// RLX_MATH: long lane-level code that stays one copy per twin, called with vectors in registers.
#define RLX_FN inline __attribute__((always_inline))
#define RLX_MATH inline __attribute__((noinline))

#endif
