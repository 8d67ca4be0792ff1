package rlx_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// finiteCase is a graph whose first bad element is known by hand.
type finiteCase struct {
	name     string
	build    func(g *rlx.Graph) rlx.Value
	feed     rlx.Feed
	node, op string
	index    int64
	coords   []int64
	value    float64
	operands []rlx.OperandRange // without types
}

// roots is sqrt(x + 1) times itself: the sum lies in the arena, and the root goes in its place.
func roots(g *rlx.Graph) rlx.Value {
	x := g.Input("x", rlx.F32, rlx.Shape("n", 3))
	y := op.Sqrt(op.Add(x, 1).Named("shift")).Named("root")
	return op.MatMul(y, g.Param("w", f32s([]int{3, 3}, 1, 0, 0, 0, 1, 0, 0, 0, 1))).Named("product")
}

func finiteCases() []finiteCase {
	nan, inf := math.NaN(), math.Inf(1)
	unary := func(name string, d rlx.DType, f func(rlx.Value) rlx.Value) func(*rlx.Graph) rlx.Value {
		return func(g *rlx.Graph) rlx.Value { return f(g.Input("x", d, rlx.Shape(3))).Named(name) }
	}
	return []finiteCase{
		{"NaN", roots, rlx.Feed{"x": f32s([]int{2, 3}, 0, 3, 8, 15, -5, -9)}, "root", "Activation", 4, []int64{1, 1}, nan,
			[]rlx.OperandRange{{Name: "shift", Finite: true, Min: -8, Max: 16}}},
		{"a NaN that is fed", roots, rlx.Feed{"x": f32s([]int{1, 3}, 4, float32(nan), 2)}, "shift", "Binary", 1, []int64{0, 1}, nan,
			[]rlx.OperandRange{{Name: "x", Min: 2, Max: 4}, {Finite: true, Min: 1, Max: 1}}},
		{"+Inf", unary("power", rlx.F32, func(x rlx.Value) rlx.Value { return op.Exp(x) }), rlx.Feed{"x": f32s([]int{3}, 1, 2, 100)}, "power", "Activation", 2, []int64{2}, inf,
			[]rlx.OperandRange{{Name: "x", Finite: true, Min: 1, Max: 100}}},
		{"-Inf", unary("log", rlx.F64, func(x rlx.Value) rlx.Value { return op.Log(x) }), rlx.Feed{"x": rlx.New([]float64{1, 0, 2}, 3)}, "log", "Activation", 1, []int64{1}, -inf,
			[]rlx.OperandRange{{Name: "x", Finite: true, Min: 0, Max: 2}}},
		{"f16", unary("twice", rlx.F16, func(x rlx.Value) rlx.Value { return op.Add(x, x) }), rlx.Feed{"x": rlx.New([]rlx.Float16{0x3c00, 0x7bff, 0}, 3)}, "twice", "Binary", 1, []int64{1}, inf,
			[]rlx.OperandRange{{Name: "x", Finite: true, Min: 0, Max: 65504}, {Name: "x", Finite: true, Min: 0, Max: 65504}}},
		{"a reversed operand", func(g *rlx.Graph) rlx.Value {
			return op.Log(op.Reverse(g.Input("x", rlx.F32, rlx.Shape(4)), 0)).Named("log")
		}, rlx.Feed{"x": f32s([]int{4}, 0, 1, 2, 3)}, "log", "Activation", 3, []int64{3}, -inf, nil},
		{"a branch", func(g *rlx.Graph) rlx.Value {
			yes := op.Gt(g.Input("p", rlx.F32, rlx.Shape()), 0)
			return op.If(yes, []rlx.Value{g.Input("x", rlx.F32, rlx.Shape(2))},
				func(_ *rlx.Graph, c []rlx.Value) []rlx.Value { return []rlx.Value{op.Log(c[0])} },
				func(_ *rlx.Graph, c []rlx.Value) []rlx.Value { return []rlx.Value{op.Neg(c[0])} })[0].Named("choice")
		}, rlx.Feed{"p": ir.Scalar(float32(1)), "x": f32s([]int{2}, 1, -1)}, "choice", "If", 1, []int64{1}, nan, nil},
		{"a loop", func(g *rlx.Graph) rlx.Value {
			x := g.Input("x", rlx.F32, rlx.Shape(1))
			return upTo(g.Input("n", rlx.I64, rlx.Shape()), []rlx.Value{x}, nil, op.WhileOptions{}, func(_ *rlx.Graph, _ rlx.Value, c, _ []rlx.Value) []rlx.Value {
				return []rlx.Value{op.Mul(c[0], c[0])}
			})[1]
		}, rlx.Feed{"n": ir.Scalar(int64(9)), "x": f32s([]int{1}, 10)}, "", "While", 0, []int64{0}, inf, nil},
	}
}

// CheckFinite stops at the first node with a NaN or an infinity, and names node, op, element, value and operands with what was in them, on every
// backend: natively, composed, staged, and with memory that the host cannot reach. Without passes the nodes are those of the graph.
func TestCheckFinite(t *testing.T) {
	for _, b := range controlBackends() {
		for _, c := range finiteCases() {
			t.Run(b+"/"+c.name, func(t *testing.T) {
				g := rlx.NewGraph(c.name)
				g.Output("y", c.build(g))
				p := compileGraph(t, g, rlx.On(b), rlx.OnlyPasses())
				for range 2 { // the second run has all that the first one made
					out, err := p.Run(t.Context(), c.feed, rlx.CheckFinite())
					var e *rlx.NonFiniteError
					if !errors.As(err, &e) {
						t.Fatalf("got %v, expected a *NonFiniteError", err)
					}
					checkNonFinite(t, e, &c, b)
					if out != nil {
						t.Error("outputs beside the error")
					}
				}
				if _, err := p.Run(t.Context(), c.feed); err != nil {
					t.Errorf("without CheckFinite: %v", err)
				}
			})
		}
	}
}

func checkNonFinite(t *testing.T, e *rlx.NonFiniteError, c *finiteCase, backend string) {
	t.Helper()
	same := e.Value == c.value || math.IsNaN(e.Value) && math.IsNaN(c.value)
	if e.Backend != backend || c.node != "" && e.Node != c.node || e.Op != c.op || e.Index != c.index || !slices.Equal(e.Coords, c.coords) || !same {
		t.Errorf("got %+v, expected node %s, %s, element %d at %v, %g", e, c.node, c.op, c.index, c.coords, c.value)
	}
	for _, w := range []string{e.Node, c.op, "coordinates", "expected finite"} {
		if !strings.Contains(e.Error(), w) {
			t.Errorf("the text lacks %q: %v", w, e)
		}
	}
	if e.Part != "" { // whose operands are of another op
		return
	}
	for i, want := range c.operands {
		got := e.Operands[i]
		if want.Name != "" && got.Name != want.Name || got.Finite != want.Finite || got.Min != want.Min || got.Max != want.Max || len(got.Type.String()) == 0 {
			t.Errorf("operand %d: got %v, expected %v", i, got, want)
		}
	}
}

// A run whose values are finite gives the bits of a run without CheckFinite, with all passes too, and fused nodes are named as well as others.
func TestCheckFiniteOfFiniteRuns(t *testing.T) {
	for _, b := range controlBackends() {
		g := rlx.NewGraph("g")
		g.Output("y", roots(g))
		p := compileGraph(t, g, rlx.On(b))
		for _, rows := range []int{1, 3, 0} {
			x := make([]float32, 3*rows)
			for i := range x {
				x[i] = float32(i)
			}
			feed := rlx.Feed{"x": f32s([]int{rows, 3}, x...)}
			want, err := p.Run(t.Context(), feed)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Run(t.Context(), feed, rlx.CheckFinite())
			if err != nil || !sameTensor(got["y"], want["y"]) {
				t.Errorf("%s, %d rows: got %s (%v), expected %s", b, rows, tensorText(got["y"]), err, tensorText(want["y"]))
			}
		}
		var e *rlx.NonFiniteError
		if _, err := p.Run(t.Context(), rlx.Feed{"x": f32s([]int{1, 3}, -3, 0, 0)}, rlx.CheckFinite()); !errors.As(err, &e) || e.Node == "" || e.Index != 0 {
			t.Errorf("%s: got %v", b, err)
		}
		var option *rlx.OptionError
		if _, err := p.Run(t.Context(), rlx.Feed{"x": f32s([]int{0, 3})}, rlx.CheckFinite(), rlx.WithProfile(new(rlx.Profile))); !errors.As(err, &option) {
			t.Errorf("%s: with a profile: got %v, expected an *OptionError", b, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Run(ctx, rlx.Feed{"x": f32s([]int{0, 3})}, rlx.CheckFinite()); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: cancelled: got %v", b, err)
		}
	}
}

// What the parts of a composed node hand to each other may be infinite, as the scores of masked keys are: only what leaves the node is judged.
func TestCheckFiniteInsideANode(t *testing.T) {
	inf := float32(math.Inf(-1))
	for _, b := range controlBackends() {
		g := rlx.NewGraph("g")
		g.Output("y", op.Softmax(g.Input("x", rlx.F32, rlx.Shape(1, 3)), 1).Named("weights"))
		p := compileGraph(t, g, rlx.On(b))
		out, err := p.Run(t.Context(), rlx.Feed{"x": f32s([]int{1, 3}, 0, inf, inf)}, rlx.CheckFinite())
		if want := f32s([]int{1, 3}, 1, 0, 0); err != nil || !sameTensor(out["y"], want) {
			t.Errorf("%s: got %v (%v)", b, out, err)
		}
		var e *rlx.NonFiniteError
		if _, err := p.Run(t.Context(), rlx.Feed{"x": f32s([]int{1, 3}, 0, float32(math.NaN()), 0)}, rlx.CheckFinite()); !errors.As(err, &e) || e.Node != "weights" || e.Op != "Softmax" {
			t.Errorf("%s: got %v, expected an error about weights", b, err)
		}
	}
}
