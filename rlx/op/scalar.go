package op

import "math"

// ScalarKinds is the set of dtype classes a scalar function takes.
type ScalarKinds uint8

const (
	ScalarFloat ScalarKinds = 1 << iota // f16, bf16, f32, f64
	ScalarInt                           // i8 to i64, u8 to u64
	ScalarBool
	ScalarC64
)

// Scalar is one row of the tables of scalar functions: what Activation, Binary, Compare, their gradients, fused regions and the
// C++ functors know about a function.
//
// ULP bounds the error in f32 on the CPU against the exact value at that input, ULPGPU on a GPU; AbsErr is an absolute error
// allowed on top. The parameters are taken as rounded to the dtype of the computation. Every function of floats gives NaN for a
// NaN operand, in any place, except where a comparison or the row says otherwise.
type Scalar struct {
	Name  string
	Doc   string // y as a formula, and the corners
	Arity int

	Alpha, Beta float64 // defaults of the parameters; 0 where a parameter is not used

	Kinds       ScalarKinds
	Commutative bool
	Predicate   bool // the result is bool
	Primitive   bool // every backend has it: Formula is nil
	Divides     bool // takes the steps of a division, though the result is exact

	Formula Expr   // the function out of primitives and earlier rows
	Derivs  []Expr // the derivative by each operand; nil where there is none
	Guarded bool   // where a derivative is 0 by its condition, the gradient is 0 even if dy is not finite

	ULP, ULPGPU, AbsErr float64

	index int
	ints  func(a, b int64, t intType) int64
	bools func(a, b bool) bool
}

// The rows stand in the order of the op documentation, which is the numbering of the functions in programs and C++ headers.
var unaryRows = numbered(
	prim1("identity", "x", floatsIntsC64, ulp{}, eOne).withInt(intIdentity),
	prim1("neg", "-x; the least integer stays, unsigned wraps", floatsIntsC64, ulp{}, eNum(-1)).withInt(intNeg),
	prim1("abs", "|x|; the least integer stays", floatsInts, ulp{}, eFn("sign", eX)).withInt(intAbs),
	prim1("sign", "-1, 0 or 1; 0 for both zeros", floatsInts, ulp{}, eZero).withInt(intSign),
	def1("square", "x*x", floatsInts, ulp{0.5, 0.5, 0}, eMul(eX, eX), eMul(eNum(2), eX)).withInt(intSquare),
	prim1("reciprocal", "1/x; 1/+-0 = +-inf", floats, ulp{0.5, 2.5, 0}, eDiv(eNum(-1), eMul(eX, eX))),
	prim1("sqrt", "square root; NaN for x < 0, sqrt(-0) = -0", floats, ulp{0.5, 3, 0}, eDiv(eHalf, eSqrt(eX))),
	prim1("rsqrt", "1/sqrt(x); +-0 gives +-inf", floats, ulp{2, 3, 0}, eDiv(eNum(-0.5), eMul(eX, eSqrt(eX)))),
	prim1("exp", "e^x", floats, ulp{2, 4, 0}, eExp(eX)),
	prim1("exp2", "2^x", floats, ulp{2, 4, 0}, eMul(eNum(math.Ln2), eFn("exp2", eX))),
	prim1("expm1", "e^x - 1, exact near 0", floats, ulp{3, 5, 0}, eExp(eX)),
	prim1("log", "ln x; 0 gives -inf, x < 0 NaN", floats, ulp{2, 4, 0}, eDiv(eOne, eX)),
	prim1("log2", "log to base 2", floats, ulp{2, 4, 0}, eDiv(eOne, eMul(eX, eNum(math.Ln2)))),
	prim1("log10", "log to base 10", floats, ulp{2, 4, 0}, eDiv(eOne, eMul(eX, eNum(math.Ln10)))),
	prim1("log1p", "ln(1+x), exact near 0; -1 gives -inf", floats, ulp{3, 5, 0}, eDiv(eOne, eAdd(eOne, eX))),
	prim1("sin", "sine of radians; +-inf gives NaN", floats, ulp{2, 4, 1e-7}, eFn("cos", eX)),
	prim1("cos", "cosine of radians; +-inf gives NaN", floats, ulp{2, 4, 1e-7}, eNeg(eFn("sin", eX))),
	prim1("tan", "sin/cos", floats, ulp{4, 6, 1e-7}, eAdd(eOne, eMul(eFn("tan", eX), eFn("tan", eX)))),
	prim1("asin", "inverse sine; NaN outside [-1, 1]", floats, ulp{3, 5, 0}, eDiv(eOne, eSqrt(eMul(eSub(eOne, eX), eAdd(eOne, eX))))),
	prim1("acos", "inverse cosine; NaN outside [-1, 1]", floats, ulp{3, 5, 0}, eDiv(eNum(-1), eSqrt(eMul(eSub(eOne, eX), eAdd(eOne, eX))))),
	prim1("atan", "inverse tangent; +-inf gives +-pi/2", floats, ulp{3, 5, 0}, eDiv(eOne, eAdd(eOne, eMul(eX, eX)))),
	prim1("sinh", "(e^x - e^-x)/2", floats, ulp{3, 5, 0}, eFn("cosh", eX)),
	prim1("cosh", "(e^x + e^-x)/2", floats, ulp{3, 5, 0}, eFn("sinh", eX)),
	prim1("tanh", "sinh/cosh; +-inf gives +-1", floats, ulp{3, 5, 0}, eSub(eOne, eMul(eFn("tanh", eX), eFn("tanh", eX)))),
	def1("asinh", "inverse hyperbolic sine, odd", floats, ulp{4, 6, 0}, eAsinh(eX), eDiv(eOne, eSqrt(eAdd(eMul(eX, eX), eOne)))),
	def1("acosh", "inverse hyperbolic cosine; NaN below 1", floats, ulp{4, 6, 0}, eAcosh(eX),
		eDiv(eOne, eMul(eSqrt(eSub(eX, eOne)), eSqrt(eAdd(eX, eOne))))),
	def1("atanh", "inverse hyperbolic tangent; +-1 gives +-inf, outside NaN", floats, ulp{4, 6, 0}, eAtanh(eX),
		eDiv(eOne, eMul(eSub(eOne, eX), eAdd(eOne, eX)))),
	prim1("erf", "2/sqrt(pi) integral of e^(-t^2) from 0 to x", floats, ulp{3, 5, 0}, eMul(eNum(2/math.SqrtPi), eExp(eNeg(eMul(eX, eX))))),
	prim1("erfc", "1 - erf(x) without cancellation", floats, ulp{3, 5, 0}, eMul(eNum(-2/math.SqrtPi), eExp(eNeg(eMul(eX, eX))))),
	prim1("round", "nearest integer, halves to even; the sign of zero stays", floatsInts, ulp{}, eOne).withInt(intIdentity),
	prim1("floor", "greatest integer not above x", floatsInts, ulp{}, eZero).withInt(intIdentity),
	prim1("ceil", "least integer not below x", floatsInts, ulp{}, eZero).withInt(intIdentity),
	prim1("trunc", "x without its fraction", floatsInts, ulp{}, eZero).withInt(intIdentity),
	def1("relu", "max(x, 0)", floatsInts, ulp{}, eFn("max", eX, eZero), eSel(eLe(eX, eZero), eZero, eOne)).guarded().withInt(intRelu),
	def1("relu6", "min(max(x, 0), 6)", floatsInts, ulp{}, eFn("min", eFn("max", eX, eZero), eNum(6)),
		eSel(eOr(eLe(eX, eZero), eGe(eX, eNum(6))), eZero, eOne)).guarded().withInt(intRelu6),
	def1("leaky_relu", "x >= 0 ? x : alpha x", floats, ulp{0.5, 0.5, 0}, eSel(eGe(eX, eZero), eX, eMul(eAlpha, eX)),
		eSel(eLe(eX, eZero), eAlpha, eOne)).params(0.01, 0),
	def1("thresholded_relu", "x <= alpha ? 0 : x", floats, ulp{}, eSel(eLe(eX, eAlpha), eZero, eX),
		eSel(eLe(eX, eAlpha), eZero, eOne)).params(1, 0),
	def1("elu", "x > 0 ? x : alpha (e^x - 1)", floats, ulp{4, 6, 0}, eSel(eGt(eX, eZero), eX, eMul(eAlpha, eFn("expm1", eX))),
		eSel(eGt(eX, eZero), eOne, eMul(eAlpha, eExp(eX)))).params(1, 0),
	def1("celu", "x > 0 ? x : alpha (e^(x/alpha) - 1)", floats, ulp{4, 6, 0},
		eSel(eGt(eX, eZero), eX, eMul(eAlpha, eFn("expm1", eDiv(eX, eAlpha)))),
		eSel(eGt(eX, eZero), eOne, eExp(eDiv(eX, eAlpha)))).params(1, 0),
	def1("selu", "beta elu(x; alpha)", floats, ulp{4, 6, 0}, eMul(eBeta, eFn("elu", eX)),
		eMul(eBeta, eSel(eGt(eX, eZero), eOne, eMul(eAlpha, eExp(eX))))).params(1.6732632423543772, 1.0507009873554805),
	def1("sigmoid", "s(x) = 1 / (1 + e^-x)", floats, ulp{3, 5, 0}, eDiv(eOne, eAdd(eOne, eExp(eNeg(eX)))),
		eMul(eSigmoid(eX), eSigmoid(eNeg(eX)))),
	def1("log_sigmoid", "min(x, 0) - ln(1 + e^-|x|)", floats, ulp{4, 6, 0},
		eSub(eFn("min", eX, eZero), eFn("log1p", eExp(eNeg(eAbs(eX))))), eSigmoid(eNeg(eX))),
	def1("softplus", "max(x, 0) + ln(1 + e^-|x|)", floats, ulp{4, 6, 0},
		eAdd(eFn("max", eX, eZero), eFn("log1p", eExp(eNeg(eAbs(eX))))), eSigmoid(eX)),
	def1("softsign", "x / (1 + |x|); +-inf gives +-1", floats, ulp{2, 4, 0},
		eSel(eEq(eAbs(eX), eInf), eFn("sign", eX), eDiv(eX, eAdd(eOne, eAbs(eX)))),
		eDiv(eOne, eMul(eAdd(eOne, eAbs(eX)), eAdd(eOne, eAbs(eX))))),
	def1("silu", "x s(x); -inf gives 0", floats, ulp{4, 6, 0}, eSel(eEq(eX, eNegInf), eZero, eMul(eX, eSigmoid(eX))),
		eTails(eX, eZero, eOne, eMul(eSigmoid(eX), eAdd(eOne, eMul(eX, eSigmoid(eNeg(eX))))))),
	def1("mish", "x tanh(softplus(x)); -inf gives 0", floats, ulp{6, 8, 0},
		eSel(eEq(eX, eNegInf), eZero, eMul(eX, eTanhSoftplus(eX))), eMishDeriv(eX)),
	def1("gelu", "x Phi(x) = x/2 erfc(-x/sqrt 2); -inf gives 0", floats, ulp{8, 10, 1e-7},
		eSel(eEq(eX, eNegInf), eZero, eMul(eX, eNormalCDF(eX))),
		eTails(eX, eZero, eOne, eAdd(eNormalCDF(eX), eMul(eX, eNormalDensity(eX))))),
	def1("gelu_tanh", "x s(2u), u = sqrt(2/pi) (x + 0.044715 x^3); -inf gives 0", floats, ulp{6, 8, 1e-7},
		eSel(eEq(eX, eNegInf), eZero, eMul(eX, eSigmoid(eGeluTanhArg(eX)))), eGeluTanhDeriv(eX)),
	def1("gelu_quick", "x s(alpha x); -inf gives 0", floats, ulp{4, 6, 0}, eGeluQuick(eX), eGeluQuickDeriv(eX)).params(1.702, 0),
	def1("hard_sigmoid", "min(max(alpha x + beta, 0), 1)", floats, ulp{2, 2, 1e-7},
		eFn("min", eFn("max", eAdd(eMul(eAlpha, eX), eBeta), eZero), eOne),
		eSel(eOr(eLe(eAdd(eMul(eAlpha, eX), eBeta), eZero), eGe(eAdd(eMul(eAlpha, eX), eBeta), eOne)), eZero, eAlpha)).params(1.0/6, 0.5),
	// x (x + 3) / 6 between the kinks: x + 3 is exact near -3, where x/6 + 1/2 loses all its digits
	def1("hard_swish", "x min(max(x/6 + 1/2, 0), 1)", floats, ulp{3, 4, 1e-7},
		eSel(eLe(eX, eNum(-3)), eZero, eSel(eGe(eX, eNum(3)), eX, eMul(eMul(eX, eAdd(eX, eNum(3))), eNum(1.0/6)))),
		eSel(eLe(eX, eNum(-3)), eZero, eSel(eGe(eX, eNum(3)), eOne, eAdd(eMul(eX, eNum(1.0/3)), eHalf)))),
	predicate("is_nan", "x is NaN", eFn("ne", eX, eX)),
	predicate("is_inf", "x is +inf or -inf", eEq(eAbs(eX), eInf)),
	predicate("is_finite", "x is neither NaN nor infinite", eLt(eAbs(eX), eInf)),
	prim1("not", "logical negation", ScalarBool, ulp{}, nil).withBool(func(a, _ bool) bool { return !a }),
	prim1("bit_not", "every bit flipped", ScalarInt, ulp{}, nil).withInt(intNot),
)

var binaryRows = numbered(
	prim2("add", "a + b", floatsIntsC64, ulp{0.5, 0.5, 0}, eOne, eOne).commutes().withInt(intAdd),
	prim2("sub", "a - b", floatsIntsC64, ulp{0.5, 0.5, 0}, eOne, eNum(-1)).withInt(intSub),
	prim2("mul", "a b", floatsIntsC64, ulp{0.5, 0.5, 0}, eB, eA).commutes().withInt(intMul),
	prim2("div", "a / b; integers: the quotient toward zero, 0 for b = 0", floatsIntsC64, ulp{0.5, 2.5, 0},
		eDiv(eOne, eB), eDiv(eNeg(eA), eMul(eB, eB))).withInt(intDiv),
	prim2("max", "the larger; NaN if either is", floatsInts, ulp{}, eTaken(eLt(eA, eB)), eTaken(eLt(eB, eA))).commutes().guarded().withInt(intMax),
	prim2("min", "the smaller; NaN if either is", floatsInts, ulp{}, eTaken(eGt(eA, eB)), eTaken(eGt(eB, eA))).commutes().guarded().withInt(intMin),
	prim2("pow", "a^b of IEEE 754; integers wrap, a negative exponent gives the quotient toward zero of 1 / a^-b", floatsInts, ulp{4, 16, 0},
		eSel(eEq(eB, eZero), eZero, eMul(eB, eFn("pow", eA, eSub(eB, eOne)))),
		eSel(eAnd(eEq(eA, eZero), eGe(eB, eZero)), eZero, eMul(eFn("pow", eA, eB), eFn("log", eA)))).guarded().withInt(intPow),
	prim2("mod", "a - b trunc(a/b) exactly, with the sign of a; integers: a for b = 0", floatsInts, ulp{},
		eOne, eNeg(eTruncQuotient(eA, eB))).divides().withInt(intMod),
	def2("floor_mod", "a - b floor(a/b), with the sign of b; integers: a for b = 0", floatsInts, ulp{0.5, 0.5, 0}, eFloorMod(eA, eB),
		eOne, eNeg(eFn("floor_div", eA, eB))).divides().withInt(intFloorMod),
	def2("floor_div", "floor of the exact quotient a/b; integers: 0 for b = 0", floatsInts, ulp{}, eFloorDiv(eA, eB), eZero, eZero).divides().withInt(intFloorDiv),
	prim2("atan2", "angle of the point (b, a), in (-pi, pi]", floats, ulp{4, 6, 0}, eAtan2Deriv(eB), eAtan2Deriv(eNeg(eA))).guarded(),
	prim2("bit_and", "bits set in both", ScalarInt, ulp{}).commutes().withInt(intAnd),
	prim2("bit_or", "bits set in either", ScalarInt, ulp{}).commutes().withInt(intOr),
	prim2("bit_xor", "bits set in one", ScalarInt, ulp{}).commutes().withInt(intXor),
	prim2("shl", "a shifted left by b bits; 0 for b outside 0..width-1", ScalarInt, ulp{}).withInt(intShl),
	prim2("shr", "a shifted right by b bits, arithmetic if signed; b outside 0..width-1 leaves the sign, 0 or -1", ScalarInt, ulp{}).withInt(intShr),
	prim2("and", "both", ScalarBool, ulp{}).commutes().withBool(func(a, b bool) bool { return a && b }),
	prim2("or", "either", ScalarBool, ulp{}).commutes().withBool(func(a, b bool) bool { return a || b }),
	prim2("xor", "one but not both", ScalarBool, ulp{}).commutes().withBool(func(a, b bool) bool { return a != b }),
)

var compareRows = numbered(
	compare("eq", "a == b; false for NaN", anyKind, func(a, b int64, t intType) bool { return a == b }).commutes(),
	compare("ne", "a != b; true for NaN", anyKind, func(a, b int64, t intType) bool { return a != b }).commutes(),
	compare("lt", "a < b; false for NaN", anyReal, intLess),
	compare("le", "a <= b; false for NaN", anyReal, func(a, b int64, t intType) bool { return !intLess(b, a, t) }),
	compare("gt", "a > b; false for NaN", anyReal, func(a, b int64, t intType) bool { return intLess(b, a, t) }),
	compare("ge", "a >= b; false for NaN", anyReal, func(a, b int64, t intType) bool { return !intLess(a, b, t) }),
)

// ---- builders of rows ----

const (
	floats        = ScalarFloat
	floatsInts    = ScalarFloat | ScalarInt
	floatsIntsC64 = floatsInts | ScalarC64
	anyReal       = floatsInts | ScalarBool
	anyKind       = anyReal | ScalarC64
)

// ulp is the error bound of a row: CPU, GPU, absolute.
type ulp [3]float64

func newRow(name, doc string, arity int, kinds ScalarKinds, u ulp, formula Expr, derivs []Expr) *Scalar {
	return &Scalar{Name: name, Doc: doc, Arity: arity, Kinds: kinds, Primitive: formula == nil, Formula: formula, Derivs: derivs,
		ULP: u[0], ULPGPU: u[1], AbsErr: u[2]}
}

func prim1(name, doc string, kinds ScalarKinds, u ulp, deriv Expr) *Scalar {
	return newRow(name, doc, 1, kinds, u, nil, []Expr{deriv})
}

func def1(name, doc string, kinds ScalarKinds, u ulp, formula, deriv Expr) *Scalar {
	return newRow(name, doc, 1, kinds, u, formula, []Expr{deriv})
}

func predicate(name, doc string, formula Expr) *Scalar {
	s := newRow(name, doc, 1, floats, ulp{}, formula, []Expr{nil})
	s.Predicate = true
	return s
}

func prim2(name, doc string, kinds ScalarKinds, u ulp, derivs ...Expr) *Scalar {
	return def2(name, doc, kinds, u, nil, derivs...)
}

func def2(name, doc string, kinds ScalarKinds, u ulp, formula Expr, derivs ...Expr) *Scalar {
	if derivs == nil {
		derivs = []Expr{nil, nil}
	}
	return newRow(name, doc, 2, kinds, u, formula, derivs)
}

func compare(name, doc string, kinds ScalarKinds, f func(a, b int64, t intType) bool) *Scalar {
	s := prim2(name, doc, kinds, ulp{})
	s.Predicate = true
	s.ints = func(a, b int64, t intType) int64 { return fromBool(f(a, b, t)) }
	s.bools = func(a, b bool) bool { return f(fromBool(a), fromBool(b), intType{bits: 8}) }
	return s
}

func (s *Scalar) params(alpha, beta float64) *Scalar { s.Alpha, s.Beta = alpha, beta; return s }
func (s *Scalar) commutes() *Scalar                  { s.Commutative = true; return s }
func (s *Scalar) guarded() *Scalar                   { s.Guarded = true; return s }
func (s *Scalar) divides() *Scalar                   { s.Divides = true; return s }
func (s *Scalar) withInt(f func(a, b int64, t intType) int64) *Scalar {
	s.ints = f
	return s
}
func (s *Scalar) withBool(f func(a, b bool) bool) *Scalar { s.bools = f; return s }

// eTaken is the derivative of max and min by an operand: 0 where the other one is taken, half on a tie.
func eTaken(other Expr) Expr { return eSel(other, eZero, eSel(eEq(eA, eB), eHalf, eOne)) }

func eAtan2Deriv(n Expr) Expr {
	return eSel(eAnd(eEq(eA, eZero), eEq(eB, eZero)), eZero, eDiv(n, eAdd(eMul(eA, eA), eMul(eB, eB))))
}

func numbered(rows ...*Scalar) []*Scalar {
	for i, s := range rows {
		s.index = i
	}
	return rows
}

// ---- look-up ----

var (
	unaryIndex, binaryIndex, compareIndex = indexRows(unaryRows), indexRows(binaryRows), indexRows(compareRows)

	// unaryAlias maps names that are read on input, and never written, to the names of the rows.
	unaryAlias = map[string]string{"gelu_approx": "gelu_tanh", "recip": "reciprocal"}
)

func indexRows(rows []*Scalar) map[string]*Scalar {
	m := make(map[string]*Scalar, len(rows))
	for _, s := range rows {
		m[s.Name] = s
	}
	return m
}

func rowNames(rows []*Scalar) []string {
	l := make([]string, len(rows))
	for i, s := range rows {
		l[i] = s.Name
	}
	return l
}

// Unary finds a function of one operand by its name or an alias.
func Unary(name string) (*Scalar, bool) {
	if to, ok := unaryAlias[name]; ok {
		name = to
	}
	s, ok := unaryIndex[name]
	return s, ok
}

// Binary finds a function of two operands.
func Binary(name string) (*Scalar, bool) { s, ok := binaryIndex[name]; return s, ok }

// Compare finds a comparison.
func Compare(name string) (*Scalar, bool) { s, ok := compareIndex[name]; return s, ok }

// UnaryNames are the functions of one operand in the order of their numbers; so are BinaryNames and CompareNames.
func UnaryNames() []string { return rowNames(unaryRows) }

// BinaryNames are the functions of two operands in the order of their numbers.
func BinaryNames() []string { return rowNames(binaryRows) }

// CompareNames are the comparisons in the order of their numbers.
func CompareNames() []string { return rowNames(compareRows) }

// Index is the number of the function within its table.
func (s *Scalar) Index() int { return s.index }

// Light tells whether the function takes an instruction or two: those are exact, or rounded correctly wherever they run.
func (s *Scalar) Light() bool { return s.ULPGPU <= 0.5 && s.AbsErr == 0 && !s.Divides }

// Takes tells whether the function is defined for every dtype class in k.
func (s *Scalar) Takes(k ScalarKinds) bool { return s.Kinds&k == k }

// UsesAlpha tells whether the value or the derivative depends on alpha.
func (s *Scalar) UsesAlpha() bool { return s.usesParam(0) }

// UsesBeta tells whether the value or the derivative depends on beta.
func (s *Scalar) UsesBeta() bool { return s.usesParam(1) }

func (s *Scalar) usesParam(i int) bool {
	is := func(e Expr) bool {
		if e.kind == ExprCall {
			f, ok := unaryIndex[e.fn]
			return ok && f != s && f.Formula.Uses(func(e Expr) bool { return e.kind == ExprParam && e.index == i })
		}
		return e.kind == ExprParam && e.index == i
	}
	return s.Formula.Uses(is)
}

// Params32 rounds the parameters to f32 so that a computation in f32 decides as one in f64 would: a threshold that operands are
// compared with goes down (x <= alpha holds for the same f32 numbers x), everything else to the nearest.
func (s *Scalar) Params32(alpha, beta float64) (float32, float32) {
	a, b := float32(alpha), float32(beta)
	threshold := func(e Expr) bool { return e.kind == ExprCall && e.fn == "le" && e.args[1] == eAlpha }
	if s.Formula.Uses(threshold) && float64(a) > alpha {
		a = math.Nextafter32(a, float32(math.Inf(-1)))
	}
	return a, b
}

// Deriv is the derivative by operand i, nil if there is none.
func (s *Scalar) Deriv(i int) Expr {
	if i < 0 || i >= len(s.Derivs) {
		return nil
	}
	return s.Derivs[i]
}

// Backward is the gradient of operand i, dy times its derivative, with dy as variable number Arity; nil if there is none. Where
// the row is Guarded, the zero of a derivative is chosen before dy is multiplied in.
func (s *Scalar) Backward(i int) Expr {
	d := s.Deriv(i)
	if d == nil {
		return nil
	}
	dy := eVar(s.Arity)
	if s.Guarded && d.kind == ExprCall && d.fn == "select" && d.args[1] == eZero {
		return eSel(d.args[0], eZero, eScaled(dy, d.args[2]))
	}
	return eScaled(dy, d)
}

func eScaled(dy, d Expr) Expr {
	switch {
	case d.kind == ExprConst && d.value == 1:
		return dy
	case d.kind == ExprConst && d.value == -1:
		return eNeg(dy)
	}
	return eMul(dy, d)
}
