package onnx

import (
	"fmt"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// evaluate runs g node by node with the reference kernels, dims bound to what the inputs have. Static inputs bind their elements.
func evaluate(g *ir.Graph, feed map[string]*ir.Tensor) (map[string]*ir.Tensor, error) {
	bind := map[string]int64{}
	for _, n := range g.Inputs {
		name, _ := n.InputName()
		t := feed[name]
		if t == nil || t.Rank() != len(n.Types[0].Shape) || t.DType() != n.Types[0].DType {
			return nil, fmt.Errorf("input %s: got %v, expected %s", name, t, n.Types[0])
		}
		for i, d := range n.Types[0].Shape {
			if s, ok := d.Symbol(); ok {
				bind[s] = t.Shape()[i]
			}
		}
		if _, err := n.Out(0).InputDims(); err == nil {
			for i := range t.Len() {
				bind[ir.StaticSymbol(name, i)] = t.Int(i)
			}
		}
	}
	static, err := pass.Bind(g, bind)
	if err != nil {
		return nil, err
	}
	values := map[*ir.Node][]*ir.Tensor{}
	for _, n := range static.Nodes {
		if values[n], err = runNode(static, n, feed, values); err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
	}
	out := map[string]*ir.Tensor{}
	for _, o := range static.Outputs {
		out[o.Name] = values[o.Value.Node()][o.Value.Index()]
	}
	return out, nil
}

func runNode(g *ir.Graph, n *ir.Node, feed map[string]*ir.Tensor, values map[*ir.Node][]*ir.Tensor) ([]*ir.Tensor, error) {
	if name, ok := n.InputName(); ok {
		return []*ir.Tensor{feed[name]}, nil
	}
	if name, ok := n.ParamName(); ok {
		return []*ir.Tensor{g.ParamData(name)}, nil
	}
	if t, ok := n.Out(0).Const(); ok {
		return []*ir.Tensor{t}, nil
	}
	in := make([]*ir.Tensor, len(n.In))
	for i, v := range n.In {
		if !v.IsZero() {
			in[i] = values[v.Node()][v.Index()]
		}
	}
	return ref.Apply(n.Row, n.Attrs, in, n.Types)
}

// shapeOf is the type of a graph's output as text.
func shapeOf(t *testing.T, g *ir.Graph, name string) string {
	t.Helper()
	for _, o := range g.Outputs {
		if o.Name == name {
			return o.Value.Type().String()
		}
	}
	t.Fatalf("no output %q", name)
	return ""
}
