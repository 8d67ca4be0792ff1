package onnx

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// controlExports are the kinds with sub-graphs. A sub-graph of ONNX reads the values around it by name, so captures are no inputs of it.
var controlExports = map[string]exportRow{
	"If":    direct(emitIf),
	"While": direct(emitWhile),
	"Scan":  direct(emitScan),
}

// named is a value that a sub-graph takes or gives.
type named struct {
	name string
	typ  ir.Type
}

func namedAll(names []string, types []ir.Type) []named {
	list := make([]named, len(names))
	for i, name := range names {
		list[i] = named{name, types[i]}
	}
	return list
}

// formals are new names for inputs of a sub-graph of the node.
func (x *emission) formals(role string, inputs []*ir.Node) (names []string, list []named) {
	for _, n := range inputs {
		name, _ := n.InputName()
		list = append(list, x.formal(role, name, n.Types[0]))
		names = append(names, list[len(list)-1].name)
	}
	return names, list
}

func (x *emission) formal(role, name string, t ir.Type) named {
	return named{x.fresh(x.prefix + x.n.Name + "/" + role + "/" + name), t}
}

// subGraph writes the nodes of sub where x writes its own, with in for the inputs, and returns the names of what it gives. Lengths that are
// found there are forgotten after it: sub may be written a second time, elsewhere.
func (x *emission) subGraph(role string, sub *ir.Graph, in []string) []string {
	lengths, sources, prefix, refused := x.lengths, x.sources, x.prefix, len(x.unsupported)
	x.lengths, x.sources, x.prefix = maps.Clone(lengths), maps.Clone(sources), prefix+x.n.Name+"/"+role+"/"
	for i, n := range sub.Inputs {
		x.values[n.Out(0)] = in[i]
		x.meet(n.Out(0))
	}
	x.nodes(sub)
	x.lengths, x.sources, x.prefix = lengths, sources, prefix
	if items := x.unsupported[refused:]; len(items) > 0 {
		reasons := make([]string, len(items))
		for i, u := range items {
			reasons[i] = fmt.Sprintf("%s: %s (%q)", u.Op, u.Reason, u.Node)
		}
		x.refuse("%s: %s", role, strings.Join(reasons, "; "))
		x.unsupported = x.unsupported[:refused]
	}
	out := make([]string, len(sub.Outputs))
	for i, o := range sub.Outputs {
		out[i] = x.values[o.Value]
	}
	return out
}

// body is a graph for an attribute: write adds its nodes and returns what it gives. Each of that has to come from a node of the graph, under a
// name of its own.
func (x *emission) body(role string, inputs []named, write func() []named) AttributeProto {
	outer := x.graph.Nodes
	x.graph.Nodes = nil
	results := write()
	made := map[string]bool{}
	for _, p := range x.graph.Nodes {
		for _, name := range p.Output {
			made[name] = true
		}
	}
	g := &GraphProto{Name: role}
	for _, r := range results {
		if !made[r.name] {
			r.name = x.op("Identity", r.name)
		}
		delete(made, r.name)
		g.Outputs = append(g.Outputs, x.valueInfo(r.name, r.typ))
	}
	for _, v := range inputs {
		g.Inputs = append(g.Inputs, x.valueInfo(v.name, v.typ))
	}
	g.Nodes, x.graph.Nodes = x.graph.Nodes, outer
	return attr(role, g)
}

func emitIf(x *emission, a *op.IfAttrs) []string {
	if _, ok := x.n.In[0].Const(); ok {
		if out, why := x.compose(x.n, x.in, x.n.Row.Inline); why == "" {
			return out
		}
	}
	branch := func(role string, sub *ir.Graph) AttributeProto {
		return x.body(role, nil, func() []named { return namedAll(x.subGraph(role, sub, x.in[1:]), sub.OutputTypes()) })
	}
	return x.ops("If", len(x.n.Types), x.in[:1], branch("then_branch", a.ThenBranch), branch("else_branch", a.ElseBranch))
}

var (
	flagType  = ir.Type{DType: ir.Bool, Shape: []ir.Dim{}}
	countType = ir.Type{DType: ir.I64, Shape: []ir.Dim{}}
)

// loopInputs are what a Loop hands to its body before the carries: the number of the trip, and the condition.
func (x *emission) loopInputs() []named {
	return []named{x.formal("body", "trip", countType), x.formal("body", "condition", flagType)}
}

// emitWhile writes a Loop. Its body computes the condition of the next trip: also after the last one that max_trips allows, where While does
// not ask. The number of trips is one more carry where something reads it.
func emitWhile(x *emission, a *op.WhileAttrs) []string {
	n := len(x.in)
	if a.NumCarries != nil {
		n = int(*a.NumCarries)
	}
	captures := x.in[n:]
	holds := func(carries []string) string {
		y := x.subGraph("cond", a.Cond, slices.Concat(carries, captures))[0]
		if a.Cond.Outputs[0].Value.Rank() > 0 {
			y = x.op("Reshape", []string{y, x.ints()})
		}
		return y
	}
	in := []string{"", holds(x.in[:n])}
	if a.MaxTrips >= 0 {
		in[0] = x.constant("trips", ir.Scalar(a.MaxTrips))
	}
	in = append(in, x.in[:n]...)
	given := x.loopInputs()
	carries, carried := x.formals("body", a.Body.Inputs[:n])
	inputs := slices.Concat(given, carried)
	count := a.NumEmits > 0 && isRead(x.n.Out(len(x.n.Types)-1))
	if count {
		inputs = append(inputs, x.formal("body", "trips", countType))
		in = append(in, x.constant("trips", ir.Scalar(int64(0))))
	}
	body := x.body("body", inputs, func() []named {
		out := namedAll(x.subGraph("body", a.Body, slices.Concat(carries, captures)), a.Body.OutputTypes())
		next := make([]string, n)
		for i := range next {
			next[i] = out[i].name
		}
		results := append([]named{{holds(next), flagType}}, out[:n]...)
		if count {
			one := x.constant("one", ir.Scalar(int64(1)))
			results = append(results, named{x.op("Add", []string{given[0].name, one}), countType})
		}
		return append(results, out[n:]...)
	})
	if !count {
		return append(x.ops("Loop", n+int(a.NumEmits), in, body), "")
	}
	out := x.ops("Loop", n+1+int(a.NumEmits), in, body)
	return slices.Concat(out[:n], out[n+1:], out[n:n+1])
}

// isRead says that an output or a node of v's graph is made of it.
func isRead(v ir.Value) bool {
	g := v.Node().Graph()
	return slices.ContainsFunc(g.Outputs, func(o ir.Output) bool { return o.Value == v }) ||
		slices.ContainsFunc(g.Nodes, func(n *ir.Node) bool { return slices.Contains(n.In, v) })
}

// stepping is a Scan that is being written: its operands, and what its body takes.
type stepping struct {
	x                   *emission
	a                   *op.ScanAttrs
	init, captures, xs  []string
	carries, rows       []string
	inputs              []named
	length              ir.Dim
	first, end, results int // the stacks of ys among the results, and how many there are
}

// emitScan writes a Scan, and where nothing is scanned, which that lacks, a Loop. Saved carries are rows of stacks of all carries.
func emitScan(x *emission, a *op.ScanAttrs) []string {
	c, b := int(a.NumCarries), int(a.NumCarries+a.NumCaptures)
	s := stepping{x: x, a: a, init: x.in[:c], captures: x.in[c:b], xs: x.in[b:], first: c, end: len(a.Body.Outputs), results: len(x.n.Types)}
	if a.Length != nil {
		s.length = ir.D(*a.Length)
	} else {
		s.length = x.shape(b)[0]
	}
	if s.length.Is(0) { // which ONNX Runtime refuses
		return append(slices.Clone(s.init), x.nothing(x.n.Types[c:])...)
	}
	var rows []named
	s.carries, s.inputs = x.formals("body", a.Body.Inputs[:c])
	s.rows, rows = x.formals("body", a.Body.Inputs[b:])
	s.inputs = append(s.inputs, rows...)
	if len(s.xs) == 0 {
		return s.savedRows(s.loop())
	}
	return s.savedRows(s.scan())
}

// body is the body, which gives what stands in first and what the sub-graph gives.
func (s *stepping) body(first []named) AttributeProto {
	return s.x.body("body", s.inputs, func() []named {
		types := s.a.Body.OutputTypes()
		out := append(first, namedAll(s.x.subGraph("body", s.a.Body, slices.Concat(s.carries, s.captures, s.rows)), types)...)
		if s.a.NumCheckpoints > 0 {
			out = append(out, namedAll(s.carries, types[:s.first])...)
		}
		return out
	})
}

func (s *stepping) loop() []string {
	x, given := s.x, s.x.loopInputs()
	s.inputs = append(given, s.inputs...)
	in := append([]string{x.constant("length", ir.Scalar(*s.a.Length)), ""}, s.init...)
	out := x.ops("Loop", s.results, in, s.body(given[1:2:2]))
	for i := s.first; i < s.end && s.a.Reverse; i++ {
		out[i] = x.stackOp("Slice", out[i], x.result(i), x.ints(-1), x.ints(math.MinInt64), x.ints(0), x.ints(-1))
	}
	return out
}

// scan is the operator. What it collects from the last step on goes to the front: the carries that enter steps stay in the order of the steps.
func (s *stepping) scan() []string {
	attrs := []AttributeProto{s.body(nil), attr("num_scan_inputs", len(s.xs))}
	if s.a.Reverse {
		out := make([]int64, s.results-s.first)
		for i := range s.end - s.first {
			out[i] = 1
		}
		attrs = append(attrs, attr("scan_input_directions", slices.Repeat([]int64{1}, len(s.xs))), attr("scan_output_directions", out))
	}
	return s.x.ops("Scan", s.results, slices.Concat(s.init, s.xs), attrs...)
}

// nothing is values of types without elements.
func (x *emission) nothing(types []ir.Type) []string {
	out := make([]string, len(types))
	for i, t := range types {
		if shape, ok := ir.StaticShape(t.Shape); ok {
			out[i] = x.filled(t.DType, 0, shape...)
			continue
		}
		c := x.carrier(t.DType, expandable)
		out[i] = x.cast(x.op("Expand", []string{x.scalar(c, 0), x.dims(t.Shape)}), c, t.DType)
	}
	return out
}

// savedRows picks, of the stacks of carries, the rows that enter the steps floor(k T / K') for k = 0 .. K'-1.
func (s *stepping) savedRows(out []string) []string {
	if s.end == len(out) || s.x.n.Types[s.end].Shape[0] == s.length {
		return out
	}
	index := s.savedSteps(s.x.n.Types[s.end].Shape[0])
	for i := s.end; i < len(out); i++ {
		out[i] = s.x.stackOp("Gather", out[i], s.x.result(i), index)
	}
	return out
}

func (s *stepping) savedSteps(saved ir.Dim) string {
	x := s.x
	if t, ok := s.length.Static(); ok {
		k, _ := saved.Static()
		steps := make([]int64, k)
		for i := range steps {
			steps[i] = int64(i) * t / k
		}
		return x.ints(steps...)
	}
	k := x.length(saved)
	zero, one := x.constant("zero", ir.Scalar(int64(0))), x.constant("one", ir.Scalar(int64(1)))
	index := x.op("Range", []string{zero, x.op("Reshape", []string{k, x.ints()}), one})
	return x.op("Div", []string{x.op("Mul", []string{index, x.length(s.length)}), k})
}

// stackOp writes an operator that moves rows of a stack of dtype d.
func (x *emission) stackOp(operator, stack string, d ir.DType, list ...string) string {
	c := x.carrier(d, movable)
	return x.cast(x.op(operator, append([]string{x.cast(stack, d, c)}, list...)), c, d)
}
