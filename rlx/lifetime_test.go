package rlx_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func feed(rows int) rlx.Feed { return rlx.Feed{"x": rlx.New(make([]float32, 3*rows), rows, 3)} }

// countBuilds counts the specialisations that a program logs.
type countBuilds struct {
	slog.Handler
	n atomic.Int64
}

func (h *countBuilds) Enabled(context.Context, slog.Level) bool { return true }
func (h *countBuilds) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "specialised" {
		h.n.Add(1)
	}
	return nil
}

// A new set of shapes never pushes itself out of the cache.
func TestCacheKeepsTheNewest(t *testing.T) {
	for _, size := range []int{1, 2, 16} {
		h := new(countBuilds)
		p := small(t, rlx.Specialisations(size), rlx.Logger(slog.New(h)))
		const shapes = 50
		for n := 1; n <= shapes; n++ {
			for range 3 {
				if _, err := p.Run(t.Context(), feed(n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := h.n.Load(); got != shapes {
			t.Errorf("a cache of %d: %d builds for %d shapes", size, got, shapes)
		}
	}
}

func TestRunnerAfterClose(t *testing.T) {
	p := small(t)
	r := p.Runner()
	out := rlx.Feed{"y": rlx.New(make([]float32, 3), 1, 3)}
	if err := r.RunInto(t.Context(), feed(1), out); err != nil {
		t.Fatal(err)
	}
	if got, _ := rlx.Data[float32](out["y"]); !slices.Equal(got, []float32{1, 2, 3}) { // 0 + w
		t.Errorf("got %v", got)
	}
	r.Close()
	if err := r.RunInto(t.Context(), feed(1), out); !errors.Is(err, rlx.ErrClosed) {
		t.Errorf("a closed runner: %v, expected ErrClosed", err)
	}
	open := p.Runner()
	if err := open.RunInto(t.Context(), feed(2), rlx.Feed{"y": rlx.New(make([]float32, 6), 2, 3)}); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil { // with a runner open
		t.Error(err)
	}
	if err := open.RunInto(t.Context(), feed(2), out); !errors.Is(err, rlx.ErrClosed) {
		t.Errorf("a runner of a closed program: %v, expected ErrClosed", err)
	}
	if len(rlx.Stats().Native) != 0 {
		t.Errorf("native memory after Close: %v", rlx.Stats().Native)
	}
}

// Outputs may not share memory with inputs or with each other.
func TestRunIntoRefusesSharedMemory(t *testing.T) {
	p := small(t)
	r := p.Runner()
	defer r.Close()
	x := rlx.New(make([]float32, 3), 1, 3)
	var fe *rlx.FeedError
	if err := r.RunInto(t.Context(), rlx.Feed{"x": x}, rlx.Feed{"y": x}); !errors.As(err, &fe) || fe.What != "memory" {
		t.Errorf("got %v, expected a FeedError about memory", err)
	}
}

// staticSlice is x[from:] with from read from an input at run time.
func staticSlice(t *testing.T) *rlx.Program {
	g := rlx.NewGraph("slice")
	from, err := g.Input("from", rlx.I64, rlx.Shape(1)).InputDims()
	if err != nil {
		t.Fatal(err)
	}
	x := g.Input("x", rlx.I64, rlx.Shape("n"))
	g.Output("y", op.Slice(x, from, []rlx.Dim{ir.D(math.MaxInt64)}, []int{0}, nil))
	p, err := rlx.Compile(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// The values of a static input select a specialisation, up to the ends of int64.
func TestStaticInputValues(t *testing.T) {
	p := staticSlice(t)
	for from, want := range map[int64][]int64{0: {7, 8, 9}, 1: {8, 9}, -1: {9}, 5: {}, math.MinInt64: {7, 8, 9}, math.MaxInt64: {}} {
		out, err := p.Run(t.Context(), rlx.Feed{"from": rlx.New([]int64{from}, 1), "x": rlx.New([]int64{7, 8, 9}, 3)})
		if err != nil {
			t.Errorf("from %d: %v", from, err)
			continue
		}
		if got, _ := rlx.Data[int64](out["y"]); !slices.Equal(got, want) {
			t.Errorf("from %d: got %v, expected %v", from, got, want)
		}
	}
}

// Sizes that no machine has are errors, not the end of the process.
func TestImpossibleSizes(t *testing.T) {
	for _, b := range backends() {
		g := rlx.NewGraph("huge")
		n, err := g.Input("n", rlx.I64, rlx.Shape(1)).InputDims()
		if err != nil {
			t.Fatal(err)
		}
		x := g.Input("x", rlx.F32, rlx.Shape(1))
		g.Output("y", op.Expand(x, n...))
		g.Output("z", op.Sum(op.Exp(op.Tile(x, n...)), 0))
		p, err := rlx.Compile(t.Context(), g, rlx.On(b))
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Run(t.Context(), rlx.Feed{"n": rlx.New([]int64{1 << 40}, 1), "x": rlx.New([]float32{1}, 1)})
		if err == nil || !strings.Contains(err.Error(), "memory") && !strings.Contains(err.Error(), "limits of the device") {
			t.Errorf("%s: got %v, expected an error about memory, or about what a device can address", b, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Every Close returns only when the program's memory is free.
func TestSecondCloseWaits(t *testing.T) {
	g := rlx.NewGraph("slow")
	x := g.Input("x", rlx.F32, rlx.Shape(160, 160))
	y := x
	for range 20 {
		y = op.MatMul(y, x)
	}
	g.Output("y", y)
	p, err := rlx.Compile(t.Context(), g, rlx.On("ref"))
	if err != nil {
		t.Fatal(err)
	}
	var finished atomic.Bool
	go func() {
		p.Run(context.Background(), rlx.Feed{"x": rlx.New(make([]float32, 160*160), 160, 160)})
		finished.Store(true)
	}()
	time.Sleep(20 * time.Millisecond)
	go p.Close()
	time.Sleep(5 * time.Millisecond)
	p.Close()
	time.Sleep(20 * time.Millisecond)
	if !finished.Load() {
		t.Error("Close returned before the run ended")
	}
}

// A cancelled context stops a run that would take much longer.
func TestCancelStopsARun(t *testing.T) {
	for _, b := range backends() {
		g := rlx.NewGraph("long")
		x := g.Input("x", rlx.F32, rlx.Shape(512, 512))
		y := x
		for range 400 {
			y = op.MatMul(y, x)
		}
		g.Output("y", y)
		p, err := rlx.Compile(t.Context(), g, rlx.On(b))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err = p.Run(ctx, rlx.Feed{"x": rlx.New(make([]float32, 512*512), 512, 512)})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, expected the context's error", b, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
