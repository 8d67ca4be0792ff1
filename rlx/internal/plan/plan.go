// Package plan turns a static, legal graph into a program: it decides where every value lives (views, in-place results, arena offsets)
// in which order commands run, and what crosses between the memory of a device and that of the host.
package plan

import (
	"fmt"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Place says how a node runs.
type Place uint8

// The places of a node.
const (
	Native Place = iota
	Composed
	Host
)

func (p Place) String() string { return [...]string{"native", "composed", "host"}[p] }

// Step is one command with the node it came from.
type Step struct {
	Command prog.Command
	Node    *ir.Node
	Place   Place

	moved  ir.Value // by a copy of the planner's own
	bodies []*Plan  // of the sub-graphs
}

// Plan is a program with what it needs.
type Plan struct {
	Program  prog.Program // without Commands: they are in the steps
	Steps    []Step
	Segments []Segment
	Consts   []*ir.Tensor // those behind the first Base are this plan's own
	Base     int
	Peak     int64 // arena bytes
	Bound    int64 // the least that any plan of the same order needs

	graph  *ir.Graph
	consts *Constants
}

// Graph is the graph that was planned.
func (p *Plan) Graph() *ir.Graph { return p.graph }

// Constants numbers the tensors of a program and of its specialisations: base is shared by all.
type Constants struct {
	list  []*ir.Tensor
	index map[*ir.Tensor]int
}

// NewConstants collects the constants and params of a program's graph.
func NewConstants(g *ir.Graph) *Constants {
	c := &Constants{index: map[*ir.Tensor]int{}}
	g.EachNode(func(n *ir.Node) {
		if t := constantOf(n); t != nil {
			c.add(t)
		}
	})
	return c
}

func (c *Constants) add(t *ir.Tensor) int {
	i, ok := c.index[t]
	if !ok {
		i = len(c.list)
		c.index[t] = i
		c.list = append(c.list, t)
	}
	return i
}

// Data is the memory of the constants in order of number.
func (c *Constants) Data() [][]byte {
	data := make([][]byte, len(c.list))
	for i, t := range c.list {
		data[i] = t.Within()
	}
	return data
}

// Tensors lists the constants in order of number. It must not be changed.
func (c *Constants) Tensors() []*ir.Tensor { return slices.Clip(c.list) }

func (c *Constants) child() *Constants {
	d := &Constants{list: c.list[:len(c.list):len(c.list)], index: map[*ir.Tensor]int{}}
	for t, i := range c.index {
		d.index[t] = i
	}
	return d
}

func constantOf(n *ir.Node) *ir.Tensor {
	if t, ok := n.Out(0).Const(); ok {
		return t
	}
	if name, ok := n.ParamName(); ok {
		return n.Graph().ParamData(name)
	}
	return nil
}

// storage is where a value lives: a buffer and a strided window of it, offset in elements.
type storage struct {
	buf     *buffer
	dtype   ir.DType
	dims    []int64
	strides []int64
	offset  int64
}

// buffer is a piece of a slot. Arena buffers get their offset at the end.
type buffer struct {
	slot       prog.Slot
	index      int
	bytes      int64
	offset     int64 // in the arena
	first, end int   // steps during which it lives
	fixed      bool  // not reusable in place: bindings, constants, and what a graph output still reads
	lastRead   int   // position of the last node that reads a value of the buffer

	writer           *Step // the last one so far
	onDevice, onHost bool  // where the value is, while segments are cut
}

type planner struct {
	g       *ir.Graph
	s       *pass.Support
	plan    *Plan
	consts  *Constants
	where   map[ir.Value]*storage
	copies  map[ir.Value]*storage // contiguous copies of strided values
	outputs map[ir.Value]int
	arena   []*buffer
	order   []scheduled
	at      int              // position of the node being planned
	lastUse map[ir.Value]int // position of the last reader
	uses    []pendingOperand
}

// pendingOperand is an operand whose arena offset is filled in at the end.
type pendingOperand struct {
	step, operand int
	result        bool
	buf           *buffer
}

// Build plans g for the backend described by s. base holds the program's constants; new ones are appended after it.
func Build(g *ir.Graph, s *pass.Support, base *Constants) (*Plan, error) {
	p, err := build(g, s, base)
	if err != nil {
		return nil, err
	}
	return p.plan, nil
}

func build(g *ir.Graph, s *pass.Support, base *Constants) (*planner, error) {
	p, err := layout(g, s, base.child())
	if err != nil {
		return nil, err
	}
	p.plan.Base = len(base.list)
	p.plan.Consts = p.consts.list
	for _, t := range p.plan.Consts {
		p.plan.Program.Consts = append(p.plan.Program.Consts, prog.Type{DType: t.DType(), Dims: t.Shape()})
	}
	return p, nil
}

// body plans a sub-graph. Its constants are numbered with those of the graph around it.
func (p *planner) body(g *ir.Graph, s *pass.Support) (*prog.Program, *Plan, error) {
	b, err := layout(g, s, p.consts)
	if err != nil {
		return nil, nil, err
	}
	words := b.plan.Program
	for _, step := range b.plan.Steps {
		words.Commands = append(words.Commands, step.Command)
	}
	return &words, b.plan, nil
}

// layout plans g, or a sub-graph, and numbers its constants in consts.
func layout(g *ir.Graph, s *pass.Support, consts *Constants) (*planner, error) {
	p := &planner{g: g, s: s, plan: &Plan{graph: g, consts: consts}, consts: consts, where: map[ir.Value]*storage{}, copies: map[ir.Value]*storage{},
		outputs: map[ir.Value]int{}, lastUse: map[ir.Value]int{}, order: schedule(g, s)}
	if err := p.bindings(); err != nil {
		return nil, err
	}
	for at, sn := range p.order {
		p.at = at
		if err := p.node(sn.node); err != nil {
			return nil, ir.ErrorAt(sn.node, err)
		}
	}
	if err := p.finishOutputs(); err != nil {
		return nil, err
	}
	p.plan.Peak, p.plan.Bound = assign(p.arena)
	p.plan.Program.ArenaBytes = p.plan.Peak
	for _, u := range p.uses {
		c := &p.plan.Steps[u.step].Command
		if u.result {
			c.Out[u.operand].Offset += u.buf.offset
		} else {
			c.In[u.operand].Offset += u.buf.offset
		}
	}
	p.plan.Segments = p.segments()
	return p, nil
}

// bindings declares inputs and outputs, and how long each value is read.
func (p *planner) bindings() error {
	for _, n := range p.g.Inputs {
		t, err := staticType(n.Types[0])
		if err != nil {
			return err
		}
		p.where[n.Out(0)] = p.fixed(prog.Input, len(p.plan.Program.Inputs), t)
		p.plan.Program.Inputs = append(p.plan.Program.Inputs, t)
	}
	for i, o := range p.g.Outputs {
		t, err := staticType(o.Value.Type())
		if err != nil {
			return err
		}
		p.plan.Program.Outputs = append(p.plan.Program.Outputs, t)
		if _, taken := p.outputs[o.Value]; !taken {
			p.outputs[o.Value] = i
		}
	}
	for at, sn := range p.order {
		for _, v := range sn.node.In {
			if !v.IsZero() {
				p.lastUse[v] = at
			}
		}
	}
	return nil
}

func staticType(t ir.Type) (prog.Type, error) {
	shape, ok := ir.StaticShape(t.Shape)
	if !ok {
		return prog.Type{}, fmt.Errorf("shape %s is not static", ir.ShapeText(t.Shape))
	}
	return prog.Type{DType: t.DType, Dims: shape}, nil
}

func (p *planner) fixed(slot prog.Slot, index int, t prog.Type) *storage {
	n, _ := t.Bytes()
	return whole(&buffer{slot: slot, index: index, bytes: n, fixed: true}, t)
}

func whole(b *buffer, t prog.Type) *storage {
	return &storage{b, t.DType, t.Dims, prog.Contiguous(t.Dims), 0}
}

func (p *planner) node(n *ir.Node) error {
	switch {
	case n.Row.Has(ir.Leaf):
		if t := constantOf(n); t != nil {
			p.where[n.Out(0)] = p.fixed(prog.Const, p.consts.add(t), prog.Type{DType: t.DType(), Dims: t.Shape()})
		} else if _, ok := p.where[n.Out(0)]; !ok {
			return fmt.Errorf("has no tensor, expected one bound before Compile")
		}
		return nil
	case n.Row.Has(ir.View):
		return p.view(n)
	}
	return p.compute(n)
}

// view gives the node's result as strides of its operand's buffer; where strides cannot express it the operand is copied first.
func (p *planner) view(n *ir.Node) error {
	x := p.where[n.In[0]]
	t, err := staticType(n.Types[0])
	if err != nil {
		return err
	}
	for range 2 {
		dims, strides, offset, ok := op.ViewOf(n, x.dims, x.strides, x.offset)
		if ok {
			p.put(n.Out(0), &storage{x.buf, t.DType, dims, strides, offset})
			return nil
		}
		if x, err = p.contiguous(n, n.In[0]); err != nil {
			return err
		}
	}
	return fmt.Errorf("has no strided form of a contiguous operand")
}

// contiguous returns v's storage, or a contiguous copy of it made once.
func (p *planner) contiguous(reader *ir.Node, v ir.Value) (*storage, error) {
	s := p.where[v]
	if operandOf(s).IsContiguous() {
		return s, nil
	}
	if c := p.copies[v]; c != nil {
		return c, nil
	}
	c := p.fresh(prog.Type{DType: s.dtype, Dims: s.dims})
	p.copy(reader, v, p.order[p.at].host, c, s)
	p.copies[v] = c
	c.buf.lastRead = p.lastUse[v]
	return c, nil
}

func (p *planner) fresh(t prog.Type) *storage {
	n, _ := t.Bytes()
	b := &buffer{slot: prog.Arena, bytes: n, first: len(p.plan.Steps), end: len(p.plan.Steps)}
	p.arena = append(p.arena, b)
	return whole(b, t)
}

func (p *planner) place(n *ir.Node) Place {
	if p.s.Staged(n) {
		return Host
	}
	return nativePlace(n)
}

func nativePlace(n *ir.Node) Place {
	if n.From.Op != "" {
		return Composed
	}
	return Native
}

// copy emits a copy of v for node n on the wanted side, or on the other one where only that can copy the dtype, or so much.
func (p *planner) copy(n *ir.Node, v ir.Value, host bool, to, from *storage) {
	row := op.CopyRow()
	place := nativePlace(n)
	large := p.s.MaxBytes != 0 && max(from.buf.bytes, to.buf.bytes) > p.s.MaxBytes
	if p.s.HostRow(row) && (host || large || !p.s.NativeRow(row, from.dtype)) {
		place = Host
	}
	p.emit(Step{Node: n, Place: place, Command: prog.Command{Row: row, Attrs: row.Zero()}, moved: v}, []*storage{to}, []*storage{from})
}

func (p *planner) compute(n *ir.Node) error {
	place := p.place(n)
	strided := p.s.Strided(n)
	in := make([]*storage, len(n.In))
	for i, v := range n.In {
		if v.IsZero() {
			continue
		}
		in[i] = p.where[v]
		if !strided {
			var err error
			if in[i], err = p.contiguous(n, v); err != nil {
				return err
			}
		}
	}
	out := make([]*storage, len(n.Types))
	for i := range n.Types {
		t, err := staticType(n.Types[i])
		if err != nil {
			return err
		}
		out[i] = p.result(n, i, t, in)
		p.put(n.Out(i), out[i])
	}
	c := prog.Command{Row: n.Row, Attrs: n.Attrs}
	var bodies []*Plan
	for _, g := range n.Graphs() {
		body, plan, err := p.body(g, p.s.BodyOf(n))
		if err != nil {
			return err
		}
		c.Bodies, bodies = append(c.Bodies, body), append(bodies, plan)
	}
	p.emit(Step{Node: n, Place: place, Command: c, bodies: bodies}, out, in)
	return nil
}

// result is where result i of n goes: a graph output's own memory, an operand's buffer that dies here, or a fresh buffer.
func (p *planner) result(n *ir.Node, i int, t prog.Type, in []*storage) *storage {
	if k, ok := p.outputs[n.Out(i)]; ok {
		return p.fixed(prog.Output, k, t)
	}
	if i == 0 {
		for k := range in {
			if p.inPlace(n, k, t, in) {
				return whole(in[k].buf, t)
			}
		}
	}
	return p.fresh(t)
}

// inPlace says whether result 0 may take over operand k's buffer: the row allows it, the operand fills the buffer in order, and neither
// this command nor a later one reads the buffer any other way.
func (p *planner) inPlace(n *ir.Node, k int, t prog.Type, in []*storage) bool {
	if !(n.Row.Has(ir.Elementwise) && len(n.Types) == 1 || n.Row.Has(ir.InPlace) && k == 0) || in[k] == nil {
		return false
	}
	s, o := in[k], operandOf(in[k])
	bytes, _ := t.Bytes()
	fills := s.offset == 0 && o.IsContiguous() && o.Count()*int64(s.dtype.Size()) == s.buf.bytes // a first part of it may broadcast
	if s.buf.fixed || !fills || s.buf.bytes != bytes || s.dtype.Size() != t.DType.Size() {
		return false
	}
	for j, o := range in {
		if j != k && o != nil && o.buf == s.buf {
			return false
		}
	}
	return s.buf.lastRead <= p.at
}

// put says that v lives in s.
func (p *planner) put(v ir.Value, s *storage) {
	p.where[v] = s
	s.buf.lastRead = max(s.buf.lastRead, p.lastUse[v])
	if _, ok := p.outputs[v]; ok {
		s.buf.fixed = true
	}
}

// emit appends a command and extends the life of the buffers that it touches.
func (p *planner) emit(s Step, out, in []*storage) {
	at := len(p.plan.Steps)
	s.Command.Staged = s.Place == Host
	add := func(list []*storage, result bool) []prog.Operand {
		ops := make([]prog.Operand, len(list))
		for i, x := range list {
			if x == nil {
				ops[i] = prog.Operand{Absent: true}
				continue
			}
			ops[i] = operandOf(x)
			if x.buf.slot == prog.Arena {
				x.buf.end = at
				p.uses = append(p.uses, pendingOperand{at, i, result, x.buf})
			}
		}
		return ops
	}
	s.Command.Out, s.Command.In = add(out, true), add(in, false)
	p.plan.Steps = append(p.plan.Steps, s)
	for _, x := range out {
		x.buf.writer = &s
	}
}

func operandOf(s *storage) prog.Operand {
	if slices.Contains(s.dims, 0) { // touches no byte, wherever a view has put it
		return prog.Operand{DType: s.dtype, Dims: s.dims, Strides: s.strides, Slot: s.buf.slot, Index: s.buf.index}
	}
	return prog.Operand{DType: s.dtype, Dims: s.dims, Strides: s.strides, Slot: s.buf.slot, Index: s.buf.index, Offset: s.offset * int64(s.dtype.Size())}
}

// finishOutputs copies out what no command wrote to its output: views, inputs, constants, and values that are listed twice. Each is copied
// where it was computed; those of the side that ran last come first, and bring what has no side along.
func (p *planner) finishOutputs() error {
	last := len(p.plan.Steps) > 0 && p.plan.Steps[len(p.plan.Steps)-1].Place == Host
	for _, host := range []bool{last, !last} {
		for i, o := range p.g.Outputs {
			s := p.where[o.Value]
			side := last
			if w := s.buf.writer; w != nil {
				side = w.Place == Host
			}
			if s.buf.slot == prog.Output && s.buf.index == i || side != host {
				continue
			}
			t, err := staticType(o.Value.Type())
			if err != nil {
				return err
			}
			p.copy(o.Value.Node(), o.Value, host, p.fixed(prog.Output, i, t), s)
		}
	}
	return nil
}
