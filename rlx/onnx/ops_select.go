package onnx

import (
	"bytes"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// selectRows have results whose lengths depend on values. They are computed while the model is read.
var selectRows = []row{
	{op: "NonZero", since: 9, in: arity{1, 1}, build: buildNonZero},
	{op: "Compress", since: 9, in: arity{2, 2}, attrs: []attrDecl{{name: "axis", kind: AttributeInt}}, build: buildCompress},
	{op: "Unique", since: 11, in: arity{1, 1}, attrs: []attrDecl{{name: "axis", kind: AttributeInt}, integer("sorted", 1, 0, 1)}, build: buildUnique},
	{op: "NonMaxSuppression", since: 10, in: arity{2, 5}, attrs: []attrDecl{integer("center_point_box", 0, 0, 1)}, build: buildNonMaxSuppression},
}

// buildNonZero lists the indices of elements that are not 0, one row for each axis.
func buildNonZero(n *node) {
	if n.known(0) == nil && n.fullNonZero() {
		return
	}
	t := n.want(0, "X")
	if t == nil {
		return
	}
	rank := max(t.Rank(), 1)
	rows := make([][]int64, rank)
	strides := rowMajor(t.Shape())
	for i := range t.Len() {
		if t.Float(i) == 0 {
			continue
		}
		left := int64(i)
		for k, s := range strides {
			rows[k] = append(rows[k], left/s)
			left %= s
		}
		if t.Rank() == 0 {
			rows[0] = append(rows[0], 0)
		}
	}
	n.give(0, ir.New(slices.Concat(rows...), rank, len(rows[0])))
}

// fullNonZero reads the indices of a tensor whose elements are all one number other than 0: how exporters count up to a length.
func (n *node) fullNonZero() bool {
	x := n.val(0)
	if !n.ok() || x.Node() == nil || x.Node().Row.Name != "Expand" || x.Rank() == 0 {
		return false
	}
	t, ok := x.Node().In[0].Const()
	if !ok || t.Len() != 1 || t.Float(0) == 0 {
		return false
	}
	count := ir.Count(x.Shape())
	var rows []ir.Value
	for axis, d := range x.Shape() {
		at := op.Expand(laid(n.im.iota(d), axis, x.Rank()), x.Shape()...)
		rows = append(rows, op.Reshape(at, ir.D(1), count))
	}
	if len(rows) == 1 {
		n.ret(rows[0])
	} else {
		n.ret(op.Concat(0, rows...))
	}
	return true
}

// buildCompress keeps the entries whose condition is true; those beyond the end of the condition are dropped.
func buildCompress(n *node) {
	x := n.val(0)
	cond := n.want(1, "condition")
	if !n.ok() {
		return
	}
	var keep []int64
	for i := range cond.Len() {
		if cond.Int(i) != 0 {
			keep = append(keep, int64(i))
		}
	}
	axis := 0
	if n.attr("axis") == nil {
		x = op.Reshape(x, ir.Count(x.Shape()))
	} else {
		axis = n.axis("axis", x.Rank())
	}
	if n.ok() {
		n.ret(op.Gather(x, n.im.g.Constant(ir.New(keep, len(keep))), axis))
	}
}

// buildUnique lists the distinct slices along axis, or the distinct elements, with where each occurs first, which of them each entry is,
// and how often each occurs.
func buildUnique(n *node) {
	t := n.want(0, "X")
	if t == nil {
		return
	}
	outer, size, inner := 1, t.Len(), 1
	shape := []int64{int64(t.Len())}
	axis := 0
	if n.attr("axis") != nil {
		if axis = n.axis("axis", t.Rank()); !n.ok() {
			return
		}
		shape = slices.Clone(t.Shape())
		outer, size, inner = int(prod(shape[:axis])), int(shape[axis]), int(prod(shape[axis+1:]))
	}
	if t.Len() == 0 && max(outer, size, inner) > maxInlined { // lengths that no data back
		n.fail("input of shape %v", t.Shape())
		return
	}
	part := func(i, k int) int { return (k/inner*size+i)*inner + k%inner } // element k of slice i
	compare := func(a, b int) int {
		for k := range outer * inner {
			x, y := t.Float(part(a, k)), t.Float(part(b, k))
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
		}
		return 0
	}
	order := interval(0, size)
	slices.SortStableFunc(order, compare)
	var first, counts []int64
	inverse := make([]int64, size)
	for i, at := range order {
		if i == 0 || compare(order[i-1], at) != 0 {
			first, counts = append(first, int64(at)), append(counts, 0)
		}
		counts[len(counts)-1]++
		inverse[at] = int64(len(counts) - 1)
	}
	if n.i("sorted") == 0 {
		first, counts, inverse = byAppearance(first, counts, inverse)
	}
	d := t.DType().Size()
	var data bytes.Buffer
	shape[axis] = int64(len(first))
	for o := range outer {
		for _, f := range first {
			from := (o*size + int(f)) * inner
			data.Write(t.Bytes()[from*d : (from+inner)*d])
		}
	}
	y, err := ir.FromBytes(t.DType(), shape, data.Bytes())
	if err != nil {
		n.fail("%w", err)
		return
	}
	n.give(0, y)
	for i, l := range [][]int64{first, inverse, counts} {
		n.give(i+1, ir.New(l, len(l)))
	}
}

// byAppearance sorts the distinct slices by where they occur first.
func byAppearance(first, counts, inverse []int64) (f, c, inv []int64) {
	order := interval(0, len(first))
	slices.SortFunc(order, func(a, b int) int { return int(first[a] - first[b]) })
	place := make([]int64, len(order))
	for i, k := range order {
		f, c = append(f, first[k]), append(c, counts[k])
		place[k] = int64(i)
	}
	for _, k := range inverse {
		inv = append(inv, place[k])
	}
	return f, c, inv
}
