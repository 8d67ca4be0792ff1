package pass

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Algebra applies identities that hold for every value, NaN, infinities, both zeros and integers that wrap among them. Floats are never reassociated.
var Algebra = Pass{
	Name: "algebra",
	Doc:  "drops and shortens arithmetic where every value comes out the same, bit for bit",
	Rules: []Rule{
		{"constant right", constantRightRule},
		{"neutral constant", neutralRule},
		{"division by a power of two", reciprocalRule},
		{"constants of integers", integerConstantsRule},
		{"nested bounds", nestedBoundsRule},
		{"clamp", clampRule},
		{"clamp of clamp", clampClampRule},
		{"equal operands", equalOperandsRule},
		{"repeated function", repeatedRule},
		{"not of comparison", notCompareRule},
		{"cast of cast", castCastRule},
		{"comparison of a cast bool", compareBoolRule},
		{"where", whereRule},
		{"reduce of ones", reduceOnesRule},
	},
}

var (
	plainFloats = ir.Set(ir.F16, ir.BF16, ir.F32, ir.F64)
	plainInts   = ir.Set(ir.I8, ir.U8, ir.I16, ir.U16, ir.I32, ir.U32, ir.I64, ir.U64)
)

// binaryFn gives the function of a Binary; "" of other nodes.
func binaryFn(n *ir.Node) op.BinaryFn {
	if a, ok := n.Attrs.(*op.BinaryAttrs); ok && n.Row.Name == "Binary" {
		return a.Fn
	}
	return ""
}

// compareFn gives the function of a Compare; "" of other nodes.
func compareFn(n *ir.Node) op.CompareFn {
	if a, ok := n.Attrs.(*op.CompareAttrs); ok && n.Row.Name == "Compare" {
		return a.Fn
	}
	return ""
}

// unaryFn gives the function of an Activation; "" of other nodes.
func unaryFn(n *ir.Node) op.UnaryFn {
	if a, ok := n.Attrs.(*op.ActivationAttrs); ok && n.Row.Name == "Activation" {
		return a.Fn
	}
	return ""
}

// element is the value of a constant of one element.
func element(v ir.Value) (*ir.Tensor, bool) {
	t, ok := v.Const()
	return t, ok && t.Len() == 1
}

// like is a constant of one element in the shape of t.
func like(m *Match, t *ir.Tensor, put func(b []byte)) ir.Value {
	b := make([]byte, t.DType().Size())
	put(b)
	c, err := ir.FromBytes(t.DType(), t.Shape(), b)
	if err != nil {
		return m.Graph().Fail(m.Row.Name, err)
	}
	return m.Graph().Constant(c)
}

// constantRightRule puts constants on the right where sides can be changed. Of max and min they cannot: which of two zeros comes out may depend on it.
func constantRightRule(m *Match) []ir.Value {
	if len(m.In) != 2 || m.In[0].DType() == ir.C64 {
		return nil
	}
	_, left := m.In[0].Const()
	if _, right := m.In[1].Const(); !left || right {
		return nil
	}
	a, b := m.In[1], m.In[0]
	switch fn := binaryFn(m.Node); fn {
	case "add", "mul", "bit_and", "bit_or", "bit_xor", "and", "or", "xor":
		return []ir.Value{op.BinaryOp(a, b, fn)}
	}
	if fn := compareFn(m.Node); fn != "" {
		turned := map[op.CompareFn]op.CompareFn{"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
		if other, ok := turned[fn]; ok {
			fn = other
		}
		return []ir.Value{op.CompareOp(a, b, fn)}
	}
	return nil
}

// neutralRule drops operations by their neutral element, and gives the constant where the other operand has no say.
func neutralRule(m *Match) []ir.Value {
	fn := binaryFn(m.Node)
	if fn == "" {
		return nil
	}
	x := m.In[0]
	t, ok := element(m.In[1])
	if !ok || !neutral(fn, t) {
		return absorbed(m, fn)
	}
	return []ir.Value{stretched(x, m.Types[0].Shape)}
}

// neutral says that x fn t is x for every x.
func neutral(fn op.BinaryFn, t *ir.Tensor) bool {
	d := t.DType()
	if plainFloats.Has(d) {
		v := t.Float(0)
		switch fn {
		case "mul", "div", "pow":
			return v == 1
		case "add": // -0 + 0 is 0
			return v == 0 && math.Signbit(v)
		case "sub":
			return v == 0 && !math.Signbit(v)
		}
		return false
	}
	v := t.Int(0)
	switch {
	case d == ir.Bool:
		return fn == "and" && v != 0 || (fn == "or" || fn == "xor") && v == 0
	case !plainInts.Has(d):
		return false
	}
	switch fn {
	case "mul", "div", "pow", "floor_div":
		return v == 1
	case "add", "sub", "bit_or", "bit_xor", "shl", "shr":
		return v == 0
	case "bit_and":
		return allOnes(t)
	}
	return false
}

func allOnes(t *ir.Tensor) bool {
	return !slices.ContainsFunc(t.Bytes(), func(b byte) bool { return b != 0xff })
}

// absorbed is the constant where x fn constant is the constant for every x: of integers and bools only.
func absorbed(m *Match, fn op.BinaryFn) []ir.Value {
	t, ok := element(m.In[1])
	if !ok {
		return nil
	}
	v, same := t.Int(0), false
	switch {
	case t.DType() == ir.Bool:
		same = fn == "and" && v == 0 || fn == "or" && v != 0
	case plainInts.Has(t.DType()):
		same = (fn == "mul" || fn == "bit_and") && v == 0 || fn == "bit_or" && allOnes(t)
	}
	if !same {
		return nil
	}
	return []ir.Value{stretched(m.In[1], m.Types[0].Shape)}
}

// reciprocalRule multiplies in place of dividing by a power of two whose reciprocal is a normal number: both round the same real number once.
func reciprocalRule(m *Match) []ir.Value {
	if binaryFn(m.Node) != "div" {
		return nil
	}
	t, ok := element(m.In[1])
	if !ok || !plainFloats.Has(t.DType()) {
		return nil
	}
	least := map[ir.DType]int{ir.F16: -14, ir.BF16: -126, ir.F32: -126, ir.F64: -1022}[t.DType()] // the exponent of the least normal number
	frac, exp := math.Frexp(t.Float(0))
	if k := exp - 1; math.Abs(frac) != 0.5 || k < least || -k < least {
		return nil
	}
	c := like(m, t, func(b []byte) { ir.PutFloat(t.DType(), b, 0, 1/t.Float(0)) })
	return []ir.Value{op.Mul(m.In[0], c)}
}

// integerConstantsRule merges the constants of (x+a)+b and (x*a)*b, which wrap to the same.
func integerConstantsRule(m *Match) []ir.Value {
	fn := binaryFn(m.Node)
	if fn != "add" && fn != "mul" && fn != "bit_and" && fn != "bit_or" && fn != "bit_xor" || !plainInts.Has(m.In[0].DType()) || binaryFn(m.In[0].Node()) != fn {
		return nil
	}
	inner := m.In[0].Node()
	a, okA := element(inner.In[1])
	b, okB := element(m.In[1])
	if !okA || !okB {
		return nil
	}
	x, y := a.Int(0), b.Int(0)
	v := map[op.BinaryFn]int64{"add": x + y, "mul": x * y, "bit_and": x & y, "bit_or": x | y, "bit_xor": x ^ y}[fn]
	wide := b
	if a.Rank() > b.Rank() {
		wide = a
	}
	c := like(m, wide, func(bytes []byte) { ir.PutInt(wide.DType(), bytes, 0, v) })
	return []ir.Value{op.BinaryOp(inner.In[0], c, fn)}
}

// nestedBoundsRule keeps the bound that decides of max(max(x, a), b), and of min. Where the bounds are zeros both stay: either may come out.
func nestedBoundsRule(m *Match) []ir.Value {
	fn := binaryFn(m.Node)
	if fn != "max" && fn != "min" || binaryFn(m.In[0].Node()) != fn {
		return nil
	}
	inner := m.In[0].Node()
	a, okA := element(inner.In[1])
	b, okB := element(m.In[1])
	if !okA || !okB || !plainFloats.Has(a.DType()) {
		return nil
	}
	x, y := a.Float(0), b.Float(0)
	if math.IsNaN(x) || math.IsNaN(y) || x == 0 && y == 0 && math.Signbit(x) != math.Signbit(y) {
		return nil
	}
	if (x >= y) == (fn == "max") && x != y { // the inner one decides
		return []ir.Value{stretched(m.In[0], m.Types[0].Shape)}
	}
	return []ir.Value{stretched(op.BinaryOp(inner.In[0], m.In[1], fn), m.Types[0].Shape)}
}

// clampClampRule applies the outer bounds to the inner ones. Integers stay: their bounds may not fit a float.
func clampClampRule(m *Match) []ir.Value {
	outer, ok := m.Attrs.(*op.ClampAttrs)
	if !ok || m.Row.Name != "Clamp" || !plainFloats.Has(m.In[0].DType()) {
		return nil
	}
	n := made(m.In[0], "Clamp")
	if n == nil {
		return nil
	}
	inner := n.Attrs.(*op.ClampAttrs)
	a, b, c, d := inner.Min.Float(), inner.Max.Float(), outer.Min.Float(), outer.Max.Float()
	for _, bound := range []float64{a, b, c, d} {
		if bound == 0 || math.IsNaN(bound) {
			return nil // which zero comes out may depend on how often one is compared
		}
	}
	if a > b || c > d {
		return nil
	}
	lo, hi := min(max(a, c), d), min(max(b, c), d)
	return []ir.Value{op.Clamp(n.In[0], lo, hi)}
}

// equalOperandsRule is x fn x. Floats: a NaN is not equal to itself, and x-x is NaN at infinities.
func equalOperandsRule(m *Match) []ir.Value {
	if len(m.In) != 2 || m.In[0] != m.In[1] {
		return nil
	}
	switch binaryFn(m.Node) {
	case "max", "min", "and", "or", "bit_and", "bit_or":
		return []ir.Value{m.In[0]}
	}
	if d := m.In[0].DType(); !plainInts.Has(d) && d != ir.Bool {
		return nil
	}
	switch compareFn(m.Node) {
	case "eq", "le", "ge":
		return []ir.Value{stretched(m.Graph().Constant(ir.Scalar(true)), m.Types[0].Shape)}
	case "ne", "lt", "gt":
		return []ir.Value{stretched(m.Graph().Constant(ir.Scalar(false)), m.Types[0].Shape)}
	}
	return nil
}

// repeatedRule is for functions that undo themselves or do nothing the second time.
func repeatedRule(m *Match) []ir.Value {
	fn := unaryFn(m.Node)
	if fn == "" {
		return nil
	}
	inner := unaryFn(m.In[0].Node())
	switch fn {
	case "neg", "not", "bit_not":
		if inner == fn {
			return []ir.Value{m.In[0].Node().In[0]}
		}
	case "abs", "relu", "relu6", "floor", "ceil", "round", "trunc", "sign":
		if inner == fn {
			return []ir.Value{m.In[0]}
		}
		if fn == "abs" && inner == "neg" {
			return []ir.Value{op.Abs(m.In[0].Node().In[0])}
		}
	}
	return nil
}

// notCompareRule turns a comparison round. Of floats only eq and ne are opposites: all others are false with a NaN.
func notCompareRule(m *Match) []ir.Value {
	if unaryFn(m.Node) != "not" {
		return nil
	}
	n := m.In[0].Node()
	fn := compareFn(n)
	opposite := map[op.CompareFn]op.CompareFn{"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}[fn]
	if opposite == "" || !m.Single(m.In[0]) {
		return nil
	}
	if d := n.In[0].DType(); fn != "eq" && fn != "ne" && !plainInts.Has(d) && d != ir.Bool {
		return nil
	}
	return []ir.Value{op.CompareOp(n.In[0], n.In[1], opposite)}
}

// exactIn lists, for each dtype, those that hold all its values.
var exactIn = map[ir.DType]ir.DTypeSet{
	ir.Bool: plainFloats | plainInts,
	ir.I8:   ir.Set(ir.I16, ir.I32, ir.I64, ir.F16, ir.BF16, ir.F32, ir.F64),
	ir.U8:   ir.Set(ir.I16, ir.U16, ir.I32, ir.U32, ir.I64, ir.U64, ir.F16, ir.BF16, ir.F32, ir.F64),
	ir.I16:  ir.Set(ir.I32, ir.I64, ir.F32, ir.F64),
	ir.U16:  ir.Set(ir.I32, ir.U32, ir.I64, ir.U64, ir.F32, ir.F64),
	ir.I32:  ir.Set(ir.I64, ir.F64),
	ir.U32:  ir.Set(ir.I64, ir.U64, ir.F64),
	ir.F16:  ir.Set(ir.F32, ir.F64),
	ir.BF16: ir.Set(ir.F32, ir.F64),
	ir.F32:  ir.Set(ir.F64),
}

// castCastRule leaves out a dtype between two that holds every value of the first. Integers that went through floats are clamped to the range of the last,
// where integers keep their low bits: there the last must hold them too.
func castCastRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.CastAttrs)
	if !ok {
		return nil
	}
	n := made(m.In[0], "Cast")
	if n == nil {
		return nil
	}
	x, middle := n.In[0], m.In[0].DType()
	from := x.DType()
	if !exactIn[from].Has(middle) {
		return nil
	}
	if plainInts.Has(from) && plainFloats.Has(middle) && plainInts.Has(a.Dtype) && from != a.Dtype && !exactIn[from].Has(a.Dtype) {
		return nil
	}
	if from == a.Dtype {
		return []ir.Value{x}
	}
	return again(m, x)
}

// compareBoolRule is for bools that were made numbers to be compared with 0 or 1.
func compareBoolRule(m *Match) []ir.Value {
	fn := compareFn(m.Node)
	if fn != "eq" && fn != "ne" {
		return nil
	}
	n := made(m.In[0], "Cast")
	if n == nil || n.In[0].DType() != ir.Bool {
		return nil
	}
	t, ok := element(m.In[1])
	if !ok || !plainFloats.Has(t.DType()) && !plainInts.Has(t.DType()) || t.Float(0) != 0 && t.Float(0) != 1 || !sameShape(n.In[0].Shape(), m.Types[0].Shape) {
		return nil
	}
	if (fn == "eq") == (t.Float(0) == 1) {
		return []ir.Value{n.In[0]}
	}
	return []ir.Value{op.LogicalNot(n.In[0])}
}

// whereRule is Where(c, x, x), and Where by a condition that is turned round.
func whereRule(m *Match) []ir.Value {
	if m.Row.Name != "Where" {
		return nil
	}
	if m.In[1] == m.In[2] {
		if shape, ok := ir.Broadcast(m.In[0].Shape(), m.In[1].Shape()); ok && sameShape(shape, m.Types[0].Shape) {
			return []ir.Value{stretched(m.In[1], m.Types[0].Shape)}
		}
		return nil
	}
	if n := m.In[0].Node(); unaryFn(n) == "not" {
		return []ir.Value{op.Where(n.In[0], m.In[2], m.In[1])}
	}
	return nil
}

// reduceOnesRule is for axes of length 1. Float sums and means stay: they begin with 0, which makes a -0 a 0.
func reduceOnesRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.ReduceAttrs)
	if !ok || m.Row.Name != "Reduce" {
		return nil
	}
	x := m.In[0]
	for k := range x.Rank() {
		reduced := len(a.Axes) == 0 || slices.ContainsFunc(a.Axes, func(axis int) bool { w, _ := ir.WrapAxis(axis, x.Rank()); return w == k })
		if reduced && !x.Dim(k).Is(1) {
			return nil
		}
	}
	d := x.DType()
	switch {
	case a.Fn == "max" || a.Fn == "min":
	case a.Fn == "prod" && (plainFloats.Has(d) || plainInts.Has(d)):
	case a.Fn == "sum" && plainInts.Has(d):
	default:
		return nil
	}
	return []ir.Value{reshape(x, m.Types[0].Shape)}
}
