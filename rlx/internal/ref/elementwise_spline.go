package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("SplineActivation", spline)
	on("SplineActivationBackwardX", splineX)
	on("SplineActivationBackwardCoeff", splineCoeff)
}

// spline: see op.SplineActivation.
func spline(c *call) error {
	a := attrs[op.SplineAttrs](c)
	coeff, channels, step := c.in[1].floats(), int(c.in[1].dims[0]), a.Step()
	for i, x := range c.in[0].floats() {
		sum := 0.0
		for g := range a.NumBasis {
			u := (x - a.Center(g)) * step
			sum += coeff[i%channels*a.NumBasis+g] * math.Exp(-u*u)
		}
		c.out[0].set(i, sum)
	}
	return nil
}

// splineX: see op.SplineActivationBackwardX.
func splineX(c *call) error {
	a := attrs[op.SplineAttrs](c)
	coeff, channels, step, dy := c.in[1].floats(), int(c.in[1].dims[0]), a.Step(), c.in[2].floats()
	for i, x := range c.in[0].floats() {
		sum := 0.0
		for g := range a.NumBasis {
			u := (x - a.Center(g)) * step
			sum += coeff[i%channels*a.NumBasis+g] * -2 * u * step * math.Exp(-u*u)
		}
		c.out[0].set(i, dy[i]*sum)
	}
	return nil
}

// splineCoeff: see op.SplineActivationBackwardCoeff.
func splineCoeff(c *call) error {
	a := attrs[op.SplineAttrs](c)
	step, dy, sum := a.Step(), c.in[1].floats(), make([]float64, c.out[0].len())
	for i, x := range c.in[0].floats() {
		for g := range a.NumBasis {
			u := (x - a.Center(g)) * step
			sum[i%int(c.out[0].dims[0])*a.NumBasis+g] += dy[i] * math.Exp(-u*u)
		}
	}
	for i, s := range sum {
		c.out[0].set(i, s)
	}
	return nil
}
