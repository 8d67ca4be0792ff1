package pass_test

import (
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func mean(x ir.Value, axes ...int) ir.Value { return op.Reduce(x, "mean", axes, true) }

// TestNorms wants one node for each spelling, NaN and infinities where they were, and finite numbers up to the rounding of inner steps.
func TestNorms(t *testing.T) {
	centre := func(x ir.Value) ir.Value { return op.Sub(x, mean(x, -1)) }
	root := func(v ir.Value) ir.Value { return op.Sqrt(op.Add(v, number(v, 1e-5))) }
	weights := func(x ir.Value, name string) ir.Value { return x.Graph().Param(name, shaped(6)) }
	spelled := func(x ir.Value) ir.Value { // as torch exports it
		d := centre(x)
		return op.Div(d, root(mean(pow(d, 2), -1)))
	}
	rms := func(x ir.Value) ir.Value { return op.Div(x, root(mean(op.Mul(x, x), -1))) }
	softmax := func(x ir.Value, axis int) ir.Value {
		e := op.Exp(op.Sub(x, op.Reduce(x, "max", []int{axis}, true)))
		return op.Div(e, op.Reduce(e, "sum", []int{axis}, true))
	}
	for _, c := range []struct {
		name, want string
		d          ir.DType
		f          func(x ir.Value) ir.Value
	}{
		{"torch", "LayerNorm", ir.F32, spelled},
		{"gamma and beta", "LayerNorm", ir.F32, func(x ir.Value) ir.Value {
			return op.Add(op.Mul(spelled(x), weights(x, "gamma")), weights(x, "beta"))
		}},
		{"the difference twice", "LayerNorm", ir.F32, func(x ir.Value) ir.Value {
			return op.Div(centre(x), root(mean(op.Square(centre(x)), -1)))
		}},
		{"two axes", "LayerNorm", ir.F64, func(x ir.Value) ir.Value {
			d := op.Sub(x, mean(x, -2, -1))
			return op.Mul(op.Rsqrt(op.Add(mean(op.Mul(d, d), 0, 1), number(x, 1e-5))), d)
		}},
		{"rms", "RmsNorm", ir.F32, rms},
		{"rms with gamma", "RmsNorm", ir.F32, func(x ir.Value) ir.Value { return op.Mul(weights(x, "gamma"), rms(x)) }},
		{"softmax", "Softmax", ir.F32, func(x ir.Value) ir.Value { return softmax(x, -1) }},
		{"softmax over rows", "Softmax", ir.F32, func(x ir.Value) ir.Value { return softmax(x, 0) }},
		{"softmax with axes dropped and put back", "Softmax", ir.F32, func(x ir.Value) ir.Value {
			top := op.Max(number(x, -inf), op.Reduce(x, "max", []int{1}, false))
			e := op.Exp(op.Sub(x, op.ReshapeInts(top, 4, 1)))
			return op.Div(e, op.ReshapeInts(op.Reduce(e, "sum", []int{1}, false), 4, 1))
		}},
		{"f16", "", ir.F16, spelled},
		{"f16 softmax", "", ir.F16, func(x ir.Value) ir.Value { return softmax(x, -1) }},
		{"root read elsewhere", "", ir.F32, func(x ir.Value) ir.Value {
			r := root(mean(op.Mul(x, x), -1))
			x.Graph().Output("root", r)
			return op.Div(x, r)
		}},
		{"mean of another axis: the difference over its own root", "Reduce Binary RmsNorm", ir.F32, func(x ir.Value) ir.Value {
			d := op.Sub(x, mean(x, 0))
			return op.Div(d, root(mean(op.Mul(d, d), -1)))
		}},
		{"not the last axis", "", ir.F32, func(x ir.Value) ir.Value { return op.Div(x, root(mean(op.Mul(x, x), 0))) }},
		{"cube", "", ir.F32, func(x ir.Value) ir.Value { return op.Div(x, root(mean(pow(x, 3), -1))) }},
		{"variance of another value", "", ir.F32, func(x ir.Value) ir.Value {
			e := op.Abs(x)
			return op.Div(x, root(mean(op.Mul(e, e), -1)))
		}},
		{"sum of another axis", "", ir.F32, func(x ir.Value) ir.Value {
			e := op.Exp(op.Sub(x, op.Reduce(x, "max", []int{1}, true)))
			return op.Div(e, op.Reduce(e, "sum", []int{0}, true))
		}},
		{"no largest taken off", "", ir.F32, func(x ir.Value) ir.Value {
			e := op.Exp(x)
			return op.Div(e, op.Reduce(e, "sum", []int{1}, true))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, after := rewritten(t, pass.Norms, c.d, c.f, 4, 6)
			want := c.want
			if want == "" {
				want = rowsOf(before)
			}
			if got := rowsOf(after); got != want {
				t.Fatalf("got %s, expected %s\n%s", got, want, after)
			}
			for k := range 8 {
				feed := randomFeed(before, rng(uint64(k)), func(string) []float64 {
					if k%2 == 0 {
						return nil
					}
					return special[:4]
				})
				sameNumbers(t, evaluate(t, after, feed), evaluate(t, before, feed), after)
			}
		})
	}
}
