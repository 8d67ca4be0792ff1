package pass

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Columns lays columns down. It runs behind ConvEpilogue: a bias, a residual and an activation stand behind a convolution, not behind a view of its result.
var Columns = Pass{Name: Layout.Name, Doc: Layout.Doc, Rules: []Rule{{"column convolution", columnConvRule}}}

// columnConvRule lays images that are one element wide down: kernels tile rows, and a column is many rows of one element. Only axes of length 1 move, so
// that this costs nothing.
func columnConvRule(m *Match) []ir.Value {
	var attrs any
	switch a := m.Attrs.(type) {
	case *op.ConvAttrs:
		c := *a
		laidDown(&c.Stride, &c.Dilation, &c.Padding)
		attrs = &c
	case *op.FusedConvAttrs:
		c := *a
		laidDown(&c.Stride, &c.Dilation, &c.Padding)
		attrs = &c
	default:
		return nil
	}
	if m.Row.Name != "Conv" && m.Row.Name != "FusedConvBiasAct" || !columns(m.In[0].Shape(), m.In[1].Shape(), m.Types[0].Shape) {
		return nil
	}
	in := slices.Clone(m.In)
	for i, v := range in {
		if !v.IsZero() && v.Rank() == 4 { // the bias has one axis
			in[i] = reshape(v, swapped(v.Shape()))
		}
	}
	return []ir.Value{reshape(anew(m.Node, attrs, in...)[0], m.Types[0].Shape)}
}

// columns says that images of these shapes are one element wide, and that one of them is higher.
func columns(shapes ...[]ir.Dim) bool {
	high := false
	for _, s := range shapes {
		if len(s) != 4 || !s[3].Is(1) {
			return false
		}
		high = high || !s[2].Is(1)
	}
	return high
}

// swapped is the shape of an image with its rows as columns.
func swapped(shape []ir.Dim) []ir.Dim { return []ir.Dim{shape[0], shape[1], shape[3], shape[2]} }

// laidDown swaps the numbers of the two axes in lists that have one for each, or one for each end of each.
func laidDown(lists ...*[]int64) {
	for _, l := range lists {
		*l = slices.Clone(*l)
		for k := 0; k+1 < len(*l); k += 2 {
			(*l)[k], (*l)[k+1] = (*l)[k+1], (*l)[k]
		}
	}
}
