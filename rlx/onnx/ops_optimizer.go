package onnx

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

const training = "ai.onnx.preview.training"

// optimizerRows are steps of training. Operands are R, T, then all tensors, their gradients, and their states.
var optimizerRows = []row{
	{domain: training, op: "Adagrad", since: 1, in: arity{3, many}, build: buildAdagrad,
		attrs: []attrDecl{float("decay_factor", 0), float("epsilon", 1e-6), float("norm_coefficient", 0)}},
	{domain: training, op: "Momentum", since: 1, in: arity{3, many}, build: buildMomentum, attrs: []attrDecl{
		required(float("alpha", 0)), required(float("beta", 0)), required(str("mode", "standard", "nesterov")), required(float("norm_coefficient", 0)),
	}},
	{domain: training, op: "Adam", since: 1, in: arity{3, many}, build: buildAdam, attrs: []attrDecl{
		float("alpha", 0.9), float("beta", 0.999), float("epsilon", 1e-6), float("norm_coefficient", 0), float("norm_coefficient_post", 0),
	}},
}

// groups splits the operands behind R and T into count lists of equal length: of R, T and those.
func (n *node) groups(count int) (r, t ir.Value, lists [][]ir.Value) {
	v := n.vals()
	if n.ok() && (len(v)-2)%count != 0 {
		n.fail("got %d operands behind R and T, expected a multiple of %d", len(v)-2, count)
	}
	if !n.ok() {
		return
	}
	size := (len(v) - 2) / count
	for i := range count {
		lists = append(lists, v[2+i*size:2+(i+1)*size])
	}
	return v[0], v[1], lists
}

// regularized is the gradient with that of a squared norm of x.
func (n *node) regularized(g, x ir.Value) ir.Value {
	if c := n.float("norm_coefficient"); c != 0 {
		return op.Add(g, op.Mul(x, c))
	}
	return g
}

func buildAdagrad(n *node) {
	r, t, l := n.groups(3)
	if !n.ok() {
		return
	}
	rate := op.Div(r, op.Add(op.Mul(castTo(t, r.DType()), n.float("decay_factor")), 1))
	var x, h []ir.Value
	for i := range l[0] {
		g := n.regularized(l[1][i], l[0][i])
		sum := op.Add(l[2][i], op.Mul(g, g))
		x = append(x, op.Sub(l[0][i], op.Div(op.Mul(rate, g), op.Add(op.Sqrt(sum), n.float("epsilon")))))
		h = append(h, sum)
	}
	n.ret(append(x, h...)...)
}

func buildMomentum(n *node) {
	r, t, l := n.groups(3)
	if !n.ok() {
		return
	}
	alpha := n.float("alpha")
	// beta counts from the second step on
	beta := op.Where(op.Gt(t, 0), op.Expand(n.im.g.Constant(op.NumberAs(r.DType(), ir.FloatNumber(n.float("beta"))))), 1)
	var x, m []ir.Value
	for i := range l[0] {
		g := n.regularized(l[1][i], l[0][i])
		v := op.Add(op.Mul(l[2][i], alpha), op.Mul(g, beta))
		step := v
		if n.s("mode") == "nesterov" {
			step = op.Add(g, op.Mul(v, alpha))
		}
		x, m = append(x, op.Sub(l[0][i], op.Mul(r, step))), append(m, v)
	}
	n.ret(append(x, m...)...)
}

func buildAdam(n *node) {
	r, t, l := n.groups(4)
	if !n.ok() {
		return
	}
	alpha, beta := n.float("alpha"), n.float("beta")
	step := castTo(t, r.DType())
	power := func(b float64) ir.Value { return op.Sub(1, op.Pow(op.Add(op.Mul(step, 0), b), step)) }
	rate := op.Where(op.Gt(t, 0), op.Div(op.Mul(r, op.Sqrt(power(beta))), power(alpha)), r)
	var x, v, h []ir.Value
	for i := range l[0] {
		g := n.regularized(l[1][i], l[0][i])
		first := op.Add(op.Mul(l[2][i], alpha), op.Mul(g, 1-alpha))
		second := op.Add(op.Mul(l[3][i], beta), op.Mul(op.Mul(g, g), 1-beta))
		next := op.Sub(l[0][i], op.Div(op.Mul(rate, first), op.Add(op.Sqrt(second), n.float("epsilon"))))
		if c := n.float("norm_coefficient_post"); c != 0 {
			next = op.Mul(next, 1-c)
		}
		x, v, h = append(x, next), append(v, first), append(h, second)
	}
	n.ret(append(append(x, v...), h...)...)
}
