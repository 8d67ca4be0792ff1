package onnx

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// normRows normalise.
var normRows = []row{
	{op: "Softmax", since: 1, in: arity{1, 1}, attrs: []attrDecl{integer("axis", 1)}, build: buildCoerced(softmax)},
	{op: "Softmax", since: 13, in: arity{1, 1}, attrs: []attrDecl{integer("axis", -1)}, build: buildAlong(softmax)},
	{op: "LogSoftmax", since: 1, in: arity{1, 1}, attrs: []attrDecl{integer("axis", 1)}, build: buildCoerced(logSoftmax)},
	{op: "LogSoftmax", since: 13, in: arity{1, 1}, attrs: []attrDecl{integer("axis", -1)}, build: buildAlong(logSoftmax)},
	// Operator set 17 took the operator over from ONNX Runtime, whose optimizer writes it into models of any set.
	{op: "LayerNormalization", since: 1, in: arity{2, 3}, build: buildLayerNorm, attrs: []attrDecl{integer("axis", -1), float("epsilon", 1e-5), integer("stash_type", 1, 1)}},
	{op: "RMSNormalization", since: 23, in: arity{2, 2}, build: buildRmsNorm, attrs: []attrDecl{integer("axis", -1), float("epsilon", 1e-5), integer("stash_type", 1, 1)}},
	{op: "BatchNormalization", since: 7, in: arity{5, 5}, build: buildBatchNorm,
		attrs: []attrDecl{float("epsilon", 1e-5), float("momentum", 0.9), integer("spatial", 1, 1)}},
	{op: "BatchNormalization", since: 14, in: arity{5, 5}, build: buildBatchNorm,
		attrs: []attrDecl{float("epsilon", 1e-5), float("momentum", 0.9), integer("training_mode", 0, 0, 1)}},
	{op: "InstanceNormalization", since: 6, in: arity{3, 3}, attrs: []attrDecl{float("epsilon", 1e-5)}, build: buildInstanceNorm},
	{op: "GroupNormalization", since: 18, in: arity{3, 3}, attrs: []attrDecl{float("epsilon", 1e-5), required(integer("num_groups", 0))}, build: buildGroupNorm},
	{op: "GroupNormalization", since: 21, in: arity{3, 3}, build: buildGroupNorm,
		attrs: []attrDecl{float("epsilon", 1e-5), required(integer("num_groups", 0)), integer("stash_type", 1, 1)}},
	{op: "LpNormalization", since: 1, in: arity{1, 1}, attrs: []attrDecl{integer("axis", -1), integer("p", 2, 1, 2)}, build: buildAlong(lpNorm)},
	{op: "MeanVarianceNormalization", since: 9, in: arity{1, 1}, attrs: []attrDecl{integers("axes")}, build: buildMeanVariance},
}

// lpNorm is x divided by its norm along axis; zeros stay zeros.
func lpNorm(n *node, x ir.Value, axis int) ir.Value {
	fn := op.ReduceFn("l2")
	if n.i("p") == 1 {
		fn = "l1"
	}
	norm := op.Reduce(x, fn, []int{axis}, true)
	return op.Where(op.Eq(norm, 0), 0, op.Div(x, norm))
}

// buildMeanVariance is (x - mean) / (deviation + 1e-9) over axes, which are N, H and W unless given.
func buildMeanVariance(n *node) {
	x := n.val(0)
	if !n.ok() {
		return
	}
	list := n.intList("axes")
	if list == nil {
		list = []int64{0, 2, 3}
	}
	axes := n.axes(list, x.Rank())
	if !n.ok() {
		return
	}
	d := op.Sub(x, op.Reduce(x, "mean", axes, true))
	deviation := op.Sqrt(op.Reduce(op.Mul(d, d), "mean", axes, true))
	n.ret(op.Div(d, op.Add(deviation, 1e-9)))
}

func softmax(_ *node, x ir.Value, axis int) ir.Value    { return op.Softmax(x, axis) }
func logSoftmax(_ *node, x ir.Value, axis int) ir.Value { return op.LogSoftmax(x, axis) }

// fits says that v can be the scale of a norm node itself: dtype and normalised dims exactly.
func fitsNorm(v, x ir.Value, axis int) bool {
	if v.IsZero() {
		return true
	}
	if v.DType() != x.DType() || v.Rank() != x.Rank()-axis {
		return false
	}
	for i, d := range v.Shape() {
		if d != x.Shape()[axis+i] {
			return false
		}
	}
	return true
}

// buildLayerNorm puts scale and bias into the node where they have the normalised dims, else behind it.
func buildLayerNorm(n *node) {
	x, scale, bias := n.val(0), n.val(1), n.val(2)
	if !n.ok() {
		return
	}
	axis, eps := n.axis("axis", x.Rank()), n.float("epsilon")
	if !n.ok() {
		return
	}
	var y ir.Value
	if fitsNorm(scale, x, axis) && fitsNorm(bias, x, axis) {
		y = op.LayerNorm(x, scale, bias, axis, eps)
	} else {
		y = op.Mul(op.LayerNorm(x, ir.Value{}, ir.Value{}, axis, eps), scale)
		if n.has(2) {
			y = op.Add(y, bias)
		}
	}
	if !n.wants(1) && !n.wants(2) {
		n.ret(y)
		return
	}
	axes := interval(axis, x.Rank())
	wide := castTo(x, ir.F32)
	mean := op.Reduce(wide, "mean", axes, true)
	d := op.Sub(wide, mean)
	n.ret(y, mean, op.Rsqrt(op.Add(op.Reduce(op.Mul(d, d), "mean", axes, true), eps)))
}

func buildRmsNorm(n *node) {
	x, scale := n.val(0), n.val(1)
	if !n.ok() {
		return
	}
	axis, eps := n.axis("axis", x.Rank()), n.float("epsilon")
	switch {
	case !n.ok():
	case fitsNorm(scale, x, axis):
		n.ret(op.RmsNorm(x, scale, ir.Value{}, axis, eps))
	default:
		n.ret(castTo(op.Mul(op.RmsNorm(x, ir.Value{}, ir.Value{}, axis, eps), castTo(scale, x.DType())), scale.DType()))
	}
}

// column is v [C] as [C, 1..], which broadcasts along axis 1 of a tensor of the given rank.
func column(v ir.Value, rank int) ir.Value {
	shape := []ir.Dim{v.Dim(0)}
	for range rank - 2 {
		shape = append(shape, ir.D(1))
	}
	if v.Rank() == 1 && rank == 2 {
		return v
	}
	return op.Reshape(v, shape...)
}

// buildBatchNorm is (x - mean) / sqrt(var + eps) * scale + bias with the stored statistics.
func buildBatchNorm(n *node) {
	v := n.vals()
	if n.ok() && v[0].Rank() < 2 {
		n.fail("input has rank %d, expected at least 2", v[0].Rank())
	}
	if !n.ok() {
		return
	}
	x, d, mean, variance := v[0], v[0].DType(), v[3], v[4]
	// From operator set 7 to 13 a node that names the statistics trains.
	old := n.row.since == 7 && slices.ContainsFunc([]int{1, 2, 3, 4}, n.wants)
	if old || n.i("training_mode") == 1 {
		n.trainBatchNorm(v)
		return
	}
	y := op.BatchNormInference(x, castTo(v[1], d), castTo(v[2], d), castTo(mean, d), castTo(variance, d), 1, n.float("epsilon"))
	n.ret(y)
}

// trainBatchNorm normalises by the statistics of the batch, and moves the stored ones towards them.
func (n *node) trainBatchNorm(v []ir.Value) {
	x, d := v[0], v[0].DType()
	axes := append([]int{0}, interval(2, x.Rank())...)
	stat := v[3].DType()
	wide := castTo(x, stat)
	mean := op.Reduce(wide, "mean", axes, false)
	dev := op.Sub(wide, column(mean, x.Rank()))
	variance := op.Reduce(op.Mul(dev, dev), "mean", axes, false)
	y := op.BatchNormInference(x, castTo(v[1], d), castTo(v[2], d), castTo(mean, d), castTo(variance, d), 1, n.float("epsilon"))
	running := func(old, now ir.Value) ir.Value {
		m := n.float("momentum")
		return op.Add(op.Mul(old, m), op.Mul(now, 1-m))
	}
	n.ret(y, running(v[3], mean), running(v[4], variance), mean, variance)
}

// buildInstanceNorm normalises the spatial axes of each channel.
func buildInstanceNorm(n *node) {
	x, scale, bias := n.val(0), n.val(1), n.val(2)
	if n.ok() && x.Rank() < 3 {
		n.fail("input has rank %d, expected at least 3", x.Rank())
	}
	if n.ok() {
		if channels, ok := x.Dim(1).Static(); ok {
			n.ret(op.GroupNorm(x, scale, bias, channels, n.float("epsilon")))
			return
		}
		y := op.LayerNorm(x, ir.Value{}, ir.Value{}, 2, n.float("epsilon"))
		n.ret(op.Add(op.Mul(y, column(scale, x.Rank())), column(bias, x.Rank())))
	}
}

// buildGroupNorm normalises groups of channels. Scale and bias belong to groups before operator set 21, to channels from then on.
func buildGroupNorm(n *node) {
	x, scale, bias := n.val(0), n.val(1), n.val(2)
	groups := n.i("num_groups")
	if n.ok() && (x.Rank() < 2 || groups < 1) {
		n.fail("rank %d and num_groups %d, expected at least 2 and 1", x.Rank(), groups)
	}
	if !n.ok() {
		return
	}
	if n.row.since >= 21 {
		n.ret(op.GroupNorm(x, scale, bias, groups, n.float("epsilon")))
		return
	}
	y := op.Reshape(op.GroupNorm(x, ir.Value{}, ir.Value{}, groups, n.float("epsilon")), x.Dim(0), ir.D(groups), ir.Count(x.Shape()[1:]).FloorDiv(ir.D(groups)))
	n.ret(op.Reshape(op.Add(op.Mul(y, column(scale, 3)), column(bias, 3)), x.Shape()...))
}
