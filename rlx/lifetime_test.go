package rlx_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/conform"
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

// logged keeps the records of a program: message and attributes as text.
type logged struct {
	mu   sync.Mutex
	list []string
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }
func (l *logged) Handle(_ context.Context, r slog.Record) error {
	text := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, text)
	return nil
}

// with lists the records of a message.
func (l *logged) with(message string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.list {
		if strings.HasPrefix(strings.SplitN(r, " ", 2)[1], message) {
			found = append(found, r)
		}
	}
	return found
}

// One record per Compile, per backend passed over, per specialisation, per eviction; none per run.
func TestRecords(t *testing.T) {
	l := new(logged)
	p := small(t, rlx.Prefer("cuda", "ref"), rlx.Specialisations(2), rlx.Logger(slog.New(l)))
	for _, rows := range []int{1, 2, 1, 3, 3} { // 3 pushes 2 out
		if _, err := p.Run(t.Context(), feed(rows)); err != nil {
			t.Fatal(err)
		}
	}
	for message, want := range map[string][]string{
		"fallback":    {"WARN", "graph=small", "backend=ref", "reason=", "cuda: not compiled in"},
		"compiled":    {"INFO", "graph=small", "backend=ref", "nodes=", "fallback="},
		"specialised": {"DEBUG", "graph=small", "symbols=map[n:1]", "commands=1", "arena_bytes=", "took="},
		"evicted":     {"DEBUG", "graph=small", "symbols=map[n:2]"},
	} {
		got, count := l.with(message), 1
		if message == "specialised" {
			count = 3
		}
		if len(got) != count {
			t.Fatalf("%d records %q, expected %d: %v", len(got), message, count, l.list)
		}
		for _, w := range want {
			if !strings.Contains(got[0], w) {
				t.Errorf("record %q lacks %q", got[0], w)
			}
		}
	}
	if len(l.list) != 6 {
		t.Errorf("%d records, expected 6: %v", len(l.list), l.list)
	}
}

// Stats counts runs by how they ended, and what the cache did.
func TestProgramStats(t *testing.T) {
	for _, b := range backends() {
		p := small(t, rlx.On(b), rlx.Specialisations(2))
		for _, rows := range []int{1, 2, 1, 3, 1} { // 3 pushes 2 out
			if _, err := p.Run(t.Context(), feed(rows)); err != nil {
				t.Fatal(err)
			}
		}
		p.Run(t.Context(), rlx.Feed{}) // fails before it looks
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.Run(ctx, feed(1))
		r := p.Runner()
		for range 2 {
			if err := r.RunInto(t.Context(), feed(1), rlx.Feed{"y": rlx.New(make([]float32, 3), 1, 3)}); err != nil {
				t.Fatal(err)
			}
		}
		s := p.Stats()
		want := rlx.ProgramStats{Runs: 9, Cancelled: 1, Failed: 1, Hits: 5, Misses: 3, Builds: 3, Evictions: 1, Memory: s.Memory}
		if !reflect.DeepEqual(s, want) {
			t.Errorf("%s: got %+v, expected %+v", b, s, want)
		}
		if m := s.Memory; m.Programs != 1 || m.Specialisations != 2 || m.UsedArenas != 1 || m.IdleArenas != 1 || m.Weights != 12 {
			t.Errorf("%s: memory %+v, expected 2 specialisations, an arena in each, and 12 bytes of weights", b, m)
		}
		if all := rlx.Stats(); all.Programs < 1 || all.Weights < 12 || b == "cpu" && (all.Native["cpu"] < all.Copied+all.Loaded || all.Loaded == 0) {
			t.Errorf("%s: all programs hold %+v", b, all)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		after := p.Stats()
		if after.Runs != 9 || !reflect.DeepEqual(after.Memory, rlx.MemoryStats{}) {
			t.Errorf("%s: after Close: %+v", b, after)
		}
	}
}

// RunInto of a small program allocates nothing, and the counters that are always on nothing either: with a logger, and with a context that can be
// cancelled or not.
func TestRunIntoAllocatesNothing(t *testing.T) {
	for _, b := range backends() {
		if b == "ref" || conform.Slow(b) {
			continue // the interpreter allocates, and so do drivers
		}
		p := small(t, rlx.On(b), rlx.Logger(slog.New(new(logged))))
		r := p.Runner()
		in, out := feed(2), rlx.Feed{"y": rlx.New(make([]float32, 6), 2, 3)}
		ctx, cancel := context.WithCancel(t.Context())
		for _, c := range []context.Context{context.Background(), ctx} {
			if n := testing.AllocsPerRun(200, func() {
				if err := r.RunInto(c, in, out); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s, %v: %g allocations for each RunInto", b, c, n)
			}
		}
		cancel()
		if err := r.RunInto(ctx, in, out); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a run with a cancelled context gives %v", b, err)
		}
		if s := p.Stats(); s.Runs != 403 || s.Cancelled != 1 {
			t.Errorf("%s: %d runs counted, %d of them cancelled, expected 403 and 1", b, s.Runs, s.Cancelled)
		}
	}
}

// collect runs the collector until done says that it has done what is awaited.
func collect(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 200 {
		runtime.GC()
		if done() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("the collector ran 200 times, and %s", what)
}

// forget compiles a program and drops it without Close: with runs of it behind, and with a runner of it that was not closed either.
func forget(t *testing.T, backend string, l *slog.Logger) {
	p, err := rlx.Compile(t.Context(), addGraph("forgotten"), rlx.On(backend), rlx.Logger(l))
	if err != nil {
		t.Fatal(err)
	}
	r := p.Runner()
	for n := 1; n <= 3; n++ {
		if _, err := p.Run(t.Context(), feed(n)); err != nil {
			t.Fatal(err)
		}
		if err := r.RunInto(t.Context(), feed(n), rlx.Feed{"y": rlx.New(make([]float32, 3*n), n, 3)}); err != nil {
			t.Fatal(err)
		}
	}
}

// A program that is garbage and was not closed gives its memory back, and one record says which it was.
func TestForgottenProgram(t *testing.T) {
	for _, b := range backends() {
		keep := small(t, rlx.On(b)) // so that the library's counter can be read
		first := new(logged)
		forget(t, b, slog.New(first)) // devices keep the kernels that they have built
		collect(t, b+" has no record of the first program", func() bool { return len(first.with("not closed")) > 0 })
		before := rlx.Stats()
		l := new(logged)
		forget(t, b, slog.New(l))
		collect(t, b+" has no record of the forgotten program", func() bool { return len(l.with("not closed")) > 0 })
		if got := l.with("not closed"); len(got) != 1 || !strings.Contains(got[0], "graph=forgotten backend="+b) {
			t.Errorf("%s: records %v, expected one that names the program", b, got)
		}
		if after := rlx.Stats(); !reflect.DeepEqual(after, before) {
			t.Errorf("%s: memory was %+v, is %+v", b, before, after)
		}
		runtime.KeepAlive(keep)
	}
}

// A program is not garbage while a runner of it can be reached, and a closed one is not told of.
func TestForgottenProgramWithARunner(t *testing.T) {
	l := new(logged)
	logger := slog.New(l)
	r := func() *rlx.Runner {
		p, err := rlx.Compile(t.Context(), addGraph("held"), rlx.Logger(logger))
		if err != nil {
			t.Fatal(err)
		}
		return p.Runner()
	}()
	for range 5 {
		runtime.GC()
		if err := r.RunInto(t.Context(), feed(1), rlx.Feed{"y": rlx.New(make([]float32, 3), 1, 3)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.with("not closed"); len(got) != 0 {
		t.Errorf("a program with a runner: %v", got)
	}
	runtime.KeepAlive(r)
	r = nil
	collect(t, "the program without a runner is still there", func() bool { return len(l.with("not closed")) == 1 })
	func() {
		p, err := rlx.Compile(t.Context(), addGraph("closed"), rlx.Logger(logger))
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
	}()
	for range 5 {
		runtime.GC()
	}
	if got := l.with("not closed"); len(got) != 1 {
		t.Errorf("a closed program: %v", got)
	}
}

// A runner that is garbage and was not closed gives its arena back to its program.
func TestForgottenRunner(t *testing.T) {
	p := small(t)
	for range 3 {
		if err := p.Runner().RunInto(t.Context(), feed(1), rlx.Feed{"y": rlx.New(make([]float32, 3), 1, 3)}); err != nil {
			t.Fatal(err)
		}
	}
	collect(t, "arenas of forgotten runners are still used", func() bool { return p.Stats().Memory.UsedArenas == 0 })
	if _, err := p.Run(t.Context(), feed(1)); err != nil {
		t.Error(err)
	}
}

// Programs start no goroutines.
func TestProgramsStartNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		p := small(t)
		if _, err := p.Run(t.Context(), feed(1)); err != nil {
			t.Fatal(err)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines with 20 programs open, %d before", after, before)
	}
}

// Everything that uses a closed program is ErrClosed, and closing again is not an error.
func TestUseAfterClose(t *testing.T) {
	p := small(t)
	r := p.Runner()
	for range 2 {
		if err := errors.Join(p.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	}
	out := rlx.Feed{"y": rlx.New(make([]float32, 3), 1, 3)}
	for name, use := range map[string]func() error{
		"Run":             func() error { _, err := p.Run(t.Context(), feed(1)); return err },
		"Run, checked":    func() error { _, err := p.Run(t.Context(), feed(1), rlx.CheckFinite()); return err },
		"RunInto":         func() error { return r.RunInto(t.Context(), feed(1), out) },
		"RunInto, after":  func() error { return p.Runner().RunInto(t.Context(), feed(1), out) },
		"Placement":       func() error { _, err := p.Placement(); return err },
		"Segments":        func() error { _, err := p.Segments(); return err },
		"Plan":            func() error { _, err := p.Plan(t.Context(), feed(1)); return err },
		"Plan, no shapes": func() error { _, err := p.Plan(t.Context(), nil); return err },
		"Probe":           func() error { _, _, err := p.Probe(backend.LimitRead, 1, 1<<10, 0.001); return err },
	} {
		if err := use(); !errors.Is(err, rlx.ErrClosed) {
			t.Errorf("%s: got %v, expected ErrClosed", name, err)
		}
	}
}

// The same program with shapes A, B, A: the third result has the bits of the first.
func TestShapesThereAndBack(t *testing.T) {
	for _, b := range backends() {
		p := compile(t, openDigits(t), rlx.On(b), rlx.Specialisations(1)) // B pushes A out
		kept := compile(t, openDigits(t), rlx.On(b))
		for _, other := range []int{1, 2, 33, 64} {
			for _, p := range []*rlx.Program{p, kept} {
				var got [3][]uint32
				for i, rows := range []int{13, other, 13} {
					out, err := p.Run(t.Context(), pixels(rows, 7))
					if err != nil {
						t.Fatal(err)
					}
					got[i] = bits(t, out)
				}
				if !slices.Equal(got[0], got[2]) || slices.Equal(got[0], got[1]) {
					t.Errorf("%s: other bits after %d rows between", b, other)
				}
			}
		}
	}
}
