package onnx

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// recurrentExports are layers with a state.
var recurrentExports = map[string]exportRow{
	"Lstm": inF32(func(x *emission, a *op.LstmAttrs) []string {
		l := x.layer(string(a.Direction), a.Clip, 7, 0, 3, 1, 2)
		peephole := ""
		if x.has(8) {
			peephole = x.gates(x.in[8], x.n.In[2].Dim(2), []int64{0, 2, 1})
		}
		y := x.ops("LSTM", 3, append(l.in, x.in[6], peephole), l.attrs...)
		return []string{l.sequence(x, y[0]), y[1], y[2]}
	}),
	"Gru": inF32(func(x *emission, a *op.GruAttrs) []string {
		l := x.layer(string(a.Direction), a.Clip, 6, 1, 0, 2)
		y := x.ops("GRU", 2, l.in, append(l.attrs, attr("linear_before_reset", a.LinearBeforeReset))...)
		return []string{l.sequence(x, y[0]), y[1]}
	}),
	"Rnn": inF32(func(x *emission, a *op.RnnAttrs) []string {
		l := x.layer(string(a.Direction), a.Clip, 6, 0)
		fns := make([]string, a.Direction.Count())
		for i := range fns {
			fns[i] = map[op.RnnActivation]string{"tanh": "Tanh", "relu": "Relu"}[a.Activation]
		}
		y := x.ops("RNN", 2, l.in, append(l.attrs, attr("activations", fns))...)
		return []string{l.sequence(x, y[0]), y[1]}
	}),
}

// layer is what the recurrent operators share: operands X, W, R, B, sequence_lens and initial_h.
type layer struct {
	in    []string
	attrs []AttributeProto
}

// layer reads the operands. order lists the blocks of gates in the operator's order; lens is the operand with the lengths.
func (x *emission) layer(direction string, clip float64, lens int, order ...int64) layer {
	hidden := x.n.In[2].Dim(2)
	l := layer{in: make([]string, 6), attrs: []AttributeProto{attr("direction", direction)}}
	if h, ok := hidden.Static(); ok {
		l.attrs = append(l.attrs, attr("hidden_size", h))
	}
	if clip > 0 {
		l.attrs = append(l.attrs, attr("clip", clip))
	}
	l.in[0] = x.op("Transpose", x.in[0], attr("perm", []int64{1, 0, 2}))
	l.in[1], l.in[2] = x.gates(x.in[1], hidden, order), x.gates(x.in[2], hidden, order)
	if x.has(3) || x.has(4) {
		both := make([]string, 2)
		for i := range both {
			if x.has(3 + i) {
				both[i] = x.gates(x.in[3+i], hidden, order)
			} else {
				shape := []ir.Dim{x.n.In[2].Dim(0), x.n.In[2].Dim(1)}
				both[i] = x.op("Expand", []string{x.scalar(x.dtype(0), 0), x.dims(shape)})
			}
		}
		l.in[3] = x.op("Concat", both, attr("axis", 1))
	}
	if x.has(lens) {
		l.in[4] = x.cast(x.in[lens], x.dtype(lens), ir.I32)
	}
	l.in[5] = x.in[5]
	return l
}

// gates puts the blocks of hidden rows along axis 1 into another order.
func (x *emission) gates(w string, hidden ir.Dim, order []int64) string {
	if w == "" || len(order) == 1 {
		return w
	}
	sizes := make([]ir.Dim, len(order))
	for i := range sizes {
		sizes[i] = hidden
	}
	blocks := x.ops("Split", len(order), []string{w, x.dims(sizes)}, attr("axis", 1))
	parts := make([]string, len(order))
	for i, k := range order {
		parts[i] = blocks[k]
	}
	return x.op("Concat", parts, attr("axis", 1))
}

// sequence makes [B, S, D*H] of [S, D, B, H].
func (l layer) sequence(x *emission, y string) string {
	width := int64(-1)
	if n, ok := x.n.Types[0].Shape[2].Static(); ok { // which may stand beside a length of 0
		width = n
	}
	return x.op("Reshape", []string{x.op("Transpose", y, attr("perm", []int64{2, 0, 1, 3})), x.ints(0, 0, width)})
}

// attentionExports are attention and its position embeddings.
var attentionExports = map[string]exportRow{
	"Attention":   inF32(emitAttention).elseStatic(),
	"Rope":        inF32(emitRope).elseStatic(),
	"AxialRope2d": composedStatic(),
}

// emitAttention uses the operator, which is of set 23, for dims that are not known: nodes of any runtime compute it for those that are.
func emitAttention(x *emission, a *op.AttentionAttrs) []string {
	switch {
	case staticNode(x.n):
		return x.refuse("known dims")
	case x.has(4) || a.Mask == "sliding_window" || a.Mask == "causal" && a.Align != "top_left" && x.n.In[0].Type().Shape[2] != x.n.In[1].Type().Shape[2]:
		return x.refuse("a mask that the operator lacks, on dims that are not known")
	case x.has(3) && x.dtype(3) != ir.Bool && x.dtype(3) != x.dtype(0):
		return x.refuse("a bias of %s for queries of %s, on dims that are not known", x.dtype(3), x.dtype(0))
	}
	x.need(23)
	in := make([]string, 4)
	copy(in, x.in[:4])
	if a.Layout == "bshd" {
		for i := range 3 {
			in[i] = x.op("Transpose", in[i], attr("perm", []int64{0, 2, 1, 3}))
		}
	}
	attrs := []AttributeProto{attr("is_causal", a.Mask == "causal")}
	if a.Scale != 0 {
		attrs = append(attrs, attr("scale", a.Scale))
	}
	if a.Softcap > 0 {
		attrs = append(attrs, attr("softcap", a.Softcap))
	}
	if a.Layout == "bsd" {
		attrs = append(attrs, attr("q_num_heads", a.NumHeads), attr("kv_num_heads", a.KvHeads()))
	}
	y := x.op("Attention", in, attrs...)
	if a.Layout == "bshd" {
		y = x.op("Transpose", y, attr("perm", []int64{0, 2, 1, 3}))
	}
	return []string{y}
}

// emitRope is emitAttention for the rotary embedding.
func emitRope(x *emission, a *op.RopeAttrs) []string {
	d := x.dtype(0)
	switch {
	case staticNode(x.n):
		return x.refuse("known dims")
	case d == ir.F64 || x.dtype(1) != d || a.Layout == "bshd" || len(x.shape(1)) != 3 && !x.has(3) || x.has(3) && len(x.shape(3)) != 2:
		return x.refuse("tables or a layout that the operator lacks, on dims that are not known")
	}
	x.need(23)
	in := []string{x.in[0], x.in[1], x.in[2], ""}
	if x.has(3) {
		in[3] = x.cast(x.in[3], x.dtype(3), ir.I64)
	}
	attrs := []AttributeProto{attr("interleaved", a.Interleaved), attr("rotary_embedding_dim", a.RotaryDim)}
	if a.Layout == "bsd" {
		attrs = append(attrs, attr("num_heads", a.NumHeads))
	}
	return []string{x.op("RotaryEmbedding", in, attrs...)}
}

// signalExports are transforms.
var signalExports = map[string]exportRow{"Fft": inF32(emitFft).elseStatic()}

// emitFft writes complex values as a last axis of 2, where a block has the real parts in front of the imaginary ones.
func emitFft(x *emission, a *op.FftAttrs) []string {
	d, rank := x.dtype(0), len(x.shape(0))
	axis := wrapped(a.Axis, rank)
	length, entries := a.Length(x.shape(0)[axis])
	n, ok := length.Static()
	switch {
	case a.Layout != "block":
		return x.refuse(noComplex)
	case a.Real && a.Inverse:
		return x.refuse("an inverse transform to real numbers")
	case !ok && a.Factor(2) != 1 && !(a.Inverse && a.Norm == "backward"):
		return x.refuse("a factor that depends on dims that are not known")
	}
	last := x.ints(-1)
	parts := []string{x.in[0]}
	if !a.Real {
		m := x.dims([]ir.Dim{entries})
		parts = x.ops("Split", 2, []string{x.in[0], x.op("Concat", []string{m, m}, attr("axis", 0))}, attr("axis", axis))
	}
	for i := range parts {
		parts[i] = x.op("Unsqueeze", []string{parts[i], last})
	}
	in := parts[0]
	if len(parts) > 1 {
		in = x.op("Concat", parts, attr("axis", -1))
	}
	size := ""
	if a.NFft != 0 {
		size = x.constant("length", ir.Scalar(a.NFft))
	}
	attrs := []AttributeProto{attr("inverse", a.Inverse), attr("onesided", a.Real)}
	y := x.op("DFT", []string{in, size, x.constant("axis", ir.Scalar(int64(axis)))}, attrs...)
	y = x.op("Concat", x.halves(y), attr("axis", axis))
	// the operator divides an inverse transform by its length
	factor := a.Factor(max(n, 1))
	if a.Inverse {
		factor *= float64(max(n, 1))
	}
	if math.Abs(factor-1) > 1e-15 && ok {
		y = x.scaled(y, d, factor)
	}
	return []string{y}
}

// halves are the real and the imaginary parts of y, without the axis that told them apart.
func (x *emission) halves(y string) []string {
	parts := x.ops("Split", 2, y, attr("axis", -1), attr("num_outputs", 2))
	for i := range parts {
		parts[i] = x.op("Squeeze", []string{parts[i], x.ints(-1)})
	}
	return parts
}
