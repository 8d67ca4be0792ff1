package pass

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// close says whether a constant of the given dtype stands for want: equal but for the rounding of a file's decimals.
func close(d ir.DType, got, want float64) bool {
	eps := map[ir.DType]float64{ir.F16: 0x1p-10, ir.BF16: 0x1p-7}[d]
	return math.Abs(got-want) <= max(eps, 0x1p-20)*math.Abs(want)
}

// activationOf is v as an Activation, with its operand.
func activationOf(v ir.Value) (x ir.Value, a *op.ActivationAttrs, ok bool) {
	if !isKind(v, "Activation") {
		return x, nil, false
	}
	a, ok = v.Node().Attrs.(*op.ActivationAttrs)
	return v.Node().In[0], a, ok
}

// plus is v as x + c with a constant of one value, or x - c.
func plus(v ir.Value) (x ir.Value, c float64, ok bool) {
	if a, b, is := asBinary(v, "add"); is {
		if c, ok = number(b); ok {
			return a, c, true
		}
		c, ok = number(a)
		return b, c, ok
	}
	if a, b, is := asBinary(v, "sub"); is {
		c, ok = number(b)
		return a, -c, ok
	}
	return x, 0, false
}

// product is a chain of multiplications: numbers in one factor, the others one by one. x*x*x may be written as a power.
type product struct {
	c       float64
	factors []ir.Value
}

// maxFactors bounds what any pattern wants.
const maxFactors = 8

// factorsOf takes v apart, through inner products that only v reads.
func (m *Match) factorsOf(v ir.Value) product {
	p := product{c: 1}
	m.collect(&p, v, true)
	return p
}

func (m *Match) collect(p *product, v ir.Value, root bool) {
	if c, ok := number(v); ok {
		p.c *= c
		return
	}
	if len(p.factors) >= maxFactors {
		p.factors = append(p.factors, v)
		return
	}
	if root || m.Single(v) {
		if a, b, ok := asBinary(v, "mul"); ok {
			if a == b { // both readers are this node
				p.factors = append(p.factors, a, a)
				return
			}
			m.collect(p, a, false)
			m.collect(p, b, false)
			return
		}
		if a, b, ok := asBinary(v, "div"); ok {
			if c, ok := number(b); ok && c != 0 {
				m.collect(p, a, false)
				p.c /= c
				return
			}
		}
		if a, b, ok := asBinary(v, "pow"); ok {
			if c, ok := number(b); ok && (c == 2 || c == 3) {
				for range int(c) {
					p.factors = append(p.factors, a)
				}
				return
			}
		}
		if x, ok := asUnary(v, "square"); ok {
			p.factors = append(p.factors, x, x)
			return
		}
	}
	p.factors = append(p.factors, v)
}

// scaled says whether v is c * x, and gives c; x alone is 1 * x.
func (m *Match) scaled(v, x ir.Value) (c float64, ok bool) {
	p := m.factorsOf(v)
	return p.c, len(p.factors) == 1 && p.factors[0] == x
}

// allAre says whether the product is c times n factors x.
func (p product) allAre(x ir.Value, n int) bool {
	for _, f := range p.factors {
		if f != x {
			return false
		}
	}
	return len(p.factors) == n
}

// without is the product without one factor x; ok is false where it has none.
func (p product) without(x ir.Value) (rest product, ok bool) {
	rest.c = p.c
	for _, f := range p.factors {
		if f == x && !ok {
			ok = true
		} else {
			rest.factors = append(rest.factors, f)
		}
	}
	return rest, ok
}
