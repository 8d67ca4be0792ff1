package onnx

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// qlinearRows are operators of com.microsoft on codes of 8 bits that ONNX Runtime's quantizer writes. They are what their names say of the
// numbers that the codes stand for, rounded to codes again.
var qlinearRows = []row{
	ms(row{op: "QuantizeLinear", since: 1, in: arity{2, 3}, build: buildQuantize, attrs: quantizeAttrs}),
	ms(row{op: "DequantizeLinear", since: 1, in: arity{2, 3}, build: buildDequantize, attrs: dequantizeAttrs}),
	ms(row{op: "QLinearAdd", since: 1, in: arity{7, 8}, build: buildQLinearBinary(op.Add[iv, iv])}),
	ms(row{op: "QLinearMul", since: 1, in: arity{7, 8}, build: buildQLinearBinary(op.Mul[iv, iv])}),
	qlinearUnary("QLinearSigmoid", func(_ *node, x ir.Value) ir.Value { return op.Sigmoid(x) }),
	qlinearUnary("QLinearLeakyRelu", func(n *node, x ir.Value) ir.Value { return op.LeakyRelu(x, n.float("alpha")) }, float("alpha", 0.01)),
	qlinearUnary("QLinearSoftmax", qlinearSoftmax, integer("axis", -1), required(integer("opset", 0))),
	qlinearUnary("QLinearGlobalAveragePool", channelsFirst(func(n *node, x ir.Value) ir.Value { return n.globalPool(x, "mean") }), integer("channels_last", 0, 0, 1)),
	qlinearUnary("QLinearAveragePool", channelsFirst(func(n *node, x ir.Value) ir.Value { return n.pool(x, "avg") }),
		append(windowAttrs(), integer("count_include_pad", 0), integer("channels_last", 0, 0, 1))...),
	ms(row{op: "QLinearConcat", since: 1, in: arity{5, many}, attrs: []attrDecl{required(integer("axis", 0))}, build: buildQLinearConcat}),
	ms(row{op: "QLinearWhere", since: 1, in: arity{9, 9}, build: buildQLinearWhere}),
	ms(row{op: "QGemm", since: 1, in: arity{6, 9}, build: buildQGemm, attrs: []attrDecl{float("alpha", 1), integer("transA", 0), integer("transB", 0)}}),
	ms(row{op: "QAttention", since: 1, in: arity{5, 9}, build: buildQAttention, attrs: []attrDecl{
		required(integer("num_heads", 0)), integer("unidirectional", 0, 0, 1), float("mask_filter_value", -10000), {name: "scale", kind: AttributeFloat},
		integer("do_rotary", 0, 0), integer("past_present_share_buffer", 0, 0),
	}}),
	ms(row{op: "DynamicQuantizeLSTM", since: 1, in: arity{3, 12}, build: buildDynamicLSTM, attrs: append(recurrentAttrs(), integer("input_forget", 0, 0, 1))}),
	ms(row{op: "QEmbedLayerNormalization", since: 1, in: arity{1, 18}, build: buildQEmbed, attrs: []attrDecl{float("epsilon", 1e-12)}}),
	ms(row{op: "GatherBlockQuantized", since: 1, in: arity{3, 4}, build: buildGatherBlocks, attrs: []attrDecl{
		integer("bits", 4, 4, 8), integer("block_size", 128), integer("gather_axis", 0), integer("quantize_axis", 1),
	}}),
	ms(row{op: "NhwcMaxPool", since: 1, in: arity{1, 1}, attrs: windowAttrs(), build: func(n *node) {
		if x := n.val(0); n.ok() && x.Rank() > 2 {
			n.ret(channelsBack(n.pool(channelsAhead(x), "max")))
		}
	}}),
}

// numbers is what the codes of input i stand for, given inputs i+1 and i+2, a scale and a zero point for all of them.
func (n *node) numbers(i int) ir.Value { return n.numbersOf(n.val(i), i+1, i+2) }

func (n *node) numbersOf(q ir.Value, scale, zero int) ir.Value {
	if !n.has(scale) {
		n.fail("input %d, a scale, is missing", scale)
	}
	s, z := n.val(scale), n.val(zero)
	if !n.ok() {
		return ir.Value{}
	}
	if n.has(zero) {
		z = op.Reshape(z)
	}
	return op.Dequantize(q, op.Reshape(s), z, op.DequantizeAttrs{Dtype: ir.F32})
}

// retCodes rounds x to codes with the scale and zero point of inputs i and i+1. Without a zero point they are those of d around 0.
func (n *node) retCodes(x ir.Value, i int, d ir.DType) {
	s, z := n.val(i), n.val(i+1)
	if !n.ok() {
		return
	}
	if n.has(i + 1) {
		z, d = op.Reshape(z), z.DType()
	}
	n.ret(op.Quantize(x, op.Reshape(s), z, op.QuantizeAttrs{Dtype: d}))
}

// qlinearUnary declares an operator with inputs X, its scale and zero point, and those of the result.
func qlinearUnary(name string, fn func(n *node, x ir.Value) ir.Value, attrs ...attrDecl) row {
	return ms(row{op: name, since: 1, in: arity{4, 5}, attrs: attrs, build: func(n *node) {
		if x := n.numbers(0); n.ok() {
			if y := fn(n, x); n.ok() {
				n.retCodes(y, 3, n.typ(0).DType)
			}
		}
	}})
}

func buildQLinearBinary(fn func(a, b ir.Value) ir.Value) func(n *node) {
	return func(n *node) {
		if a, b := n.numbers(0), n.numbers(3); n.ok() {
			n.retCodes(fn(a, b), 6, n.typ(0).DType)
		}
	}
}

// qlinearSoftmax follows the operator set that attribute opset names: before 13 all axes from axis on count as one.
func qlinearSoftmax(n *node, x ir.Value) ir.Value {
	axis, shape := n.axis("axis", x.Rank()), x.Shape()
	if n.i("opset") >= 13 || axis == x.Rank()-1 || !n.ok() {
		return op.Softmax(x, axis)
	}
	return op.Reshape(op.Softmax(op.Reshape(x, ir.Count(shape[:axis]), ir.Count(shape[axis:])), 1), shape...)
}

// channelsAhead moves the last axis behind the batch, channelsBack the other way.
func channelsAhead(x ir.Value) ir.Value {
	return op.Transpose(x, slices.Concat([]int{0, x.Rank() - 1}, interval(1, x.Rank()-1))...)
}

func channelsBack(x ir.Value) ir.Value {
	return op.Transpose(x, append(append([]int{0}, interval(2, x.Rank())...), 1)...)
}

// channelsFirst runs fn on channels at axis 1, wherever attribute channels_last says that they are.
func channelsFirst(fn func(n *node, x ir.Value) ir.Value) func(n *node, x ir.Value) ir.Value {
	return func(n *node, x ir.Value) ir.Value {
		if n.i("channels_last") == 0 || x.Rank() < 3 {
			return fn(n, x)
		}
		y := fn(n, channelsAhead(x))
		if !n.ok() || y.Poisoned() {
			return y
		}
		return channelsBack(y)
	}
}

// buildQLinearConcat takes the scale and zero point of the result, then X, scale and zero point of each part.
func buildQLinearConcat(n *node) {
	if len(n.in)%3 != 2 {
		n.fail("got %d inputs, expected two and three for each part", len(n.in))
	}
	var parts []ir.Value
	for i := 2; i < len(n.in) && n.ok(); i += 3 {
		parts = append(parts, n.numbers(i))
	}
	if !n.ok() {
		return
	}
	if axis := n.axis("axis", parts[0].Rank()); n.ok() {
		n.retCodes(op.Concat(axis, parts...), 0, n.typ(2).DType)
	}
}

func buildQLinearWhere(n *node) {
	if c, x, y := n.val(0), n.numbers(1), n.numbers(4); n.ok() {
		n.retCodes(op.Where(c, x, y), 7, n.typ(1).DType)
	}
}

// buildQGemm is alpha a b + c, c being in units of the product of the scales: codes where the result has a scale, else f32.
func buildQGemm(n *node) {
	n.rank(0, 2, 2)
	n.rank(3, 2, 2)
	a, as, b, bs, c := n.val(0), n.val(1), n.val(3), n.val(4), n.val(6)
	if !n.ok() {
		return
	}
	// Zero points of columns run along the last axis of b as it is multiplied.
	az, bz := n.centered(a, 2, -1), op.Cast(b, ir.I32)
	if n.i("transA") != 0 {
		az = op.Transpose(az, 1, 0)
	}
	if n.i("transB") != 0 {
		bz = op.Transpose(bz, 1, 0)
	}
	if n.has(5) {
		zero := op.Cast(n.val(5), ir.I32)
		if zero.Rank() == 1 && zero.Dim(0).Is(1) {
			zero = op.Reshape(zero)
		}
		bz = op.Sub(bz, zero)
	}
	if n.ok() && len(n.row.attrs) > 0 {
		acc := op.MatMul(az, bz)
		if n.has(6) {
			acc = op.Add(acc, c)
		}
		if bs.Rank() == 1 && bs.Dim(0).Is(1) {
			bs = op.Reshape(bs)
		}
		y := scaled(n, op.Mul(op.Cast(acc, ir.F32), op.Mul(op.Reshape(as), bs)), "alpha")
		if n.has(7) {
			n.retCodes(y, 7, a.DType())
		} else {
			n.ret(y)
		}
	}
}

// buildQAttention is Attention of com.microsoft whose projection is an integer product.
func buildQAttention(n *node) {
	x, w, bias, xs, ws, past := n.val(0), n.val(1), n.val(2), n.val(3), n.val(4), n.val(8)
	if !n.ok() {
		return
	}
	if ws.Rank() == 1 && ws.Dim(0).Is(1) {
		ws = op.Reshape(ws)
	}
	acc := n.integerProduct(x, w, 6, 7)
	y := op.Add(op.Mul(op.Cast(acc, ir.F32), op.Mul(op.Reshape(xs), ws)), bias)
	n.attendProjected(y, w.Dim(1), nil, 5, past, ir.Value{})
}

// buildDynamicLSTM is LSTM with weights [D, inputs, 4 hidden] of 8 bits. Its input stays as it is, which is closer to the network before
// quantization than codes of each step would be.
func buildDynamicLSTM(n *node) {
	if len(n.in) < 12 || slices.Contains(n.in[8:12], nil) {
		n.fail("inputs 8 to 11, scales and zero points of the weights: one is missing")
		return
	}
	weights := func(i, scale, zero int) ir.Value {
		w, s, z := op.Cast(n.val(i), ir.F32), n.val(scale), op.Cast(n.val(zero), ir.F32)
		if !n.ok() || w.Rank() != 3 {
			n.fail("input %d has rank %d, expected 3", i, w.Rank())
			return w
		}
		spread := func(v ir.Value) ir.Value {
			if v.Rank() == 1 {
				return op.Reshape(v, v.Dim(0), ir.D(1), ir.D(1))
			}
			return op.Reshape(v, v.Dim(0), ir.D(1), v.Dim(1))
		}
		return op.Transpose(op.Mul(op.Sub(w, spread(z)), spread(s)), 0, 2, 1)
	}
	w, r := weights(1, 8, 9), weights(2, 10, 11)
	if !n.ok() {
		return
	}
	plain := func(x ir.Value) *value { return &value{typ: x.Type(), node: x, deps: n.deps()} }
	in := n.in
	n.in = slices.Concat([]*value{in[0], plain(w), plain(r)}, in[3:8])
	buildLSTM(n)
	n.in = in
}

// buildGatherBlocks gathers rows of codes in blocks along another axis, each with a scale and a zero point. Bytes with two codes of 4 bits
// hold the lower one first.
func buildGatherBlocks(n *node) {
	data, index, scales, zeros := n.val(0), n.val(1), n.val(2), n.val(3)
	if !n.ok() {
		return
	}
	bits, block := n.i("bits"), n.i("block_size")
	if _, _, narrow := narrowRange(n.in[0].elem); !narrow && bits == 4 && data.DType() == ir.U8 {
		data = unpacked(data, 4)
		if n.has(3) {
			zeros = unpacked(zeros, 4)
			zeros = op.Slice(zeros, ir.Dims(0), []ir.Dim{scales.Dim(-1)}, []int{zeros.Rank() - 1}, nil)
		}
	}
	axis, along := n.axis("gather_axis", data.Rank()), n.axis("quantize_axis", data.Rank())
	if n.ok() && (axis == along || block < 1 || scales.Rank() != data.Rank()) {
		n.fail("gather_axis %d, quantize_axis %d, block_size %d and scales of rank %d", axis, along, block, scales.Rank())
	}
	if !n.ok() {
		return
	}
	q := op.Cast(op.Gather(data, index, axis), ir.F32)
	at := along
	if along > axis {
		at += index.Rank() - 1
	}
	// Blocks repeat along their axis.
	rows := func(v ir.Value) ir.Value {
		v = op.Cast(op.Gather(v, index, axis), ir.F32)
		wide := slices.Concat(v.Shape()[:at+1], []ir.Dim{ir.D(block)}, v.Shape()[at+1:])
		shape := slices.Clone(v.Shape())
		shape[at] = v.Dim(at).Mul(ir.D(block))
		return op.Slice(op.Reshape(op.Expand(withAxis(v, at+1), wide...), shape...), ir.Dims(0), []ir.Dim{q.Dim(at)}, []int{at}, nil)
	}
	switch {
	case n.has(3):
		q = op.Sub(q, rows(zeros))
	case data.DType() == ir.U8: // codes without a sign are around the middle
		q = op.Sub(q, math.Exp2(float64(bits-1)))
	}
	n.ret(castTo(op.Mul(q, rows(scales)), scales.DType()))
}
