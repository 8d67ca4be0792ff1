package pass

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// SwiGLU finds up * silu(gate) of the two halves of one tensor along its last axis. silu is one function by then: the pass activation writes it.
var SwiGLU = Pass{Name: "swiglu", Rounds: true, Doc: "up * silu(gate) of the halves of one tensor becomes one node", Rules: []Rule{{"swiglu", swigluRule}}}

func swigluRule(m *Match) []ir.Value {
	if m.Row.Name != "Binary" || !ir.Float.Has(m.Types[0].DType) || !m.native(op.FusedSwiGLURow(), m.Types[0].DType) {
		return nil
	}
	return sides(m.Node, "mul", func(up, silu ir.Value) []ir.Value {
		gate, ok := asUnary(silu, "silu")
		if !ok || !m.Single(silu) {
			return nil
		}
		x, axis, from, to, okUp := sliced(up)
		y, axisGate, fromGate, toGate, okGate := sliced(gate)
		if !okUp || !okGate || x != y || axis != x.Rank()-1 || axisGate != axis {
			return nil
		}
		switch n := x.Dim(axis); {
		case from.Is(0) && to == fromGate && toGate == n && to.Add(to) == n:
			return []ir.Value{op.FusedSwiGLU(x, false)}
		case fromGate.Is(0) && toGate == from && to == n && from.Add(from) == n:
			return []ir.Value{op.FusedSwiGLU(x, true)}
		}
		return nil
	})
}
