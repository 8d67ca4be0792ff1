package op

import (
	"math"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Nodes are numbered in order of creation, whichever kind they are.
func TestRandomKeys(t *testing.T) {
	g := ir.NewGraph("")
	a := RngUniform(g, ir.F32, 0, 1, ir.D(3))
	b := RngNormal(g, ir.F32, 0, 1, ir.D(3))
	c := RngUniform(g, ir.F16, 0, 1)
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	got := [3]uint64{a.Node().Attrs.(*RngUniformAttrs).Key, b.Node().Attrs.(*RngNormalAttrs).Key, c.Node().Attrs.(*RngUniformAttrs).Key}
	if got != [3]uint64{0, 1, 2} {
		t.Errorf("keys %v, expected 0, 1, 2", got)
	}
}

func TestRandomRefuses(t *testing.T) {
	uniform := func(a RngUniformAttrs) func(*ir.Graph) {
		return func(g *ir.Graph) { RngUniformWith(g, a, ir.Value{}, ir.Value{}) }
	}
	refused(t, uniform(RngUniformAttrs{Dtype: ir.F32, High: 1}), "RngUniform", "C1", "shape")
	refused(t, uniform(RngUniformAttrs{Dtype: ir.F16, Shape: ir.Dims(1), Low: 1, High: 1.0001}), "C3", "low")
	refused(t, uniform(RngUniformAttrs{Dtype: ir.F64, Shape: ir.Dims(1), Low: -math.MaxFloat64, High: math.MaxFloat64}), "C3")
	refused(t, uniform(RngUniformAttrs{Dtype: ir.F32, Shape: ir.Dims(1<<34 + 1), High: 1}), "C5")
	refused(t, uniform(RngUniformAttrs{Dtype: ir.F64, Shape: ir.Dims(1<<33 + 1), High: 1}), "C5")
	refused(t, uniform(RngUniformAttrs{Dtype: ir.F32, Shape: ir.Dims(-1), High: 1}), "C1")
	refused(t, uniform(RngUniformAttrs{Dtype: ir.F32, Shape: ir.Dims(1), High: 1, Seed: ir.IntNumber(-1)}), "RngUniform", "seed")
	refused(t, func(g *ir.Graph) {
		RngNormalWith(g, RngNormalAttrs{Dtype: ir.F32, Shape: ir.Dims(1), Scale: 1}, ir.Value{}, g.Input("step", ir.I64, ir.Dims(2)))
	}, "RngNormal", "C4", "step")
	refused(t, func(g *ir.Graph) {
		RngNormalWith(g, RngNormalAttrs{Dtype: ir.F32, Shape: ir.Dims(1), Scale: 1}, ir.Value{}, g.Input("step", ir.I32, ir.Dims()))
	}, "RngNormal", "C4", "step")
}

func TestFloatBelow(t *testing.T) {
	for _, c := range []struct {
		d       ir.DType
		v, want float64
	}{
		{ir.F16, 1, 1 - 0x1p-11}, {ir.BF16, 1, 1 - 0x1p-8}, {ir.F32, 1, 1 - 0x1p-24}, {ir.F64, 1, 1 - 0x1p-53},
		{ir.F16, 0, -0x1p-24}, {ir.BF16, 0, -0x1p-133}, {ir.F16, -1, -1 - 0x1p-10}, {ir.BF16, -2, -2 - 0x1p-6},
	} {
		if got := FloatBelow(c.d, c.v); got != c.want {
			t.Errorf("below %s %g: got %g, expected %g", c.d, c.v, got, c.want)
		}
	}
}
