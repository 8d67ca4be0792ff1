package exec

import (
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Divided is the program once more, loaded so that its commands run one by one: step 2i is step i of p, and a command without effect that the
// caller runs stands behind each, because a stretch of native commands ends only before such a one. It is made when first asked for, and
// closed with p.
func (p *Program) Divided() (*Program, error) {
	p.dividing.Lock()
	defer p.dividing.Unlock()
	if p.divided == nil {
		pl, err := p.Plan()
		if err != nil {
			return nil, err
		}
		d, err := loadPlan(divide(pl), p.target, p.base)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		p.divided = d
		p.mu.Unlock()
	}
	return p.divided, nil
}

// divide gives every step of pl a segment of its own, and puts a separator behind it, which stands on the side of the device.
func divide(pl *plan.Plan) *plan.Plan {
	d := *pl
	d.Steps, d.Segments = nil, nil
	for _, s := range pl.Segments {
		for i := s.First; i < s.End; i++ {
			own := plan.Segment{First: 2 * i, End: 2*i + 1, Host: s.Host}
			if i == s.First {
				for _, t := range s.Carry {
					t.Step *= 2
					own.Carry = append(own.Carry, t)
				}
			}
			d.Segments = append(d.Segments, own, plan.Segment{First: 2*i + 1, End: 2*i + 2})
			d.Steps = append(d.Steps, pl.Steps[i], plan.Step{Command: plan.Nothing(), Node: pl.Steps[i].Node})
		}
	}
	return &d
}

// Operand is the memory that an operand or a result of a command lies in, as it is between two commands: mem[at:] begins with the element
// whose indices are all 0. onHost says that a staged command makes or reads it. On a device that the host cannot reach it is a copy.
func (r *Runner) Operand(o *prog.Operand, onHost bool) (mem []byte, at int64, err error) {
	switch o.Slot {
	case prog.Input:
		return r.args.Inputs[o.Index], o.Offset, nil
	case prog.Output:
		return r.args.Outputs[o.Index], o.Offset, nil
	case prog.Const:
		pl, err := r.p.Plan()
		if err != nil {
			return nil, 0, err
		}
		return pl.Consts[o.Index].Bytes(), o.Offset, nil
	case prog.State:
		return r.args.States[o.Index], o.Offset, nil
	}
	if onHost {
		return r.host.Arena.Bytes(), o.Offset, nil
	}
	if mem := r.args.Arena.Bytes(); mem != nil {
		return mem, o.Offset, nil
	}
	lo, hi := extent(o)
	mem, err = ir.Alloc(hi - lo)
	if err == nil && hi > lo {
		err = r.args.Arena.Read([]backend.Region{{Offset: lo, Host: mem}})
	}
	return mem, o.Offset - lo, err
}

// extent is the range of bytes of its slot that an operand touches.
func extent(o *prog.Operand) (lo, hi int64) {
	size := int64(o.DType.Size())
	lo, hi = o.Offset, o.Offset+size
	for k, d := range o.Dims {
		if d == 0 {
			return o.Offset, o.Offset
		}
		if step := (d - 1) * o.Strides[k] * size; step < 0 {
			lo += step
		} else {
			hi += step
		}
	}
	return lo, hi
}

// Memory is what a loaded program holds beside the weights that all specialisations share.
type Memory struct {
	Idle, Used  int   // arenas: waiting for a run, and in one
	Arena       int64 // bytes of each, of both sides
	NativeArena int64 // of these, outside Go's heap
	Constants   int64 // bytes of this program's own
	Copied      int64 // of these, copied by libraries
	Loaded      int64 // bytes of the commands, in libraries
}

// Memory counts what the program holds now, and what its divided form does.
func (p *Program) Memory() []Memory {
	p.mu.Lock()
	m := Memory{Idle: len(p.idle), Used: p.out, Arena: p.ArenaBytes()}
	divided := p.divided
	p.mu.Unlock()
	m.Constants = p.own
	if p.native != nil && p.target.Device.NativeBytes() > 0 {
		m.NativeArena = m.Arena
	}
	m.Copied, m.Loaded = NativeBytes(p.weights), NativeBytes(p.native)
	if p.host != nil {
		a := p.host.program.ArenaBytes()
		m.Arena, m.NativeArena = m.Arena+a, m.NativeArena+a
		m.Copied += NativeBytes(p.host.weights)
		m.Loaded += NativeBytes(p.host.program)
	}
	if divided == nil {
		return []Memory{m}
	}
	return append(divided.Memory(), m)
}

// NativeBytes is the memory of a library that x holds, where x can tell.
func NativeBytes(x any) int64 {
	if n, ok := x.(interface{ NativeBytes() int64 }); ok {
		return n.NativeBytes()
	}
	return 0
}
