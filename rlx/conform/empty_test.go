package conform

import (
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Every row has a case without elements in an operand or a result, which TestRows runs on every backend.
func TestEveryRowHasAnEmptyCase(t *testing.T) {
	for _, row := range ir.Rows() {
		if gen := generatorOf(row); gen != nil && !row.Has(ir.Leaf) && !hasEmptyCase(row, gen) {
			t.Errorf("%s: no case without elements", row.Name)
		}
	}
}

func hasEmptyCase(row *ir.Row, gen func(*maker)) bool {
	turn := 0 // as the suite counts groups
	for _, d := range row.In[0].DTypes.List() {
		for _, enums := range enumChoices(row) {
			m := &maker{row: row, dtype: d, enums: enums, rng: newRandom(1, uint64(row.Num())), turn: turn}
			gen(m)
			turn++
			g := &caseGroup{accepted: map[string]bool{}, refused: map[string]error{}}
			for _, c := range m.cases {
				if c.fails == "" {
					g.add(m, c)
				}
			}
			for _, c := range g.cases {
				for _, x := range c.in {
					if x != nil && x.Len() == 0 {
						return true
					}
				}
				for _, y := range c.types {
					if n, ok := ir.Count(y.Shape).Static(); ok && n == 0 {
						return true
					}
				}
			}
		}
	}
	return false
}
