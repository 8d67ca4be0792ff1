package onnx

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// The operator set that exports are written for, and the IR version that goes with it. A model that holds a later operator or element
// type asks for the set that has it.
const (
	exportOpset = 21
	exportIR    = 10
)

// irVersions are the IR versions that came with operator sets after exportOpset.
var irVersions = map[int64]int64{23: 11, 24: 12}

// ExportOption changes how a graph is written.
type ExportOption func(*exportOptions)

type exportOptions struct {
	data     io.Writer
	location string
}

// ExternalData writes the weights to w, and into the model where they lie in it: in the file called location, which has to stand in the
// model's folder. A model of 2 GB and more needs it.
func ExternalData(w io.Writer, location string) ExportOption {
	return func(o *exportOptions) { o.data, o.location = w, location }
}

// Export writes a graph as an ONNX model. Inputs, weights and outputs keep their names, and so do nodes where one node stands for one; a
// kind without an operator of its own becomes the operators that compute it. Symbolic dims become dim_params, and shapes that depend on
// them are computed in the model.
//
// Dtypes stay as they are: integers that a file held in 2 or 4 bits are written in 8. Random kinds draw the numbers of the runtime's
// own generator. Errors: [*UnsupportedError] with every node that has no ONNX form.
func Export(g *ir.Graph, w io.Writer, opts ...ExportOption) error {
	var o exportOptions
	for _, f := range opts {
		f(&o)
	}
	m, err := exportModel(g)
	if err != nil {
		return err
	}
	if o.data != nil {
		if err := m.Graph.moveData(o.data, o.location); err != nil {
			return err
		}
	}
	return Encode(w, m)
}

func exportModel(g *ir.Graph) (*ModelProto, error) {
	if err := g.Err(); err != nil {
		return nil, err
	}
	e := newExporter(g)
	e.leaves()
	e.nodes(g)
	e.outputs()
	if len(e.unsupported) > 0 {
		return nil, &UnsupportedError{e.unsupported}
	}
	e.prune()
	irVersion := int64(exportIR)
	if v := irVersions[e.opset]; v > 0 {
		irVersion = v
	}
	return &ModelProto{
		IRVersion: irVersion, ProducerName: "rlx", Graph: e.graph, Opset: []OperatorSetID{{Version: e.opset}},
	}, nil
}

// exporter is one export: the graph that is being written, and what its values are called.
type exporter struct {
	g           *ir.Graph
	graph       GraphProto
	opset       int64
	values      map[ir.Value]string // name in the model
	want        map[ir.Value]string // name that an output asks for
	taken       map[string]bool     // names in use
	final       map[string]bool     // names that values keep
	lengths     map[string]string   // value [1] of i64 by the text of the dim
	sources     map[string]length   // an axis or element that has a dim, by its text
	constants   map[any]string      // initializer by dtype, shape and bytes, a large one by its tensor
	helpers     map[string]bool     // initializers that stand for no node, which go if nothing reads them
	depth       int                 // of compositions within compositions
	prefix      string              // of the names of nodes in a sub-graph
	unsupported []Unsupported
}

// length is where a dim is found at run time: an axis of a value, or an element of an input.
type length struct {
	value   ir.Value
	index   int
	element bool
}

func newExporter(g *ir.Graph) *exporter {
	return &exporter{
		g: g, opset: exportOpset, graph: GraphProto{Name: g.Name}, values: map[ir.Value]string{}, want: map[ir.Value]string{},
		taken: map[string]bool{}, final: map[string]bool{}, lengths: map[string]string{}, sources: map[string]length{}, constants: map[any]string{},
		helpers: map[string]bool{},
	}
}

// leaves declares the inputs and reserves all names that the user of the model sees.
func (e *exporter) leaves() {
	if e.graph.Name == "" {
		e.graph.Name = "graph"
	}
	for _, n := range e.g.Inputs {
		name, _ := n.InputName()
		v := n.Out(0)
		e.values[v], e.taken[name] = name, true
		e.graph.Inputs = append(e.graph.Inputs, e.valueInfo(name, v.Type()))
		e.meet(v)
		if elem, err := v.InputDims(); err == nil {
			for i, d := range elem {
				e.sources[d.String()] = length{v, i, true}
			}
		}
	}
	for _, o := range e.g.Outputs {
		e.taken[o.Name] = true
		if e.want[o.Value] == "" && e.values[o.Value] == "" {
			e.want[o.Value] = o.Name
		}
	}
	for _, n := range e.g.Nodes {
		if name, ok := n.ParamName(); ok {
			if want := e.want[n.Out(0)]; want != "" { // an initializer cannot bear an output's name and its own
				delete(e.want, n.Out(0))
			}
			e.taken[name] = true
		}
	}
}

// meet remembers the lengths that v has.
func (e *exporter) meet(v ir.Value) {
	for axis, d := range v.Shape() {
		if _, known := e.sources[d.String()]; !known && !d.IsStatic() {
			e.sources[d.String()] = length{value: v, index: axis}
		}
	}
}

// nodes writes those nodes of graph g that an output needs.
func (e *exporter) nodes(g *ir.Graph) {
	for _, n := range needed(g) {
		in := make([]string, len(n.In))
		broken := false
		for i, v := range n.In {
			if !v.IsZero() {
				in[i] = e.values[v]
				broken = broken || in[i] == ""
			}
		}
		if _, isInput := n.InputName(); isInput || broken { // a node before it was refused, and is on the list
			continue
		}
		e.node(n, in)
	}
}

// needed lists the nodes that outputs depend on, in order.
func needed(g *ir.Graph) []*ir.Node {
	live := map[*ir.Node]bool{}
	for _, o := range g.Outputs {
		live[o.Value.Node()] = true
	}
	var list []*ir.Node
	for _, n := range slices.Backward(g.Nodes) {
		if !live[n] {
			continue
		}
		list = append(list, n)
		for _, v := range n.In {
			if !v.IsZero() {
				live[v.Node()] = true
			}
		}
	}
	slices.Reverse(list)
	return list
}

// node writes n, whose operands are called in, and names its results.
func (e *exporter) node(n *ir.Node, in []string) {
	mark := len(e.graph.Nodes)
	out, reason := e.emit(n, in)
	if reason != "" {
		op, name := n.Row.Name, n.Name
		if n.From.Op != "" {
			op, name = n.From.Op, n.From.Name
		}
		e.unsupported = append(e.unsupported, Unsupported{Op: op, Node: name, Reason: reason})
		return
	}
	for i, v := range n.Results() {
		if i < len(out) && out[i] != "" {
			name := e.settle(v, out[i], mark)
			rename(out[i+1:], out[i], name)
			e.values[v] = name
		}
		e.meet(v)
	}
}

// emit returns the names of n's results, or why n has no ONNX form: by the row's operators, else by its composition.
func (e *exporter) emit(n *ir.Node, in []string) (out []string, reason string) {
	row, ok := exportTable[n.Row.Name]
	if !ok {
		row.reason = "has no row in the export table"
	}
	reason = row.reason
	if row.widen && slices.ContainsFunc(n.In, func(v ir.Value) bool { return v.DType() == ir.BF16 }) {
		return e.compose(n, in, widened)
	}
	if row.emit != nil {
		nodes, opset := e.save()
		x := &emission{exporter: e, n: n, in: in}
		if out = row.emit(x); x.reason == "" {
			return out, ""
		}
		e.restore(nodes, opset)
		reason = x.reason
	}
	build := row.lower
	if build == nil && n.Row.Composite() {
		build = n.Row.Decompose
	}
	switch {
	case build == nil:
		return nil, firstOf(reason, "no operator and no composition")
	case row.static && !staticNode(n):
		return nil, firstOf(reason, "its composition needs known dims")
	case e.depth > maxDepthOfParts:
		return nil, "compositions nest too deep"
	}
	nodes, opset := e.save()
	out, why := e.compose(n, in, build)
	if why != "" {
		e.restore(nodes, opset)
		return nil, firstOf(reason, why)
	}
	return out, ""
}

const maxDepthOfParts = 16

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// staticNode says that all dims of operands and results are known.
func staticNode(n *ir.Node) bool {
	types := slices.Clone(n.Types)
	for _, v := range n.In {
		types = append(types, v.Type())
	}
	return !slices.ContainsFunc(types, func(t ir.Type) bool { _, ok := ir.StaticShape(t.Shape); return !ok })
}

// compose builds n out of other kinds in a graph of its own and writes that.
func (e *exporter) compose(n *ir.Node, in []string, build func(*ir.Node) []ir.Value) (out []string, reason string) {
	to := ir.NewGraph("")
	operands := make([]ir.Value, len(n.In))
	for i, v := range n.In {
		switch same := slices.Index(n.In[:i], v); {
		case v.IsZero():
			continue
		case same >= 0:
			operands[i] = operands[same]
		default:
			if t, ok := v.Const(); ok { // compositions look at constants
				operands[i] = to.Constant(t)
			} else {
				operands[i] = to.Input("in"+strconv.Itoa(i), v.DType(), v.Shape())
			}
			e.values[operands[i]] = in[i]
		}
	}
	copied, err := to.Copy(n, operands)
	if err != nil {
		return nil, err.Error()
	}
	results := to.Within(copied[0].Node(), func() []ir.Value { return build(copied[0].Node()) })
	if err := to.Err(); err != nil {
		return nil, err.Error()
	}
	if results == nil || slices.ContainsFunc(results, func(v ir.Value) bool { return v.Node() == copied[0].Node() }) {
		return nil, "has no composition of these operands"
	}
	for i, v := range results {
		to.Outputs = append(to.Outputs, ir.Output{Name: strconv.Itoa(i), Value: v})
	}
	return e.parts(to, results)
}

// widened is n on f32 for its operands of bf16, rounded once.
func widened(n *ir.Node) []ir.Value {
	g, in := n.Graph(), slices.Clone(n.In)
	for i, v := range in {
		if v.DType() == ir.BF16 {
			in[i] = op.Cast(v, ir.F32)
		}
	}
	m, err := g.Add(n.Row, "", n.Attrs, in...)
	if err != nil {
		return []ir.Value{g.Fail(n.Row.Name, err)}
	}
	out := m.Results()
	for i := range out {
		out[i] = castTo(out[i], n.Types[i].DType)
	}
	return out
}

// parts writes the graph of a composition.
func (e *exporter) parts(to *ir.Graph, results []ir.Value) (out []string, reason string) {
	e.depth++
	defer func() { e.depth-- }()
	for _, p := range needed(to) {
		if e.values[p.Out(0)] != "" { // an operand
			continue
		}
		in := make([]string, len(p.In))
		for i, v := range p.In {
			in[i] = e.values[v]
		}
		names, why := e.emit(p, in)
		if why != "" {
			return nil, fmt.Sprintf("part %s: %s", p.Row.Name, why)
		}
		for i, v := range p.Results() {
			e.values[v] = names[i]
			e.meet(v)
		}
	}
	for _, v := range results {
		out = append(out, e.values[v])
	}
	return out, ""
}

// save and restore undo the nodes of a row that was given up. Lengths that those nodes computed are forgotten with them; constants that
// nothing reads are dropped at the end.
func (e *exporter) save() (nodes int, opset int64) { return len(e.graph.Nodes), e.opset }

func (e *exporter) restore(nodes int, opset int64) {
	gone := map[string]bool{}
	for _, p := range e.graph.Nodes[nodes:] {
		for _, name := range p.Output {
			gone[name] = true
		}
	}
	maps.DeleteFunc(e.lengths, func(_, name string) bool { return gone[name] })
	maps.DeleteFunc(e.sources, func(_ string, l length) bool { return gone[e.values[l.value]] })
	e.graph.Nodes, e.opset = e.graph.Nodes[:nodes], opset
}

// settle gives a result its final name: the one that an output wants, else the node's. A value that nodes since mark do not make, such
// as an operand that is passed on, keeps its name.
func (e *exporter) settle(v ir.Value, name string, mark int) string {
	want := e.want[v]
	own := false
	for i := mark; i < len(e.graph.Nodes); i++ {
		own = own || slices.Contains(e.graph.Nodes[i].Output, name)
	}
	if !own || e.final[name] {
		if want == "" {
			return name
		}
		x := &emission{exporter: e, n: v.Node()}
		name, own = x.op("Identity", name), true
	}
	if want == "" {
		want = e.fresh(e.prefix + resultName(v))
	}
	for i := mark; i < len(e.graph.Nodes); i++ {
		p := &e.graph.Nodes[i]
		p.renameInputs(name, want)
		if rename(p.Output, name, want) && v.Index() == 0 {
			p.Name = v.Node().Name // unique in a graph; names of parts hold a /
			if e.prefix != "" {    // of a sub-graph that may be written twice
				p.Name = want
			}
		}
	}
	for dim, l := range e.lengths {
		if l == name {
			e.lengths[dim] = want
		}
	}
	for _, l := range e.sources { // parts of compositions
		if e.values[l.value] == name {
			e.values[l.value] = want
		}
	}
	delete(e.taken, name)
	e.taken[want], e.final[want] = true, true
	return want
}

// resultName is the node's name, and for results after the first what the kind calls them.
func resultName(v ir.Value) string {
	n, i := v.Node(), v.Index()
	switch {
	case i == 0:
		return n.Name
	case i < len(n.Row.Results) && !strings.HasSuffix(n.Row.Results[i], "..."):
		return n.Name + "." + n.Row.Results[i]
	}
	return n.Name + "." + strconv.Itoa(i)
}

// renameInputs renames a value that the node, or one in its sub-graphs, reads.
func (p *NodeProto) renameInputs(from, to string) {
	rename(p.Input, from, to)
	for i := range p.Attribute {
		if g := p.Attribute[i].G; g != nil {
			for k := range g.Nodes {
				g.Nodes[k].renameInputs(from, to)
			}
		}
	}
}

func rename(list []string, from, to string) (found bool) {
	for i, s := range list {
		if s == from {
			list[i], found = to, true
		}
	}
	return found
}

// fresh is a name that nothing has.
func (e *exporter) fresh(want string) string {
	name := want
	for k := 1; e.taken[name]; k++ {
		name = want + "." + strconv.Itoa(k)
	}
	e.taken[name] = true
	return name
}

// outputs lists the results of the model. A value that bears another name, such as an input, is copied.
func (e *exporter) outputs() {
	for _, o := range e.g.Outputs {
		name := e.values[o.Value]
		if name == "" {
			continue // refused
		}
		if name != o.Name {
			e.graph.Nodes = append(e.graph.Nodes, NodeProto{Name: o.Name, OpType: "Identity", Input: []string{name}, Output: []string{o.Name}})
		}
		e.graph.Outputs = append(e.graph.Outputs, e.valueInfo(o.Name, o.Value.Type()))
	}
}

// prune drops constants that nothing reads, such as those of rows that were tried and given up.
func (e *exporter) prune() {
	used := map[string]bool{}
	readBy(e.graph.Nodes, used)
	e.graph.Initializers = slices.DeleteFunc(e.graph.Initializers, func(t TensorProto) bool { return e.helpers[t.Name] && !used[t.Name] })
}

// readBy collects the values that nodes read, and those in their sub-graphs.
func readBy(nodes []NodeProto, into map[string]bool) {
	for _, p := range nodes {
		for _, name := range p.Input {
			into[name] = true
		}
		for _, a := range p.Attribute {
			if a.G != nil {
				readBy(a.G.Nodes, into)
			}
		}
	}
}

// elemTypes is dtypes read backwards: the integers of 8 bits, not the narrower ones that are held in them.
var elemTypes = func() map[ir.DType]int32 {
	m := map[ir.DType]int32{}
	for elem, d := range dtypes {
		if 8*d.Size() == dataTypes[elem].bits || elem == DataFloat4E2M1 {
			m[d] = elem
		}
	}
	return m
}()

// elem is the element type of d, in an operator set that has it.
func (e *exporter) elem(d ir.DType) int32 {
	switch d {
	case ir.F4E2M1:
		e.need(23)
	case ir.E8M0:
		e.need(24)
	}
	return elemTypes[d]
}

// need asks for an operator set.
func (e *exporter) need(opset int64) { e.opset = max(e.opset, opset) }

func (e *exporter) valueInfo(name string, t ir.Type) ValueInfoProto {
	v := ValueInfoProto{Name: name, ElemType: e.elem(t.DType), Kind: KindTensor, HasShape: true}
	for _, d := range t.Shape {
		if n, ok := d.Static(); ok {
			v.Shape = append(v.Shape, Dim{Kind: DimValue, Value: n})
		} else {
			v.Shape = append(v.Shape, Dim{Kind: DimParam, Param: d.String()})
		}
	}
	return v
}

// initializer writes a tensor under a name that is free.
func (e *exporter) initializer(name string, t *ir.Tensor) string {
	elem := e.elem(t.DType())
	raw := t.Bytes()
	if dataTypes[elem].bits == 4 {
		raw = packed4(raw)
	}
	e.graph.Initializers = append(e.graph.Initializers, TensorProto{Name: name, Dims: t.Shape(), DataType: elem, raw: raw, hasRaw: true})
	return name
}

// packed4 puts two codes of 4 bits into each byte.
func packed4(codes []byte) []byte {
	out := make([]byte, (len(codes)+1)/2)
	for i, c := range codes {
		out[i/2] |= c & 15 << (4 * (i % 2))
	}
	return out
}

// sharedConstant is the largest tensor that equal constants share.
const sharedConstant = 256

// constant is an initializer that stands for no node; small ones are written once.
func (e *exporter) constant(name string, t *ir.Tensor) string {
	var key any = t // a sub-graph that is written twice has one
	if t.Size() <= sharedConstant {
		key = fmt.Sprintf("%s%v%x", t.DType(), t.Shape(), t.Bytes())
	}
	if have, ok := e.constants[key]; ok {
		return have
	}
	name = e.initializer(e.fresh(name), t)
	e.helpers[name], e.constants[key] = true, name
	return name
}

// externalSize is the least weight that leaves the model file, and externalAlign where weights begin, so that they can be mapped.
const (
	externalSize  = 1024
	externalAlign = 4096
)

// moveData writes the weights to w.
func (g *GraphProto) moveData(w io.Writer, location string) error {
	if err := checkLocation(location); err != nil {
		return fmt.Errorf("onnx: external data at %q: %w", location, err)
	}
	at := int64(0)
	for i := range g.Initializers {
		t := &g.Initializers[i]
		if len(t.raw) < externalSize {
			continue
		}
		if gap := -at & (externalAlign - 1); gap > 0 {
			if _, err := w.Write(make([]byte, gap)); err != nil {
				return err
			}
			at += gap
		}
		if _, err := w.Write(t.raw); err != nil {
			return err
		}
		size := int64(len(t.raw))
		t.ExternalData = []StringPair{{"location", location}, {"offset", strconv.FormatInt(at, 10)}, {"length", strconv.FormatInt(size, 10)}}
		t.DataLocation, t.raw, t.hasRaw = LocationExternal, nil, false
		at += size
	}
	return nil
}

// WeightBytes is how many bytes the weights of a graph take: from about 2 GB on they need [ExternalData].
func WeightBytes(g *ir.Graph) int64 {
	total := int64(0)
	for _, n := range needed(g) {
		if name, ok := n.ParamName(); ok {
			if t := g.ParamData(name); t != nil {
				total += int64(t.Size())
			}
		} else if t, ok := n.Out(0).Const(); ok {
			total += int64(t.Size())
		}
		for _, sub := range n.Graphs() {
			if sub != nil {
				total += WeightBytes(sub)
			}
		}
	}
	return total
}
