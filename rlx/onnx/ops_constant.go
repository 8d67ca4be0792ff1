package onnx

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

var constantRows = []row{
	{op: "Constant", since: 1, build: buildConstant, attrs: []attrDecl{
		tensorAttr("value"), {name: "value_float", kind: AttributeFloat}, floats("value_floats"), {name: "value_int", kind: AttributeInt},
		integers("value_ints"),
	}},
	{op: "ConstantOfShape", since: 9, in: arity{1, 1}, attrs: []attrDecl{tensorAttr("value")}, build: buildFill, track: trackFill},
	{op: "Shape", since: 1, in: arity{1, 1}, attrs: []attrDecl{integer("start", 0), {name: "end", kind: AttributeInt}}, track: trackShape, ofShape: true},
	{op: "Size", since: 1, in: arity{1, 1}, ofShape: true, track: func(n *node) []*dimTensor { return []*dimTensor{scalar(ir.Count(n.typ(0).Shape))} }},
	{op: "Range", since: 11, in: arity{3, 3}, attrs: []attrDecl{integer("stash_type", 1, 1)}, build: buildRange, track: trackRange},
	{op: "EyeLike", since: 9, in: arity{1, 1}, attrs: []attrDecl{{name: "dtype", kind: AttributeInt}, integer("k", 0)}, build: buildEyeLike, ofShape: true},
	{op: "Identity", since: 1, in: arity{1, 1}, lists: true, build: func(n *node) { n.pass(0) }},
	{op: "Dropout", since: 7, in: arity{1, 1}, attrs: []attrDecl{float("ratio", 0.5)}, build: buildDropout},
	{op: "Dropout", since: 12, in: arity{1, 3}, attrs: []attrDecl{{name: "seed", kind: AttributeInt}}, build: buildDropout},
	{op: "BitCast", since: 26, in: arity{1, 1}, attrs: []attrDecl{required(integer("to", 0))}, build: buildBitCast},
	{op: "Cast", since: 6, in: arity{1, 1}, build: buildCast, track: trackCast,
		attrs: []attrDecl{required(integer("to", 0)), integer("saturate", 1), str("round_mode", "up")}},
	{op: "CastLike", since: 15, in: arity{2, 2}, build: buildCast, track: trackCast,
		attrs: []attrDecl{integer("saturate", 1), str("round_mode", "up")}},
}

// buildConstant keeps the tensor without a node until it is used.
func buildConstant(n *node) {
	if len(n.p.Attribute) != 1 {
		n.fail("got %d attributes, expected one value", len(n.p.Attribute))
		return
	}
	a := n.p.Attribute[0]
	var t *ir.Tensor
	switch a.Name {
	case "value":
		t = n.tensor("value")
	case "value_float":
		t = ir.Scalar(a.F)
	case "value_floats":
		t = ir.New(a.Floats, len(a.Floats))
	case "value_int":
		t = ir.Scalar(a.I)
	case "value_ints":
		t = ir.New(a.Ints, len(a.Ints))
	}
	if n.ok() {
		n.give(0, t)
	}
}

// tensor is a tensor attribute, nil if it is absent.
func (n *node) tensor(name string) *ir.Tensor {
	a := n.attr(name)
	if a == nil {
		return nil
	}
	if a.T == nil {
		n.fail("attribute %s has no tensor", name)
		return nil
	}
	t, reason, err := readTensor(a.T, &n.im.store)
	if err != nil {
		n.fail("attribute %s: %w", name, err)
	}
	if reason != "" {
		n.refuse(name, "%s", reason)
	}
	return t
}

func trackShape(n *node) []*dimTensor {
	shape := n.typ(0).Shape
	from, to := n.i("start"), int64(len(shape))
	if a := n.attr("end"); a != nil {
		to = a.I
	}
	clamp := func(i int64) int64 {
		if i < 0 {
			i += int64(len(shape))
		}
		return min(max(i, 0), int64(len(shape)))
	}
	from, to = clamp(from), clamp(to)
	for _, d := range shape {
		n.im.lengths[d] = true
	}
	return []*dimTensor{vector(shape[from:max(from, to)]...)}
}

// fill is the value of a ConstantOfShape: f32 zero unless given.
func (n *node) fill() *ir.Tensor {
	t := n.tensor("value")
	if t == nil {
		return ir.Scalar(float32(0))
	}
	if n.ok() && t.Len() != 1 {
		n.fail("value has %d elements, expected one", t.Len())
	}
	return t
}

func trackFill(n *node) []*dimTensor {
	shape := n.dims(0)
	t := n.fill()
	if shape == nil || !n.ok() {
		return nil
	}
	to, ok := shape.static()
	one := trackTensor(t)
	if !ok || one == nil || ir.Float.Has(t.DType()) {
		return nil
	}
	return []*dimTensor{one.pick(to, func([]int64) int64 { return 0 })}
}

func buildFill(n *node) {
	t, shape := n.fill(), n.list(0, "shape")
	for _, d := range shape {
		if v, ok := d.Static(); ok && v < 0 {
			n.fail("shape has length %d, expected at least 0", v)
		}
	}
	if !n.ok() {
		return
	}
	one, err := ir.FromBytes(t.DType(), nil, t.Bytes())
	if err != nil {
		n.fail("%w", err)
		return
	}
	n.ret(op.Expand(n.im.g.Constant(one), shape...))
}

func trackRange(n *node) []*dimTensor {
	in := n.operands()
	if in == nil || len(in[0].elem) != 1 || len(in[1].elem) != 1 || len(in[2].elem) != 1 {
		return nil
	}
	start, delta := in[0].elem[0], in[2].elem[0]
	length, err := rangeLength(start, in[1].elem[0], delta)
	n1, ok := length.Static()
	if err != nil || !ok || n1 > maxTracked {
		return nil
	}
	t := &dimTensor{in[0].dtype, []int64{n1}, nil}
	for i := range n1 {
		t.elem = append(t.elem, start.Add(delta.Mul(ir.D(i))))
	}
	return []*dimTensor{t}
}

// buildRange is start + delta * (0, 1, 2 ...), whose length may be a symbol.
func buildRange(n *node) {
	d := n.typ(0).DType
	length, ok := n.rangeLength()
	start, delta := n.val(0), n.val(2)
	if !n.ok() || !ok {
		return
	}
	wide := atLeastF32(d)
	y := n.im.iotaOf(wide, length)
	if !n.isNumber(2, 1) {
		y = op.Mul(y, castTo(delta, wide))
	}
	if !n.isNumber(0, 0) {
		y = op.Add(y, castTo(start, wide))
	}
	n.ret(castTo(y, d))
}

// isNumber says that input i is known to be v.
func (n *node) isNumber(i int, v int64) bool {
	t := n.dims(i)
	return t != nil && len(t.elem) == 1 && t.elem[0].Is(v)
}

// rangeLength is the number of elements of a Range, from dims or from constant floats.
func (n *node) rangeLength() (ir.Dim, bool) {
	a, b, c := n.dims(0), n.dims(1), n.dims(2)
	for _, t := range []*dimTensor{a, b, c} {
		if t != nil && len(t.elem) != 1 {
			n.fail("start, limit and delta must have one element")
			return ir.Dim{}, false
		}
	}
	if a != nil && b != nil && c != nil {
		k, err := rangeLength(a.elem[0], b.elem[0], c.elem[0])
		if err != nil {
			n.unknown(2, "delta")
		}
		return k, err == nil
	}
	start, limit, delta := n.want(0, "start"), n.want(1, "limit"), n.want(2, "delta")
	if !n.ok() {
		return ir.Dim{}, false
	}
	if start.Len() != 1 || limit.Len() != 1 || delta.Len() != 1 {
		n.fail("start, limit and delta must have one element")
		return ir.Dim{}, false
	}
	k := math.Max(0, math.Ceil((limit.Float(0)-start.Float(0))/delta.Float(0)))
	if math.IsNaN(k) || k > 1<<53 {
		n.fail("from %g to %g by %g is no number of elements", start.Float(0), limit.Float(0), delta.Float(0))
		return ir.Dim{}, false
	}
	return ir.D(int64(k)), true
}

// buildEyeLike keeps one diagonal of a matrix of ones.
func buildEyeLike(n *node) {
	d, shape := n.dtypeOr("dtype", n.typ(0).DType), n.typ(0).Shape
	if len(shape) != 2 {
		n.fail("input has rank %d, expected 2", len(shape))
	}
	if !n.ok() {
		return
	}
	k := n.i("k")
	y := op.Expand(n.im.g.Constant(op.NumberAs(d, ir.IntNumber(1))), shape...)
	n.ret(op.Trilu(op.Trilu(y, true, k), false, k))
}

// dtypeOr is the dtype of an attribute that holds an element type, or d where it is absent.
func (n *node) dtypeOr(name string, d ir.DType) ir.DType {
	if a := n.attr(name); a != nil {
		return n.dtypeAttr(name, a.I)
	}
	return d
}

func (n *node) dtypeAttr(name string, v int64) ir.DType {
	if int64(int32(v)) != v {
		n.fail("attribute %s is %d, expected an element type", name, v)
		return ir.Invalid
	}
	d, reason := dtype(int32(v))
	if reason != "" {
		n.refuse(name, "%s", reason)
	}
	return d
}

// buildDropout is the identity, as dropout is outside of training, with a mask of true.
func buildDropout(n *node) {
	if n.has(2) {
		train, ok := n.truth(n.in[2], "input 2 (training_mode)")
		if !ok {
			return
		}
		if train && (!n.has(1) || n.want(1, "ratio") != nil && n.known(1).Float(0) != 0) {
			n.refuse("", "training with a ratio other than 0")
		}
		if !n.ok() {
			return
		}
	}
	n.pass(0)
	if !n.wants(1) {
		return
	}
	mask := ir.Scalar(true)
	if n.opset < 10 {
		mask = op.NumberAs(n.typ(0).DType, ir.IntNumber(1))
	}
	v := op.Expand(n.im.g.Constant(mask), n.typ(0).Shape...)
	n.out[1] = &value{typ: v.Type(), node: v}
}

// castDType is the dtype that Cast and CastLike go to.
func (n *node) castDType() ir.DType {
	if n.p.OpType == "CastLike" {
		return n.typ(1).DType
	}
	return n.dtypeAttr("to", n.i("to"))
}

// castElem is the element type that Cast and CastLike go to.
func (n *node) castElem() int32 {
	if n.p.OpType == "CastLike" {
		return n.in[1].elem
	}
	return int32(n.i("to"))
}

// buildBitCast reads the same bits as another type. Integers of one size wrap; other bits must be known.
func buildBitCast(n *node) {
	to, from := n.dtypeAttr("to", n.i("to")), n.typ(0).DType
	if n.ok() && from.Size() != to.Size() {
		n.fail("from %s to %s, expected types of one size", from, to)
	}
	if !n.ok() {
		return
	}
	if whole := ir.Int; from == to || whole.Has(from) && whole.Has(to) {
		if x := n.val(0); n.ok() {
			n.ret(op.CastUnsaturated(x, to))
		}
		return
	}
	t := n.want(0, "input")
	if t == nil {
		return
	}
	y, err := ir.FromBytes(to, t.Shape(), t.Bytes())
	if err != nil {
		n.fail("%w", err)
	}
	n.give(0, y)
}

func trackCast(n *node) []*dimTensor {
	x, d := n.dims(0), n.castDType()
	if x == nil && ir.Int.Has(d) { // toward zero, as casts round
		x = n.quotients(d, ir.Dim.FloorDiv)
	}
	if _, _, narrow := narrowRange(n.castElem()); narrow || x == nil || !n.ok() {
		return nil
	}
	if lo, hi := whole(d); lo > hi {
		return nil
	}
	if d == ir.Bool && x.dtype != ir.Bool {
		return []*dimTensor{mapDims(d, func(e []ir.Dim) (ir.Dim, bool) {
			v, ok := e[0].Static()
			return truth(v != 0), ok
		}, x)}
	}
	return []*dimTensor{{d, x.shape, x.elem}}
}

func buildCast(n *node) {
	d := n.castDType()
	if !n.ok() {
		return
	}
	if lo, hi, narrow := narrowRange(n.castElem()); narrow {
		if x := n.val(0); n.ok() && len(n.out) > 0 {
			n.ret(castNarrow(x, d, lo, hi))
			n.out[0].elem = n.castElem()
		}
		return
	}
	if n.castKonst(d) {
		return
	}
	x := n.val(0)
	switch {
	case !n.ok():
	case x.DType() == d:
		n.pass(0)
	case n.i("saturate") == 0:
		n.ret(op.CastUnsaturated(x, d))
	default:
		n.ret(op.Cast(x, d))
	}
}

// castNarrow keeps the low bits of the whole part, as far as the range lo to hi has them.
func castNarrow(x ir.Value, d ir.DType, lo, hi int64) ir.Value {
	y := op.BitAnd(castTo(x, ir.I32), hi-lo)
	if lo < 0 {
		y = op.Add(op.BitXor(y, -lo), lo)
	}
	return op.Cast(y, d)
}

// castKonst casts a small float constant at once, so that what reads it still finds a constant.
func (n *node) castKonst(d ir.DType) bool {
	t := n.konst(0)
	if t == nil || t.Len() > maxTracked || !ir.Float.Has(t.DType()) || !ir.Float.Has(d) || len(n.out) == 0 {
		return false
	}
	out, err := ir.Zeros(d, t.Shape()...)
	if err != nil {
		return false
	}
	for i := range t.Len() {
		ir.PutFloat(d, out.Bytes(), i, t.Float(i))
	}
	n.out[0] = n.im.constant(out)
	return true
}
