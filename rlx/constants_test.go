package rlx_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// weighted is a graph with one large constant of each kind that kernels put in an order of their own.
type weighted struct {
	name  string
	input func(n int) rlx.Feed
	graph func(r *rand.Rand) *rlx.Graph
}

func weightsOf(r *rand.Rand, dims ...int) *rlx.Tensor {
	n := 1
	for _, d := range dims {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64()) / 8
	}
	return rlx.New(v, dims...)
}

func weightedGraphs() []weighted {
	single := func(n int, dims ...int) rlx.Feed {
		return rlx.Feed{"x": weightsOf(rand.New(rand.NewPCG(uint64(n), 1)), append([]int{n}, dims...)...)}
	}
	codes := func(n int, dims ...int) rlx.Feed {
		return rlx.Feed{"x": codesOf(rand.New(rand.NewPCG(uint64(n), 2)), rlx.U8, false, append([]int{n}, dims...)...)}
	}
	conv := op.ConvAttrs{Padding: []int64{1, 1, 1, 1}}
	return []weighted{
		{"matmul", func(n int) rlx.Feed { return single(n, 700) }, func(r *rand.Rand) *rlx.Graph {
			g := rlx.NewGraph("matmul")
			g.Output("y", op.MatMul(g.Input("x", rlx.F32, rlx.Shape("n", 700)), g.Param("w", weightsOf(r, 700, 1030))))
			return g
		}},
		{"bf16 matmul", func(n int) rlx.Feed { return single(n, 701) }, func(r *rand.Rand) *rlx.Graph {
			g := rlx.NewGraph("bf16")
			x := op.Cast(g.Input("x", rlx.F32, rlx.Shape("n", 701)), rlx.BF16)
			bits := make([]rlx.BFloat16, 701*1030)
			for i := range bits {
				bits[i] = rlx.BFloat16(uint16(r.Uint32())&0x80ff | 0x3c00)
			}
			g.Output("y", op.MatMulTo(rlx.F32, x, g.Constant(rlx.New(bits, 701, 1030))))
			return g
		}},
		{"transposed matmul", func(n int) rlx.Feed { return single(n, 700) }, func(r *rand.Rand) *rlx.Graph {
			g := rlx.NewGraph("transposed")
			g.Output("y", op.MatMul(g.Input("x", rlx.F32, rlx.Shape("n", 700)), op.Transpose(g.Constant(weightsOf(r, 1030, 700)), 1, 0)))
			return g
		}},
		{"conv", func(n int) rlx.Feed { // narrow images have other panels of w than wide ones
			return rlx.Feed{"x": weightsOf(rand.New(rand.NewPCG(uint64(n), 3)), 1, 96, n, n)}
		}, func(r *rand.Rand) *rlx.Graph {
			g := rlx.NewGraph("conv")
			g.Output("y", op.Conv2d(g.Input("x", rlx.F32, rlx.Shape(1, 96, "n", "n")), g.Constant(weightsOf(r, 320, 96, 3, 3)), g.Constant(weightsOf(r, 320)), conv))
			return g
		}},
		{"int8", func(n int) rlx.Feed { return codes(n, 513) }, func(r *rand.Rand) *rlx.Graph {
			g := rlx.NewGraph("int8")
			w := g.Constant(codesOf(r, rlx.I8, false, 513, 1100))
			g.Output("y", op.QMatMul(g.Input("x", rlx.U8, rlx.Shape("n", 513)), w, rlx.Value{}, rlx.Value{}, op.QMatMulAttrs{XZeroPoint: 7, Multiplier: 1, Dtype: rlx.I32}))
			return g
		}},
		{"unsigned int8 conv", func(n int) rlx.Feed { return codes(1, 64, n, n) }, func(r *rand.Rand) *rlx.Graph {
			g := rlx.NewGraph("int8 conv")
			w := g.Constant(codesOf(r, rlx.U8, false, 256, 64, 3, 3))
			g.Output("y", op.QConv2d(g.Input("x", rlx.U8, rlx.Shape(1, 64, "n", "n")), w, rlx.Value{}, rlx.Value{}, op.QConv2dAttrs{Padding: []int64{1, 1, 1, 1}, WZeroPoint: 9, Multiplier: 1, Dtype: rlx.I32}))
			return g
		}},
		{"int8 weights", func(n int) rlx.Feed { return single(n, 513) }, func(r *rand.Rand) *rlx.Graph {
			g := rlx.NewGraph("int8 weights")
			w, scale := g.Constant(codesOf(r, rlx.I8, false, 513, 1100)), g.Constant(weightsOf(r, 1, 1100))
			y := op.DequantMatMul(g.Input("x", rlx.F32, rlx.Shape("n", 513)), w, scale, rlx.Value{}, op.DequantMatMulAttrs{Scheme: "int8_block", BlockSize: 513})
			g.Output("y", op.Relu(y))
			return g
		}},
		{"lstm", func(n int) rlx.Feed { return single(n, 3, 150) }, func(r *rand.Rand) *rlx.Graph {
			g := rlx.NewGraph("lstm")
			weights := op.RnnWeights{Wih: g.Constant(weightsOf(r, 1, 4*200, 150)), Whh: g.Constant(weightsOf(r, 1, 4*200, 200))}
			y, _, _ := op.Lstm(g.Input("x", rlx.F32, rlx.Shape("n", 3, 150)), weights, rlx.Value{}, rlx.Value{}, op.LstmAttrs{})
			g.Output("y", y)
			return g
		}},
	}
}

// allHeld is what Go's heap and the libraries hold, garbage apart.
func allHeld() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	n := int64(m.HeapAlloc)
	for _, b := range rlx.Stats().Native {
		n += b
	}
	return n
}

// heldBy compiles and runs what load gives and returns what is held once load's graph is garbage, and what the plan says is needed.
func heldBy(t *testing.T, load func() (*rlx.Graph, rlx.Feed)) (bytes, plan int64) {
	t.Helper()
	before := allHeld()
	p, in, out := func() (*rlx.Program, rlx.Feed, rlx.Feed) {
		g, in := load()
		p, err := rlx.Compile(t.Context(), g, rlx.On("cpu"), rlx.Threads(2))
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return p, in, out
	}()
	defer p.Close()
	pl, err := p.Plan(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	plan = pl.Memory.Weights + pl.Memory.Folded + pl.Memory.Device
	pl = nil // a description, which is the caller's
	bytes = allHeld() - before
	for _, f := range []rlx.Feed{in, out} {
		for _, x := range f {
			bytes -= int64(x.Size())
		}
	}
	runtime.KeepAlive(in)
	runtime.KeepAlive(out)
	return bytes, plan
}

// Weights are held once: what a program holds between runs, in Go and in its library, is its weights and the memory of a run, and 10 % for
// commands, the graph and last columns.
func TestSteadyMemory(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	const programs = 32 << 10 // the graph, commands and tables of a small program
	hold := func(name string, load func() (*rlx.Graph, rlx.Feed)) {
		heldBy(t, load) // what is made once for all
		bytes, plan := heldBy(t, load)
		t.Logf("%s: %d bytes held, %d planned: %.3f", name, bytes, plan, float64(bytes)/float64(plan))
		if bytes > plan+plan/10+programs {
			t.Errorf("%s: %d bytes are held between runs, expected at most 1.10 times weights and arena, %d, and %d", name, bytes, plan, programs)
		}
	}
	for _, w := range weightedGraphs() {
		hold(w.name, func() (*rlx.Graph, rlx.Feed) { return w.graph(rand.New(rand.NewPCG(1, 2))), w.input(5) })
	}
	// From a file, whose bytes are read as a whole.
	for _, w := range weightedGraphs()[:3] {
		file := filepath.Join(t.TempDir(), "m.onnx")
		exportTo(t, w.graph(rand.New(rand.NewPCG(1, 2))), file)
		hold(w.name+" of a file", func() (*rlx.Graph, rlx.Feed) {
			m, err := rlx.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			return m.Graph(), w.input(5)
		})
	}
}

func exportTo(t *testing.T, g *rlx.Graph, file string) {
	t.Helper()
	var b bytes.Buffer
	if err := rlx.ExportONNX(g, &b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// largest is the constant or param of most bytes.
func largest(g *rlx.Graph) *rlx.Tensor {
	var most *rlx.Tensor
	g.EachNode(func(n *ir.Node) {
		t, _ := n.Out(0).Const()
		if name, ok := n.ParamName(); ok {
			t = g.ParamData(name)
		}
		if t != nil && (most == nil || t.Size() > most.Size()) {
			most = t
		}
	})
	return most
}

// A constant that only a kernel's form is left of comes back bit for bit: for whoever reads the program's graph, also after Close, and for
// another set of shapes, whose kernels want another form or the constant itself. Every program of a graph has its own.
func TestConstantsComeBack(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	for _, w := range weightedGraphs() {
		g := w.graph(rand.New(rand.NewPCG(3, 4)))
		want := bytes.Clone(largest(g).Bytes())
		p, other := compileGraph(t, g, rlx.On("cpu")), compileGraph(t, g, rlx.On("cpu"))
		if _, err := p.Run(t.Context(), w.input(3)); err != nil {
			t.Fatal(w.name, err)
		}
		c := largest(p.Graph())
		if !ir.Resting(c) {
			t.Errorf("%s: the program keeps the bytes of its largest constant", w.name)
		}
		if !bytes.Equal(c.Bytes(), want) {
			t.Errorf("%s: the program's graph has another constant than the graph that was compiled", w.name)
		}
		if !bytes.Equal(largest(g).Bytes(), want) {
			t.Errorf("%s: the caller's graph has another constant than before", w.name)
		}
		respecialise(t, w, p)
		if err := p.Close(); err != nil {
			t.Error(w.name, err)
		}
		if !bytes.Equal(c.Bytes(), want) {
			t.Errorf("%s: after Close the graph that was asked for before has another constant", w.name)
		}
		respecialise(t, w, other)
		hidden := largest(other.Graph())
		if err := other.Close(); err != nil || hidden.Err() != nil {
			t.Error(w.name, err, hidden.Err())
		}
	}
}

// respecialise runs p on sizes that it has not met, several at once, and holds the results against the interpreter and against programs that
// met no other size.
func respecialise(t *testing.T, w weighted, p *rlx.Program) {
	t.Helper()
	var wg sync.WaitGroup
	for _, n := range []int{1, 2, 9, 17, 4} {
		wg.Go(func() {
			g, feed := w.graph(rand.New(rand.NewPCG(3, 4))), w.input(n)
			var opts []rlx.RunOption
			if n == 4 {
				opts = append(opts, rlx.CheckFinite()) // loads the commands once more
			}
			got, err := p.Run(t.Context(), feed, opts...)
			if err != nil {
				t.Error(w.name, n, err)
				return
			}
			for _, b := range []string{"cpu", "ref"} {
				fresh := compileGraph(t, g, rlx.On(b))
				want, err := fresh.Run(t.Context(), feed)
				if err != nil {
					t.Error(w.name, n, err)
					return
				}
				same(t, w.name, b, got["y"], want["y"])
			}
		})
	}
	wg.Wait()
}

func same(t *testing.T, name, b string, got, want *rlx.Tensor) {
	t.Helper()
	if b == "cpu" || got.DType() != rlx.F32 {
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%s: other bits than those of %s", name, b)
		}
		return
	}
	for i := range want.Len() {
		if d := math.Abs(got.Float(i) - want.Float(i)); !(d <= 1e-4*(1+math.Abs(want.Float(i)))) {
			t.Errorf("%s: element %d is %g, %s has %g", name, i, got.Float(i), b, want.Float(i))
			return
		}
	}
}

// A batch of nothing has no kernel's form to read: the constant itself is read.
func TestConstantReadAfterPacking(t *testing.T) {
	for _, b := range backends() {
		g := rlx.NewGraph("both")
		w := g.Constant(weightsOf(rand.New(rand.NewPCG(5, 6)), 64, 64))
		x := g.Input("x", rlx.F32, rlx.Shape("n", 64))
		g.Output("y", op.MatMul(x, w))
		p := compileGraph(t, g, rlx.On(b))
		for _, n := range []int{3, 0, 1} {
			feed := rlx.Feed{"x": weightsOf(rand.New(rand.NewPCG(7, 8)), n, 64)}
			if _, err := p.Run(t.Context(), feed); err != nil {
				t.Errorf("%s: %d rows: %v", b, n, err)
			}
		}
	}
}
