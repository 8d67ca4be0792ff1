package rlx_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// takes says whether a scalar function is defined for a dtype.
func takes(s *op.Scalar, d rlx.DType) bool {
	return ir.Float.Has(d) && s.Takes(op.ScalarFloat) || ir.Int.Has(d) && s.Takes(op.ScalarInt)
}

// everyCode is a tensor of all 2^bits codes, each as often as times says, one behind the other or in turns.
func everyCode(t *testing.T, d rlx.DType, bits, times int, turns bool) *rlx.Tensor {
	t.Helper()
	b := make([]byte, 0, times*d.Size()<<bits)
	for i := range times << bits {
		c := i / times
		if turns {
			c = i % (1 << bits)
		}
		b = append(b, byte(c), byte(c>>8))[:len(b)+d.Size()]
	}
	x, err := ir.FromBytes(d, []int64{int64(times) << bits}, b)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Every unary function at every code of the types of 8 and 16 bits, and every binary one at every pair of codes of 8, natively and in the
// interpreter: integers to the bit, halves to the neighbouring code.
func TestEveryCode(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	for _, d := range []rlx.DType{rlx.I8, rlx.U8, rlx.I16, rlx.U16, rlx.F16, rlx.BF16} {
		bits := 8 * d.Size()
		g := rlx.NewGraph(fmt.Sprint("codes of ", d))
		x := g.Input("x", d, rlx.Shape("n"))
		for _, name := range op.UnaryNames() {
			if f, _ := op.Unary(name); takes(f, d) {
				g.Output(name, op.Activation(x, op.UnaryFn(name), parameter(f.UsesAlpha(), 1.75), parameter(f.UsesBeta(), 0.5)))
			}
		}
		sameCodes(t, g, rlx.Feed{"x": everyCode(t, d, bits, 1, false)}, func(name string) float64 {
			f, _ := op.Unary(name)
			return f.AbsErr
		})
		if bits != 8 {
			continue
		}
		g = rlx.NewGraph(fmt.Sprint("pairs of ", d))
		a, b := g.Input("a", d, rlx.Shape("n")), g.Input("b", d, rlx.Shape("n"))
		for _, name := range op.BinaryNames() {
			if f, _ := op.Binary(name); takes(f, d) {
				g.Output(name, op.BinaryOp(a, b, op.BinaryFn(name)))
			}
		}
		sameCodes(t, g, rlx.Feed{"a": everyCode(t, d, 8, 256, false), "b": everyCode(t, d, 8, 256, true)}, nil)
	}
}

// parameter is v where a function has the parameter, else NaN, which stands for none.
func parameter(has bool, v float64) float64 {
	if has {
		return v
	}
	return math.NaN()
}

// sameCodes runs a graph on cpu and ref. slack is what an output of halves may differ by near zero.
func sameCodes(t *testing.T, g *rlx.Graph, in rlx.Feed, slack func(output string) float64) {
	t.Helper()
	var out [2]rlx.Feed
	for k, b := range []string{"cpu", "ref"} {
		var err error
		if out[k], err = compileGraph(t, g, rlx.On(b)).Run(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if len(out[1]) < 5 {
		t.Errorf("%s: %d functions", g.Name, len(out[1]))
	}
	for name, want := range out[1] {
		got := out[0][name]
		if !ir.Float.Has(want.DType()) {
			if !sameTensor(got, want) {
				t.Errorf("%s, %s: other integers than the interpreter", g.Name, name)
			}
			continue
		}
		for i := range want.Len() {
			x, y := got.Float(i), want.Float(i)
			if x == y || x != x && y != y || math.Abs(x-y) <= slack(name)+2e-30 || x == x && y == y && neighbours(got.Bytes()[2*i:], want.Bytes()[2*i:]) {
				continue
			}
			t.Errorf("%s, %s of code %#x: got %g, expected %g", g.Name, name, i, x, y)
			break
		}
	}
}

// neighbours says whether two codes of a half format, neither of a NaN, are next to each other in value.
func neighbours(a, b []byte) bool {
	place := func(c []byte) int {
		code := int(c[0]) | int(c[1])<<8
		if code >= 1<<15 {
			return 1<<15 - code
		}
		return code
	}
	d := place(a) - place(b)
	return d >= -1 && d <= 1
}
