package pass_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// codeWeights are i8 codes [7, 4] with sides of the given shapes.
func codeWeights(g *ir.Graph, scaleShape ...int) (q, scale ir.Value) {
	codes, s := make([]int8, 28), make([]float32, 1)
	for i := range codes {
		codes[i] = int8(37*i - 128)
	}
	for _, d := range scaleShape {
		s = make([]float32, len(s)*d)
	}
	for i := range s {
		s[i] = 0.013 * float32(i+1)
	}
	return g.Param("q", ir.New(codes, 7, 4)), g.Param("scale", ir.New(s, scaleShape...))
}

// rowWeights are codes [4, 7], as linear layers keep them.
func rowWeights(g *ir.Graph, scaleShape ...int) (q, scale ir.Value) {
	h := ir.NewGraph("")
	_, s := codeWeights(h, scaleShape...)
	name, _ := s.Node().ParamName()
	codes := data[int8](h.ParamData("q"))
	return g.Param("q", ir.New(codes, 4, 7)), g.Param("scale", h.ParamData(name))
}

func data[T ir.Elem](x *ir.Tensor) []T {
	d, _ := ir.Data[T](x)
	return d
}

// TestInt8 wants products and gathers of codes, with the numbers that the floats give; TestInt8Bits of package rlx compares kernels bit for bit.
func TestInt8(t *testing.T) {
	first, axis := int64(0), int64(1)
	zero := ir.New([]int8{3, -5, 0, 127}, 4)
	for _, tc := range []struct {
		name, kind string // the row that stays; none: the graph stays
		build      func(g *ir.Graph, x, ids ir.Value) ir.Value
	}{
		{"a scale per column", "DequantMatMul", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := codeWeights(g, 1, 4)
			return op.MatMul(x, op.Mul(op.Cast(q, ir.F32), s))
		}},
		{"one scale, the other way round", "DequantMatMul", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := codeWeights(g)
			return op.MatMul(x, op.Mul(s, op.Cast(q, ir.F32)))
		}},
		{"Dequantize along an axis with zero points", "DequantMatMul", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := codeWeights(g, 4)
			return op.MatMul(x, op.Dequantize(q, s, g.Param("zero", zero), op.DequantizeAttrs{Axis: &axis}))
		}},
		{"Dequantize of one scale", "DequantMatMul", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := codeWeights(g)
			return op.MatMul(x, op.Dequantize(q, s, ir.Value{}, op.DequantizeAttrs{}))
		}},
		{"Gemm of a transposed weight", "DequantMatMul", func(g *ir.Graph, x, ids ir.Value) ir.Value { // a linear layer in QDQ form
			q, s := rowWeights(g, 4)
			return op.Add(op.MatMul(x, op.Transpose(op.Dequantize(q, s, g.Param("zero", zero), op.DequantizeAttrs{Axis: &first}), 1, 0)), 1)
		}},
		{"a transposed product, a scale per row of codes", "DequantMatMul", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := rowWeights(g, 4, 1)
			return op.MatMul(x, op.Transpose(op.Mul(op.Cast(q, ir.F32), s), 1, 0))
		}},
		{"a transposed product of one scale", "DequantMatMul", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := rowWeights(g, 1)
			return op.MatMul(x, op.Transpose(op.Mul(s, op.Cast(q, ir.F32)), 1, 0))
		}},
		{"transposed codes, a scale per column", "DequantMatMul", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := rowWeights(g, 4)
			return op.MatMul(x, op.Mul(op.Cast(op.Transpose(q, 1, 0), ir.F32), s))
		}},
		{"transposed twice", "DequantMatMul", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := codeWeights(g, 4, 1)
			return op.MatMul(x, op.Transpose(op.Mul(op.Cast(op.Transpose(q, 1, 0), ir.F32), s), 1, 0))
		}},
		{"blocks along the contracted axis", "DequantMatMul", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, _ := codeWeights(g)
			s := g.Param("block scale", ir.New([]float32{0.5, 0.25, 0.75, 2, 1, 3, 0.125, 1.5}, 2, 4))
			x = op.Concat(1, x, x)
			q = g.Constant(ir.New(append(data[int8](g.ParamData("q")), data[int8](g.ParamData("q"))...), 14, 4))
			return op.MatMul(x, op.Dequantize(q, s, ir.Value{}, op.DequantizeAttrs{Axis: &first, BlockSize: 8}))
		}},
		{"blocks of transposed codes with zero points", "DequantMatMul", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, _ := rowWeights(g, 1)
			x, q = op.Concat(1, x, x), g.Constant(ir.New(append(data[int8](g.ParamData("q")), data[int8](g.ParamData("q"))...), 4, 14))
			s := g.Param("block scale", ir.New([]float32{0.5, 0.25, 0.75, 2, 1, 3, 0.125, 1.5}, 4, 2))
			z := g.Param("block zero", ir.New([]int8{1, -2, 3, -4, 5, 6, 7, 8}, 4, 2))
			return op.MatMul(x, op.Transpose(op.Dequantize(q, s, z, op.DequantizeAttrs{Axis: &axis, BlockSize: 8}), 1, 0))
		}},
		{"short blocks", "", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, _ := codeWeights(g)
			s := g.Param("block scale", shaped(2, 4))
			return op.MatMul(x, op.Dequantize(q, s, ir.Value{}, op.DequantizeAttrs{Axis: &first, BlockSize: 4}))
		}},
		{"blocks along the columns", "", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, _ := codeWeights(g)
			s := g.Param("block scale", shaped(7, 1))
			return op.MatMul(x, op.Dequantize(q, s, ir.Value{}, op.DequantizeAttrs{Axis: &axis, BlockSize: 8}))
		}},
		{"a transposed product, a scale for each contracted entry", "", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := rowWeights(g, 7)
			return op.MatMul(x, op.Transpose(op.Mul(op.Cast(q, ir.F32), s), 1, 0))
		}},
		{"codes that are fed", "", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			_, s := rowWeights(g, 4, 1)
			return op.MatMul(x, op.Transpose(op.Mul(op.Cast(g.Input("w", ir.I8, ir.Dims(4, 7)), ir.F32), s), 1, 0))
		}},
		{"a weight of a convolution", "", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := codeWeights(g, 7, 1)
			w := op.Reshape(op.Mul(op.Cast(q, ir.F32), s), ir.Dims(4, 7, 1)...)
			return op.Conv(op.Reshape(x, ir.Dims(3, 7, 1)...), w, op.ConvAttrs{})
		}},
		{"rows of a transposed table", "", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := rowWeights(g, 1)
			return op.Gather(op.Mul(op.Cast(op.Transpose(q, 1, 0), ir.F32), s), ids, 0)
		}},
		{"rows of a table", "Cast", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := codeWeights(g, 7, 1)
			return op.Gather(op.Mul(op.Cast(q, ir.F32), s), ids, 0)
		}},
		{"columns of a table with one scale a row", "Cast", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := codeWeights(g, 7, 1)
			return op.Gather(op.Mul(op.Cast(q, ir.F32), s), ids, 1)
		}},
		{"a scale per row of a product", "", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := codeWeights(g, 7, 1)
			return op.MatMul(x, op.Mul(op.Cast(q, ir.F32), s))
		}},
		{"a scale that is fed", "", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, _ := codeWeights(g)
			return op.MatMul(x, op.Mul(op.Cast(q, ir.F32), g.Input("s", ir.F32, ir.Dims(1, 4))))
		}},
		{"a scale that stretches the weight", "", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := codeWeights(g, 2, 1, 4)
			return op.MatMul(x, op.Mul(op.Cast(q, ir.F32), s))
		}},
		{"f64", "", func(g *ir.Graph, x, ids ir.Value) ir.Value {
			q, s := codeWeights(g)
			return op.MatMul(op.Cast(x, ir.F64), op.Mul(op.Cast(q, ir.F64), op.Cast(s, ir.F64)))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := ir.NewGraph("g")
			x, ids := g.Input("x", ir.F32, ir.Dims(3, 7)), g.Input("ids", ir.I64, ir.Dims(2, 3))
			g.Output("y", tc.build(g, x, ids))
			out := passed(t, g, pass.Int8)
			if tc.kind == "" {
				if out != g {
					t.Fatalf("the graph changed\n%s", out)
				}
				return
			}
			if out == g || countOf(out, tc.kind) != 1 {
				t.Fatalf("no %s\n%s", tc.kind, out)
			}
			for _, n := range out.Nodes { // weights are what has 7 * 4 elements, or twice as many
				if count := ir.Count(n.Types[0].Shape); n.Types[0].DType == ir.F32 && (count.Is(28) || count.Is(56)) {
					t.Errorf("a weight of floats: %s", n)
				}
			}
			r := rand.New(rand.NewPCG(1, 2))
			feed := randomFeed(g, r, func(string) []float64 { return nil })
			if tc.kind == "Cast" {
				sameBits(t, evaluate(t, out, feed), evaluate(t, g, feed), out)
			} else { // the interpreter has an order of its own for such sums
				sameNumbers(t, evaluate(t, out, feed), evaluate(t, g, feed), out)
			}
		})
	}
}

func TestSwiGLU(t *testing.T) {
	for _, tc := range []struct {
		name  string
		found bool
		build func(g *ir.Graph, x ir.Value) ir.Value
	}{
		{"gate behind", true, func(g *ir.Graph, x ir.Value) ir.Value {
			return op.Mul(op.Narrow(x, 1, 0, 4), op.Silu(op.Narrow(x, 1, 4, 4)))
		}},
		{"gate first, slices", true, func(g *ir.Graph, x ir.Value) ir.Value {
			gate := op.Slice(x, []ir.Dim{ir.D(0)}, []ir.Dim{ir.D(4)}, []int{-1}, nil)
			up := op.Slice(x, []ir.Dim{ir.D(-4)}, []ir.Dim{ir.D(1 << 62)}, []int{1}, nil)
			return op.Mul(op.Silu(gate), up)
		}},
		{"another axis", false, func(g *ir.Graph, x ir.Value) ir.Value {
			return op.Mul(op.Narrow(x, 0, 0, 1), op.Silu(op.Narrow(x, 0, 1, 1)))
		}},
		{"pieces that overlap", false, func(g *ir.Graph, x ir.Value) ir.Value {
			return op.Mul(op.Narrow(x, 1, 0, 4), op.Silu(op.Narrow(x, 1, 3, 4)))
		}},
		{"pieces that leave something", false, func(g *ir.Graph, x ir.Value) ir.Value {
			return op.Mul(op.Narrow(x, 1, 0, 3), op.Silu(op.Narrow(x, 1, 3, 3)))
		}},
		{"another tensor", false, func(g *ir.Graph, x ir.Value) ir.Value {
			return op.Mul(op.Narrow(op.Exp(x), 1, 0, 4), op.Silu(op.Narrow(x, 1, 4, 4)))
		}},
		{"silu is read twice", false, func(g *ir.Graph, x ir.Value) ir.Value {
			s := op.Silu(op.Narrow(x, 1, 4, 4))
			g.Output("s", s)
			return op.Mul(op.Narrow(x, 1, 0, 4), s)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := ir.NewGraph("g")
			g.Output("y", tc.build(g, g.Input("x", ir.F32, ir.Dims(2, 8))))
			out := passed(t, g, pass.SwiGLU)
			if (countOf(out, "FusedSwiGLU") == 1) != tc.found {
				t.Fatalf("found: expected %v\n%s", tc.found, out)
			}
			feed := randomFeed(g, rand.New(rand.NewPCG(1, 2)), func(string) []float64 { return []float64{inf, -inf} })
			sameNumbers(t, evaluate(t, out, feed), evaluate(t, g, feed), out)
		})
	}
}
