package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// scope holds the names of one graph, sub-graph or function body.
type scope struct {
	values map[string]*value
	parent *scope // sub-graphs see the names around them, functions do not
	opsets []OperatorSetID
	attrs  map[string]*AttributeProto // attributes of the call, in the body of a function; nil outside
	prefix string                     // of node names
	region *region                    // that begins with this scope: what it finds around it is captured
	depth  int
}

// maxDepth bounds functions that call functions, and sub-graphs in sub-graphs; maxInlined the nodes that a model may grow to, which is less for
// a small file.
const (
	maxDepth    = 64
	maxInlined  = 1 << 17
	smallFile   = 1 << 14 // nodes that any file may grow to; one more for each inlinedEach bytes
	inlinedEach = 16
)

var errNotTensor = errors.New("is a sequence or an optional without a value, expected a tensor")

func (s *scope) lookup(name string) *value {
	for ; s != nil; s = s.parent {
		if v := s.values[name]; v != nil {
			return v
		}
		if s.region != nil {
			return s.region.captured(s.parent.lookup(name))
		}
	}
	return nil
}

// version is the operator set of a domain. Files before operator sets had versions import none.
func (s *scope) version(domain string) int64 {
	if v, ok := opsetVersion(s.opsets, domain); ok {
		return v
	}
	return 1
}

func functionKey(domain, name, overload string) string {
	if domain == "ai.onnx" {
		domain = ""
	}
	return domain + "\x00" + name + "\x00" + overload
}

// within runs f in a scope of its own.
func (im *importer) within(sc *scope, f func()) {
	old := im.sc
	sc.depth = old.depth + 1
	im.sc = sc
	defer func() { im.sc = old }()
	f()
}

// body reads a sub-graph in the present scope, with its inputs standing for args, and returns its outputs. It is nil after an error.
func (n *node) body(g *GraphProto, args []*value) (out []*value) { return n.bodyIn(g, args, nil) }

// bodyIn is body for a sub-graph that begins a region.
func (n *node) bodyIn(g *GraphProto, args []*value, r *region) (out []*value) {
	im := n.im
	if len(args) != len(g.Inputs) {
		n.fail("its body %q has %d inputs, expected %d", g.Name, len(g.Inputs), len(args))
		return nil
	}
	if im.sc.depth >= maxDepth {
		n.fail("sub-graphs and functions are nested more than %d deep", maxDepth)
		return nil
	}
	sc := &scope{values: map[string]*value{}, parent: im.sc, opsets: im.sc.opsets, attrs: im.sc.attrs, prefix: im.sc.prefix, region: r}
	im.within(sc, func() {
		if im.bodies[g] == nil {
			if g.SparseInitializers > 0 {
				n.refuse("", "sparse initializers of its body are not supported")
			}
			im.initializers(g.Initializers)
			im.bodies[g] = sc.values
			sc.values = map[string]*value{}
		}
		for name, v := range im.bodies[g] {
			sc.values[name] = v
		}
		for i, in := range g.Inputs {
			im.define(in.Name, n.name(), n.p.OpType, args[i])
		}
		names := make([]string, len(g.Outputs))
		for i := range g.Outputs {
			names[i] = g.Outputs[i].Name
		}
		out = n.results(g.Nodes, names)
	})
	return out
}

// call reads the body of a function of the model.
func (n *node) call(f *FunctionProto) {
	im := n.im
	if im.sc.depth >= maxDepth {
		n.fail("sub-graphs and functions are nested more than %d deep", maxDepth)
		return
	}
	if len(n.in) > len(f.Input) || len(n.out) > len(f.Output) {
		n.fail("got %d inputs and %d outputs, the function has %d and %d", len(n.in), len(n.out), len(f.Input), len(f.Output))
		return
	}
	sc := &scope{values: map[string]*value{}, opsets: f.Opset, attrs: map[string]*AttributeProto{}, prefix: n.name() + "/"}
	for i := range f.AttributeInfo {
		sc.attrs[f.AttributeInfo[i].Name] = &f.AttributeInfo[i]
	}
	for i := range n.p.Attribute {
		sc.attrs[n.p.Attribute[i].Name] = &n.p.Attribute[i]
	}
	im.within(sc, func() {
		for i, name := range f.Input {
			v := &value{missing: true}
			if n.has(i) {
				v = n.in[i]
			}
			im.define(name, n.name(), n.p.OpType, v)
		}
		out := n.results(f.Nodes, f.Output)
		copy(n.out, out)
	})
}

// spend counts work that a model can ask for with few bytes: nodes of functions and sub-graphs, trips, windows.
func (n *node) spend(count int64) bool {
	most := min(maxInlined, smallFile+n.im.bytes/inlinedEach)
	if count > int64(most) || n.im.count+int(count) > most {
		n.fail("with functions, sub-graphs and loops written out, the model has more than %d nodes", most)
		return false
	}
	n.im.count += int(max(count, 0))
	return true
}

// results reads the nodes of a body and looks up what it gives; nil if one of that could not be read.
func (n *node) results(nodes []NodeProto, names []string) []*value {
	im := n.im
	for i := range nodes {
		if !n.spend(1) {
			return nil
		}
		im.node(&nodes[i])
	}
	out := make([]*value, len(names))
	for i, name := range names {
		v := im.sc.lookup(name)
		switch {
		case v == nil:
			n.fail("output %q of its body is not defined", name)
			return nil
		case v.broken:
			n.refused = true // for reasons that the node inside has given
			return nil
		}
		out[i] = v
	}
	return out
}

// resolve puts the attributes of the call in the place of references to them. A reference to one that the call lacks is left out.
func (im *importer) resolve(p *NodeProto) *NodeProto {
	refers := func(a AttributeProto) bool { return a.RefAttrName != "" }
	if im.sc.attrs == nil || !slices.ContainsFunc(p.Attribute, refers) {
		return p
	}
	c := *p
	c.Attribute = nil
	for _, a := range p.Attribute {
		if a.RefAttrName != "" {
			given := im.sc.attrs[a.RefAttrName]
			if given == nil {
				continue
			}
			name := a.Name
			a = *given
			a.Name = name
		}
		c.Attribute = append(c.Attribute, a)
	}
	return &c
}

// ---- what is known of values ----

// deps names inputs of the model, sorted.
type deps struct{ names []string }

// union is the inputs that any of the values depends on.
func union(in []*value) *deps {
	var d *deps
	var names []string // of all, where more than one has some
	for _, v := range in {
		if v == nil {
			continue
		}
		of := v.deps
		if v.seq != nil {
			of = union(v.seq.items)
		}
		switch {
		case of == nil || of == d:
		case d == nil:
			d = of
		default:
			if names == nil {
				names = slices.Clone(d.names)
			}
			names = append(names, of.names...)
		}
	}
	if names == nil {
		return d
	}
	slices.Sort(names)
	return &deps{slices.Compact(names)}
}

// maxFolded is the most memory that the results of a folded computation may take.
const maxFolded = 64 << 20

// known is the value as a tensor where it depends on no input: a constant, or computed by nodes that can be run now. Nil if not.
func (im *importer) known(v *value) *ir.Tensor {
	switch {
	case v == nil || v.broken || !v.isTensor() || v.missing:
		return nil
	case v.konst != nil:
		return v.konst
	case v.folded != nil:
		return v.folded
	}
	if v.dims != nil {
		if _, ok := v.dims.static(); ok {
			t, err := v.dims.tensor()
			if err != nil {
				return nil
			}
			v.folded = t
			return t
		}
	}
	if v.deps == nil && im.eval != nil && im.err == nil {
		v.folded = im.fold(v)
	}
	return v.folded
}

// fold computes a value by running the part of the graph that it needs.
func (im *importer) fold(v *value) *ir.Tensor {
	x, err := v.get()
	if err != nil || x.Poisoned() {
		return nil
	}
	part, done := ir.NewGraph(""), map[*ir.Node][]ir.Value{}
	total := int64(0)
	for _, n := range ancestors(x.Node()) {
		if _, isInput := n.InputName(); isInput || n.Row.Has(ir.Random) {
			return nil
		}
		for _, t := range n.Types {
			shape, ok := ir.StaticShape(t.Shape)
			size, err := ir.ByteSize(t.DType, shape)
			if _, isParam := n.ParamName(); !isParam {
				total += size
			}
			if !ok || err != nil || total > maxFolded {
				return nil
			}
		}
		in := make([]ir.Value, len(n.In))
		for i, o := range n.In {
			if !o.IsZero() {
				in[i] = done[o.Node()][o.Index()]
			}
		}
		if done[n], err = part.Copy(n, in); err != nil {
			return nil
		}
	}
	part.Output("y", done[x.Node()][x.Index()])
	out, err := im.eval(part)
	if err != nil || len(out) != 1 {
		return nil
	}
	return out[0]
}

// ancestors lists n and the nodes that it needs, operands first.
func ancestors(n *ir.Node) []*ir.Node {
	seen, stack := map[*ir.Node]bool{n: true}, []*ir.Node{n}
	list := []*ir.Node{n}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, v := range top.In {
			if m := v.Node(); m != nil && !seen[m] {
				seen[m] = true
				stack, list = append(stack, m), append(list, m)
			}
		}
	}
	slices.SortFunc(list, func(a, b *ir.Node) int { return a.ID() - b.ID() })
	return list
}

// known is input i as a tensor, nil if it is absent or depends on what is not known yet.
func (n *node) known(i int) *ir.Tensor {
	if !n.has(i) {
		return nil
	}
	return n.im.known(n.in[i])
}

// want is known for inputs that the operator cannot do without: that one depends on data is unsupported.
func (n *node) want(i int, what string) *ir.Tensor {
	t := n.known(i)
	if t == nil && n.ok() {
		n.unknown(i, what)
	}
	return t
}

// unknown reports that the node cannot be read without the value of input i.
func (n *node) unknown(i int, what string) {
	if !n.has(i) {
		n.fail("input %d (%s) is missing", i, what)
		return
	}
	n.unknownValue(n.in[i], fmt.Sprintf("input %d (%s)", i, what))
}

func (n *node) unknownValue(v *value, what string) {
	n.refused = true
	var from string
	u := n.complaint("", "")
	u.Needs = nil
	switch {
	case v.deps != nil:
		u.Needs, from = v.deps.names, strings.Join(v.deps.names, ", ")
	default: // neither constant nor made of inputs
		u.Dims, from = v.lengths(), "the shapes of inputs"
	}
	u.Reason = fmt.Sprintf("%s depends on %s, expected a value that is known before the run", what, from)
	n.im.refuse(u)
}
