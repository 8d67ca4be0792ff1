package conform

import (
	"fmt"
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() { generate(fourier, "Fft") }

// fftLengths have every kind of factors: none, powers of 2, 3 and 5, their products, small and large primes, and products of those.
var fftLengths = []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 19, 21, 23, 25, 27, 29, 30, 31, 32, 35, 36, 39, 47, 49, 53, 60, 64, 97,
	100, 101, 106, 127, 128, 134, 143, 200, 210, 243, 256, 262, 307, 360, 512}

func fourier(m *maker) {
	list, long := fftLengths, []int64{1000, 1031, 2042, 2310, 3072, 4096, 5041, 6000, 8192, 10007}
	if m.large {
		list = append(list[:len(list):len(list)], long[:5]...)
	}
	for _, real := range []bool{false, true} {
		for _, inverse := range []bool{false, true} {
			for k, n := range part(m, 3, 16, list) {
				m.transform(k, n, real, inverse)
			}
			if m.large {
				m.transform(0, long[m.turn%len(long)], real, inverse)
			}
			m.turn++
		}
	}
}

func (m *maker) transform(k int, n int64, real, inverse bool) {
	a := attrs{"real": real, "inverse": inverse}
	have := n
	if real && inverse {
		have = n/2 + 1
		if n%2 == 1 || n == 2 {
			a["n_fft"] = n
		}
	}
	switch k % 5 {
	case 3: // cut
		a["n_fft"] = n
		have += 1 + m.rng.Int64N(4)
	case 4: // padded
		a["n_fft"] = n
		have -= m.rng.Int64N(have)
	}
	if m.enums["layout"] == "block" && !(real && !inverse) {
		have *= 2
	}
	shapes := [][]int64{{have}, {3, have}, {2, have, 3}, {have, 5}, {0, have}, {2, 1, 2, have, 2}, {17, have}}
	shape := shapes[(k+m.turn)%len(shapes)]
	axis := 0
	for i, d := range shape {
		if d == have {
			axis = i
		}
	}
	a["axis"] = axis
	x := m.rng.plain(m.dtype, shape)
	if m.dtype == ir.F16 { // sums stay in range
		x = fill(m.dtype, shape, func(i int) float64 { return x.Float(i) / 4 })
	}
	if k%7 == 2 && x.Len() > 0 { // spoils its line alone
		put(x, m.rng.IntN(x.Len()), math.Inf(1))
	}
	c := m.add(a, x)
	c.compare = func(got, want []*ir.Tensor) error {
		return compareLines(got[0], want[0], axis, m.enums["layout"] == "block" && !(real && inverse), n)
	}
}

// compareLines holds every number to 4 eps log2(n) times the greatest |y| of its line, and one rounding more. A line that is not finite
// where it is expected not to be may be anything.
func compareLines(got, want *ir.Tensor, axis int, block bool, n int64) error {
	if got == nil || !got.Type().Equal(want.Type()) {
		return fmt.Errorf("got %v, expected %v", got, want)
	}
	shape := want.Shape()
	inner, count := 1, int(shape[axis])
	for _, d := range shape[axis+1:] {
		inner *= int(d)
	}
	for line := range want.Len() / max(count, 1) {
		first := line/inner*count*inner + line%inner
		g, w := lineOf(got, first, inner, count, block), lineOf(want, first, inner, count, block)
		if err := compareLine(want.DType(), g, w, n); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	return nil
}

// lineOf is a line as complex numbers.
func lineOf(t *ir.Tensor, first, step, count int, block bool) []complex128 {
	parts := count
	if block {
		parts /= 2
	}
	z := make([]complex128, parts)
	for k := range z {
		at := first + k*step
		switch {
		case t.DType() == ir.C64:
			z[k] = complex(ir.FloatAt(ir.F32, t.Bytes(), 2*at), ir.FloatAt(ir.F32, t.Bytes(), 2*at+1))
		case block:
			z[k] = complex(t.Float(at), t.Float(at+parts*step))
		default:
			z[k] = complex(t.Float(at), 0)
		}
	}
	return z
}

func compareLine(d ir.DType, got, want []complex128, n int64) error {
	most := 0.0
	for _, w := range want {
		most = max(most, math.Hypot(real(w), imag(w)))
	}
	if math.IsNaN(most) || math.IsInf(most, 0) {
		return nil
	}
	f := formats[ir.F32]
	if d == ir.F64 {
		f = formats[ir.F64]
	}
	allowed := 4 * f.eps * math.Log2(float64(n)) * most
	if d == ir.F64 {
		allowed *= 2 // ref has no wider type to compute in
	}
	if n > 1 {
		allowed += f.eps * most
	}
	if own, ok := formats[d]; ok && own.eps > f.eps {
		allowed += own.eps*most + own.step
	}
	for k, w := range want {
		if e := math.Hypot(real(got[k])-real(w), imag(got[k])-imag(w)); !(e <= allowed) {
			return fmt.Errorf("number %d: got %v, expected %v within %g", k, got[k], w, allowed)
		}
	}
	return nil
}
