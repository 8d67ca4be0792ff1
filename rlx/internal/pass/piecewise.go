package pass

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// scaleOf is c where v is c * x.
func scaleOf(v, x ir.Value) (c float64, ok bool) {
	if v == x {
		return 1, true
	}
	y, c, ok := timesNumber(v)
	return c, ok && y == x && !math.IsInf(c, 0) && !math.IsNaN(c)
}

// factorOf is scaleOf of a product, which rounds as the function does; a quotient rounds otherwise.
func factorOf(v, x ir.Value) (c float64, ok bool) {
	if _, _, product := asBinary(v, "mul"); !product {
		return 0, false
	}
	return scaleOf(v, x)
}

// cases is a Where by the sign of x: what it gives for positive x, and for negative. Zeros count as positive unless strict. A NaN takes either.
type cases struct {
	x, positive, negative ir.Value
	strict                bool
}

// casesOf reads a node as one of the two ways round of a Where by x > bound.
func (m *Match) casesOf(bound float64) (c cases, ok bool) {
	if m.Row.Name != "Where" || !ir.Float.Has(m.Types[0].DType) || !m.Single(m.In[0]) || !isKind(m.In[0], "Compare") {
		return c, false
	}
	test := m.In[0].Node()
	if k, is := number(test.In[1]); !is || k != bound {
		return c, false
	}
	c = cases{test.In[0], m.In[1], m.In[2], true}
	switch compareFn(test) {
	case "gt":
	case "ge":
		c.strict = false
	case "le":
		c.positive, c.negative = c.negative, c.positive
	case "lt":
		c.positive, c.negative, c.strict = c.negative, c.positive, false
	default:
		return c, false
	}
	return c, true
}

// leakyReluRule: max(x, a x) with a between 0 and 1, and x > 0 ? x : a x, both bit for bit. Where a strict test sends -0 to the product, a negative
// factor would make it a 0.
func leakyReluRule(m *Match) []ir.Value {
	if c, ok := m.casesOf(0); ok && c.positive == c.x && m.Single(c.negative) {
		if a, ok := factorOf(c.negative, c.x); ok && (!c.strict || a > 0) {
			return []ir.Value{op.LeakyRelu(c.x, a)}
		}
		return nil
	}
	if !ir.Float.Has(m.Types[0].DType) {
		return nil
	}
	return sides(m.Node, "max", func(x, v ir.Value) []ir.Value {
		if a, ok := factorOf(v, x); ok && a > 0 && a < 1 && m.Single(v) {
			return []ir.Value{op.LeakyRelu(x, a)}
		}
		return nil
	})
}

// eluRule: x > 0 ? s x : c (e^(k x) - 1), which is elu, selu or celu. Of tiny x that e^x - 1 rounds to 0 the functions keep the sign and the size.
func eluRule(m *Match) []ir.Value {
	c, ok := m.casesOf(0)
	if !ok {
		return nil
	}
	scale, ok := scaleOf(c.positive, c.x)
	if !ok || c.positive != c.x && !m.Single(c.positive) {
		return nil
	}
	return m.eluOf(c.x, c.negative, scale)
}

// eluSumRule: max(x, 0) + min(0, c (e^(k x) - 1)) with positive c and k. Where e^(k x) overflows the least is 0.
func eluSumRule(m *Match) []ir.Value {
	if !ir.Float.Has(m.Types[0].DType) {
		return nil
	}
	return sides(m.Node, "add", func(a, b ir.Value) []ir.Value {
		x, ok := asUnary(a, "relu")
		low, zero, isMin := asBinary(b, "min")
		if !ok || !isMin || !m.Single(a) || !m.Single(b) {
			return nil
		}
		if k, is := number(zero); !is || k != 0 {
			low, zero = zero, low
		}
		if k, is := number(zero); !is || k != 0 {
			return nil
		}
		if u, alpha, k, ok := m.expLess(low, x); !ok || u != x || alpha <= 0 || k <= 0 {
			return nil
		}
		return m.eluOf(x, low, 1)
	})
}

// eluOf is the function that is scale * x for positive x and v for negative; nil if none is.
func (m *Match) eluOf(x, v ir.Value, scale float64) []ir.Value {
	_, c, k, ok := m.expLess(v, x)
	switch {
	case !ok || c == 0 || scale == 0:
		return nil
	case k == 1 && scale == 1:
		return []ir.Value{op.Elu(x, c)}
	case k == 1:
		return []ir.Value{op.Selu(x, c/scale, scale)}
	case scale == 1 && close(x.DType(), c*k, 1):
		return []ir.Value{op.Celu(x, c)}
	}
	return nil
}

// expLess reads v, and what only it reads, as c (e^(k u) - 1), where u is x or agrees with it where x is negative.
func (m *Match) expLess(v, x ir.Value) (u ir.Value, c, k float64, ok bool) {
	c, k = 1, 1
	if y, by, is := timesNumber(v); is && m.Single(v) {
		v, c = y, by
	}
	if !m.Single(v) || math.IsInf(c, 0) || math.IsNaN(c) {
		return u, 0, 0, false
	}
	u, ok = asUnary(v, "expm1")
	if !ok {
		e, less, is := plus(v)
		if !is || less != -1 || !m.Single(e) {
			return u, 0, 0, false
		}
		if u, ok = asUnary(e, "exp"); !ok {
			return u, 0, 0, false
		}
	}
	if y, by, is := timesNumber(u); is && u != x && m.Single(u) {
		u, k = y, by
	}
	return u, c, k, (u == x || m.negativePart(u, x)) && !math.IsInf(k, 0) && !math.IsNaN(k)
}

// negativePart says whether u is x with 0 in place of what is positive, which keeps e^x from overflowing.
func (m *Match) negativePart(u, x ir.Value) bool {
	if u.IsZero() || !m.Single(u) {
		return false
	}
	zero := func(v ir.Value) bool {
		k, ok := number(v)
		return ok && k == 0
	}
	if a, b, ok := asBinary(u, "min"); ok {
		return a == x && zero(b) || b == x && zero(a)
	}
	w := &Match{Node: u.Node(), Support: m.Support, uses: m.uses}
	c, ok := w.casesOf(0)
	return ok && c.x == x && c.negative == x && zero(c.positive)
}

// seluRule: a number times elu.
func seluRule(m *Match) []ir.Value {
	v, c, ok := timesNumber(m.Out(0))
	if !ok || c == 0 || math.IsInf(c, 0) || math.IsNaN(c) || !m.Single(v) {
		return nil
	}
	x, a, ok := activationOf(v)
	if !ok || a.Fn != "elu" {
		return nil
	}
	return []ir.Value{op.Selu(x, a.Alpha, c)}
}

// softsignRule: x / (1 + |x|). At infinities, where the spelling gives NaN, softsign gives 1 and -1.
func softsignRule(m *Match) []ir.Value {
	x, v, ok := asBinary(m.Out(0), "div")
	if !ok || !ir.Float.Has(x.DType()) || !m.Single(v) {
		return nil
	}
	if u, ok := m.onePlus(v, "abs"); !ok || u != x {
		return nil
	}
	return []ir.Value{op.Softsign(x)}
}

// logOnePlus is the operand where v is ln(1 + e^u), written in either way.
func (m *Match) logOnePlus(v ir.Value) (u ir.Value, ok bool) {
	if !m.Single(v) {
		return u, false
	}
	if e, ok := asUnary(v, "log1p"); ok && m.Single(e) {
		return asUnary(e, "exp")
	}
	s, ok := asUnary(v, "log")
	if !ok || !m.Single(s) {
		return u, false
	}
	return m.onePlus(s, "exp")
}

// logExpAbs is x where v is ln(1 + e^-|x|).
func (m *Match) logExpAbs(v ir.Value) (x ir.Value, ok bool) {
	u, ok := m.logOnePlus(v)
	if !ok || !m.Single(u) {
		return x, false
	}
	a, isNeg := asUnary(u, "neg")
	if !isNeg {
		y, c, is := timesNumber(u)
		if a = y; !is || c != -1 {
			return x, false
		}
	}
	if !m.Single(a) {
		return x, false
	}
	return asUnary(a, "abs")
}

// softplusRule: max(x, 0) + ln(1 + e^-|x|), and x > t ? x : ln(1 + e^x) with a bound t between which and the overflow of e^x both sides round to x.
// ln(1 + e^x) alone stays: it gives an infinity from 89 on, softplus gives x.
func softplusRule(m *Match) []ir.Value {
	if !ir.Float.Has(m.Types[0].DType) {
		return nil
	}
	if m.Row.Name == "Where" {
		return m.guardedSoftplus()
	}
	return sides(m.Node, "add", func(a, b ir.Value) []ir.Value {
		x, ok := asUnary(a, "relu")
		if !ok || !m.Single(a) {
			return nil
		}
		if u, ok := m.logExpAbs(b); !ok || u != x {
			return nil
		}
		return []ir.Value{op.Softplus(x)}
	})
}

func (m *Match) guardedSoftplus() []ir.Value {
	if d := m.Types[0].DType; d != ir.F32 && d != ir.BF16 || !isKind(m.In[0], "Compare") {
		return nil
	}
	t, ok := number(m.In[0].Node().In[1])
	if !ok || t < 15 || t > 88 {
		return nil
	}
	c, ok := m.casesOf(t)
	if !ok || c.positive != c.x {
		return nil
	}
	if u, ok := m.logOnePlus(c.negative); !ok || u != c.x {
		return nil
	}
	return []ir.Value{op.Softplus(c.x)}
}

// logSigmoidRule: min(x, 0) - ln(1 + e^-|x|).
func logSigmoidRule(m *Match) []ir.Value {
	a, b, ok := asBinary(m.Out(0), "sub")
	if !ok || !ir.Float.Has(m.Types[0].DType) || !m.Single(a) {
		return nil
	}
	x, zero, ok := asBinary(a, "min")
	if k, is := number(zero); !ok || !is || k != 0 {
		return nil
	}
	if u, ok := m.logExpAbs(b); !ok || u != x {
		return nil
	}
	return []ir.Value{op.LogSigmoid(x)}
}

// clampRule: min(max(x, lo), hi) with numbers, which is what Clamp means; hard tanh is one. The other way round zeros stay out of it: which of two comes
// out may depend on the order.
func clampRule(m *Match) []ir.Value {
	if !ir.Float.Has(m.Types[0].DType) {
		return nil
	}
	if v, hi, ok := bounded(m.Out(0), "min"); ok && m.Single(v) {
		if x, ok := asUnary(v, "relu"); ok {
			if hi == 6 {
				return []ir.Value{op.Relu6(x)}
			}
			return []ir.Value{op.Clamp(x, 0, hi)}
		}
		if x, lo, ok := bounded(v, "max"); ok {
			return []ir.Value{op.Clamp(x, lo, hi)}
		}
	}
	if v, lo, ok := bounded(m.Out(0), "max"); ok && m.Single(v) {
		if x, hi, ok := bounded(v, "min"); ok && lo <= hi && lo != 0 && hi != 0 {
			return []ir.Value{op.Clamp(x, lo, hi)}
		}
	}
	return nil
}

// bounded is v as fn, max or min, of a value and a number.
func bounded(v ir.Value, fn op.BinaryFn) (x ir.Value, k float64, ok bool) {
	a, b, ok := asBinary(v, fn)
	if !ok {
		return x, 0, false
	}
	if k, ok = number(b); !ok {
		a, b = b, a
		k, ok = number(b)
	}
	return a, k, ok && !math.IsNaN(k)
}
