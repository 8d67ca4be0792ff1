package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// scatter combines element i of u, in order, with element to(i) of y. Sums and products of floats stay in f64 from the first update to
// the last, and the touched elements round once.
func scatter(u, y tensor, how op.ScatterReduction, to func(i int) int) {
	n := u.len()
	switch {
	case how == op.ScatterNone:
		for i := range n {
			copy(y.elem(to(i)), u.elem(i))
		}
	case y.dtype == ir.C64:
		scatterIn(n, to, y.complex, u.complex, y.setComplex, complexReductions[how])
	case y.isFloat():
		scatterIn(n, to, y.at, u.at, y.set, floatReductions[how])
	case y.dtype == ir.U64:
		unsigned := func(t tensor) func(int) uint64 { return func(i int) uint64 { return uint64(t.int(i)) } }
		scatterIn(n, to, unsigned(y), unsigned(u), func(i int, v uint64) { y.setInt(i, int64(v)) }, intReductions[uint64]()[how])
	default:
		scatterIn(n, to, y.int, u.int, y.setInt, intReductions[int64]()[how])
	}
}

// scatterIn combines in type T and stores each touched element once, at the end.
func scatterIn[T any](n int, to func(int) int, have, update func(int) T, set func(int, T), combine func(a, b T) T) {
	sums := map[int]T{}
	for i := range n {
		at := to(i)
		v, ok := sums[at]
		if !ok {
			v = have(at)
		}
		sums[at] = combine(v, update(i))
	}
	for at, v := range sums {
		set(at, v)
	}
}

var floatReductions = map[op.ScatterReduction]func(a, b float64) float64{
	op.ScatterSum: func(a, b float64) float64 { return a + b },
	op.ScatterMul: func(a, b float64) float64 { return a * b },
	op.ScatterMax: func(a, b float64) float64 {
		if b > a || math.IsNaN(b) {
			return b
		}
		return a
	},
	op.ScatterMin: func(a, b float64) float64 {
		if b < a || math.IsNaN(b) {
			return b
		}
		return a
	},
}

// intReductions wrap; narrower dtypes keep the low bits of the result, which is the same.
func intReductions[T int64 | uint64]() map[op.ScatterReduction]func(a, b T) T {
	return map[op.ScatterReduction]func(a, b T) T{
		op.ScatterSum: func(a, b T) T { return a + b },
		op.ScatterMul: func(a, b T) T { return a * b },
		op.ScatterMax: func(a, b T) T { return max(a, b) },
		op.ScatterMin: func(a, b T) T { return min(a, b) },
	}
}

// complexReductions order by the real part, then the imaginary one; a NaN part propagates.
var complexReductions = map[op.ScatterReduction]func(a, b complex128) complex128{
	op.ScatterSum: func(a, b complex128) complex128 { return a + b },
	op.ScatterMul: func(a, b complex128) complex128 { return a * b },
	op.ScatterMax: func(a, b complex128) complex128 { return pick(a, b, lessComplex(a, b)) },
	op.ScatterMin: func(a, b complex128) complex128 { return pick(a, b, lessComplex(b, a)) },
}

func lessComplex(a, b complex128) bool {
	return real(a) < real(b) || real(a) == real(b) && imag(a) < imag(b)
}

func pick(a, b complex128, second bool) complex128 {
	nan := func(v complex128) bool { return math.IsNaN(real(v)) || math.IsNaN(imag(v)) }
	if !nan(a) && (second || nan(b)) {
		return b
	}
	return a
}
