package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() { on("RoundToFormat", roundToFormat) }

// tinyF32 is the smallest normal f32: what is below it counts as zero here, on every backend.
const tinyF32 = 0x1p-126

// roundToFormat: see op.RoundToFormat. Values are f32 in f64, in which scaling by a power of two and rounding are exact.
func roundToFormat(c *call) error {
	a, x, y := attrs[op.RoundToFormatAttrs](c), c.in[0], c.out[0]
	f, ok := op.ParseSmallFloat(a.Format)
	if !ok {
		return broken("C1", "bad format %q", a.Format)
	}
	v := x.floats()
	n := len(v)
	switch {
	case a.ScaleLayout == "none":
		for i := range v {
			v[i] = roundSmall(v[i], f)
		}
	case a.ScaleLayout == "per_tensor":
		roundBlock(v, f, powerScale(largest(v), f))
	case n > 0:
		row := 1
		if x.rank() > 0 {
			row = int(x.dims[x.rank()-1])
		}
		for at := 0; at < n; at += row {
			for k := 0; k < row; k += min(a.BlockSize, row-k) {
				scaleBlock(v[at+k:at+k+min(a.BlockSize, row-k)], f, a.ScaleLayout)
			}
		}
	}
	for i, r := range v {
		if math.IsNaN(r) {
			copy(y.elem(i), x.elem(i))
		} else {
			y.set(i, r)
		}
	}
	return nil
}

func scaleBlock(v []float64, f op.SmallFloat, layout op.ScaleLayout) {
	top := largest(v)
	if layout == "fine_block" {
		roundFine(v, f, fineScale(top, f))
		return
	}
	s := powerScale(top, f)
	if !math.IsInf(top, 0) && top/s > f.Max && s < 0x1p127 && blockError(v, f, 2*s) < blockError(v, f, s) {
		s *= 2
	}
	roundBlock(v, f, s)
}

// flush turns f32 subnormals into zeros of their sign.
func flush(v float64) float64 {
	if math.Abs(v) < tinyF32 {
		return math.Copysign(0, v)
	}
	return v
}

// roundSmall is the value of the format nearest to v, ties to even, saturating.
func roundSmall(v float64, f op.SmallFloat) float64 {
	if math.IsNaN(v) {
		return v
	}
	v = flush(v)
	if math.Abs(v) >= f.Max {
		return math.Copysign(f.Max, v)
	}
	if v == 0 {
		return v
	}
	e := max(exponent(v), f.MinExp)
	q := math.Ldexp(math.RoundToEven(math.Ldexp(v, f.Mantissa-e)), e-f.Mantissa)
	if math.Abs(q) > f.Max {
		q = math.Copysign(f.Max, q)
	}
	return flush(q)
}

// exponent is floor(log2 |v|).
func exponent(v float64) int {
	_, e := math.Frexp(v)
	return e - 1
}

// largest is the largest |v|; NaN is skipped.
func largest(v []float64) float64 {
	top := 0.0
	for _, x := range v {
		if a := math.Abs(x); a > top {
			top = a
		}
	}
	return top
}

func powerScale(top float64, f op.SmallFloat) float64 {
	if top == 0 || math.IsInf(top, 0) {
		return 1
	}
	return math.Ldexp(1, min(max(exponent(top)-exponent(f.Max), -126), 127))
}

// fineScale is the least (1 + m/8) 2^k that brings top into the format.
func fineScale(top float64, f op.SmallFloat) float64 {
	if top == 0 || math.IsInf(top, 0) {
		return 1
	}
	least := min(max(exponent(top)-exponent(f.Max)-1, -126), 125)
	for k := least; k < least+3; k++ {
		for m := range 8 {
			if s := math.Ldexp(1+float64(m)/8, k); s*f.Max >= top {
				return s
			}
		}
	}
	return 1.875 * 0x1p127
}

func roundBlock(v []float64, f op.SmallFloat, s float64) {
	for i := range v {
		v[i] = flush(roundSmall(v[i]/s, f) * s)
	}
}

func roundFine(v []float64, f op.SmallFloat, s float64) {
	r := float64(float32(1 / s))
	for i := range v {
		v[i] = flush(roundSmall(float64(float32(v[i]*r)), f) * s)
	}
}

// blockError is the squared error of scale s, summed in f32 in index order, so that every backend takes the same scale.
func blockError(v []float64, f op.SmallFloat, s float64) float32 {
	e := float32(0)
	for _, x := range v {
		d := float32(flush(roundSmall(x/s, f)*s)) - float32(x)
		e += float32(d * d)
	}
	return e
}
