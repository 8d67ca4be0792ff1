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
	names, leaves, inputs := map[string]bool{}, map[string]bool{}, 0
	for i, n := range g.Nodes {
		if n == nil || n.Row == nil {
			return fmt.Errorf("graph %q: node %d has no row", g.Name, i)
		}
		if err := g.verifyNode(i, n); err != nil {
			return &NodeError{Graph: g.Name, Node: n.Name, Op: n.Row.Name, Err: err}
		}
		if leaf, ok := n.leafName(); ok {
			if leaves[leaf] {
				return fmt.Errorf("graph %q: two inputs or params are called %q", g.Name, leaf)
			}
			leaves[leaf] = true
		}
		if n.Row == inputOp.row {
			if inputs >= len(g.Inputs) || g.Inputs[inputs] != n {
				return fmt.Errorf("graph %q: the list of inputs lacks %s", g.Name, n)
			}
			inputs++
		}
		if names[n.Name] {
			return fmt.Errorf("graph %q: two nodes are called %s", g.Name, n.Name)
		}
		names[n.Name] = true
	}
	if inputs != len(g.Inputs) {
		return fmt.Errorf("graph %q: %d inputs are listed, the nodes hold %d", g.Name, len(g.Inputs), inputs)
	}
	outputs := map[string]bool{}
	for _, o := range g.Outputs {
		v := o.Value
		if v.n == nil || v.n.g != g || v.i < 0 || v.i >= len(v.n.Types) || v.n.id >= len(g.Nodes) || g.Nodes[v.n.id] != v.n {
			return fmt.Errorf("graph %q: output %q is not a value of the graph", g.Name, o.Name)
		}
		if outputs[o.Name] {
			return fmt.Errorf("graph %q: two outputs are called %q", g.Name, o.Name)
		}
		outputs[o.Name] = true
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
	for _, sub := range n.Graphs() {
		if sub == nil {
			continue
		}
		if sub.build != nil {
			return errDeferred
		}
		if err := sub.Verify(); err != nil {
			return err
		}
	}
	types := []Type{{}}
	input, isInput := n.Attrs.(*InputAttrs)
	param, isParam := n.Attrs.(*ParamAttrs)
	switch { // inference would find the names of leaves taken, by themselves
	case isInput && n.Row == inputOp.row:
		types[0] = Type{input.Dtype, input.Shape}
	case isParam && n.Row == paramOp.row:
		types[0] = Type{param.Dtype, param.Shape}
		if v := g.params[param.Name]; v != nil && !v.Type().Equal(types[0]) {
			return fmt.Errorf("bound to %s, declared as %s", v.Type(), types[0])
		}
	default:
		var err error
		if types, err = n.Row.InferTypes(n); err != nil {
			return err
		}
	}
	if len(types) != len(n.Types) {
		return fmt.Errorf("%d results, the row infers %d", len(n.Types), len(types))
	}
	for k, t := range types {
		if !t.Equal(n.Types[k]) {
			return fmt.Errorf("result %d has type %s, the row infers %s", k, n.Types[k], t)
		}
	}
	return nil
}
