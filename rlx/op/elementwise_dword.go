package op

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// ---- decomposition: double-word arithmetic in f32 ----

// dword is hi + lo, two values of one shape.
type dword struct{ hi, lo ir.Value }

func decomposeDoubleSingle(n *ir.Node, a *DoubleSingleAttrs) []ir.Value {
	x := splitPair(n.In[0])
	var y, z dword
	if a.Fn.operands() == 2 {
		y = splitPair(n.In[1])
	}
	switch a.Fn {
	case "add":
		z = addPair(x, y)
	case "sub":
		z = addPair(x, dword{Neg(y.hi), Neg(y.lo)})
	case "mul":
		z = mulPairs(x, y)
	case "div":
		z = divPair(x, y)
	case "maximum":
		z = maxPair(x, y)
	case "matmul":
		z = matmulPair(x, y)
	case "sqrt":
		z = sqrtPair(x)
	case "exp":
		z = expPair(x)
	default:
		z = x
		for _, axis := range a.axes(x.hi.Rank()) {
			z = foldPair(z, axis, a.Fn == "sum")
		}
	}
	return []ir.Value{joinPair(z, n.Types[0].Shape)}
}

// axes are the reduced axes of a leading shape, not negative.
func (a *DoubleSingleAttrs) axes(rank int) []int {
	if a.Axes == nil {
		return from(0, rank)
	}
	l := make([]int, len(a.Axes))
	for i, axis := range a.Axes {
		l[i], _ = wrap(axis, rank)
	}
	return l
}

func splitPair(v ir.Value) dword {
	lead := v.Shape()[:v.Rank()-1]
	return dword{Reshape(Narrow(v, -1, 0, 1), lead...), Reshape(Narrow(v, -1, 1, 1), lead...)}
}

func joinPair(p dword, shape []ir.Dim) ir.Value {
	one := append(slices.Clone(shape[:len(shape)-1]), ir.D(1))
	return Concat(-1, Reshape(p.hi, one...), Reshape(p.lo, one...))
}

// sum2 is a + b and its rounding error; quick2 the same for |a| >= |b|; prod2 is a * b and its error.
func sum2(a, b ir.Value) dword {
	s := Add(a, b)
	t := Sub(s, a)
	return dword{s, Add(Sub(a, Sub(s, t)), Sub(b, t))}
}

func quick2(a, b ir.Value) dword {
	s := Add(a, b)
	return dword{s, Sub(b, Sub(s, a))}
}

func prod2(a, b ir.Value) dword {
	p := Mul(a, b)
	return dword{p, Fma(a, b, Neg(p))}
}

// finish puts in what f32 alone gives where that is not finite, since the corrections are NaN there, and then has no lo.
func finish(plain ir.Value, p dword) dword {
	hi := Where(IsFinite(plain), p.hi, plain)
	return dword{hi, Where(IsFinite(hi), p.lo, 0)}
}

// addPair errs by at most 3 * 2^-48, relative to the result.
func addPair(x, y dword) dword {
	s, t := sum2(x.hi, y.hi), sum2(x.lo, y.lo)
	v := quick2(s.hi, Add(s.lo, t.hi))
	return finish(s.hi, quick2(v.hi, Add(t.lo, v.lo)))
}

// mulPairs errs by at most 5 * 2^-48.
func mulPairs(x, y dword) dword {
	c := prod2(x.hi, y.hi)
	t := Fma(x.lo, y.hi, Fma(x.hi, y.lo, Mul(x.lo, y.lo)))
	return finish(c.hi, quick2(c.hi, Add(c.lo, t)))
}

// divPair errs by at most 15 * 2^-48.
func divPair(x, y dword) dword {
	q := Div(x.hi, y.hi)
	c := prod2(y.hi, q)
	r := quick2(c.hi, Fma(y.lo, q, c.lo))
	rest := Add(Sub(x.hi, r.hi), Sub(x.lo, r.lo))
	p := finish(q, quick2(q, Div(rest, y.hi)))
	// a finite x over an infinite y is 0, where the rest is inf * 0
	return dword{Where(IsInf(y.hi), q, p.hi), Where(IsInf(y.hi), 0, p.lo)}
}

// sqrtPair errs by at most 4 * 2^-48.
func sqrtPair(x dword) dword {
	s := Sqrt(x.hi)
	rest := Add(x.lo, Fma(Neg(s), s, x.hi))
	p := quick2(s, Div(rest, Add(s, s)))
	zero := Eq(s, 0)
	return finish(s, dword{Where(zero, s, p.hi), Where(zero, 0, p.lo)})
}

func maxPair(x, y dword) dword {
	same := LogicalAnd(Eq(x.hi, y.hi), Ge(x.lo, y.lo))
	lo := Where(LogicalOr(Gt(x.hi, y.hi), same), x.lo, y.lo)
	hi := Max(x.hi, y.hi)
	return dword{hi, Where(IsFinite(hi), lo, 0)}
}

// expPair: x = k ln 2 + r, e^x = 2^k (e^(r/16))^16. ln 2 is three parts of which the first has 15 bits, so that k times it is exact;
// the series errs by 2^-51, and the four squarings make 2^-41 of the rounding errors.
func expPair(x dword) dword {
	const ln2A, ln2B, ln2C = 0x1.62e4p-1, 0x1.7f7d1cp-20, 0x1.ef35793c7673p-45
	k := Round(Clamp(Mul(x.hi, math.Log2E), -160, 160))
	r := addNumber(x, Mul(k, -ln2A))
	r = addPair(r, prod2(k, numberLike("DoubleSingle", k, -ln2B)))
	r = addNumber(r, Mul(k, -ln2C))
	r = dword{Mul(r.hi, 0.0625), Mul(r.lo, 0.0625)}

	e := pairNumber(x.hi, 1.0/720)
	for _, c := range []float64{1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1, 1} {
		e = addPair(mulPairs(e, r), pairNumber(x.hi, c))
	}
	for range 4 {
		e = mulPairs(e, e)
	}
	half := Floor(Mul(k, 0.5)) // 2^k in two steps, since 2^128 is no f32
	for _, s := range []ir.Value{powerOfTwo(half), powerOfTwo(Sub(k, half))} {
		e = dword{Mul(e.hi, s), Mul(e.lo, s)}
	}
	hi := Where(Gt(x.hi, 89), math.Inf(1), Where(Lt(x.hi, -104), 0, e.hi))
	return dword{hi, Where(LogicalAnd(IsFinite(hi), Ne(hi, 0)), e.lo, 0)}
}

// addNumber adds an f32 value to x.
func addNumber(x dword, y ir.Value) dword {
	s := sum2(x.hi, y)
	return quick2(s.hi, Add(x.lo, s.lo))
}

func pairNumber(like ir.Value, c float64) dword {
	hi := float64(float32(c))
	return dword{numberLike("DoubleSingle", like, hi), numberLike("DoubleSingle", like, c-hi)}
}

// powerOfTwo is 2^k for whole k in [-127, 127] by the bits of k: only products of powers of two, which are exact everywhere.
func powerOfTwo(k ir.Value) ir.Value {
	m, p, negative := Abs(k), numberLike("DoubleSingle", k, 1.0), Lt(k, 0)
	for b := 6; b >= 0; b-- {
		bit := 1 << b
		take := Ge(m, bit)
		factor := Where(negative, numberLike("DoubleSingle", k, math.Ldexp(1, -bit)), math.Ldexp(1, bit))
		m, p = Where(take, Sub(m, bit), m), Where(take, Mul(p, factor), p)
	}
	return p
}

// foldPair sums an axis, or takes its largest element, by halves; the axis stays with length 1.
func foldPair(x dword, axis int, sum bool) dword {
	n, _ := x.hi.Dim(axis).Static()
	if n == 0 { // a sum: max of an empty axis is an error
		return dword{Reduce(x.hi, "sum", []int{axis}, true), Reduce(x.lo, "sum", []int{axis}, true)}
	}
	part := func(start, length int64) dword {
		return dword{Narrow(x.hi, axis, start, length), Narrow(x.lo, axis, start, length)}
	}
	for n > 1 {
		h := n / 2
		y := maxPair
		if sum {
			y = addPair
		}
		z := y(part(0, h), part(h, h))
		if n%2 == 1 {
			rest := part(2*h, 1)
			z = dword{Concat(axis, z.hi, rest.hi), Concat(axis, z.lo, rest.lo)}
		}
		x, n = z, h+n%2
	}
	return x
}

// matmulPair sums the products a[.., m, k, 1] b[.., 1, k, n] over k.
func matmulPair(a, b dword) dword {
	behind := func(v ir.Value) ir.Value { return splitLast(v) }
	before := func(v ir.Value) ir.Value {
		s := v.Shape()
		return Reshape(v, slices.Insert(slices.Clone(s), len(s)-2, ir.D(1))...)
	}
	p := mulPairs(dword{behind(a.hi), behind(a.lo)}, dword{before(b.hi), before(b.lo)})
	return foldPair(p, p.hi.Rank()-2, true)
}
