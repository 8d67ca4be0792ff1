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

// Peak is a loop of n repetitions of independent chains without memory operands.
struct Peak {
  void (*loop)(int64_t n);
  double amount;  // operations of a repetition; a multiply and an add are 2
};

#if defined(__aarch64__)
#define EACH(f, shape) f(0, shape) f(1, shape) f(2, shape) f(3, shape) f(4, shape) f(5, shape) f(6, shape) f(7, shape) f(8, shape) f(9, shape) f(10, shape) \
    f(11, shape) f(12, shape) f(13, shape) f(14, shape) f(15, shape)
#define CHAIN(r, shape) "fmla v" #r shape ",v30" shape ",v31" shape "\n\t"
#define PEAK(name, shape)                                                                                                                \
  void name(int64_t n) {                                                                                                                 \
    __asm__ volatile("1:\n\t" EACH(CHAIN, shape) "subs %0, %0, #1\n\tb.ne 1b\n\t"                                                        \
                     : "+r"(n)                                                                                                           \
                     :                                                                                                                   \
                     : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v30", "v31"); \
  }
PEAK(base_f32, ".4s")
PEAK(base_f64, ".2d")
#undef PEAK
#undef CHAIN
#undef EACH
constexpr Peak kBaseF32 = {base_f32, 16 * 4 * 2}, kBaseF64 = {base_f64, 16 * 2 * 2}, kBaseI8 = kBaseF32;
#elif defined(RLX_X86)
#define CLEAR(r) "xorps %%xmm" #r ",%%xmm" #r "\n\t"
#define PAIR(mul, add, r, s) mul " %%xmm14,%%xmm" #r "\n\t" add " %%xmm15,%%xmm" #s "\n\t"
#define PEAK(name, mul, add)                                                                                                              \
  void name(int64_t n) {                                                                                                                  \
    __asm__ volatile(CLEAR(0) CLEAR(1) CLEAR(2) CLEAR(3) CLEAR(4) CLEAR(5) CLEAR(6) CLEAR(7) CLEAR(8) CLEAR(9) CLEAR(10) CLEAR(11)        \
                     CLEAR(14) CLEAR(15) "1:\n\t" PAIR(mul, add, 0, 6) PAIR(mul, add, 1, 7) PAIR(mul, add, 2, 8) PAIR(mul, add, 3, 9)     \
                     PAIR(mul, add, 4, 10) PAIR(mul, add, 5, 11) "dec %0\n\tjnz 1b"                                                       \
                     : "+r"(n)                                                                                                            \
                     :                                                                                                                    \
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm14", "xmm15"); \
  }
PEAK(base_f32, "mulps", "addps")
PEAK(base_f64, "mulpd", "addpd")
PEAK(base_i8, "pmaddwd", "paddd")
#undef PEAK
#undef PAIR
#undef CLEAR
constexpr Peak kBaseF32 = {base_f32, 6 * 4 * 2}, kBaseF64 = {base_f64, 6 * 2 * 2}, kBaseI8 = {base_i8, 6 * 8 * 2};
#else
template <class T>
void base(int64_t n) {
  T a[32] = {};
  for (int64_t k = 0; k < n; k++) {
    for (T &x : a) x = x * T(0.999) + T(0.5);
    __asm__ volatile("" ::"r"(a) : "memory");
  }
}
constexpr Peak kBaseF32 = {base<float>, 32 * 2}, kBaseF64 = {base<double>, 32 * 2}, kBaseI8 = kBaseF32;
#endif

void copy_plain(char *to, const char *from, int64_t n) {  // in pieces that memcpy does not stream past the caches
  for (int64_t i = 0; i < n; i += 4096) memcpy(to + i, from + i, 4096);
}

}  // namespace
}  // namespace rlx

#if defined(RLX_X86)
RLX_TARGET_AVX2_BEGIN
namespace rlx {
namespace {

#define EACH(f, op) f(0, op) f(1, op) f(2, op) f(3, op) f(4, op) f(5, op) f(6, op) f(7, op) f(8, op) f(9, op) f(10, op) f(11, op)
#define CLEAR(r, op) "vxorps %%ymm" #r ",%%ymm" #r ",%%ymm" #r "\n\t"
#define CHAIN(r, op) op " %%ymm14,%%ymm15,%%ymm" #r "\n\t"
#define PEAK(name, body)                                                                                                                   \
  void name(int64_t n) {                                                                                                                   \
    __asm__ volatile(EACH(CLEAR, ) CLEAR(13, ) CLEAR(14, ) CLEAR(15, ) "1:\n\t" body "dec %0\n\tjnz 1b\n\tvzeroupper"                      \
                     : "+r"(n)                                                                                                             \
                     :                                                                                                                     \
                     : "cc", "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10", "ymm11", "ymm13", "ymm14", \
                       "ymm15");                                                                                                           \
  }
PEAK(avx2_f32, EACH(CHAIN, "vfmadd231ps"))
PEAK(avx2_f64, EACH(CHAIN, "vfmadd231pd"))
#if defined(__clang__) || __GNUC__ >= 11  // whose assemblers know it
#define RLX_AVX_VNNI 1
PEAK(avx2_i8_vnni, EACH(CHAIN, "%{vex%} vpdpbusd"))
#endif
// Bytes to sums of pairs in i16, those to sums of pairs in i32, and these onto the sum.
#define SUM(r, t) "vpmaddubsw %%ymm14,%%ymm15,%%ymm" #t "\n\tvpmaddwd %%ymm13,%%ymm" #t ",%%ymm" #t "\n\tvpaddd %%ymm" #t ",%%ymm" #r ",%%ymm" #r "\n\t"
PEAK(avx2_i8, SUM(0, 6) SUM(1, 7) SUM(2, 8) SUM(3, 9) SUM(4, 10) SUM(5, 11))
#undef SUM
#undef PEAK
#undef CHAIN
#undef CLEAR
#undef EACH

#define COPY(name, put, end)                                                                                          \
  void name(char *to, const char *from, int64_t n) {                                                                  \
    for (int64_t i = 0; i < n; i += 128)                                                                              \
      __asm__ volatile(                                                                                               \
          "vmovups (%0),%%ymm0\n\tvmovups 32(%0),%%ymm1\n\tvmovups 64(%0),%%ymm2\n\tvmovups 96(%0),%%ymm3\n\t" put    \
          " %%ymm0,(%1)\n\t" put " %%ymm1,32(%1)\n\t" put " %%ymm2,64(%1)\n\t" put " %%ymm3,96(%1)"                    \
          :                                                                                                           \
          : "r"(from + i), "r"(to + i)                                                                                \
          : "memory", "ymm0", "ymm1", "ymm2", "ymm3");                                                                \
    __asm__ volatile(end "vzeroupper" ::: "memory");                                                                  \
  }
COPY(copy_avx2, "vmovaps", "")
COPY(copy_streaming, "vmovntps", "sfence\n\t")
#undef COPY

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

#define EACH(f, op) f(0, op) f(1, op) f(2, op) f(3, op) f(4, op) f(5, op) f(6, op) f(7, op) f(8, op) f(9, op) f(10, op) f(11, op) f(12, op) f(13, op) f(14, op) \
    f(15, op) f(16, op) f(17, op) f(18, op) f(19, op) f(20, op) f(21, op) f(22, op) f(23, op)
#define CLEAR(r, op) "vpxorq %%zmm" #r ",%%zmm" #r ",%%zmm" #r "\n\t"
#define CHAIN(r, op) op " %%zmm24,%%zmm25,%%zmm" #r "\n\t"
#define PEAK(name, body)                                                                                                                   \
  void name(int64_t n) {                                                                                                                   \
    __asm__ volatile(EACH(CLEAR, ) CLEAR(24, ) CLEAR(25, ) CLEAR(26, ) "1:\n\t" body "dec %0\n\tjnz 1b\n\tvzeroupper"                      \
                     : "+r"(n)                                                                                                             \
                     :                                                                                                                     \
                     : "cc", "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9", "zmm10", "zmm11", "zmm12",    \
                       "zmm13", "zmm14", "zmm15", "zmm16", "zmm17", "zmm18", "zmm19", "zmm20", "zmm21", "zmm22", "zmm23", "zmm24", "zmm25", \
                       "zmm26");                                                                                                           \
  }
PEAK(avx512_f32, EACH(CHAIN, "vfmadd231ps"))
PEAK(avx512_f64, EACH(CHAIN, "vfmadd231pd"))
PEAK(avx512_bf16, EACH(CHAIN, "vdpbf16ps"))
PEAK(avx512_i8_vnni, EACH(CHAIN, "vpdpbusd"))
#define SUM(r, t) "vpmaddubsw %%zmm24,%%zmm25,%%zmm" #t "\n\tvpmaddwd %%zmm26,%%zmm" #t ",%%zmm" #t "\n\tvpaddd %%zmm" #t ",%%zmm" #r ",%%zmm" #r "\n\t"
PEAK(avx512_i8, SUM(0, 8) SUM(1, 9) SUM(2, 10) SUM(3, 11) SUM(4, 12) SUM(5, 13) SUM(6, 14) SUM(7, 15))
#undef SUM
#undef PEAK
#undef CHAIN
#undef CLEAR
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

// copies is how a copy is done: not at all, through the caches, or past them.
enum class Copy { kNone, kCached, kStreaming };

struct Probe {
  void (*alu)(int64_t);
  double amount;  // operations, or bytes, of one repetition
  int64_t bytes;  // of the buffer of a thread; 0 for alu
  Copy copy;
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

// copy_half copies the first half of the buffer over the second.
void copy_half(const Probe *p, char *buffer) {
  const int64_t half = p->bytes / 2;
#if defined(RLX_X86)
  if (isa_runs(ISA_AVX2)) return p->copy == Copy::kStreaming ? copy_streaming(buffer + half, buffer, half) : copy_avx2(buffer + half, buffer, half);
#endif
  copy_plain(buffer + half, buffer, half);
}

void repeat(Probe *p, char *buffer) {
  if (p->alu != nullptr) return p->alu(p->reps);
  for (int64_t r = 0; r < p->reps; r++) {
    if (p->copy == Copy::kNone) read_buffer(p, buffer);
    else copy_half(p, buffer);
  }
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
void calibrate(Probe *p, char *buffer) {
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

#if defined(RLX_X86)
Peak peak_avx2(rlx_probe what) {
  switch (what) {
    case RLX_PROBE_F64: return {avx2_f64, 12 * 4 * 2};
    case RLX_PROBE_I8:
#if defined(RLX_AVX_VNNI)
      if (isa_has_avx_vnni()) return {avx2_i8_vnni, 12 * 32 * 2};
#endif
      return {avx2_i8, 6 * 32 * 2};
    default: return {avx2_f32, 12 * 8 * 2};
  }
}

Peak peak_avx512(rlx_probe what) {
  switch (what) {
    case RLX_PROBE_F64: return {avx512_f64, 24 * 8 * 2};
    case RLX_PROBE_BF16:
      if (isa_has_avx512_bf16()) return {avx512_bf16, 24 * 32 * 2};
      break;
    case RLX_PROBE_I8:
      if (isa_has_avx512_vnni()) return {avx512_i8_vnni, 24 * 64 * 2};
      return {avx512_i8, 8 * 64 * 2};
    default: break;
  }
  return {avx512_f32, 24 * 16 * 2};
}
#endif

Peak peak_of(int isa, rlx_probe what) {
#if defined(RLX_X86)
  if (isa == ISA_AVX2) return peak_avx2(what);
  if (isa == ISA_AVX512) return peak_avx512(what);
#endif
  (void)isa;
  return what == RLX_PROBE_F64 ? kBaseF64 : what == RLX_PROBE_I8 ? kBaseI8 : kBaseF32;
}

double probe_peak(rlx_probe what, int threads, double seconds) {
  const Peak peak = peak_of(isa_active(), what);
  Probe p = {};
  p.alu = peak.loop;
  p.amount = peak.amount;
  return measure(&p, threads, seconds);
}

double probe_memory(Copy copy, int threads, int64_t bytes, double seconds) {
  Probe p = {};
  p.copy = copy;
  p.bytes = bytes < 8192 ? 8192 : bytes & ~INT64_C(8191);
  p.amount = static_cast<double>(p.bytes);
  return measure(&p, threads, seconds);
}

}  // namespace

double probe_limit(rlx_probe what, int threads, int64_t bytes, double seconds) {
  switch (what) {
    case RLX_PROBE_READ: return probe_memory(Copy::kNone, threads, bytes, seconds);
    case RLX_PROBE_COPY: return probe_memory(Copy::kCached, threads, bytes, seconds);
    case RLX_PROBE_COPY_STREAMING: return probe_memory(Copy::kStreaming, threads, bytes, seconds);
    default: return probe_peak(what, threads, seconds);
  }
}

}  // namespace rlx
