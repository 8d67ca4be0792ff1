package exec

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// target is the interpreter with the kernels that keep allows; the others are staged on the host.
func target(t *testing.T, keep func(*ir.Row) bool) *Target {
	t.Helper()
	b := ref.New("test", ref.Mask{Keep: keep, Stage: true})
	d, err := b.Open(0, backend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &Target{Backend: b, Device: d, Support: pass.NewSupport("test", b.Caps(), b.(interface{ StageOnHost(*ir.Row) bool }).StageOnHost)}
}

func load(t *testing.T, g *ir.Graph, to *Target) *Program {
	t.Helper()
	if err := g.Verify(); err != nil {
		t.Fatal(err)
	}
	base := plan.NewConstants(g)
	w, err := to.Device.Weights(nil, base.Data())
	if err != nil {
		t.Fatal(err)
	}
	p, err := Load(g, to, base, w)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// mixed is a graph whose elementwise ops, sort and gather can run in different places: sorted(x) + 2 - 1, then rows 1 and i of it.
func mixed() *ir.Graph {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(2, 3))
	v, _ := op.Sort(x, 1, false)
	rows := op.Gather(op.Sub(op.Add(v, 2), 1), op.Concat(0, g.Constant(ir.New([]int64{1}, 1)), g.Input("i", ir.I64, ir.Dims(1))), 0).Named("rows")
	g.Output("y", op.Neg(rows))
	return g
}

func run(p *Program, ctx context.Context, x []float32, i int64) ([]float32, error) {
	r, err := p.Runner()
	if err != nil {
		return nil, err
	}
	defer p.Release(r)
	y := make([]float32, 6)
	r.SetInput(0, ir.New(x, 2, 3).Bytes())
	r.SetInput(1, ir.New([]int64{i}, 1).Bytes())
	r.SetOutput(0, ir.New(y, 2, 3).Bytes())
	return y, r.Run(ctx)
}

// bound is a runner of mixed with memory for its next run.
func bound(t *testing.T, p *Program) *Runner {
	t.Helper()
	r, err := p.Runner()
	if err != nil {
		t.Fatal(err)
	}
	r.SetInput(0, make([]byte, 24))
	r.SetInput(1, make([]byte, 8))
	r.SetOutput(0, make([]byte, 24))
	return r
}

// profiled are the arguments of a run of mixed after it, with its profile and counters.
func profiled(t *testing.T, p *Program) *backend.RunArgs {
	t.Helper()
	r, n := bound(t, p), len(p.full.Steps)
	args := r.Args()
	args.Profile, args.Counters = make([]uint64, 2*n), make([]uint32, n)
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(args.Profile) != 2*n || len(args.Counters) != n {
		t.Fatal("a run changed the caller's profile")
	}
	return args
}

// Native and host segments alternate, and share one arena.
func TestSegments(t *testing.T) {
	x := []float32{3, 1, 2, 9, 7, 8}
	want := []float32{-8, -9, -10, -2, -3, -4}
	for name, tc := range map[string]struct {
		keep     func(*ir.Row) bool
		segments string
	}{
		"native":      {func(*ir.Row) bool { return true }, "n"},
		"host":        {func(*ir.Row) bool { return false }, "h"},
		"elementwise": {func(r *ir.Row) bool { return r.Has(ir.Elementwise) }, "hnhn"},
		"sort":        {func(r *ir.Row) bool { return r.Name == "Sort" || r.Name == "Gather" }, "nhnh"},
	} {
		p := load(t, mixed(), target(t, tc.keep))
		got := ""
		for _, s := range p.Segments {
			got += map[bool]string{true: "h", false: "n"}[s.Host]
		}
		if got != tc.segments {
			t.Errorf("%s: segments %s, expected %s", name, got, tc.segments)
		}
		y, err := run(p, context.Background(), x, 0)
		if err != nil || !bytes.Equal(ir.New(y, 6).Bytes(), ir.New(want, 6).Bytes()) {
			t.Errorf("%s: got %v (%v), expected %v", name, y, err, want)
		}
		// A failed command is named by its node, in whatever segment it lies.
		_, err = run(p, context.Background(), x, 5)
		var e *Error
		if !errors.As(err, &e) || e.Node == nil || e.Node.Name != "rows" || !strings.Contains(err.Error(), "node rows") || !strings.Contains(err.Error(), "index 5") {
			t.Errorf("%s: got error %v", name, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := run(p, ctx, x, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v", name, err)
		}
		if _, err := run(p, context.Background(), x, 0); err != nil {
			t.Errorf("%s: after a cancelled run: %v", name, err)
		}
		if err := errors.Join(p.Close(), p.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A cancel word that is set while a host segment runs stops it before its next command.
func TestHostCancel(t *testing.T) {
	p := load(t, mixed(), target(t, func(*ir.Row) bool { return false }))
	r, err := p.Runner()
	if err != nil {
		t.Fatal(err)
	}
	r.cancel()
	var e *backend.Error
	if err := r.segment(0, &p.Segments[0]); !errors.As(err, &e) || e.Code != backend.Cancelled {
		t.Errorf("got error %v", err)
	}
}

func TestConcurrentRuns(t *testing.T) {
	p := load(t, mixed(), target(t, func(r *ir.Row) bool { return r.Has(ir.Elementwise) }))
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			for range 50 {
				y, err := run(p, context.Background(), []float32{float32(k), 0, 0, 0, 0, float32(k)}, 0)
				if err != nil || y[2] != -float32(k)-1 || y[5] != -float32(k)-1 {
					t.Errorf("run %d: got %v (%v)", k, y, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := len(p.idle); n == 0 || n > 8 {
		t.Errorf("%d idle runners after 8 at a time", n)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestProfile(t *testing.T) {
	p := load(t, mixed(), target(t, func(r *ir.Row) bool { return r.Has(ir.Elementwise) }))
	args := profiled(t, p)
	for i, s := range p.full.Steps {
		if native := s.Place != plan.Host; (args.Counters[i] == 1) != native {
			t.Errorf("%s ran natively %d times", s.Node, args.Counters[i])
		}
		if args.Profile[2*i] > args.Profile[2*i+1] {
			t.Errorf("%s ran from %d to %d", s.Node, args.Profile[2*i], args.Profile[2*i+1])
		}
	}
}
