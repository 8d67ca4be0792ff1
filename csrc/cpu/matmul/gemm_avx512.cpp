#include "../core/rlx_begin.h"

#include <cstdint>

#include "gemm_tile.h"

#if defined(__x86_64__)

// 14 x 32: 28 accumulators in zmm0..27, the row of b in zmm28 and zmm29, the element of a in zmm30 and zmm31 in turn.
// Rows 3i .. 3i+2 of a are reached from one base register, so that any row stride costs 5 adds per k.
#define ZERO(i, r0, r1) "vpxorq %%zmm" #r0 ",%%zmm" #r0 ",%%zmm" #r0 "\n\tvpxorq %%zmm" #r1 ",%%zmm" #r1 ",%%zmm" #r1 "\n\t"
#define LOAD(i, r0, r1) "vmovups (%%rsi),%%zmm" #r0 "\n\tvmovups 64(%%rsi),%%zmm" #r1 "\n\tadd %%rax,%%rsi\n\t"
#define STORE(i, r0, r1) "vmovups %%zmm" #r0 ",(%%rsi)\n\tvmovups %%zmm" #r1 ",64(%%rsi)\n\tadd %%rax,%%rsi\n\t"
#define TOUCH(i, r0, r1) "prefetcht0 (%%rsi)\n\tprefetcht0 64(%%rsi)\n\tadd %%rax,%%rsi\n\t"
#define FMA(i, r0, r1) MUL##i(r0, r1)
#define MULADD(at, t, r0, r1) \
  "vbroadcastss " at ",%%zmm" #t "\n\tvfmadd231ps %%zmm28,%%zmm" #t ",%%zmm" #r0 "\n\tvfmadd231ps %%zmm29,%%zmm" #t ",%%zmm" #r1 "\n\t"
#define MUL0(r0, r1) MULADD("(%%r8)", 30, r0, r1)
#define MUL1(r0, r1) MULADD("(%%r8,%%r10)", 31, r0, r1)
#define MUL2(r0, r1) MULADD("(%%r8,%%r10,2)", 30, r0, r1)
#define MUL3(r0, r1) MULADD("(%%r9)", 31, r0, r1)
#define MUL4(r0, r1) MULADD("(%%r9,%%r10)", 30, r0, r1)
#define MUL5(r0, r1) MULADD("(%%r9,%%r10,2)", 31, r0, r1)
#define MUL6(r0, r1) MULADD("(%%r12)", 30, r0, r1)
#define MUL7(r0, r1) MULADD("(%%r12,%%r10)", 31, r0, r1)
#define MUL8(r0, r1) MULADD("(%%r12,%%r10,2)", 30, r0, r1)
#define MUL9(r0, r1) MULADD("(%%r13)", 31, r0, r1)
#define MUL10(r0, r1) MULADD("(%%r13,%%r10)", 30, r0, r1)
#define MUL11(r0, r1) MULADD("(%%r13,%%r10,2)", 31, r0, r1)
#define MUL12(r0, r1) MULADD("(%%r14)", 30, r0, r1)
#define MUL13(r0, r1) MULADD("(%%r14,%%r10)", 31, r0, r1)

#define ROWS1(f) f(0, 0, 1)
#define ROWS2(f) ROWS1(f) f(1, 2, 3)
#define ROWS3(f) ROWS2(f) f(2, 4, 5)
#define ROWS4(f) ROWS3(f) f(3, 6, 7)
#define ROWS5(f) ROWS4(f) f(4, 8, 9)
#define ROWS6(f) ROWS5(f) f(5, 10, 11)
#define ROWS7(f) ROWS6(f) f(6, 12, 13)
#define ROWS8(f) ROWS7(f) f(7, 14, 15)
#define ROWS9(f) ROWS8(f) f(8, 16, 17)
#define ROWS10(f) ROWS9(f) f(9, 18, 19)
#define ROWS11(f) ROWS10(f) f(10, 20, 21)
#define ROWS12(f) ROWS11(f) f(11, 22, 23)
#define ROWS13(f) ROWS12(f) f(12, 24, 25)
#define ROWS14(f) ROWS13(f) f(13, 26, 27)

// The left half alone, for last columns that fill no more: the same sums without the odd accumulators.
#define HALF_ZERO(i, r0, r1) "vpxorq %%zmm" #r0 ",%%zmm" #r0 ",%%zmm" #r0 "\n\t"
#define HALF_LOAD(i, r0, r1) "vmovups (%%rsi),%%zmm" #r0 "\n\tadd %%rax,%%rsi\n\t"
#define HALF_STORE(i, r0, r1) "vmovups %%zmm" #r0 ",(%%rsi)\n\tadd %%rax,%%rsi\n\t"
#define HALF_TOUCH(i, r0, r1) "prefetcht0 (%%rsi)\n\tadd %%rax,%%rsi\n\t"
#define HALF_FMA(i, r0, r1) HALF_MUL##i(r0)
#define HALF_MULADD(at, r0) "vfmadd231ps " at "%{1to16%},%%zmm28,%%zmm" #r0 "\n\t"
#define HALF_MUL0(r0) HALF_MULADD("(%%r8)", r0)
#define HALF_MUL1(r0) HALF_MULADD("(%%r8,%%r10)", r0)
#define HALF_MUL2(r0) HALF_MULADD("(%%r8,%%r10,2)", r0)
#define HALF_MUL3(r0) HALF_MULADD("(%%r9)", r0)
#define HALF_MUL4(r0) HALF_MULADD("(%%r9,%%r10)", r0)
#define HALF_MUL5(r0) HALF_MULADD("(%%r9,%%r10,2)", r0)
#define HALF_MUL6(r0) HALF_MULADD("(%%r12)", r0)
#define HALF_MUL7(r0) HALF_MULADD("(%%r12,%%r10)", r0)
#define HALF_MUL8(r0) HALF_MULADD("(%%r12,%%r10,2)", r0)
#define HALF_MUL9(r0) HALF_MULADD("(%%r13)", r0)
#define HALF_MUL10(r0) HALF_MULADD("(%%r13,%%r10)", r0)
#define HALF_MUL11(r0) HALF_MULADD("(%%r13,%%r10,2)", r0)
#define HALF_MUL12(r0) HALF_MULADD("(%%r14)", r0)
#define HALF_MUL13(r0) HALF_MULADD("(%%r14,%%r10)", r0)
#define WIDE_B "vmovups (%%rsi),%%zmm28\n\tvmovups 64(%%rsi),%%zmm29\n\t"
#define HALF_B "vmovups (%%rsi),%%zmm28\n\t"

// Few rows fetch whole rows of b ahead, many rows the next panel line by line meanwhile: into the second level. Into the first it was slower.
#define FAR "prefetcht1 (%%r15)\n\tprefetcht1 64(%%r15)\n\t"
#define NEAR "prefetcht1 (%%r15)\n\t"

#define CODE(name, zero, touch, load, row_of_b, fma, store, ahead)                                                                          \
  void name(const TileF32 *t) {                                                                                                             \
    __asm__ volatile(                                                                                                                       \
        "mov 40(%0),%%rsi\n\tmov 48(%0),%%rax\n\tcmpq $0,64(%0)\n\tjne 1f\n\t"                                                              \
        zero touch "jmp 2f\n"                                                                                                               \
        "1:\n\t" load                                                                                                                       \
        "2:\n\tmov (%0),%%r8\n\tmov 8(%0),%%r10\n\tmov 16(%0),%%r11\n\t"                                                                    \
        "mov 24(%0),%%rsi\n\tmov 32(%0),%%rdx\n\tmov 56(%0),%%rcx\n\tmov 72(%0),%%r15\n\t"                                                  \
        "lea (%%r10,%%r10,2),%%rax\n\tlea (%%r8,%%rax),%%r9\n\tlea (%%r8,%%rax,2),%%r12\n\t"                                                \
        "lea (%%r9,%%rax,2),%%r13\n\tlea (%%r8,%%rax,4),%%r14\n\t"                                                                          \
        "mov 80(%0),%%rax\n\ttest %%rcx,%%rcx\n\tjz 4f\n\t.p2align 5\n"                                                                     \
        "3:\n\t" row_of_b ahead "add %%rdx,%%rsi\n\tadd %%rax,%%r15\n\t"                                                                    \
        fma                                                                                                                                 \
        "add %%r11,%%r8\n\tadd %%r11,%%r9\n\tadd %%r11,%%r12\n\tadd %%r11,%%r13\n\tadd %%r11,%%r14\n\t"                                     \
        "dec %%rcx\n\tjnz 3b\n"                                                                                                             \
        "4:\n\tmov 40(%0),%%rsi\n\tmov 48(%0),%%rax\n\t" store "vzeroupper"                                                                 \
        :                                                                                                                                   \
        : "r"(t)                                                                                                                            \
        : "cc", "memory", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",                                 \
          "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9", "zmm10", "zmm11",                                 \
          "zmm12", "zmm13", "zmm14", "zmm15", "zmm16", "zmm17", "zmm18", "zmm19", "zmm20", "zmm21", "zmm22",                                \
          "zmm23", "zmm24", "zmm25", "zmm26", "zmm27", "zmm28", "zmm29", "zmm30", "zmm31");                                                 \
  }

#define TILE(n, ahead)                                                                                                                      \
  CODE(tile##n, ROWS##n(ZERO), ROWS##n(TOUCH), ROWS##n(LOAD), WIDE_B, ROWS##n(FMA), ROWS##n(STORE), ahead)                                  \
  CODE(half##n, ROWS##n(HALF_ZERO), ROWS##n(HALF_TOUCH), ROWS##n(HALF_LOAD), HALF_B, ROWS##n(HALF_FMA), ROWS##n(HALF_STORE), ahead)

RLX_TARGET_AVX512_BEGIN
namespace rlx {
namespace matmul {
namespace {
TILE(1, FAR)
TILE(2, FAR)
TILE(3, FAR)
TILE(4, FAR)
TILE(5, NEAR)
TILE(6, NEAR)
TILE(7, NEAR)
TILE(8, NEAR)
TILE(9, NEAR)
TILE(10, NEAR)
TILE(11, NEAR)
TILE(12, NEAR)
TILE(13, NEAR)
TILE(14, NEAR)
}  // namespace
}  // namespace matmul
}  // namespace rlx
RLX_TARGET_END

namespace rlx {
namespace matmul {
const TileSetF32 kTilesF32Avx512 = {
    14,
    32,
    {nullptr, tile1, tile2, tile3, tile4, tile5, tile6, tile7, tile8, tile9, tile10, tile11, tile12, tile13, tile14},
    {nullptr, half1, half2, half3, half4, half5, half6, half7, half8, half9, half10, half11, half12, half13, half14}};
}  // namespace matmul
}  // namespace rlx

#endif
