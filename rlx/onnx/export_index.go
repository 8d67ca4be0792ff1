package onnx

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// indexExports are the kinds that take indices.
var indexExports = map[string]exportRow{
	"Gather": direct(func(x *emission, a *op.GatherAttrs) []string {
		return x.move("Gather", movable, []string{x.index(1)}, attr("axis", a.Axis))
	}),
	"GatherElements": direct(func(x *emission, a *op.GatherAttrs) []string {
		return x.move("GatherElements", movable, []string{x.index(1)}, attr("axis", a.Axis))
	}).elseStatic(),
	"GatherNd": direct(func(x *emission, a *op.GatherNdAttrs) []string {
		return x.move("GatherND", movable, []string{x.cast(x.in[1], x.dtype(1), ir.I64)}, attr("batch_dims", a.BatchDims))
	}).elseStatic(),
	"ScatterElements": direct(func(x *emission, a *op.ScatterElementsAttrs) []string {
		return x.scatter("ScatterElements", a.Reduction, attr("axis", a.Axis))
	}).elseStatic(),
	"ScatterNd": direct(func(x *emission, a *op.ScatterNdAttrs) []string {
		return x.scatter("ScatterND", a.Reduction)
	}),
	"ScatterAdd": lowered(lowerScatterAdd),
	"KvAppend":   composedStatic(),
	"OneHot":     direct(emitOneHot).elseStatic(),
}

// index is operand i as indices of i32 or i64.
func (x *emission) index(i int) string {
	if d := x.dtype(i); d != ir.I32 {
		return x.cast(x.in[i], d, ir.I64)
	}
	return x.in[i]
}

// scatter writes operand 2 into operand 0 at the indices of operand 1. Sums of f16 and bf16 are those of f32, rounded once.
func (x *emission) scatter(operator string, r op.ScatterReduction, attrs ...AttributeProto) []string {
	d, takes := x.dtype(0), movable
	if r != op.ScatterNone {
		attrs = append(attrs, attr("reduction", string(r)))
		takes = ir.Int | ir.Set(ir.F32, ir.F64)
	}
	c := x.carrier(d, takes)
	index := x.cast(x.in[1], x.dtype(1), ir.I64)
	if x.reason != "" {
		return nil
	}
	y := x.op(operator, []string{x.cast(x.in[0], d, c), index, x.cast(x.in[2], d, c)}, attrs...)
	return []string{x.cast(y, c, d)}
}

// lowerScatterAdd writes slices as elements: the index of a slice stands for each of its elements.
func lowerScatterAdd(n *ir.Node, a *op.SegmentAttrs) []ir.Value {
	u, index, base := n.In[0], n.In[1], n.In[2]
	axis := wrapped(a.Axis, u.Rank())
	if base.IsZero() {
		zero := u.Graph().Constant(op.NumberAs(u.DType(), ir.IntNumber(0)))
		base = op.Expand(zero, n.Types[0].Shape...)
	}
	shape := make([]ir.Dim, u.Rank())
	for i := range shape {
		shape[i] = ir.D(1)
	}
	shape[axis] = index.Dim(0)
	return []ir.Value{op.ScatterElements(base, op.Expand(op.Reshape(index, shape...), u.Shape()...), u, axis, op.ScatterSum)}
}

func emitOneHot(x *emission, a *op.OneHotAttrs) []string {
	d := x.carrier(a.Dtype, ir.Set(ir.F32, ir.I64)) // the types that runtimes have
	if x.reason != "" {
		return nil
	}
	values, err := ir.Zeros(d, 2)
	if err != nil {
		return x.refuse("%v", err)
	}
	for i, n := range []ir.Number{a.OffValue, a.OnValue} { // as values of the result's dtype, which d holds
		t := op.NumberAs(a.Dtype, n)
		if ir.Float.Has(d) {
			ir.PutFloat(d, values.Bytes(), i, t.Float(0))
		} else {
			ir.PutInt(d, values.Bytes(), i, t.Int(0))
		}
	}
	index := x.cast(x.in[0], x.dtype(0), ir.I64)
	y := x.op("OneHot", []string{index, x.constant("depth", ir.Scalar(a.Depth)), x.constant("values", values)}, attr("axis", a.Axis))
	return []string{x.cast(y, d, a.Dtype)}
}
