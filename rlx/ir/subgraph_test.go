package ir_test

import (
	"strings"
	"testing"

	. "github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// looped is a graph with a Scan whose body holds an If, over a symbolic dim.
func looped() *Graph {
	g := NewGraph("looped")
	x := g.Input("x", F32, []Dim{Sym("t"), Sym("n")})
	c := g.Input("c", F32, []Dim{Sym("n")})
	out := op.Scan([]Value{c}, nil, []Value{x}, func(_ *Graph, carries, _, xs []Value) []Value {
		sum := op.Add(carries[0], xs[0])
		big := op.Gt(op.Reduce(sum, "sum", []int{0}, false), 1)
		next := op.If(big, []Value{sum}, func(_ *Graph, in []Value) []Value { return []Value{op.Neg(in[0])} },
			func(g *Graph, in []Value) []Value { return []Value{op.Add(in[0], g.Constant(New([]float32{2}, 1)))} })
		return []Value{next[0], sum}
	}, op.ScanOptions{})
	g.Output("last", out[0])
	g.Output("all", out[1])
	return g
}

// A graph with sub-graphs survives its text form, and binding reaches into it.
func TestSubGraphText(t *testing.T) {
	g := looped()
	if err := g.Verify(); err != nil {
		t.Fatal(err)
	}
	text := g.String()
	back, err := ParseGraph(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if again := back.String(); again != text {
		t.Errorf("got\n%s\nfrom\n%s", again, text)
	}
	bound, err := g.Bind(map[string]int64{"t": 5, "n": 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := bound.Verify(); err != nil {
		t.Error(err)
	}
	if got := bound.Outputs[1].Value.Type().String(); got != "f32[5, 3]" {
		t.Errorf("all is %s, expected f32[5, 3]", got)
	}
	bound.EachNode(func(n *Node) {
		for _, typ := range n.Types {
			if _, ok := StaticShape(typ.Shape); !ok {
				t.Errorf("%s keeps type %s", n, typ)
			}
		}
	})
	for n := range text { // a cut text is an error, never a panic
		if n%7 == 0 {
			if _, err := ParseGraph(strings.NewReader(text[:n])); err == nil {
				t.Fatalf("the first %d bytes are a graph", n)
			}
		}
	}
}

// What a sub-graph must not do is refused by name.
func TestSubGraphErrors(t *testing.T) {
	bad := func(want string, build func(g *Graph, x Value) []Value) {
		t.Helper()
		g := NewGraph("g")
		x := g.Input("x", F32, Dims(2))
		build(g, x)
		if err := g.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, expected %q", err, want)
		}
	}
	keep := func(_ *Graph, in []Value) []Value { return in }
	bad("belongs to graph", func(g *Graph, x Value) []Value {
		return op.If(g.Constant(Scalar(true)), nil, func(*Graph, []Value) []Value { return []Value{op.Neg(x)} }, keep)
	})
	bad("C9", func(g *Graph, x Value) []Value {
		return op.If(g.Input("p", Bool, nil), []Value{x}, func(s *Graph, _ []Value) []Value { return []Value{s.Param("w", New([]float32{1, 2}, 2))} }, keep)
	})
	bad("C3", func(g *Graph, x Value) []Value {
		return op.If(g.Input("p", Bool, nil), []Value{x}, keep, func(_ *Graph, in []Value) []Value { return []Value{op.Cast(in[0], F64)} })
	})
	bad("RngUniform: C6", func(g *Graph, x Value) []Value {
		return op.Scan([]Value{x}, nil, nil, func(s *Graph, c, _, _ []Value) []Value {
			return []Value{op.Add(c[0], op.RngUniform(s, F32, 0, 1, D(2)))}
		}, op.ScanOptions{Length: 3})
	})
	bad("C4", func(g *Graph, x Value) []Value {
		return op.Scan([]Value{x}, nil, nil, func(_ *Graph, c, _, _ []Value) []Value { return []Value{op.Reshape(c[0], D(1), D(2))} }, op.ScanOptions{Length: 3})
	})
}
