#include "../core/rlx_begin.h"

#include <stdlib.h>
#include <time.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "isa.h"
#include "probe.h"

namespace rlx {
namespace {

constexpr int kMaxThreads = 256;
constexpr double kRound = 1e-3;  // seconds: short enough to find a quiet moment on a busy machine

double now() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

uint64_t read_plain(const char *p, int64_t n) {
  uint64_t x = 0, w;
  for (int64_t i = 0; i < n; i += 8) {
    memcpy(&w, p + i, 8);
    x ^= w;
  }
  return x;
}

#if defined(__aarch64__)
void fma_base(int64_t n) {
  __asm__ volatile(
      "1:\n\t"
#define CHAIN(r) "fmla v" #r ".4s, v30.4s, v31.4s\n\t"
      CHAIN(0) CHAIN(1) CHAIN(2) CHAIN(3) CHAIN(4) CHAIN(5) CHAIN(6) CHAIN(7) CHAIN(8) CHAIN(9) CHAIN(10) CHAIN(11) CHAIN(12) CHAIN(13) CHAIN(14) CHAIN(15)
      "subs %0, %0, #1\n\tb.ne 1b\n\t"
      : "+r"(n)
      :
      : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v30", "v31");
#undef CHAIN
}
constexpr double kBaseFlops = 16 * 4 * 2;
#elif defined(RLX_X86)
void fma_base(int64_t n) {
  __asm__ volatile(
#define CLEAR(r) "xorps %%xmm" #r ",%%xmm" #r "\n\t"
#define CHAIN(r, s) "mulps %%xmm14,%%xmm" #r "\n\taddps %%xmm15,%%xmm" #s "\n\t"
      CLEAR(0) CLEAR(1) CLEAR(2) CLEAR(3) CLEAR(4) CLEAR(5) CLEAR(6) CLEAR(7) CLEAR(8) CLEAR(9) CLEAR(10) CLEAR(11) CLEAR(14) CLEAR(15)
      "1:\n\t" CHAIN(0, 6) CHAIN(1, 7) CHAIN(2, 8) CHAIN(3, 9) CHAIN(4, 10) CHAIN(5, 11) "dec %0\n\tjnz 1b"
      : "+r"(n)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm14", "xmm15");
#undef CLEAR
#undef CHAIN
}
constexpr double kBaseFlops = 12 * 4;
#else
void fma_base(int64_t n) {
  float a[32] = {};
  for (int64_t k = 0; k < n; k++) {
    for (float &x : a) x = x * 0.999f + 0.5f;
    __asm__ volatile("" ::"r"(a) : "memory");
  }
}
constexpr double kBaseFlops = 32 * 2;
#endif

}  // namespace
}  // namespace rlx

#if defined(RLX_X86)
RLX_TARGET_AVX2_BEGIN
namespace rlx {
namespace {

#define CLEAR(r) "vxorps %%ymm" #r ",%%ymm" #r ",%%ymm" #r "\n\t"
#define CHAIN(r) "vfmadd231ps %%ymm14,%%ymm15,%%ymm" #r "\n\t"
void fma_avx2(int64_t n) {
  __asm__ volatile(
      CLEAR(0) CLEAR(1) CLEAR(2) CLEAR(3) CLEAR(4) CLEAR(5) CLEAR(6) CLEAR(7) CLEAR(8) CLEAR(9) CLEAR(10) CLEAR(11) CLEAR(14) CLEAR(15)
      "1:\n\t" CHAIN(0) CHAIN(1) CHAIN(2) CHAIN(3) CHAIN(4) CHAIN(5) CHAIN(6) CHAIN(7) CHAIN(8) CHAIN(9) CHAIN(10) CHAIN(11)
      "dec %0\n\tjnz 1b\n\tvzeroupper"
      : "+r"(n)
      :
      : "cc", "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10", "ymm11", "ymm14", "ymm15");
}
#undef CLEAR
#undef CHAIN

// 8 streams far apart keep more cache misses in flight than one does. n is a multiple of 512.
void read_streams_avx2(const char *p, int64_t n) {
  const int64_t s = n / 8;
  for (int64_t i = 0; i < s; i += 64)
    for (int j = 0; j < 8; j++) {
      const char *q = p + j * s + i;
      __asm__ volatile("prefetcht0 1024(%0)\n\tvmovups (%0),%%ymm0\n\tvmovups 32(%0),%%ymm1" : : "r"(q) : "memory", "ymm0", "ymm1");
    }
  __asm__ volatile("vzeroupper" ::: "memory");
}

void read_avx2(const char *p, int64_t n) {
  for (int64_t i = 0; i < n; i += 256)
    __asm__ volatile(
        "vmovups (%0),%%ymm0\n\tvmovups 32(%0),%%ymm1\n\tvmovups 64(%0),%%ymm2\n\tvmovups 96(%0),%%ymm3\n\t"
        "vmovups 128(%0),%%ymm4\n\tvmovups 160(%0),%%ymm5\n\tvmovups 192(%0),%%ymm6\n\tvmovups 224(%0),%%ymm7"
        :
        : "r"(p + i)
        : "memory", "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7");
  __asm__ volatile("vzeroupper" ::: "memory");
}

}  // namespace
}  // namespace rlx
RLX_TARGET_END

RLX_TARGET_AVX512_BEGIN
namespace rlx {
namespace {

#define CLEAR(r) "vpxorq %%zmm" #r ",%%zmm" #r ",%%zmm" #r "\n\t"
#define CHAIN(r) "vfmadd231ps %%zmm24,%%zmm25,%%zmm" #r "\n\t"
#define EACH(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15) f(16) f(17) f(18) f(19) f(20) f(21) f(22) f(23)
void fma_avx512(int64_t n) {
  __asm__ volatile(EACH(CLEAR) CLEAR(24) CLEAR(25) "1:\n\t" EACH(CHAIN) "dec %0\n\tjnz 1b\n\tvzeroupper"
                   : "+r"(n)
                   :
                   : "cc", "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9", "zmm10", "zmm11", "zmm12", "zmm13",
                     "zmm14", "zmm15", "zmm16", "zmm17", "zmm18", "zmm19", "zmm20", "zmm21", "zmm22", "zmm23", "zmm24", "zmm25");
}
#undef CLEAR
#undef CHAIN
#undef EACH

void read_avx512(const char *p, int64_t n) {
  for (int64_t i = 0; i < n; i += 512)
    __asm__ volatile(
        "vmovups (%0),%%zmm0\n\tvmovups 64(%0),%%zmm1\n\tvmovups 128(%0),%%zmm2\n\tvmovups 192(%0),%%zmm3\n\t"
        "vmovups 256(%0),%%zmm4\n\tvmovups 320(%0),%%zmm5\n\tvmovups 384(%0),%%zmm6\n\tvmovups 448(%0),%%zmm7"
        :
        : "r"(p + i)
        : "memory", "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7");
  __asm__ volatile("vzeroupper" ::: "memory");
}

}  // namespace
}  // namespace rlx
RLX_TARGET_END
#endif

namespace rlx {
namespace {

struct Probe {
  void (*alu)(int64_t);
  double amount;  // operations, or bytes, of one repetition
  int64_t bytes;  // of the buffer of a thread; 0 for alu
  int64_t reps;
  int threads;
  double deadline;
  std::atomic<int> arrived, finished, stop;
  std::atomic<uint64_t> sink;
  double best;  // seconds of the best round
};

struct Member {
  Probe *probe;
  int id;
  char *buffer;
  pthread_t thread;
};

#if defined(RLX_X86)
constexpr int64_t kManyStreams = 8 << 20;  // bytes from which one stream does not fill the memory system
#endif

void read_buffer(Probe *p, const char *buffer) {
#if defined(RLX_X86)
  if (isa_runs(ISA_AVX2) && p->bytes >= kManyStreams) return read_streams_avx2(buffer, p->bytes);
  if (isa_runs(ISA_AVX512)) return read_avx512(buffer, p->bytes);
  if (isa_runs(ISA_AVX2)) return read_avx2(buffer, p->bytes);
#endif
  p->sink.fetch_xor(read_plain(buffer, p->bytes), std::memory_order_relaxed);
}

void repeat(Probe *p, const char *buffer) {
  if (p->alu != nullptr) return p->alu(p->reps);
  for (int64_t r = 0; r < p->reps; r++) read_buffer(p, buffer);
}

void wait_for(const std::atomic<int> *word, int value) {
  for (int spins = 0; word->load(std::memory_order_acquire) < value; spins++) {
    cpu_relax();
    if (spins > 100000) sched_yield();  // fewer processors than threads
  }
}

// A round begins when all have met and ends when the last is through.
void rounds(Member *m) {
  Probe *p = m->probe;
  for (int r = 1;; r++) {
    p->arrived.fetch_add(1, std::memory_order_acq_rel);
    wait_for(&p->arrived, p->threads * r);
    if (p->stop.load(std::memory_order_relaxed) != 0) return;
    const double begin = now();
    repeat(p, m->buffer);
    p->finished.fetch_add(1, std::memory_order_acq_rel);
    if (m->id == 0) {
      wait_for(&p->finished, p->threads * r);
      const double end = now();
      if (end - begin < p->best) p->best = end - begin;
      if (end > p->deadline) p->stop.store(1, std::memory_order_relaxed);
    }
  }
}

void *member_main(void *arg) {
  rounds(static_cast<Member *>(arg));
  return nullptr;
}

// Repetitions that fill a round, from the best of a few tries.
void calibrate(Probe *p, const char *buffer) {
  p->reps = p->alu != nullptr ? 1 << 14 : 1;
  repeat(p, buffer);
  for (;;) {
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
      const double t = now();
      repeat(p, buffer);
      const double d = now() - t;
      if (d < best) best = d;
    }
    if (best >= kRound / 8) {
      if (best < kRound) p->reps = static_cast<int64_t>(static_cast<double>(p->reps) * kRound / best) + 1;
      return;
    }
    p->reps *= 4;
  }
}

bool allocate(Member *m, int64_t bytes) {
  void *b = nullptr;
  if (posix_memalign(&b, 1 << 21, static_cast<size_t>(bytes) + 4096) != 0) return false;
#if defined(__linux__)
  madvise(b, static_cast<size_t>(bytes), MADV_HUGEPAGE);
#endif
  memset(b, m->id + 1, static_cast<size_t>(bytes) + 4096);
  m->buffer = static_cast<char *>(b);
  return true;
}

// Amount per second, 1e-9 of it, by the best round.
double measure(Probe *p, int threads, double seconds) {
  if (threads < 1) threads = 1;
  if (threads > kMaxThreads) threads = kMaxThreads;
  Member members[kMaxThreads];
  double result = 0;
  int ready = 0, started = 1;
  for (; ready < threads; ready++) {
    members[ready] = Member{p, ready, nullptr, pthread_t()};
    if (p->bytes > 0 && !allocate(&members[ready], p->bytes)) break;
  }
  if (ready == threads) {
    calibrate(p, members[0].buffer);
    p->deadline = now() + seconds;
    p->best = 1e9;
    p->threads = threads;
    p->arrived.store(0);
    p->finished.store(0);
    p->stop.store(0);
    while (started < threads && pthread_create(&members[started].thread, nullptr, member_main, &members[started]) == 0) started++;
    if (started < threads) {  // let go of those that wait
      p->stop.store(1);
      p->arrived.fetch_add(threads, std::memory_order_acq_rel);
    }
    rounds(&members[0]);
    for (int i = 1; i < started; i++) pthread_join(members[i].thread, nullptr);
    if (started == threads) result = p->amount * static_cast<double>(p->reps) * threads / p->best * 1e-9;
  }
  for (int i = 0; i < ready; i++) free(members[i].buffer);
  return result;
}

}  // namespace

double probe_f32_gflops(int isa, int threads, double seconds) {
  if (isa < 0) isa = isa_active();
  if (!isa_runs(isa)) return 0;
  Probe p = {};
  p.alu = fma_base;
  p.amount = kBaseFlops;
#if defined(RLX_X86)
  if (isa == ISA_AVX2) {
    p.alu = fma_avx2;
    p.amount = 12 * 8 * 2;
  } else if (isa == ISA_AVX512) {
    p.alu = fma_avx512;
    p.amount = 24 * 16 * 2;
  }
#endif
  return measure(&p, threads, seconds);
}

double probe_read_gbps(int64_t bytes, int threads, double seconds) {
  Probe p = {};
  p.bytes = bytes < 4096 ? 4096 : bytes & ~INT64_C(4095);
  p.amount = static_cast<double>(p.bytes);
  return measure(&p, threads, seconds);
}

}  // namespace rlx
