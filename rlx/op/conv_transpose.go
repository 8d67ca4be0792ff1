package op

import (
	"cmp"
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// ConvTransposeAttrs are the attributes of ConvTranspose2d and ConvTranspose3d: those of Conv, and the elements by which the end of each
// spatial axis of the result reaches further, less than its stride; empty means 0s.
type ConvTransposeAttrs struct {
	Stride        []int64 `default:"nil" min:"1" c:"C4"`
	Dilation      []int64 `default:"nil" min:"1" c:"C4"`
	Padding       []int64 `default:"nil" min:"0" c:"C4"`
	AutoPad       AutoPad `default:"none" c:"C5"`
	Groups        int64   `default:"1" min:"1" c:"C2"`
	OutputPadding []int64 `default:"nil" min:"0" c:"C8"`
}

var (
	convTranspose2d = ir.Declare[ConvTransposeAttrs]("conv", "ConvTranspose2d")
	convTranspose3d = ir.Declare[ConvTransposeAttrs]("conv", "ConvTranspose3d")
)

// ConvTranspose1d is [ConvTranspose2d] of x [N, C, L] with w [C, O/groups, k].
func ConvTranspose1d(x, w, bias ir.Value, a ConvTransposeAttrs) ir.Value {
	return convOfRank(convTranspose2d, 3, x, w, bias, a.filled())
}

// ConvTranspose2d is the transpose of Conv applied to x: every x[n,c,p] adds w[c,o,t] * x[n,c,p] at y[n, g(c)*O/groups + o, p*stride +
// t*dilation - begin]; plus bias [O] where it is not the zero Value.
//
// Shapes: x [N, C, H, W], w [C, O/groups, kH, kW] (an empty kernel gives zeros), y [N, O, out..] with out = (S-1)*stride + dilation*(k-1) + 1 + output_padding - begin
// - end. Dtypes: floats, the same for all; sums in f32 (f64 for f64) and rounds once. In a, a Groups of 0 means 1 and an empty AutoPad
// "none". Errors: C1 ranks, C2 groups, C3 channels, C4 lists, C5 auto_pad, C7 dtypes, C8 output_padding, C9 an empty axis.
// Source: ONNX ConvTranspose 22, torch conv_transpose2d.
func ConvTranspose2d(x, w, bias ir.Value, a ConvTransposeAttrs) ir.Value {
	return convOfRank(convTranspose2d, 4, x, w, bias, a.filled())
}

// ConvTranspose3d is [ConvTranspose2d] of x [N, C, D, H, W] with w [C, O/groups, kD, kH, kW].
func ConvTranspose3d(x, w, bias ir.Value, a ConvTransposeAttrs) ir.Value {
	return convOfRank(convTranspose3d, 5, x, w, bias, a.filled())
}

func (a ConvTransposeAttrs) filled() ConvTransposeAttrs {
	a.Groups, a.AutoPad = cmp.Or(a.Groups, 1), cmp.Or(a.AutoPad, "none")
	return a
}

func init() {
	for _, r := range []struct {
		op          *ir.Op[ConvTransposeAttrs]
		doc         string
		least, most int
	}{
		{convTranspose2d, "1-D or 2-D transposed convolution, groups", 3, 4},
		{convTranspose3d, "3-D transposed convolution, groups", 5, 5},
	} {
		r.op.Define(ir.Def[ConvTransposeAttrs]{
			Doc:       r.doc,
			In:        []ir.Operand{ir.In("x", ir.Float), ir.In("w", ir.Float)},
			DTypeC:    "C7",
			SameC:     "C7",
			Infer:     func(t *ir.Infer, a *ConvTransposeAttrs) { inferConvTranspose(t, a, r.least, r.most) },
			Decompose: decomposeConvTranspose,
			Tol:       ir.Tolerance{Ulp: 32, Abs: 1e-6},
		})
	}
}

// TransposeWindow is the geometry of a transposed convolution of the given spatial size: that of the convolution which its result would
// go through to get that size again, so Out is the size of the result. It checks nothing: see ConvWindow.
func TransposeWindow(a *ConvTransposeAttrs, size, kernel []ir.Dim) Window {
	r := len(size)
	w := Window{Stride: orOnes(a.Stride, r), Dilation: orOnes(a.Dilation, r)}
	for i, s := range size {
		one, step := ir.D(1), ir.D(w.Stride[i])
		eff := ir.D(w.Dilation[i]).Mul(kernel[i].Sub(one)).Add(one)
		reach := eff
		if len(a.OutputPadding) > 0 {
			reach = reach.Add(ir.D(a.OutputPadding[i]))
		}
		begin, end := a.AutoPad.split(a.Padding, r, i, reach.Sub(step))
		full := s.Sub(one).Mul(step).Add(reach)
		w.Begin, w.End = append(w.Begin, begin), append(w.End, end)
		w.Out, w.eff = append(w.Out, full.Sub(begin).Sub(end)), append(w.eff, eff)
		if full.Is(math.MaxInt64) { // where Dim stops counting
			w.Out[i] = full
		}
	}
	return w
}

func inferConvTranspose(t *ir.Infer, a *ConvTransposeAttrs, least, most int) {
	x, w := t.Type(0), t.Type(1)
	rank := len(x.Shape)
	if !t.Need(rank >= least && rank <= most, "C1", "x has rank %d, expected %d to %d", rank, least, most) ||
		!t.Need(len(w.Shape) == rank, "C1", "w has rank %d and x %d, expected equal ranks", len(w.Shape), rank) {
		return
	}
	n, known := x.Shape[1].Static()
	t.Need(!known || n%a.Groups == 0, "C2", "groups is %d, expected a divisor of the %d channels of x", a.Groups, n)
	t.Need(!w.Shape[0].Differs(x.Shape[1]), "C3", "x has %s channels, expected %s by w of shape %v", x.Shape[1], w.Shape[0], w.Shape)
	r := rank - 2
	if !listsFit(t, a.Stride, a.Dilation, a.Padding, a.AutoPad, r) ||
		!t.Need(len(a.OutputPadding) == 0 || len(a.OutputPadding) == r, "C8", "output_padding %v has %d entries, expected %d", a.OutputPadding, len(a.OutputPadding), r) {
		return
	}
	stride := orOnes(a.Stride, r)
	for i, p := range a.OutputPadding {
		t.Need(p < stride[i], "C8", "output_padding %v, expected less than stride %v", a.OutputPadding, stride)
	}
	win := TransposeWindow(a, x.Shape[2:], w.Shape[2:])
	for i, s := range x.Shape[2:] {
		t.Need(!s.Is(0), "C9", "spatial axis %d of x is empty, expected an element", i)
		out, known := win.Out[i].Static()
		t.Need(!known || out >= 1, "C9", "padding %s and %s leaves %s elements of spatial axis %d, expected at least 1", win.Begin[i], win.End[i], win.Out[i], i)
		t.Need(!known || out < math.MaxInt64, "C9", "the result of spatial axis %d is 2^63 or more, expected less", i)
	}
	if t.OK() {
		t.Out(ir.Type{DType: x.DType, Shape: append([]ir.Dim{x.Shape[0], w.Shape[1].Mul(ir.D(a.Groups))}, win.Out...)})
	}
}

// decomposeConvTranspose convolves x, with stride-1 zeros between its elements, with w mirrored.
func decomposeConvTranspose(n *ir.Node, a *ConvTransposeAttrs) []ir.Value {
	x, w := n.In[0], n.In[1]
	r := x.Rank() - 2
	if ir.Count(w.Shape()[2:]).Is(0) { // no kernel position adds anything
		return []ir.Value{Expand(narrow(x.Graph().Constant(ir.Scalar(float32(0))), x.DType()), n.Types[0].Shape...)}
	}
	win := TransposeWindow(a, x.Shape()[2:], w.Shape()[2:])
	out := ConvAttrs{Dilation: win.Dilation, Groups: a.Groups}
	x = apart(x, win, n.Types[0].Shape[2:])
	// [C, O/groups, k..] to [O, C/groups, k..]
	g, kernel := ir.D(a.Groups), w.Shape()[2:]
	perm := []int{0, 2, 1}
	var axes []int
	for i := range r {
		perm, axes = append(perm, 3+i), append(axes, 2+i)
	}
	w = Reshape(w, slices.Concat([]ir.Dim{g, w.Dim(0).FloorDiv(g), w.Dim(1)}, kernel)...)
	w = Transpose(w, perm...)
	w = Reshape(w, slices.Concat([]ir.Dim{g.Mul(w.Dim(1)), w.Dim(2)}, kernel)...)
	w = Reverse(w, axes...)
	return []ir.Value{convOf(x, w, out)}
}

// apart puts stride-1 zeros between neighbours of x along each spatial axis, and in front and behind what a window of stride 1 needs to
// give out elements.
func apart(x ir.Value, w Window, out []ir.Dim) ir.Value {
	size := x.Shape()[2:]
	split, joined := slices.Clone(x.Shape()[:2]), slices.Clone(x.Shape()[:2])
	inner := make([]ir.Dim, 2)
	for i, s := range size {
		step := ir.D(w.Stride[i])
		split, inner = append(split, s), append(inner, ir.D(0))
		if w.Stride[i] > 1 && !s.Is(1) {
			split, inner = append(split, ir.D(1)), append(inner, step.Sub(ir.D(1)))
			joined = append(joined, s.Mul(step))
		} else {
			joined = append(joined, s)
		}
	}
	if len(split) > x.Rank() {
		x = Reshape(x, split...)
		x = Pad(x, append(make([]ir.Dim, len(inner)), inner...), PadConstant, ir.IntNumber(0))
		x = Reshape(x, joined...)
	}
	pads := make([]ir.Dim, 2*x.Rank())
	for i := range size {
		front := w.eff[i].Sub(ir.D(1)).Sub(w.Begin[i])
		pads[2+i] = front
		pads[x.Rank()+2+i] = out[i].Add(w.eff[i]).Sub(ir.D(1)).Sub(front).Sub(joined[2+i])
	}
	return Pad(x, pads, PadConstant, ir.IntNumber(0))
}
