package exec

import (
	"errors"
	"slices"
	"sync"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Host is the device of a backend that runs on the host: staged commands of other devices' programs go to its kernels. It holds the
// constants that they read, once for all specialisations of a program.
type Host struct {
	name    string
	device  backend.Device
	support *pass.Support
	owner   bool // closes the device

	mu      sync.Mutex
	chain   []backend.Weights // each the parent of the next
	tensors []*ir.Tensor      // by number in the chain
	index   map[*ir.Tensor]int
}

// NewHost returns a Host over an open device.
func NewHost(d backend.Device, s *pass.Support) *Host {
	return &Host{name: s.Backend, device: d, support: s, owner: true, index: map[*ir.Tensor]int{}}
}

// Name is that of the backend.
func (h *Host) Name() string { return h.name }

// NativeBytes is the memory outside Go that the backend's library holds.
func (h *Host) NativeBytes() int64 { return h.device.NativeBytes() }

// Fork is the same device with constants of its own, for programs that live shortly; nil of nil.
func (h *Host) Fork() *Host {
	if h == nil {
		return nil
	}
	return &Host{name: h.name, device: h.device, support: h.support, index: map[*ir.Tensor]int{}}
}

// Close frees the constants, and closes the device unless h is a fork.
func (h *Host) Close() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for i := len(h.chain) - 1; i >= 0; i-- {
		errs = append(errs, h.chain[i].Close())
	}
	h.chain = nil
	if h.owner {
		errs = append(errs, h.device.Close())
	}
	return errors.Join(errs...)
}

// hold makes sure that the chain has the tensors, and returns its end and all that it has.
func (h *Host) hold(need []*ir.Tensor) (backend.Weights, []*ir.Tensor, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var tip backend.Weights
	if n := len(h.chain); n > 0 {
		tip = h.chain[n-1]
	}
	var data [][]byte
	var fresh []*ir.Tensor
	for _, t := range need {
		if _, ok := h.index[t]; !ok && !slices.Contains(fresh, t) {
			data, fresh = append(data, t.Bytes()), append(fresh, t)
		}
	}
	if len(data) > 0 {
		w, err := h.device.Weights(tip, data)
		if err != nil {
			return nil, nil, err
		}
		for _, t := range fresh {
			h.index[t] = len(h.tensors)
			h.tensors = append(h.tensors, t)
		}
		h.chain, tip = append(h.chain, w), w
	}
	return tip, h.tensors[:len(h.tensors):len(h.tensors)], nil
}

// hostProgram is the staged part of a plan, loaded on a Host.
type hostProgram struct {
	program backend.Program
	weights backend.Weights // this program's own constants, nil if it has none
	command []int           // by step: the command of program, -1 where it does not run the step
	steps   []int           // by command
}

// runs says whether the backend runs a step; package ref runs the other staged ones.
func (h *hostProgram) runs(step int) bool { return h.command[step] >= 0 }

func (h *hostProgram) close() error {
	var errs []error
	if h.program != nil {
		errs = append(errs, h.program.Close())
	}
	if h.weights != nil {
		errs = append(errs, h.weights.Close())
	}
	return errors.Join(errs...)
}

// inSteps makes the command of an error a step.
func (h *hostProgram) inSteps(err error) error {
	var be *backend.Error
	if errors.As(err, &be) && be.Command >= 0 && be.Command < len(h.steps) {
		moved := *be
		moved.Command = h.steps[be.Command]
		return &moved
	}
	return err
}

// load loads the host steps of pl that the host's backend has kernels for; nil if it has none. In the words these are the native
// commands, other host steps are staged, and a staged copy of nothing stands for each native segment.
func (h *Host) load(pl *plan.Plan) (*hostProgram, error) {
	p := &hostProgram{command: make([]int, len(pl.Steps))}
	words := pl.Program
	words.Consts = nil
	taken := false
	for _, s := range pl.Segments {
		for i := s.First; i < s.End; i++ {
			p.command[i] = -1
			if !s.Host {
				continue
			}
			c := pl.Steps[i].Command
			if c.Staged = !h.takes(&c); !c.Staged {
				taken, p.command[i] = true, len(words.Commands)
			}
			words.Commands, p.steps = append(words.Commands, c), append(p.steps, i)
		}
		if !s.Host {
			words.Commands, p.steps = append(words.Commands, plan.Nothing()), append(p.steps, s.First)
		}
	}
	if !taken {
		return nil, nil
	}
	if err := p.load(h, pl, &words); err != nil {
		return nil, errors.Join(p.inSteps(err), p.close())
	}
	return p, nil
}

// takes says whether the backend has a kernel for the command with these strides.
func (h *Host) takes(c *prog.Command) bool {
	d := c.Out[0].DType
	if len(c.In) > 0 && !c.In[0].Absent {
		d = c.In[0].DType
	}
	if !h.support.NativeRow(c.Row, d) {
		return false
	}
	for _, o := range c.In {
		if !o.Absent && !o.IsContiguous() && !h.support.StridedRow(c.Row, d) {
			return false
		}
	}
	return true
}

// load brings the constants to the backend and the commands with them: first those of all specialisations, then pl's own.
func (p *hostProgram) load(h *Host, pl *plan.Plan, words *prog.Program) error {
	var shared, own []*ir.Tensor
	for _, i := range constantsOf(words) {
		if i < pl.Base {
			shared = append(shared, pl.Consts[i])
		} else {
			own = append(own, pl.Consts[i])
		}
	}
	weights, held, err := h.hold(shared)
	if err != nil {
		return err
	}
	if len(own) > 0 {
		if p.weights, err = h.device.Weights(weights, bytesOf(own)); err != nil {
			return err
		}
		weights = p.weights
	}
	renumber(words, pl.Consts, append(held, own...))
	encoded, err := prog.Encode(words)
	if err != nil {
		return err
	}
	program, err := h.device.Load(weights, encoded)
	if err == nil {
		p.program = program
	}
	return err
}

// constantsOf lists the constants that the commands read, each once.
func constantsOf(words *prog.Program) []int {
	var list []int
	seen := map[int]bool{}
	var visit func([]prog.Command)
	visit = func(commands []prog.Command) {
		for _, c := range commands {
			for _, o := range c.In {
				if !o.Absent && o.Slot == prog.Const && !seen[o.Index] {
					seen[o.Index] = true
					list = append(list, o.Index)
				}
			}
			for _, b := range c.Bodies {
				visit(b.Commands)
			}
		}
	}
	visit(words.Commands)
	return list
}

// renumber makes the commands, which read constants of from by number, read those of to. The operands are copied: they are the plan's.
func renumber(words *prog.Program, from, to []*ir.Tensor) {
	number := map[*ir.Tensor]int{}
	for i, t := range to {
		number[t] = i
		words.Consts = append(words.Consts, prog.Type{DType: t.DType(), Dims: t.Shape()})
	}
	words.Commands = renumbered(words.Commands, func(i int) int { return number[from[i]] })
}

func renumbered(commands []prog.Command, number func(int) int) []prog.Command {
	commands = slices.Clone(commands)
	for k := range commands {
		c := &commands[k]
		c.In = slices.Clone(c.In)
		for i := range c.In {
			if o := &c.In[i]; !o.Absent && o.Slot == prog.Const {
				o.Index = number(o.Index)
			}
		}
		c.Bodies = slices.Clone(c.Bodies)
		for i, b := range c.Bodies {
			body := *b
			body.Commands = renumbered(b.Commands, number)
			c.Bodies[i] = &body
		}
	}
	return commands
}
