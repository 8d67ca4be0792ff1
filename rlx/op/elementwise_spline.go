package op

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// SplineAttrs are the attributes of the three spline rows: num_basis Gaussian bumps at equal distances from grid_min to grid_max.
type SplineAttrs struct {
	NumBasis int `c:"C2" min:"2"`
	GridMin  float64
	GridMax  float64
}

var (
	splineOp      = ir.Declare[SplineAttrs]("elementwise", "SplineActivation")
	splineXOp     = ir.Declare[SplineAttrs]("elementwise", "SplineActivationBackwardX")
	splineCoeffOp = ir.Declare[SplineAttrs]("elementwise", "SplineActivationBackwardCoeff")
)

// SplineActivation is a sum of Gaussian bumps for each channel: y[.., c] = sum_g coeff[c, g] exp(-((x[.., c] - t_g) h)^2) with
// t_g = grid_min + g/h and h = (num_basis - 1) / (grid_max - grid_min).
//
// Shapes: x [.., C], coeff [C, num_basis], y as x; floats of one dtype. Errors: C1 coeff shape or rank of x, C2 num_basis < 2,
// C3 grid_min is not below grid_max, C4 dtypes differ. Source: Li 2024, Kolmogorov-Arnold networks with radial basis functions.
func SplineActivation(x, coeff ir.Value, a SplineAttrs) ir.Value { return splineOp.Apply1(a, x, coeff) }

// SplineActivationBackwardX is dx = dy * sum_g coeff[c, g] (-2 u_g h) exp(-u_g^2) with u_g = (x - t_g) h.
//
// Shapes: dy and dx as x. Errors as [SplineActivation], and C5 dy has another shape.
func SplineActivationBackwardX(x, coeff, dy ir.Value, a SplineAttrs) ir.Value {
	return splineXOp.Apply1(a, x, coeff, dy)
}

// SplineActivationBackwardCoeff is dcoeff[c, g], the sum of dy * exp(-u_g^2) over all leading positions of x.
//
// Shapes: dy as x, dcoeff [C, num_basis]. Errors as [SplineActivation], and C5 dy has another shape.
func SplineActivationBackwardCoeff(x, dy ir.Value, a SplineAttrs) ir.Value {
	return splineCoeffOp.Apply1(a, x, dy)
}

func init() {
	f := ir.Float
	splineOp.Define(ir.Def[SplineAttrs]{
		Doc:    "y[.., c] = sum_g coeff[c, g] exp(-((x[.., c] - t_g) h)^2)",
		In:     []ir.Operand{ir.In("x", f), ir.In("coeff", f)},
		Bits:   ir.Fused,
		DTypeC: "C4",
		SameC:  "C4",
		Infer:  func(t *ir.Infer, a *SplineAttrs) { inferSpline(t, a, true, -1); t.Out(t.Type(0)) },
		Decompose: func(n *ir.Node, a *SplineAttrs) []ir.Value {
			e, _ := a.basis(widen(n.In[0]))
			y := Reduce(Mul(e, widen(n.In[1])), "sum", []int{-1}, false)
			return []ir.Value{narrow(y, n.In[0].DType())}
		},
		Tol: ir.Tolerance{Ulp: 84, Abs: 1e-6},
	})
	splineXOp.Define(ir.Def[SplineAttrs]{
		Doc:     "dx = dy * sum_g coeff[c, g] (-2 u_g h) exp(-u_g^2)",
		In:      []ir.Operand{ir.In("x", f), ir.In("coeff", f), ir.In("dy", f)},
		Results: []string{"dx"},
		Bits:    ir.Fused | ir.Backward,
		DTypeC:  "C4",
		SameC:   "C4",
		Infer:   func(t *ir.Infer, a *SplineAttrs) { inferSpline(t, a, true, 2); t.Out(t.Type(0)) },
		Decompose: func(n *ir.Node, a *SplineAttrs) []ir.Value {
			e, u := a.basis(widen(n.In[0]))
			slope := Mul(Mul(Mul(widen(n.In[1]), -2*a.Step()), u), e)
			dx := Mul(widen(n.In[2]), Reduce(slope, "sum", []int{-1}, false))
			return []ir.Value{narrow(dx, n.In[0].DType())}
		},
		NoGrad: "gradient op",
		Tol:    ir.Tolerance{Ulp: 84, Abs: 1e-6},
	})
	splineCoeffOp.Define(ir.Def[SplineAttrs]{
		Doc:     "dcoeff[c, g] = sum over the leading positions of dy * exp(-u_g^2)",
		In:      []ir.Operand{ir.In("x", f), ir.In("dy", f)},
		Results: []string{"dcoeff"},
		Bits:    ir.Fused | ir.Backward | ir.Reduction,
		DTypeC:  "C4",
		SameC:   "C4",
		Infer: func(t *ir.Infer, a *SplineAttrs) {
			inferSpline(t, a, false, 1)
			if x := t.Type(0); t.OK() {
				t.Out(ir.Type{DType: x.DType, Shape: []ir.Dim{x.Shape[len(x.Shape)-1], ir.D(int64(a.NumBasis))}})
			}
		},
		Decompose: func(n *ir.Node, a *SplineAttrs) []ir.Value {
			e, _ := a.basis(widen(n.In[0]))
			terms := Mul(e, splitLast(widen(n.In[1])))
			if lead := terms.Rank() - 2; lead > 0 {
				terms = Reduce(terms, "sum", from(0, lead), false)
			}
			return []ir.Value{narrow(terms, n.In[0].DType())}
		},
		NoGrad: "gradient op",
		Tol:    ir.Tolerance{Ulp: 84, Abs: 1e-6},
	})
}

// inferSpline checks what the three rows share; dy is the number of the operand that must have x's shape, or -1.
func inferSpline(t *ir.Infer, a *SplineAttrs, coeff bool, dy int) {
	x := t.Type(0)
	t.Need(a.GridMin < a.GridMax, "C3", "grid_min %g, expected below grid_max %g", a.GridMin, a.GridMax)
	if !t.Need(len(x.Shape) >= 1, "C1", "x has rank 0, expected 1 or more") {
		return
	}
	if coeff {
		want := []ir.Dim{x.Shape[len(x.Shape)-1], ir.D(int64(a.NumBasis))}
		t.Need(same(t.Type(1).Shape, want), "C1", "coeff has shape %v, expected %v", t.Type(1).Shape, want)
	}
	if dy >= 0 {
		t.Need(same(t.Type(dy).Shape, x.Shape), "C5", "dy has shape %v, expected %v", t.Type(dy).Shape, x.Shape)
	}
}

// Step is h, the number of bumps per unit of x; Center is t_g.
func (a *SplineAttrs) Step() float64 { return float64(a.NumBasis-1) / (a.GridMax - a.GridMin) }

// Center is t_g, where bump g has its top.
func (a *SplineAttrs) Center(g int) float64 { return a.GridMin + float64(g)/a.Step() }

// basis is exp(-u^2) and u = (x - t) h, with an axis of the bumps behind x's own.
func (a *SplineAttrs) basis(x ir.Value) (e, u ir.Value) {
	t, err := ir.Zeros(x.DType(), int64(a.NumBasis))
	if err != nil {
		v := x.Graph().Fail("SplineActivation", err)
		return v, v
	}
	for g := range a.NumBasis {
		ir.PutFloat(x.DType(), t.Bytes(), g, a.Center(g))
	}
	u = Mul(Sub(splitLast(x), x.Graph().Constant(t)), a.Step())
	return Exp(Neg(Mul(u, u))), u
}

// splitLast gives x a last axis of length 1.
func splitLast(x ir.Value) ir.Value {
	return Reshape(x, append(append([]ir.Dim{}, x.Shape()...), ir.D(1))...)
}
