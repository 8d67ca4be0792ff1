#include "../core/rlx_begin.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "isa.h"
#include "pool.h"

namespace rlx {
namespace {

constexpr int kMaxWorkers = 255;
constexpr int64_t kIdleSpinNs = 4000;   // a worker between two jobs of one run
constexpr int64_t kJoinSpinNs = 10000;  // a caller whose workers are at their last chunk
constexpr size_t kStackBytes = 2u << 20;

// Lives on the stack of the caller of parallel. A worker touches it only between ++inside, under the pool's lock while the job is
// listed, and --inside; the caller leaves only after it took the job off the list and saw inside at zero.
struct Job {
  ParallelFn fn;
  void *ctx;
  int64_t units, grain;
  const volatile uint32_t *cancel;
  int max_threads;
  int slots;  // handed out so far; under the lock
  Job *next, *prev;
  std::atomic<int64_t> taken;
  std::atomic<int> inside;
};

bool cancelled(const volatile uint32_t *word) { return word != nullptr && __atomic_load_n(word, __ATOMIC_RELAXED) != 0; }

int64_t now_ns() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

// A 32-bit word to sleep on: a futex where there is one. wake is preceded by a change of the word.
struct Gate {
  std::atomic<uint32_t> word{0};
  std::atomic<int> sleepers{0};
#if !defined(__linux__)
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
#endif

  void wait(uint32_t seen) {
    sleepers.fetch_add(1, std::memory_order_seq_cst);
#if defined(__linux__)
    syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
#else
    pthread_mutex_lock(&lock);
    while (word.load(std::memory_order_seq_cst) == seen) pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
#endif
    sleepers.fetch_sub(1, std::memory_order_relaxed);
  }

  // A sleeper not yet counted here finds the word changed and does not sleep.
  void change_and_wake(int count) {
    word.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) == 0) return;
#if defined(__linux__)
    syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
#else
    (void)count;
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&lock);
#endif
  }

  // Spins for at most ns, then sleeps, while the word is seen.
  void spin_then_wait(uint32_t seen, int64_t ns) {
    const int64_t end = now_ns() + ns;
    do {
      for (int i = 0; i < 16; i++) {
        if (word.load(std::memory_order_acquire) != seen) return;
        cpu_relax();
      }
    } while (now_ns() < end);
    wait(seen);
  }
};

}  // namespace

struct Pool {
  pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;  // references, start and join
  int refs = 0;
  std::atomic<int> wanted{0}, started{0};
  pthread_t threads[kMaxWorkers];

  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // the list of open jobs
  Job *jobs = nullptr;
  std::atomic<bool> stop{false};
  Gate work;  // a job was listed
  Gate done;  // a job lost its last worker
};

namespace {

Pool the_pool;

void run_chunks(Job *job, int slot) {
  while (!cancelled(job->cancel)) {
    const int64_t begin = job->taken.fetch_add(job->grain, std::memory_order_relaxed);
    if (begin >= job->units) return;
    const int64_t end = job->units - begin < job->grain ? job->units : begin + job->grain;
    job->fn(job->ctx, begin, end, slot);
  }
}

// Joins the open job that has the fewest threads, so that concurrent callers share the workers.
Job *join_job(Pool *p, int *slot) {
  Job *best = nullptr;
  pthread_mutex_lock(&p->lock);
  for (Job *j = p->jobs; j != nullptr; j = j->next) {
    if (j->slots >= j->max_threads || j->taken.load(std::memory_order_relaxed) >= j->units || cancelled(j->cancel)) continue;
    if (best == nullptr || j->slots < best->slots) best = j;
  }
  if (best != nullptr) {
    *slot = best->slots++;
    best->inside.fetch_add(1, std::memory_order_relaxed);
  }
  pthread_mutex_unlock(&p->lock);
  return best;
}

void *worker(void *arg) {
  Pool *p = static_cast<Pool *>(arg);
  for (;;) {
    const uint32_t seen = p->work.word.load(std::memory_order_acquire);
    if (p->stop.load(std::memory_order_acquire)) return nullptr;
    int slot;
    Job *job = join_job(p, &slot);
    if (job == nullptr) {
      p->work.spin_then_wait(seen, kIdleSpinNs);
      continue;
    }
    run_chunks(job, slot);
    // The last touch of the job; its caller sleeps on a word of the pool, which outlives it.
    if (job->inside.fetch_sub(1, std::memory_order_acq_rel) == 1) p->done.change_and_wake(INT32_MAX);
  }
}

// Starts the missing workers with every signal blocked: signals belong to the threads of the program.
void start_workers(Pool *p) {
  pthread_mutex_lock(&p->life);
  const int want = p->wanted.load(std::memory_order_relaxed);
  int n = p->started.load(std::memory_order_relaxed);
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_attr_t attr;
  const bool have_attr = pthread_attr_init(&attr) == 0;
  if (have_attr) pthread_attr_setstacksize(&attr, kStackBytes);
  while (n < want && pthread_create(&p->threads[n], have_attr ? &attr : nullptr, worker, p) == 0) n++;
  if (n < want) p->wanted.store(n, std::memory_order_relaxed);  // the system gives no more: do not ask at every job
  if (have_attr) pthread_attr_destroy(&attr);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  p->started.store(n, std::memory_order_release);
  pthread_mutex_unlock(&p->life);
}

void run_inline(int64_t units, int64_t grain, ParallelFn fn, void *ctx, const volatile uint32_t *cancel) {
  if (units <= grain) {
    if (!cancelled(cancel)) fn(ctx, 0, units, 0);
    return;
  }
  for (int64_t begin = 0; begin < units && !cancelled(cancel); begin += grain)
    fn(ctx, begin, units - begin < grain ? units : begin + grain, 0);
}

}  // namespace

Pool *pool_acquire(int max_threads) {
  Pool *p = &the_pool;
  int want = max_threads - 1;
  if (want > kMaxWorkers) want = kMaxWorkers;
  pthread_mutex_lock(&p->life);
  p->refs++;
  if (want > p->wanted.load(std::memory_order_relaxed)) p->wanted.store(want, std::memory_order_relaxed);
  pthread_mutex_unlock(&p->life);
  return p;
}

void pool_release(Pool *p) {
  if (p == nullptr) return;
  pthread_mutex_lock(&p->life);
  if (p->refs > 0 && --p->refs == 0) {
    p->stop.store(true, std::memory_order_release);
    p->work.change_and_wake(INT32_MAX);
    const int n = p->started.load(std::memory_order_relaxed);
    for (int i = 0; i < n; i++) pthread_join(p->threads[i], nullptr);
    p->started.store(0, std::memory_order_relaxed);
    p->wanted.store(0, std::memory_order_relaxed);
    p->stop.store(false, std::memory_order_release);
  }
  pthread_mutex_unlock(&p->life);
}

int pool_workers(Pool *p) { return p == nullptr ? 0 : p->started.load(std::memory_order_acquire); }

void parallel(Pool *p, int max_threads, int64_t units, int64_t grain, ParallelFn fn, void *ctx, const volatile uint32_t *cancel) {
  if (units <= 0) return;
  if (grain < 1) grain = 1;
  if (p == nullptr || max_threads <= 1 || units <= grain || p->wanted.load(std::memory_order_relaxed) == 0) {
    run_inline(units, grain, fn, ctx, cancel);
    return;
  }
  if (p->started.load(std::memory_order_acquire) < p->wanted.load(std::memory_order_relaxed)) start_workers(p);

  Job job;
  job.fn = fn;
  job.ctx = ctx;
  job.units = units;
  job.grain = grain;
  job.cancel = cancel;
  job.max_threads = max_threads;
  job.slots = 1;
  job.prev = nullptr;
  job.taken.store(0, std::memory_order_relaxed);
  job.inside.store(0, std::memory_order_relaxed);

  pthread_mutex_lock(&p->lock);
  job.next = p->jobs;
  if (job.next != nullptr) job.next->prev = &job;
  p->jobs = &job;
  pthread_mutex_unlock(&p->lock);
  const int64_t others = (units - 1) / grain;  // chunks beyond the caller's first
  p->work.change_and_wake(static_cast<int>(others < max_threads - 1 ? others : max_threads - 1));

  run_chunks(&job, 0);

  pthread_mutex_lock(&p->lock);
  if (job.prev != nullptr) job.prev->next = job.next; else p->jobs = job.next;
  if (job.next != nullptr) job.next->prev = job.prev;
  pthread_mutex_unlock(&p->lock);
  for (;;) {
    const uint32_t seen = p->done.word.load(std::memory_order_acquire);
    if (job.inside.load(std::memory_order_acquire) == 0) return;
    p->done.spin_then_wait(seen, kJoinSpinNs);
  }
}

}  // namespace rlx
