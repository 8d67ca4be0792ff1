package onnx

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// oldRows are the first forms of operators whose later ones have rows of their own.
var oldRows = slices.Concat(
	firstBinary("Add", op.Add[iv, iv], eachDim(addDims)),
	firstBinary("Sub", op.Sub[iv, iv], eachDim(subDims)),
	firstBinary("Mul", op.Mul[iv, iv], eachDim(mulDims)),
	firstBinary("Div", op.Div[iv, iv], trackDiv),
	firstBinary("Pow", op.Pow[iv, iv], nil),
	firstBinary("And", op.LogicalAnd[iv, iv], eachBool(andDims)),
	firstBinary("Or", op.LogicalOr[iv, iv], eachBool(orDims)),
	firstBinary("Xor", op.LogicalXor[iv, iv], nil),
	firstBinary("Equal", op.Eq[iv, iv], eachBool(equalDims)),
	firstBinary("Less", op.Lt[iv, iv], eachBool(lessDims)),
	firstBinary("Greater", op.Gt[iv, iv], nil),
	consuming("Max", "Min", "Sum", "Mean", "Abs", "Neg", "Reciprocal", "Sqrt", "Exp", "Log", "Tanh", "Floor", "Ceil", "Relu", "Sigmoid",
		"LeakyRelu", "Elu", "HardSigmoid"),
	[]row{
		first(activation("Selu", 1, func(x iv, p []float64) iv { return op.Selu(x, p[0], p[1]) }, float("alpha", 1.6732), float("gamma", 1.0507))),
		{op: "PRelu", since: 1, in: arity{2, 2}, attrs: []attrDecl{consumedInputs}, build: buildFirstPRelu},
		{op: "Clip", since: 1, in: arity{1, 1}, build: buildFirstClip,
			attrs: []attrDecl{{name: "min", kind: AttributeFloat}, {name: "max", kind: AttributeFloat}, consumedInputs}},
		{op: "Gemm", since: 1, in: arity{3, 3}, build: buildGemm,
			attrs: []attrDecl{float("alpha", 1), float("beta", 1), integer("transA", 0), integer("transB", 0), integer("broadcast", 0)}},
		{op: "Dropout", since: 1, in: arity{1, 1}, build: buildInference(buildDropout),
			attrs: []attrDecl{float("ratio", 0.5), integer("is_test", 0), consumedInputs}},
		{op: "BatchNormalization", since: 1, in: arity{5, 5}, build: buildInference(buildBatchNorm),
			attrs: []attrDecl{float("epsilon", 1e-5), float("momentum", 0.9), integer("spatial", 1, 1), integer("is_test", 0), consumedInputs}},
	},
)

// consumedInputs allowed a runtime to compute in place, until operator set 6.
var consumedInputs = integers("consumed_inputs")

// consuming gives operators that changed in nothing else a row from operator set 1 on.
func consuming(ops ...string) []row {
	var out []row
	for _, r := range slices.Concat(arithmeticRows, activationRows) {
		if slices.Contains(ops, r.op) {
			out = append(out, first(r))
		}
	}
	return out
}

func first(r row) row {
	r.since, r.attrs = 1, append(slices.Clone(r.attrs), consumedInputs)
	return r
}

// firstBinary declares an operator of two operands before operator set 7: with attribute broadcast, the second one is broadcast to the
// first, its axes from attribute axis on, or the last ones.
func firstBinary(name string, f func(a, b iv) iv, track func(*node) []*dimTensor) []row {
	r := row{op: name, since: 1, in: arity{2, 2}, attrs: []attrDecl{integer("broadcast", 0), {name: "axis", kind: AttributeInt}, consumedInputs}}
	r.build = func(n *node) {
		a, b := n.val(0), n.val(1)
		if !n.ok() {
			return
		}
		if b = n.aligned(a, b); n.ok() {
			n.ret(f(a, b))
		}
	}
	if track != nil {
		r.track = func(n *node) []*dimTensor {
			if n.attr("axis") != nil {
				return nil
			}
			return track(n)
		}
	}
	return []row{r}
}

// aligned is b with axes of length 1 behind its own, so that NumPy's broadcast puts them at attribute axis of a.
func (n *node) aligned(a, b ir.Value) ir.Value {
	switch {
	case n.i("broadcast") == 0 && !ir.SameShape(a.Shape(), b.Shape()), b.Rank() > a.Rank():
		n.fail("operands have shapes %s and %s, the second is not broadcast to the first", ir.ShapeText(a.Shape()), ir.ShapeText(b.Shape()))
	case n.i("broadcast") == 0 || n.attr("axis") == nil || b.Rank() == 0:
	default:
		axis := n.axis("axis", a.Rank())
		if n.ok() && axis+b.Rank() > a.Rank() {
			n.fail("axis is %d, the operands have ranks %d and %d", axis, a.Rank(), b.Rank())
		}
		if n.ok() && axis+b.Rank() < a.Rank() {
			return op.Reshape(b, append(slices.Clone(b.Shape()), ir.Dims(slices.Repeat([]int64{1}, a.Rank()-axis-b.Rank())...)...)...)
		}
	}
	return b
}

// buildFirstPRelu has one slope, or one for each channel.
func buildFirstPRelu(n *node) {
	x, slope := n.val(0), n.val(1)
	if !n.ok() {
		return
	}
	if slope.Rank() == 1 && x.Rank() > 2 {
		slope = column(slope, x.Rank())
	}
	n.ret(op.Where(op.Lt(x, 0), op.Mul(x, slope), x))
}

func buildFirstClip(n *node) {
	lo, hi := math.Inf(-1), math.Inf(1)
	if a := n.attr("min"); a != nil {
		lo = float64(a.F)
	}
	if a := n.attr("max"); a != nil {
		hi = float64(a.F)
	}
	if x := n.val(0); n.ok() {
		n.ret(op.Clamp(x, lo, hi))
	}
}

// buildInference reads an operator as it is at inference; training is refused.
func buildInference(build func(*node)) func(*node) {
	return func(n *node) {
		if n.i("is_test") == 0 {
			n.refuse("is_test", "training is not supported, expected 1")
			return
		}
		build(n)
	}
}
