package pass_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// randoms is a tensor of numbers from lo to hi.
func randoms(r *rand.Rand, lo, hi float64, shape ...int) *ir.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(lo + r.Float64()*(hi-lo))
	}
	return ir.New(v, shape...)
}

// near wants equal types, the same NaNs and infinities, and numbers within ulp units in the last place of f32 or abs.
func near(t *testing.T, got, want []*ir.Tensor, ulp, abs float64, g *ir.Graph) {
	t.Helper()
	for i := range want {
		if !got[i].Type().Equal(want[i].Type()) {
			t.Fatalf("output %d: got %s, expected %s", i, got[i].Type(), want[i].Type())
		}
		for k := range want[i].Len() {
			a, b := got[i].Float(k), want[i].Float(k)
			if math.IsNaN(b) || math.IsInf(b, 0) || math.IsNaN(a) || math.IsInf(a, 0) {
				if a == b || a != a && b != b {
					continue
				}
			} else if math.Abs(a-b) <= ulp*0x1p-23*math.Abs(b)+abs {
				continue
			}
			t.Fatalf("output %d, element %d: got %g, expected %g\n%s", i, k, a, b, g)
		}
	}
}

// convGraph is x -> convolution -> f. The weights are a constant, of 4 channels.
func convGraph(conv func(x, w ir.Value) ir.Value, w *ir.Tensor, f func(g *ir.Graph, y ir.Value) ir.Value) *ir.Graph {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(2, 4, 5, 6))
	g.Output("y", f(g, conv(x, g.Param("w", w))))
	return g
}

func plainConv(x, w ir.Value) ir.Value {
	return op.Conv(x, w, op.ConvAttrs{Padding: []int64{1, 1}, Groups: 2})
}

func transposedConv(x, w ir.Value) ir.Value {
	return op.ConvTranspose2d(x, w, ir.Value{}, op.ConvTransposeAttrs{Stride: []int64{2, 1}, Groups: 2})
}

func TestConvScale(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	channels := func(lo, hi float64) *ir.Tensor { return randoms(r, lo, hi, 4) }
	column := func(v ir.Value) ir.Value { return op.Reshape(v, ir.Dims(1, 4, 1, 1)...) }
	batchNorm := func(g *ir.Graph, y ir.Value) ir.Value {
		return op.BatchNormInference(y, g.Constant(channels(-2, 2)), g.Constant(channels(-1, 1)), g.Constant(channels(-1, 1)), g.Constant(channels(0.1, 2)), 1, 1e-5)
	}
	bias := func(g *ir.Graph, y ir.Value) ir.Value { return op.Add(y, column(g.Constant(channels(-1, 1)))) }
	tests := []struct {
		name, want string
		f          func(g *ir.Graph, y ir.Value) ir.Value
	}{
		{"batch norm", "Add", batchNorm},
		{"batch norm behind a bias", "Add", func(g *ir.Graph, y ir.Value) ir.Value { return batchNorm(g, bias(g, y)) }},
		{"affine behind it", "Add", func(g *ir.Graph, y ir.Value) ir.Value {
			return op.Add(op.Mul(batchNorm(g, y), g.Constant(randoms(r, 1, 2, 1))), g.Constant(randoms(r, 1, 2, 1)))
		}},
		{"no gamma and beta", "Add", func(g *ir.Graph, y ir.Value) ir.Value {
			return op.BatchNormInference(y, ir.Value{}, ir.Value{}, g.Constant(channels(-1, 1)), g.Constant(channels(0.1, 2)), 1, 1e-5)
		}},
		{"factor", "", func(g *ir.Graph, y ir.Value) ir.Value { return op.Mul(g.Constant(randoms(r, -2, 2, 4, 1, 1)), y) }},
		{"quotient", "", func(g *ir.Graph, y ir.Value) ir.Value { return op.Div(y, column(g.Constant(channels(1, 2)))) }},
		{"two sums", "Add", func(g *ir.Graph, y ir.Value) ir.Value { return op.Sub(bias(g, y), column(g.Constant(channels(1, 2)))) }},
	}
	convs := []struct {
		name, row string
		conv      func(x, w ir.Value) ir.Value
		w         []int
	}{{"Conv", "Conv", plainConv, []int{4, 2, 3, 3}}, {"ConvTranspose2d", "ConvTranspose2d", transposedConv, []int{4, 2, 3, 3}}}
	for _, c := range convs {
		for _, x := range tests {
			t.Run(c.name+"/"+x.name, func(t *testing.T) {
				g := convGraph(c.conv, randoms(r, -1, 1, c.w...), x.f)
				out := passed(t, g, pass.ConvScale)
				want := "Input Constant " + c.row
				if x.want == "Add" {
					want += " Constant Binary"
				}
				wantKinds(t, out, want)
				feed := map[string]*ir.Tensor{"x": randoms(r, -1, 1, 2, 4, 5, 6)}
				near(t, evaluate(t, out, feed), evaluate(t, g, feed), 64, 4e-6, out) // 18 products of up to 6 each
				for i, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)} {
					ir.PutFloat(ir.F32, feed["x"].Bytes(), 37*i+5, v)
				}
				near(t, evaluate(t, out, feed), evaluate(t, g, feed), 64, 4e-6, out)
			})
		}
	}
}

// Each condition of the folding broken once: the graph stays.
func TestConvScaleLeaves(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	c := func(v ...float32) *ir.Tensor { return ir.New(v, len(v), 1, 1) }
	good := randoms(r, 0.5, 1, 4, 2, 3, 3)
	tiny := randoms(r, 1e-30, 2e-30, 4, 2, 3, 3)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	mul := func(k *ir.Tensor) func(g *ir.Graph, y ir.Value) ir.Value {
		return func(g *ir.Graph, y ir.Value) ir.Value { return op.Mul(y, g.Constant(k)) }
	}
	for _, x := range []struct {
		name string
		w    *ir.Tensor
		f    func(g *ir.Graph, y ir.Value) ir.Value
	}{
		{"one sum alone", good, func(g *ir.Graph, y ir.Value) ir.Value { return op.Add(y, g.Constant(c(1, 2, 3, 4))) }},
		{"no constant", good, func(g *ir.Graph, y ir.Value) ir.Value { return op.Mul(y, g.Input("k", ir.F32, ir.Dims(4, 1, 1))) }},
		{"a factor for each column", good, mul(randoms(r, 1, 2, 6))},
		{"a factor for each item", good, mul(randoms(r, 1, 2, 2, 1, 1, 1))},
		{"infinite factor", good, mul(c(1, inf, 1, 2))},
		{"NaN", good, mul(c(1, nan, 1, 2))},
		{"division by 0", good, func(g *ir.Graph, y ir.Value) ir.Value { return op.Div(y, g.Constant(c(1, 0, 1, 2))) }},
		{"constant on the left of a quotient", good, func(g *ir.Graph, y ir.Value) ir.Value { return op.Div(g.Constant(c(1, 2, 3, 4)), y) }},
		{"constant on the left of a difference", good, func(g *ir.Graph, y ir.Value) ir.Value {
			return op.Mul(op.Sub(g.Constant(c(1, 2, 3, 4)), y), g.Constant(c(1, 2, 3, 4)))
		}},
		{"overflow of a weight", randoms(r, 1e30, 2e30, 4, 2, 3, 3), mul(c(1, 1e30, 1, 1))},
		{"weights that vanish", tiny, mul(c(1, 1e-30, 1, 1))},
		{"weights that lose digits", tiny, mul(c(1, 1e-12, 1, 1))},
		{"negative variance", good, func(g *ir.Graph, y ir.Value) ir.Value {
			none, k := ir.Value{}, g.Constant(ir.New([]float32{1, -1, 1, 1}, 4))
			return op.BatchNormInference(y, none, none, k, k, 1, 1e-5)
		}},
		{"another axis", good, func(g *ir.Graph, y ir.Value) ir.Value {
			none, k := ir.Value{}, g.Constant(ir.New([]float32{1, 2, 1, 1, 3, 4}, 6))
			return op.BatchNormInference(y, none, none, k, k, 3, 1e-5)
		}},
		{"another reader of the convolution", good, func(g *ir.Graph, y ir.Value) ir.Value {
			g.Output("inner", op.Exp(y))
			return op.Mul(y, g.Constant(c(1, 2, 3, 4)))
		}},
		{"an output within", good, func(g *ir.Graph, y ir.Value) ir.Value {
			g.Output("inner", y)
			return op.Mul(y, g.Constant(c(1, 2, 3, 4)))
		}},
		{"another reader of the weights", good, func(g *ir.Graph, y ir.Value) ir.Value {
			g.Output("weights", op.Exp(y.Node().In[1]))
			return op.Mul(y, g.Constant(c(1, 2, 3, 4)))
		}},
		{"a square", good, func(g *ir.Graph, y ir.Value) ir.Value { return op.Mul(y, y) }},
		{"a factor that stretches", good, mul(randoms(r, 1, 2, 3, 1, 4, 1, 1))},
	} {
		t.Run(x.name, func(t *testing.T) {
			g := convGraph(plainConv, x.w, x.f)
			if err := g.Verify(); err != nil {
				t.Fatal(err)
			}
			if out := passed(t, g, pass.ConvScale); out != g {
				t.Errorf("folded:\n%s", out)
			}
		})
	}
	t.Run("f16", func(t *testing.T) {
		g := ir.NewGraph("g")
		x := g.Input("x", ir.F16, ir.Dims(1, 4, 5, 6))
		half := func(n int, shape ...int64) ir.Value {
			z, err := ir.Zeros(ir.F16, shape...)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				ir.PutFloat(ir.F16, z.Bytes(), i, 1.5)
			}
			return g.Constant(z)
		}
		g.Output("y", op.Mul(plainConv(x, half(72, 4, 2, 3, 3)), half(4, 4, 1, 1)))
		if out := passed(t, g, pass.ConvScale); out != g {
			t.Errorf("folded:\n%s", out)
		}
	})
}

// A chain is folded up to its first reader too many, and its product is rounded once: 1.1 * 0.1 * 10 in f64.
func TestConvScaleRoundsOnce(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(1, 1, 3))
	y := op.Conv(x, g.Constant(ir.New([]float32{1.1}, 1, 1, 1)), op.ConvAttrs{})
	for _, k := range []float32{0.1, 10, 0.3, 3} {
		y = op.Mul(y, g.Constant(ir.Scalar(k)))
	}
	g.Output("y", y)
	g.Output("z", op.Mul(y, g.Constant(ir.Scalar(float32(2)))))
	out := passed(t, g, pass.ConvScale)
	wantKinds(t, out, "Input Constant Conv Constant Binary")
	w, _ := out.Outputs[0].Value.Node().In[1].Const()
	want := float32(float64(float32(1.1)) * float64(float32(0.1)) * 10 * float64(float32(0.3)) * 3)
	if w == nil || float32(w.Float(0)) != want {
		t.Errorf("got %s, expected %g", w, want)
	}
}

// pointConv is a graph of one convolution by single points, and a factor of 0.7 behind it.
func pointConv(weights ...float32) *ir.Graph {
	g := ir.NewGraph("g")
	n := int64(len(weights))
	x := g.Input("x", ir.F32, ir.Dims(1, n, 3))
	y := op.Conv(x, g.Param("w", ir.New(weights, 1, int(n), 1)), op.ConvAttrs{})
	g.Output("y", op.Add(op.Mul(y, g.Constant(ir.Scalar(float32(0.7)))), g.Constant(ir.Scalar(float32(0.25)))))
	return g
}

// Subnormal weights lose digits where they are scaled. A few of them do not matter, whatever the input; many might, and so might one that vanishes.
func TestConvScaleOfSubnormalWeights(t *testing.T) {
	const s, most = 1.23e-41, math.MaxFloat32
	g := pointConv(0.5, s, s, s, s)
	out := passed(t, g, pass.ConvScale)
	wantKinds(t, out, "Input Constant Conv Constant Binary")
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	x := ir.New([]float32{1, -2, 0, most, 0, most, -most, 1, most, most, 3, most, 0, -1, most}, 1, 5, 3)
	feed := map[string]*ir.Tensor{"x": x}
	near(t, evaluate(t, out, feed), evaluate(t, g, feed), 32, 1e-6, out) // the tolerance of Conv
	feed["x"] = ir.New([]float32{1, 1, 1, inf, nan, 0, 0, 0, 0, 0, 0, -inf, 0, 0, 0}, 1, 5, 3)
	near(t, evaluate(t, out, feed), evaluate(t, g, feed), 32, 1e-6, out)
	for _, w := range [][]float32{{0.5, s, s, s, s, s}, {0.5, 1.2e-38}} {
		g := pointConv(w...)
		if out := passed(t, g, pass.ConvScale); out != g {
			t.Errorf("%v: folded:\n%s", w, out)
		}
	}
	double := func(w, k float64) *ir.Graph {
		g := ir.NewGraph("g")
		y := op.Conv(g.Input("x", ir.F64, ir.Dims(1, 1, 3)), g.Constant(ir.New([]float64{w}, 1, 1, 1)), op.ConvAttrs{})
		g.Output("y", op.Mul(y, g.Constant(ir.Scalar(k))))
		return g
	}
	for _, v := range [][2]float64{{3e-308, 0.1}, {1e-300, 1e-100}} {
		if g := double(v[0], v[1]); passed(t, g, pass.ConvScale) != g {
			t.Errorf("%g * %g is folded", v[0], v[1])
		}
	}
	if g := double(1e-310, 0.3); passed(t, g, pass.ConvScale) == g {
		t.Error("a subnormal f64 weight: not folded")
	}
	if g := pointConv(0.5, math.SmallestNonzeroFloat32); passed(t, g, pass.ConvScale) == g {
		t.Error("0.7 of the smallest number is rounded up to it: not folded")
	}
}
