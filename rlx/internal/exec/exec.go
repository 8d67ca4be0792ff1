// Package exec holds loaded programs: a plan cut into native and host segments, and the runners that execute it.
package exec

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Target is an open device with what its backend can do.
type Target struct {
	Backend backend.Backend
	Device  backend.Device
	Support *pass.Support
}

// Program is one loaded specialisation: static shapes, immutable, safe for concurrent runs.
type Program struct {
	Plan     *plan.Plan
	target   *Target
	weights  backend.Weights // this program's own constants, nil if it has none
	segments []segment
	arenaOf  backend.Program // the native segment with the largest arena, nil if all run on the host
	consts   [][]byte

	mu     sync.Mutex
	idle   []*Runner
	closed bool
}

// segment is a run of steps that execute in one place.
type segment struct {
	first, end int // steps
	native     backend.Program
}

// Load plans the legal graph g and loads it. weights holds the constants of base.
func Load(g *ir.Graph, t *Target, base *plan.Constants, weights backend.Weights) (*Program, error) {
	pl, err := plan.Build(g, t.Support, base)
	if err != nil {
		return nil, err
	}
	p := &Program{Plan: pl, target: t}
	for _, c := range pl.Consts {
		p.consts = append(p.consts, c.Bytes())
	}
	if own := p.consts[pl.Base:]; len(own) > 0 {
		if p.weights, err = t.Device.Weights(weights, own); err != nil {
			return nil, err
		}
		weights = p.weights
	}
	if err := p.load(weights); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Program) load(weights backend.Weights) error {
	steps := p.Plan.Steps
	for first := 0; first < len(steps); {
		end := first + 1
		host := steps[first].Place == plan.Host
		for end < len(steps) && (steps[end].Place == plan.Host) == host {
			end++
		}
		s := segment{first: first, end: end}
		if !host {
			part := p.Plan.Program
			part.Commands = nil
			for _, st := range steps[first:end] {
				part.Commands = append(part.Commands, st.Command)
			}
			words, err := prog.Encode(&part)
			if err != nil {
				return err
			}
			if s.native, err = p.target.Device.Load(weights, words); err != nil {
				return p.at(first, err)
			}
			if p.arenaOf == nil || s.native.ArenaBytes() > p.arenaOf.ArenaBytes() {
				p.arenaOf = s.native
			}
		}
		p.segments = append(p.segments, s)
		first = end
	}
	return nil
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

// at turns a backend's error in the segment that starts at step first into one that names the node.
func (p *Program) at(first int, err error) error {
	var be *backend.Error
	if errors.As(err, &be) && be.Command >= 0 && first+be.Command < len(p.Plan.Steps) {
		return &Error{p.Plan.Steps[first+be.Command].Node, err}
	}
	return &Error{nil, err}
}

// ArenaBytes is the memory that each runner holds.
func (p *Program) ArenaBytes() int64 {
	if p.arenaOf == nil {
		return p.Plan.Program.ArenaBytes
	}
	return p.arenaOf.ArenaBytes()
}

// Runner is what one run needs beside the program: an arena and argument lists. It serves one run at a time.
type Runner struct {
	p    *Program
	args backend.RunArgs
}

// Runner returns an idle runner or makes one.
func (p *Program) Runner() (*Runner, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		r := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return r, nil
	}
	p.mu.Unlock()
	r := &Runner{p: p}
	r.args.Inputs = make([][]byte, len(p.Plan.Program.Inputs))
	r.args.Outputs = make([][]byte, len(p.Plan.Program.Outputs))
	if p.arenaOf == nil {
		mem, err := ir.Alloc(p.Plan.Program.ArenaBytes)
		r.args.Arena = backend.NewHostArena(mem)
		return r, err
	}
	var err error
	r.args.Arena, err = p.arenaOf.NewArena()
	return r, err
}

// Release gives a runner back.
func (p *Program) Release(r *Runner) {
	for i := range r.args.Inputs {
		r.args.Inputs[i] = nil
	}
	for i := range r.args.Outputs {
		r.args.Outputs[i] = nil
	}
	p.mu.Lock()
	if !p.closed {
		p.idle = append(p.idle, r)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	r.args.Arena.Close()
}

// Close frees the program once no run uses it; runners that are out are freed when they come back.
func (p *Program) Close() error {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	var errs []error
	for _, r := range idle {
		errs = append(errs, r.args.Arena.Close())
	}
	for _, s := range p.segments {
		if s.native != nil {
			errs = append(errs, s.native.Close())
		}
	}
	p.segments = nil
	if p.weights != nil {
		errs = append(errs, p.weights.Close())
		p.weights = nil
	}
	return errors.Join(errs...)
}

// SetInput and SetOutput bind the memory of the next run.
func (r *Runner) SetInput(i int, b []byte)  { r.args.Inputs[i] = b }
func (r *Runner) SetOutput(i int, b []byte) { r.args.Outputs[i] = b }

// Args are the arguments of the next run, for options such as the profile.
func (r *Runner) Args() *backend.RunArgs { return &r.args }

// Run executes the program on the bound memory. A cancelled context stops it within a tile and gives the context's error.
func (r *Runner) Run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	cancel := r.args.Arena.Cancel()
	cancel.Reset()
	if ctx.Done() != nil {
		set := make(chan struct{})
		stop := context.AfterFunc(ctx, func() { cancel.Set(); close(set) })
		defer func() {
			if !stop() {
				<-set // or it would stop the runner's next run
			}
		}()
	}
	profile, counters := r.args.Profile, r.args.Counters
	defer func() { r.args.Profile, r.args.Counters = profile, counters }()
	for _, s := range r.p.segments {
		if profile != nil {
			r.args.Profile = profile[2*s.first : 2*s.end]
		}
		if counters != nil {
			r.args.Counters = counters[s.first:s.end]
		}
		if err := r.segment(s); err != nil {
			if ctxErr := ctx.Err(); ctxErr != nil {
				return ctxErr
			}
			return r.p.at(s.first, err)
		}
	}
	return nil
}

func (r *Runner) segment(s segment) error {
	if s.native != nil {
		return s.native.Run(&r.args)
	}
	for i := s.first; i < s.end; i++ {
		began := time.Since(start)
		if r.args.Arena.Cancel().IsSet() {
			return &backend.Error{Backend: "host", Code: backend.Cancelled, Command: i - s.first, Text: "cancelled"}
		}
		if err := ref.Command(&r.p.Plan.Steps[i].Command, &r.args, r.p.consts); err != nil {
			name := r.p.Plan.Steps[i].Command.Row.Name
			return &backend.Error{Backend: "host", Code: backend.BadValue, Command: i - s.first, Text: name + ": " + err.Error()}
		}
		if p := r.args.Profile; p != nil {
			p[2*(i-s.first)], p[2*(i-s.first)+1] = uint64(began), uint64(time.Since(start))
		}
	}
	return nil
}

// start is the zero of the clock of host steps.
var start = time.Now()
