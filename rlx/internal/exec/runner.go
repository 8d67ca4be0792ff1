package exec

import (
	"context"
	"errors"
	"time"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Runner is what one run needs beside the program: arenas and argument lists. It serves one run at a time.
type Runner struct {
	p       *Program
	args    backend.RunArgs
	host    backend.RunArgs    // of staged commands: the same bindings; its arena is the device's where the host can reach that
	regions [][]backend.Region // what is carried before each segment; nil where both sides have one arena
}

func newRunner(p *Program) (*Runner, error) {
	r := &Runner{p: p}
	r.args.Inputs = make([][]byte, len(p.Inputs))
	r.args.Outputs = make([][]byte, len(p.Outputs))
	if p.native != nil {
		a, err := p.native.NewArena()
		if err != nil {
			return nil, err
		}
		r.args.Arena = a
	}
	if err := r.openHost(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	if r.args.Arena == nil {
		r.args.Arena = r.host.Arena
	}
	r.host.Inputs, r.host.Outputs = r.args.Inputs, r.args.Outputs
	return r, nil
}

// openHost finds memory for staged commands: the device's arena, or a mirror of it.
func (r *Runner) openHost() error {
	p, size := r.p, r.p.arena
	switch {
	case p.host != nil:
		a, err := p.host.program.NewArena()
		if err != nil {
			return err
		}
		r.host.Arena = a
	case p.native != nil && (!p.staged || int64(len(r.args.Arena.Bytes())) >= size):
		r.host.Arena = r.args.Arena
	default:
		var mem []byte
		if p.reaches {
			var err error
			if mem, err = ir.Alloc(size); err != nil {
				return &backend.Error{Backend: "host", Code: backend.NoMemory, Command: -1, Text: err.Error()}
			}
		}
		r.host.Arena = backend.NewHostArena(mem)
	}
	if !r.carries() {
		return nil
	}
	r.regions = make([][]backend.Region, len(p.Segments))
	mem := r.host.Arena.Bytes()
	for i, s := range p.Segments {
		for _, t := range s.Carry {
			r.regions[i] = append(r.regions[i], backend.Region{Offset: t.Offset, Host: mem[t.Offset : t.Offset+t.Bytes]})
		}
	}
	return nil
}

// touchesArena says whether a staged command works on the arena.
func touchesArena(pl *plan.Plan) bool {
	for _, s := range pl.Steps {
		for _, list := range [][]prog.Operand{s.Command.Out, s.Command.In} {
			for _, o := range list {
				if s.Command.Staged && !o.Absent && o.Slot == prog.Arena {
					return true
				}
			}
		}
	}
	return false
}

// carries says whether staged commands work on memory of their own.
func (r *Runner) carries() bool { return r.p.native != nil && r.host.Arena != r.args.Arena }

func (r *Runner) close() error {
	var errs []error
	if r.args.Arena != nil {
		errs = append(errs, closeArena(r.p.native, r.args.Arena))
	}
	if r.host.Arena != nil && r.host.Arena != r.args.Arena {
		var from backend.Program
		if r.p.host != nil {
			from = r.p.host.program
		}
		errs = append(errs, closeArena(from, r.host.Arena))
	}
	return errors.Join(errs...)
}

// closeArena closes an arena of p, which may count them.
func closeArena(p backend.Program, a backend.Arena) error {
	if c, ok := p.(interface{ CloseArena(backend.Arena) error }); ok {
		return c.CloseArena(a)
	}
	return a.Close()
}

// SetInput and SetOutput bind the memory of the next run.
func (r *Runner) SetInput(i int, b []byte)  { r.args.Inputs[i] = b }
func (r *Runner) SetOutput(i int, b []byte) { r.args.Outputs[i] = b }

// Args are the arguments of the next run, for options such as the profile.
func (r *Runner) Args() *backend.RunArgs { return &r.args }

// Watch is told of each step when its operands are where it reads them, and when it has run; nothing else runs between the calls. An error
// ends the run with it.
type Watch interface {
	Before(step int) error
	After(step int) error
}

// Run executes the program on the bound memory. A cancelled context stops it within a tile and gives the context's error.
func (r *Runner) Run(ctx context.Context) error { return r.run(ctx, nil) }

// RunWatched is Run on a runner of a divided program.
func (r *Runner) RunWatched(ctx context.Context, w Watch) error { return r.run(ctx, w) }

func (r *Runner) run(ctx context.Context, w Watch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.reset()
	if !r.p.brief && ctx.Done() != nil {
		set := make(chan struct{})
		stop := context.AfterFunc(ctx, func() { r.cancel(); close(set) })
		defer func() {
			if !stop() {
				<-set // or it would stop the runner's next run
			}
		}()
	}
	profile, counters := r.args.Profile, r.args.Counters
	var err error
	for i := range r.p.Segments {
		s := &r.p.Segments[i]
		r.args.First, r.args.Count = s.First, s.End-s.First
		if profile != nil {
			r.args.Profile = profile[2*s.First : 2*s.End]
		}
		if counters != nil {
			r.args.Counters = counters[s.First:s.End]
		}
		if w != nil {
			if err := r.watched(ctx, i, s, w); err != nil {
				return err
			}
		} else if err = r.segment(i, s); err != nil {
			break
		}
	}
	r.args.Profile, r.args.Counters = profile, counters
	return r.ended(ctx, err)
}

// ended is what a run gives that err ended.
func (r *Runner) ended(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	return r.p.at(err)
}

// watched runs a segment of a divided program: one step, or the separator behind one.
func (r *Runner) watched(ctx context.Context, i int, s *plan.Segment, w Watch) error {
	if i%2 == 1 {
		return nil
	}
	if err := r.ended(ctx, r.bring(i, s)); err != nil {
		return err
	}
	if err := w.Before(s.First); err != nil {
		return err
	}
	if err := r.ended(ctx, r.compute(s)); err != nil {
		return err
	}
	return w.After(s.First)
}

// reset begins a run.
func (r *Runner) reset() {
	r.args.Arena.Cancel().Reset()
	if r.host.Arena != r.args.Arena {
		r.host.Arena.Cancel().Reset()
	}
	if r.p.target.Poison {
		mem := r.host.Arena.Bytes()
		for i := range mem {
			mem[i] = 0xFF
		}
	}
}

// cancel stops the run on both sides.
func (r *Runner) cancel() {
	r.args.Arena.Cancel().Set()
	if r.host.Arena != r.args.Arena {
		r.host.Arena.Cancel().Set()
	}
}

// start is the zero of the clock of profiles.
var start = time.Now()

func (r *Runner) segment(i int, s *plan.Segment) error {
	if err := r.bring(i, s); err != nil {
		return err
	}
	return r.compute(s)
}

// bring carries what the segment reads to its side.
func (r *Runner) bring(i int, s *plan.Segment) error {
	if r.regions == nil {
		return nil
	}
	return r.carry(r.regions[i], s.Host)
}

func (r *Runner) compute(s *plan.Segment) error {
	if s.Host {
		return r.staged(s)
	}
	if r.args.Profile == nil {
		return r.p.native.Run(&r.args)
	}
	began := time.Since(start)
	err := r.p.native.Run(&r.args)
	shift(r.args.Profile, began)
	return err
}

// carry copies what a segment reads and the other side wrote.
func (r *Runner) carry(regions []backend.Region, toHost bool) error {
	if len(regions) == 0 {
		return nil
	}
	arena := r.args.Arena
	mem := arena.Bytes()
	switch {
	case mem != nil: // the staged commands run on a backend with an arena of its own
		for _, g := range regions {
			if there := mem[g.Offset:]; toHost {
				copy(g.Host, there)
			} else {
				copy(there, g.Host)
			}
		}
		return nil
	case toHost:
		return arena.Read(regions)
	}
	return arena.Write(regions)
}

// staged runs the commands of a host segment.
func (r *Runner) staged(s *plan.Segment) error {
	r.host.Seed, r.host.Threads, r.host.States = r.args.Seed, r.args.Threads, r.args.States
	for first := s.First; first < s.End; {
		end := first + 1
		var err error
		if h := r.p.host; h != nil && h.runs(first) {
			for end < s.End && h.runs(end) {
				end++
			}
			err = r.onBackend(first, end, s.First)
		} else {
			err = r.onRef(first, s.First)
		}
		if err != nil {
			return err
		}
		first = end
	}
	return nil
}

// onRef runs one step in package ref; the profile begins at step from.
func (r *Runner) onRef(step, from int) error {
	began := time.Since(start)
	cancel := r.host.Arena.Cancel()
	if cancel.IsSet() {
		return &backend.Error{Backend: "host", Code: backend.Cancelled, Command: step, Text: "cancelled"}
	}
	c := &r.p.full.Steps[step].Command // which a program with staged commands keeps
	if err := ref.Command(c, &r.host, r.p.consts); err != nil {
		code := backend.BadValue
		if cancel.IsSet() {
			code = backend.Cancelled
		}
		return &backend.Error{Backend: "host", Code: code, Command: step, Text: c.Row.Name + ": " + err.Error()}
	}
	if p := r.args.Profile; p != nil {
		p[2*(step-from)], p[2*(step-from)+1] = uint64(began), uint64(time.Since(start))
	}
	return nil
}

// onBackend runs steps on the backend that stands for ref; the profile begins at step from. Its kernels are not counted: counters speak of
// the device's.
func (r *Runner) onBackend(first, end, from int) error {
	h := r.p.host
	r.host.First, r.host.Count, r.host.Profile = h.command[first], end-first, nil
	if r.args.Profile != nil {
		r.host.Profile = r.args.Profile[2*(first-from) : 2*(end-from)]
	}
	began := time.Since(start)
	err := h.program.Run(&r.host)
	shift(r.host.Profile, began)
	r.host.Profile = nil
	return h.inSteps(err)
}

// shift moves times to the clock of this package: backends have clocks of their own.
func shift(profile []uint64, began time.Duration) {
	if len(profile) == 0 {
		return
	}
	by := uint64(began) - profile[0]
	for i := range profile {
		profile[i] += by
	}
}
