package plan

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func refView(n *ir.Node, x *ir.Tensor) (*ir.Tensor, error) {
	t := n.Types[0]
	t.DType = x.DType()
	out, err := ref.Apply(n.Row, n.Attrs, []*ir.Tensor{x}, []ir.Type{t})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func TestCheckAcceptsPlans(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for i := range 200 {
		g, _ := randomGraph(r, 10+i%30)
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		for name, s := range supports() {
			p, err := Build(g, s, NewConstants(g))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Check(p, refView); err != nil {
				t.Fatalf("%s: %v\n%s\n%s", name, err, g, dump(p))
			}
		}
	}
}

// Each damage to a good plan is told.
func TestCheckRefuses(t *testing.T) {
	build := func() *Plan {
		g := ir.NewGraph("g")
		x := g.Input("x", ir.F32, ir.Dims(4, 6))
		a := op.Exp(x)
		b := op.Mul(op.Narrow(a, 1, 2, 3), op.Narrow(a, 1, 3, 3))
		c := op.Sum(b, 0)
		g.Output("y", op.Add(op.Exp(op.Expand(op.Reshape(c, ir.Dims(1, 3)...), ir.Dims(4, 3)...)), b))
		g.Output("a", op.Transpose(a, 1, 0))
		p, err := Build(g, supports()["strided"], NewConstants(g))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	find := func(p *Plan, row string, k int) *prog.Command {
		for i := range p.Steps {
			if c := &p.Steps[i].Command; c.Row.Name == row {
				if k == 0 {
					return c
				}
				k--
			}
		}
		t.Fatalf("no %s in\n%s", row, dump(p))
		return nil
	}
	if p := build(); p.Peak == 0 {
		t.Fatal("nothing in the arena")
	} else if _, err := Check(p, refView); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		damage func(p *Plan)
		want   string
	}{
		"offset of a view dropped": {func(p *Plan) { find(p, "Binary", 0).In[0].Offset -= 8 }, "holds something else"},
		"offset beyond its value":  {func(p *Plan) { find(p, "Binary", 0).In[1].Offset += 16 }, "holds"},
		"broadcast stride":         {func(p *Plan) { find(p, "Activation", 1).In[0].Strides[0] = 3 }, "holds"},
		"result over another value": {func(p *Plan) { c := find(p, "Binary", 0); c.Out[0].Offset = c.In[0].Offset &^ 63 },
			"overwrites operand"},
		"result read where it is not": {func(p *Plan) { find(p, "Reduce", 0).Out[0].Offset += 64 }, "lies"},
		"dtype of a result":           {func(p *Plan) { find(p, "Reduce", 0).Out[0].DType = ir.I32 }, "the value is"},
		"output never written":        {func(p *Plan) { p.Steps = p.Steps[:len(p.Steps)-1] }, "holds nothing"},
		"order of commands":           {func(p *Plan) { p.Steps[0], p.Steps[1] = p.Steps[1], p.Steps[0] }, "holds nothing"},
		"output written to an input":  {func(p *Plan) { find(p, "Copy", 0).Out[0].Slot = prog.Input }, "no place for a result"},
	} {
		p := build()
		tc.damage(p)
		if _, err := Check(p, refView); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, expected an error with %q\n%s", name, err, tc.want, dump(p))
		}
	}
}
