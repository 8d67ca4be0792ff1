package op

import (
	"math"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// symInput declares an input; strings among the dims are symbols.
func symInput(g *ir.Graph, name string, d ir.DType, dims ...any) ir.Value {
	shape := make([]ir.Dim, len(dims))
	for i, v := range dims {
		switch v := v.(type) {
		case int:
			shape[i] = ir.D(int64(v))
		case string:
			shape[i] = ir.Sym(v)
		}
	}
	return g.Input(name, d, shape)
}

func TestSymbolicShapes(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(g *ir.Graph) ir.Value
		want  string
	}{
		{"reduce, kept", func(g *ir.Graph) ir.Value {
			return Reduce(symInput(g, "x", ir.F32, "b", "s", 4), "sum", []int{1}, true)
		}, "f32[b, 1, 4]"},
		{"reduce max over a symbol", func(g *ir.Graph) ir.Value { return ReduceMax(symInput(g, "x", ir.F32, "b", "s"), -1) }, "f32[b]"},
		{"reduce all", func(g *ir.Graph) ir.Value { return Mean(symInput(g, "x", ir.F32, "b", "s")) }, "f32[]"},
		{"argmax", func(g *ir.Graph) ir.Value { return ArgMax(symInput(g, "x", ir.Bool, "b", "v"), -1) }, "i64[b]"},
		{"cumsum", func(g *ir.Graph) ir.Value { return Cumsum(symInput(g, "x", ir.I32, "b", "s"), 1) }, "i32[b, s]"},
		{"topk", func(g *ir.Graph) ir.Value { _, i := TopK(symInput(g, "x", ir.F32, "b", "v"), 3, -1, true); return i }, "i64[b, 3]"},
		{"matmul batch", func(g *ir.Graph) ir.Value {
			return MatMul(symInput(g, "a", ir.F32, "b", 12, "s", "k"), symInput(g, "w", ir.F32, 1, 12, "k", "s"))
		}, "f32[b, 12, s, s]"},
		{"matmul by a vector", func(g *ir.Graph) ir.Value {
			return MatMul(symInput(g, "a", ir.F16, "b", 2, 3), symInput(g, "w", ir.F16, 3))
		}, "f16[b, 2]"},
		{"matmul vectors, f32", func(g *ir.Graph) ir.Value {
			return MatMulTo(ir.F32, symInput(g, "a", ir.BF16, "k"), symInput(g, "w", ir.BF16, 3))
		}, "f32[]"},
		{"dot_general", func(g *ir.Graph) ir.Value {
			return DotGeneral(symInput(g, "a", ir.F32, 3, "b", "m"), symInput(g, "w", ir.F32, "n", "b", 3),
				DotGeneralAttrs{LhsContracting: []int{0}, RhsContracting: []int{-1}, LhsBatch: []int{1}, RhsBatch: []int{1}})
		}, "f32[b, m, n]"},
		{"conv2d", func(g *ir.Graph) ir.Value {
			return Conv2d(symInput(g, "x", ir.F32, "b", 3, "h", 224), symInput(g, "w", ir.F32, 64, 3, 7, 7), symInput(g, "c", ir.F32, 64),
				ConvAttrs{Stride: []int64{1, 2}, Padding: []int64{3, 3}})
		}, "f32[b, 64, h, 112]"},
		{"conv1d same", func(g *ir.Graph) ir.Value {
			return Conv1d(symInput(g, "x", ir.F32, "b", 4, "l"), symInput(g, "w", ir.F32, 8, 2, 5), ir.Value{}, ConvAttrs{Groups: 2, AutoPad: "same_upper", Stride: []int64{1}})
		}, "f32[b, 8, l]"},
		{"im2col", func(g *ir.Graph) ir.Value {
			return Im2Col(symInput(g, "x", ir.F32, "b", 2, 6, 5), Im2ColAttrs{KernelSize: []int64{3, 2}})
		}, "f32[16*b, 12]"},
		{"log softmax", func(g *ir.Graph) ir.Value { return LogSoftmax(symInput(g, "x", ir.F16, "b", "v"), -1) }, "f16[b, v]"},
	} {
		g := ir.NewGraph("g")
		v := c.build(g)
		if g.Err() != nil {
			t.Errorf("%s: %v", c.name, g.Err())
		} else if got := v.Type().String(); got != c.want {
			t.Errorf("%s: got %s, expected %s", c.name, got, c.want)
		}
	}
}

// Sizes at the end of int64 are errors that name the constraint, never a wrapped number.
func TestShapeErrors(t *testing.T) {
	const huge = math.MaxInt64
	x3 := func(g *ir.Graph) ir.Value { return symInput(g, "x", ir.F32, 1, 2, 5) }
	w3 := func(g *ir.Graph) ir.Value { return symInput(g, "w", ir.F32, 2, 2, 3) }
	convWith := func(a ConvAttrs) func(g *ir.Graph) ir.Value {
		return func(g *ir.Graph) ir.Value { return Conv(x3(g), w3(g), a) }
	}
	for _, c := range []struct {
		build func(g *ir.Graph) ir.Value
		words string
	}{
		{convWith(ConvAttrs{Padding: []int64{huge, huge}, Stride: []int64{1 << 62}}), "Conv: C6"},
		{convWith(ConvAttrs{Padding: []int64{1 << 61}}), "Conv: result"},
		{convWith(ConvAttrs{Dilation: []int64{huge}}), "Conv: C6: kernel"},
		{convWith(ConvAttrs{Dilation: []int64{1, 1}}), "Conv: C4: dilation"},
		{convWith(ConvAttrs{Stride: []int64{0}}), "Conv: C4: stride"},
		{convWith(ConvAttrs{Padding: []int64{-1}}), "Conv: C4: padding"},
		{convWith(ConvAttrs{Padding: []int64{1}, AutoPad: "valid"}), "Conv: C5: padding"},
		{convWith(ConvAttrs{AutoPad: "same"}), "Conv: C5: auto_pad"},
		{convWith(ConvAttrs{Groups: -1}), "Conv: C2: groups"},
		{func(g *ir.Graph) ir.Value { return Conv2d(x3(g), w3(g), ir.Value{}, ConvAttrs{}) }, "Conv: C1: x has rank 3"},
		{func(g *ir.Graph) ir.Value {
			return Conv(x3(g), symInput(g, "w", ir.F64, 2, 2, 3), ConvAttrs{})
		}, "Conv: C7"},
		{func(g *ir.Graph) ir.Value {
			return Conv(symInput(g, "x", ir.F32, 1, 2, 0), w3(g), ConvAttrs{AutoPad: "same_lower"})
		}, "Conv: C6"},
		{func(g *ir.Graph) ir.Value { return Im2Col(x3(g), Im2ColAttrs{KernelSize: []int64{huge}}) }, "Im2Col: C6"},
		{func(g *ir.Graph) ir.Value {
			return ArgMaxWith(symInput(g, "x", ir.F32, 1<<24+1), ArgAttrs{Axis: 0, IndexDtype: ir.F32})
		}, "ArgMax: C8: index_dtype f32"},
		{func(g *ir.Graph) ir.Value { return ArgMinWith(x3(g), ArgAttrs{IndexDtype: ir.U8}) }, "ArgMin: C8: index_dtype u8"},
		{func(g *ir.Graph) ir.Value { return ArgMax(symInput(g, "x", ir.C64, 2), 0) }, "ArgMax: C1"},
		{func(g *ir.Graph) ir.Value { v, _ := TopK(x3(g), -1, 0, true); return v }, "TopK: C1: k"},
		{func(g *ir.Graph) ir.Value { v, _ := TopK(x3(g), huge, 0, true); return v }, "TopK: C1: k"},
		{func(g *ir.Graph) ir.Value { v, _ := TopK(symInput(g, "x", ir.C64, 2), 1, 0, true); return v }, "TopK: C7"},
		{func(g *ir.Graph) ir.Value { v, _ := CumMax(symInput(g, "x", ir.Bool, 2), 0); return v }, "CumMax: C1"},
		{func(g *ir.Graph) ir.Value { return Cumsum(symInput(g, "x", ir.Bool, 2), 0) }, "Cumsum: C1"},
		{func(g *ir.Graph) ir.Value { return Sum(x3(g), math.MaxInt) }, "Reduce: C9: axis"},
		{func(g *ir.Graph) ir.Value { return Reduce(x3(g), "median", nil, false) }, "Reduce: C2: fn"},
		{func(g *ir.Graph) ir.Value { return L2(symInput(g, "x", ir.I32, 2)) }, "Reduce: C1: l2"},
		{func(g *ir.Graph) ir.Value { return ReduceMin(symInput(g, "x", ir.I32, 2, 0, 3), 1) }, "Reduce: C3: min"},
		{func(g *ir.Graph) ir.Value { return Histogram(x3(g), 0, 0, 1) }, "Histogram: C1: num_bins"},
		{func(g *ir.Graph) ir.Value { return Histogram(x3(g), 3, 0, math.Inf(1)) }, "Histogram: C1: min"},
		{func(g *ir.Graph) ir.Value { return Histogram(x3(g), 3, math.NaN(), 1) }, "Histogram: C1: min"},
		{func(g *ir.Graph) ir.Value {
			return MatMulTo(ir.F32, symInput(g, "a", ir.F64, 2), symInput(g, "b", ir.F64, 2))
		}, "MatMul: C1: dtype"},
		{func(g *ir.Graph) ir.Value { return MatMul(symInput(g, "a", ir.I8, 2), symInput(g, "b", ir.I8, 2)) }, "MatMul: C1"},
		{func(g *ir.Graph) ir.Value { return MatMul(symInput(g, "a", ir.F32), symInput(g, "b", ir.F32, 2)) }, "MatMul: C2"},
		{func(g *ir.Graph) ir.Value {
			return MatMul(symInput(g, "a", ir.F32, 0, 1, 2), symInput(g, "b", ir.F32, 3, 2, 1))
		}, "MatMul: C2: batch"},
		{func(g *ir.Graph) ir.Value { return LogSoftmax(symInput(g, "x", ir.F32), 0) }, "LogSoftmax: C1"},
		{func(g *ir.Graph) ir.Value { return LayerNorm(x3(g), ir.Value{}, ir.Value{}, -1, math.NaN()) }, "LayerNorm: C5"},
	} {
		g := ir.NewGraph("g")
		c.build(g)
		if g.Err() == nil {
			t.Errorf("no error, expected %q", c.words)
		} else if !strings.Contains(g.Err().Error(), c.words) {
			t.Errorf("got %q, expected %q in it", g.Err(), c.words)
		}
	}
	g := ir.NewGraph("g") // another dim of 0: nothing is missing
	if v := ReduceMax(symInput(g, "x", ir.F32, 0, 0, 3), 1); g.Err() != nil || v.Type().String() != "f32[0, 3]" {
		t.Errorf("max over an empty axis of an empty result: %s, %v", v.Type(), g.Err())
	}
}
