package pass_test

import (
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// channelsFirst and channelsLast are the layouts of images, channels first and last.
func channelsFirst(x ir.Value) ir.Value { return op.Transpose(x, 0, 3, 1, 2) }
func channelsLast(x ir.Value) ir.Value  { return op.Transpose(x, 0, 2, 3, 1) }

func TestLayout(t *testing.T) {
	read := func(v ir.Value) ir.Value {
		v.Graph().Output("too", v)
		return v
	}
	checkRules(t, pass.Layout, typeOf(ir.F32, 1, 2, 3, 4), []ruleCase{
		{"elementwise", func(x ir.Value) ir.Value { return channelsFirst(op.Neg(channelsLast(x))) }, "Activation"},
		{"concat", func(x ir.Value) ir.Value {
			return channelsFirst(op.Concat(-1, channelsLast(x), op.Neg(channelsLast(x))))
		}, "Activation Concat"},
		{"concat along rows", func(x ir.Value) ir.Value {
			return channelsFirst(op.Concat(1, channelsLast(x), channelsLast(op.Neg(x))))
		}, "Activation Concat"},
		{"pad", func(x ir.Value) ir.Value {
			return channelsFirst(op.Pad(channelsLast(x), ir.Dims(0, 1, 2, 0, 0, 2, 0, 1), "constant", ir.FloatNumber(3)))
		}, "Pad"},
		{"mirrored pad", func(x ir.Value) ir.Value {
			return channelsFirst(op.Pad(channelsLast(x), ir.Dims(0, 1, 2, 0, 0, 0, 1, 1), "reflect", ir.IntNumber(0)))
		}, "Pad"},
		{"piece", func(x ir.Value) ir.Value { return channelsFirst(op.Narrow(channelsLast(x), -2, 1, 2)) }, "Narrow"},
		{"reverse", func(x ir.Value) ir.Value { return channelsFirst(op.Reverse(channelsLast(x), 1, -1)) }, "Reverse"},
		{"largest of an axis", func(x ir.Value) ir.Value { return channelsFirst(op.Reduce(channelsLast(x), "max", []int{-3}, true)) }, "Reduce"},
		{"least of two axes", func(x ir.Value) ir.Value { return channelsFirst(op.Reduce(channelsLast(x), "min", []int{0, 1}, true)) }, "Reduce"},
		{"largest of rows in a product", func(x ir.Value) ir.Value {
			return channelsFirst(op.Mul(op.Neg(channelsLast(x)), op.Sigmoid(op.Reduce(channelsLast(x), "max", []int{1}, true))))
		}, "Activation Reduce Activation Binary"},
		{"values of one element for each channel end the way", func(x ir.Value) ir.Value {
			return channelsFirst(op.Mul(op.Neg(channelsLast(x)), op.Sigmoid(op.Reduce(channelsLast(x), "max", []int{1, 2}, true))))
		}, "Transpose Reduce Activation Activation Reshape Binary"},
		{"sum of an axis", func(x ir.Value) ir.Value { return channelsFirst(op.Reduce(channelsLast(x), "sum", []int{2}, true)) }, "Transpose Reduce Transpose"},
		{"sum of the channels", func(x ir.Value) ir.Value { return channelsFirst(op.Reduce(channelsLast(x), "sum", []int{3}, true)) }, "Transpose Reduce Reshape"},
		{"axis that is not kept", func(x ir.Value) ir.Value {
			return op.Transpose(op.Reduce(channelsLast(x), "max", []int{0}, false), 2, 0, 1)
		}, "Reshape Reduce"},
		{"two axes that are not kept", func(x ir.Value) ir.Value {
			return op.Transpose(op.Reduce(op.Neg(op.Transpose(x, 2, 0, 1, 3)), "min", []int{1, 3}, false), 1, 0)
		}, "Reshape Activation Reduce"},
		{"axes that are not kept between others", func(x ir.Value) ir.Value {
			return op.Transpose(op.Reduce(op.Neg(op.Transpose(x, 3, 2, 1, 0)), "min", []int{1, 3}, false), 1, 0)
		}, "Transpose Activation Reduce Transpose"},
		{"slice", func(x ir.Value) ir.Value {
			return channelsFirst(op.Slice(channelsLast(x), ir.Dims(3, 0), ir.Dims(-100, 2), []int{-2, 1}, []int64{-2, 1}))
		}, "Slice"},
		{"slice of the first axes", func(x ir.Value) ir.Value {
			return channelsFirst(op.Slice(channelsLast(x), ir.Dims(0, 1), ir.Dims(1, 3), nil, nil))
		}, "Slice"},
		{"both factors", func(x ir.Value) ir.Value { y := op.Neg(channelsLast(x)); return channelsFirst(op.Mul(y, y)) }, "Activation Binary"},
		{"gate", func(x ir.Value) ir.Value {
			y := op.Neg(channelsLast(x))
			return channelsFirst(op.Mul(y, op.Sigmoid(y)))
		}, "Activation Activation Binary"},
		{"gate with another reader", func(x ir.Value) ir.Value {
			y := read(op.Neg(channelsLast(x)))
			return channelsFirst(op.Mul(y, op.Sigmoid(y)))
		}, "Transpose Activation Activation Binary Transpose"},
		{"axes of 1 between", func(x ir.Value) ir.Value {
			return op.Transpose(op.Neg(op.Reshape(channelsLast(x), ir.Dims(3, 4, 1, 2)...)), 3, 2, 0, 1)
		}, "Reshape Activation"},
		{"axes of 1 that go", func(x ir.Value) ir.Value {
			return op.Transpose(op.Neg(op.Reshape(channelsLast(x), ir.Dims(3, 4, 2)...)), 2, 0, 1)
		},
			"Reshape Activation"},
		{"other axes between", func(x ir.Value) ir.Value {
			return op.Transpose(op.Neg(op.Reshape(channelsLast(x), ir.Dims(4, 3, 1, 2)...)), 3, 2, 0, 1)
		}, "Transpose Reshape Activation Transpose"},
		{"parts of one channel", func(x ir.Value) ir.Value {
			y := op.Reshape(op.Narrow(x, 1, 0, 1), ir.Dims(1, 3, 4, 1)...)
			return channelsFirst(op.Concat(3, op.Abs(y), op.Pad(y, ir.Dims(0, 0, 0, 0, 0, 0, 0, 0), "constant", ir.IntNumber(0)), y))
		}, "Narrow Reshape Activation Pad Reshape Reshape Reshape Concat"},
		{"real and imaginary parts side by side", func(x ir.Value) ir.Value { // what the spectra of basic-pitch look like
			part := func(y ir.Value) ir.Value { // channels, one row, frames
				return op.Reshape(channelsLast(op.Reshape(y, ir.Dims(2, 3, 1, 4)...)), ir.Dims(2, 4, 3, 1)...)
			}
			both := op.Concat(3, part(op.Neg(x)), part(op.Exp(x)))
			return op.Transpose(op.Narrow(op.Concat(2, both, op.Concat(3, part(op.Abs(x)), part(op.Sign(x)))), 2, 1, 4), 0, 2, 1, 3)
		}, "Activation Reshape Activation Reshape Activation Reshape Activation Reshape Reshape Reshape Reshape Reshape Concat " +
			"Reshape Reshape Reshape Reshape Concat Concat Narrow"},
		{"product of the last axes", func(x ir.Value) ir.Value {
			return channelsFirst(op.MatMul(channelsLast(x), x.Graph().Constant(shaped(2, 2))))
		}, "Transpose MatMul Transpose"},
		{"another reader", func(x ir.Value) ir.Value { return channelsFirst(read(op.Neg(channelsLast(x)))) }, "Transpose Activation Transpose"},
		{"one part without", func(x ir.Value) ir.Value {
			return channelsFirst(op.Concat(3, channelsLast(x), op.Neg(op.Reshape(x, ir.Dims(1, 3, 4, 2)...))))
		}, "Transpose Reshape Activation Concat Transpose"},
		{"part of ones", func(x ir.Value) ir.Value {
			return channelsFirst(op.Mul(channelsLast(x), op.Narrow(op.Narrow(op.Reshape(x, ir.Dims(1, 3, 4, 2)...), 1, 0, 1), 2, 1, 1)))
		}, "Reshape Narrow Narrow Reshape Binary"},
		{"twice the same", func(x ir.Value) ir.Value { return channelsFirst(op.Neg(channelsFirst(x))) }, "Transpose Activation Transpose"},
	})
}

func TestLayoutOfSymbols(t *testing.T) {
	n, h, w := ir.Sym("n"), ir.Sym("h"), ir.Sym("w")
	checkSymbols(t, pass.Layout, []ir.Dim{n, ir.D(2), h, w}, map[string]int64{"n": 2, "h": 3, "w": 5}, []symbolCase{
		{"concat and pad", func(x ir.Value) ir.Value {
			y := op.Concat(3, channelsLast(x), channelsLast(op.Neg(x)))
			return channelsFirst(op.Pad(y, []ir.Dim{ir.D(0), ir.D(1), ir.D(0), ir.D(0), ir.D(0), h, ir.D(0), ir.D(0)}, "constant", ir.IntNumber(0)))
		}, "Input Activation Concat Pad"},
		{"a number for each channel", func(x ir.Value) ir.Value {
			return channelsFirst(op.Mul(channelsLast(x), x.Graph().Constant(ir.New([]float32{2, -3}, 2))))
		}, "Input Constant Reshape Binary"},
		{"other sizes", func(x ir.Value) ir.Value { return channelsFirst(op.Neg(op.Transpose(x, 0, 3, 2, 1))) }, "Input Transpose Activation Transpose"},
	})
}

// shaped holds 0, 1, 2, ... under a shape.
func shaped(dims ...int) *ir.Tensor {
	n := 1
	for _, d := range dims {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i)
	}
	return ir.New(v, dims...)
}
