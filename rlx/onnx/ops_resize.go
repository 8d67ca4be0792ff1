package onnx

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// resized is one axis of a Resize.
type resized struct {
	axis     int
	from, to int64
	scale    float64
	length   float64 // from * scale, before it is rounded
	lo, hi   float64 // of the region, for tf_crop_and_resize
}

// resizedAxes lists the axes that a Resize names, with their lengths, which must be known.
func (n *node) resizedAxes(x ir.Value, a op.ResizeAttrs) []resized {
	axes := a.Axes
	if axes == nil {
		for i := range x.Rank() {
			axes = append(axes, int64(i))
		}
	}
	var list []resized
	for i, v := range axes {
		r := resized{axis: n.wrap(v, x.Rank(), "axis"), hi: 1}
		from, ok := x.Dim(r.axis).Static()
		if !ok || !n.ok() || max(len(a.Sizes), len(a.Scales)) != len(axes) {
			n.refuse("", "input of shape %s, expected known lengths and one scale or size for each of %d axes", ir.ShapeText(x.Shape()), len(axes))
			return nil
		}
		r.from = from
		if a.Sizes != nil {
			r.to, _ = a.Sizes[i].Static()
			r.scale = float64(float32(r.to) / float32(from))
		} else {
			r.scale = a.Scales[i]
			r.to = int64(math.Floor(float64(float32(from)) * r.scale))
		}
		r.length = float64(r.from) * r.scale
		if a.Sizes != nil {
			r.length = float64(r.to)
		}
		if len(a.Roi) == 2*len(axes) {
			r.lo, r.hi = a.Roi[i], a.Roi[len(axes)+i]
		}
		list = append(list, r)
	}
	if policy := n.s("keep_aspect_ratio_policy"); policy != "stretch" && a.Sizes != nil {
		keepAspect(list, policy == "not_larger")
	}
	return list
}

// keepAspect scales all axes alike: as much as fits into the wanted sizes, or as little as covers them.
func keepAspect(list []resized, fits bool) {
	scale := 0.0
	for i, r := range list {
		if i == 0 || fits == (r.scale < scale) {
			scale = r.scale
		}
	}
	for i := range list {
		r := &list[i]
		r.scale, r.length = scale, float64(r.from)*scale
		r.to = int64(math.Floor(r.length + 0.5))
	}
}

// fractional rewrites align_corners with a scale that gives no whole length. ONNX takes the length that was not rounded for the distance
// between samples, which is what a cut-out region says.
func (n *node) fractional(x ir.Value, a op.ResizeAttrs) op.ResizeAttrs {
	if a.CoordinateMode != "align_corners" || a.Scales == nil {
		return a
	}
	if _, ok := ir.StaticShape(x.Shape()); !ok {
		return a
	}
	list := n.resizedAxes(x, a)
	if !slices.ContainsFunc(list, func(r resized) bool { return r.length != float64(r.to) }) {
		return a
	}
	a.CoordinateMode, a.Roi = op.CropAndResize, make([]float64, 2*len(list))
	for i, r := range list {
		if r.to > 1 && r.length > 1 {
			a.Roi[len(list)+i] = float64(r.to-1) / (r.length - 1)
		}
	}
	return a
}

// coordinate is the place in the input of output i.
func (r resized) coordinate(i int64, mode op.CoordinateMode) float64 {
	k, from, to := float64(i), float64(r.from), float64(r.to)
	switch mode {
	case "asymmetric":
		return k / r.scale
	case "align_corners":
		if r.to == 1 || r.length <= 1 {
			return 0
		}
		return k * (from - 1) / (r.length - 1)
	case "tf_crop_and_resize":
		if r.to == 1 {
			return (r.lo + r.hi) / 2 * (from - 1)
		}
		return r.lo*(from-1) + k*(r.hi-r.lo)*(from-1)/(to-1)
	case "half_pixel_symmetric":
		return from/2*(1-to/(r.scale*from)) + (k+0.5)/r.scale - 0.5
	case "pytorch_half_pixel":
		if r.to == 1 {
			return 0
		}
	}
	return (k+0.5)/r.scale - 0.5
}

// resizeByTable resizes with one table for each axis: a product with a matrix, or a Gather where the mode is nearest.
func (n *node) resizeByTable(x ir.Value, a op.ResizeAttrs) ir.Value {
	if a.CoordinateMode == op.CropAndResize {
		n.refuse("coordinate_transformation_mode", "tf_crop_and_resize with antialias or keep_aspect_ratio_policy")
	}
	d := x.DType()
	y := x
	for _, r := range n.resizedAxes(x, a) {
		if r.from == r.to && r.scale == 1 {
			continue
		}
		if r.from < 1 || r.to < 0 || r.to > maxFolded/8/r.from || float64(r.to)*4/min(r.scale, 1) > maxFolded/8 {
			n.fail("axis %d from length %d to %d", r.axis, r.from, r.to)
		}
		if !n.ok() || y.Poisoned() {
			return y
		}
		if a.Mode == "nearest" {
			y = op.Gather(y, n.im.g.Constant(ir.New(r.nearest(a), int(r.to))), r.axis)
			continue
		}
		weights := r.filter(a, n.i("antialias") == 1)
		m := n.table(d, func(i int) float64 { return weights[i] }, r.to, r.from)
		if !n.ok() {
			return y
		}
		perm := interval(0, y.Rank())
		perm[r.axis], perm[len(perm)-1] = len(perm)-1, r.axis
		y = op.Transpose(op.MatMul(op.Transpose(y, perm...), op.Transpose(n.im.g.Constant(m), 1, 0)), perm...)
	}
	return y
}

// nearest lists the element that each output takes.
func (r resized) nearest(a op.ResizeAttrs) []int64 {
	out := make([]int64, r.to)
	for i := range out {
		c := r.coordinate(int64(i), a.CoordinateMode)
		switch a.NearestMode {
		case "floor":
			c = math.Floor(c)
		case "ceil":
			c = math.Ceil(c)
		case "round_prefer_ceil":
			c = math.Floor(c + 0.5)
		default:
			c = math.Ceil(c - 0.5)
		}
		out[i] = min(max(int64(c), 0), r.from-1)
	}
	return out
}

// filter is the matrix [to, from] of weights: a triangle or a cubic around each place, stretched where the axis shrinks if it is to smooth.
func (r resized) filter(a op.ResizeAttrs, smooth bool) []float64 {
	stretch, reach := 1.0, 1.0
	if smooth {
		stretch = min(r.scale, 1)
	}
	if a.Mode == "cubic" {
		reach = 2
	}
	out := make([]float64, r.to*r.from)
	for i := range r.to {
		row := out[i*r.from : (i+1)*r.from]
		c := r.coordinate(i, a.CoordinateMode)
		sum := 0.0
		for k := int64(math.Floor(c - reach/stretch)); k <= int64(math.Ceil(c+reach/stretch)); k++ {
			w := kernel((float64(k)-c)*stretch, a)
			inside := min(max(k, 0), r.from-1)
			if a.ExcludeOutside && inside != k {
				continue
			}
			row[inside] += w
			sum += w
		}
		for k := range row {
			row[k] /= sum
		}
	}
	return out
}

// kernel is the weight at distance t: linear, or Keys' cubic.
func kernel(t float64, a op.ResizeAttrs) float64 {
	t = math.Abs(t)
	if a.Mode != "cubic" {
		return max(0, 1-t)
	}
	c := a.CubicCoeffA
	switch {
	case t < 1:
		return ((c+2)*t-(c+3))*t*t + 1
	case t < 2:
		return ((c*t-5*c)*t+8*c)*t - 4*c
	}
	return 0
}
