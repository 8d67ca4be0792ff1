package exec

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// counting is a device that counts what is open on it, and the bytes of constants that it was given.
type counting struct {
	backend.Device
	open, constants, runs *int
	mu                    *sync.Mutex
}

func (d *counting) add(to *int, n int) {
	d.mu.Lock()
	*to += n
	d.mu.Unlock()
}

type countedWeights struct {
	backend.Weights
	d *counting
}

func (w countedWeights) Close() error { w.d.add(w.d.open, -1); return w.Weights.Close() }

func (d *counting) Weights(parent backend.Weights, constants [][]byte) (backend.Weights, error) {
	if w, ok := parent.(countedWeights); ok {
		parent = w.Weights
	}
	w, err := d.Device.Weights(parent, constants)
	d.add(d.open, 1)
	for _, c := range constants {
		d.add(d.constants, len(c))
	}
	return countedWeights{w, d}, err
}

type countedProgram struct {
	backend.Program
	d *counting
}

func (p countedProgram) Run(a *backend.RunArgs) error { p.d.add(p.d.runs, 1); return p.Program.Run(a) }
func (p countedProgram) Close() error                 { p.d.add(p.d.open, -1); return p.Program.Close() }

func (d *counting) Load(w backend.Weights, words []uint32) (backend.Program, error) {
	if c, ok := w.(countedWeights); ok {
		w = c.Weights
	}
	p, err := d.Device.Load(w, words)
	if err != nil {
		return nil, err
	}
	d.add(d.open, 1)
	return countedProgram{p, d}, nil
}

// private is a device with memory of its own, which holds NaN where nothing is carried to it.
func private(t *testing.T, keep func(*ir.Row) bool) *Target {
	t.Helper()
	b := ref.New("device", ref.Mask{Keep: keep, Stage: true, Private: true})
	d, err := b.Open(0, backend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &Target{Backend: b, Device: d, Support: pass.NewSupport("device", d.Caps(), b.(interface{ StageOnHost(*ir.Row) bool }).StageOnHost), Poison: true}
}

// withHost makes staged rows that keep allows run on a backend called "other".
func withHost(t *testing.T, to *Target, keep func(*ir.Row) bool) *counting {
	t.Helper()
	d, err := ref.New("other", ref.Mask{Keep: keep, Dense: true}).Open(0, backend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{d, new(int), new(int), new(int), new(sync.Mutex)}
	to.Host = NewHost(c, pass.NewSupport("other", d.Caps(), nil))
	to.Support.HostBodies(to.Host.support)
	return c
}

func elementwise(r *ir.Row) bool { return r.Has(ir.Elementwise) }
func sorting(r *ir.Row) bool     { return r.Name == "Sort" || r.Name == "Gather" }
func everything(*ir.Row) bool    { return true }
func nothingAtAll(*ir.Row) bool  { return false }

// Values cross between the memory of a device and that of the host, wherever the staged commands run.
func TestPrivateMemory(t *testing.T) {
	x := []float32{3, 1, 2, 9, 7, 8}
	want := []float32{-8, -9, -10, -2, -3, -4}
	for name, tc := range map[string]struct{ device, host func(*ir.Row) bool }{
		"all on the device":           {everything, nil},
		"all in ref":                  {nothingAtAll, nil},
		"elementwise on the device":   {elementwise, nil},
		"sorting on the device":       {sorting, nil},
		"all on the other":            {nothingAtAll, everything},
		"elementwise and the other":   {elementwise, everything},
		"sorting and the other":       {sorting, everything},
		"device, other and ref":       {elementwise, func(r *ir.Row) bool { return r.Name == "Sort" }},
		"device, other and ref again": {elementwise, func(r *ir.Row) bool { return r.Name == "Gather" }},
		"sorting in ref alone":        {elementwise, nothingAtAll},
	} {
		to := private(t, tc.device)
		if tc.host != nil {
			withHost(t, to, tc.host)
		}
		p := load(t, mixed(), to)
		for range 3 { // the runner comes back and must forget what it held
			if y, err := run(p, context.Background(), x, 0); err != nil || !slices.Equal(y, want) {
				t.Errorf("%s: got %v (%v), expected %v", name, y, err, want)
			}
		}
		_, err := run(p, context.Background(), x, 5)
		var e *Error
		if !errors.As(err, &e) || e.Node == nil || e.Node.Name != "rows" || !strings.Contains(err.Error(), "index 5") {
			t.Errorf("%s: got error %v", name, err)
		}
		if err := errors.Join(p.Close(), to.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The places say which backend runs a step, and the profile counts the device's kernels alone.
func TestRunsOn(t *testing.T) {
	to := private(t, elementwise)
	withHost(t, to, func(r *ir.Row) bool { return r.Name == "Sort" })
	p := load(t, mixed(), to)
	args := profiled(t, p)
	last := uint64(0)
	for i, s := range p.full.Steps {
		want := map[string]string{"Sort": "other", "Gather": "ref", "Concat": "ref"}[s.Command.Row.Name]
		native := want == ""
		if native {
			want = "device"
		}
		if got := p.RunsOn(i, s.Place); got != want || (args.Counters[i] == 1) != native {
			t.Errorf("%s runs on %s, %d times natively; expected %s", s.Node, got, args.Counters[i], want)
		}
		if args.Profile[2*i] < last || args.Profile[2*i+1] < args.Profile[2*i] {
			t.Errorf("%s ran from %d to %d, the one before ended at %d", s.Node, args.Profile[2*i], args.Profile[2*i+1], last)
		}
		last = args.Profile[2*i+1]
	}
	if carries, err := p.Carries(); err != nil || !carries {
		t.Errorf("carries: %v, %v", carries, err)
	}
}

// A staged node runs on the host's backend whether its operand is a view or not: another backend would give other bits.
func TestStagedView(t *testing.T) {
	for name, view := range map[string]func(ir.Value) ir.Value{
		"no view": func(x ir.Value) ir.Value { return op.Reshape(x, ir.Dims(3, 2)...) },
		"a view":  func(x ir.Value) ir.Value { return op.Transpose(x, 1, 0) },
	} {
		to := private(t, elementwise)
		withHost(t, to, func(r *ir.Row) bool { return r.Name == "Softmax" })
		g := ir.NewGraph("g")
		g.Output("y", op.Softmax(view(op.Neg(g.Input("x", ir.F32, ir.Dims(2, 3)))), 1))
		p := load(t, g, to)
		for i, s := range p.full.Steps {
			if got := p.RunsOn(i, s.Place); s.Command.Row.Name == "Softmax" && got != "other" {
				t.Errorf("%s: runs on %s, expected other", name, got)
			}
		}
	}
}

// Cancel reaches a run in whatever segment it is: the word of both sides is set.
func TestCancelOnBothSides(t *testing.T) {
	to := private(t, elementwise)
	c := withHost(t, to, everything)
	p := load(t, mixed(), to)
	r := bound(t, p)
	r.cancel()
	for i := range p.Segments {
		s := &p.Segments[i]
		r.args.First, r.args.Count = s.First, s.End-s.First
		var e *backend.Error
		if err := r.segment(i, s); !errors.As(err, &e) || e.Code != backend.Cancelled {
			t.Errorf("segment %d: got error %v", i, err)
		}
	}
	if err := r.Run(context.Background()); err != nil {
		t.Errorf("after a cancelled run: %v", err)
	}
	// A context that ends while the other backend runs.
	ctx, cancel := context.WithCancel(context.Background())
	before := *c.runs
	stopping := *to
	stopping.Host = NewHost(&stopper{c, cancel}, to.Host.support)
	p = load(t, mixed(), &stopping)
	if _, err := run(p, ctx, make([]float32, 6), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, expected the context's", err)
	}
	if got := *c.runs - before; got != 1 {
		t.Errorf("%d stretches ran on the host after the context ended in the first", got)
	}
}

// stopper ends a context in each run, and waits until the run has heard of it.
type stopper struct {
	*counting
	cancel func()
}

func (d *stopper) Load(w backend.Weights, words []uint32) (backend.Program, error) {
	p, err := d.counting.Load(w, words)
	return stopperProgram{p, d.cancel}, err
}

type stopperProgram struct {
	backend.Program
	cancel func()
}

func (p stopperProgram) Run(a *backend.RunArgs) error {
	p.cancel()
	for end := time.Now().Add(5 * time.Second); !a.Arena.Cancel().IsSet() && time.Now().Before(end); {
	}
	return p.Program.Run(a)
}

// tables is a graph whose sorts read constants: of the whole program, and one of its own.
func tables(shared *ir.Tensor, own *ir.Tensor) *ir.Graph {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.I64, ir.Dims(2))
	rows := op.Gather(g.Param("w", shared), op.Neg(x), 0)
	v, _ := op.Sort(op.Add(rows, op.Gather(g.Constant(own), x, 0)), 0, true)
	g.Output("y", op.Neg(v))
	return g
}

// The constants that staged commands read lie on the host's backend once for all specialisations, their own with each.
func TestHostConstants(t *testing.T) {
	to := private(t, elementwise)
	c := withHost(t, to, everything)
	shared := ir.New([]float32{1, 2, 3, 4}, 4)
	base := plan.NewConstants(tables(shared, shared))
	w, err := to.Device.Weights(nil, [][]byte{shared.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	var programs []*Program
	for k := range 3 {
		own := ir.New([]float32{10, 20, 30 * float32(k)}, 3)
		p, err := Load(tables(shared, own), to, base, w)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, p)
		r, err := p.Runner()
		if err != nil {
			t.Fatal(err)
		}
		y := make([]float32, 2)
		r.SetInput(0, ir.New([]int64{-1, 2}, 2).Bytes()) // shared[1] + own[-1], shared[-2] + own[2]
		r.SetOutput(0, ir.New(y, 2).Bytes())
		if err := r.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		p.Release(r)
		if want := []float32{-30*float32(k) - 3, -30*float32(k) - 2}; !slices.Equal(y, want) {
			t.Errorf("got %v, expected %v", y, want)
		}
	}
	if *c.constants != 16+3*12 {
		t.Errorf("the host's backend got %d bytes of constants, expected 16 once and 12 three times", *c.constants)
	}
	short := *to // a program that lives shortly leaves nothing behind
	short.Host = to.Host.Fork()
	p, err := Load(tables(ir.New([]float32{5, 6, 7, 8}, 4), shared), &short, plan.NewConstants(ir.NewGraph("")), nil)
	if err != nil {
		t.Fatal(err)
	}
	before := *c.open
	if err := errors.Join(p.Close(), short.Host.Close()); err != nil {
		t.Error(err)
	}
	if *c.open >= before {
		t.Errorf("%d things are open, %d were before", *c.open, before)
	}
	for _, p := range programs {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(w.Close(), to.Close()); err != nil {
		t.Error(err)
	}
	if *c.open != 0 {
		t.Errorf("%d things are still open", *c.open)
	}
}

// A program that is closed while a runner is out is freed when the runner comes back.
func TestCloseWithARunnerOut(t *testing.T) {
	to := private(t, nothingAtAll)
	c := withHost(t, to, everything)
	p := load(t, mixed(), to)
	r, err := p.Runner()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if *c.open == 0 {
		t.Error("the program was freed under its runner")
	}
	p.Release(r)
	if err := to.Host.Close(); err != nil || *c.open != 0 {
		t.Errorf("%d things are still open (%v)", *c.open, err)
	}
}

func TestConcurrentPrivateRuns(t *testing.T) {
	to := private(t, elementwise)
	withHost(t, to, func(r *ir.Row) bool { return r.Name == "Sort" })
	p := load(t, mixed(), to)
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			for range 30 {
				y, err := run(p, context.Background(), []float32{float32(k), 0, 0, 0, 0, float32(k)}, 0)
				if want := []float32{-1, -1, -float32(k) - 1, -1, -1, -float32(k) - 1}; err != nil || !bytes.Equal(ir.New(y, 6).Bytes(), ir.New(want, 6).Bytes()) {
					t.Errorf("run %d: got %v (%v)", k, y, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(p.Close(), to.Close()); err != nil {
		t.Error(err)
	}
}
