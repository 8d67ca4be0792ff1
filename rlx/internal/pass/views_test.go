package pass_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// ruleCase is a value of inputs x and y, and the kinds of nodes that a pass leaves of it, leaves of the graph apart.
type ruleCase struct {
	name  string
	build func(x ir.Value) ir.Value
	want  string
}

// special are the values that wrong identities give away.
var special = []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, 1, -1, 1.5, -2.25, 1e-40, 3e38, 7}

func specialTensor(r *rand.Rand, d ir.DType, shape ...int64) *ir.Tensor {
	x, _ := ir.Zeros(d, shape...)
	for i := range x.Len() {
		if ir.Float.Has(d) {
			ir.PutFloat(d, x.Bytes(), i, special[r.IntN(len(special))])
		} else if d == ir.Bool {
			ir.PutInt(d, x.Bytes(), i, int64(r.IntN(2)))
		} else {
			ir.PutInt(d, x.Bytes(), i, int64(r.Uint64()))
		}
	}
	return x
}

// checkRules runs a pass on each case, with x of the given type, and compares bits before and after.
func checkRules(t *testing.T, p pass.Pass, x ir.Type, cases []ruleCase) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 9))
	shape, _ := ir.StaticShape(x.Shape)
	for _, c := range cases {
		g := ir.NewGraph("g")
		v := g.Input("x", x.DType, x.Shape)
		g.Output("y", c.build(v))
		if err := g.Err(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		out, err := pass.Pipeline{Passes: []pass.Pass{p}, Support: support(func(*ir.Row) bool { return true }, nil), Verify: true}.Run(g)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var left []string
		for _, n := range out.Nodes {
			if !n.Row.Has(ir.Leaf) {
				left = append(left, n.Row.Name)
			}
		}
		if got := strings.Join(left, " "); got != c.want {
			t.Errorf("%s: got %q, expected %q\n%s", c.name, got, c.want, out)
		}
		for range 8 {
			feed := map[string]*ir.Tensor{"x": specialTensor(r, x.DType, shape...)}
			sameBits(t, oneNaN(evaluate(t, out, feed)), oneNaN(evaluate(t, g, feed)), out)
		}
	}
}

// oneNaN writes every NaN with the same bits: payloads mean nothing, whereas all other values must keep theirs.
func oneNaN(list []*ir.Tensor) []*ir.Tensor {
	out := make([]*ir.Tensor, len(list))
	for k, x := range list {
		b := bytes.Clone(x.Bytes())
		out[k], _ = ir.FromBytes(x.DType(), x.Shape(), b)
		for i := range x.Len() {
			if ir.Float.Has(x.DType()) && math.IsNaN(x.Float(i)) {
				ir.PutFloat(x.DType(), b, i, math.NaN())
			}
		}
	}
	return out
}

func typeOf(d ir.DType, dims ...int64) ir.Type { return ir.Type{DType: d, Shape: ir.Dims(dims...)} }

func ints(x ir.Value, v ...int64) ir.Value { return x.Graph().Constant(ir.New(v, len(v))) }

func TestViews(t *testing.T) {
	checkRules(t, pass.Views, typeOf(ir.F32, 4, 1, 6), []ruleCase{
		{"reshape to the same", func(x ir.Value) ir.Value { return op.Reshape(x, ir.Dims(4, 1, -1)...) }, ""},
		{"reshapes", func(x ir.Value) ir.Value { return op.Reshape(op.Reshape(x, ir.Dims(24)...), ir.Dims(2, 12)...) }, "Reshape"},
		{"reshape back", func(x ir.Value) ir.Value { return op.Reshape(op.Reshape(x, ir.Dims(24)...), ir.Dims(4, 1, 6)...) }, ""},
		{"identity perm", func(x ir.Value) ir.Value { return op.Transpose(x, 0, 1, 2) }, ""},
		{"two perms", func(x ir.Value) ir.Value { return op.Transpose(op.Transpose(x, 2, 0, 1), 0, 2, 1) }, "Transpose"},
		{"opposite perms", func(x ir.Value) ir.Value { return op.Transpose(op.Transpose(x, 2, 0, 1), 1, 2, 0) }, ""},
		{"perm of ones", func(x ir.Value) ir.Value { return op.Transpose(x, 1, 0, 2) }, "Reshape"},
		{"perm of others", func(x ir.Value) ir.Value { return op.Transpose(x, 2, 1, 0) }, "Transpose"},
		{"expands", func(x ir.Value) ir.Value { return op.Expand(op.Expand(x, ir.Dims(4, 3, 6)...), ir.Dims(2, 4, 3, 6)...) }, "Expand"},
		{"expand to the same", func(x ir.Value) ir.Value { return op.Expand(x, ir.Dims(1, -1, 6)...) }, ""},
		{"expand in a sum", func(x ir.Value) ir.Value {
			return op.Add(op.Expand(x, ir.Dims(4, 3, 6)...), op.Reshape(op.Narrow(x, 0, 0, 3), ir.Dims(3, 6)...))
		}, "Narrow Reshape Binary"},
		{"expand that makes the shape", func(x ir.Value) ir.Value { return op.Add(op.Expand(x, ir.Dims(4, 3, 6)...), x) }, "Expand Binary"},
		{"whole narrow", func(x ir.Value) ir.Value { return op.Narrow(x, 2, -6, 6) }, ""},
		{"narrows", func(x ir.Value) ir.Value { return op.Narrow(op.Narrow(x, 2, 1, 4), -1, -3, 2) }, "Narrow"},
		{"narrows of two axes", func(x ir.Value) ir.Value { return op.Narrow(op.Narrow(x, 2, 1, 4), 0, 1, 2) }, "Narrow Narrow"},
		{"whole slice", func(x ir.Value) ir.Value { return op.Slice(x, ir.Dims(0), ir.Dims(1000000000), []int{2}, nil) }, ""},
		{"slice", func(x ir.Value) ir.Value { return op.Slice(x, ir.Dims(-100, 1), ir.Dims(100, -1), []int{0, 2}, nil) }, "Narrow"},
		{"backward slice", func(x ir.Value) ir.Value { return op.Slice(x, ir.Dims(-1), ir.Dims(-100), []int{2}, []int64{-1}) }, "Slice"},
		{"empty slice", func(x ir.Value) ir.Value { return op.Slice(x, ir.Dims(4), ir.Dims(2), []int{2}, nil) }, "Slice"},
		{"reverse twice", func(x ir.Value) ir.Value { return op.Reverse(op.Reverse(x, 0, 2), 2, 0) }, ""},
		{"reverses", func(x ir.Value) ir.Value { return op.Reverse(op.Reverse(x, 0, 2), 2) }, "Reverse"},
		{"reverse of ones", func(x ir.Value) ir.Value { return op.Reverse(x, 1) }, ""},
		{"no pad", func(x ir.Value) ir.Value { return op.Pad(x, ir.Dims(0, 0, 0), "reflect", ir.IntNumber(0)) }, ""},
		{"pad", func(x ir.Value) ir.Value { return op.Pad(x, ir.Dims(0, 0, 1), "constant", ir.IntNumber(0)) }, "Pad"},
		{"no tile", func(x ir.Value) ir.Value { return op.Tile(x, ir.Dims(1, 1, 1)...) }, ""},
		{"tile", func(x ir.Value) ir.Value { return op.Tile(x, ir.Dims(1, 2, 1)...) }, "Tile"},
		{"no roll", func(x ir.Value) ir.Value { return op.Roll(x, []int64{2, 4}, []int{2, -1}) }, ""},
		{"roll", func(x ir.Value) ir.Value { return op.Roll(x, []int64{2}, []int{2}) }, "Roll"},
		{"no resize", func(x ir.Value) ir.Value { return op.Resize(x, op.ResizeAttrs{Axes: []int64{2}, Scales: []float64{1}}) }, ""},
		{"scale that keeps the size", func(x ir.Value) ir.Value {
			return op.Resize(x, op.ResizeAttrs{Axes: []int64{2}, Scales: []float64{1.1}})
		}, "Resize"},
		{"cast to the same", func(x ir.Value) ir.Value { return op.StopGradient(op.Cast(x, ir.F32)) }, ""},
		{"concat of one", func(x ir.Value) ir.Value { return op.Concat(0, x) }, ""},
		{"concat of concat", func(x ir.Value) ir.Value { return op.Concat(0, op.Concat(-3, x, x), op.Narrow(x, 0, 0, 0), x) }, "Concat"},
		{"concat of another axis", func(x ir.Value) ir.Value { return op.Concat(0, op.Concat(1, x, x), op.Concat(1, x, x)) }, "Concat Concat Concat"},
		{"pieces", func(x ir.Value) ir.Value { return op.Concat(2, op.Narrow(x, 2, 0, 2), op.Narrow(x, 2, 2, 4)) }, ""},
		{"pieces and more", func(x ir.Value) ir.Value { return op.Concat(2, x, op.Narrow(x, 2, 1, 2), op.Narrow(x, 2, 3, 1)) }, "Narrow Concat"},
		{"pieces that do not meet", func(x ir.Value) ir.Value { return op.Concat(2, op.Narrow(x, 2, 0, 2), op.Narrow(x, 2, 3, 3)) }, "Narrow Narrow Concat"},
		{"pieces along another axis", func(x ir.Value) ir.Value { return op.Concat(1, op.Narrow(x, 2, 0, 3), op.Narrow(x, 2, 3, 3)) }, "Narrow Narrow Concat"},
		{"part of concat", func(x ir.Value) ir.Value { return op.Narrow(op.Concat(0, op.Exp(x), x), 0, 5, 2) }, "Narrow"},
		{"parts of concat", func(x ir.Value) ir.Value { return op.Narrow(op.Concat(0, x, x), 0, 3, 2) }, "Concat Narrow"},
		{"gather of one", func(x ir.Value) ir.Value { return op.Gather(x, x.Graph().Constant(ir.Scalar(int64(-1))), 2) }, "Narrow Reshape"},
		{"gather out of order", func(x ir.Value) ir.Value { return op.Gather(x, ints(x, 1, 3, 2), 0) }, "Gather"},
		{"gather that rises", func(x ir.Value) ir.Value { return op.Gather(x, ints(x, 1, 2, -1), 0) }, "Narrow"},
		{"where", func(x ir.Value) ir.Value { return op.Where(x.Graph().Constant(ir.Scalar(false)), op.Exp(x), x) }, ""},
		{"where by two", func(x ir.Value) ir.Value {
			return op.Where(x.Graph().Constant(ir.New([]bool{true, false, true, true, true, true}, 6)), op.Neg(x), x)
		}, "Activation Where"},
		{"where of a number", func(x ir.Value) ir.Value { return op.Where(x.Graph().Constant(ir.Scalar(true)), 2, x) }, "Expand"},
	})
	checkRules(t, pass.Views, typeOf(ir.F32, 2, 3, 5, 4), []ruleCase{
		{"batch of heads", func(x ir.Value) ir.Value {
			return op.Reshape(op.Transpose(op.Reshape(x, ir.Dims(6, 5, 4)...), 0, 2, 1), ir.Dims(2, 3, 4, 5)...)
		}, "Transpose"},
		{"split otherwise", func(x ir.Value) ir.Value {
			return op.Reshape(op.Transpose(op.Reshape(x, ir.Dims(6, 5, 4)...), 0, 2, 1), ir.Dims(3, 2, 4, 5)...)
		}, "Reshape Transpose Reshape"},
	})
}

// A constant index outside the axis is an error before and after.
func TestViewsKeepErrors(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(4))
	g.Output("y", op.Gather(x, ints(x, 4), 0))
	out, err := pass.Pipeline{Passes: []pass.Pass{pass.Views}, Verify: true}.Run(g)
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, out, "Input Constant Gather")
	if _, err := interpret(out, map[string]*ir.Tensor{"x": floats(4)}); err == nil {
		t.Error("index 4 of 4 elements is read")
	}
}

// Symbols stay checked: what is not surely equal keeps its node.
func TestViewsOfSymbols(t *testing.T) {
	n, m := ir.Sym("n"), ir.Sym("m")
	for _, c := range []struct {
		name  string
		build func(x ir.Value) ir.Value
		want  string
	}{
		{"heads", func(x ir.Value) ir.Value {
			return op.Reshape(op.Transpose(op.Reshape(x, n.Mul(ir.D(3)), m, ir.D(4)), 0, 2, 1), n, ir.D(3), ir.D(4), m)
		}, "Input Transpose"},
		{"count that is not sure", func(x ir.Value) ir.Value { return op.Reshape(op.Reshape(x, ir.D(7), ir.Sym("k")), n, m, ir.D(12)) }, "Input Reshape Reshape"},
		{"expand to a symbol", func(x ir.Value) ir.Value { return op.Expand(x, n, ir.Sym("k"), m, ir.D(4)) }, "Input Expand"},
		{"expand to its own", func(x ir.Value) ir.Value { return op.Expand(x, n, ir.D(3), m, ir.D(1)) }, "Input"},
		{"slice of all", func(x ir.Value) ir.Value { return op.Slice(x, ir.Dims(0), ir.Dims(math.MaxInt64), []int{2}, nil) }, "Input"},
		{"slice of some", func(x ir.Value) ir.Value { return op.Slice(x, ir.Dims(1), ir.Dims(math.MaxInt64), []int{2}, nil) }, "Input Slice"},
	} {
		g := ir.NewGraph("g")
		g.Output("y", c.build(g.Input("x", ir.F32, []ir.Dim{n, ir.D(3), m, ir.D(4)})))
		if err := g.Err(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		out, err := pass.Pipeline{Passes: []pass.Pass{pass.Views}, Verify: true}.Run(g)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		t.Log(c.name)
		wantKinds(t, out, c.want)
	}
}

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
