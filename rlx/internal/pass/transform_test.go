package pass_test

import (
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func TestTransform(t *testing.T) {
	twice := op.ResizeNearest2x
	resize := func(x ir.Value, a op.ResizeAttrs) ir.Value {
		a.Axes, a.Mode = []int64{2, 3}, op.ResizeNearest
		return op.Resize(x, a)
	}
	floor := op.ResizeAttrs{Scales: []float64{2, 2}, CoordinateMode: "asymmetric", NearestMode: "floor"}
	ceil := floor
	ceil.NearestMode = "ceil"
	half := op.ResizeAttrs{Sizes: ir.Dims(6, 8), CoordinateMode: "half_pixel"}
	third := floor
	third.Scales = []float64{3, 3}
	read := func(v ir.Value) ir.Value {
		v.Graph().Output("too", v)
		return v
	}
	checkRules(t, pass.Transform, typeOf(ir.F32, 1, 2, 3, 4), []ruleCase{
		{"crop behind", func(x ir.Value) ir.Value { return op.Narrow(twice(x), 2, 1, 4) }, "TransformRegion"},
		{"transpose behind", func(x ir.Value) ir.Value { return channelsLast(twice(x)) }, "TransformRegion"},
		{"flip behind", func(x ir.Value) ir.Value { return op.Reverse(twice(x), -1, 1) }, "TransformRegion"},
		{"doubled twice", func(x ir.Value) ir.Value { return twice(twice(x)) }, "TransformRegion"},
		{"a long chain", func(x ir.Value) ir.Value {
			return op.Narrow(op.Reverse(op.Transpose(twice(op.Narrow(op.Reverse(twice(op.Transpose(x, 0, 1, 3, 2)), 3), 3, 1, 3)), 0, 2, 1, 3), 1), -1, -5, 3)
		}, "TransformRegion"},
		{"resize that repeats", func(x ir.Value) ir.Value { return channelsLast(resize(x, floor)) }, "TransformRegion"},
		{"resize that repeats, by its sizes", func(x ir.Value) ir.Value { return channelsLast(resize(x, half)) }, "TransformRegion"},
		{"resize that repeats alone", func(x ir.Value) ir.Value { return resize(x, floor) }, "ResizeNearest2x"},
		{"resize that repeats between others", func(x ir.Value) ir.Value { return op.Neg(resize(op.Abs(x), half)) }, "Activation ResizeNearest2x Activation"},
		{"resize of one axis", func(x ir.Value) ir.Value { return op.Resize(x, op.ResizeAttrs{Axes: []int64{3}, Scales: []float64{2}}) }, "Resize"},
		{"resize that rounds up alone", func(x ir.Value) ir.Value { return resize(x, ceil) }, "Resize"},
		{"resize that rounds up", func(x ir.Value) ir.Value { return channelsLast(resize(x, ceil)) }, "Resize Transpose"},
		{"resize by three", func(x ir.Value) ir.Value { return channelsLast(resize(x, third)) }, "Resize Transpose"},
		{"linear resize", func(x ir.Value) ir.Value {
			return channelsLast(op.Resize(x, op.ResizeAttrs{Axes: []int64{2, 3}, Scales: []float64{2, 2}, Mode: "linear"}))
		}, "Resize Transpose"},
		{"nothing behind", func(x ir.Value) ir.Value { return twice(op.Reverse(channelsLast(x), 1)) }, "Transpose Reverse ResizeNearest2x"},
		{"no doubling", func(x ir.Value) ir.Value { return op.Narrow(op.Reverse(channelsLast(x), 1), 2, 0, 1) }, "Transpose Reverse Narrow"},
		{"another reader", func(x ir.Value) ir.Value { return channelsLast(read(twice(x))) }, "ResizeNearest2x Transpose"},
		{"another node between", func(x ir.Value) ir.Value { return channelsLast(op.Neg(twice(x))) }, "ResizeNearest2x Activation Transpose"},
		{"slice with steps", func(x ir.Value) ir.Value { return op.Slice(twice(x), ir.Dims(0), ir.Dims(5), []int{2}, []int64{2}) }, "ResizeNearest2x Slice"},
	})
	checkRules(t, pass.Transform, typeOf(ir.I16, 2, 1, 3, 4), []ruleCase{
		{"integers", func(x ir.Value) ir.Value { return op.Narrow(twice(x), 0, 1, 1) }, "TransformRegion"},
	})
}

func TestTransformNeedsKernel(t *testing.T) {
	g := ir.NewGraph("g")
	g.Output("y", channelsLast(op.ResizeNearest2x(g.Input("x", ir.F32, ir.Dims(1, 2, 3, 4)))))
	for _, s := range []*pass.Support{nil, support(named("ResizeNearest2x"), nil)} {
		out, err := pass.Pipeline{Passes: []pass.Pass{pass.Transform}, Support: s, Verify: true}.Run(g)
		if err != nil {
			t.Fatal(err)
		}
		wantKinds(t, out, "Input ResizeNearest2x Transpose")
	}
}

func TestDoublingNeedsKernel(t *testing.T) {
	g := ir.NewGraph("g")
	g.Output("y", op.Resize(g.Input("x", ir.F32, ir.Dims(1, 2, 3, 4)), op.ResizeAttrs{Axes: []int64{2, 3}, Scales: []float64{2, 2}, Mode: op.ResizeNearest}))
	for want, s := range map[string]*pass.Support{"Input Resize": support(named("Resize"), nil), "Input ResizeNearest2x": support(named("ResizeNearest2x"), nil)} {
		out, err := pass.Pipeline{Passes: []pass.Pass{pass.Transform}, Support: s, Verify: true}.Run(g)
		if err != nil {
			t.Fatal(err)
		}
		wantKinds(t, out, want)
	}
}
