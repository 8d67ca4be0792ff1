package rlx_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Bias, residual and activation in the stores of a convolution give the bits of the nodes apart, with NaN and infinities in x, weights and bias too.
func TestConvEndingsMeanTheirNodes(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		c := newConvEnding(rng)
		fused, n := c.run(t)
		apart, nodes := c.run(t, rlx.OnlyPasses())
		if n >= nodes {
			t.Errorf("%+v, ending %d: %d commands, %d apart: nothing was fused", c.attrs, c.ending, n, nodes)
		}
		for i := range fused.Len() {
			if a, b := float32(fused.Float(i)), float32(apart.Float(i)); math.Float32bits(a) != math.Float32bits(b) && (a == a || b == b) {
				t.Errorf("x %v, w %v, %+v, ending %d: element %d: got %v, apart %v", c.x.Shape(), c.w.Shape(), c.attrs, c.ending, i, a, b)
				break
			}
		}
	}
}

type convEnding struct {
	x, w, other, bias *ir.Tensor // other: weights of the residual
	attrs             op.ConvAttrs
	ending            int
}

func newConvEnding(rng *rand.Rand) *convEnding {
	in, out, k, size := 1+rng.IntN(20), 1+rng.IntN(40), []int{1, 3, 5}[rng.IntN(3)], 5+rng.IntN(20)
	per := in
	c := &convEnding{ending: rng.IntN(6), attrs: op.ConvAttrs{Groups: 1, Padding: []int64{int64(rng.IntN(k)), int64(k / 2)},
		Stride: []int64{int64(1 + rng.IntN(2)), int64(1 + rng.IntN(2))}, Dilation: []int64{1, 1}}}
	if rng.IntN(3) == 0 { // depthwise
		out, per, c.attrs.Groups = in, 1, int64(in)
	}
	special := rng.IntN(4)
	fill := func(odd bool, dims ...int) *ir.Tensor {
		n := 1
		for _, d := range dims {
			n *= d
		}
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
			if odd && rng.IntN(40) == 0 {
				v[i] = []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), float32(math.Copysign(0, -1))}[rng.IntN(4)]
			}
		}
		return ir.New(v, dims...)
	}
	c.x = fill(special == 1, 1+rng.IntN(2), in, size, size+3)
	c.w, c.other, c.bias = fill(special == 2, out, per, k, k), fill(false, out, per, k, k), fill(special == 3, out, 1, 1)
	return c
}

func (c *convEnding) run(t *testing.T, opts ...rlx.Option) (y *ir.Tensor, commands int) {
	t.Helper()
	g := ir.NewGraph("conv")
	x := g.Input("x", ir.F32, ir.Dims(c.x.Shape()...))
	conv := op.Conv2d(x, g.Constant(c.w), ir.Value{}, c.attrs)
	v := op.Add(conv, g.Constant(c.bias))
	switch c.ending {
	case 1:
		v = op.Relu(v)
	case 2:
		v = op.Clamp(v, 0, 6)
	case 3:
		v = op.HardSwish(v)
	case 4:
		v = op.Relu(op.Add(v, op.Conv2d(x, g.Constant(c.other), ir.Value{}, c.attrs)))
	case 5:
		v = op.Silu(v)
	}
	g.Output("y", v)
	p, err := rlx.Compile(context.Background(), g, append([]rlx.Option{rlx.On("cpu")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	feed := rlx.Feed{"x": c.x}
	plan, err := p.Plan(context.Background(), feed)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Run(context.Background(), feed)
	if err != nil {
		t.Fatal(err)
	}
	return out["y"], len(plan.Commands)
}
