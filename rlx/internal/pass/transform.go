package pass

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Transform puts doublings of images and the crops, flips and transposes around them into one copy. Without a doubling such chains are views, which need no
// copy at all.
var Transform = Pass{
	Name:  "transform",
	Doc:   "makes one copy of 2x resizes, with crops, flips and transposes around them",
	Rules: []Rule{{"chain", transformRule}, {"doubling", doublingRule}},
}

// doublingRule names the Resize that repeats every element: a kernel writes both rows from one.
func doublingRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.ResizeAttrs)
	if !ok || m.Support == nil || !doubles(m.Node, a) {
		return nil
	}
	if row, err := ir.RowByName("ResizeNearest2x"); err != nil || !m.Support.NativeRow(row, m.In[0].DType()) {
		return nil
	}
	return []ir.Value{op.ResizeNearest2x(m.In[0])}
}

// transformRule joins a step with the steps that make its operand, if there is a doubling among them and one before the last step: what a doubling reads
// through a view is no second copy. Every step leaves one node less.
func transformRule(m *Match) []ir.Value {
	last, ok := stepOf(m.Node)
	if !ok || m.Support == nil {
		return nil
	}
	row, err := ir.RowByName("TransformRegion")
	if err != nil || !m.Support.NativeRow(row, m.In[0].DType()) {
		return nil
	}
	steps := []op.Step{last}
	doubled := 0 // doublings before the last step
	x := m.In[0]
	for m.Single(x) {
		n := x.Node()
		if a, ok := n.Attrs.(*op.TransformRegionAttrs); ok {
			list, _ := a.Steps.List()
			steps, x, doubled = append(list, steps...), n.In[0], doubled+1
			continue
		}
		step, ok := stepOf(n)
		if !ok {
			break
		}
		if step.Fn == "resize_nearest_2x" {
			doubled++
		}
		steps, x = slices.Insert(steps, 0, step), n.In[0]
	}
	if doubled == 0 {
		return nil
	}
	return []ir.Value{op.TransformRegion(x, steps...)}
}

// stepOf is a node as a step of a TransformRegion.
func stepOf(n *ir.Node) (s op.Step, ok bool) {
	if n == nil || n.Row.Has(ir.Leaf) {
		return s, false
	}
	switch a := n.Attrs.(type) {
	case *op.ResizeNearest2xAttrs:
		return op.Step{Fn: "resize_nearest_2x"}, n.In[0].Rank() == 4
	case *op.ResizeAttrs:
		return op.Step{Fn: "resize_nearest_2x"}, doubles(n, a)
	case *op.ReverseAttrs:
		return op.Step{Fn: "flip", Axes: slices.Clone(a.Axes)}, len(a.Axes) > 0
	case *op.TransposeAttrs:
		s.Fn = "transpose"
		for _, k := range permOf(a, n.In[0].Rank()) {
			s.Perm = append(s.Perm, int64(k))
		}
		return s, true
	case *op.NarrowAttrs:
		p, ok := pieceOf(n)
		sizes, static := ir.StaticShape(n.Types[0].Shape)
		if !ok || !static {
			return s, false
		}
		s = op.Step{Fn: "crop", Starts: make([]int64, len(sizes)), Sizes: sizes}
		s.Starts[p.axis] = p.start
		return s, true
	}
	return s, false
}

// doubles says that a Resize repeats every element of the last two of four axes.
func doubles(n *ir.Node, a *op.ResizeAttrs) bool {
	in, okIn := ir.StaticShape(n.In[0].Shape())
	out, okOut := ir.StaticShape(n.Types[0].Shape)
	if !okIn || !okOut || len(in) != 4 || a.Mode != op.ResizeNearest || in[0] != out[0] || in[1] != out[1] || out[2] != 2*in[2] || out[3] != 2*in[3] {
		return false
	}
	for _, t := range a.Taps(in, out) {
		if t.Axis < 2 || t.Outside != nil {
			return false
		}
		for j, k := range t.Index {
			if k != int64(j/2) {
				return false
			}
		}
	}
	return true
}
