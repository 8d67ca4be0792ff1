package null

import (
	"context"
	"errors"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func open(t *testing.T) (backend.Backend, backend.Device) {
	t.Helper()
	Register()
	Register() // a second one changes nothing
	b, err := backend.Lookup("null")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	d, err := b.Open(0, backend.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return b, d
}

func wantCode(t *testing.T, err error, code backend.Code) {
	t.Helper()
	var e *backend.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("got error %v, expected %v", err, code)
	}
}

// A program with a constant, an intermediate value and an output goes through the whole runtime; the output stays as it was.
func TestRunsNothing(t *testing.T) {
	b, d := open(t)
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(4))
	g.Output("y", op.Add(op.Exp(x), g.Constant(ir.New([]float32{1, 2, 3, 4}, 4))))
	base := plan.NewConstants(g)
	w, err := d.Weights(nil, base.Data())
	if err != nil {
		t.Fatal(err)
	}
	p, err := exec.Load(g, &exec.Target{Backend: b, Device: d, Support: pass.NewSupport(Name, b.Caps(), nil)}, base, w)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Runner()
	if err != nil {
		t.Fatal(err)
	}
	y := ir.New([]float32{0, 0, 7, 0}, 4)
	r.SetInput(0, ir.New([]float32{1, 2, 3, 4}, 4).Bytes())
	r.SetOutput(0, y.Bytes())
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got, _ := ir.Data[float32](y); got[0] != 0 || got[2] != 7 {
		t.Errorf("got %v, expected untouched memory", got)
	}
	r.SetInput(0, nil)
	wantCode(t, r.Run(context.Background()), backend.BadArgument)
	p.Release(r)
	if err := errors.Join(p.Close(), w.Close(), d.Close()); err != nil {
		t.Error(err)
	}
}

func TestEveryRowIsNative(t *testing.T) {
	b, _ := open(t)
	s := pass.NewSupport(Name, b.Caps(), nil)
	for _, r := range ir.Rows() {
		if r.Has(ir.Leaf) {
			continue
		}
		for _, d := range ir.DTypes() {
			if n := (&ir.Node{Row: r, Types: []ir.Type{{DType: d}}}); !s.Native(n) || !s.Strided(n) {
				t.Errorf("%s of %s is not native", r.Name, d)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	b, d := open(t)
	_, err := b.Open(1, backend.Options{})
	wantCode(t, err, backend.NoDevice)
	_, err = d.Load(nil, []uint32{1, 2, 3})
	wantCode(t, err, backend.BadWords)

	words, err := prog.Encode(&prog.Program{Consts: []prog.Type{{DType: ir.F32, Dims: []int64{2}}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Load(nil, words)
	wantCode(t, err, backend.BadWords)
	parent, _ := d.Weights(nil, [][]byte{make([]byte, 8)})
	if _, err = d.Load(parent, words); err != nil {
		t.Error(err)
	}
	short, _ := d.Weights(nil, [][]byte{make([]byte, 4)})
	_, err = d.Load(short, words)
	wantCode(t, err, backend.BadWords)
	child1, _ := d.Weights(parent, [][]byte{make([]byte, 1)})
	child2, _ := d.Weights(parent, [][]byte{make([]byte, 2), nil})
	if len(child1.(weights)) != 2 || child1.(weights)[1] != 1 || len(child2.(weights)) != 3 {
		t.Errorf("children of one parent: %v and %v", child1, child2)
	}
}

func TestCancel(t *testing.T) {
	p := program{&prog.Program{Commands: make([]prog.Command, 1)}}
	a, err := p.NewArena()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(&backend.RunArgs{Count: 1, Arena: a}); err != nil {
		t.Error(err)
	}
	wantCode(t, p.Run(&backend.RunArgs{Count: 2, Arena: a}), backend.BadArgument)
	a.Cancel().Set()
	wantCode(t, p.Run(&backend.RunArgs{Count: 1, Arena: a}), backend.Cancelled)
}
