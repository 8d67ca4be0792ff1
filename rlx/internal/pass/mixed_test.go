package pass_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// upcastAttention is attention of f16 weights whose scores are computed in f32, as exporters write float() on queries, keys and values as they leave their
// layers, a cache of keys and values among them.
func upcastAttention(g *ir.Graph, x ir.Value) ir.Value {
	r := rng(5)
	layer := func(name string) ir.Value {
		return op.MatMul(x, g.Param(name, narrowed(randomTensor(r, ir.F32, 8, 8), ir.F16)))
	}
	heads := func(v ir.Value) ir.Value {
		return op.Transpose(op.Reshape(op.Cast(v, ir.F32), ir.Dims(2, 5, 2, 4)...), 0, 2, 1, 3)
	}
	cached := func(name string, v ir.Value) ir.Value {
		return op.Concat(2, op.Cast(g.Input(name, ir.F16, ir.Dims(2, 2, 3, 4)), ir.F32), heads(v))
	}
	q, k, v := heads(layer("wq")), cached("past k", layer("wk")), cached("past v", layer("wv"))
	p := op.Softmax(op.Mul(op.MatMul(q, op.Transpose(k, 0, 1, 3, 2)), 0.5), -1)
	y := op.Reshape(op.Transpose(op.MatMul(p, v), 0, 2, 1, 3), ir.Dims(2, 5, 8)...)
	return op.MatMul(op.Cast(y, ir.F16), g.Param("wo", narrowed(randomTensor(r, ir.F32, 8, 8), ir.F16)))
}

// rmsNorm is a norm in f32 between f16 values.
func rmsNorm(g *ir.Graph, x ir.Value, axis int) ir.Value {
	h := op.Cast(x, ir.F32)
	mean := op.Reduce(op.Mul(h, h), "mean", []int{axis}, true)
	return op.Cast(op.Mul(h, op.Rsqrt(op.Add(mean, 1e-6))), ir.F16)
}

// channelNorm is a norm over the channels of an image, which lie last meanwhile.
func channelNorm(g *ir.Graph, x ir.Value) ir.Value {
	h := op.Transpose(op.Cast(x, ir.F32), 0, 2, 1)
	h = op.LayerNorm(h, g.Param("gamma", floats(5)), g.Param("beta", floats(5)), -1, 1e-5)
	return op.Cast(op.Transpose(h, 0, 2, 1), ir.F16)
}

// Graphs of mixed precision: what moves data moves the narrow elements, casts do not get more, and bits stay.
func TestMixedPrecision(t *testing.T) {
	for _, c := range []struct {
		name          string
		build         func(g *ir.Graph, x ir.Value) ir.Value
		wide, left    int // moves of f32, before and after
		casts, behind int
	}{
		{"attention", upcastAttention, 11, 0, 6, 4},
		{"norm of channels", channelNorm, 2, 0, 2, 2},
		{"norm", func(g *ir.Graph, x ir.Value) ir.Value { return rmsNorm(g, x, -1) }, 0, 0, 2, 2},
		{"two norms with a turn between", func(g *ir.Graph, x ir.Value) ir.Value {
			return rmsNorm(g, op.Transpose(rmsNorm(g, x, -1), 0, 2, 1), -1)
		}, 0, 0, 4, 4},
		{"f32 that only turns", func(g *ir.Graph, x ir.Value) ir.Value {
			return op.Neg(op.Cast(op.Reshape(op.Transpose(op.Cast(x, ir.F32), 0, 2, 1), ir.Dims(16, 5)...), ir.F16))
		}, 2, 0, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := ir.NewGraph("g")
			g.Output("y", c.build(g, g.Input("x", ir.F16, ir.Dims(2, 5, 8))))
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			out, err := pass.Pipeline{Passes: []pass.Pass{pass.Views, pass.Algebra, pass.Sink, pass.Layout}, Support: everything(), Verify: true}.Run(g)
			if err != nil {
				t.Fatal(err)
			}
			for _, side := range []struct {
				g           *ir.Graph
				moves, cast int
			}{{g, c.wide, c.casts}, {out, c.left, c.behind}} {
				if moves := wideMoves(side.g); moves != side.moves || countOf(side.g, "Cast") != side.cast {
					t.Errorf("%d moves of f32 and %d casts, expected %d and %d\n%s", moves, countOf(side.g, "Cast"), side.moves, side.cast, side.g)
				}
			}
			for k := range 4 {
				feed := randomFeed(g, rand.New(rand.NewPCG(uint64(k), 2)), func(string) []float64 {
					if k == 0 {
						return nil
					}
					return special
				})
				sameBits(t, oneNaN(evaluate(t, out, feed)), oneNaN(evaluate(t, g, feed)), out)
			}
		})
	}
}

// wideMoves counts nodes that move elements of f32.
func wideMoves(g *ir.Graph) int {
	n := 0
	for _, x := range g.Nodes {
		if (x.Row.Has(ir.View) || x.Row.Name == "Concat") && x.Types[0].DType == ir.F32 {
			n++
		}
	}
	return n
}
