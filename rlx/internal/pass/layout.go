package pass

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Layout cancels transposes against each other. The kernels have one layout each, channels first, and read their operands through strides; so what models
// of channels last bring along is pairs of transposes with other nodes between them, and the layout of the whole graph is what stays when they are gone.
// A transpose in front of a product stays where it is: products read it as strides.
var Layout = Pass{
	Name:  "layout",
	Doc:   "cancels transposes with those before them, across what lies between; kernels have one layout, channels first, and long rows",
	Rules: []Rule{{"transposes", func(m *Match) []ir.Value { return cancelRule(m, true) }}},
}

// maxPull is how many nodes a transpose is pulled through.
const maxPull = 48

// cancelRule pulls a transpose towards the inputs, through nodes that nobody else reads, if on every way it meets what makes it vanish: its opposite, axes
// of length 1, or a small constant, whose own transpose folds. No transpose of a computed value is added, so that these get fewer with every step, and
// elementwise nodes and copies have neighbours in memory as neighbours again. Whole says whether moves of data are passed too, or elementwise nodes only.
func cancelRule(m *Match, whole bool) []ir.Value {
	a, ok := m.Attrs.(*op.TransposeAttrs)
	if !ok || made(m.In[0], "Transpose") != nil {
		return nil
	}
	p := puller{m: m, whole: whole, perms: map[ir.Value][]int{}, reads: map[ir.Value]int{}, values: map[ir.Value]ir.Value{}}
	if !p.can(m.In[0], permOf(a, m.In[0].Rank())) || p.met == 0 || !p.alone() {
		return nil
	}
	return []ir.Value{p.build(m.In[0])}
}

type puller struct {
	m      *Match
	whole  bool
	met    int                   // opposite transposes, and axes of length 1 that make one vanish
	pulled []ir.Value            // what the transpose passes
	perms  map[ir.Value][]int    // how each value that is met comes out
	reads  map[ir.Value]int      // by nodes that it passes, and by the transpose
	values map[ir.Value]ir.Value // what was built
}

// alone says that nothing else reads the values that change their layout.
func (p *puller) alone() bool {
	return !slices.ContainsFunc(p.pulled, func(v ir.Value) bool { return p.m.uses[v] > p.reads[v] })
}

// opposite says whether v is the transpose that perm takes back.
func opposite(v ir.Value, perm []int) bool {
	t := made(v, "Transpose")
	if t == nil {
		return false
	}
	inner, all := permOf(t.Attrs.(*op.TransposeAttrs), v.Rank()), make([]int, v.Rank())
	for k, from := range perm {
		all[k] = inner[from]
	}
	return movesOnes(all, t.In[0].Shape())
}

// folds says that v is a constant small enough to be written anew.
func folds(v ir.Value) bool {
	t, ok := v.Const()
	return ok && t.Len() <= maxScanned
}

func (p *puller) can(v ir.Value, perm []int) bool {
	if v.IsZero() || v.Rank() != len(perm) {
		return false
	}
	p.reads[v]++
	if other, ok := p.perms[v]; ok {
		return slices.Equal(other, perm)
	}
	p.perms[v] = perm
	if folds(v) {
		return true
	}
	if movesOnes(perm, v.Shape()) || opposite(v, perm) {
		p.met++
		return true
	}
	n := v.Node()
	if len(p.pulled) >= maxPull || n.Row.Has(ir.Leaf) || len(n.Types) != 1 {
		return false
	}
	p.pulled = append(p.pulled, v)
	if elementwise(n) {
		return p.canElementwise(n, perm)
	}
	inner, ok := p.passes(n, perm)
	return ok && !slices.ContainsFunc(n.In, func(x ir.Value) bool { return !p.can(x, inner) })
}

// canElementwise pulls through all operands but those that lack axes: these must be the same whatever the order of the axes.
func (p *puller) canElementwise(n *ir.Node, perm []int) bool {
	return !slices.ContainsFunc(n.In, func(x ir.Value) bool {
		if !x.IsZero() && x.Rank() < len(perm) {
			return !movesOnes(perm, padded(x.Shape(), len(perm)))
		}
		return !p.can(x, perm)
	})
}

// elementwise says whether n computes each element from those in its place, and broadcasts.
func elementwise(n *ir.Node) bool {
	return op.BodyNode(n) && !n.Row.Has(ir.View) && !n.Row.Has(ir.Backward)
}

// passes says whether a transpose behind n can stand in front of it, and how it permutes the axes there.
func (p *puller) passes(n *ir.Node, perm []int) (inner []int, ok bool) {
	if !p.whole {
		return nil, false
	}
	switch a := n.Attrs.(type) {
	case *op.ConcatAttrs, *op.PadAttrs, *op.NarrowAttrs, *op.SliceAttrs, *op.ReverseAttrs:
		return perm, true
	case *op.ReshapeAttrs:
		return acrossOnes(n.In[0].Shape(), n.Types[0].Shape, perm)
	case *op.ReduceAttrs:
		if n.Row.Name != "Reduce" || !anyOrder(a.Fn, n.In[0].DType()) {
			return nil, false
		}
		if a.KeepDims {
			return perm, true
		}
		kept, reduced := keptAxes(n)
		for _, k := range perm {
			inner = append(inner, kept[k])
		}
		return append(inner, reduced...), true
	}
	return nil, false
}

// anyOrder says that fn comes out the same in whatever order it takes its elements. Float sums may round otherwise.
func anyOrder(fn op.ReduceFn, d ir.DType) bool {
	return fn == "max" || fn == "min" || (fn == "sum" || fn == "prod") && plainInts.Has(d)
}

// keptAxes are the axes of the operand of a Reduce that stay, and those that it reduces.
func keptAxes(n *ir.Node) (kept, reduced []int) {
	a, rank := n.Attrs.(*op.ReduceAttrs), n.In[0].Rank()
	gone := make([]bool, rank)
	for k := range gone {
		gone[k] = len(a.Axes) == 0
	}
	for _, axis := range a.Axes {
		k, _ := ir.WrapAxis(axis, rank)
		gone[k] = true
	}
	for k, g := range gone {
		if g {
			reduced = append(reduced, k)
		} else {
			kept = append(kept, k)
		}
	}
	return kept, reduced
}

// acrossOnes is a permutation of the axes of x that does what perm does to y, where x and y differ in axes of length 1 alone.
func acrossOnes(x, y []ir.Dim, perm []int) (inner []int, ok bool) {
	longX, longY := longAxes(x), longAxes(y)
	if len(longX) != len(longY) {
		return nil, false
	}
	for i, k := range longX {
		if x[k] != y[longY[i]] {
			return nil, false
		}
	}
	for _, k := range perm {
		if i := slices.Index(longY, k); i >= 0 {
			inner = append(inner, longX[i])
		}
	}
	for k, d := range x {
		if d.Is(1) {
			inner = slices.Insert(inner, min(k, len(inner)), k)
		}
	}
	return inner, true
}

// longAxes are the axes that may be longer than 1.
func longAxes(shape []ir.Dim) (axes []int) {
	for k, d := range shape {
		if !d.Is(1) {
			axes = append(axes, k)
		}
	}
	return axes
}

// padded is shape with axes of 1 in front.
func padded(shape []ir.Dim, rank int) []ir.Dim {
	out := slices.Repeat(ir.Dims(1), rank-len(shape))
	return append(out, shape...)
}

// reordered is shape with its axes in another order.
func reordered(shape []ir.Dim, perm []int) []ir.Dim {
	out := make([]ir.Dim, len(perm))
	for k, from := range perm {
		out[k] = shape[from]
	}
	return out
}

func (p *puller) build(v ir.Value) ir.Value {
	if out, ok := p.values[v]; ok {
		return out
	}
	out := p.make(v, p.perms[v])
	p.values[v] = out
	return out
}

func (p *puller) make(v ir.Value, perm []int) ir.Value {
	n, shape := v.Node(), reordered(v.Shape(), perm)
	switch {
	case movesOnes(perm, v.Shape()):
		return reshape(v, shape)
	case opposite(v, perm):
		return reshape(n.In[0], shape)
	case folds(v):
		return op.Transpose(v, perm...)
	}
	in := make([]ir.Value, len(n.In))
	for i, x := range n.In {
		switch {
		case !elementwise(n) || x.Rank() == len(perm):
			in[i] = p.build(x)
		case ir.Count(x.Shape()) == ir.D(1):
			in[i] = x
		default: // a number for each place of one axis
			in[i] = reshape(x, reordered(padded(x.Shape(), len(perm)), perm))
		}
	}
	if _, ok := n.Attrs.(*op.ReshapeAttrs); ok {
		return reshape(in[0], shape)
	}
	return anew(n, attrsAcross(n, perm), in...)[0]
}

// attrsAcross are n's attributes with its axes where a transpose of its result puts them.
func attrsAcross(n *ir.Node, perm []int) any {
	rank := n.In[0].Rank()
	at := func(axis int) int {
		k, _ := ir.WrapAxis(axis, rank)
		return slices.Index(perm, k)
	}
	list := func(axes []int64) []int64 {
		out := []int64{}
		for _, axis := range axes {
			out = append(out, int64(at(int(axis))))
		}
		return out
	}
	switch a := n.Attrs.(type) {
	case *op.ConcatAttrs:
		return &op.ConcatAttrs{Axis: at(a.Axis)}
	case *op.NarrowAttrs:
		return &op.NarrowAttrs{Axis: at(a.Axis), Start: a.Start, Length: a.Length}
	case *op.ReverseAttrs:
		return &op.ReverseAttrs{Axes: list(a.Axes)}
	case *op.SliceAttrs:
		c, axes := *a, a.Axes
		for k := len(axes); len(a.Axes) == 0 && k < len(a.Starts); k++ {
			axes = append(axes, int64(k))
		}
		c.Axes = list(axes)
		return &c
	case *op.ReduceAttrs:
		c := *a
		c.Axes = nil
		if !a.KeepDims { // they are behind the others
			for k := len(perm); k < rank; k++ {
				c.Axes = append(c.Axes, k)
			}
			return &c
		}
		for _, axis := range a.Axes {
			c.Axes = append(c.Axes, at(axis))
		}
		return &c
	case *op.PadAttrs:
		c := *a
		c.Padding = make([]ir.Dim, len(a.Padding))
		for i := range a.Padding {
			c.Padding[i] = a.Padding[i/rank*rank+perm[i%rank]]
		}
		return &c
	}
	return n.Attrs
}
