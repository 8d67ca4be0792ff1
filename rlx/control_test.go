package rlx_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// controlBackends are those of the build, and ref with capabilities taken away.
func controlBackends() []string {
	conform.RegisterMasks()
	return append(slices.Clone(backends()), conform.Masks...)
}

func compileGraph(t testing.TB, g *rlx.Graph, opts ...rlx.Option) *rlx.Program {
	t.Helper()
	p, err := rlx.Compile(t.Context(), g, append(opts, rlx.Verify())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// sameTensor compares types and bits.
func sameTensor(got, want *rlx.Tensor) bool {
	return got != nil && got.DType() == want.DType() && slices.Equal(got.Shape(), want.Shape()) && slices.Equal(got.Bytes(), want.Bytes())
}

func tensorText(t *rlx.Tensor) string {
	if t == nil {
		return "nothing"
	}
	if t.DType() == rlx.F32 {
		v, _ := rlx.Data[float32](t)
		return fmt.Sprintf("f32%v %v", t.Shape(), v)
	}
	return fmt.Sprintf("%s%v %x", t.DType(), t.Shape(), t.Bytes())
}

func f32s(shape []int, v ...float32) *rlx.Tensor { return rlx.New(v, shape...) }
func i64s(v ...int64) *rlx.Tensor                { return rlx.New(v, len(v)) }

// upTo is a While from counter 0 to limit, which both are rank 0 and i64; body gets the carries behind the counter and all captures.
func upTo(limit rlx.Value, init, captures []rlx.Value, o op.WhileOptions, body func(g *rlx.Graph, n rlx.Value, carries, captures []rlx.Value) []rlx.Value) []rlx.Value {
	zero := limit.Node().Graph().Constant(ir.Scalar(int64(0)))
	return op.While(append([]rlx.Value{zero}, init...), append([]rlx.Value{limit}, captures...),
		func(_ *rlx.Graph, c, k []rlx.Value) rlx.Value { return op.Lt(c[0], k[0]) },
		func(g *rlx.Graph, c, k []rlx.Value) []rlx.Value {
			return append([]rlx.Value{op.Add(c[0], 1)}, body(g, c[0], c[1:], k[1:])...)
		}, o)
}

type feedCase struct{ in, want rlx.Feed }

// TestControlByHand runs small graphs of all three kinds on every backend, with each pass switched off in turn on ref and cpu.
func TestControlByHand(t *testing.T) {
	scalar := func(n int64) *rlx.Tensor { return ir.Scalar(n) }
	for name, c := range map[string]struct {
		build func(g *rlx.Graph)
		cases []feedCase
	}{
		"swap": {func(g *rlx.Graph) { // (a, b) = (b, a), and a is emitted
			n, a, b := g.Input("n", rlx.I64, nil), g.Input("a", rlx.F32, rlx.Shape(2)), g.Input("b", rlx.F32, rlx.Shape(2))
			out := upTo(n, []rlx.Value{a, b}, nil, op.WhileOptions{}, func(_ *rlx.Graph, _ rlx.Value, c, _ []rlx.Value) []rlx.Value {
				return []rlx.Value{c[1], c[0]}
			})
			g.Output("x", out[1])
			g.Output("y", out[2])
		}, []feedCase{
			{rlx.Feed{"n": scalar(0), "a": f32s([]int{2}, 1, 2), "b": f32s([]int{2}, 3, 4)}, rlx.Feed{"x": f32s([]int{2}, 1, 2), "y": f32s([]int{2}, 3, 4)}},
			{rlx.Feed{"n": scalar(1), "a": f32s([]int{2}, 1, 2), "b": f32s([]int{2}, 3, 4)}, rlx.Feed{"x": f32s([]int{2}, 3, 4), "y": f32s([]int{2}, 1, 2)}},
			{rlx.Feed{"n": scalar(4), "a": f32s([]int{2}, 1, 2), "b": f32s([]int{2}, 3, 4)}, rlx.Feed{"x": f32s([]int{2}, 1, 2), "y": f32s([]int{2}, 3, 4)}},
		}},
		"rotate through a shared value": {func(g *rlx.Graph) { // an input returned twice, and a capture returned
			n, a, k := g.Input("n", rlx.I64, nil), g.Input("a", rlx.F32, rlx.Shape(2)), g.Input("k", rlx.F32, rlx.Shape(2))
			out := upTo(n, []rlx.Value{a, a, a}, []rlx.Value{k}, op.WhileOptions{}, func(_ *rlx.Graph, _ rlx.Value, c, k []rlx.Value) []rlx.Value {
				return []rlx.Value{k[0], c[0], c[0]}
			})
			for i, v := range out[1:] {
				g.Output(fmt.Sprint("y", i), v)
			}
		}, []feedCase{
			{rlx.Feed{"n": scalar(1), "a": f32s([]int{2}, 1, 2), "k": f32s([]int{2}, 5, 6)}, rlx.Feed{"y0": f32s([]int{2}, 5, 6), "y1": f32s([]int{2}, 1, 2), "y2": f32s([]int{2}, 1, 2)}},
			{rlx.Feed{"n": scalar(2), "a": f32s([]int{2}, 1, 2), "k": f32s([]int{2}, 5, 6)}, rlx.Feed{"y0": f32s([]int{2}, 5, 6), "y1": f32s([]int{2}, 5, 6), "y2": f32s([]int{2}, 5, 6)}},
		}},
		"while in scan in if": {func(g *rlx.Graph) { // sum over rows of (row + 2^k - 1, k the number of the row's trips)
			p, x, c := g.Input("p", rlx.Bool, rlx.Shape(1)), g.Input("x", rlx.I64, rlx.Shape("t")), g.Input("c", rlx.I64, nil)
			out := op.If(p, []rlx.Value{x, c}, func(_ *rlx.Graph, in []rlx.Value) []rlx.Value {
				return op.Scan(in[1:], nil, in[:1], func(_ *rlx.Graph, c, _, x []rlx.Value) []rlx.Value {
					w := upTo(x[0], c, nil, op.WhileOptions{}, func(_ *rlx.Graph, n rlx.Value, c, _ []rlx.Value) []rlx.Value {
						return []rlx.Value{op.Add(op.Mul(c[0], 2), n)}
					})
					return []rlx.Value{w[1], op.Neg(w[1])}
				}, op.ScanOptions{Reverse: true})
			}, func(_ *rlx.Graph, in []rlx.Value) []rlx.Value { return []rlx.Value{in[1], in[0]} })
			g.Output("c", out[0])
			g.Output("y", out[1])
		}, []feedCase{
			{rlx.Feed{"p": rlx.New([]bool{true}, 1), "x": i64s(2, 0, 3), "c": scalar(1)}, // 1 -> 2+0, 4+1, 10+2 = 12; 12; -> 24, 49
				rlx.Feed{"c": scalar(49), "y": i64s(-49, -12, -12)}},
			{rlx.Feed{"p": rlx.New([]bool{false}, 1), "x": i64s(2, 0, 3), "c": scalar(1)}, rlx.Feed{"c": scalar(1), "y": i64s(2, 0, 3)}},
			{rlx.Feed{"p": rlx.New([]bool{true}, 1), "x": i64s(), "c": scalar(7)}, rlx.Feed{"c": scalar(7), "y": i64s()}},
		}},
		"checkpoints": {func(g *rlx.Graph) {
			x, c := g.Input("x", rlx.F32, rlx.Shape("t")), g.Input("c", rlx.F32, nil)
			for i, k := range []int64{2, 3, 100} {
				out := op.Scan([]rlx.Value{c}, nil, []rlx.Value{x}, func(_ *rlx.Graph, c, _, x []rlx.Value) []rlx.Value {
					return []rlx.Value{op.Add(c[0], x[0]), c[0]}
				}, op.ScanOptions{Checkpoints: k, Reverse: i == 2})
				g.Output(fmt.Sprint("y", i), out[1])
				g.Output(fmt.Sprint("k", i), out[2])
			}
		}, []feedCase{
			{rlx.Feed{"x": f32s([]int{5}, 1, 2, 3, 4, 5), "c": ir.Scalar(float32(10))}, rlx.Feed{
				"y0": f32s([]int{5}, 10, 11, 13, 16, 20), "k0": f32s([]int{2}, 10, 13), // steps 0, 2
				"y1": f32s([]int{5}, 10, 11, 13, 16, 20), "k1": f32s([]int{3}, 10, 11, 16), // steps 0, 1, 3
				"y2": f32s([]int{5}, 24, 22, 19, 15, 10), "k2": f32s([]int{5}, 10, 15, 19, 22, 24)}},
			{rlx.Feed{"x": f32s([]int{0}), "c": ir.Scalar(float32(10))}, rlx.Feed{
				"y0": f32s([]int{0}), "k0": f32s([]int{0}), "y1": f32s([]int{0}), "k1": f32s([]int{0}), "y2": f32s([]int{0}), "k2": f32s([]int{0})}},
		}},
		"no trips": {func(g *rlx.Graph) { // max_trips 0, and a condition that is false or NaN at once
			a := g.Input("a", rlx.F32, rlx.Shape(1))
			keep := func(_ *rlx.Graph, c, _ []rlx.Value) []rlx.Value { return []rlx.Value{op.Add(c[0], 1), c[0]} }
			less := func(_ *rlx.Graph, c, _ []rlx.Value) rlx.Value { return op.Lt(c[0], 3) }
			zero := op.While([]rlx.Value{a}, nil, less, keep, op.WhileOptions{Bounded: true, NumEmits: 1})
			some := op.While([]rlx.Value{a}, nil, less, keep, op.WhileOptions{Bounded: true, MaxTrips: 2, NumEmits: 1})
			g.Output("zero", zero[0])
			g.Output("none", zero[1])
			g.Output("some", some[0])
			g.Output("rows", some[1])
		}, []feedCase{
			{rlx.Feed{"a": f32s([]int{1}, 0)}, rlx.Feed{"zero": f32s([]int{1}, 0), "none": f32s([]int{0, 1}), "some": f32s([]int{1}, 2), "rows": f32s([]int{2, 1}, 0, 1)}},
			{rlx.Feed{"a": f32s([]int{1}, 2)}, rlx.Feed{"zero": f32s([]int{1}, 2), "none": f32s([]int{0, 1}), "some": f32s([]int{1}, 3), "rows": f32s([]int{1, 1}, 2)}},
			{rlx.Feed{"a": f32s([]int{1}, 9)}, rlx.Feed{"zero": f32s([]int{1}, 9), "none": f32s([]int{0, 1}), "some": f32s([]int{1}, 9), "rows": f32s([]int{0, 1})}},
			{rlx.Feed{"a": f32s([]int{1}, float32(math.NaN()))}, rlx.Feed{"zero": f32s([]int{1}, float32(math.NaN())), "none": f32s([]int{0, 1}),
				"some": f32s([]int{1}, float32(math.NaN())), "rows": f32s([]int{0, 1})}},
		}},
		"rows of no bytes": {func(g *rlx.Graph) { // emitted, scanned, stacked, carried and saved
			n, a, x := g.Input("n", rlx.I64, nil), g.Input("a", rlx.C64, rlx.Shape(2, 0)), g.Input("x", rlx.F32, rlx.Shape("t", 0))
			out := upTo(n, []rlx.Value{a}, nil, op.WhileOptions{NumEmits: 2}, func(_ *rlx.Graph, n rlx.Value, c, _ []rlx.Value) []rlx.Value {
				return []rlx.Value{c[0], c[0], n}
			})
			g.Output("a", out[1])
			g.Output("as", out[2])
			g.Output("ns", out[3])
			s := op.Scan([]rlx.Value{a}, nil, []rlx.Value{x}, func(_ *rlx.Graph, c, _, x []rlx.Value) []rlx.Value {
				return []rlx.Value{c[0], op.Neg(x[0])}
			}, op.ScanOptions{Checkpoints: 2})
			g.Output("s", s[1])
			g.Output("k", s[2])
		}, []feedCase{{
			rlx.Feed{"n": scalar(3), "a": rlx.New([]complex64{}, 2, 0), "x": f32s([]int{5, 0})},
			rlx.Feed{"a": rlx.New([]complex64{}, 2, 0), "as": rlx.New([]complex64{}, 3, 2, 0), "ns": i64s(0, 1, 2), "s": f32s([]int{5, 0}), "k": rlx.New([]complex64{}, 2, 2, 0)},
		}}},
		"more than 16 operands": {func(g *rlx.Graph) { // of the node, of a node in its body, and of an If in that body
			x := g.Input("x", rlx.F32, rlx.Shape(2))
			var many []rlx.Value
			for i := range 20 {
				many = append(many, op.Mul(x, i))
			}
			out := op.Scan(many, many, nil, func(_ *rlx.Graph, c, k, _ []rlx.Value) []rlx.Value {
				all := op.Concat(0, append(append([]rlx.Value{}, c...), k...)...) // 80 elements
				sum := op.Reduce(all, "sum", []int{0}, false)
				y := op.If(op.Gt(sum, 0), append(append([]rlx.Value{}, k...), sum), func(_ *rlx.Graph, in []rlx.Value) []rlx.Value {
					return []rlx.Value{op.Add(op.Concat(0, in[:20]...), in[20])}
				}, func(_ *rlx.Graph, in []rlx.Value) []rlx.Value { return []rlx.Value{op.Concat(0, in[:20]...)} })
				return append(append(append([]rlx.Value{}, c[1:]...), c[0]), y...)
			}, op.ScanOptions{Length: 2})
			g.Output("first", out[0])
			g.Output("y", out[20])
		}, []feedCase{
			{rlx.Feed{"x": f32s([]int{2}, 1, -1)}, rlx.Feed{"first": f32s([]int{2}, 2, -2), "y": rlx.New(twice(func(i int) float32 { return float32(i/2) * float32(1-i%2*2) }), 2, 40)}},
			{rlx.Feed{"x": f32s([]int{2}, 1, 0)}, rlx.Feed{"first": f32s([]int{2}, 2, 0), "y": rlx.New(twice(func(i int) float32 { return float32(i/2)*float32(1-i%2) + 380 }), 2, 40)}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := rlx.NewGraph(name)
			c.build(g)
			for _, b := range controlBackends() {
				checkCases(t, b, compileGraph(t, g, rlx.On(b)), c.cases)
				if b != "ref" && b != "cpu" {
					continue
				}
				for _, off := range []string{"dce", "cse", "fold", "inline"} {
					checkCases(t, b+" without "+off, compileGraph(t, g, rlx.On(b), rlx.WithoutPasses(off)), c.cases)
				}
			}
		})
	}
}

// twice are two rows of 40.
func twice(at func(i int) float32) []float32 {
	v := make([]float32, 80)
	for i := range v {
		v[i] = at(i % 40)
	}
	return v
}

func checkCases(t *testing.T, what string, p *rlx.Program, cases []feedCase) {
	t.Helper()
	for i, c := range cases {
		for range 2 {
			out, err := p.Run(t.Context(), c.in)
			if err != nil {
				t.Errorf("%s: case %d: %v", what, i, err)
				return
			}
			if len(out) != len(c.want) {
				t.Errorf("%s: case %d: %d outputs, expected %d", what, i, len(out), len(c.want))
			}
			for name, want := range c.want {
				if !sameTensor(out[name], want) {
					t.Errorf("%s: case %d: %s is %s, expected %s", what, i, name, tensorText(out[name]), tensorText(want))
				}
			}
		}
	}
}

var _ = errors.Is
var _ = strings.Contains
var _ sync.WaitGroup
var _ = time.Now
var _ context.Context
