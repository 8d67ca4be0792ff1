package conform

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// random draws what a group of cases needs; the same seed gives the same cases.
type random struct{ *rand.Rand }

func newRandom(a, b uint64) *random { return &random{rand.New(rand.NewPCG(a, b))} }

func (r *random) chance(oneIn int) bool { return r.IntN(oneIn) == 0 }

// zeros is a tensor of known good dtype and shape.
func zeros(d ir.DType, shape []int64) *ir.Tensor {
	t, err := ir.Zeros(d, slices.Clone(shape)...)
	if err != nil {
		return ir.New([]float32{}, 0) // no generator makes such a shape; inference refuses it
	}
	return t
}

func clone(t *ir.Tensor) *ir.Tensor {
	c := zeros(t.DType(), t.Shape())
	copy(c.Bytes(), t.Bytes())
	return c
}

// fill makes a tensor of the values of f, rounded to its dtype; codes, bools and integers take the low bits.
func fill(d ir.DType, shape []int64, f func(i int) float64) *ir.Tensor {
	t := zeros(d, shape)
	for i := range t.Len() {
		put(t, i, f(i))
	}
	return t
}

func put(t *ir.Tensor, i int, v float64) {
	switch d := t.DType(); {
	case d == ir.C64:
		ir.PutFloat(ir.F32, t.Bytes(), 2*i, v)
	case ir.Float.Has(d):
		ir.PutFloat(d, t.Bytes(), i, v)
	case d == ir.Bool:
		t.Bytes()[i] = byte(int64(math.Abs(v)) & 1)
	case ir.Code.Has(d):
		t.Bytes()[i] = byte(int64(v))
		if d == ir.F4E2M1 {
			t.Bytes()[i] &= 15
		}
	case ir.Unsigned.Has(d):
		ir.PutInt(d, t.Bytes(), i, int64(math.Abs(v)))
	default:
		ir.PutInt(d, t.Bytes(), i, int64(v))
	}
}

// plain draws ordinary values: floats around 1, small integers, any bool and code, complex numbers away from 0.
func (r *random) plain(d ir.DType, shape []int64) *ir.Tensor {
	t := fill(d, shape, func(int) float64 { return r.ordinary(d) })
	if d == ir.C64 {
		for i := range t.Len() {
			ir.PutFloat(ir.F32, t.Bytes(), 2*i, 0.5+r.Float64())
			ir.PutFloat(ir.F32, t.Bytes(), 2*i+1, r.NormFloat64())
		}
	}
	return t
}

func (r *random) ordinary(d ir.DType) float64 {
	switch {
	case ir.Float.Has(d):
		return r.NormFloat64()
	case ir.Code.Has(d):
		return float64(r.IntN(256))
	}
	return float64(r.IntN(19) - 9)
}

// wide draws values over the whole range of the dtype, and now and then its corners.
func (r *random) wide(d ir.DType, shape []int64) *ir.Tensor {
	t := r.plain(d, shape)
	if !ir.Real.Has(d) {
		return t
	}
	corners := corners(d)
	for i := range t.Len() {
		switch {
		case r.chance(8):
			put(t, i, corners[r.IntN(len(corners))])
		case ir.Int.Has(d) && r.chance(3):
			ir.PutInt(d, t.Bytes(), i, int64(r.Uint64()))
		case ir.Float.Has(d) && r.chance(3):
			put(t, i, r.NormFloat64()*math.Ldexp(1, r.IntN(12)-4))
		}
	}
	return t
}

// odd draws ordinary values with NaN, infinities, both zeros and subnormals among them, and ties.
func (r *random) odd(d ir.DType, shape []int64) *ir.Tensor {
	t := r.plain(d, shape)
	if !ir.Float.Has(d) {
		return t
	}
	list := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), formats[d].step, -3 * formats[d].step, 1, 1, 1}
	for i := range t.Len() {
		if r.chance(6) {
			put(t, i, list[r.IntN(len(list))])
		}
	}
	return t
}

// corners are the values at which functions change: zeros, ones, halves, subnormals, the ends of the range, infinities and NaN.
func corners(d ir.DType) []float64 {
	if ir.Int.Has(d) {
		bits := float64(8 * d.Size())
		if ir.Unsigned.Has(d) {
			return []float64{0, 0, 1, 2, math.Ldexp(1, int(min(bits, 63))-1), math.Ldexp(1, int(min(bits, 53))) - 1}
		}
		return []float64{0, 0, 1, -1, 2, -math.Ldexp(1, int(bits)-1), math.Ldexp(1, int(min(bits, 54))-1) - 1}
	}
	f := formats[d]
	return []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), f.step, -f.step, f.normal, -1.5 * f.normal, f.max, -f.max,
		1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -3, 6, 88.7, -87.4, 1 + f.eps, 1e4, -1e4, 1e6}
}

// near1 draws values whose products stay in range.
func (r *random) near1(d ir.DType, shape []int64) *ir.Tensor {
	if !ir.Float.Has(d) {
		return r.plain(d, shape)
	}
	return fill(d, shape, func(int) float64 {
		v := 0.7 + 0.6*r.Float64()
		if r.chance(3) {
			v = -v
		}
		return v
	})
}

// index draws legal indices of a dim of n elements, negative ones too where the dtype has them.
func (r *random) index(d ir.DType, shape []int64, n int64) *ir.Tensor {
	return fill(d, shape, func(int) float64 {
		v := r.Int64N(max(n, 1))
		if !ir.Unsigned.Has(d) && r.chance(3) {
			v -= n
		}
		return float64(v)
	})
}
