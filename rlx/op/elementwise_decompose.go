package op

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// expand builds a scalar expression as nodes over vars, which share one dtype.
func expand(e Expr, vars []ir.Value, alpha, beta float64) ir.Value {
	return Fold(e, func(e Expr) ir.Value {
		switch e.Kind() {
		case ExprVar:
			return vars[e.Index()]
		case ExprParam:
			return numberLike("Activation", vars[0], []float64{alpha, beta}[e.Index()])
		}
		return numberLike("Activation", vars[0], e.Value())
	}, func(fn string, args []ir.Value) ir.Value { return expandCall(fn, args, alpha, beta) })
}

func expandCall(fn string, args []ir.Value, alpha, beta float64) ir.Value {
	switch fn {
	case "select":
		return Where(args[0], args[1], args[2])
	case "fma":
		return Fma(args[0], args[1], args[2])
	}
	if len(args) == 1 {
		return Activation(args[0], UnaryFn(fn), alpha, beta)
	}
	if _, ok := Compare(fn); ok {
		return CompareOp(args[0], args[1], CompareFn(fn))
	}
	return BinaryOp(args[0], args[1], BinaryFn(fn)) // "and" and "or" of conditions are functions of that name
}

// params are the parameters in the dtype that a decomposition computes in.
func params(s *Scalar, a *ActivationAttrs, d ir.DType) (alpha, beta float64) {
	if d == ir.F64 {
		return a.Alpha, a.Beta
	}
	alpha32, beta32 := s.Params32(a.Alpha, a.Beta)
	return float64(alpha32), float64(beta32)
}

func decomposeActivation(n *ir.Node, a *ActivationAttrs) []ir.Value {
	s, ok := a.settle()
	if !ok || s.Primitive {
		return nil
	}
	x := widen(n.In[0])
	alpha, beta := params(s, a, x.DType())
	y := expand(s.Formula, []ir.Value{x}, alpha, beta)
	return []ir.Value{narrow(y, n.Types[0].DType)}
}

func decomposeActivationBackward(n *ir.Node, a *ActivationAttrs) []ir.Value {
	s, ok := a.settle()
	if !ok || s.Deriv(0) == nil {
		return nil
	}
	x := widen(n.In[0])
	alpha, beta := params(s, a, x.DType())
	dx := expand(s.Backward(0), []ir.Value{x, widen(n.In[1])}, alpha, beta)
	return []ir.Value{narrow(dx, n.Types[0].DType)}
}

func decomposeBinary(n *ir.Node, a *BinaryAttrs) []ir.Value {
	s, ok := Binary(string(a.Fn))
	if !ok || s.Primitive {
		return nil
	}
	d := n.In[0].DType()
	if s.Name == "floor_div" && ir.Int.Has(d) {
		return []ir.Value{intFloorDivOf(n.In[0], n.In[1])}
	}
	y := expand(s.Formula, []ir.Value{widen(n.In[0]), widen(n.In[1])}, math.NaN(), math.NaN())
	return []ir.Value{narrow(y, d)}
}

// intFloorDivOf: the quotient toward zero is one too large where the rest has not the divisor's sign. Division by 0 has a rest a,
// but no divisor to differ from.
func intFloorDivOf(a, b ir.Value) ir.Value {
	q := BinaryOp(a, b, "div")
	if ir.Unsigned.Has(a.DType()) {
		return q
	}
	zero := numberLike("Binary", a, 0)
	below := func(v ir.Value) ir.Value { return CompareOp(v, zero, "lt") }
	r := BinaryOp(a, b, "mod")
	rest := BinaryOp(CompareOp(r, zero, "ne"), CompareOp(b, zero, "ne"), "and")
	off := BinaryOp(rest, CompareOp(below(r), below(b), "ne"), "and")
	return Where(off, BinaryOp(q, numberLike("Binary", a, 1), "sub"), q)
}

func decomposeClamp(n *ir.Node, a *ClampAttrs) []ir.Value {
	x, d := n.In[0], n.In[0].DType()
	var lo, hi ir.Value
	if ir.Float.Has(d) {
		l, h := a.FloatBounds(d)
		lo, hi = numberLike("Clamp", x, l), numberLike("Clamp", x, h)
	} else {
		l, h := a.IntBounds(d)
		lo, hi = intLike(x, l), intLike(x, h)
	}
	return []ir.Value{BinaryOp(BinaryOp(x, lo, "max"), hi, "min")}
}

// intLike is the constant whose bits are the low bits of v, in the dtype and graph of x.
func intLike(x ir.Value, v int64) ir.Value {
	t, err := ir.Zeros(x.DType())
	if err != nil {
		return x.Graph().Fail("Clamp", err)
	}
	ir.PutInt(x.DType(), t.Bytes(), 0, v)
	return x.Graph().Constant(t)
}
