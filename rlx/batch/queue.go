package batch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
)

// request is a feed that waits or runs. Fields below the line are guarded by Batcher.mu.
type request struct {
	feed   rlx.Feed
	rows   int64
	values []int64 // of the signature's symbols
	key    string  // of its group
	done   chan outcome

	at        time.Time // of its arrival
	seq       uint64    // order of arrival
	run       *run      // nil while it waits
	gone      bool      // its caller left
	delivered bool
}

// outcome is what a request gets: its rows are those from start of a batch's outputs.
type outcome struct {
	out   rlx.Feed
	start int64
	err   error
}

// group is the requests that may share a batch, in order of arrival; never empty.
type group struct {
	key      string
	requests []*request
	rows     int64
}

// run is a batch under way.
type run struct {
	requests []*request
	ctx      context.Context
	cancel   context.CancelFunc
	gathered chan struct{} // closed when the feeds of its requests are no longer read
	live     int           // requests whose callers wait
}

func newRun(parent context.Context, requests []*request) *run {
	r := &run{requests: requests, live: len(requests), gathered: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(parent)
	for _, q := range requests {
		q.run = r
	}
	return r
}

// admit puts a request into its group.
func (b *Batcher) admit(r *request) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return ErrClosed
	case b.waiting >= b.opt.QueueSize:
		b.stats.Rejected++
		return ErrQueueFull
	}
	g := b.groups[r.key]
	if g == nil {
		g = &group{key: r.key}
		b.groups[r.key] = g
	}
	b.seq++
	r.at, r.seq = time.Now(), b.seq
	g.requests = append(g.requests, r)
	g.rows += r.rows
	b.waiting++
	b.stats.Requests++
	b.notify()
	return nil
}

// notify wakes dispatch.
func (b *Batcher) notify() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// abandon takes back a request whose caller leaves; false if its outcome is there already. When it returns nothing reads the feed.
func (b *Batcher) abandon(r *request) bool {
	b.mu.Lock()
	if r.delivered {
		b.mu.Unlock()
		return false
	}
	r.gone = true
	b.stats.Cancelled++
	if r.run == nil {
		g := b.groups[r.key]
		g.requests = slices.DeleteFunc(g.requests, func(o *request) bool { return o == r })
		b.shrinkLocked(g, 1, r.rows)
		b.notify() // Close may wait for it
		b.mu.Unlock()
		return true
	}
	run := r.run
	if run.live--; run.live == 0 {
		run.cancel()
	}
	b.mu.Unlock()
	<-run.gathered
	return true
}

// shrinkLocked counts requests that left g.
func (b *Batcher) shrinkLocked(g *group, requests int, rows int64) {
	b.waiting -= requests
	if g.rows -= rows; len(g.requests) == 0 {
		delete(b.groups, g.key)
	}
}

// dispatch starts batches until the batcher is closed and has nothing left.
func (b *Batcher) dispatch() {
	defer close(b.stopped)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next, over := b.start()
		if over {
			b.workers.Wait()
			return
		}
		var alarm <-chan time.Time
		if !next.IsZero() {
			timer.Reset(time.Until(next))
			alarm = timer.C
		}
		select {
		case <-b.wake:
		case <-alarm:
		}
	}
}

// start starts what is due, and tells when the next batch will be; zero if that takes more than time.
func (b *Batcher) start() (next time.Time, over bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.runs) < b.opt.Workers {
		g, due := b.oldestLocked()
		if g == nil {
			return due, b.closed && len(b.runs) == 0
		}
		b.launchLocked(g)
	}
	return time.Time{}, false
}

// oldestLocked is the group that is due and has the oldest request, or nil, and the time when a group will be due.
func (b *Batcher) oldestLocked() (first *group, next time.Time) {
	now := time.Now()
	for _, g := range b.groups {
		due := g.requests[0].at.Add(b.opt.MaxDelay)
		if b.closed || g.rows >= int64(b.opt.MaxBatch) || !due.After(now) {
			if first == nil || g.requests[0].seq < first.requests[0].seq {
				first = g
			}
		} else if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return first, next
}

// launchLocked starts a batch of as many of g's oldest requests as fit.
func (b *Batcher) launchLocked(g *group) {
	n, rows := 0, int64(0)
	for n < len(g.requests) && rows+g.requests[n].rows <= int64(b.opt.MaxBatch) {
		rows += g.requests[n].rows
		n++
	}
	r := newRun(context.Background(), slices.Clone(g.requests[:n]))
	g.requests = slices.Delete(g.requests, 0, n)
	b.shrinkLocked(g, n, rows)
	b.runs[r] = true
	now := time.Now()
	for _, q := range r.requests {
		b.stats.Wait.Observe(now.Sub(q.at))
	}
	b.workers.Go(func() { b.work(r) })
}

// work runs a batch and, where it fails and the options say so, its requests one by one.
func (b *Batcher) work(r *run) {
	defer r.cancel()
	out, err := b.execute(r)
	if err == nil || !b.opt.Isolate || len(r.requests) == 1 || r.ctx.Err() != nil {
		b.deliver(r, out, err)
	} else {
		for _, q := range r.requests {
			if alone := b.again(r, q); alone != nil {
				out, err := b.execute(alone)
				b.deliver(alone, out, err)
				alone.cancel()
			}
		}
	}
	b.mu.Lock()
	delete(b.runs, r)
	b.mu.Unlock()
	b.notify()
}

// again takes a request out of the failed batch r for a run of its own; nil if nobody waits for it.
func (b *Batcher) again(r *run, q *request) *run {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.gone {
		return nil
	}
	return newRun(r.ctx, []*request{q}) // Close gives up the whole
}

// execute gathers the feeds of a batch, runs them, and checks what came out.
func (b *Batcher) execute(r *run) (out rlx.Feed, err error) {
	gathering := true
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("batch: the run panicked: %v", p)
		}
		if gathering {
			close(r.gathered)
		}
	}()
	size := b.size(r)
	feed, err := b.sig.gather(r.requests, size)
	gathering = false
	close(r.gathered)
	if err != nil {
		return nil, err
	}
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	if out, err = b.run(r.ctx, feed); err != nil {
		return nil, err
	}
	return out, b.sig.check(out, r.requests[0], size)
}

// size counts a batch, and is the number of rows that it is run with.
func (b *Batcher) size(r *run) int64 {
	rows := int64(0)
	for _, q := range r.requests {
		rows += q.rows
	}
	size := rows
	if i, _ := slices.BinarySearch(b.opt.Sizes, int(rows)); rows > 0 && i < len(b.opt.Sizes) {
		size = int64(b.opt.Sizes[i])
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Batches++
	b.stats.Rows += uint64(rows)
	b.stats.FilledRows += uint64(size - rows)
	return size
}

// deliver gives each request of a batch its outcome.
func (b *Batcher) deliver(r *run, out rlx.Feed, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil && b.aborted && r.ctx.Err() != nil {
		err = ErrClosed
	}
	start := int64(0)
	for _, q := range r.requests {
		b.answerLocked(q, outcome{out, start, err})
		start += q.rows
	}
}

func (b *Batcher) answerLocked(q *request, o outcome) {
	if q.gone {
		return
	}
	if o.err != nil {
		b.stats.Failed++
	} else {
		b.stats.Completed++
	}
	q.delivered = true
	q.done <- o
}

// abort gives up what waits and what runs.
func (b *Batcher) abort() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.aborted = true
	for key, g := range b.groups {
		for _, q := range g.requests {
			b.answerLocked(q, outcome{err: ErrClosed})
		}
		b.waiting -= len(g.requests)
		delete(b.groups, key)
	}
	for r := range b.runs {
		r.cancel()
	}
	b.notify()
}
