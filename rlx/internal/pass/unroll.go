package pass

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Unroll writes short loops out: their steps can be fused and share memory with what is around them.
var Unroll = Pass{
	Name:  "unroll",
	Doc:   "writes short loops of few nodes out where the target has regions to put them in",
	Rules: []Rule{{"scan", unrollScanRule}},
}

// The longest loop that is written out, and the most nodes of its body, inputs among them.
const (
	maxUnrolled     = 8
	maxUnrolledBody = 16
)

// unrollScanRule is for loops that the target would run as they are; others are decomposed, or run on the host, whatever their length. Steps that draw
// random numbers stay a loop, and so do loops of loops: what is written out holds no loop, so that every step leaves one less.
func unrollScanRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.ScanAttrs)
	if !ok || m.Support == nil || len(a.Body.Nodes) > maxUnrolledBody || !m.Support.NativeRow(op.ElementwiseRegionRow(), ir.F32) {
		return nil
	}
	var trips ir.Dim
	switch xs := m.In[a.NumCarries+a.NumCaptures:]; {
	case a.Length != nil:
		trips = ir.D(*a.Length)
	case len(xs) > 0:
		trips = xs[0].Dim(0)
	}
	n, static := trips.Static()
	if !static || n < 1 || n > maxUnrolled {
		return nil
	}
	if slices.ContainsFunc(a.Body.Nodes, func(n *ir.Node) bool { return n.Row.Has(ir.Random) || n.Row.Has(ir.Control) }) {
		return nil
	}
	return m.Row.Decompose(m.Node)
}
