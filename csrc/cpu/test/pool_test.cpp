#include "../core/rlx_begin.h"

// Tests the thread pool: every unit runs once, slots are distinct, callers and nested jobs run side by side, cancellation stops the hand-out,
// idle workers use no CPU time and none is left after the last release. Meant to be built with -fsanitize=thread too.
//   g++ -std=c++17 -O2 pool_test.cpp ../core/pool.cpp -pthread

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../core/pool.h"

using namespace rlx;

namespace {

std::atomic<int> failures{0};
void expect(bool ok, const char *what) {
  if (ok) return;
  failures.fetch_add(1);
  printf("FAIL %s\n", what);
}

constexpr int kMaxUnits = 1000, kMaxSlots = 8;
struct Count {
  int ran[kMaxUnits];                // plain: a unit that ran twice at once is a data race
  std::atomic<int> busy[kMaxSlots];  // threads inside with this slot
  int used[kMaxSlots];               // plain: slots are exclusive
  int max_threads;
  int64_t grain, units;
  Pool *pool;
};

void reset(Count *c, Pool *pool, int max_threads, int64_t units, int64_t grain) {
  memset(c->ran, 0, sizeof c->ran);
  memset(c->used, 0, sizeof c->used);
  for (auto &b : c->busy) b.store(0);
  c->max_threads = max_threads;
  c->units = units;
  c->grain = grain;
  c->pool = pool;
}

void count(void *ctx, int64_t begin, int64_t end, int slot) {
  Count *c = static_cast<Count *>(ctx);
  expect(slot >= 0 && slot < (c->max_threads < 1 ? 1 : c->max_threads), "slot in range");
  expect(c->busy[slot].fetch_add(1) == 0, "slot used by two threads at once");
  expect(begin >= 0 && begin < end && end <= c->units && end - begin <= (c->grain < 1 ? 1 : c->grain), "chunk in range");
  c->used[slot]++;
  for (int64_t i = begin; i < end; i++) c->ran[i]++;
  c->busy[slot].fetch_sub(1);
}

void check(const Count *c) {
  for (int64_t i = 0; i < c->units; i++) expect(c->ran[i] == 1, "unit ran once");
}

void all_sizes(Pool *pool) {
  static Count c;
  for (int threads = 0; threads <= 6; threads++)
    for (int64_t units = 0; units <= 40; units++)
      for (int64_t grain = 0; grain <= 9; grain += 3) {
        reset(&c, pool, threads, units, grain);
        parallel(pool, threads, units, grain, count, &c, nullptr);
        check(&c);
      }
  reset(&c, nullptr, 4, 100, 7);
  parallel(nullptr, 4, 100, 7, count, &c, nullptr);
  check(&c);
}

void inner_job(void *ctx, int64_t begin, int64_t end, int slot) {
  Count *c = static_cast<Count *>(ctx);
  (void)slot;
  for (int64_t i = begin; i < end; i++) {
    Count mine;
    reset(&mine, c->pool, 3, 50, 4);
    parallel(c->pool, 3, 50, 4, count, &mine, nullptr);
    check(&mine);
    c->ran[i]++;
  }
}

void *caller(void *arg) {
  Pool *pool = static_cast<Pool *>(arg);
  Count c;
  for (int round = 0; round < 300; round++) {
    reset(&c, pool, 1 + round % 5, 1 + round % 90, 1 + round % 4);
    parallel(pool, c.max_threads, c.units, c.grain, count, &c, nullptr);
    check(&c);
    if (round % 10 == 0) {
      reset(&c, pool, 4, 12, 1);
      parallel(pool, 4, 12, 1, inner_job, &c, nullptr);
      check(&c);
    }
  }
  return nullptr;
}

void many_callers(Pool *pool) {
  pthread_t t[5];
  for (auto &x : t) pthread_create(&x, nullptr, caller, pool);
  for (auto &x : t) pthread_join(x, nullptr);
}

// Two jobs at once on a pool of one worker: the second caller must not wait for the worker, which is inside the first job until told.
std::atomic<int> hold{0}, entered{0};
void held(void *, int64_t begin, int64_t, int) {
  entered.fetch_add(1);
  if (begin < 2)
    while (hold.load() != 0) usleep(50);
}
void *hold_caller(void *arg) {
  parallel(static_cast<Pool *>(arg), 2, 2, 1, held, nullptr, nullptr);
  return nullptr;
}
void busy_worker(Pool *pool) {
  hold.store(1);
  entered.store(0);
  pthread_t t;
  pthread_create(&t, nullptr, hold_caller, pool);
  for (int i = 0; entered.load() < 2 && i < 100000; i++) usleep(50);
  expect(entered.load() == 2, "worker joined the first job");
  Count c;
  reset(&c, pool, 2, 100, 1);
  parallel(pool, 2, 100, 1, count, &c, nullptr);
  check(&c);
  expect(c.used[0] == 100, "caller ran all of its job alone");
  hold.store(0);
  pthread_join(t, nullptr);
}

struct Cancel {
  uint32_t word;
  std::atomic<int> ran;
};
void cancel_at_10(void *ctx, int64_t begin, int64_t, int) {
  Cancel *c = static_cast<Cancel *>(ctx);
  c->ran.fetch_add(1);
  if (begin == 10) __atomic_store_n(&c->word, 1u, __ATOMIC_RELAXED);
}
void cancellation(Pool *pool, int threads) {
  Cancel c;
  c.word = 0;
  c.ran.store(0);
  parallel(pool, threads, 1000000, 1, cancel_at_10, &c, &c.word);
  expect(c.ran.load() >= 11 && c.ran.load() < 1000000, "cancelled job stopped");
  const int before = c.ran.load();
  parallel(pool, threads, 5, 1, cancel_at_10, &c, &c.word);
  parallel(pool, threads, 5, 10, cancel_at_10, &c, &c.word);
  expect(c.ran.load() == before, "job cancelled before it began runs nothing");
}

std::atomic<int> unblocked{0};
void check_mask(void *, int64_t, int64_t, int slot) {
  sigset_t s;
  pthread_sigmask(SIG_BLOCK, nullptr, &s);
  if (slot != 0 && (!sigismember(&s, SIGINT) || !sigismember(&s, SIGPROF) || !sigismember(&s, SIGURG))) unblocked.fetch_add(1);
  usleep(100);
}

double cpu_seconds() {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec + 1e-6 * (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

void nothing(void *, int64_t, int64_t, int) {}

void overhead(Pool *pool) {
  struct timespec a, b;
  const int n = 200000;
  for (int i = 0; i < n / 10; i++) parallel(pool, 2, 2, 1, nothing, nullptr, nullptr);
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int i = 0; i < n; i++) parallel(pool, 2, 2, 1, nothing, nullptr, nullptr);
  clock_gettime(CLOCK_MONOTONIC, &b);
  printf("empty job of two chunks: %.2f us\n", ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / n * 1e-3);
}

}  // namespace

int main() {
  for (int life = 0; life < 3; life++) {
    Pool *pool = pool_acquire(4), *other = pool_acquire(2);
    expect(pool == other, "one pool per process");
    expect(pool_workers(pool) == 0, "no worker before the first job");
    all_sizes(pool);
    expect(pool_workers(pool) == 3, "three workers for four threads");
    many_callers(pool);
    cancellation(pool, 1);
    cancellation(pool, 4);
    parallel(pool, 4, 100, 1, check_mask, nullptr, nullptr);
    expect(unblocked.load() == 0, "workers block signals");
    pool_release(other);
    expect(pool_workers(pool) == 3, "workers stay until the last release");
    usleep(100000);
    const double before = cpu_seconds();
    usleep(500000);
    expect(cpu_seconds() - before < 0.005, "idle workers use no CPU time");
    pool_release(pool);
    expect(pool_workers(pool) == 0, "no worker after the last release");
  }
  Pool *pool = pool_acquire(2);
  overhead(pool);
  busy_worker(pool);
  pool_release(pool);
  pool = pool_acquire(0);
  static Count c;
  reset(&c, pool, 4, 100, 1);
  parallel(pool, 4, 100, 1, count, &c, nullptr);
  check(&c);
  expect(c.used[0] == 100 && pool_workers(pool) == 0, "a pool of the caller alone");
  pool_release(pool);
  printf("pool: %d failures\n", failures.load());
  return failures.load() != 0;
}
