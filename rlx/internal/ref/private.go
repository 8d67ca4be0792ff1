package ref

import (
	"fmt"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// privateProgram behaves like a device with memory of its own: the arena and copies of the inputs and outputs are out of the host's reach,
// and all of it is NaN until something is carried there.
type privateProgram struct {
	program
	stretches map[int]crossing // by first command
}

// crossing lists the bindings that are copied around a stretch.
type crossing struct {
	inputs  []int // that it is the first to read
	staged  []int // outputs that the host wrote, and that it is the first to read
	outputs []int // that it writes
}

func newPrivate(p program) *privateProgram {
	d := &privateProgram{program: p, stretches: map[int]crossing{}}
	copied := map[prog.Slot][]bool{prog.Input: make([]bool, len(p.p.Inputs)), prog.Output: make([]bool, len(p.p.Outputs))}
	for i := 0; i < len(p.p.Commands); {
		first, x := i, crossing{}
		for ; i < len(p.p.Commands) && !p.p.Commands[i].Staged; i++ {
			x.add(&p.p.Commands[i], copied)
		}
		d.stretches[first] = x
		i++
	}
	return d
}

func (x *crossing) add(c *prog.Command, copied map[prog.Slot][]bool) {
	for _, o := range c.In {
		if o.Absent || o.Slot != prog.Input && o.Slot != prog.Output || copied[o.Slot][o.Index] {
			continue
		}
		copied[o.Slot][o.Index] = true
		if o.Slot == prog.Input {
			x.inputs = append(x.inputs, o.Index)
		} else {
			x.staged = append(x.staged, o.Index)
		}
	}
	for _, o := range c.Out {
		if o.Slot == prog.Output && !slices.Contains(x.outputs, o.Index) {
			copied[o.Slot][o.Index] = true
			x.outputs = append(x.outputs, o.Index)
		}
	}
}

// privateArena keeps its memory to itself. Its Reset begins a run.
type privateArena struct {
	name            string
	mem             []byte
	inputs, outputs [][]byte
	cancel          *backend.HostArena
}

func (p *privateProgram) NewArena() (backend.Arena, error) {
	a := &privateArena{name: p.name, cancel: backend.NewHostArena(nil)}
	var err error
	alloc := func(n int64) []byte {
		mem, e := ir.Alloc(n)
		if e != nil {
			err = &backend.Error{Backend: p.name, Code: backend.NoMemory, Command: -1, Text: e.Error()}
		}
		return mem
	}
	a.mem = alloc(p.p.ArenaBytes)
	for _, t := range p.p.Inputs {
		n, _ := t.Bytes()
		a.inputs = append(a.inputs, alloc(n))
	}
	for _, t := range p.p.Outputs {
		n, _ := t.Bytes()
		a.outputs = append(a.outputs, alloc(n))
	}
	if err != nil {
		return nil, err
	}
	a.Reset()
	return a, nil
}

func (a *privateArena) Bytes() []byte          { return nil }
func (a *privateArena) Cancel() backend.Cancel { return a }
func (a *privateArena) Close() error           { return nil }
func (a *privateArena) Set()                   { a.cancel.Set() }
func (a *privateArena) IsSet() bool            { return a.cancel.IsSet() }

// Reset forgets what earlier runs left, so that a missing copy shows.
func (a *privateArena) Reset() {
	a.cancel.Reset()
	for _, group := range [][][]byte{{a.mem}, a.inputs, a.outputs} {
		for _, m := range group {
			for i := range m {
				m[i] = 0xFF
			}
		}
	}
}

func (a *privateArena) Write(regions []backend.Region) error {
	return a.each(regions, func(mem, host []byte) { copy(mem, host) })
}

func (a *privateArena) Read(regions []backend.Region) error {
	return a.each(regions, func(mem, host []byte) { copy(host, mem) })
}

func (a *privateArena) each(regions []backend.Region, do func(mem, host []byte)) error {
	for _, r := range regions {
		if n := int64(len(r.Host)); r.Offset < 0 || r.Offset > int64(len(a.mem))-n {
			return &backend.Error{Backend: a.name, Code: backend.BadArgument, Command: -1, Text: fmt.Sprintf("%d bytes at %d lie outside an arena of %d", n, r.Offset, len(a.mem))}
		}
		do(a.mem[r.Offset:], r.Host)
	}
	return nil
}

func (p *privateProgram) Run(args *backend.RunArgs) error {
	a, ok := args.Arena.(*privateArena)
	if !ok {
		return &backend.Error{Backend: p.name, Code: backend.BadArgument, Command: -1, Text: "run: the arena is missing or of another program"}
	}
	slots := map[prog.Slot][][]byte{prog.Arena: {a.mem}, prog.Input: args.Inputs, prog.Output: args.Outputs, prog.Const: p.consts, prog.State: args.States}
	if err := p.check(slots, args); err != nil {
		return err
	}
	x := p.stretches[args.First]
	for _, i := range x.inputs {
		copy(a.inputs[i], args.Inputs[i])
	}
	for _, i := range x.staged {
		copy(a.outputs[i], args.Outputs[i])
	}
	slots[prog.Input], slots[prog.Output] = a.inputs, a.outputs
	if err := p.stretch(slots, args); err != nil {
		return err
	}
	for _, i := range x.outputs {
		copy(args.Outputs[i], a.outputs[i])
	}
	return nil
}
