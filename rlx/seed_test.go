package rlx_test

import (
	"fmt"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// A random node without a seed takes that of the run, 42 without one; equal nodes are one, others never share numbers.
func TestSeedOfRun(t *testing.T) {
	for _, backend := range backends() {
		g := rlx.NewGraph("random")
		own := op.RngUniformWith(g, op.RngUniformAttrs{Shape: ir.Dims(5), Dtype: ir.F32, High: 1, Seed: ir.IntNumber(42)}, ir.Value{}, ir.Value{})
		free := op.RngUniform(g, ir.F32, 0, 1, ir.D(5))
		g.Output("own", own)
		g.Output("free", op.RngUniformWith(g, op.RngUniformAttrs{Shape: ir.Dims(5), Dtype: ir.F32, High: 1}, ir.Value{}, ir.Value{}))
		g.Output("next", free)
		p, err := rlx.Compile(t.Context(), g, rlx.On(backend))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		draw := func(opts ...rlx.RunOption) (own, free, next string) {
			out, err := p.Run(t.Context(), nil, opts...)
			if err != nil {
				t.Fatal(err)
			}
			text := func(name string) string {
				v, err := rlx.Data[float32](out[name])
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprint(v)
			}
			return text("own"), text("free"), text("next")
		}
		var profile rlx.Profile
		a, b, c := draw()
		if a != b || a == c {
			t.Errorf("%s: seed 42 gives %s, the default %s, another key %s", backend, a, b, c)
		}
		a2, b2, _ := draw(rlx.WithProfile(&profile))
		if a2 != a || b2 != b {
			t.Errorf("%s: options changed the numbers: %s, then %s", backend, b, b2)
		}
		a3, b3, _ := draw(rlx.Seed(7))
		if a3 != a || b3 == b {
			t.Errorf("%s: seed 7 gives %s and %s, expected %s and other numbers", backend, a3, b3, a)
		}
	}
}
