package exec

import (
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Work counts pairs of elements, (1+results)(1+operands), for each command of a body on single elements; loops have no bound.
func TestWork(t *testing.T) {
	row := func(family string) *ir.Row {
		for _, r := range ir.Rows() {
			if r.Family == family {
				return r
			}
		}
		t.Fatalf("no row of family %s", family)
		return nil
	}
	o := func(dims ...int64) prog.Operand { return prog.Operand{Dims: dims} }
	body := []*prog.Program{{Commands: make([]prog.Command, 3)}}
	for _, c := range []struct {
		what string
		c    prog.Command
		want float64
	}{
		{"sum of two", prog.Command{Row: row("elementwise"), Out: []prog.Operand{o(64)}, In: []prog.Operand{o(64), o(64)}}, 65 * 129},
		{"an absent operand", prog.Command{Row: row("matmul"), Out: []prog.Operand{o(2, 3)}, In: []prog.Operand{o(2, 5), {Absent: true}, o(5, 3)}}, 7 * 26},
		{"no operand", prog.Command{Row: row("rng"), Out: []prog.Operand{o(10)}}, 11},
		{"an empty result", prog.Command{Row: row("elementwise"), Out: []prog.Operand{o(0)}, In: []prog.Operand{o(0)}}, 1},
		{"a region", prog.Command{Row: row("region"), Out: []prog.Operand{o(7)}, In: []prog.Operand{o()}, Bodies: body}, 4 * 8 * 2},
		{"a loop", prog.Command{Row: row("control"), Out: []prog.Operand{o(1)}, In: []prog.Operand{o(1)}, Bodies: body}, briefWork + 1},
	} {
		if got := work(&plan.Step{Command: c.c}); got < c.want || c.c.Row.Family != "control" && got != c.want {
			t.Errorf("%s: %g, expected %g", c.what, got, c.want)
		}
	}
}
