package onnx

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// gatherRows read and write by index.
var gatherRows = []row{
	{op: "Gather", since: 1, in: arity{2, 2}, attrs: []attrDecl{integer("axis", 0)}, track: trackGather, build: func(n *node) {
		if x, index := n.val(0), n.val(1); n.ok() {
			n.ret(op.Gather(x, index, n.axis("axis", x.Rank())))
		}
	}},
	{op: "GatherElements", since: 11, in: arity{2, 2}, attrs: []attrDecl{integer("axis", 0)}, build: func(n *node) {
		if x, index := n.val(0), n.val(1); n.ok() {
			n.ret(op.GatherElements(x, index, n.axis("axis", x.Rank())))
		}
	}},
	{op: "GatherND", since: 11, in: arity{2, 2}, attrs: []attrDecl{integer("batch_dims", 0)}, build: buildGatherND},
	{op: "Scatter", since: 9, in: arity{3, 3}, attrs: []attrDecl{integer("axis", 0)}, build: buildScatter},
	{op: "ScatterElements", since: 11, in: arity{3, 3}, build: buildScatter,
		attrs: []attrDecl{integer("axis", 0), str("reduction", "none", "add", "mul", "max", "min")}},
	{op: "ScatterND", since: 11, in: arity{3, 3}, attrs: []attrDecl{str("reduction", "none", "add", "mul", "max", "min")}, build: func(n *node) {
		if x, index, u := n.val(0), n.val(1), n.val(2); n.ok() {
			n.ret(op.ScatterNd(x, index, u, op.ScatterReduction(n.s("reduction"))))
		}
	}},
	{op: "OneHot", since: 9, in: arity{3, 3}, attrs: []attrDecl{integer("axis", -1)}, build: buildOneHot},
	{op: "TopK", since: 1, in: arity{1, 1}, attrs: []attrDecl{integer("axis", -1), required(integer("k", 0))}, build: buildTopK},
	{op: "TopK", since: 10, in: arity{2, 2}, build: buildTopK, attrs: []attrDecl{integer("axis", -1), integer("largest", 1), integer("sorted", 1)}},
	{op: "ReverseSequence", since: 10, in: arity{2, 2}, attrs: []attrDecl{integer("batch_axis", 1), integer("time_axis", 0)}, build: buildReverseSequence},
}

func buildGatherND(n *node) {
	if x, index := n.val(0), n.val(1); n.ok() {
		n.ret(op.GatherNd(x, index, int(n.i("batch_dims"))))
	}
}

func trackGather(n *node) []*dimTensor {
	x, index := n.dims(0), n.dims(1)
	if x == nil || index == nil {
		return nil
	}
	list, ok := index.static()
	axis := n.axis("axis", len(x.shape))
	if !ok || !n.ok() {
		return nil
	}
	list = slices.Clone(list)
	for i := range list {
		if list[i] < 0 {
			list[i] += x.shape[axis]
		}
	}
	y := x.along(axis, list)
	if y == nil {
		return nil
	}
	return []*dimTensor{y.reshape(slices.Concat(x.shape[:axis], index.shape, x.shape[axis+1:]))}
}

func buildScatter(n *node) {
	reduction := op.ScatterNone
	if n.p.OpType != "Scatter" {
		reduction = op.ScatterReduction(n.s("reduction"))
	}
	if x, index, u := n.val(0), n.val(1), n.val(2); n.ok() {
		n.ret(op.ScatterElements(x, index, u, n.axis("axis", x.Rank()), reduction))
	}
}

// buildOneHot writes known values into the attributes; others are selected by a mask.
func buildOneHot(n *node) {
	index, depth := n.val(0), n.length(1, "depth")
	if !n.ok() {
		return
	}
	if !ir.IndexT.Has(index.DType()) {
		index = op.Cast(index, ir.I64)
	}
	axis := n.wrap(n.i("axis"), index.Rank()+1, "axis")
	size, known := depth.Static()
	a := op.OneHotAttrs{Depth: size, Axis: axis, Dtype: n.typ(2).DType}
	if t := n.konst(2); known && t != nil && t.Len() == 2 {
		a.OffValue, a.OnValue = numberAt(t, 0), numberAt(t, 1)
		n.ret(op.OneHot(index, a))
		return
	}
	values := n.val(2)
	if !n.ok() {
		return
	}
	a.Dtype, a.OffValue, a.OnValue = ir.Bool, ir.IntNumber(0), ir.IntNumber(1)
	at := func(i int64) ir.Value {
		return op.Reshape(op.Slice(values, ir.Dims(i), ir.Dims(i+1), []int{0}, nil))
	}
	hot := n.im.hot(index, depth, axis)
	if known {
		hot = op.OneHot(index, a)
	}
	n.ret(op.Where(hot, at(1), at(0)))
}

// hot is a new axis of the given length, which may be a symbol, where the entry that index names is true. Negative indices count from the
// end.
func (im *importer) hot(index ir.Value, length ir.Dim, axis int) ir.Value {
	index = castTo(index, ir.I64)
	index = op.Where(op.Lt(index, 0), op.Add(index, scalar(length).data(im.g)), index)
	return op.Eq(withAxis(index, axis), laid(im.iota(length), axis, index.Rank()+1))
}

// length is the one element of input i as a dim.
func (n *node) length(i int, what string) ir.Dim {
	l := n.list(i, what)
	if n.ok() && len(l) != 1 {
		n.fail("input %d (%s) has %d elements, expected one", i, what, len(l))
	}
	if !n.ok() {
		return ir.Dim{}
	}
	return l[0]
}

func buildTopK(n *node) {
	count, largest := ir.D(n.i("k")), true
	if n.row.since >= 10 {
		count, largest = n.length(1, "k"), n.i("largest") != 0
	}
	x := n.val(0)
	if !n.ok() {
		return
	}
	axis := n.axis("axis", x.Rank())
	if k, ok := count.Static(); ok {
		n.ret(op.TopK(x, k, axis, largest))
		return
	}
	values, index := op.Sort(x, axis, largest)
	first := func(v ir.Value) ir.Value { return op.Slice(v, ir.Dims(0), []ir.Dim{count}, []int{axis}, nil) }
	n.ret(first(values), first(index))
}

// buildReverseSequence gathers position len-1-t for t < len, else t, of each batch.
func buildReverseSequence(n *node) {
	x, lens := n.val(0), n.val(1)
	if !n.ok() {
		return
	}
	batch, time := n.axis("batch_axis", x.Rank()), n.axis("time_axis", x.Rank())
	if n.ok() && (batch == time || batch > 1 || time > 1) {
		n.fail("batch_axis %d and time_axis %d, expected 0 and 1", batch, time)
	}
	if !n.ok() {
		return
	}
	t := laid(n.im.iota(x.Dim(time)), time, x.Rank())
	l := laid(castTo(lens, ir.I64), batch, x.Rank())
	at := op.Where(op.Lt(t, l), op.Sub(op.Sub(l, 1), t), t)
	n.ret(op.GatherElements(x, op.Expand(at, x.Shape()...), time))
}
