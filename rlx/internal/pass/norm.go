package pass

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Norms finds layer norms and RMS norms over the last axes that a model spells out, first without gamma and beta, which join one after the other, and
// softmaxes. Inner steps are rounded in another order than before; NaN and infinities are where they were. A variance as mean(x^2) - mean(x)^2 stays
// spelled out: where the mean is far from 0 it is another number than that of the op, which does not cancel.
var Norms = Pass{Name: "norm", Rounds: true, Doc: "layer norms, RMS norms and softmaxes that are spelled out become one node", Rules: []Rule{
	{"layer norm", layerNormRule}, {"rms norm", rmsNormRule}, {"gamma", gammaRule}, {"beta", betaRule}, {"softmax", softmaxRule},
}}

// meanOf is the operand of v where v is its mean over all axes from axis on, each kept as 1.
func meanOf(v ir.Value) (x ir.Value, axis int, ok bool) {
	if !isKind(v, "Reduce") {
		return x, 0, false
	}
	a, x := v.Node().Attrs.(*op.ReduceAttrs), v.Node().In[0]
	if a.Fn != "mean" || !a.KeepDims || len(a.Axes) == 0 || !lastAxes(a.Axes, x.Rank()) {
		return x, 0, false
	}
	return x, x.Rank() - len(a.Axes), true
}

// centred is v as x - mean(x).
func centred(v ir.Value) (x ir.Value, axis int, ok bool) {
	x, mean, ok := asBinary(v, "sub")
	if !ok {
		return x, 0, false
	}
	y, axis, ok := meanOf(mean)
	return x, axis, ok && y == x
}

// overRoot takes v apart as a / sqrt(b + eps), whichever way the division is written; nothing else may read the root or the sum.
func (m *Match) overRoot(v ir.Value) (a, b ir.Value, eps float64, ok bool) {
	var under ir.Value
	if x, root, is := asBinary(v, "div"); is {
		under, ok = asUnary(root, "sqrt")
		a, ok = x, ok && m.Single(root)
	} else if x, y, is := asBinary(v, "mul"); is {
		for range 2 {
			if under, ok = m.rsqrtOf(y); ok {
				break
			}
			x, y = y, x
		}
		a = x
	}
	if !ok || !m.Single(under) {
		return a, b, 0, false
	}
	b, eps, ok = plus(under)
	return a, b, eps, ok && eps >= 0 && m.Single(b)
}

// rsqrtOf is the operand of v where v, which only one node reads, is 1 / sqrt of it.
func (m *Match) rsqrtOf(v ir.Value) (x ir.Value, ok bool) {
	if !m.Single(v) {
		return x, false
	}
	if x, ok = asUnary(v, "rsqrt"); ok {
		return x, true
	}
	root, ok := asUnary(v, "reciprocal")
	if !ok {
		var one ir.Value
		if one, root, ok = asBinary(v, "div"); ok {
			c, is := number(one)
			ok = is && c == 1
		}
	}
	if !ok || !m.Single(root) {
		return x, false
	}
	return asUnary(root, "sqrt")
}

// squared is what v is the square of; reads is how often v reads it.
func squared(v ir.Value) (x ir.Value, reads int, ok bool) {
	if a, b, is := asBinary(v, "mul"); is {
		return a, 2, a == b
	}
	if a, b, is := asBinary(v, "pow"); is {
		c, is := number(b)
		return a, 1, is && c == 2 && a.Type().Equal(v.Type())
	}
	x, ok = asUnary(v, "square")
	return x, 1, ok
}

// exact says whether the steps of a spelling are in a dtype whose range is that of the op's: f16 steps overflow where the op's do not.
func exact(d ir.DType) bool { return ir.Float.Has(d) && d != ir.F16 }

// layerNormRule: (x - mean) / sqrt(mean((x - mean)^2) + eps).
func layerNormRule(m *Match) []ir.Value {
	d, variance, eps, ok := m.overRoot(m.Out(0))
	if !ok || !exact(d.DType()) {
		return nil
	}
	x, axis, ok := centred(d)
	square, at, ok2 := meanOf(variance)
	if !ok || !ok2 || at != axis || !m.Single(square) {
		return nil
	}
	e, reads, ok := squared(square)
	if !ok {
		return nil
	}
	if e == d {
		reads++
	} else if !m.Single(d) { // the difference is computed twice
		return nil
	}
	if y, k, ok := centred(e); !ok || y != x || k != axis || m.uses[e] > reads {
		return nil
	}
	return []ir.Value{op.LayerNorm(x, ir.Value{}, ir.Value{}, axis, eps)}
}

// rmsNormRule: x / sqrt(mean(x^2) + eps).
func rmsNormRule(m *Match) []ir.Value {
	x, mean, eps, ok := m.overRoot(m.Out(0))
	if !ok || !exact(x.DType()) {
		return nil
	}
	square, axis, ok := meanOf(mean)
	if !ok || !m.Single(square) {
		return nil
	}
	if y, _, ok := squared(square); !ok || y != x {
		return nil
	}
	return []ir.Value{op.RmsNorm(x, ir.Value{}, ir.Value{}, axis, eps)}
}

// bareNorm is v as a norm that lacks operand k and, for gamma, beta too, and that only the node reads.
func (m *Match) bareNorm(v ir.Value, k int) (n *ir.Node, a *op.LayerNormAttrs, ok bool) {
	if !isKind(v, "LayerNorm") && !isKind(v, "RmsNorm") || !m.Single(v) {
		return nil, nil, false
	}
	n = v.Node()
	a, ok = n.Attrs.(*op.LayerNormAttrs)
	return n, a, ok && n.In[k].IsZero() && n.In[2].IsZero()
}

// affine is p as an operand of a norm over the axes from axis on of values of the given shape; absent if it has another value for any other axis.
func affine(p ir.Value, shape []ir.Dim, axis int) ir.Value {
	k, ok := ir.WrapAxis(axis, len(shape))
	if !ok || p.Rank() > len(shape) {
		return ir.Value{}
	}
	want := shape[k:]
	if p.Rank() < len(want) || !slices.Equal(p.Shape()[p.Rank()-len(want):], want) {
		return ir.Value{}
	}
	for _, d := range p.Shape()[:p.Rank()-len(want)] {
		if d != ir.D(1) {
			return ir.Value{}
		}
	}
	if p.Rank() == len(want) {
		return p
	}
	return op.Reshape(p, want...)
}

func (m *Match) renormed(n *ir.Node, a *op.LayerNormAttrs, gamma, beta ir.Value) []ir.Value {
	if n.Row.Name == "RmsNorm" {
		return []ir.Value{op.RmsNorm(n.In[0], gamma, beta, a.Axis, a.Eps)}
	}
	return []ir.Value{op.LayerNorm(n.In[0], gamma, beta, a.Axis, a.Eps)}
}

func gammaRule(m *Match) []ir.Value {
	return sides(m.Node, "mul", func(y, gamma ir.Value) []ir.Value {
		n, a, ok := m.bareNorm(y, 1)
		if !ok {
			return nil
		}
		if gamma = affine(gamma, y.Shape(), a.Axis); gamma.IsZero() {
			return nil
		}
		return m.renormed(n, a, gamma, ir.Value{})
	})
}

func betaRule(m *Match) []ir.Value {
	return sides(m.Node, "add", func(y, beta ir.Value) []ir.Value {
		n, a, ok := m.bareNorm(y, 2)
		if !ok || n.Row.Name == "RmsNorm" { // models add no beta to it: an addition behind one is a residual or a bias
			return nil
		}
		if beta = affine(beta, y.Shape(), a.Axis); beta.IsZero() {
			return nil
		}
		return m.renormed(n, a, n.In[1], beta)
	})
}

// overAxis is the operand of v where v is fn of it over one axis, which is kept as 1, dropped and put back, or stretched. Nothing else may read a
// value on the way.
func (m *Match) overAxis(v ir.Value, fn op.ReduceFn) (x ir.Value, axis int, ok bool) {
	shape := v.Shape()
	for m.Single(v) {
		if isKind(v, "Reshape") || isKind(v, "Expand") { // which keep the order of elements; the shapes tell whether all are there once
			v = v.Node().In[0]
			continue
		}
		if fn != "max" {
			break
		}
		if v, ok = atLeastMinusInf(v); !ok {
			break
		}
	}
	if !isKind(v, "Reduce") || !m.Single(v) {
		return x, 0, false
	}
	a, x := v.Node().Attrs.(*op.ReduceAttrs), v.Node().In[0]
	if a.Fn != fn || len(a.Axes) != 1 {
		return x, 0, false
	}
	axis, ok = ir.WrapAxis(a.Axes[0], x.Rank())
	if !ok || len(shape) != x.Rank() {
		return x, 0, false
	}
	for k, d := range shape { // it meets x where it was reduced from
		if k == axis && d != ir.D(1) || k != axis && d != x.Dim(k) {
			return x, 0, false
		}
	}
	return x, axis, true
}

// atLeastMinusInf is the operand of v where v is the larger of it and -inf, which is it; else v.
func atLeastMinusInf(v ir.Value) (x ir.Value, ok bool) {
	a, b, ok := asBinary(v, "max")
	if !ok {
		return v, false
	}
	for range 2 {
		if c, is := number(b); is && math.IsInf(c, -1) && a.Type().Equal(v.Type()) {
			return a, true
		}
		a, b = b, a
	}
	return v, false
}

// softmaxRule: e / sum(e), e = exp(x - max(x)). Rows of -inf alone, and with NaN or inf, give NaN both ways.
func softmaxRule(m *Match) []ir.Value {
	e, sum, ok := asBinary(m.Out(0), "div")
	if !ok || !exact(e.DType()) || m.uses[e] > 2 {
		return nil
	}
	y, axis, ok := m.overAxis(sum, "sum")
	if !ok || y != e {
		return nil
	}
	d, ok := asUnary(e, "exp")
	if !ok || !m.Single(d) {
		return nil
	}
	x, most, ok := asBinary(d, "sub")
	if !ok {
		return nil
	}
	if y, k, ok := m.overAxis(most, "max"); !ok || y != x || k != axis {
		return nil
	}
	return []ir.Value{op.Softmax(x, axis)}
}
