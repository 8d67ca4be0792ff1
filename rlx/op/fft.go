package op

import (
	"cmp"
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// FftNorm says how a transform of length n is scaled: "backward" by 1/n when inverse, "forward" by 1/n when not, "ortho" by 1/sqrt(n)
// both ways, "none" not at all.
type FftNorm string

// EnumValues lists the norms.
func (FftNorm) EnumValues() []string { return []string{"backward", "forward", "ortho", "none"} }

// FftLayout says how complex values lie: "complex" as dtype c64, "block" as m real parts and then m imaginary parts along the axis.
type FftLayout string

// EnumValues lists the layouts.
func (FftLayout) EnumValues() []string { return []string{"complex", "block"} }

// FftAttrs are the attributes of Fft. NFft is the length of the transform, 0 for that of the axis.
type FftAttrs struct {
	Inverse bool      `default:"false"`
	Axis    int       `default:"-1" c:"C1"`
	Norm    FftNorm   `default:"backward" c:"C5"`
	NFft    int64     `default:"0" min:"0" c:"C4"`
	Real    bool      `default:"false"`
	Layout  FftLayout `default:"complex" c:"C5"`
}

var fftOp = ir.Declare[FftAttrs]("fft", "Fft")

// Fft is the discrete Fourier transform along an axis: y[k] = c * sum over t of x[t] exp(-2 pi i k t / n), with a positive exponent when
// Inverse. The axis is cut, or padded with zeros at its end, to n entries. Any n takes O(n log n) operations.
//
// With Real, a forward transform takes real numbers and gives the first n/2+1 bins, an inverse one takes those bins and gives n real
// numbers (by default 2*(bins-1)). Dtypes: layout "complex": c64, and f32 for real numbers; "block": any float. Errors: C1 axis,
// C2 dtype, C3 a block axis of odd length, C4 n < 1, C5 norm or layout. Source: numpy.fft, torch.fft, ONNX DFT 20.
func Fft(x ir.Value, a FftAttrs) ir.Value {
	a.Norm, a.Layout = cmp.Or(a.Norm, "backward"), cmp.Or(a.Layout, "complex")
	return fftOp.Apply1(a, x)
}

// FFT, IFFT, RFFT and IRFFT are numpy.fft's: c64 to c64, f32 to the first n/2+1 bins, and back. n is the length of the transform, 0
// for that of the axis.
func FFT(x ir.Value, n int64, axis int) ir.Value { return Fft(x, FftAttrs{NFft: n, Axis: axis}) }

// IFFT is the inverse of FFT.
func IFFT(x ir.Value, n int64, axis int) ir.Value {
	return Fft(x, FftAttrs{NFft: n, Axis: axis, Inverse: true})
}

// RFFT is FFT of real numbers.
func RFFT(x ir.Value, n int64, axis int) ir.Value {
	return Fft(x, FftAttrs{NFft: n, Axis: axis, Real: true})
}

// IRFFT is the inverse of RFFT.
func IRFFT(x ir.Value, n int64, axis int) ir.Value {
	return Fft(x, FftAttrs{NFft: n, Axis: axis, Real: true, Inverse: true})
}

// FFTN is FFT along each of the axes, IFFTN its inverse.
func FFTN(x ir.Value, axes ...int) ir.Value {
	for _, a := range axes {
		x = FFT(x, 0, a)
	}
	return x
}

// IFFTN is the inverse of FFTN.
func IFFTN(x ir.Value, axes ...int) ir.Value {
	for _, a := range axes {
		x = IFFT(x, 0, a)
	}
	return x
}

// RFFTN is RFFT along the last of the axes, then FFT along the others; IRFFTN its inverse, of length n along the last axis.
func RFFTN(x ir.Value, axes ...int) ir.Value {
	last := len(axes) - 1
	if last < 0 {
		return x
	}
	return FFTN(RFFT(x, 0, axes[last]), axes[:last]...)
}

// IRFFTN is the inverse of RFFTN.
func IRFFTN(x ir.Value, n int64, axes ...int) ir.Value {
	last := len(axes) - 1
	if last < 0 {
		return x
	}
	return IRFFT(IFFTN(x, axes[:last]...), n, axes[last])
}

func init() {
	fftOp.Define(ir.Def[FftAttrs]{
		Doc:       "discrete Fourier transform along an axis: complex, real input, real output",
		In:        []ir.Operand{ir.In("x", ir.Float|ir.Set(ir.C64))},
		DTypeC:    "C2",
		Infer:     inferFft,
		Decompose: decomposeFft,
		Tol:       ir.Tolerance{Ulp: 4},
	})
}

// Length is n and the count of complex (or, for a real forward transform, real) entries along an axis of dim d.
func (a *FftAttrs) Length(d ir.Dim) (n, entries ir.Dim) {
	entries = d
	if a.Layout == "block" && !(a.Real && !a.Inverse) {
		entries = d.FloorDiv(ir.D(2))
	}
	switch {
	case a.NFft != 0:
		n = ir.D(a.NFft)
	case a.Real && a.Inverse:
		n = entries.Sub(ir.D(1)).Mul(ir.D(2))
	default:
		n = entries
	}
	return n, entries
}

func inferFft(t *ir.Infer, a *FftAttrs) {
	x := t.Type(0)
	axis, ok := wrap(a.Axis, len(x.Shape))
	if !t.Need(ok, "C1", "axis %d, expected one of x, which has rank %d", a.Axis, len(x.Shape)) {
		return
	}
	block, forward := a.Layout == "block", a.Real && !a.Inverse
	out := x.DType
	switch {
	case block:
		t.Need(ir.Float.Has(x.DType), "C2", "x has dtype %s, expected one of %s for layout block", x.DType, ir.Float)
	case forward:
		t.Need(x.DType == ir.F32, "C2", "x has dtype %s, expected f32 for a real transform of layout complex", x.DType)
		out = ir.C64
	default:
		t.Need(x.DType == ir.C64, "C2", "x has dtype %s, expected c64 for layout complex", x.DType)
		if a.Real {
			out = ir.F32
		}
	}
	d := x.Shape[axis]
	if v, known := d.Static(); known && block && !forward {
		t.Need(v%2 == 0, "C3", "block axis has %d entries, expected an even number", v)
	}
	n, _ := a.Length(d)
	v, known := n.Static()
	t.Need(!known || v >= 1, "C4", "transform of length %s (n_fft %d, the axis has %s), expected >= 1", n, a.NFft, d)
	if a.Real && !a.Inverse {
		n = n.FloorDiv(ir.D(2)).Add(ir.D(1))
	}
	if block && !(a.Real && a.Inverse) {
		n = n.Mul(ir.D(2))
	}
	shape := append([]ir.Dim{}, x.Shape...)
	shape[axis] = n
	t.Out(ir.Type{DType: out, Shape: shape})
}

// Factor is what the sums of a transform of length n are multiplied with.
func (a *FftAttrs) Factor(n int64) float64 {
	switch {
	case a.Norm == "ortho":
		return 1 / math.Sqrt(float64(n))
	case a.Norm == "backward" && a.Inverse, a.Norm == "forward" && !a.Inverse:
		return 1 / float64(n)
	}
	return 1
}

// UnitRoot is exp(2 pi i k / n), with the angle reduced exactly to the first octant.
func UnitRoot(k, n int64) (re, im float64) {
	if k %= n; k < 0 {
		k += n
	}
	if 2*k > n { // below the real axis
		re, im = UnitRoot(n-k, n)
		return re, -im
	}
	if 4*k > n { // left of the imaginary axis; angles in halves of 1/n
		re, im = rootBelow90(n-2*k, 2*n)
		return -re, im
	}
	return rootBelow90(k, n)
}

// rootBelow90 is UnitRoot for an angle k/n of at most a quarter.
func rootBelow90(k, n int64) (re, im float64) {
	if 8*k > n {
		re, im = math.Cos(2*math.Pi*float64(n-4*k)/float64(4*n)), math.Sin(2*math.Pi*float64(n-4*k)/float64(4*n))
		return im, re
	}
	a := 2 * math.Pi * float64(k) / float64(n)
	return math.Cos(a), math.Sin(a)
}

// maxDftMatrix bounds the constant of a decomposed Fft, in elements.
const maxDftMatrix = 1 << 19

// decomposeFft multiplies by the matrix of the transform. It covers layout block, where no real part must be taken out of a c64, and
// lengths for which the matrix stays small.
func decomposeFft(n *ir.Node, a *FftAttrs) []ir.Value {
	x := n.In[0]
	axis, _ := wrap(a.Axis, x.Rank())
	length, entries := a.Length(x.Dim(axis))
	size, _ := length.Static()
	have, _ := entries.Static()
	if a.Layout != "block" {
		return nil
	}
	m := dftMatrix{a: a, n: size, have: have}
	rows, columns := m.shape()
	if rows > 0 && (rows > maxDftMatrix || columns > maxDftMatrix/rows) {
		return nil
	}
	perm := make([]int, x.Rank())
	for i := range perm {
		perm[i] = i
	}
	last := x.Rank() - 1
	perm[axis], perm[last] = last, axis
	w := m.take(Transpose(widen(x), perm...))
	t, err := ir.Zeros(w.DType(), rows, columns)
	if err != nil {
		return []ir.Value{x.Graph().Fail("Fft", err)}
	}
	m.fill(t)
	y := MatMul(w, x.Graph().Constant(t))
	return []ir.Value{narrow(Transpose(y, perm...), x.DType())}
}

// dftMatrix is the transform of length n of `have` entries as a matrix, whose rows are the numbers that take returns.
type dftMatrix struct {
	a       *FftAttrs
	n, have int64
}

// used is how many entries take part, as real and as imaginary parts from entry first on.
func (m *dftMatrix) used() (re, im, first int64) {
	switch {
	case m.a.Real && !m.a.Inverse:
		return min(m.have, m.n), 0, 0
	case m.a.Real: // bin 0 and, for even n, bin n/2 are real
		return min(m.have, m.n/2+1), max(0, min(m.have, (m.n+1)/2)-1), 1
	}
	return min(m.have, m.n), min(m.have, m.n), 0
}

func (m *dftMatrix) shape() (rows, columns int64) {
	re, im, _ := m.used()
	switch {
	case m.a.Real && !m.a.Inverse:
		columns = 2 * (m.n/2 + 1)
	case m.a.Real:
		columns = m.n
	default:
		columns = 2 * m.n
	}
	return re + im, columns
}

func (m *dftMatrix) take(x ir.Value) ir.Value {
	re, im, first := m.used()
	parts := Narrow(x, -1, 0, re)
	if im > 0 {
		parts = Concat(-1, parts, Narrow(x, -1, m.have+first, im))
	}
	return parts
}

func (m *dftMatrix) fill(t *ir.Tensor) {
	re, _, first := m.used()
	rows, columns := m.shape()
	c, sign := m.a.Factor(m.n), int64(-1)
	if m.a.Inverse {
		sign = 1
	}
	for r := range rows {
		at, imaginary := r, r >= re
		if imaginary {
			at = r - re + first
		}
		for k := range columns {
			out, wantIm := k, false
			if half := columns / 2; !(m.a.Real && m.a.Inverse) && k >= half {
				out, wantIm = k-half, true
			}
			v := c * m.entry(at, out, sign, imaginary, wantIm)
			ir.PutFloat(t.DType(), t.Bytes(), int(r*columns+k), v)
		}
	}
}

// entry is the weight of part (re or im) of entry t in part of result k.
func (m *dftMatrix) entry(t, k, sign int64, imaginary, wantIm bool) float64 {
	cos, sin := UnitRoot(t*k%m.n, m.n) // both are below the matrix's sides
	sin *= float64(sign)
	v := cos
	switch {
	case imaginary && !wantIm:
		v = -sin
	case !imaginary && wantIm:
		v = sin
	}
	if m.a.Real && m.a.Inverse && t > 0 && 2*t != m.n {
		v *= 2 // its conjugate counts too
	}
	return v
}
