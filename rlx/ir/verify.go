package ir

import "fmt"

// Verify checks the graph: operands come before their readers and belong to it, types are what the rows infer, names are unique,
// outputs exist. It also returns a builder's error.
func (g *Graph) Verify() error {
	if g.err != nil {
		return g.err
	}
	if len(g.Outputs) == 0 {
		return fmt.Errorf("graph %q has no outputs", g.Name)
	}
	names := map[string]bool{}
	for i, n := range g.Nodes {
		if err := g.verifyNode(i, n); err != nil {
			return &NodeError{Graph: g.Name, Node: n.Name, Op: n.Row.Name, Err: err}
		}
		if names[n.Name] {
			return fmt.Errorf("graph %q: two nodes are called %s", g.Name, n.Name)
		}
		names[n.Name] = true
	}
	for _, o := range g.Outputs {
		if o.Value.n == nil || o.Value.n.g != g || o.Value.i >= len(o.Value.n.Types) {
			return fmt.Errorf("graph %q: output %q is not a value of the graph", g.Name, o.Name)
		}
	}
	return nil
}

func (g *Graph) verifyNode(i int, n *Node) error {
	if n.id != i || n.g != g {
		return fmt.Errorf("node stands at %d, expected %d", i, n.id)
	}
	for k, v := range n.In {
		switch {
		case v.n == nil:
		case v.n.g != g:
			return fmt.Errorf("operand %d belongs to another graph", k)
		case v.n.id >= i:
			return fmt.Errorf("operand %d is computed later, by %s", k, v.n)
		case v.i < 0 || v.i >= len(v.n.Types):
			return fmt.Errorf("operand %d is result %d of %s, which has %d", k, v.i, v.n, len(v.n.Types))
		}
	}
	if n.Row.Has(Leaf) { // names are taken by themselves
		return nil
	}
	types, err := n.Row.InferTypes(n)
	if err != nil {
		return err
	}
	for k, t := range types {
		if !t.Equal(n.Types[k]) {
			return fmt.Errorf("result %d has type %s, the row infers %s", k, n.Types[k], t)
		}
	}
	return nil
}
