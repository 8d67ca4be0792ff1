package rlx

import (
	"fmt"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Small integer and bool inputs may decide which branch of an If runs: a sampling rate, a flag. A specialisation is made for their values,
// so that it holds that branch alone. A program that sees more than maxDecided combinations of values leaves the choice to each run from then on.

const maxDecided = 8

// undecided stands for the value of an input that each run decides on.
const undecided = -2

// source is what a value is made of: constants and inputs by number, or also something else.
type source struct {
	inputs uint64
	known  bool
}

// decisive lists the inputs, by number, that alone decide on some If.
func decisive(g *ir.Graph) []int {
	args := make([]source, len(g.Inputs))
	for i, n := range g.Inputs {
		if _, err := n.Out(0).InputDims(); err == nil && i < 64 {
			args[i] = source{1 << i, true}
		}
	}
	found := decides(g, args)
	var list []int
	for i := range min(len(g.Inputs), 64) {
		if found>>i&1 != 0 {
			list = append(list, i)
		}
	}
	return list
}

// decides is the set of inputs that decide on an If in g or in its branches, whose inputs are made of args.
func decides(g *ir.Graph, args []source) (found uint64) {
	of := map[ir.Value]source{}
	for i, n := range g.Inputs {
		of[n.Out(0)] = args[i]
	}
	for _, n := range g.Nodes {
		if _, ok := n.InputName(); ok {
			continue
		}
		s := source{known: !n.Row.Has(ir.Random)}
		if _, ok := n.ParamName(); ok {
			s.known = false // nothing that decides is as large
		}
		for _, v := range n.In {
			if !v.IsZero() {
				s.inputs, s.known = s.inputs|of[v].inputs, s.known && of[v].known
			}
		}
		if n.Row.Has(ir.Control) {
			found |= decidesNode(n, of)
			s.known = false
		}
		for _, v := range n.Results() {
			of[v] = s
		}
	}
	return found
}

// decidesNode looks at one control node. An operand that the sub-graphs do not get is the predicate of a branch; loops change what they give to
// theirs.
func decidesNode(n *ir.Node, of map[ir.Value]source) (found uint64) {
	for _, sub := range n.Graphs() {
		args := make([]source, len(sub.Inputs))
		if branch := len(n.In)-len(sub.Inputs) == 1; branch {
			for i := range args {
				args[i] = of[n.In[1+i]]
			}
			if p := of[n.In[0]]; p.known {
				found |= p.inputs
			}
		}
		found |= decides(sub, args)
	}
	return found
}

// decide puts the branches that values decide on in place of their Ifs.
func (p *Program) decide(g *ir.Graph, values map[string]int64, eval pass.Eval) (*ir.Graph, error) {
	fixed := map[string]*ir.Tensor{}
	for i := range p.inputs {
		if in := &p.inputs[i]; in.decides {
			if t := in.valueOf(values); t != nil {
				fixed[in.name] = t
			}
		}
	}
	if len(fixed) == 0 {
		return g, nil
	}
	g, err := g.Rebuild(true, func(to *ir.Graph, n *ir.Node, in []ir.Value) ([]ir.Value, error) {
		name, _ := n.InputName()
		t := fixed[name]
		if t == nil {
			return nil, nil
		}
		if _, err := to.Copy(n, in); err != nil {
			return nil, err
		}
		return []ir.Value{to.Constant(t)}, to.Err()
	})
	for err == nil {
		var next *ir.Graph
		if next, err = pass.Fold(g, p.target.Support, foldLimit, eval); err != nil {
			break
		}
		before := controls(next)
		if g, err = pass.Inline(next); err != nil || controls(g) == before {
			break
		}
	}
	return g, err
}

// controls counts the control nodes of g, not those in sub-graphs.
func controls(g *ir.Graph) int {
	n := 0
	for _, x := range g.Nodes {
		if x.Row.Has(ir.Control) {
			n++
		}
	}
	return n
}

// valueOf is the input's value among the symbols' values; nil where it is not one of them.
func (in *input) valueOf(values map[string]int64) *ir.Tensor {
	shape, _ := ir.StaticShape(in.typ.Shape)
	t, err := ir.Zeros(in.typ.DType, shape...)
	if err != nil {
		return nil
	}
	for k := range t.Len() {
		v, ok := values[ir.StaticSymbol(in.name, k)]
		if !ok || v == undecided {
			return nil
		}
		ir.PutInt(in.typ.DType, t.Bytes(), k, v)
	}
	return t
}

// countDecided notes the values that a specialisation was made for.
func (p *Program) countDecidedLocked(values []int64) {
	var key []int64
	for i := range p.inputs {
		if p.inputs[i].decides {
			for _, s := range p.inputs[i].values {
				key = append(key, values[s])
			}
		}
	}
	if len(key) == 0 || slices.Contains(key, undecided) {
		return
	}
	if p.decided == nil {
		p.decided = map[string]bool{}
	}
	p.decided[fmt.Sprint(key)] = true
	p.undecided.Store(len(p.decided) > maxDecided)
}
