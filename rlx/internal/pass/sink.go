package pass

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Sink moves nodes past each other where that leaves less to compute or to move: pieces are cut before elementwise nodes, casts are made where there are
// fewer elements. Every rule makes elements fewer or takes a transpose away, so they come to an end.
var Sink = Pass{
	Name: "sink",
	Doc:  "moves casts, pieces and transposes past other nodes where that leaves less to compute",
	Rules: []Rule{
		{"transposes", func(m *Match) []ir.Value { return cancelRule(m, false) }},
		{"reduce of transpose", reduceTransposeRule},
		{"piece of elementwise", pieceElementwiseRule},
		{"gather of cast", gatherCastRule},
		{"cast of gather", castGatherRule},
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
	if !ok || !m.Single(p.x) || p.x.Dim(p.axis).Is(p.length) {
		return nil
	}
	n := p.x.Node()
	if !elementwise(n) || m.Support == nil || !m.Support.Strided(n) {
		return nil
	}
	in := slices.Clone(n.In)
	cut := make([]int, len(in)) // axes, -1 where an operand is the same for all of the piece
	for i, v := range in {
		cut[i] = p.axis - (p.x.Rank() - v.Rank())
		if cut[i] < 0 || v.Dim(cut[i]).Is(1) {
			cut[i] = -1
		} else if _, constant := v.Const(); constant || v.Dim(cut[i]) != p.x.Dim(p.axis) {
			return nil
		}
	}
	for i, axis := range cut {
		if axis >= 0 {
			in[i] = op.Narrow(in[i], axis, p.start, p.length)
		}
	}
	return anew(n, n.Attrs, in...)
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

// castGatherRule narrows the table where it has fewer elements than what is gathered from it.
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

// firstOf is the node that makes the first operand, if it is of the given kind.
func firstOf(m *Match, row string) *ir.Node {
	if len(m.In) == 0 || m.In[0].IsZero() {
		return nil
	}
	return made(m.In[0], row)
}
