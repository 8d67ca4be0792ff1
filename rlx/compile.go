package rlx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Program is a compiled graph: immutable, safe for concurrent Run. It holds native memory until Close.
type Program struct {
	*core
	backstop runtime.Cleanup // closes the core of a program that is garbage
}

// Compile verifies g, runs the passes that need no shapes on it, and opens the backend. Shapes are compiled when they first occur in a
// Run. Options choose the backend; the default is Prefer("cpu", "ref"). The tensors of constants and parameters must not change before the
// program is closed: large ones are used where they lie, unless kernels want them in another order. The program keeps neither g nor what it
// has in such an order: drop them, and weights are held once.
func Compile(ctx context.Context, g *Graph, opts ...Option) (*Program, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if g == nil {
		return nil, errNilGraph
	}
	cfg := newConfig(opts)
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := ir.Freeze(); err != nil {
		return nil, err
	}
	if err := g.Verify(); err != nil {
		return nil, err
	}
	target, skipped, err := open(cfg)
	if err != nil {
		return nil, err
	}
	p := &Program{core: newCore(g.Name, cfg, target, skipped)}
	p.backstop = runtime.AddCleanup(p, (*core).abandoned, p.core)
	if err := p.prepare(ctx, g); err != nil {
		p.Close()
		return nil, err
	}
	p.logFallbacks(ctx)
	cfg.logger.LogAttrs(ctx, slog.LevelInfo, "compiled", slog.String("graph", g.Name), slog.String("backend", target.Backend.Name()),
		slog.Int("nodes", p.kept.packed.Nodes()), slog.Any("fallback", errors.Join(skipped...)))
	return p, nil
}

// prepare runs the shape-free passes and opens the weights.
func (p *Program) prepare(ctx context.Context, g *Graph) error {
	graph, err := p.pipeline(p.shapeFree(ctx), nil).Run(g)
	if err == nil && graph == g { // which the caller may go on building
		graph, err = g.Rebuild(true, func(*ir.Graph, *ir.Node, []ir.Value) ([]ir.Value, error) { return nil, nil })
	}
	if err != nil {
		return execError(p.Backend(), err)
	}
	if err := pass.Supported(graph, p.target.Support); err != nil {
		return err
	}
	for _, o := range graph.Outputs {
		p.outputs = append(p.outputs, o.Name)
	}
	if err := p.declare(graph); err != nil {
		return err
	}
	if graph, err = p.measure(graph); err != nil {
		return err
	}
	if graph, err = owned(graph); err != nil {
		return err
	}
	o := &opened{graph, plan.NewConstants(graph)}
	if p.weights, err = p.target.Device.Weights(nil, o.consts.Data()); err != nil {
		return err
	}
	p.kept = keep(o)
	p.account()
	if len(p.symbols) == 0 { // one set of shapes: compile it now, so that its errors show here
		err = p.warm(ctx)
	}
	runtime.KeepAlive(o) // or it would be made again
	return err
}

// eval computes constant graphs on the program's own backend.
func (p *Program) eval(ctx context.Context) pass.Eval {
	return func(g *ir.Graph) ([]*ir.Tensor, error) {
		legal, err := pass.Legalize(g, p.target.Support)
		if err != nil {
			return nil, err
		}
		if err := p.cfg.memory.fitsOutputs("folded constants", legal); err != nil {
			return nil, err
		}
		consts := plan.NewConstants(legal)
		w, err := p.target.Device.Weights(nil, consts.Data())
		if err != nil {
			return nil, err
		}
		defer w.Close()
		t := *p.target
		t.Host = t.Host.Fork() // the constants of this graph go when it goes
		defer t.Host.Close()
		e, err := exec.Load(legal, &t, consts, w)
		if err != nil {
			return nil, err
		}
		defer e.Close()
		r, err := e.Runner()
		if err != nil {
			return nil, err
		}
		defer e.Release(r)
		out := make([]*ir.Tensor, len(legal.Outputs))
		for i, t := range e.Outputs {
			if out[i], err = ir.Zeros(t.DType, t.Dims...); err != nil {
				return nil, err
			}
			r.SetOutput(i, out[i].Bytes())
		}
		return out, r.Run(ctx)
	}
}

// build compiles the graph for one set of symbol values.
func (p *Program) build(ctx context.Context, values map[string]int64) (*exec.Program, error) {
	t0, o := time.Now(), p.kept.open()
	g, err := p.pipeline(p.bound(ctx, values), values).Run(o.graph)
	if err != nil {
		return nil, execError(p.Backend(), err)
	}
	if err := p.cfg.memory.fitsOutputs("outputs", g); err != nil {
		return nil, err
	}
	e, err := exec.Load(g, p.target, o.consts, p.weights)
	if err == nil {
		if err = p.settle(e, o.consts.Tensors()); err != nil {
			err = errors.Join(err, e.Close())
		}
	}
	if err != nil {
		return nil, execError(p.Backend(), err)
	}
	p.cfg.logger.LogAttrs(ctx, slog.LevelDebug, "specialised", slog.String("graph", p.name), slog.Any("symbols", values),
		slog.Int("commands", e.Commands), slog.Int64("arena_bytes", e.ArenaBytes()), slog.Duration("took", time.Since(t0)))
	return e, nil
}

// Backend is the name of the backend that the program runs on.
func (p *Program) Backend() string { return p.target.Backend.Name() }

// Caps lists what the program's device runs natively, by number of the op table.
func (p *Program) Caps() []backend.Cap { return p.target.Device.Caps() }

// Device describes the device that the program runs on.
func (p *Program) Device() backend.DeviceInfo { return p.target.Device.Info() }

// Fallback says why the backends preferred to Backend were not taken; nil if it was the first choice.
func (p *Program) Fallback() error { return errors.Join(p.skipped...) }

// Graph is the graph after the shape-free passes. It must not be changed. Behind its own outputs stand the lengths of those whose length only a
// run tells, which Run does not return. The bytes of a constant may be read back from the backend's form of it each time that they are asked for. Ask before
// Close: the constants of a graph that is first asked for after it have no bytes, and their Err is ErrClosed.
func (p *Program) Graph() *Graph { return p.kept.show() }

// Port is an input or output of a program.
type Port struct {
	Name string
	Type ir.Type
}

// Ports lists the inputs and outputs as Run knows them.
func (p *Program) Ports() (in, out []Port) {
	in, out = p.ports()
	return slices.Clone(in), slices.Clone(out)
}

func (c *core) findPorts() (in, out []Port) {
	graph := c.kept.open().graph
	for _, n := range graph.Inputs {
		name, _ := n.InputName()
		in = append(in, Port{name, n.Types[0]})
	}
	hidden := map[ir.Value]bool{}
	for _, o := range graph.Outputs {
		for _, s := range o.Value.Measured() {
			if v, ok := o.Value.MeasuredBy(s); ok {
				hidden[v] = true
			}
		}
	}
	for _, o := range graph.Outputs {
		if !hidden[o.Value] {
			out = append(out, Port{o.Name, o.Value.Type()})
		}
	}
	return in, out
}

// BackendInfo describes a backend of this build, or one that it lacks.
type BackendInfo struct {
	Name    string
	Devices []backend.DeviceInfo
	Ops     int   // kinds that run natively
	Err     error // why it cannot be used
}

// Backends lists what is compiled in, what devices answer, and what is absent and why.
func Backends() []BackendInfo {
	var list []BackendInfo
	for _, name := range backend.Names() {
		b, err := backend.Lookup(name)
		info := BackendInfo{Name: name, Err: err}
		if err == nil {
			info.Err = b.Check()
		}
		if info.Err == nil {
			info.Devices, info.Err = b.Devices()
			ops := map[int]bool{}
			for _, c := range b.Caps() {
				ops[c.Op] = true
			}
			info.Ops = len(ops)
		}
		list = append(list, info)
	}
	for name, reason := range backend.Absent() {
		list = append(list, BackendInfo{Name: name, Err: fmt.Errorf("%s: %w (%s)", name, ErrNotCompiledIn, reason)})
	}
	return list
}

// String describes the program in one line.
func (p *Program) String() string {
	return fmt.Sprintf("%s on %s (%s)", p.name, p.Backend(), strings.TrimSpace(p.Device().ISA))
}

// Probe measures a limit of the program's device for about the given number of seconds: a peak of arithmetic in 1e9 operations a second, or, with a
// buffer of bytes per thread, traffic in 1e9 bytes a second. ok is false where the backend cannot tell.
func (p *Program) Probe(l backend.Limit, threads int, bytes uint64, seconds float64) (rate float64, ok bool, err error) {
	if err := p.enter(); err != nil {
		return 0, false, err
	}
	defer p.leave()
	d, ok := p.target.Device.(backend.Prober)
	if !ok {
		return 0, false, nil
	}
	rate, err = d.Probe(l, threads, bytes, seconds)
	var be *backend.Error
	if errors.As(err, &be) && be.Code == backend.Unsupported {
		return 0, false, nil
	}
	return rate, err == nil, err
}
