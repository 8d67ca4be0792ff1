package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("Cumsum", func(c *call) error { return cumulate(c, attrs[op.CumAttrs](c), false) })
	on("CumProd", func(c *call) error { return cumulate(c, attrs[op.CumAttrs](c), true) })
	on("CumMax", cumMax)
	on("CumsumBackward", func(c *call) error {
		a := *attrs[op.CumAttrs](c)
		a.Reverse = !a.Reverse
		return cumulate(c, &a, false)
	})
}

// lines calls f for each line of x along axis with at(k), the index of its k-th element in scan order.
func lines(x tensor, axis int, reverse bool, f func(n int, at func(k int) int)) {
	outer, n, inner := around(x.dims, wrap(axis, x.rank()))
	for o := range outer {
		for i := range inner {
			f(n, func(k int) int {
				if reverse {
					k = n - 1 - k
				}
				return (o*n+k)*inner + i
			})
		}
	}
}

// cumulate is Cumsum, or CumProd where product is set. The state runs in f64; each result is rounded, not the state.
func cumulate(c *call, a *op.CumAttrs, product bool) error {
	x, y := c.in[0], c.out[0]
	switch {
	case x.dtype == ir.C64:
		step := func(s, v complex128) complex128 { return s + v }
		if product {
			step = func(s, v complex128) complex128 {
				return complex(real(s)*real(v)-imag(s)*imag(v), real(s)*imag(v)+imag(s)*real(v))
			}
		}
		scan(x, a, product, x.complex, y.setComplex, step)
	case x.isFloat():
		step := func(s, v float64) float64 { return s + v }
		if product {
			step = func(s, v float64) float64 { return s * v }
		}
		scan(x, a, product, x.at, y.set, step)
	default:
		step := func(s, v int64) int64 { return s + v }
		if product {
			step = func(s, v int64) int64 { return s * v }
		}
		scan(x, a, product, x.int, y.setInt, step)
	}
	return nil
}

func scan[T int64 | float64 | complex128](x tensor, a *op.CumAttrs, product bool, get func(int) T, put func(int, T), step func(s, v T) T) {
	lines(x, a.Axis, a.Reverse, func(n int, at func(int) int) {
		var state T
		if product {
			state = 1
		}
		for k := range n {
			next := step(state, get(at(k)))
			if !a.Exclusive {
				state = next
			}
			put(at(k), state)
			state = next
		}
	})
}

// cumMax: see op.CumMax.
func cumMax(c *call) error {
	a, x := attrs[op.CumMaxAttrs](c), c.in[0]
	compare := x.order()
	_, n, inner := around(x.dims, wrap(a.Axis, x.rank()))
	lines(x, a.Axis, a.Reverse, func(length int, at func(int) int) {
		best, value := -1, -1 // where the maximum so far stands first, and whose bits it has: +0 replaces -0
		for k := range length {
			here, next, nextValue := at(k), best, value
			switch {
			case best < 0 || compare(here, best) > 0:
				next, nextValue = here, here
			case x.isFloat() && x.at(here) == 0 && x.at(best) == 0 && !math.Signbit(x.at(here)):
				nextValue = here
			}
			if !a.Exclusive {
				best, value = next, nextValue
			}
			putMax(c, here, best, value, inner, n)
			best, value = next, nextValue
		}
	})
	return nil
}

// putMax writes element value of x, and the place of best along the axis, to result element i; without one, the least value and -1.
func putMax(c *call, i, best, value, inner, n int) {
	x, y, index := c.in[0], c.out[0], c.out[1]
	switch {
	case best >= 0:
		copy(y.elem(i), x.elem(value))
		index.setInt(i, int64(best/inner%n))
		return
	case x.isFloat():
		y.set(i, math.Inf(-1))
	case ir.SignedInt.Has(x.dtype):
		y.setInt(i, math.MinInt64>>(64-8*x.dtype.Size()))
	default:
		y.setInt(i, 0)
	}
	index.setInt(i, -1)
}
