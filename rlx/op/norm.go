package op

import (
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// LayerNormAttrs are the attributes of LayerNorm and RmsNorm.
type LayerNormAttrs struct {
	Axis int     `default:"-1" c:"C1"`
	Eps  float64 `default:"1e-5"`
}

// SoftmaxAttrs are the attributes of Softmax.
type SoftmaxAttrs struct {
	Axis int `default:"-1" c:"C1"`
}

var (
	layerNorm = ir.Declare[LayerNormAttrs]("norm", "LayerNorm")
	rmsNorm   = ir.Declare[LayerNormAttrs]("norm", "RmsNorm")
	softmax   = ir.Declare[SoftmaxAttrs]("norm", "Softmax")
)

// LayerNorm normalises x over its axes from axis on: y = (x - mean) / sqrt(var + eps) * gamma + beta.
//
// Shapes: x [..., n...], gamma and beta n... (x.Shape[axis:]), each optional; y as x. Population variance, of deviations, accumulated in
// f32 at least (f64 for f64). Errors: C1 axis outside the rank, C2 gamma or beta of another shape, C5 eps < 0.
// Source: Ba, Kiros, Hinton 2016; ONNX LayerNormalization 17.
func LayerNorm(x, gamma, beta ir.Value, axis int, eps float64) ir.Value {
	return layerNorm.Apply1(LayerNormAttrs{axis, eps}, x, gamma, beta)
}

// RmsNorm divides x by its root mean square over the axes from axis on: y = x / sqrt(mean(x^2) + eps) * gamma + beta.
//
// Shapes, dtypes and errors as LayerNorm. Source: Zhang, Sennrich 2019; ONNX RMSNormalization 23.
func RmsNorm(x, gamma, beta ir.Value, axis int, eps float64) ir.Value {
	return rmsNorm.Apply1(LayerNormAttrs{axis, eps}, x, gamma, beta)
}

// Softmax is y = exp(x - max) / sum(exp(x - max)) along axis.
//
// Shapes: y as x. A row of -inf alone gives NaN, as IEEE says. Errors: C1 axis outside the rank. Source: ONNX Softmax 13.
func Softmax(x ir.Value, axis int) ir.Value { return softmax.Apply1(SoftmaxAttrs{axis}, x) }

// LogSoftmax is y = z - log(sum(exp(z))) along axis with z = x - max x: the logarithm of Softmax, without underflow. It is composed
// of other ops, in f32 for f16 and bf16.
//
// Shapes: y as x. Errors: C1 dtype or axis outside the rank. Source: ONNX LogSoftmax 13.
func LogSoftmax(x ir.Value, axis int) ir.Value {
	if x.IsZero() || x.Poisoned() {
		return softmax.Apply1(SoftmaxAttrs{axis}, x)
	}
	if _, ok := wrap(axis, x.Rank()); !ok || !ir.Float.Has(x.DType()) {
		return x.Graph().Fail("LogSoftmax", fmt.Errorf("LogSoftmax: C1: axis %d of %s, expected an axis of a float tensor", axis, x.Type()), x)
	}
	if x.Dim(axis).Is(0) {
		return x // nothing to normalise, and max of nothing is an error
	}
	w, axes := widen(x), []int{axis}
	z := Sub(w, Reduce(w, "max", axes, true))
	return narrow(Sub(z, Log(Reduce(Exp(z), "sum", axes, true))), x.DType())
}

func init() {
	layerNorm.Define(ir.Def[LayerNormAttrs]{
		Doc:       "y = (x - mean) / sqrt(var + eps) * gamma + beta over the axes from axis on",
		In:        []ir.Operand{ir.In("x", ir.Float), ir.Opt("gamma", ir.Float), ir.Opt("beta", ir.Float)},
		SameC:     "C2",
		Infer:     inferNorm,
		Decompose: decomposeLayerNorm,
		Tol:       ir.Tolerance{Ulp: 16, Abs: 1e-6},
	})
	rmsNorm.Define(ir.Def[LayerNormAttrs]{
		Doc:       "y = x / sqrt(mean(x^2) + eps) * gamma + beta over the axes from axis on",
		In:        []ir.Operand{ir.In("x", ir.Float), ir.Opt("gamma", ir.Float), ir.Opt("beta", ir.Float)},
		SameC:     "C2",
		Infer:     inferNorm,
		Decompose: decomposeRmsNorm,
		Tol:       ir.Tolerance{Ulp: 16, Abs: 1e-6},
	})
	softmax.Define(ir.Def[SoftmaxAttrs]{
		Doc: "y = exp(x - max) / sum(exp(x - max)) along axis",
		In:  []ir.Operand{ir.In("x", ir.Float)},
		Infer: func(t *ir.Infer, a *SoftmaxAttrs) {
			x := t.Type(0)
			_, ok := wrap(a.Axis, len(x.Shape))
			t.Need(ok, "C1", "axis %d, expected one of x, which has rank %d", a.Axis, len(x.Shape))
			t.Out(x)
		},
		Decompose: decomposeSoftmax,
		Tol:       ir.Tolerance{Ulp: 16, Abs: 1e-7},
	})
}

func inferNorm(t *ir.Infer, a *LayerNormAttrs) {
	x := t.Type(0)
	axis, ok := wrap(a.Axis, len(x.Shape))
	if !t.Need(ok, "C1", "axis %d, expected one of x, which has rank %d", a.Axis, len(x.Shape)) {
		return
	}
	for i, name := range []string{"gamma", "beta"} {
		if t.Has(1 + i) {
			t.Need(same(t.Type(1+i).Shape, x.Shape[axis:]), "C2", "%s has shape %v, expected %v", name, t.Type(1+i).Shape, x.Shape[axis:])
		}
	}
	t.Need(a.Eps >= 0, "C5", "eps %g, expected >= 0", a.Eps)
	t.Out(x)
}

// from lists the axes from axis on.
func from(axis, rank int) []int {
	axis, _ = wrap(axis, rank)
	var l []int
	for ; axis < rank; axis++ {
		l = append(l, axis)
	}
	return l
}

// widen casts f16 and bf16 to f32, in which their decompositions compute; narrow casts back.
func widen(x ir.Value) ir.Value {
	if d := x.DType(); d == ir.F16 || d == ir.BF16 {
		return Cast(x, ir.F32)
	}
	return x
}

func narrow(x ir.Value, d ir.DType) ir.Value {
	if x.DType() != d {
		return Cast(x, d)
	}
	return x
}

// affine is y * gamma + beta where they are present, in y's dtype, then rounded to d.
func affine(n *ir.Node, y ir.Value, d ir.DType) []ir.Value {
	if !n.In[1].IsZero() {
		y = Mul(y, widen(n.In[1]))
	}
	if !n.In[2].IsZero() {
		y = Add(y, widen(n.In[2]))
	}
	return []ir.Value{narrow(y, d)}
}

func decomposeLayerNorm(n *ir.Node, a *LayerNormAttrs) []ir.Value {
	x, axes := widen(n.In[0]), from(a.Axis, n.In[0].Rank())
	d := Sub(x, Reduce(x, "mean", axes, true))
	d = Sub(d, Reduce(d, "mean", axes, true)) // what the mean of a row far from 0 lost to rounding
	y := Mul(d, Rsqrt(Add(Reduce(Mul(d, d), "mean", axes, true), a.Eps)))
	return affine(n, y, n.In[0].DType())
}

func decomposeRmsNorm(n *ir.Node, a *LayerNormAttrs) []ir.Value {
	x, axes := widen(n.In[0]), from(a.Axis, n.In[0].Rank())
	y := Mul(x, Rsqrt(Add(Reduce(Mul(x, x), "mean", axes, true), a.Eps)))
	return affine(n, y, n.In[0].DType())
}

func decomposeSoftmax(n *ir.Node, a *SoftmaxAttrs) []ir.Value {
	x, axes := widen(n.In[0]), []int{a.Axis}
	if n.In[0].Dim(a.Axis).Is(0) {
		return []ir.Value{n.In[0]} // nothing to normalise, and max of nothing is an error
	}
	e := Exp(Sub(x, Reduce(x, "max", axes, true)))
	return []ir.Value{narrow(Div(e, Reduce(e, "sum", axes, true)), n.In[0].DType())}
}
