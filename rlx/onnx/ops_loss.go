package onnx

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// lossRows are losses over classes on axis 1.
var lossRows = []row{
	{op: "NegativeLogLikelihoodLoss", since: 12, in: arity{2, 3}, attrs: lossAttrs, build: func(n *node) {
		if x := n.val(0); n.ok() {
			n.ret(n.likelihoodLoss(x))
		}
	}},
	{op: "SoftmaxCrossEntropyLoss", since: 12, in: arity{2, 3}, attrs: lossAttrs, build: func(n *node) {
		if x := n.val(0); n.ok() {
			logp := op.LogSoftmax(x, 1)
			n.ret(n.likelihoodLoss(logp), logp)
		}
	}},
}

var lossAttrs = []attrDecl{{name: "ignore_index", kind: AttributeInt}, str("reduction", "mean", "none", "sum")}

// likelihoodLoss is -weight[t] * logp[t] for class t of each place. A mean divides by the weights that took part.
func (n *node) likelihoodLoss(logp ir.Value) ir.Value {
	target, weight := n.val(1), n.val(2)
	if n.ok() && (logp.Rank() < 2 || target.Rank() != logp.Rank()-1) {
		n.fail("scores have rank %d and targets %d, expected at least 2 and one less", logp.Rank(), target.Rank())
	}
	if !n.ok() {
		return ir.Value{}
	}
	ignore := n.attr("ignore_index")
	var counts ir.Value
	if ignore != nil {
		counts = op.Ne(target, ignore.I)
		target = op.Where(counts, target, 0)
	}
	var w ir.Value
	if n.has(2) {
		w = op.Gather(weight, target, 0)
	}
	if ignore != nil {
		if w.IsZero() {
			w = op.Cast(counts, logp.DType())
		} else {
			w = op.Where(counts, w, 0)
		}
	}
	loss := op.Neg(op.Reshape(op.GatherElements(logp, withAxis(target, 1), 1), target.Shape()...))
	if !w.IsZero() {
		loss = op.Mul(loss, w)
		if ignore != nil { // an infinite loss at an ignored place counts nothing
			loss = op.Where(counts, loss, 0)
		}
	}
	switch reduction := n.s("reduction"); {
	case reduction == "none":
		return loss
	case reduction == "sum":
		return op.Sum(loss)
	case w.IsZero():
		return op.Mean(loss)
	}
	return op.Div(op.Sum(loss), op.Sum(w))
}
