package onnx

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// iv shortens the instances of builders that also take Go numbers.
type iv = ir.Value

var arithmeticRows = []row{
	binaryOp("Add", 7, op.Add[iv, iv], eachDim(addDims)),
	binaryOp("Sub", 7, op.Sub[iv, iv], eachDim(subDims)),
	binaryOp("Mul", 7, op.Mul[iv, iv], eachDim(mulDims)),
	binaryOp("Div", 7, op.Div[iv, iv], trackDiv),
	{op: "Mod", since: 10, in: arity{2, 2}, attrs: []attrDecl{integer("fmod", 0, 0, 1)}, build: buildMod, track: trackMod},
	{op: "Pow", since: 7, in: arity{2, 2}, build: buildPow},
	fold("Max", 8, op.Max[iv, iv], foldDims(maxDims)),
	fold("Min", 8, op.Min[iv, iv], foldDims(minDims)),
	fold("Sum", 8, op.Add[iv, iv], foldDims(addDims)),
	{op: "Mean", since: 8, in: arity{1, many}, build: buildMean},

	tracked(unary("Abs", 6, op.Abs), eachDim(func(l lengths, e []ir.Dim) (ir.Dim, bool) { return e[0], l.atLeastZero(e[0]) })),
	tracked(unary("Neg", 6, op.Neg), eachDim(func(_ lengths, e []ir.Dim) (ir.Dim, bool) { return unsaturated(ir.Dim{}.Sub(e[0])) })),
	unary("Sign", 9, op.Sign),
	unary("Reciprocal", 6, op.Reciprocal),
	unary("Sqrt", 6, op.Sqrt),
	unary("Exp", 6, op.Exp),
	unary("Log", 6, op.Log),
	unary("Erf", 9, op.Erf),
	unary("Sin", 7, op.Sin),
	unary("Cos", 7, op.Cos),
	unary("Tan", 7, op.Tan),
	unary("Asin", 7, op.Asin),
	unary("Acos", 7, op.Acos),
	unary("Atan", 7, op.Atan),
	unary("Sinh", 9, op.Sinh),
	unary("Cosh", 9, op.Cosh),
	unary("Tanh", 6, op.Tanh),
	unary("Asinh", 9, op.Asinh),
	unary("Acosh", 9, op.Acosh),
	unary("Atanh", 9, op.Atanh),
	tracked(unary("Floor", 6, op.Floor), trackRounded(ir.Dim.FloorDiv)),
	tracked(unary("Ceil", 6, op.Ceil), trackRounded(ir.Dim.CeilDiv)),
	tracked(unary("Round", 11, op.Round), sameDims),
}

var logicRows = []row{
	binaryOp("And", 7, op.LogicalAnd[iv, iv], eachBool(andDims)),
	binaryOp("Or", 7, op.LogicalOr[iv, iv], eachBool(orDims)),
	binaryOp("Xor", 7, op.LogicalXor[iv, iv], nil),
	tracked(unary("Not", 1, op.LogicalNot), eachBool(notDims)),
	binaryOp("Equal", 7, op.Eq[iv, iv], eachBool(equalDims)),
	binaryOp("Less", 7, op.Lt[iv, iv], eachBool(lessDims)),
	binaryOp("Greater", 7, op.Gt[iv, iv], eachBool(func(l lengths, e []ir.Dim) (ir.Dim, bool) { return lessDims(l, []ir.Dim{e[1], e[0]}) })),
	binaryOp("GreaterOrEqual", 12, op.Ge[iv, iv], eachBool(func(l lengths, e []ir.Dim) (ir.Dim, bool) { return negated(lessDims(l, e)) })),
	binaryOp("LessOrEqual", 12, op.Le[iv, iv], eachBool(func(l lengths, e []ir.Dim) (ir.Dim, bool) { return negated(lessDims(l, []ir.Dim{e[1], e[0]})) })),
	{op: "Where", since: 9, in: arity{3, 3}, track: trackWhere, build: func(n *node) {
		if c, a, b := n.val(0), n.val(1), n.val(2); n.ok() {
			n.ret(op.Where(c, a, b))
		}
	}},
	unary("IsNaN", 9, op.IsNaN),
	{op: "IsInf", since: 10, in: arity{1, 1}, attrs: []attrDecl{integer("detect_negative", 1), integer("detect_positive", 1)}, build: buildIsInf},
	binaryOp("BitwiseAnd", 18, op.BitAnd[iv, iv], nil),
	binaryOp("BitwiseOr", 18, op.BitOr[iv, iv], nil),
	binaryOp("BitwiseXor", 18, op.BitXor[iv, iv], nil),
	unary("BitwiseNot", 18, op.BitNot),
	{op: "BitShift", since: 11, in: arity{2, 2}, attrs: []attrDecl{required(str("direction", "LEFT", "RIGHT"))}, build: buildBitShift},
}

var activationRows = []row{
	unary("Relu", 6, op.Relu),
	unary("Sigmoid", 6, op.Sigmoid),
	unary("Softplus", 1, op.Softplus),
	unary("Softsign", 1, op.Softsign),
	unary("HardSwish", 14, op.HardSwish),
	unary("Mish", 18, op.Mish),
	activation("LeakyRelu", 6, func(x iv, p []float64) iv { return op.LeakyRelu(x, p[0]) }, float("alpha", 0.01)),
	activation("Elu", 6, func(x iv, p []float64) iv { return op.Elu(x, p[0]) }, float("alpha", 1)),
	activation("Celu", 12, func(x iv, p []float64) iv { return op.Celu(x, p[0]) }, float("alpha", 1)),
	activation("Selu", 6, func(x iv, p []float64) iv { return op.Selu(x, p[0], p[1]) },
		float("alpha", 1.67326319217681884765625), float("gamma", 1.05070102214813232421875)),
	activation("HardSigmoid", 6, func(x iv, p []float64) iv { return op.HardSigmoid(x, p[0], p[1]) }, float("alpha", 0.2), float("beta", 0.5)),
	activation("ThresholdedRelu", 10, func(x iv, p []float64) iv { return op.ThresholdedRelu(x, p[0]) }, float("alpha", 1)),
	activation("Swish", 24, func(x iv, p []float64) iv { return op.GeluQuick(x, p[0]) }, float("alpha", 1)),
	activation("Shrink", 9, buildShrink, float("lambd", 0.5), float("bias", 0)),
	{op: "Gelu", since: 20, in: arity{1, 1}, attrs: []attrDecl{str("approximate", "none", "tanh")}, build: func(n *node) {
		if x := n.val(0); n.ok() && n.s("approximate") == "tanh" {
			n.ret(op.GeluTanh(x))
		} else if n.ok() {
			n.ret(op.Gelu(x))
		}
	}},
	binaryOp("PRelu", 7, func(x, slope iv) iv { return op.Where(op.Lt(x, 0), op.Mul(x, slope), x) }, nil),
	{op: "Clip", since: 6, in: arity{1, 1}, build: buildClip6,
		attrs: []attrDecl{float("min", -math.MaxFloat32), float("max", math.MaxFloat32)}},
	{op: "Clip", since: 11, in: arity{1, 3}, build: buildClip11},
}

// ---- tracking ----

func tracked(r row, track func(*node) []*dimTensor) row {
	r.track = track
	return r
}

// operands are all inputs as dims, nil if one is not known or absent.
func (n *node) operands() []*dimTensor {
	in := make([]*dimTensor, len(n.in))
	for i := range in {
		if in[i] = n.dims(i); in[i] == nil {
			return nil
		}
	}
	return in
}

// eachDim tracks an elementwise function whose result has the dtype of the operands.
func eachDim(f dimFn) func(*node) []*dimTensor {
	return func(n *node) []*dimTensor {
		in := n.operands()
		if len(in) == 0 {
			return nil
		}
		return []*dimTensor{mapDims(in[0].dtype, n.within(f), in...)}
	}
}

// eachBool tracks one whose result is bool.
func eachBool(f dimFn) func(*node) []*dimTensor {
	return func(n *node) []*dimTensor {
		if in := n.operands(); len(in) > 0 {
			return []*dimTensor{mapDims(ir.Bool, n.within(f), in...)}
		}
		return nil
	}
}

// foldDims tracks a function of any number of operands.
func foldDims(f dimFn) func(*node) []*dimTensor {
	return func(n *node) []*dimTensor {
		in := n.operands()
		if len(in) == 0 {
			return nil
		}
		y := in[0]
		for _, t := range in[1:] {
			if y = mapDims(y.dtype, n.within(f), y, t); y == nil || !y.sound() {
				return nil
			}
		}
		return []*dimTensor{y}
	}
}

func sameDims(n *node) []*dimTensor { return []*dimTensor{n.dims(0)} }

func negated(d ir.Dim, ok bool) (ir.Dim, bool) {
	n, _ := d.Static()
	return truth(n == 0), ok
}

// trackDiv follows a quotient: of integers toward zero, of floats only where it is whole.
func trackDiv(n *node) []*dimTensor {
	in := n.operands()
	if in == nil {
		return nil
	}
	f := dimFn(divDims)
	if ir.Float.Has(in[0].dtype) {
		f = func(l lengths, e []ir.Dim) (ir.Dim, bool) {
			q, ok := divDims(l, e)
			return q, ok && q.Mul(e[1]) == e[0]
		}
	}
	return []*dimTensor{mapDims(in[0].dtype, n.within(f), in...)}
}

// trackMod follows both remainders: of operands that are not negative they are one.
func trackMod(n *node) []*dimTensor {
	f := dimFn(modDims)
	if n.i("fmod") == 1 {
		f = func(l lengths, e []ir.Dim) (ir.Dim, bool) {
			r, ok := modDims(l, e)
			return r, ok && l.atLeastZero(e[0])
		}
	}
	return eachDim(f)(n)
}

func trackWhere(n *node) []*dimTensor {
	in := n.operands()
	if in == nil {
		return nil
	}
	return []*dimTensor{mapDims(in[1].dtype, n.within(whereDims), in...)}
}

// ---- rows that need more than one call ----

func buildMod(n *node) {
	a, b := n.val(0), n.val(1)
	switch {
	case !n.ok():
	case n.i("fmod") == 1:
		n.ret(op.Mod(a, b))
	default:
		n.ret(op.FloorMod(a, b))
	}
}

// buildPow computes in the dtype that holds both operands; the result has the base's.
func buildPow(n *node) {
	a, b := n.val(0), n.val(1)
	if !n.ok() {
		return
	}
	d := a.DType()
	if ir.Int.Has(d) && ir.Float.Has(b.DType()) {
		n.ret(castTo(op.Pow(castTo(a, ir.F64), castTo(b, ir.F64)), d))
		return
	}
	n.ret(op.Pow(a, castTo(b, d)))
}

// castTo is x in dtype d, itself where it has that already.
func castTo(x ir.Value, d ir.DType) ir.Value {
	if x.DType() == d {
		return x
	}
	return op.Cast(x, d)
}

// atLeastF32 is the dtype in which values of d are computed.
func atLeastF32(d ir.DType) ir.DType {
	if d == ir.F16 || d == ir.BF16 {
		return ir.F32
	}
	return d
}

func buildMean(n *node) {
	v := n.vals()
	if !n.ok() {
		return
	}
	y := v[0]
	for _, x := range v[1:] {
		y = op.Add(y, x)
	}
	if len(v) > 1 {
		y = op.Div(y, len(v))
	}
	n.ret(y)
}

func buildIsInf(n *node) {
	x := n.val(0)
	if !n.ok() {
		return
	}
	switch neg, pos := n.i("detect_negative") != 0, n.i("detect_positive") != 0; {
	case neg && pos:
		n.ret(op.IsInf(x))
	case neg:
		n.ret(op.Eq(x, math.Inf(-1)))
	case pos:
		n.ret(op.Eq(x, math.Inf(1)))
	default:
		n.ret(op.Ne(op.IsInf(x), op.IsInf(x))) // neither: all false
	}
}

func buildBitShift(n *node) {
	a, b := n.val(0), n.val(1)
	switch {
	case !n.ok():
	case n.s("direction") == "LEFT":
		n.ret(op.Shl(a, b))
	default:
		n.ret(op.Shr(a, b))
	}
}

// buildShrink is x + bias below -lambd, x - bias above lambd, else 0. Integers compute in f64.
func buildShrink(x ir.Value, p []float64) ir.Value {
	d := x.DType()
	if !ir.Float.Has(d) {
		x = op.Cast(x, ir.F64)
	}
	lambd, bias := p[0], p[1]
	y := op.Where(op.Lt(x, -lambd), op.Add(x, bias), op.Where(op.Gt(x, lambd), op.Sub(x, bias), 0))
	return castTo(y, d)
}

func buildClip6(n *node) {
	lo, hi := n.float("min"), n.float("max")
	if x := n.val(0); n.ok() {
		n.ret(op.Clamp(x, lo, hi))
	}
}

// buildClip11 takes bounds that are inputs; those that are known become attributes.
func buildClip11(n *node) {
	x := n.val(0)
	if !n.ok() {
		return
	}
	lo, loKnown := n.bound(1, math.Inf(-1))
	hi, hiKnown := n.bound(2, math.Inf(1))
	switch whole := ir.Int.Has(x.DType()); {
	case !n.has(1) && !n.has(2):
		n.pass(0)
	case loKnown && hiKnown && (!whole || n.has(1) && n.has(2) && math.Abs(lo) <= 1<<53 && math.Abs(hi) <= 1<<53):
		n.ret(op.Clamp(x, lo, hi))
	default:
		y := x
		if n.has(1) {
			y = op.Max(y, n.val(1))
		}
		if n.has(2) {
			y = op.Min(y, n.val(2))
		}
		if n.ok() {
			n.ret(y)
		}
	}
}

// bound is the one element of a constant input, or def if the input is absent. A NaN is not taken for a bound.
func (n *node) bound(i int, def float64) (float64, bool) {
	if !n.has(i) {
		return def, true
	}
	if t := n.known(i); t != nil && t.Len() == 1 && !math.IsNaN(t.Float(0)) {
		return t.Float(0), true
	}
	if t := n.dims(i); t != nil && len(t.elem) == 1 && t.elem[0].IsStatic() {
		v, _ := t.elem[0].Static()
		return float64(v), true
	}
	return def, false
}
