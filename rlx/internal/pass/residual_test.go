package pass_test

import (
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// The sum in front of a norm becomes its second result; where it may not, the graph stays.
func TestResidual(t *testing.T) {
	norm := func(x ir.Value) ir.Value { return op.LayerNorm(x, ir.Value{}, ir.Value{}, -1, 1e-5) }
	for _, c := range []struct {
		name, want string
		d          ir.DType
		build      func(g *ir.Graph, x, y ir.Value)
	}{
		{"layer norm", "FusedResidualLN", ir.F32, func(g *ir.Graph, x, y ir.Value) { g.Output("z", norm(op.Add(x, y))) }},
		{"other order", "FusedResidualLN", ir.F64, func(g *ir.Graph, x, y ir.Value) { g.Output("z", norm(op.Add(y, x))) }},
		{"rms norm", "FusedResidualRmsNorm", ir.F32, func(g *ir.Graph, x, y ir.Value) {
			g.Output("z", op.RmsNorm(op.Add(x, y), ir.Value{}, ir.Value{}, -1, 1e-5))
		}},
		{"later reader", "FusedResidualLN Binary", ir.F32, func(g *ir.Graph, x, y ir.Value) {
			s := op.Add(x, y)
			g.Output("z", op.Add(norm(s), s))
		}},
		{"sum is an output", "FusedResidualLN", ir.F32, func(g *ir.Graph, x, y ir.Value) {
			s := op.Add(x, y)
			g.Output("s", s)
			g.Output("z", norm(s))
		}},
		{"earlier reader", "Binary Activation LayerNorm Binary", ir.F32, func(g *ir.Graph, x, y ir.Value) {
			s := op.Add(x, y)
			e := op.Exp(s)
			g.Output("z", op.Add(norm(s), e))
		}},
		{"broadcast", "Narrow Binary LayerNorm", ir.F32, func(g *ir.Graph, x, y ir.Value) {
			g.Output("z", norm(op.Add(x, op.Narrow(y, 0, 0, 1))))
		}},
		{"f16", "Binary LayerNorm", ir.F16, func(g *ir.Graph, x, y ir.Value) { g.Output("z", norm(op.Add(x, y))) }},
		{"difference", "Binary LayerNorm", ir.F32, func(g *ir.Graph, x, y ir.Value) { g.Output("z", norm(op.Sub(x, y))) }},
		{"twice the same", "Binary LayerNorm", ir.F32, func(g *ir.Graph, x, y ir.Value) { g.Output("z", norm(op.Add(x, x))) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := ir.NewGraph("g")
			c.build(g, g.Input("x", c.d, ir.Dims(3, 6)), g.Input("y", c.d, ir.Dims(3, 6)))
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			out := passed(t, g, pass.Residual)
			if got := rowsOf(out); got != c.want {
				t.Fatalf("got %s, expected %s\n%s", got, c.want, out)
			}
			for k := range 8 {
				r := rng(uint64(k))
				feed := randomFeed(g, r, func(string) []float64 {
					if k%2 == 0 {
						return nil
					}
					return special
				})
				sameNumbers(t, evaluate(t, out, feed), evaluate(t, g, feed), out)
			}
		})
	}
}
