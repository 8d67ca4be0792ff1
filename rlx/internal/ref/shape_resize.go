package ref

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// resize: see op.Resize. Nearest moves elements; linear and cubic sum in f64, axis by axis, and round once.
func resize(c *call) error {
	a, x, y := attrs[op.ResizeAttrs](c), c.in[0], c.out[0]
	if y.len() == 0 {
		return nil
	}
	taps := a.Taps(x.dims, y.dims)
	if a.Mode == op.ResizeNearest {
		tables := make([][]int64, x.rank())
		for _, t := range taps {
			tables[t.Axis] = t.Index
		}
		mapped(x, y, tables, nil)
	} else {
		v, dims := x.floats(), append([]int64{}, x.dims...)
		for _, t := range taps {
			v = resample(v, dims, t)
			dims[t.Axis] = y.dims[t.Axis]
		}
		for i, f := range v {
			y.set(i, f)
		}
	}
	value := op.NumberAs(y.dtype, ir.FloatNumber(a.ExtrapolationValue)).Bytes()
	for _, t := range taps {
		_, n, inner := around(y.dims, t.Axis)
		for i := 0; t.Outside != nil && i < y.len(); i++ {
			if t.Outside[i/inner%n] {
				copy(y.elem(i), value)
			}
		}
	}
	return nil
}

// resample applies the taps of one axis to v, of shape dims. A tap of weight 0 is not read.
func resample(v []float64, dims []int64, t op.Taps) []float64 {
	outer, n, inner := around(dims, t.Axis)
	m := len(t.Index) / t.Per
	out := make([]float64, outer*m*inner)
	for o := range outer {
		for k, w := range t.Weight {
			if w == 0 {
				continue
			}
			from := v[(o*n+int(t.Index[k]))*inner:][:inner]
			to := out[(o*m+k/t.Per)*inner:][:inner]
			for i, f := range from {
				to[i] += w * f
			}
		}
	}
	return out
}
