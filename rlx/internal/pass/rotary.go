package pass

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Rotary finds rotary embeddings of split halves that a model spells out: x*cos + concat(-x2, x1)*sin. Both halves of the tables must be shown to be equal,
// because the kind reads only the first.
var Rotary = Pass{Name: "rotary", Rounds: true, Doc: "rotary embeddings that are spelled out become one node", Rules: []Rule{{"rotary", rotaryRule}}}

func rotaryRule(m *Match) []ir.Value {
	if m.Types[0].DType != ir.F32 && m.Types[0].DType != ir.F64 || len(m.Types[0].Shape) != 4 {
		return nil
	}
	return sides(m.Node, "add", func(straight, crossed ir.Value) []ir.Value {
		if !m.Single(straight) || !m.Single(crossed) {
			return nil
		}
		for _, s := range bothWays(straight) {
			x, cos := s[0], s[1]
			for _, c := range bothWays(crossed) {
				if m.Single(c[0]) && turned(c[0], x) {
					return rope(x, cos, c[1])
				}
			}
		}
		return nil
	})
}

// bothWays are the operands of a product in both orders.
func bothWays(v ir.Value) [][2]ir.Value {
	a, b, ok := asBinary(v, "mul")
	if !ok {
		return nil
	}
	return [][2]ir.Value{{a, b}, {b, a}}
}

// turned says whether v is concat(-x2, x1) of the halves x1, x2 of x along the last axis.
func turned(v, x ir.Value) bool {
	if !isKind(v, "Concat") || len(v.Node().In) != 2 || !v.Type().Equal(x.Type()) {
		return false
	}
	axis, ok := ir.WrapAxis(v.Node().Attrs.(*op.ConcatAttrs).Axis, x.Rank())
	if !ok || axis != x.Rank()-1 {
		return false
	}
	d, ok := x.Dim(-1).Static()
	second, ok2 := asUnary(v.Node().In[0], "neg")
	return ok && ok2 && d%2 == 0 && isPart(second, x, d/2, d) && isPart(v.Node().In[1], x, 0, d/2)
}

// isPart says whether v is x[..., from:to].
func isPart(v, x ir.Value, from, to int64) bool {
	y, axis, f, t, ok := sliced(v)
	return ok && y == x && axis == x.Rank()-1 && f == ir.D(from) && t == ir.D(to)
}

// rope is the node for tables that have a row for each token, the same for all heads.
func rope(x, cos, sin ir.Value) []ir.Value {
	tables := []ir.Value{cos, sin}
	for _, t := range tables {
		if !cos.Type().Equal(t.Type()) || t.DType() != x.DType() || !tableOf(t, x) || !equalHalves(t, 8) {
			return nil
		}
	}
	for i, t := range tables {
		batch := ir.D(1)
		if t.Rank() == 4 {
			batch = t.Dim(0)
		}
		tables[i] = op.Reshape(t, batch, x.Dim(2), x.Dim(3))
	}
	return []ir.Value{op.Rope(x, tables[0], tables[1], ir.Value{}, op.RopeAttrs{})}
}

// tableOf says whether t has the rows of x's tokens: [S, D] behind axes of 1, the first of four may be the batch.
func tableOf(t, x ir.Value) bool {
	s := t.Shape()
	if len(s) < 2 || !slices.Equal(s[len(s)-2:], x.Shape()[2:]) {
		return false
	}
	for k, d := range s[:len(s)-2] {
		if d != ir.D(1) && !(len(s) == 4 && k == 0 && d == x.Dim(0)) {
			return false
		}
	}
	return true
}

// equalHalves says whether both halves of v along the last axis are shown to be equal.
func equalHalves(v ir.Value, depth int) bool {
	if v.IsZero() || v.Rank() == 0 || depth == 0 {
		return false
	}
	if t := fixed(v); t != nil {
		return equalRows(t)
	}
	n := v.Node()
	switch n.Row.Name {
	case "Concat":
		axis, ok := ir.WrapAxis(n.Attrs.(*op.ConcatAttrs).Axis, v.Rank())
		return ok && axis == v.Rank()-1 && len(n.In) == 2 && n.In[0] == n.In[1]
	case "Activation", "Cast":
		return equalHalves(n.In[0], depth-1)
	case "Reshape", "Expand":
		x := n.In[0]
		return x.Rank() > 0 && x.Dim(-1) == v.Dim(-1) && equalHalves(x, depth-1)
	case "Narrow", "Slice":
		x, axis, _, _, ok := sliced(v)
		return ok && axis != x.Rank()-1 && equalHalves(x, depth-1)
	case "Gather":
		a, ok := n.Attrs.(*op.GatherAttrs)
		return ok && a.Axis == 0 && n.In[0].Rank() > 1 && equalHalves(n.In[0], depth-1)
	case "Binary":
		if x, _, ok := timesNumber(v); ok {
			return equalHalves(x, depth-1)
		}
	}
	return false
}

// equalRows says whether every row of a constant repeats its first half.
func equalRows(t *ir.Tensor) bool {
	d := int(t.Shape()[t.Rank()-1])
	if d == 0 || d%2 != 0 || t.Len() > scanned || !ir.Float.Has(t.DType()) {
		return false
	}
	for row := 0; row < t.Len(); row += d {
		for i := range d / 2 {
			if t.Float(row+i) != t.Float(row+d/2+i) {
				return false
			}
		}
	}
	return true
}
