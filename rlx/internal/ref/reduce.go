package ref

import (
	"math"
	"sort"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("Reduce", reduce)
	on("ArgMax", func(c *call) error { return argExtreme(c, 1) })
	on("ArgMin", func(c *call) error { return argExtreme(c, -1) })
	on("Histogram", histogram)
}

// folding splits the elements of x by the reduced axes: bases are the indices of the first element of each result, in order of the
// results, and offsets lead from there to the elements that are reduced.
func folding(dims []int64, axes []int) (bases, offsets []int) {
	on := make([]bool, len(dims))
	for _, a := range axes {
		on[wrap(a, len(dims))] = true
	}
	bases, offsets = []int{0}, []int{0}
	st := strides(dims)
	for i, d := range dims {
		l := &bases
		if on[i] || len(axes) == 0 {
			l = &offsets
		}
		next := make([]int, 0, len(*l)*int(d))
		for _, at := range *l {
			for k := range int(d) {
				next = append(next, at+k*st[i])
			}
		}
		*l = next
	}
	return bases, offsets
}

// reduce: see op.Reduce.
func reduce(c *call) error {
	a, x, y := attrs[op.ReduceAttrs](c), c.in[0], c.out[0]
	bases, offsets := folding(x.dims, a.Axes)
	switch {
	case x.dtype == ir.C64:
		reduceComplex(x, y, a.Fn, bases, offsets)
	case x.isFloat():
		in := x.floats()
		for i, base := range bases {
			y.set(i, reduceFloats(a.Fn, in, base, offsets))
		}
	default:
		unsigned := ir.Unsigned.Has(x.dtype)
		for i, base := range bases {
			y.setInt(i, reduceInts(a.Fn, x, base, offsets, unsigned))
		}
	}
	return nil
}

func reduceFloats(fn op.ReduceFn, in []float64, base int, offsets []int) float64 {
	total := func(f func(float64) float64) float64 {
		s := 0.0
		for _, o := range offsets {
			s += f(in[base+o])
		}
		return s
	}
	self := func(v float64) float64 { return v }
	square := func(v float64) float64 { return v * v }
	switch fn {
	case "sum":
		return total(self)
	case "mean":
		return total(self) / float64(len(offsets))
	case "prod":
		p := 1.0
		for _, o := range offsets {
			p *= in[base+o]
		}
		return p
	case "l1":
		return total(math.Abs)
	case "l2":
		return math.Sqrt(total(square))
	case "sum_square":
		return total(square)
	case "log_sum":
		return math.Log(total(self))
	case "min":
		m := math.Inf(1)
		for _, o := range offsets {
			m = math.Min(m, in[base+o])
		}
		return nanFirst(m, in, base, offsets)
	}
	m := math.Inf(-1)
	for _, o := range offsets {
		m = math.Max(m, in[base+o])
	}
	m = nanFirst(m, in, base, offsets)
	if fn == "max" {
		return m
	}
	if math.IsInf(m, 0) {
		m = 0
	}
	return m + math.Log(total(func(v float64) float64 { return math.Exp(v - m) }))
}

// nanFirst is m, or NaN where an element is: math.Max and math.Min let an infinity win over NaN.
func nanFirst(m float64, in []float64, base int, offsets []int) float64 {
	if !math.IsInf(m, 0) {
		return m
	}
	for _, o := range offsets {
		if math.IsNaN(in[base+o]) {
			return math.NaN()
		}
	}
	return m
}

func reduceInts(fn op.ReduceFn, x tensor, base int, offsets []int, unsigned bool) int64 {
	if fn == "max" || fn == "min" {
		best := x.int(base + offsets[0])
		for _, o := range offsets[1:] {
			if v := x.int(base + o); less(best, v, unsigned) == (fn == "max") && v != best {
				best = v
			}
		}
		return best
	}
	s := int64(0)
	if fn == "prod" {
		s = 1
	}
	for _, o := range offsets {
		v := x.int(base + o)
		switch {
		case fn == "prod":
			s *= v
		case fn == "sum_square":
			s += v * v
		case fn == "l1" && !unsigned && v < 0:
			s -= v
		default:
			s += v
		}
	}
	return s
}

// less compares integers; unsigned ones are given as their bits.
func less(a, b int64, unsigned bool) bool {
	if unsigned {
		return uint64(a) < uint64(b)
	}
	return a < b
}

func reduceComplex(x, y tensor, fn op.ReduceFn, bases, offsets []int) {
	for i, base := range bases {
		s := complex(0, 0)
		if fn == "prod" {
			s = 1
		}
		for _, o := range offsets {
			if v := x.complex(base + o); fn == "prod" {
				s = complex(real(s)*real(v)-imag(s)*imag(v), real(s)*imag(v)+imag(s)*real(v))
			} else {
				s += v
			}
		}
		if fn == "mean" {
			s = complex(real(s)/float64(len(offsets)), imag(s)/float64(len(offsets)))
			if len(offsets) == 0 {
				s = complex(math.NaN(), 0) // the NaN of the empty mean is a real number
			}
		}
		y.setComplex(i, s)
	}
}

// order compares the elements of a tensor for ArgMax, ArgMin, CumMax and TopK: NaN above +inf, -0 equal to +0.
func (t tensor) order() func(i, j int) int {
	if t.isFloat() {
		v := t.floats()
		return func(i, j int) int { return compareFloats(v[i], v[j]) }
	}
	unsigned := ir.Unsigned.Has(t.dtype)
	return func(i, j int) int {
		a, b := t.int(i), t.int(j)
		switch {
		case a == b:
			return 0
		case less(a, b, unsigned):
			return -1
		}
		return 1
	}
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case math.IsNaN(a) == math.IsNaN(b):
		return 0
	case math.IsNaN(b):
		return -1
	}
	return 1
}

// argExtreme is ArgMax (sign 1) and ArgMin (sign -1). A NaN is the extreme in both.
func argExtreme(c *call, sign int) error {
	a, x := attrs[op.ArgAttrs](c), c.in[0]
	outer, n, inner := around(x.dims, wrap(a.Axis, x.rank()))
	compare := x.order()
	nan := func(int) bool { return false }
	if x.isFloat() {
		nan = func(i int) bool { return math.IsNaN(x.at(i)) }
	}
	for o := range outer {
		for i := range inner {
			best := 0
			for k := 1; k < n; k++ {
				at, top := (o*n+k)*inner+i, (o*n+best)*inner+i
				better := sign * compare(at, top)
				if sign < 0 && nan(at) != nan(top) {
					better = -better
				}
				if better > 0 || better == 0 && a.SelectLastIndex {
					best = k
				}
			}
			c.out[0].setInt(o*inner+i, int64(best))
		}
	}
	return nil
}

// histogram: see op.Histogram. Edges are compared in f64, and with integers exactly.
func histogram(c *call) error {
	a, x := attrs[op.HistogramAttrs](c), c.in[0]
	edges := op.HistogramEdges(a.NumBins, a.Min, a.Max)
	counts := make([]int64, a.NumBins)
	compare := func(i int, e float64) int { return compareFloats(x.at(i), e) }
	if x.isInt() {
		compare = func(i int, e float64) int { return compareInt(x.int(i), ir.Unsigned.Has(x.dtype), e) }
	}
	for i := range x.len() {
		if x.isFloat() && math.IsNaN(x.at(i)) || compare(i, a.Min) < 0 || compare(i, a.Max) > 0 {
			continue
		}
		above := sort.Search(len(edges), func(b int) bool { return compare(i, edges[b]) < 0 })
		counts[min(above-1, len(counts)-1)]++
	}
	for b, n := range counts {
		c.out[0].setInt(b, n)
	}
	return nil
}

// compareInt compares an integer with a float exactly: a conversion of the integer would round beyond 2^53.
func compareInt(v int64, unsigned bool, e float64) int {
	floor := math.Floor(e)
	switch {
	case unsigned && floor < 0 || !unsigned && floor < -0x1p63:
		return 1
	case unsigned && floor >= 0x1p64 || !unsigned && floor >= 0x1p63:
		return -1
	}
	whole := int64(floor)
	if unsigned {
		whole = int64(uint64(floor))
	}
	switch {
	case less(v, whole, unsigned):
		return -1
	case v == whole && floor == e:
		return 0
	case v == whole: // e has a fraction
		return -1
	}
	return 1
}
