package ref

import (
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// composed evaluates a row that has no kernel of its own, such as a region, node by node through its decomposition.
func composed(row *ir.Row, attrs any, in []*ir.Tensor) ([]*ir.Tensor, error) {
	g := ir.NewGraph("composed")
	done := map[ir.Value]*ir.Tensor{}
	values := make([]ir.Value, len(in))
	for i, t := range in {
		if t == nil {
			continue
		}
		values[i] = g.Input(fmt.Sprintf("in%d", i), t.DType(), t.Type().Shape)
		done[values[i]] = t
	}
	n, err := g.Add(row, "", attrs, values...)
	if err != nil {
		return nil, err
	}
	first := len(g.Nodes)
	list := g.Within(n, func() []ir.Value { return row.Decompose(n) })
	if err := g.Err(); err != nil {
		return nil, err
	}
	for _, m := range g.Nodes[first:] {
		if err := evalNode(m, done); err != nil {
			return nil, err
		}
	}
	out := make([]*ir.Tensor, len(list))
	for i, v := range list {
		if t, ok := v.Const(); ok {
			done[v] = t
		}
		if out[i] = done[v]; out[i] == nil {
			return nil, fmt.Errorf("%s: result %d of the decomposition is missing", row.Name, i)
		}
	}
	return out, nil
}
