package ref

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() { on("Fft", fft) }

// fft: see op.Fft. Transforms in f64, whatever the dtype, and rounds once.
func fft(c *call) error {
	a, x, y := attrs[op.FftAttrs](c), c.in[0], c.out[0]
	axis := wrap(a.Axis, x.rank())
	length, _ := a.Length(ir.D(x.dims[axis]))
	size, _ := length.Static()
	n := int(size)
	outer, have, inner := around(x.dims, axis)
	_, bins, _ := around(y.dims, axis)
	in := fftLines{t: x, count: have, block: a.Layout == "block", real: a.Real && !a.Inverse}
	out := fftLines{t: y, count: bins, block: in.block, real: a.Real && a.Inverse}
	plan := newFourier(n, a.Inverse)
	scale := a.Factor(size)
	z := make([]complex128, n)
	for line := range outer * inner {
		if c.stopped() {
			return errCancelled
		}
		in.from, in.step = line/inner*have*inner+line%inner, inner
		out.from, out.step = line/inner*bins*inner+line%inner, inner
		clear(z)
		if out.real {
			for k := range min(in.entries(), n/2+1) {
				z[k] = in.get(k)
				if k == 0 || 2*k == n {
					z[k] = complex(real(z[k]), 0)
				} else {
					z[n-k] = complex(real(z[k]), -imag(z[k]))
				}
			}
		} else {
			for k := range min(in.entries(), n) {
				z[k] = in.get(k)
			}
		}
		for k, v := range plan.transform(z)[:out.entries()] {
			out.set(k, complex(real(v)*scale, imag(v)*scale))
		}
	}
	return nil
}

// fftLines reads and writes lines of a tensor: real numbers, c64, or real parts and then imaginary parts.
type fftLines struct {
	t           tensor
	from, step  int
	count       int // numbers of a line
	block, real bool
}

func (l *fftLines) entries() int {
	if l.block && !l.real {
		return l.count / 2
	}
	return l.count
}

func (l *fftLines) get(k int) complex128 {
	at := l.from + k*l.step
	switch {
	case l.real:
		return complex(l.t.at(at), 0)
	case l.block:
		return complex(l.t.at(at), l.t.at(at+l.count/2*l.step))
	}
	return l.t.complex(at)
}

func (l *fftLines) set(k int, v complex128) {
	at := l.from + k*l.step
	switch {
	case l.real:
		l.t.set(at, real(v))
	case l.block:
		l.t.set(at, real(v))
		l.t.set(at+l.count/2*l.step, imag(v))
	default:
		l.t.setComplex(at, v)
	}
}

// fourier is a transform of one length: by its smallest prime factor, or, for a large prime, as a convolution.
type fourier struct {
	n, p  int          // length and its smallest prime factor
	roots []complex128 // exp(-+2 pi i k / n)
	part  *fourier     // of length n / p
	chirp []complex128 // exp(-+pi i k^2 / n), where the transform is a convolution
	wide  *fourier     // forward, of a power of two
	image []complex128 // the transform of the conjugate chirp
}

// maxRadix is the largest prime that is summed directly.
const maxRadix = 61

func newFourier(n int, inverse bool) *fourier {
	f := &fourier{n: n, p: n}
	if n <= 1 {
		return f
	}
	for p := 2; p*p <= n; p++ {
		if n%p == 0 {
			f.p = p
			break
		}
	}
	if f.p > maxRadix && f.p == n {
		f.bluestein(inverse)
		return f
	}
	f.roots = make([]complex128, n)
	for k := range f.roots {
		f.roots[k] = unitRoot(k, n, inverse)
	}
	f.part = newFourier(n/f.p, inverse)
	return f
}

func unitRoot(k, n int, inverse bool) complex128 {
	re, im := op.UnitRoot(int64(k), int64(n))
	if !inverse {
		im = -im
	}
	return complex(re, im)
}

// transform returns the transform of z, which it may overwrite.
func (f *fourier) transform(z []complex128) []complex128 {
	switch {
	case f.n <= 1:
		return z
	case f.chirp != nil:
		return f.convolve(z)
	}
	m := f.n / f.p
	y := make([]complex128, f.n)
	if m == 1 {
		f.sums(y, z)
		return y
	}
	parts := make([][]complex128, f.p)
	for r := range parts {
		part := make([]complex128, m)
		for k := range part {
			part[k] = z[r+k*f.p]
		}
		parts[r] = f.part.transform(part)
	}
	for k := range y {
		sum := parts[0][k%m]
		for r := 1; r < f.p; r++ {
			sum += parts[r][k%m] * f.roots[r*k%f.n]
		}
		y[k] = sum
	}
	return y
}

// sums is the transform as its definition says.
func (f *fourier) sums(y, z []complex128) {
	for k := range y {
		sum := z[0]
		for t := 1; t < f.n; t++ {
			sum += z[t] * f.roots[t*k%f.n]
		}
		y[k] = sum
	}
}

// bluestein makes a convolution of the transform: t k = (t^2 + k^2 - (k-t)^2) / 2. Bluestein 1970.
func (f *fourier) bluestein(inverse bool) {
	size := 1
	for size < 2*f.n-1 {
		size *= 2
	}
	f.chirp = make([]complex128, f.n)
	image := make([]complex128, size)
	for k := range f.chirp {
		f.chirp[k] = unitRoot(k*k%(2*f.n), 2*f.n, inverse)
		v := complex(real(f.chirp[k]), -imag(f.chirp[k]))
		image[k] = v
		image[(size-k)%size] = v
	}
	f.wide = newFourier(size, false)
	f.image = f.wide.transform(image)
}

func (f *fourier) convolve(z []complex128) []complex128 {
	size := f.wide.n
	w := make([]complex128, size)
	for k, v := range z {
		w[k] = v * f.chirp[k]
	}
	w = f.wide.transform(w)
	for k, v := range w {
		w[k] = v * f.image[k]
	}
	w = f.wide.transform(w) // the inverse is this, read backwards
	y := make([]complex128, f.n)
	for k := range y {
		v := w[(size-k)%size]
		y[k] = complex(real(v)/float64(size), imag(v)/float64(size)) * f.chirp[k]
	}
	return y
}
