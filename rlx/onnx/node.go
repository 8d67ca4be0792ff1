package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// node is one node of the model while it is read. The first thing that goes wrong is kept; rows ask ok before they build.
type node struct {
	im      *importer
	p       *NodeProto
	row     *row           // nil where fn is the operator
	fn      *FunctionProto // of the model
	opset   int64          // of the operator's domain
	prefix  string
	in      []*value // nil for an input left out
	out     []*value
	err     error
	refused bool
}

// node reads one node: its operator and attributes are checked even after an error, so that one error lists all of them.
func (im *importer) node(p *NodeProto) {
	p = im.resolve(p)
	n := &node{im: im, p: p, prefix: im.sc.prefix, out: make([]*value, len(p.Output))}
	n.check()
	n.inputs()
	if !n.refused && n.err == nil && im.err == nil && !slices.ContainsFunc(n.in, func(v *value) bool { return v != nil && v.broken }) {
		n.read()
	}
	if n.err != nil {
		im.fail(n.name(), p.OpType, n.err)
	}
	for i, name := range p.Output {
		if name == "" {
			continue
		}
		v := n.out[i]
		if v == nil {
			v = &value{broken: true}
		}
		im.define(name, n.name(), p.OpType, v)
	}
}

// name is the node's name, or that of its first output where it has none.
func (n *node) name() string {
	if n.p.Name == "" && len(n.p.Output) > 0 {
		return n.prefix + n.p.Output[0]
	}
	return n.prefix + n.p.Name
}

func (n *node) ok() bool { return n.err == nil && !n.refused && n.im.err == nil && n.im.g.Err() == nil }

// fail records a defect of the model.
func (n *node) fail(format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf(format, args...)
	}
}

// refuse records something that is not supported; attr may be empty.
func (n *node) refuse(attr, format string, args ...any) {
	n.refused = true
	n.im.refuse(n.complaint(attr, fmt.Sprintf(format, args...)))
}

func (n *node) complaint(attr, reason string) Unsupported {
	u := Unsupported{Op: n.p.OpType, Domain: n.domain(), Node: n.name(), Attr: attr, Reason: reason}
	if d := union(n.in); d != nil {
		u.Needs = d.names
	}
	return u
}

// domain is the operator's domain, "" for the default one.
func (n *node) domain() string {
	if n.p.Domain == "ai.onnx" {
		return ""
	}
	return n.p.Domain
}

// check finds the row and holds the attributes against it.
func (n *node) check() {
	n.checkTwice()
	if n.fn = n.im.functions[functionKey(n.p.Domain, n.p.OpType, n.p.Overload)]; n.fn != nil {
		return
	}
	n.opset = n.im.sc.version(n.domain())
	r, reason := find(n.domain(), n.p.OpType, n.opset)
	if r == nil {
		n.refuse("", "%s", reason)
		return
	}
	n.row = r
	for i := range n.p.Attribute {
		n.checkAttr(&n.p.Attribute[i])
	}
	for _, d := range r.attrs {
		if d.required && n.attr(d.name) == nil {
			n.fail("attribute %s is missing", d.name)
		}
	}
	if len(n.p.Input) < r.in.least || len(n.p.Input) > r.in.most {
		most := fmt.Sprint(r.in.most)
		if r.in.most == many {
			most = "any number"
		}
		n.fail("got %d inputs, expected %d to %s", len(n.p.Input), r.in.least, most)
	}
}

// checkTwice refuses attributes of one name.
func (n *node) checkTwice() {
	seen := map[string]bool{}
	for i := range n.p.Attribute {
		name := n.p.Attribute[i].Name
		if seen[name] {
			n.fail("attribute %s is given twice, expected no duplicate", name)
			return
		}
		seen[name] = true
	}
}

func (n *node) checkAttr(a *AttributeProto) {
	k := slices.IndexFunc(n.row.attrs, func(d attrDecl) bool { return d.name == a.Name })
	if k < 0 {
		n.refuse(a.Name, "attribute is not supported")
		return
	}
	d := n.row.attrs[k]
	if a.RefAttrName != "" {
		n.fail("attribute %s refers to attribute %s of a function, outside of one", a.Name, a.RefAttrName)
		return
	}
	if a.Type != d.kind {
		n.fail("attribute %s has type %d, expected %d", a.Name, a.Type, d.kind)
		return
	}
	if len(d.allowed) == 0 {
		return
	}
	var got any = a.I
	if d.kind == AttributeString {
		got = a.S
	}
	if !slices.Contains(d.allowed, got) {
		n.refuse(a.Name, "value %v is not supported, expected one of %s", got, listText(d.allowed))
	}
}

func listText(l []any) string {
	parts := make([]string, 0, len(l))
	for _, v := range l {
		if s := fmt.Sprint(v); s != "" && !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", ")
}

// inputs looks up the operands: nil for one that the node, or the call of the function around it, leaves out.
func (n *node) inputs() {
	for i, name := range n.p.Input {
		var v *value
		if name != "" {
			if v = n.im.sc.lookup(name); v == nil {
				n.fail("input %q is not defined before the node", name)
				v = &value{broken: true}
			}
		}
		if v != nil && v.missing {
			v = nil
		}
		if v == nil && n.row != nil && i < n.row.in.least {
			n.fail("input %d is missing", i)
		}
		n.in = append(n.in, v)
	}
}

// read computes the outputs: as dims where that is possible, else as nodes.
func (n *node) read() {
	if n.fn != nil {
		n.call(n.fn)
		return
	}
	if i := slices.IndexFunc(n.in, func(v *value) bool { return v != nil && !v.isTensor() }); i >= 0 && !n.row.lists {
		n.fail("input %d %w", i, errNotTensor)
		return
	}
	if n.row.track != nil {
		if t := n.row.track(n); t != nil && !slices.ContainsFunc(t, func(d *dimTensor) bool { return d == nil || !d.sound() }) {
			n.track(t)
			return
		}
		if n.row.build == nil && n.ok() {
			n.refuse("", "its result is too large, or depends on data")
			return
		}
	}
	if !n.ok() {
		return
	}
	r := n.follow()
	if n.build(); r != nil && n.ok() && len(n.out) > 0 && n.out[0] != nil {
		n.out[0].ratio = r
	}
}

// track sets outputs that are known as dims; the row builds their nodes if they are needed.
func (n *node) track(t []*dimTensor) {
	depth := 0
	for _, v := range n.in {
		if v != nil && v.node.IsZero() {
			depth = max(depth, v.depth+1)
		}
	}
	for i, d := range t[:min(len(t), len(n.out))] {
		v := &value{typ: d.typ(), dims: d, depth: depth, deps: n.deps()}
		v.make = func() (ir.Value, error) { return n.data(i, d) }
		n.out[i] = v
		if depth > maxPending {
			if _, err := v.get(); err != nil {
				n.fail("%w", cause(err))
				return
			}
			v.depth = 0
		}
	}
	n.checkOutputs()
}

// checkOutputs refuses a node that names more outputs than the row gives.
func (n *node) checkOutputs() {
	for i, name := range n.p.Output {
		if name != "" && n.out[i] == nil {
			n.refuse("", "output %d is not supported", i)
		}
	}
}

// data makes the node of tracked output i.
func (n *node) data(i int, d *dimTensor) (ir.Value, error) {
	if _, ok := d.static(); ok || n.row.build == nil {
		y := d.data(n.im.g)
		return y, n.im.g.Err()
	}
	c := &node{im: n.im, p: n.p, row: n.row, opset: n.opset, prefix: n.prefix, in: n.in, out: make([]*value, len(n.out))}
	c.build()
	switch {
	case c.err != nil:
		return ir.Value{}, &ImportError{Node: n.name(), Op: n.p.OpType, Err: c.err}
	case c.refused:
		return ir.Value{}, errRefused
	case c.out[i] == nil:
		return ir.Value{}, &ImportError{Node: n.name(), Op: n.p.OpType, Err: errors.New("too many outputs")}
	}
	return c.out[i].get()
}

var errRefused = errors.New("a node before it is not supported")

// build runs the row and names the nodes that it added.
func (n *node) build() {
	g := n.im.g
	from := len(g.Nodes)
	n.row.build(n)
	if err := g.Err(); err != nil && !n.refused {
		n.fail("%w", cause(err))
	}
	if !n.ok() {
		return
	}
	n.label(from)
	n.checkOutputs()
	n.checkDims(from)
}

// checkDims refuses a model whose dims grow without end.
func (n *node) checkDims(from int) {
	for _, x := range n.im.g.Nodes[from:] {
		for _, t := range x.Types {
			for _, d := range t.Shape {
				if !d.IsStatic() && tooLong(d) {
					n.fail("its shape is an expression of more than %d characters", maxDimText)
					return
				}
			}
		}
	}
}

// label gives the model's name to the node of the first output, where it is new, and marks the others as parts of it.
func (n *node) label(from int) {
	g := n.im.g
	var main *ir.Node
	if len(n.out) > 0 && n.out[0] != nil {
		main = n.out[0].node.Node()
	}
	name := n.im.nodeName(n)
	for _, x := range g.Nodes[from:] {
		if n.im.labelled[x] { // of an input that was made just now
			continue
		}
		n.im.labelled[x] = true
		leaf := x.Row.Has(ir.Leaf)
		switch {
		case x == main && !leaf:
			x.Out(0).Named(name)
		case x.From.Op == "" && !leaf:
			x.From = ir.Origin{Op: n.p.OpType, Name: name}
		}
		if _, isParam := x.ParamName(); !isParam && n.im.leaves[x.Name] { // the name belongs to an initializer that may come yet
			x.Out(0).Named(x.Name + "." + x.Row.Name)
		}
	}
}

// nodeName is a name that no input, initializer or node before it has.
func (im *importer) nodeName(n *node) string {
	name := n.name()
	if im.leaves[name] {
		name += "." + n.p.OpType
	}
	im.named[name]++
	if k := im.named[name]; k > 1 {
		name += "." + strconv.Itoa(k-1)
	}
	return name
}

// ---- what rows ask for ----

// val is input i as a value of the graph; the zero Value if it is absent.
func (n *node) val(i int) ir.Value {
	if !n.has(i) {
		return ir.Value{}
	}
	return n.get(n.in[i])
}

// get is a value of the model as one of the graph.
func (n *node) get(v *value) ir.Value {
	x, err := v.get()
	switch {
	case errors.Is(err, errRefused):
		n.refused = true
	case err != nil:
		var ie *ImportError
		if errors.As(err, &ie) && n.im.err == nil {
			n.im.err = ie
		}
		n.fail("%w", cause(err))
	}
	return x
}

// firstVals are inputs 0 to count-1, absent ones too.
func (n *node) firstVals(count int) []ir.Value {
	out := make([]ir.Value, count)
	for i := range out {
		out[i] = n.val(i)
	}
	return out
}

// vals are all inputs, none of which may be absent.
func (n *node) vals() []ir.Value {
	if i := slices.Index(n.in, nil); i >= 0 {
		n.fail("input %d is missing", i)
	}
	return n.firstVals(len(n.in))
}

// has says whether input i is there.
func (n *node) has(i int) bool { return i < len(n.in) && n.in[i] != nil }

// wants says whether output i is used.
func (n *node) wants(i int) bool { return i < len(n.p.Output) && n.p.Output[i] != "" }

// typ is the type of input i, known without a node.
func (n *node) typ(i int) ir.Type {
	if !n.has(i) {
		return ir.Type{}
	}
	return n.in[i].typ
}

// dims is input i as dims, nil if they are not known.
func (n *node) dims(i int) *dimTensor {
	if !n.has(i) {
		return nil
	}
	return n.in[i].dims
}

// list is input i as a list of dims; that it depends on data is unsupported.
func (n *node) list(i int, what string) []ir.Dim {
	if t := n.dims(i); t != nil {
		return t.elem
	}
	t := n.known(i)
	if t == nil || t.Len() > 1<<16 || !ir.Int.Has(t.DType()) {
		if n.ok() {
			n.unknown(i, what)
		}
		return nil
	}
	list := make([]ir.Dim, t.Len())
	for k := range list {
		list[k] = ir.D(t.Int(k))
	}
	return list
}

// ints is list with every element known.
func (n *node) ints(i int, what string) []int64 {
	l, ok := ir.StaticShape(n.list(i, what))
	if !ok && n.ok() {
		n.unknown(i, what)
	}
	return l
}

// int is the one element of input i, or def if that is absent.
func (n *node) int(i int, what string, def int64) int64 {
	if !n.has(i) {
		return def
	}
	l := n.ints(i, what)
	if n.ok() && len(l) != 1 {
		n.fail("input %d (%s) has %d elements, expected one", i, what, len(l))
	}
	if !n.ok() {
		return def
	}
	return l[0]
}

// rank wants input i, if it is there, to have between least and most axes.
func (n *node) rank(i, least, most int) {
	if !n.has(i) || n.err != nil {
		return
	}
	switch r := len(n.typ(i).Shape); {
	case r >= least && r <= most:
	case least == most:
		n.fail("input %d has rank %d, expected %d", i, r, least)
	default:
		n.fail("input %d has rank %d, expected %d to %d", i, r, least, most)
	}
}

// konst is the constant behind input i, nil if it is none.
func (n *node) konst(i int) *ir.Tensor {
	if !n.has(i) {
		return nil
	}
	return n.in[i].konst
}

// deps are the inputs of the model that the results depend on.
func (n *node) deps() *deps {
	if n.row != nil && n.row.ofShape {
		return nil
	}
	return union(n.in)
}

func (n *node) attr(name string) *AttributeProto {
	for i := range n.p.Attribute {
		if n.p.Attribute[i].Name == name {
			return &n.p.Attribute[i]
		}
	}
	return nil
}

// def is the default of a declared attribute.
func (n *node) def(name string) any {
	for _, d := range n.row.attrs {
		if d.name == name {
			return d.def
		}
	}
	return nil
}

// i, f, s and their like are attributes, or their declared defaults.
func (n *node) i(name string) int64 {
	if a := n.attr(name); a != nil {
		return a.I
	}
	v, _ := n.def(name).(int64)
	return v
}

func (n *node) float(name string) float64 {
	if a := n.attr(name); a != nil {
		return float64(a.F)
	}
	v, _ := n.def(name).(float32)
	return float64(v)
}

func (n *node) s(name string) string {
	if a := n.attr(name); a != nil {
		return a.S
	}
	v, _ := n.def(name).(string)
	return v
}

// intList is nil for an absent list.
func (n *node) intList(name string) []int64 {
	if a := n.attr(name); a != nil {
		return append([]int64{}, a.Ints...)
	}
	return nil
}

// perAxis is a list attribute of count entries, which are def where it is absent.
func (n *node) perAxis(name string, count int, def int64) []int64 {
	list := n.intList(name)
	if list != nil && len(list) != count {
		n.fail("%s has %d entries, expected %d", name, len(list), count)
	}
	if len(list) != count {
		list = slices.Repeat([]int64{def}, count)
	}
	return list
}

// axis is an attribute that counts axes of a tensor of the given rank, from the end if negative.
func (n *node) axis(name string, rank int) int { return n.wrap(n.i(name), rank, name) }

func (n *node) wrap(axis int64, rank int, what string) int {
	if axis < -int64(rank) || axis >= int64(rank) {
		n.fail("%s is %d, expected in [%d, %d)", what, axis, -rank, rank)
		return 0
	}
	if axis < 0 {
		axis += int64(rank)
	}
	return int(axis)
}

// combined is f(a, b), or b where there is no a yet.
func combined(f func(a, b ir.Value) ir.Value, a, b ir.Value) ir.Value {
	if a.IsZero() {
		return b
	}
	return f(a, b)
}

// interval lists the integers from first up to end: axes in a row.
func interval(first, end int) []int {
	list := make([]int, 0, max(end-first, 0))
	for i := first; i < end; i++ {
		list = append(list, i)
	}
	return list
}

// axes wraps a list of axes, which must be distinct.
func (n *node) axes(list []int64, rank int) []int {
	out := make([]int, 0, len(list))
	for _, a := range list {
		k := n.wrap(a, rank, "axis")
		if slices.Contains(out, k) {
			n.fail("axis %d is named twice", a)
		}
		if n.err != nil {
			return nil
		}
		out = append(out, k)
	}
	return out
}

// ret sets the outputs. Outputs beyond those that the node names are dropped.
func (n *node) ret(y ...ir.Value) {
	for i, v := range y {
		if i < len(n.out) && !v.IsZero() {
			n.out[i] = &value{typ: v.Type(), node: v, deps: n.deps()}
			if n.out[i].deps == nil {
				n.out[i].symbols = n.lengths()
			}
		}
	}
}

// put sets output i, if the node has it.
func (n *node) put(i int, v *value) {
	if i < len(n.out) {
		n.out[i] = v
	}
}

// give makes output i a constant.
func (n *node) give(i int, t *ir.Tensor) {
	if t != nil {
		n.put(i, n.im.constant(t))
	}
}

// pass makes output 0 stand for input i.
func (n *node) pass(i int) { n.put(0, n.in[i]) }
