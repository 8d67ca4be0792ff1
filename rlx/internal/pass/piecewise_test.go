package pass_test

import (
	"math"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// expLess is e^x - 1 times a number.
func expLess(x ir.Value, by float64) ir.Value {
	return op.Mul(number(x, by), op.Sub(op.Exp(x), number(x, 1)))
}

// logOnePlusExp is ln(1 + e^u) as ONNX can write it.
func logOnePlusExp(u ir.Value) ir.Value { return op.Log(op.Add(op.Exp(u), number(u, 1))) }

func TestPiecewise(t *testing.T) {
	zero := func(x ir.Value) ir.Value { return number(x, 0) }
	const alpha, gamma = 1.6732632423543772, 1.0507009873554805
	for _, c := range []struct {
		name, want string
		exact      bool
		f          func(x ir.Value) ir.Value
	}{
		{"max of x and a product", "leaky_relu", true, func(x ir.Value) ir.Value { return op.Max(op.Mul(x, number(x, 0.2)), x) }},
		{"x > 0", "leaky_relu", true, func(x ir.Value) ir.Value { return op.Where(op.Gt(x, zero(x)), x, op.Mul(number(x, 0.01), x)) }},
		{"x >= 0, negative factor", "leaky_relu", true, func(x ir.Value) ir.Value { return op.Where(op.Ge(x, zero(x)), x, op.Mul(x, number(x, -3))) }},
		{"x < 0, factor above 1", "leaky_relu", true, func(x ir.Value) ir.Value { return op.Where(op.Lt(x, zero(x)), op.Mul(x, number(x, 1.5)), x) }},
		{"x <= 0", "leaky_relu", true, func(x ir.Value) ir.Value { return op.Where(op.Le(x, zero(x)), op.Mul(x, number(x, 0.5)), x) }},

		{"elu", "elu", false, func(x ir.Value) ir.Value { return op.Where(op.Gt(x, zero(x)), x, expLess(x, 0.7)) }},
		{"elu of 1, expm1, x <= 0", "elu", false, func(x ir.Value) ir.Value { return op.Where(op.Le(x, zero(x)), op.Expm1(x), x) }},
		{"elu, exponent of the negative part", "elu", false, func(x ir.Value) ir.Value {
			return op.Where(op.Gt(x, zero(x)), x, expLess(op.Min(x, zero(x)), 2))
		}},
		{"elu, exponent guarded by a Where", "elu", false, func(x ir.Value) ir.Value {
			return op.Where(op.Gt(x, zero(x)), x, op.Expm1(op.Where(op.Gt(x, zero(x)), zero(x), x)))
		}},
		{"elu by a sum", "elu", false, func(x ir.Value) ir.Value { return op.Add(op.Relu(x), op.Min(expLess(x, 1.5), zero(x))) }},
		{"celu", "celu", false, func(x ir.Value) ir.Value {
			return op.Where(op.Gt(x, zero(x)), x, op.Mul(op.Sub(op.Exp(op.Div(x, number(x, 1.3))), number(x, 1)), number(x, 1.3)))
		}},
		{"celu by a sum", "celu", false, func(x ir.Value) ir.Value {
			return op.Add(op.Min(zero(x), op.Mul(op.Expm1(op.Mul(x, number(x, 0.5))), number(x, 2))), op.Max(x, zero(x)))
		}},
		{"selu", "selu", false, func(x ir.Value) ir.Value { return op.Mul(number(x, gamma), op.Elu(x, alpha)) }},
		{"selu spelled out", "selu", false, func(x ir.Value) ir.Value {
			return op.Mul(op.Where(op.Gt(x, zero(x)), x, expLess(x, alpha)), number(x, gamma))
		}},
		{"selu, both sides scaled", "selu", false, func(x ir.Value) ir.Value {
			return op.Where(op.Gt(x, zero(x)), op.Mul(x, number(x, gamma)), expLess(x, alpha*gamma))
		}},

		{"softplus", "softplus", false, func(x ir.Value) ir.Value { return op.Add(op.Max(x, zero(x)), op.Log1p(op.Exp(op.Neg(op.Abs(x))))) }},
		{"softplus, ln(1 + e)", "softplus", false, func(x ir.Value) ir.Value {
			return op.Add(logOnePlusExp(op.Mul(op.Abs(x), number(x, -1))), op.Relu(x))
		}},
		{"softplus with a bound", "softplus", false, func(x ir.Value) ir.Value { return op.Where(op.Gt(x, number(x, 20)), x, logOnePlusExp(x)) }},
		{"softplus below a bound", "softplus", false, func(x ir.Value) ir.Value { return op.Where(op.Le(x, number(x, 30)), op.Log1p(op.Exp(x)), x) }},
		{"mish spelled out", "mish", false, func(x ir.Value) ir.Value {
			x = op.Max(x, number(x, -100)) // away from -inf, where the spelling gives NaN
			return op.Mul(x, op.Tanh(op.Add(op.Relu(x), op.Log1p(op.Exp(op.Neg(op.Abs(x)))))))
		}},
		{"log sigmoid", "log_sigmoid", false, func(x ir.Value) ir.Value { return op.Sub(op.Min(x, zero(x)), logOnePlusExp(op.Neg(op.Abs(x)))) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, d := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
				if d != ir.F32 && !c.exact {
					continue // 1 + e^x has no bits left of e^x
				}
				before, after := rewritten(t, pass.Activations, d, c.f, 256)
				got := activationsOf(after)
				if got != c.want && got != "Binary "+c.want {
					t.Fatalf("%s: got %s, expected %s\n%s", d, got, c.want, after)
				}
				x := tails()
				if d != ir.F32 {
					x = narrowed(x, d)
				}
				feed := map[string]*ir.Tensor{"x": x}
				if c.exact {
					sameBits(t, oneNaN(evaluate(t, after, feed)), oneNaN(evaluate(t, before, feed)), after)
				} else {
					near(t, evaluate(t, after, feed), evaluate(t, before, feed), 16, 5e-7, after)
				}
			}
		})
	}
}

// narrowed is x in another dtype.
func narrowed(x *ir.Tensor, d ir.DType) *ir.Tensor {
	y, _ := ir.Zeros(d, x.Shape()...)
	for i := range x.Len() {
		ir.PutFloat(d, y.Bytes(), i, x.Float(i))
	}
	return y
}

// At infinities the quotient is NaN and softsign 1 and -1; all else is the same.
func TestSoftsign(t *testing.T) {
	for _, one := range []bool{true, false} {
		before, after := rewritten(t, pass.Activations, ir.F32, func(x ir.Value) ir.Value {
			a, b := number(x, 1), op.Abs(x)
			if one {
				a, b = b, a
			}
			return op.Div(x, op.Add(a, b))
		}, 256)
		if got := activationsOf(after); got != "softsign" {
			t.Fatalf("got %s", got)
		}
		feed := map[string]*ir.Tensor{"x": tails()}
		got, want := evaluate(t, after, feed), evaluate(t, before, feed)
		for i, sign := range map[int]float64{1: 1, 2: -1} {
			if !math.IsNaN(want[0].Float(i)) || got[0].Float(i) != sign {
				t.Errorf("at %g: got %g and spelled out %g, expected %g and NaN", feed["x"].Float(i), got[0].Float(i), want[0].Float(i), sign)
			}
			ir.PutFloat(ir.F32, want[0].Bytes(), i, sign)
		}
		near(t, got, want, 2, 0, after)
	}
}

func TestClamp(t *testing.T) {
	read := func(v ir.Value) ir.Value {
		v.Graph().Output("too", v)
		return v
	}
	checkRules(t, pass.Algebra, typeOf(ir.F32, 12), []ruleCase{
		{"hard tanh", func(x ir.Value) ir.Value { return op.Min(op.Max(x, number(x, -1)), number(x, 1)) }, "Clamp"},
		{"the other way round", func(x ir.Value) ir.Value { return op.Max(number(x, -1), op.Min(number(x, 1), x)) }, "Clamp"},
		{"from 0", func(x ir.Value) ir.Value { return op.Min(op.Max(x, number(x, 0)), number(x, 4)) }, "Clamp"},
		{"relu", func(x ir.Value) ir.Value { return op.Min(op.Relu(x), number(x, 4)) }, "Clamp"},
		{"relu up to 6", func(x ir.Value) ir.Value { return op.Min(op.Relu(x), number(x, 6)) }, "Activation"},
		{"bounds that cross", func(x ir.Value) ir.Value { return op.Min(op.Max(x, number(x, 3)), number(x, 2)) }, "Clamp"},
		{"infinite bounds", func(x ir.Value) ir.Value { return op.Min(op.Max(x, number(x, math.Inf(-1))), number(x, math.Inf(1))) }, "Clamp"},
		{"zero, the other way round", func(x ir.Value) ir.Value { return op.Max(op.Min(x, number(x, 1)), number(x, math.Copysign(0, -1))) }, "Binary Binary"},
		{"bounds that cross, the other way round", func(x ir.Value) ir.Value { return op.Max(op.Min(x, number(x, 1)), number(x, 2)) }, "Binary Binary"},
		{"NaN", func(x ir.Value) ir.Value { return op.Min(op.Max(x, number(x, math.NaN())), number(x, 1)) }, "Binary Binary"},
		{"what lies between is read", func(x ir.Value) ir.Value { return op.Min(read(op.Max(x, number(x, -1))), number(x, 1)) }, "Binary Binary"},
		{"a bound for each element", func(x ir.Value) ir.Value { return op.Min(op.Max(x, number(x, -1)), x.Graph().Constant(floats(12))) }, "Binary Binary"},
		{"bounds that stretch", func(x ir.Value) ir.Value {
			return op.Min(op.Max(x, x.Graph().Constant(ir.New([]float32{1, 1}, 2, 1))), number(x, 2))
		}, "Binary Binary"},
	})
	checkRules(t, pass.Algebra, typeOf(ir.I32, 12), []ruleCase{
		{"integers", func(x ir.Value) ir.Value { return op.Min(op.Max(x, 1), 3) }, "Binary Binary"},
	})
	before, after := rewritten(t, pass.Algebra, ir.F32, func(x ir.Value) ir.Value {
		return op.Mul(x, op.Mul(op.Min(op.Max(op.Add(x, number(x, 3)), number(x, 0)), number(x, 6)), number(x, 1.0/6)))
	}, 4)
	if out := passed(t, after, pass.Activations); activationsOf(out) != "hard_swish" {
		t.Errorf("hard swish by max and min: %s\n%s", out, before)
	}
}

// Each condition broken once.
func TestPiecewiseLeave(t *testing.T) {
	zero := func(x ir.Value) ir.Value { return number(x, 0) }
	read := func(v ir.Value) ir.Value {
		v.Graph().Output("too", v)
		return v
	}
	softplus := func(x, u ir.Value) ir.Value { return op.Add(op.Relu(x), op.Log1p(op.Exp(op.Neg(op.Abs(u))))) }
	for name, f := range map[string]func(x ir.Value) ir.Value{
		"leaky: factor above 1":              func(x ir.Value) ir.Value { return op.Max(x, op.Mul(x, number(x, 1.5))) },
		"leaky: negative factor":             func(x ir.Value) ir.Value { return op.Max(x, op.Mul(x, number(x, -0.5))) },
		"leaky: quotient":                    func(x ir.Value) ir.Value { return op.Max(x, op.Div(x, number(x, 3))) },
		"leaky: another value":               func(x ir.Value) ir.Value { return op.Max(x, op.Mul(op.Neg(x), number(x, 0.5))) },
		"leaky: the product is read":         func(x ir.Value) ir.Value { return op.Max(x, read(op.Mul(x, number(x, 0.5)))) },
		"leaky: strict, negative factor":     func(x ir.Value) ir.Value { return op.Where(op.Gt(x, zero(x)), x, op.Mul(x, number(x, -0.5))) },
		"leaky: test of 1":                   func(x ir.Value) ir.Value { return op.Where(op.Gt(x, number(x, 1)), x, op.Mul(x, number(x, 0.5))) },
		"leaky: test of another value":       func(x ir.Value) ir.Value { return op.Where(op.Gt(op.Neg(x), zero(x)), x, op.Mul(x, number(x, 0.5))) },
		"leaky: the test is read":            func(x ir.Value) ir.Value { return op.Where(read(op.Gt(x, zero(x))), x, op.Mul(x, number(x, 0.5))) },
		"leaky: sides changed":               func(x ir.Value) ir.Value { return op.Where(op.Gt(x, zero(x)), op.Mul(x, number(x, 0.5)), x) },
		"relu by Where, which drops NaN":     func(x ir.Value) ir.Value { return op.Where(op.Gt(x, zero(x)), x, zero(x)) },
		"elu: e^x - 2":                       func(x ir.Value) ir.Value { return op.Where(op.Gt(x, zero(x)), x, op.Sub(op.Exp(x), number(x, 2))) },
		"elu: e^2x":                          func(x ir.Value) ir.Value { return op.Where(op.Gt(x, zero(x)), x, op.Expm1(op.Mul(x, number(x, 2)))) },
		"elu: another exponent":              func(x ir.Value) ir.Value { return op.Where(op.Gt(x, zero(x)), x, op.Expm1(op.Neg(x))) },
		"elu: exponent of the positive part": func(x ir.Value) ir.Value { return op.Where(op.Gt(x, zero(x)), x, op.Expm1(op.Min(x, number(x, 1)))) },
		"elu: e^x is read": func(x ir.Value) ir.Value {
			return op.Where(op.Gt(x, zero(x)), x, op.Sub(read(op.Exp(x)), number(x, 1)))
		},
		"elu by a sum: negative factor":      func(x ir.Value) ir.Value { return op.Add(op.Relu(x), op.Min(expLess(x, -1), zero(x))) },
		"elu by a sum: least of 1":           func(x ir.Value) ir.Value { return op.Add(op.Relu(x), op.Min(expLess(x, 1), number(x, 1))) },
		"elu by a sum: exponent already cut": func(x ir.Value) ir.Value { return op.Add(op.Relu(x), op.Min(expLess(op.Min(x, zero(x)), 1), zero(x))) },
		"selu: elu is read":                  func(x ir.Value) ir.Value { return op.Mul(read(op.Elu(x, 1)), number(x, 2)) },
		"softsign: 2 + |x|":                  func(x ir.Value) ir.Value { return op.Div(x, op.Add(op.Abs(x), number(x, 2))) },
		"softsign: of another value":         func(x ir.Value) ir.Value { return op.Div(x, op.Add(op.Abs(op.Exp(x)), number(x, 1))) },
		"softsign: no |x|":                   func(x ir.Value) ir.Value { return op.Div(x, op.Add(op.Exp(x), number(x, 1))) },
		"softplus that overflows":            logOnePlusExp,
		"softplus: bound of 5":               func(x ir.Value) ir.Value { return op.Where(op.Gt(x, number(x, 5)), x, logOnePlusExp(x)) },
		"softplus: bound of 100":             func(x ir.Value) ir.Value { return op.Where(op.Gt(x, number(x, 100)), x, logOnePlusExp(x)) },
		"softplus: another value":            func(x ir.Value) ir.Value { return softplus(x, op.Exp(x)) },
		"softplus: e^|x|":                    func(x ir.Value) ir.Value { return op.Add(op.Relu(x), op.Log1p(op.Exp(op.Abs(x)))) },
		"softplus: the logarithm is read":    func(x ir.Value) ir.Value { return op.Add(op.Relu(x), read(op.Log1p(op.Exp(op.Neg(op.Abs(x)))))) },
		"log sigmoid: the other way round":   func(x ir.Value) ir.Value { return op.Sub(op.Log1p(op.Exp(op.Neg(op.Abs(x)))), op.Min(x, zero(x))) },
	} {
		t.Run(name, func(t *testing.T) {
			before, after := rewritten(t, pass.Activations, ir.F32, f, 256)
			if got, want := activationsOf(after), activationsOf(before); got != want {
				t.Errorf("rewritten: %s, was %s\n%s", got, want, after)
			}
		})
	}
	t.Run("softplus with a bound in f16", func(t *testing.T) {
		before, after := rewritten(t, pass.Activations, ir.F16, func(x ir.Value) ir.Value { return op.Where(op.Gt(x, number(x, 20)), x, logOnePlusExp(x)) }, 4)
		if activationsOf(after) != activationsOf(before) {
			t.Errorf("rewritten: %s", after)
		}
	})
	t.Run("integers", func(t *testing.T) {
		before, after := rewritten(t, pass.Activations, ir.I32, func(x ir.Value) ir.Value { return op.Min(op.Max(x, -1), op.Mul(x, 3)) }, 4)
		if activationsOf(after) != activationsOf(before) {
			t.Errorf("rewritten: %s", after)
		}
	})
}
