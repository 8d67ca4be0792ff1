package pass_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func TestColumnConvolutions(t *testing.T) {
	weights := func(x ir.Value, shape ...int) ir.Value { return x.Graph().Param("w", shaped(shape...)) }
	const laid = "Reshape Reshape Conv Reshape"
	checkRules(t, pass.Columns, typeOf(ir.F32, 2, 4, 9, 1), []ruleCase{
		{"plain", func(x ir.Value) ir.Value { return op.Conv(x, weights(x, 3, 4, 5, 1), op.ConvAttrs{}) }, laid},
		{"strides, dilations, padding", func(x ir.Value) ir.Value {
			return op.Conv(x, weights(x, 3, 4, 3, 1), op.ConvAttrs{Stride: []int64{2, 3}, Dilation: []int64{2, 1}, Padding: []int64{1, 0, 3, 0}})
		}, laid},
		{"padding of both ends", func(x ir.Value) ir.Value {
			return op.Conv(x, weights(x, 3, 4, 3, 1), op.ConvAttrs{Stride: []int64{1, 3}, Padding: []int64{2, 0}})
		}, laid},
		{"groups", func(x ir.Value) ir.Value { return op.Conv(x, weights(x, 6, 2, 5, 1), op.ConvAttrs{Groups: 2}) }, laid},
		{"padding of the same size", func(x ir.Value) ir.Value {
			return op.Conv(x, weights(x, 3, 4, 4, 1), op.ConvAttrs{AutoPad: "same_lower", Stride: []int64{2, 1}})
		}, laid},
		{"one column that is nothing but padding", func(x ir.Value) ir.Value {
			return op.Conv(x, weights(x, 3, 4, 3, 1), op.ConvAttrs{Stride: []int64{1, 4}, Padding: []int64{0, 1, 0, 1}})
		}, laid},
		{"with its ending", func(x ir.Value) ir.Value {
			return op.FusedConvBiasAct(x, weights(x, 4, 4, 3, 1), x.Graph().Param("b", shaped(4)), op.Neg(x), op.FusedConvAttrs{Padding: []int64{1, 0}, Activation: "relu"})
		}, "Activation Reshape Reshape Reshape FusedConvBiasAct Reshape"},
		{"padding makes columns", func(x ir.Value) ir.Value {
			return op.Conv(x, weights(x, 3, 4, 3, 1), op.ConvAttrs{Padding: []int64{0, 1, 0, 0}})
		}, "Conv"},
		{"kernel of columns", func(x ir.Value) ir.Value {
			return op.Conv(x, weights(x, 3, 4, 3, 2), op.ConvAttrs{Padding: []int64{0, 1, 0, 0}})
		}, "Conv"},
		{"columns", func(x ir.Value) ir.Value {
			return op.Conv(op.Reshape(x, ir.Dims(2, 4, 3, 3)...), weights(x, 3, 4, 3, 1), op.ConvAttrs{Stride: []int64{1, 3}})
		}, "Reshape Conv"},
		{"a row", func(x ir.Value) ir.Value {
			return op.Conv(op.Reshape(x, ir.Dims(2, 4, 1, 9)...), weights(x, 3, 4, 1, 3), op.ConvAttrs{})
		}, "Reshape Conv"},
		{"one element", func(x ir.Value) ir.Value {
			return op.Conv(op.Reshape(x, ir.Dims(2, 36, 1, 1)...), weights(x, 3, 36, 1, 1), op.ConvAttrs{})
		}, "Reshape Conv"},
	})
}

// TestColumnEndings wants a column that is laid down to take along what stands behind it.
func TestColumnEndings(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(2, 4, 9, 1))
	y := op.Conv(x, g.Param("w", shaped(4, 4, 3, 1)), op.ConvAttrs{Padding: []int64{1, 0}})
	y = op.Add(y, op.Reshape(g.Param("b", shaped(4)), ir.D(1), ir.D(4), ir.D(1), ir.D(1)))
	g.Output("y", op.HardSwish(op.Add(y, x)))
	out := late(t, g)
	if got, want := rowsOf(out), "Reshape Reshape Reshape FusedConvBiasAct Reshape"; got != want {
		t.Errorf("got %q, expected %q\n%s", got, want, out)
	}
	feed := map[string]*ir.Tensor{"x": specialTensor(rand.New(rand.NewPCG(5, 6)), ir.F32, 2, 4, 9, 1)}
	sameBits(t, oneNaN(evaluate(t, out, feed)), oneNaN(evaluate(t, g, feed)), out)
}
