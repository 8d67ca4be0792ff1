package pass_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// angles is [s, d] of the cosines or sines of a rotary embedding, the second half of each row as the first, or not.
func angles(s, d int, f func(float64) float64, repeated bool) *ir.Tensor {
	list := make([]float32, s*d)
	for i := range list {
		k := i % d
		if repeated {
			k %= d / 2
		}
		list[i] = float32(f(float64(i/d) * math.Pow(100, -2*float64(k)/float64(d))))
	}
	return ir.New(list, s, d)
}

// rotated is concat(-x2, x1) along the last axis.
func rotated(x ir.Value, d int64) ir.Value {
	return op.Concat(-1, op.Neg(op.Narrow(x, -1, d/2, d/2)), op.Narrow(x, -1, 0, d/2))
}

// TestRotary wants the spelled-out embedding in one node, with the same numbers; what the tables or the turn do not allow stays.
func TestRotary(t *testing.T) {
	const s, d = 5, 8
	table := func(x ir.Value, f func(float64) float64, repeated bool) ir.Value {
		return x.Graph().Constant(angles(s, d, f, repeated))
	}
	for _, c := range []struct {
		name string
		want bool
		f    func(x ir.Value) ir.Value
	}{
		{"constant tables", true, func(x ir.Value) ir.Value {
			return op.Add(op.Mul(x, table(x, math.Cos, true)), op.Mul(rotated(x, d), table(x, math.Sin, true)))
		}},
		{"the other way round, tables of rank 4", true, func(x ir.Value) ir.Value {
			four := func(v ir.Value) ir.Value { return op.Reshape(v, ir.D(1), ir.D(1), ir.D(s), ir.D(d)) }
			return op.Add(op.Mul(four(table(x, math.Sin, true)), rotated(x, d)), op.Mul(four(table(x, math.Cos, true)), x))
		}},
		{"computed tables", true, func(x ir.Value) ir.Value {
			f := x.Graph().Input("f", ir.F32, ir.Dims(s, d/2))
			both := op.Concat(-1, f, f)
			return op.Add(op.Mul(x, op.Cos(both)), op.Mul(rotated(x, d), op.Sin(both)))
		}},
		{"halves that differ", false, func(x ir.Value) ir.Value {
			return op.Add(op.Mul(x, table(x, math.Cos, false)), op.Mul(rotated(x, d), table(x, math.Sin, true)))
		}},
		{"turned the other way", false, func(x ir.Value) ir.Value {
			turn := op.Concat(-1, op.Narrow(x, -1, d/2, d/2), op.Neg(op.Narrow(x, -1, 0, d/2)))
			return op.Add(op.Mul(x, table(x, math.Cos, true)), op.Mul(turn, table(x, math.Sin, true)))
		}},
		{"a third", false, func(x ir.Value) ir.Value {
			turn := op.Concat(-1, op.Neg(op.Narrow(x, -1, 2, d-2)), op.Narrow(x, -1, 0, 2))
			return op.Add(op.Mul(x, table(x, math.Cos, true)), op.Mul(turn, table(x, math.Sin, true)))
		}},
		{"a difference", false, func(x ir.Value) ir.Value {
			return op.Sub(op.Mul(x, table(x, math.Cos, true)), op.Mul(rotated(x, d), table(x, math.Sin, true)))
		}},
		{"read elsewhere", false, func(x ir.Value) ir.Value {
			u := op.Mul(x, table(x, math.Cos, true))
			x.Graph().Output("u", u)
			return op.Add(u, op.Mul(rotated(x, d), table(x, math.Sin, true)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, after := rewritten(t, pass.Rotary, ir.F32, c.f, 2, 3, s, d)
			if got := countOf(after, "Rope") == 1; got != c.want {
				t.Fatalf("found %v, expected %v:\n%s", got, c.want, after)
			}
			feed := randomFeed(before, rand.New(rand.NewPCG(1, 2)), func(string) []float64 { return []float64{math.NaN(), math.Inf(1), math.Copysign(0, -1)} })
			sameNumbers(t, evaluate(t, after, feed), evaluate(t, before, feed), before)
		})
	}
}
