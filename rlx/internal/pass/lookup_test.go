package pass_test

import (
	"math"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// A product with one-hot rows reads rows, bit for bit, unless the table has what such a product does not keep.
func TestLookup(t *testing.T) {
	numbers := ir.New([]int32{0, 1, 2, 3}, 1, 1, 4)
	table := func(special float64) *ir.Tensor {
		return ir.New([]float32{1, -2, 3e38, -4, 5, float32(special), 0, 1e-30, -9, 10, 11, -12}, 4, 3)
	}
	for _, c := range []struct {
		name    string
		numbers *ir.Tensor
		table   *ir.Tensor
		swap    bool
		finds   bool
	}{
		{"numbers behind", numbers, table(6), false, true},
		{"numbers in front", numbers, table(6), true, true},
		{"other numbers", ir.New([]int32{1, 2, 3, 4}, 1, 1, 4), table(6), false, false},
		{"numbers along another axis", ir.New([]int32{0, 1, 2, 3}, 1, 4, 1), table(6), false, false},
		{"infinity", numbers, table(math.Inf(1)), false, false},
		{"NaN", numbers, table(math.NaN()), false, false},
		{"-0", numbers, table(math.Copysign(0, -1)), false, false},
		{"a subnormal", numbers, table(1e-40), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := ir.NewGraph("g")
			x := g.Input("x", ir.I32, ir.Dims(2, 4, 1))
			a, b := x, g.Param("numbers", c.numbers)
			if c.numbers.Shape()[1] == 4 {
				a = g.Input("z", ir.I32, ir.Dims(2, 1, 4))
			}
			if c.swap {
				a, b = b, a
			}
			g.Output("y", op.MatMul(op.Cast(op.Eq(a, b), ir.F32), g.Param("table", c.table)))
			after, err := pass.Pipeline{Passes: []pass.Pass{pass.Lookup}, Support: support(func(*ir.Row) bool { return true }, nil), Verify: true}.Run(g)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(after.String(), "Gather"); got != c.finds {
				t.Fatalf("found %v, expected %v\n%s", got, c.finds, after)
			}
			feed := map[string]*ir.Tensor{"x": ir.New([]int32{0, 3, 2, 1, -1, 4, math.MinInt32, math.MaxInt32}, 2, 4, 1), "z": ir.New([]int32{0, 3, 2, 1, -1, 4, 7, 2}, 2, 1, 4)}
			sameBits(t, evaluate(t, after, feed), evaluate(t, g, feed), after)
		})
	}
}
