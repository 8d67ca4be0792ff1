package op

import (
	"cmp"
	"fmt"
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// AutoPad says how a window kind finds its padding: "none" takes attribute padding, "valid" means no padding, and "same_upper" and
// "same_lower" pad so that the result has ceil(size/stride) elements, the odd element at the end or the beginning.
type AutoPad string

// EnumValues lists the ways to pad.
func (AutoPad) EnumValues() []string { return []string{"none", "valid", "same_upper", "same_lower"} }

func (m AutoPad) same() bool { return m == "same_upper" || m == "same_lower" }

// split is the padding of spatial axis i of r: that of the list, where r entries pad both sides alike, or total for the modes that pad as
// much as is missing.
func (m AutoPad) split(padding []int64, r, i int, total ir.Dim) (begin, end ir.Dim) {
	total = total.Max(ir.D(0))
	switch {
	case m == "same_upper":
		return total.FloorDiv(ir.D(2)), total.CeilDiv(ir.D(2))
	case m == "same_lower":
		return total.CeilDiv(ir.D(2)), total.FloorDiv(ir.D(2))
	case len(padding) > 0:
		return ir.D(padding[i]), ir.D(padding[len(padding)-r+i])
	}
	return ir.D(0), ir.D(0)
}

// ConvAttrs are the attributes of Conv. Lists have one entry per spatial axis; empty ones mean 1 (padding: 0) everywhere. Padding
// may have twice as many entries: all begins, then all ends.
type ConvAttrs struct {
	Stride   []int64 `default:"nil" min:"1" c:"C4"`
	Dilation []int64 `default:"nil" min:"1" c:"C4"`
	Padding  []int64 `default:"nil" min:"0" c:"C4"`
	AutoPad  AutoPad `default:"none" c:"C5"`
	Groups   int64   `default:"1" min:"1" c:"C2"`
}

// Im2ColAttrs are the attributes of Im2Col.
type Im2ColAttrs struct {
	Stride     []int64 `default:"nil" min:"1" c:"C4"`
	Dilation   []int64 `default:"nil" min:"1" c:"C4"`
	Padding    []int64 `default:"nil" min:"0" c:"C4"`
	AutoPad    AutoPad `default:"none" c:"C5"`
	KernelSize []int64 `min:"1" c:"C4"`
}

var (
	conv   = ir.Declare[ConvAttrs]("conv", "Conv")
	conv3d = ir.Declare[ConvAttrs]("conv", "Conv3d")
	im2col = ir.Declare[Im2ColAttrs]("conv", "Im2Col")
)

// Conv is the cross-correlation y[n,o,p] = sum over c, t of w[o,c,t] * x[n, g(o)*C/groups + c, p*stride + t*dilation - begin].
//
// Shapes: x [N, C, S..] with one or two spatial axes, w [O, C/groups, k..], y [N, O, out..] with
// out = floor((S + begin + end - dilation*(k-1) - 1) / stride) + 1. Dtypes: floats, the same for all; sums in f32 (f64 for f64) and
// rounds once. In a, a Groups of 0 means 1 and an empty AutoPad "none". Errors: C1 ranks, C2 groups, C3 channels, C4 lists,
// C5 auto_pad, C6 the kernel does not fit, C7 dtypes. Source: ONNX Conv 22.
func Conv(x, w ir.Value, a ConvAttrs) ir.Value { return conv.Apply1(a.filled(), x, w) }

func (a ConvAttrs) filled() ConvAttrs {
	a.Groups, a.AutoPad = cmp.Or(a.Groups, 1), cmp.Or(a.AutoPad, "none")
	return a
}

// Conv1d is Conv of x [N, C, L] with w [O, C/groups, k], plus bias [O] where it is not the zero Value. Source: torch conv1d.
func Conv1d(x, w, bias ir.Value, a ConvAttrs) ir.Value {
	return convOfRank(conv, 3, x, w, bias, a.filled())
}

// Conv2d is Conv of x [N, C, H, W] with w [O, C/groups, kH, kW], plus bias [O] where it is not the zero Value. Source: torch conv2d.
func Conv2d(x, w, bias ir.Value, a ConvAttrs) ir.Value {
	return convOfRank(conv, 4, x, w, bias, a.filled())
}

// Conv3d is the convolution of x [N, C, D, H, W] with w [O, C/groups, kD, kH, kW], plus bias [O] where it is not the zero Value. See
// Conv for the formula, dtypes and errors. Source: torch conv3d.
func Conv3d(x, w, bias ir.Value, a ConvAttrs) ir.Value {
	return withBias(conv3d.Apply1(a.filled(), x, w), bias, 5)
}

func convOfRank[A any](kind *ir.Op[A], rank int, x, w, bias ir.Value, a A) ir.Value {
	if !x.IsZero() && !x.Poisoned() && x.Rank() != rank {
		name := kind.Row().Name
		return x.Graph().Fail(name, fmt.Errorf("%s: C1: x has rank %d, expected %d", name, x.Rank(), rank), x)
	}
	return withBias(kind.Apply1(a, x, w), bias, rank)
}

// convOf is Conv or Conv3d, by the rank of x.
func convOf(x, w ir.Value, a ConvAttrs) ir.Value {
	if x.Rank() == 5 {
		return Conv3d(x, w, ir.Value{}, a)
	}
	return Conv(x, w, a)
}

func withBias(y, bias ir.Value, rank int) ir.Value {
	if bias.IsZero() || y.Poisoned() || bias.Poisoned() {
		return y
	}
	return Add(y, alongAxis(bias, 1, rank))
}

// Im2Col lays the windows of x out as the rows of a matrix: row (n, p), column (c, t) is x[n, c, p*stride + t*dilation - begin], or 0
// in the padding.
//
// Shapes: x [N, C, S..] with one to three spatial axes, y [N*prod(out), C*prod(KernelSize)]. Dtypes: floats. Errors: C1 rank, C4
// lists, C5 auto_pad, C6 the kernel does not fit. Source: Caffe im2col; torch unfold is its transpose.
func Im2Col(x ir.Value, a Im2ColAttrs) ir.Value {
	a.AutoPad = cmp.Or(a.AutoPad, "none")
	return im2col.Apply1(a, x)
}

func init() {
	for _, r := range []struct {
		op          *ir.Op[ConvAttrs]
		doc         string
		least, most int
	}{
		{conv, "1-D or 2-D convolution (cross-correlation), groups", 3, 4},
		{conv3d, "3-D convolution (cross-correlation), groups", 5, 5},
	} {
		r.op.Define(ir.Def[ConvAttrs]{
			Doc:       r.doc,
			In:        []ir.Operand{ir.In("x", ir.Float), ir.In("w", ir.Float)},
			DTypeC:    "C7",
			SameC:     "C7",
			Infer:     func(t *ir.Infer, a *ConvAttrs) { inferConv(t, a, r.least, r.most) },
			Decompose: decomposeConv,
			Tol:       ir.Tolerance{Ulp: 32, Abs: 1e-6},
		})
	}
	im2col.Define(ir.Def[Im2ColAttrs]{
		Doc:       "windows as matrix rows",
		In:        []ir.Operand{ir.In("x", ir.Float)},
		Bits:      ir.Exact,
		DTypeC:    "C7",
		Infer:     inferIm2Col,
		Decompose: decomposeIm2Col,
	})
}

// Window is the geometry of a sliding window, one entry per spatial axis.
type Window struct {
	Stride, Dilation []int64
	Begin, End, Out  []ir.Dim
	eff              []ir.Dim // elements that a window spans
}

// ConvWindow is the geometry of windows of the given kernel over size. It checks nothing: lists that are neither empty nor of the
// right length must not get here.
func ConvWindow(stride, dilation, padding []int64, mode AutoPad, size, kernel []ir.Dim) Window {
	r := len(size)
	w := Window{Stride: orOnes(stride, r), Dilation: orOnes(dilation, r)}
	for i, s := range size {
		step, one := ir.D(w.Stride[i]), ir.D(1)
		eff := ir.D(w.Dilation[i]).Mul(kernel[i].Sub(one)).Add(one)
		out := s.CeilDiv(step)
		begin, end := mode.split(padding, r, i, out.Sub(one).Mul(step).Add(eff).Sub(s))
		if !mode.same() {
			out = s.Add(begin).Add(end).Sub(eff).FloorDiv(step).Add(one)
		}
		w.Begin, w.End = append(w.Begin, begin), append(w.End, end)
		w.Out, w.eff = append(w.Out, out), append(w.eff, eff)
	}
	return w
}

func orOnes(v []int64, r int) []int64 {
	if len(v) > 0 {
		return v
	}
	ones := make([]int64, r)
	for i := range ones {
		ones[i] = 1
	}
	return ones
}

// listsFit checks constraints C4 and C5 of the lists for r spatial axes.
func listsFit(t *ir.Infer, stride, dilation, padding []int64, mode AutoPad, r int) bool {
	for _, l := range []struct {
		name string
		v    []int64
	}{{"stride", stride}, {"dilation", dilation}} {
		t.Need(len(l.v) == 0 || len(l.v) == r, "C4", "%s %v has %d entries, expected %d", l.name, l.v, len(l.v), r)
	}
	t.Need(len(padding) == 0 || len(padding) == r || len(padding) == 2*r, "C4", "padding %v has %d entries, expected %d or %d", padding, len(padding), r, 2*r)
	for _, p := range padding {
		t.Need(mode == "none" || p == 0, "C5", "padding %v beside auto_pad %s, expected none or zeros", padding, mode)
	}
	return t.OK()
}

// checkWindow checks constraints C4 to C6 and returns the geometry.
func checkWindow(t *ir.Infer, stride, dilation, padding []int64, mode AutoPad, size, kernel []ir.Dim) (Window, bool) {
	if !listsFit(t, stride, dilation, padding, mode, len(size)) {
		return Window{}, false
	}
	w := ConvWindow(stride, dilation, padding, mode, size, kernel)
	for i, s := range size {
		k, known := kernel[i].Static()
		t.Need(!known || k >= 1, "C6", "kernel has shape %v, expected sizes >= 1", kernel)
		room := s.Add(w.Begin[i]).Add(w.End[i])
		t.Need(!room.Is(math.MaxInt64), "C6", "padded size of spatial axis %d is 2^63 or more, expected less", i) // where Dim stops counting
		over, known := w.eff[i].Sub(room).Static()
		t.Need(!known || over <= 0, "C6", "kernel of size %s with dilation %d spans %s elements, expected at most the %s of the padded input", kernel[i], w.Dilation[i], w.eff[i], room)
	}
	return w, t.OK()
}

// inferConv gives the result of a convolution of x with w, of rank least to most.
func inferConv(t *ir.Infer, a *ConvAttrs, least, most int) {
	if y, ok := convResult(t, a, least, most); ok {
		t.Out(y)
	}
}

// convResult checks constraints C1 to C6 and returns the type of the result.
func convResult(t *ir.Infer, a *ConvAttrs, least, most int) (ir.Type, bool) {
	x, w := t.Type(0), t.Type(1)
	rank := len(x.Shape)
	if !t.Need(rank >= least && rank <= most, "C1", "x has rank %d, expected %d to %d", rank, least, most) ||
		!t.Need(len(w.Shape) == rank, "C1", "w has rank %d and x %d, expected equal ranks", len(w.Shape), rank) {
		return ir.Type{}, false
	}
	for i, d := range []ir.Dim{x.Shape[1], w.Shape[0]} {
		n, known := d.Static()
		t.Need(!known || n%a.Groups == 0, "C2", "groups is %d, expected a divisor of the %d channels of %s", a.Groups, n, []string{"x", "y"}[i])
	}
	t.Need(!w.Shape[1].Mul(ir.D(a.Groups)).Differs(x.Shape[1]), "C3", "x has %s channels, expected %s by w of shape %v with groups %d",
		x.Shape[1], w.Shape[1].Mul(ir.D(a.Groups)), w.Shape, a.Groups)
	win, ok := checkWindow(t, a.Stride, a.Dilation, a.Padding, a.AutoPad, x.Shape[2:], w.Shape[2:])
	return ir.Type{DType: x.DType, Shape: append([]ir.Dim{x.Shape[0], w.Shape[0]}, win.Out...)}, ok
}

func inferIm2Col(t *ir.Infer, a *Im2ColAttrs) {
	x := t.Type(0)
	rank := len(x.Shape)
	if !t.Need(rank >= 3 && rank <= 5, "C1", "x has rank %d, expected 3 to 5", rank) ||
		!t.Need(len(a.KernelSize) == rank-2, "C4", "kernel_size %v has %d entries, expected %d", a.KernelSize, len(a.KernelSize), rank-2) {
		return
	}
	kernel := ir.Dims(a.KernelSize...)
	if w, ok := checkWindow(t, a.Stride, a.Dilation, a.Padding, a.AutoPad, x.Shape[2:], kernel); ok {
		rows, columns := x.Shape[0].Mul(ir.Count(w.Out)), x.Shape[1].Mul(ir.Count(kernel))
		t.Out(ir.Type{DType: x.DType, Shape: []ir.Dim{rows, columns}})
	}
}
