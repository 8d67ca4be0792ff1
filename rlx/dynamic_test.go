package rlx_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Weights and biases of dynamicNet: 4 features in, 3 out. Whole numbers, so that every sum is exact in any order.
var (
	dynamicW = [4][3]float32{{1, -2, 0}, {2, 1, -1}, {-1, 0, 2}, {0, 1, 1}}
	dynamicB = [3]float32{1, -1, 2}
)

// dynamicNet has results whose ranks and lengths depend on batch and sequence in several ways.
func dynamicNet() *rlx.Graph {
	g := rlx.NewGraph("dynamic")
	x := g.Input("x", rlx.F32, rlx.Shape("batch", "sequence", 4))
	batch, seq := x.Shape()[0], x.Shape()[1]
	w := g.Param("w", f32s([]int{4, 3}, slices.Concat(dynamicW[0][:], dynamicW[1][:], dynamicW[2][:], dynamicW[3][:])...))
	y := op.Relu(op.Add(op.MatMul(x, w), g.Param("b", f32s([]int{3}, dynamicB[:]...))))
	g.Output("y", y)
	g.Output("total", op.Sum(y, 1))
	g.Output("flat", op.Reshape(y, batch.Mul(seq), ir.D(3)))
	g.Output("swapped", op.Transpose(y, 1, 0, 2))
	g.Output("joined", op.Concat(1, y, op.Neg(y)))
	scores := op.MatMul(y, op.Transpose(y, 0, 2, 1))
	g.Output("scores", scores)
	g.Output("weights", op.Softmax(op.Mul(scores, 1.0/64), -1))
	return g
}

func dynamicFeed(batch, seq int) rlx.Feed {
	x := make([]float32, batch*seq*4)
	for i := range x {
		x[i] = float32((i*7+batch*3+seq)%7 - 3)
	}
	return rlx.Feed{"x": rlx.New(x, batch, seq, 4)}
}

// dynamicWant computes the results by loops.
func dynamicWant(in rlx.Feed) rlx.Feed {
	x, _ := rlx.Data[float32](in["x"])
	batch, seq := int(in["x"].Shape()[0]), int(in["x"].Shape()[1])
	y, total, swapped := make([]float32, batch*seq*3), make([]float32, batch*3), make([]float32, batch*seq*3)
	var joined, scores, weights []float32
	for b := range batch {
		for s := range seq {
			for j := range 3 {
				v := dynamicB[j]
				for k := range 4 {
					v += x[(b*seq+s)*4+k] * dynamicW[k][j]
				}
				v = max(v, 0)
				y[(b*seq+s)*3+j], swapped[(s*batch+b)*3+j] = v, v
				total[b*3+j] += v
			}
		}
		rows := y[b*seq*3 : (b+1)*seq*3]
		joined = append(joined, rows...)
		for _, v := range rows {
			joined = append(joined, -v)
		}
		for s := range seq {
			line, sum := make([]float64, seq), 0.0
			for o := range seq {
				dot := rows[s*3]*rows[o*3] + rows[s*3+1]*rows[o*3+1] + rows[s*3+2]*rows[o*3+2]
				scores = append(scores, dot)
				line[o] = math.Exp(float64(dot) / 64)
				sum += line[o]
			}
			for o := range seq {
				weights = append(weights, float32(line[o]/sum))
			}
		}
	}
	return rlx.Feed{"y": rlx.New(y, batch, seq, 3), "total": rlx.New(total, batch, 3), "flat": rlx.New(y, batch*seq, 3), "swapped": rlx.New(swapped, seq, batch, 3),
		"joined": rlx.New(joined, batch, 2*seq, 3), "scores": rlx.New(scores, batch, seq, seq), "weights": rlx.New(weights, batch, seq, seq)}
}

func checkDynamic(t *testing.T, out rlx.Feed, want rlx.Feed) {
	t.Helper()
	for name, w := range want {
		y := out[name]
		switch {
		case y == nil || !slices.Equal(y.Shape(), w.Shape()):
			t.Errorf("%s: got %v, expected shape %v", name, y, w.Shape())
		case name == "weights":
			if err := conform.Compare(y, w, 1e-6, 1e-6); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case !slices.Equal(floats(y), floats(w)): // -0 equals 0
			t.Errorf("%s: got %s, expected %s", name, tensorText(y), tensorText(w))
		}
	}
}

// One program takes 110 pairs of batch and sequence, zeros among them, with at most 16 specialisations at a time, and returns the shapes of its
// results. Whatever ran in between, a pair has the bits of its first run.
func TestDynamicShapes(t *testing.T) {
	var pairs [][2]int
	for batch := range 11 {
		for _, seq := range []int{0, 1, 2, 3, 5, 8, 9, 16, 17, 33} {
			pairs = append(pairs, [2]int{batch, seq})
		}
	}
	for _, b := range backends() {
		t.Run(b, func(t *testing.T) {
			pairs := pairs
			if conform.Slow(b) {
				pairs = [][2]int{{0, 0}, {0, 3}, {2, 0}, {1, 1}, {2, 5}, {3, 17}}
			}
			p := compileGraph(t, dynamicNet(), rlx.On(b))
			first := map[[2]int]rlx.Feed{}
			run := func(pair [2]int) {
				in := dynamicFeed(pair[0], pair[1])
				out, err := p.Run(t.Context(), in)
				if err != nil {
					t.Fatalf("%v: %v", pair, err)
				}
				if s := p.Stats(); s.Memory.Specialisations > 16 || s.Builds-s.Evictions > 16 {
					t.Fatalf("%v: got %+v, expected at most 16 specialisations", pair, s)
				}
				if first[pair] == nil {
					first[pair] = out
					checkDynamic(t, out, dynamicWant(in))
				} else if !sameFeed(out, first[pair]) {
					t.Errorf("%v: other bits than before", pair)
				}
			}
			for i, pair := range pairs {
				run(pair)
				run(pairs[i/2]) // kept or evicted
				run(pair)
			}
			if s := p.Stats(); len(pairs) > 16 && (s.Evictions == 0 || s.Hits == 0) {
				t.Errorf("got %+v, expected that specialisations were used again and evicted", s)
			}
		})
	}
}

func sameFeed(got, want rlx.Feed) bool {
	for name := range want {
		if !sameTensor(got[name], want[name]) {
			return false
		}
	}
	return len(got) == len(want)
}

// Every element of every output is written: memory full of NaN holds the results of Run afterwards. A run that fails gives no outputs at all.
func TestOutputsAreWhole(t *testing.T) {
	for _, b := range backends() {
		p := compileGraph(t, dynamicNet(), rlx.On(b))
		for _, pair := range [][2]int{{1, 1}, {3, 17}, {2, 0}} {
			in := dynamicFeed(pair[0], pair[1])
			want, err := p.Run(t.Context(), in)
			if err != nil || len(want) != len(p.Graph().Outputs) {
				t.Fatalf("%s, %v: %d outputs (%v), expected %d", b, pair, len(want), err, len(p.Graph().Outputs))
			}
			got := rlx.Feed{}
			for name, y := range want {
				got[name] = rlx.New(slices.Repeat([]float32{float32(math.NaN())}, y.Len()), shapeInts(y.Shape())...)
			}
			r := p.Runner()
			if err := r.RunInto(t.Context(), in, got); err != nil || !sameFeed(got, want) {
				t.Errorf("%s, %v: RunInto left or wrote other bits than Run (%v)", b, pair, err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		g := rlx.NewGraph("lookup")
		g.Output("y", op.Gather(g.Param("table", f32s([]int{3}, 1, 2, 3)), g.Input("i", rlx.I64, rlx.Shape("n")), 0))
		if out, err := compileGraph(t, g, rlx.On(b)).Run(t.Context(), rlx.Feed{"i": i64s(0, 3)}); err == nil || out != nil {
			t.Errorf("%s: row 3 of 3: got %v (%v), expected an error and no outputs", b, out, err)
		}
	}
}

// A model file, too, runs without rows.
func TestEmptyBatchOfAModel(t *testing.T) {
	for _, b := range backends() {
		out, err := compile(t, openDigits(t), rlx.On(b)).Run(t.Context(), pixels(0, 1))
		if err != nil || fmt.Sprint(out["probabilities"].Shape()) != "[0 10]" || out["probabilities"].Len() != 0 {
			t.Errorf("%s: got %v (%v), expected f32[0 10]", b, out, err)
		}
	}
}
