package ir

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
)

// Type is the type of a value: a dtype and dims.
type Type struct {
	DType DType
	Shape []Dim
}

// Value is one result of a node. The zero Value stands for an absent optional operand.
type Value struct {
	n *Node
	i int
}

// Node is one operation of a graph.
type Node struct {
	Row   *Row
	Name  string
	In    []Value // absent optional operands are zero Values
	Attrs any     // pointer to the row's attribute struct
	Types []Type  // of the results
	From  Origin  // the node that this one is a part of, after decomposition; without an Op the one that a pass made it for

	Absorbed []Origin // other nodes of the user's graph that this one stands for, after fusion

	g  *Graph
	id int
}

// Origin names the node of the user's graph that a decomposed node came from.
type Origin struct{ Op, Name string }

// Graph is a list of nodes in an order in which operands come first. Builders append; passes make new graphs.
type Graph struct {
	Name    string
	Nodes   []*Node
	Inputs  []*Node // Input leaves, in order of declaration
	Outputs []Output

	params  map[string]*Tensor
	names   map[string]bool
	suffix  map[string]int  // by name wanted: the last suffix that was given
	leaves  map[string]bool // names of inputs and params, which are their own
	outputs map[string]bool // names of Outputs, brought up to date by Output
	from    Origin
	err     error
	poison  *Node

	build func(*Graph, []Type) error // of a deferred sub-graph
	arity int                        // its inputs
}

// Output is a named result of the graph.
type Output struct {
	Name  string
	Value Value
}

// NewGraph is an empty graph.
func NewGraph(name string) *Graph { return newGraph(name, 0) }

// newGraph has room for the given number of nodes.
func newGraph(name string, nodes int) *Graph {
	g := &Graph{Name: name, Nodes: make([]*Node, 0, nodes), params: map[string]*Tensor{}, names: make(map[string]bool, nodes), suffix: map[string]int{}, leaves: map[string]bool{}}
	g.poison = &Node{g: g, Types: []Type{{}}}
	return g
}

// Err is the first error of a builder, with the caller's file and line.
func (g *Graph) Err() error { return g.err }

// Node returns the value's node, nil for an absent value.
func (v Value) Node() *Node { return v.n }

// Index is the number of the result.
func (v Value) Index() int { return v.i }

// IsZero says whether the value is absent.
func (v Value) IsZero() bool { return v.n == nil }

// Graph is the graph that the value belongs to.
func (v Value) Graph() *Graph {
	if v.n == nil {
		return nil
	}
	return v.n.g
}

// Type is the value's type; that of an absent or poisoned value is zero.
func (v Value) Type() Type {
	if v.n == nil || v.i < 0 || v.i >= len(v.n.Types) {
		return Type{}
	}
	return v.n.Types[v.i]
}

// DType, Shape, Rank and Dim read the type. Dim accepts negative axes and gives 0 for an axis outside the rank.
func (v Value) DType() DType { return v.Type().DType }
func (v Value) Shape() []Dim { return v.Type().Shape }
func (v Value) Rank() int    { return len(v.Type().Shape) }
func (v Value) Dim(axis int) Dim {
	s := v.Shape()
	if axis < 0 {
		axis += len(s)
	}
	if axis < 0 || axis >= len(s) {
		return Dim{}
	}
	return s[axis]
}

// Poisoned says whether a builder failed on the way to v.
func (v Value) Poisoned() bool { return v.n != nil && v.n.Row == nil }

// ID is the node's number in its graph.
func (n *Node) ID() int { return n.id }

// Graph is the graph that holds the node.
func (n *Node) Graph() *Graph { return n.g }

// Out is result i of the node.
func (n *Node) Out(i int) Value { return Value{n, i} }

// Results are all results of the node.
func (n *Node) Results() []Value {
	out := make([]Value, len(n.Types))
	for i := range out {
		out[i] = Value{n, i}
	}
	return out
}

// String is the node's name and kind, as errors show it.
func (n *Node) String() string {
	if n.Row == nil {
		return "a value that a builder failed to make"
	}
	if n.From.Op != "" && n.From.Name != n.Name {
		return fmt.Sprintf("%s (%s, part of %s %s)", n.Name, n.Row.Name, n.From.Op, n.From.Name)
	}
	return fmt.Sprintf("%s (%s)", n.Name, n.Row.Name)
}

// callerPos is the file:line of the first caller outside the builders.
func callerPos() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "/rlx/ir.") && !strings.Contains(f.Function, "/rlx/op.") {
			return fmt.Sprintf("%s:%d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
		}
		if !more {
			return ""
		}
	}
}

// uniqueName returns want, or want with a suffix that makes it new.
func (g *Graph) uniqueName(want string) string {
	name := want
	for g.names[name] {
		g.suffix[want]++
		name = fmt.Sprintf("%s.%d", want, g.suffix[want])
	}
	g.names[name] = true
	return name
}

// Add appends a node of row r. Names that are taken get a suffix; an empty name becomes the kind in lower case with a number.
// The result types come from the row. It is what all builders call.
func (g *Graph) Add(r *Row, name string, attrs any, in ...Value) (*Node, error) {
	return g.add(r, name, attrs, in, nil)
}

// add is Add of a node that may be like another one, whose types it has then.
func (g *Graph) add(r *Row, name string, attrs any, in []Value, like *Node) (*Node, error) {
	if name == "" {
		name = fmt.Sprintf("%s_%d", strings.ToLower(r.Name), len(g.Nodes))
	}
	n := &Node{Row: r, Name: g.uniqueName(name), In: slices.Clone(in), Attrs: attrs, From: g.from, g: g, id: len(g.Nodes)}
	for i, v := range in {
		if v.n != nil && v.n.g != g {
			delete(g.names, n.Name)
			err := v.foreign(g, fmt.Sprintf("operand %d", i))
			if _, ok := err.(*NodeError); ok {
				return nil, err
			}
			return nil, nodeError(g, name, r.Name, in, err)
		}
	}
	if like != nil && n.infersLike(like) {
		n.Types = like.Types
	} else if types, err := r.inferInto(n); err != nil {
		delete(g.names, n.Name)
		return nil, nodeError(g, name, r.Name, in, err)
	} else {
		n.Types = types
	}
	g.Nodes = append(g.Nodes, n)
	if r == inputOp.row {
		g.Inputs = append(g.Inputs, n)
	}
	if leaf, ok := n.leafName(); ok {
		g.leaves[leaf] = true
	}
	return n, nil
}

// foreign says why v, of another graph, cannot be used in g: that graph's own error if it has one. Builders without an operand that
// knows its graph leave their error in a graph of their own, and here it comes to light.
func (v Value) foreign(g *Graph, what string) error {
	if err := v.n.g.err; err != nil {
		return err
	}
	return fmt.Errorf("%s belongs to graph %q, expected %q", what, v.n.g.Name, g.Name)
}

// Apply appends a node with attributes a and returns its results; after an error they are poisoned.
func (o *Op[A]) Apply(a A, in ...Value) []Value {
	var g *Graph
	for _, v := range in {
		if v.n != nil && (g == nil || !v.Poisoned()) {
			if g = v.n.g; !v.Poisoned() {
				break
			}
		}
	}
	if g != nil {
		return o.ApplyIn(g, a, in...)
	}
	orphan := NewGraph("")
	return o.poisoned(orphan, orphan.fail(o.row.Name, "", errors.New("no operand, expected at least one")))
}

// Apply1 is Apply for rows with one result.
func (o *Op[A]) Apply1(a A, in ...Value) Value { return o.Apply(a, in...)[0] }

// ApplyIn is Apply for rows that may have no operands: the graph is given.
func (o *Op[A]) ApplyIn(g *Graph, a A, in ...Value) []Value {
	for _, v := range in {
		if v.Poisoned() {
			return o.poisoned(g, g.fail(o.row.Name, "", v.n.g.err))
		}
	}
	n, err := g.Add(o.row, "", &a, in...)
	if err != nil {
		return o.poisoned(g, g.fail(o.row.Name, "", bare(err), in...))
	}
	return n.Results()
}

// bare is err without the node that Add names, which a builder's error replaces by a position.
func bare(err error) error {
	if ne, ok := err.(*NodeError); ok && ne.Pos == "" {
		return ne.Err
	}
	return err
}

// maxPoisoned is how many results a node that could not be made gives where its attributes decide on the number.
const maxPoisoned = 64

func (o *Op[A]) poisoned(g *Graph, v Value) []Value {
	n := max(1, o.row.numResults())
	if o.row.AnyResults() {
		n = maxPoisoned
	}
	out := make([]Value, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// Named gives the value's node a name, made unique by a suffix. The empty name changes nothing. A node with a length that inference
// cannot express, whose symbol holds the name, must be named before it is used.
func (v Value) Named(name string) Value {
	n := v.n
	if n == nil || n.Row == nil || name == "" || name == n.Name {
		return v
	}
	old := n.Name
	delete(n.g.names, old)
	n.Name = n.g.uniqueName(name)
	for _, t := range n.Types {
		if slices.ContainsFunc(t.Shape, func(d Dim) bool { s, ok := d.Symbol(); return ok && strings.HasPrefix(s, unknownSymbol(old)) }) {
			if types, err := n.Row.InferTypes(n); err == nil {
				n.Types = types
			}
			break
		}
	}
	return v
}

// Output names v as a result of the graph.
func (g *Graph) Output(name string, v Value) {
	if g.outputs == nil || len(g.outputs) != len(g.Outputs) { // passes write the list itself
		g.outputs = map[string]bool{}
		for _, o := range g.Outputs {
			g.outputs[o.Name] = true
		}
	}
	switch {
	case g.outputs[name]:
		g.fail("Output", name, fmt.Errorf("output %q is named twice, expected unique names", name))
	case v.IsZero():
		g.fail("Output", name, fmt.Errorf("output %q has no value, expected one of the graph", name))
	case v.n.g != g:
		g.fail("Output", name, v.foreign(g, fmt.Sprintf("output %q", name)))
	case name == "":
		g.fail("Output", name, errors.New("an output without a name, expected a unique one"))
	default:
		g.Outputs = append(g.Outputs, Output{name, v})
		g.outputs[name] = true
	}
}

// ParamData is the tensor bound to the Param called name, nil if there is none.
func (g *Graph) ParamData(name string) *Tensor { return g.params[name] }

// Rebuild makes a new graph by walking g's nodes in order. visit gets each node that an output needs (or every one, with all set),
// with its operands in the new graph, and returns the values that stand for its results there; nil means the same node again,
// as Copy makes it. Nodes that visit adds belong to node n's origin.
func (g *Graph) Rebuild(all bool, visit func(to *Graph, n *Node, in []Value) ([]Value, error)) (*Graph, error) {
	to := newGraph(g.Name, len(g.Nodes))
	live := g.live()
	done := make([][]Value, len(g.Nodes))
	for _, n := range g.Nodes {
		if !all && !live[n.id] {
			continue
		}
		in := make([]Value, len(n.In))
		for i, v := range n.In {
			if v.n != nil {
				in[i] = done[v.n.id][v.i]
			}
		}
		out, err := visit(to, n, in)
		if err == nil {
			err = to.err
		}
		if err == nil && out == nil {
			out, err = to.Copy(n, in)
		}
		if err != nil {
			return nil, err
		}
		if len(out) != len(n.Types) {
			return nil, fmt.Errorf("%s: rebuilt with %d results, expected %d", n, len(out), len(n.Types))
		}
		done[n.id] = out
	}
	for _, o := range g.Outputs {
		to.Outputs = append(to.Outputs, Output{o.Name, done[o.Value.n.id][o.Value.i]})
	}
	return to, nil
}

// Copy appends a copy of n with operands in. Its types are inferred anew where the operands are others than n's.
func (g *Graph) Copy(n *Node, in []Value) ([]Value, error) {
	if name, ok := n.ParamName(); ok && n.g.params[name] != nil {
		g.params[name] = n.g.params[name]
	}
	c, err := g.add(n.Row, n.Name, n.Attrs, in, n)
	if err != nil {
		return nil, err
	}
	c.Inherit(n)
	return c.Results(), nil
}

// infersLike says that inference gives n, a copy of m that has its row and attributes, the types of m: it sees the types of the operands, which of
// them are constants, and the node's name. A second leaf of one name is left to it to find.
func (n *Node) infersLike(m *Node) bool {
	if n.Name != m.Name || len(n.In) != len(m.In) {
		return false
	}
	if leaf, ok := n.leafName(); ok && n.g.leaves[leaf] {
		return false
	}
	for i, v := range n.In {
		w := m.In[i]
		if v.n == nil || w.n == nil {
			if v.n != w.n {
				return false
			}
			continue
		}
		a, _ := v.Const()
		if b, _ := w.Const(); a != b || !v.Type().Equal(w.Type()) {
			return false
		}
	}
	return true
}

// Drop takes back the node that was added last.
func (g *Graph) Drop(n *Node) {
	if last := len(g.Nodes) - 1; last >= 0 && g.Nodes[last] == n {
		g.Nodes = g.Nodes[:last]
		delete(g.names, n.Name)
	}
}

// Restore puts back the node that Drop took last, if nothing was added in between.
func (g *Graph) Restore(n *Node) error {
	if n.id != len(g.Nodes) || g.names[n.Name] {
		return fmt.Errorf("%s: cannot be put back behind node %d, it was number %d", n, len(g.Nodes)-1, n.id)
	}
	g.names[n.Name] = true
	g.Nodes = append(g.Nodes, n)
	return nil
}

// Within runs build with n as the origin of all nodes that it adds.
func (g *Graph) Within(n *Node, build func() []Value) []Value {
	from := n.From
	if from.Op == "" {
		from = Origin{n.Row.Name, n.Name}
	}
	return g.WithOrigin(from, build)
}

// WithOrigin runs build; all nodes that it adds belong to the origin.
func (g *Graph) WithOrigin(from Origin, build func() []Value) []Value {
	old := g.from
	g.from = from
	defer func() { g.from = old }()
	return build()
}

// AllLive says whether every node is needed by an output, or is an Input.
func (g *Graph) AllLive() bool { return !slices.Contains(g.live(), false) }

// live marks the nodes that an output needs, and every Input.
func (g *Graph) live() []bool {
	live := make([]bool, len(g.Nodes))
	for _, n := range g.Inputs {
		live[n.id] = true
	}
	for _, o := range g.Outputs {
		live[o.Value.n.id] = true
	}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		if live[i] {
			for _, v := range g.Nodes[i].In {
				if v.n != nil {
					live[v.n.id] = true
				}
			}
		}
	}
	return live
}

// Symbols lists the names that the inputs' shapes mention, sorted.
func (g *Graph) Symbols() []string {
	set := map[string]bool{}
	for _, n := range g.Inputs {
		for _, d := range n.Types[0].Shape {
			d.Symbols(set)
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// String is the type as text: f32[batch, 64].
func (t Type) String() string { return typeText(t) }

// Equal says whether dtype and dims are the same.
func (t Type) Equal(o Type) bool { return t.DType == o.DType && slices.Equal(t.Shape, o.Shape) }

// StaticShape returns the dims as integers, and whether all are known.
func StaticShape(shape []Dim) ([]int64, bool) {
	out := make([]int64, len(shape))
	for i, d := range shape {
		n, ok := d.Static()
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// Count is the product of the dims.
func Count(shape []Dim) Dim {
	n := D(1)
	for _, d := range shape {
		n = n.Mul(d)
	}
	return n
}

// Dims makes a shape of integers.
func Dims(sizes ...int64) []Dim {
	out := make([]Dim, len(sizes))
	for i, n := range sizes {
		out[i] = D(n)
	}
	return out
}
