package prog

import (
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

const (
	magic   = 0x50584c52 // "RLXP"
	version = 1
	absent  = 0xffffffff
	staged  = 0x80000000 // in the op word of a command
)

// Encode writes the words of p.
func Encode(p *Program) ([]uint32, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return encode(p)
}

func encode(p *Program) ([]uint32, error) {
	hash := ir.TableHash()
	w := []uint32{magic, version, uint32(hash), uint32(hash >> 32), uint32(p.ArenaBytes), uint32(p.ArenaBytes >> 32),
		uint32(len(p.Inputs)), uint32(len(p.Outputs)), uint32(len(p.Consts)), uint32(len(p.States)), uint32(len(p.Commands))}
	for _, ts := range [][]Type{p.Inputs, p.Outputs, p.Consts, p.States} {
		for _, t := range ts {
			w = append(w, uint32(t.DType)|uint32(len(t.Dims))<<8)
			w = put(w, t.Dims)
		}
	}
	for i, c := range p.Commands {
		start := len(w)
		op := uint32(c.Row.Num())
		if c.Staged {
			op |= staged
		}
		w = append(w, op, 0, uint32(len(c.Out))|uint32(len(c.In))<<16)
		for _, o := range c.Out {
			w = o.encode(w)
		}
		for _, o := range c.In {
			w = o.encode(w)
		}
		bodies := make([][]uint32, len(c.Bodies))
		var err error
		for k, b := range c.Bodies {
			if bodies[k], err = encode(b); err != nil {
				return nil, fmt.Errorf("command %d: body %d: %w", i, k, err)
			}
		}
		if w, err = c.Row.AppendAttrs(w, c.Attrs, bodies...); err != nil {
			return nil, fmt.Errorf("command %d: %w", i, err)
		}
		w[start+1] = uint32(len(w) - start)
	}
	return w, nil
}

func put(w []uint32, v []int64) []uint32 {
	for _, x := range v {
		w = append(w, uint32(x), uint32(uint64(x)>>32))
	}
	return w
}

func (o Operand) encode(w []uint32) []uint32 {
	if o.Absent {
		return append(w, absent)
	}
	w = append(w, uint32(o.DType)|uint32(len(o.Dims))<<8|uint32(o.Slot)<<16, uint32(o.Index), uint32(o.Offset), uint32(uint64(o.Offset)>>32))
	return put(put(w, o.Dims), o.Strides)
}

// WordsError says where words break a rule.
type WordsError struct {
	Word int // index of the word
	Text string
}

func (e *WordsError) Error() string { return fmt.Sprintf("words: at word %d: %s", e.Word, e.Text) }

type reader struct {
	w    []uint32
	at   int
	fail string

	depth int // of bodies around the words
}

func (r *reader) u32() uint32 {
	if r.at >= len(r.w) {
		if r.fail == "" {
			r.fail = "truncated"
		}
		return 0
	}
	r.at++
	return r.w[r.at-1]
}

func (r *reader) i64() int64 { lo := uint64(r.u32()); return int64(lo | uint64(r.u32())<<32) }

func (r *reader) dims(rank uint32) []int64 {
	if rank > ir.MaxRank {
		r.fail = fmt.Sprintf("rank %d, expected at most %d", rank, ir.MaxRank)
		return nil
	}
	d := make([]int64, rank)
	for i := range d {
		d[i] = r.i64()
	}
	return d
}

// Decode reads and validates words, and checks that every command's operands fit its row. Hostile words give an error.
func Decode(w []uint32) (*Program, error) {
	p, err := decodeAt(w, 0)
	if err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, &WordsError{len(w), err.Error()}
	}
	return p, nil
}

// decodeAt reads the words of a program, or of a body with so many programs around it.
func decodeAt(w []uint32, depth int) (*Program, error) {
	if depth > maxDepth {
		return nil, &WordsError{0, fmt.Sprintf("sub-graphs nest deeper than %d", maxDepth)}
	}
	r := &reader{w: w, depth: depth}
	p, err := decode(r)
	if r.fail != "" {
		return nil, &WordsError{r.at, r.fail}
	}
	if err != nil {
		return nil, &WordsError{r.at, err.Error()}
	}
	if r.at != len(w) {
		return nil, &WordsError{r.at, fmt.Sprintf("%d words follow the last command", len(w)-r.at)}
	}
	return p, nil
}

func decode(r *reader) (*Program, error) {
	if m, v := r.u32(), r.u32(); m != magic || v != version {
		return nil, fmt.Errorf("magic %#x version %d, expected %#x version %d", m, v, magic, version)
	}
	if h := uint64(r.i64()); h != ir.TableHash() {
		return nil, fmt.Errorf("op table hash %#x, expected %#x", h, ir.TableHash())
	}
	p := &Program{ArenaBytes: r.i64()}
	var counts [5]uint32
	for i := range counts {
		if counts[i] = r.u32(); int64(counts[i]) > int64(len(r.w)) {
			return nil, fmt.Errorf("count %d in %d words", counts[i], len(r.w))
		}
	}
	for i, to := range []*[]Type{&p.Inputs, &p.Outputs, &p.Consts, &p.States} {
		for range counts[i] {
			head := r.u32()
			*to = append(*to, Type{ir.DType(head), r.dims(head >> 8)})
			if r.fail != "" {
				return nil, nil
			}
		}
	}
	for range counts[4] {
		c, err := command(r)
		if err != nil || r.fail != "" {
			return nil, err
		}
		p.Commands = append(p.Commands, c)
	}
	return p, nil
}

func command(r *reader) (Command, error) {
	start := r.at
	op, words, nums := r.u32(), r.u32(), r.u32()
	row, ok := ir.RowByNum(int(op &^ staged))
	if !ok {
		return Command{}, fmt.Errorf("op number %d is unknown", op&^staged)
	}
	if words < 3 || int64(start)+int64(words) > int64(len(r.w)) {
		return Command{}, fmt.Errorf("%s: %d words, but %d are left", row.Name, words, len(r.w)-start)
	}
	in := &reader{w: r.w[:start+int(words)], at: r.at}
	c := Command{Row: row, Staged: op&staged != 0}
	for n := nums & 0xffff; n > 0 && in.fail == ""; n-- {
		c.Out = append(c.Out, operand(in))
	}
	for n := nums >> 16; n > 0 && in.fail == ""; n-- {
		c.In = append(c.In, operand(in))
	}
	if r.at = in.at; in.fail != "" {
		r.fail = row.Name + ": " + in.fail
		return c, nil
	}
	attrs, rest, err := row.ReadAttrs(in.w[in.at:], func(words []uint32) (*ir.Graph, error) {
		body, err := decodeAt(words, r.depth+1)
		if err != nil {
			return nil, err
		}
		c.Bodies = append(c.Bodies, body)
		return body.face(), nil
	})
	if err != nil {
		return c, err
	}
	if len(rest) != 0 {
		return c, fmt.Errorf("%s: %d words follow the attributes", row.Name, len(rest))
	}
	c.Attrs, r.at = attrs, start+int(words)
	return c, c.check()
}

func operand(r *reader) Operand {
	head := r.u32()
	if head == absent {
		return Operand{Absent: true}
	}
	o := Operand{DType: ir.DType(head), Slot: Slot(head >> 16), Index: int(r.u32()), Offset: r.i64()}
	o.Dims = r.dims(head >> 8 & 0xff)
	o.Strides = r.dims(head >> 8 & 0xff)
	if head>>16 >= uint32(numSlots) && r.fail == "" {
		r.fail = fmt.Sprintf("slot %d", head>>16)
	}
	if o.Slot == Arena { // there is one, whatever the words say
		o.Index = 0
	}
	return o
}

// face is a graph with the inputs and outputs of the body, for inference to look at.
func (p *Program) face() *ir.Graph {
	types := func(list []Type) []ir.Type {
		out := make([]ir.Type, len(list))
		for i, t := range list {
			out[i] = ir.Type{DType: t.DType, Shape: ir.Dims(t.Dims...)}
		}
		return out
	}
	return ir.Face(types(p.Inputs), types(p.Outputs))
}

// check infers the command's results from its operands, as a graph would, and compares.
func (c Command) check() error {
	g := ir.NewGraph("")
	in := make([]ir.Value, len(c.In))
	for i, o := range c.In {
		if !o.Absent {
			in[i] = g.Input(fmt.Sprint(i), o.DType, ir.Dims(o.Dims...))
		}
	}
	if err := g.Err(); err != nil {
		return err
	}
	n, err := g.Add(c.Row, "", c.Attrs, in...)
	if err != nil {
		return err
	}
	if len(n.Types) != len(c.Out) {
		return fmt.Errorf("%s: %d results, expected %d", c.Row.Name, len(c.Out), len(n.Types))
	}
	for i, o := range c.Out {
		if want := (ir.Type{DType: o.DType, Shape: ir.Dims(o.Dims...)}); !n.Types[i].Equal(want) {
			return fmt.Errorf("%s: result %d is %s, expected %s", c.Row.Name, i, want, n.Types[i])
		}
	}
	return nil
}
