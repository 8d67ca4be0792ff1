package op

import (
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// refused fails unless the graph of build carries an error with all the words.
func refused(t *testing.T, build func(g *ir.Graph), words ...string) {
	t.Helper()
	g := ir.NewGraph("")
	build(g)
	if g.Err() == nil {
		t.Errorf("no error, expected one with %v", words)
		return
	}
	for _, w := range words {
		if !strings.Contains(g.Err().Error(), w) {
			t.Errorf("%v lacks %q", g.Err(), w)
		}
	}
}

func TestQuantizeRefuses(t *testing.T) {
	x := func(g *ir.Graph) ir.Value { return g.Input("x", ir.F32, ir.Dims(2, 3)) }
	scale := func(g *ir.Graph, v ...float32) ir.Value { return g.Constant(ir.New(v, len(v))) }
	axis := int64(1)
	refused(t, func(g *ir.Graph) { Quantize(x(g), scale(g, 0), ir.Value{}, QuantizeAttrs{}) }, "Quantize", "C1", "scale[0] is 0")
	refused(t, func(g *ir.Graph) { Quantize(x(g), scale(g, 1, -1, 2), ir.Value{}, QuantizeAttrs{Axis: &axis}) }, "C2", "scale[1] is -1")
	refused(t, func(g *ir.Graph) {
		Quantize(x(g), scale(g, 1), g.Constant(ir.New([]uint8{1}, 1)), QuantizeAttrs{Dtype: ir.I8})
	}, "C5", "C4", "u8")
	refused(t, func(g *ir.Graph) { Quantize(x(g), scale(g, 1), ir.Value{}, QuantizeAttrs{Dtype: ir.I32}) }, "C5", "i32")
	refused(t, func(g *ir.Graph) {
		Quantize(g.Input("q", ir.F64, ir.Dims(2)), scale(g, 1), ir.Value{}, QuantizeAttrs{})
	}, "C6", "f64")
	axis = 2
	refused(t, func(g *ir.Graph) { Quantize(x(g), scale(g, 1), ir.Value{}, QuantizeAttrs{Axis: &axis}) }, "C5", "axis 2")
	refused(t, func(g *ir.Graph) {
		DequantMatMul(x(g), g.Input("w", ir.U8, ir.Dims(2, 18)), ir.Value{}, ir.Value{}, DequantMatMulAttrs{Scheme: "q9"})
	}, "DequantMatMul", "C1", "q9")
	refused(t, func(g *ir.Graph) {
		DequantMatMul(g.Input("x", ir.F32, ir.Dims(2, 32)), g.Input("w", ir.U8, ir.Dims(3, 16)), g.Input("s", ir.F32, ir.Dims(3, 1)), g.Input("b", ir.F32, ir.Dims(3, 2)),
			DequantMatMulAttrs{Scheme: "mlx_affine", BlockSize: 32})
	}, "DequantMatMul", "C2", "biases")
	refused(t, func(g *ir.Graph) { IRFFT(g.Input("x", ir.C64, ir.Dims(1)), 0, -1) }, "Fft", "C4", "n_fft")
	refused(t, func(g *ir.Graph) {
		QMatMul(g.Input("a", ir.I8, ir.Dims(2, 3)), g.Input("b", ir.I8, ir.Dims(3, 4)), g.Input("c", ir.F32, ir.Dims(4)), ir.Value{}, QMatMulAttrs{Multiplier: 1})
	}, "QMatMul", "C3", "bias")
}
