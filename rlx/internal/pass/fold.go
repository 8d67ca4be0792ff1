package pass

import (
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Eval computes the outputs of a graph that has no inputs, on the backend that the program is compiled for, so that folding never
// changes bits.
type Eval func(*ir.Graph) ([]*ir.Tensor, error)

// Fold computes what depends on constants and params alone and puts the results in its place. Views of constants stay views, but where a kernel
// that takes no strides (s) would have them copied in every run. Results larger than limit bytes (0: no limit) stay nodes. Before the shapes are
// bound it is the prelude of a program: int8 weights are cast and scaled once, whatever the sizes of later runs.
func Fold(g *ir.Graph, s *Support, limit int64, eval Eval) (*ir.Graph, error) {
	f := folder{constant: make([]bool, len(g.Nodes)), limit: limit, targets: map[ir.Value]int{}}
	for _, n := range g.Nodes {
		f.constant[n.ID()] = f.isConstant(n)
	}
	for _, n := range g.Nodes {
		if f.constant[n.ID()] {
			continue
		}
		for _, v := range n.In {
			if s != nil && f.copied(s, n, v) {
				f.compute(v)
			} else {
				f.want(v)
			}
		}
	}
	for _, o := range g.Outputs {
		f.want(o.Value)
	}
	if len(f.order) == 0 {
		return g, nil
	}
	values, err := f.values(g, eval)
	if err != nil {
		return nil, err
	}
	var merges ir.Merges
	out, err := g.Rebuild(false, func(to *ir.Graph, n *ir.Node, in []ir.Value) ([]ir.Value, error) {
		out := make([]ir.Value, len(n.Types))
		replaced := false
		for i := range out {
			if k, ok := f.targets[n.Out(i)]; ok {
				out[i], replaced = to.Constant(values[k]).Named(n.Name+".folded"), true
				out[i].Node().Absorb(n)
				merges.Add(len(to.Nodes), in, out[i].Node())
			}
		}
		if !replaced {
			return nil, nil
		}
		if len(out) > 1 { // a result that nobody wanted may still be read by nodes that fall away
			rest, err := to.Copy(n, in)
			if err != nil {
				return nil, err
			}
			for i := range out {
				if out[i].IsZero() {
					out[i] = rest[i]
				}
			}
		}
		return out, nil
	})
	if err == nil {
		merges.Settle(out)
	}
	return out, err
}

type folder struct {
	constant []bool
	limit    int64
	targets  map[ir.Value]int
	order    []ir.Value
}

// isConstant says whether n's results are the same in every run; operands were asked before.
func (f *folder) isConstant(n *ir.Node) bool {
	if n.Row.Has(ir.Leaf) {
		_, isConst := n.Out(0).Const()
		_, isParam := n.ParamName()
		return isConst || isParam
	}
	if n.Row.Has(ir.Random) || n.Row.Has(ir.Control) {
		return false
	}
	for _, t := range n.Types {
		if _, ok := ir.StaticShape(t.Shape); !ok {
			return false
		}
	}
	symbols := map[string]bool{}
	if n.Row.AttrSymbols(n.Attrs, symbols); len(symbols) > 0 {
		return false
	}
	for _, v := range n.In {
		if !v.IsZero() && !f.constant[v.Node().ID()] {
			return false
		}
	}
	return true
}

// want notes the computed constants that v needs: v itself, or what a view or a result beyond the limit is made of.
func (f *folder) want(v ir.Value) {
	if v.IsZero() || !f.constant[v.Node().ID()] || v.Node().Row.Has(ir.Leaf) {
		return
	}
	if _, ok := f.targets[v]; ok {
		return
	}
	if v.Node().Row.Has(ir.View) || f.tooLarge(v.Type()) {
		for _, o := range v.Node().In {
			f.want(o)
		}
		return
	}
	f.compute(v)
}

// compute makes v a target.
func (f *folder) compute(v ir.Value) {
	if _, ok := f.targets[v]; !ok {
		f.targets[v] = len(f.order)
		f.order = append(f.order, v)
	}
}

// copied says whether v is a constant in another order than its elements have in memory, and no larger than what it is a view of, that n's kernel
// wants in order.
func (f *folder) copied(s *Support, n *ir.Node, v ir.Value) bool {
	if v.IsZero() || !f.constant[v.Node().ID()] || n.Row.Has(ir.View) || s.Strided(n) || f.tooLarge(v.Type()) {
		return false
	}
	base, moved := v, false
	for x := v.Node(); x.Row.Has(ir.View) && len(x.In) == 1; x = base.Node() {
		moved = moved || x.Row != op.ReshapeRow() && !x.Row.Has(ir.Elementwise)
		base = x.In[0]
	}
	if !moved {
		return false
	}
	a, ok := ir.Count(v.Shape()).Static()
	b, ok2 := ir.Count(base.Shape()).Static()
	return ok && ok2 && a <= b
}

func (f *folder) tooLarge(t ir.Type) bool {
	shape, _ := ir.StaticShape(t.Shape)
	n, err := ir.ByteSize(t.DType, shape)
	return err != nil || f.limit > 0 && n > f.limit
}

// values evaluates the targets as the outputs of a graph of their own.
func (f *folder) values(g *ir.Graph, eval Eval) ([]*ir.Tensor, error) {
	sub := *g
	sub.Inputs, sub.Outputs = nil, nil
	for i, v := range f.order {
		sub.Outputs = append(sub.Outputs, ir.Output{Name: fmt.Sprint(i), Value: v})
	}
	part, err := DCE(&sub)
	if err != nil {
		return nil, err
	}
	values, err := eval(part)
	if err != nil {
		return nil, fmt.Errorf("folding constants: %w", err)
	}
	return values, nil
}
