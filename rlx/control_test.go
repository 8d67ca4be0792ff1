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

// emitting is a While of n trips that emits the squares below n.
func emitting(_ *rlx.Graph, n rlx.Value) []rlx.Value {
	return upTo(n, nil, nil, op.WhileOptions{NumEmits: 1}, func(_ *rlx.Graph, n rlx.Value, _, _ []rlx.Value) []rlx.Value {
		return []rlx.Value{op.Mul(n, n)}
	})
}

func squares(n int64) *rlx.Tensor {
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(i * i)
	}
	return i64s(v...)
}

// TestStacks: stacks of any length come back whole and trimmed: where there was memory for fewer rows, where two loops have other lengths, where
// one stack is two outputs, and from runs at the same time.
func TestStacks(t *testing.T) {
	g := rlx.NewGraph("stacks")
	n, m := g.Input("n", rlx.I64, rlx.Shape(1)), g.Input("m", rlx.I64, rlx.Shape(1))
	first := emitting(g, op.Reshape(n))
	second := emitting(g, op.Reshape(m))
	g.Output("a", first[1])
	g.Output("b", first[1])
	g.Output("last", first[0])
	g.Output("c", second[1])
	feed := func(n, m int64) (in, want rlx.Feed) {
		return rlx.Feed{"n": i64s(n), "m": i64s(m)}, rlx.Feed{"a": squares(n), "b": squares(n), "last": ir.Scalar(n), "c": squares(m)}
	}
	for _, b := range controlBackends() {
		p := compileGraph(t, g, rlx.On(b))
		lengths := [][2]int64{{3, 0}, {16, 17}, {100, 5}, {1, 1000}, {0, 0}, {1000, 1}}
		var wg sync.WaitGroup
		for k := range 8 {
			wg.Go(func() {
				for i := range lengths {
					in, want := feed(lengths[(i+k)%len(lengths)][0], lengths[(i+k)%len(lengths)][1])
					out, err := p.Run(t.Context(), in)
					for name := range want {
						if err != nil || len(out) != len(want) || !sameTensor(out[name], want[name]) {
							t.Errorf("%s: %v: %s is %s, error %v", b, lengths[(i+k)%len(lengths)], name, tensorText(out[name]), err)
						}
					}
				}
			})
		}
		wg.Wait()
		in, _ := feed(5, 6)
		if _, err := p.Plan(t.Context(), in); err != nil {
			t.Errorf("%s: plan: %v", b, err)
		}
		r := p.Runner()
		var fe *rlx.FeedError
		if err := r.RunInto(t.Context(), in, rlx.Feed{}); !errors.As(err, &fe) || fe.Name != "a" {
			t.Errorf("%s: RunInto with a length that only a run tells: %v", b, err)
		}
		r.Close()
	}
}

// TestStackMisuse: a length that only a run tells may be that of an output, or of nothing.
func TestStackMisuse(t *testing.T) {
	dim := func(g *rlx.Graph, d rlx.Dim) rlx.Value { return op.Expand(g.Constant(ir.Scalar(float32(1))), d) }
	for what, c := range map[string]struct {
		node  string // which the error names, if there is one
		build func(g *rlx.Graph, n rlx.Value) rlx.Value
	}{
		"read":   {"Activation", func(g *rlx.Graph, n rlx.Value) rlx.Value { return op.Neg(emitting(g, n)[1]) }},
		"as dim": {"Expand", func(g *rlx.Graph, n rlx.Value) rlx.Value { return dim(g, emitting(g, n)[1].Shape()[0]) }},
		"as dim in a body": {"Expand", func(g *rlx.Graph, n rlx.Value) rlx.Value {
			d := emitting(g, n)[1].Shape()[0]
			return op.Scan([]rlx.Value{op.Cast(n, rlx.F32)}, nil, nil, func(g *rlx.Graph, c, _, _ []rlx.Value) []rlx.Value {
				return []rlx.Value{op.Add(c[0], op.Reduce(dim(g, d), "sum", []int{0}, false))}
			}, op.ScanOptions{Length: 2})[0]
		}},
		"read in a body": {"Reduce", func(_ *rlx.Graph, n rlx.Value) rlx.Value {
			return op.Scan([]rlx.Value{n}, nil, nil, func(g *rlx.Graph, c, _, _ []rlx.Value) []rlx.Value {
				return []rlx.Value{op.Reduce(emitting(g, c[0])[1], "sum", []int{0}, false)}
			}, op.ScanOptions{Length: 2})[0]
		}},
		"out of a body": {"Scan", func(_ *rlx.Graph, n rlx.Value) rlx.Value {
			return op.Scan([]rlx.Value{n}, nil, nil, func(g *rlx.Graph, c, _, _ []rlx.Value) []rlx.Value { return emitting(g, c[0]) }, op.ScanOptions{Length: 2})[1]
		}},
		"out of a branch": {"If", func(_ *rlx.Graph, n rlx.Value) rlx.Value {
			return op.If(op.Gt(op.Mul(n, n), 2), []rlx.Value{n}, func(g *rlx.Graph, in []rlx.Value) []rlx.Value { return []rlx.Value{emitting(g, in[0])[1], in[0]} },
				func(g *rlx.Graph, in []rlx.Value) []rlx.Value {
					return []rlx.Value{emitting(g, op.Add(in[0], 1))[1], in[0]}
				})[0]
		}},
		"unused": {"", func(g *rlx.Graph, n rlx.Value) rlx.Value { return emitting(g, n)[0] }},
		"unused in a body": {"", func(_ *rlx.Graph, n rlx.Value) rlx.Value {
			return op.Scan([]rlx.Value{n}, nil, nil, func(g *rlx.Graph, c, _, _ []rlx.Value) []rlx.Value { return emitting(g, c[0])[:1] }, op.ScanOptions{Length: 2})[0]
		}},
	} {
		for _, b := range controlBackends() {
			g := rlx.NewGraph(what)
			n := op.Reshape(g.Input("n", rlx.I64, rlx.Shape(1)))
			g.Output("y", c.build(g, n))
			p, err := rlx.Compile(t.Context(), g, rlx.On(b))
			if c.node == "" {
				if err != nil {
					t.Errorf("%s: %s: %v", b, what, err)
					continue
				}
				checkCases(t, b+": "+what, p, []feedCase{{rlx.Feed{"n": i64s(40)}, rlx.Feed{"y": ir.Scalar(int64(40))}}})
				p.Close()
				continue
			}
			var u *rlx.UnsupportedError
			if !errors.As(err, &u) || !strings.Contains(err.Error(), " ("+c.node+" ") {
				t.Errorf("%s: %s: error %v, expected one that names a node %s", b, what, err, c.node)
			}
		}
	}
}

// endless is a While whose condition holds as long as x is not negative.
func endless(t testing.TB, b string) *rlx.Program {
	g := rlx.NewGraph("endless")
	x := g.Input("x", rlx.F32, rlx.Shape(64))
	out := op.While([]rlx.Value{x}, nil, func(_ *rlx.Graph, c, _ []rlx.Value) rlx.Value {
		return op.Ge(op.Reduce(c[0], "min", []int{0}, false), 0)
	},
		func(_ *rlx.Graph, c, _ []rlx.Value) []rlx.Value { return []rlx.Value{op.Abs(c[0])} }, op.WhileOptions{})
	g.Output("y", out[0])
	p, err := rlx.Compile(t.Context(), g, rlx.On(b))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEndlessLoop: a cancelled loop ends at once, the next run is right, and Close waits for a run that another cancels.
func TestEndlessLoop(t *testing.T) {
	for _, b := range controlBackends() {
		p := endless(t, b)
		zeros := rlx.New(make([]float32, 64), 64)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		run := func() {
			_, err := p.Run(ctx, rlx.Feed{"x": zeros})
			done <- err
		}
		go run()
		time.Sleep(10 * time.Millisecond)
		began := time.Now()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, expected the context's error", b, err)
		}
		if took := time.Since(began); took > 50*time.Millisecond && !conform.Slow(b) {
			t.Errorf("%s: the run ended %s after it was cancelled", b, took)
		}
		minus := rlx.New(slices.Repeat([]float32{-1}, 64), 64)
		out, err := p.Run(t.Context(), rlx.Feed{"x": minus})
		if err != nil || !sameTensor(out["y"], minus) {
			t.Errorf("%s: the run after it: %s, error %v", b, tensorText(out["y"]), err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		go run()
		time.Sleep(5 * time.Millisecond)
		closed := make(chan error)
		go func() { closed <- p.Close() }()
		time.Sleep(5 * time.Millisecond)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, expected the context's error", b, err)
		}
		if err := <-closed; err != nil {
			t.Errorf("%s: close: %v", b, err)
		}
	}
}

// TestBodyErrors: what fails in a body is told of the control node, and what a branch that is not taken would say is not told.
func TestBodyErrors(t *testing.T) {
	g := rlx.NewGraph("lookup")
	x, i, deep := g.Input("x", rlx.F32, rlx.Shape(3)), g.Input("i", rlx.I64, rlx.Shape("t")), g.Input("deep", rlx.F32, rlx.Shape(300))
	out := op.Scan(nil, []rlx.Value{x, op.Gt(op.Reduce(deep, "sum", []int{0}, false), 0)}, []rlx.Value{i}, func(_ *rlx.Graph, _, k, xs []rlx.Value) []rlx.Value {
		return op.If(k[1], []rlx.Value{k[0], xs[0]}, func(_ *rlx.Graph, in []rlx.Value) []rlx.Value { return []rlx.Value{op.Gather(in[0], in[1], 0)} },
			func(_ *rlx.Graph, in []rlx.Value) []rlx.Value { return []rlx.Value{op.Cast(in[1], rlx.F32)} })
	}, op.ScanOptions{})
	out[0].Named("walk")
	g.Output("y", out[0])
	x3 := f32s([]int{3}, 1, 2, 3)
	none := rlx.New(make([]float32, 300), 300)
	some := rlx.New(slices.Repeat([]float32{1}, 300), 300)
	for _, b := range controlBackends() {
		p := compileGraph(t, g, rlx.On(b))
		checkCases(t, b, p, []feedCase{
			{rlx.Feed{"x": x3, "deep": some, "i": i64s(0, 2, -1)}, rlx.Feed{"y": f32s([]int{3}, 1, 3, 3)}},
			{rlx.Feed{"x": x3, "deep": none, "i": i64s(0, 2, 9)}, rlx.Feed{"y": f32s([]int{3}, 0, 2, 9)}},
		})
		_, err := p.Run(t.Context(), rlx.Feed{"x": x3, "deep": some, "i": i64s(0, 2, 9)})
		if err == nil || !strings.Contains(err.Error(), "walk") || !strings.Contains(err.Error(), "Gather: C") {
			t.Errorf("%s: index 9: %v, expected an error that names walk and Gather", b, err)
		}
	}
}

// TestBodiesOfManySizes: a body with symbolic dims among its captures and attributes, one branch of a length that the graph does not know, weights
// that are packed once, and no more memory after a thousand runs than after a few.
func TestBodiesOfManySizes(t *testing.T) {
	const width = 256
	weights := make([]float32, width*width) // y[j] = 2 x[j-1] - x[j]
	for i := range width {
		weights[i*width+(i+1)%width], weights[i*width+i] = 2, -1
	}
	w := rlx.New(weights, width, width)
	g := rlx.NewGraph("sizes")
	x, k := g.Input("x", rlx.F32, rlx.Shape("n", width)), g.Input("k", rlx.F32, rlx.Shape("n", width))
	out := op.Scan([]rlx.Value{x}, []rlx.Value{k}, nil, func(g *rlx.Graph, c, k, _ []rlx.Value) []rlx.Value {
		n := c[0].Shape()[0]
		flat := op.Reshape(op.Expand(op.Reshape(c[0], ir.D(1), n, ir.D(width)), ir.D(2), n, ir.D(width)), n.Mul(ir.D(2)), ir.D(width))
		y := op.MatMul(op.Slice(flat, []rlx.Dim{n}, []rlx.Dim{n.Mul(ir.D(2))}, []int{0}, nil), g.Constant(w))
		return []rlx.Value{op.Sub(y, op.Mul(k[0], y)), op.Reduce(y, "max", []int{1}, false)}
	}, op.ScanOptions{Length: 3})
	g.Output("y", out[0])
	g.Output("max", out[1])
	feed := func(n int) rlx.Feed {
		x, k := make([]float32, n*width), make([]float32, n*width)
		for i := range x {
			x[i], k[i] = float32(i%5)-2, float32(i%2)
		}
		return rlx.Feed{"x": rlx.New(x, n, width), "k": rlx.New(k, n, width)}
	}
	want := map[int]rlx.Feed{} // small integers: exact whatever the order
	for _, n := range []int{1, 2, 5, 9} {
		in := feed(n)
		rows, _ := rlx.Data[float32](in["x"])
		c, highest := slices.Clone(rows), make([]float32, 3*n)
		for s := range 3 {
			y := make([]float32, n*width)
			for r := range n {
				for j := range width {
					y[r*width+j] = 2*c[r*width+(j+width-1)%width] - c[r*width+j]
				}
				highest[s*n+r] = slices.Max(y[r*width : (r+1)*width])
			}
			for i := range y {
				c[i] = y[i] - y[i]*float32(i%2)
			}
		}
		want[n] = rlx.Feed{"y": rlx.New(c, n, width), "max": rlx.New(highest, 3, n)}
	}
	for _, b := range controlBackends() {
		for _, threads := range []int{1, 3} {
			if threads > 1 && b != "cpu" {
				continue
			}
			p := compileGraph(t, g, rlx.On(b), rlx.Threads(threads))
			var held []int64
			for _, n := range []int{5, 1, 2, 9, 5} {
				checkCases(t, fmt.Sprint(b, " on ", threads), p, []feedCase{{feed(n), want[n]}})
				held = append(held, rlx.Stats().Native[b])
			}
			if per := (held[3] - held[0]) / 3; b == "cpu" && per >= width*width*4 {
				t.Errorf("%d bytes more for each specialisation, expected less than the %d of the weights: %v", per, width*width*4, held)
			}
			if b != "cpu" {
				continue
			}
			before := rlx.Stats().Native[b]
			for range 1000 {
				if _, err := p.Run(t.Context(), feed(2)); err != nil {
					t.Fatal(err)
				}
			}
			if after := rlx.Stats().Native[b]; after != before {
				t.Errorf("%d bytes are held after 1000 runs, %d before", after, before)
			}
		}
	}
}

// TestBranchesOfOneLength: a branch whose length the graph knows, beside one whose length it does not.
func TestBranchesOfOneLength(t *testing.T) {
	g := rlx.NewGraph("lengths")
	x := g.Input("x", rlx.F32, rlx.Shape("n"))
	sum := op.Reduce(x, "sum", []int{0}, false)
	out := op.If(op.Gt(sum, 0), []rlx.Value{x}, func(_ *rlx.Graph, in []rlx.Value) []rlx.Value { return []rlx.Value{op.Neg(in[0])} },
		func(g *rlx.Graph, _ []rlx.Value) []rlx.Value {
			return []rlx.Value{g.Constant(rlx.New([]float32{7, 8, 9}, 3))}
		})
	g.Output("y", out[0])
	for _, b := range controlBackends() {
		p := compileGraph(t, g, rlx.On(b))
		checkCases(t, b, p, []feedCase{
			{rlx.Feed{"x": f32s([]int{3}, 1, 2, 3)}, rlx.Feed{"y": f32s([]int{3}, -1, -2, -3)}},
			{rlx.Feed{"x": f32s([]int{3}, -1, 0, 0)}, rlx.Feed{"y": f32s([]int{3}, 7, 8, 9)}},
		})
		if _, err := p.Run(t.Context(), rlx.Feed{"x": f32s([]int{2}, 1, 2)}); err == nil || !strings.Contains(err.Error(), "C3") {
			t.Errorf("%s: branches of 2 and of 3: %v", b, err)
		}
	}
}

// TestCarriesOfEveryDType: two carries change places five times, and both are stacked.
func TestCarriesOfEveryDType(t *testing.T) {
	for _, d := range ir.DTypes() {
		size := 3 * d.Size()
		a, b := make([]byte, size), make([]byte, size)
		for i := range size {
			a[i], b[i] = byte(i%2), byte(1-i%2)
		}
		tensor := func(rows ...[]byte) *rlx.Tensor {
			shape := []int64{int64(len(rows)), 3}
			x, err := ir.FromBytes(d, shape, slices.Concat(rows...))
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		g := rlx.NewGraph(d.String())
		p, q := g.Input("a", d, rlx.Shape(1, 3)), g.Input("b", d, rlx.Shape(1, 3))
		out := op.Scan([]rlx.Value{p, q}, nil, nil, func(_ *rlx.Graph, c, _, _ []rlx.Value) []rlx.Value {
			return []rlx.Value{c[1], c[0], op.Reshape(c[0], ir.D(3))}
		}, op.ScanOptions{Length: 5})
		g.Output("a", out[0])
		g.Output("b", out[1])
		g.Output("ys", out[2])
		for _, name := range controlBackends() {
			checkCases(t, name+" "+d.String(), compileGraph(t, g, rlx.On(name)), []feedCase{
				{rlx.Feed{"a": tensor(a), "b": tensor(b)}, rlx.Feed{"a": tensor(b), "b": tensor(a), "ys": tensor(a, b, a, b, a)}}})
		}
	}
}

// TestRandomBodies: a random node in a body draws for its step what it draws outside, whatever the number of the trip.
func TestRandomBodies(t *testing.T) {
	draw := func(g *rlx.Graph, step rlx.Value) rlx.Value {
		return op.RngUniformWith(g, op.RngUniformAttrs{Shape: rlx.Shape(2), Dtype: rlx.F32, High: 1, Key: 3}, rlx.Value{}, step)
	}
	g := rlx.NewGraph("random")
	n := op.Reshape(g.Input("n", rlx.I64, rlx.Shape(1)))
	out := upTo(n, nil, nil, op.WhileOptions{NumEmits: 1}, func(g *rlx.Graph, n rlx.Value, _, _ []rlx.Value) []rlx.Value {
		return []rlx.Value{draw(g, n)}
	})
	g.Output("y", out[1])
	var rows []rlx.Value
	for i := range 20 {
		rows = append(rows, op.Reshape(draw(g, g.Constant(ir.Scalar(int64(i)))), ir.D(1), ir.D(2)))
	}
	g.Output("z", op.Concat(0, rows...))
	for _, b := range controlBackends() {
		p := compileGraph(t, g, rlx.On(b))
		for _, seed := range []uint64{1, 2} {
			y, err := p.Run(t.Context(), rlx.Feed{"n": i64s(20)}, rlx.Seed(seed))
			if err != nil || !sameTensor(y["y"], y["z"]) {
				t.Errorf("%s: seed %d: %s, expected %s, error %v", b, seed, tensorText(y["y"]), tensorText(y["z"]), err)
			}
		}
	}
}

// nested is k Ifs on in[0] around one another, and -in[1] in the innermost; the other branches give in[1].
func nested(k int) op.Branch {
	return func(_ *rlx.Graph, in []rlx.Value) []rlx.Value {
		if k == 0 {
			return []rlx.Value{op.Neg(in[1])}
		}
		return op.If(in[0], in, nested(k-1), func(_ *rlx.Graph, in []rlx.Value) []rlx.Value { return in[1:] })
	}
}

// TestConstantBranches: what decides is a constant: the other branch may be ill-typed, and a loop of a known number of trips is a Scan, of which
// the stack may be read. However deep that goes.
func TestConstantBranches(t *testing.T) {
	yes := func(g *rlx.Graph) rlx.Value { return g.Constant(ir.Scalar(true)) }
	g := rlx.NewGraph("constant")
	x := g.Input("x", rlx.I64, rlx.Shape(2))
	g.Output("deep", nested(25)(g, []rlx.Value{yes(g), x})[0])
	g.Output("other", op.If(yes(g), []rlx.Value{x}, func(_ *rlx.Graph, in []rlx.Value) []rlx.Value { return in },
		func(_ *rlx.Graph, in []rlx.Value) []rlx.Value { return []rlx.Value{op.Concat(7, in[0], in[0])} })[0])
	out := op.While([]rlx.Value{x}, nil, func(g *rlx.Graph, _, _ []rlx.Value) rlx.Value { return yes(g) },
		func(_ *rlx.Graph, c, _ []rlx.Value) []rlx.Value { return []rlx.Value{op.Mul(c[0], 2), c[0]} }, op.WhileOptions{Bounded: true, MaxTrips: 5, NumEmits: 1})
	g.Output("sum", op.Reduce(out[1], "sum", []int{0}, false))
	for _, b := range controlBackends() {
		p := compileGraph(t, g, rlx.On(b))
		checkCases(t, b, p, []feedCase{{rlx.Feed{"x": i64s(1, 3)}, rlx.Feed{"deep": i64s(-1, -3), "other": i64s(1, 3), "sum": i64s(31, 93)}}})
		placed, err := p.Placement()
		if err != nil || slices.ContainsFunc(placed, func(n rlx.Placed) bool { return n.Op == "If" || n.Op == "While" }) {
			t.Errorf("%s: placement %+v, error %v: expected no If and no While", b, placed, err)
		}
	}
}

// TestStagedBodies: on a device that has its control flow staged, the node runs on the host, its body with it; profile and counters have it once,
// and an If around it too deep for command words says so.
func TestStagedBodies(t *testing.T) {
	conform.RegisterMasks()
	g := rlx.NewGraph("staged")
	x := g.Input("x", rlx.F32, rlx.Shape(2))
	out := op.While([]rlx.Value{op.Neg(x)}, nil, func(_ *rlx.Graph, c, _ []rlx.Value) rlx.Value {
		return op.Lt(op.Reduce(c[0], "sum", []int{0}, false), 10)
	},
		func(_ *rlx.Graph, c, _ []rlx.Value) []rlx.Value { return []rlx.Value{op.Add(c[0], 4)} }, op.WhileOptions{})
	out[0].Named("loop")
	g.Output("y", op.Neg(out[0]))
	want := feedCase{rlx.Feed{"x": f32s([]int{2}, 1, 2)}, rlx.Feed{"y": f32s([]int{2}, -7, -6)}}
	places := map[string]string{"ref": "native", "cpu": "native", "vulkan": "host", "ref-host": "host"}
	for _, b := range controlBackends() {
		p := compileGraph(t, g, rlx.On(b))
		checkCases(t, b, p, []feedCase{want})
		placed, err := p.Placement()
		i := slices.IndexFunc(placed, func(n rlx.Placed) bool { return n.Node == "loop" })
		if err != nil || i < 0 || places[b] != "" && placed[i].Place != places[b] {
			t.Errorf("%s: placed %+v, error %v, expected loop as %s", b, placed, err, places[b])
		}
		var prof rlx.Profile
		if _, err := p.Run(t.Context(), want.in, rlx.WithProfile(&prof)); err != nil {
			t.Error(err)
		}
		loops := 0
		for _, s := range prof.Steps {
			if s.Node == "loop" {
				loops++
			}
		}
		if loops != 1 {
			t.Errorf("%s: the profile has %d steps of loop, expected 1: %+v", b, loops, prof.Steps)
		}
	}
}

// TestDeepControl: control flow as deep as command words go, and deeper.
func TestDeepControl(t *testing.T) {
	deep := func(depth int) *rlx.Graph {
		g := rlx.NewGraph("deep")
		x := g.Input("x", rlx.F32, rlx.Shape(100))
		sum := op.Reduce(x, "sum", []int{0}, false)
		g.Output("y", nested(depth)(g, []rlx.Value{op.Gt(sum, 0), sum})[0])
		return g
	}
	feed := rlx.Feed{"x": rlx.New(slices.Repeat([]float32{1}, 100), 100)}
	for _, b := range backends() {
		checkCases(t, b, compileGraph(t, deep(32), rlx.On(b)), []feedCase{{feed, rlx.Feed{"y": ir.Scalar(float32(-100))}}})
		p, err := rlx.Compile(t.Context(), deep(33), rlx.On(b))
		if err == nil { // on a host that reads no words
			checkCases(t, b, p, []feedCase{{feed, rlx.Feed{"y": ir.Scalar(float32(-100))}}})
			p.Close()
		} else if !strings.Contains(err.Error(), "deeper than 32") {
			t.Errorf("%s: 33 deep: %v", b, err)
		}
	}
}
