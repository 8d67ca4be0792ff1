// Package exec holds loaded programs and the runners that execute them: stretches of native commands, and staged ones between them.
package exec

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Target is an open device with what it can do.
type Target struct {
	Backend backend.Backend
	Device  backend.Device
	Support *pass.Support
	Host    *Host // runs staged commands that it has kernels for; nil: package ref runs them all
	Check   bool  // holds every plan against its graph, and the words against the plan
	Poison  bool  // the host's memory for staged commands holds NaN where nothing is carried to it: for tests
}

// Close closes the devices.
func (t *Target) Close() error {
	return errors.Join(t.Host.Close(), t.Device.Close())
}

// Program is one loaded specialisation: static shapes, immutable, safe for concurrent runs.
type Program struct {
	Inputs, Outputs []prog.Type
	Segments        []plan.Segment
	Commands        int

	full    *plan.Plan // nil once it is packed
	packed  *packedPlan
	target  *Target
	weights backend.Weights // this program's own constants, nil if it has none
	native  backend.Program // nil if all runs on the host
	host    *hostProgram    // nil if nothing runs on another backend
	staged  bool            // some segment runs on the host
	reaches bool            // a staged command works on the arena
	brief   bool            // runs are over before a cancelled context could matter
	consts  [][]byte        // by number, of those that package ref reads: staged commands have them in Go
	arena   int64           // bytes, as planned
	own     int64           // bytes of this program's own constants

	base backend.Weights // of the constants that all specialisations share
	keep int             // idle runners, at most

	mu     sync.Mutex
	idle   []*Runner
	out    int // runners in use
	closed bool

	dividing sync.Mutex
	divided  *Program // the same commands, one by one; nil until asked for
}

// Load plans the legal graph g and loads it. weights holds the constants of base.
func Load(g *ir.Graph, t *Target, base *plan.Constants, weights backend.Weights) (*Program, error) {
	pl, err := plan.Build(g, t.Support, base)
	if err != nil {
		return nil, err
	}
	if t.Check {
		if _, err := checkPlan(pl); err != nil {
			return nil, err
		}
	}
	return loadPlan(pl, t, weights)
}

func loadPlan(pl *plan.Plan, t *Target, weights backend.Weights) (*Program, error) {
	var err error
	p := &Program{Inputs: pl.Program.Inputs, Outputs: pl.Program.Outputs, Segments: pl.Segments, Commands: len(pl.Steps), full: pl, target: t, base: weights,
		reaches: touchesArena(pl), arena: pl.Program.ArenaBytes, keep: max(4, 2*runtime.GOMAXPROCS(0))}
	for _, c := range pl.Consts[pl.Base:] {
		p.own += int64(c.Size())
	}
	native := false
	for _, s := range pl.Segments {
		p.staged, native = p.staged || s.Host, native || !s.Host
	}
	p.holdConstants()
	if native {
		err = p.loadNative(weights)
	}
	if err == nil && p.staged && t.Host != nil {
		p.host, err = t.Host.load(pl)
	}
	if err != nil {
		return nil, errors.Join(p.at(err), p.Close())
	}
	p.brief = p.isBrief()
	return p, nil
}

// holdConstants keeps the constants that staged commands read.
func (p *Program) holdConstants() {
	if !p.staged {
		return
	}
	var words prog.Program
	for _, s := range p.full.Steps {
		if s.Command.Staged {
			words.Commands = append(words.Commands, s.Command)
		}
	}
	p.consts = make([][]byte, len(p.full.Consts))
	for _, i := range constantsOf(&words) {
		p.consts[i] = p.full.Consts[i].Bytes()
	}
}

// Settle lets go of what this program's own constants take beside the forms that its kernels made of them. Nobody else has seen them yet.
func (p *Program) Settle() error {
	_, err := settle(p.weights, p.full.Consts[p.full.Base:], func(*ir.Tensor) bool { return true })
	return err
}

// Settle lets go of what tensors that ir.Own made take, where w, which holds their bytes in this order, can do without it. done tells of which it
// can, the small ones too; it is empty where w can tell of none.
func Settle(w backend.Weights, tensors []*ir.Tensor) (done []bool, err error) {
	return settle(w, tensors, ir.Owned)
}

func settle(w backend.Weights, tensors []*ir.Tensor, may func(*ir.Tensor) bool) (done []bool, err error) {
	trimmer, ok := w.(backend.Trimmer)
	if !ok {
		return nil, nil
	}
	if done, err = trimmer.Trim(); err != nil {
		return nil, err
	}
	for i, ok := range done {
		if t := tensors[i]; ok && t.Size() >= ir.SmallTensor && may(t) && !ir.Resting(t) {
			ir.Rest(t, func(to []byte) error { return trimmer.Read(i, to) })
		}
	}
	return done, nil
}

// loadNative loads all commands on the device, which passes over the staged ones.
func (p *Program) loadNative(weights backend.Weights) error {
	whole := p.full.Program
	for _, s := range p.full.Steps {
		whole.Commands = append(whole.Commands, s.Command)
	}
	words, err := prog.Encode(&whole)
	if err == nil && p.target.Check {
		err = checkWords(&whole, words)
	}
	if err != nil {
		return err
	}
	if own := p.full.Consts[p.full.Base:]; len(own) > 0 {
		if p.weights, err = p.target.Device.Weights(weights, bytesOf(own)); err != nil {
			return err
		}
		weights = p.weights
	}
	native, err := p.target.Device.Load(weights, words)
	if err == nil {
		p.native = native
	}
	return err
}

func bytesOf(tensors []*ir.Tensor) [][]byte {
	data := make([][]byte, len(tensors))
	for i, t := range tensors {
		data[i] = t.Within()
	}
	return data
}

// Error is a failed load or run, with the node whose command failed.
type Error struct {
	Node *ir.Node // nil if no command is to blame
	Err  error
}

func (e *Error) Error() string {
	if e.Node == nil {
		return e.Err.Error()
	}
	if e.Node.From.Op != "" {
		return fmt.Sprintf("%s: node %s: %v", e.Node.From.Op, e.Node.From.Name, e.Err)
	}
	return fmt.Sprintf("node %s: %v", e.Node.Name, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// at turns a backend's error, whose command is a step, into one that names the node.
func (p *Program) at(err error) error {
	var be *backend.Error
	if errors.As(err, &be) && be.Command >= 0 && be.Command < p.Commands {
		if pl, perr := p.Plan(); perr == nil {
			return &Error{pl.Steps[be.Command].Node, err}
		}
	}
	return &Error{nil, err}
}

// ArenaBytes is the memory that each runner holds on the device.
func (p *Program) ArenaBytes() int64 {
	if p.native == nil {
		return p.arena
	}
	return p.native.ArenaBytes()
}

// RunsOn names the backend that runs a step, which has that place.
func (p *Program) RunsOn(step int, place plan.Place) string {
	switch {
	case place != plan.Host:
		return p.target.Backend.Name()
	case p.host != nil && p.host.runs(step):
		return p.target.Host.name
	}
	return "ref"
}

// Carries says whether staged commands work on memory of their own, so that the transfers of the plan happen.
func (p *Program) Carries() (bool, error) {
	if !p.staged || p.native == nil {
		return false, nil
	}
	r, err := p.Runner()
	if err != nil {
		return false, err
	}
	defer p.Release(r)
	return r.carries(), nil
}

// Runner returns an idle runner or makes one.
func (p *Program) Runner() (*Runner, error) {
	p.mu.Lock()
	p.out++
	if n := len(p.idle); n > 0 {
		r := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return r, nil
	}
	p.mu.Unlock()
	r, err := newRunner(p)
	if err != nil {
		p.returned(nil)
		return nil, err
	}
	return r, nil
}

// Release gives a runner back.
func (p *Program) Release(r *Runner) {
	clear(r.args.Inputs)
	clear(r.args.Outputs)
	p.returned(r)
}

// returned counts a runner that came back, or that could not be made, and frees a closed program with the last. Runners beyond those that
// can compute at a time are not kept: a crowd of runs leaves no more memory behind than a few.
func (p *Program) returned(r *Runner) {
	p.mu.Lock()
	kept := r != nil && (len(p.idle) < p.keep || p.closed)
	if kept {
		p.idle = append(p.idle, r)
		p.out--
	}
	free := kept && p.closed && p.out == 0
	p.mu.Unlock()
	if !kept {
		free = p.drop(r)
	}
	if free {
		p.free()
	}
}

// drop closes a runner while it counts as in use, so that the program outlives it; true if the program is to be freed.
func (p *Program) drop(r *Runner) bool {
	if r != nil {
		r.close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out--
	return p.closed && p.out == 0
}

// Close frees the program once no run uses it: now, or when the last runner comes back.
func (p *Program) Close() error {
	p.mu.Lock()
	free := !p.closed && p.out == 0
	p.closed = true
	p.mu.Unlock()
	if !free {
		return nil
	}
	return p.free()
}

func (p *Program) free() error {
	var errs []error
	if p.divided != nil {
		errs = append(errs, p.divided.Close())
	}
	for _, r := range p.idle {
		errs = append(errs, r.close())
	}
	p.idle = nil
	if p.native != nil {
		errs = append(errs, p.native.Close())
	}
	if p.host != nil {
		errs = append(errs, p.host.close())
	}
	if p.weights != nil {
		errs = append(errs, p.weights.Close())
	}
	return errors.Join(errs...)
}
