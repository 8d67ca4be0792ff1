package op

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// decomposeConv multiplies the matrix of windows by the weights, group by group: the groups are the batch axis of one MatMul, so the
// number of nodes does not depend on them.
func decomposeConv(n *ir.Node, a *ConvAttrs) []ir.Value {
	x, w := n.In[0], n.In[1]
	kernel, _ := ir.StaticShape(w.Shape()[2:])
	rows := Im2Col(x, Im2ColAttrs{a.Stride, a.Dilation, a.Padding, a.AutoPad, kernel})
	out := n.Types[0].Shape
	channels := w.Dim(0)
	terms := ir.Count(w.Shape()[1:]) // of one sum: channels of the group, kernel positions
	if a.Groups == 1 {
		rows = MatMul(rows, Transpose(Reshape(w, channels, terms), 1, 0))
	} else {
		g := ir.D(a.Groups)
		left := Transpose(Reshape(rows, rows.Dim(0), g, terms), 1, 0, 2)
		right := Transpose(Reshape(w, g, channels.FloorDiv(g), terms), 0, 2, 1)
		rows = Transpose(MatMul(left, right), 1, 0, 2)
	}
	last := len(out) - 1
	y := Reshape(rows, slices.Concat(out[:1], out[2:], out[1:2])...)
	perm := []int{0, last}
	for i := 1; i < last; i++ {
		perm = append(perm, i)
	}
	return []ir.Value{Transpose(y, perm...)}
}

// decomposeIm2Col takes one strided slice of the padded input per kernel position.
func decomposeIm2Col(n *ir.Node, a *Im2ColAttrs) []ir.Value {
	x := n.In[0]
	r := x.Rank() - 2
	w := ConvWindow(a.Stride, a.Dilation, a.Padding, a.AutoPad, x.Shape()[2:], ir.Dims(a.KernelSize...))
	axes, pads := make([]int, r), make([]ir.Dim, 2*x.Rank())
	for i := range r {
		axes[i], pads[2+i], pads[x.Rank()+2+i] = 2+i, w.Begin[i], w.End[i]
	}
	x = Pad(x, pads, PadConstant, ir.IntNumber(0))
	one := slices.Concat(x.Shape()[:2], []ir.Dim{ir.D(1)}, w.Out)
	var parts []ir.Value
	for tap := range positions(a.KernelSize) {
		starts, ends := make([]ir.Dim, r), make([]ir.Dim, r)
		for i, t := range tap {
			starts[i] = ir.D(t).Mul(ir.D(w.Dilation[i]))
			ends[i] = w.Out[i].Sub(ir.D(1)).Mul(ir.D(w.Stride[i])).Add(starts[i]).Add(ir.D(1))
		}
		parts = append(parts, Reshape(Slice(x, starts, ends, axes, w.Stride), one...))
	}
	perm := []int{0}
	for i := range r {
		perm = append(perm, 3+i)
	}
	y := Transpose(Concat(2, parts...), append(perm, 1, 2)...) // [N, C, taps, out..] to [N, out.., C, taps]
	return []ir.Value{Reshape(y, n.Types[0].Shape...)}
}

// positions yields every index of a box of the given sizes, the last axis fastest. The slice is reused.
func positions(sizes []int64) func(yield func([]int64) bool) {
	return func(yield func([]int64) bool) {
		at := make([]int64, len(sizes))
		if slices.Contains(sizes, 0) {
			return
		}
		for {
			if !yield(at) {
				return
			}
			i := len(at) - 1
			for ; i >= 0; i-- {
				if at[i]++; at[i] < sizes[i] {
					break
				}
				at[i] = 0
			}
			if i < 0 {
				return
			}
		}
	}
}
