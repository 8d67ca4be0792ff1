package pass

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Sink moves nodes past each other where that leaves less to compute or to move: pieces are cut before elementwise nodes, casts are made where there are
// fewer elements. Every rule either makes the elements that a node computes fewer or has one transpose less in front of a node, so they come to an end.
var Sink = Pass{
	Name: "sink",
	Doc:  "moves casts, pieces and transposes past other nodes where that leaves less to compute",
	Rules: []Rule{
		{"transposes", func(m *Match) []ir.Value { return cancelRule(m, false) }},
		{"reduce of transpose", reduceTransposeRule},
		{"piece of elementwise", pieceElementwiseRule},
		{"gather of cast", gatherCastRule},
		{"cast of gather", castGatherRule},
		{"cast of expand", castExpandRule},
	},
}

// reduceTransposeRule reduces the axes where they lie. Sums stay: they may round otherwise in another order.
func reduceTransposeRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.ReduceAttrs)
	if !ok || m.Row.Name != "Reduce" || a.KeepDims || len(a.Axes) == 0 {
		return nil
	}
	t := made(m.In[0], "Transpose")
	if t == nil || a.Fn != "max" && a.Fn != "min" {
		return nil
	}
	perm := permOf(t.Attrs.(*op.TransposeAttrs), m.In[0].Rank())
	reduced := make([]bool, len(perm))
	var axes, rest []int
	for _, axis := range a.Axes {
		k, _ := ir.WrapAxis(axis, len(perm))
		reduced[k], axes = true, append(axes, perm[k])
	}
	for k, from := range perm {
		if !reduced[k] {
			rest = append(rest, from)
		}
	}
	if !slices.IsSorted(rest) {
		return nil
	}
	slices.Sort(axes)
	return []ir.Value{op.Reduce(t.In[0], a.Fn, axes, false)}
}

// pieceElementwiseRule computes only the elements of a piece. What it reads is a view then, which elementwise kernels take as it is.
func pieceElementwiseRule(m *Match) []ir.Value {
	p, ok := pieceOf(m.Node)
	if !ok || p.x.Dim(p.axis).Is(p.length) || !m.cuts(p) {
		return nil
	}
	return []ir.Value{m.cut(p)}
}

// cuts says whether the elementwise node that p is a piece of, and that nobody else reads, can compute the piece alone.
func (m *Match) cuts(p piece) bool {
	n := p.x.Node()
	if !m.Single(p.x) || !elementwise(n) || m.Support == nil || !m.Support.Strided(n) {
		return false
	}
	return !slices.ContainsFunc(n.In, func(v ir.Value) bool {
		axis, whole := p.axisOf(v)
		_, constant := v.Const() // would be held twice
		return !whole && (constant || v.Dim(axis) != p.x.Dim(p.axis))
	})
}

// axisOf is the axis of an operand v of p.x's node that p cuts; whole says that v is the same for all of the piece.
func (p piece) axisOf(v ir.Value) (axis int, whole bool) {
	axis = p.axis - (p.x.Rank() - v.Rank())
	return axis, axis < 0 || v.Dim(axis).Is(1)
}

// cut is p with the cut in front of all nodes that can compute a piece.
func (m *Match) cut(p piece) ir.Value {
	if !m.cuts(p) {
		return p.value()
	}
	in := slices.Clone(p.x.Node().In)
	for i, v := range in {
		if axis, whole := p.axisOf(v); !whole {
			in[i] = m.cut(piece{v, axis, p.start, p.length})
		}
	}
	return anew(p.x.Node(), p.x.Node().Attrs, in...)[0]
}

// widens says that n is a cast to a wider dtype.
func widens(n *ir.Node) bool {
	return n != nil && n.In[0].DType().Size() < n.Out(0).DType().Size()
}

// fewer says that a surely has fewer elements than b.
func fewer(a, b ir.Value) bool {
	x, okX := ir.Count(a.Shape()).Static()
	y, okY := ir.Count(b.Shape()).Static()
	return okX && okY && x < y
}

// gatherCastRule widens what is gathered, not the table. A constant table is cast once, in folding.
func gatherCastRule(m *Match) []ir.Value {
	n := firstOf(m, "Cast")
	if m.Row.Name != "Gather" || !widens(n) || !m.Single(m.In[0]) || !fewer(m.Out(0), m.In[0]) {
		return nil
	}
	if _, constant := n.In[0].Const(); constant {
		return nil
	}
	return anew(n, n.Attrs, again(m, n.In[0], m.In[1])...)
}

// castGatherRule casts the table where it has fewer elements than what is gathered from it, unless what is gathered is made larger by that.
func castGatherRule(m *Match) []ir.Value {
	if m.Row.Name != "Cast" || widens(m.Node) {
		return nil
	}
	n := made(m.In[0], "Gather")
	if n == nil || !m.Single(m.In[0]) || !fewer(n.In[0], m.In[0]) {
		return nil
	}
	return anew(n, n.Attrs, again(m, n.In[0])[0], n.In[1])
}

// castExpandRule casts what is stretched.
func castExpandRule(m *Match) []ir.Value {
	if m.Row.Name != "Cast" {
		return nil
	}
	n := made(m.In[0], "Expand")
	if n == nil || !m.Single(m.In[0]) || !fewer(n.In[0], m.In[0]) {
		return nil
	}
	return anew(n, n.Attrs, again(m, n.In[0])...)
}

// firstOf is the node that makes the first operand, if it is of the given kind.
func firstOf(m *Match, row string) *ir.Node {
	if len(m.In) == 0 || m.In[0].IsZero() {
		return nil
	}
	return made(m.In[0], row)
}
