// Package batch gathers the requests of many goroutines into batches and runs them on one program.
//
//	b, err := batch.New(prog, batch.Options{MaxBatch: 32, MaxDelay: 2 * time.Millisecond})
//	defer b.Close(ctx)
//	out, err := b.Do(ctx, feed) // from any goroutine: the rows of this feed, as if it had run alone
//
// A request is a feed of one or more rows: its inputs have the same length along the axis of their batch dim. Requests whose other dims
// and shared inputs are equal form a group, and a batch holds requests of one group, oldest first. With d = MaxDelay, a batch starts at the
// first time t at which fewer than Workers batches run and
//
//	rows that wait in the group >= MaxBatch, or t - (arrival of the group's oldest request) >= d, or Close was called.
//
// So a request waits at most d and the runs of the batches before it; with d = 0 a batch starts whenever a worker is idle, and holds what
// came while none was. On the cpu and ref backends a row of a batch has the bits of its own run.
package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
)

var (
	// ErrQueueFull is returned, at once, for a request that finds QueueSize requests waiting.
	ErrQueueFull = errors.New("batch: the queue is full")

	// ErrClosed is returned for requests after Close, and for those that Close gave up when its context ended.
	ErrClosed = errors.New("batch: batcher is closed")
)

// Options say how requests are gathered. Zero values are the defaults.
type Options struct {
	MaxBatch  int           // rows of a batch; 32
	MaxDelay  time.Duration // how long a request waits for others while a worker is idle; 0: not at all
	QueueSize int           // requests that wait; 1024
	Workers   int           // batches that run at a time; 1, which is best where one run uses all threads

	// Sizes are the numbers of rows that batches have: one between two sizes is filled up with copies of its last row, so that a program is
	// compiled for few shapes. nil: the powers of two below MaxBatch, and MaxBatch. Empty, not nil: batches are never filled up.
	Sizes []int

	// Axes is the axis of the batch dim for inputs and outputs by name; -1 for an input that is shared: requests with other values of it
	// are in other groups. By default the batch dim is the symbol that is the first dim of the inputs, wherever it stands; inputs without
	// it are shared if their first dim is a number, and an error if it is another symbol.
	Axes map[string]int

	// Pad puts requests of different length into one batch; without it they are in different groups.
	Pad *Padding

	// Isolate runs the requests of a failed batch again, each alone, so that a value which fails a run, such as an index out of range, fails
	// its own request only. Without it all requests of the batch get the error.
	Isolate bool
}

// Padding makes the inputs of a request longer along one symbolic dim, and cuts its outputs back to its own length. Whether padding
// changes the valid part is a property of the model: its attention must mask what is padded. See docs/serving.md.
type Padding struct {
	Dim     string                 // the symbol: "sequence_length"
	Buckets []int                  // lengths, ascending: a request gets the next one; beyond the last it keeps its own length
	Values  map[string]*rlx.Tensor // for each input that has the dim, a scalar of its dtype: "attention_mask": rlx.New([]int64{0})
}

// Func runs a feed: the method Run of a program, or something around it. It must be safe for as many calls at a time as there are Workers,
// and keep neither the feed nor what it returns.
type Func func(ctx context.Context, feed rlx.Feed) (rlx.Feed, error)

// Port is an input or output of a Func.
type Port = rlx.Port

// Batcher runs requests in batches. It is safe for concurrent use.
type Batcher struct {
	run     Func
	sig     *signature
	opt     Options
	wake    chan struct{} // tells dispatch that something changed
	stopped chan struct{} // closed when dispatch has ended
	workers sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	aborted bool // Close gave up
	groups  map[string]*group
	waiting int
	runs    map[*run]bool
	seq     uint64
	stats   Stats
}

// New is a batcher over prog, which must stay open until Close returns. The error says which input or output cannot be batched, or which
// option has no legal value (*rlx.OptionError).
func New(prog *rlx.Program, opt Options) (*Batcher, error) {
	in, out := prog.Ports()
	return NewFunc(func(ctx context.Context, feed rlx.Feed) (rlx.Feed, error) { return prog.Run(ctx, feed) }, in, out, opt)
}

// NewFunc is a batcher over f, which takes the inputs and gives the outputs.
func NewFunc(f Func, inputs, outputs []Port, opt Options) (*Batcher, error) {
	if err := opt.complete(); err != nil {
		return nil, err
	}
	sig, err := newSignature(inputs, outputs, &opt)
	if err != nil {
		return nil, err
	}
	b := &Batcher{run: f, sig: sig, opt: opt, wake: make(chan struct{}, 1), stopped: make(chan struct{}),
		groups: map[string]*group{}, runs: map[*run]bool{}}
	b.stats.Wait = NewHistogram()
	go b.dispatch()
	return b, nil
}

// complete puts defaults in place of zero values.
func (o *Options) complete() error {
	for _, f := range []struct {
		name  string
		value *int
		def   int
	}{{"MaxBatch", &o.MaxBatch, 32}, {"QueueSize", &o.QueueSize, 1024}, {"Workers", &o.Workers, 1}} {
		if *f.value == 0 {
			*f.value = f.def
		}
		if *f.value < 0 {
			return &rlx.OptionError{Option: "batch." + f.name, Got: fmt.Sprint(*f.value), Want: "a positive number"}
		}
	}
	if o.MaxDelay < 0 {
		return &rlx.OptionError{Option: "batch.MaxDelay", Got: o.MaxDelay.String(), Want: "a duration from 0"}
	}
	if o.Sizes == nil {
		for n := 1; n < o.MaxBatch; n *= 2 {
			o.Sizes = append(o.Sizes, n)
		}
		o.Sizes = append(o.Sizes, o.MaxBatch)
	}
	o.Sizes = slices.Sorted(slices.Values(o.Sizes))
	if n := len(o.Sizes); n > 0 && (o.Sizes[0] < 1 || o.Sizes[n-1] > o.MaxBatch) {
		return &rlx.OptionError{Option: "batch.Sizes", Got: fmt.Sprint(o.Sizes), Want: fmt.Sprintf("numbers from 1 to MaxBatch, %d", o.MaxBatch)}
	}
	return nil
}

// Do runs the rows of feed in some batch and returns their part of its outputs. A feed that does not fit the program gets its own
// *rlx.FeedError. When ctx ends the request leaves the queue, or its batch, which is cancelled when nobody waits for it any more, and Do
// returns ctx.Err(). The tensors of feed are free again when Do returns.
func (b *Batcher) Do(ctx context.Context, feed rlx.Feed) (rlx.Feed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := b.sig.request(feed, b.opt.MaxBatch)
	if err != nil {
		b.mu.Lock()
		b.stats.Invalid++
		b.mu.Unlock()
		return nil, err
	}
	if err := b.admit(r); err != nil {
		return nil, err
	}
	var o outcome
	select {
	case o = <-r.done:
	case <-ctx.Done():
		if b.abandon(r) {
			return nil, ctx.Err()
		}
		o = <-r.done
	}
	if o.err != nil {
		return nil, o.err
	}
	return b.sig.cut(o.out, r, o.start)
}

// Close takes no more requests, waits until those accepted are answered, and ends the batcher's goroutines. When ctx ends first, what waits
// or runs is given up with ErrClosed, and Close returns ctx.Err(). It is idempotent; every call waits.
func (b *Batcher) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.notify()
	select {
	case <-b.stopped:
		return nil
	case <-ctx.Done():
	}
	if isClosed(b.stopped) { // both
		return nil
	}
	b.abort()
	return ctx.Err()
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
