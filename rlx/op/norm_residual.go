package op

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// NormKind names a norm: "layer_norm" or "rms_norm".
type NormKind string

// EnumValues lists the norms.
func (NormKind) EnumValues() []string { return []string{"layer_norm", "rms_norm"} }

// AdaLayerNormAttrs are the attributes of AdaLayerNorm.
type AdaLayerNormAttrs struct {
	Norm NormKind `default:"layer_norm" c:"C4"`
	Eps  float64  `default:"1e-5"`
}

// GatedResidualAttrs are the attributes of GatedResidual, which has none.
type GatedResidualAttrs struct{}

var (
	adaLayerNorm         = ir.Declare[AdaLayerNormAttrs]("norm", "AdaLayerNorm")
	gatedResidual        = ir.Declare[GatedResidualAttrs]("norm", "GatedResidual")
	fusedResidualLN      = ir.Declare[LayerNormAttrs]("norm", "FusedResidualLN")
	fusedResidualRmsNorm = ir.Declare[LayerNormAttrs]("norm", "FusedResidualRmsNorm")
)

// AdaLayerNorm is y = norm(x) * (1 + scale) + shift, norm being LayerNorm or RmsNorm over the last axis.
//
// Shapes: scale and shift broadcast one way to x, each as it likes; y as x. Errors: C1 rank 0, C2 scale or shift does not broadcast, C4
// norm, C5 eps < 0. Source: the adaLN-Zero blocks of DiT (Peebles, Xie 2022).
func AdaLayerNorm(x, scale, shift ir.Value, norm NormKind, eps float64) ir.Value {
	return adaLayerNorm.Apply1(AdaLayerNormAttrs{norm, eps}, x, scale, shift)
}

// GatedResidual is z = x + gate * y.
//
// Shapes: y and z as x, gate broadcasts one way to x. Errors: C2 gate does not broadcast, C3 y has another shape. Source: as AdaLayerNorm.
func GatedResidual(x, y, gate ir.Value) ir.Value {
	return gatedResidual.Apply1(GatedResidualAttrs{}, x, y, gate)
}

// FusedResidualLN is sum = x + residual + bias and y = LayerNorm(sum), which sees the sum before it is rounded to f16 or bf16.
//
// Shapes: residual as x; bias broadcasts one way to x or is absent; gamma, beta, axis and eps as LayerNorm; both results as x. Errors: C1
// axis outside the rank, C2 bias, gamma or beta of another shape, C3 residual of another shape, C5 eps < 0. Source: ONNX Runtime
// SkipLayerNormalization.
func FusedResidualLN(x, residual, bias, gamma, beta ir.Value, axis int, eps float64) (y, sum ir.Value) {
	r := fusedResidualLN.Apply(LayerNormAttrs{axis, eps}, x, residual, bias, gamma, beta)
	return r[0], r[1]
}

// FusedResidualRmsNorm is FusedResidualLN with RmsNorm. Source: ONNX Runtime SkipSimplifiedLayerNormalization.
func FusedResidualRmsNorm(x, residual, bias, gamma, beta ir.Value, axis int, eps float64) (y, sum ir.Value) {
	r := fusedResidualRmsNorm.Apply(LayerNormAttrs{axis, eps}, x, residual, bias, gamma, beta)
	return r[0], r[1]
}

func init() {
	adaLayerNorm.Define(ir.Def[AdaLayerNormAttrs]{
		Doc:       "norm without affine, then * (1 + scale) + shift",
		In:        []ir.Operand{ir.In("x", ir.Float), ir.In("scale", ir.Float), ir.In("shift", ir.Float)},
		Bits:      ir.Fused,
		SameC:     "C2",
		Infer:     inferAdaLayerNorm,
		Decompose: decomposeAdaLayerNorm,
		Tol:       ir.Tolerance{Ulp: 16, Abs: 1e-6},
	})
	gatedResidual.Define(ir.Def[GatedResidualAttrs]{
		Doc:     "z = x + gate * y",
		In:      []ir.Operand{ir.In("x", ir.Float), ir.In("y", ir.Float), ir.In("gate", ir.Float)},
		Results: []string{"z"},
		Bits:    ir.Fused | ir.Elementwise,
		SameC:   "C2",
		Infer: func(t *ir.Infer, _ *GatedResidualAttrs) {
			x, y := t.Type(0), t.Type(1)
			t.Need(same(y.Shape, x.Shape), "C3", "y has shape %v, expected %v", y.Shape, x.Shape)
			stretches(t, 2, "gate")
			t.Out(x)
		},
		Decompose: func(n *ir.Node, _ *GatedResidualAttrs) []ir.Value {
			z := Add(widen(n.In[0]), Mul(widen(n.In[2]), widen(n.In[1])))
			return []ir.Value{narrow(z, n.In[0].DType())}
		},
		Tol: ir.Tolerance{Ulp: 4},
	})
	for _, r := range []struct {
		op   *ir.Op[LayerNormAttrs]
		doc  string
		norm func(x, gamma, beta ir.Value, axis int, eps float64) ir.Value
	}{
		{fusedResidualLN, "LayerNorm of x + residual + bias, and that sum", LayerNorm},
		{fusedResidualRmsNorm, "RmsNorm of x + residual + bias, and that sum", RmsNorm},
	} {
		r.op.Define(ir.Def[LayerNormAttrs]{
			Doc: r.doc,
			In: []ir.Operand{ir.In("x", ir.Float), ir.In("residual", ir.Float), ir.Opt("bias", ir.Float), ir.Opt("gamma", ir.Float),
				ir.Opt("beta", ir.Float)},
			Results: []string{"y", "sum"},
			Bits:    ir.Fused,
			SameC:   "C2",
			Infer:   inferResidualNorm,
			Decompose: func(n *ir.Node, a *LayerNormAttrs) []ir.Value {
				return decomposeResidualNorm(n, a, r.norm)
			},
			Tol: ir.Tolerance{Ulp: 16, Abs: 1e-6},
		})
	}
}

// stretches checks that operand i, called name, broadcasts one way to operand 0.
func stretches(t *ir.Infer, i int, name string) {
	p, x := t.Type(i).Shape, t.Type(0).Shape
	t.Need(broadcasts(p, x), "C2", "%s of shape %v, expected one that broadcasts to %v", name, p, x)
}

func inferAdaLayerNorm(t *ir.Infer, a *AdaLayerNormAttrs) {
	x := t.Type(0)
	t.Need(len(x.Shape) >= 1, "C1", "x has rank 0, expected at least 1")
	stretches(t, 1, "scale")
	stretches(t, 2, "shift")
	t.Need(a.Eps >= 0, "C5", "eps %g, expected >= 0", a.Eps)
	t.Out(x)
}

func inferResidualNorm(t *ir.Infer, a *LayerNormAttrs) {
	x := t.Type(0)
	axis, ok := wrap(a.Axis, len(x.Shape))
	if !t.Need(ok, "C1", "axis %d, expected one of x, which has rank %d", a.Axis, len(x.Shape)) {
		return
	}
	t.Need(same(t.Type(1).Shape, x.Shape), "C3", "residual has shape %v, expected %v", t.Type(1).Shape, x.Shape)
	if t.Has(2) {
		stretches(t, 2, "bias")
	}
	for i, name := range []string{"gamma", "beta"} {
		if t.Has(3 + i) {
			t.Need(same(t.Type(3+i).Shape, x.Shape[axis:]), "C2", "%s has shape %v, expected %v", name, t.Type(3+i).Shape, x.Shape[axis:])
		}
	}
	t.Need(a.Eps >= 0, "C5", "eps %g, expected >= 0", a.Eps)
	t.Out(x, x)
}

func decomposeAdaLayerNorm(n *ir.Node, a *AdaLayerNormAttrs) []ir.Value {
	x, none := widen(n.In[0]), ir.Value{}
	y := none
	if a.Norm == "rms_norm" {
		y = RmsNorm(x, none, none, -1, a.Eps)
	} else {
		y = LayerNorm(x, none, none, -1, a.Eps)
	}
	y = Add(Mul(y, Add(widen(n.In[1]), 1)), widen(n.In[2]))
	return []ir.Value{narrow(y, n.In[0].DType())}
}

func decomposeResidualNorm(n *ir.Node, a *LayerNormAttrs, norm func(x, gamma, beta ir.Value, axis int, eps float64) ir.Value) []ir.Value {
	d := n.In[0].DType()
	wide := make([]ir.Value, len(n.In))
	for i, v := range n.In {
		if wide[i] = v; !v.IsZero() {
			wide[i] = widen(v)
		}
	}
	sum := Add(wide[0], wide[1])
	if !wide[2].IsZero() {
		sum = Add(sum, wide[2])
	}
	y := norm(sum, wide[3], wide[4], a.Axis, a.Eps)
	return []ir.Value{narrow(y, d), narrow(sum, d)}
}
