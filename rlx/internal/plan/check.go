package plan

import (
	"fmt"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Viewer computes the result of a view of x, as the meaning of its row says: an account of views beside their strided forms.
type Viewer func(n *ir.Node, x *ir.Tensor) (*ir.Tensor, error)

// Range is a piece of the arena.
type Range struct{ Lo, Hi int64 }

// CheckError says which step of a plan does not do what its node means.
type CheckError struct {
	Step int
	Node string
	Err  error
}

func (e *CheckError) Error() string {
	return fmt.Sprintf("plan: step %d (%s): %v", e.Step, e.Node, e.Err)
}

func (e *CheckError) Unwrap() error { return e.Err }

// Check holds a plan against its graph. It follows every byte: an operand must lie where the value that the node reads was written, element
// by element and not overwritten since; results may share memory with operands only where the row allows it; and what is listed as
// an output must hold the output's value at the end. It returns, for each step, the pieces of the arena whose values nothing reads after it.
func Check(p *Plan, view Viewer) ([][]Range, error) {
	c := &checker{p: p, view: view, ids: map[ir.Value]*ir.Tensor{}, base: map[any]int64{}, next: 1, memory: map[place]*holding{},
		last: map[*piece]int{}}
	for i, n := range p.graph.Inputs {
		c.holds(place{prog.Input, i}, n.Out(0))
	}
	for i := range p.Steps {
		if err := c.step(i); err != nil {
			return nil, &CheckError{i, p.Steps[i].Node.String(), err}
		}
	}
	for i, o := range p.graph.Outputs {
		t := p.Program.Outputs[i]
		whole := prog.Operand{DType: t.DType, Dims: t.Dims, Strides: prog.Contiguous(t.Dims), Slot: prog.Output, Index: i}
		if err := c.reads(whole, o.Value, len(p.Steps)); err != nil {
			return nil, &CheckError{len(p.Steps), "output " + o.Name, err}
		}
	}
	return c.freed(), nil
}

// place is a piece of memory with addresses of its own.
type place struct {
	slot  prog.Slot
	index int
}

// piece is a run of bytes that one command wrote: the elements of a value in row-major order.
type piece struct {
	lo, hi int64
	size   int64
	ids    *ir.Tensor // of the elements; nil: they count up from first
	first  int64
	step   int // that wrote it
	gone   int // the step that overwrote it
}

func (p *piece) id(element int64) int64 {
	if p.ids != nil {
		return p.ids.Int(int(element))
	}
	return p.first + element
}

// holding is what lies at a place: pieces by address, which do not overlap.
type holding struct{ pieces []*piece }

type checker struct {
	p      *Plan
	view   Viewer
	ids    map[ir.Value]*ir.Tensor // of views
	base   map[any]int64           // the first id of a value that is no view, or of the tensor that leaves share
	next   int64
	memory map[place]*holding
	dead   []*piece // overwritten
	last   map[*piece]int
}

func elements(t ir.Type) int64 {
	n, _ := ir.Count(t.Shape).Static()
	return n
}

// first numbers the elements of a value that is no view: the first of its ids.
func (c *checker) first(v ir.Value) int64 {
	key := any(v)
	if t := constantOf(v.Node()); t != nil {
		key = t
	}
	if _, ok := c.base[key]; !ok {
		c.base[key] = c.next
		c.next += elements(v.Type())
	}
	return c.base[key]
}

func isView(v ir.Value) bool { return v.Node().Row.Has(ir.View) }

// idsOf are the ids of the elements of v; nil for what is no view, whose ids count up from first.
func (c *checker) idsOf(v ir.Value) (*ir.Tensor, error) {
	if !isView(v) {
		return nil, nil
	}
	if t := c.ids[v]; t != nil {
		return t, nil
	}
	n := v.Node()
	x, err := c.idsOf(n.In[0])
	if err == nil && x == nil {
		x, err = c.counting(n.In[0])
	}
	if err != nil {
		return nil, err
	}
	t, err := c.view(n, x)
	if err == nil {
		c.ids[v] = t
	}
	return t, err
}

// counting is the tensor of the ids of a value that is no view.
func (c *checker) counting(v ir.Value) (*ir.Tensor, error) {
	shape, _ := ir.StaticShape(v.Type().Shape)
	t, err := ir.Zeros(ir.I64, shape...)
	if err != nil {
		return nil, err
	}
	first := c.first(v)
	for i := range t.Len() {
		ir.PutInt(ir.I64, t.Bytes(), i, first+int64(i))
	}
	return t, nil
}

// holds says that a place is filled with v from the start.
func (c *checker) holds(at place, v ir.Value) {
	n := elements(v.Type())
	size := int64(v.DType().Size())
	c.memory[at] = &holding{[]*piece{{lo: 0, hi: n * size, size: size, first: c.first(v), step: -1}}}
}

// step follows one command: it reads what its node reads, then its results are there.
func (c *checker) step(i int) error {
	s := &c.p.Steps[i]
	if !s.moved.IsZero() { // a copy of the planner's own
		if len(s.Command.In) != 1 || len(s.Command.Out) != 1 {
			return fmt.Errorf("a copy with %d operands and %d results", len(s.Command.In), len(s.Command.Out))
		}
		if err := c.reads(s.Command.In[0], s.moved, i); err != nil {
			return err
		}
		if overlap(s.Command.In[0], s.Command.Out[0]) {
			return fmt.Errorf("copies %s onto itself", s.Command.In[0])
		}
		return c.writes(s.Command.Out[0], s.moved, i)
	}
	if len(s.Command.In) != len(s.Node.In) || len(s.Command.Out) != len(s.Node.Types) {
		return fmt.Errorf("%d operands and %d results, the node has %d and %d", len(s.Command.In), len(s.Command.Out), len(s.Node.In), len(s.Node.Types))
	}
	for k, v := range s.Node.In {
		if v.IsZero() != s.Command.In[k].Absent {
			return fmt.Errorf("operand %d is %s, the node reads %s", k, s.Command.In[k], v)
		}
		if v.IsZero() {
			continue
		}
		if err := c.reads(s.Command.In[k], v, i); err != nil {
			return fmt.Errorf("operand %d: %w", k, err)
		}
	}
	for k, o := range s.Command.Out {
		if err := c.mayShare(s, k); err != nil {
			return err
		}
		if err := c.writes(o, s.Node.Out(k), i); err != nil {
			return fmt.Errorf("result %d: %w", k, err)
		}
	}
	for k, b := range s.bodies {
		if _, err := Check(b, c.view); err != nil {
			return fmt.Errorf("body %d: %w", k, err)
		}
	}
	return nil
}

func overlap(a, b prog.Operand) bool {
	if a.Absent || b.Absent || a.Slot != b.Slot || a.Index != b.Index || a.Count() == 0 || b.Count() == 0 {
		return false
	}
	alo, ahi := extent(a)
	blo, bhi := extent(b)
	return alo < bhi && blo < ahi
}

// extent is the first and one past the last byte of an operand that has elements.
func extent(o prog.Operand) (lo, hi int64) {
	size := int64(o.DType.Size())
	lo, hi = o.Offset, o.Offset+size
	for i, d := range o.Dims {
		if step := (d - 1) * o.Strides[i] * size; step < 0 {
			lo += step
		} else {
			hi += step
		}
	}
	return lo, hi
}

// mayShare says whether result k may lie where it does: apart from the other results and from every operand, but for result 0 of a row that
// computes element i from element i, in place of an operand of the same size.
func (c *checker) mayShare(s *Step, k int) error {
	out := s.Command.Out[k]
	for j, o := range s.Command.Out {
		if j != k && overlap(o, out) {
			return fmt.Errorf("results %d and %d overlap: %s, %s", k, j, out, o)
		}
	}
	taken := 0
	for j, in := range s.Command.In {
		if !overlap(in, out) {
			continue
		}
		taken++
		row := s.Command.Row
		inPlace := k == 0 && (row.Has(ir.Elementwise) || row.Has(ir.InPlace) && j == 0)
		if !inPlace || in.Offset != out.Offset || in.DType.Size() != out.DType.Size() || in.Count() != out.Count() || !in.IsContiguous() {
			return fmt.Errorf("result %d %s overwrites operand %d %s", k, out, j, in)
		}
	}
	if taken > 1 && !s.Command.Row.Has(ir.Elementwise) {
		return fmt.Errorf("result %d %s overwrites %d operands", k, out, taken)
	}
	return nil
}

// writes puts v where o says.
func (c *checker) writes(o prog.Operand, v ir.Value, step int) error {
	shape, _ := ir.StaticShape(v.Type().Shape)
	if o.DType != v.DType() || !slices.Equal(o.Dims, shape) {
		return fmt.Errorf("%s, the value is %s", o, v.Type())
	}
	if !o.IsContiguous() || o.Slot != prog.Arena && o.Slot != prog.Output {
		return fmt.Errorf("%s is no place for a result", o)
	}
	if o.Count() == 0 {
		return nil
	}
	limit := c.p.Program.ArenaBytes
	if o.Slot == prog.Output {
		limit, _ = c.p.Program.Outputs[o.Index].Bytes()
	}
	lo, hi := extent(o)
	if lo < 0 || hi > limit {
		return fmt.Errorf("%s lies outside its %d bytes", o, limit)
	}
	piece := &piece{lo: lo, hi: hi, size: int64(o.DType.Size()), step: step}
	var err error
	if piece.ids, err = c.idsOf(v); err != nil {
		return err
	}
	if piece.ids == nil {
		piece.first = c.first(v)
	}
	at := place{o.Slot, o.Index}
	if c.memory[at] == nil {
		c.memory[at] = &holding{}
	}
	for _, old := range c.memory[at].put(piece) {
		old.gone = step
		if o.Slot == prog.Arena {
			c.dead = append(c.dead, old)
		}
	}
	c.last[piece] = step
	return nil
}

// put adds a piece and returns those that it overwrites, even in part: nothing may read the rest of them.
func (h *holding) put(p *piece) (gone []*piece) {
	kept := h.pieces[:0:0]
	for _, o := range h.pieces {
		if o.lo < p.hi && p.lo < o.hi {
			gone = append(gone, o)
		} else {
			kept = append(kept, o)
		}
	}
	i, _ := slices.BinarySearchFunc(kept, p.lo, func(o *piece, lo int64) int {
		if o.lo < lo {
			return -1
		}
		return 1
	})
	h.pieces = slices.Insert(kept, i, p)
	return gone
}

// at is the piece that holds a byte, nil if none does.
func (h *holding) at(b int64) *piece {
	i, found := slices.BinarySearchFunc(h.pieces, b, func(o *piece, b int64) int {
		switch {
		case b < o.lo:
			return 1
		case b >= o.hi:
			return -1
		}
		return 0
	})
	if !found {
		return nil
	}
	return h.pieces[i]
}

// reads holds an operand against the value that it stands for.
func (c *checker) reads(o prog.Operand, v ir.Value, step int) error {
	shape, ok := ir.StaticShape(v.Type().Shape)
	if !ok || o.DType != v.DType() || !slices.Equal(o.Dims, shape) {
		return fmt.Errorf("%s, the node reads %s", o, v.Type())
	}
	if o.Count() == 0 {
		return nil
	}
	at := place{o.Slot, o.Index}
	if o.Slot == prog.Const && c.memory[at] == nil {
		if err := c.constant(o.Index, v); err != nil {
			return err
		}
	}
	h := c.memory[at]
	if h == nil {
		return fmt.Errorf("%s holds nothing yet, expected %s", o, v)
	}
	ids, err := c.idsOf(v)
	if err != nil {
		return err
	}
	if ids == nil && o.IsContiguous() { // the usual case: one piece, in order
		lo, hi := extent(o)
		if p := h.at(lo); p != nil && p.ids == nil && p.lo == lo && p.hi == hi && p.first == c.first(v) {
			c.last[p] = step
			return nil
		}
	}
	return c.elementwise(o, v, h, ids, step)
}

// constant says that a constant holds the leaf that v is, or is a view of.
func (c *checker) constant(index int, v ir.Value) error {
	for isView(v) {
		v = v.Node().In[0]
	}
	if t := constantOf(v.Node()); t == nil || index >= len(c.p.consts.list) || c.p.consts.list[index] != t {
		return fmt.Errorf("constant %d is not the tensor of %s", index, v)
	}
	c.holds(place{prog.Const, index}, v)
	return nil
}

// elementwise holds every element of an operand against its id.
func (c *checker) elementwise(o prog.Operand, v ir.Value, h *holding, ids *ir.Tensor, step int) error {
	first := int64(0)
	if ids == nil {
		first = c.first(v)
	}
	size := int64(o.DType.Size())
	var p *piece
	for i, at := range o.Places(o.Offset) {
		want := first + i
		if ids != nil {
			want = ids.Int(int(i))
		}
		if p == nil || at < p.lo || at >= p.hi {
			if p = h.at(at); p == nil {
				return fmt.Errorf("element %d of %s lies at byte %d, which holds nothing", i, v, at)
			}
			c.last[p] = step
		}
		if p.size != size || (at-p.lo)%size != 0 || p.id((at-p.lo)/size) != want {
			return fmt.Errorf("element %d of %s lies at byte %d of %s %d, which holds something else, written by step %d", i, v, at, o.Slot, o.Index, p.step)
		}
	}
	return nil
}

// freed lists for each step what nothing reads after it, and nothing has overwritten by then.
func (c *checker) freed() [][]Range {
	list := make([][]Range, len(c.p.Steps))
	if h := c.memory[place{prog.Arena, 0}]; h != nil {
		for _, p := range h.pieces {
			p.gone = len(list)
			c.dead = append(c.dead, p)
		}
	}
	for _, p := range c.dead {
		if last := c.last[p]; last < p.gone && last < len(list) {
			list[last] = append(list[last], Range{p.lo, p.hi})
		}
	}
	return list
}
