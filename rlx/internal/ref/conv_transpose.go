package ref

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("ConvTranspose2d", convTranspose)
	on("ConvTranspose3d", convTranspose)
	on("FusedConvBiasAct", fusedConv)
}

// convTranspose: see op.ConvTranspose2d. The windows are those of the convolution that leads from y back to x.
func convTranspose(c *call) error {
	a, x, w, y := attrs[op.ConvTransposeAttrs](c), c.in[0].floats(), c.in[1].floats(), c.out[0]
	dims, kernel := c.in[0].dims, c.in[1].dims[2:]
	win := integers(op.TransposeWindow(a, ir.Dims(dims[2:]...), ir.Dims(kernel...)), dims[2:], kernel)
	for i, n := range y.dims[2:] { // windows slide over y and see what x holds
		at := 5 - y.rank() + i
		win.size[at], win.out[at] = int(n), int(dims[2+i])
	}
	groups, channels, outs := int(a.Groups), int(dims[1]), int(y.dims[1])
	perGroup, outsPer, taps, points := channels/groups, outs/groups, volume(win.kernel), volume(win.out)
	sum := make([]float64, volume(win.size))
	for n := range int(dims[0]) {
		for o := range outs {
			if c.stopped() {
				return errCancelled
			}
			clear(sum)
			first := o / outsPer * perGroup
			for ch := first; ch < first+perGroup; ch++ {
				in := x[(n*channels+ch)*points:][:points]
				for t := range taps {
					v := w[(ch*outsPer+o%outsPer)*taps+t]
					win.each(t, func(p, at int) { sum[at] += v * in[p] })
				}
			}
			for p, v := range sum {
				y.set((n*outs+o)*len(sum)+p, v)
			}
		}
	}
	return nil
}

// fusedConv: see op.FusedConvBiasAct. It convolves in f64, so that only the last step rounds.
func fusedConv(c *call) error {
	a, y := attrs[op.FusedConvAttrs](c), c.out[0]
	conv := a.Conv()
	wide := tensor{true, ir.F64, y.dims, make([]byte, 8*y.len())}
	inner := &call{in: c.in[:2], out: []tensor{wide}, env: c.env}
	win := windowOf(conv.Stride, conv.Dilation, conv.Padding, conv.AutoPad, c.in[0].dims[2:], c.in[1].dims[2:])
	if err := convolve(inner, win, int(conv.Groups)); err != nil {
		return err
	}
	act := func(x, _ float64) float64 { return x }
	if s, ok := op.Unary(string(a.Activation)); ok {
		act = s.Func(a.Alpha, a.Beta)
	}
	var bias, residual []float64
	if c.has(2) {
		bias = c.in[2].floats()
	}
	if c.has(3) {
		residual = c.in[3].floats()
	}
	outs, points := int(y.dims[1]), product(y.dims[2:])
	for i, v := range wide.floats() {
		if bias != nil {
			v += bias[i/points%outs]
		}
		if residual != nil {
			v += residual[i]
		}
		y.set(i, act(v, v))
	}
	return nil
}
