package pass_test

import (
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// loop is c = exp(c) * b + x[t], which gives c of every step too.
func loop(c, b, x ir.Value, o op.ScanOptions) []ir.Value {
	return op.Scan([]ir.Value{c}, []ir.Value{b}, []ir.Value{x}, func(g *ir.Graph, carries, captures, xs []ir.Value) []ir.Value {
		y := op.Add(op.Mul(op.Sigmoid(carries[0]), captures[0]), xs[0])
		return []ir.Value{y, y}
	}, o)
}

func TestUnroll(t *testing.T) {
	operands := func(g *ir.Graph, steps ir.Dim) (c, b, x ir.Value) {
		return g.Input("c", ir.F32, ir.Dims(2, 3)), g.Input("b", ir.F32, ir.Dims(3)), g.Input("x", ir.F32, []ir.Dim{steps, ir.D(2), ir.D(3)})
	}
	outputs := func(g *ir.Graph, list []ir.Value) {
		for i, v := range list {
			g.Output(string(rune('p'+i)), v)
		}
	}
	for _, c := range []struct {
		name  string
		build func(g *ir.Graph) []ir.Value
		stays bool
	}{
		{"one step", func(g *ir.Graph) []ir.Value { c, b, x := operands(g, ir.D(1)); return loop(c, b, x, op.ScanOptions{}) }, false},
		{"eight steps", func(g *ir.Graph) []ir.Value { c, b, x := operands(g, ir.D(8)); return loop(c, b, x, op.ScanOptions{}) }, false},
		{"backwards, carries saved", func(g *ir.Graph) []ir.Value {
			c, b, x := operands(g, ir.D(5))
			return loop(c, b, x, op.ScanOptions{Reverse: true, Checkpoints: 2})
		}, false},
		{"steps that read no rows", func(g *ir.Graph) []ir.Value {
			return op.Scan([]ir.Value{g.Input("c", ir.F32, ir.Dims(4))}, nil, nil, func(g *ir.Graph, carries, captures, xs []ir.Value) []ir.Value {
				return []ir.Value{op.Mul(carries[0], 1.5)}
			}, op.ScanOptions{Length: 3})
		}, false},
		{"nine steps", func(g *ir.Graph) []ir.Value { c, b, x := operands(g, ir.D(9)); return loop(c, b, x, op.ScanOptions{}) }, true},
		{"no step", func(g *ir.Graph) []ir.Value { c, b, x := operands(g, ir.D(0)); return loop(c, b, x, op.ScanOptions{}) }, true},
		{"long body", func(g *ir.Graph) []ir.Value {
			return op.Scan([]ir.Value{g.Input("c", ir.F32, ir.Dims(4))}, nil, nil, func(g *ir.Graph, carries, captures, xs []ir.Value) []ir.Value {
				y := carries[0]
				for range 16 {
					y = op.Neg(y)
				}
				return []ir.Value{y}
			}, op.ScanOptions{Length: 2})
		}, true},
		{"a loop in the body", func(g *ir.Graph) []ir.Value {
			return op.Scan([]ir.Value{g.Input("c", ir.F32, ir.Dims(4))}, nil, nil, func(g *ir.Graph, carries, captures, xs []ir.Value) []ir.Value {
				return op.Scan(carries, nil, nil, func(g *ir.Graph, carries, captures, xs []ir.Value) []ir.Value {
					return []ir.Value{op.Neg(carries[0])}
				}, op.ScanOptions{Length: 9})
			}, op.ScanOptions{Length: 2})
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := ir.NewGraph("g")
			outputs(g, c.build(g))
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			out := passed(t, g, pass.Unroll)
			if got := countOf(out, "Scan") == 1; got != c.stays {
				t.Fatalf("stays a loop: %t, expected %t\n%s", got, c.stays, out)
			}
			if c.stays {
				return
			}
			for k := range 4 {
				feed := map[string]*ir.Tensor{}
				for _, n := range g.Inputs {
					name, _ := n.InputName()
					shape, _ := ir.StaticShape(n.Types[0].Shape)
					feed[name] = specialTensor(rng(uint64(k)), ir.F32, shape...)
				}
				sameBits(t, oneNaN(evaluate(t, out, feed)), oneNaN(evaluate(t, g, feed)), out)
			}
		})
	}
	t.Run("unknown length", func(t *testing.T) {
		g := ir.NewGraph("g")
		c, b, x := operands(g, ir.Sym("n"))
		outputs(g, loop(c, b, x, op.ScanOptions{}))
		if out := passed(t, g, pass.Unroll); out.String() != g.String() {
			t.Errorf("rewritten: %s", out)
		}
	})
	t.Run("no regions", func(t *testing.T) {
		g := ir.NewGraph("g")
		c, b, x := operands(g, ir.D(4))
		outputs(g, loop(c, b, x, op.ScanOptions{}))
		for _, s := range []*pass.Support{nil, support(named("Scan"), nil)} {
			out, err := pass.Pipeline{Passes: []pass.Pass{pass.Unroll}, Support: s, Verify: true}.Run(g)
			if err != nil || out.String() != g.String() {
				t.Errorf("rewritten: %s %v", out, err)
			}
		}
	})
}
