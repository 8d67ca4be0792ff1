// Package workload holds the benchmark workloads: graphs with seeded inputs, their useful flop and least bytes, and the same graphs in f64 that
// their results are held against.
package workload

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Workload is one line of the benchmark.
type Workload struct {
	Name  string
	Flop  float64 // useful work, multiply and add are 2; 0 where nobody counted
	Bytes float64 // least traffic: each operand read once, each result written once
	Unit  string  // what bounds the arithmetic: f32, bf16 or i8; empty where memory does
	Reads bool    // nearly all of the traffic is operands: reads of memory bound it, not copies
	Note  string  // what a reader of the time must know

	define func(b *Builder)      // a graph that is written here
	open   func() (*Case, error) // a model file, or why there is nothing to run
	narrow bool                  // a row takes no f64: the interpreter, which sums in f64, rounds each value to the row's dtype
}

// Case is a workload to run.
type Case struct {
	Graph *rlx.Graph
	Feed  rlx.Feed
	Rows  []int // of a reference: the rows of the outputs that it computes, nil for all
}

// Case makes the graph and its inputs, the same numbers each time.
func (w *Workload) Case() (*Case, error) {
	if w.open != nil {
		return w.open()
	}
	return w.build(&Builder{})
}

// Reference is the same graph on the same numbers in f64, for the interpreter. Large products have some of their rows only.
func (w *Workload) Reference() (*Case, error) {
	if w.open != nil {
		return w.open()
	}
	return w.build(&Builder{reference: true, wide: !w.narrow})
}

// IsFile says that the graph is read from a file.
func (w *Workload) IsFile() bool { return w.open != nil }

// Tolerance is the largest difference from the reference that a result may have, as a share of the largest magnitude in its output.
func (w *Workload) Tolerance() float64 {
	const sums = 1e-5 // f32 sums, one op or a network of them
	switch {
	case w.open != nil:
		return 1e-4 // trained weights: layers amplify the differences of those before
	case w.Unit == "bf16":
		return sums + 0x1p-8 // the result is rounded to 8 bits
	}
	return sums
}

func (w *Workload) build(b *Builder) (*Case, error) {
	b.Graph, b.feed = rlx.NewGraph(w.Name), rlx.Feed{}
	w.define(b)
	return &Case{b.Graph, b.feed, b.rows}, b.Graph.Err()
}

// All lists the workloads.
func All() []Workload {
	return slices.Concat(products(), packed(), rows(), attentions(), convolutions(), recurrent(), transforms(), training(), networks(), modulated(),
		[]Workload{adds(1), adds(100)}, modelFiles())
}

// Service is what the service rows of the benchmark run: a product and what follows it in a network, some milliseconds.
func Service() Workload {
	return Workload{Name: "service", define: func(b *Builder) {
		x := b.Input("x", 128, 768)
		y := op.Gelu(op.MatMul(x, b.Weight("w", 768, 768)))
		b.Output("y", op.LayerNorm(op.Add(x, y), b.Param("gamma", 1, 768), b.Param("beta", 1, 768), -1, 1e-5))
	}}
}

// adds is n dependent adds on f32[64]: the fixed cost of a run.
func adds(n int) Workload {
	return Workload{Name: fmt.Sprintf("overhead.ops%d", n), define: func(b *Builder) {
		x := b.Input("x", 64)
		y := x
		for range n {
			y = op.Add(y, x)
		}
		b.Output("y", y)
	}}
}

var errNoGradients = errors.New("rlx has no gradients yet")

// training are whole steps: forward, softmax cross-entropy, backward, SGD update, batch 64.
func training() []Workload {
	absent := func() (*Case, error) { return nil, errNoGradients }
	const mlp, lenet = 784*512 + 512*256 + 256*10, 28*28*6*25 + 10*10*16*6*25 + 400*120 + 120*84 + 84*10
	return []Workload{
		{Name: "train.mlp.b64", Flop: 3*2*64*mlp - 2*64*784*512, Bytes: 12 * mlp, Unit: "f32", open: absent},
		{Name: "train.lenet.b64", Flop: 3*2*64*lenet - 2*64*28*28*6*25, Bytes: 12 * 61706, Unit: "f32", open: absent},
	}
}
