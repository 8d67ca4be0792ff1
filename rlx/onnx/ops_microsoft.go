package onnx

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

const microsoft = "com.microsoft"

// microsoftRows are the operators that ONNX Runtime's optimizer and exporters write. Source: its contrib operator documents.
var microsoftRows = []row{
	ms(unary("Gelu", 1, op.Gelu)),
	ms(activation("QuickGelu", 1, func(x iv, p []float64) iv { return op.GeluQuick(x, p[0]) }, float("alpha", 1.702))),
	{domain: microsoft, op: "FastGelu", since: 1, in: arity{1, 2}, build: buildBiased(op.GeluTanh)},
	{domain: microsoft, op: "BiasGelu", since: 1, in: arity{2, 2}, build: buildBiased(op.Gelu)},
	{domain: microsoft, op: "FusedMatMul", since: 1, in: arity{2, 2}, build: buildFusedMatMul, attrs: []attrDecl{
		float("alpha", 1), integer("transA", 0), integer("transB", 0), integer("transBatchA", 0), integer("transBatchB", 0),
	}},
	{domain: microsoft, op: "SkipLayerNormalization", since: 1, in: arity{3, 5}, build: buildSkipLayerNorm, attrs: []attrDecl{float("epsilon", 1e-12)}},
	{domain: microsoft, op: "SkipSimplifiedLayerNormalization", since: 1, in: arity{3, 4}, build: buildSkipRmsNorm, attrs: []attrDecl{float("epsilon", 1e-12)}},
	{op: "SimplifiedLayerNormalization", since: 1, in: arity{2, 2}, build: buildSimplified, attrs: simplifiedAttrs},
	{domain: microsoft, op: "SimplifiedLayerNormalization", since: 1, in: arity{2, 2}, build: buildSimplified, attrs: simplifiedAttrs},
	{domain: microsoft, op: "RotaryEmbedding", since: 1, in: arity{4, 4}, build: buildMsRotary, attrs: []attrDecl{
		integer("interleaved", 0, 0, 1), integer("num_heads", 0), integer("rotary_embedding_dim", 0), float("scale", 1), integer("is_packed_batching", 0, 0),
	}},
	{domain: microsoft, op: "MatMulNBits", since: 1, in: arity{3, 6}, build: buildMatMulNBits, attrs: []attrDecl{
		required(integer("K", 0)), required(integer("N", 0)), integer("bits", 4, 2, 4, 8), required(integer("block_size", 0)), integer("accuracy_level", 0),
	}},
	{domain: microsoft, op: "DynamicQuantizeMatMul", since: 1, in: arity{3, 5}, build: buildDynamicQuantizeMatMul},
	{domain: microsoft, op: "MatMulIntegerToFloat", since: 1, in: arity{4, 7}, build: buildMatMulIntegerToFloat},
	{domain: microsoft, op: "Attention", since: 1, in: arity{2, 7}, build: buildMsAttention, attrs: []attrDecl{
		required(integer("num_heads", 0)), integer("unidirectional", 0, 0, 1), integers("qkv_hidden_sizes"), float("mask_filter_value", -10000),
		{name: "scale", kind: AttributeFloat}, integer("do_rotary", 0, 0), integer("rotary_embedding_dim", 0), integer("past_present_share_buffer", 0, 0),
	}},
	{domain: microsoft, op: "MultiHeadAttention", since: 1, in: arity{1, 8}, build: buildMultiHead, attrs: []attrDecl{
		required(integer("num_heads", 0)), integer("unidirectional", 0, 0, 1), float("mask_filter_value", -10000), {name: "scale", kind: AttributeFloat},
	}},
	{domain: microsoft, op: "GroupQueryAttention", since: 1, in: arity{1, 12}, build: buildGroupQuery, attrs: []attrDecl{
		required(integer("num_heads", 0)), required(integer("kv_num_heads", 0)), {name: "scale", kind: AttributeFloat}, float("softcap", 0),
		integer("do_rotary", 0, 0, 1), integer("rotary_interleaved", 0, 0, 1), integer("local_window_size", -1), integer("smooth_softmax", 0, 0, 1),
	}},
}

var simplifiedAttrs = []attrDecl{integer("axis", -1), float("epsilon", 1e-5), integer("stash_type", 1, 1)}

func ms(r row) row {
	r.domain = microsoft
	return r
}

// buildBiased reads fn(x + bias).
func buildBiased(fn func(ir.Value) ir.Value) func(n *node) {
	return func(n *node) {
		x, bias := n.val(0), n.val(1)
		if !n.ok() {
			return
		}
		if n.has(1) {
			x = op.Add(x, bias)
		}
		n.ret(fn(x))
	}
}

// buildFusedMatMul is alpha * a b with the last two axes swapped, or the first moved behind all but the last, as the attributes say.
func buildFusedMatMul(n *node) {
	a, b := n.val(0), n.val(1)
	if !n.ok() {
		return
	}
	a, b = turned(a, n.i("transA") != 0, n.i("transBatchA") != 0), turned(b, n.i("transB") != 0, n.i("transBatchB") != 0)
	n.ret(scaled(n, op.MatMul(a, b), "alpha"))
}

func turned(x ir.Value, last, batch bool) ir.Value {
	r := x.Rank()
	if r < 2 || !last && !batch {
		return x
	}
	perm := interval(0, r)
	if batch && r > 2 { // [M, B.., K] to [B.., M, K]
		copy(perm, perm[1:r-1])
		perm[r-2] = 0
	}
	if last {
		perm[r-1], perm[r-2] = perm[r-2], perm[r-1]
	}
	return op.Transpose(x, perm...)
}

// residual is the operand that is added, which may lack the batch.
func (n *node) residual(x ir.Value) ir.Value {
	skip := n.val(1)
	if n.ok() && !slices.Equal(skip.Shape(), x.Shape()) {
		return op.Expand(skip, x.Shape()...)
	}
	return skip
}

// buildSkipLayerNorm gives no outputs 1 and 2, mean and inverse deviation.
func buildSkipLayerNorm(n *node) {
	x, gamma, beta, bias := n.val(0), n.val(2), n.val(3), n.val(4)
	if !n.ok() {
		return
	}
	y, sum := op.FusedResidualLN(x, n.residual(x), bias, gamma, beta, -1, n.float("epsilon"))
	n.ret(y, ir.Value{}, ir.Value{}, sum)
}

func buildSkipRmsNorm(n *node) {
	x, gamma, bias := n.val(0), n.val(2), n.val(3)
	if !n.ok() {
		return
	}
	y, sum := op.FusedResidualRmsNorm(x, n.residual(x), bias, gamma, ir.Value{}, -1, n.float("epsilon"))
	n.ret(y, ir.Value{}, ir.Value{}, sum)
}

// buildSimplified is RMSNormalization, with the inverse of the root as a second result.
func buildSimplified(n *node) {
	buildRmsNorm(n)
	x := n.val(0)
	if !n.wants(1) || !n.ok() {
		return
	}
	wide := castTo(x, atLeastF32(x.DType()))
	square := op.Reduce(op.Mul(wide, wide), "mean", interval(n.axis("axis", x.Rank()), x.Rank()), true)
	n.ret(ir.Value{}, op.Rsqrt(op.Add(square, n.float("epsilon"))))
}

// buildMsRotary takes positions [B, S], or the position of the first token.
func buildMsRotary(n *node) {
	x, positions, cos, sin := n.val(0), n.val(1), n.val(2), n.val(3)
	if !n.ok() {
		return
	}
	a := n.rotary(x)
	tokens := x.Dim(-2)
	if a.Layout == "bsd" {
		tokens = x.Dim(1)
		if a.NumHeads == 0 { // heads as wide as the table says
			width := cos.Dim(1).Mul(ir.D(2))
			count, ok := x.Dim(2).FloorDiv(width).Static()
			if !ok || a.RotaryDim != 0 {
				n.refuse("num_heads", "absent for an input of shape %s", ir.ShapeText(x.Shape()))
				return
			}
			a.NumHeads = count
		}
	}
	if positions.Rank() == 1 {
		positions = op.Add(op.Reshape(castTo(positions, ir.I64)), n.im.iota(tokens))
	}
	if s := n.float("scale"); s != 1 {
		positions = op.Cast(op.Mul(op.Cast(positions, ir.F32), s), ir.I64)
	}
	n.ret(op.Rope(x, cos, sin, positions, a))
}

// buildMatMulNBits multiplies by weights [N, blocks, bytes] of 2, 4 or 8 bits, the low bits of a byte first, less a zero point, times the
// scale of their block.
func buildMatMulNBits(n *node) {
	x, w, scales, zeros, bias := n.val(0), n.val(1), n.val(2), n.val(3), n.val(5)
	if n.has(4) {
		n.refuse("", "input 4 (g_idx) is not supported")
	}
	if !n.ok() {
		return
	}
	k, cols, bits, block := n.i("K"), n.i("N"), n.i("bits"), n.i("block_size")
	if k < 1 || k > 1<<31 || cols < 1 || cols > 1<<31 || block > 1<<20 || block < 16 || block&(block-1) != 0 {
		n.fail("K is %d, N %d and block_size %d, expected positive ones and a power of two from 16 on", k, cols, block)
		return
	}
	blocks := (k + block - 1) / block
	scales = op.ReshapeInts(castTo(scales, ir.F32), cols, blocks)
	switch {
	case !n.has(3):
	case ir.Float.Has(zeros.DType()):
		zeros = op.ReshapeInts(castTo(zeros, ir.F32), cols, blocks)
	default:
		zeros = unpacked(op.ReshapeInts(zeros, cols, (blocks*bits+7)/8), bits)
		zeros = op.Cast(op.Slice(zeros, ir.Dims(0), ir.Dims(blocks), []int{1}, nil), ir.F32)
	}
	if w = op.ReshapeInts(w, cols, blocks, block*bits/8); !n.ok() {
		return
	}
	a := op.DequantMatMulAttrs{Scheme: "int4_block", BlockSize: block, WLayout: "nk"}
	if bits != 4 { // a byte for each code
		a.Scheme = "int8_block_asym"
		w = op.Slice(op.ReshapeInts(unpacked(w, bits), cols, blocks*block), ir.Dims(0), ir.Dims(k), []int{1}, nil)
		if !n.has(3) {
			zeros = op.Expand(n.im.g.Constant(ir.Scalar(float32(int(1)<<(bits-1)))), scales.Shape()...)
		}
	}
	y := op.DequantMatMul(x, w, scales, zeros, a)
	if n.has(5) {
		y = op.Add(y, bias)
	}
	n.ret(y)
}

// unpacked gives each code of a byte an element of its own on the last axis.
func unpacked(x ir.Value, bits int64) ir.Value {
	if bits == 8 {
		return x
	}
	var parts []ir.Value
	for shift := int64(0); shift < 8; shift += bits {
		part := x
		if shift > 0 {
			part = op.Shr(x, shift)
		}
		parts = append(parts, withAxis(op.BitAnd(part, 1<<bits-1), x.Rank()))
	}
	shape := append([]ir.Dim{}, x.Shape()...)
	if len(shape) == 0 { // of a value that could not be made
		return x
	}
	shape[len(shape)-1] = x.Dim(-1).Mul(ir.D(8 / bits))
	return op.Reshape(op.Concat(x.Rank(), parts...), shape...)
}

// perColumn multiplies sums in i32 by the scales of the operands and adds a bias.
func (n *node) perColumn(acc, as, bs, bias ir.Value) {
	scale := op.Mul(op.Reshape(as), bs)
	y := op.Mul(op.Cast(acc, ir.F32), castTo(scale, ir.F32))
	if !bias.IsZero() {
		y = op.Add(y, bias)
	}
	n.ret(y)
}

func buildDynamicQuantizeMatMul(n *node) {
	x, b, bs, bias := n.val(0), n.val(1), n.val(2), n.val(4)
	if !n.ok() {
		return
	}
	a, as, az := dynamicQuantize(x, ir.U8)
	acc := op.MatMul(op.Sub(op.Cast(a, ir.I32), op.Cast(az, ir.I32)), n.centered(b, 3, b.Rank()-1))
	n.perColumn(acc, as, bs, bias)
}

func buildMatMulIntegerToFloat(n *node) {
	a, b, as, bs, bias := n.val(0), n.val(1), n.val(2), n.val(3), n.val(6)
	if n.ok() {
		n.perColumn(n.integerProduct(a, b, 4, 5), as, bs, bias)
	}
}

// fillMask adds attribute mask_filter_value where a mask, which broadcasts to [B, 1, Sq, Sk], is 0.
func (n *node) fillMask(mask ir.Value, d ir.DType) ir.Value {
	off := op.Expand(n.im.g.Constant(op.NumberAs(d, ir.FloatNumber(n.float("mask_filter_value")))))
	return op.Where(op.Eq(mask, 0), off, 0)
}

// keyMask reads a mask [B, keys] or [B, Sq, keys] of 0 and 1, the number [B] of keys that count, or [2 B] where the keys that count end
// and begin.
func (n *node) keyMask(i int, a *attention) {
	if !n.has(i) {
		return
	}
	mask := n.val(i)
	if !n.ok() {
		return
	}
	if ir.Bool == mask.DType() {
		mask = op.Cast(mask, ir.I32)
	}
	switch mask.Rank() {
	case 1:
		batch, count := a.q.Dim(0), mask.Dim(0)
		at := op.Reshape(n.im.iota(a.k.Dim(2)), ir.D(1), ir.D(1), ir.D(1), a.k.Dim(2))
		var keep ir.Value
		switch {
		case count == batch.Mul(ir.D(2)):
			end := op.Slice(mask, ir.Dims(0), []ir.Dim{batch}, []int{0}, nil)
			begin := op.Slice(mask, []ir.Dim{batch}, []ir.Dim{count}, []int{0}, nil)
			keep = op.LogicalAnd(op.Lt(at, batchColumn(end)), op.Ge(at, batchColumn(begin)))
		case count.IsStatic() && batch.IsStatic() && count != batch:
			n.refuse("", "input %d of shape %s, expected one length for each of %s batch items", i, ir.ShapeText(mask.Shape()), batch)
			return
		default:
			keep = op.Lt(at, batchColumn(mask))
		}
		a.addBias(n.fillMask(op.Cast(keep, ir.I32), a.q.DType()))
	case 2:
		a.addBias(n.fillMask(op.Reshape(mask, mask.Dim(0), ir.D(1), ir.D(1), mask.Dim(1)), a.q.DType()))
	case 3:
		a.addBias(n.fillMask(withAxis(mask, 1), a.q.DType()))
	case 4:
		a.addBias(n.fillMask(mask, a.q.DType()))
	}
}

func (a *attention) addBias(b ir.Value) { a.mask = combined(op.Add[iv, iv], a.mask, b) }

// buildMsAttention projects x by one matrix to query, key and value.
func buildMsAttention(n *node) {
	x, w, bias, past, extra := n.val(0), n.val(1), n.val(2), n.val(4), n.val(5)
	if n.has(6) {
		n.refuse("", "input 6 (past_sequence_length) is not supported")
	}
	if !n.ok() {
		return
	}
	y := op.MatMul(x, w)
	if n.has(2) {
		y = op.Add(y, bias)
	}
	n.attendProjected(y, w.Dim(1), n.intList("qkv_hidden_sizes"), 3, past, extra)
}

// attendProjected attends with query, key and value side by side on the last axis of y, in thirds unless sizes says otherwise. Input mask
// says which keys count, past are keys and values [2, B, H, P, D], extra is added to the scores.
func (n *node) attendProjected(y ir.Value, width ir.Dim, sizes []int64, mask int, past, extra ir.Value) {
	count := n.i("num_heads")
	if sizes == nil {
		third, ok := width.Static()
		if !ok {
			n.refuse("", "weights with %s columns, expected a known number", width)
			return
		}
		sizes = []int64{third / 3, third / 3, third / 3}
	}
	if len(sizes) != 3 || count < 1 {
		n.fail("qkv_hidden_sizes %v and num_heads %d", sizes, count)
		return
	}
	part := func(i int) ir.Value {
		from := int64(0)
		for _, s := range sizes[:i] {
			from += s
		}
		return heads(op.Slice(y, ir.Dims(from), ir.Dims(from+sizes[i]), []int{2}, nil), count)
	}
	a := attention{q: part(0), k: part(1), v: part(2), scale: n.float("scale"), causal: n.i("unidirectional") == 1, left: -1, right: -1}
	if !past.IsZero() {
		a.offset, a.lastQuery = n.lengthOf(past.Dim(3)), true
		a.k, a.v = op.Concat(2, pick(past, 0, 0), a.k), op.Concat(2, pick(past, 0, 1), a.v)
	}
	n.keyMask(mask, &a)
	if !extra.IsZero() {
		a.addBias(extra)
	}
	if !n.ok() {
		return
	}
	var present ir.Value
	if n.wants(1) {
		present = op.Concat(0, withAxis(a.k, 0), withAxis(a.v, 0))
	}
	n.ret(joined(a.build(n)), present)
}

// buildMultiHead takes query, key and value apart: [B, S, H*D], or key and value as [B, H, S, D].
func buildMultiHead(n *node) {
	in := n.firstVals(8)
	if !n.ok() {
		return
	}
	count := n.i("num_heads")
	switch {
	case !n.has(1) && in[0].Rank() == 5: // [B, S, H, 3, D]
		x := in[0]
		for i := range 3 {
			in[i] = joined(op.Transpose(pick(x, 3, int64(i)), 0, 2, 1, 3))
		}
	case n.has(1) && !n.has(2) && in[1].Rank() == 5: // [B, S, H, 2, D]
		x := in[1]
		in[1], in[2] = op.Transpose(pick(x, 3, 0), 0, 2, 1, 3), op.Transpose(pick(x, 3, 1), 0, 2, 1, 3)
	case !n.has(1) || !n.has(2):
		n.fail("key or value is missing")
		return
	}
	if in[0].Rank() != 3 || count < 1 {
		n.fail("query has rank %d and num_heads is %d, expected 3 and a positive one", in[0].Rank(), count)
		return
	}
	if n.has(3) {
		from := ir.D(0)
		for i := range 3 {
			if in[i].Rank() == 3 {
				in[i] = op.Add(in[i], op.Slice(in[3], []ir.Dim{from}, []ir.Dim{from.Add(in[i].Dim(2))}, []int{0}, nil))
				from = from.Add(in[i].Dim(2))
			}
		}
	}
	a := attention{
		q: heads(in[0], count), k: heads(in[1], count), v: heads(in[2], count), scale: n.float("scale"), causal: n.i("unidirectional") == 1, left: -1, right: -1,
	}
	if n.has(6) && n.has(7) {
		a.offset, a.lastQuery = n.lengthOf(in[6].Dim(2)), a.k.Dim(2) == a.q.Dim(2)
		a.k, a.v = op.Concat(2, in[6], a.k), op.Concat(2, in[7], a.v)
	}
	n.keyMask(4, &a)
	if n.has(5) {
		a.addBias(in[5])
	}
	if n.ok() {
		n.ret(joined(a.build(n)), a.k, a.v)
	}
}

// buildGroupQuery appends keys and values to a cache, turns query and key, and attends. Tokens stand behind those of the cache that count:
// seqlens_k is the number of valid keys less one.
func buildGroupQuery(n *node) {
	in := n.firstVals(12)
	switch rotary := n.i("do_rotary") == 1; {
	case !n.has(5) || n.has(1) != n.has(2) || n.has(3) != n.has(4) || rotary && !(n.has(7) && n.has(8)):
		n.fail("inputs 5 (seqlens_k), key and value, past_key and past_value, cos_cache and sin_cache: one is missing")
	}
	if !n.ok() {
		return
	}
	h, kv := n.i("num_heads"), n.i("kv_num_heads")
	if h < 1 || kv < 1 || h%kv != 0 {
		n.fail("num_heads is %d and kv_num_heads %d", h, kv)
		return
	}
	q, k, v := in[0], in[1], in[2]
	if !n.has(1) { // packed
		width := q.Dim(2).FloorDiv(ir.D(h + 2*kv))
		cut := func(from, to int64) ir.Value {
			return op.Slice(q, []ir.Dim{width.Mul(ir.D(from))}, []ir.Dim{width.Mul(ir.D(to))}, []int{2}, nil)
		}
		q, k, v = cut(0, h), cut(h, h+kv), cut(h+kv, h+2*kv)
	}
	q, k, v = heads(q, h), heads(k, kv), heads(v, kv)
	tokens := q.Dim(2)
	valid := op.Add(castTo(op.Reshape(in[5], q.Dim(0)), ir.I64), 1) // [B]
	first := op.Sub(valid, n.lengthOf(tokens))
	if !n.has(3) { // a prompt, whose end may be padding
		first = op.Mul(valid, 0)
	}
	if n.i("do_rotary") == 1 {
		positions := in[9]
		if !n.has(9) {
			positions = op.Max(op.Add(op.Reshape(first, q.Dim(0), ir.D(1)), n.im.iota(tokens)), 0)
		}
		a := op.RopeAttrs{Layout: "bhsd", Interleaved: n.i("rotary_interleaved") == 1}
		if half, ok := in[7].Dim(1).Static(); ok {
			a.RotaryDim = 2 * half
		}
		q, k = op.Rope(q, in[7], in[8], positions, a), op.Rope(k, in[7], in[8], positions, a)
	}
	a := attention{q: q, k: k, v: v, kvLen: valid, scale: n.float("scale"), softcap: n.float("softcap"), causal: true, left: -1, right: -1}
	if n.has(3) {
		a.k, a.v = n.append(in[3], k, first), n.append(in[4], v, first)
		a.offset, a.lastQuery = first, true
	}
	if w := n.i("local_window_size"); w > 0 {
		a.left = w - 1
	}
	if n.has(10) {
		a.mask = in[10]
	}
	if a.sink = in[11]; a.sink.IsZero() && n.i("smooth_softmax") == 1 {
		a.sink = n.im.g.Constant(ir.Scalar(float32(0)))
	}
	n.ret(joined(a.build(n)), a.k, a.v)
}

// append writes rows [B, H, S, D] behind the first valid rows [B] of a cache [B, H, P, D], which grows by as many.
func (n *node) append(cache, rows, first ir.Value) ir.Value {
	pads := make([]ir.Dim, 8)
	pads[6] = rows.Dim(2)
	grown := op.Pad(cache, pads, op.PadConstant, ir.IntNumber(0))
	at := op.Add(op.Reshape(first, first.Dim(0), ir.D(1), ir.D(1), ir.D(1)), op.Reshape(n.im.iota(rows.Dim(2)), rows.Dim(2), ir.D(1)))
	return op.ScatterElements(grown, op.Expand(at, rows.Shape()...), rows, 2, op.ScatterNone)
}
