package op

import (
	"math"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func TestSampleRefuses(t *testing.T) {
	with := func(a SampleAttrs, x, u, temperature, step []ir.Dim) func(*ir.Graph) {
		if a.IndexDtype == 0 {
			a.IndexDtype = ir.I64
		}
		return func(g *ir.Graph) {
			input := func(name string, d ir.DType, s []ir.Dim) ir.Value {
				if s == nil {
					return ir.Value{}
				}
				return g.Input(name, d, s)
			}
			SampleWith(input("x", ir.F32, x), a, input("u", ir.F32, u), input("t", ir.F16, temperature), input("step", ir.I64, step))
		}
	}
	x, one := ir.Dims(2, 5), ir.Dims(1)
	refused(t, with(SampleAttrs{Temperature: -1}, x, nil, nil, nil), "Sample", "C2", "temperature")
	refused(t, with(SampleAttrs{Temperature: math.NaN()}, x, nil, nil, nil), "Sample", "C2", "temperature")
	refused(t, with(SampleAttrs{Temperature: math.Inf(1)}, x, nil, nil, nil), "Sample", "C2", "temperature")
	refused(t, with(SampleAttrs{}, x, nil, one, nil), "Sample", "C2", "[1]", "[2]")
	refused(t, with(SampleAttrs{}, x, ir.Dims(), nil, nil), "Sample", "C3", "u", "[2]")
	refused(t, with(SampleAttrs{}, ir.Dims(2, 0), nil, nil, nil), "Sample", "C4")
	refused(t, with(SampleAttrs{}, x, ir.Dims(2), nil, one), "Sample", "C5")
	refused(t, with(SampleAttrs{}, ir.Dims(), nil, nil, nil), "Sample", "C6")
	refused(t, with(SampleAttrs{IndexDtype: ir.F32}, ir.Dims(1, 1<<24+1), nil, nil, nil), "Sample", "C8", "f32")
	refused(t, with(SampleAttrs{IndexDtype: ir.F64}, x, nil, nil, nil), "Sample", "C8", "f64")
	refused(t, with(SampleAttrs{}, x, nil, nil, ir.Dims(2)), "Sample", "step")
	refused(t, with(SampleAttrs{Seed: ir.IntNumber(-1)}, x, nil, nil, nil), "Sample", "seed")
	refused(t, func(g *ir.Graph) { Sample(g.Input("x", ir.C64, x), 1, 0, 1) }, "Sample", "C7", "c64")

	g := ir.NewGraph("")
	n := ir.Sym("n")
	with(SampleAttrs{Temperature: -1}, []ir.Dim{n, ir.Sym("v")}, nil, []ir.Dim{n}, nil)(g) // the operand takes the attribute's place
	a, b := Sample(g.Input("a", ir.BF16, x), 1, 0, 1), Sample(g.Input("b", ir.F64, x), 1, 0, 1)
	SampleWith(g.Input("none", ir.F32, ir.Dims(0, 0)), SampleAttrs{IndexDtype: ir.I32}, ir.Value{}, ir.Value{}, ir.Value{})
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	if p, q := a.Node().Attrs.(*SampleAttrs).Key, b.Node().Attrs.(*SampleAttrs).Key; p != 1 || q != 2 {
		t.Errorf("keys %d and %d, expected 1 and 2", p, q)
	}
}
