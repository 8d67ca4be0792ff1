package pass_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// rewritten is the graph x -> f after the rules of a pass, and before it.
func rewritten(t *testing.T, p pass.Pass, d ir.DType, f func(x ir.Value) ir.Value, shape ...int64) (before, after *ir.Graph) {
	t.Helper()
	g := ir.NewGraph("g")
	x := g.Input("x", d, ir.Dims(shape...))
	g.Output("y", f(x))
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	return g, apply(t, g, func(g *ir.Graph) (*ir.Graph, error) { return run(g, true, "", p) })
}

// activationsOf lists the functions of the graph that are no constants, in their order.
func activationsOf(g *ir.Graph) string {
	var l []string
	for _, n := range g.Nodes {
		if n.Row.Has(ir.Leaf) {
			continue
		}
		if a, ok := n.Attrs.(*op.ActivationAttrs); ok {
			l = append(l, string(a.Fn))
		} else {
			l = append(l, n.Row.Name)
		}
	}
	return strings.Join(l, " ")
}

func number(x ir.Value, v float64) ir.Value {
	t, err := ir.Zeros(x.DType())
	if err != nil {
		return ir.Value{}
	}
	ir.PutFloat(x.DType(), t.Bytes(), 0, v)
	return x.Graph().Constant(t)
}

func pow(x ir.Value, k float64) ir.Value { return op.BinaryOp(x, number(x, k), "pow") }

// tails are the places where functions and their spellings may part, and some between.
func tails() *ir.Tensor {
	v := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)), -3, 3, 2.9999998, -2.9999998, 6, -6, 20, -20, 200, -200,
		1e-20, -1e-20, 1e-40}
	for i := len(v); i < 256; i++ {
		v = append(v, float32(i-128)/16)
	}
	return ir.New(v, len(v))
}

func TestActivations(t *testing.T) {
	half := func(x ir.Value) ir.Value { return op.Mul(x, number(x, 0.5)) }
	erf := func(x ir.Value) ir.Value { return op.Add(op.Erf(op.Div(x, number(x, 1.4142135))), number(x, 1)) }
	cube := func(x ir.Value) ir.Value { return op.Mul(op.Mul(x, op.Mul(x, x)), number(x, 0.044715)) }
	tanh := func(u ir.Value) ir.Value {
		return op.Add(number(u, 1), op.Tanh(op.Mul(number(u, 0.7978845608), u)))
	}
	six := func(x ir.Value) ir.Value { return op.Clamp(op.Add(x, number(x, 3)), 0, 6) }
	for _, c := range []struct {
		name, want string
		nanAtMinus bool // the spelling gives NaN at -inf, the function 0
		f          func(x ir.Value) ir.Value
	}{
		{"x * (1/2 * (1 + erf))", "gelu", true, func(x ir.Value) ir.Value { return op.Mul(x, half(erf(x))) }},
		{"(x * 1/2) * (1 + erf)", "gelu", true, func(x ir.Value) ir.Value { return op.Mul(half(x), erf(x)) }},
		{"(x * (1 + erf)) * 1/2", "gelu", true, func(x ir.Value) ir.Value { return half(op.Mul(x, erf(x))) }},
		{"(1 + erf) * x / 2", "gelu", true, func(x ir.Value) ir.Value { return op.Div(op.Mul(erf(x), x), number(x, 2)) }},
		{"erf of x * sqrt(1/2)", "gelu", true, func(x ir.Value) ir.Value {
			return op.Mul(x, half(op.Add(number(x, 1), op.Erf(op.Mul(number(x, 0.70710677), x)))))
		}},
		{"tanh, x*x*x", "gelu_tanh", true, func(x ir.Value) ir.Value { return op.Mul(x, half(tanh(op.Add(x, cube(x))))) }},
		{"tanh, pow", "gelu_tanh", true, func(x ir.Value) ir.Value {
			return op.Mul(half(x), tanh(op.Add(op.Mul(number(x, 0.044715), pow(x, 3)), x)))
		}},
		{"tanh, factor outside", "gelu_tanh", true, func(x ir.Value) ir.Value {
			u := op.Mul(op.Mul(number(x, 0.7978845608), x), op.Add(op.Mul(op.Mul(x, x), number(x, 0.044715)), number(x, 1)))
			return op.Mul(half(x), op.Add(op.Tanh(u), number(x, 1)))
		}},
		{"quick", "gelu_quick", true, func(x ir.Value) ir.Value { return op.Mul(x, op.Sigmoid(op.Mul(x, number(x, 1.702)))) }},
		{"silu", "silu", true, func(x ir.Value) ir.Value { return op.Mul(op.Sigmoid(x), x) }},
		{"mish", "mish", true, func(x ir.Value) ir.Value { return op.Mul(x, op.Tanh(op.Softplus(x))) }},
		{"hard swish by clamp and div", "hard_swish", true, func(x ir.Value) ir.Value { return op.Div(op.Mul(x, six(x)), number(x, 6)) }},
		{"hard swish by 1/6", "hard_swish", true, func(x ir.Value) ir.Value { return op.Mul(op.Mul(six(x), number(x, 1.0/6)), x) }},
		{"hard swish by hard sigmoid", "hard_swish", true, func(x ir.Value) ir.Value { return op.Mul(x, op.Activation(x, "hard_sigmoid", 0.1666667, 0.5)) }},
		{"hard sigmoid by clamp", "hard_sigmoid", false, func(x ir.Value) ir.Value { return op.Div(six(x), number(x, 6)) }},
		{"hard sigmoid", "hard_sigmoid", false, func(x ir.Value) ir.Value {
			return op.Clamp(op.Add(op.Mul(x, number(x, 0.2)), number(x, 0.5)), 0, 1)
		}},
		{"relu", "relu", false, func(x ir.Value) ir.Value { return op.Max(number(x, 0), x) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, after := rewritten(t, pass.Activations, ir.F32, c.f, 256)
			if got := activationsOf(after); got != c.want {
				t.Fatalf("got %s, expected %s\n%s", got, c.want, after)
			}
			feed := map[string]*ir.Tensor{"x": tails()}
			got, want := evaluate(t, after, feed), evaluate(t, before, feed)
			if c.nanAtMinus {
				if !math.IsNaN(want[0].Float(2)) || got[0].Float(2) != 0 {
					t.Errorf("at -inf: got %g and spelled out %g, expected 0 and NaN", got[0].Float(2), want[0].Float(2))
				}
				ir.PutFloat(ir.F32, want[0].Bytes(), 2, 0)
			}
			near(t, got, want, 16, 1e-6, after) // 1 + erf loses what the function keeps
		})
	}
}

// Each condition broken once.
func TestActivationsLeave(t *testing.T) {
	gelu := func(c, k, one float64) func(x ir.Value) ir.Value {
		return func(x ir.Value) ir.Value {
			return op.Mul(op.Mul(x, number(x, c)), op.Add(op.Erf(op.Div(x, number(x, k))), number(x, one)))
		}
	}
	swish := func(shift, hi, by float64) func(x ir.Value) ir.Value {
		return func(x ir.Value) ir.Value {
			return op.Div(op.Mul(x, op.Clamp(op.Add(x, number(x, shift)), 0, hi)), number(x, by))
		}
	}
	for name, f := range map[string]func(x ir.Value) ir.Value{
		"gelu: not half":    gelu(0.25, math.Sqrt2, 1),
		"gelu: not sqrt 2":  gelu(0.5, 1.41, 1),
		"gelu: not 1 + erf": gelu(0.5, math.Sqrt2, 2),
		"gelu: erf of another x": func(x ir.Value) ir.Value {
			return op.Mul(op.Mul(x, number(x, 0.5)), op.Add(op.Erf(op.Div(op.Exp(x), number(x, math.Sqrt2))), number(x, 1)))
		},
		"gelu: another reader of erf": func(x ir.Value) ir.Value {
			e := op.Erf(op.Div(x, number(x, math.Sqrt2)))
			x.Graph().Output("erf", e)
			return op.Mul(op.Mul(x, number(x, 0.5)), op.Add(e, number(x, 1)))
		},
		"gelu_tanh: not 0.044715": func(x ir.Value) ir.Value {
			u := op.Add(x, op.Mul(pow(x, 3), number(x, 0.0447)))
			return op.Mul(op.Mul(x, number(x, 0.5)), op.Add(op.Tanh(op.Mul(u, number(x, math.Sqrt(2/math.Pi)))), number(x, 1)))
		},
		"gelu_tanh: a square": func(x ir.Value) ir.Value {
			u := op.Add(x, op.Mul(pow(x, 2), number(x, 0.044715)))
			return op.Mul(op.Mul(x, number(x, 0.5)), op.Add(op.Tanh(op.Mul(u, number(x, math.Sqrt(2/math.Pi)))), number(x, 1)))
		},
		"silu: gate of another value": func(x ir.Value) ir.Value { return op.Mul(x, op.Sigmoid(op.Exp(x))) },
		"silu: times 2":               func(x ir.Value) ir.Value { return op.Mul(op.Mul(x, number(x, 2)), op.Sigmoid(x)) },
		"hard_swish: 2":               swish(2, 6, 6),
		"hard_swish: to 5":            swish(3, 5, 6),
		"hard_swish: by 5":            swish(3, 6, 5),
		"relu: of 1":                  func(x ir.Value) ir.Value { return op.Max(x, number(x, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			before, after := rewritten(t, pass.Activations, ir.F32, f, 256)
			if got, want := activationsOf(after), activationsOf(before); got != want {
				t.Errorf("rewritten: %s, was %s\n%s", got, want, after)
			}
		})
	}
	t.Run("integers", func(t *testing.T) {
		before, after := rewritten(t, pass.Activations, ir.I32, func(x ir.Value) ir.Value { return op.Max(x, 0) }, 4)
		if activationsOf(after) != activationsOf(before) {
			t.Errorf("rewritten: %s", after)
		}
	})
}

// The parts of a spelling whose operands broadcast: x is another shape than the result.
func TestActivationsBroadcast(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(4))
	one := g.Constant(randoms(rand.New(rand.NewPCG(1, 1)), 1, 1, 3, 1))
	g.Output("y", op.Mul(op.Mul(x, number(x, 0.5)), op.Add(op.Erf(op.Div(x, number(x, math.Sqrt2))), one)))
	out := apply(t, g, func(g *ir.Graph) (*ir.Graph, error) { return run(g, true, "", pass.Activations) })
	if activationsOf(out) != activationsOf(g) {
		t.Errorf("rewritten: %s", out)
	}
}
