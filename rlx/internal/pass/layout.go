package pass

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Layout cancels transposes against each other. The kernels have one layout each, channels first, and read their operands through strides; so what models
// of channels last bring along is pairs of transposes with other nodes between them, and the layout of the whole graph is what stays when they are gone.
var Layout = Pass{
	Name:  "layout",
	Doc:   "cancels transposes with those before them, across what lies between; kernels have one layout, channels first",
	Rules: []Rule{{"transposes", func(m *Match) []ir.Value { return cancelRule(m, true) }}},
}

// maxPull is how many nodes a transpose is pulled through.
const maxPull = 32

// cancelRule pulls a transpose towards the inputs, through nodes that nobody else reads, if on every way it meets what makes it vanish: its opposite, axes
// of length 1, or a small constant, whose own transpose folds. At least one opposite is met and no transpose of a computed value is added, so that these
// get fewer with every step. Whole says whether moves of data are passed
// too, or elementwise nodes only.
func cancelRule(m *Match, whole bool) []ir.Value {
	a, ok := m.Attrs.(*op.TransposeAttrs)
	if !ok || made(m.In[0], "Transpose") != nil {
		return nil
	}
	p := puller{m: m, whole: whole, seen: map[ir.Value]bool{}, values: map[ir.Value]ir.Value{}}
	p.perm = permOf(a, m.In[0].Rank())
	if !p.can(m.In[0]) || p.met == 0 {
		return nil
	}
	return []ir.Value{p.build(m.In[0])}
}

type puller struct {
	m      *Match
	whole  bool
	perm   []int
	met    int // opposite transposes
	seen   map[ir.Value]bool
	values map[ir.Value]ir.Value
}

// ends says whether v transposed needs no transpose.
func (p *puller) ends(v ir.Value) bool {
	if movesOnes(p.perm, v.Shape()) {
		return true
	}
	if t, ok := v.Const(); ok && t.Len() <= maxScanned {
		return true // folds
	}
	return p.opposite(v)
}

func (p *puller) opposite(v ir.Value) bool {
	t := made(v, "Transpose")
	if t == nil {
		return false
	}
	inner, all := permOf(t.Attrs.(*op.TransposeAttrs), v.Rank()), make([]int, v.Rank())
	for k, from := range p.perm {
		all[k] = inner[from]
	}
	return movesOnes(all, t.In[0].Shape())
}

func (p *puller) can(v ir.Value) bool {
	if p.seen[v] {
		return true
	}
	if v.IsZero() || v.Rank() != len(p.perm) {
		return false
	}
	if p.ends(v) {
		if p.opposite(v) {
			p.met++
		}
		return true
	}
	n := v.Node()
	if len(p.seen) >= maxPull || n.Row.Has(ir.Leaf) || len(n.Types) != 1 || !p.m.Single(v) || !p.passes(n) {
		return false
	}
	p.seen[v] = true
	for _, x := range n.In {
		if !x.IsZero() && x.Rank() < len(p.perm) && elementwise(n) {
			if !movesOnes(p.perm, padded(x.Shape(), len(p.perm))) {
				return false
			}
		} else if !p.can(x) {
			return false
		}
	}
	return true
}

// elementwise says whether n computes each element from those in its place, and broadcasts.
func elementwise(n *ir.Node) bool {
	return op.BodyNode(n) && !n.Row.Has(ir.View) && !n.Row.Has(ir.Backward)
}

// passes says whether a transpose behind n can stand in front of it.
func (p *puller) passes(n *ir.Node) bool {
	if elementwise(n) {
		return true
	}
	if !p.whole {
		return false
	}
	switch a := n.Attrs.(type) {
	case *op.ConcatAttrs, *op.PadAttrs, *op.NarrowAttrs, *op.ReverseAttrs:
		return true
	case *op.ReduceAttrs: // sums may round otherwise along axes in another order
		return n.Row.Name == "Reduce" && a.KeepDims && (a.Fn == "max" || a.Fn == "min")
	}
	return false
}

// padded is shape with axes of 1 in front.
func padded(shape []ir.Dim, rank int) []ir.Dim {
	out := slices.Repeat(ir.Dims(1), rank-len(shape))
	return append(out, shape...)
}

func (p *puller) build(v ir.Value) ir.Value {
	if out, ok := p.values[v]; ok {
		return out
	}
	out := p.make(v)
	p.values[v] = out
	return out
}

func (p *puller) make(v ir.Value) ir.Value {
	shape := make([]ir.Dim, v.Rank())
	for k, from := range p.perm {
		shape[k] = v.Dim(from)
	}
	switch {
	case movesOnes(p.perm, v.Shape()):
		return reshape(v, shape)
	case p.opposite(v):
		return reshape(v.Node().In[0], shape)
	case p.ends(v):
		return op.Transpose(v, p.perm...)
	}
	n := v.Node()
	in := make([]ir.Value, len(n.In))
	for i, x := range n.In {
		if x.Rank() < len(p.perm) { // one number for all axes, or for one of them
			full := padded(x.Shape(), len(p.perm))
			moved := make([]ir.Dim, len(full))
			for k, from := range p.perm {
				moved[k] = full[from]
			}
			in[i] = x
			if ir.Count(x.Shape()) != ir.D(1) {
				in[i] = reshape(x, moved)
			}
		} else {
			in[i] = p.build(x)
		}
	}
	return anew(n, p.attrs(n), in...)[0]
}

// attrs are n's with its axes where the transpose puts them.
func (p *puller) attrs(n *ir.Node) any {
	rank := len(p.perm)
	at := func(axis int) int {
		k, _ := ir.WrapAxis(axis, rank)
		return slices.Index(p.perm, k)
	}
	switch a := n.Attrs.(type) {
	case *op.ConcatAttrs:
		return &op.ConcatAttrs{Axis: at(a.Axis)}
	case *op.NarrowAttrs:
		return &op.NarrowAttrs{Axis: at(a.Axis), Start: a.Start, Length: a.Length}
	case *op.ReverseAttrs:
		c := &op.ReverseAttrs{Axes: []int64{}}
		for _, axis := range a.Axes {
			c.Axes = append(c.Axes, int64(at(int(axis))))
		}
		return c
	case *op.ReduceAttrs:
		c := *a
		c.Axes = nil
		for _, axis := range a.Axes {
			c.Axes = append(c.Axes, at(axis))
		}
		return &c
	case *op.PadAttrs:
		c := *a
		c.Padding = make([]ir.Dim, len(a.Padding))
		for i := range a.Padding {
			c.Padding[i] = a.Padding[i/rank*rank+p.perm[i%rank]]
		}
		return &c
	}
	return n.Attrs
}
