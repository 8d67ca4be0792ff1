package onnx

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// reduceRows reduce, scan and count.
var reduceRows = append(append(
	reduction("ReduceSum", 13, "sum", foldAll(ir.Dim.Add, 0)),
	reductions()...),
	row{op: "ArgMax", since: 1, in: arity{1, 1}, attrs: argAttrs, build: buildArg},
	row{op: "ArgMin", since: 1, in: arity{1, 1}, attrs: argAttrs, build: buildArg},
	row{op: "CumSum", since: 11, in: arity{2, 2}, attrs: scanAttrs, build: buildScan(op.CumsumWith)},
	row{op: "CumProd", since: 26, in: arity{2, 2}, attrs: scanAttrs, build: buildScan(op.CumProdWith)},
	row{op: "Hardmax", since: 1, in: arity{1, 1}, attrs: []attrDecl{integer("axis", 1)}, build: buildCoerced(hardmax)},
	row{op: "Hardmax", since: 13, in: arity{1, 1}, attrs: []attrDecl{integer("axis", -1)}, build: buildAlong(hardmax)},
)

var (
	argAttrs  = []attrDecl{integer("axis", 0), integer("keepdims", 1), integer("select_last_index", 0)}
	scanAttrs = []attrDecl{integer("exclusive", 0), integer("reverse", 0)}
)

// reductions are those whose axes became an input in operator set 18.
func reductions() []row {
	var rows []row
	for _, r := range []struct {
		op    string
		fn    op.ReduceFn
		track func(*node) []*dimTensor
	}{
		{"ReduceMax", "max", nil}, {"ReduceMin", "min", nil}, {"ReduceMean", "mean", nil}, {"ReduceProd", "prod", foldAll(ir.Dim.Mul, 1)},
		{"ReduceL1", "l1", nil}, {"ReduceL2", "l2", nil}, {"ReduceLogSum", "log_sum", nil}, {"ReduceLogSumExp", "logsumexp", nil},
		{"ReduceSumSquare", "sum_square", nil},
	} {
		rows = append(rows, reduction(r.op, 18, r.fn, r.track)...)
	}
	return rows
}

// reduction reads a Reduce operator whose axes are an attribute before operator set moved, and input 1 from then on.
func reduction(name string, moved int64, fn op.ReduceFn, track func(*node) []*dimTensor) []row {
	build := func(n *node) { buildReduce(n, fn) }
	return []row{
		{op: name, since: 1, in: arity{1, 1}, attrs: []attrDecl{integers("axes"), integer("keepdims", 1)}, build: build, track: track},
		{op: name, since: moved, in: arity{1, 2}, attrs: []attrDecl{integer("keepdims", 1), integer("noop_with_empty_axes", 0)}, build: build, track: track},
	}
}

func buildReduce(n *node, fn op.ReduceFn) {
	x := n.val(0)
	if !n.ok() {
		return
	}
	axes := n.axesOf(x.Rank())
	if !n.ok() {
		return
	}
	if len(axes) == 0 && n.i("noop_with_empty_axes") != 0 {
		n.ret(reduceNothing(n, x, fn))
		return
	}
	d := x.DType()
	if v, ok := leastOf(fn, d); ok && emptied(x, axes) {
		n.ret(op.Expand(n.im.g.Constant(v), reduced(x, axes, n.i("keepdims") != 0)...))
		return
	}
	if only := ir.Float; !only.Has(d) && (fn == "mean" || fn == "l2" || fn == "log_sum" || fn == "logsumexp") {
		n.ret(op.Cast(op.Reduce(op.Cast(x, ir.F64), fn, axes, n.i("keepdims") != 0), d)) // integers, rounded toward zero
		return
	}
	n.ret(op.Reduce(x, fn, axes, n.i("keepdims") != 0))
}

// emptied says that an element of the reduction is certainly made of nothing.
func emptied(x ir.Value, axes []int) bool {
	for i, d := range x.Shape() {
		if d.Is(0) && (len(axes) == 0 || slices.Contains(axes, i)) {
			return true
		}
	}
	return false
}

// reduced is the shape of x without axes, or with 1 in their place.
func reduced(x ir.Value, axes []int, keep bool) []ir.Dim {
	out := []ir.Dim{}
	for i, d := range x.Shape() {
		switch gone := len(axes) == 0 || slices.Contains(axes, i); {
		case !gone:
			out = append(out, d)
		case keep:
			out = append(out, ir.D(1))
		}
	}
	return out
}

// leastOf is what ONNX gives for the maximum of nothing, the least value of the dtype, and the greatest for the minimum.
func leastOf(fn op.ReduceFn, d ir.DType) (*ir.Tensor, bool) {
	sign := map[op.ReduceFn]int{"max": -1, "min": 1}[fn]
	t, err := ir.Zeros(d)
	if sign == 0 || err != nil {
		return nil, false
	}
	lo, hi := whole(d)
	switch {
	case ir.Float.Has(d):
		ir.PutFloat(d, t.Bytes(), 0, math.Inf(sign))
	case d == ir.U64 && sign > 0:
		ir.PutInt(d, t.Bytes(), 0, -1)
	case sign > 0:
		ir.PutInt(d, t.Bytes(), 0, hi)
	default:
		ir.PutInt(d, t.Bytes(), 0, lo)
	}
	return t, true
}

// reduceNothing is the reduction over no axes: of each element by itself.
func reduceNothing(n *node, x ir.Value, fn op.ReduceFn) ir.Value {
	switch fn {
	case "l1", "l2":
		return op.Abs(x)
	case "sum_square":
		return op.Square(x)
	case "log_sum":
		return op.Log(x)
	}
	n.pass(0)
	return ir.Value{}
}

// foldAll tracks a reduction of a vector to one number.
func foldAll(f func(a, b ir.Dim) ir.Dim, unit int64) func(*node) []*dimTensor {
	return func(n *node) []*dimTensor {
		x := n.dims(0)
		if x == nil || len(x.shape) != 1 || n.has(1) && n.dims(1) == nil {
			return nil
		}
		axes := n.axesOf(1)
		if !n.ok() {
			return nil
		}
		if len(axes) == 0 && n.i("noop_with_empty_axes") != 0 {
			return []*dimTensor{x}
		}
		y := &dimTensor{x.dtype, nil, []ir.Dim{ir.D(unit)}}
		for _, d := range x.elem {
			v, ok := unsaturated(f(y.elem[0], d))
			if y.elem[0] = v; !ok || !y.sound() {
				return nil
			}
		}
		if n.i("keepdims") != 0 {
			y.shape = []int64{1}
		}
		return []*dimTensor{y}
	}
}

func buildArg(n *node) {
	x := n.val(0)
	if !n.ok() {
		return
	}
	a := op.ArgAttrs{
		Axis: n.axis("axis", x.Rank()), KeepDims: n.i("keepdims") != 0, SelectLastIndex: n.i("select_last_index") != 0, IndexDtype: ir.I64,
	}
	if n.p.OpType == "ArgMax" {
		n.ret(op.ArgMaxWith(x, a))
	} else {
		n.ret(op.ArgMinWith(x, a))
	}
}

func buildScan(f func(ir.Value, op.CumAttrs) ir.Value) func(n *node) {
	return func(n *node) {
		x, axis := n.val(0), n.int(1, "axis", 0)
		if !n.ok() {
			return
		}
		a := op.CumAttrs{Axis: n.wrap(axis, x.Rank(), "axis"), Exclusive: n.i("exclusive") != 0, Reverse: n.i("reverse") != 0}
		if n.ok() {
			n.ret(f(x, a))
		}
	}
}

func hardmax(n *node, x ir.Value, axis int) ir.Value {
	depth, ok := x.Dim(axis).Static()
	if !ok {
		return op.Cast(n.im.hot(op.ArgMax(x, axis), x.Dim(axis), axis), x.DType())
	}
	return op.OneHot(op.ArgMax(x, axis), op.OneHotAttrs{Depth: depth, Axis: axis, Dtype: x.DType()})
}

// buildAlong reads an operator that works along one axis.
func buildAlong(f func(n *node, x ir.Value, axis int) ir.Value) func(n *node) {
	return func(n *node) {
		if x := n.val(0); n.ok() {
			if axis := n.axis("axis", x.Rank()); n.ok() {
				n.ret(f(n, x, axis))
			}
		}
	}
}

// buildCoerced reads the form before operator set 13: all axes from axis on count as one.
func buildCoerced(f func(n *node, x ir.Value, axis int) ir.Value) func(n *node) {
	return func(n *node) {
		x := n.val(0)
		if !n.ok() {
			return
		}
		axis, shape := n.axis("axis", x.Rank()), x.Shape()
		switch {
		case !n.ok():
		case axis == x.Rank()-1:
			n.ret(f(n, x, axis))
		default:
			y := f(n, op.Reshape(x, ir.Count(shape[:axis]), ir.Count(shape[axis:])), 1)
			if n.ok() {
				n.ret(op.Reshape(y, shape...))
			}
		}
	}
}
