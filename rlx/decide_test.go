package rlx_test

import (
	"context"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// chosen is a graph with an If on n > 2, and in its branch one on n > 4: y is -x, 2x or x + n.
func chosen() *rlx.Graph {
	g := rlx.NewGraph("chosen")
	x := g.Input("x", rlx.F32, rlx.Shape("b"))
	n := g.Input("n", rlx.I64, rlx.Shape())
	y := op.If(op.Gt(n, 2), []ir.Value{x, n}, func(g *ir.Graph, in []ir.Value) []ir.Value {
		return op.If(op.Gt(in[1], 4), in, func(_ *ir.Graph, in []ir.Value) []ir.Value {
			return []ir.Value{op.Add(in[0], op.Cast(in[1], rlx.F32))}
		}, func(_ *ir.Graph, in []ir.Value) []ir.Value { return []ir.Value{op.Mul(in[0], 2)} })
	}, func(_ *ir.Graph, in []ir.Value) []ir.Value { return []ir.Value{op.Neg(in[0])} })
	g.Output("y", y[0])
	return g
}

func kinds(t *testing.T, p *rlx.Program) []string {
	t.Helper()
	placed, err := p.Placement()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, n := range placed {
		list = append(list, n.Op)
	}
	return list
}

// A small input that decides on an If is a part of what a program is specialised for, until it takes too many values.
func TestIfByInput(t *testing.T) {
	ctx := context.Background()
	p, err := rlx.Compile(ctx, chosen())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	want := func(x float32, n int64) float32 {
		switch {
		case n > 4:
			return x + float32(n)
		case n > 2:
			return 2 * x
		}
		return -x
	}
	r := p.Runner()
	defer r.Close()
	check := func(n int64, batch int) {
		t.Helper()
		x, y := make([]float32, batch), make([]float32, batch)
		var expected []float32
		for i := range x {
			x[i] = float32(i) + 0.5
			expected = append(expected, want(x[i], n))
		}
		feed := rlx.Feed{"x": rlx.New(x, batch), "n": rlx.New([]int64{n})}
		out, err := p.Run(ctx, feed)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := rlx.Data[float32](out["y"]); err != nil || !slices.Equal(got, expected) {
			t.Errorf("n = %d: got %v (%v), expected %v", n, got, err, expected)
		}
		if err := r.RunInto(ctx, feed, rlx.Feed{"y": rlx.New(y, batch)}); err != nil || !slices.Equal(y, expected) {
			t.Errorf("n = %d, RunInto: got %v (%v), expected %v", n, y, err, expected)
		}
	}
	for _, c := range []struct {
		n    int64
		kind string
	}{{1, "Activation"}, {3, "Binary"}, {5, "Binary"}, {2, "Activation"}} {
		check(c.n, 3)
		if got := kinds(t, p); !slices.Equal(got, []string{c.kind}) {
			t.Errorf("n = %d runs %v, expected a %s alone", c.n, got, c.kind)
		}
	}
	for n := range int64(20) {
		check(n, 2)
	}
	check(4, 5)
	if got := kinds(t, p); !slices.Contains(got, "If") {
		t.Errorf("after 20 values of n the program runs %v, expected one that leaves the choice to each run", got)
	}
	for n := range int64(7) {
		check(n, 5)
	}
}
