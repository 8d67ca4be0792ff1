package plan

import (
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Segment is a run of steps on one side: of the device, or of the host between them.
type Segment struct {
	First, End int // steps
	Host       bool
	Carry      []Transfer // to its side, before it runs
}

// Transfer is a piece of the arena that a segment reads and the other side wrote. It is carried only where the host cannot reach the arena.
type Transfer struct {
	Offset, Bytes int64
	Step          int // the first of the segment that reads it
}

// segments cuts the steps where the side changes, and lists what has to cross before each piece. A command fills the buffers of its results
// wholly, so that a value lies where it was computed, and on both sides once it has crossed.
func (p *planner) segments() []Segment {
	var list []Segment
	use := 0
	for i := range p.plan.Steps {
		host := p.plan.Steps[i].Place == Host
		if len(list) == 0 || list[len(list)-1].Host != host {
			list = append(list, Segment{First: i, Host: host})
		}
		s := &list[len(list)-1]
		s.End = i + 1
		first := use
		for use < len(p.uses) && p.uses[use].step == i {
			use++
		}
		for _, u := range p.uses[first:use] {
			if !u.result && p.plan.Steps[i].Command.In[u.operand].Count() > 0 {
				s.need(u.buf, i)
			}
		}
		for _, u := range p.uses[first:use] {
			if u.result {
				u.buf.onHost, u.buf.onDevice = host, !host
			}
		}
	}
	return list
}

// need says that a step of the segment reads b.
func (s *Segment) need(b *buffer, step int) {
	valid := &b.onDevice
	if s.Host {
		valid = &b.onHost
	}
	if !*valid {
		*valid = true
		s.Carry = append(s.Carry, Transfer{Offset: b.offset, Bytes: b.bytes, Step: step})
	}
}

// Nothing is a staged command without effect.
func Nothing() prog.Command {
	none := prog.Operand{DType: ir.U8, Dims: []int64{0}, Strides: []int64{1}}
	return prog.Command{Row: op.CopyRow(), Attrs: op.CopyRow().Zero(), Staged: true, Out: []prog.Operand{none}, In: []prog.Operand{none}}
}

// scheduled is a node in its place of the order, and the side that runs then.
type scheduled struct {
	node *ir.Node
	host bool
}

// schedule orders the nodes so that the sides change as rarely as dependencies allow: one side runs whatever is ready, then the other.
// Nodes of one side keep the graph's order; without host nodes it is the graph's order.
func schedule(g *ir.Graph, s *pass.Support) []scheduled {
	sides := make([]side, len(g.Nodes))
	hosts := 0
	for i, n := range g.Nodes {
		switch {
		case n.Row.Has(ir.Leaf) || n.Row.Has(ir.View):
			sides[i] = eitherSide
		case s.Staged(n):
			sides[i] = hostSide
			hosts++
		}
	}
	if hosts == 0 {
		order := make([]scheduled, len(g.Nodes))
		for i, n := range g.Nodes {
			order[i].node = n
		}
		return order
	}
	native, n := phases(g, sides, deviceSide)
	host, h := phases(g, sides, hostSide)
	if h < n {
		return host
	}
	return native
}

// side is where a node runs; leaves and views are no commands and go with whatever side runs.
type side uint8

const (
	deviceSide side = iota
	hostSide
	eitherSide
)

// phases is the order that starts on the given side, and its number of changes. To run all that is ready before changing is the best that
// an order with this start can do.
func phases(g *ir.Graph, sides []side, now side) (order []scheduled, changes int) {
	done := make([]bool, len(g.Nodes))
	ready := func(n *ir.Node) bool {
		for _, v := range n.In {
			if !v.IsZero() && !done[v.Node().ID()] {
				return false
			}
		}
		return true
	}
	left := g.Nodes
	for len(left) > 0 {
		ran := false
		var later []*ir.Node
		for _, n := range left { // operands come before their readers, so that one pass finds all that is ready
			if of := sides[n.ID()]; of != now && of != eitherSide || !ready(n) {
				later = append(later, n)
				continue
			}
			ran = ran || sides[n.ID()] == now
			done[n.ID()] = true
			order = append(order, scheduled{n, now == hostSide})
		}
		if ran {
			changes++
		}
		left, now = later, 1-now
	}
	return order, changes
}
