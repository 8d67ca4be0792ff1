package ir_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	. "github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// variety is a graph with what a packed one has to bring back: sub-graphs, symbolic and negative dims, absent operands, several results,
// attributes of every kind, constants that are shared, a param, parts of a node and what nodes stand for.
func variety(shared *Tensor) *Graph {
	g := looped()
	x := g.Input("pixels", F32, []Dim{Sym("n").Mul(D(2)).Add(D(1)), D(8), D(6), D(6)})
	w := g.Param("layer.0.weight", New(make([]float32, 8*8*9), 8, 8, 3, 3))
	y := op.Conv2d(x, w, Value{}, op.ConvAttrs{Stride: []int64{1, 2}, Padding: []int64{}, Groups: 1}).Named("layer.0.conv")
	again := op.Conv2d(x, w, g.Constant(shared), op.ConvAttrs{Padding: []int64{1, 1, 1, 1}, Groups: 1})
	parts := g.Within(y.Node(), func() []Value {
		return []Value{op.Clamp(op.Add(op.Reshape(again, D(-1), D(8)), g.Constant(shared)), math.Copysign(0, -1), math.Inf(1))}
	})
	parts[0].Node().Absorb(again.Node())
	values, index := op.TopK(op.Reshape(y, D(-1)), 2, 0, true)
	g.Output("values", values)
	g.Output("index", op.Cast(index, I32))
	g.Output("parts", parts[0])
	g.Output("nan", op.Mul(parts[0], math.NaN()))
	g.Output("slope", op.LeakyRelu(parts[0], math.Copysign(0, -1)))
	return g
}

// sameGraph compares all that a graph says; tensors by identity.
func sameGraph(t *testing.T, got, want *Graph) {
	t.Helper()
	if got.String() != want.String() {
		t.Fatalf("got\n%s\nexpected\n%s", got, want)
	}
	for i, n := range want.Nodes {
		m := got.Nodes[i]
		if m.ID() != i || m.Graph() != got || m.From != n.From || !slices.Equal(m.Absorbed, n.Absorbed) || !reflect.DeepEqual(m.Types, n.Types) {
			t.Errorf("%s: got %d %v %v %v, expected %d %v %v %v", n, m.ID(), m.From, m.Absorbed, m.Types, i, n.From, n.Absorbed, n.Types)
		}
		a, _ := m.Out(0).Const()
		if b, ok := n.Out(0).Const(); a != b {
			t.Errorf("%s: another tensor", n)
		} else if !ok && len(n.Graphs()) == 0 && !sameAttrs(m.Attrs, n.Attrs) {
			t.Errorf("%s: attributes %#v, expected %#v", n, m.Attrs, n.Attrs)
		}
		if name, ok := n.ParamName(); ok && (got.ParamData(name) == nil || got.ParamData(name) != want.ParamData(name)) {
			t.Errorf("%s: another tensor", n)
		}
		for k, sub := range n.Graphs() {
			sameGraph(t, m.Graphs()[k], sub)
		}
	}
	for i, n := range want.Inputs {
		if got.Inputs[i] != got.Nodes[n.ID()] {
			t.Errorf("input %d is %s, expected %s", i, got.Inputs[i], n)
		}
	}
}

// sameAttrs is DeepEqual with bits for floats.
func sameAttrs(a, b any) bool {
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	if x.Type() != y.Type() {
		return false
	}
	for i := range x.NumField() {
		if f := x.Field(i); f.Kind() == reflect.Float64 {
			if math.Float64bits(f.Float()) != math.Float64bits(y.Field(i).Float()) {
				return false
			}
		} else if !reflect.DeepEqual(f.Interface(), y.Field(i).Interface()) {
			return false
		}
	}
	return true
}

// A packed graph comes back as it was, alone and with the strings of another; numbered tensors are asked for once, by type.
func TestPack(t *testing.T) {
	shared := New(make([]float32, 8), 8)
	g := variety(shared)
	if err := g.Verify(); err != nil {
		t.Fatal(err)
	}
	w := g.ParamData("layer.0.weight")
	first := Pack(g, []*Tensor{w, shared}, nil)
	bound, err := g.Bind(map[string]int64{"n": 1, "t": 3})
	if err != nil {
		t.Fatal(err)
	}
	second := Pack(bound, []*Tensor{w, shared}, first)
	for k, p := range []*Packed{first, second} {
		want := []*Graph{g, bound}[k]
		asked := []int{}
		got := p.Unpack(func(i int, d DType, shape []int64) *Tensor {
			asked = append(asked, i)
			x := []*Tensor{w, shared}[i]
			if d != x.DType() || !slices.Equal(shape, x.Shape()) {
				t.Errorf("tensor %d: asked for %s%v, it is %s%v", i, d, shape, x.DType(), x.Shape())
			}
			return x
		})
		if err := got.Verify(); err != nil {
			t.Fatal(err)
		}
		sameGraph(t, got, want)
		if !slices.Equal(asked, []int{0, 1}) || p.Nodes() != len(want.Nodes) {
			t.Errorf("asked for %v, %d nodes", asked, p.Nodes())
		}
		if v := op.Neg(got.Nodes[0].Out(0)).Named("layer.0.conv"); v.Node().Name == "layer.0.conv" {
			t.Error("a name was given twice")
		}
	}
	if second.Bytes() >= first.Bytes() {
		t.Errorf("%d bytes beside a graph of %d with the same names", second.Bytes(), first.Bytes())
	}
}

// A sub-graph that is not built yet stays as it is.
func TestPackDeferred(t *testing.T) {
	g := NewGraph("g")
	x := g.Input("x", F32, Dims(2))
	sub := SubGraph("later", 1, func(_ *Graph, in []Value) []Value { return []Value{op.Neg(in[0])} })
	out := op.IfGraphs(g.Input("p", Bool, nil), []Value{x}, sub, sub)
	g.Output("y", out[0])
	got := Pack(g, nil, nil).Unpack(nil)
	n, m := out[0].Node(), got.Nodes[len(got.Nodes)-1]
	for i, s := range n.Graphs() {
		if s == sub && m.Graphs()[i] != sub || s.String() != m.Graphs()[i].String() {
			t.Errorf("branch %d: got\n%s\nexpected\n%s", i, m.Graphs()[i], s)
		}
	}
}
