#include "../core/rlx_begin.h"

#include <cstdint>

#include "gemm_tile.h"

#if defined(__x86_64__)

// 6 x 16: 12 accumulators in ymm0..11, the row of b in ymm12 and ymm13, the element of a in ymm14 and ymm15 in turn.
#define ZERO(i, r0, r1) "vxorps %%ymm" #r0 ",%%ymm" #r0 ",%%ymm" #r0 "\n\tvxorps %%ymm" #r1 ",%%ymm" #r1 ",%%ymm" #r1 "\n\t"
#define LOAD(i, r0, r1) "vmovups (%%rsi),%%ymm" #r0 "\n\tvmovups 32(%%rsi),%%ymm" #r1 "\n\tadd %%rax,%%rsi\n\t"
#define STORE(i, r0, r1) "vmovups %%ymm" #r0 ",(%%rsi)\n\tvmovups %%ymm" #r1 ",32(%%rsi)\n\tadd %%rax,%%rsi\n\t"
#define TOUCH(i, r0, r1) "prefetcht0 (%%rsi)\n\tadd %%rax,%%rsi\n\t"
#define FMA(i, r0, r1) MUL##i(r0, r1)
#define MULADD(at, t, r0, r1)                                                                                                               \
  "vbroadcastss " at ",%%ymm" #t "\n\tvfmadd231ps %%ymm12,%%ymm" #t ",%%ymm" #r0 "\n\tvfmadd231ps %%ymm13,%%ymm" #t ",%%ymm" #r1 "\n\t"
#define MUL0(r0, r1) MULADD("(%%r8)", 14, r0, r1)
#define MUL1(r0, r1) MULADD("(%%r8,%%r10)", 15, r0, r1)
#define MUL2(r0, r1) MULADD("(%%r8,%%r10,2)", 14, r0, r1)
#define MUL3(r0, r1) MULADD("(%%r9)", 15, r0, r1)
#define MUL4(r0, r1) MULADD("(%%r9,%%r10)", 14, r0, r1)
#define MUL5(r0, r1) MULADD("(%%r9,%%r10,2)", 15, r0, r1)

#define ROWS1(f) f(0, 0, 1)
#define ROWS2(f) ROWS1(f) f(1, 2, 3)
#define ROWS3(f) ROWS2(f) f(2, 4, 5)
#define ROWS4(f) ROWS3(f) f(3, 6, 7)
#define ROWS5(f) ROWS4(f) f(4, 8, 9)
#define ROWS6(f) ROWS5(f) f(5, 10, 11)

// Few rows fetch rows of b ahead, many rows the next panel meanwhile: a line per k into the second level. Into the first it was slower.
#define STEP(n)                                                                                                                             \
  "vmovups (%%rsi),%%ymm12\n\tvmovups 32(%%rsi),%%ymm13\n\tprefetcht1 (%%r15)\n\tadd %%rdx,%%rsi\n\tadd %%rax,%%r15\n\t" ROWS##n(FMA)       \
  "add %%r11,%%r8\n\tadd %%r11,%%r9\n\t"

#define TILE(n)                                                                                                                             \
  void tile##n(const TileF32 *t) {                                                                                                          \
    __asm__ volatile(                                                                                                                       \
        "mov 40(%0),%%rsi\n\tmov 48(%0),%%rax\n\tcmpq $0,64(%0)\n\tjne 1f\n\t"                                                              \
        ROWS##n(ZERO) ROWS##n(TOUCH) "jmp 2f\n"                                                                                             \
        "1:\n\t" ROWS##n(LOAD)                                                                                                              \
        "2:\n\tmov (%0),%%r8\n\tmov 8(%0),%%r10\n\tmov 16(%0),%%r11\n\t"                                                                    \
        "mov 24(%0),%%rsi\n\tmov 32(%0),%%rdx\n\tmov 56(%0),%%rcx\n\tmov 72(%0),%%r15\n\t"                                                  \
        "lea (%%r10,%%r10,2),%%r9\n\tadd %%r8,%%r9\n\t"                                                                                     \
        "mov 80(%0),%%rax\n\tsub $2,%%rcx\n\tjb 4f\n\t.p2align 5\n"                                                                         \
        "3:\n\t" STEP(n) STEP(n) "sub $2,%%rcx\n\tjae 3b\n"                                                                                 \
        "4:\n\tadd $2,%%rcx\n\tjz 5f\n\t" STEP(n)                                                                                           \
        "5:\n\tmov 40(%0),%%rsi\n\tmov 48(%0),%%rax\n\t" ROWS##n(STORE) "vzeroupper"                                                        \
        :                                                                                                                                   \
        : "r"(t)                                                                                                                            \
        : "cc", "memory", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r15",                                                      \
          "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10", "ymm11",                                 \
          "ymm12", "ymm13", "ymm14", "ymm15");                                                                                              \
  }

RLX_TARGET_AVX2_BEGIN
namespace rlx {
namespace matmul {
namespace {
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
}  // namespace
}  // namespace matmul
}  // namespace rlx
RLX_TARGET_END

namespace rlx {
namespace matmul {
const TileSetF32 kTilesF32Avx2 = {6, 16, {nullptr, tile1, tile2, tile3, tile4, tile5, tile6}, {}};
}  // namespace matmul
}  // namespace rlx

#endif
