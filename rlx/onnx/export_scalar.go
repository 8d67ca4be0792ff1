package onnx

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// leafExports are the kinds without operands.
var leafExports = map[string]exportRow{
	"Input": {emit: func(x *emission) []string { return x.refuse("an input inside of a composition") }},
	"Param": direct(func(x *emission, a *ir.ParamAttrs) []string {
		t := x.n.Graph().ParamData(a.Name)
		if t == nil {
			return x.refuse("no tensor is bound to it")
		}
		return []string{x.leaf(a.Name, t)}
	}),
	"Constant": direct(func(x *emission, a *ir.ConstantAttrs) []string {
		if x.depth > 0 || x.prefix != "" { // constants of a sub-graph stand in the model's graph
			return []string{x.constant("constant", a.Value)}
		}
		return []string{x.leaf(x.fresh(x.n.Name), a.Value)}
	}),
}

// leaf is the initializer of a node. An output that is one is copied.
func (x *emission) leaf(name string, t *ir.Tensor) string {
	x.final[name] = true
	return x.initializer(name, t)
}

// scalarExports are elementwise kinds.
var scalarExports = map[string]exportRow{
	"Activation":            direct(emitActivation),
	"Binary":                elseLowered(direct(emitBinary), lowerBinary),
	"Compare":               direct(emitCompare),
	"Cast":                  direct(emitCast),
	"Clamp":                 direct(emitClamp),
	"Where":                 {emit: emitWhere},
	"Fma":                   lowered(lowerFma),
	"StopGradient":          {emit: passed},
	"DoubleSingle":          composedStatic(),
	"RoundToFormat":         lowered(lowerRoundToFormat),
	"ComplexNormSq":         none(noComplex),
	"ComplexNormSqBackward": none(noComplex),
	"Conjugate":             none(noComplex),
}

const noComplex = "ONNX has no arithmetic on complex64"

// passed is a kind whose result is its operand.
func passed(x *emission) []string { return x.in[:1] }

// scalarOp is an operator that is one function: its name, the dtypes that it takes, and the attributes that hold the parameters.
type scalarOp struct {
	name        string
	takes       ir.DTypeSet
	alpha, beta string
}

var (
	signed32 = ir.SignedInt | wideFloats
	f32Only  = ir.Set(ir.F32)
)

// unaryOps are the functions that have an operator.
var unaryOps = map[op.UnaryFn]scalarOp{
	"neg": {"Neg", signed32, "", ""}, "abs": {"Abs", reals, "", ""}, "sign": {"Sign", reals, "", ""},
	"reciprocal": {"Reciprocal", wideFloats, "", ""}, "sqrt": {"Sqrt", wideFloats, "", ""}, "exp": {"Exp", wideFloats, "", ""}, "log": {"Log", wideFloats, "", ""},
	"sin": {"Sin", wideFloats, "", ""}, "cos": {"Cos", wideFloats, "", ""}, "tan": {"Tan", wideFloats, "", ""},
	"asin": {"Asin", wideFloats, "", ""}, "acos": {"Acos", wideFloats, "", ""}, "atan": {"Atan", wideFloats, "", ""},
	"sinh": {"Sinh", wideFloats, "", ""}, "cosh": {"Cosh", wideFloats, "", ""}, "tanh": {"Tanh", wideFloats, "", ""},
	"asinh": {"Asinh", wideFloats, "", ""}, "acosh": {"Acosh", wideFloats, "", ""}, "atanh": {"Atanh", wideFloats, "", ""},
	"erf": {"Erf", wideFloats, "", ""}, "round": {"Round", wideFloats, "", ""}, "floor": {"Floor", wideFloats, "", ""}, "ceil": {"Ceil", wideFloats, "", ""},
	"relu": {"Relu", signed32, "", ""}, "leaky_relu": {"LeakyRelu", wideFloats, "alpha", ""},
	"thresholded_relu": {"ThresholdedRelu", wideFloats, "alpha", ""}, "elu": {"Elu", wideFloats, "alpha", ""}, "celu": {"Celu", f32Only, "alpha", ""},
	"selu": {"Selu", wideFloats, "alpha", "gamma"}, "sigmoid": {"Sigmoid", wideFloats, "", ""}, "softplus": {"Softplus", wideFloats, "", ""},
	"softsign": {"Softsign", wideFloats, "", ""}, "mish": {"Mish", wideFloats, "", ""}, "gelu": {"Gelu", wideFloats, "", ""},
	"hard_sigmoid": {"HardSigmoid", wideFloats, "alpha", "beta"}, "hard_swish": {"HardSwish", wideFloats, "", ""},
	"is_nan": {"IsNaN", wideFloats, "", ""}, "is_inf": {"IsInf", wideFloats, "", ""}, "not": {"Not", ir.Set(ir.Bool), "", ""},
	"bit_not": {"BitwiseNot", ir.Int, "", ""},
}

// unaryForms are functions without an operator, out of a few: x computes on v, of dtype d. The compositions of the others are their
// formulas.
var unaryForms = map[op.UnaryFn]func(x *emission, v string, d ir.DType) string{
	"rsqrt": func(x *emission, v string, _ ir.DType) string { return x.op("Reciprocal", x.op("Sqrt", v)) },
	"exp2":  func(x *emission, v string, d ir.DType) string { return x.op("Pow", []string{x.scalar(d, 2), v}) },
	"log2":  func(x *emission, v string, d ir.DType) string { return x.scaled(x.op("Log", v), d, 1/math.Ln2) },
	"log10": func(x *emission, v string, d ir.DType) string { return x.scaled(x.op("Log", v), d, 1/math.Ln10) },
	"gelu_tanh": func(x *emission, v string, _ ir.DType) string {
		return x.op("Gelu", v, attr("approximate", "tanh"))
	},
	"log_sigmoid": func(x *emission, v string, _ ir.DType) string {
		return x.op("Neg", x.op("Softplus", x.op("Neg", v)))
	},
	"trunc": func(x *emission, v string, d ir.DType) string {
		return x.op("Where", []string{x.op("Less", []string{v, x.scalar(d, 0)}), x.op("Ceil", v), x.op("Floor", v)})
	},
	// e^x - 1 = 2t / (1 - t) with t = tanh(x/2), and ln(1+x) = 2 atanh(x / (2+x)): exact near 0, where the plain forms cancel.
	"expm1": func(x *emission, v string, d ir.DType) string {
		t := x.op("Tanh", x.scaled(v, d, 0.5))
		near := x.op("Div", []string{x.scaled(t, d, 2), x.op("Sub", []string{x.scalar(d, 1), t})})
		return x.near0(v, d, near, x.op("Sub", []string{x.op("Exp", v), x.scalar(d, 1)}))
	},
	"log1p": func(x *emission, v string, d ir.DType) string {
		q := x.op("Div", []string{v, x.op("Add", []string{v, x.scalar(d, 2)})})
		return x.near0(v, d, x.scaled(x.op("Atanh", q), d, 2), x.op("Log", x.op("Add", []string{v, x.scalar(d, 1)})))
	},
	"erfc": erfcForm,
}

// scaled is v * factor.
func (x *emission) scaled(v string, d ir.DType, factor float64) string {
	return x.op("Mul", []string{v, x.scalar(d, factor)})
}

// near0 is a where |v| < 1/2, else b.
func (x *emission) near0(v string, d ir.DType, a, b string) string {
	return x.op("Where", []string{x.op("Less", []string{x.op("Abs", v), x.scalar(d, 0.5)}), a, b})
}

// erfcSeries fits ln(erfc(z) e^(z^2) / t) as a polynomial of t = 1 / (1 + z/2) for z >= 0, by interpolation at Chebyshev nodes, highest
// power first: erfc is right to 1.1e-8 of its value.
var erfcSeries = []float64{
	-0.1787572436, 0.9913575956, -2.205107496, 2.398733724, -1.225425165, 0.3355402239, -0.2337078892, -0.07473419466, 0.08259243327,
	0.375020199, 0.9999999273, -1.265512124,
}

// erfcForm is erfc(z) for z = |x|, and 2 - erfc(z) where x is negative: 1 - erf(x) would lose the upper tail.
func erfcForm(x *emission, v string, d ir.DType) string {
	if d == ir.F64 {
		x.refuse("ONNX has no erfc, and its approximation holds in f32 only")
		return ""
	}
	z := x.op("Abs", v)
	t := x.op("Reciprocal", x.op("Add", []string{x.scaled(z, d, 0.5), x.scalar(d, 1)}))
	y := x.scalar(d, erfcSeries[0])
	for _, c := range erfcSeries[1:] {
		y = x.op("Add", []string{x.op("Mul", []string{y, t}), x.scalar(d, c)})
	}
	y = x.op("Mul", []string{t, x.op("Exp", x.op("Sub", []string{y, x.op("Mul", []string{z, z})}))})
	below := x.op("Less", []string{v, x.scalar(d, 0)})
	return x.op("Where", []string{below, x.op("Sub", []string{x.scalar(d, 2), y}), y})
}

func emitActivation(x *emission, a *op.ActivationAttrs) []string {
	d := x.dtype(0)
	whole := ir.Int.Has(d)
	switch a.Fn {
	case "identity":
		return passed(x)
	case "round", "floor", "ceil", "trunc":
		if whole {
			return passed(x)
		}
	case "relu":
		if ir.Unsigned.Has(d) {
			return passed(x)
		}
	}
	if o, ok := unaryOps[a.Fn]; ok && d != ir.C64 {
		if o.takes == f32Only && d == ir.F64 {
			return x.refuse("%s of f64", o.name)
		}
		return x.carry(o.takes, func(in []string, _ ir.DType) string {
			var attrs []AttributeProto
			if o.alpha != "" {
				attrs = append(attrs, attr(o.alpha, a.Alpha))
			}
			if o.beta != "" {
				attrs = append(attrs, attr(o.beta, a.Beta))
			}
			return x.op(o.name, in, attrs...)
		})
	}
	if form := unaryForms[a.Fn]; form != nil && ir.Float.Has(d) {
		wide := ir.Set(ir.F32, ir.F64)
		return x.carry(wide, func(in []string, d ir.DType) string { return form(x, in[0], d) })
	}
	return x.refuse("%s of %s", string(a.Fn), d)
}

var binaryOps = map[op.BinaryFn]scalarOp{
	"add": {"Add", reals, "", ""}, "sub": {"Sub", reals, "", ""}, "mul": {"Mul", reals, "", ""}, "div": {"Div", reals, "", ""},
	"max": {"Max", orderable, "", ""}, "min": {"Min", orderable, "", ""}, "pow": {"Pow", wideFloats | ir.Set(ir.I32, ir.I64), "", ""},
	"mod": {"Mod", reals, "", ""}, "floor_mod": {"Mod", ir.Int, "", ""},
	"bit_and": {"BitwiseAnd", ir.Int, "", ""}, "bit_or": {"BitwiseOr", ir.Int, "", ""}, "bit_xor": {"BitwiseXor", ir.Int, "", ""},
	"and": {"And", ir.Set(ir.Bool), "", ""}, "or": {"Or", ir.Set(ir.Bool), "", ""}, "xor": {"Xor", ir.Set(ir.Bool), "", ""},
}

func emitBinary(x *emission, a *op.BinaryAttrs) []string {
	d := x.dtype(0)
	if (a.Fn == "shl" || a.Fn == "shr") && ir.Unsigned.Has(d) {
		return x.shift(a.Fn, d)
	}
	o, ok := binaryOps[a.Fn]
	if !ok || d == ir.C64 || a.Fn == "floor_mod" && !ir.Int.Has(d) {
		return x.refuse("%s of %s", string(a.Fn), d)
	}
	return x.carry(o.takes, func(in []string, _ ir.DType) string {
		if a.Fn == "mod" {
			return x.op(o.name, in, attr("fmod", 1))
		}
		return x.op(o.name, in)
	})
}

// shift moves bits. A count of the width and more gives 0, which ONNX leaves open.
func (x *emission) shift(fn op.BinaryFn, d ir.DType) []string {
	direction := map[op.BinaryFn]string{"shl": "LEFT", "shr": "RIGHT"}[fn]
	y := x.op("BitShift", x.in, attr("direction", direction))
	width := float64(8 * d.Size())
	if t, ok := x.n.In[1].Const(); ok && t.Len() == 1 && t.Float(0) < width {
		return []string{y}
	}
	inside := x.op("Less", []string{x.cast(x.in[1], d, ir.I64), x.scalar(ir.I64, width)})
	return []string{x.cast(x.op("Where", []string{inside, x.cast(y, d, ir.I64), x.scalar(ir.I64, 0)}), ir.I64, d)}
}

// lowerBinary composes the functions that have no operator.
func lowerBinary(n *ir.Node, a *op.BinaryAttrs) []ir.Value {
	u, v := n.In[0], n.In[1]
	d := u.DType()
	switch a.Fn {
	case "atan2":
		return []ir.Value{lowerAtan2(u, v)}
	case "shl", "shr":
		wide := unsignedOf[d]
		if wide == ir.Invalid {
			return nil
		}
		count := op.Cast(op.Where(op.Lt(v, 0), 8*d.Size(), v), wide) // a negative count is out of range, too
		to := func(x ir.Value) ir.Value { return op.Cast(x, wide) }
		if a.Fn == "shl" {
			return []ir.Value{op.Cast(op.Shl(to(u), count), d)}
		}
		below := op.Cast(op.BitNot(op.Shr(to(op.BitNot(u)), count)), d)
		return []ir.Value{op.Where(op.Lt(u, 0), below, op.Cast(op.Shr(to(u), count), d))}
	}
	return n.Row.Decompose(n)
}

var unsignedOf = map[ir.DType]ir.DType{ir.I8: ir.U8, ir.I16: ir.U16, ir.I32: ir.U32, ir.I64: ir.U64}

// lowerAtan2 is the angle of the point (v, u): atan(u/v), half a turn further where v is negative. 1/v tells the zeros apart.
func lowerAtan2(u, v ir.Value) ir.Value {
	d := u.DType()
	if d == ir.F16 || d == ir.BF16 {
		return op.Cast(lowerAtan2(op.Cast(u, ir.F32), op.Cast(v, ir.F32)), d)
	}
	below := func(x ir.Value) ir.Value { return op.LogicalOr(op.Lt(x, 0.0), op.Lt(op.Reciprocal(x), 0.0)) }
	both := op.LogicalAnd(op.IsInf(u), op.IsInf(v)) // a quarter of the plane: as for the signs alone
	a, b := op.Where(both, op.Sign(u), u), op.Where(both, op.Sign(v), v)
	half := op.Where(below(a), -math.Pi, op.Where(op.IsNaN(a), a, op.Add(op.Mul(op.Abs(op.Sign(a)), 0.0), math.Pi)))
	atan := op.Atan(op.Div(a, b))
	zero := op.LogicalAnd(op.Eq(a, 0.0), op.Eq(b, 0.0)) // 0/0
	atan = op.Where(zero, op.Mul(a, 0.0), atan)
	return op.Where(op.LogicalAnd(below(b), op.Ne(b, math.Inf(1))), op.Add(atan, half), atan)
}

var compareOps = map[op.CompareFn]string{
	"eq": "Equal", "ne": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual",
}

func emitCompare(x *emission, a *op.CompareAttrs) []string {
	takes := reals
	if a.Fn == "eq" || a.Fn == "ne" {
		takes |= ir.Set(ir.Bool)
	}
	d := x.carrier(x.dtype(0), takes)
	if x.reason != "" {
		return nil
	}
	y := x.op(compareOps[a.Fn], []string{x.cast(x.in[0], x.dtype(0), d), x.cast(x.in[1], x.dtype(0), d)})
	if a.Fn == "ne" {
		y = x.op("Not", y)
	}
	return []string{y}
}

func emitCast(x *emission, a *op.CastAttrs) []string {
	from := x.dtype(0)
	switch {
	case from == a.Dtype:
		return passed(x)
	case from == ir.C64 || a.Dtype == ir.C64:
		return x.refuse("%s to %s: %s", from, a.Dtype, noComplex)
	}
	x.elem(from)
	attrs := []AttributeProto{attr("to", x.elem(a.Dtype))}
	if !a.Saturate && (a.Dtype == ir.F8E4M3 || a.Dtype == ir.F8E5M2) {
		attrs = append(attrs, attr("saturate", 0))
	}
	return x.one("Cast", attrs...)
}

func emitClamp(x *emission, a *op.ClampAttrs) []string {
	d := x.dtype(0)
	lo, hi := 0.0, 0.0
	least, most := int64(0), int64(0)
	if ir.Float.Has(d) {
		lo, hi = a.FloatBounds(d)
	} else {
		least, most = a.IntBounds(d)
	}
	bound := func(v float64, whole int64) string { // both are given: runtimes take the greatest number for one that is not
		t, err := ir.Zeros(d)
		if err != nil {
			x.refuse("%v", err)
			return ""
		}
		if ir.Float.Has(d) {
			ir.PutFloat(d, t.Bytes(), 0, v)
		} else {
			ir.PutInt(d, t.Bytes(), 0, whole)
		}
		return x.constant("bound", t)
	}
	c := x.carrier(d, reals)
	lower, upper := x.cast(bound(lo, least), d, c), x.cast(bound(hi, most), d, c)
	return []string{x.cast(x.op("Clip", []string{x.cast(x.in[0], d, c), lower, upper}), c, d)}
}

func emitWhere(x *emission) []string {
	d := x.dtype(1)
	c := x.carrier(d, selectable)
	if x.reason != "" {
		return nil
	}
	y := x.op("Where", []string{x.in[0], x.cast(x.in[1], d, c), x.cast(x.in[2], d, c)})
	return []string{x.cast(y, c, d)}
}

// lowerFma computes in a dtype that holds the product exactly; f64 has none.
func lowerFma(n *ir.Node, _ *op.ElementwiseAttrs) []ir.Value {
	d := n.In[0].DType()
	wide := d
	switch {
	case d == ir.F64:
		return nil
	case d == ir.F32:
		wide = ir.F64
	case ir.Float.Has(d):
		wide = ir.F32
	}
	return []ir.Value{castTo(op.Add(op.Mul(castTo(n.In[0], wide), castTo(n.In[1], wide)), castTo(n.In[2], wide)), d)}
}

// lowerRoundToFormat goes through the element type of that format, where there is one and no scale.
func lowerRoundToFormat(n *ir.Node, a *op.RoundToFormatAttrs) []ir.Value {
	through, ok := map[string]ir.DType{"f8e4m3": ir.F8E4M3, "f8e5m2": ir.F8E5M2}[a.Format]
	if !ok || a.ScaleLayout != "none" {
		return nil
	}
	return []ir.Value{op.Cast(op.Cast(n.In[0], through), ir.F32)}
}
