package onnx

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// signalRows are transforms and windows. Complex values have a last axis of 2, real ones of 1.
var signalRows = []row{
	{op: "DFT", since: 17, in: arity{1, 2}, attrs: []attrDecl{integer("axis", 1), integer("inverse", 0, 0, 1), integer("onesided", 0, 0, 1)}, build: buildDFT},
	{op: "DFT", since: 20, in: arity{1, 3}, attrs: []attrDecl{integer("inverse", 0, 0, 1), integer("onesided", 0, 0, 1)}, build: buildDFT},
	{op: "STFT", since: 17, in: arity{2, 4}, attrs: []attrDecl{integer("onesided", 1, 0, 1)}, build: buildSTFT},
	window("HannWindow", 0.5, 0.5, 0),
	window("HammingWindow", 25./46, 21./46, 0),
	window("BlackmanWindow", 0.42, 0.5, 0.08),
	{op: "MelWeightMatrix", since: 17, in: arity{5, 5}, attrs: []attrDecl{integer("output_datatype", int64(DataFloat))}, build: buildMelWeights},
}

// window declares a - b cos(2 pi k / N) + c cos(4 pi k / N), N being the size, or one less where it is not periodic.
func window(name string, a, b, c float64) row {
	return row{op: name, since: 17, in: arity{1, 1}, attrs: []attrDecl{integer("output_datatype", int64(DataFloat)), integer("periodic", 1, 0, 1)},
		build: func(n *node) {
			size, d := n.int(0, "size", 0), n.dtypeAttr("output_datatype", n.i("output_datatype"))
			if n.ok() && (size < 0 || size > maxFolded/8) {
				n.fail("size is %d", size)
			}
			if !n.ok() {
				return
			}
			period := float64(max(size-1+n.i("periodic"), 1))
			n.give(0, n.table(d, func(k int) float64 {
				t := 2 * math.Pi * float64(k) / period
				return a - b*math.Cos(t) + c*math.Cos(2*t)
			}, size))
		}}
}

// table is a constant computed from a formula over the flat index.
func (n *node) table(d ir.DType, f func(i int) float64, shape ...int64) *ir.Tensor {
	if prod(shape) > maxFolded/8 || !(ir.Float | ir.Int).Has(d) {
		n.fail("a table of %s%v, expected numbers and at most %d of them", d, shape, maxFolded/8)
		return nil
	}
	t := n.zeros(d, shape...)
	if t == nil {
		return nil
	}
	for i := range t.Len() {
		if ir.Float.Has(d) {
			ir.PutFloat(d, t.Bytes(), i, f(i))
		} else {
			ir.PutInt(d, t.Bytes(), i, int64(f(i)))
		}
	}
	return t
}

func buildDFT(n *node) {
	n.rank(0, 2, ir.MaxRank-1)
	x := n.val(0)
	length := n.int(1, "dft_length", 0)
	if !n.ok() {
		return
	}
	axis := n.i("axis")
	if n.row.since >= 20 {
		axis = n.int(2, "axis", -2)
	}
	k := n.wrap(axis, x.Rank(), "axis")
	if n.ok() && k == x.Rank()-1 {
		n.fail("axis %d is that of the real and imaginary parts", axis)
	}
	if n.ok() {
		n.ret(n.dft(x, k, length, n.i("inverse") == 1, n.i("onesided") == 1))
	}
}

// shortDFT is the longest forward transform that takes the detour over f64, where bins that cancel come out as zeros: it costs little there.
const shortDFT = 64

// dft transforms x [.., N, .., 1 or 2] along axis; the result has 2 parts, or 1 where it is real.
func (n *node) dft(x ir.Value, axis int, length int64, inverse, onesided bool) ir.Value {
	last := x.Rank() - 1
	parts, ok := x.Dim(last).Static()
	if !ok || parts != 1 && parts != 2 {
		n.fail("the last axis has length %s, expected 1 or 2", x.Dim(last))
		return ir.Value{}
	}
	d := x.DType()
	if size, ok := x.Dim(axis).Static(); ok && max(size, length) <= shortDFT && !inverse && d == ir.F32 {
		x = op.Cast(x, ir.F64)
	}
	re := pick(x, last, 0)
	a := op.FftAttrs{Inverse: inverse, Axis: axis, NFft: length, Real: onesided, Layout: "block"}
	block := re
	if !onesided || inverse {
		im := op.Mul(re, 0)
		if parts == 2 {
			im = pick(x, last, 1)
		}
		block = op.Concat(axis, re, im)
	}
	y := op.Fft(block, a)
	if onesided && inverse {
		return withAxis(y, y.Rank())
	}
	half := y.Dim(axis).FloorDiv(ir.D(2))
	re = op.Slice(y, ir.Dims(0), []ir.Dim{half}, []int{axis}, nil)
	im := op.Slice(y, []ir.Dim{half}, []ir.Dim{half.Mul(ir.D(2))}, []int{axis}, nil)
	return castTo(op.Concat(last, withAxis(re, last), withAxis(im, last)), d)
}

// buildSTFT transforms overlapping frames: [B, frames, bins, 2].
func buildSTFT(n *node) {
	x, step := n.val(0), n.int(1, "frame_step", 0)
	win := n.val(2)
	if !n.ok() {
		return
	}
	var length int64
	switch {
	case n.has(3):
		length = n.int(3, "frame_length", 0)
	case n.has(2):
		length, _ = win.Dim(0).Static()
	}
	if n.ok() && (length < 1 || step < 1 || x.Rank() < 2) {
		n.fail("frame length %d, step %d, rank %d, expected positive ones and at least 2", length, step, x.Rank())
	}
	if !n.ok() {
		return
	}
	if x.Rank() == 2 {
		x = withAxis(x, 2)
	}
	frames := x.Dim(1).Sub(ir.D(length)).FloorDiv(ir.D(step)).Add(ir.D(1))
	at := op.Add(op.Mul(op.Reshape(n.im.iota(frames), frames, ir.D(1)), step), n.im.iota(ir.D(length)))
	y := op.Gather(x, at, 1)
	if n.has(2) {
		y = op.Mul(y, op.ReshapeInts(castTo(win, y.DType()), length, 1))
	}
	onesided := n.i("onesided") == 1
	if onesided && !y.Dim(3).Is(1) {
		n.fail("a one-sided transform of complex values")
		return
	}
	n.ret(n.dft(y, 2, length, false, onesided))
}

// buildMelWeights is the matrix that turns a spectrum into mel bands: triangles over frequencies that are equally spaced in mel.
func buildMelWeights(n *node) {
	bands, length, rate := n.int(0, "num_mel_bins", 0), n.int(1, "dft_length", 0), n.int(2, "sample_rate", 0)
	lower, upper := n.want(3, "lower_edge_hertz"), n.want(4, "upper_edge_hertz")
	d := n.dtypeAttr("output_datatype", n.i("output_datatype"))
	if n.ok() && (bands < 1 || length < 1 || rate < 1 || lower.Len() != 1 || upper.Len() != 1 || bands > 1<<16 || length > 1<<24) {
		n.fail("num_mel_bins %d, dft_length %d, sample_rate %d, expected positive ones and edges of one element", bands, length, rate)
	}
	if !n.ok() {
		return
	}
	mel := func(hertz float64) float64 { return 2595 * math.Log1p(hertz/700) / math.Ln10 }
	low, high := mel(lower.Float(0)), mel(upper.Float(0))
	bins := length/2 + 1
	point := make([]int64, bands+2)
	for i := range point {
		m := low + (high-low)/float64(bands+2)*float64(i)
		point[i] = int64(math.Floor(float64(length+1) * 700 * math.Expm1(m/2595*math.Ln10) / float64(rate)))
		if point[i] < 0 || point[i] >= bins {
			n.fail("band edge %d lies at bin %d of %d", i, point[i], bins)
			return
		}
	}
	n.give(0, n.table(d, func(i int) float64 {
		bin, band := int64(i)/bands, int64(i)%bands
		left, mid, right := point[band], point[band+1], point[band+2]
		switch {
		case bin >= mid && bin < right:
			return float64(right-bin) / float64(right-mid)
		case bin == mid:
			return 1
		case bin >= left && bin < mid:
			return float64(bin-left) / float64(mid-left)
		}
		return 0
	}, bins, bands))
}
