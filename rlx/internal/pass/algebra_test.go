package pass_test

import (
	"math"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func TestAlgebraOfFloats(t *testing.T) {
	zero, minus := 0.0, math.Copysign(0, -1)
	for _, d := range []ir.DType{ir.F16, ir.BF16, ir.F32, ir.F64} {
		checkRules(t, pass.Algebra, typeOf(d, 5, 7), []ruleCase{
			{"times 1", func(x ir.Value) ir.Value { return op.Mul(op.Mul(1, x), 1) }, ""},
			{"times 0", func(x ir.Value) ir.Value { return op.Mul(x, zero) }, "Binary"},
			{"by 1", func(x ir.Value) ir.Value { return op.Div(x, 1) }, ""},
			{"1 by", func(x ir.Value) ir.Value { return op.Div(1, op.Div(1, x)) }, "Binary Binary"},
			{"plus 0", func(x ir.Value) ir.Value { return op.Add(x, zero) }, "Binary"},
			{"plus -0", func(x ir.Value) ir.Value { return op.Add(x, minus) }, ""},
			{"minus 0", func(x ir.Value) ir.Value { return op.Sub(x, zero) }, ""},
			{"minus -0", func(x ir.Value) ir.Value { return op.Sub(x, minus) }, "Binary"},
			{"0 minus", func(x ir.Value) ir.Value { return op.Sub(zero, x) }, "Binary"},
			{"minus itself", func(x ir.Value) ir.Value { return op.Sub(x, x) }, "Binary"},
			{"to the 1", func(x ir.Value) ir.Value { return op.Pow(x, 1) }, ""},
			{"neg neg", func(x ir.Value) ir.Value { return op.Neg(op.Neg(x)) }, ""},
			{"abs abs", func(x ir.Value) ir.Value { return op.Abs(op.Abs(op.Neg(x))) }, "Activation"},
			{"relu relu", func(x ir.Value) ir.Value { return op.Relu(op.Relu(x)) }, "Activation"},
			{"exp exp", func(x ir.Value) ir.Value { return op.Exp(op.Exp(x)) }, "Activation Activation"},
			{"max max", func(x ir.Value) ir.Value { return op.Max(op.Max(x, 1), 2) }, "Binary"},
			{"min min", func(x ir.Value) ir.Value { return op.Min(op.Min(x, 1), 2) }, "Binary"},
			{"max of zeros", func(x ir.Value) ir.Value { return op.Max(op.Max(x, zero), minus) }, "Binary Binary"},
			{"max min", func(x ir.Value) ir.Value { return op.Max(op.Min(x, 1), 2) }, "Binary Binary"},
			{"clamps", func(x ir.Value) ir.Value { return op.Clamp(op.Clamp(x, -2, 1), -1, 7) }, "Clamp"},
			{"clamps apart", func(x ir.Value) ir.Value { return op.Clamp(op.Clamp(x, -2, -1), 1, 7) }, "Clamp"},
			{"clamp that is turned", func(x ir.Value) ir.Value { return op.Clamp(op.Clamp(x, 2, 1), -1, 7) }, "Clamp Clamp"},
			{"clamp at 0", func(x ir.Value) ir.Value { return op.Clamp(op.Clamp(x, 0, 1), -1, 7) }, "Clamp Clamp"},
			{"not eq", func(x ir.Value) ir.Value { return op.LogicalNot(op.Eq(x, 1)) }, "Compare"},
			{"not lt", func(x ir.Value) ir.Value { return op.LogicalNot(op.Lt(x, 1)) }, "Compare Activation"},
			{"eq itself", func(x ir.Value) ir.Value { return op.Eq(x, x) }, "Compare"},
			{"max itself", func(x ir.Value) ir.Value { return op.Max(x, x) }, ""},
			{"constant in front", func(x ir.Value) ir.Value { return op.Lt(2, x) }, "Compare"},
			{"bool as number", func(x ir.Value) ir.Value { return op.Ne(op.Cast(op.Lt(x, 1), ir.F32), zero) }, "Compare"},
			{"no bool as number", func(x ir.Value) ir.Value { return op.Eq(op.Cast(op.Lt(x, 1), ir.F32), zero) }, "Compare Activation"},
			{"bool as 2", func(x ir.Value) ir.Value { return op.Eq(op.Cast(op.Lt(x, 1), ir.F32), 2) }, "Compare Cast Compare"},
			{"where of one", func(x ir.Value) ir.Value { return op.Where(op.Lt(x, 1), x, x) }, ""},
			{"where not", func(x ir.Value) ir.Value { return op.Where(op.LogicalNot(op.Lt(x, 1)), x, op.Neg(x)) }, "Compare Activation Where"},
			{"max of one", func(x ir.Value) ir.Value {
				return op.Reduce(op.Reshape(x, ir.Dims(5, 1, 7)...), "max", []int{-2}, false)
			}, "Reshape Reshape"},
			{"prod of one", func(x ir.Value) ir.Value {
				return op.Reduce(op.Reshape(x, ir.Dims(5, 1, 7)...), "prod", []int{1}, true)
			}, "Reshape"},
			{"sum of one", func(x ir.Value) ir.Value { return op.Reduce(op.Reshape(x, ir.Dims(5, 1, 7)...), "sum", []int{1}, true) }, "Reshape Reduce"},
			{"max of some", func(x ir.Value) ir.Value { return op.Reduce(x, "max", []int{1}, true) }, "Reduce"},
		})
	}
}

// Quotients by powers of two are products, where the reciprocal is a normal number; the constant is what it should be.
func TestAlgebraReciprocal(t *testing.T) {
	for _, c := range []struct {
		d    ir.DType
		by   float64
		want op.BinaryFn
	}{
		{ir.F32, 8, "mul"}, {ir.F32, -0.25, "mul"}, {ir.F32, 3, "div"}, {ir.F32, 0, "div"}, {ir.F32, math.Inf(1), "div"}, {ir.F32, math.NaN(), "div"},
		{ir.F32, math.Ldexp(1, 126), "mul"}, {ir.F32, math.Ldexp(1, 127), "div"}, {ir.F32, math.Ldexp(1, -126), "mul"}, {ir.F32, math.Ldexp(1, -127), "div"},
		{ir.F16, math.Ldexp(1, 14), "mul"}, {ir.F16, math.Ldexp(1, 15), "div"}, {ir.F64, math.Ldexp(1, 500), "mul"},
	} {
		g := ir.NewGraph("g")
		x := g.Input("x", c.d, ir.Dims(4, 32))
		g.Output("y", op.Div(x, c.by))
		out := apply(t, g, func(g *ir.Graph) (*ir.Graph, error) {
			return pass.Rewrite(g, nil, pass.Algebra.Rules, map[string]int{})
		})
		if got := out.Outputs[0].Value.Node().Attrs.(*op.BinaryAttrs).Fn; got != c.want {
			t.Errorf("%s / %g is a %s, expected %s", c.d, c.by, got, c.want)
		}
		feed := map[string]*ir.Tensor{"x": specialTensor(rng(1), c.d, 4, 32)}
		sameBits(t, evaluate(t, out, feed), evaluate(t, g, feed), out)
	}
}

func TestAlgebraOfIntegers(t *testing.T) {
	for _, d := range []ir.DType{ir.I8, ir.U8, ir.I32, ir.I64, ir.U64} {
		checkRules(t, pass.Algebra, typeOf(d, 3, 5), []ruleCase{
			{"plus 0", func(x ir.Value) ir.Value { return op.Add(x, 0) }, ""},
			{"times 0", func(x ir.Value) ir.Value { return op.Mul(x, 0) }, "Expand"},
			{"by 0", func(x ir.Value) ir.Value { return op.Div(x, 0) }, "Binary"},
			{"sums", func(x ir.Value) ir.Value { return op.Add(op.Add(x, 100), 27) }, "Binary"},
			{"products", func(x ir.Value) ir.Value { return op.Mul(op.Mul(3, x), 41) }, "Binary"},
			{"sum of product", func(x ir.Value) ir.Value { return op.Mul(op.Add(x, 3), 41) }, "Binary Binary"},
			{"quotients", func(x ir.Value) ir.Value { return op.Div(op.Div(x, 3), 5) }, "Binary Binary"},
			{"xor 0", func(x ir.Value) ir.Value { return op.BitXor(x, 0) }, ""},
			{"and 0", func(x ir.Value) ir.Value { return op.BitAnd(x, 0) }, "Expand"},
			{"shift by 0", func(x ir.Value) ir.Value { return op.Shl(op.Shr(x, 0), 0) }, ""},
			{"bit_not twice", func(x ir.Value) ir.Value { return op.BitNot(op.BitNot(x)) }, ""},
			{"eq itself", func(x ir.Value) ir.Value { return op.Eq(x, x) }, "Expand"},
			{"lt itself", func(x ir.Value) ir.Value { return op.Lt(x, x) }, "Expand"},
			{"not lt", func(x ir.Value) ir.Value { return op.LogicalNot(op.Lt(x, 1)) }, "Compare"},
			{"sum of one", func(x ir.Value) ir.Value {
				return op.Reduce(op.Reshape(x, ir.Dims(3, 5, 1)...), "sum", []int{2}, false)
			}, "Reshape Reshape"},
			{"through a wider one", func(x ir.Value) ir.Value { return op.Cast(op.Cast(op.Cast(x, ir.I8), ir.I32), ir.U8) }, "Cast Cast"},
		})
	}
	checkRules(t, pass.Algebra, typeOf(ir.Bool, 9), []ruleCase{
		{"and true", func(x ir.Value) ir.Value { return op.LogicalAnd(x.Graph().Constant(ir.Scalar(true)), x) }, ""},
		{"and false", func(x ir.Value) ir.Value { return op.LogicalAnd(x, x.Graph().Constant(ir.Scalar(false))) }, "Expand"},
		{"or true", func(x ir.Value) ir.Value { return op.LogicalOr(x, x.Graph().Constant(ir.Scalar(true))) }, "Expand"},
		{"xor true", func(x ir.Value) ir.Value { return op.LogicalXor(x, x.Graph().Constant(ir.Scalar(true))) }, "Binary"},
		{"not not", func(x ir.Value) ir.Value { return op.LogicalNot(op.LogicalNot(x)) }, ""},
		{"through numbers", func(x ir.Value) ir.Value { return op.Cast(op.Cast(x, ir.BF16), ir.Bool) }, ""},
	})
}

// Casts that lose nothing on the way are left out. Floats clamp where integers keep their low bits, and narrower dtypes round.
func TestAlgebraCasts(t *testing.T) {
	for _, c := range []struct {
		from, middle, to ir.DType
		want             string
	}{
		{ir.I16, ir.F32, ir.U8, "Cast Cast"}, {ir.I16, ir.F32, ir.I64, "Cast"}, {ir.I16, ir.F32, ir.I16, ""}, {ir.I16, ir.I64, ir.U8, "Cast"}, {ir.I16, ir.BF16, ir.I32, "Cast Cast"},
		{ir.U8, ir.F16, ir.F32, "Cast"}, {ir.I32, ir.F32, ir.F64, "Cast Cast"}, {ir.F32, ir.F16, ir.F32, "Cast Cast"}, {ir.F32, ir.F64, ir.F16, "Cast"}, {ir.I64, ir.F64, ir.I64, "Cast Cast"},
	} {
		checkRules(t, pass.Algebra, typeOf(c.from, 64), []ruleCase{{c.from.String() + " " + c.middle.String() + " " + c.to.String(),
			func(x ir.Value) ir.Value { return op.Cast(op.Cast(x, c.middle), c.to) }, c.want}})
	}
}
