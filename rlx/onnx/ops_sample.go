package onnx

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// sampleRows read images between their elements.
var sampleRows = []row{
	{op: "GridSample", since: 16, in: arity{2, 2}, build: buildGridSample,
		attrs: []attrDecl{integer("align_corners", 0, 0, 1), str("mode", "bilinear", "nearest", "bicubic"), str("padding_mode", "zeros", "border", "reflection")}},
	{op: "GridSample", since: 20, in: arity{2, 2}, build: buildGridSample,
		attrs: []attrDecl{integer("align_corners", 0, 0, 1), str("mode", "linear", "nearest", "cubic"), str("padding_mode", "zeros", "border", "reflection")}},
	{op: "AffineGrid", since: 20, in: arity{2, 2}, attrs: []attrDecl{integer("align_corners", 0, 0, 1)}, build: buildAffineGrid},
	{op: "RoiAlign", since: 10, in: arity{3, 3}, build: buildRoiAlign, attrs: roiAttrs()},
	{op: "RoiAlign", since: 16, in: arity{3, 3}, build: buildRoiAlign,
		attrs: append(roiAttrs(), str("coordinate_transformation_mode", "half_pixel", "output_half_pixel"))},
	{op: "CenterCropPad", since: 18, in: arity{2, 2}, attrs: []attrDecl{integers("axes")}, build: buildCenterCropPad},
}

func roiAttrs() []attrDecl {
	return []attrDecl{
		str("mode", "avg", "max"), integer("output_height", 1), integer("output_width", 1), integer("sampling_ratio", 0), float("spatial_scale", 1),
	}
}

// sampler reads x [N, C, S..] at fractional places.
type sampler struct {
	x       ir.Value
	size    []ir.Value // of the spatial axes, as scalars of the places' dtype
	strides []ir.Value // i64, of the flattened spatial axes
	flat    ir.Value   // [N, C, P]
	padding string     // zeros, border or reflection
	cubic   bool
	lo, hi  []ir.Value // where places are reflected
}

func (n *node) sampler(x ir.Value, d ir.DType, padding string, corners bool) *sampler {
	s := &sampler{x: x, padding: padding}
	space := x.Shape()[2:]
	s.flat = op.Reshape(x, x.Dim(0), x.Dim(1), ir.Count(space))
	for i, dim := range space {
		size := castTo(n.lengthOf(dim), d)
		s.size = append(s.size, size)
		s.strides = append(s.strides, n.lengthOf(ir.Count(space[i+1:])))
		if corners {
			s.lo, s.hi = append(s.lo, op.Mul(size, 0)), append(s.hi, op.Sub(size, 1))
		} else {
			s.lo, s.hi = append(s.lo, op.Sub(op.Mul(size, 0), 0.5)), append(s.hi, op.Sub(size, 0.5))
		}
	}
	return s
}

// inside moves a place along axis i to where the padding mode reads it.
func (s *sampler) inside(i int, p ir.Value) ir.Value {
	switch s.padding {
	case "border":
		if s.cubic { // whose weights are those of the place outside; the elements that it reads are moved
			return p
		}
		return op.Max(op.Min(p, op.Sub(s.size[i], 1)), 0)
	case "reflection":
		// A triangle wave between lo and hi.
		width := op.Sub(s.hi[i], s.lo[i])
		t := op.Abs(op.Sub(p, s.lo[i]))
		period := op.Max(op.Mul(width, 2), 1e-30)
		t = op.Sub(t, op.Mul(op.Floor(op.Div(t, period)), period))
		return op.Add(op.Min(t, op.Sub(op.Mul(width, 2), t)), s.lo[i])
	}
	return p
}

// at reads the elements at whole places, [N, Q] along each spatial axis: [N, C, Q].
func (s *sampler) at(places []ir.Value) ir.Value {
	var index, valid ir.Value
	for i, p := range places {
		in := p
		if s.padding == "reflection" {
			in = op.Round(s.inside(i, p))
		}
		last := op.Sub(s.size[i], 1)
		if s.padding == "zeros" {
			ok := op.LogicalAnd(op.Ge(p, 0), op.Le(p, last))
			valid = combined(op.LogicalAnd[iv, iv], valid, ok)
		}
		step := op.Mul(op.Cast(op.Max(op.Min(in, last), 0), ir.I64), s.strides[i])
		index = combined(op.Add[iv, iv], index, step)
	}
	q := index.Dim(1)
	y := op.GatherElements(s.flat, op.Expand(withAxis(index, 1), s.x.Dim(0), s.x.Dim(1), q), 2)
	if !valid.IsZero() {
		y = op.Where(withAxis(valid, 1), y, 0)
	}
	return y
}

// blend sums the elements at base + offset, offset running over lists of taps with their weights [N, Q] along each axis.
func (s *sampler) blend(base []ir.Value, taps [][]ir.Value, from int) ir.Value {
	var sum ir.Value
	r, count := len(base), len(taps[0])
	for t := range int(math.Pow(float64(count), float64(r))) {
		places := make([]ir.Value, r)
		var weight ir.Value
		left := t
		for i := r - 1; i >= 0; i-- {
			k := left % count
			left /= count
			places[i] = op.Add(base[i], k+from)
			weight = combined(op.Mul[iv, iv], weight, taps[i][k])
		}
		sum = combined(op.Add[iv, iv], sum, op.Mul(s.at(places), castTo(withAxis(weight, 1), s.x.DType())))
	}
	return sum
}

func buildGridSample(n *node) {
	x, grid := n.val(0), n.val(1)
	r := x.Rank() - 2
	if n.ok() && (r < 1 || grid.Rank() != x.Rank() || !grid.Dim(-1).Is(int64(r))) {
		n.fail("input has rank %d and grid shape %s, expected as many coordinates as spatial axes", x.Rank(), ir.ShapeText(grid.Shape()))
	}
	if !n.ok() {
		return
	}
	corners := n.i("align_corners") == 1
	s := n.sampler(x, grid.DType(), n.s("padding_mode"), corners)
	s.cubic = n.s("mode") == "cubic" || n.s("mode") == "bicubic"
	space := grid.Shape()[1 : r+1]
	base, place := make([]ir.Value, r), make([]ir.Value, r)
	for i := range r {
		g := op.Reshape(pick(grid, grid.Rank()-1, int64(r-1-i)), grid.Dim(0), ir.Count(space))
		if corners {
			place[i] = op.Mul(op.Mul(op.Add(g, 1), 0.5), op.Sub(s.size[i], 1))
		} else {
			place[i] = op.Mul(op.Sub(op.Mul(op.Add(g, 1), s.size[i]), 1), 0.5)
		}
		place[i] = s.inside(i, place[i])
		base[i] = op.Floor(place[i])
	}
	var y ir.Value
	taps := make([][]ir.Value, r)
	switch n.s("mode") {
	case "nearest":
		for i := range place {
			place[i] = op.Round(place[i])
		}
		y = s.at(place)
	case "cubic", "bicubic":
		for i := range taps {
			taps[i] = cubicTaps(op.Sub(place[i], base[i]), -0.75)
		}
		y = s.blend(base, taps, -1)
	default:
		for i := range taps {
			t := op.Sub(place[i], base[i])
			taps[i] = []ir.Value{op.Sub(1, t), t}
		}
		y = s.blend(base, taps, 0)
	}
	n.ret(op.Reshape(y, append([]ir.Dim{x.Dim(0), x.Dim(1)}, space...)...))
}

// cubicTaps are the weights of the elements at -1, 0, 1 and 2 from a place t behind an element: Keys' kernel with parameter a.
func cubicTaps(t ir.Value, a float64) []ir.Value {
	near := func(d ir.Value) ir.Value { // (a+2)d^3 - (a+3)d^2 + 1
		return op.Add(op.Mul(op.Mul(d, d), op.Sub(op.Mul(d, a+2), a+3)), 1)
	}
	far := func(d ir.Value) ir.Value { // a d^3 - 5a d^2 + 8a d - 4a
		return op.Sub(op.Mul(op.Add(op.Mul(op.Sub(op.Mul(d, a), 5*a), d), 8*a), d), 4*a)
	}
	return []ir.Value{far(op.Add(t, 1)), near(t), near(op.Sub(1, t)), far(op.Sub(2, t))}
}

// buildAffineGrid is theta [N, r, r+1] times the places of an output of the given size.
func buildAffineGrid(n *node) {
	n.rank(0, 3, 3)
	theta, size := n.val(0), n.list(1, "size")
	if n.ok() && (len(size) < 4 || len(size) > 5 || !theta.Dim(1).Is(int64(len(size)-2))) {
		n.fail("size has %d entries and theta shape %s, expected 4 or 5 and one row for each axis", len(size), ir.ShapeText(theta.Shape()))
	}
	if !n.ok() {
		return
	}
	space := size[2:]
	r, points, d := len(space), ir.Count(space), theta.DType()
	columns := make([]ir.Value, r+1) // x, y, (z), 1
	for axis, length := range space {
		k, count := castTo(n.im.iota(length), d), castTo(n.lengthOf(length), d)
		if n.i("align_corners") == 1 {
			k = op.Sub(op.Div(op.Mul(k, 2), op.Max(op.Sub(count, 1), 1)), 1)
		} else {
			k = op.Sub(op.Div(op.Add(op.Mul(k, 2), 1), count), 1)
		}
		columns[r-1-axis] = op.Reshape(op.Expand(laid(k, axis, r), space...), points, ir.D(1))
	}
	columns[r] = op.Expand(n.im.g.Constant(op.NumberAs(d, ir.IntNumber(1))), points, ir.D(1))
	y := op.MatMul(op.Concat(1, columns...), op.Transpose(theta, 0, 2, 1))
	n.ret(op.Reshape(y, append(append([]ir.Dim{theta.Dim(0)}, space...), ir.D(int64(r)))...))
}

// buildRoiAlign averages, or takes the maximum of, samples at equal distances in each cell of each region.
func buildRoiAlign(n *node) {
	n.rank(1, 2, 2)
	n.rank(2, 1, 1)
	x, rois, batch := n.val(0), n.val(1), n.val(2)
	ratio := n.i("sampling_ratio")
	if n.ok() && x.Rank() != 4 {
		n.fail("input has rank %d, expected 4", x.Rank())
	}
	if n.ok() && ratio <= 0 {
		n.refuse("sampling_ratio", "value %d depends on the sizes of the regions, expected a positive one", ratio)
	}
	if !n.ok() {
		return
	}
	half := 0.0
	if n.row.since >= 16 && n.s("coordinate_transformation_mode") == "half_pixel" {
		half = 0.5
	}
	d := rois.DType()
	out := []int64{n.i("output_height"), n.i("output_width")}
	count := rois.Dim(0)
	all := op.Gather(x, batch, 0) // [R, C, H, W]
	if !n.ok() {
		return
	}
	s := n.sampler(all, d, "zeros", true)
	var base []ir.Value
	taps, inside := make([][]ir.Value, 2), ir.Value{}
	grid := []int64{out[0], ratio, out[1], ratio}
	for i := range 2 { // y, x: columns 1, 3 and 0, 2 of a region
		begin := op.Sub(op.Mul(pick(rois, 1, int64(1-i)), n.float("spatial_scale")), half)
		length := op.Sub(op.Sub(op.Mul(pick(rois, 1, int64(3-i)), n.float("spatial_scale")), half), begin)
		if half == 0 {
			length = op.Max(length, 1)
		}
		steps := n.table(d, func(k int) float64 { return (float64(k) + 0.5) / float64(out[i]*ratio) }, 1, out[i]*ratio)
		p := op.Add(op.Mul(op.Reshape(length, count, ir.D(1)), n.im.g.Constant(steps)), op.Reshape(begin, count, ir.D(1)))
		ok := op.LogicalAnd(op.Ge(p, -1), op.Le(p, s.size[i]))
		p = op.Max(op.Min(p, op.Sub(s.size[i], 1)), 0)
		shape := []ir.Dim{count, ir.D(1), ir.D(1), ir.D(1), ir.D(1)}
		shape[1+2*i], shape[2+2*i] = ir.D(out[i]), ir.D(ratio)
		spread := func(v ir.Value) ir.Value {
			v = op.Expand(op.Reshape(v, shape...), append([]ir.Dim{count}, ir.Dims(grid...)...)...)
			return op.Reshape(v, count, ir.D(prod(grid)))
		}
		low := op.Floor(p)
		t := op.Sub(p, low)
		base, taps[i] = append(base, spread(low)), []ir.Value{spread(op.Sub(1, t)), spread(t)}
		inside = combined(op.LogicalAnd[iv, iv], inside, spread(ok))
	}
	y := n.roiSamples(s, base, taps, inside)
	y = op.Reshape(y, append([]ir.Dim{count, x.Dim(1)}, ir.Dims(grid...)...)...)
	fn := op.ReduceFn("mean")
	if n.s("mode") == "max" {
		fn = "max"
	}
	n.ret(op.Reduce(y, fn, []int{3, 5}, false))
}

// roiSamples are the samples [R, C, Q]. The maximum is taken over the weighted corners, not over the samples, as ONNX has it.
func (n *node) roiSamples(s *sampler, base []ir.Value, taps [][]ir.Value, inside ir.Value) ir.Value {
	var y ir.Value
	merge := op.Add[iv, iv]
	if n.s("mode") == "max" {
		merge = op.Max[iv, iv]
	}
	for t := range 4 {
		k := []int{t / 2, t % 2}
		places := []ir.Value{op.Add(base[0], k[0]), op.Add(base[1], k[1])}
		part := op.Mul(s.at(places), castTo(withAxis(op.Mul(taps[0][k[0]], taps[1][k[1]]), 1), s.x.DType()))
		y = combined(merge, y, part)
	}
	return op.Where(withAxis(inside, 1), y, 0)
}

// buildCenterCropPad cuts or fills both ends of axes alike.
func buildCenterCropPad(n *node) {
	x, shape := n.val(0), n.ints(1, "shape")
	if !n.ok() {
		return
	}
	axes := interval(0, x.Rank())
	if list := n.intList("axes"); list != nil {
		axes = n.axes(list, x.Rank())
	}
	if n.ok() && len(axes) != len(shape) {
		n.fail("shape has %d entries, expected %d", len(shape), len(axes))
	}
	if !n.ok() {
		return
	}
	pads := make([]ir.Dim, 2*x.Rank())
	for i, axis := range axes {
		from, ok := x.Dim(axis).Static()
		to := shape[i]
		if !ok {
			n.refuse("", "axis %d of length %s, expected a known one", axis, x.Dim(axis))
			return
		}
		before := (to - from) / 2 // toward zero: less is cut or filled in front
		pads[axis], pads[x.Rank()+axis] = ir.D(before), ir.D(to-from-before)
	}
	n.ret(op.Pad(x, pads, op.PadConstant, ir.IntNumber(0)))
}
