package onnx

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// linearRows are products and convolutions.
var linearRows = []row{
	binaryOp("MatMul", 1, op.MatMul, nil),
	{op: "Gemm", since: 7, in: arity{2, 3}, attrs: gemmAttrs(), build: buildGemm},
	{op: "Conv", since: 1, in: arity{2, 3}, attrs: convAttrs(), build: func(n *node) {
		if y := n.conv(n.val(0)); n.ok() {
			n.ret(y)
		}
	}},
	{op: "ConvTranspose", since: 1, in: arity{2, 3}, build: buildConvTranspose,
		attrs: append(convAttrs(), integers("output_padding"), integers("output_shape"))},
}

func gemmAttrs() []attrDecl {
	return []attrDecl{float("alpha", 1), float("beta", 1), integer("transA", 0), integer("transB", 0)}
}

func convAttrs() []attrDecl {
	return []attrDecl{
		str("auto_pad", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), integers("dilations"), integer("group", 1), integers("kernel_shape"),
		integers("pads"), integers("strides"),
	}
}

func buildGemm(n *node) {
	if y := n.gemm(); n.ok() {
		n.ret(y)
	}
}

// gemm is alpha * a b + beta * c of inputs 0 to 2. Factors of 1 leave no node.
func (n *node) gemm() ir.Value {
	a, b, c := n.val(0), n.val(1), n.val(2)
	if n.ok() && (a.Rank() != 2 || b.Rank() != 2) {
		n.fail("operands have ranks %d and %d, expected 2", a.Rank(), b.Rank())
	}
	if !n.ok() {
		return ir.Value{}
	}
	if n.i("transA") != 0 {
		a = op.Transpose(a, 1, 0)
	}
	if n.i("transB") != 0 {
		b = op.Transpose(b, 1, 0)
	}
	y := scaled(n, op.MatMul(a, b), "alpha")
	if n.has(2) {
		y = op.Add(y, scaled(n, c, "beta"))
	}
	return y
}

// scaled is x times a float attribute; an integer x keeps the whole part.
func scaled(n *node, x ir.Value, attr string) ir.Value {
	f, d := n.float(attr), x.DType()
	switch {
	case f == 1:
		return x
	case ir.Float.Has(d):
		return op.Mul(x, f)
	}
	return op.Cast(op.Mul(op.Cast(x, ir.F64), f), d)
}

// autoPads maps ONNX's names.
var autoPads = map[string]op.AutoPad{"NOTSET": "none", "VALID": "valid", "SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower"}

// conv is the convolution of x by input 1, plus input 2.
func (n *node) conv(x ir.Value) ir.Value {
	w, bias := n.val(1), n.val(2)
	if !n.ok() {
		return ir.Value{}
	}
	a := op.ConvAttrs{
		Stride: n.intList("strides"), Dilation: n.intList("dilations"), Padding: n.intList("pads"),
		AutoPad: autoPads[n.s("auto_pad")], Groups: n.i("group"),
	}
	if a.AutoPad != "none" {
		a.Padding = nil // which ONNX ignores then
	}
	if k := n.intList("kernel_shape"); k != nil && w.Rank() > 2 {
		if kernel, ok := ir.StaticShape(w.Shape()[2:]); ok && !slices.Equal(k, kernel) {
			n.fail("kernel_shape is %d, the weights have %d", k, kernel)
			return ir.Value{}
		}
	}
	switch x.Rank() {
	case 3:
		return op.Conv1d(x, w, bias, a)
	case 4:
		return op.Conv2d(x, w, bias, a)
	case 5:
		return op.Conv3d(x, w, bias, a)
	}
	n.refuse("", "input has rank %d, supported are 3 to 5", x.Rank())
	return ir.Value{}
}

func buildConvTranspose(n *node) {
	x, w, bias := n.val(0), n.val(1), n.val(2)
	if !n.ok() {
		return
	}
	if x.Rank() < 3 || x.Rank() > 5 {
		n.refuse("", "input has rank %d, supported are 3 to 5", x.Rank())
		return
	}
	n.rank(1, x.Rank(), x.Rank())
	if !n.ok() {
		return
	}
	a := op.ConvTransposeAttrs{
		Stride: n.intList("strides"), Dilation: n.intList("dilations"), Padding: n.intList("pads"), AutoPad: autoPads[n.s("auto_pad")],
		Groups: n.i("group"), OutputPadding: n.intList("output_padding"),
	}
	if a.AutoPad != "none" {
		a.Padding = nil
	}
	if want := n.intList("output_shape"); want != nil {
		a.Padding, a.OutputPadding = n.transposePads(x, w, a, want)
		a.AutoPad = "none"
	}
	if n.ok() {
		n.ret(convTranspose(x, w, bias, a))
	}
}

// transposePads is the padding of a ConvTranspose that gives the wanted sizes; what the sum is short of them is added at the end.
func (n *node) transposePads(x, w ir.Value, a op.ConvTransposeAttrs, want []int64) (pads, more []int64) {
	size, ok1 := ir.StaticShape(x.Shape()[2:])
	kernel, ok2 := ir.StaticShape(w.Shape()[2:])
	r := len(size)
	if !ok1 || !ok2 || len(want) < r {
		n.refuse("output_shape", "input of shape %s, expected known spatial dims", ir.ShapeText(x.Shape()))
		return nil, nil
	}
	want = want[len(want)-r:]
	strides, dilations := n.perAxis("strides", r, 1), n.perAxis("dilations", r, 1)
	pads, more = make([]int64, 2*r), make([]int64, r)
	for i := range r {
		total := (size[i]-1)*strides[i] + dilations[i]*(kernel[i]-1) + 1 + at(a.OutputPadding, i) - want[i]
		more[i] = at(a.OutputPadding, i)
		if total < 0 {
			more[i], total = more[i]-total, 0
		}
		pads[i] = total - total/2
		if a.AutoPad == "same_upper" {
			pads[i] = total / 2
		}
		pads[r+i] = total - pads[i]
	}
	return pads, more
}
