package ir

import "fmt"

// Verify checks the graph: operands come before their readers and belong to it, types are what the rows infer, names are unique,
// outputs exist. It also returns a builder's error.
func (g *Graph) Verify() error {
	if g.err != nil {
		return g.err
	}
	if len(g.Outputs) == 0 {
		return g.defect("Output", "graph %q has no outputs, expected at least one", g.Name)
	}
	names, leaves, inputs := map[string]bool{}, map[string]bool{}, 0
	for i, n := range g.Nodes {
		if n == nil || n.Row == nil {
			return g.defect("", "graph %q: node %d has no row, expected an op", g.Name, i)
		}
		if err := g.verifyNode(i, n); err != nil {
			return nodeError(g, n.Name, n.Row.Name, n.In, err)
		}
		if leaf, ok := n.leafName(); ok {
			if leaves[leaf] {
				return g.defect(n.Row.Name, "graph %q: two inputs or params are called %q, expected unique names", g.Name, leaf)
			}
			leaves[leaf] = true
		}
		if n.Row == inputOp.row {
			if inputs >= len(g.Inputs) || g.Inputs[inputs] != n {
				return g.defect("Input", "graph %q: the list of inputs lacks %s, expected all in order of their nodes", g.Name, n)
			}
			inputs++
		}
		if names[n.Name] {
			return g.defect(n.Row.Name, "graph %q: two nodes are called %s, expected unique names", g.Name, n.Name)
		}
		names[n.Name] = true
	}
	if inputs != len(g.Inputs) {
		return g.defect("Input", "graph %q: %d inputs are listed, expected the nodes' %d", g.Name, len(g.Inputs), inputs)
	}
	outputs := map[string]bool{}
	for _, o := range g.Outputs {
		v := o.Value
		if v.n == nil || v.n.g != g || v.i < 0 || v.i >= len(v.n.Types) || v.n.id >= len(g.Nodes) || g.Nodes[v.n.id] != v.n {
			return g.defect("Output", "graph %q: output %q is not a value of the graph, expected one", g.Name, o.Name)
		}
		if outputs[o.Name] {
			return g.defect("Output", "graph %q: two outputs are called %q, expected unique names", g.Name, o.Name)
		}
		outputs[o.Name] = true
	}
	return nil
}

// defect is an error about what the graph declares: about its nodes of kind op.
func (g *Graph) defect(op, format string, args ...any) error {
	return nodeError(g, "", op, nil, fmt.Errorf(format, args...))
}

func (g *Graph) verifyNode(i int, n *Node) error {
	if n.id != i || n.g != g {
		return fmt.Errorf("node stands at %d, expected %d", i, n.id)
	}
	for k, v := range n.In {
		switch {
		case v.n == nil:
		case v.n.g != g:
			return fmt.Errorf("operand %d belongs to another graph, expected one of %q", k, g.Name)
		case v.n.id >= i:
			return fmt.Errorf("operand %d is computed later, by %s, expected an earlier node", k, v.n)
		case v.i < 0 || v.i >= len(v.n.Types):
			return fmt.Errorf("operand %d is result %d of %s, expected one of its %d", k, v.i, v.n, len(v.n.Types))
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
		v := g.params[param.Name]
		if v != nil && v.Err() != nil {
			return v.Err()
		}
		if v != nil && !v.Type().Equal(types[0]) {
			return fmt.Errorf("bound to %s, expected %s as declared", v.Type(), types[0])
		}
	default:
		var err error
		if types, err = n.Row.InferTypes(n); err != nil {
			return err
		}
	}
	if len(types) != len(n.Types) {
		return fmt.Errorf("%d results, expected %d as the row infers", len(n.Types), len(types))
	}
	for k, t := range types {
		if !t.Equal(n.Types[k]) {
			return fmt.Errorf("result %d has type %s, expected %s as the row infers", k, n.Types[k], t)
		}
	}
	return nil
}
