package conform

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// generator makes the cases of one row for one dtype of its first operand and one choice of its enum attributes.
type generator func(m *maker)

var generators = map[string]generator{}

// generate binds a generator to rows. Family files call it in init.
func generate(g generator, rows ...string) {
	for _, r := range rows {
		generators[r] = g
	}
}

// generatorOf is the row's generator. Elementwise rows need none of their own: their operands broadcast or have one shape, and their
// attributes have defaults.
func generatorOf(row *ir.Row) generator {
	if g := generators[row.Name]; g != nil {
		return g
	}
	if !row.Has(ir.Elementwise) {
		return nil
	}
	for _, a := range row.Schema {
		if a.Required && a.Kind != ir.AttrEnum {
			return nil
		}
	}
	return elementwise
}

// maker is what a generator works with.
type maker struct {
	row   *ir.Row
	dtype ir.DType          // of the first operand
	enums map[string]string // a value for each enum attribute
	rng   *random
	short bool
	large bool // this is the time for a case beyond the kernels' blocks
	turn  int  // number of this maker among those of its row
	cases []*rowCase
}

// attrs are attributes by name, as text or values that print as their text; those not named take their defaults.
type attrs map[string]any

// add makes a case; a nil tensor is an absent operand.
func (m *maker) add(a attrs, in ...*ir.Tensor) *rowCase {
	given := maps.Clone(m.enums)
	if given == nil {
		given = map[string]string{}
	}
	graphs := map[string]*ir.Graph{}
	for k, v := range a {
		if g, ok := v.(*ir.Graph); ok {
			graphs[k] = g
			continue
		}
		given[k] = attrValue(v)
	}
	c := &rowCase{row: m.row, in: in, via: make([]via, len(in)), text: fmt.Sprint(a), expectation: &expectation{}}
	var err error
	if c.attrs, err = m.row.NewAttrsWith(given, graphs); err != nil {
		c.attrs, c.text = m.row.Zero(), err.Error() // inference refuses the zero struct or the text shows up in a failure
	}
	m.cases = append(m.cases, c)
	return c
}

// attrValue is the text form of an attribute; lists read [1, 2].
func attrValue(v any) string {
	switch v := v.(type) {
	case []int64:
		return strings.ReplaceAll(fmt.Sprint(v), " ", ", ")
	case []int:
		return strings.ReplaceAll(fmt.Sprint(v), " ", ", ")
	case []float64:
		return strings.ReplaceAll(fmt.Sprint(v), " ", ", ")
	}
	return fmt.Sprint(v)
}

// variants are the ways to run case i: as it is, and in turns with strided, copied and constant operands. A short run takes one of them.
func (m *maker) variants(i int, c *rowCase) []*rowCase {
	if c.fails != "" || c.bound {
		return []*rowCase{c}
	}
	other := *c
	other.in, other.via = slices.Clone(c.in), make([]via, len(c.in))
	turn := (i + m.turn) % 5
	for k, x := range c.in {
		if x == nil {
			continue
		}
		switch turn {
		case 0, 2:
			other.via[k] = m.rng.strided(x, c.fixed)
		case 1:
			other.via[k].kind, other.through = viaArena, true
		case 3:
			if k > 0 || len(c.in) == 1 { // the weights of a product
				other.via[k].kind = viaConstant
			}
		case 4:
			if k == 0 && len(c.in) > 1 {
				other.via[k].kind = viaConstant
			} else {
				other.via[k] = m.rng.strided(x, c.fixed)
			}
		}
		other.in[k] = other.via[k].settle(x)
	}
	if !slices.Equal(other.in, c.in) {
		other.expectation = &expectation{}
	}
	if m.short && (i+m.turn)%2 == 1 {
		return []*rowCase{&other}
	}
	if m.short {
		return []*rowCase{c}
	}
	return []*rowCase{c, &other}
}

// widths are lengths on both sides of every vector width and unrolled step.
var widths = []int64{1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 100}

// some takes all of a list, or a part of it in a short run: as many as few says, from a place that moves from maker to maker.
func some[S any](m *maker, few int, list []S) []S {
	if !m.short || len(list) <= few {
		return list
	}
	out := make([]S, few)
	for i := range out {
		out[i] = list[(m.turn*few+i)%len(list)]
	}
	return out
}

// part is some for lists of which a full run takes no more than most either.
func part[S any](m *maker, few, most int, list []S) []S {
	if m.short {
		most = few
	}
	short := *m
	short.short = true
	return some(&short, most, list)
}

func dims(d ...int64) []int64 { return append([]int64{}, d...) }

// partner is a dtype of the set that changes from case to case, for operands whose dtype is their own.
func (m *maker) partner(set ir.DTypeSet) ir.DType {
	l := set.List()
	return l[(len(m.cases)+m.turn)%len(l)]
}

// indexDType draws the dtype of an index operand that must hold values below n.
func (m *maker) indexDType(n int64) ir.DType {
	d := m.partner(ir.IndexT)
	if n > 127 && d.Size() < 4 {
		return ir.I64
	}
	return d
}
