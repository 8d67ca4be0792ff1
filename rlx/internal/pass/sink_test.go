package pass_test

import (
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func TestSink(t *testing.T) {
	other := func(x ir.Value) ir.Value { return op.Transpose(x, 0, 2, 1) } // of [2, 3, 4], its own opposite
	read := func(v ir.Value) ir.Value {
		v.Graph().Output("too", v)
		return v
	}
	checkRules(t, pass.Sink, typeOf(ir.F32, 2, 3, 4), []ruleCase{
		{"transposes around one node", func(x ir.Value) ir.Value { return other(op.Neg(other(x))) }, "Activation"},
		{"transposes around a chain", func(x ir.Value) ir.Value { return other(op.Add(op.Abs(op.Neg(other(x))), 1)) }, "Activation Activation Binary"},
		{"a vector of one axis", func(x ir.Value) ir.Value {
			return other(op.Mul(other(x), x.Graph().Constant(ir.New([]float32{1, -2, 3}, 3))))
		}, "Reshape Binary"},
		{"a vector of two axes", func(x ir.Value) ir.Value {
			return other(op.Mul(other(x), x.Graph().Param("p", shaped(4, 3))))
		}, "Transpose Binary Transpose"},
		{"a small constant", func(x ir.Value) ir.Value {
			return other(op.Mul(other(x), x.Graph().Constant(shaped(1, 4, 3))))
		}, "Transpose Binary"},
		{"transposes that are no opposites", func(x ir.Value) ir.Value { return op.Transpose(op.Neg(other(x)), 1, 0, 2) }, "Transpose Activation Transpose"},
		{"no other transpose", func(x ir.Value) ir.Value { return other(op.Neg(x)) }, "Activation Transpose"},
		{"another reader", func(x ir.Value) ir.Value { return other(read(op.Neg(other(x)))) }, "Transpose Activation Transpose"},
		{"one side without", func(x ir.Value) ir.Value { return other(op.Add(other(x), op.Neg(op.Reshape(x, ir.Dims(2, 4, 3)...)))) },
			"Transpose Reshape Activation Binary Transpose"},
		{"moves are not passed", func(x ir.Value) ir.Value { return other(op.Reverse(other(x), 1)) }, "Transpose Reverse Transpose"},

		{"largest of transposed", func(x ir.Value) ir.Value { return op.Reduce(op.Transpose(x, 0, 2, 1), "max", []int{-1}, false) }, "Reduce"},
		{"least of all transposed", func(x ir.Value) ir.Value { return op.Reduce(op.Transpose(x, 1, 2, 0), "min", []int{0, 2}, false) }, "Reduce"},
		{"sum of transposed", func(x ir.Value) ir.Value { return op.Reduce(op.Transpose(x, 0, 2, 1), "sum", []int{2}, false) }, "Transpose Reduce"},
		{"kept axes", func(x ir.Value) ir.Value { return op.Reduce(op.Transpose(x, 0, 2, 1), "max", []int{2}, true) }, "Reduce Reshape"},
		{"what is left moves", func(x ir.Value) ir.Value { return op.Reduce(op.Transpose(x, 2, 1, 0), "max", []int{1}, false) }, "Reduce Transpose"},
		{"what is left moves, kept axes", func(x ir.Value) ir.Value { return op.Reduce(op.Transpose(x, 2, 1, 0), "max", []int{-2}, true) }, "Reduce Transpose Reshape"},
		{"what is left moves and is read", func(x ir.Value) ir.Value { return op.Reduce(read(op.Transpose(x, 2, 1, 0)), "max", []int{1}, false) }, "Transpose Reduce"},
		{"mean of transposed", func(x ir.Value) ir.Value { return op.Reduce(op.Transpose(x, 0, 2, 1), "mean", []int{2}, true) }, "Transpose Reduce"},

		{"piece", func(x ir.Value) ir.Value { return op.Narrow(op.Neg(x), 1, -2, 1) }, "Narrow Activation"},
		{"piece of a chain", func(x ir.Value) ir.Value {
			return op.Narrow(op.Add(op.Abs(op.Neg(x)), op.Exp(op.Narrow(x, 0, 0, 1))), 2, 1, 2)
		}, "Narrow Narrow Activation Activation Narrow Activation Binary"},
		{"piece of an axis that broadcasts", func(x ir.Value) ir.Value {
			return op.Narrow(op.Add(x, op.Narrow(x, 1, 0, 1)), 1, 1, 2)
		}, "Narrow Narrow Binary"},
		{"piece of an axis that an operand lacks", func(x ir.Value) ir.Value {
			return op.Narrow(op.Add(x, op.Reshape(op.Narrow(x, 0, 0, 1), ir.Dims(3, 4)...)), 0, 1, 1)
		}, "Narrow Reshape Narrow Binary"},
		{"piece of a value with readers", func(x ir.Value) ir.Value { return op.Narrow(read(op.Neg(x)), 1, 0, 1) }, "Activation Narrow"},
		{"piece of a constant too", func(x ir.Value) ir.Value {
			return op.Narrow(op.Add(x, x.Graph().Constant(floats(4))), 2, 0, 1)
		}, "Binary Narrow"},
		{"piece of no elementwise node", func(x ir.Value) ir.Value { return op.Narrow(op.Cumsum(x, 1), 1, 0, 1) }, "Cumsum Narrow"},

		{"piece of joined", func(x ir.Value) ir.Value { return op.Narrow(op.Concat(0, op.Cumsum(x, 1), x), -1, 1, 2) }, "Cumsum Narrow Narrow Concat"},
		{"piece of joined along the last axis", func(x ir.Value) ir.Value { return op.Narrow(op.Concat(-1, op.Cumsum(x, 1), x), 1, 0, 2) }, "Cumsum Narrow Narrow Concat"},
		{"piece along the axis that is joined", func(x ir.Value) ir.Value { return op.Narrow(op.Concat(1, op.Cumsum(x, 1), x), -2, 1, 4) }, "Cumsum Concat Narrow"},
		{"piece of joined with readers", func(x ir.Value) ir.Value { return op.Narrow(read(op.Concat(0, op.Cumsum(x, 1), x)), 2, 1, 2) }, "Cumsum Concat Narrow"},
		{"piece of joined with a weight", func(x ir.Value) ir.Value {
			return op.Narrow(op.Concat(0, x, x.Graph().Param("p", shaped(2, 3, 4))), 2, 1, 2)
		}, "Concat Narrow"},

		{"cast of fewer rows", func(x ir.Value) ir.Value { return op.Gather(op.Cast(x, ir.F64), ints(x, 2, 0), 1) }, "Gather Cast"},
		{"cast of more rows", func(x ir.Value) ir.Value { return op.Gather(op.Cast(x, ir.F64), ints(x, 2, 0, 1, 1), 1) }, "Cast Gather"},
		{"narrowing cast of fewer rows", func(x ir.Value) ir.Value { return op.Gather(op.Cast(x, ir.BF16), ints(x, 2, 0), 1) }, "Cast Gather"},
		{"cast with readers", func(x ir.Value) ir.Value { return op.Gather(read(op.Cast(x, ir.F64)), ints(x, 2, 0), 1) }, "Cast Gather"},
		{"narrowing cast of more rows behind", func(x ir.Value) ir.Value { return op.Cast(op.Gather(x, ints(x, 2, 0, 1, 1), 1), ir.F16) }, "Cast Gather"},
		{"narrowing cast of fewer rows behind", func(x ir.Value) ir.Value { return op.Cast(op.Gather(x, ints(x, 2, 0), 1), ir.F16) }, "Gather Cast"},
		{"widening cast of more rows behind", func(x ir.Value) ir.Value { return op.Cast(op.Gather(x, ints(x, 2, 0, 1, 1), 1), ir.F64) }, "Gather Cast"},
		{"cast of rows with readers", func(x ir.Value) ir.Value { return op.Cast(read(op.Gather(x, ints(x, 2, 0, 1, 1), 1)), ir.F16) }, "Gather Cast"},
		{"cast of stretched", func(x ir.Value) ir.Value { return op.Cast(op.Expand(x, ir.Dims(5, 2, 3, 4)...), ir.F64) }, "Cast Expand"},
		{"cast of what is not stretched", func(x ir.Value) ir.Value { return op.Cast(op.Expand(x, ir.Dims(1, 2, 3, 4)...), ir.F64) }, "Expand Cast"},
		{"cast of stretched with readers", func(x ir.Value) ir.Value { return op.Cast(read(op.Expand(x, ir.Dims(5, 2, 3, 4)...)), ir.F64) }, "Expand Cast"},

		{"widening cast of an input", func(x ir.Value) ir.Value { return op.Transpose(op.Cast(x, ir.F64), 2, 0, 1) }, "Transpose Cast"},
		{"widening cast and moves", func(x ir.Value) ir.Value {
			return op.Reshape(op.Transpose(op.Reverse(op.Cast(x, ir.F64), 1), 2, 0, 1), ir.Dims(8, 3)...)
		}, "Reverse Transpose Reshape Cast"},
		{"widening cast of a slice", func(x ir.Value) ir.Value {
			return op.Slice(op.Cast(x, ir.F64), ir.Dims(-1), ir.Dims(-100), []int{1}, []int64{-2})
		}, "Slice Cast"},
		{"cast of the same size", func(x ir.Value) ir.Value { return op.Transpose(op.Cast(x, ir.I32), 2, 0, 1) }, "Cast Transpose"},
		{"widening cast that is stretched", func(x ir.Value) ir.Value { return op.Expand(op.Cast(x, ir.F64), ir.Dims(5, 2, 3, 4)...) }, "Cast Expand"},
		{"widening cast with readers", func(x ir.Value) ir.Value { return op.Transpose(read(op.Cast(x, ir.F64)), 2, 0, 1) }, "Cast Transpose"},
		{"widening cast of a weight", func(x ir.Value) ir.Value {
			return op.Add(op.Cast(x, ir.F64), op.Transpose(op.Cast(x.Graph().Param("p", shaped(4, 3)), ir.F64), 1, 0))
		}, "Cast Cast Transpose Binary"},
		{"widening casts joined", func(x ir.Value) ir.Value { return op.Concat(1, op.Cast(x, ir.F64), op.Cast(op.Neg(x), ir.F64)) }, "Activation Concat Cast"},
		{"casts of two dtypes joined", func(x ir.Value) ir.Value {
			return op.Concat(1, op.Cast(x, ir.F64), op.Cast(op.Cast(x, ir.I32), ir.F64))
		}, "Cast Cast Cast Concat"},
		{"one cast joined twice", func(x ir.Value) ir.Value { c := op.Cast(x, ir.F64); return op.Concat(1, c, c) }, "Cast Concat"},
		{"cast joined with what is none", func(x ir.Value) ir.Value {
			c := op.Cast(x, ir.F64)
			return op.Concat(1, c, op.Cast(op.Exp(c), ir.F64))
		}, "Cast Activation Cast Concat"},

		{"narrowing cast of moved", func(x ir.Value) ir.Value {
			return op.Cast(op.Reshape(op.Transpose(op.Exp(x), 2, 0, 1), ir.Dims(8, 3)...), ir.BF16)
		},
			"Activation Cast Transpose Reshape"},
		{"narrowing cast of a piece", func(x ir.Value) ir.Value { return op.Cast(op.Narrow(op.Cumsum(x, 1), 1, 0, 1), ir.F16) }, "Cumsum Narrow Cast"},
		{"narrowing cast of a moved input", func(x ir.Value) ir.Value { return op.Cast(op.Transpose(x, 2, 0, 1), ir.F16) }, "Transpose Cast"},
		{"narrowing cast of moved with readers", func(x ir.Value) ir.Value { return op.Cast(read(op.Transpose(op.Exp(x), 2, 0, 1)), ir.F16) },
			"Activation Transpose Cast"},
		{"cast of the same size of moved", func(x ir.Value) ir.Value { return op.Cast(op.Transpose(op.Exp(x), 2, 0, 1), ir.I32) }, "Activation Transpose Cast"},
		{"narrowing cast of joined", func(x ir.Value) ir.Value { return op.Cast(op.Concat(1, op.Exp(x), op.Neg(x)), ir.F16) },
			"Activation Activation Cast Cast Concat"},
		{"narrowing cast of joined inputs", func(x ir.Value) ir.Value { return op.Cast(op.Concat(1, op.Exp(x), x), ir.F16) }, "Activation Concat Cast"},
		{"narrowing cast of joined with readers", func(x ir.Value) ir.Value { return op.Cast(read(op.Concat(1, op.Exp(x), op.Neg(x))), ir.F16) },
			"Activation Activation Concat Cast"},
		{"casts that meet", func(x ir.Value) ir.Value { return op.Cast(op.Transpose(op.Cast(x, ir.F64), 2, 0, 1), ir.F32) }, "Transpose"},
	})
}

// A table of constants is computed with what follows the gather, and folds.
func TestSinkTables(t *testing.T) {
	read := func(v ir.Value) ir.Value {
		v.Graph().Output("too", v)
		return v
	}
	rows := func(x ir.Value, axis int) ir.Value { // 12 of 4 numbers each
		return op.Gather(x.Graph().Param("table", shaped(2, 4)), op.Cast(op.Gt(x, 0), ir.I64), axis)
	}
	param := func(x ir.Value, shape ...int) ir.Value { return x.Graph().Param("p", shaped(shape...)) }
	checkRules(t, pass.Sink, typeOf(ir.F32, 3, 4), []ruleCase{
		{"function", func(x ir.Value) ir.Value { return op.Exp(rows(x, 0)) }, "Compare Cast Activation Gather"},
		{"chain with vectors", func(x ir.Value) ir.Value { return op.Exp(op.Mul(op.Add(rows(x, 0), param(x, 1, 1, 4)), 2)) },
			"Compare Cast Reshape Binary Binary Activation Gather"},
		{"vector in front", func(x ir.Value) ir.Value { return op.Sub(param(x, 4), rows(x, 0)) }, "Compare Cast Binary Gather"},
		{"a number for each row", func(x ir.Value) ir.Value { return op.Mul(rows(x, 0), param(x, 4, 1)) }, "Compare Cast Gather Binary"},
		{"columns", func(x ir.Value) ir.Value { return op.Exp(op.Gather(param(x, 4, 2), op.Cast(op.Gt(x, 0), ir.I64), 1)) }, "Compare Cast Gather Activation"},
		{"as many rows", func(x ir.Value) ir.Value { return op.Exp(op.Gather(param(x, 12, 4), op.Cast(op.Gt(x, 0), ir.I64), 0)) },
			"Compare Cast Gather Activation"},
		{"other readers", func(x ir.Value) ir.Value { return op.Exp(read(rows(x, 0))) }, "Compare Cast Gather Activation"},
		{"table that is computed", func(x ir.Value) ir.Value {
			return op.Exp(op.Gather(op.Narrow(op.Exp(x), 0, 0, 2), op.Cast(op.Gt(x, 0), ir.I64), 0))
		}, "Narrow Activation Compare Cast Gather Activation"},
		{"stretched", func(x ir.Value) ir.Value { return op.Mul(rows(x, 0), param(x, 2, 1, 1, 4)) }, "Compare Cast Gather Binary"},
		{"two that are gathered", func(x ir.Value) ir.Value { return op.Add(rows(x, 0), op.Reshape(x, ir.Dims(3, 4, 1)...)) }, "Compare Cast Gather Reshape Binary"},
	})
}

// Integers add up to the same in any order, floats do not; casts of other dtypes.
func TestSinkIntegers(t *testing.T) {
	checkRules(t, pass.Sink, typeOf(ir.I32, 2, 3, 4), []ruleCase{
		{"sum", func(x ir.Value) ir.Value { return op.Reduce(op.Transpose(x, 0, 2, 1), "sum", []int{-1}, false) }, "Reduce"},
		{"product", func(x ir.Value) ir.Value { return op.Reduce(op.Transpose(x, 1, 2, 0), "prod", []int{0, 2}, false) }, "Reduce"},
		{"mean", func(x ir.Value) ir.Value {
			return op.Reduce(op.Cast(op.Transpose(x, 0, 2, 1), ir.F32), "mean", []int{2}, false)
		}, "Transpose Cast Reduce"},
		{"widening", func(x ir.Value) ir.Value { return op.Transpose(op.Cast(x, ir.I64), 1, 0, 2) }, "Transpose Cast"},
		{"wraps", func(x ir.Value) ir.Value { return op.Cast(op.Transpose(op.Neg(x), 1, 0, 2), ir.I8) }, "Activation Cast Transpose"},
	})
	for _, d := range []ir.DType{ir.F16, ir.BF16, ir.I8, ir.U8, ir.Bool} {
		checkRules(t, pass.Sink, typeOf(d, 2, 3, 4), []ruleCase{
			{"widening of " + d.String(), func(x ir.Value) ir.Value {
				return op.Reshape(op.Transpose(op.Cast(x, ir.F32), 1, 0, 2), ir.Dims(6, 4)...)
			}, "Transpose Reshape Cast"},
			{"and back", func(x ir.Value) ir.Value { return op.Cast(op.Narrow(op.Cast(x, ir.F32), 1, 0, 2), d) }, "Narrow"},
		})
	}
}

// No piece is computed alone for a target that would copy it first, or that nothing is known of.
func TestSinkNeedsStrides(t *testing.T) {
	g := ir.NewGraph("g")
	g.Output("y", op.Narrow(op.Neg(g.Input("x", ir.F32, ir.Dims(4))), 0, 1, 2))
	for _, s := range []*pass.Support{nil, pass.NewSupport("bare", nil, nil)} {
		out, err := pass.Pipeline{Passes: []pass.Pass{pass.Sink}, Support: s, Verify: true}.Run(g)
		if err != nil {
			t.Fatal(err)
		}
		wantKinds(t, out, "Input Activation Narrow")
	}
}

// A case of symbolic sizes: what a pass leaves of it, and equal bits where sizes are numbers.
type symbolCase struct {
	name  string
	build func(x ir.Value) ir.Value
	want  string
}

func checkSymbols(t *testing.T, p pass.Pass, shape []ir.Dim, sizes map[string]int64, cases []symbolCase) {
	t.Helper()
	for _, c := range cases {
		g := ir.NewGraph("g")
		g.Output("y", c.build(g.Input("x", ir.F32, shape)))
		if err := g.Err(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		out := passed(t, g, p)
		if got := kinds(out); got != c.want {
			t.Errorf("%s: got %s, expected %s\n%s", c.name, got, c.want, out)
		}
		bind := func(g *ir.Graph) *ir.Graph {
			return apply(t, g, func(g *ir.Graph) (*ir.Graph, error) { return pass.Bind(g, sizes) })
		}
		before, after := bind(g), bind(out)
		static, _ := ir.StaticShape(before.Inputs[0].Types[0].Shape)
		for k := range 4 {
			feed := map[string]*ir.Tensor{"x": specialTensor(rng(uint64(k)), ir.F32, static...)}
			sameBits(t, oneNaN(evaluate(t, after, feed)), oneNaN(evaluate(t, before, feed)), out)
		}
	}
}

func TestSinkOfSymbols(t *testing.T) {
	n, m := ir.Sym("n"), ir.Sym("m")
	checkSymbols(t, pass.Sink, []ir.Dim{n, ir.D(3), m}, map[string]int64{"n": 2, "m": 5}, []symbolCase{
		{"transposes", func(x ir.Value) ir.Value { return op.Transpose(op.Exp(op.Transpose(x, 2, 0, 1)), 1, 2, 0) }, "Input Activation"},
		{"piece of a known axis", func(x ir.Value) ir.Value { return op.Narrow(op.Neg(x), 1, 1, 2) }, "Input Narrow Activation"},
		{"largest", func(x ir.Value) ir.Value { return op.Reduce(op.Transpose(x, 0, 2, 1), "max", []int{1}, false) }, "Input Reduce"},
		{"cast of rows whose number is not known", func(x ir.Value) ir.Value { return op.Gather(op.Cast(x, ir.F64), ints(x, 1), 0) }, "Input Cast Constant Gather"},
	})
}
