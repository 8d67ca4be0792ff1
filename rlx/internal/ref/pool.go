package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() { on("Pool", pool) }

// poolWindow is the geometry of a Pool over spatial dims size as integers.
func poolWindow(a *op.PoolAttrs, size []int64) convWindow {
	g, kernel := op.PoolWindow(a, ir.Dims(size...))
	k, _ := ir.StaticShape(kernel)
	return integers(g, size, k)
}

// pool: see op.Pool.
func pool(c *call) error {
	a, x, y := attrs[op.PoolAttrs](c), c.in[0], c.out[0]
	w := poolWindow(a, x.dims[2:])
	planes, in, out := int(x.dims[0]*x.dims[1]), volume(w.size), volume(w.out)
	if x.isInt() {
		return poolPlanes(c, w, planes, func(n int) func(p, at int, first bool) {
			return func(p, at int, first bool) {
				v, p := x.int(n*in+at), n*out+p
				if best := y.int(p); first || x.dtype == ir.U64 && uint64(v) > uint64(best) || x.dtype != ir.U64 && v > best {
					y.setInt(p, v)
				}
			}
		}, nil)
	}
	values, acc := x.floats(), make([]float64, out)
	divisors := poolDivisors(a, x.dims[2:], out)
	return poolPlanes(c, w, planes, func(n int) func(p, at int, first bool) {
		plane := values[n*in:][:in]
		return func(p, at int, first bool) {
			switch v := plane[at]; {
			case first:
				acc[p] = v
			case a.Fn != "max":
				acc[p] += v
			case v > acc[p] || math.IsNaN(v):
				acc[p] = v
			}
		}
	}, func(n int) {
		for p, v := range acc {
			y.set(n*out+p, v/divisors[p])
		}
	})
}

// poolPlanes shows every plane's taps to the function that visit makes for it, first set for the first tap of a window, and calls done.
func poolPlanes(c *call, w convWindow, planes int, visit func(n int) func(p, at int, first bool), done func(n int)) error {
	seen := make([]bool, volume(w.out))
	for n := range planes {
		clear(seen)
		f := visit(n)
		for t := range volume(w.kernel) {
			if t%1024 == 0 && c.stopped() { // a window may be far larger than its plane
				return errCancelled
			}
			w.each(t, func(p, at int) {
				f(p, at, !seen[p])
				seen[p] = true
			})
		}
		if done != nil {
			done(n)
		}
	}
	return nil
}

// poolDivisors is what each window's sum is divided by.
func poolDivisors(a *op.PoolAttrs, size []int64, windows int) []float64 {
	div := make([]float64, windows)
	for i := range div {
		div[i] = 1
	}
	if a.Fn != "avg" {
		return div
	}
	dims := ir.Dims(size...)
	w, kernel := op.PoolWindow(a, dims)
	inner := windows
	for _, axis := range op.PoolCounts(w, kernel, dims, a.CountIncludePad) {
		inner /= max(len(axis), 1)
		for i := range div {
			div[i] *= float64(axis[i/inner%len(axis)])
		}
	}
	return div
}
