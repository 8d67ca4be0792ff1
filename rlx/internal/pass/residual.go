package pass

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Residual puts the addition in front of a norm into it. The sum is a second result, for whoever else reads it. Only f32 and f64, whose sums are rounded as
// before.
var Residual = Pass{Name: "residual", Rounds: true, Doc: "the addition in front of a layer norm or an RMS norm goes into it", Run: residualNorms}

func residualNorms(g *ir.Graph, count map[string]int) (*ir.Graph, error) {
	readers := readersOf(g)
	pairs := map[*ir.Node]bool{} // norms that take their addition
	for _, n := range g.Nodes {
		if normOf(n) != nil && takesSum(n, readers) {
			pairs[n] = true
		}
	}
	if len(pairs) == 0 {
		return g, nil
	}
	var merges ir.Merges
	to, values := ir.NewGraph(g.Name), map[ir.Value]ir.Value{}
	for _, n := range g.Nodes {
		if !pairs[n] {
			out, err := to.Copy(n, mapped(n.In, values))
			if err != nil {
				return nil, err
			}
			for i, v := range out {
				values[n.Out(i)] = v
			}
			continue
		}
		a, sum := n.Attrs.(*op.LayerNormAttrs), n.In[0]
		in := mapped(n.In, values)
		terms := mapped(sum.Node().In, values)
		y, s := normOf(n)(terms[0], terms[1], ir.Value{}, in[1], in[2], a.Axis, a.Eps)
		if err := to.Err(); err != nil {
			return nil, err
		}
		y.Named(n.Name)
		y.Node().Inherit(n)
		merges.Add(len(to.Nodes), in, y.Node())
		count[residualRules[n.Row.Name]]++
		values[n.Out(0)], values[sum] = y, s // later readers of the sum read this one
	}
	for _, o := range g.Outputs {
		to.Outputs = append(to.Outputs, ir.Output{Name: o.Name, Value: values[o.Value]})
	}
	merges.Settle(to)
	return DCE(to)
}

// residualRules names what is counted, by kind of norm.
var residualRules = map[string]string{"LayerNorm": "layer norm", "RmsNorm": "rms norm"}

// normOf is the fused kind of a norm, nil for other nodes.
func normOf(n *ir.Node) func(x, residual, bias, gamma, beta ir.Value, axis int, eps float64) (y, sum ir.Value) {
	switch n.Row.Name {
	case "LayerNorm":
		return op.FusedResidualLN
	case "RmsNorm":
		return op.FusedResidualRmsNorm
	}
	return nil
}

// takesSum says whether norm n reads a sum of two values of its shape that nobody reads before n does.
func takesSum(n *ir.Node, readers map[ir.Value][]*ir.Node) bool {
	a, b, ok := asBinary(n.In[0], "add")
	if d := n.Types[0].DType; !ok || d != ir.F32 && d != ir.F64 {
		return false
	}
	shape := n.Types[0].Shape
	if !slices.Equal(a.Shape(), shape) || !slices.Equal(b.Shape(), shape) || a == b {
		return false
	}
	return !slices.ContainsFunc(readers[n.In[0]], func(r *ir.Node) bool { return r != nil && r.ID() < n.ID() })
}
