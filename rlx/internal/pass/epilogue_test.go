package pass_test

import (
	"math"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// TestConvClamp wants a clamp that has the formula of an activation in the convolution in front of it, and no other.
func TestConvClamp(t *testing.T) {
	special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.Copysign(0, -1)), 0, 6, 7, -1}
	for _, tc := range []struct {
		name, want string
		clamp      func(y ir.Value) ir.Value
	}{
		{"relu6", "FusedConvBiasAct", func(y ir.Value) ir.Value { return op.Clamp(y, 0, 6) }},
		{"relu", "FusedConvBiasAct", func(y ir.Value) ir.Value { return op.Clamp(y, 0, math.Inf(1)) }},
		{"another upper bound", "FusedConvBiasAct Clamp", func(y ir.Value) ir.Value { return op.Clamp(y, 0, 5) }},
		{"another lower bound", "FusedConvBiasAct Clamp", func(y ir.Value) ir.Value { return op.Clamp(y, 1, 6) }},
		{"a lower bound of -0", "FusedConvBiasAct Clamp", func(y ir.Value) ir.Value { return op.Clamp(y, math.Copysign(0, -1), 6) }},
		{"behind an activation", "FusedConvBiasAct Clamp", func(y ir.Value) ir.Value { return op.Clamp(op.HardSwish(y), 0, 6) }},
		{"read twice", "FusedConvBiasAct Clamp Binary", func(y ir.Value) ir.Value { return op.Mul(y, op.Clamp(y, 0, 6)) }},
	} {
		g := ir.NewGraph("g")
		x, w, b := g.Input("x", ir.F32, ir.Dims(1, 1, 1, 8)), g.Input("w", ir.F32, ir.Dims(2, 1, 1, 1)), g.Input("b", ir.F32, ir.Dims(2))
		g.Output("z", tc.clamp(op.Add(op.Conv(x, w, op.ConvAttrs{}), op.Reshape(b, ir.D(1), ir.D(2), ir.D(1), ir.D(1)))))
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		out := late(t, g)
		got := strings.ReplaceAll(rowsOf(out), "Reshape ", "")
		if strings.ReplaceAll(got, "ElementwiseRegion", "Clamp Binary") != tc.want {
			t.Errorf("%s: got %s, expected %s", tc.name, got, tc.want)
		}
		feed := map[string]*ir.Tensor{"x": ir.New(special, 1, 1, 1, 8), "w": ir.New([]float32{1, -1}, 2, 1, 1, 1), "b": ir.New([]float32{0, float32(math.Copysign(0, -1))}, 2)}
		sameBits(t, evaluate(t, out, feed), evaluate(t, g, feed), out)
	}
}
