package onnx

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// poolRows work on windows.
var poolRows = []row{
	{op: "MaxPool", since: 1, in: arity{1, 1}, build: buildMaxPool, attrs: append(windowAttrs(), integer("storage_order", 0, 0, 1))},
	{op: "AveragePool", since: 1, in: arity{1, 1}, attrs: append(windowAttrs(), integer("count_include_pad", 0)), build: func(n *node) {
		if x := n.val(0); n.ok() {
			n.ret(n.pool(x, "avg"))
		}
	}},
	{op: "LpPool", since: 2, in: arity{1, 1}, attrs: append(windowAttrs(), integer("p", 2)), build: func(n *node) {
		if x := n.val(0); n.ok() {
			p := float64(n.i("p"))
			n.ret(op.Pow(n.pool(op.Pow(op.Abs(x), p), "sum"), 1/p))
		}
	}},
	{op: "GlobalMaxPool", since: 1, in: arity{1, 1}, build: buildGlobalPool("max")},
	{op: "GlobalAveragePool", since: 1, in: arity{1, 1}, build: buildGlobalPool("mean")},
	{op: "GlobalLpPool", since: 2, in: arity{1, 1}, attrs: []attrDecl{integer("p", 2)}, build: func(n *node) {
		if x := n.val(0); n.ok() {
			p := float64(n.i("p"))
			n.ret(op.Pow(n.globalPool(op.Pow(op.Abs(x), p), "sum"), 1/p))
		}
	}},
	{op: "MaxUnpool", since: 9, in: arity{2, 3}, attrs: []attrDecl{required(integers("kernel_shape")), integers("pads"), integers("strides")}, build: buildMaxUnpool},
	{op: "LRN", since: 1, in: arity{1, 1}, build: buildLRN,
		attrs: []attrDecl{float("alpha", 1e-4), float("beta", 0.75), float("bias", 1), required(integer("size", 0))}},
	{op: "Col2Im", since: 18, in: arity{3, 3}, attrs: []attrDecl{integers("dilations"), integers("pads"), integers("strides")}, build: buildCol2Im},
}

func windowAttrs() []attrDecl {
	return []attrDecl{
		str("auto_pad", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), integer("ceil_mode", 0), integers("dilations"), required(integers("kernel_shape")),
		integers("pads"), integers("strides"),
	}
}

func (n *node) poolAttrs(fn op.PoolFn) op.PoolAttrs {
	a := op.PoolAttrs{
		Fn: fn, KernelSize: n.intList("kernel_shape"), Stride: n.intList("strides"), Padding: n.intList("pads"), Dilation: n.intList("dilations"),
		CeilMode: n.i("ceil_mode") != 0, CountIncludePad: n.i("count_include_pad") != 0, AutoPad: autoPads[n.s("auto_pad")],
	}
	if a.Stride == nil {
		a.Stride = ones(len(a.KernelSize))
	}
	if a.AutoPad != "none" {
		a.Padding = nil
	}
	return a
}

func (n *node) pool(x ir.Value, fn op.PoolFn) ir.Value { return op.Pool(x, n.poolAttrs(fn)) }

// buildGlobalPool reduces the spatial axes of [N, C, S..] to length 1.
func buildGlobalPool(fn op.ReduceFn) func(n *node) {
	return func(n *node) {
		if x := n.val(0); n.ok() {
			n.ret(n.globalPool(x, fn))
		}
	}
}

func (n *node) globalPool(x ir.Value, fn op.ReduceFn) ir.Value {
	if x.Rank() < 2 {
		n.fail("input has rank %d, expected at least 2", x.Rank())
		return ir.Value{}
	}
	if x.Rank() == 2 {
		return x
	}
	return op.Reduce(x, fn, interval(2, x.Rank()), true)
}

func buildMaxPool(n *node) {
	x := n.val(0)
	if !n.ok() {
		return
	}
	y := n.pool(x, "max")
	if !n.wants(1) || y.Poisoned() {
		n.ret(y)
		return
	}
	if index := n.maxIndices(x); n.ok() {
		n.ret(y, index)
	}
}

// maxIndices is the place of each maximum in the flattened input: the windows are laid side by side, and the first greatest wins.
func (n *node) maxIndices(x ir.Value) ir.Value {
	size, ok := ir.StaticShape(x.Shape()[2:])
	if !ok {
		n.refuse("", "output 1 (Indices) of an input of shape %s, expected known spatial dims", ir.ShapeText(x.Shape()))
		return ir.Value{}
	}
	a := n.poolAttrs("max")
	w, _ := op.PoolWindow(&a, x.Shape()[2:])
	begin, _ := ir.StaticShape(w.Begin)
	out, _ := ir.StaticShape(w.Out)
	if !n.spend(prod(a.KernelSize)) || !n.spend(prod(out)/64) {
		return ir.Value{}
	}
	padded, places := n.windows(x, a.KernelSize, w, size, begin, out)
	spatial := rowMajor(size)
	if n.i("storage_order") == 1 {
		spatial = reversed(rowMajor(reversed(size)))
	}
	offsets := make([]int64, len(places))
	for t, place := range places {
		for i := range size {
			offsets[t] += (place[i]*w.Dilation[i] - begin[i]) * spatial[i]
		}
	}
	base := make([]int64, prod(out))
	for i := range base {
		left := int64(i)
		for k, s := range rowMajor(out) {
			base[i] += left / s * w.Stride[k] * spatial[k]
			left %= s
		}
	}
	g := n.im.g
	tap := op.ArgMax(op.Concat(0, padded...), 0)
	at := op.Gather(g.Constant(ir.New(offsets, len(offsets))), tap, 0)
	at = op.Add(at, op.ReshapeInts(g.Constant(ir.New(base, len(base))), append([]int64{1, 1}, out...)...))
	image := op.Mul(n.im.iota(x.Dim(0).Mul(x.Dim(1))), prod(size))
	return op.Add(at, op.Reshape(image, append([]ir.Dim{x.Dim(0), x.Dim(1)}, ir.Dims(ones(len(size))...)...)...))
}

// windows gives, for each place in the kernel, the elements under it: [1, N, C, out..]. Padding is the least number.
func (n *node) windows(x ir.Value, kernel []int64, w op.Window, size, begin, out []int64) (taps []ir.Value, places [][]int64) {
	r := len(size)
	pads := make([]ir.Dim, 2*(r+2))
	for i := range size {
		need := (out[i]-1)*w.Stride[i] + (kernel[i]-1)*w.Dilation[i] + 1
		pads[2+i], pads[r+4+i] = ir.D(begin[i]), ir.D(max(0, need-size[i]-begin[i]))
	}
	least := ir.FloatNumber(math.Inf(-1))
	if t, ok := leastOf("max", x.DType()); ok {
		least = numberAt(t, 0)
	}
	x = op.Pad(x, pads, op.PadConstant, least)
	axes := interval(2, r+2)
	for t := range prod(kernel) {
		place, left := make([]int64, r), t
		starts, ends := make([]ir.Dim, r), make([]ir.Dim, r)
		for i, s := range rowMajor(kernel) {
			place[i] = left / s
			left %= s
			from := place[i] * w.Dilation[i]
			starts[i], ends[i] = ir.D(from), ir.D(from+(out[i]-1)*w.Stride[i]+1)
		}
		taps = append(taps, withAxis(op.Slice(x, starts, ends, axes, w.Stride), 0))
		places = append(places, place)
	}
	return taps, places
}

// buildMaxUnpool puts values back to where MaxPool found them, zeros elsewhere.
func buildMaxUnpool(n *node) {
	x, index := n.val(0), n.val(1)
	if !n.ok() {
		return
	}
	shape, ok := ir.StaticShape(x.Shape())
	kernel := n.intList("kernel_shape")
	if !ok || len(shape) != len(kernel)+2 {
		n.refuse("", "input of shape %s, expected known dims and %d spatial axes", ir.ShapeText(x.Shape()), len(kernel))
		return
	}
	strides, pads := n.perAxis("strides", len(kernel), 1), n.perAxis("pads", 2*len(kernel), 0)
	if !n.ok() {
		return
	}
	out := slices.Clone(shape)
	for i, k := range kernel {
		out[2+i] = (shape[2+i]-1)*strides[i] + k - pads[i] - pads[len(kernel)+i]
	}
	if slices.Min(out) < 0 || prod(out) > maxFolded {
		n.fail("output of shape %v", out)
		return
	}
	zeros := n.zeros(x.DType(), prod(out))
	if zeros == nil {
		return
	}
	flat := op.ReshapeInts(x, prod(shape))
	y := op.ReshapeInts(op.ScatterElements(n.im.g.Constant(zeros), op.ReshapeInts(index, prod(shape)), flat, 0, op.ScatterNone), out...)
	if n.has(2) {
		want := n.ints(2, "output_shape")
		if n.ok() && len(want) != len(out) {
			n.fail("output_shape has %d entries, expected %d", len(want), len(out))
		}
		if !n.ok() {
			return
		}
		grow := make([]ir.Dim, 2*len(out))
		for i := range out {
			grow[len(out)+i] = ir.D(want[i] - out[i])
		}
		y = op.Pad(y, grow, op.PadConstant, ir.IntNumber(0))
	}
	n.ret(y)
}

// buildLRN is x / (bias + alpha/size * sum of squares over size channels)^beta.
func buildLRN(n *node) {
	x, size := n.val(0), n.i("size")
	if n.ok() && (x.Rank() < 2 || size < 1 || !n.spend(size)) {
		n.fail("rank %d and size %d, expected at least 2 and 1", x.Rank(), size)
	}
	if !n.ok() {
		return
	}
	before := (size - 1) / 2
	pads := make([]ir.Dim, 2*x.Rank())
	pads[1], pads[x.Rank()+1] = ir.D(before), ir.D(size-1-before)
	sq := op.Pad(op.Mul(x, x), pads, op.PadConstant, ir.IntNumber(0))
	var sum ir.Value
	for i := range size {
		sum = combined(op.Add[iv, iv], sum, op.Slice(sq, ir.Dims(i), []ir.Dim{x.Dim(1).Add(ir.D(i))}, []int{1}, nil))
	}
	n.ret(op.Div(x, op.Pow(op.Add(op.Mul(sum, n.float("alpha")/float64(size)), n.float("bias")), n.float("beta"))))
}

// buildCol2Im adds up columns at the places of an image that Im2Col would have read them from: the transposed convolution of the columns
// with kernels that hold a single one.
func buildCol2Im(n *node) {
	n.rank(0, 3, 3)
	x, image, block := n.val(0), n.ints(1, "image_shape"), n.ints(2, "block_shape")
	if !n.ok() {
		return
	}
	r, taps := len(image), prod(block)
	channels, ok := x.Dim(1).FloorDiv(ir.D(max(taps, 1))).Static()
	if !ok || x.Rank() != 3 || len(block) != r || r < 1 || r > 3 || taps < 1 {
		n.refuse("", "input of shape %s with image %v and block %v, expected 3 dims, known channels and up to 3 spatial axes", ir.ShapeText(x.Shape()), image, block)
		return
	}
	strides, dilations, pads := n.perAxis("strides", r, 1), n.perAxis("dilations", r, 1), n.perAxis("pads", 2*r, 0)
	if n.ok() && slices.Min(strides) < 1 {
		n.fail("strides are %v, expected positive ones", strides)
	}
	if !n.ok() {
		return
	}
	a := op.ConvTransposeAttrs{Stride: strides, Dilation: dilations, Padding: make([]int64, 2*r), Groups: channels, OutputPadding: make([]int64, r)}
	columns := []ir.Dim{x.Dim(0), x.Dim(1)}
	for i := range r {
		room := image[i] + pads[i] + pads[r+i] - dilations[i]*(block[i]-1) - 1
		columns = append(columns, ir.D(room/strides[i]+1))
		a.Padding[i], a.Padding[r+i] = pads[i], pads[r+i]
		a.OutputPadding[i] = room % strides[i]
	}
	if taps > maxInlined || channels > maxInlined || !n.spend(channels*taps) {
		n.fail("%d channels and %d places in a block", channels, taps)
		return
	}
	kernel := n.zeros(x.DType(), append([]int64{channels * taps, 1}, block...)...)
	if kernel == nil {
		return
	}
	for c := range channels * taps {
		ir.PutInt(x.DType(), kernel.Bytes(), int(c*taps+c%taps), 1)
	}
	n.ret(convTranspose(op.Reshape(x, columns...), n.im.g.Constant(kernel), ir.Value{}, a))
}

func convTranspose(x, w, bias ir.Value, a op.ConvTransposeAttrs) ir.Value {
	switch x.Rank() {
	case 3:
		return op.ConvTranspose1d(x, w, bias, a)
	case 4:
		return op.ConvTranspose2d(x, w, bias, a)
	}
	return op.ConvTranspose3d(x, w, bias, a)
}
