package pass_test

import (
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// everything is a backend with a kernel for every row and dtype.
func everything() *pass.Support {
	var caps []backend.Cap
	for _, r := range ir.Rows() {
		caps = append(caps, backend.Cap{Op: r.Num(), DTypes: ^uint32(0), Strided: true})
	}
	return pass.NewSupport("test", caps, nil)
}

// rowsOf lists the nodes of a graph but leaves, by kind.
func rowsOf(g *ir.Graph) string {
	var list []string
	for _, n := range g.Nodes {
		if !n.Row.Has(ir.Leaf) {
			list = append(list, n.Row.Name)
		}
	}
	return strings.Join(list, " ")
}

func late(t *testing.T, g *ir.Graph) *ir.Graph {
	t.Helper()
	s := everything()
	out, err := pass.Pipeline{Passes: []pass.Pass{pass.ConvEpilogue, pass.Columns, pass.Regions(s), pass.MatMulEpilogue}, Support: s, Verify: true}.Run(g)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// codeSums is a product of codes [4, 4] with zero points.
func codeSums(g *ir.Graph, d ir.DType, bias ir.Value) ir.Value {
	x, w := g.Input("codes", ir.U8, ir.Dims(4, 3)), g.Input("weights", ir.I8, ir.Dims(3, 4))
	return op.QMatMul(x, w, bias, ir.Value{}, op.QMatMulAttrs{XZeroPoint: 128, WZeroPoint: -3, Multiplier: 1, Dtype: d})
}

// int8Product is x [4, 4] by int8 weights.
func int8Product(g *ir.Graph, x ir.Value, s op.Scheme) ir.Value {
	var zero ir.Value
	scale := g.Input("scale", ir.F32, ir.Dims(1, 4))
	if s == "int8_block_asym" {
		zero = g.Input("zero", ir.F32, ir.Dims(1, 4))
	}
	return op.DequantMatMul(x, g.Input("weights", ir.I8, ir.Dims(4, 4)), scale, zero, op.DequantMatMulAttrs{Scheme: s, BlockSize: 4})
}

// TestRegions wants chains in one node each: where they may end, what may not join, and what stands behind products and in front of reductions.
func TestRegions(t *testing.T) {
	type build func(g *ir.Graph, x, y ir.Value)
	for _, tc := range []struct {
		name, want string
		build      build
	}{
		{"one node stays", "Activation", func(g *ir.Graph, x, y ir.Value) { g.Output("z", op.Exp(x)) }},
		{"a chain", "ElementwiseRegion", func(g *ir.Graph, x, y ir.Value) { g.Output("z", op.Mul(op.Exp(op.Add(x, y)), 2)) }},
		{"an inner value is read behind the region", "ElementwiseRegion MatMul", func(g *ir.Graph, x, y ir.Value) {
			u := op.Add(x, y)
			g.Output("z", op.Exp(u))
			g.Output("w", op.MatMul(u, u))
		}},
		{"an inner value is read in front of the region's end", "Binary MatMul Softmax ElementwiseRegion", func(g *ir.Graph, x, y ir.Value) {
			u := op.Add(x, y)
			v := op.MatMul(u, u)
			v = op.Softmax(v, -1)
			g.Output("z", op.Mul(op.Exp(v), u))
		}},
		{"an inner value is an output", "ElementwiseRegion", func(g *ir.Graph, x, y ir.Value) {
			u := op.Add(x, y)
			g.Output("u", u)
			g.Output("z", op.Exp(u))
		}},
		{"a smaller value is not computed again for each row", "Activation ElementwiseRegion", func(g *ir.Graph, x, y ir.Value) {
			g.Output("z", op.Neg(op.Add(x, op.Exp(g.Input("b", ir.F32, ir.Dims(4))))))
		}},
		{"casts inside", "ElementwiseRegion", func(g *ir.Graph, x, y ir.Value) {
			g.Output("z", op.Cast(op.Exp(op.Cast(x, ir.F64)), ir.F16))
		}},
		{"a reduction of a chain", "ReduceRegion", func(g *ir.Graph, x, y ir.Value) { g.Output("z", op.Sum(op.Exp(op.Sub(x, y)), -1)) }},
		{"a reduction over the first axis", "ReduceRegion", func(g *ir.Graph, x, y ir.Value) { g.Output("z", op.Sum(op.Exp(op.Sub(x, y)), 0)) }},
		{"a reduction over axes with others between", "ElementwiseRegion Reduce", func(g *ir.Graph, x, y ir.Value) {
			z := g.Input("c", ir.F32, ir.Dims(2, 4, 4))
			g.Output("z", op.Reduce(op.Exp(op.Sub(x, z)), "sum", []int{0, 2}, false))
		}},
		{"centred rows are computed again", "Reduce ReduceRegion ElementwiseRegion", func(g *ir.Graph, x, y ir.Value) {
			m := op.Reduce(x, "mean", []int{1}, true)
			c := op.Sub(x, m)
			g.Output("z", op.Mul(c, op.Reduce(op.Mul(c, c), "mean", []int{1}, true)))
		}},
		{"what two reductions read is computed again", "ReduceRegion ReduceRegion", func(g *ir.Graph, x, y ir.Value) {
			c := op.Mul(op.Neg(x), 3)
			g.Output("z", op.Sum(c, 0))
			g.Output("w", op.Sum(op.Abs(c), 1))
		}},
		{"what is not light is stored", "Activation Reduce ReduceRegion", func(g *ir.Graph, x, y ir.Value) {
			c := op.Exp(x)
			g.Output("z", op.Sum(c, 0))
			g.Output("w", op.Sum(op.Neg(c), 1))
		}},
		{"what is light behind what is not is stored", "ElementwiseRegion Reduce ReduceRegion", func(g *ir.Graph, x, y ir.Value) {
			c := op.Neg(op.Exp(x))
			g.Output("z", op.Sum(c, 0))
			g.Output("w", op.Sum(op.Abs(c), 1))
		}},
		{"sums of two operands are stored where that is fewer bytes", "Binary Reduce Reduce ReduceRegion", func(g *ir.Graph, x, y ir.Value) {
			c := op.Add(x, y)
			g.Output("z", op.Sum(c, 0))
			g.Output("u", op.Sum(c, 1))
			g.Output("w", op.Sum(op.Abs(c), 1))
		}},
		{"an output is stored", "Binary Reduce ReduceRegion", func(g *ir.Graph, x, y ir.Value) {
			c := op.Mul(x, 3)
			g.Output("c", c)
			g.Output("z", op.Sum(c, 0))
			g.Output("w", op.Sum(op.Abs(c), 1))
		}},
		{"what another kernel reads is stored", "Binary Reduce MatMul", func(g *ir.Graph, x, y ir.Value) {
			c := op.Mul(x, 3)
			g.Output("z", op.Sum(c, 0))
			g.Output("w", op.MatMul(c, c))
		}},
		{"a product with bias and activation", "MatMulRegion", func(g *ir.Graph, x, y ir.Value) {
			g.Output("z", op.Gelu(op.Add(op.MatMul(x, y), g.Input("b", ir.F32, ir.Dims(4)))))
		}},
		{"a product with one addition", "MatMulRegion", func(g *ir.Graph, x, y ir.Value) { g.Output("z", op.Add(x, op.MatMul(x, y))) }},
		{"a product that is read twice", "MatMul ElementwiseRegion", func(g *ir.Graph, x, y ir.Value) {
			p := op.MatMul(x, y)
			g.Output("p", p)
			g.Output("z", op.Exp(op.Neg(p)))
		}},
		{"a product that is broadcast", "MatMul Binary", func(g *ir.Graph, x, y ir.Value) {
			g.Output("z", op.Add(op.MatMul(x, y), g.Input("b", ir.F32, ir.Dims(2, 4, 4))))
		}},
		{"a product of codes with scale", "QMatMulRegion", func(g *ir.Graph, x, y ir.Value) {
			g.Output("z", op.Mul(op.Cast(codeSums(g, ir.I32, ir.Value{}), ir.F32), g.Input("s", ir.F32, ir.Dims(4, 1))))
		}},
		{"a product of codes with one cast", "QMatMulRegion", func(g *ir.Graph, x, y ir.Value) { g.Output("z", op.Cast(codeSums(g, ir.I32, ir.Value{}), ir.F32)) }},
		{"a product of codes whose result is codes", "QMatMul Cast", func(g *ir.Graph, x, y ir.Value) { g.Output("z", op.Cast(codeSums(g, ir.U8, ir.Value{}), ir.F32)) }},
		{"a product of codes with a bias", "QMatMul Cast", func(g *ir.Graph, x, y ir.Value) {
			g.Output("z", op.Cast(codeSums(g, ir.I32, g.Input("b", ir.I32, ir.Dims(4))), ir.F32))
		}},
		{"a product of codes that is read twice", "QMatMul ElementwiseRegion", func(g *ir.Graph, x, y ir.Value) {
			p := codeSums(g, ir.I32, ir.Value{})
			g.Output("p", p)
			g.Output("z", op.Exp(op.Cast(p, ir.F32)))
		}},
		{"a product with int8 weights, bias and activation", "DequantMatMulRegion", func(g *ir.Graph, x, y ir.Value) {
			g.Output("z", op.Gelu(op.Add(int8Product(g, x, "int8_block"), g.Input("b", ir.F32, ir.Dims(4)))))
		}},
		{"a product with int8 weights and zero points with one addition", "DequantMatMulRegion", func(g *ir.Graph, x, y ir.Value) {
			g.Output("z", op.Add(y, int8Product(g, x, "int8_block_asym")))
		}},
		{"a product with int8 weights that is read twice", "DequantMatMul ElementwiseRegion", func(g *ir.Graph, x, y ir.Value) {
			p := int8Product(g, x, "int8_block")
			g.Output("p", p)
			g.Output("z", op.Exp(op.Neg(p)))
		}},
		{"two products", "MatMul MatMulRegion", func(g *ir.Graph, x, y ir.Value) {
			g.Output("z", op.Mul(op.Silu(op.MatMul(x, y)), op.MatMul(y, x)))
		}},
	} {
		g := ir.NewGraph("g")
		x, y := g.Input("x", ir.F32, ir.Dims(4, 4)), g.Input("y", ir.F32, ir.Dims(4, 4))
		tc.build(g, x, y)
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		if got := rowsOf(late(t, g)); got != tc.want {
			t.Errorf("%s: got %s, expected %s", tc.name, got, tc.want)
		}
	}
}

// TestConvEpilogue wants bias, residual and activation in the convolution, in this order only.
func TestConvEpilogue(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		build      func(g *ir.Graph, y, r, b ir.Value) ir.Value
	}{
		{"all three", "FusedConvBiasAct", func(g *ir.Graph, y, r, b ir.Value) ir.Value { return op.Relu(op.Add(op.Add(y, b), r)) }},
		{"the other way round", "FusedConvBiasAct", func(g *ir.Graph, y, r, b ir.Value) ir.Value { return op.Relu(op.Add(r, op.Add(b, y))) }},
		{"residual before bias", "FusedConvBiasAct Binary", func(g *ir.Graph, y, r, b ir.Value) ir.Value { return op.Add(op.Add(y, r), b) }},
		{"activation before bias", "FusedConvBiasAct Binary", func(g *ir.Graph, y, r, b ir.Value) ir.Value { return op.Add(op.Relu(y), b) }},
		{"read twice", "Conv ElementwiseRegion", func(g *ir.Graph, y, r, b ir.Value) ir.Value { g.Output("y", y); return op.Relu(op.Add(y, b)) }},
		{"added to itself", "Conv Binary", func(g *ir.Graph, y, r, b ir.Value) ir.Value { return op.Add(y, y) }},
		{"a number for each column", "Conv Binary", func(g *ir.Graph, y, r, b ir.Value) ir.Value { return op.Add(y, g.Input("c", ir.F32, ir.Dims(4))) }},
	} {
		g := ir.NewGraph("g")
		x, w := g.Input("x", ir.F32, ir.Dims(1, 3, 6, 6)), g.Input("w", ir.F32, ir.Dims(4, 3, 3, 3))
		r, b := g.Input("r", ir.F32, ir.Dims(1, 4, 4, 4)), g.Input("b", ir.F32, ir.Dims(4))
		y := op.Conv(x, w, op.ConvAttrs{})
		g.Output("z", tc.build(g, y, r, op.Reshape(b, ir.D(1), ir.D(4), ir.D(1), ir.D(1))))
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(rowsOf(late(t, g)), "Reshape "); strings.ReplaceAll(got, "Reshape ", "") != tc.want {
			t.Errorf("%s: got %s, expected %s", tc.name, got, tc.want)
		}
	}
}

// What is computed again bears names that no node of the graph has, and is told as what it is a copy of.
func TestCopiesLeaveNames(t *testing.T) {
	g := ir.NewGraph("g")
	x, y := g.Input("x", ir.F32, ir.Dims(64, 64, 16)), g.Input("y", ir.F32, ir.Dims(64, 64, 16))
	z := op.Max(op.Neg(x).Named("neg"), x).Named("sum")
	g.Output("a", op.Reduce(z, "max", []int{2}, false))
	g.Output("b", op.Reduce(z, "max", []int{0}, false))
	g.Output("c", op.Reduce(op.Max(z, y).Named("zy"), "min", []int{1}, false))
	g.Output("m", op.Cumsum(x, 0).Named("sum.1"))
	regions := 0
	for _, n := range late(t, g).Nodes {
		if n.Row.Name == "Cumsum" && n.Name != "sum.1" {
			t.Errorf("Cumsum sum.1 is now %s", n.Name)
		}
		if n.Row.Name != "ReduceRegion" {
			continue
		}
		regions++
		for _, o := range n.Absorbed {
			if o.Name != "neg" && o.Name != "sum" && o.Name != "zy" {
				t.Errorf("%s stands for %v, which the graph lacks", n, o)
			}
		}
	}
	if regions != 3 {
		t.Errorf("%d ReduceRegions, expected 3: nothing is computed again", regions)
	}
}
