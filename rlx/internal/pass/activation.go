package pass

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Activations finds functions of the unary table that a model spells out. The function sees fewer roundings than its parts. At x = -inf, where a
// spelled-out x * 0 gives NaN, silu, mish and the GELUs give 0.
// Hard swish gives 0 there too, and stays finite for x so large that a spelled-out x * (x + 3) or x * 6 overflows. Softsign gives 1 and -1 at the
// infinities, where the quotient is NaN. Everywhere else a NaN and an infinity come out of both.
var Activations = Pass{Name: "activation", Rounds: true, Doc: "GELU, SiLU, hard swish and others that are spelled out become one function", Rules: []Rule{
	{"gelu", geluRule}, {"gelu_tanh", geluTanhRule}, {"silu", siluRule}, {"mish", mishRule}, {"hard_swish", hardSwishRule},
	{"hard_sigmoid", hardSigmoidRule}, {"relu", reluRule}, {"leaky_relu", leakyReluRule}, {"elu", eluRule}, {"elu by sum", eluSumRule},
	{"selu", seluRule}, {"softsign", softsignRule}, {"softplus", softplusRule}, {"log_sigmoid", logSigmoidRule},
}}

// gate is the node as x times one other factor and a number: x is what both share. f says what the other factor is made of; it
// gives the activation or an absent value.
func gate(m *Match, f func(x, other ir.Value, c float64) ir.Value) []ir.Value {
	if m.Row.Name != "Binary" || !ir.Float.Has(m.Types[0].DType) {
		return nil
	}
	p := m.factorsOf(m.Out(0))
	if len(p.factors) != 2 {
		return nil
	}
	for i, x := range p.factors {
		if other := p.factors[1-i]; other != x && m.Single(other) {
			if y := f(x, other, p.c); !y.IsZero() {
				return []ir.Value{y}
			}
		}
	}
	return nil
}

// onePlus is the operand of fn where v is 1 + fn(u), or of scale*(1 + fn(u)) with a number in front.
func (m *Match) onePlus(v ir.Value, fn op.UnaryFn) (u ir.Value, ok bool) {
	s, c, ok := plus(v)
	if !ok || c != 1 || !m.Single(s) {
		return u, false
	}
	return asUnary(s, fn)
}

// geluRule: x * 1/2 * (1 + erf(x / sqrt 2)).
func geluRule(m *Match) []ir.Value {
	return gate(m, func(x, other ir.Value, c float64) ir.Value {
		u, ok := m.onePlus(other, "erf")
		if !ok || c != 0.5 || !m.Single(u) {
			return ir.Value{}
		}
		if k, ok := m.scaled(u, x); !ok || !close(x.DType(), k, math.Sqrt2/2) {
			return ir.Value{}
		}
		return op.Gelu(x)
	})
}

// geluTanhRule: x * 1/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), the cube written as a power or as products.
func geluTanhRule(m *Match) []ir.Value {
	return gate(m, func(x, other ir.Value, c float64) ir.Value {
		u, ok := m.onePlus(other, "tanh")
		if !ok || c != 0.5 || !m.Single(u) || !m.geluArgument(u, x) {
			return ir.Value{}
		}
		return op.GeluTanh(x)
	})
}

// geluArgument says whether u is sqrt(2/pi) * (x + 0.044715 x^3), or sqrt(2/pi) * x * (1 + 0.044715 x^2).
func (m *Match) geluArgument(u, x ir.Value) bool {
	d := x.DType()
	p := m.factorsOf(u)
	if !close(d, p.c, math.Sqrt(2/math.Pi)) {
		return false
	}
	if rest, ok := p.without(x); ok && len(rest.factors) == 1 {
		s, one, ok := plus(rest.factors[0])
		square := m.factorsOf(s)
		return ok && one == 1 && m.Single(rest.factors[0]) && m.Single(s) && square.allAre(x, 2) && close(d, square.c, 0.044715)
	}
	if len(p.factors) != 1 || !m.Single(p.factors[0]) {
		return false
	}
	a, b, ok := asBinary(p.factors[0], "add")
	if !ok {
		return false
	}
	if b == x {
		a, b = b, a
	}
	cube := m.factorsOf(b)
	return a == x && m.Single(b) && cube.allAre(x, 3) && close(d, cube.c, 0.044715)
}

// siluRule: x * sigmoid(x), and x * sigmoid(alpha x).
func siluRule(m *Match) []ir.Value {
	return gate(m, func(x, other ir.Value, c float64) ir.Value {
		u, ok := asUnary(other, "sigmoid")
		if !ok || c != 1 {
			return ir.Value{}
		}
		if u == x {
			return op.Silu(x)
		}
		if k, ok := m.scaled(u, x); ok && m.Single(u) && k != 0 && k != 1 && !math.IsInf(k, 0) {
			return op.Activation(x, "gelu_quick", k, math.NaN())
		}
		return ir.Value{}
	})
}

// mishRule: x * tanh(softplus(x)).
func mishRule(m *Match) []ir.Value {
	return gate(m, func(x, other ir.Value, c float64) ir.Value {
		u, ok := asUnary(other, "tanh")
		if !ok || c != 1 || !m.Single(u) {
			return ir.Value{}
		}
		if v, ok := asUnary(u, "softplus"); !ok || v != x {
			return ir.Value{}
		}
		return op.Mish(x)
	})
}

// clamped is the operand where v is it clamped to [lo, hi].
func clamped(v ir.Value, lo, hi float64) (x ir.Value, ok bool) {
	if v.IsZero() {
		return x, false
	}
	n := v.Node()
	if a, is := n.Attrs.(*op.ClampAttrs); is && n.Row.Name == "Clamp" {
		return n.In[0], a.Min.Float() == lo && a.Max.Float() == hi
	}
	if lo == 0 && hi == 6 {
		return asUnary(v, "relu6")
	}
	return x, false
}

// hardSwishRule: x * clamp(x + 3, 0, 6) / 6, and x * hard_sigmoid(x; 1/6, 1/2). Between the kinks the function computes x (x + 3) / 6, beyond them 0 and x.
func hardSwishRule(m *Match) []ir.Value {
	return gate(m, func(x, other ir.Value, c float64) ir.Value {
		d := x.DType()
		if u, a, ok := activationOf(other); ok && a.Fn == "hard_sigmoid" && u == x {
			if c == 1 && close(d, a.Alpha, 1.0/6) && a.Beta == 0.5 {
				return op.HardSwish(x)
			}
			return ir.Value{}
		}
		u, ok := clamped(other, 0, 6)
		if !ok || !close(d, c, 1.0/6) || !m.Single(u) {
			return ir.Value{}
		}
		if y, k, ok := plus(u); !ok || y != x || k != 3 {
			return ir.Value{}
		}
		return op.HardSwish(x)
	})
}

// hardSigmoidRule: clamp(alpha x + beta, 0, 1), and clamp(x + 3, 0, 6) / 6.
func hardSigmoidRule(m *Match) []ir.Value {
	if !ir.Float.Has(m.Types[0].DType) {
		return nil
	}
	if u, ok := clamped(m.Out(0), 0, 1); ok && m.Single(u) {
		y, beta, ok := plus(u)
		if !ok || !m.Single(y) {
			return nil
		}
		p := m.factorsOf(y)
		if _, _, isProduct := asBinary(y, "mul"); !isProduct || len(p.factors) != 1 || p.c == 0 || math.IsInf(p.c, 0) || math.IsInf(beta, 0) {
			return nil
		}
		return []ir.Value{op.Activation(p.factors[0], "hard_sigmoid", p.c, beta)}
	}
	p := m.factorsOf(m.Out(0))
	if m.Row.Name != "Binary" || len(p.factors) != 1 || !close(m.Types[0].DType, p.c, 1.0/6) || !m.Single(p.factors[0]) {
		return nil
	}
	u, ok := clamped(p.factors[0], 0, 6)
	if !ok || !m.Single(u) {
		return nil
	}
	x, k, ok := plus(u)
	if !ok || k != 3 {
		return nil
	}
	return []ir.Value{op.Activation(x, "hard_sigmoid", 1.0/6, 0.5)}
}

// reluRule: max(x, 0), which is the formula of relu.
func reluRule(m *Match) []ir.Value {
	if !ir.Float.Has(m.Types[0].DType) {
		return nil
	}
	return sides(m.Node, "max", func(x, zero ir.Value) []ir.Value {
		if c, ok := number(zero); !ok || c != 0 || math.Signbit(c) {
			return nil
		}
		if _, ok := number(x); ok {
			return nil
		}
		return []ir.Value{op.Relu(x)}
	})
}
