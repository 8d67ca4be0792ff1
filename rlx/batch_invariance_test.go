package rlx_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/internal/golden"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// batchSizes lie on both sides of the rows that kernels take at a time.
var batchSizes = []int{1, 2, 3, 7, 16}

// rowwise is a net whose inputs and outputs have the batch as one axis, and whose rows do not see each other.
type rowwise struct {
	name  string
	in    map[string][]int // shapes of a row of the inputs, f32
	axis  map[string]int   // of the batch in outputs, where it is not 0
	build func(w weights, in map[string]rlx.Value) map[string]rlx.Value
}

// weights draws parameters of a net.
type weights struct {
	g *rlx.Graph
	r *rand.Rand
}

func (w weights) f32(shape ...int) rlx.Value {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return w.g.Param(fmt.Sprint("w", len(w.g.Nodes)), rlx.New(normals(w.r, n), shape...))
}

func normals(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// of is a net of one input x and one output y.
func of(name string, row []int, f func(w weights, x rlx.Value) rlx.Value) rowwise {
	return rowwise{name: name, in: map[string][]int{"x": row}, build: func(w weights, in map[string]rlx.Value) map[string]rlx.Value {
		return map[string]rlx.Value{"y": f(w, in["x"])}
	}}
}

// rowwiseNets have an odd size, and one of several blocks, of what sums.
func rowwiseNets() []rowwise {
	var nets []rowwise
	for _, k := range []int{37, 700} {
		nets = append(nets,
			of(fmt.Sprint("MatMul ", k), []int{k}, func(w weights, x rlx.Value) rlx.Value { return op.MatMul(x, w.f32(k, 65)) }),
			of(fmt.Sprint("MatMul to one column ", k), []int{k}, func(w weights, x rlx.Value) rlx.Value { return op.MatMul(x, w.f32(k, 1)) }),
			of(fmt.Sprint("MatMul transposed ", k), []int{k}, func(w weights, x rlx.Value) rlx.Value { return op.MatMul(x, op.Transpose(w.f32(21, k))) }),
			of(fmt.Sprint("MatMul of rows of rows ", k), []int{3, k}, func(w weights, x rlx.Value) rlx.Value { return op.MatMul(x, w.f32(k, 33)) }),
			of(fmt.Sprint("MatMul of two inputs ", k), []int{5, k}, func(_ weights, x rlx.Value) rlx.Value { return op.MatMul(x, op.Transpose(x, 0, 2, 1)) }),
			of(fmt.Sprint("MatMul f16 ", k), []int{k}, func(w weights, x rlx.Value) rlx.Value {
				return op.MatMul(op.Cast(x, rlx.F16), op.Cast(w.f32(k, 40), rlx.F16))
			}),
			of(fmt.Sprint("int8 weights ", k), []int{k}, func(w weights, x rlx.Value) rlx.Value { return int8Weights(w, x, k, 48, k) }),
			of(fmt.Sprint("int8 weights in blocks ", k), []int{k}, func(w weights, x rlx.Value) rlx.Value { return int8Weights(w, x, k, 48, 32) }),
			of(fmt.Sprint("layers ", k), []int{k}, func(w weights, x rlx.Value) rlx.Value {
				y := op.Gelu(op.Add(op.MatMul(x, w.f32(k, 64)), w.f32(64)))
				return op.Sigmoid(op.MatMul(op.LayerNorm(op.Add(op.MatMul(y, w.f32(64, 64)), y), w.f32(64), w.f32(64), -1, 1e-5), w.f32(64, 10)))
			}),
			of(fmt.Sprint("LayerNorm ", k), []int{k}, func(w weights, x rlx.Value) rlx.Value {
				return op.LayerNorm(x, w.f32(k), w.f32(k), -1, 1e-5)
			}),
			of(fmt.Sprint("RmsNorm ", k), []int{3, k}, func(w weights, x rlx.Value) rlx.Value {
				return op.RmsNorm(x, w.f32(k), w.f32(k), -1, 1e-5)
			}),
			of(fmt.Sprint("Softmax ", k), []int{k}, func(_ weights, x rlx.Value) rlx.Value { return op.Softmax(x, -1) }),
			of(fmt.Sprint("Softmax of columns ", k), []int{k, 3}, func(_ weights, x rlx.Value) rlx.Value { return op.Softmax(x, 1) }),
			of(fmt.Sprint("Reduce ", k), []int{k}, func(_ weights, x rlx.Value) rlx.Value { return op.Sum(op.Tanh(x), 1) }),
			of(fmt.Sprint("Reduce of columns ", k), []int{k, 5}, func(_ weights, x rlx.Value) rlx.Value { return op.Mean(x, 1) }),
			of(fmt.Sprint("LogSumExp ", k), []int{k}, func(_ weights, x rlx.Value) rlx.Value { return op.LogSumExp(x, 1) }),
			of(fmt.Sprint("Cumsum ", k), []int{k}, func(_ weights, x rlx.Value) rlx.Value { return op.Cumsum(x, 1) }),
		)
	}
	return slices.Concat(nets, innerNets(), windowNets())
}

// innerNets have the batch behind the axis that sums, as time-major models do.
func innerNets() []rowwise {
	inner := func(name string, row []int, f func(w weights, x rlx.Value) rlx.Value) rowwise {
		c := of(name+" with the batch last", row, func(w weights, x rlx.Value) rlx.Value { return f(w, op.Transpose(x, 1, 0)) })
		c.axis = map[string]int{"y": 1}
		return c
	}
	between := func(name string, row []int, f func(w weights, x rlx.Value) rlx.Value) rowwise {
		c := of(name+" with the batch in the middle", row, func(w weights, x rlx.Value) rlx.Value { return f(w, op.Transpose(x, 1, 0, 2)) })
		c.axis = map[string]int{"y": 1}
		return c
	}
	var nets []rowwise
	for _, k := range []int{37, 700} {
		nets = append(nets,
			inner(fmt.Sprint("MatMul ", k), []int{k}, func(w weights, x rlx.Value) rlx.Value { return op.MatMul(w.f32(30, k), x) }),
			inner(fmt.Sprint("Reduce ", k), []int{k}, func(_ weights, x rlx.Value) rlx.Value { return op.Reduce(x, "sum", []int{0}, true) }),
			inner(fmt.Sprint("Reduce of squares ", k), []int{k}, func(_ weights, x rlx.Value) rlx.Value { return op.Reduce(op.Mul(x, x), "mean", []int{0}, true) }),
			inner(fmt.Sprint("LogSumExp ", k), []int{k}, func(_ weights, x rlx.Value) rlx.Value { return op.Reduce(x, "logsumexp", []int{0}, true) }),
			inner(fmt.Sprint("Norm ", k), []int{k}, func(_ weights, x rlx.Value) rlx.Value { return op.Reduce(x, "l2", []int{0}, true) }),
			inner(fmt.Sprint("LogSoftmax ", k), []int{k}, func(_ weights, x rlx.Value) rlx.Value { return op.LogSoftmax(x, 0) }),
			inner(fmt.Sprint("Softmax ", k), []int{k}, func(_ weights, x rlx.Value) rlx.Value { return op.Softmax(x, 0) }),
			inner(fmt.Sprint("CumProd ", k), []int{k}, func(_ weights, x rlx.Value) rlx.Value { return op.CumProd(x, 0) }),
			between(fmt.Sprint("Reduce of both sides ", k), []int{k, 6}, func(_ weights, x rlx.Value) rlx.Value { return op.Reduce(x, "sum", []int{0, 2}, true) }),
			between(fmt.Sprint("Reduce of one side ", k), []int{6, k}, func(_ weights, x rlx.Value) rlx.Value { return op.Reduce(x, "sum", []int{0}, true) }),
			between(fmt.Sprint("Reduce of exponentials ", k), []int{k, 6}, func(_ weights, x rlx.Value) rlx.Value {
				return op.Reduce(op.Exp(op.Mul(x, x)), "mean", []int{0, 2}, true)
			}),
			between(fmt.Sprint("Softmax ", k), []int{k, 6}, func(_ weights, x rlx.Value) rlx.Value { return op.Softmax(x, 0) }),
			between(fmt.Sprint("MatMul ", k), []int{4, k}, func(w weights, x rlx.Value) rlx.Value { return op.MatMul(x, w.f32(4, k, 9)) }),
			inner(fmt.Sprint("Cumsum ", k), []int{k}, func(_ weights, x rlx.Value) rlx.Value { return op.Cumsum(x, 0) }),
			inner(fmt.Sprint("LayerNorm ", k), []int{k}, func(w weights, x rlx.Value) rlx.Value {
				return op.Transpose(op.LayerNorm(op.Transpose(x, 1, 0), w.f32(k), w.f32(k), -1, 1e-5), 1, 0)
			}),
		)
	}
	return nets
}

func windowNets() []rowwise {
	conv := func(name string, row, kernel []int, a op.ConvAttrs) rowwise {
		return of("Conv "+name, row, func(w weights, x rlx.Value) rlx.Value { return op.Relu(op.Conv(x, w.f32(kernel...), a)) })
	}
	attention := func(name string, sq, sk int, a op.AttentionAttrs) rowwise {
		return rowwise{name: "Attention " + name, in: map[string][]int{"q": {4, sq, 24}, "k": {2, sk, 24}, "v": {2, sk, 24}},
			build: func(_ weights, in map[string]rlx.Value) map[string]rlx.Value {
				return map[string]rlx.Value{"y": op.Attention(in["q"], in["k"], in["v"], rlx.Value{}, rlx.Value{}, a)}
			}}
	}
	recurrent := func(name string, f func(w weights, x rlx.Value) (y, h rlx.Value)) rowwise {
		return rowwise{name: name, in: map[string][]int{"x": {6, 20}}, axis: map[string]int{"h": 1}, build: func(w weights, in map[string]rlx.Value) map[string]rlx.Value {
			y, h := f(w, in["x"])
			return map[string]rlx.Value{"y": y, "h": h}
		}}
	}
	layer := func(w weights, gates int) op.RnnWeights {
		return op.RnnWeights{Wih: w.f32(2, gates*24, 20), Whh: w.f32(2, gates*24, 24), Bih: w.f32(2, gates*24), Bhh: w.f32(2, gates*24)}
	}
	return []rowwise{
		conv("3x3", []int{5, 11, 13}, []int{9, 5, 3, 3}, op.ConvAttrs{Padding: []int64{1, 1}}),
		conv("3x3 of many channels", []int{32, 14, 14}, []int{32, 32, 3, 3}, op.ConvAttrs{Padding: []int64{1, 1}}),
		conv("1x1", []int{40, 7, 7}, []int{24, 40, 1, 1}, op.ConvAttrs{}),
		conv("depthwise", []int{12, 15, 15}, []int{12, 1, 3, 3}, op.ConvAttrs{Groups: 12, Stride: []int64{2, 2}}),
		conv("1-D", []int{3, 50}, []int{8, 3, 5}, op.ConvAttrs{Dilation: []int64{2}}),
		of("ConvTranspose", []int{6, 5, 5}, func(w weights, x rlx.Value) rlx.Value {
			return op.ConvTranspose2d(x, w.f32(6, 4, 3, 3), rlx.Value{}, op.ConvTransposeAttrs{Stride: []int64{2, 2}})
		}),
		of("GroupNorm", []int{12, 9, 7}, func(w weights, x rlx.Value) rlx.Value { return op.GroupNorm(x, w.f32(12), w.f32(12), 3, 1e-5) }),
		of("AvgPool", []int{3, 9, 9}, func(_ weights, x rlx.Value) rlx.Value { return op.AvgPool(x, op.PoolAttrs{KernelSize: []int64{3, 3}}) }),
		of("FFT", []int{60}, func(_ weights, x rlx.Value) rlx.Value { return op.RFFT(x, 60, 1) }),
		attention("of short sequences", 5, 9, op.AttentionAttrs{}),
		attention("of one query", 1, 70, op.AttentionAttrs{}),
		attention("causal", 67, 67, op.AttentionAttrs{Mask: "causal"}),
		recurrent("Lstm", func(w weights, x rlx.Value) (y, h rlx.Value) {
			y, h, _ = op.Lstm(x, layer(w, 4), rlx.Value{}, rlx.Value{}, op.LstmAttrs{Direction: "bidirectional"})
			return y, h
		}),
		recurrent("Gru", func(w weights, x rlx.Value) (y, h rlx.Value) {
			return op.Gru(x, layer(w, 3), op.GruAttrs{Direction: "bidirectional"})
		}),
	}
}

// int8Weights is x times int8 weights with a scale per block rows of each column.
func int8Weights(w weights, x rlx.Value, k, n, block int) rlx.Value {
	codes := make([]int8, k*n)
	for i := range codes {
		codes[i] = int8(w.r.IntN(256) - 128)
	}
	return op.DequantMatMul(x, w.g.Param("codes", rlx.New(codes, k, n)), w.f32((k+block-1)/block, n), rlx.Value{}, op.DequantMatMulAttrs{Scheme: "int8_block", BlockSize: int64(block)})
}

// check runs batches and compares every row with its run alone, bit for bit.
func (c *rowwise) check(t *testing.T, sizes []int, opts ...rlx.Option) {
	r := rand.New(rand.NewPCG(11, 12))
	g := rlx.NewGraph(c.name)
	in, rows := map[string]rlx.Value{}, map[string][]float32{}
	for _, name := range slices.Sorted(maps.Keys(c.in)) {
		dims, n := []any{"batch"}, slices.Max(sizes)
		for _, d := range c.in[name] {
			dims, n = append(dims, d), n*d
		}
		in[name], rows[name] = g.Input(name, rlx.F32, rlx.Shape(dims...)), normals(r, n)
	}
	for name, y := range c.build(weights{g, r}, in) {
		g.Output(name, y)
	}
	p := compileGraph(t, g, opts...)
	run := func(from, to int) rlx.Feed {
		feed := rlx.Feed{}
		for name, v := range rows {
			n := len(v) / slices.Max(sizes)
			feed[name] = rlx.New(v[from*n:to*n], append([]int{to - from}, c.in[name]...)...)
		}
		out, err := p.Run(t.Context(), feed)
		if err != nil {
			t.Fatalf("%s, rows %d to %d: %v", c.name, from, to, err)
		}
		return out
	}
	var alone []rlx.Feed
	for i := range slices.Max(sizes) {
		alone = append(alone, run(i, i+1))
	}
	for _, size := range sizes {
		for name, y := range run(0, size) {
			for i := range size {
				if !bytes.Equal(rowBytes(y, c.axis[name], i), alone[i][name].Bytes()) {
					t.Errorf("%s, output %s: row %d of %d has other bits than alone", c.name, name, i, size)
					break
				}
			}
		}
	}
}

// rowBytes is row i along an axis.
func rowBytes(x *rlx.Tensor, axis, i int) (row []byte) {
	outer, size := 1, int(x.Shape()[axis])
	for _, d := range x.Shape()[:axis] {
		outer *= int(d)
	}
	n := len(x.Bytes()) / outer / size
	for o := range outer {
		row = append(row, x.Bytes()[(o*size+i)*n:(o*size+i+1)*n]...)
	}
	return row
}

// A row of a batch has the bits of the same row alone, under every instruction set (each in a process of its own), with one thread and several, with
// all passes and with none.
func TestBatchInvariance(t *testing.T) {
	if os.Getenv("RLX_TEST_BATCHES") != "" {
		for _, c := range rowwiseNets() {
			c.check(t, batchSizes, rlx.On("cpu"), rlx.Threads(3))
			c.check(t, batchSizes, rlx.On("cpu"), rlx.Threads(1), rlx.OnlyPasses())
		}
		return
	}
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	onEveryISA(t, "RLX_TEST_BATCHES", func(*testing.T, []byte) {})
}

// The interpreter keeps rows apart too. Accelerators are asked for less, since compiling for them takes long.
func TestBatchInvarianceOfOthers(t *testing.T) {
	for _, b := range backends() {
		if b == "cpu" || b == "ref" && testing.Short() {
			continue
		}
		nets, sizes := rowwiseNets(), batchSizes
		if conform.Slow(b) {
			nets, sizes = nets[:4], []int{1, 3}
		}
		for _, c := range nets {
			c.check(t, sizes, rlx.On(b))
		}
	}
}

// MiniLM has int8 weights, attention and layer norm.
func TestBatchInvarianceOfMiniLM(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	p := compile(t, open(t, minilm), rlx.On("cpu"))
	in := tokens(16, 9)
	var alone [][]float32
	for r := range 16 {
		alone = append(alone, hidden(t, p, row(t, in, r)))
	}
	for _, size := range batchSizes {
		part := rlx.Feed{}
		for name, x := range in {
			ids, err := rlx.Data[int64](x)
			if err != nil {
				t.Fatal(err)
			}
			part[name] = rlx.New(ids[:size*9], size, 9)
		}
		if got := hidden(t, p, part); !slices.Equal(got, slices.Concat(alone[:size]...)) {
			t.Errorf("a batch of %d has other bits than its rows alone", size)
		}
	}
}

// The models whose inputs are floats: row r of a batch is the stored input turned by r places.
func TestBatchInvarianceOfModels(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	if testing.Short() {
		t.Skip("seven rows of every model, alone and together, take seconds (-short)")
	}
	cases, err := golden.Read(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range byProgram(cases) {
		c := group[0]
		stored, batch := goldenFeed(t, c, 0), 0
		for name, x := range stored {
			if x.DType() == rlx.F32 && !strings.HasPrefix(name, "state") {
				batch = int(x.Shape()[0])
			}
		}
		if batch == 0 {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			m := open(t, c.Model, rlx.For(stored))
			for _, name := range m.Bound() {
				delete(stored, name)
			}
			p := compile(t, m, rlx.On("cpu"))
			run := func(from, to int) rlx.Feed {
				feed := rlx.Feed{}
				for name, x := range stored {
					feed[name] = alongBatch(t, name, x, func(v []float32) (rows []float32) {
						v = v[:len(v)/batch]
						for r := from; r < to; r++ {
							rows = slices.Concat(rows, v[r:], v[:r])
						}
						return rows
					})
				}
				out, err := p.Run(t.Context(), feed)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			whole := run(0, 7)
			for r := range 7 {
				for name, want := range run(r, r+1) {
					got := alongBatch(t, name, whole[name], func(v []float32) []float32 { return v[r*len(v)/7 : (r+1)*len(v)/7] })
					if !sameTensor(got, want) {
						t.Errorf("%s: row %d of 7 has other bits than alone", name, r)
					}
				}
			}
		})
	}
}
