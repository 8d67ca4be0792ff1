// The thread pool of the process. Workers start at the first job that wants them and are joined at the last release.
#pragma once

#include <cstdint>

namespace rlx {

struct Pool;

// Work on the units [begin, end). slot is distinct among the threads that are inside one job at a time, and below its max_threads.
typedef void (*ParallelFn)(void *ctx, int64_t begin, int64_t end, int slot);

// A reference to the pool, which grows to max_threads - 1 workers (1 or less: none). Never null.
Pool *pool_acquire(int max_threads);

// Gives a reference back; the last one joins the workers. No job of this reference may be running.
void pool_release(Pool *pool);

// Workers alive now: 0 before the first job that wanted one and after the last release.
int pool_workers(Pool *pool);

// Runs fn over [0, units) in chunks of grain, on the caller as slot 0 and on workers that are idle. Chunks are handed out in ascending
// order and run at the same time. Returns when every chunk handed out has been run; it waits for no worker that took none.
// May be called from any thread, from several at once, and from inside fn. cancel (may be null) is read before each chunk: non-zero
// hands out no more. A null pool, max_threads <= 1 or units <= grain run on the caller without any synchronisation.
void parallel(Pool *pool, int max_threads, int64_t units, int64_t grain, ParallelFn fn, void *ctx, const volatile uint32_t *cancel);

}  // namespace rlx
