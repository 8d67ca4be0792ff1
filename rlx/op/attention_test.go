package op

import (
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Sizes that only a run knows: shapes follow, and nothing is refused that may turn out to be right.
func TestAttentionOfSymbolicSizes(t *testing.T) {
	g := ir.NewGraph("")
	b, s, past := ir.Sym("b"), ir.Sym("s"), ir.Sym("past")
	q := g.Input("q", ir.F32, []ir.Dim{b, s, ir.D(96)})
	k := g.Input("k", ir.F32, []ir.Dim{b, past.Add(s), ir.D(32)})
	v := g.Input("v", ir.F32, []ir.Dim{b, past.Add(s), ir.D(16)})
	mask := g.Input("mask", ir.Bool, []ir.Dim{b, ir.D(1), ir.D(1), past.Add(s)})
	n := g.Input("n", ir.I64, []ir.Dim{b})
	y := Attention(q, k, v, mask, n, AttentionAttrs{Mask: "causal", Layout: "bsd", NumHeads: 6, NumKvHeads: 2})
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	if want := []ir.Dim{b, s, ir.D(48)}; !y.Type().Equal(ir.Type{DType: ir.F32, Shape: want}) {
		t.Errorf("got %s, expected %s", y.Type(), ir.ShapeText(want))
	}
	r := Rope(q, g.Input("cos", ir.F32, []ir.Dim{ir.Sym("p"), ir.D(8)}), g.Input("sin", ir.F32, []ir.Dim{ir.Sym("p"), ir.D(8)}),
		g.Input("at", ir.I64, []ir.Dim{b, s}), RopeAttrs{Layout: "bsd", NumHeads: 6})
	if !r.Type().Equal(q.Type()) || g.Err() != nil {
		t.Errorf("got %s and %v, expected %s", r.Type(), g.Err(), q.Type())
	}
}

func TestRecurrentLayersOfSymbolicSizes(t *testing.T) {
	g := ir.NewGraph("")
	b, s := ir.Sym("b"), ir.Sym("s")
	x := g.Input("x", ir.F16, []ir.Dim{b, s, ir.D(5)})
	in := func(name string, dims ...int64) ir.Value { return g.Input(name, ir.F16, ir.Dims(dims...)) }
	y, h, c := Lstm(x, RnnWeights{Wih: in("wih", 2, 12, 5), Whh: in("whh", 2, 12, 3), SeqLen: g.Input("n", ir.I32, []ir.Dim{b})}, ir.Value{}, in("p", 2, 9),
		LstmAttrs{Direction: "bidirectional"})
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	state := ir.Type{DType: ir.F16, Shape: []ir.Dim{ir.D(2), b, ir.D(3)}}
	if !y.Type().Equal(ir.Type{DType: ir.F16, Shape: []ir.Dim{b, s, ir.D(6)}}) || !h.Type().Equal(state) || !c.Type().Equal(state) {
		t.Errorf("got %s, %s and %s", y.Type(), h.Type(), c.Type())
	}
}

// Constraints that the case files do not reach.
func TestAttentionConstraints(t *testing.T) {
	window := int64(3)
	for _, c := range []struct {
		kind, constraint string
		build            func(g *ir.Graph, in func(dims ...int64) ir.Value) ir.Value
	}{
		{"Attention", "C1", func(_ *ir.Graph, in func(...int64) ir.Value) ir.Value {
			return Attention(in(1, 2, 8), in(1, 2, 8), in(1, 2, 8), ir.Value{}, ir.Value{}, AttentionAttrs{Layout: "bsd"})
		}},
		{"Attention", "C1", func(_ *ir.Graph, in func(...int64) ir.Value) ir.Value {
			return Attention(in(1, 2, 8), in(1, 2, 8), in(1, 2, 8), ir.Value{}, ir.Value{}, AttentionAttrs{Layout: "bsd", NumHeads: 3})
		}},
		{"Attention", "C3", func(_ *ir.Graph, in func(...int64) ir.Value) ir.Value {
			return Attention(in(1, 2, 2, 4), in(1, 0, 2, 4), in(1, 0, 2, 4), ir.Value{}, ir.Value{}, AttentionAttrs{})
		}},
		{"Attention", "C4", func(g *ir.Graph, in func(...int64) ir.Value) ir.Value {
			return Attention(in(1, 1, 2, 4), in(1, 1, 2, 4), in(1, 1, 2, 4), g.Input("m", ir.F16, ir.Dims(2, 2)), ir.Value{}, AttentionAttrs{})
		}},
		{"Attention", "C6", func(_ *ir.Graph, in func(...int64) ir.Value) ir.Value {
			return Attention(in(1, 1, 2, 4), in(1, 1, 2, 4), in(1, 1, 2, 4), ir.Value{}, ir.Value{}, AttentionAttrs{Softcap: -1, Window: &window})
		}},
		{"Rope", "C2", func(_ *ir.Graph, in func(...int64) ir.Value) ir.Value {
			return Rope(in(1, 1, 2, 4), in(2, 8), in(2, 8), ir.Value{}, RopeAttrs{RotaryDim: 6})
		}},
		{"Rope", "C3", func(g *ir.Graph, in func(...int64) ir.Value) ir.Value {
			return Rope(in(1, 1, 2, 4), in(1, 2, 2), in(1, 2, 2), g.Input("p", ir.I64, ir.Dims(2)), RopeAttrs{})
		}},
		{"Rope", "C4", func(g *ir.Graph, in func(...int64) ir.Value) ir.Value {
			return Rope(in(2, 1, 2, 4), in(9, 2), in(9, 2), g.Input("p", ir.I64, ir.Dims(3)), RopeAttrs{})
		}},
		{"AxialRope2d", "C3", func(_ *ir.Graph, in func(...int64) ir.Value) ir.Value {
			return AxialRope2d(in(1, 1, 4, 4), AxialRope2dAttrs{GridWidth: 1 << 62, GridHeight: 4, RepeatFactor: 4})
		}},
		{"Lstm", "C7", func(_ *ir.Graph, in func(...int64) ir.Value) ir.Value {
			y, _, _ := Lstm(in(1, 2, 3), RnnWeights{Wih: in(1, 8, 3), Whh: in(1, 8, 2)}, ir.Value{}, in(1, 8), LstmAttrs{})
			return y
		}},
		{"Gru", "C6", func(_ *ir.Graph, in func(...int64) ir.Value) ir.Value {
			y, _ := Gru(in(1, 2, 3), RnnWeights{Wih: in(1, 6, 3), Whh: in(1, 6, 2)}, GruAttrs{Clip: -1})
			return y
		}},
		{"Rnn", "C2", func(_ *ir.Graph, in func(...int64) ir.Value) ir.Value {
			y, _ := Rnn(in(2, 3), RnnWeights{Wih: in(1, 2, 3), Whh: in(1, 2, 2)}, RnnAttrs{})
			return y
		}},
	} {
		g, count := ir.NewGraph(""), 0
		c.build(g, func(dims ...int64) ir.Value {
			count++
			return g.Input(strings.Repeat("x", count), ir.F32, ir.Dims(dims...))
		})
		if err := g.Err(); err == nil || !strings.Contains(err.Error(), c.kind+": "+c.constraint) {
			t.Errorf("got %v, expected %s: %s", err, c.kind, c.constraint)
		}
	}
}
