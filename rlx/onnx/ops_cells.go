package onnx

import (
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// cells is a recurrent layer written out step by step, for what the operators of package op lack: other activations than theirs, and
// forget gates that are what the input gate leaves.
type cells struct {
	n     *node
	gates int64 // 4 for LSTM, 3 for GRU, 1 for RNN
	steps int64
	x     ir.Value // [S, B, I]
	w, r  ir.Value // [D, G*H, I] and [D, G*H, H]
	bias  ir.Value // [D, 2*G*H], or absent
	lens  ir.Value // [B], or absent
	first []ir.Value
	peeps ir.Value // [D, 3*H], or absent
	fns   []func(ir.Value) ir.Value
	clip  float64
}

// activationFns are the functions of attribute activations, or of def for each direction, with their parameters.
func (n *node) activationFns(def ...string) []func(ir.Value) ir.Value {
	names := slices.Repeat(def, n.directions())
	if a := n.attr("activations"); a != nil && len(a.Strings) > 0 {
		if names = a.Strings; len(names) != len(def)*n.directions() {
			n.fail("activations has %d entries, expected %d", len(names), len(def)*n.directions())
			return nil
		}
	}
	alpha, beta := n.floatList("activation_alpha"), n.floatList("activation_beta")
	next := func(list *[]float64, otherwise float64) float64 {
		if len(*list) == 0 {
			return otherwise
		}
		v := (*list)[0]
		*list = (*list)[1:]
		return v
	}
	var fns []func(ir.Value) ir.Value
	for _, name := range names {
		var fn func(ir.Value) ir.Value
		switch strings.ToLower(name) {
		case "relu":
			fn = op.Relu
		case "tanh":
			fn = op.Tanh
		case "sigmoid":
			fn = op.Sigmoid
		case "softsign":
			fn = op.Softsign
		case "softplus":
			fn = op.Softplus
		case "leakyrelu":
			a := next(&alpha, 0.01)
			fn = func(x ir.Value) ir.Value { return op.LeakyRelu(x, a) }
		case "thresholdedrelu":
			a := next(&alpha, 1)
			fn = func(x ir.Value) ir.Value { return op.ThresholdedRelu(x, a) }
		case "elu":
			a := next(&alpha, 1)
			fn = func(x ir.Value) ir.Value { return op.Elu(x, a) }
		case "hardsigmoid":
			a, b := next(&alpha, 0.2), next(&beta, 0.5)
			fn = func(x ir.Value) ir.Value { return op.HardSigmoid(x, a, b) }
		case "affine":
			a, b := next(&alpha, 1), next(&beta, 0)
			fn = func(x ir.Value) ir.Value { return op.Add(op.Mul(x, a), b) }
		case "scaledtanh":
			a, b := next(&alpha, 1), next(&beta, 1)
			fn = func(x ir.Value) ir.Value { return op.Mul(op.Tanh(op.Mul(x, b)), a) }
		default:
			n.refuse("activations", "value %s is not supported", name)
		}
		fns = append(fns, fn)
	}
	return fns
}

func (n *node) directions() int {
	if n.s("direction") == "bidirectional" {
		return 2
	}
	return 1
}

// floatList is a list attribute, empty where it is absent.
func (n *node) floatList(name string) (list []float64) {
	if a := n.attr(name); a != nil {
		for _, f := range a.Floats {
			list = append(list, float64(f))
		}
	}
	return list
}

// cells reads the operands. States are inputs 5 and, for an LSTM, 6.
func (n *node) cells(gates int64, fns []func(ir.Value) ir.Value) *cells {
	in := n.firstVals(8)
	if !n.ok() {
		return nil
	}
	c := &cells{n: n, gates: gates, x: in[0], w: in[1], r: in[2], bias: in[3], lens: in[4], fns: fns, clip: n.float("clip")}
	if n.i("layout") == 1 {
		c.x = op.Transpose(c.x, 1, 0, 2)
	}
	steps, ok := c.x.Dim(0).Static()
	if !ok {
		n.refuse("", "input of shape %s with these activations, expected a known length", ir.ShapeText(in[0].Shape()))
		return nil
	}
	if c.steps = steps; steps < 1 || !n.spend(steps*int64(n.directions())) {
		n.fail("a sequence of %d steps", steps)
		return nil
	}
	hidden := c.r.Dim(2)
	states := 1
	if gates == 4 {
		states, c.peeps = 2, in[7]
	}
	for i := range states {
		h := in[5+i]
		switch {
		case h.IsZero():
			zero := n.im.g.Constant(op.NumberAs(c.x.DType(), ir.IntNumber(0)))
			h = op.Expand(zero, c.w.Dim(0), c.x.Dim(1), hidden)
		case n.i("layout") == 1:
			h = op.Transpose(h, 1, 0, 2)
		}
		c.first = append(c.first, h)
	}
	return c
}

// run gives Y [S, D, B, H] and the last states [D, B, H], in the layout that the node asks for.
func (c *cells) run() []ir.Value {
	var ys []ir.Value
	last := make([][]ir.Value, len(c.first))
	for d := range c.n.directions() {
		y, states := c.direction(d)
		if !c.n.ok() {
			return nil
		}
		ys = append(ys, withAxis(y, 1))
		for i, s := range states {
			last[i] = append(last[i], withAxis(s, 0))
		}
	}
	join := func(axis int, parts []ir.Value) ir.Value {
		if len(parts) == 1 {
			return parts[0]
		}
		return op.Concat(axis, parts...)
	}
	out := []ir.Value{join(1, ys)}
	for _, s := range last {
		out = append(out, join(0, s))
	}
	if c.n.i("layout") == 1 {
		out[0] = op.Transpose(out[0], 2, 0, 1, 3)
		for i := range out[1:] {
			out[1+i] = op.Transpose(out[1+i], 1, 0, 2)
		}
	}
	return out
}

// direction runs direction d through time.
func (c *cells) direction(d int) (y ir.Value, states []ir.Value) {
	n, k := c.n, int64(d)
	w, r := op.Transpose(pick(c.w, 0, k), 1, 0), op.Transpose(pick(c.r, 0, k), 1, 0)
	for _, s := range c.first {
		states = append(states, pick(s, 0, k))
	}
	size := c.r.Dim(2)
	width := size.Mul(ir.D(c.gates))
	var wb, rb ir.Value
	x := op.MatMul(c.x, w) // [S, B, G*H]
	if !c.bias.IsZero() {
		b := pick(c.bias, 0, k)
		wb = op.Slice(b, ir.Dims(0), []ir.Dim{width}, []int{0}, nil)
		rb = op.Slice(b, []ir.Dim{width}, []ir.Dim{width.Add(width)}, []int{0}, nil)
		x = op.Add(x, wb)
	}
	fns := c.fns[d*len(c.fns)/n.directions():]
	steps := make([]ir.Value, c.steps)
	for i := range c.steps {
		t := i
		if n.s("direction") == "reverse" || d == 1 {
			t = c.steps - 1 - i
		}
		var next []ir.Value
		switch xt := pick(x, 0, t); c.gates {
		case 4:
			next = c.lstm(xt, r, rb, states, k, fns)
		case 3:
			next = c.gru(xt, r, rb, states[0], fns)
		default:
			next = []ir.Value{fns[0](c.clipped(op.Add(xt, c.plus(op.MatMul(states[0], r), rb))))}
		}
		out := next[0]
		if !c.lens.IsZero() {
			live := op.Gt(op.Reshape(c.lens, c.lens.Dim(0), ir.D(1)), t)
			out = op.Where(live, out, 0)
			for j := range next {
				next[j] = op.Where(live, next[j], states[j])
			}
		}
		if !n.ok() {
			return y, nil
		}
		states, steps[t] = next, withAxis(out, 0)
	}
	if len(steps) == 1 {
		return steps[0], states
	}
	return op.Concat(0, steps...), states
}

func (c *cells) plus(x, b ir.Value) ir.Value {
	if b.IsZero() {
		return x
	}
	return op.Add(x, b)
}

func (c *cells) clipped(x ir.Value) ir.Value {
	if c.clip > 0 {
		return op.Clamp(x, -c.clip, c.clip)
	}
	return x
}

// gate cuts block i of hidden columns out of x [B, G*H], or of hidden elements out of x [G*H].
func (c *cells) gate(x ir.Value, i int64) ir.Value {
	size := c.r.Dim(2)
	return op.Slice(x, []ir.Dim{size.Mul(ir.D(i))}, []ir.Dim{size.Mul(ir.D(i + 1))}, []int{x.Rank() - 1}, nil)
}

// lstm is one step: blocks i, o, f, c of the gates, peepholes i, o, f.
func (c *cells) lstm(x, r, rb ir.Value, states []ir.Value, d int64, fns []func(ir.Value) ir.Value) []ir.Value {
	all := op.Add(x, c.plus(op.MatMul(states[0], r), rb))
	cell := states[1]
	peep := func(v ir.Value, i int64, cell ir.Value) ir.Value {
		if c.peeps.IsZero() {
			return c.clipped(v)
		}
		return c.clipped(op.Add(v, op.Mul(c.gate(pick(c.peeps, 0, d), i), cell)))
	}
	in := fns[0](peep(c.gate(all, 0), 0, cell))
	forget := op.Sub(1, in)
	if c.n.i("input_forget") == 0 {
		forget = fns[0](peep(c.gate(all, 2), 2, cell))
	}
	cell = op.Add(op.Mul(forget, cell), op.Mul(in, fns[1](c.clipped(c.gate(all, 3)))))
	out := fns[0](peep(c.gate(all, 1), 1, cell))
	return []ir.Value{op.Mul(out, fns[2](cell)), cell}
}

// gru is one step: blocks z, r, h of the gates.
func (c *cells) gru(x, r, rb, h ir.Value, fns []func(ir.Value) ir.Value) []ir.Value {
	all := c.plus(op.MatMul(h, r), rb)
	both := func(i int64) ir.Value { return fns[0](c.clipped(op.Add(c.gate(x, i), c.gate(all, i)))) }
	update, reset := both(0), both(1)
	inner := op.Mul(reset, c.gate(all, 2))
	if c.n.i("linear_before_reset") == 0 {
		inner = op.MatMul(op.Mul(reset, h), c.gate(r, 2))
		if !rb.IsZero() {
			inner = op.Add(inner, c.gate(rb, 2))
		}
	}
	fresh := fns[1](c.clipped(op.Add(c.gate(x, 2), inner)))
	return []ir.Value{op.Add(op.Mul(op.Sub(1, update), fresh), op.Mul(update, h))}
}
