package rlx_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/cgobench"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

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

func runErr(t testing.TB, feed rlx.Feed) error {
	_, err := small(t).Run(context.Background(), feed)
	return err
}

func graphErr(build func(g *rlx.Graph, x rlx.Value) rlx.Value) error {
	g := rlx.NewGraph("bad")
	g.Output("y", build(g, g.Input("x", rlx.F32, rlx.Shape("n", 3))))
	p, err := rlx.Compile(context.Background(), g)
	if err == nil {
		p.Close()
	}
	return err
}

func fileErr(t testing.TB, data []byte) error {
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := rlx.Open(path)
	return err
}

// Every bad use gives a typed error with expected and found.
func TestBadUses(t *testing.T) {
	digits, err := os.ReadFile(digitsModel)
	if err != nil {
		t.Fatal(err)
	}
	x23 := rlx.New(make([]float32, 6), 2, 3)
	cases := []struct {
		name  string
		err   func() error
		typed any      // pointer to the expected error type
		words []string // of the text
	}{
		{"unknown input name", func() error { return runErr(t, rlx.Feed{"x": x23, "z": x23}) }, new(*rlx.FeedError), []string{"z", "unknown name", "expected one of x"}},
		{"missing input", func() error { return runErr(t, rlx.Feed{}) }, new(*rlx.FeedError), []string{"x", "missing", "expected f32[n, 3]"}},
		{"nil input", func() error { return runErr(t, rlx.Feed{"x": nil}) }, new(*rlx.FeedError), []string{"x", "missing", "f32[n, 3]"}},
		{"wrong dtype", func() error { return runErr(t, rlx.Feed{"x": rlx.New(make([]int64, 6), 2, 3)}) }, new(*rlx.FeedError), []string{"dtype", "got i64[2 3]", "expected f32[n, 3]"}},
		{"wrong rank", func() error { return runErr(t, rlx.Feed{"x": rlx.New(make([]float32, 6), 6)}) }, new(*rlx.FeedError), []string{"rank", "got f32[6]", "expected f32[n, 3]"}},
		{"wrong dim", func() error { return runErr(t, rlx.Feed{"x": rlx.New(make([]float32, 8), 2, 4)}) }, new(*rlx.FeedError), []string{"dim 1", "got f32[2 4]", "expected f32[n, 3]"}},
		{"data do not fit the shape", func() error { return runErr(t, rlx.Feed{"x": rlx.New(make([]float32, 5), 2, 3)}) }, new(*rlx.FeedError), []string{"got 5 elements, expected 6"}},
		{"one symbol, two values", func() error { return twoSymbols() }, new(*rlx.FeedError), []string{"symbol n", "n = 2", "f32[3]"}},
		{"closed program", closedErr(t), nil, []string{"closed"}},
		{"wrong output dtype", func() error { return runIntoErr(t, rlx.Feed{"y": rlx.New(make([]float64, 6), 2, 3)}) }, new(*rlx.FeedError), []string{"y", "got f64[2 3]", "expected f32[2 3]"}},
		{"missing output", func() error { return runIntoErr(t, rlx.Feed{}) }, new(*rlx.FeedError), []string{"y", "missing"}},
		{"typed view of another dtype", func() error { _, err := rlx.Data[int32](x23); return err }, nil, []string{"f32", "i32"}},
		{"shapes that do not broadcast", func() error {
			return graphErr(func(g *rlx.Graph, x rlx.Value) rlx.Value {
				return op.Add(x, g.Constant(rlx.New(make([]float32, 4), 4)))
			})
		}, new(*rlx.ShapeError), []string{"Binary: C4", "3", "4", "errors_test.go:"}},
		{"mixed dtypes", func() error {
			return graphErr(func(g *rlx.Graph, x rlx.Value) rlx.Value {
				return op.Add(x, g.Constant(rlx.New(make([]int64, 3), 3)))
			})
		}, new(*rlx.ShapeError), []string{"Binary: C2", "f32", "i64"}},
		{"bad attribute", func() error {
			return graphErr(func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Softmax(x, 5) })
		}, new(*rlx.ShapeError), []string{"Softmax: C1", "axis 5", "rank 2"}},
		{"no such integer", func() error {
			return graphErr(func(g *rlx.Graph, _ rlx.Value) rlx.Value {
				return op.Add(g.Constant(rlx.New([]int8{1}, 1)), 300)
			})
		}, new(*rlx.ShapeError), []string{"300", "i8"}},
		{"unknown op", func() error { _, err := ir.RowByName("Frobnicate"); return err }, nil, []string{"unknown op", "Frobnicate"}},
		{"graph without outputs", func() error { _, err := rlx.Compile(t.Context(), rlx.NewGraph("empty")); return err }, nil, []string{"empty", "no outputs"}},
		{"truncated file", func() error { return fileErr(t, digits[:len(digits)/2]) }, new(*rlx.FileError), []string{"model.onnx", "byte"}},
		{"wrong magic", func() error { return fileErr(t, []byte("this is a text file\nwith two lines\n")) }, new(*rlx.FileError), []string{"model.onnx", "ONNX"}},
		{"empty file", func() error { return fileErr(t, nil) }, new(*rlx.FileError), []string{"model.onnx", "ONNX"}},
		{"missing file", func() error { _, err := rlx.Open("no/such/file.onnx"); return err }, new(*rlx.FileError), []string{"no/such/file.onnx"}},
		{"backend not compiled in", func() error { return onErr(t, "cuda") }, nil, []string{"cuda", "not compiled in", "expected one of"}},
		{"index out of range at run time", gatherErr, new(*rlx.ExecError), []string{"Gather: C7", "7", "[-3, 3)"}},
		{"cancelled before the run", func() error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := small(t).Run(ctx, rlx.Feed{"x": x23})
			return err
		}, nil, []string{context.Canceled.Error()}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := c.err()
			if err == nil {
				t.Fatal("no error")
			}
			if c.typed != nil && !errors.As(err, c.typed) {
				t.Errorf("error has type %T, expected %T: %v", err, c.typed, err)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error lacks %q: %v", w, err)
				}
			}
			if fe := new(rlx.FeedError); errors.As(err, &fe) && (fe.Expected == "" || fe.Got == "" || fe.Name == "" || fe.What == "") {
				t.Errorf("a field is empty: %+v", fe)
			}
			if se := new(rlx.ShapeError); errors.As(err, &se) && (se.Op == "" || se.Err == nil) {
				t.Errorf("a field is empty: %+v", se)
			}
			if ee := new(rlx.ExecError); errors.As(err, &ee) && (ee.Backend == "" || ee.Node == "" || ee.Op == "") {
				t.Errorf("a field is empty: %+v", ee)
			}
		})
	}
	if !errors.Is(onErr(t, "cuda"), rlx.ErrNotCompiledIn) {
		t.Error("an absent backend does not wrap ErrNotCompiledIn")
	}
}

func onErr(t *testing.T, name string) error {
	g := rlx.NewGraph("g")
	g.Output("y", op.Neg(g.Input("x", rlx.F32, rlx.Shape(1))))
	_, err := rlx.Compile(t.Context(), g, rlx.On(name))
	return err
}

func twoSymbols() error {
	g := rlx.NewGraph("two")
	g.Output("y", op.Add(g.Input("a", rlx.F32, rlx.Shape("n")), g.Input("b", rlx.F32, rlx.Shape("n"))))
	p, err := rlx.Compile(context.Background(), g)
	if err != nil {
		return err
	}
	defer p.Close()
	_, err = p.Run(context.Background(), rlx.Feed{"a": rlx.New(make([]float32, 2), 2), "b": rlx.New(make([]float32, 3), 3)})
	return err
}

func closedErr(t *testing.T) func() error {
	return func() error {
		p := small(t)
		if err := p.Close(); err != nil {
			return err
		}
		if err := p.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		_, err := p.Run(context.Background(), rlx.Feed{"x": rlx.New(make([]float32, 3), 1, 3)})
		if !errors.Is(err, rlx.ErrClosed) {
			t.Errorf("got %v, expected ErrClosed", err)
		}
		return err
	}
}

func runIntoErr(t *testing.T, out rlx.Feed) error {
	r := small(t).Runner()
	defer r.Close()
	return r.RunInto(context.Background(), rlx.Feed{"x": rlx.New(make([]float32, 6), 2, 3)}, out)
}

func gatherErr() error {
	g := rlx.NewGraph("gather")
	g.Output("y", op.Gather(g.Input("x", rlx.F32, rlx.Shape(3)), g.Input("i", rlx.I64, rlx.Shape("k")), 0).Named("pick"))
	p, err := rlx.Compile(context.Background(), g)
	if err != nil {
		return err
	}
	defer p.Close()
	_, err = p.Run(context.Background(), rlx.Feed{"x": rlx.New(make([]float32, 3), 3), "i": rlx.New([]int64{0, 7}, 2)})
	return err
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
