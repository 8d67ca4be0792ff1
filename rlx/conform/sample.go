package conform

import "github.com/rlx-ml/rlx-go/rlx/ir"

// Sample is a call of a row that inference accepts, for generators of graphs.
type Sample struct {
	Row   *ir.Row
	Attrs any
	In    []*ir.Tensor // nil: absent
	Types []ir.Type    // of the results
}

// Samples are the short cases of a row with the given dtype of its first operand, and one choice of its enum attributes, all of which follow
// from seed; nil where the row has none for the dtype.
func Samples(row *ir.Row, d ir.DType, seed uint64) []Sample {
	gen := generatorOf(row)
	if gen == nil {
		return nil
	}
	choices := enumChoices(row)
	m := &maker{row: row, dtype: d, enums: choices[seed%uint64(len(choices))], rng: newRandom(seed, uint64(row.Num())), short: true, turn: int(seed % 97)}
	gen(m)
	g := &caseGroup{accepted: map[string]bool{}, refused: map[string]error{}}
	for _, c := range m.cases {
		if c.fails == "" {
			g.add(m, c)
		}
	}
	var list []Sample
	for _, c := range g.cases {
		list = append(list, Sample{c.row, c.attrs, c.in, c.types})
	}
	return list
}
