package onnx

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// quantExports go between floats and codes.
var quantExports = map[string]exportRow{
	"Quantize":          direct(emitQuantize),
	"Dequantize":        direct(emitDequantize),
	"QMatMul":           direct(emitQMatMul),
	"QConv2d":           direct(emitQConv),
	"DequantMatMul":     composedStatic(),
	"DequantMoEWeights": none("ONNX has no packed weights: give their values as a Param"),
}

// scaleOf is a scale or zero point: of one entry it is a scalar.
func (x *emission) scaleOf(i int, name string, axis *int64) string {
	if name != "" && axis == nil && len(x.shape(i)) > 0 {
		return x.op("Reshape", []string{name, x.ints()})
	}
	return name
}

func blocks(axis *int64, block int64) []AttributeProto {
	var list []AttributeProto
	if axis != nil {
		list = append(list, attr("axis", *axis))
	}
	if block > 0 {
		list = append(list, attr("block_size", block))
	}
	return list
}

// emitQuantize divides in f32.
func emitQuantize(x *emission, a *op.QuantizeAttrs) []string {
	in := []string{x.cast(x.in[0], x.dtype(0), ir.F32), x.scaleOf(1, x.cast(x.in[1], x.dtype(1), ir.F32), a.Axis), x.scaleOf(2, x.in[2], a.Axis)}
	attrs := blocks(a.Axis, a.BlockSize)
	if in[2] == "" {
		attrs = append(attrs, attr("output_dtype", x.elem(a.Dtype)))
	}
	return []string{x.op("QuantizeLinear", in, attrs...)}
}

// emitDequantize multiplies in f32; a scale of the result's own dtype is what the operator expects.
func emitDequantize(x *emission, a *op.DequantizeAttrs) []string {
	d := a.Dtype
	if x.dtype(1) != d {
		d = ir.F32
	}
	in := []string{x.in[0], x.scaleOf(1, x.cast(x.in[1], x.dtype(1), d), a.Axis), x.scaleOf(2, x.in[2], a.Axis)}
	return []string{x.cast(x.op("DequantizeLinear", in, blocks(a.Axis, a.BlockSize)...), d, a.Dtype)}
}

// code is a zero point as a scalar of dtype d.
func (x *emission) code(d ir.DType, v int64) string {
	return x.constant("zero_point", op.NumberAs(d, ir.IntNumber(v)))
}

// emitQMatMul adds no bias to a quantised product: there are the sums, and the sums made into codes.
func emitQMatMul(x *emission, a *op.QMatMulAttrs) []string {
	xz, wz := x.code(x.dtype(0), a.XZeroPoint), x.code(x.dtype(1), a.WZeroPoint)
	if len(x.shape(0)) < 2 {
		return x.refuse("a vector times a matrix")
	}
	if a.Dtype != ir.I32 && !x.has(2) {
		one, scale := x.scalar(ir.F32, 1), x.scalar(ir.F32, a.Multiplier)
		if x.has(3) {
			scale = x.in[3]
			n, ok := x.shape(3)[0].Static()
			if !ok {
				return x.refuse("a multiplier of unknown length")
			}
			wz = x.filled(x.dtype(1), float64(a.WZeroPoint), n)
		}
		return []string{x.op("QLinearMatMul", []string{x.in[0], one, xz, x.in[1], scale, wz, one, x.code(a.Dtype, a.OutZeroPoint)})}
	}
	y := x.op("MatMulInteger", []string{x.in[0], x.in[1], xz, wz})
	if x.has(2) {
		y = x.op("Add", []string{y, x.in[2]})
	}
	if a.Dtype == ir.I32 {
		return []string{y}
	}
	scale := x.scalar(ir.F32, a.Multiplier)
	if x.has(3) {
		scale = x.in[3]
	}
	return []string{x.requantized(y, scale, a.Dtype, a.OutZeroPoint)}
}

// requantized rounds sums of i32, times scale, to codes.
func (x *emission) requantized(sums, scale string, d ir.DType, zero int64) string {
	y := x.op("Mul", []string{x.op("Cast", sums, attr("to", DataFloat)), scale})
	return x.op("QuantizeLinear", []string{y, x.scalar(ir.F32, 1), x.code(d, zero)})
}

// emitQConv rounds to codes in the operator where x and y are of one dtype, which is all that runtimes take, else behind it.
func emitQConv(x *emission, a *op.QConv2dAttrs) []string {
	attrs := append(x.window(a.Stride, a.Dilation, a.Padding, x.kernel(1), a.AutoPad, len(x.shape(0))-2), grouped(a.Groups))
	xz, wz := x.code(x.dtype(0), a.XZeroPoint), x.code(x.dtype(1), a.WZeroPoint)
	scale := x.scalar(ir.F32, a.Multiplier)
	if x.has(3) {
		scale = x.in[3]
	}
	if a.Dtype == x.dtype(0) {
		one := x.scalar(ir.F32, 1)
		in := []string{x.in[0], one, xz, x.in[1], scale, wz, one, x.code(a.Dtype, a.OutZeroPoint), x.in[2]}
		return []string{x.op("QLinearConv", in, attrs...)}
	}
	channels := func(v string) string {
		shape := []int64{1, -1}
		for range len(x.shape(0)) - 2 {
			shape = append(shape, 1)
		}
		return x.op("Reshape", []string{v, x.ints(shape...)})
	}
	y := x.op("ConvInteger", []string{x.in[0], x.in[1], xz, wz}, attrs...)
	if x.has(2) {
		y = x.op("Add", []string{y, channels(x.in[2])})
	}
	if a.Dtype == ir.I32 {
		return []string{y}
	}
	if x.has(3) {
		scale = channels(scale)
	}
	return []string{x.requantized(y, scale, a.Dtype, a.OutZeroPoint)}
}

// randomExports draw numbers, which are those of the runtime.
var randomExports = map[string]exportRow{
	"RngUniform": direct(func(x *emission, a *op.RngUniformAttrs) []string {
		return x.random("RandomUniform", a.Shape, a.Seed, attr("low", a.Low), attr("high", a.High))
	}),
	"RngNormal": direct(func(x *emission, a *op.RngNormalAttrs) []string {
		return x.random("RandomNormal", a.Shape, a.Seed, attr("mean", a.Mean), attr("scale", a.Scale))
	}),
	"Sample": none("ONNX draws ids by Multinomial, which has no top-k and no top-p and makes its own numbers: export the logits"),
}

// random draws numbers in the shape of operand 0, else in that of the attribute. The operator's seed is the float with the bits of ours.
func (x *emission) random(operator string, shape []ir.Dim, seed ir.Number, attrs ...AttributeProto) []string {
	if x.has(1) {
		return x.refuse("ONNX draws random numbers without a step")
	}
	attrs = append(attrs, attr("dtype", x.elem(x.result(0))))
	if v, big, ok := seed.Int(); ok {
		if big || v > math.MaxUint32 {
			return x.refuse("a seed of more than 32 bits")
		}
		attrs = append(attrs, attr("seed", float64(math.Float32frombits(uint32(v)))))
	}
	if x.has(0) {
		return []string{x.op(operator+"Like", x.in[0], attrs...)}
	}
	if sizes, ok := ir.StaticShape(shape); ok && len(sizes) > 0 {
		return []string{x.op(operator, []string{}, append(attrs, attr("shape", sizes))...)}
	}
	return []string{x.op(operator+"Like", x.op("Expand", []string{x.scalar(ir.F32, 0), x.dims(shape)}), attrs...)}
}
