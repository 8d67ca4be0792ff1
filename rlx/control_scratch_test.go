package rlx_test

import (
	"fmt"
	"math"
	"testing"
	"sync"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func try(t *testing.T, name string, in rlx.Feed, build func(g *rlx.Graph)) {
	for _, b := range controlBackends() {
		func() {
			g := rlx.NewGraph(name)
			build(g)
			p, err := rlx.Compile(t.Context(), g, rlx.On(b), rlx.Verify())
			if err != nil {
				t.Logf("%s %s: compile: %v", name, b, err)
				return
			}
			defer p.Close()
			out, err := p.Run(t.Context(), in)
			if err != nil {
				t.Logf("%s %s: run: %T %v", name, b, err, err)
				return
			}
			s := ""
			for k, v := range out {
				x := tensorText(v)
				s += k + " " + x[:min(len(x), 150)] + "; "
			}
			t.Logf("%s %s: %s", name, b, s)
			if _, err := p.Plan(t.Context(), in); err != nil {
				t.Logf("%s %s: PLAN: %v", name, b, err)
			}
		}()
	}
}

func emitting(g *rlx.Graph, n rlx.Value) []rlx.Value {
	return upTo(n, nil, nil, op.WhileOptions{NumEmits: 1}, func(_ *rlx.Graph, n rlx.Value, _, _ []rlx.Value) []rlx.Value { return []rlx.Value{op.Mul(n, n)} })
}

func TestScratch(t *testing.T) {
	n3 := rlx.Feed{"n": ir.Scalar(int64(3))}
	for _, n := range []int64{0, 16, 17, 100, 1000} {
		try(t, fmt.Sprint("emit", n), rlx.Feed{"n": ir.Scalar(n)}, func(g *rlx.Graph) {
			n := g.Input("n", rlx.I64, nil)
			o := emitting(g, n)
			g.Output("a", o[1])
			g.Output("b", o[1])
		})
	}
	try(t, "unused stack", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		g.Output("c", emitting(g, n)[0])
	})
	try(t, "unused stack in scan", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		out := op.Scan([]rlx.Value{n}, nil, nil, func(g *rlx.Graph, c, _, _ []rlx.Value) []rlx.Value { return []rlx.Value{op.Add(emitting(g, c[0])[0], 1)} }, op.ScanOptions{Length: 4})
		g.Output("c", out[0])
	})
	try(t, "stack out of an if", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		out := op.If(op.Gt(n, 2), []rlx.Value{n}, func(g *rlx.Graph, in []rlx.Value) []rlx.Value { return []rlx.Value{emitting(g, in[0])[1], in[0]} },
			func(g *rlx.Graph, in []rlx.Value) []rlx.Value { return []rlx.Value{emitting(g, op.Add(in[0], 1))[1], in[0]} })
		g.Output("c", out[0])
		g.Output("d", out[1])
	})
	try(t, "stack out of a constant if", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		br := func(g *rlx.Graph, in []rlx.Value) []rlx.Value { return emitting(g, in[0])[1:] }
		yes := g.Constant(ir.Scalar(true))
		g.Output("a", op.If(yes, []rlx.Value{n}, br, br)[0])
		g.Output("b", op.If(yes, []rlx.Value{op.Add(n, 20)}, br, br)[0])
	})
	try(t, "symbol used as a dim", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		s := emitting(g, n)[1]
		x := op.Expand(g.Constant(ir.Scalar(float32(1))), s.Shape()[0])
		g.Output("sum", op.Reduce(x, "sum", []int{0}, false))
		g.Output("s", s)
	})
	try(t, "symbol used as a dim of an output", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		s := emitting(g, n)[1]
		g.Output("x", op.Expand(g.Constant(ir.Scalar(float32(1))), s.Shape()[0]))
	})
	try(t, "symbol in a body", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		s := emitting(g, n)[1]
		x := op.If(op.Gt(n, 2), []rlx.Value{n}, func(g *rlx.Graph, in []rlx.Value) []rlx.Value {
			return []rlx.Value{op.Reduce(op.Expand(g.Constant(ir.Scalar(float32(1))), s.Shape()[0]), "sum", []int{0}, false)}
		}, func(g *rlx.Graph, in []rlx.Value) []rlx.Value { return []rlx.Value{g.Constant(ir.Scalar(float32(1)))} })
		g.Output("x", x[0])
		g.Output("s", s)
	})
	try(t, "stack read", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		s := emitting(g, n)[1]
		g.Output("x", op.Neg(s))
	})
	try(t, "stack read in a body", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		out := op.Scan([]rlx.Value{n}, nil, nil, func(g *rlx.Graph, c, _, _ []rlx.Value) []rlx.Value { return []rlx.Value{op.Reduce(emitting(g, c[0])[1], "sum", []int{0}, false)} }, op.ScanOptions{Length: 4})
		g.Output("x", out[0])
	})
	try(t, "stack emitted by a body", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		out := op.Scan([]rlx.Value{n}, nil, nil, func(g *rlx.Graph, c, _, _ []rlx.Value) []rlx.Value { return emitting(g, c[0]) }, op.ScanOptions{Length: 4})
		g.Output("x", out[1])
	})
	try(t, "no results", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		no := func(g *rlx.Graph, in []rlx.Value) []rlx.Value { return nil }
		op.If(op.Gt(n, 2), nil, no, no)
		op.While(nil, []rlx.Value{n}, func(g *rlx.Graph, _, c []rlx.Value) rlx.Value { return op.Lt(c[0], 0) }, func(g *rlx.Graph, _, _ []rlx.Value) []rlx.Value { return nil }, op.WhileOptions{})
		g.Output("n", op.Neg(n))
	})
	try(t, "only emits", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		s := op.While(nil, []rlx.Value{n}, func(g *rlx.Graph, _, c []rlx.Value) rlx.Value { return op.Gt(c[0], 0) }, func(g *rlx.Graph, _, c []rlx.Value) []rlx.Value { return c }, op.WhileOptions{Bounded: true, MaxTrips: 40, NumEmits: 1})
		g.Output("s", s[0])
	})
	try(t, "constant true to Scan", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		s := op.While([]rlx.Value{n}, nil, func(g *rlx.Graph, _, _ []rlx.Value) rlx.Value { return g.Constant(ir.Scalar(true)) }, func(g *rlx.Graph, c, _ []rlx.Value) []rlx.Value { return []rlx.Value{op.Mul(c[0], 2), c[0]} }, op.WhileOptions{Bounded: true, MaxTrips: 5, NumEmits: 1})
		g.Output("c", s[0])
		g.Output("sum", op.Reduce(s[1], "sum", []int{0}, false))
	})
	try(t, "folded true to Scan", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		s := op.While([]rlx.Value{n}, nil, func(g *rlx.Graph, _, _ []rlx.Value) rlx.Value { return op.Gt(g.Constant(ir.Scalar(int64(3))), 2) }, func(g *rlx.Graph, c, _ []rlx.Value) []rlx.Value { return []rlx.Value{op.Mul(c[0], 2), c[0]} }, op.WhileOptions{Bounded: true, MaxTrips: 5, NumEmits: 1})
		g.Output("c", s[0])
		g.Output("s", s[1])
	})
	try(t, "constant if ill typed", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		s := op.If(g.Constant(ir.Scalar(false)), []rlx.Value{n}, func(g *rlx.Graph, in []rlx.Value) []rlx.Value { return []rlx.Value{op.MatMul(in[0], in[0])} }, func(g *rlx.Graph, in []rlx.Value) []rlx.Value { return []rlx.Value{op.Neg(in[0])} })
		g.Output("c", s[0])
	})
	try(t, "constant false", n3, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		s := op.While([]rlx.Value{n}, nil, func(g *rlx.Graph, _, _ []rlx.Value) rlx.Value { return g.Constant(ir.Scalar(false)) }, func(g *rlx.Graph, c, _ []rlx.Value) []rlx.Value { return []rlx.Value{op.Mul(c[0], 2), c[0]} }, op.WhileOptions{NumEmits: 1})
		g.Output("c", s[0])
		g.Output("s", s[1])
	})
	deep := func(levels int, constant bool) func(g *rlx.Graph) {
		return func(g *rlx.Graph) {
			n := g.Input("n", rlx.I64, nil)
			p := op.Gt(n, 2)
			if constant {
				p = g.Constant(ir.Scalar(true))
			}
			var nest func(k int) op.Branch
			nest = func(k int) op.Branch {
				return func(g *rlx.Graph, in []rlx.Value) []rlx.Value {
					if k == 0 {
						return []rlx.Value{op.Neg(in[1])}
					}
					return op.If(in[0], in, nest(k-1), func(g *rlx.Graph, in []rlx.Value) []rlx.Value { return in[1:] })
				}
			}
			g.Output("y", nest(levels)(g, []rlx.Value{p, n})[0])
		}
	}
	try(t, "deep 20 constant", n3, deep(20, true))
	try(t, "deep 31", n3, deep(31, false))
	try(t, "deep 33", n3, deep(33, false))
	try(t, "gather in a body", rlx.Feed{"x": f32s([]int{3}, 1, 2, 3), "i": i64s(0, 2, 5)}, func(g *rlx.Graph) {
		x, i := g.Input("x", rlx.F32, rlx.Shape(3)), g.Input("i", rlx.I64, rlx.Shape("t"))
		out := op.Scan(nil, []rlx.Value{x}, []rlx.Value{i}, func(_ *rlx.Graph, _, k, xs []rlx.Value) []rlx.Value {
			return []rlx.Value{op.Gather(k[0], xs[0], 0)}
		}, op.ScanOptions{})
		out[0].Named("lookup")
		g.Output("y", out[0])
	})
	try(t, "rng", rlx.Feed{"n": ir.Scalar(int64(3))}, func(g *rlx.Graph) {
		n := g.Input("n", rlx.I64, nil)
		out := upTo(n, nil, nil, op.WhileOptions{NumEmits: 1}, func(g *rlx.Graph, n rlx.Value, _, _ []rlx.Value) []rlx.Value {
			return []rlx.Value{op.RngUniformWith(g, op.RngUniformAttrs{Shape: rlx.Shape(2), Dtype: rlx.F32, High: 1}, rlx.Value{}, n)}
		})
		g.Output("y", out[1])
	})
	_ = math.NaN
	var _ sync.WaitGroup
}
