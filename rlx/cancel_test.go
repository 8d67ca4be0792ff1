package rlx_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// longKernel is a graph that is one command, of about a second or more on one thread where memory allows: build makes y out of input x,
// which has the given shape and values in [0, 1).
type longKernel struct {
	name  string
	shape []int
	build func(g *rlx.Graph, x rlx.Value) rlx.Value
}

func first(y rlx.Value, _ ...rlx.Value) rlx.Value { return y }

// longKernels has one kernel of every way in which the CPU backend cuts work.
func longKernels() []longKernel {
	param := func(g *rlx.Graph, name string, shape ...int) rlx.Value {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return g.Param(name, rlx.New(slices.Repeat([]float32{0.01}, n), shape...))
	}
	bytes := func(g *rlx.Graph, name string, shape ...int) rlx.Value {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return g.Param(name, rlx.New(make([]uint8, n), shape...))
	}
	as := func(d rlx.DType) func(*rlx.Graph, rlx.Value) rlx.Value {
		return func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.MatMul(op.Cast(x, d), op.Cast(x, d)) }
	}
	index := func(x rlx.Value) rlx.Value { return op.Cast(op.Mul(x, 0), rlx.I64) }
	return []longKernel{
		{"MatMul.f32", []int{2560, 2560}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.MatMul(x, x) }},
		{"MatMul.f32.long-k", []int{64, 1 << 20}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.MatMul(x, op.Transpose(x, 1, 0)) }},
		{"MatMul.f32.one-row", []int{1, 1 << 13}, func(g *rlx.Graph, x rlx.Value) rlx.Value { return op.MatMul(x, param(g, "w", 1<<13, 1<<13)) }},
		{"MatMul.f16", []int{1536, 1536}, as(rlx.F16)},
		{"MatMul.f64", []int{1536, 1536}, as(rlx.F64)},
		{"MatMul.i64", []int{1024, 1024}, as(rlx.I64)},
		{"Conv.3x3", []int{8, 256, 96, 96}, func(g *rlx.Graph, x rlx.Value) rlx.Value {
			return op.Conv2d(x, param(g, "w", 256, 256, 3, 3), rlx.Value{}, op.ConvAttrs{Padding: []int64{1, 1}})
		}},
		{"Conv.depthwise", []int{16, 256, 128, 128}, func(g *rlx.Graph, x rlx.Value) rlx.Value {
			return op.Conv2d(x, param(g, "w", 256, 1, 3, 3), rlx.Value{}, op.ConvAttrs{Padding: []int64{1, 1}, Groups: 256})
		}},
		{"Conv.one-image", []int{1, 1, 4096, 4096}, func(g *rlx.Graph, x rlx.Value) rlx.Value {
			return op.Conv2d(x, param(g, "w", 1, 1, 31, 31), rlx.Value{}, op.ConvAttrs{})
		}},
		{"ConvTranspose", []int{4, 128, 64, 64}, func(g *rlx.Graph, x rlx.Value) rlx.Value {
			return op.ConvTranspose2d(x, param(g, "w", 128, 128, 4, 4), rlx.Value{}, op.ConvTransposeAttrs{Stride: []int64{2, 2}})
		}},
		{"Attention.one-head", []int{1, 1, 1 << 14, 64}, func(_ *rlx.Graph, x rlx.Value) rlx.Value {
			return op.Attention(x, x, x, rlx.Value{}, rlx.Value{}, op.AttentionAttrs{})
		}},
		{"Attention.f64", []int{1, 1, 1 << 12, 64}, func(_ *rlx.Graph, x rlx.Value) rlx.Value {
			y := op.Cast(x, rlx.F64)
			return op.Attention(y, y, y, rlx.Value{}, rlx.Value{}, op.AttentionAttrs{})
		}},
		{"Elementwise", []int{1 << 26}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Tanh(x) }},
		{"Elementwise.f64", []int{1 << 25}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Sin(op.Cast(x, rlx.F64)) }},
		{"Cast", []int{1 << 26}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Cast(x, rlx.F16) }},
		{"Softmax.one-row", []int{1, 1 << 26}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Softmax(x, -1) }},
		{"Softmax.first-axis", []int{1 << 13, 1 << 13}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Softmax(x, 0) }},
		{"LayerNorm.one-row", []int{1, 1 << 25}, func(g *rlx.Graph, x rlx.Value) rlx.Value {
			return op.LayerNorm(x, param(g, "gamma", 1<<25), param(g, "beta", 1<<25), -1, 1e-5)
		}},
		{"GroupNorm.one-group", []int{1, 2, 1 << 25}, func(g *rlx.Graph, x rlx.Value) rlx.Value {
			return op.GroupNorm(x, param(g, "gamma", 2), param(g, "beta", 2), 1, 1e-5)
		}},
		{"Reduce.all", []int{1 << 27}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Reduce(x, "sum", []int{0}, false) }},
		{"Reduce.first-axis", []int{1 << 13, 1 << 13}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Reduce(x, "prod", []int{0}, false) }},
		{"ArgMax.all", []int{1 << 26}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.ArgMax(x, 0) }},
		{"Histogram", []int{1 << 26}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Histogram(x, 64, 0, 1) }},
		{"Cumsum.one-row", []int{1 << 26}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Cumsum(x, 0) }},
		{"Cumsum.first-axis", []int{1 << 13, 1 << 13}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Cumsum(x, 0) }},
		{"CumMax.one-row", []int{1 << 25}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return first(op.CumMax(x, 0)) }},
		{"Sort.one-row", []int{1 << 24}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return first(op.Sort(x, 0, false)) }},
		{"TopK.one-row", []int{1 << 24}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return first(op.TopK(x, 1<<12, 0, true)) }},
		{"Sample.one-row", []int{1, 1 << 24}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Sample(x, 1, 0, 0.9) }},
		{"Fft.one-row", []int{1 << 22}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Fft(x, op.FftAttrs{Real: true}) }},
		{"Fft.prime", []int{4194301}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Fft(x, op.FftAttrs{Real: true}) }},
		{"Pool.one-image", []int{1, 1, 4096, 4096}, func(_ *rlx.Graph, x rlx.Value) rlx.Value {
			return op.Pool(x, op.PoolAttrs{Fn: "max", KernelSize: []int64{31, 31}, Stride: []int64{1, 1}})
		}},
		{"Pool.global", []int{1, 1, 1 << 13, 1 << 13}, func(_ *rlx.Graph, x rlx.Value) rlx.Value {
			return op.Pool(x, op.PoolAttrs{Fn: "avg", Global: true})
		}},
		{"Transpose", []int{1 << 13, 1 << 13}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Copy(op.Transpose(x, 1, 0)) }},
		{"Concat", []int{1 << 13, 1 << 12}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Concat(1, x, x) }},
		{"Roll", []int{1 << 26}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Roll(x, []int64{7}, []int{0}) }},
		{"Gather", []int{1 << 24}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.Gather(x, index(x), 0) }},
		{"ScatterAdd", []int{1 << 24}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.ScatterAdd(x, index(x), rlx.Value{}, 0, 16) }},
		{"ScatterElements", []int{1 << 24}, func(_ *rlx.Graph, x rlx.Value) rlx.Value { return op.ScatterElements(x, index(x), x, 0, "add") }},
		{"OneHot", []int{1 << 18}, func(_ *rlx.Graph, x rlx.Value) rlx.Value {
			return op.OneHot(index(x), op.OneHotAttrs{Depth: 256})
		}},
		{"Resize.cubic", []int{1, 1, 2048, 2048}, func(_ *rlx.Graph, x rlx.Value) rlx.Value {
			return op.Resize(x, op.ResizeAttrs{Mode: "cubic", Axes: []int64{2, 3}, Scales: []float64{2, 2}})
		}},
		{"RngNormal", []int{1}, func(g *rlx.Graph, _ rlx.Value) rlx.Value { return op.RngNormal(g, rlx.F32, 0, 1, ir.D(1<<26)) }},
		{"DequantMatMul.q4", []int{512, 4096}, func(g *rlx.Graph, x rlx.Value) rlx.Value {
			return op.DequantMatMul(x, bytes(g, "w", 4096, 4096/32*18), rlx.Value{}, rlx.Value{}, op.DequantMatMulAttrs{Scheme: "q4_0"})
		}},
		{"Lstm", []int{1, 512, 1024}, func(g *rlx.Graph, x rlx.Value) rlx.Value {
			y, _, _ := op.Lstm(x, op.RnnWeights{Wih: param(g, "ih", 1, 4096, 1024), Whh: param(g, "hh", 1, 4096, 1024)}, rlx.Value{}, rlx.Value{}, op.LstmAttrs{})
			return y
		}},
	}
}

func (k longKernel) compile(t testing.TB, opts ...rlx.Option) (*rlx.Program, rlx.Feed, error) {
	g := rlx.NewGraph(k.name)
	n, dims := 1, []any{}
	for _, d := range k.shape {
		n *= d
		dims = append(dims, d)
	}
	x := g.Input("x", rlx.F32, rlx.Shape(dims...))
	g.Output("y", k.build(g, x))
	p, err := rlx.Compile(t.Context(), g, append(opts, rlx.On("cpu"))...)
	if err != nil {
		return nil, nil, err
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i*2654435761%1000003) / 1000003
	}
	return p, rlx.Feed{"x": rlx.New(v, k.shape...)}, nil
}

// intoMemory is one run into memory that is there: allocating some hundred MB of outputs takes its time, and no cancellation shortens that.
func intoMemory(p *rlx.Program, in, out rlx.Feed) func(context.Context) error {
	r := p.Runner()
	return func(ctx context.Context) error { return r.RunInto(ctx, in, out) }
}

func toEnd(p *rlx.Program, feed rlx.Feed) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := p.Run(ctx, feed)
		return err
	}
}

// cancelAfter runs, cancels after the time, and returns how long the run went on then; 0 where it was done before.
func cancelAfter(t testing.TB, run func(context.Context) error, after time.Duration) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	var ended time.Time
	go func() {
		err := run(ctx)
		ended = time.Now()
		done <- err
	}()
	time.Sleep(after)
	began := time.Now()
	cancel()
	switch err := <-done; {
	case err == nil:
		return 0
	case !errors.Is(err, context.Canceled):
		t.Errorf("got %v, expected the context's error", err)
	}
	return max(ended.Sub(began), 1)
}

// TestCancelLatency prints how long each kind of kernel goes on after it is cancelled, at six points of its run: of one kernel
// here, of all in `make cancel-latency`. The figures depend on the machine, and no test asserts them.
func TestCancelLatency(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	only := cmp.Or(os.Getenv("RLX_CANCEL_LATENCY"), "MatMul.i64")
	fmt.Printf("%-24s %12s %12s\n", "kernel", "whole run", "after cancel")
	for _, k := range longKernels() {
		if only != "all" && only != k.name {
			continue
		}
		p, feed, err := k.compile(t, rlx.Threads(1))
		if err != nil {
			t.Errorf("%s: %v", k.name, err)
			continue
		}
		out, err := p.Run(t.Context(), feed)
		if err != nil {
			t.Errorf("%s: %v", k.name, err)
			continue
		}
		again := intoMemory(p, feed, out)
		whole := time.Duration(1 << 62)
		for range 2 {
			t0 := time.Now()
			if err := again(t.Context()); err != nil {
				t.Errorf("%s: %v", k.name, err)
			}
			whole = min(whole, time.Since(t0))
		}
		worst := time.Duration(0)
		for i := range 6 {
			worst = max(worst, cancelAfter(t, again, whole*time.Duration(2*i+1)/14))
		}
		note := ""
		if worst > 50*time.Millisecond {
			note = "  more than 50 ms"
		}
		fmt.Printf("%-24s %12v %12v%s\n", k.name, whole.Round(time.Millisecond), worst.Round(10*time.Microsecond), note)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		runtime.GC()
	}
}

// hugeKernel is one MatMul or Conv over n rows or images, 0.27 TFLOP and more for the n of TestCancelInsideAKernel: some seconds on one thread.
func hugeKernel(t *testing.T, conv bool) (*rlx.Program, func(n int) rlx.Feed) {
	t.Helper()
	g := rlx.NewGraph("huge")
	if conv {
		w := g.Param("w", rlx.New(slices.Repeat([]float32{0.01}, 512*512*9), 512, 512, 3, 3))
		x := g.Input("x", rlx.F32, rlx.Shape("n", 512, 64, 64))
		g.Output("y", op.Conv2d(x, w, rlx.Value{}, op.ConvAttrs{Padding: []int64{1, 1}}))
		return compileGraph(t, g, rlx.On("cpu"), rlx.Threads(2)), func(n int) rlx.Feed {
			return rlx.Feed{"x": rlx.New(slices.Repeat([]float32{0.5, -1, 2, 0.25}, n*512*1024), n, 512, 64, 64)}
		}
	}
	w := g.Param("w", rlx.New(slices.Repeat([]float32{0.01}, 4096*2048), 4096, 2048))
	g.Output("y", op.MatMul(g.Input("x", rlx.F32, rlx.Shape("n", 4096)), w))
	return compileGraph(t, g, rlx.On("cpu"), rlx.Threads(2)), func(n int) rlx.Feed {
		return rlx.Feed{"x": rlx.New(slices.Repeat([]float32{0.5, -1, 2, 0.25}, n*1024), n, 4096)}
	}
}

// settled waits for what a cancelled run leaves for a moment: its goroutines.
func settled(goroutines int) int {
	for range 200 {
		if runtime.NumGoroutine() <= goroutines {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return runtime.NumGoroutine()
}

// Cancelled inside one huge kernel a run ends long before the kernel would, gives the context's error, leaves no goroutine and no memory
// behind, and the next run has the bits of the run before.
func TestCancelInsideAKernel(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	if testing.Short() {
		t.Skip("some GFLOP each (-short)")
	}
	for _, c := range []struct {
		name        string
		conv        bool
		small, huge int
		columns     int64
	}{{"matmul", false, 33, 24576, 2048}, {"conv", true, 1, 24, 512}} {
		t.Run(c.name, func(t *testing.T) {
			p, feed := hugeKernel(t, c.conv)
			t0 := time.Now()
			want, err := p.Run(t.Context(), feed(c.small))
			if err != nil {
				t.Fatal(err)
			}
			small := time.Since(t0)
			big := feed(c.huge)
			shape := slices.Clone(big["x"].Shape())
			shape[1] = c.columns
			y, err := ir.Zeros(rlx.F32, shape...)
			if err != nil {
				t.Fatal(err)
			}
			again := intoMemory(p, big, rlx.Feed{"y": y})
			cancelAfter(t, again, time.Millisecond) // the specialisation is there from now on
			goroutines, memory := settled(0), rlx.Stats()
			worst := time.Duration(0)
			for i := range 4 {
				worst = max(worst, cancelAfter(t, again, time.Duration(20+30*i)*time.Millisecond))
				if now := settled(goroutines); now > goroutines {
					t.Errorf("%d goroutines, %d before the cancelled run", now, goroutines)
				}
				if now := rlx.Stats(); !maps.Equal(now.Native, memory.Native) || now.UsedArenas != memory.UsedArenas || now.IdleArenas != memory.IdleArenas {
					t.Errorf("memory %+v, before the cancelled run %+v", now, memory)
				}
			}
			t.Logf("a run of %v times the work of one of %v ended %v after it was cancelled", c.huge/c.small, small, worst)
			if worst == 0 || worst > time.Second {
				t.Errorf("a huge run ended %v after it was cancelled (0: it was done before)", worst)
			}
			got, err := p.Run(t.Context(), feed(c.small))
			if err != nil || !sameTensor(got["y"], want["y"]) {
				t.Errorf("other bits after cancelled runs, or error %v", err)
			}
		})
	}
}

// A loop of 10^9 trips and a scan of 10^6 steps, each of which would take minutes and seconds.
func TestCancelInsideALoop(t *testing.T) {
	g := rlx.NewGraph("loop")
	x, n := g.Input("x", rlx.F32, rlx.Shape(256)), g.Input("n", rlx.I64, rlx.Shape())
	g.Output("y", upTo(n, []rlx.Value{x}, nil, op.WhileOptions{}, func(_ *rlx.Graph, _ rlx.Value, c, _ []rlx.Value) []rlx.Value {
		return []rlx.Value{op.Tanh(op.Add(c[0], 0.5))}
	})[1])
	for _, b := range backends() {
		p := compileGraph(t, g, rlx.On(b))
		feed := func(n int64) rlx.Feed {
			return rlx.Feed{"x": rlx.New(slices.Repeat([]float32{0.5}, 256), 256), "n": ir.Scalar(n)}
		}
		want, err := p.Run(t.Context(), feed(20))
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		goroutines, memory := settled(0), rlx.Stats()
		took := cancelAfter(t, toEnd(p, feed(1e9)), 30*time.Millisecond)
		t.Logf("%s: the loop ended %v after it was cancelled", b, took)
		if took == 0 || took > time.Second {
			t.Errorf("%s: the loop ended %v after it was cancelled (0: it was done before)", b, took)
		}
		if now := settled(goroutines); now > goroutines {
			t.Errorf("%s: %d goroutines, %d before the cancelled run", b, now, goroutines)
		}
		if now := rlx.Stats(); !maps.Equal(now.Native, memory.Native) {
			t.Errorf("%s: memory %v, before the cancelled run %v", b, now.Native, memory.Native)
		}
		if got, err := p.Run(t.Context(), feed(20)); err != nil || !sameTensor(got["y"], want["y"]) {
			t.Errorf("%s: other bits after a cancelled run, or error %v", b, err)
		}
	}
}

// The same program, shapes and arena, cancelled at many points of its run: every run that ends has the same bits.
func TestBitsAfterCancel(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	g := rlx.NewGraph("steps")
	x := g.Input("x", rlx.F32, rlx.Shape(192, 192))
	y := x
	for range 6 {
		y = op.Softmax(op.MatMul(op.Tanh(y), op.Transpose(x, 1, 0)), -1)
		y = op.Cumsum(first(op.Sort(y, 0, false)), 1)
	}
	g.Output("y", y)
	p := compileGraph(t, g, rlx.On("cpu"), rlx.Threads(2))
	v := make([]float32, 192*192)
	for i := range v {
		v[i] = float32(i*7919%1009) / 1009
	}
	feed := rlx.Feed{"x": rlx.New(v, 192, 192)}
	want, err := p.Run(t.Context(), feed)
	if err != nil {
		t.Fatal(err)
	}
	cut := 0
	for i := range 40 {
		if cancelAfter(t, toEnd(p, feed), time.Duration(i)*200*time.Microsecond) > 0 {
			cut++
		}
		if got, err := p.Run(t.Context(), feed); err != nil || !sameTensor(got["y"], want["y"]) {
			t.Fatalf("run %d: other bits after a cancelled run, or error %v", i, err)
		}
	}
	if cut == 0 {
		t.Error("no run was cancelled in time")
	}
}
