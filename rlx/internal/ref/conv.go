package ref

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("Conv", conv)
	on("Conv3d", conv)
	on("Im2Col", im2col)
}

// convWindow is the geometry of a sliding window as integers on three spatial axes; missing ones in front have length 1.
type convWindow struct {
	size, kernel, out       [3]int
	stride, dilation, begin [3]int
}

// windowOf is the geometry over spatial dims size. All dims are static here.
func windowOf(stride, dilation, padding []int64, mode op.AutoPad, size, kernel []int64) convWindow {
	return integers(op.ConvWindow(stride, dilation, padding, mode, ir.Dims(size...), ir.Dims(kernel...)), size, kernel)
}

func integers(g op.Window, size, kernel []int64) convWindow {
	w := convWindow{size: [3]int{1, 1, 1}, kernel: [3]int{1, 1, 1}, out: [3]int{1, 1, 1}, stride: [3]int{1, 1, 1}, dilation: [3]int{1, 1, 1}}
	for i := range size {
		at := 3 - len(size) + i
		out, _ := g.Out[i].Static()
		begin, _ := g.Begin[i].Static()
		w.size[at], w.kernel[at], w.out[at] = int(size[i]), int(kernel[i]), int(out)
		w.stride[at], w.dilation[at], w.begin[at] = int(g.Stride[i]), int(g.Dilation[i]), int(begin)
	}
	return w
}

// each calls f for every output position p, in order, that sees the input through kernel position t, with the index of what it sees;
// p and the index count within one channel. Positions that see padding are left out.
func (w *convWindow) each(t int, f func(p, at int)) {
	k := [3]int{t / (w.kernel[1] * w.kernel[2]), t / w.kernel[2] % w.kernel[1], t % w.kernel[2]}
	see := func(axis, p int) (int, bool) {
		i := p*w.stride[axis] + k[axis]*w.dilation[axis] - w.begin[axis]
		return i, i >= 0 && i < w.size[axis]
	}
	for d := range w.out[0] {
		z, ok := see(0, d)
		if !ok {
			continue
		}
		for h := range w.out[1] {
			y, ok := see(1, h)
			if !ok {
				continue
			}
			for v := range w.out[2] {
				if x, ok := see(2, v); ok {
					f((d*w.out[1]+h)*w.out[2]+v, (z*w.size[1]+y)*w.size[2]+x)
				}
			}
		}
	}
}

func volume(v [3]int) int { return v[0] * v[1] * v[2] }

// conv is op.Conv and op.Conv3d. What padding would add is left out, so no 0 * inf arises there.
func conv(c *call) error {
	a, x, w := attrs[op.ConvAttrs](c), c.in[0], c.in[1]
	return convolve(c, windowOf(a.Stride, a.Dilation, a.Padding, a.AutoPad, x.dims[2:], w.dims[2:]), int(a.Groups))
}

func convolve(c *call, win convWindow, groups int) error {
	x, w, y := c.in[0].floats(), c.in[1].floats(), c.out[0]
	items, channels := int(c.in[0].dims[0]), int(c.in[0].dims[1])
	outs, size, taps := int(y.dims[1]), volume(win.size), volume(win.kernel)
	perGroup := channels / groups
	// the pairs of positions of each tap are the same for all items and channels
	type pair struct{ p, at int }
	pairs := make([][]pair, taps)
	for t := range taps {
		win.each(t, func(p, at int) { pairs[t] = append(pairs[t], pair{p, at}) })
	}
	sum := make([]float64, volume(win.out))
	for n := range items {
		for o := range outs {
			if c.stopped() {
				return errCancelled
			}
			clear(sum)
			first := n*channels + o/(outs/groups)*perGroup
			for ch := range perGroup {
				in := x[(first+ch)*size:][:size]
				for t, v := range w[(o*perGroup+ch)*taps:][:taps] {
					for _, q := range pairs[t] {
						sum[q.p] += v * in[q.at]
					}
				}
			}
			for p, v := range sum {
				y.set((n*outs+o)*len(sum)+p, v)
			}
		}
	}
	return nil
}

// im2col: see op.Im2Col. Results start as zeros.
func im2col(c *call) error {
	a, x, y := attrs[op.Im2ColAttrs](c), c.in[0], c.out[0]
	win := windowOf(a.Stride, a.Dilation, a.Padding, a.AutoPad, x.dims[2:], a.KernelSize)
	channels, taps, size, outs := int(x.dims[1]), volume(win.kernel), volume(win.size), volume(win.out)
	clear(y.data)
	for n := range int(x.dims[0]) {
		for ch := range channels {
			for t := range taps {
				win.each(t, func(p, at int) {
					copy(y.elem(((n*outs+p)*channels+ch)*taps+t), x.elem((n*channels+ch)*size+at))
				})
			}
		}
	}
	return nil
}
