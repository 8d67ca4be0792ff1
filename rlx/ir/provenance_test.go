package ir_test

import (
	"testing"

	. "github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// A copy has the types of the original where inference sees the same, and is inferred anew where it does not: other shapes, a constant in place of
// another value, another name of an unknown length.
func TestCopyInfersAnew(t *testing.T) {
	g := NewGraph("g")
	x := g.Input("x", F32, Dims(2, 3))
	y := op.Exp(x).Named("y").Node()
	long := g.Input("long", F32, []Dim{Sym("n")})
	some := op.Resize(long, op.ResizeAttrs{Axes: []int64{0}, Scales: []float64{1.7}}).Named("some").Node()

	to := NewGraph("to")
	same, other := to.Input("same", F32, Dims(2, 3)), to.Input("other", F32, []Dim{Sym("n"), D(4)})
	longer := to.Input("longer", F32, []Dim{Sym("n")})
	for _, tc := range []struct {
		n    *Node
		in   Value
		want string
	}{{y, same, "f32[2, 3]"}, {y, other, "f32[n, 4]"}, {some, longer, some.Types[0].String()}} {
		out, err := to.Copy(tc.n, []Value{tc.in})
		if err != nil || out[0].Type().String() != tc.want {
			t.Errorf("copy of %s on %s: got %s (%v), expected %s", tc.n, tc.in.Type(), out[0].Type(), err, tc.want)
		}
	}
	again, err := to.Copy(some, []Value{longer}) // "some.1", and so its length
	if err != nil || again[0].Type().Equal(some.Types[0]) {
		t.Errorf("copy under another name: %v (%v)", again, err)
	}
	if _, err := to.Copy(x.Node(), nil); err != nil {
		t.Error(err)
	}
	if _, err := to.Copy(x.Node(), nil); err == nil {
		t.Error("two inputs of one name")
	}
}

// A node stands for those that fell out of use when it came in place of their reader, and for what they stood for; a leaf counts as no node.
func TestMerges(t *testing.T) {
	g := NewGraph("g")
	x := g.Input("x", F32, Dims(3))
	a := op.Exp(x).Named("a")
	b := op.Neg(a).Named("b")
	c := op.Mul(b, g.Constant(New([]float32{1, 2, 3}, 3))).Named("c")
	a.Node().Absorbed = []Origin{{Op: "Old", Name: "older"}}
	whole := op.Tanh(x).Named("whole").Node()
	g.Output("y", whole.Out(0))
	op.Log(c).Named("unused")
	var m Merges
	m.Add(len(g.Nodes), []Value{c}, whole)
	m.Settle(g)
	var names []string
	for _, o := range whole.Absorbed {
		names = append(names, o.Name)
	}
	if len(names) != 4 || names[0] != "a" || names[1] != "older" || names[2] != "b" || names[3] != "c" {
		t.Errorf("got %v", names)
	}
	for _, n := range g.Nodes {
		if n != whole && n != a.Node() && n.Absorbed != nil {
			t.Errorf("%s stands for %v", n, n.Absorbed)
		}
	}
}
