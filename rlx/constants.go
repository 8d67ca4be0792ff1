package rlx

import (
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// A program's constants are tensors of its own: the caller's graph, and the file that it was read from, can be garbage while the program lives.
// Once a set of shapes is loaded, the backend has what its kernels need, often in another order; the tensors then let go of their memory and
// read their bytes back when somebody asks, such as a pass that compiles another set of shapes.

// owned is g with constants and params that are the program's own.
func owned(g *ir.Graph) (*ir.Graph, error) {
	mine := map[*ir.Tensor]*ir.Tensor{}
	own := func(t *ir.Tensor) *ir.Tensor {
		if mine[t] == nil {
			mine[t] = ownTensor(t)
		}
		return mine[t]
	}
	replace := func(g *ir.Graph) (*ir.Graph, error) {
		return g.Rebuild(true, func(to *ir.Graph, n *ir.Node, in []ir.Value) ([]ir.Value, error) {
			if name, ok := n.ParamName(); ok && g.ParamData(name) != nil {
				out, err := to.Copy(n, in)
				if err == nil {
					err = to.BindParam(name, own(g.ParamData(name)))
				}
				return out, err
			}
			t, ok := n.Out(0).Const()
			if !ok {
				return nil, nil
			}
			c, err := to.Add(n.Row, n.Name, &ir.ConstantAttrs{Value: own(t)})
			if err != nil {
				return nil, err
			}
			c.Inherit(n)
			return c.Results(), nil
		})
	}
	inner, err := g.MapGraphs(replace)
	if err != nil {
		return nil, err
	}
	return replace(inner)
}

// ownTensor is a tensor with the bytes of t: in its place unless they are few, which are copied out of what they are a part of.
func ownTensor(t *ir.Tensor) *ir.Tensor {
	if t.Size() < ir.SmallTensor {
		b := t.Bytes()
		small := ir.Aligned(int64(len(b)))
		copy(small, b)
		if c, err := ir.FromBytes(t.DType(), t.Shape(), small); err == nil {
			return c
		}
	}
	return ir.Own(t)
}

// settle lets go of what a loaded e does not need: the memory of the constants that the backend can give back, of which tensors are the program's, and
// the plan.
func (p *Program) settle(e *exec.Program, tensors []*ir.Tensor) error {
	if p.cfg.trace != nil { // whoever watches the passes may keep their graphs
		return nil
	}
	if err := e.Settle(); err != nil {
		return err
	}
	done, err := exec.Settle(p.weights, tensors)
	if err != nil {
		return err
	}
	if from, ok := p.weights.(backend.Trimmer); ok && p.target.Host == nil { // which knows its constants by the tensor
		p.kept.release(from, done)
	}
	p.account()
	k := p.kept
	e.Pack(k.packed, func() *plan.Constants { return k.open().consts })
	return nil
}
