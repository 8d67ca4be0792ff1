package pass

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// reduceRegionRule gives a Reduce the region, or the single elementwise node, that makes what it reduces.
func reduceRegionRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.ReduceAttrs)
	if !ok || m.Row.Name != "Reduce" || !m.Single(m.In[0]) || !neighbours(a.Axes, m.In[0].Rank()) {
		return nil
	}
	x := m.In[0].Node()
	body, in := bodyAround(m, x)
	if body == nil || len(in) == 0 || !m.Support.NativeRow(op.ReduceRegionRow(), in[0].DType()) || !m.Support.Native(m.Node) {
		return nil
	}
	y := op.ReduceRegion(op.ReduceRegionAttrs{Body: body, Fn: a.Fn, Axes: a.Axes, KeepDims: a.KeepDims}, in...)
	return []ir.Value{y}
}

// bodyAround is the body and the operands of x, a region of one result or an elementwise node; nil for others.
func bodyAround(m *Match, x *ir.Node) (*ir.Graph, []ir.Value) {
	if a, ok := x.Attrs.(*op.ElementwiseRegionAttrs); ok {
		if len(x.Types) != 1 || a.Prologue != "none" {
			return nil, nil
		}
		return a.Body, x.In
	}
	f := fuser{s: m.Support}
	if x.Row.Has(ir.Leaf) || !f.fits(x) {
		return nil, nil
	}
	gr := &group{shape: x.Types[0].Shape, nodes: []*ir.Node{x}, in: map[*ir.Node]bool{x: true}, outputs: []ir.Value{x.Out(0)}}
	in, inner := operandsOf(gr)
	body, err := bodyOf(gr, in, inner)
	if err != nil {
		return nil, nil
	}
	return body, in
}

// reduces says whether n is a Reduce that reduceRegionRule gives the group that makes its operand.
func (f *fuser) reduces(n *ir.Node) bool {
	a, ok := n.Attrs.(*op.ReduceAttrs)
	if !ok || n.Row.Name != "Reduce" || !neighbours(a.Axes, n.In[0].Rank()) {
		return false
	}
	x := n.In[0].Node()
	return f.fits(x) && f.s.Native(n) && f.s.NativeRow(op.ReduceRegionRow(), n.In[0].DType()) && f.s.NativeRow(op.ElementwiseRegionRow(), n.In[0].DType())
}

// neighbours says whether axes follow each other, none standing for all: kernels reduce what is made in the order of memory.
func neighbours(axes []int, rank int) bool {
	first, last, n := span(axes, rank)
	return n > 0 && last-first+1 == n
}

// lastAxes says whether axes are all from some axis on; none means all.
func lastAxes(axes []int, rank int) bool {
	_, last, _ := span(axes, rank)
	return neighbours(axes, rank) && last == rank-1
}

// span is the first and the last of n axes, none standing for all; n is 0 where one is out of range, or there is none.
func span(axes []int, rank int) (first, last, n int) {
	if len(axes) == 0 {
		return 0, rank - 1, rank
	}
	first, last = rank, -1
	seen := map[int]bool{}
	for _, axis := range axes {
		k, ok := ir.WrapAxis(axis, rank)
		if !ok {
			return 0, 0, 0
		}
		first, last, seen[k] = min(first, k), max(last, k), true
	}
	return first, last, len(seen)
}
