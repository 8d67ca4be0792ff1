package onnx

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// sequenceRows work on lists of tensors and on optional values, which exist while the model is read and not after.
var sequenceRows = []row{
	{op: "SequenceEmpty", since: 11, attrs: []attrDecl{{name: "dtype", kind: AttributeInt}}, build: func(n *node) { n.list0(nil) }},
	{op: "SequenceConstruct", since: 11, in: arity{1, many}, build: func(n *node) { n.list0(n.in) }},
	{op: "SequenceInsert", since: 11, in: arity{2, 3}, lists: true, build: func(n *node) {
		items := n.items(0)
		if i, ok := n.position(2, len(items), len(items), len(items)+1); ok {
			n.list0(slices.Insert(slices.Clone(items), i, n.in[1]))
		}
	}},
	{op: "SequenceErase", since: 11, in: arity{1, 2}, lists: true, build: func(n *node) {
		items := n.items(0)
		if i, ok := n.position(1, len(items)-1, len(items), len(items)); ok {
			n.list0(slices.Delete(slices.Clone(items), i, i+1))
		}
	}},
	{op: "SequenceAt", since: 11, in: arity{2, 2}, lists: true, build: func(n *node) {
		items := n.items(0)
		if i, ok := n.position(1, 0, len(items), len(items)); ok {
			n.put(0, items[i])
		}
	}},
	{op: "SequenceLength", since: 11, in: arity{1, 1}, lists: true, build: func(n *node) {
		if items := n.items(0); n.ok() {
			n.give(0, ir.Scalar(int64(len(items))))
		}
	}},
	{op: "SplitToSequence", since: 11, in: arity{1, 2}, attrs: []attrDecl{integer("axis", 0), integer("keepdims", 1)}, build: buildSplitToSequence},
	{op: "ConcatFromSequence", since: 11, in: arity{1, 1}, lists: true, attrs: []attrDecl{required(integer("axis", 0)), integer("new_axis", 0)},
		build: buildConcatFromSequence},
	{op: "SequenceMap", since: 17, in: arity{1, many}, lists: true, attrs: []attrDecl{required(graphAttr("body"))}, build: buildSequenceMap},
	{op: "Optional", since: 15, in: arity{0, 1}, lists: true, attrs: []attrDecl{listOf("type", AttributeTypeProto)}, build: func(n *node) {
		if n.has(0) {
			n.pass(0)
		} else {
			n.put(0, &value{absent: true})
		}
	}},
	{op: "OptionalHasElement", since: 15, in: arity{0, 1}, lists: true, build: func(n *node) { n.give(0, ir.Scalar(n.has(0) && !n.in[0].absent)) }},
	{op: "OptionalGetElement", since: 15, in: arity{1, 1}, lists: true, build: func(n *node) {
		if n.in[0].absent {
			n.fail("its input has no value")
			return
		}
		n.pass(0)
	}},
}

// list0 makes output 0 a sequence.
func (n *node) list0(items []*value) {
	if i := slices.Index(items, nil); i >= 0 {
		n.fail("item %d of the sequence is missing", i)
		return
	}
	n.put(0, &value{seq: &sequence{items}})
}

// items are the values of input i, which must be a sequence.
func (n *node) items(i int) []*value {
	if !n.has(i) || n.in[i].seq == nil {
		n.fail("input %d is no sequence", i)
		return nil
	}
	return n.in[i].seq.items
}

// position is the index in input i, below limit; def if it is absent. Negative ones count from the end of count items.
func (n *node) position(i, def, count, limit int) (int, bool) {
	k := n.int(i, "position", int64(def))
	if k < 0 {
		k += int64(count)
	}
	if n.ok() && (k < 0 || k >= int64(limit)) {
		n.fail("position %d, expected one of %d", k, limit)
	}
	return int(k), n.ok()
}

func buildSplitToSequence(n *node) {
	x := n.val(0)
	if !n.ok() {
		return
	}
	axis := n.axis("axis", x.Rank())
	size, ok := x.Dim(axis).Static()
	if n.ok() && !ok {
		n.refuse("", "axis %d has length %s, expected a known one", axis, x.Dim(axis))
	}
	var lengths []int64
	switch {
	case !n.ok():
		return
	case !n.has(1) && !n.spend(size):
		return
	case !n.has(1):
		lengths = slices.Repeat([]int64{1}, int(size))
	case len(n.typ(1).Shape) > 0:
		lengths = n.ints(1, "split")
	default:
		piece := n.int(1, "split", 0)
		if n.ok() && piece < 1 {
			n.fail("split is %d, expected at least 1", piece)
		}
		if !n.ok() || !n.spend(size/piece) {
			return
		}
		for left := size; left > 0 && n.ok(); left -= piece {
			lengths = append(lengths, min(piece, left))
		}
	}
	drop := !n.has(1) && n.i("keepdims") == 0
	var items []*value
	from := int64(0)
	for _, d := range lengths {
		y := op.Slice(x, ir.Dims(from), ir.Dims(from+d), []int{axis}, nil)
		if drop {
			y = pick(x, axis, from)
		}
		from += d
		items = append(items, &value{typ: y.Type(), node: y, deps: n.deps()})
	}
	if n.ok() {
		n.list0(items)
	}
}

func buildConcatFromSequence(n *node) {
	items := n.items(0)
	if n.ok() && len(items) == 0 {
		n.fail("the sequence is empty")
	}
	parts := make([]ir.Value, len(items))
	for i, v := range items {
		if n.ok() {
			parts[i] = n.get(v)
		}
	}
	if !n.ok() {
		return
	}
	if n.i("new_axis") != 0 {
		y := n.stack(items, n.i("axis"), nil)
		if n.ok() {
			n.ret(y)
		}
		return
	}
	if axis := n.axis("axis", parts[0].Rank()); n.ok() {
		n.ret(op.Concat(axis, parts...))
	}
}

// buildSequenceMap reads the body once for each item; inputs that are no sequences are the same each time.
func buildSequenceMap(n *node) {
	g, first := n.graph("body"), n.items(0)
	lists := make([][]*value, len(n.out))
	for i := range first {
		args := make([]*value, len(n.in))
		for k, v := range n.in {
			args[k] = v
			if v != nil && v.seq != nil {
				if len(v.seq.items) != len(first) {
					n.fail("input %d has %d items, expected %d", k, len(v.seq.items), len(first))
					return
				}
				args[k] = v.seq.items[i]
			}
		}
		out := n.body(g, args)
		if out == nil || len(out) < len(lists) {
			return
		}
		for k := range lists {
			lists[k] = append(lists[k], out[k])
		}
	}
	for k := range lists {
		n.out[k] = &value{seq: &sequence{lists[k]}}
	}
}
