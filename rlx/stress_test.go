package rlx_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// stressCount is n times RLX_STRESS, which `make race` sets to 1 and `make sanitize` to a tenth; a plain test run does a fiftieth.
func stressCount(t *testing.T, n int) int {
	t.Helper()
	share := 0.02
	if text := os.Getenv("RLX_STRESS"); text != "" {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f > 0) {
			t.Fatalf("RLX_STRESS=%q, expected a number above 0", text)
		}
		share = f
	}
	return max(1, int(float64(n)*share))
}

// within fails with the stacks of all goroutines when f hangs: a native hang obeys no context.
func within(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(limit):
		debug.SetTraceback("all")
		panic(t.Name() + " hangs")
	}
}

// stressBackend is the one whose threads and locks are under test.
func stressBackend(t *testing.T) string {
	t.Helper()
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	return "cpu"
}

// secondModel normalises, multiplies and sorts: kernels in phases, on shapes of which the larger ones are cut among threads.
func secondModel() *rlx.Graph {
	g := rlx.NewGraph("second")
	x := g.Input("pixels", rlx.F32, rlx.Shape("batch", 64))
	w := make([]float32, 64*64)
	for i := range w {
		w[i] = float32(i%13-6) / 16
	}
	y := op.Softmax(op.MatMul(x, g.Param("w", rlx.New(w, 64, 64))), -1)
	g.Output("y", op.Add(op.Cumsum(first(op.Sort(y, -1, true)), -1), op.Reduce(op.Tanh(x), "sum", []int{1}, true)))
	return g
}

// stressed is a program, feeds of several shapes, and the bits of serial runs.
type stressed struct {
	p    *rlx.Program
	in   []rlx.Feed
	want [][]uint32
}

func newStressed(t *testing.T, p *rlx.Program) *stressed {
	t.Helper()
	s := &stressed{p: p}
	for i, rows := range []int{1, 3, 16, 64, 200} {
		s.in = append(s.in, pixels(rows, uint64(i)))
		out, err := p.Run(t.Context(), s.in[i])
		if err != nil {
			t.Fatal(err)
		}
		s.want = append(s.want, bits(t, out))
	}
	return s
}

// once runs shape k, and cancels at a random point where cancel says so: the bits of the serial run, or the context's error.
func (s *stressed) once(t *testing.T, r *rand.Rand, p *rlx.Program, k int, cancel bool) (cancelled bool) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if cancel {
		timer := time.AfterFunc(time.Duration(r.IntN(400))*time.Microsecond, stop)
		defer timer.Stop()
	}
	out, err := p.Run(ctx, s.in[k])
	switch {
	case cancel && errors.Is(err, context.Canceled):
		return true
	case err != nil:
		t.Errorf("shape %d: %v", k, err)
	case !slices.Equal(bits(t, out), s.want[k]):
		t.Errorf("shape %d: other bits than the serial run", k)
	}
	return false
}

// 64 goroutines share two programs over five shapes, more than their caches hold; one run in ten is cancelled.
func TestStressSharedPrograms(t *testing.T) {
	b := stressBackend(t)
	list := []*stressed{newStressed(t, compile(t, openDigits(t), rlx.On(b), rlx.Threads(2), rlx.Specialisations(4))), newStressed(t, compileGraph(t, secondModel(), rlx.On(b), rlx.Threads(2)))}
	runs := stressCount(t, 200)
	var cancelled atomic.Int64
	within(t, 10*time.Minute, func() {
		var wg sync.WaitGroup
		for g := range 64 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(g), 7))
				for range runs {
					s := list[r.IntN(2)]
					if s.once(t, r, s.p, r.IntN(len(s.in)), r.IntN(10) == 0) {
						cancelled.Add(1)
					}
				}
			})
		}
		wg.Wait()
	})
	t.Logf("64 goroutines, %d runs each, %d runs cancelled in time", runs, cancelled.Load())
	for _, s := range list {
		for k := range s.in {
			s.once(t, nil, s.p, k, false)
		}
	}
}

// Programs are closed while others run them: a run gives the right bits or ErrClosed, and memory comes back.
func TestStressClose(t *testing.T) {
	b := stressBackend(t)
	s := newStressed(t, compileGraph(t, secondModel(), rlx.On(b), rlx.Threads(2)))
	programs := stressCount(t, 100)
	within(t, 10*time.Minute, func() {
		for range programs {
			p, err := rlx.Compile(t.Context(), secondModel(), rlx.On(b), rlx.Threads(2))
			if err != nil {
				t.Error(err)
				return
			}
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					for k := 0; ; k++ {
						at := (g + k) % len(s.in)
						out, err := p.Run(t.Context(), s.in[at])
						if errors.Is(err, rlx.ErrClosed) {
							return
						}
						if err != nil || !slices.Equal(bits(t, out), s.want[at]) {
							t.Errorf("shape %d: other bits than the serial run, or error %v", at, err)
							return
						}
					}
				})
			}
			time.Sleep(time.Millisecond)
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
		}
	})
}

// Tiny graphs that are just large enough for two threads run by turns in a program of one thread and in one of many, 100,000 times in all, while the
// last program that wants workers is closed now and then, which stops them, and opened again, which starts them.
func TestStressPoolSize(t *testing.T) {
	b := stressBackend(t)
	const n = 3 << 12
	g := rlx.NewGraph("tiny")
	x := g.Input("x", rlx.F32, rlx.Shape(n))
	g.Output("y", op.Add(op.Mul(x, x), x))
	v, want, got := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range v {
		v[i] = float32(i % 251)
		want[i] = v[i]*v[i] + v[i] // whole numbers below 2^24: exact
	}
	in, out := rlx.Feed{"x": rlx.New(v, n)}, rlx.Feed{"y": rlx.New(got, n)}
	rounds := stressCount(t, 100)
	within(t, 10*time.Minute, func() {
		for round := range rounds {
			var progs []*rlx.Program
			var runners []*rlx.Runner
			for _, threads := range []int{1, 2 + round%7} {
				p, err := rlx.Compile(t.Context(), g, rlx.On(b), rlx.Threads(threads))
				if err != nil {
					t.Error(err)
					return
				}
				progs, runners = append(progs, p), append(runners, p.Runner())
			}
			for k := range 1000 {
				clear(got)
				if err := runners[k%2].RunInto(t.Context(), in, out); err != nil {
					t.Error(err)
					return
				}
				if !slices.Equal(got, want) {
					t.Errorf("round %d run %d: wrong result", round, k)
					return
				}
			}
			for _, p := range progs {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	t.Logf("%d runs", 1000*rounds)
}
