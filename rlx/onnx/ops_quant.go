package onnx

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// quantRows go between floats and codes.
var quantRows = []row{
	{op: "QuantizeLinear", since: 10, in: arity{2, 3}, build: buildQuantize, attrs: quantizeAttrs},
	{op: "DequantizeLinear", since: 10, in: arity{2, 3}, build: buildDequantize, attrs: dequantizeAttrs},
	{op: "DynamicQuantizeLinear", since: 11, in: arity{1, 1}, build: func(n *node) {
		if x := n.val(0); n.ok() {
			n.ret(dynamicQuantize(x, ir.U8))
		}
	}},
	{op: "MatMulInteger", since: 10, in: arity{2, 4}, build: buildMatMulInteger},
	{op: "QLinearMatMul", since: 10, in: arity{8, 8}, build: buildQLinearMatMul},
	{op: "ConvInteger", since: 10, in: arity{2, 4}, build: buildConvInteger, attrs: convAttrs()},
	{op: "QLinearConv", since: 10, in: arity{8, 9}, build: buildQLinearConv, attrs: convAttrs()},
}

var (
	quantizeAttrs = []attrDecl{
		integer("axis", 1), integer("block_size", 0), integer("output_dtype", 0), integer("precision", 0), integer("saturate", 1),
	}
	dequantizeAttrs = []attrDecl{integer("axis", 1), integer("block_size", 0), integer("output_dtype", 0)}
)

// scaleAxis is the axis that a scale runs along, nil for one scale.
func (n *node) scaleAxis(x, scale ir.Value) *int64 {
	if n.i("block_size") == 0 && (scale.Rank() == 0 || scale.Rank() == 1 && scale.Dim(0).Is(1)) {
		return nil
	}
	axis := int64(n.axis("axis", x.Rank()))
	return &axis
}

// against lays a scale or zero point out so that it broadcasts against x: blocks repeat along their axis.
func (n *node) against(v, x ir.Value, axis *int64) ir.Value {
	block := n.i("block_size")
	switch {
	case v.IsZero():
		return v
	case axis == nil:
		return op.Reshape(v)
	case block == 0:
		return laid(v, int(*axis), x.Rank())
	}
	k := int(*axis)
	if v.Rank() != x.Rank() {
		n.fail("a scale or zero point of rank %d with block_size %d, expected rank %d", v.Rank(), block, x.Rank())
		return v
	}
	wide := append([]ir.Dim{}, v.Shape()[:k+1]...)
	wide = append(append(wide, ir.D(block)), v.Shape()[k+1:]...)
	joined := append([]ir.Dim{}, v.Shape()...)
	joined[k] = v.Dim(k).Mul(ir.D(block))
	y := op.Reshape(op.Expand(withAxis(v, k+1), wide...), joined...)
	return op.Slice(y, ir.Dims(0), []ir.Dim{x.Dim(k)}, []int{k}, nil)
}

// codes is the element type of a QuantizeLinear: that of the zero point, the attribute's, or UINT8.
func (n *node) codes() (elem int32, d ir.DType) {
	elem = int32(n.i("output_dtype"))
	if n.has(2) {
		if elem = n.in[2].elem; elem == 0 {
			return 0, n.typ(2).DType
		}
	}
	if elem == 0 {
		elem = DataUint8
	}
	return elem, n.dtypeAttr("output_dtype", int64(elem))
}

// narrowRange is the range of integers of 2 and 4 bits.
func narrowRange(elem int32) (lo, hi int64, narrow bool) {
	bits := 0
	switch elem {
	case DataInt4, DataUint4:
		bits = 4
	case DataInt2, DataUint2:
		bits = 2
	default:
		return 0, 0, false
	}
	if dataTypes[elem].signed {
		return -1 << (bits - 1), 1<<(bits-1) - 1, true
	}
	return 0, 1<<bits - 1, true
}

func buildQuantize(n *node) {
	x, scale, zero := n.val(0), n.val(1), n.val(2)
	elem, d := n.codes()
	if !n.ok() {
		return
	}
	axis := n.scaleAxis(x, scale)
	lo, hi, narrow := narrowRange(elem)
	var y ir.Value
	switch integral := ir.Set(ir.I8, ir.U8, ir.I16, ir.U16).Has(d); {
	case !n.ok():
		return
	case integral && x.DType() != ir.F64:
		if !ir.Float.Has(x.DType()) {
			x = op.Cast(x, ir.F32)
		}
		if axis == nil && n.has(2) {
			zero, scale = op.Reshape(zero), op.Reshape(scale)
		}
		y = op.Quantize(x, castTo(scale, ir.F32), zero, op.QuantizeAttrs{Axis: axis, BlockSize: n.i("block_size"), Dtype: d})
		if narrow {
			y = op.Clamp(y, lo, hi)
		}
	case ir.Float.Has(d) || ir.Code.Has(d):
		y = op.Div(castTo(x, ir.F32), castTo(n.against(scale, x, axis), ir.F32))
		if n.i("saturate") == 0 {
			y = op.CastUnsaturated(y, d)
		} else {
			y = op.Cast(y, d)
		}
	default:
		n.refuse("", "from %s to %s", x.DType(), d)
		return
	}
	n.ret(y)
	if len(n.out) > 0 && n.out[0] != nil {
		n.out[0].elem = elem
	}
}

func buildDequantize(n *node) {
	q, scale, zero := n.val(0), n.val(1), n.val(2)
	if !n.ok() {
		return
	}
	axis, d := n.scaleAxis(q, scale), scale.DType()
	if v := n.i("output_dtype"); v != 0 {
		d = n.dtypeAttr("output_dtype", v)
	}
	if !n.ok() {
		return
	}
	if ir.Set(ir.I8, ir.U8, ir.I16, ir.U16, ir.I32).Has(q.DType()) && ir.Set(ir.F32, ir.F16, ir.BF16).Has(d) {
		if axis == nil && n.has(2) {
			zero, scale = op.Reshape(zero), op.Reshape(scale)
		}
		n.ret(op.Dequantize(q, scale, zero, op.DequantizeAttrs{Axis: axis, BlockSize: n.i("block_size"), Dtype: d}))
		return
	}
	y := op.Cast(q, ir.F32)
	if n.has(2) {
		y = op.Sub(y, op.Cast(n.against(zero, q, axis), ir.F32))
	}
	n.ret(castTo(op.Mul(y, castTo(n.against(scale, q, axis), ir.F32)), d))
}

// dynamicQuantize maps the range of x, widened to hold 0, to the codes of d: y, its scale and its zero point.
func dynamicQuantize(x ir.Value, d ir.DType) (y, scale, zero ir.Value) {
	lo, hi := op.IntRange(d)
	least := op.Min(op.Reduce(x, "min", nil, false), 0)
	scale = op.Div(op.Sub(op.Max(op.Reduce(x, "max", nil, false), 0), least), hi-lo)
	zero = op.Cast(op.Clamp(op.Round(op.Sub(lo, op.Div(least, scale))), lo, hi), d)
	return op.Quantize(x, scale, zero, op.QuantizeAttrs{Dtype: d}), scale, zero
}

// whole8 says that a value holds integers of 8 bits.
func whole8(v ir.Value) bool { return ir.Set(ir.I8, ir.U8).Has(v.DType()) }

// oneCode is a zero point as a number, if all its elements are known and equal; an absent one is 0.
func (n *node) oneCode(i int) (int64, bool) {
	if !n.has(i) {
		return 0, true
	}
	t := n.known(i)
	if t == nil || t.Len() == 0 || !ir.Int.Has(t.DType()) {
		return 0, false
	}
	for k := range t.Len() {
		if t.Int(k) != t.Int(0) {
			return 0, false
		}
	}
	return t.Int(0), true
}

// centered is input i in i32 with its zero point taken off. A vector of zero points runs along axis.
func (n *node) centered(x ir.Value, zero, axis int) ir.Value {
	y := op.Cast(x, ir.I32)
	if !n.has(zero) {
		return y
	}
	z := op.Cast(n.val(zero), ir.I32)
	if axis >= x.Rank() || axis < 0 {
		return op.Sub(y, op.Reshape(z))
	}
	if z.Rank() == 1 && !z.Dim(0).Is(1) {
		z = laid(z, axis, x.Rank())
	} else if z.Rank() == 1 {
		z = op.Reshape(z)
	}
	return op.Sub(y, z)
}

// integerProduct is (a - a_zero)(b - b_zero) in i32; za and zb number the inputs that hold zero points.
func (n *node) integerProduct(a, b ir.Value, za, zb int) ir.Value {
	az, ok1 := n.oneCode(za)
	bz, ok2 := n.oneCode(zb)
	if ok1 && ok2 && b.Rank() == 2 && whole8(a) && whole8(b) {
		return op.QMatMul(a, b, ir.Value{}, ir.Value{}, op.QMatMulAttrs{XZeroPoint: az, WZeroPoint: bz, Multiplier: 1, Dtype: ir.I32})
	}
	return op.MatMul(n.centered(a, za, max(a.Rank()-2, 0)), n.centered(b, zb, b.Rank()-1))
}

func buildMatMulInteger(n *node) {
	a, b := n.val(0), n.val(1)
	if n.ok() {
		n.ret(n.integerProduct(a, b, 2, 3))
	}
}

// rescaled is a sum of products in i32 as codes: times the scales of the operands, over that of the result. A vector of b's scales runs
// along axis.
func (n *node) rescaled(acc, as, bs, ys, yz ir.Value, axis int) ir.Value {
	row := func(v ir.Value, axis int) ir.Value {
		v = castTo(v, ir.F32)
		if v.Rank() == 1 && !v.Dim(0).Is(1) && axis >= 0 && axis < acc.Rank() {
			return laid(v, axis, acc.Rank())
		}
		return op.Reshape(v)
	}
	f := op.Mul(op.Mul(op.Cast(acc, ir.F32), row(as, max(acc.Rank()-2, 0))), row(bs, axis))
	return op.Quantize(f, op.Reshape(castTo(ys, ir.F32)), op.Reshape(yz), op.QuantizeAttrs{Dtype: yz.DType()})
}

// multiplier is as * bs / ys where all are known: one number, or one for each of count columns.
func (n *node) multiplier(a, b, y int, count ir.Dim) (one float64, each ir.Value, ok bool) {
	as, bs, ys := n.known(a), n.known(b), n.known(y)
	if as == nil || bs == nil || ys == nil || as.Len() != 1 || ys.Len() != 1 {
		return 0, each, false
	}
	at := func(i int) float32 { return float32(as.Float(0)) * float32(bs.Float(i)) / float32(ys.Float(0)) }
	if bs.Len() == 1 {
		return float64(at(0)), each, true
	}
	if !count.Is(int64(bs.Len())) {
		return 0, each, false
	}
	list := make([]float32, bs.Len())
	for i := range list {
		list[i] = at(i)
	}
	return 1, n.im.g.Constant(ir.New(list, len(list))), true
}

// bytesOnly refuses a QLinear operator whose operands or result are wider than 8 bits.
func (n *node) bytesOnly(v []ir.Value) bool {
	ok := whole8(v[0]) && whole8(v[3]) && whole8(v[7])
	if !ok {
		n.refuse("", "operands of %s and %s to %s, expected integers of 8 bits", v[0].DType(), v[3].DType(), v[7].DType())
	}
	return ok
}

func buildQLinearMatMul(n *node) {
	v := n.vals()
	if !n.ok() {
		return
	}
	if !n.bytesOnly(v) {
		return
	}
	az, ok1 := n.oneCode(2)
	bz, ok2 := n.oneCode(5)
	yz, ok3 := n.oneCode(7)
	if m, each, ok := n.multiplier(1, 4, 6, v[3].Dim(-1)); ok && ok1 && ok2 && ok3 && v[3].Rank() == 2 {
		n.ret(op.QMatMul(v[0], v[3], ir.Value{}, each, op.QMatMulAttrs{XZeroPoint: az, WZeroPoint: bz, OutZeroPoint: yz, Multiplier: m, Dtype: v[7].DType()}))
		return
	}
	acc := n.integerProduct(v[0], v[3], 2, 5)
	n.ret(n.rescaled(acc, v[1], v[4], v[6], v[7], acc.Rank()-1))
}

// qconv is the geometry of an integer convolution.
func (n *node) qconv() op.QConv2dAttrs {
	a := op.QConv2dAttrs{
		Stride: n.intList("strides"), Dilation: n.intList("dilations"), Padding: n.intList("pads"), AutoPad: autoPads[n.s("auto_pad")],
		Groups: n.i("group"), Multiplier: 1,
	}
	if a.AutoPad != "none" {
		a.Padding = nil
	}
	return a
}

// integerConv is the convolution of the codes less their zero points, in i32: products of 8 bits are exact in f64.
func (n *node) integerConv(x, w ir.Value, zx, zw int, a op.QConv2dAttrs) ir.Value {
	xz, ok1 := n.oneCode(zx)
	wz, ok2 := n.oneCode(zw)
	if ok1 && ok2 && x.Rank() <= 4 && whole8(x) && whole8(w) {
		a.XZeroPoint, a.WZeroPoint, a.Dtype = xz, wz, ir.I32
		return op.QConv2d(x, w, ir.Value{}, ir.Value{}, a)
	}
	fx, fw := op.Cast(n.centered(x, zx, 1), ir.F64), op.Cast(n.centered(w, zw, 0), ir.F64)
	c := op.ConvAttrs{Stride: a.Stride, Dilation: a.Dilation, Padding: a.Padding, AutoPad: a.AutoPad, Groups: a.Groups}
	switch x.Rank() {
	case 3:
		return op.Cast(op.Conv1d(fx, fw, ir.Value{}, c), ir.I32)
	case 4:
		return op.Cast(op.Conv2d(fx, fw, ir.Value{}, c), ir.I32)
	}
	return op.Cast(op.Conv3d(fx, fw, ir.Value{}, c), ir.I32)
}

func buildConvInteger(n *node) {
	x, w := n.val(0), n.val(1)
	if n.ok() {
		n.ret(n.integerConv(x, w, 2, 3, n.qconv()))
	}
}

func buildQLinearConv(n *node) {
	v := n.vals()
	if !n.ok() {
		return
	}
	var bias ir.Value
	if n.has(8) {
		bias = v[8]
	}
	if !n.bytesOnly(v) {
		return
	}
	a := n.qconv()
	xz, ok1 := n.oneCode(2)
	wz, ok2 := n.oneCode(5)
	yz, ok3 := n.oneCode(7)
	if m, each, ok := n.multiplier(1, 4, 6, v[3].Dim(0)); ok && ok1 && ok2 && ok3 && v[0].Rank() <= 4 {
		a.XZeroPoint, a.WZeroPoint, a.OutZeroPoint, a.Multiplier, a.Dtype = xz, wz, yz, m, v[7].DType()
		n.ret(op.QConv2d(v[0], v[3], bias, each, a))
		return
	}
	acc := n.integerConv(v[0], v[3], 2, 5, a)
	if n.has(8) {
		acc = op.Add(acc, column(bias, acc.Rank()))
	}
	n.ret(n.rescaled(acc, v[1], v[4], v[6], v[7], 1))
}

// randomRows draw numbers.
var randomRows = []row{
	random("RandomUniform", false, float("low", 0), float("high", 1)),
	random("RandomUniformLike", true, float("low", 0), float("high", 1)),
	random("RandomNormal", false, float("mean", 0), float("scale", 1)),
	random("RandomNormalLike", true, float("mean", 0), float("scale", 1)),
	{op: "Bernoulli", since: 15, in: arity{1, 1}, build: buildBernoulli,
		attrs: []attrDecl{{name: "dtype", kind: AttributeInt}, {name: "seed", kind: AttributeFloat}}},
}

// random declares an operator whose shape is an attribute, or that of its operand.
func random(name string, like bool, a, b attrDecl) row {
	r := row{op: name, since: 1, build: buildRandom, attrs: []attrDecl{a, b, {name: "seed", kind: AttributeFloat}}}
	if like {
		r.in, r.ofShape = arity{1, 1}, true
		r.attrs = append(r.attrs, attrDecl{name: "dtype", kind: AttributeInt})
	} else {
		r.attrs = append(r.attrs, integer("dtype", int64(DataFloat)), required(integers("shape")))
	}
	return r
}

func buildRandom(n *node) {
	shape, d := ir.Dims(n.intList("shape")...), ir.F32
	if n.row.ofShape {
		shape, d = n.typ(0).Shape, n.typ(0).DType
	}
	d = n.dtypeOr("dtype", d)
	if !n.ok() {
		return
	}
	g := n.im.g
	if n.row.attrs[0].name == "mean" {
		n.ret(n.seeded(op.RngNormal(g, d, n.float("mean"), n.float("scale"), shape...)))
	} else {
		n.ret(n.seeded(op.RngUniform(g, d, n.float("low"), n.float("high"), shape...)))
	}
}

// seeded puts attribute seed, whose bits count, into a random node.
func (n *node) seeded(y ir.Value) ir.Value {
	a := n.attr("seed")
	if a == nil || y.Poisoned() {
		return y
	}
	seed := ir.IntNumber(int64(math.Float32bits(a.F)))
	switch at := y.Node().Attrs.(type) {
	case *op.RngUniformAttrs:
		at.Seed = seed
	case *op.RngNormalAttrs:
		at.Seed = seed
	}
	return y
}

// buildBernoulli is 1 with the probability that the operand gives.
func buildBernoulli(n *node) {
	p := n.val(0)
	if !n.ok() {
		return
	}
	if d := n.dtypeOr("dtype", p.DType()); n.ok() {
		u := n.seeded(op.RngUniform(n.im.g, p.DType(), 0, 1, p.Shape()...))
		n.ret(castTo(op.Lt(u, p), d))
	}
}
