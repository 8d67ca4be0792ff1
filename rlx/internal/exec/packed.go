package exec

import (
	"sync"
	"weak"

	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Runs on a device need little of a plan: the device has its own form of the commands. What describes them, names their nodes, or divides them
// takes the plan that is made again of its graph: planning is quick, and gives the same each time.

// packedPlan is what Plan makes a plan of.
type packedPlan struct {
	graph *ir.Packed
	own   []*ir.Tensor           // constants behind those of base
	base  func() *plan.Constants // of the program

	mu   sync.Mutex
	last weak.Pointer[plan.Plan] // while anybody uses it
}

// Pack lets go of the plan. names is the graph of all specialisations, whose strings are not kept again, and base gives its constants. A program
// whose commands run in package ref keeps the plan, because they are read there.
func (p *Program) Pack(names *ir.Packed, base func() *plan.Constants) {
	if p.staged {
		return
	}
	p.packed = &packedPlan{graph: ir.Pack(p.full.Graph(), p.full.Consts, names), own: append([]*ir.Tensor(nil), p.full.Consts[p.full.Base:]...), base: base}
	p.packed.last = weak.Make(p.full)
	p.full = nil
}

// Plan is the plan of the program.
func (p *Program) Plan() (*plan.Plan, error) {
	if p.full != nil {
		return p.full, nil
	}
	k := p.packed
	k.mu.Lock()
	defer k.mu.Unlock()
	if pl := k.last.Value(); pl != nil {
		return pl, nil
	}
	base := k.base()
	tensors := append(base.Tensors(), k.own...)
	g := k.graph.Unpack(func(i int, _ ir.DType, _ []int64) *ir.Tensor { return tensors[i] })
	pl, err := plan.Build(g, p.target.Support, base)
	if err == nil {
		k.last = weak.Make(pl)
	}
	return pl, err
}
