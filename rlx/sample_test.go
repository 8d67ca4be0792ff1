package rlx_test

import (
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Sample without u draws with the numbers of RngUniform of the same seed, key and step: the run's seed where the node has none.
func TestSampleDraws(t *testing.T) {
	const rows, ids = 150, 50 // rows of more than one batch of random words
	for _, backend := range backends() {
		g := rlx.NewGraph("sample")
		step := g.Input("step", ir.I64, ir.Dims())
		x := op.RngNormal(g, ir.F32, 0, 2, ir.D(rows), ir.D(ids))
		same := func(name string, seed ir.Number, step ir.Value) {
			u := op.RngUniformWith(g, op.RngUniformAttrs{Shape: ir.Dims(rows), Dtype: ir.F32, High: 1, Seed: seed, Key: 1 << 40}, ir.Value{}, step)
			a := op.SampleAttrs{Temperature: 0.8, TopK: 20, TopP: 0.95, IndexDtype: ir.I64, Seed: seed, Key: 1 << 40}
			g.Output(name, op.SampleWith(x, a, ir.Value{}, ir.Value{}, step))
			a.Seed, a.Key = ir.Number{}, 0
			g.Output(name+" by u", op.SampleWith(x, a, u, ir.Value{}, ir.Value{}))
		}
		same("run", ir.Number{}, ir.Value{})
		same("own", ir.IntNumber(9), ir.Value{})
		same("step", ir.IntNumber(9), step)
		p, err := rlx.Compile(t.Context(), g, rlx.On(backend))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		draws := map[string]bool{}
		for _, opts := range [][]rlx.RunOption{nil, {rlx.Seed(7)}} {
			out, err := p.Run(t.Context(), rlx.Feed{"step": ir.Scalar(int64(1<<33) + 3)}, opts...)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"run", "own", "step"} {
				got, want := string(out[name].Bytes()), string(out[name+" by u"].Bytes())
				if got != want {
					t.Errorf("%s: %s: ids are not those that RngUniform's numbers draw", backend, name)
				}
				draws[got] = true
			}
		}
		if len(draws) != 6 { // x changes with the seed of the run, too
			t.Errorf("%s: %d different results of two runs with three seeds each, expected 6", backend, len(draws))
		}
	}
}
