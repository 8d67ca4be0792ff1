package pass

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Sink moves nodes past each other where that leaves less to compute or to move: pieces are cut before elementwise nodes, casts are made where there are
// fewer elements, and moves of data move the narrower of two dtypes. Every rule makes the elements that a node computes or the bytes that it moves fewer, or
// leaves one transpose less, so they come to an end.
var Sink = Pass{
	Name: "sink",
	Doc:  "moves casts, pieces and transposes past other nodes where that leaves less to compute",
	Rules: []Rule{
		{"transposes", func(m *Match) []ir.Value { return cancelRule(m, false) }},
		{"reduce of transpose", reduceTransposeRule},
		{"cast of cast", castCastRule}, // of those that other moves brought together
		{"move of wide", sinkCastRule},
		{"concat of wide", concatCastRule},
		{"cast of moved", hoistCastRule},
		{"cast of concat", castConcatRule},
		{"piece of elementwise", pieceElementwiseRule},
		{"piece of concat", pieceConcatRule},
		{"gather of cast", gatherCastRule},
		{"cast of gather", castGatherRule},
		{"cast of expand", castExpandRule},
		{"elementwise of gather", tableElementwiseRule},
	},
}

// reduceTransposeRule reduces the axes where they lie. It pays where the transpose would be copied, and where the axis that is reduced is the last one in
// memory. Float sums stay: they may round otherwise in another order.
func reduceTransposeRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.ReduceAttrs)
	if !ok || m.Row.Name != "Reduce" || !anyOrder(a.Fn, m.In[0].DType()) {
		return nil
	}
	t := made(m.In[0], "Transpose")
	if t == nil {
		return nil
	}
	perm := permOf(t.Attrs.(*op.TransposeAttrs), m.In[0].Rank())
	kept, axes := keptAxes(m.Node)
	for i, k := range kept {
		kept[i] = perm[k]
	}
	for i, k := range axes {
		axes[i] = perm[k]
	}
	slices.Sort(axes)
	order := slices.Sorted(slices.Values(kept))
	if !slices.Equal(kept, order) && !m.Single(m.In[0]) {
		return nil // there would be two transposes
	}
	y := op.Reduce(t.In[0], a.Fn, axes, false)
	if !slices.Equal(kept, order) { // of fewer elements now
		for i, k := range kept {
			kept[i] = slices.Index(order, k)
		}
		y = op.Transpose(y, kept...)
	}
	return []ir.Value{reshape(y, m.Types[0].Shape)}
}

// pieceElementwiseRule computes only the elements of a piece. What it reads is a view then, which elementwise kernels take as it is.
func pieceElementwiseRule(m *Match) []ir.Value {
	p, ok := pieceOf(m.Node)
	if !ok || p.x.Dim(p.axis).Is(p.length) || !m.cuts(p) {
		return nil
	}
	return []ir.Value{m.cut(p)}
}

// pieceConcatRule joins pieces along another axis: a Concat is a copy always, of fewer elements then.
func pieceConcatRule(m *Match) []ir.Value {
	p, ok := pieceOf(m.Node)
	if !ok || p.x.Dim(p.axis).Is(p.length) || !m.Single(p.x) {
		return nil
	}
	n := made(p.x, "Concat")
	if n == nil {
		return nil
	}
	if axis, ok := ir.WrapAxis(n.Attrs.(*op.ConcatAttrs).Axis, p.x.Rank()); !ok || axis == p.axis {
		return nil
	}
	in := make([]ir.Value, len(n.In))
	for i, v := range n.In {
		if fixed(v) != nil || v.Dim(p.axis) != p.x.Dim(p.axis) { // would be held twice; or a run finds that they do not agree
			return nil
		}
		in[i] = piece{v, p.axis, p.start, p.length}.value()
	}
	return anew(n, n.Attrs, in...)
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

// narrows says that n is a cast to a narrower dtype.
func narrows(n *ir.Node) bool {
	return n != nil && n.In[0].DType().Size() > n.Out(0).DType().Size()
}

// movesData says that n puts the elements of its one operand elsewhere, or some of them. Expand is another matter: it makes more of them.
func movesData(n *ir.Node) bool {
	return n.Row.Has(ir.View) && len(n.In) == 1 && len(n.Types) == 1 && n.Row.Name != "Expand" && n.In[0].DType() == n.Types[0].DType
}

// keepsCount says that n moves all of its elements.
func keepsCount(n *ir.Node) bool {
	switch n.Row.Name {
	case "Transpose", "Reshape", "Reverse":
		return movesData(n)
	}
	return false
}

// sinkCastRule widens behind a move of data. It pays where the move is a copy: half the bytes are read and written. Where it is a view the cast comes to
// stand with the elementwise nodes behind, which read the narrow elements then. Other readers would keep the wide copy alive, and casts of weights fold.
func sinkCastRule(m *Match) []ir.Value {
	n := firstOf(m, "Cast")
	if !movesData(m.Node) || !widens(n) || !m.Single(m.In[0]) || fixed(n.In[0]) != nil {
		return nil
	}
	return anew(n, n.Attrs, again(m, n.In[0])...)
}

// concatCastRule widens what is joined: a Concat is a copy always.
func concatCastRule(m *Match) []ir.Value {
	first := firstOf(m, "Cast")
	if m.Row.Name != "Concat" || !widens(first) {
		return nil
	}
	in := make([]ir.Value, len(m.In))
	for i, v := range m.In {
		n := made(v, "Cast")
		if n == nil || !m.Single(v) || n.In[0].DType() != first.In[0].DType() || fixed(n.In[0]) != nil {
			return nil
		}
		in[i] = n.In[0]
	}
	return anew(first, first.Attrs, again(m, in...)...)
}

// hoistCastRule narrows in front of moves of data that keep all elements, as sinkCastRule widens behind them. Inputs are narrowed behind their moves, which
// are views, where the cast is one pass with what follows.
func hoistCastRule(m *Match) []ir.Value {
	if m.Row.Name != "Cast" || !narrows(m.Node) {
		return nil
	}
	x := m.In[0]
	var moves []*ir.Node
	for m.Single(x) && keepsCount(x.Node()) {
		moves = append(moves, x.Node())
		x = x.Node().In[0]
	}
	if len(moves) == 0 || x.Node().Row.Has(ir.Leaf) {
		return nil
	}
	y := again(m, x)[0]
	for _, n := range slices.Backward(moves) {
		y = anew(n, n.Attrs, y)[0]
	}
	return []ir.Value{y}
}

// castConcatRule narrows the parts of a Concat where each cast is one pass with the elementwise node that makes the part.
func castConcatRule(m *Match) []ir.Value {
	if m.Row.Name != "Cast" || !narrows(m.Node) {
		return nil
	}
	n := made(m.In[0], "Concat")
	if n == nil || !m.Single(m.In[0]) || slices.ContainsFunc(n.In, func(v ir.Value) bool { return !m.Single(v) || !elementwise(v.Node()) }) {
		return nil
	}
	in := make([]ir.Value, len(n.In))
	for i, v := range n.In {
		in[i] = again(m, v)[0]
	}
	return anew(n, n.Attrs, in...)
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

// tableElementwiseRule computes a function of gathered rows once for each row of the table, where that has fewer elements: of a constant table with constants
// beside it folding does so before the first run.
func tableElementwiseRule(m *Match) []ir.Value {
	if !elementwise(m.Node) || len(m.Types) != 1 || m.Row.Has(ir.Random) {
		return nil
	}
	g, at := (*ir.Node)(nil), -1
	for i, v := range m.In {
		if foldable(v, maxTableChain) {
			continue
		}
		if g != nil || !m.Single(v) {
			return nil
		}
		if g, at = made(v, "Gather"), i; g == nil {
			return nil
		}
	}
	if g == nil || !foldable(g.In[0], maxTableChain) || !fewer(g.In[0], m.In[at]) || !sameShape(m.Types[0].Shape, m.In[at].Shape()) {
		return nil
	}
	table, index := g.In[0], g.In[1]
	if axis, ok := ir.WrapAxis(g.Attrs.(*op.GatherAttrs).Axis, table.Rank()); !ok || axis != 0 {
		return nil
	}
	in := slices.Clone(m.In)
	in[at] = table
	for i, v := range in {
		if i == at || v.IsZero() {
			continue
		}
		if over := v.Rank() - (table.Rank() - 1); over > 0 { // axes that meet those of the indices
			if slices.ContainsFunc(v.Shape()[:over], func(d ir.Dim) bool { return !d.Is(1) }) {
				return nil
			}
			in[i] = reshape(v, v.Shape()[over:])
		}
	}
	return anew(g, g.Attrs, again(m, in...)[0], index)
}

// maxTableChain is how many nodes one behind the other make a table that folds.
const maxTableChain = 8

// foldable says that v is computed from constants alone.
func foldable(v ir.Value, depth int) bool {
	if v.IsZero() || fixed(v) != nil {
		return true
	}
	n := v.Node()
	if depth == 0 || len(n.In) == 0 || n.Row.Has(ir.Random) || n.Row.Has(ir.Control) || len(n.Types) != 1 {
		return false
	}
	return !slices.ContainsFunc(n.In, func(x ir.Value) bool { return !foldable(x, depth-1) })
}
