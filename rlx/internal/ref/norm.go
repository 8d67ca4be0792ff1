package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("LayerNorm", layerNorm)
	on("RmsNorm", rmsNorm)
	on("Softmax", softmax)
}

// layerNorm: see op.LayerNorm. Sums in f64, rounds once.
func layerNorm(c *call) error { return normRows(c, standardise) }

// standardise is y = (x - mean) / sqrt(var + eps) over all of x.
func standardise(x, y []float64, eps float64) {
	mean := 0.0
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	off := 0.0 // what the rounded sum missed: matters for f64 rows far from 0
	for _, v := range x {
		off += v - mean
	}
	mean += off / float64(len(x))
	square := 0.0
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	rstd := 1 / math.Sqrt(square/float64(len(x))+eps)
	for i, v := range x {
		y[i] = (v - mean) * rstd
	}
}

// rmsNorm: see op.RmsNorm.
func rmsNorm(c *call) error { return normRows(c, overRms) }

// overRms is y = x / sqrt(mean(x^2) + eps) over all of x.
func overRms(x, y []float64, eps float64) {
	square := 0.0
	for _, v := range x {
		square += v * v
	}
	rstd := 1 / math.Sqrt(square/float64(len(x))+eps)
	for i, v := range x {
		y[i] = v * rstd
	}
}

// normRows calls norm for each row of the normalised axes and applies gamma and beta.
func normRows(c *call, norm func(x, y []float64, eps float64)) error {
	a, x := attrs[op.LayerNormAttrs](c), c.in[0]
	n := product(x.dims[wrap(a.Axis, x.rank()):])
	in, y := x.floats(), make([]float64, n)
	var gamma, beta []float64
	if c.has(1) {
		gamma = c.in[1].floats()
	}
	if c.has(2) {
		beta = c.in[2].floats()
	}
	for at := 0; at < len(in); at += n {
		norm(in[at:at+n], y, a.Eps)
		for i := range y {
			if gamma != nil {
				y[i] *= gamma[i]
			}
			if beta != nil {
				y[i] += beta[i]
			}
			c.out[0].set(at+i, y[i])
		}
	}
	return nil
}

// softmax: see op.Softmax.
func softmax(c *call) error {
	x := c.in[0].floats()
	outer, n, inner := around(c.in[0].dims, wrap(attrs[op.SoftmaxAttrs](c).Axis, c.in[0].rank()))
	e := make([]float64, n)
	for o := range outer {
		if c.stopped() {
			return errCancelled
		}
		for i := range inner {
			first := o*n*inner + i
			top := math.Inf(-1)
			for k := range n {
				if v := x[first+k*inner]; v > top || math.IsNaN(v) {
					top = v
				}
			}
			sum := 0.0
			for k := range n {
				e[k] = math.Exp(x[first+k*inner] - top)
				sum += e[k]
			}
			for k, v := range e {
				c.out[0].set(first+k*inner, v/sum)
			}
		}
	}
	return nil
}
