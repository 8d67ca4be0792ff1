package rlx

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// input is what Run needs to know of an input.
type input struct {
	name   string
	typ    ir.Type
	values []string // symbols that stand for the elements, where the graph reads them
}

func newInput(n *ir.Node) input {
	name, _ := n.InputName()
	return input{name: name, typ: n.Types[0]}
}

// markStaticInputs finds the inputs whose values reach shapes and attributes.
func (p *Program) markStaticInputs() {
	used := map[string]bool{}
	for _, n := range p.graph.Nodes {
		n.Row.AttrSymbols(n.Attrs, used)
	}
	for i := range p.inputs {
		in := &p.inputs[i]
		n, ok := ir.Count(in.typ.Shape).Static()
		if !ok || n > ir.MaxStaticInput {
			continue
		}
		symbols, any := make([]string, n), false
		for k := range symbols {
			symbols[k] = ir.StaticSymbol(in.name, k)
			any = any || used[symbols[k]]
		}
		if any {
			in.values = symbols
		}
	}
}

func (p *Program) readsValues() bool {
	return slices.ContainsFunc(p.inputs, func(in input) bool { return in.values != nil })
}

// entry is one specialisation in the cache.
type entry struct {
	ready   chan struct{}
	prog    *exec.Program
	err     error
	users   int
	used    uint64
	evicted bool
}

// check compares a tensor with an input and collects symbol values.
func (in *input) check(t *Tensor, symbols map[string]int64) error {
	if t == nil {
		return &FeedError{in.name, "missing", in.typ.String(), "no tensor"}
	}
	if err := t.Err(); err != nil {
		return &FeedError{in.name, "tensor", in.typ.String(), err.Error()}
	}
	got := fmt.Sprintf("%s%v", t.DType(), t.Shape())
	if t.DType() != in.typ.DType {
		return &FeedError{in.name, "dtype", in.typ.String(), got}
	}
	if t.Rank() != len(in.typ.Shape) {
		return &FeedError{in.name, "rank", in.typ.String(), got}
	}
	for k, d := range in.typ.Shape {
		n := t.Shape()[k]
		if want, ok := d.Static(); ok && want != n {
			return &FeedError{in.name, fmt.Sprintf("dim %d", k), in.typ.String(), got}
		}
		if s, ok := d.Symbol(); ok {
			if old, bound := symbols[s]; bound && old != n {
				return &FeedError{in.name, "symbol " + s, fmt.Sprintf("%s with %s = %d", in.typ, s, old), got}
			}
			symbols[s] = n
		}
	}
	for k, s := range in.values {
		symbols[s] = t.Int(k)
	}
	return nil
}

// bind checks a feed and returns the values of all symbols.
func (p *Program) bind(feed Feed) (map[string]int64, error) {
	symbols := map[string]int64{}
	for i := range p.inputs {
		if err := p.inputs[i].check(feed[p.inputs[i].name], symbols); err != nil {
			return nil, err
		}
	}
	for i := range p.inputs { // dims that are expressions over symbols bound elsewhere
		in := &p.inputs[i]
		for k, d := range in.typ.Shape {
			if n, ok := d.Bind(symbols).Static(); !ok || n != feed[in.name].Shape()[k] {
				return nil, &FeedError{in.name, fmt.Sprintf("dim %d", k), fmt.Sprintf("%s = %s", d, d.Bind(symbols)), fmt.Sprintf("%s%v", in.typ.DType, feed[in.name].Shape())}
			}
		}
	}
	if len(feed) > len(p.inputs) {
		for name := range feed {
			if !slices.ContainsFunc(p.inputs, func(in input) bool { return in.name == name }) {
				return nil, &FeedError{name, "unknown name", "one of " + p.inputNames(), "a tensor"}
			}
		}
	}
	return symbols, nil
}

func (p *Program) inputNames() string {
	names := make([]string, len(p.inputs))
	for i, in := range p.inputs {
		names[i] = in.name
	}
	return strings.Join(names, ", ")
}

// key identifies symbol values; names are in sorted order.
func key(symbols map[string]int64) string {
	names := slices.Sorted(maps.Keys(symbols))
	b := make([]byte, 0, 8*len(names))
	for _, n := range names {
		b = binary.LittleEndian.AppendUint64(b, uint64(symbols[n]))
	}
	return string(b)
}

// acquire returns the specialisation for these symbol values, building it if nobody did or does; release gives it back.
func (p *Program) acquire(ctx context.Context, symbols map[string]int64) (*entry, error) {
	k := key(symbols)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	e, ok := p.cache[k]
	p.clock++
	if !ok {
		e = &entry{ready: make(chan struct{})}
		p.cache[k] = e
		p.evictLocked()
	}
	e.users++
	e.used = p.clock
	p.runs++
	p.mu.Unlock()

	if !ok {
		e.prog, e.err = p.build(context.WithoutCancel(ctx), symbols)
		p.mu.Lock()
		if e.err != nil && p.cache[k] == e {
			delete(p.cache, k)
		} else {
			p.latest = e.prog
		}
		p.mu.Unlock()
		close(e.ready)
	}
	select {
	case <-e.ready:
	case <-ctx.Done():
		p.release(e)
		return nil, ctx.Err()
	}
	if e.err != nil {
		p.release(e)
		return nil, e.err
	}
	return e, nil
}

// evictLocked drops the least recently used entries beyond the limit; one in use is freed by its last user.
func (p *Program) evictLocked() {
	for len(p.cache) > p.cfg.cache {
		var oldest string
		for k, e := range p.cache {
			if o := p.cache[oldest]; o == nil || e.used < o.used && e.used != 0 {
				oldest = k
			}
		}
		e := p.cache[oldest]
		delete(p.cache, oldest)
		e.evicted = true
		if e.users == 0 && e.prog != nil {
			p.free(e)
		}
	}
}

func (p *Program) free(e *entry) {
	if p.latest == e.prog {
		p.latest = nil
	}
	e.prog.Close()
}

func (p *Program) release(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users--
	if e.users == 0 && e.evicted && e.prog != nil {
		p.free(e)
	}
	if p.runs--; p.runs == 0 {
		p.idle.Broadcast()
	}
}

// warm compiles the one set of shapes of a graph without symbols.
func (p *Program) warm(ctx context.Context) error {
	e, err := p.acquire(ctx, map[string]int64{})
	if err != nil {
		return err
	}
	p.release(e)
	return nil
}

// Run executes the program on the tensors of feed and returns its outputs in fresh memory. Shapes that occur for the first time are
// compiled first. A cancelled ctx stops the run within a tile and gives ctx.Err().
func (p *Program) Run(ctx context.Context, feed Feed, opts ...RunOption) (Feed, error) {
	var rc runConfig
	for _, o := range opts {
		o(&rc)
	}
	symbols, err := p.bind(feed)
	if err != nil {
		return nil, err
	}
	e, err := p.acquire(ctx, symbols)
	if err != nil {
		return nil, err
	}
	defer p.release(e)
	r, err := e.prog.Runner()
	if err != nil {
		return nil, err
	}
	defer e.prog.Release(r)
	for i := range p.inputs {
		r.SetInput(i, feed[p.inputs[i].name].Bytes())
	}
	out := make(Feed, len(p.outputs))
	for i, t := range e.prog.Plan.Program.Outputs {
		y, err := ir.Zeros(t.DType, slices.Clone(t.Dims)...)
		if err != nil {
			return nil, err
		}
		out[p.outputs[i]] = y
		r.SetOutput(i, y.Bytes())
	}
	if err := p.execute(ctx, e, r, &rc); err != nil {
		return nil, err
	}
	return out, nil
}

func (p *Program) execute(ctx context.Context, e *entry, r *exec.Runner, rc *runConfig) error {
	args := r.Args()
	args.Seed = rc.seed
	if rc.profile != nil {
		n := len(e.prog.Plan.Steps)
		args.Profile, args.Counters = make([]uint64, 2*n), make([]uint32, n)
		defer func() { args.Profile, args.Counters = nil, nil }()
	}
	if err := r.Run(ctx); err != nil {
		return execError(p.Backend(), err)
	}
	if rc.profile != nil {
		rc.profile.Steps = rc.profile.Steps[:0]
		for i, s := range e.prog.Plan.Steps {
			rc.profile.Steps = append(rc.profile.Steps, ProfileStep{Node: s.Node.Name, Op: s.Command.Row.Name, Place: s.Place.String(),
				Start: args.Profile[2*i], End: args.Profile[2*i+1], Native: args.Counters[i]})
		}
	}
	return nil
}

// Runner runs the program again and again without allocating, as long as the shapes stay the same. It serves one goroutine at a time.
type Runner struct {
	p      *Program
	e      *entry
	r      *exec.Runner
	values []int64 // of the static inputs, in order
}

// Runner returns a runner; Close gives back what it holds.
func (p *Program) Runner() *Runner { return &Runner{p: p} }

// Close releases the runner's memory. It is idempotent.
func (r *Runner) Close() error {
	if r.e != nil {
		r.e.prog.Release(r.r)
		r.p.release(r.e)
		r.e, r.r = nil, nil
	}
	return nil
}

// RunInto executes the program on in and writes its outputs into the tensors of out, which must have the right dtypes and shapes.
func (r *Runner) RunInto(ctx context.Context, in, out Feed) error {
	if r.e == nil || !r.fits(in) {
		if err := r.respecialise(ctx, in); err != nil {
			return err
		}
	}
	if r.p.isClosed() {
		return ErrClosed
	}
	if len(in) != len(r.p.inputs) {
		_, err := r.p.bind(in) // names the unknown input
		if err != nil {
			return err
		}
	}
	for i := range r.p.inputs {
		r.r.SetInput(i, in[r.p.inputs[i].name].Bytes())
	}
	for i, t := range r.e.prog.Plan.Program.Outputs {
		y := out[r.p.outputs[i]]
		if y == nil || y.Err() != nil || y.DType() != t.DType || !slices.Equal(y.Shape(), t.Dims) {
			return outputError(r.p.outputs[i], y, fmt.Sprintf("%s%v", t.DType, t.Dims))
		}
		r.r.SetOutput(i, y.Bytes())
	}
	if err := r.r.Run(ctx); err != nil {
		return execError(r.p.Backend(), err)
	}
	return nil
}

func outputError(name string, y *Tensor, want string) error {
	switch {
	case y == nil:
		return &FeedError{name, "missing", want, "no tensor"}
	case y.Err() != nil:
		return &FeedError{name, "tensor", want, y.Err().Error()}
	}
	return &FeedError{name, "output", want, fmt.Sprintf("%s%v", y.DType(), y.Shape())}
}

// fits says whether the feed has the shapes and static values that the runner is compiled for.
func (r *Runner) fits(in Feed) bool {
	at := 0
	for i, t := range r.e.prog.Plan.Program.Inputs {
		x := in[r.p.inputs[i].name]
		if x == nil || x.Err() != nil || x.DType() != t.DType || !slices.Equal(x.Shape(), t.Dims) {
			return false
		}
		for k := range r.p.inputs[i].values {
			if x.Int(k) != r.values[at] {
				return false
			}
			at++
		}
	}
	return true
}

func (r *Runner) respecialise(ctx context.Context, in Feed) error {
	r.Close()
	symbols, err := r.p.bind(in)
	if err != nil {
		return err
	}
	e, err := r.p.acquire(ctx, symbols)
	if err != nil {
		return err
	}
	x, err := e.prog.Runner()
	if err != nil {
		r.p.release(e)
		return err
	}
	r.e, r.r, r.values = e, x, r.values[:0]
	for i := range r.p.inputs {
		for k := range r.p.inputs[i].values {
			r.values = append(r.values, in[r.p.inputs[i].name].Int(k))
		}
	}
	return nil
}

func (p *Program) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Close waits for runs to end and frees the program's memory; runners that are open must be closed first. It is idempotent.
func (p *Program) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	for p.runs > 0 {
		p.idle.Wait()
	}
	for k, e := range p.cache {
		delete(p.cache, k)
		if e.prog != nil {
			p.free(e)
		}
	}
	var err error
	if p.weights != nil {
		err = p.weights.Close()
	}
	if cerr := p.target.Device.Close(); err == nil {
		err = cerr
	}
	return err
}
