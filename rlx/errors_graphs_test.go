package rlx_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// graphOf is a use that compiles what build makes, if anything comes of it.
func graphOf(build func(g *rlx.Graph)) func(*testing.T) error {
	return func(t *testing.T) error {
		g := rlx.NewGraph("bad")
		build(g)
		p, err := rlx.Compile(t.Context(), g)
		if err == nil {
			p.Close()
		}
		return err
	}
}

// in declares an input named by its dtype and place.
func in(g *rlx.Graph, d rlx.DType, dims ...any) rlx.Value {
	return g.Input(fmt.Sprintf("%s_%d", d, len(g.Inputs)), d, rlx.Shape(dims...))
}

// opOf is a use whose graph computes one value from x f32[n, 3].
func opOf(build func(g *rlx.Graph, x rlx.Value) rlx.Value) func(*testing.T) error {
	return graphOf(func(g *rlx.Graph) { g.Output("y", build(g, in(g, rlx.F32, "n", 3))) })
}

func badGraphs() []badUse {
	var list []badUse
	for _, part := range [][]badUse{badElementwise(), badShapes(), badIndices(), badLayers(), badControl(), badDeclarations(), badSizes()} {
		list = append(list, part...)
	}
	return list
}

type (
	graph = rlx.Graph
	value = rlx.Value
)

func badElementwise() []badUse {
	return []badUse{
		{"shapes that do not broadcast", opOf(func(g *graph, x value) value { return op.Add(x, in(g, rlx.F32, 4)) }),
			wantNode("Binary", "C4", "shapes [n, 3] and [4] do not broadcast", "equal dims or 1 from the last axis on", "f32[n, 3]", "f32[4]")},
		{"mixed dtypes", opOf(func(g *graph, x value) value { return op.Add(x, in(g, rlx.I64, 3)) }),
			wantNode("Binary", "C2", "operands have dtypes f32 and i64", "one dtype", "f32[n, 3]", "i64[3]")},
		{"shift of floats", opOf(func(_ *graph, x value) value { return op.Shl(x, x) }),
			wantNode("Binary", "C3", "shl of dtype f32 is not allowed", "i8 i16 i32 i64 u8 u16 u32 u64", "f32[n, 3]", "f32[n, 3]")},
		{"number out of the dtype's range", opOf(func(g *graph, _ value) value { return op.Add(in(g, rlx.I8, 1), 300) }),
			wantNode("Binary", "", "number 300", "a value of dtype i8", "i8[1]")},
		{"unknown function", opOf(func(_ *graph, x value) value { return op.Activation(x, "nosuch", 0, 0) }), wantUnknown("Activation", "nosuch")},
		{"condition that is no bool", opOf(func(_ *graph, x value) value { return op.Where(x, x, x) }),
			wantNode("Where", "C1", "c has dtype f32", "one of bool", "f32[n, 3]", "f32[n, 3]", "f32[n, 3]")},
		{"bound that is NaN", opOf(func(_ *graph, x value) value { return op.Clamp(x, math.NaN(), 1.0) }),
			wantNode("Clamp", "C1", "min is NaN", "a number", "f32[n, 3]")},
		{"cast of complex to real", opOf(func(g *graph, _ value) value { return op.Cast(in(g, rlx.C64, 2), rlx.F32) }),
			wantNode("Cast", "C2", "c64 to f32 is not defined", "c64: slice the parts or use the squared norm", "c64[2]")},
		{"cast to no dtype", opOf(func(_ *graph, x value) value { return op.Cast(x, ir.Invalid) }), wantUnknownDType("Cast", "C1", "f32[n, 3]")},
		{"axis of Softmax", opOf(func(_ *graph, x value) value { return op.Softmax(x, 5) }),
			wantNode("Softmax", "C1", "axis 5", "one of x, which has rank 2", "f32[n, 3]")},
		{"axis named twice", opOf(func(_ *graph, x value) value { return op.Sum(x, 1, -1) }),
			wantNode("Reduce", "C9", "axis -1 is named twice", "each once", "f32[n, 3]")},
		{"axis out of the rank", opOf(func(_ *graph, x value) value { return op.Mean(x, 2) }),
			wantNode("Reduce", "C9", "axis 2", "in [-2, 2)", "f32[n, 3]")},
		{"axis of Cumsum", opOf(func(_ *graph, x value) value { return op.Cumsum(x, -3) }),
			wantNode("Cumsum", "C9", "axis -3", "in [-2, 2)", "f32[n, 3]")},
	}
}

// wantUnknown expects a *ShapeError about a function that the op does not know; those that it knows are many.
func wantUnknown(op, fn string) fault {
	return func(t *testing.T, err error) []string {
		e := as[*rlx.ShapeError](t, err)
		sameText(t, "Op", e.Op, op)
		sameText(t, "Constraint", e.Constraint, "C1")
		if e.Got == "" || e.Expected == "" {
			t.Errorf("a field is empty: %+v", e)
		}
		return []string{op, fn, "expected one of", e.Expected}
	}
}

func wantUnknownDType(op, constraint string, operand string) fault {
	return wantNode(op, constraint, "invalid is no dtype", "one of "+ir.AnyDType.String(), operand)
}

func badShapes() []badUse {
	return []badUse{
		{"reshape to other elements", opOf(func(g *graph, _ value) value { return op.ReshapeInts(in(g, rlx.F32, 2, 3), 4, 2) }),
			wantNode("Reshape", "C3", "shape [4, 2]", "one for the 6 elements of x [2, 3]", "f32[2, 3]")},
		{"reshape with two free dims", opOf(func(_ *graph, x value) value { return op.ReshapeInts(x, -1, -1) }),
			wantNode("Reshape", "C2", "shape [-1, -1] has more than one -1", "at most one", "f32[n, 3]")},
		{"reshape to a negative dim", opOf(func(_ *graph, x value) value { return op.ReshapeInts(x, -2, 3) }),
			wantNode("Reshape", "C1", "shape [-2, 3] has an entry below -1", "entries >= -1", "f32[n, 3]")},
		{"perm with an axis twice", opOf(func(_ *graph, x value) value { return op.Transpose(x, 1, 1) }),
			wantNode("Transpose", "C1", "perm [1 1]", "a permutation of the 2 axes of x", "f32[n, 3]")},
		{"perm of another rank", opOf(func(_ *graph, x value) value { return op.Transpose(x, 2, 0, 1) }),
			wantNode("Transpose", "C1", "perm [2 0 1]", "a permutation of the 2 axes of x", "f32[n, 3]")},
		{"axis of Concat", opOf(func(_ *graph, x value) value { return op.Concat(2, x, x) }),
			wantNode("Concat", "C9", "axis 2", "in [-2, 2)", "f32[n, 3]", "f32[n, 3]")},
		{"concat of other dims", opOf(func(g *graph, x value) value { return op.Concat(0, x, in(g, rlx.F32, 2, 4)) }),
			wantNode("Concat", "C3", "x2 has shape [2, 4]", "[n, 3] off axis 0", "f32[n, 3]", "f32[2, 4]")},
		{"concat of nothing", opOf(func(*graph, value) value { return op.Concat(0) }),
			wantNode("Concat", "", "no operand", "at least one")},
		{"step 0", opOf(func(_ *graph, x value) value { return op.Slice(x, ir.Dims(0), ir.Dims(2), []int{1}, []int64{0}) }),
			wantNode("Slice", "C1", "step of axis 1 is 0", "another number", "f32[n, 3]")},
		{"lists of unequal lengths", opOf(func(_ *graph, x value) value { return op.Slice(x, ir.Dims(0, 0), ir.Dims(2), nil, nil) }),
			wantNode("Slice", "C2", "starts, ends, axes and steps have 2, 1, 0 and 0 entries", "equal lists", "f32[n, 3]")},
		{"narrow past the end", opOf(func(_ *graph, x value) value { return op.Narrow(x, 1, 2, 2) }),
			wantNode("Narrow", "C3", "start 2 and length 2", "a range within length 3 of axis 1", "f32[n, 3]")},
		{"expand of a dim that is not 1", opOf(func(_ *graph, x value) value { return op.Expand(x, ir.Dims(2, 5)...) }),
			wantNode("Expand", "C2", "x has shape [n, 3]", "one that broadcasts with [2, 5]", "f32[n, 3]")},
		{"padding of another rank", opOf(func(_ *graph, x value) value { return op.Pad(x, ir.Dims(1, 1, 1), op.PadConstant, ir.Number{}) }),
			wantNode("Pad", "C1", "padding has 3 entries", "2 or 4", "f32[n, 3]")},
		{"repeats of another rank", opOf(func(_ *graph, x value) value { return op.Tile(x, ir.Dims(2)...) }),
			wantNode("Tile", "C1", "repeats has 1 entries", "the rank 2", "f32[n, 3]")},
		{"upper part of a vector", opOf(func(g *graph, _ value) value { return op.Trilu(in(g, rlx.F32, 3), true, 0) }),
			wantNode("Trilu", "C1", "x has rank 1", "at least 2", "f32[3]")},
	}
}

func badIndices() []badUse {
	return []badUse{
		{"axis of Gather", opOf(func(g *graph, x value) value { return op.Gather(x, in(g, rlx.I64, 2), 2) }),
			wantNode("Gather", "C9", "axis 2", "in [-2, 2)", "f32[n, 3]", "i64[2]")},
		{"indices that are floats", opOf(func(g *graph, x value) value { return op.Gather(x, in(g, rlx.F16, 2), 0) }),
			wantNode("Gather", "C8", "index has dtype f16", "one of i8 i16 i32 i64 u8 u16 u32 u64 f32", "f32[n, 3]", "f16[2]")},
		{"GatherElements of another rank", opOf(func(g *graph, x value) value { return op.GatherElements(x, in(g, rlx.I64, 2), 0) }),
			wantNode("GatherElements", "C1", "index has rank 1", "2 as x", "f32[n, 3]", "i64[2]")},
		{"tuples longer than the rank", opOf(func(g *graph, x value) value { return op.GatherNd(x, in(g, rlx.I64, 4, 3), 0) }),
			wantNode("GatherNd", "C3", "index has shape [4, 3]", "a last dim of 1 to 2", "f32[n, 3]", "i64[4, 3]")},
		{"updates of another shape", opOf(func(g *graph, x value) value {
			return op.ScatterNd(x, in(g, rlx.I64, 4, 1), in(g, rlx.F32, 4, 5), op.ScatterNone)
		}), wantNode("ScatterNd", "C2", "updates have shape [4, 5]", "[4, 3]", "f32[n, 3]", "i64[4, 1]", "f32[4, 5]")},
		{"unknown reduction", opOf(func(g *graph, x value) value {
			return op.ScatterElements(x, in(g, rlx.I64, 1, 3), in(g, rlx.F32, 1, 3), 0, "average")
		}), wantNode("ScatterElements", "C4", `reduction "average"`, "one of none add mul max min", "f32[n, 3]", "i64[1, 3]", "f32[1, 3]")},
		{"negative depth", opOf(func(g *graph, _ value) value {
			return op.OneHot(in(g, rlx.I64, 2), op.OneHotAttrs{Depth: -1, Axis: -1, Dtype: rlx.F32})
		}), wantNode("OneHot", "C1", "depth -1", ">= 0", "i64[2]")},
		{"k beyond the axis", opOf(func(_ *graph, x value) value { v, _ := op.TopK(x, 4, 1, true); return v }),
			wantNode("TopK", "C1", "k is 4", "0 to 3, the length of axis 1", "f32[n, 3]")},
		{"cache of another width", opOf(func(g *graph, x value) value { return op.KvAppendAt(x, in(g, rlx.F32, 1, 4), 0, 0) }),
			wantNode("KvAppend", "C1", "rows have shape [1, 4]", "[1, 3]", "f32[n, 3]", "f32[1, 4]")},
	}
}

func badLayers() []badUse {
	image := func(g *graph) value { return in(g, rlx.F32, 1, 4, 8, 8) }
	conv := func(a op.ConvAttrs, w ...any) func(*testing.T) error {
		return opOf(func(g *graph, _ value) value { return op.Conv2d(image(g), in(g, rlx.F32, w...), value{}, a) })
	}
	convNode := func(constraint, got, expected, w string) fault {
		return wantNode("Conv", constraint, got, expected, "f32[1, 4, 8, 8]", w)
	}
	attention := func(k, v []any, a op.AttentionAttrs) func(*testing.T) error {
		return opOf(func(g *graph, _ value) value {
			return op.Attention(in(g, rlx.F32, 1, 6, 5, 16), in(g, rlx.F32, k...), in(g, rlx.F32, v...), value{}, value{}, a)
		})
	}
	return []badUse{
		{"inner dims of MatMul", opOf(func(g *graph, x value) value { return op.MatMul(x, in(g, rlx.F32, 4, 2)) }),
			wantNode("MatMul", "C2", "contracted sizes are 3 and 4 (shapes [n, 3] and [4, 2])", "equal ones", "f32[n, 3]", "f32[4, 2]")},
		{"batch dims of MatMul", opOf(func(g *graph, _ value) value { return op.MatMul(in(g, rlx.F32, 2, 3, 4), in(g, rlx.F32, 5, 4, 3)) }),
			wantNode("MatMul", "C2", "batch dims of shapes [2, 3, 4] and [5, 4, 3] do not broadcast", "equal dims or 1", "f32[2, 3, 4]", "f32[5, 4, 3]")},
		{"groups that do not divide the channels", conv(op.ConvAttrs{Groups: 3}, 6, 1, 3, 3), convNode("C2", "groups is 3", "a divisor of the 4 channels of x", "f32[6, 1, 3, 3]")},
		{"channels of a kernel", conv(op.ConvAttrs{}, 6, 5, 3, 3), convNode("C3", "x has 4 channels", "5 by w of shape [6, 5, 3, 3] with groups 1", "f32[6, 5, 3, 3]")},
		{"stride 0", conv(op.ConvAttrs{Stride: []int64{0, 1}}, 6, 4, 3, 3), convNode("C4", "stride 0", ">= 1", "f32[6, 4, 3, 3]")},
		{"padding with three entries", conv(op.ConvAttrs{Padding: []int64{1, 1, 1}}, 6, 4, 3, 3), convNode("C4", "padding [1 1 1] has 3 entries", "2 or 4", "f32[6, 4, 3, 3]")},
		{"padding beside auto_pad", conv(op.ConvAttrs{Padding: []int64{1, 1}, AutoPad: "same_upper"}, 6, 4, 3, 3),
			convNode("C5", "padding [1 1] beside auto_pad same_upper", "none or zeros", "f32[6, 4, 3, 3]")},
		{"kernel larger than the input", conv(op.ConvAttrs{}, 6, 4, 9, 9), convNode("C6", "kernel of size 9 with dilation 1 spans 9 elements", "at most the 8 of the padded input", "f32[6, 4, 9, 9]")},
		{"image without channels", opOf(func(g *graph, x value) value {
			return op.Conv2d(x, in(g, rlx.F32, 6, 4, 3, 3), value{}, op.ConvAttrs{})
		}),
			wantNode("Conv", "C1", "x has rank 2", "4", "f32[n, 3]")},
		{"kernel size of a pool", opOf(func(g *graph, _ value) value { return op.MaxPool(image(g), op.PoolAttrs{KernelSize: []int64{2, 2, 2}}) }),
			wantNode("Pool", "C4", "kernel_size [2 2 2] has 3 entries", "2", "f32[1, 4, 8, 8]")},
		{"pool larger than the input", opOf(func(g *graph, _ value) value { return op.AvgPool(image(g), op.PoolAttrs{KernelSize: []int64{9, 9}}) }),
			wantNode("Pool", "C6", "kernel of size 9 with dilation 1 spans 9 elements", "at most the 8 of the padded input", "f32[1, 4, 8, 8]")},
		{"gamma of another size", opOf(func(g *graph, x value) value { return op.LayerNorm(x, in(g, rlx.F32, 4), value{}, -1, 1e-5) }),
			wantNode("LayerNorm", "C2", "gamma has shape [4]", "[3]", "f32[n, 3]", "f32[4]", "none")},
		{"groups of GroupNorm", opOf(func(g *graph, _ value) value { return op.GroupNorm(image(g), value{}, value{}, 3, 1e-5) }),
			wantNode("GroupNorm", "C4", "num_groups is 3", "a divisor of the 4 channels of x", "f32[1, 4, 8, 8]", "none", "none")},
		{"heads that do not divide", attention([]any{1, 4, 7, 16}, []any{1, 4, 7, 16}, op.AttentionAttrs{}),
			wantNode("Attention", "C3", "6 query heads on 4 kv heads", "a multiple", "f32[1, 6, 5, 16]", "f32[1, 4, 7, 16]", "f32[1, 4, 7, 16]", "none", "none")},
		{"heads of another size", attention([]any{1, 6, 7, 8}, []any{1, 6, 7, 16}, op.AttentionAttrs{}),
			wantNode("Attention", "C2", "head sizes of q and k are 16 and 8", "equal ones", "f32[1, 6, 5, 16]", "f32[1, 6, 7, 8]", "f32[1, 6, 7, 16]", "none", "none")},
		{"weights of an LSTM", opOf(func(g *graph, _ value) value {
			y, _, _ := op.Lstm(in(g, rlx.F32, 5, 1, 3), op.RnnWeights{Wih: in(g, rlx.F32, 1, 8, 4), Whh: in(g, rlx.F32, 1, 8, 2)}, value{}, value{}, op.LstmAttrs{})
			return y
		}), wantNode("Lstm", "C3", "w_ih has shape [1, 8, 4]", "[1, 8, 3]",
			"f32[5, 1, 3]", "f32[1, 8, 4]", "f32[1, 8, 2]", "none", "none", "none", "none", "none", "none")},
		{"rows that are no whole blocks", opOf(func(g *graph, x value) value {
			return op.DequantMatMul(x, in(g, rlx.U8, 2, 18), value{}, value{}, op.DequantMatMulAttrs{Scheme: "q4_0"})
		}), wantNode("DequantMatMul", "C3", "q4_0: K is 3", "a multiple of the block of 32 weights", "f32[n, 3]", "u8[2, 18]", "none", "none")},
	}
}

func badControl() []badUse {
	same := func(_ *graph, c []value) []value { return c }
	square := func(_ *graph, c []value) []value { return []value{op.Mul(c[0], c[0])} }
	always := func(g *graph, _, _ []value) value { return g.Constant(rlx.New([]bool{true})) }
	loop := func(_ *graph, c, _ []value) []value { return c }
	iff := func(pred rlx.DType, then, otherwise op.Branch) func(*testing.T) error {
		return opOf(func(g *graph, x value) value { return op.If(in(g, pred), []value{x}, then, otherwise)[0] })
	}
	while := func(cond func(*graph, []value, []value) value, body func(*graph, []value, []value) []value) func(*testing.T) error {
		return opOf(func(_ *graph, x value) value { return op.While([]value{x}, nil, cond, body, op.WhileOptions{})[0] })
	}
	return []badUse{
		{"predicate that is no bool", iff(rlx.F32, same, same), wantNode("If", "C1", "pred has dtype f32", "one of bool", "f32[]", "f32[n, 3]")},
		{"branches of other dtypes", iff(rlx.Bool, same, func(_ *graph, c []value) []value { return []value{op.Cast(c[0], rlx.F16)} }),
			wantNode("If", "C3", "result 0 is f32[n, 3] in then_branch and f16[n, 3] in else_branch", "one type", "bool[]", "f32[n, 3]")},
		{"branches of other counts", iff(rlx.Bool, same, func(_ *graph, c []value) []value { return append(c, c[0]) }),
			wantNode("If", "C3", "then_branch gives 1 values and else_branch 2", "as many", "bool[]", "f32[n, 3]")},
		{"If without a branch", iff(rlx.Bool, same, nil), wantNode("If", "", "else_branch: required attribute is missing", "a graph", "bool[]", "f32[n, 3]")},
		{"error within a branch", iff(rlx.Bool, same, func(_ *graph, c []value) []value { return []value{op.Transpose(c[0], 0, 0)} }),
			wantWithin("If", wantNode("Transpose", "C1", "perm [0 0]", "a permutation of the 2 axes of x", "f32[n, 3]"))},
		{"branch that reads another graph's value", opOf(func(g *graph, x value) value {
			return op.If(in(g, rlx.Bool), nil, func(*graph, []value) []value { return []value{x} }, square)[0]
		}), wantWithin("If", wantNode("Output", "", `output "out0" belongs to graph "bad"`, `"then"`))},
		{"condition of a loop that is no bool", while(func(_ *graph, c, _ []value) value { return c[0] }, loop),
			wantNode("While", "C1", "cond gives [f32[n, 3]]", "one bool of one element", "f32[n, 3]")},
		{"loop that changes a dtype", while(always, func(_ *graph, c, _ []value) []value { return []value{op.Cast(c[0], rlx.F64)} }),
			wantNode("While", "C3", "carry 0 is f32[n, 3], body gives f64[n, 3]", "one type", "f32[n, 3]")},
		{"loop that gives too much", while(always, func(_ *graph, c, _ []value) []value { return append(c, c[0]) }),
			wantNode("While", "C2", "body gives 2 values", "1 carries and 0 emitted values", "f32[n, 3]")},
		{"loop without a condition", while(nil, loop), wantNode("While", "", "cond: required attribute is missing", "a graph", "f32[n, 3]")},
		{"loop without a body", while(always, nil), wantNode("While", "", "body: required attribute is missing", "a graph", "f32[n, 3]")},
		{"scan over other lengths", opOf(func(g *graph, _ value) value {
			return op.Scan(nil, nil, []value{in(g, rlx.F32, 4), in(g, rlx.F32, 5)}, func(_ *graph, _, _, xs []value) []value { return xs }, op.ScanOptions{})[0]
		}), wantNode("Scan", "C2", "xs 1 has length 5", "4", "f32[4]", "f32[5]")},
		{"scan without a body", opOf(func(_ *graph, x value) value { return op.Scan(nil, nil, []value{x}, nil, op.ScanOptions{})[0] }),
			wantNode("Scan", "", "body: required attribute is missing", "a graph", "f32[n, 3]")},
	}
}

func badDeclarations() []badUse {
	weight := zeros[float32](3)
	return []badUse{
		{"no outputs", graphOf(func(g *graph) { in(g, rlx.F32, 3) }), wantGraph("Output", "bad", "at least one", "no outputs")},
		{"no nodes", graphOf(func(*graph) {}), wantGraph("Output", "bad", "at least one", "no outputs")},
		{"output named twice", graphOf(func(g *graph) { x := in(g, rlx.F32, 3); g.Output("y", x); g.Output("y", op.Neg(x)) }),
			wantGraph("Output", "bad", "unique names", `"y"`, "errors_graphs_test.go:")},
		{"output without a name", graphOf(func(g *graph) { g.Output("", in(g, rlx.F32, 3)) }), wantGraph("Output", "bad", "a unique one", "errors_graphs_test.go:")},
		{"output without a value", graphOf(func(g *graph) { g.Output("y", value{}) }), wantGraph("Output", "bad", "one of the graph", `"y"`, "errors_graphs_test.go:")},
		{"output of another graph", graphOf(func(g *graph) { g.Output("y", in(rlx.NewGraph("other"), rlx.F32, 3)) }),
			wantGraph("Output", "bad", `"bad"`, `"other"`, "errors_graphs_test.go:")},
		{"operand of another graph", opOf(func(_ *graph, x value) value { return op.Add(x, in(rlx.NewGraph("other"), rlx.F32, 3)) }),
			wantNode("Binary", "", `operand 1 belongs to graph "other"`, `"bad"`, "f32[n, 3]", "f32[3]")},
		{"operand that is absent", opOf(func(_ *graph, x value) value { return op.MatMul(x, value{}) }),
			wantNode("MatMul", "", "operand b is missing", "a value", "f32[n, 3]", "none")},
		{"two inputs of one name", graphOf(func(g *graph) {
			g.Output("y", op.Add(g.Input("x", rlx.F32, rlx.Shape(3)), g.Input("x", rlx.F32, rlx.Shape(3))))
		}), wantNode("Input", "C1", `name "x" is taken`, "a unique name")},
		{"input and param of one name", graphOf(func(g *graph) {
			g.Output("y", op.Add(g.Input("x", rlx.F32, rlx.Shape(3)), g.Param("x", weight)))
		}), wantNode("Param", "C1", `name "x" is taken`, "a unique name")},
		{"input without a name", graphOf(func(g *graph) { g.Output("y", g.Input("", rlx.F32, rlx.Shape(3))) }),
			wantNode("Input", "C1", "name is empty", "a unique name")},
		{"negative dim", graphOf(func(g *graph) { g.Output("y", g.Input("x", rlx.F32, rlx.Shape(-2))) }),
			wantNode("Input", "C2", "x: shape [-2] has a negative dim", "dims >= 0")},
		{"dim that is no expression", graphOf(func(g *graph) { g.Output("y", g.Input("x", rlx.F32, rlx.Shape("n*("))) }),
			wantNode("Input", "C2", "x: shape [-1] has a negative dim", "dims >= 0")},
		{"no dtype", graphOf(func(g *graph) { g.Output("y", g.Input("x", ir.Invalid, nil)) }),
			wantBoth(wantNode("Input", "", "result: tensor invalid, which is not a dtype", "a dtype"), wantTensor("tensor", "invalid, which is not a dtype", "a dtype"))},
		{"rank 9", graphOf(func(g *graph) { g.Output("y", g.Input("x", rlx.F32, rlx.Shape(1, 1, 1, 1, 1, 1, 1, 1, 1))) }),
			wantNode("Input", "", "result has rank 9", "at most 8")},
		{"more bytes than memory can have", graphOf(func(g *graph) { g.Output("y", g.Input("x", rlx.F32, rlx.Shape(1<<30, 1<<30))) }),
			wantTensor("tensor f32[1073741824 1073741824]", "a size larger than the address space", fmt.Sprintf("at most %d bytes", int64(1)<<47))},
		{"nil constant", graphOf(func(g *graph) { g.Output("y", g.Constant(nil)) }),
			wantBoth(wantNode("Constant", "C1", "tensor nil", "a tensor"), wantTensor("tensor", "nil", "a tensor"))},
		{"constant that does not fit its shape", graphOf(func(g *graph) { g.Output("y", g.Constant(rlx.New([]float32{1, 2}, 3))) }),
			wantBoth(wantNode("Constant", "C1", "tensor f32[3] 2 elements", "3"), wantTensor("tensor f32[3]", "2 elements", "3"))},
		{"nil param", graphOf(func(g *graph) { g.Output("y", g.Param("w", nil)) }),
			wantBoth(wantNode("Param", "", "tensor nil", "a tensor"), wantTensor("tensor", "nil", "a tensor"))},
		{"param that is not bound", graphOf(func(g *graph) {
			g.Output("y", g.DeclareParam(ir.ParamAttrs{Name: "w", Dtype: rlx.F32, Shape: rlx.Shape(3)}))
		}), wantNode("Param", "", "has no tensor", "one bound before Compile")},
		{"param of unknown size", graphOf(func(g *graph) {
			g.Output("y", g.DeclareParam(ir.ParamAttrs{Name: "w", Dtype: rlx.F32, Shape: rlx.Shape("n")}))
		}), wantNode("Param", "C3", "w: shape [n] has symbolic dims", "static ones")},
		{"param bound to another shape", func(*testing.T) error {
			g := rlx.NewGraph("bad")
			g.DeclareParam(ir.ParamAttrs{Name: "w", Dtype: rlx.F32, Shape: rlx.Shape(4)})
			return g.BindParam("w", weight)
		}, wantNode("Param", "C2", "w f32[3]", "f32[4]")},
		{"param that is not declared", func(*testing.T) error { return rlx.NewGraph("bad").BindParam("w", weight) },
			wantGraph("Param", "bad", "one that the graph declares", `"w"`)},
		{"symbol that no input binds", graphOf(func(g *graph) { g.Output("y", op.Neg(g.Input("x", rlx.F32, rlx.Shape("2*n")))) }),
			wantFeed("x", "symbol n", "f32[2*n]", "a symbol that is a dim of some input, which binds it")},
		{"unknown kind", func(*testing.T) error { _, err := ir.RowByName("Frobnicate"); return err }, func(t *testing.T, err error) []string {
			e := as[*rlx.ShapeError](t, err)
			sameText(t, "Op", e.Op, "Frobnicate")
			sameText(t, "Expected", e.Expected, "a kind of the op table")
			return []string{"Frobnicate", "expected " + e.Expected}
		}},
	}
}

// badSizes are graphs that some sizes of their inputs would suit: these do not.
func badSizes() []badUse {
	run := func(build func(a, b value) value, a, b *rlx.Tensor) func(*testing.T) error {
		return func(t *testing.T) error {
			g := rlx.NewGraph("bad")
			g.Output("y", build(g.Input("a", rlx.F32, rlx.Shape("n", "k")), g.Input("b", rlx.F32, rlx.Shape("m"))).Named("it"))
			return runOf(t, g, rlx.Feed{"a": a, "b": b})
		}
	}
	return []badUse{
		{"sizes that do not broadcast", run(func(a, b value) value { return op.Add(a, b) }, zeros[float32](2, 3), zeros[float32](4)),
			wantNode("Binary", "C4", "shapes [2, 3] and [4] do not broadcast", "equal dims or 1 from the last axis on", "f32[2, 3]", "f32[4]")},
		{"sizes that do not multiply", run(func(a, b value) value { return op.MatMul(a, b) }, zeros[float32](2, 3), zeros[float32](4)),
			wantNode("MatMul", "C2", "contracted sizes are 3 and 4 (shapes [2, 3] and [4])", "equal ones", "f32[2, 3]", "f32[4]")},
		{"elements that do not fit", run(func(a, b value) value { return op.Add(op.ReshapeInts(a, 2, 2), b) }, zeros[float32](5, 1), zeros[float32](2)),
			wantNode("Reshape", "C3", "shape [2, 2]", "one for the 5 elements of x [5, 1]", "f32[5, 1]")},
		{"k beyond the size", run(func(a, b value) value { v, _ := op.TopK(a, 3, 1, true); return op.Add(v, b) }, zeros[float32](2, 2), zeros[float32](1)),
			wantNode("TopK", "C1", "k is 3", "0 to 2, the length of axis 1", "f32[2, 2]")},
	}
}
