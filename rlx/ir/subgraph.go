package ir

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// A sub-graph is an attribute: a graph whose inputs stand for operands of the node, by position. It reads its own inputs and constants
// and nothing else. One that is written before the types of the operands are known is deferred: inference builds it for them, and again
// where they change.

// Deferred is a sub-graph of the given number of inputs that build makes in an empty graph: it declares inputs of the given types, adds
// nodes and names the outputs. build is called once for each set of types.
func Deferred(name string, inputs int, build func(g *Graph, types []Type) error) *Graph {
	g := NewGraph(name)
	g.build, g.arity = build, inputs
	return g
}

// SubGraph is Deferred with a body in Go: build gets the graph and its inputs and returns the outputs. Without one there is no sub-graph, which
// the node that needs it reports.
func SubGraph(name string, inputs int, build func(g *Graph, in []Value) []Value) *Graph {
	if build == nil {
		return nil
	}
	return Deferred(name, inputs, func(g *Graph, types []Type) error {
		in := make([]Value, len(types))
		for i, t := range types {
			in[i] = g.Input(fmt.Sprintf("in%d", i), t.DType, t.Shape)
		}
		for i, v := range build(g, in) {
			g.Output(fmt.Sprintf("out%d", i), v)
		}
		return g.Err()
	})
}

// NumInputs is how many inputs the graph has, or will have when it is built.
func (g *Graph) NumInputs() int {
	if g.build != nil {
		return g.arity
	}
	return len(g.Inputs)
}

// Instantiate returns the sub-graph for inputs of the given types: g itself where it has them.
func (g *Graph) Instantiate(types []Type) (*Graph, error) {
	if g.NumInputs() != len(types) {
		return nil, fmt.Errorf("takes %d inputs, got %d", g.NumInputs(), len(types))
	}
	if g.build != nil {
		to := NewGraph(g.Name)
		if err := g.build(to, types); err != nil {
			return nil, err
		}
		if err := to.Err(); err != nil {
			return nil, err
		}
		if len(to.Inputs) != len(types) {
			return nil, fmt.Errorf("declared %d inputs, expected %d", len(to.Inputs), len(types))
		}
		return to, to.closed()
	}
	same := true
	for i, n := range g.Inputs {
		same = same && n.Types[0].Equal(types[i])
	}
	if same {
		return g, g.closed()
	}
	return g.retype(types)
}

// closed says whether the graph reads nothing from outside but its inputs.
func (g *Graph) closed() error {
	for _, n := range g.Nodes {
		if name, ok := n.ParamName(); ok {
			return fmt.Errorf("C9: %s reads the parameter %q, expected an input or a constant of the sub-graph", n, name)
		}
	}
	return g.Err()
}

// retype is g with inputs of other types; the other types are inferred anew.
func (g *Graph) retype(types []Type) (*Graph, error) {
	k := 0
	return g.Rebuild(true, func(to *Graph, n *Node, in []Value) ([]Value, error) {
		a, ok := n.Attrs.(*InputAttrs)
		if !ok {
			return nil, nil
		}
		t := types[k]
		k++
		return []Value{to.Input(a.Name, t.DType, t.Shape)}, nil
	})
}

// Bind makes every dim static: inputs take the bound shapes, attributes and sub-graphs the values, and types are inferred anew. A constraint
// that only these sizes violate is found here.
func (g *Graph) Bind(values map[string]int64) (*Graph, error) {
	return g.Rebuild(false, func(to *Graph, n *Node, in []Value) ([]Value, error) {
		attrs, err := n.Row.BindAttrs(n.Attrs, values)
		if err != nil {
			return nil, ErrorAt(n, err)
		}
		if attrs == n.Attrs {
			return nil, nil
		}
		c, err := to.Add(n.Row, n.Name, attrs, in...)
		if err != nil {
			return nil, err
		}
		c.Inherit(n)
		return c.Results(), nil
	})
}

// Splice copies the nodes of a sub-graph into g, with in for its inputs, and returns what stands for its outputs.
func (g *Graph) Splice(sub *Graph, in []Value) ([]Value, error) { return g.SpliceWith(sub, in, nil) }

// SpliceWith is Splice with a function that may change the operands, in g, of each node of the sub-graph before it is copied.
func (g *Graph) SpliceWith(sub *Graph, in []Value, operands func(n *Node, args []Value)) ([]Value, error) {
	if len(in) != len(sub.Inputs) {
		return nil, fmt.Errorf("sub-graph %q takes %d inputs, got %d", sub.Name, len(sub.Inputs), len(in))
	}
	done := make([][]Value, len(sub.Nodes))
	for i, n := range sub.Inputs {
		done[n.id] = []Value{in[i]}
	}
	for _, n := range sub.Nodes {
		if done[n.id] != nil {
			continue
		}
		args := make([]Value, len(n.In))
		for i, v := range n.In {
			if v.n != nil {
				args[i] = done[v.n.id][v.i]
			}
		}
		if operands != nil {
			operands(n, args)
		}
		c, err := g.Add(n.Row, n.Name, n.Attrs, args...)
		if err != nil {
			return nil, err
		}
		if c.Absorbed = n.Absorbed; g.from.Op == "" { // not within a node that these become a part of
			c.From = n.From
		}
		done[n.id] = c.Results()
	}
	out := make([]Value, len(sub.Outputs))
	for i, o := range sub.Outputs {
		out[i] = done[o.Value.n.id][o.Value.i]
	}
	return out, nil
}

// OutputTypes lists the types of the graph's outputs.
func (g *Graph) OutputTypes() []Type {
	types := make([]Type, len(g.Outputs))
	for i, o := range g.Outputs {
		types[i] = o.Value.Type()
	}
	return types
}

// Sub instantiates a sub-graph for inputs of the given types and returns it; what names it in errors. It is nil after an error.
func (t *Infer) Sub(g *Graph, what string, types []Type) *Graph {
	if g == nil {
		t.fail("%s: required attribute is missing, expected a graph", what)
		return nil
	}
	sub, err := g.Instantiate(types)
	if err != nil {
		if t.err == nil {
			t.err = fmt.Errorf("%s: %s: %w", t.n.Row.Name, what, bare(err))
		}
		return nil
	}
	return sub
}

// Types are those of operands [from, to).
func (t *Infer) Types(from, to int) []Type {
	types := make([]Type, 0, max(to-from, 0))
	for i := from; i < to; i++ {
		types = append(types, t.Type(i))
	}
	return types
}

// Graphs lists the sub-graphs of attrs in row order, absent ones as nil: those of Control rows, and the bodies of regions.
func (r *Row) Graphs(attrs any) []*Graph {
	if attrs == nil {
		return nil
	}
	var list []*Graph
	v := reflect.ValueOf(attrs).Elem()
	for _, a := range r.Schema {
		if a.Kind == AttrGraph {
			list = append(list, v.Field(a.field).Interface().(*Graph))
		}
	}
	return list
}

// WithGraphs is attrs with other sub-graphs, as Graphs lists them.
func (r *Row) WithGraphs(attrs any, graphs []*Graph) any {
	own := reflect.New(r.attrs)
	own.Elem().Set(reflect.ValueOf(attrs).Elem())
	k := 0
	for _, a := range r.Schema {
		if a.Kind == AttrGraph {
			own.Elem().Field(a.field).Set(reflect.ValueOf(graphs[k]))
			k++
		}
	}
	return own.Interface()
}

// Graphs lists the node's sub-graphs.
func (n *Node) Graphs() []*Graph { return n.Row.Graphs(n.Attrs) }

// EachNode calls f for the nodes of g and of all sub-graphs in it, outer ones first.
func (g *Graph) EachNode(f func(*Node)) {
	for _, n := range g.Nodes {
		f(n)
		for _, sub := range n.Graphs() {
			if sub != nil {
				sub.EachNode(f)
			}
		}
	}
}

// MapGraphs replaces the sub-graphs of g's Control nodes, innermost first; g itself is returned where f changes none.
func (g *Graph) MapGraphs(f func(*Graph) (*Graph, error)) (*Graph, error) {
	if !slices.ContainsFunc(g.Nodes, func(n *Node) bool { return n.Row.Has(Control) }) {
		return g, nil
	}
	return g.Rebuild(true, func(to *Graph, n *Node, in []Value) ([]Value, error) {
		if !n.Row.Has(Control) {
			return nil, nil
		}
		subs := n.Graphs()
		changed := false
		for i, sub := range subs {
			if sub == nil {
				continue
			}
			inner, err := sub.MapGraphs(f)
			if err == nil {
				inner, err = f(inner)
			}
			if err != nil {
				return nil, err
			}
			changed = changed || inner != sub
			subs[i] = inner
		}
		if !changed {
			return nil, nil
		}
		c, err := to.Add(n.Row, n.Name, n.Row.WithGraphs(n.Attrs, subs), in...)
		if err != nil {
			return nil, err
		}
		c.Inherit(n)
		return c.Results(), nil
	})
}

var errDeferred = errors.New("the sub-graph is not built yet: its node infers it")

// Face is a sub-graph of which only the types are known: inference can look at it, nothing can run it. It takes inputs of those types alone.
func Face(inputs, outputs []Type) *Graph {
	return Deferred("body", len(inputs), func(g *Graph, types []Type) error {
		for i, t := range inputs {
			if !t.Equal(types[i]) {
				return fmt.Errorf("input %d is %s, expected %s", i, t, types[i])
			}
			g.Input(fmt.Sprintf("in%d", i), t.DType, t.Shape)
		}
		n := &Node{Row: &Row{Name: "Body"}, Types: outputs, g: g}
		for i := range outputs {
			g.Outputs = append(g.Outputs, Output{fmt.Sprintf("out%d", i), n.Out(i)})
		}
		return nil
	})
}
