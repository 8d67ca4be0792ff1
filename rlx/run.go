package rlx

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// input is what Run needs to know of an input.
type input struct {
	name   string
	typ    ir.Type
	dims   []dimRule
	values []int // symbols that stand for the elements, where the graph reads them

	decides bool // for an If alone: the values may be left to each run
}

// dimRule says what a dim of a bound tensor must be: a number, the value of a symbol (which it binds), or of an expression.
type dimRule struct {
	want   int64
	symbol int // index into Program.symbols, -1 if the dim is no symbol
	expr   bool
}

// declare reads the inputs of the graph and numbers the symbols that a feed binds.
func (p *Program) declare(g *ir.Graph) error {
	used := map[string]bool{}
	for _, n := range g.Nodes {
		n.Row.AttrSymbols(n.Attrs, used)
	}
	number := func(name string) int {
		i := slices.Index(p.symbols, name)
		if i < 0 {
			i = len(p.symbols)
			p.symbols = append(p.symbols, name)
		}
		return i
	}
	ifs := decisive(g)
	for at, n := range g.Inputs {
		name, _ := n.InputName()
		in := input{name: name, typ: n.Types[0]}
		for _, d := range in.typ.Shape {
			rule := dimRule{symbol: -1}
			if s, ok := d.Symbol(); ok {
				rule.symbol = number(s)
			} else if rule.want, ok = d.Static(); !ok {
				rule.expr = true
			}
			in.dims = append(in.dims, rule)
		}
		if n, ok := ir.Count(in.typ.Shape).Static(); ok && n <= ir.MaxStaticInput {
			reads := false
			for k := range int(n) {
				reads = reads || used[ir.StaticSymbol(name, k)]
			}
			if !reads && slices.Contains(ifs, at) {
				reads, in.decides = true, true
			}
			for k := 0; reads && k < int(n); k++ {
				in.values = append(in.values, number(ir.StaticSymbol(name, k)))
			}
		}
		p.inputs = append(p.inputs, in)
	}
	for _, in := range p.inputs {
		mentioned := map[string]bool{}
		for _, d := range in.typ.Shape {
			d.Symbols(mentioned)
		}
		for s := range mentioned {
			if !slices.Contains(p.symbols, s) {
				return feedError(in.name, "symbol "+s, "a symbol that is a dim of some input, which binds it", in.typ.String())
			}
		}
	}
	return nil
}

// unbound marks the symbol of a length that no tensor has bound yet.
const unbound = -1

// entry is one specialisation in the cache.
type entry struct {
	symbols map[string]int64
	ready   chan struct{}
	prog    *exec.Program
	err     error
	users   int
	used    uint64
	evicted bool
}

// loaded is the entry's program, nil while it is built and where that failed.
func (e *entry) loaded() *exec.Program {
	if !isClosed(e.ready) {
		return nil
	}
	return e.prog
}

// check compares a tensor with an input and binds symbols.
func (in *input) check(t *Tensor, symbols []string, values []int64) error {
	if t == nil {
		return feedError(in.name, "missing", in.typ.String(), "no tensor")
	}
	if err := t.Err(); err != nil {
		return &FeedError{in.name, "tensor", in.typ.String(), err.Error(), err}
	}
	if t.DType() != in.typ.DType {
		return feedError(in.name, "dtype", in.typ.String(), typeOf(t))
	}
	if t.Rank() != len(in.dims) {
		return feedError(in.name, "rank", in.typ.String(), typeOf(t))
	}
	for k, d := range in.dims {
		n := t.Shape()[k]
		switch {
		case d.symbol >= 0:
			if old := values[d.symbol]; old != unbound && old != n {
				s := symbols[d.symbol]
				return feedError(in.name, "symbol "+s, fmt.Sprintf("%s with %s = %d", in.typ, s, old), typeOf(t))
			}
			values[d.symbol] = n
		case !d.expr && d.want != n:
			return feedError(in.name, fmt.Sprintf("dim %d", k), in.typ.String(), typeOf(t))
		}
	}
	for k, s := range in.values {
		values[s] = t.Int(k)
	}
	return nil
}

// leaveOpen takes back the values that each run decides on.
func (p *Program) leaveOpen(values []int64) {
	if !p.undecided.Load() {
		return
	}
	for i := range p.inputs {
		if in := &p.inputs[i]; in.decides {
			for _, s := range in.values {
				values[s] = undecided
			}
		}
	}
}

func typeOf(t *Tensor) string { return fmt.Sprintf("%s%v", t.DType(), t.Shape()) }

// bind checks a feed and appends the values of all symbols, in order of number.
func (p *Program) bind(values []int64, feed Feed) ([]int64, error) {
	for range p.symbols {
		values = append(values, unbound)
	}
	exprs := false
	for i := range p.inputs {
		in := &p.inputs[i]
		if err := in.check(feed[in.name], p.symbols, values); err != nil {
			return nil, err
		}
		exprs = exprs || slices.ContainsFunc(in.dims, func(d dimRule) bool { return d.expr })
	}
	p.leaveOpen(values)
	if exprs {
		if err := p.checkExpressions(p.named(values), feed); err != nil {
			return nil, err
		}
	}
	if len(feed) > len(p.inputs) {
		for name := range feed {
			if !slices.ContainsFunc(p.inputs, func(in input) bool { return in.name == name }) {
				return nil, feedError(name, "unknown name", "one of "+p.inputNames(), "a tensor")
			}
		}
	}
	return values, nil
}

// checkExpressions compares the dims that are expressions over symbols bound elsewhere.
func (p *Program) checkExpressions(symbols map[string]int64, feed Feed) error {
	for i := range p.inputs {
		in := &p.inputs[i]
		for k, d := range in.typ.Shape {
			if n, ok := d.Bind(symbols).Static(); !ok || n != feed[in.name].Shape()[k] {
				return feedError(in.name, fmt.Sprintf("dim %d", k), fmt.Sprintf("%s = %s", d, d.Bind(symbols)), typeOf(feed[in.name]))
			}
		}
	}
	return nil
}

// named is the values by symbol.
func (p *Program) named(values []int64) map[string]int64 {
	m := make(map[string]int64, len(values))
	for i, v := range values {
		m[p.symbols[i]] = v
	}
	return m
}

func (p *Program) inputNames() string {
	names := make([]string, len(p.inputs))
	for i, in := range p.inputs {
		names[i] = in.name
	}
	return strings.Join(names, ", ")
}

// acquire returns the specialisation for these symbol values, building it if nobody did or does; release gives it back.
func (p *Program) acquire(ctx context.Context, values []int64) (*entry, error) {
	var buf [64]byte
	k := buf[:0]
	for _, v := range values {
		k = binary.LittleEndian.AppendUint64(k, uint64(v))
	}
	p.mu.Lock()
	e, ok := p.cache[string(k)]
	p.clock++
	if !ok {
		e = &entry{ready: make(chan struct{}), symbols: p.named(values)}
		p.cache[string(k)] = e
	}
	e.users++
	e.used = p.clock
	gone := p.evictLocked()
	p.mu.Unlock()
	p.tally.looked(ok)
	for _, old := range gone {
		p.logEviction(ctx, old)
	}

	if !ok {
		e.prog, e.err = p.build(context.WithoutCancel(ctx), e.symbols)
		p.mu.Lock()
		if e.err == nil {
			p.tally.builds.Add(1)
			p.latest = e
			p.countDecidedLocked(values)
		} else if p.cache[string(k)] == e {
			delete(p.cache, string(k))
		}
		p.mu.Unlock()
		close(e.ready)
	}
	if !isClosed(e.ready) {
		select {
		case <-e.ready:
		case <-ctx.Done():
			p.release(e)
			return nil, ctx.Err()
		}
	}
	if e.err != nil {
		p.release(e)
		return nil, e.err
	}
	return e, nil
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// evictLocked drops the least recently used entries beyond the limit and returns them; one in use is freed by its last user.
func (p *Program) evictLocked() (gone []*entry) {
	for len(p.cache) > p.cfg.cache {
		var oldest string
		for k, e := range p.cache {
			if o := p.cache[oldest]; o == nil || e.used < o.used {
				oldest = k
			}
		}
		e := p.cache[oldest]
		delete(p.cache, oldest)
		e.evicted = true
		p.tally.evictions.Add(1)
		if e.users > 0 {
			p.leaving[e] = true
		} else if e.prog != nil {
			p.freeLocked(e)
		}
		gone = append(gone, e)
	}
	return gone
}

// warm compiles the one set of shapes of a graph without symbols.
func (p *Program) warm(ctx context.Context) error {
	e, err := p.acquire(ctx, nil)
	if err != nil {
		return err
	}
	p.release(e)
	return nil
}

// Run executes the program on the tensors of feed and returns its outputs in fresh memory. Shapes that occur for the first time are
// compiled first. A cancelled ctx stops the run within a tile and gives ctx.Err().
func (p *Program) Run(ctx context.Context, feed Feed, opts ...RunOption) (out Feed, err error) {
	if ctx == nil {
		return nil, errNilContext
	}
	rc := &noOptions
	if len(opts) > 0 {
		rc = &runConfig{seed: op.DefaultSeed}
		for _, o := range opts {
			if o != nil {
				o(rc)
			}
		}
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.leaveRun(err) }()
	if err := rc.check(); err != nil {
		return nil, err
	}
	var buf [8]int64
	values, err := p.bind(buf[:0], feed)
	if err != nil {
		return nil, err
	}
	for {
		p.expect(values)
		list, err := p.runOnce(ctx, values, feed, rc)
		if err != nil {
			return nil, err
		}
		if all, err := p.trim(list, values); err != nil || !all {
			if err != nil {
				return nil, err
			}
			continue
		}
		out := make(Feed, len(p.outputs))
		for i, name := range p.outputs {
			out[name] = list[i]
		}
		return out, nil
	}
}

// runOnce is one run with these symbols: all outputs, the hidden ones too.
func (p *Program) runOnce(ctx context.Context, values []int64, feed Feed, rc *runConfig) ([]*Tensor, error) {
	e, err := p.acquire(ctx, values)
	if err != nil {
		return nil, err
	}
	defer p.release(e)
	prog := e.prog
	if rc.finite {
		if prog, err = prog.Divided(); err != nil {
			return nil, execError(p.Backend(), err)
		}
	}
	r, err := prog.Runner()
	if err != nil {
		return nil, err
	}
	defer prog.Release(r)
	for i := range p.inputs {
		r.SetInput(i, feed[p.inputs[i].name].Bytes())
	}
	out, err := outputsOf(prog, r)
	if err != nil {
		return nil, err
	}
	return out, p.execute(ctx, prog, r, rc)
}

// noOptions is what a Run without options reads; nobody writes it.
var noOptions = runConfig{seed: op.DefaultSeed}

func (p *Program) execute(ctx context.Context, prog *exec.Program, r *exec.Runner, rc *runConfig) error {
	args := r.Args()
	args.Seed = rc.seed
	if rc.finite {
		return p.executeFinite(ctx, prog, r)
	}
	began := uint64(0)
	if rc.profile != nil {
		began = exec.Clock()
		n := prog.Commands
		args.Profile, args.Counters = make([]uint64, 2*n), make([]uint32, n)
		defer func() { args.Profile, args.Counters = nil, nil }()
	}
	if err := r.Run(ctx); err != nil {
		return execError(p.Backend(), err)
	}
	if rc.profile != nil {
		if err := rc.profile.fill(p, prog, r, began); err != nil {
			return execError(p.Backend(), err)
		}
	}
	return nil
}

// Runner runs the program again and again without allocating, as long as the shapes stay the same. It serves one goroutine at a time.
type Runner struct {
	p *Program
	*lease
	values []int64 // of the static inputs, in order
	stop   runtime.Cleanup

	in, out []*Tensor // of the last run, by position: a name is looked up once a run
}

// lease is what a runner holds. The program lists leases, which do not lead back to it: a garbage cycle is never cleaned up.
type lease struct {
	e      *entry
	r      *exec.Runner
	closed bool
}

// Runner returns a runner; Close gives back what it holds.
func (p *Program) Runner() *Runner {
	r := &Runner{p: p, lease: new(lease)}
	p.mu.Lock()
	p.leases[r.lease] = true
	p.mu.Unlock()
	held, c := r.lease, p.core
	r.stop = runtime.AddCleanup(r, func(l *lease) { c.endLease(l) }, held)
	return r
}

// Close releases the runner's memory. It is idempotent; closing the program does it too.
func (r *Runner) Close() error {
	r.stop.Stop()
	r.p.endLease(r.lease)
	return nil
}

// RunInto executes the program on in and writes its outputs into the tensors of out, which must have the right dtypes and shapes.
func (r *Runner) RunInto(ctx context.Context, in, out Feed) (err error) {
	if ctx == nil {
		return errNilContext
	}
	if err := r.p.enter(); err != nil {
		return err
	}
	defer func() { r.p.leaveRun(err) }()
	if r.closed {
		return ErrClosed
	}
	if len(r.p.stacks) > 0 {
		name := r.p.outputs[r.p.stacks[0].output]
		return feedError(name, "output", "a length that is known before the run: use Run", r.p.kept.open().graph.Outputs[r.p.stacks[0].output].Value.Type().String())
	}
	r.in, r.out = r.in[:0], r.out[:0]
	for i := range r.p.inputs {
		r.in = append(r.in, in[r.p.inputs[i].name])
	}
	for _, name := range r.p.outputs {
		r.out = append(r.out, out[name])
	}
	if r.e == nil || !r.fits() {
		if err := r.respecialise(ctx, in); err != nil {
			return err
		}
	} else {
		r.p.tally.hits.Add(1)
	}
	if len(in) != len(r.p.inputs) {
		if _, err := r.p.bind(nil, in); err != nil { // names the unknown input
			return err
		}
	}
	if len(out) > len(r.p.outputs) {
		return r.p.unknownOutput(out)
	}
	for i, x := range r.in {
		r.r.SetInput(i, x.Bytes())
	}
	for i, t := range r.e.prog.Outputs {
		y := r.out[i]
		if y == nil || y.Err() != nil || y.DType() != t.DType || !slices.Equal(y.Shape(), t.Dims) {
			return outputError(r.p.outputs[i], y, fmt.Sprintf("%s%v", t.DType, t.Dims))
		}
		if name := r.shares(y.Bytes(), i); name != "" {
			return feedError(r.p.outputs[i], "memory", "memory of its own", "memory shared with "+name)
		}
		r.r.SetOutput(i, y.Bytes())
	}
	if err := r.r.Run(ctx); err != nil {
		return execError(r.p.Backend(), err)
	}
	return nil
}

// shares names an input or an earlier output that overlaps the memory of output i.
func (r *Runner) shares(y []byte, i int) string {
	for k, x := range r.in {
		if overlap(y, x.Bytes()) {
			return r.p.inputs[k].name
		}
	}
	for k, x := range r.out[:i] {
		if overlap(y, x.Bytes()) {
			return r.p.outputs[k]
		}
	}
	return ""
}

func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	p, q := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return p < q+uintptr(len(b)) && q < p+uintptr(len(a))
}

// unknownOutput names the first tensor for an output that the program does not have.
func (p *Program) unknownOutput(out Feed) error {
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if !slices.Contains(p.outputs, name) {
			return feedError(name, "unknown name", "one of "+strings.Join(p.outputs, ", "), "a tensor")
		}
	}
	return nil
}

func feedError(name, what, want, got string) error { return &FeedError{name, what, want, got, nil} }

func outputError(name string, y *Tensor, want string) error {
	switch {
	case y == nil:
		return feedError(name, "missing", want, "no tensor")
	case y.Err() != nil:
		return &FeedError{name, "tensor", want, y.Err().Error(), y.Err()}
	}
	return feedError(name, "output", want, typeOf(y))
}

// fits says whether the inputs have the shapes and static values that the runner is compiled for.
func (r *Runner) fits() bool {
	at := 0
	for i, t := range r.e.prog.Inputs {
		x := r.in[i]
		if x == nil || x.Err() != nil || x.DType() != t.DType || !slices.Equal(x.Shape(), t.Dims) {
			return false
		}
		for k := range r.p.inputs[i].values {
			if want := r.values[at]; x.Int(k) != want && !(want == undecided && r.p.inputs[i].decides) {
				return false
			}
			at++
		}
	}
	return true
}

func (r *Runner) respecialise(ctx context.Context, in Feed) error {
	r.p.dropLease(r.lease)
	values, err := r.p.bind(nil, in)
	if err != nil {
		return err
	}
	e, err := r.p.acquire(ctx, values)
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
		for _, s := range r.p.inputs[i].values {
			r.values = append(r.values, values[s])
		}
	}
	return nil
}
