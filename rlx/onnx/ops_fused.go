package onnx

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// fusedRows are operators of com.microsoft that ONNX Runtime's optimizer makes of several others, and those of the default domain that it
// had first.
var fusedRows = []row{
	ms(row{op: "EmbedLayerNormalization", since: 1, in: arity{1, 9}, build: buildEmbed, attrs: []attrDecl{float("epsilon", 1e-12), integer("mask_index_type", 1, 0, 1)}}),
	ms(row{op: "FusedConv", since: 1, in: arity{2, 4}, build: buildFusedConv,
		attrs: append(convAttrs(), activationAttr, floats("activation_params"))}),
	ms(row{op: "FusedGemm", since: 1, in: arity{2, 3}, build: buildFusedGemm, attrs: append(gemmAttrs(), activationAttr,
		float("activation_alpha", 0), float("activation_beta", 0), float("activation_gamma", 0))}),
	ms(row{op: "BiasSoftmax", since: 1, in: arity{2, 2}, build: buildBiasSoftmax, attrs: []attrDecl{integer("axis", 1), required(integer("is_inner_broadcast", 0, 0, 1))}}),
	ms(row{op: "BiasAdd", since: 1, in: arity{3, 3}, build: func(n *node) {
		if x, bias, skip := n.val(0), n.val(1), n.val(2); n.ok() {
			n.ret(op.Add(op.Add(x, bias), skip))
		}
	}}),
	ms(row{op: "BiasSplitGelu", since: 1, in: arity{2, 2}, build: buildBiasSplitGelu}),
	ms(row{op: "GroupNorm", since: 1, in: arity{3, 3}, attrs: microsoftGroupAttrs, build: buildMsGroupNorm}),
	ms(row{op: "SkipGroupNorm", since: 1, in: arity{4, 5}, attrs: microsoftGroupAttrs, build: buildMsGroupNorm}),
	ms(row{op: "NhwcConv", since: 1, in: arity{2, 3}, attrs: convAttrs(), build: buildNhwcConv}),
	ms(row{op: "NhwcFusedConv", since: 1, in: arity{2, 4}, build: buildNhwcConv, attrs: append(convAttrs(), activationAttr, floats("activation_params"))}),
	ms(row{op: "Trilu", since: 1, in: arity{1, 2}, attrs: []attrDecl{integer("upper", 1)}, build: buildTrilu}),
	ms(row{op: "Pad", since: 1, in: arity{2, 3}, attrs: []attrDecl{str("mode", "constant", "reflect", "edge")}, build: buildPad}),
	ms(row{op: "GatherND", since: 1, in: arity{2, 2}, build: buildGatherND}),
	ms(row{op: "ExpandDims", since: 1, in: arity{2, 2}, build: func(n *node) {
		axis := n.int(1, "axis", 0)
		if at := n.wrap(axis, len(n.typ(0).Shape)+1, "axis"); n.ok() {
			if x := n.val(0); n.ok() {
				n.ret(withAxis(x, at))
			}
		}
	}}),
	ms(row{op: "GridSample", since: 1, in: arity{2, 2}, build: buildGridSample,
		attrs: []attrDecl{integer("align_corners", 0, 0, 1), str("mode", "bilinear", "nearest", "bicubic"), str("padding_mode", "zeros", "border", "reflection")}}),
	ms(row{op: "MatMulInteger16", since: 1, in: arity{2, 2}, build: func(n *node) {
		if a, b := n.val(0), n.val(1); n.ok() {
			n.ret(op.MatMul(op.Cast(a, ir.I32), op.Cast(b, ir.I32)))
		}
	}}),
}

var activationAttr = attrDecl{name: "activation", kind: AttributeString}

var microsoftGroupAttrs = []attrDecl{
	required(integer("activation", 0, 0, 1)), integer("channels_last", 1, 0, 1), float("epsilon", 1e-5), required(integer("groups", 0)),
}

// buildEmbed sums the embeddings of words, positions and segments, and normalises them.
func buildEmbed(n *node) {
	ids, segments, words, places, kinds := n.val(0), n.val(1), n.val(2), n.val(3), n.val(4)
	if n.ok() && (n.has(1) != n.has(4) || !n.has(2) || !n.has(3) || !n.has(5) || !n.has(6)) {
		n.fail("inputs 2, 3, 5 and 6 (word and position embedding, gamma and beta), segment_ids and segment_embedding: one is missing")
	}
	if n.ok() {
		n.embed(ids, segments, words, places, kinds, n.val(5), n.val(6), 7, 8)
	}
}

// embed is EmbedLayerNormalization; mask and positions number the inputs that hold them, if they are there.
func (n *node) embed(ids, segments, words, places, kinds, gamma, beta ir.Value, mask, positions int) {
	if !n.ok() {
		return
	}
	if ids.Rank() != 2 || places.Rank() != 2 {
		n.fail("input_ids have rank %d and position_embedding %d, expected 2", ids.Rank(), places.Rank())
		return
	}
	sum := op.Gather(words, ids, 0)
	if n.has(positions) {
		sum = op.Add(sum, op.Gather(places, n.val(positions), 0))
	} else {
		sum = op.Add(sum, op.Slice(places, ir.Dims(0), []ir.Dim{ids.Dim(1)}, []int{0}, nil))
	}
	if !kinds.IsZero() {
		sum = op.Add(sum, op.Gather(kinds, segments, 0))
	}
	y := op.LayerNorm(sum, gamma, beta, -1, n.float("epsilon"))
	count := op.Expand(n.im.g.Constant(ir.Scalar(int32(0))), ids.Dim(0))
	if n.has(mask) {
		count = op.Reduce(castTo(n.val(mask), ir.I32), "sum", []int{1}, false)
	}
	n.ret(y, count, sum)
}

// buildQEmbed reads tables of codes: their scales are inputs 8 to 12, their zero points 13 to 17.
func buildQEmbed(n *node) {
	part := func(i int) ir.Value {
		if !n.has(i) {
			return ir.Value{}
		}
		return n.numbersOf(n.val(i), i+6, i+11)
	}
	ids, segments := n.val(0), n.val(1)
	words, places, kinds, gamma, beta := part(2), part(3), part(4), part(5), part(6)
	if n.ok() && (words.IsZero() || places.IsZero() || gamma.IsZero() || beta.IsZero() || n.has(1) != n.has(4)) {
		n.fail("word and position embedding, gamma and beta, segment_ids and segment_embedding: one is missing")
	}
	n.embed(ids, segments, words, places, kinds, gamma, beta, 7, many)
}

// activate applies an activation that has been fused into a product or a convolution.
func (n *node) activate(y ir.Value, p []float64) ir.Value {
	param := func(i int, def float64) float64 {
		if i < len(p) {
			return p[i]
		}
		return def
	}
	switch fn := n.s("activation"); fn {
	case "":
		return y
	case "Relu":
		return op.Relu(y)
	case "Tanh":
		return op.Tanh(y)
	case "Sigmoid":
		return op.Sigmoid(y)
	case "Softplus":
		return op.Softplus(y)
	case "HardSwish":
		return op.HardSwish(y)
	case "Gelu":
		return op.Gelu(y)
	case "LeakyRelu":
		return op.LeakyRelu(y, param(0, 0.01))
	case "Elu":
		return op.Elu(y, param(0, 1))
	case "Clip":
		return op.Clamp(y, param(0, -math.MaxFloat32), param(1, math.MaxFloat32))
	case "HardSigmoid":
		return op.HardSigmoid(y, param(0, 0.2), param(1, 0.5))
	default:
		n.refuse("activation", "value %s is not supported", fn)
		return y
	}
}

// activationParams is attribute activation_params.
func (n *node) activationParams() (p []float64) {
	if a := n.attr("activation_params"); a != nil {
		for _, f := range a.Floats {
			p = append(p, float64(f))
		}
	}
	return p
}

// buildFusedConv is Conv, plus input 3, then an activation.
func buildFusedConv(n *node) {
	y := n.conv(n.val(0))
	if n.has(3) && n.ok() {
		y = op.Add(y, n.val(3))
	}
	if n.ok() {
		n.ret(n.activate(y, n.activationParams()))
	}
}

// buildNhwcConv is the same with channels on the last axis of image and addend.
func buildNhwcConv(n *node) {
	x := n.val(0)
	if n.ok() && x.Rank() < 3 {
		n.fail("input has rank %d, expected at least 3", x.Rank())
	}
	if !n.ok() {
		return
	}
	y := n.conv(channelsAhead(x))
	if !n.ok() {
		return
	}
	y = channelsBack(y)
	if n.has(3) {
		y = op.Add(y, n.val(3))
	}
	if n.ok() {
		n.ret(n.activate(y, n.activationParams()))
	}
}

func buildFusedGemm(n *node) {
	p := []float64{n.float("activation_alpha"), n.float("activation_beta")}
	if n.attr("activation_alpha") == nil {
		p = nil
	}
	if y := n.gemm(); n.ok() {
		n.ret(n.activate(y, p))
	}
}

// buildBiasSoftmax is the softmax of x + bias over all axes from axis on. The bias lacks leading axes, or has lengths of 1.
func buildBiasSoftmax(n *node) {
	x, bias := n.val(0), n.val(1)
	if !n.ok() {
		return
	}
	axis := n.axis("axis", x.Rank())
	if !n.ok() {
		return
	}
	if bias.Rank() < x.Rank() && n.i("is_inner_broadcast") == 1 { // the axes between the leading ones and axis are missing
		shape := slices.Clone(bias.Shape())
		at := bias.Rank() - (x.Rank() - axis)
		if at < 0 {
			n.fail("bias has rank %d, expected at least %d", bias.Rank(), x.Rank()-axis)
			return
		}
		shape = slices.Insert(shape, at, ir.Dims(ones(x.Rank()-bias.Rank())...)...)
		bias = op.Reshape(bias, shape...)
	}
	y := op.Add(x, bias)
	if axis < x.Rank()-1 {
		shape := x.Shape()
		n.ret(op.Reshape(op.Softmax(op.Reshape(y, ir.Count(shape[:axis]), ir.Count(shape[axis:])), 1), shape...))
		return
	}
	n.ret(op.Softmax(y, axis))
}

// buildBiasSplitGelu is the first half of x + bias times the GELU of the second.
func buildBiasSplitGelu(n *node) {
	x, bias := n.val(0), n.val(1)
	if !n.ok() {
		return
	}
	x = op.Add(x, bias)
	last, size := x.Rank()-1, x.Dim(-1)
	half := size.FloorDiv(ir.D(2))
	left := op.Slice(x, ir.Dims(0), []ir.Dim{half}, []int{last}, nil)
	n.ret(op.Mul(left, op.Gelu(op.Slice(x, []ir.Dim{half}, []ir.Dim{size}, []int{last}, nil))))
}

// buildMsGroupNorm normalises groups of channels, which are on the last axis unless attribute channels_last is 0; activation 1 is SiLU.
// SkipGroupNorm adds input 3, [N, C] or as x, and a bias before, and gives that sum too.
func buildMsGroupNorm(n *node) {
	x, gamma, beta, skip, bias := n.val(0), n.val(1), n.val(2), n.val(3), n.val(4)
	if n.ok() && x.Rank() < 3 {
		n.fail("input has rank %d, expected at least 3", x.Rank())
	}
	if !n.ok() {
		return
	}
	if n.has(3) && skip.Rank() == 2 {
		skip = op.Reshape(skip, append(append([]ir.Dim{skip.Dim(0)}, ir.Dims(ones(x.Rank()-2)...)...), skip.Dim(1))...)
	}
	if n.has(3) {
		x = op.Add(x, skip)
	}
	if n.has(4) {
		x = op.Add(x, bias)
	}
	last := n.i("channels_last") == 1
	y := x
	if last {
		y = channelsAhead(y)
	}
	y = op.GroupNorm(y, castTo(gamma, x.DType()), castTo(beta, x.DType()), n.i("groups"), n.float("epsilon"))
	if n.i("activation") == 1 {
		y = op.Silu(y)
	}
	if last && !y.Poisoned() {
		y = channelsBack(y)
	}
	if n.has(3) {
		n.ret(y, x)
		return
	}
	n.ret(y)
}
