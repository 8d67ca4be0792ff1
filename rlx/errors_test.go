package rlx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/cgobench"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// badUse is a use of the public interface that must end in an error.
type badUse struct {
	name string
	use  func(t *testing.T) error
	want fault
}

// fault compares the fields of an error with those expected, and returns what its text must hold.
type fault func(t *testing.T, err error) (words []string)

// TestBadUses checks that each bad use gives a typed error whose fields and text say where, what was found and what was expected, and that
// no panic comes out.
func TestBadUses(t *testing.T) {
	names := map[string]bool{}
	for _, group := range []struct {
		name  string
		cases []badUse
		least int
	}{
		{"graph", badGraphs(), 50},
		{"feed", badFeeds(), 15},
		{"run", badRuns(), 6},
		{"option", badOptions(), 12},
		{"file", badFiles(), 15},
	} {
		if len(group.cases) < group.least {
			t.Errorf("%s: %d cases, expected at least %d", group.name, len(group.cases), group.least)
		}
		for _, c := range group.cases {
			name := group.name + "/" + c.name
			if names[name] {
				t.Errorf("%s: two cases of this name", name)
			}
			names[name] = true
			t.Run(name, func(t *testing.T) { c.check(t) })
		}
	}
}

func (c badUse) check(t *testing.T) {
	err := noPanic(t, c.use)
	if err == nil {
		t.Fatal("no error")
	}
	for _, w := range c.want(t, err) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("text lacks %q: %v", w, err)
		}
	}
}

func noPanic(t *testing.T, use func(t *testing.T) error) error {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return use(t)
}

// as is errors.As that fails the test.
func as[E error](t *testing.T, err error) E {
	t.Helper()
	var e E
	if !errors.As(err, &e) {
		t.Fatalf("no %T in an error of type %T: %v", e, err, err)
	}
	return e
}

func sameText(t *testing.T, field, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %q, expected %q", field, got, want)
	}
}

// nodeFields holds a *ShapeError against what it must say of its node, and returns the words that its text needs.
func nodeFields(t *testing.T, err error, op, constraint, got, expected string, operands []string) []string {
	e := as[*rlx.ShapeError](t, err)
	sameText(t, "Op", e.Op, op)
	sameText(t, "Constraint", e.Constraint, constraint)
	sameText(t, "Got", e.Got, got)
	sameText(t, "Expected", e.Expected, expected)
	sameText(t, "Operands", typeList(e.Operands), strings.Join(operands, ", "))
	return append(slices.Clone(operands), got, expected)
}

// wantNode expects a *ShapeError: about a node of kind op with operands of these types, which breaks a constraint of its specification.
func wantNode(op, constraint, got, expected string, operands ...string) fault {
	return func(t *testing.T, err error) []string {
		nodeFields(t, err, op, constraint, got, expected, operands)
		e := as[*rlx.ShapeError](t, err)
		place := e.Pos
		if e.Node == "" && !strings.HasPrefix(e.Pos, "errors_graphs_test.go:") {
			t.Errorf("neither node nor place: %+v", e)
		} else if place == "" {
			place = e.Node
		}
		return slices.Concat([]string{op, constraint, expected, place}, operands)
	}
}

// wantWithin expects the error of a node of kind op about one inside its sub-graph.
func wantWithin(op string, inner fault) fault {
	return func(t *testing.T, err error) []string {
		e := as[*rlx.ShapeError](t, err)
		sameText(t, "Op", e.Op, op)
		return append(inner(t, e.Err), op)
	}
}

// wantGraph expects a *ShapeError about what the graph declares: it is no single node's.
func wantGraph(op, graph, expected string, words ...string) fault {
	return func(t *testing.T, err error) []string {
		e := as[*rlx.ShapeError](t, err)
		sameText(t, "Op", e.Op, op)
		sameText(t, "Graph", e.Graph, graph)
		sameText(t, "Expected", e.Expected, expected)
		if e.Got == "" {
			t.Errorf("Got is empty: %+v", e)
		}
		return append(words, e.Got, expected)
	}
}

func typeList(types []ir.Type) string {
	var list []string
	for _, t := range types {
		if t.DType == ir.Invalid {
			list = append(list, "none")
		} else {
			list = append(list, t.String())
		}
	}
	return strings.Join(list, ", ")
}

// wantFeed expects a *FeedError.
func wantFeed(name, what, got, expected string) fault {
	return func(t *testing.T, err error) []string {
		e := as[*rlx.FeedError](t, err)
		sameText(t, "Name", e.Name, name)
		sameText(t, "What", e.What, what)
		sameText(t, "Got", e.Got, got)
		sameText(t, "Expected", e.Expected, expected)
		return []string{name, what, "got " + got, "expected " + expected}
	}
}

// wantOption expects an *OptionError.
func wantOption(name, got, want string) fault {
	return func(t *testing.T, err error) []string {
		e := as[*rlx.OptionError](t, err)
		sameText(t, "Option", e.Option, name)
		sameText(t, "Got", e.Got, got)
		if !strings.HasPrefix(e.Want, want) {
			t.Errorf("Want is %q, expected %q", e.Want, want)
		}
		return []string{name, fmt.Sprintf("got %q", got), "expected " + want}
	}
}

// wantTensor expects a *TensorError.
func wantTensor(what, got, expected string) fault {
	return func(t *testing.T, err error) []string {
		e := as[*rlx.TensorError](t, err)
		sameText(t, "What", e.What, what)
		sameText(t, "Got", e.Got, got)
		sameText(t, "Expected", e.Expected, expected)
		return []string{what, "got " + got, "expected " + expected}
	}
}

// wantIs expects an error that wraps target.
func wantIs(target error, words ...string) fault {
	return func(t *testing.T, err error) []string {
		if !errors.Is(err, target) {
			t.Errorf("got %v, expected %v", err, target)
		}
		return words
	}
}

// wantBoth expects what two faults do.
func wantBoth(a, b fault) fault {
	return func(t *testing.T, err error) []string { return append(a(t, err), b(t, err)...) }
}

const digitsModel = "../cmd/rlx/demo/digits.onnx"

// small is y = x + w with x f32[n, 3].
func small(t testing.TB, opts ...rlx.Option) *rlx.Program {
	t.Helper()
	p, err := rlx.Compile(context.Background(), addGraph("small"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func addGraph(name string) *rlx.Graph {
	g := rlx.NewGraph(name)
	x := g.Input("x", rlx.F32, rlx.Shape("n", 3))
	g.Output("y", op.Add(x, g.Param("w", rlx.New([]float32{1, 2, 3}, 3))))
	return g
}

// zeros is a tensor of zeros.
func zeros[T ir.Elem](dims ...int) *rlx.Tensor {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return rlx.New(make([]T, n), dims...)
}

func badFeeds() []badUse {
	x := zeros[float32](2, 3)
	run := func(feed rlx.Feed) func(*testing.T) error {
		return func(t *testing.T) error {
			_, err := small(t).Run(t.Context(), feed)
			return err
		}
	}
	into := func(out rlx.Feed) func(*testing.T) error {
		return func(t *testing.T) error {
			r := small(t).Runner()
			defer r.Close()
			return r.RunInto(t.Context(), rlx.Feed{"x": x}, out)
		}
	}
	const declared = "f32[n, 3]"
	short := rlx.New(make([]float32, 5), 2, 3)
	memory := make([]float32, 12)
	return []badUse{
		{"unknown name", run(rlx.Feed{"x": x, "z": x}), wantFeed("z", "unknown name", "a tensor", "one of x")},
		{"missing", run(rlx.Feed{}), wantFeed("x", "missing", "no tensor", declared)},
		{"nil feed", run(nil), wantFeed("x", "missing", "no tensor", declared)},
		{"nil tensor", run(rlx.Feed{"x": nil}), wantFeed("x", "missing", "no tensor", declared)},
		{"name of another case", run(rlx.Feed{"X": x}), wantFeed("x", "missing", "no tensor", declared)},
		{"dtype", run(rlx.Feed{"x": zeros[int64](2, 3)}), wantFeed("x", "dtype", "i64[2 3]", declared)},
		{"rank", run(rlx.Feed{"x": zeros[float32](6)}), wantFeed("x", "rank", "f32[6]", declared)},
		{"rank 0", run(rlx.Feed{"x": zeros[float32]()}), wantFeed("x", "rank", "f32[]", declared)},
		{"dim", run(rlx.Feed{"x": zeros[float32](2, 4)}), wantFeed("x", "dim 1", "f32[2 4]", declared)},
		{"data do not fit the shape", run(rlx.Feed{"x": short}), wantBoth(
			wantFeed("x", "tensor", "tensor f32[2 3]: got 5 elements, expected 6", declared), wantTensor("tensor f32[2 3]", "5 elements", "6"))},
		{"negative dim", run(rlx.Feed{"x": rlx.New([]float32{}, -1, 3)}), wantBoth(
			wantFeed("x", "tensor", "tensor of shape [-1 3]: got negative dim -1, expected dims >= 0", declared), wantTensor("tensor of shape [-1 3]", "negative dim -1", "dims >= 0"))},
		{"one symbol, two values", func(t *testing.T) error {
			g := rlx.NewGraph("two")
			g.Output("y", op.Add(g.Input("a", rlx.F32, rlx.Shape("n")), g.Input("b", rlx.F32, rlx.Shape("n"))))
			return runOf(t, g, rlx.Feed{"a": zeros[float32](2), "b": zeros[float32](3)})
		}, wantFeed("b", "symbol n", "f32[3]", "f32[n] with n = 2")},
		{"dim that is an expression", func(t *testing.T) error {
			g := rlx.NewGraph("twice")
			a, b := g.Input("a", rlx.F32, rlx.Shape("n")), g.Input("b", rlx.F32, rlx.Shape("2*n"))
			g.Output("y", op.Concat(0, a, b))
			return runOf(t, g, rlx.Feed{"a": zeros[float32](2), "b": zeros[float32](5)})
		}, wantFeed("b", "dim 0", "f32[5]", "2*n = 4")},
		{"output of another dtype", into(rlx.Feed{"y": zeros[float64](2, 3)}), wantFeed("y", "output", "f64[2 3]", "f32[2 3]")},
		{"output of another shape", into(rlx.Feed{"y": zeros[float32](3, 2)}), wantFeed("y", "output", "f32[3 2]", "f32[2 3]")},
		{"missing output", into(rlx.Feed{}), wantFeed("y", "missing", "no tensor", "f32[2 3]")},
		{"nil outputs", into(nil), wantFeed("y", "missing", "no tensor", "f32[2 3]")},
		{"output that could not be made", into(rlx.Feed{"y": short}), wantBoth(
			wantFeed("y", "tensor", "tensor f32[2 3]: got 5 elements, expected 6", "f32[2 3]"), wantTensor("tensor f32[2 3]", "5 elements", "6"))},
		{"unknown output", into(rlx.Feed{"y": zeros[float32](2, 3), "z": x}), wantFeed("z", "unknown name", "a tensor", "one of y")},
		{"output in the memory of an input", func(t *testing.T) error {
			r := small(t).Runner()
			defer r.Close()
			return r.RunInto(t.Context(), rlx.Feed{"x": rlx.New(memory[:6], 2, 3)}, rlx.Feed{"y": rlx.New(memory[3:9], 2, 3)})
		}, wantFeed("y", "memory", "memory shared with x", "memory of its own")},
		{"plan of a wrong feed", func(t *testing.T) error {
			_, err := small(t).Plan(t.Context(), rlx.Feed{"x": zeros[float32](2, 4)})
			return err
		}, wantFeed("x", "dim 1", "f32[2 4]", declared)},
		{"typed view of another dtype", func(*testing.T) error { _, err := rlx.Data[int32](x); return err }, wantTensor("tensor f32[2, 3]", "dtype f32", "i32")},
		{"typed view of nothing", func(*testing.T) error { _, err := rlx.Data[int32](nil); return err }, wantTensor("tensor", "nil", "a tensor")},
		{"closed program", func(t *testing.T) error {
			p := small(t)
			for range 2 {
				if err := p.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
			_, err := p.Run(t.Context(), rlx.Feed{"x": x})
			return err
		}, wantIs(rlx.ErrClosed, "closed")},
		{"closed runner", func(t *testing.T) error {
			r := small(t).Runner()
			if err := r.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			return r.RunInto(t.Context(), rlx.Feed{"x": x}, rlx.Feed{"y": zeros[float32](2, 3)})
		}, wantIs(rlx.ErrClosed, "closed")},
		{"cancelled before the run", func(t *testing.T) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := small(t).Run(ctx, rlx.Feed{"x": x})
			return err
		}, wantIs(context.Canceled, context.Canceled.Error())},
	}
}

// runOf compiles g and runs it on feed.
func runOf(t *testing.T, g *rlx.Graph, feed rlx.Feed, opts ...rlx.Option) error {
	p, err := rlx.Compile(t.Context(), g, opts...)
	if err != nil {
		return err
	}
	defer p.Close()
	_, err = p.Run(t.Context(), feed)
	return err
}

func badOptions() []badUse {
	compile := func(opts ...rlx.Option) func(*testing.T) error {
		return func(t *testing.T) error {
			p, err := rlx.Compile(t.Context(), addGraph("options"), opts...)
			if err == nil {
				p.Close()
			}
			return err
		}
	}
	env := func(name, value string) func(*testing.T) error {
		return func(t *testing.T) error {
			t.Setenv(name, value)
			return compile()(t)
		}
	}
	threads := "a number of threads from 1 on"
	return []badUse{
		{"no threads", compile(rlx.Threads(0)), wantOption("Threads", "0", threads)},
		{"negative threads", compile(rlx.Threads(-3)), wantOption("Threads", "-3", threads)},
		{"RLX_NUM_THREADS is no number", env("RLX_NUM_THREADS", "four"), wantOption("RLX_NUM_THREADS", "four", threads)},
		{"RLX_NUM_THREADS is 0", env("RLX_NUM_THREADS", "0"), wantOption("RLX_NUM_THREADS", "0", threads)},
		{"unknown pass switched off", compile(rlx.WithoutPasses("nosuch")), wantOption("passes", "nosuch", "one of ")},
		{"unknown pass alone", compile(rlx.OnlyPasses("nosuch")), wantOption("passes", "nosuch", "one of ")},
		{"unknown pass in RLX_PASSES", env("RLX_PASSES", "-nosuch"), wantOption("passes", "nosuch", "one of ")},
		{"a pass that is needed", compile(rlx.WithoutPasses("legalize")), wantOption("passes", "-legalize", "a pass that can be spared")},
		{"no backend", compile(rlx.Prefer()), wantOption("Prefer", "", "the name of a backend")},
		{"device that is no number", compile(rlx.On("ref:x")), wantOption("backend", "ref:x", "NAME or NAME:INDEX")},
		{"device that is not there", compile(rlx.On("ref:7")), func(t *testing.T, err error) []string {
			e := as[*backend.Error](t, err)
			sameText(t, "Backend", e.Backend, "ref")
			sameText(t, "Code", e.Code.String(), backend.NoDevice.String())
			return []string{"ref", "7", "one"}
		}},
		{"backend not compiled in", compile(rlx.On("cuda")), wantIs(rlx.ErrNotCompiledIn, "cuda", "not compiled in", "expected one of")},
		{"nothing that works among the preferred", compile(rlx.Prefer("cuda", "metal")), wantIs(rlx.ErrNotCompiledIn, "cuda", "metal")},
		{"weights beyond the memory limit", compile(rlx.MemoryLimit(4)), func(t *testing.T, err error) []string {
			e := as[*rlx.MemoryError](t, err)
			if e.Limit != 4 || e.Need <= 4 || e.What == "" {
				t.Errorf("fields: %+v", e)
			}
			return []string{e.What, fmt.Sprint(e.Need), "4"}
		}},
		{"graph is nil", func(t *testing.T) error { _, err := rlx.Compile(t.Context(), nil); return err }, wantOption("graph", "nil", "a graph")},
		{"export of no graph", func(*testing.T) error { return rlx.ExportONNX(nil, io.Discard) }, wantOption("graph", "nil", "a graph")},
		{"export to nothing", func(*testing.T) error { return rlx.ExportONNX(addGraph("x"), nil) }, wantOption("writer", "nil", "a writer")},
		{"export of a graph without outputs", func(*testing.T) error { return rlx.ExportONNX(rlx.NewGraph("bad"), io.Discard) },
			wantGraph("Output", "bad", "at least one", "no outputs")},
		{"model is empty", func(t *testing.T) error { _, err := new(rlx.Model).Compile(t.Context()); return err }, wantOption("graph", "nil", "a graph")},
		{"Compile without a context", func(t *testing.T) error {
			_, err := rlx.Compile(nil, addGraph("context"))
			return err
		}, wantOption("ctx", "nil", "a context")},
		{"Run without a context", func(t *testing.T) error {
			_, err := small(t).Run(nil, nil)
			return err
		}, wantOption("ctx", "nil", "a context")},
		{"cancelled before Compile", func(t *testing.T) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := rlx.Compile(ctx, addGraph("cancelled"))
			return err
		}, wantIs(context.Canceled)},
		{"a checked run with a profile", func(t *testing.T) error {
			_, err := small(t).Run(t.Context(), rlx.Feed{"x": zeros[float32](2, 3)}, rlx.CheckFinite(), rlx.WithProfile(new(rlx.Profile)))
			return err
		}, wantOption("CheckFinite", "WithProfile too", "one of them")},
	}
}

// Options that are nil are no options.
func TestNilOptions(t *testing.T) {
	p := small(t, nil, rlx.Logger(nil), rlx.TracePasses(nil), nil)
	if _, err := p.Run(t.Context(), rlx.Feed{"x": zeros[float32](2, 3)}, nil, rlx.WithProfile(nil)); err != nil {
		t.Error(err)
	}
	if err := rlx.ExportONNX(addGraph("nil options"), io.Discard, nil); err != nil {
		t.Error(err)
	}
}
func BenchmarkScalarAdd(b *testing.B) {
	g := rlx.NewGraph("add")
	g.Output("y", op.Add(g.Input("a", rlx.F32, rlx.Shape()), g.Input("b", rlx.F32, rlx.Shape())))
	p, err := rlx.Compile(b.Context(), g, backend0())
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	in := rlx.Feed{"a": rlx.New([]float32{1}), "b": rlx.New([]float32{2})}
	out := rlx.Feed{"y": rlx.New([]float32{0})}
	b.Run("EmptyCgoCall", emptyCgoCalls)
	b.Run("RunInto", func(b *testing.B) {
		r := p.Runner()
		defer r.Close()
		b.ReportAllocs()
		for b.Loop() {
			if err := r.RunInto(context.Background(), in, out); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Run", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Run(context.Background(), in); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// backend0 is the default choice, spelled out so that a benchmark's name says what it measured.
func backend0() rlx.Option {
	if _, err := backend.Lookup("cpu"); err == nil {
		return rlx.On("cpu")
	}
	return rlx.On("ref")
}

func emptyCgoCalls(b *testing.B) {
	for b.Loop() {
		cgobench.Call()
	}
}
