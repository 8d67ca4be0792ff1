package onnx

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// productExports are sums of products.
var productExports = map[string]exportRow{
	"MatMul": direct(emitMatMul),
}

// emitMatMul multiplies in the dtype of the result: f32 for f16 and bf16 operands where that is asked for.
func emitMatMul(x *emission, _ *op.MatMulAttrs) []string {
	d := x.carrier(x.result(0), reducible)
	y := x.op("MatMul", []string{x.cast(x.in[0], x.dtype(0), d), x.cast(x.in[1], x.dtype(1), d)})
	return []string{x.cast(y, d, x.result(0))}
}

// normExports are norms and softmax.
var normExports = map[string]exportRow{
	"LayerNorm":          inF32(emitLayerNorm),
	"Softmax":            inF32(func(x *emission, a *op.SoftmaxAttrs) []string { return x.one("Softmax", attr("axis", a.Axis)) }),
	"BatchNormInference": inF32(emitBatchNorm),
	"GroupNorm":          inF32(emitGroupNorm),
}

// emitLayerNorm takes known shapes for a gamma that is absent. The operator computes in f32, too little for f64.
func emitLayerNorm(x *emission, a *op.LayerNormAttrs) []string {
	d := x.dtype(0)
	if d == ir.F64 {
		return x.refuse("LayerNormalization computes in f32")
	}
	gamma := x.in[1]
	if gamma == "" {
		shape, ok := ir.StaticShape(x.shape(0)[wrapped(a.Axis, len(x.shape(0))):])
		if !ok {
			return x.refuse("no gamma, and an axis of unknown length")
		}
		gamma = x.filled(d, 1, shape...)
	}
	return []string{x.op("LayerNormalization", []string{x.in[0], gamma, x.in[2]}, attr("axis", a.Axis), attr("epsilon", a.Eps))}
}

// perChannel is operand i, or a vector of v for each of the channels where it is absent.
func (x *emission) perChannel(i int, channels ir.Dim, v float64) string {
	if x.has(i) {
		return x.in[i]
	}
	n, ok := channels.Static()
	if !ok {
		x.refuse("an operand is absent, and the number of channels is not known")
		return ""
	}
	return x.filled(x.dtype(0), v, n)
}

func emitBatchNorm(x *emission, a *op.BatchNormAttrs) []string {
	rank := len(x.shape(0))
	if rank < 2 || wrapped(a.Axis, rank) != 1 || x.dtype(0) == ir.F64 { // an epsilon of f32 would show in f64
		return x.refuse("axis %d of %s", a.Axis, x.typ(0))
	}
	c := x.shape(0)[1]
	in := []string{x.in[0], x.perChannel(1, c, 1), x.perChannel(2, c, 0), x.in[3], x.in[4]}
	return []string{x.op("BatchNormalization", in, attr("epsilon", a.Eps))}
}

func emitGroupNorm(x *emission, a *op.GroupNormAttrs) []string {
	if len(x.shape(0)) < 3 || x.dtype(0) == ir.F64 {
		return x.refuse("%s", x.typ(0))
	}
	c := x.shape(0)[1]
	in := []string{x.in[0], x.perChannel(1, c, 1), x.perChannel(2, c, 0)}
	if c.Is(a.NumGroups) {
		return []string{x.op("InstanceNormalization", in, attr("epsilon", a.Eps))}
	}
	return []string{x.op("GroupNormalization", in, attr("num_groups", a.NumGroups), attr("epsilon", a.Eps))}
}

// reduceExports fold axes, run along them or sort them.
var reduceExports = map[string]exportRow{
	"Reduce":  direct(emitReduce),
	"ArgMax":  direct(func(x *emission, a *op.ArgAttrs) []string { return x.arg("ArgMax", a) }),
	"ArgMin":  direct(func(x *emission, a *op.ArgAttrs) []string { return x.arg("ArgMin", a) }),
	"Cumsum":  direct(emitCumsum),
	"CumProd": lowered(lowerCumProd),
	"CumMax":  lowered(lowerCumMax),
	"TopK": direct(func(x *emission, a *op.TopKAttrs) []string {
		return x.topK(x.ints(a.K), a.Axis, a.Largest, a.IndexDtype)
	}),
	"Sort": direct(func(x *emission, a *op.SortAttrs) []string {
		return x.topK(x.along(a.Axis), a.Axis, a.Descending, a.IndexDtype)
	}),
	"ArgSort": direct(func(x *emission, a *op.SortAttrs) []string {
		if y := x.topK(x.along(a.Axis), a.Axis, a.Descending, a.IndexDtype); y != nil {
			return y[1:]
		}
		return nil
	}),
}

// along is the length of an axis of operand 0.
func (x *emission) along(axis int) string { return x.dims([]ir.Dim{x.n.In[0].Dim(axis)}) }

var reduceOps = map[op.ReduceFn]string{
	"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd", "logsumexp": "ReduceLogSumExp",
	"log_sum": "ReduceLogSum", "l1": "ReduceL1", "l2": "ReduceL2", "sum_square": "ReduceSumSquare",
}

func emitReduce(x *emission, a *op.ReduceAttrs) []string {
	takes := reducible
	if a.Fn == "max" || a.Fn == "min" {
		takes |= ir.Set(ir.I8, ir.U8, ir.Bool)
	}
	axes := ""
	if len(a.Axes) > 0 {
		list := make([]int64, len(a.Axes))
		for i, k := range a.Axes {
			list[i] = int64(k)
		}
		axes = x.ints(list...)
	}
	return x.carry(takes, func(in []string, _ ir.DType) string {
		return x.op(reduceOps[a.Fn], []string{in[0], axes}, attr("keepdims", a.KeepDims))
	})
}

func (x *emission) arg(operator string, a *op.ArgAttrs) []string {
	d := x.dtype(0)
	c := x.carrier(d, reals)
	if x.reason != "" {
		return nil
	}
	attrs := []AttributeProto{attr("axis", a.Axis), attr("keepdims", a.KeepDims)}
	if a.SelectLastIndex {
		attrs = append(attrs, attr("select_last_index", 1))
	}
	return []string{x.cast(x.op(operator, x.cast(x.in[0], d, c), attrs...), ir.I64, a.IndexDtype)}
}

func emitCumsum(x *emission, a *op.CumAttrs) []string {
	return x.carry(reducible, func(in []string, _ ir.DType) string {
		axis := x.constant("axis", ir.Scalar(int64(a.Axis)))
		return x.op("CumSum", []string{in[0], axis}, attr("exclusive", a.Exclusive), attr("reverse", a.Reverse))
	})
}

func (x *emission) topK(k string, axis int, largest bool, index ir.DType) []string {
	d := x.dtype(0)
	c := x.carrier(d, reals)
	if x.reason != "" {
		return nil
	}
	y := x.ops("TopK", 2, []string{x.cast(x.in[0], d, c), k}, attr("axis", axis), attr("largest", largest))
	return []string{x.cast(y[0], c, d), x.cast(y[1], ir.I64, index)}
}

// scan combines each element with all before it along an axis of known length, in steps of 1, 2, 4 and so on: join gets what lies step
// elements before, and the element. Elements before the first are first.
type scan struct {
	axis    int
	length  int64
	reverse bool
}

// shifted is v moved by k places away from where the scan starts, with fill in the places that become free.
func (s scan) shifted(v ir.Value, k int64, fill ir.Number) ir.Value {
	pads := make([]ir.Dim, 2*v.Rank())
	begin, end := k, -k
	if s.reverse {
		begin, end = -k, k
	}
	pads[s.axis], pads[v.Rank()+s.axis] = ir.D(begin), ir.D(end)
	return op.Pad(v, pads, op.PadConstant, fill)
}

func scanOf(n *ir.Node, axis int, reverse bool) (scan, bool) {
	k := wrapped(axis, n.In[0].Rank())
	length, ok := n.In[0].Dim(k).Static()
	return scan{k, length, reverse}, ok
}

func lowerCumProd(n *ir.Node, a *op.CumAttrs) []ir.Value {
	s, ok := scanOf(n, a.Axis, a.Reverse)
	d := n.In[0].DType()
	if !ok || d == ir.C64 {
		return nil
	}
	y, one := castTo(n.In[0], atLeastF32(d)), ir.IntNumber(1)
	if a.Exclusive && s.length > 0 {
		y = s.shifted(y, 1, one)
	}
	for k := int64(1); k < s.length; k *= 2 {
		y = op.Mul(s.shifted(y, k, one), y)
	}
	return []ir.Value{castTo(y, d)}
}

// lowerCumMax keeps pairs of a maximum and its place; the earlier one wins, and a NaN over everything behind it.
func lowerCumMax(n *ir.Node, a *op.CumMaxAttrs) []ir.Value {
	s, ok := scanOf(n, a.Axis, a.Reverse)
	if !ok {
		return nil
	}
	y, d := n.In[0], n.In[0].DType()
	shape := make([]ir.Dim, y.Rank())
	for i := range shape {
		shape[i] = ir.D(1)
	}
	shape[s.axis] = ir.D(s.length)
	at := op.Expand(op.Reshape(op.Iota(y.Graph(), s.length, ir.I64), shape...), y.Shape()...)
	least, none := ir.FloatNumber(0), ir.IntNumber(-1)
	if t, ok := leastOf("max", d); ok {
		least = numberAt(t, 0)
	} else {
		return nil
	}
	if a.Exclusive && s.length > 0 {
		y, at = s.shifted(y, 1, least), s.shifted(at, 1, none)
	}
	for k := int64(1); k < s.length; k *= 2 {
		before, place := s.shifted(y, k, least), s.shifted(at, k, none)
		takes := op.Ge(before, y)
		if ir.Float.Has(d) {
			takes = op.LogicalOr(takes, op.IsNaN(before))
		}
		takes = op.LogicalAnd(takes, op.Ge(place, 0))
		y, at = op.Where(takes, before, y), op.Where(takes, place, at)
	}
	return []ir.Value{y, castTo(at, a.IndexDtype)}
}
