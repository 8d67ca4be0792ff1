package onnx

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// shapeRows give the same elements other dims.
var shapeRows = []row{
	{op: "Reshape", since: 5, in: arity{2, 2}, attrs: []attrDecl{integer("allowzero", 0, 0, 1)}, build: buildReshape, track: trackReshape},
	{op: "Squeeze", since: 1, in: arity{1, 1}, attrs: []attrDecl{integers("axes")}, build: buildReshapeTo(squeezed), track: trackReshapeTo(squeezed)},
	{op: "Squeeze", since: 13, in: arity{1, 2}, build: buildReshapeTo(squeezed), track: trackReshapeTo(squeezed)},
	{op: "Unsqueeze", since: 1, in: arity{1, 1}, attrs: []attrDecl{required(integers("axes"))}, build: buildReshapeTo(unsqueezed), track: trackReshapeTo(unsqueezed)},
	{op: "Unsqueeze", since: 13, in: arity{2, 2}, build: buildReshapeTo(unsqueezed), track: trackReshapeTo(unsqueezed)},
	{op: "Flatten", since: 1, in: arity{1, 1}, attrs: []attrDecl{integer("axis", 1)}, build: buildReshapeTo(flattened), track: trackReshapeTo(flattened)},
	{op: "Expand", since: 8, in: arity{2, 2}, build: buildExpand, track: trackExpand},
}

// layoutRows move, repeat and cut.
var layoutRows = []row{
	{op: "Transpose", since: 1, in: arity{1, 1}, attrs: []attrDecl{integers("perm")}, build: buildTranspose, track: trackTranspose},
	{op: "Concat", since: 4, in: arity{1, many}, attrs: []attrDecl{required(integer("axis", 0))}, build: buildConcat, track: trackConcat},
	{op: "Slice", since: 1, in: arity{1, 1}, build: buildSlice, track: trackSlice,
		attrs: []attrDecl{required(integers("starts")), required(integers("ends")), integers("axes")}},
	{op: "Slice", since: 10, in: arity{3, 5}, build: buildSlice, track: trackSlice},
	{op: "Split", since: 2, in: arity{1, 1}, attrs: []attrDecl{integer("axis", 0), integers("split")}, build: buildSplit, track: trackSplit},
	{op: "Split", since: 13, in: arity{1, 2}, attrs: []attrDecl{integer("axis", 0)}, build: buildSplit, track: trackSplit},
	{op: "Split", since: 18, in: arity{1, 2}, build: buildSplit, track: trackSplit,
		attrs: []attrDecl{integer("axis", 0), {name: "num_outputs", kind: AttributeInt}}},
	{op: "Tile", since: 6, in: arity{2, 2}, build: func(n *node) {
		if x, repeats := n.val(0), n.list(1, "repeats"); n.ok() {
			n.ret(op.Tile(x, repeats...))
		}
	}},
	{op: "Pad", since: 2, in: arity{1, 1}, build: buildPad,
		attrs: []attrDecl{str("mode", "constant", "reflect", "edge"), required(integers("pads")), float("value", 0)}},
	{op: "Pad", since: 11, in: arity{2, 4}, build: buildPad, attrs: []attrDecl{str("mode", "constant", "reflect", "edge", "wrap")}},
	{op: "Trilu", since: 14, in: arity{1, 2}, attrs: []attrDecl{integer("upper", 1)}, build: buildTrilu},
	{op: "DepthToSpace", since: 1, in: arity{1, 1}, attrs: []attrDecl{required(integer("blocksize", 0)), str("mode", "DCR", "CRD")}, build: buildDepthToSpace},
	{op: "SpaceToDepth", since: 1, in: arity{1, 1}, attrs: []attrDecl{required(integer("blocksize", 0)), str("mode", "DCR", "CRD")}, build: buildSpaceToDepth},
	{op: "Upsample", since: 7, in: arity{1, 1}, attrs: []attrDecl{str("mode", "nearest", "linear"), required(floats("scales"))}, build: buildUpsample},
	{op: "Upsample", since: 9, in: arity{2, 2}, attrs: []attrDecl{str("mode", "nearest", "linear")}, build: buildUpsample},
	{op: "Resize", since: 10, in: arity{2, 2}, attrs: []attrDecl{str("mode", "nearest", "linear")}, build: buildUpsample},
	{op: "Resize", since: 11, in: arity{1, 4}, build: buildResize, attrs: []attrDecl{
		str("coordinate_transformation_mode", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
			"tf_crop_and_resize", "tf_half_pixel_for_nn"),
		float("cubic_coeff_a", -0.75), integer("exclude_outside", 0, 0, 1), float("extrapolation_value", 0),
		str("mode", "nearest", "linear", "cubic"), str("nearest_mode", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
		integer("antialias", 0, 0, 1), integers("axes"), str("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller"),
	}},
}

func buildReshape(n *node) {
	x, shape := n.val(0), n.list(1, "shape")
	if n.ok() {
		n.ret(op.ReshapeWith(x, op.ReshapeAttrs{Shape: shape, AllowZero: n.i("allowzero") == 1}))
	}
}

func trackReshape(n *node) []*dimTensor {
	x, to := n.dims(0), n.dims(1)
	if x == nil || to == nil {
		return nil
	}
	shape, ok := to.static()
	if !ok {
		return nil
	}
	shape = slices.Clone(shape)
	free, known := -1, int64(1)
	for i, d := range shape {
		switch {
		case d == 0 && n.i("allowzero") == 0 && i < len(x.shape):
			shape[i] = x.shape[i]
		case d == -1:
			free = i
			continue
		case d < 0 || d > maxTracked:
			return nil
		}
		known *= shape[i]
		if known > maxTracked {
			return nil
		}
	}
	if free >= 0 {
		if known == 0 {
			return nil
		}
		shape[free] = int64(len(x.elem)) / known
	}
	return []*dimTensor{x.reshape(shape)}
}

// buildReshapeTo and trackReshapeTo read operators that only change dims; to computes the new ones from the type of input 0.
func buildReshapeTo(to func(n *node) []ir.Dim) func(n *node) {
	return func(n *node) {
		shape := to(n)
		if !n.ok() {
			return
		}
		if slices.Equal(shape, n.typ(0).Shape) {
			n.pass(0)
			return
		}
		if x := n.val(0); n.ok() {
			n.ret(op.Reshape(x, shape...))
		}
	}
}

func trackReshapeTo(to func(n *node) []ir.Dim) func(n *node) []*dimTensor {
	return func(n *node) []*dimTensor {
		x := n.dims(0)
		if x == nil {
			return nil
		}
		shape, ok := ir.StaticShape(to(n))
		if !ok || !n.ok() {
			return nil
		}
		return []*dimTensor{x.reshape(shape)}
	}
}

// axesOf is a list of axes: attribute axes, or input 1 in newer operator sets. Nil if neither is there.
func (n *node) axesOf(rank int) []int {
	list := n.intList("axes")
	if n.has(1) {
		list = n.ints(1, "axes")
	}
	if list == nil {
		return nil
	}
	return n.axes(list, rank)
}

func squeezed(n *node) []ir.Dim {
	shape := n.typ(0).Shape
	axes := n.axesOf(len(shape))
	out := []ir.Dim{}
	for i, d := range shape {
		switch given := slices.Contains(axes, i); {
		case given:
			if d.IsStatic() && !d.Is(1) {
				n.fail("axis %d has length %s, expected 1", i, d)
			}
			continue
		case axes == nil && d.Is(1):
			continue
		case axes == nil && !d.IsStatic() && n.ok():
			n.refuse("", "without axes, its rank depends on whether %s is 1", d)
		}
		out = append(out, d)
	}
	return out
}

func unsqueezed(n *node) []ir.Dim {
	shape := n.typ(0).Shape
	list := n.intList("axes")
	if n.has(1) {
		list = n.ints(1, "axes")
	}
	rank := len(shape) + len(list)
	axes := n.axes(list, rank)
	out := make([]ir.Dim, 0, rank)
	for i := 0; i < rank && n.ok(); i++ {
		if slices.Contains(axes, i) {
			out = append(out, ir.D(1))
		} else {
			out, shape = append(out, shape[0]), shape[1:]
		}
	}
	return out
}

func flattened(n *node) []ir.Dim {
	shape := n.typ(0).Shape
	axis := len(shape)
	if n.i("axis") != int64(axis) {
		axis = n.axis("axis", len(shape))
	}
	return []ir.Dim{ir.Count(shape[:axis]), ir.Count(shape[axis:])}
}

func buildExpand(n *node) {
	if x, shape := n.val(0), n.list(1, "shape"); n.ok() {
		n.ret(op.Expand(x, shape...))
	}
}

func trackExpand(n *node) []*dimTensor {
	x, to := n.dims(0), n.dims(1)
	if x == nil || to == nil {
		return nil
	}
	want, ok := to.static()
	if !ok {
		return nil
	}
	shape, ok := broadcastDims(x.shape, want)
	if !ok {
		return nil
	}
	return []*dimTensor{x.expand(shape)}
}

// perm is attribute perm, checked; without it the axes are reversed.
func (n *node) perm(rank int) []int {
	list := n.intList("perm")
	if list == nil {
		for i := range rank {
			list = append(list, int64(rank-1-i))
		}
	}
	if len(list) != rank {
		n.fail("perm has %d entries, input has rank %d", len(list), rank)
		return nil
	}
	return n.axes(list, rank)
}

func buildTranspose(n *node) {
	perm := n.perm(len(n.typ(0).Shape))
	if x := n.val(0); n.ok() {
		n.ret(op.Transpose(x, perm...))
	}
}

func trackTranspose(n *node) []*dimTensor {
	x := n.dims(0)
	if x == nil {
		return nil
	}
	perm := n.perm(len(x.shape))
	if !n.ok() {
		return nil
	}
	shape, strides := make([]int64, len(perm)), rowMajor(x.shape)
	for i, p := range perm {
		shape[i] = x.shape[p]
	}
	return []*dimTensor{x.pick(shape, func(idx []int64) int64 {
		at := int64(0)
		for i, p := range perm {
			at += strides[p] * idx[i]
		}
		return at
	})}
}

func buildConcat(n *node) {
	axis := n.axis("axis", len(n.typ(0).Shape))
	n.sumOfDims(axis)
	v := n.vals()
	switch {
	case !n.ok():
	case len(v) == 1:
		n.pass(0)
	default:
		n.ret(op.Concat(axis, v...))
	}
}

// sumOfDims refuses a sum of too many different dims before it is made: each step costs what there is so far.
func (n *node) sumOfDims(axis int) {
	sum := ir.D(0)
	for i := range n.in {
		shape := n.typ(i).Shape
		if !n.ok() || axis >= len(shape) {
			return
		}
		if sum = sum.Add(shape[axis]); !sum.IsStatic() && tooLong(sum) {
			n.fail("its shape is an expression of more than %d characters", maxDimText)
		}
	}
}

func trackConcat(n *node) []*dimTensor {
	in := n.operands()
	if len(in) == 0 {
		return nil
	}
	first := in[0]
	axis := n.axis("axis", len(first.shape))
	if !n.ok() {
		return nil
	}
	out := &dimTensor{first.dtype, slices.Clone(first.shape), nil}
	out.shape[axis] = 0
	total := 0
	for _, t := range in {
		if t.dtype != first.dtype || len(t.shape) != len(first.shape) {
			return nil
		}
		for i, d := range t.shape {
			if i != axis && d != first.shape[i] {
				return nil
			}
		}
		out.shape[axis] += t.shape[axis]
		total += len(t.elem)
	}
	if total > maxTracked {
		return nil
	}
	inner := prod(first.shape[axis+1:])
	for o := range prod(first.shape[:axis]) {
		for _, t := range in {
			run := t.shape[axis] * inner
			out.elem = append(out.elem, t.elem[o*run:(o+1)*run]...)
		}
	}
	return []*dimTensor{out}
}

// slice are the operands of a Slice, from attributes or inputs.
type slice struct {
	starts, ends []ir.Dim
	axes         []int
	steps        []int64
}

func (n *node) slice() (s slice, ok bool) {
	rank := len(n.typ(0).Shape)
	var axes []int64
	if n.row.since < 10 {
		s.starts, s.ends, axes = ir.Dims(n.intList("starts")...), ir.Dims(n.intList("ends")...), n.intList("axes")
	} else {
		s.starts, s.ends = n.list(1, "starts"), n.list(2, "ends")
		if n.has(3) {
			axes = n.ints(3, "axes")
		}
		if n.has(4) {
			s.steps = n.ints(4, "steps")
		}
	}
	if axes == nil {
		for i := range s.starts {
			axes = append(axes, int64(i))
		}
	}
	if n.ok() {
		s.axes = n.axes(axes, rank)
	}
	if n.ok() && (len(s.ends) != len(s.starts) || len(s.axes) != len(s.starts) || s.steps != nil && len(s.steps) != len(s.starts)) {
		n.fail("starts, ends, axes and steps have %d, %d, %d and %d entries", len(s.starts), len(s.ends), len(s.axes), len(s.steps))
	}
	return s, n.ok()
}

func buildSlice(n *node) {
	s, ok := n.slice()
	if x := n.val(0); ok && n.ok() {
		n.ret(op.Slice(x, s.starts, s.ends, s.axes, s.steps))
	}
}

func trackSlice(n *node) []*dimTensor {
	y := n.dims(0)
	for i := 1; i < len(n.in); i++ {
		if n.has(i) && n.dims(i) == nil {
			return nil
		}
	}
	if y == nil {
		return nil
	}
	s, ok := n.slice()
	if !ok {
		return nil
	}
	for i, axis := range s.axes {
		from, ok1 := s.starts[i].Static()
		to, ok2 := s.ends[i].Static()
		step := int64(1)
		if s.steps != nil {
			step = s.steps[i]
		}
		if !ok1 || !ok2 || step == 0 {
			return nil
		}
		if y = y.along(axis, sliceIndices(from, to, step, y.shape[axis])); y == nil {
			return nil
		}
	}
	return []*dimTensor{y}
}

// sliceIndices lists the positions of from:to:step along a length of d.
func sliceIndices(from, to, step, d int64) []int64 {
	if from < 0 {
		from += d
	}
	if to < 0 {
		to += d
	}
	var list []int64
	if step > 0 {
		for i, end := min(max(from, 0), d), min(max(to, 0), d); i < end; i += step {
			if list = append(list, i); step >= d {
				break
			}
		}
		return list
	}
	for i, end := min(max(from, 0), d-1), min(max(to, -1), d-1); i > end; i += step {
		if list = append(list, i); -step < 0 || -step >= d {
			break
		}
	}
	return list
}

// pieces are the axis and the lengths of the outputs of a Split.
func (n *node) pieces() (axis int, lengths []ir.Dim) {
	shape := n.typ(0).Shape
	axis = n.axis("axis", len(shape))
	if !n.ok() {
		return 0, nil
	}
	count := int64(len(n.p.Output))
	switch list := n.intList("split"); {
	case list != nil:
		return axis, ir.Dims(list...)
	case n.has(1):
		return axis, n.list(1, "split")
	}
	if a := n.attr("num_outputs"); a != nil {
		if count = a.I; count < int64(len(n.p.Output)) {
			n.fail("num_outputs is %d, expected %d", count, len(n.p.Output))
			return 0, nil
		}
	}
	d := shape[axis]
	size, static := d.Static()
	if n.row.since < 18 && static && size%max(count, 1) != 0 {
		n.fail("%d outputs do not divide axis %d of length %d", count, axis, size)
		return 0, nil
	}
	piece := d.CeilDiv(ir.D(count))
	for i := range int64(len(n.p.Output)) {
		if i == count-1 {
			piece = d.Sub(piece.Mul(ir.D(i))) // the last one may be shorter
		}
		lengths = append(lengths, piece)
	}
	return axis, lengths
}

func buildSplit(n *node) {
	axis, lengths := n.pieces()
	x := n.val(0)
	if n.ok() && len(lengths) < len(n.p.Output) {
		n.fail("split has %d entries, the node %d outputs", len(lengths), len(n.p.Output))
	}
	if !n.ok() {
		return
	}
	out := make([]ir.Value, len(n.p.Output))
	at := ir.D(0)
	for i := range out {
		end := at.Add(lengths[i])
		if n.wants(i) {
			out[i] = op.Slice(x, []ir.Dim{at}, []ir.Dim{end}, []int{axis}, nil)
		}
		at = end
	}
	n.ret(out...)
}

func trackSplit(n *node) []*dimTensor {
	x := n.dims(0)
	if x == nil || n.has(1) && n.dims(1) == nil {
		return nil
	}
	axis, dims := n.pieces()
	lengths, ok := ir.StaticShape(dims)
	if !ok || !n.ok() || len(lengths) != len(n.p.Output) {
		return nil
	}
	out := make([]*dimTensor, len(lengths))
	at := int64(0)
	for i, length := range lengths {
		if length < 0 || length > maxTracked {
			return nil
		}
		out[i] = x.along(axis, sliceIndices(at, at+length, 1, x.shape[axis]))
		at += length
	}
	return out
}

func buildTrilu(n *node) {
	if x, k := n.val(0), n.int(1, "k", 0); n.ok() {
		n.ret(op.Trilu(x, n.i("upper") == 0, k))
	}
}

// padModes maps ONNX's names.
var padModes = map[string]op.PadMode{"constant": op.PadConstant, "reflect": op.PadReflect, "edge": op.PadReplicate, "wrap": op.PadCircular}

func buildPad(n *node) {
	rank := len(n.typ(0).Shape)
	pads := ir.Dims(n.intList("pads")...)
	value := ir.FloatNumber(n.float("value"))
	if len(n.p.Input) > 1 {
		pads, value = n.list(1, "pads"), n.padValue()
	}
	axes := interval(0, rank)
	if n.has(3) {
		axes = n.axes(n.ints(3, "axes"), rank)
	}
	if n.ok() && len(pads) != 2*len(axes) {
		n.fail("pads has %d entries, expected %d", len(pads), 2*len(axes))
	}
	x := n.val(0)
	if !n.ok() {
		return
	}
	all := make([]ir.Dim, 2*rank)
	for i, axis := range axes {
		all[axis], all[rank+axis] = pads[i], pads[len(axes)+i]
	}
	n.ret(op.Pad(x, all, padModes[n.s("mode")], value))
}

// padValue is input 2, which must be known.
func (n *node) padValue() ir.Number {
	if n.s("mode") != "constant" || !n.has(2) {
		return ir.IntNumber(0)
	}
	if v, ok := n.number(2); ok {
		return v
	}
	if n.ok() {
		n.unknown(2, "constant_value")
	}
	return ir.Number{}
}

// number is the one element of a constant input.
func (n *node) number(i int) (ir.Number, bool) {
	if t := n.dims(i); t != nil && len(t.elem) == 1 && t.elem[0].IsStatic() {
		v, _ := t.elem[0].Static()
		return ir.IntNumber(v), true
	}
	if t := n.known(i); t != nil && t.Len() == 1 {
		return numberAt(t, 0), true
	}
	return ir.Number{}, false
}

func numberAt(t *ir.Tensor, i int) ir.Number {
	if whole := ir.Int | ir.Set(ir.Bool); whole.Has(t.DType()) {
		return ir.IntNumber(t.Int(i))
	}
	return ir.FloatNumber(t.Float(i))
}

// blocks are the dims [N, C, H, W] and the block size of DepthToSpace and SpaceToDepth.
func (n *node) blocks() (shape []ir.Dim, b ir.Dim) {
	shape, size := n.typ(0).Shape, n.i("blocksize")
	if len(shape) != 4 || size < 1 {
		n.fail("rank %d and blocksize %d, expected rank 4 and a positive blocksize", len(shape), size)
	}
	return shape, ir.D(size)
}

func buildDepthToSpace(n *node) {
	s, b := n.blocks()
	x := n.val(0)
	if !n.ok() {
		return
	}
	c := s[1].FloorDiv(b.Mul(b))
	if n.s("mode") == "CRD" {
		x = op.Transpose(op.Reshape(x, s[0], c, b, b, s[2], s[3]), 0, 1, 4, 2, 5, 3)
	} else {
		x = op.Transpose(op.Reshape(x, s[0], b, b, c, s[2], s[3]), 0, 3, 4, 1, 5, 2)
	}
	n.ret(op.Reshape(x, s[0], c, s[2].Mul(b), s[3].Mul(b)))
}

func buildSpaceToDepth(n *node) {
	s, b := n.blocks()
	x := n.val(0)
	if !n.ok() {
		return
	}
	h, w := s[2].FloorDiv(b), s[3].FloorDiv(b)
	x = op.Reshape(x, s[0], s[1], h, b, w, b)
	if n.s("mode") == "CRD" {
		x = op.Transpose(x, 0, 1, 3, 5, 2, 4)
	} else {
		x = op.Transpose(x, 0, 3, 5, 1, 2, 4)
	}
	n.ret(op.Reshape(x, s[0], s[1].Mul(b).Mul(b), h, w))
}

func buildResize(n *node) {
	a := op.ResizeAttrs{
		Axes: n.intList("axes"), Mode: op.ResizeMode(n.s("mode")), CoordinateMode: op.CoordinateMode(n.s("coordinate_transformation_mode")),
		NearestMode: op.NearestMode(n.s("nearest_mode")), CubicCoeffA: n.float("cubic_coeff_a"), ExcludeOutside: n.i("exclude_outside") == 1,
		ExtrapolationValue: n.float("extrapolation_value"),
	}
	switch a.CoordinateMode {
	case op.CropAndResize:
		a.Roi = n.floatsOf(1, "roi")
	case "tf_half_pixel_for_nn": // half_pixel without its shift by half an element, which rounding up at halves makes good for
		if a.Mode != "nearest" || a.NearestMode != op.NearestFloor {
			n.refuse("coordinate_transformation_mode", "tf_half_pixel_for_nn with mode %s and nearest_mode %s, expected nearest and floor", a.Mode, a.NearestMode)
		}
		a.CoordinateMode, a.NearestMode = op.HalfPixel, "round_prefer_ceil"
	}
	// Exporters leave an unused input out, or give it no elements.
	given := func(i int) bool { return n.has(i) && !ir.Count(n.typ(i).Shape).Is(0) }
	switch {
	case given(3):
		a.Sizes = n.list(3, "sizes")
		if n.i("antialias") == 1 || n.s("keep_aspect_ratio_policy") != "stretch" {
			a.Sizes = ir.Dims(n.ints(3, "sizes")...)
		}
	case given(2):
		a.Scales, a.Sizes = n.scales(2, n.val(0), a.Axes)
	default:
		n.fail("neither sizes nor scales are given")
	}
	x := n.val(0)
	switch {
	case !n.ok():
	case n.i("antialias") == 1 && a.Mode != "nearest" || n.s("keep_aspect_ratio_policy") != "stretch" && a.Sizes != nil:
		n.ret(n.resizeByTable(x, a))
	default:
		n.ret(op.Resize(x, n.fractional(x, a)))
	}
}

// buildUpsample reads the operators before Resize had coordinate modes.
func buildUpsample(n *node) {
	a := op.ResizeAttrs{Mode: op.ResizeMode(n.s("mode")), CoordinateMode: op.Asymmetric, NearestMode: op.NearestFloor}
	if at := n.attr("scales"); at != nil {
		for _, f := range at.Floats {
			a.Scales = append(a.Scales, float64(f))
		}
	} else {
		a.Scales, a.Sizes = n.scales(1, n.val(0), nil)
	}
	if x := n.val(0); n.ok() {
		n.ret(op.Resize(x, a))
	}
}

// floatsOf are the elements of an input that must be known.
func (n *node) floatsOf(i int, what string) []float64 {
	t := n.want(i, what)
	if t == nil {
		return nil
	}
	out := make([]float64, t.Len())
	for k := range out {
		out[k] = t.Float(k)
	}
	return out
}
