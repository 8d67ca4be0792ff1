package batch

import (
	"slices"
	"time"
)

// Stats counts what a batcher did. Requests = Completed + Failed + Cancelled + those that wait or run.
type Stats struct {
	Requests  uint64 // accepted
	Completed uint64
	Failed    uint64 // got the error of their run
	Cancelled uint64 // their context ended
	Rejected  uint64 // ErrQueueFull
	Invalid   uint64 // did not fit the program

	Batches    uint64 // runs, those of Isolate too
	Rows       uint64 // of all batches
	FilledRows uint64 // copies that filled batches up

	Waiting int // requests in the queue
	Running int // batches

	Wait Histogram // of requests, from their arrival to the start of their batch
}

// MeanBatch is the mean number of rows of a batch.
func (s *Stats) MeanBatch() float64 {
	if s.Batches == 0 {
		return 0
	}
	return float64(s.Rows) / float64(s.Batches)
}

// Stats reads the counters.
func (b *Batcher) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Waiting, s.Running = b.waiting, len(b.runs)
	s.Wait.Counts = slices.Clone(s.Wait.Counts)
	return s
}

// Histogram counts durations. Counts[i] is of those up to Bounds[i] and above Bounds[i-1]; the last one, of those above all bounds. It is
// not safe for concurrent use.
type Histogram struct {
	Bounds []time.Duration
	Counts []uint64
	Count  uint64
	Sum    time.Duration
}

// bounds run from 100 microseconds to 10 seconds: 1, 2.5 and 5 of each decade.
var bounds = []time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// NewHistogram is an empty histogram with bounds from 100 microseconds to 10 seconds.
func NewHistogram() Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

// Observe counts d.
func (h *Histogram) Observe(d time.Duration) {
	i, _ := slices.BinarySearch(h.Bounds, d)
	h.Counts[i]++
	h.Count++
	h.Sum += d
}
