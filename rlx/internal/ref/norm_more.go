package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("LayerNorm2d", layerNorm2d)
	on("GroupNorm", groupNorm)
	on("BatchNormInference", batchNorm)
	on("AdaLayerNorm", adaLayerNorm)
	on("GatedResidual", gatedResidual)
	on("FusedResidualLN", func(c *call) error { return residualNorm(c, standardise) })
	on("FusedResidualRmsNorm", func(c *call) error { return residualNorm(c, overRms) })
}

// optional is operand i as float64, nil where it is absent.
func (c *call) optional(i int) []float64 {
	if !c.has(i) {
		return nil
	}
	return c.in[i].floats()
}

// scaled is v * gamma[i] + beta[i], with what is absent left out.
func scaled(v float64, gamma, beta []float64, i int) float64 {
	if gamma != nil {
		v *= gamma[i]
	}
	if beta != nil {
		v += beta[i]
	}
	return v
}

// layerNorm2d: see op.LayerNorm2d.
func layerNorm2d(c *call) error {
	x, gamma, beta := c.in[0].floats(), c.optional(1), c.optional(2)
	items, n, inner := around(c.in[0].dims, 1)
	row, y := make([]float64, n), make([]float64, n)
	for o := range items {
		for i := range inner {
			for k := range row {
				row[k] = x[(o*n+k)*inner+i]
			}
			standardise(row, y, attrs[op.LayerNorm2dAttrs](c).Eps)
			for k, v := range y {
				c.out[0].set((o*n+k)*inner+i, scaled(v, gamma, beta, k))
			}
		}
	}
	return nil
}

// groupNorm: see op.GroupNorm.
func groupNorm(c *call) error {
	a, x, gamma, beta := attrs[op.GroupNormAttrs](c), c.in[0].floats(), c.optional(1), c.optional(2)
	channels, points := int(c.in[0].dims[1]), product(c.in[0].dims[2:])
	n := channels / int(a.NumGroups) * points
	y := make([]float64, n)
	for at := 0; at < len(x); at += n {
		standardise(x[at:at+n], y, a.Eps)
		for i, v := range y {
			c.out[0].set(at+i, scaled(v, gamma, beta, (at+i)/points%channels))
		}
	}
	return nil
}

// batchNorm: see op.BatchNormInference.
func batchNorm(c *call) error {
	a, gamma, beta, mean, variance := attrs[op.BatchNormAttrs](c), c.optional(1), c.optional(2), c.in[3].floats(), c.in[4].floats()
	_, n, inner := around(c.in[0].dims, wrap(a.Axis, c.in[0].rank()))
	for i, v := range c.in[0].floats() {
		k := i / inner % n
		c.out[0].set(i, scaled((v-mean[k])/math.Sqrt(variance[k]+a.Eps), gamma, beta, k))
	}
	return nil
}

// adaLayerNorm: see op.AdaLayerNorm.
func adaLayerNorm(c *call) error {
	a, x, scale, shift := attrs[op.AdaLayerNormAttrs](c), c.in[0].floats(), c.in[1].floats(), c.in[2].floats()
	dims := c.in[0].dims
	norm, atScale, atShift := standardise, c.in[1].broadcast(dims), c.in[2].broadcast(dims)
	if a.Norm == "rms_norm" {
		norm = overRms
	}
	n := int(dims[len(dims)-1])
	y := make([]float64, n)
	for at := 0; at < len(x); at += n {
		norm(x[at:at+n], y, a.Eps)
		for i, v := range y {
			c.out[0].set(at+i, v*(1+scale[atScale(at+i)])+shift[atShift(at+i)])
		}
	}
	return nil
}

// gatedResidual: see op.GatedResidual.
func gatedResidual(c *call) error {
	y, gate, at := c.in[1].floats(), c.in[2].floats(), c.in[2].broadcast(c.in[0].dims)
	for i, v := range c.in[0].floats() {
		c.out[0].set(i, v+gate[at(i)]*y[i])
	}
	return nil
}

// residualNorm: see op.FusedResidualLN.
func residualNorm(c *call, norm func(x, y []float64, eps float64)) error {
	a, sum, residual := attrs[op.LayerNormAttrs](c), c.in[0].floats(), c.in[1].floats()
	bias, gamma, beta := c.optional(2), c.optional(3), c.optional(4)
	at := func(i int) int { return i }
	if bias != nil {
		at = c.in[2].broadcast(c.in[0].dims)
	}
	for i := range sum {
		sum[i] += residual[i]
		if bias != nil {
			sum[i] += bias[at(i)]
		}
		c.out[1].set(i, sum[i])
	}
	n := product(c.in[0].dims[wrap(a.Axis, c.in[0].rank()):])
	y := make([]float64, n)
	for first := 0; first < len(sum); first += n {
		norm(sum[first:first+n], y, a.Eps)
		for i, v := range y {
			c.out[0].set(first+i, scaled(v, gamma, beta, i))
		}
	}
	return nil
}
