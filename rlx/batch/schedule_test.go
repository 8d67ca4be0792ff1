package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/batch"
)

// fake doubles its input x[n, len] and takes a set time for it.
type fake struct {
	took time.Duration
	fail func(x []float32) error

	mu    sync.Mutex
	began []time.Time
	sizes []string // shape of each run
	ended []error  // of the context, when the run ended
}

func (f *fake) run(ctx context.Context, feed rlx.Feed) (rlx.Feed, error) {
	x, err := rlx.Data[float32](feed["x"])
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.began = append(f.began, time.Now())
	f.sizes = append(f.sizes, fmt.Sprint(feed["x"].Shape()))
	f.mu.Unlock()
	select {
	case <-time.After(f.took):
	case <-ctx.Done():
	}
	f.mu.Lock()
	f.ended = append(f.ended, ctx.Err())
	f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.fail != nil {
		if err := f.fail(x); err != nil {
			return nil, err
		}
	}
	y := make([]float32, len(x))
	for i := range x {
		y[i] = 2 * x[i]
	}
	s := feed["x"].Shape()
	return rlx.Feed{"y": rlx.New(y, int(s[0]), int(s[1]))}, nil
}

func ports(dims ...any) (in, out []batch.Port) {
	g := rlx.NewGraph("fake")
	t := g.Input("x", rlx.F32, rlx.Shape(dims...)).Type()
	return []batch.Port{{Name: "x", Type: t}}, []batch.Port{{Name: "y", Type: t}}
}

// start is a batcher over f with batches that are not filled up, unless opt says so, and closes it.
func (f *fake) start(t *testing.T, opt batch.Options) *batch.Batcher {
	t.Helper()
	if opt.Sizes == nil {
		opt.Sizes = []int{}
	}
	in, out := ports("n", "len")
	b, err := batch.NewFunc(f.run, in, out, opt)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func shut(t *testing.T, b *batch.Batcher) {
	t.Helper()
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func feedOf(rows, length int, v float32) rlx.Feed {
	return rlx.Feed{"x": rlx.New(slices.Repeat([]float32{v}, rows*length), rows, length)}
}

// answer is what Do gave, and when.
type answer struct {
	out rlx.Feed
	err error
	at  time.Time
}

func ask(ctx context.Context, b *batch.Batcher, feed rlx.Feed) chan answer {
	c := make(chan answer, 1)
	go func() {
		out, err := b.Do(ctx, feed)
		c <- answer{out, err, time.Now()}
	}()
	return c
}

func want(t *testing.T, c chan answer, rows, length int, v float32) time.Time {
	t.Helper()
	a := <-c
	if a.err != nil {
		t.Error(a.err)
		return a.at
	}
	y, err := rlx.Data[float32](a.out["y"])
	if err != nil || !slices.Equal(y, slices.Repeat([]float32{2 * v}, rows*length)) || !slices.Equal(a.out["y"].Shape(), []int64{int64(rows), int64(length)}) {
		t.Errorf("got %v (%v), expected %d x %d of %g", a.out["y"], err, rows, length, 2*v)
	}
	return a.at
}

func wantError(t *testing.T, c chan answer, err error) {
	t.Helper()
	if a := <-c; !errors.Is(a.err, err) || a.out != nil {
		t.Errorf("got %v, %v, expected %v", a.out, a.err, err)
	}
}

// A batch starts MaxDelay after its oldest request, or when it is full, or when a worker is idle and MaxDelay is 0.
func TestStart(t *testing.T) {
	ctx := context.Background()
	t.Run("delay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{took: time.Second}
			b := f.start(t, batch.Options{MaxBatch: 8, MaxDelay: 10 * time.Millisecond})
			defer shut(t, b)
			t0 := time.Now()
			one := ask(ctx, b, feedOf(1, 3, 1))
			time.Sleep(4 * time.Millisecond)
			two := ask(ctx, b, feedOf(2, 3, 5))
			if at := want(t, one, 1, 3, 1); at.Sub(t0) != 1010*time.Millisecond {
				t.Errorf("answered after %v", at.Sub(t0))
			}
			want(t, two, 2, 3, 5)
			if !slices.Equal(f.sizes, []string{"[3 3]"}) {
				t.Errorf("batches %v", f.sizes)
			}
			s := b.Stats()
			if s.Requests != 2 || s.Completed != 2 || s.Batches != 1 || s.MeanBatch() != 3 || s.Wait.Sum != 16*time.Millisecond || s.Wait.Count != 2 {
				t.Errorf("%+v", s)
			}
		})
	})
	t.Run("full", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{took: time.Second}
			b := f.start(t, batch.Options{MaxBatch: 4, MaxDelay: time.Hour})
			defer shut(t, b)
			t0 := time.Now()
			var all []chan answer
			for i := range 5 { // 5 requests of 2 rows: two full batches, and one that waits for the hour
				all = append(all, ask(ctx, b, feedOf(2, 1, float32(i))))
				synctest.Wait()
			}
			for i, c := range all {
				want(t, c, 2, 1, float32(i))
			}
			var began []time.Duration
			for _, at := range f.began {
				began = append(began, at.Sub(t0))
			}
			if !slices.Equal(f.sizes, []string{"[4 1]", "[4 1]", "[2 1]"}) || !slices.Equal(began, []time.Duration{0, time.Second, time.Hour}) {
				t.Errorf("batches %v at %v", f.sizes, began)
			}
		})
	})
	t.Run("idle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{took: time.Second}
			b := f.start(t, batch.Options{MaxBatch: 8})
			defer shut(t, b)
			var all []chan answer
			for i := range 4 { // one runs at once, three gather
				all = append(all, ask(ctx, b, feedOf(1, 1, float32(i))))
				synctest.Wait()
			}
			if s := b.Stats(); s.Waiting != 3 || s.Running != 1 {
				t.Errorf("%+v", s)
			}
			for i, c := range all {
				want(t, c, 1, 1, float32(i))
			}
			if !slices.Equal(f.sizes, []string{"[1 1]", "[3 1]"}) {
				t.Errorf("batches %v", f.sizes)
			}
		})
	})
	t.Run("workers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{took: time.Second}
			b := f.start(t, batch.Options{MaxBatch: 1, Workers: 2})
			defer shut(t, b)
			t0 := time.Now()
			var all []chan answer
			for i := range 4 {
				all = append(all, ask(ctx, b, feedOf(1, 1, float32(i))))
				synctest.Wait()
			}
			for i, c := range all {
				if at := want(t, c, 1, 1, float32(i)); at.Sub(t0) != time.Duration(1+i/2)*time.Second {
					t.Errorf("request %d after %v", i, at.Sub(t0))
				}
			}
		})
	})
}

// Requests of other shapes are other groups; the group with the oldest request is first.
func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, f := context.Background(), &fake{took: time.Second}
		b := f.start(t, batch.Options{MaxBatch: 8, MaxDelay: time.Millisecond})
		defer shut(t, b)
		var all []chan answer
		for i, length := range []int{2, 3, 2, 3, 4} {
			all = append(all, ask(ctx, b, feedOf(1, length, float32(i))))
			synctest.Wait()
		}
		for i, length := range []int{2, 3, 2, 3, 4} {
			want(t, all[i], 1, length, float32(i))
		}
		if !slices.Equal(f.sizes, []string{"[2 2]", "[2 3]", "[1 4]"}) {
			t.Errorf("batches %v", f.sizes)
		}
	})
}

// Padded requests of different length share a batch; beyond the last bucket they do not. Filling up and padding do not show in results.
func TestPadding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, f := context.Background(), &fake{took: time.Second}
		seen := []float32{}
		f.fail = func(x []float32) error { seen = append(seen, x...); return nil }
		b := f.start(t, batch.Options{MaxBatch: 8, MaxDelay: time.Millisecond, Sizes: []int{4, 8},
			Pad: &batch.Padding{Dim: "len", Buckets: []int{2, 4}, Values: map[string]*rlx.Tensor{"x": rlx.New([]float32{-7})}}})
		defer shut(t, b)
		var all []chan answer
		lengths := []int{3, 4, 5, 3}
		for i, length := range lengths {
			all = append(all, ask(ctx, b, feedOf(1, length, float32(i))))
			synctest.Wait()
		}
		for i, length := range lengths {
			want(t, all[i], 1, length, float32(i))
		}
		if !slices.Equal(f.sizes, []string{"[4 4]", "[4 5]"}) {
			t.Errorf("batches %v", f.sizes)
		}
		wanted := []float32{0, 0, 0, -7, 1, 1, 1, 1, 3, 3, 3, -7, 3, 3, 3, -7}
		if !slices.Equal(seen[:16], wanted) {
			t.Errorf("the first batch ran on %v, expected %v", seen[:16], wanted)
		}
		if s := b.Stats(); s.Rows != 4 || s.FilledRows != 4 {
			t.Errorf("%+v", s)
		}
	})
}

// A full queue refuses at once; a cancelled request makes room and leaves no trace.
func TestQueueAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, f := context.Background(), &fake{took: time.Second}
		b := f.start(t, batch.Options{MaxBatch: 4, QueueSize: 2})
		defer shut(t, b)
		first := ask(ctx, b, feedOf(1, 1, 1))
		synctest.Wait()
		second := ask(ctx, b, feedOf(1, 1, 2))
		third, cancel := context.WithCancel(ctx)
		leaves := ask(third, b, feedOf(1, 1, 3))
		synctest.Wait()
		t0 := time.Now()
		wantError(t, ask(ctx, b, feedOf(1, 1, 4)), batch.ErrQueueFull)
		cancel()
		wantError(t, leaves, context.Canceled)
		if time.Since(t0) != 0 {
			t.Errorf("waited %v", time.Since(t0))
		}
		fifth := ask(ctx, b, feedOf(1, 1, 5))
		want(t, first, 1, 1, 1)
		want(t, second, 1, 1, 2)
		want(t, fifth, 1, 1, 5)
		if !slices.Equal(f.sizes, []string{"[1 1]", "[2 1]"}) {
			t.Errorf("batches %v", f.sizes)
		}
		if s := b.Stats(); s.Requests != 4 || s.Completed != 3 || s.Cancelled != 1 || s.Rejected != 1 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A running batch is cancelled when the last of its requests leaves, and not before.
func TestCancelRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{took: time.Second}
		b := f.start(t, batch.Options{MaxBatch: 2, MaxDelay: time.Hour})
		defer shut(t, b)
		one, cancelOne := context.WithCancel(context.Background())
		two, cancelTwo := context.WithCancel(context.Background())
		a, c := ask(one, b, feedOf(1, 1, 1)), ask(two, b, feedOf(1, 1, 2))
		synctest.Wait()
		cancelOne()
		wantError(t, a, context.Canceled)
		want(t, c, 1, 1, 2)

		one, cancelOne = context.WithCancel(context.Background())
		a, c = ask(one, b, feedOf(1, 1, 1)), ask(two, b, feedOf(1, 1, 2))
		synctest.Wait()
		t0 := time.Now()
		cancelOne()
		cancelTwo()
		wantError(t, a, context.Canceled)
		wantError(t, c, context.Canceled)
		synctest.Wait()
		if time.Since(t0) != 0 || len(f.ended) != 2 || f.ended[0] != nil || f.ended[1] != context.Canceled {
			t.Errorf("runs ended with %v, %v after the cancel", f.ended, time.Since(t0))
		}
	})
}

// A deadline counts for the request that has it.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{took: time.Second}
		b := f.start(t, batch.Options{MaxBatch: 2, MaxDelay: time.Hour})
		defer shut(t, b)
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		a := ask(ctx, b, feedOf(1, 1, 1))
		c := ask(context.Background(), b, feedOf(1, 1, 2))
		wantError(t, a, context.DeadlineExceeded)
		want(t, c, 1, 1, 2)
	})
}

// A failed run is the error of all its requests; with Isolate of those that fail alone. A panic is an error too.
func TestFailure(t *testing.T) {
	bad := errors.New("bad value")
	for _, isolate := range []bool{false, true} {
		for _, panics := range []bool{false, true} {
			t.Run(fmt.Sprintf("isolate=%v,panics=%v", isolate, panics), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, f := context.Background(), &fake{took: time.Second}
					f.fail = func(x []float32) error {
						if !slices.Contains(x, 13) {
							return nil
						}
						if panics {
							panic(bad)
						}
						return bad
					}
					b := f.start(t, batch.Options{MaxBatch: 3, MaxDelay: time.Hour, Isolate: isolate})
					defer shut(t, b)
					one, two, three := ask(ctx, b, feedOf(1, 1, 1)), ask(ctx, b, feedOf(1, 1, 13)), ask(ctx, b, feedOf(1, 1, 3))
					if a := <-two; a.err == nil || !panics && a.err != bad {
						t.Errorf("got %v", a.err)
					}
					if isolate {
						want(t, one, 1, 1, 1)
						want(t, three, 1, 1, 3)
						return
					}
					for _, c := range []chan answer{one, three} {
						if a := <-c; a.err == nil || !panics && a.err != bad {
							t.Errorf("got %v", a.err)
						}
					}
				})
			})
		}
	}
}

// A request that does not fit gets its own error and is in no batch.
func TestInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, f := context.Background(), &fake{}
		b := f.start(t, batch.Options{MaxBatch: 2, MaxDelay: time.Second})
		defer shut(t, b)
		good := ask(ctx, b, feedOf(1, 1, 1))
		for what, feed := range map[string]rlx.Feed{
			"missing":      {},
			"dtype":        {"x": rlx.New([]int64{1}, 1, 1)},
			"rank":         {"x": rlx.New([]float32{1}, 1)},
			"tensor":       {"x": rlx.New([]float32{1}, 2, 2)},
			"rows":         feedOf(3, 1, 1),
			"unknown name": {"x": rlx.New([]float32{1}, 1, 1), "z": rlx.New([]float32{1}, 1, 1)},
		} {
			var fe *rlx.FeedError
			if _, err := b.Do(ctx, feed); !errors.As(err, &fe) || fe.What != what {
				t.Errorf("%s: got %v", what, err)
			}
		}
		want(t, good, 1, 1, 1)
		if s := b.Stats(); s.Invalid != 6 || s.Requests != 1 || !slices.Equal(f.sizes, []string{"[1 1]"}) {
			t.Errorf("%+v, batches %v", s, f.sizes)
		}
	})
}

// A run whose outputs are not what the signature says is an error, not a panic.
func TestBadOutputs(t *testing.T) {
	in, out := ports("n", "len")
	for name, y := range map[string]rlx.Feed{
		"nil": nil, "dtype": {"y": rlx.New([]int64{1}, 1, 1)}, "rows": {"y": rlx.New([]float32{1, 2}, 2, 1)}, "rank": {"y": rlx.New([]float32{1}, 1)},
	} {
		b, err := batch.NewFunc(func(context.Context, rlx.Feed) (rlx.Feed, error) { return y, nil }, in, out, batch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var oe *batch.OutputError
		if _, err := b.Do(t.Context(), feedOf(1, 1, 1)); !errors.As(err, &oe) || oe.Name != "y" {
			t.Errorf("%s: got %v", name, err)
		}
		shut(t, b)
	}
}

// Close answers what was accepted, without waiting for MaxDelay, and refuses the rest.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, f := context.Background(), &fake{took: time.Second}
		b := f.start(t, batch.Options{MaxBatch: 2, MaxDelay: time.Hour})
		var all []chan answer
		for i := range 3 {
			all = append(all, ask(ctx, b, feedOf(1, 1, float32(i))))
			synctest.Wait()
		}
		t0 := time.Now()
		var closers sync.WaitGroup
		for range 2 {
			closers.Go(func() { shut(t, b) })
		}
		synctest.Wait()
		wantError(t, ask(ctx, b, feedOf(1, 1, 9)), batch.ErrClosed)
		closers.Wait()
		if d := time.Since(t0); d != 2*time.Second {
			t.Errorf("Close took %v", d)
		}
		for i, c := range all {
			want(t, c, 1, 1, float32(i))
		}
		shut(t, b)
	})
}

// A Close whose context ends gives up what runs and waits.
func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{took: time.Hour}
		b := f.start(t, batch.Options{MaxBatch: 1})
		running, waiting := ask(context.Background(), b, feedOf(1, 1, 1)), ask(context.Background(), b, feedOf(1, 1, 2))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := b.Close(ctx); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		wantError(t, running, batch.ErrClosed)
		wantError(t, waiting, batch.ErrClosed)
		shut(t, b) // waits for the goroutines
		if s := b.Stats(); s.Failed != 2 || s.Waiting != 0 || s.Running != 0 || len(f.ended) != 1 {
			t.Errorf("%+v, runs ended with %v", s, f.ended)
		}
	})
}

// What cannot be batched is refused by New.
func TestRefused(t *testing.T) {
	port := func(name string, dims ...any) batch.Port {
		return batch.Port{Name: name, Type: rlx.NewGraph("g").Input("x", rlx.F32, rlx.Shape(dims...)).Type()}
	}
	type list = []batch.Port
	pad := func(dim string, buckets ...int) batch.Options {
		return batch.Options{Pad: &batch.Padding{Dim: dim, Buckets: buckets, Values: map[string]*rlx.Tensor{"x": rlx.New([]float32{0})}}}
	}
	for _, c := range []struct {
		name    string
		in, out list
		opt     batch.Options
	}{
		{"no symbol", list{port("x", 2)}, list{port("y", 2)}, batch.Options{}},
		{"other first symbol", list{port("x", "n"), port("z", "m")}, list{port("y", "n")}, batch.Options{}},
		{"output without rows", list{port("x", "n")}, list{port("y", 3)}, batch.Options{}},
		{"rows in an expression", list{port("x", "n")}, list{port("y", "2*n")}, batch.Options{}},
		{"rows twice", list{port("x", "n", "n")}, list{port("y", "n")}, batch.Options{}},
		{"axis out of range", list{port("x", "n")}, list{port("y", "n")}, batch.Options{Axes: map[string]int{"x": 1}}},
		{"axis of nothing", list{port("x", "n")}, list{port("y", "n")}, batch.Options{Axes: map[string]int{"z": 0}}},
		{"negative size", list{port("x", "n")}, list{port("y", "n")}, batch.Options{MaxBatch: -1}},
		{"size above MaxBatch", list{port("x", "n")}, list{port("y", "n")}, batch.Options{MaxBatch: 4, Sizes: []int{8}}},
		{"pad of nothing", list{port("x", "n", "s")}, list{port("y", "n")}, pad("t", 4)},
		{"pad of the rows", list{port("x", "n", "s")}, list{port("y", "n")}, pad("n", 4)},
		{"no buckets", list{port("x", "n", "s")}, list{port("y", "n")}, pad("s")},
		{"length in an expression", list{port("x", "n", "s")}, list{port("y", "n", "s+1")}, pad("s", 4)},
		{"no pad value", list{port("x", "n", "s"), port("z", "n", "s")}, list{port("y", "n")}, pad("s", 4)},
	} {
		b, err := batch.NewFunc(nil, c.in, c.out, c.opt)
		var pe *batch.PortError
		var oe *rlx.OptionError
		if !errors.As(err, &pe) && !errors.As(err, &oe) {
			t.Errorf("%s: got %v", c.name, err)
		}
		if b != nil {
			shut(t, b)
		}
	}
}

// Shared inputs: requests with other values are in other groups. The batch dim may stand anywhere.
func TestSharedAndAxes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := rlx.NewGraph("g")
		in := []batch.Port{{Name: "h", Type: g.Input("h", rlx.F32, rlx.Shape(2, "n")).Type()}, {Name: "k", Type: g.Input("k", rlx.I64, nil).Type()}}
		out := []batch.Port{{Name: "h", Type: in[0].Type}}
		var sizes []string
		b, err := batch.NewFunc(func(_ context.Context, feed rlx.Feed) (rlx.Feed, error) {
			x, _ := rlx.Data[float32](feed["h"])
			y := slices.Clone(x)
			for i := range y {
				y[i] *= float32(feed["k"].Int(0))
			}
			sizes = append(sizes, fmt.Sprint(feed["h"].Shape()))
			return rlx.Feed{"h": rlx.New(y, 2, len(y)/2)}, nil
		}, in, out, batch.Options{Axes: map[string]int{"h": 1}, MaxDelay: time.Second, Sizes: []int{}})
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, b)
		var all []chan answer
		for i, k := range []int64{3, 5, 3} {
			all = append(all, ask(context.Background(), b, rlx.Feed{"h": rlx.New([]float32{float32(i), float32(10 + i)}, 2, 1), "k": rlx.New([]int64{k})}))
			synctest.Wait()
		}
		for i, k := range []float32{3, 5, 3} {
			a := <-all[i]
			if a.err != nil {
				t.Fatal(a.err)
			}
			if y, err := rlx.Data[float32](a.out["h"]); err != nil || !slices.Equal(y, []float32{k * float32(i), k * float32(10+i)}) {
				t.Errorf("request %d: got %v (%v)", i, y, err)
			}
		}
		if slices.Sort(sizes); !slices.Equal(sizes, []string{"[2 1]", "[2 2]"}) {
			t.Errorf("batches %v", sizes)
		}
	})
}
