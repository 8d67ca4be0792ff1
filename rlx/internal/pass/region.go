package pass

import (
	"fmt"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Regions puts chains of elementwise nodes into one node each, which makes one pass over memory, and gives reductions what they reduce. Bits do not
// change: a region means its body. It runs on legal graphs of known sizes, late: other passes do not look into regions.
func Regions(s *Support) Pass {
	return Pass{Name: "regions", Doc: "runs chains of elementwise nodes, and a reduction behind them, in one pass over memory",
		Run: func(g *ir.Graph, count map[string]int) (*ir.Graph, error) {
			out, err := groupElementwise(g, s, count)
			if err != nil {
				return nil, err
			}
			return Rewrite(out, s, []Rule{{"reduce", reduceRegionRule}}, count)
		}}
}

// group is a region in the making: nodes of one shape, the last of which reads, directly or not, all others.
type group struct {
	shape   []ir.Dim
	nodes   []*ir.Node // by falling number
	in      map[*ir.Node]bool
	outputs []ir.Value // read from outside, the root's first
}

// groupElementwise finds the regions from their ends: a node joins the group of its readers if all of them are in it, or if those that are not come
// behind the group's last node, where its value is a result of the region.
func groupElementwise(g *ir.Graph, s *Support, count map[string]int) (*ir.Graph, error) {
	f := fuser{s: s, readers: readersOf(g), taken: map[*ir.Node]*group{}, takes: map[*ir.Node]bool{}, count: count}
	f.again = f.recomputed(g)
	f.stored = map[*ir.Node]bool{}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		if n := g.Nodes[i]; f.taken[n] == nil && (!f.again[n] || f.stored[n]) {
			f.place(n)
		}
	}
	if len(f.taken) == 0 {
		return g, nil
	}
	return f.rewrite(g)
}

type fuser struct {
	s       *Support
	readers map[ir.Value][]*ir.Node // nil stands for an output of the graph
	taken   map[*ir.Node]*group     // by node; by Reduce, the group that ends in what it alone reduces
	again   map[*ir.Node]bool       // computed in each group that needs it
	stored  map[*ir.Node]bool       // of those, what some reader could not take in
	takes   map[*ir.Node]bool       // of takenIn
	names   map[string]bool         // of nodes that stand for themselves, and of copies
	count   map[string]int
}

// place finds the group that ends in n, or in what n reduces, and sees to it that what it reads is there.
func (f *fuser) place(n *ir.Node) {
	gr := &group{nodes: []*ir.Node{n}, in: map[*ir.Node]bool{n: true}}
	switch {
	case f.fits(n):
		if grown := f.grow(n); len(grown.nodes) > 1 && f.s.NativeRow(op.ElementwiseRegionRow(), keyOf(grown)) {
			gr = grown
			for _, m := range gr.nodes {
				if !f.again[m] || m == n {
					f.taken[m] = gr
				}
			}
		}
	case f.reduces(n) && f.again[n.In[0].Node()]:
		if grown := f.grow(n.In[0].Node()); f.s.NativeRow(op.ElementwiseRegionRow(), keyOf(grown)) {
			gr, f.taken[n] = grown, grown
		}
	}
	for _, m := range gr.nodes {
		for _, v := range m.In {
			if !v.IsZero() && f.again[v.Node()] && !gr.in[v.Node()] {
				f.stored[v.Node()] = true
			}
		}
	}
}

func readersOf(g *ir.Graph) map[ir.Value][]*ir.Node {
	readers := map[ir.Value][]*ir.Node{}
	for _, n := range g.Nodes {
		for _, v := range n.In {
			if !v.IsZero() {
				readers[v] = append(readers[v], n)
			}
		}
	}
	for _, o := range g.Outputs {
		readers[o.Value] = append(readers[o.Value], nil)
	}
	return readers
}

// fits says whether n may stand in a body.
func (f *fuser) fits(n *ir.Node) bool {
	return op.BodyNode(n) && !n.Row.Has(ir.View) && !f.s.Staged(n) && f.s.Native(n)
}

// grow collects the group that ends in root. Nodes join by falling number, so that all readers of one that are in the group are there before it.
func (f *fuser) grow(root *ir.Node) *group {
	gr := &group{shape: root.Types[0].Shape, nodes: []*ir.Node{root}, in: map[*ir.Node]bool{root: true}, outputs: []ir.Value{root.Out(0)}}
	for {
		next := f.candidate(gr, root)
		if next == nil {
			break
		}
		gr.nodes, gr.in[next] = append(gr.nodes, next), true
		if !f.again[next] && !f.inside(gr, next) {
			gr.outputs = append(gr.outputs, next.Out(0))
		}
	}
	return gr
}

// candidate is the node of the highest number that may join.
func (f *fuser) candidate(gr *group, root *ir.Node) *ir.Node {
	var best *ir.Node
	for _, n := range gr.nodes {
		for _, v := range n.In {
			m := v.Node()
			if gr.in[m] || f.taken[m] != nil || best != nil && m.ID() <= best.ID() {
				continue
			}
			if !f.fits(m) || !slices.Equal(m.Types[0].Shape, gr.shape) || !f.joins(gr, m, root) {
				continue
			}
			best = m
		}
	}
	return best
}

// joins says whether the group with m is within the limits of regions, and whether what reads m elsewhere comes behind the group. What other groups read
// as they compute something again is stored before all of them.
func (f *fuser) joins(gr *group, m, root *ir.Node) bool {
	if len(gr.nodes) >= op.MaxRegionNodes {
		return false
	}
	inside := true
	for _, r := range f.readers[m.Out(0)] {
		if f.again[m] {
			break
		}
		if r != nil && f.again[r] {
			return false
		}
		if r == nil || !gr.in[r] {
			inside = false
			if r != nil && r.ID() < root.ID() {
				return false
			}
		}
	}
	if !inside && len(gr.outputs) >= op.MaxRegionOutputs {
		return false
	}
	operands := map[ir.Value]bool{}
	for _, n := range append(gr.nodes[:len(gr.nodes):len(gr.nodes)], m) {
		for _, v := range n.In {
			if !gr.in[v.Node()] && v.Node() != m {
				operands[v] = true
			}
		}
	}
	return len(operands) <= op.MaxRegionInputs
}

func (f *fuser) inside(gr *group, m *ir.Node) bool {
	return !slices.ContainsFunc(f.readers[m.Out(0)], func(r *ir.Node) bool { return r == nil || !gr.in[r] })
}

// keyOf is the dtype that chooses the region's kernel: of its first operand, or of its first result.
func keyOf(gr *group) ir.DType {
	in, _ := operandsOf(gr)
	if len(in) > 0 {
		return in[0].DType()
	}
	return gr.outputs[0].DType()
}

// operandsOf lists what the group reads, and the constants of one element that its body holds itself. Constants that make the shape stay
// operands.
func operandsOf(gr *group) (in []ir.Value, inner map[ir.Value]bool) {
	inner = map[ir.Value]bool{}
	var shapes [][]ir.Dim
	all := func(keep bool) {
		in, shapes = nil, nil
		clear(inner)
		for i := len(gr.nodes) - 1; i >= 0; i-- {
			for _, v := range gr.nodes[i].In {
				if gr.in[v.Node()] || inner[v] || slices.Contains(in, v) {
					continue
				}
				if t := fixed(v); t != nil && t.Len() == 1 && !keep {
					inner[v] = true
					continue
				}
				in, shapes = append(in, v), append(shapes, v.Shape())
			}
		}
	}
	all(false)
	if shape, ok := ir.Broadcast(shapes...); !ok || !slices.Equal(shape, gr.shape) {
		all(true)
	}
	return in, inner
}

// rewrite makes the graph with regions in place of groups: each where the last node of its group stood.
func (f *fuser) rewrite(g *ir.Graph) (*ir.Graph, error) {
	to, values := ir.NewGraph(g.Name), map[ir.Value]ir.Value{}
	f.names = map[string]bool{}
	for _, n := range g.Nodes {
		f.names[n.Name] = !f.again[n] || f.stored[n]
	}
	for _, n := range g.Nodes {
		gr := f.taken[n]
		if f.again[n] && !f.stored[n] || gr != nil && gr.nodes[0] != n && gr.in[n] {
			continue
		}
		var out, names []ir.Value
		var err error
		switch {
		case gr != nil && gr.in[n]:
			names = gr.outputs
			out, err = f.region(to, gr, n.Name, values)
		case gr != nil: // a Reduce, which the rule for them joins with the group
			if out, err = f.region(to, gr, f.copyName(gr.nodes[0].Name), values); err == nil {
				names = n.Results()
				out, err = to.Copy(n, out)
			}
		default:
			names = n.Results()
			out, err = to.Copy(n, mapped(n.In, values))
		}
		if err != nil {
			return nil, err
		}
		for i, v := range names {
			values[v] = out[i]
		}
	}
	for _, o := range g.Outputs {
		to.Outputs = append(to.Outputs, ir.Output{Name: o.Name, Value: values[o.Value]})
	}
	return to, to.Err()
}

func mapped(in []ir.Value, values map[ir.Value]ir.Value) []ir.Value {
	out := make([]ir.Value, len(in))
	for i, v := range in {
		out[i] = values[v]
	}
	return out
}

// copyName is a name for a copy of the node of that name: no other node loses its own.
func (f *fuser) copyName(name string) string {
	free := name
	for i := 1; f.names[free]; i++ {
		free = fmt.Sprintf("%s.%d", name, i)
	}
	f.names[free] = true
	return free
}

func (f *fuser) region(to *ir.Graph, gr *group, name string, values map[ir.Value]ir.Value) ([]ir.Value, error) {
	root := gr.nodes[0]
	row, attrs, in := root.Row, root.Attrs, root.In
	if len(gr.nodes) > 1 {
		list, inner := operandsOf(gr)
		body, err := bodyOf(gr, list, inner)
		if err != nil {
			return nil, err
		}
		row, attrs, in = op.ElementwiseRegionRow(), &op.ElementwiseRegionAttrs{Body: body, Prologue: "none"}, list
		f.count["region"]++
	}
	n, err := to.Add(row, name, attrs, mapped(in, values)...)
	if err != nil {
		return nil, fmt.Errorf("region that ends in %s: %w", root, err)
	}
	n.Inherit(root)
	if name != root.Name && n.From == (ir.Origin{}) {
		n.From.Name = root.Name
	}
	for i := len(gr.nodes) - 1; i > 0; i-- {
		n.Absorb(gr.nodes[i])
	}
	return n.Results(), nil
}

// bodyOf is the group over single elements.
func bodyOf(gr *group, in []ir.Value, inner map[ir.Value]bool) (*ir.Graph, error) {
	body, values := ir.NewGraph("body"), map[ir.Value]ir.Value{}
	for i, v := range in {
		values[v] = body.Input(fmt.Sprintf("x%d", i), v.DType(), nil)
	}
	for i := len(gr.nodes) - 1; i >= 0; i-- {
		n := gr.nodes[i]
		for _, v := range n.In {
			if t := fixed(v); t != nil && inner[v] && values[v].IsZero() {
				element, err := ir.FromBytes(t.DType(), nil, t.Bytes())
				if err != nil {
					return nil, err
				}
				values[v] = body.Constant(element)
			}
		}
		c, err := body.Add(n.Row, n.Name, n.Attrs, mapped(n.In, values)...)
		if err != nil {
			return nil, err
		}
		values[n.Out(0)] = c.Out(0)
	}
	for i, v := range gr.outputs {
		body.Output(fmt.Sprintf("y%d", i), values[v])
	}
	return body, body.Err()
}
