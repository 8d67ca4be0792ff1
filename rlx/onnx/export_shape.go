package onnx

import (
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// shapeExports are the kinds that move elements.
var shapeExports = map[string]exportRow{
	"Reshape":            direct(emitReshape),
	"Transpose":          direct(emitTranspose),
	"Narrow":             direct(emitNarrow),
	"Slice":              direct(emitSlice),
	"Concat":             direct(emitConcat),
	"Expand":             direct(emitExpand),
	"Copy":               {emit: passed},
	"Pad":                direct(emitPad).elseStatic(),
	"Tile":               direct(emitTile),
	"Roll":               composedStatic(),
	"Trilu":              direct(emitTrilu).elseStatic(),
	"DynamicUpdateSlice": composedStatic(),
	"Interpolate3d":      composedStatic(),
	"Resize":             direct(emitResize).elseStatic(),
}

// move writes an operator on operand 0, which only moves its elements; list are the other operands. Codes travel as floats.
func (x *emission) move(operator string, takes ir.DTypeSet, list []string, attrs ...AttributeProto) []string {
	d := x.dtype(0)
	c := x.carrier(d, takes)
	if x.reason != "" {
		return nil
	}
	y := x.op(operator, append([]string{x.cast(x.in[0], d, c)}, list...), attrs...)
	return []string{x.cast(y, c, d)}
}

func emitReshape(x *emission, a *op.ReshapeAttrs) []string {
	from, to := x.shape(0), x.n.Types[0].Shape
	if movable.Has(x.dtype(0)) { // codes have kernels for Reshape alone
		if axes, ok := squeezedAxes(from, to); ok {
			return []string{x.op("Squeeze", []string{x.in[0], x.ints(axes...)})}
		}
		if axes, ok := squeezedAxes(to, from); ok {
			return []string{x.op("Unsqueeze", []string{x.in[0], x.ints(axes...)})}
		}
	}
	shape, allowZero := "", a.AllowZero
	if slices.ContainsFunc(a.Shape, ofElements) { // which may be 0 or -1
		shape = x.dims(a.Shape)
	} else {
		shape, allowZero = x.target(x.n.In[0], to)
	}
	if allowZero {
		return []string{x.op("Reshape", []string{x.in[0], shape}, attr("allowzero", 1))}
	}
	return []string{x.op("Reshape", []string{x.in[0], shape})}
}

// ofElements says that d depends on the elements of an input, which may have any value.
func ofElements(d ir.Dim) bool { return strings.Contains(d.String(), "#") }

func emitTranspose(x *emission, a *op.TransposeAttrs) []string {
	rank := len(x.shape(0))
	perm := make([]int64, rank)
	for k := range perm {
		perm[k] = int64(rank - 1 - k)
		if len(a.Perm) > 0 {
			perm[k] = int64(wrapped(int(a.Perm[k]), rank))
		}
	}
	return x.one("Transpose", attr("perm", perm))
}

func emitNarrow(x *emission, a *op.NarrowAttrs) []string {
	end := a.Start + a.Length
	if a.Start < 0 && end >= 0 { // up to the end: 0 would be the beginning
		end = int64(1)<<62 - 1
	}
	return x.move("Slice", movable, []string{x.ints(a.Start), x.ints(end), x.ints(int64(a.Axis))})
}

func emitSlice(x *emission, a *op.SliceAttrs) []string {
	axes := a.Axes
	if len(axes) == 0 {
		for i := range a.Starts {
			axes = append(axes, int64(i))
		}
	}
	if len(axes) == 0 {
		return passed(x)
	}
	list := []string{x.dims(a.Starts), x.dims(a.Ends), x.ints(axes...)}
	if len(a.Steps) > 0 {
		list = append(list, x.ints(a.Steps...))
	}
	return x.move("Slice", movable, list)
}

func emitConcat(x *emission, a *op.ConcatAttrs) []string {
	return x.carry(movable, func(in []string, _ ir.DType) string { return x.op("Concat", in, attr("axis", a.Axis)) })
}

func emitExpand(x *emission, a *op.ExpandAttrs) []string {
	shape := make([]ir.Dim, len(a.Shape))
	for i, d := range a.Shape {
		if shape[i] = d; d.Is(-1) { // keeps the length, as 1 does
			shape[i] = ir.D(1)
		}
	}
	return x.move("Expand", expandable, []string{x.dims(shape)})
}

func emitPad(x *emission, a *op.PadAttrs) []string {
	rank := len(x.shape(0))
	pads := a.Padding
	if len(pads) == rank {
		pads = append(append([]ir.Dim{}, pads...), pads...)
	}
	mode := map[op.PadMode]string{op.PadConstant: "constant", op.PadReflect: "reflect", op.PadReplicate: "edge", op.PadCircular: "wrap"}[a.Mode]
	if a.Mode == op.PadReflect || a.Mode == op.PadCircular { // one turn at most, and nothing cropped
		for i, p := range pads {
			n, ok := p.Static()
			d, known := x.shape(0)[i%rank].Static()
			if ok && (n < 0 || known && (n > d || a.Mode == op.PadReflect && n >= d)) {
				return x.refuse("a border of %s in mode %s on an axis of %s", p, mode, x.shape(0)[i%rank])
			}
		}
	}
	value := ""
	if t := op.NumberAs(x.dtype(0), a.Value); a.Mode == op.PadConstant {
		value = x.constant("value", t)
	}
	if value != "" {
		c := x.carrier(x.dtype(0), paddable)
		value = x.cast(value, x.dtype(0), c)
	}
	return x.move("Pad", paddable, []string{x.dims(pads), value}, attr("mode", mode))
}

func emitTile(x *emission, a *op.TileAttrs) []string {
	if len(a.Repeats) == 0 {
		return passed(x)
	}
	return x.move("Tile", expandable, []string{x.dims(a.Repeats)})
}

func emitTrilu(x *emission, a *op.TriluAttrs) []string {
	k := x.constant("k", ir.Scalar(a.Diagonal))
	return x.move("Trilu", triangular, []string{k}, attr("upper", !a.Lower))
}

func emitResize(x *emission, a *op.ResizeAttrs) []string {
	d := x.carrier(x.dtype(0), resizable)
	if x.reason != "" {
		return nil
	}
	roi, scales, sizes := "", "", ""
	vector := func(v []float64) string {
		list := make([]float32, len(v))
		for i := range v {
			list[i] = float32(v[i])
		}
		return x.constant("scales", ir.New(list, len(list)))
	}
	if a.CoordinateMode == op.CropAndResize {
		if roi = vector(a.Roi); len(a.Roi) == 0 {
			return x.refuse("tf_crop_and_resize without a region")
		}
	}
	if len(a.Sizes) > 0 {
		sizes = x.dims(a.Sizes)
	} else {
		scales = vector(a.Scales)
	}
	attrs := []AttributeProto{attr("mode", string(a.Mode)), attr("coordinate_transformation_mode", string(a.CoordinateMode))}
	switch a.Mode {
	case op.ResizeNearest:
		attrs = append(attrs, attr("nearest_mode", string(a.NearestMode)))
	case op.ResizeCubic:
		attrs = append(attrs, attr("cubic_coeff_a", a.CubicCoeffA))
	}
	if a.ExcludeOutside {
		attrs = append(attrs, attr("exclude_outside", 1))
	}
	if a.ExtrapolationValue != 0 {
		attrs = append(attrs, attr("extrapolation_value", a.ExtrapolationValue))
	}
	attrs = append(attrs, attr("axes", a.Axes))
	y := x.op("Resize", []string{x.cast(x.in[0], x.dtype(0), d), roi, scales, sizes}, attrs...)
	return []string{x.cast(y, d, x.dtype(0))}
}
