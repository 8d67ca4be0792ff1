package op

import (
	"math"
	"strconv"
	"strings"
)

// ExprKind says what a node of a scalar expression is.
type ExprKind uint8

const (
	ExprVar   ExprKind = iota // operand Index of the function; one past the operands is dy in [Scalar.Backward]
	ExprParam                 // parameter Index: 0 alpha, 1 beta
	ExprConst                 // the number Value
	ExprCall                  // Fn of Args
)

// ExprNode is a node of an immutable scalar expression. Its calls name rows of the tables of scalar functions and comparisons,
// and four functions that have no row of their own there: "select" (condition, a, b), "fma" (a*b + c, one rounding), and "and",
// "or" of two conditions. A call shares alpha and beta with the function that holds it.
type ExprNode struct {
	kind  ExprKind
	index int
	value float64
	fn    string
	args  []Expr
	key   string
}

// Expr is a scalar expression; nil means that there is none.
type Expr = *ExprNode

// Kind says which of the other accessors apply.
func (e *ExprNode) Kind() ExprKind { return e.kind }

// Index is the number of a variable or parameter.
func (e *ExprNode) Index() int { return e.index }

// Value is the number of a constant.
func (e *ExprNode) Value() float64 { return e.value }

// Fn is the name of the function a call node calls.
func (e *ExprNode) Fn() string { return e.fn }

// Args are the arguments of a call; the slice must not be changed.
func (e *ExprNode) Args() []Expr { return e.args }

// String is the expression in prefix form. Equal strings mean equal expressions.
func (e *ExprNode) String() string {
	if e == nil {
		return "none"
	}
	return e.key
}

// Fold computes a value over an expression from its leaves up. Equal subexpressions are visited once, arguments before calls
// and from left to right.
func Fold[T any](e Expr, leaf func(e Expr) T, call func(fn string, args []T) T) T {
	seen := map[string]T{}
	var visit func(e Expr) T
	visit = func(e Expr) T {
		if v, ok := seen[e.key]; ok {
			return v
		}
		var v T
		if e.kind == ExprCall {
			args := make([]T, len(e.args))
			for i, a := range e.args {
				args[i] = visit(a)
			}
			v = call(e.fn, args)
		} else {
			v = leaf(e)
		}
		seen[e.key] = v
		return v
	}
	return visit(e)
}

// Uses tells whether a node that satisfies is occurs in e.
func (e *ExprNode) Uses(is func(Expr) bool) bool {
	if e == nil {
		return false
	}
	if is(e) {
		return true
	}
	for _, a := range e.args {
		if a.Uses(is) {
			return true
		}
	}
	return false
}

// ---- constructors, named so that a row of the table reads like its formula ----

func eVar(i int) Expr {
	return &ExprNode{kind: ExprVar, index: i, key: "v" + strconv.Itoa(i)}
}

func eParam(i int, name string) Expr { return &ExprNode{kind: ExprParam, index: i, key: name} }

func eNum(v float64) Expr {
	return &ExprNode{kind: ExprConst, value: v, key: strconv.FormatFloat(v, 'g', -1, 64)}
}

func eFn(fn string, args ...Expr) Expr {
	keys := make([]string, len(args))
	for i, a := range args {
		keys[i] = a.key
	}
	return &ExprNode{kind: ExprCall, fn: fn, args: args, key: fn + "(" + strings.Join(keys, ", ") + ")"}
}

var (
	eX, eA, eB = eVar(0), eVar(0), eVar(1)
	eAlpha     = eParam(0, "alpha")
	eBeta      = eParam(1, "beta")
	eZero      = eNum(0)
	eOne       = eNum(1)
	eHalf      = eNum(0.5)
	eInf       = eNum(math.Inf(1))
	eNegInf    = eNum(math.Inf(-1))
)

func eAdd(a, b Expr) Expr    { return eFn("add", a, b) }
func eSub(a, b Expr) Expr    { return eFn("sub", a, b) }
func eMul(a, b Expr) Expr    { return eFn("mul", a, b) }
func eDiv(a, b Expr) Expr    { return eFn("div", a, b) }
func eNeg(a Expr) Expr       { return eFn("neg", a) }
func eAbs(a Expr) Expr       { return eFn("abs", a) }
func eSqrt(a Expr) Expr      { return eFn("sqrt", a) }
func eExp(a Expr) Expr       { return eFn("exp", a) }
func eSigmoid(a Expr) Expr   { return eFn("sigmoid", a) }
func eSel(c, a, b Expr) Expr { return eFn("select", c, a, b) }
func eLt(a, b Expr) Expr     { return eFn("lt", a, b) }
func eLe(a, b Expr) Expr     { return eFn("le", a, b) }
func eGt(a, b Expr) Expr     { return eFn("gt", a, b) }
func eGe(a, b Expr) Expr     { return eFn("ge", a, b) }
func eEq(a, b Expr) Expr     { return eFn("eq", a, b) }
func eOr(a, b Expr) Expr     { return eFn("or", a, b) }
func eAnd(a, b Expr) Expr    { return eFn("and", a, b) }

// eOpposite holds where a and b are not zero and differ in sign.
func eOpposite(a, b Expr) Expr {
	return eOr(eAnd(eLt(a, eZero), eGt(b, eZero)), eAnd(eGt(a, eZero), eLt(b, eZero)))
}

// eTails gives lo at -inf, hi at +inf and y between, for functions whose formula is inf * 0 there.
func eTails(x, lo, hi, y Expr) Expr { return eSel(eEq(x, eNegInf), lo, eSel(eEq(x, eInf), hi, y)) }

// eOdd extends y, which holds for t = abs(x), to an odd function that is x itself near 0, where x - x^3/6 rounds to x even in
// f64 and where y would lose the sign of a zero.
func eOdd(x, t, y Expr) Expr {
	return eSel(eLt(t, eNum(0x1p-27)), x, eSel(eLt(x, eZero), eNeg(y), y))
}

// The derived formulas.

// eAsinh: log1p(t + t^2 / (1 + sqrt(t^2 + 1))) has no cancellation near 0; above 2^28 t^2 + 1 is t^2 in f64, and ln 2t avoids its
// overflow.
func eAsinh(x Expr) Expr {
	t := eAbs(x)
	sq := eMul(t, t)
	near := eFn("log1p", eAdd(t, eDiv(sq, eAdd(eOne, eSqrt(eAdd(sq, eOne))))))
	return eOdd(x, t, eSel(eGt(t, eNum(0x1p28)), eAdd(eFn("log", t), eNum(math.Ln2)), near))
}

// eAcosh: with u = x - 1, exact near 1, log1p(u + sqrt(u) sqrt(u + 2)); two roots, so that x < 1 is NaN and nothing overflows.
func eAcosh(x Expr) Expr {
	u := eSub(x, eOne)
	near := eFn("log1p", eAdd(u, eMul(eSqrt(u), eSqrt(eAdd(u, eNum(2))))))
	return eSel(eGt(x, eNum(0x1p28)), eAdd(eFn("log", x), eNum(math.Ln2)), near)
}

// eAtanh: log1p(2t / (1 - t)) / 2.
func eAtanh(x Expr) Expr {
	t := eAbs(x)
	return eOdd(x, t, eMul(eHalf, eFn("log1p", eDiv(eAdd(t, t), eSub(eOne, t)))))
}

// eTanhSoftplus: tanh(ln(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2), whose terms are all positive. For x > 0 the same in
// w = e^-x, so that nothing overflows.
func eTanhSoftplus(x Expr) Expr {
	w := eExp(eNeg(eAbs(x)))
	n := eMul(w, eAdd(w, eNum(2)))
	m := eAdd(eOne, eAdd(w, w))
	pos := eDiv(m, eAdd(m, eMul(eNum(2), eMul(w, w))))
	return eSel(eGt(x, eZero), pos, eDiv(n, eAdd(n, eNum(2))))
}

// eNormalCDF is Phi(x) = erfc(-x / sqrt 2) / 2, accurate in the lower tail.
func eNormalCDF(x Expr) Expr {
	return eMul(eHalf, eFn("erfc", eMul(x, eNum(-math.Sqrt2/2))))
}

func eNormalDensity(x Expr) Expr {
	return eMul(eNum(1/math.Sqrt(2*math.Pi)), eExp(eMul(eNum(-0.5), eMul(x, x))))
}

const (
	geluC = 0.7978845608028653558798921198687637 // sqrt(2/pi)
	geluK = 0.044715
)

// eGeluTanhArg is 2u = 2 sqrt(2/pi) (x + 0.044715 x^3), factored so that the square alone may overflow.
func eGeluTanhArg(x Expr) Expr {
	return eMul(x, eAdd(eNum(2*geluC), eMul(eNum(2*geluC*geluK), eMul(x, x))))
}

func eGeluTanhDeriv(x Expr) Expr {
	q := eSigmoid(eGeluTanhArg(x))
	du := eAdd(eNum(geluC), eMul(eNum(3*geluC*geluK), eMul(x, x)))
	mid := eAdd(q, eMul(eMul(eAdd(x, x), eMul(q, eSub(eOne, q))), du))
	// beyond 20 both terms have their limits in every dtype, and the square would meet 0 * inf
	return eSel(eLt(x, eNum(-20)), eZero, eSel(eGt(x, eNum(20)), eOne, mid))
}

// eGeluQuick: x s(alpha x). exp turns an absolute error of its argument into a relative one, so the rounding error of alpha * x,
// got exactly by fma, is put back as a factor.
func eGeluQuick(x Expr) Expr {
	p := eMul(eAlpha, x)
	lost := eFn("fma", eAlpha, x, eNeg(p))
	e := eExp(eNeg(p))
	fixed := eFn("fma", e, eNeg(lost), e)
	usable := eAnd(eLt(e, eInf), eLt(eAbs(lost), eOne)) // not where e or the product itself overflows
	y := eDiv(x, eAdd(eOne, eSel(usable, fixed, e)))
	return eTails(x, eZero, eInf, y)
}

// eGeluQuickDeriv has both limits at +-800 in every dtype; the bounds keep inf * 0 out where alpha * x overflows.
func eGeluQuickDeriv(x Expr) Expr {
	p := eFn("min", eFn("max", eMul(eAlpha, x), eNum(-800)), eNum(800))
	return eTails(x, eZero, eOne, eMul(eSigmoid(p), eAdd(eOne, eMul(p, eSigmoid(eNeg(p))))))
}

func eMishDeriv(x Expr) Expr {
	t := eTanhSoftplus(x)
	return eTails(x, eZero, eOne, eAdd(t, eMul(x, eMul(eMul(eSub(eOne, t), eAdd(eOne, t)), eSigmoid(x)))))
}

// eFloorMod: r = fmod(a, b), which is exact, plus b where the signs differ; a zero takes the sign of b.
func eFloorMod(a, b Expr) Expr {
	r := eFn("mod", a, b)
	return eSel(eEq(r, eZero), eMul(eZero, eFn("sign", b)), eSel(eOpposite(r, b), eAdd(r, b), r))
}

// eFloorDiv: floor(a / b) is wrong where the division rounds up to a whole number. With t = trunc(a/b) the rest r = a - t b is
// exact by fma, so t + floor(r / b) is the floor of the exact quotient, rounded once; the same correction makes the inner floor
// exact.
func eFloorDiv(a, b Expr) Expr {
	q := eDiv(a, b)
	t := eFn("trunc", q)
	r := eFn("fma", eNeg(t), b, a)
	u := eFn("floor", eDiv(r, b))
	rest := eFn("fma", eNeg(u), b, r)
	y := eAdd(t, eSel(eOpposite(rest, b), eSub(u, eOne), u))
	y = eSel(eEq(eAbs(q), eInf), q, y)
	y = eSel(eEq(eAbs(b), eInf), eSel(eOpposite(a, b), eNum(-1), q), y)
	y = eSel(eEq(eAbs(a), eInf), eSub(a, a), y)
	return eSel(eOr(eEq(a, eZero), eEq(b, eZero)), q, y)
}

// eTruncQuotient is trunc of the exact quotient, as eFloorDiv is its floor.
func eTruncQuotient(a, b Expr) Expr {
	q := eFn("floor_div", eAbs(a), eAbs(b))
	return eSel(eEq(b, eZero), eDiv(a, b), eSel(eOpposite(a, b), eNeg(q), q))
}
