// Package prog holds the command words: the one form in which a planned program reaches a backend. The layout is described in
// cgo/native/rlx.h; this package encodes, decodes, validates and prints it.
package prog

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Slot says whose memory an operand lives in.
type Slot uint8

// The slots; numbers as in rlx.h.
const (
	Arena Slot = iota
	Input
	Output
	Const
	State
	numSlots
)

var slotNames = [numSlots]string{"arena", "input", "output", "const", "state"}

func (s Slot) String() string {
	if s >= numSlots {
		return fmt.Sprintf("slot(%d)", uint8(s))
	}
	return slotNames[s]
}

// Type is a dtype with static dims.
type Type struct {
	DType ir.DType
	Dims  []int64
}

// Bytes is the size of a contiguous tensor of the type.
func (t Type) Bytes() (int64, error) { return ir.ByteSize(t.DType, t.Dims) }

// Operand is a result or an operand of a command. Strides count elements; Offset is the byte of the element with all indices 0.
type Operand struct {
	Absent  bool
	DType   ir.DType
	Dims    []int64
	Strides []int64
	Slot    Slot
	Index   int
	Offset  int64
}

// Command is one op.
type Command struct {
	Row    *ir.Row
	Out    []Operand
	In     []Operand
	Attrs  any
	Bodies []*Program // what the sub-graphs among the attributes became, in row order
	Staged bool       // the host runs it, between runs of the others
}

// Program is what the words say. The constants of a body, the program of a sub-graph, are those of the program around it, and its arena
// is the command's own memory.
type Program struct {
	ArenaBytes int64
	Inputs     []Type
	Outputs    []Type
	Consts     []Type
	States     []Type
	Commands   []Command
}

// Contiguous returns the row-major strides of dims.
func Contiguous(dims []int64) []int64 {
	s := make([]int64, len(dims))
	n := int64(1)
	for i := len(dims) - 1; i >= 0; i-- {
		s[i] = n
		n *= max(dims[i], 1)
	}
	return s
}

// IsContiguous says whether the elements of o lie row-major without gaps; strides of dims of length 1 do not matter.
func (o Operand) IsContiguous() bool {
	if slices.Contains(o.Dims, 0) {
		return true
	}
	n := int64(1)
	for i := len(o.Dims) - 1; i >= 0; i-- {
		if o.Dims[i] != 1 && o.Strides[i] != n {
			return false
		}
		n *= o.Dims[i]
	}
	return true
}

// Count is the number of elements.
func (o Operand) Count() int64 {
	n := int64(1)
	for _, d := range o.Dims {
		n *= d
	}
	return n
}

// Places gives the number of each element, in row-major order, with its place: at plus what the strides say, in bytes.
func (o Operand) Places(at int64) iter.Seq2[int64, int64] {
	return func(yield func(i, at int64) bool) {
		size, n := int64(o.DType.Size()), o.Count()
		idx := make([]int64, len(o.Dims))
		for i := int64(0); i < n && yield(i, at); i++ {
			for d := len(idx) - 1; d >= 0; d-- {
				idx[d]++
				at += o.Strides[d] * size
				if idx[d] < o.Dims[d] {
					break
				}
				at -= idx[d] * o.Strides[d] * size
				idx[d] = 0
			}
		}
	}
}

// extent returns the first and one past the last byte that o touches; ok is false when they do not fit int64.
func (o Operand) extent() (lo, hi int64, ok bool) {
	size := float64(o.DType.Size())
	flo, fhi := float64(o.Offset), float64(o.Offset)+size
	lo, hi = o.Offset, o.Offset+int64(o.DType.Size())
	for i, d := range o.Dims {
		if d == 0 {
			return o.Offset, o.Offset, true
		}
		step := (d - 1) * o.Strides[i] * int64(o.DType.Size())
		fstep := float64(d-1) * float64(o.Strides[i]) * size
		if fstep < 0 {
			lo, flo = lo+step, flo+fstep
		} else {
			hi, fhi = hi+step, fhi+fstep
		}
	}
	return lo, hi, flo >= -math.MaxInt64/2 && fhi <= math.MaxInt64/2
}

// Validate checks every rule of the words: slots, extents, contiguous results, operand counts and dtypes of the rows.
func (p *Program) Validate() error {
	if _, err := ir.ByteSize(ir.U8, []int64{p.ArenaBytes}); err != nil {
		return fmt.Errorf("arena of %d bytes: %w", p.ArenaBytes, err)
	}
	slots := map[Slot][]Type{Input: p.Inputs, Output: p.Outputs, Const: p.Consts, State: p.States}
	for s, types := range slots {
		for i, t := range types {
			if _, err := t.Bytes(); err != nil {
				return fmt.Errorf("%s %d: %w", s, i, err)
			}
		}
	}
	return p.commands(slots, 0)
}

// maxDepth bounds how deep bodies nest.
const maxDepth = 32

func (p *Program) commands(slots map[Slot][]Type, depth int) error {
	for i, c := range p.Commands {
		if c.Row == nil {
			return fmt.Errorf("command %d has no op", i)
		}
		err := p.validate(c, slots)
		for k := 0; k < len(c.Bodies) && err == nil; k++ {
			if err = c.Bodies[k].body(slots[Const], depth+1); err != nil {
				err = fmt.Errorf("body %d: %w", k, err)
			}
		}
		if err != nil {
			return fmt.Errorf("command %d (%s): %w", i, c.Row.Name, err)
		}
	}
	return nil
}

// body is Validate for the program of a sub-graph.
func (p *Program) body(consts []Type, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("sub-graphs nest deeper than %d", maxDepth)
	}
	if len(p.Consts) != 0 || len(p.States) != 0 {
		return fmt.Errorf("%d constants and %d states of its own, expected none", len(p.Consts), len(p.States))
	}
	if _, err := ir.ByteSize(ir.U8, []int64{p.ArenaBytes}); err != nil {
		return fmt.Errorf("arena of %d bytes: %w", p.ArenaBytes, err)
	}
	slots := map[Slot][]Type{Input: p.Inputs, Output: p.Outputs, Const: consts}
	for _, s := range []Slot{Input, Output} {
		for i, t := range slots[s] {
			if _, err := t.Bytes(); err != nil {
				return fmt.Errorf("%s %d: %w", s, i, err)
			}
		}
	}
	for i, c := range p.Commands {
		if c.Staged {
			return fmt.Errorf("command %d is staged, which bodies cannot hold", i)
		}
	}
	return p.commands(slots, depth)
}

func (p *Program) validate(c Command, slots map[Slot][]Type) error {
	if c.Row.Has(ir.Leaf) {
		return fmt.Errorf("a leaf is not a command")
	}
	if len(c.Out) > math.MaxUint16 || len(c.In) > math.MaxUint16 {
		return fmt.Errorf("%d results and %d operands, expected at most %d", len(c.Out), len(c.In), math.MaxUint16)
	}
	for i, o := range c.Out {
		if o.Absent {
			return fmt.Errorf("result %d: absent", i)
		}
		if err := p.operand(o, slots); err != nil {
			return fmt.Errorf("result %d: %w", i, err)
		}
		if !o.IsContiguous() {
			return fmt.Errorf("result %d: expected contiguous", i)
		}
		if o.Slot == Input || o.Slot == Const {
			return fmt.Errorf("result %d: writes to %s %d", i, o.Slot, o.Index)
		}
	}
	for i, o := range c.In {
		if o.Absent {
			continue
		}
		if err := p.operand(o, slots); err != nil {
			return fmt.Errorf("operand %d: %w", i, err)
		}
	}
	return nil
}

func (p *Program) operand(o Operand, slots map[Slot][]Type) error {
	size := p.ArenaBytes
	if o.Slot == Arena && o.Index != 0 {
		return fmt.Errorf("arena %d, there is one", o.Index)
	}
	if len(o.Dims) > ir.MaxRank || len(o.Strides) != len(o.Dims) {
		return fmt.Errorf("rank %d with %d strides", len(o.Dims), len(o.Strides))
	}
	if _, err := ir.ByteSize(o.DType, o.Dims); err != nil {
		return err
	}
	if o.Slot != Arena {
		types := slots[o.Slot]
		if o.Index < 0 || o.Index >= len(types) {
			return fmt.Errorf("%s %d, there are %d", o.Slot, o.Index, len(types))
		}
		size, _ = types[o.Index].Bytes()
		if types[o.Index].DType != o.DType {
			return fmt.Errorf("%s %d has dtype %s, read as %s", o.Slot, o.Index, types[o.Index].DType, o.DType)
		}
	}
	lo, hi, ok := o.extent()
	if !ok || lo < 0 || hi > size {
		return fmt.Errorf("bytes %d to %d lie outside %s %d of %d bytes", lo, hi, o.Slot, o.Index, size)
	}
	if o.Offset%int64(o.DType.Size()) != 0 {
		return fmt.Errorf("offset %d is no multiple of %d", o.Offset, o.DType.Size())
	}
	return nil
}

// Stretch checks that count commands from first are what one run may take: all of those between two staged ones, or up to an end.
func (p *Program) Stretch(first, count int) error {
	n := len(p.Commands)
	if first < 0 || count < 0 || first > n || count > n-first {
		return fmt.Errorf("%d commands from %d, the program has %d", count, first, n)
	}
	end := first + count
	whole := (first == 0 || p.Commands[first-1].Staged) && (end == n || p.Commands[end].Staged)
	for i := first; i < end; i++ {
		whole = whole && !p.Commands[i].Staged
	}
	if !whole {
		return fmt.Errorf("commands %d to %d are not all of those between two staged ones", first, end)
	}
	return nil
}

// String prints the program with op names, so that dumps stay valid when rows are added.
func (p *Program) String() string {
	var b strings.Builder
	p.print(&b, "")
	return b.String()
}

func (p *Program) print(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%sarena %d\n", indent, p.ArenaBytes)
	for _, g := range []struct {
		s  Slot
		ts []Type
	}{{Input, p.Inputs}, {Output, p.Outputs}, {Const, p.Consts}, {State, p.States}} {
		for i, t := range g.ts {
			fmt.Fprintf(b, "%s%s %d: %s%v\n", indent, g.s, i, t.DType, t.Dims)
		}
	}
	for _, c := range p.Commands {
		outs, ins := make([]string, len(c.Out)), make([]string, len(c.In))
		for i, o := range c.Out {
			outs[i] = o.String()
		}
		for i, o := range c.In {
			ins[i] = o.String()
		}
		staged := ""
		if c.Staged {
			staged = "staged "
		}
		attrs := ""
		if len(c.Bodies) == 0 {
			attrs = c.Row.AttrText(c.Attrs)
		}
		fmt.Fprintf(b, "%s%s = %s%s(%s)%s\n", indent, strings.Join(outs, ", "), staged, c.Row.Name, strings.Join(ins, ", "), attrs)
		for i, body := range c.Bodies {
			fmt.Fprintf(b, "%s  body %d\n", indent, i)
			body.print(b, indent+"    ")
		}
	}
}

func (o Operand) String() string {
	if o.Absent {
		return "none"
	}
	s := fmt.Sprintf("%s%v@%s", o.DType, o.Dims, o.Slot)
	if o.Slot != Arena {
		s += fmt.Sprint(o.Index)
	}
	if o.Offset != 0 || o.Slot == Arena {
		s += fmt.Sprintf("+%d", o.Offset)
	}
	if !o.IsContiguous() {
		s += fmt.Sprintf("/%v", o.Strides)
	}
	return s
}
