package onnx

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

const classicML = "ai.onnx.ml"

// mlRows are those operators of classic machine learning that are a call or two.
var mlRows = []row{
	{domain: classicML, op: "Binarizer", since: 1, in: arity{1, 1}, attrs: []attrDecl{float("threshold", 0)}, build: func(n *node) {
		if x := n.val(0); n.ok() {
			n.ret(op.Cast(op.Gt(x, n.float("threshold")), x.DType()))
		}
	}},
	{domain: classicML, op: "ArrayFeatureExtractor", since: 1, in: arity{2, 2}, build: buildFeatures},
}

// buildFeatures picks entries of the last axis; a vector counts as a row.
func buildFeatures(n *node) {
	x, index := n.val(0), n.val(1)
	if n.ok() && x.Rank() == 0 {
		n.fail("input has rank 0, expected at least 1")
	}
	if !n.ok() {
		return
	}
	if x.Rank() == 1 {
		x = withAxis(x, 0)
	}
	n.ret(op.Gather(x, op.Reshape(index, ir.Count(index.Shape())), x.Rank()-1))
}
