package onnx

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// attentionRows are attention and what prepares or replaces it.
var attentionRows = []row{
	{op: "Attention", since: 23, in: arity{3, 7}, build: buildAttention, attrs: []attrDecl{
		integer("is_causal", 0, 0, 1), {name: "kv_num_heads", kind: AttributeInt}, {name: "q_num_heads", kind: AttributeInt},
		integer("qk_matmul_output_mode", 0, 0, 1, 2, 3), {name: "scale", kind: AttributeFloat}, float("softcap", 0),
		{name: "softmax_precision", kind: AttributeInt}, integer("left_window_size", -1), integer("right_window_size", -1),
	}},
	{op: "RotaryEmbedding", since: 23, in: arity{3, 4}, build: buildRotary,
		attrs: []attrDecl{{name: "num_heads", kind: AttributeInt}, integer("rotary_embedding_dim", 0), integer("interleaved", 0, 0, 1)}},
	{op: "TensorScatter", since: 24, in: arity{2, 3}, attrs: []attrDecl{integer("axis", -2), str("mode", "linear", "circular")}, build: buildTensorScatter},
	{op: "LinearAttention", since: 27, in: arity{3, 6}, build: buildLinearAttention, attrs: []attrDecl{
		integer("chunk_size", 64), required(integer("kv_num_heads", 0)), required(integer("q_num_heads", 0)), float("scale", 0),
		str("update_rule", "gated_delta", "linear", "gated", "delta"),
	}},
	{op: "CausalConvWithState", since: 27, in: arity{2, 4}, attrs: []attrDecl{str("activation", "none", "silu", "swish")}, build: buildCausalConv},
}

// attention is softmax(softcap(scale q k^T) + bias) v with what may be seen of it on the way. Heads are on axis 1.
type attention struct {
	q, k, v     ir.Value
	mask        ir.Value // bool: true is kept; float: added
	kvLen       ir.Value // [B], the number of keys that count
	scale       float64  // 0 means 1/sqrt(D)
	softcap     float64  // 0: off
	causal      bool
	left, right int64    // window, -1: unbounded
	offset      ir.Value // [B] or [], position of the first query; absent: 0
	lastQuery   bool     // the last query stands at the last key
	sink        ir.Value // [H] or [], a score that takes its share of the softmax and has no value; absent: none
	scores      *ir.Value
	stage       string // of scores: "raw", "capped", "biased" or "softmax"
}

// fused is the attention as one node, where that says the same.
func (a attention) fused() (y ir.Value, ok bool) {
	at := op.AttentionAttrs{Scale: a.scale, Softcap: a.softcap, Align: "top_left"}
	if !a.offset.IsZero() { // bottom_right counts back from the last key
		at.Align = "bottom_right"
		if a.kvLen.IsZero() && !a.lastQuery {
			return y, false
		}
	}
	switch {
	case a.scores != nil, !a.sink.IsZero(), !a.causal && a.right > 0, a.left >= 0 && !a.causal && a.right < 0:
		return y, false
	case a.causal && a.right > 0 && a.left < 0, a.causal && a.left < 0, !a.causal && a.right == 0 && a.left < 0:
		at.Mask = "causal"
	case a.left >= 0:
		at.Mask, at.Window = "sliding_window", &a.left
	}
	mask := a.mask
	if !mask.IsZero() && mask.DType() != ir.Bool && mask.DType() != a.q.DType() {
		mask = op.Cast(mask, ir.F32)
	}
	return op.Attention(a.q, a.k, a.v, mask, a.kvLen, at), true
}

// iota is 0, 1, 2 ... as i64.
func (im *importer) iota(length ir.Dim) ir.Value { return im.iotaOf(ir.I64, length) }

// iotaOf is the running sum of ones, so that the length may be a symbol.
func (im *importer) iotaOf(d ir.DType, length ir.Dim) ir.Value {
	one := im.g.Constant(op.NumberAs(d, ir.IntNumber(1)))
	return op.CumsumWith(op.Expand(one, length), op.CumAttrs{Axis: 0, Exclusive: true})
}

// repeatHeads gives every query head a kv head of its own: 0,0,1,1.
func repeatHeads(x, q ir.Value) ir.Value {
	if x.Dim(1) == q.Dim(1) || x.Rank() != 4 {
		return x
	}
	b, kv, s, d := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	group := q.Dim(1).FloorDiv(kv)
	return op.Reshape(op.Expand(withAxis(x, 2), b, kv, group, s, d), b, q.Dim(1), s, d)
}

// build is the attention as one node, or as what it is made of.
func (a attention) build(n *node) ir.Value {
	if y, ok := a.fused(); ok {
		return y
	}
	return a.compose(n)
}

// byHeadSize is s times 1/sqrt of the size of q's heads.
func (n *node) byHeadSize(s, q ir.Value) ir.Value {
	if size, ok := q.Dim(3).Static(); ok {
		return op.Mul(s, 1/math.Sqrt(float64(size)))
	}
	return op.Mul(s, op.Rsqrt(castTo(n.lengthOf(q.Dim(3)), s.DType())))
}

// compose builds the attention out of products and a softmax. Scores are f32 at least.
func (a attention) compose(n *node) ir.Value {
	d := a.q.DType()
	wide := atLeastF32(d)
	see := func(stage string, s ir.Value) {
		if a.scores != nil && a.stage == stage {
			*a.scores = castTo(s, d)
		}
	}
	k, v := repeatHeads(a.k, a.q), repeatHeads(a.v, a.q)
	s := op.MatMul(castTo(a.q, wide), op.Transpose(castTo(k, wide), 0, 1, 3, 2))
	if a.scale == 0 {
		s = n.byHeadSize(s, a.q)
	} else {
		s = op.Mul(s, a.scale)
	}
	see("raw", s)
	if a.softcap > 0 {
		s = op.Mul(op.Tanh(op.Div(s, a.softcap)), a.softcap)
	}
	see("capped", s)
	if !a.mask.IsZero() {
		if a.mask.DType() == ir.Bool {
			s = op.Where(a.mask, s, math.Inf(-1))
		} else {
			s = op.Add(s, castTo(a.mask, wide))
		}
	}
	if keep := a.keep(n.im); !keep.IsZero() {
		s = op.Where(keep, s, math.Inf(-1))
	}
	see("biased", s)
	p := a.shares(s)
	empty := op.Eq(op.Reduce(s, "max", []int{3}, true), math.Inf(-1))
	p = op.Where(empty, 0, p)
	see("softmax", p)
	return castTo(op.MatMul(p, castTo(v, wide)), d)
}

// shares is the softmax of scores s, the sink being one more of them.
func (a attention) shares(s ir.Value) ir.Value {
	if a.sink.IsZero() {
		return op.Softmax(s, -1)
	}
	sink := castTo(a.sink, s.DType())
	if sink.Rank() == 1 {
		sink = op.Reshape(sink, ir.D(1), sink.Dim(0), ir.D(1), ir.D(1))
	}
	sink = op.Expand(sink, s.Dim(0), s.Dim(1), s.Dim(2), ir.D(1))
	return op.Slice(op.Softmax(op.Concat(3, s, sink), -1), ir.Dims(0), []ir.Dim{s.Dim(3)}, []int{3}, nil)
}

// keep is the positional mask, which broadcasts to [B, H, Sq, Sk]; absent if all keys count.
func (a attention) keep(im *importer) ir.Value {
	var keep ir.Value
	and := func(c ir.Value) { keep = combined(op.LogicalAnd[iv, iv], keep, c) }
	if !a.causal && a.left < 0 && a.right < 0 && a.kvLen.IsZero() {
		return keep
	}
	sq, sk := a.q.Dim(2), a.k.Dim(2)
	key := im.iota(sk)
	query := op.Reshape(im.iota(sq), sq, ir.D(1))
	if !a.offset.IsZero() {
		query = op.Add(query, batchColumn(a.offset))
	}
	if a.causal {
		and(op.Le(key, query))
	}
	if a.left >= 0 {
		and(op.Ge(key, op.Sub(query, a.left)))
	}
	if a.right >= 0 {
		and(op.Le(key, op.Add(query, a.right)))
	}
	if !a.kvLen.IsZero() {
		and(op.Lt(key, batchColumn(a.kvLen)))
	}
	return keep
}

// batchColumn is [B] as [B, 1, 1, 1] in i64.
func batchColumn(v ir.Value) ir.Value {
	v = castTo(v, ir.I64)
	if v.Rank() == 0 {
		return v
	}
	return op.Reshape(v, v.Dim(0), ir.D(1), ir.D(1), ir.D(1))
}

// heads is x [B, S, H*D] as [B, H, S, D]; a tensor of rank 4 is that already.
func heads(x ir.Value, count int64) ir.Value {
	if x.Rank() != 3 {
		return x
	}
	d := x.Dim(2).FloorDiv(ir.D(count))
	return op.Transpose(op.Reshape(x, x.Dim(0), x.Dim(1), ir.D(count), d), 0, 2, 1, 3)
}

// joined is the opposite of heads.
func joined(x ir.Value) ir.Value {
	if x.Rank() != 4 {
		return x
	}
	return op.Reshape(op.Transpose(x, 0, 2, 1, 3), x.Dim(0), x.Dim(2), x.Dim(1).Mul(x.Dim(3)))
}

func buildAttention(n *node) {
	for i := range 3 {
		n.rank(i, 3, 4)
	}
	n.rank(3, 0, 4)
	n.rank(4, 4, 4)
	n.rank(5, 4, 4)
	n.rank(6, 1, 1)
	in := n.firstVals(7)
	if !n.ok() {
		return
	}
	packed := in[0].Rank() == 3
	if (packed || in[1].Rank() == 3 || in[2].Rank() == 3) && (n.i("q_num_heads") < 1 || n.i("kv_num_heads") < 1) {
		n.fail("q_num_heads is %d and kv_num_heads %d, expected both for inputs of rank 3", n.i("q_num_heads"), n.i("kv_num_heads"))
		return
	}
	a := attention{
		q: heads(in[0], n.i("q_num_heads")), k: heads(in[1], n.i("kv_num_heads")), v: heads(in[2], n.i("kv_num_heads")),
		kvLen: in[6], scale: n.float("scale"), softcap: n.float("softcap"), causal: n.i("is_causal") == 1,
		left: n.i("left_window_size"), right: n.i("right_window_size"),
	}
	if n.has(4) && n.has(5) {
		a.offset, a.lastQuery = n.lengthOf(in[4].Dim(2)), a.k.Dim(2) == a.q.Dim(2)
		a.k, a.v = op.Concat(2, in[4], a.k), op.Concat(2, in[5], a.v)
	} else if n.has(6) {
		a.offset = op.Sub(castTo(in[6], ir.I64), n.lengthOf(a.q.Dim(2)))
	}
	a.mask = n.padMask(in[3], a.k.Dim(2))
	var scores ir.Value
	if n.wants(3) {
		names := []string{"raw", "capped", "biased", "softmax"}
		a.scores, a.stage = &scores, names[n.i("qk_matmul_output_mode")]
	}
	y := a.build(n)
	if packed {
		y = joined(y)
	}
	n.ret(y, a.k, a.v, scores)
}

// lengthOf is a dim as a scalar tensor.
func (n *node) lengthOf(d ir.Dim) ir.Value {
	return scalar(d).data(n.im.g)
}

// padMask fills a mask whose last dim is short of the keys: the rest is not attended.
func (n *node) padMask(mask ir.Value, keys ir.Dim) ir.Value {
	if mask.IsZero() || mask.Rank() == 0 || mask.Dim(-1) == keys || mask.Dim(-1).Is(1) {
		return mask
	}
	pads := make([]ir.Dim, 2*mask.Rank())
	pads[len(pads)-1] = keys.Sub(mask.Dim(-1))
	if mask.DType() == ir.Bool {
		return op.Pad(mask, pads, op.PadConstant, ir.IntNumber(0))
	}
	return op.Pad(mask, pads, op.PadConstant, ir.FloatNumber(math.Inf(-1)))
}

// rotary says how heads lie in x and which part of them turns.
func (n *node) rotary(x ir.Value) op.RopeAttrs {
	a := op.RopeAttrs{Layout: "bhsd", RotaryDim: n.i("rotary_embedding_dim"), Interleaved: n.i("interleaved") == 1}
	if x.Rank() == 3 {
		a.Layout, a.NumHeads = "bsd", n.i("num_heads")
	}
	return a
}

func buildRotary(n *node) {
	x, cos, sin, positions := n.val(0), n.val(1), n.val(2), n.val(3)
	if n.ok() {
		n.ret(op.Rope(x, cos, sin, positions, n.rotary(x)))
	}
}

// buildTensorScatter writes update along axis from a place of each batch on.
func buildTensorScatter(n *node) {
	n.rank(0, 2, ir.MaxRank)
	n.rank(1, len(n.typ(0).Shape), len(n.typ(0).Shape))
	n.rank(2, 1, 1)
	cache, update, start := n.val(0), n.val(1), n.val(2)
	if !n.ok() {
		return
	}
	axis := n.axis("axis", cache.Rank())
	if n.ok() && axis == 0 {
		n.fail("axis is the batch")
	}
	if !n.ok() {
		return
	}
	at := laid(n.im.iota(update.Dim(axis)), axis, cache.Rank())
	if n.has(2) {
		at = op.Add(at, laid(castTo(start, ir.I64), 0, cache.Rank()))
	}
	if n.s("mode") == "circular" {
		at = op.FloorMod(at, op.Reshape(n.lengthOf(cache.Dim(axis)), ir.D(1)))
	}
	n.ret(op.ScatterElements(cache, op.Expand(at, update.Shape()...), update, axis, op.ScatterNone))
}

func ones(n int) []int64 { return slices.Repeat([]int64{1}, n) }

// laid is v [D] as the given axis of a tensor whose other dims are 1, so that it broadcasts along that axis.
func laid(v ir.Value, axis, rank int) ir.Value {
	shape := ir.Dims(ones(rank)...)
	shape[axis] = v.Dim(0)
	return op.Reshape(v, shape...)
}

// buildCausalConv convolves each channel with what came before: the state of the last call, or zeros.
func buildCausalConv(n *node) {
	n.rank(0, 3, 3)
	n.rank(1, 3, 3)
	n.rank(3, 3, 3)
	x, w, bias, past := n.val(0), n.val(1), n.val(2), n.val(3)
	if !n.ok() {
		return
	}
	k, ok := w.Dim(2).Static()
	groups, ok2 := w.Dim(0).Static()
	if !ok || !ok2 || k < 1 {
		n.refuse("", "the weights have shape %s, expected a known one", ir.ShapeText(w.Shape()))
		return
	}
	all := x
	if n.has(3) {
		all = op.Concat(2, past, x)
	} else if k > 1 {
		all = op.Pad(x, []ir.Dim{{}, {}, ir.D(k - 1), {}, {}, {}}, op.PadConstant, ir.IntNumber(0))
	}
	y := op.Conv1d(all, w, bias, op.ConvAttrs{AutoPad: "none", Groups: groups})
	if n.s("activation") != "none" {
		y = op.Silu(y)
	}
	size := all.Dim(2)
	n.ret(y, op.Slice(all, []ir.Dim{size.Sub(ir.D(k - 1))}, []ir.Dim{size}, []int{2}, nil))
}

// buildLinearAttention runs the recurrence token by token: S = decay S + k (v - ...)^T, o = scale q^T S.
func buildLinearAttention(n *node) {
	for _, i := range []int{0, 1, 2, 4, 5} {
		n.rank(i, 3, 3)
	}
	n.rank(3, 4, 4)
	in := n.firstVals(6)
	if !n.ok() {
		return
	}
	rule, hq, hkv := n.s("update_rule"), n.i("q_num_heads"), n.i("kv_num_heads")
	steps, dk := n.checkLinear(rule, hq, hkv, in[0])
	if !n.ok() || !n.spend(steps) {
		return
	}
	d := in[0].DType()
	wide := ir.F32
	if d == ir.F64 {
		wide = d
	}
	q, k, v := castTo(heads(in[0], hq), wide), castTo(heads(in[1], hkv), wide), castTo(heads(in[2], hkv), wide)
	scale := n.float("scale")
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(dk))
	}
	batch, dv := in[0].Dim(0), v.Dim(3)
	state := castTo(in[3], wide)
	if !n.has(3) {
		state = op.Expand(n.im.g.Constant(op.NumberAs(wide, ir.IntNumber(0))), batch, ir.D(hkv), ir.D(dk), dv)
	}
	// token t of x [B, H, T, D] as a column [B, H, D, 1]
	column := func(x ir.Value, t int64) ir.Value {
		return op.Reshape(pick(x, 2, t), x.Dim(0), x.Dim(1), x.Dim(3), ir.D(1))
	}
	var out []ir.Value
	for t := range steps {
		if rule == "gated" || rule == "gated_delta" {
			state = op.Mul(op.Exp(column(castTo(heads(in[4], hkv), wide), t)), state)
		}
		kt, vt := column(k, t), op.Transpose(column(v, t), 0, 1, 3, 2)
		if rule == "delta" || rule == "gated_delta" {
			vt = op.Sub(vt, op.MatMul(op.Transpose(kt, 0, 1, 3, 2), state))
			count, known := in[5].Dim(2).Static()
			if !known {
				n.refuse("", "beta has shape %s, expected a known one", ir.ShapeText(in[5].Shape()))
				return
			}
			vt = op.Mul(vt, column(castTo(heads(in[5], count), wide), t))
		}
		state = op.Add(state, op.Mul(kt, vt))
		qt := op.Transpose(column(q, t), 0, 1, 3, 2)
		y := op.Mul(op.MatMul(qt, repeatHeads(state, q)), scale)
		out = append(out, y)
	}
	n.ret(castTo(joined(op.Concat(2, out...)), d), castTo(state, n.stateType(in)))
}

// checkLinear wants what a rule needs, and gives the number of tokens and the size of a query head.
func (n *node) checkLinear(rule string, hq, hkv int64, q ir.Value) (steps, size int64) {
	steps, ok := q.Dim(1).Static()
	size, ok2 := q.Dim(2).FloorDiv(ir.D(max(hq, 1))).Static()
	switch {
	case hq < 1 || hkv < 1 || hq%hkv != 0:
		n.fail("q_num_heads is %d and kv_num_heads %d, expected a multiple", hq, hkv)
	case !ok || !ok2:
		n.refuse("", "query has shape %s, expected a known length", ir.ShapeText(q.Shape()))
	case (rule == "gated" || rule == "gated_delta") && !n.has(4):
		n.fail("update_rule %s without decay", rule)
	case (rule == "delta" || rule == "gated_delta") && !n.has(5):
		n.fail("update_rule %s without beta", rule)
	}
	return steps, size
}

// stateType is the dtype of the state of a LinearAttention: that of the past one, or of the operands.
func (n *node) stateType(in []ir.Value) ir.DType {
	if n.has(3) {
		return in[3].DType()
	}
	return in[0].DType()
}
