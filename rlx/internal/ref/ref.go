// Package ref interprets the command words in plain Go: the meaning of every op. It sums in f64, rounds once where the spec rounds,
// runs on one goroutine and is slow on purpose. It is always linked and needs no cgo.
package ref

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// kernel computes the results of one command.
type kernel func(c *call) error

var kernels = map[string]kernel{}

// on binds the meaning of the op called name. Family files call it in init.
func on(name string, k kernel) { kernels[name] = k }

// Has says whether the interpreter has a kernel for the row; it evaluates others through their decomposition, which is the compiler's to write.
func Has(r *ir.Row) bool { return kernels[r.Name] != nil }

// Mask takes capabilities away, so that the conformance suite reaches every path of the compiler.
type Mask struct {
	Keep    func(*ir.Row) bool // rows that stay native; nil for all
	Dense   bool               // operands must be contiguous
	Stage   bool               // rows that are not native may run on the host
	Compose bool               // what has a decomposition is decomposed, though it is native
	Private bool               // arenas that the host cannot reach
	Host    string             // backend that runs staged rows; "" for this one, so that its tests need no other
}

// New returns the backend under another name, masked.
func New(name string, m Mask) backend.Backend { return &ref{name, m} }

func init() { backend.Register(New("ref", Mask{})) }

type ref struct {
	name string
	mask Mask
}

// StageOnHost says whether a row that is not native may run on the host.
func (b *ref) StageOnHost(r *ir.Row) bool { return b.mask.Stage && Has(r) }

// HostBackend is what runs staged rows.
func (b *ref) HostBackend() string { return cmp.Or(b.mask.Host, "ref") }

// PoisonHost says whether memory of the host that stands for an arena holds NaN where nothing is carried to it.
func (b *ref) PoisonHost() bool { return b.mask.Private }

// ComposeFirst says whether the compiler shall decompose wherever it can.
func (b *ref) ComposeFirst() bool { return b.mask.Compose }

func (b *ref) Name() string { return b.name }
func (b *ref) Check() error { return nil }

func (b *ref) Caps() []backend.Cap {
	var caps []backend.Cap
	for _, r := range ir.Rows() {
		if kernels[r.Name] != nil && (b.mask.Keep == nil || b.mask.Keep(r)) {
			caps = append(caps, backend.Cap{Op: r.Num(), DTypes: ^uint32(0), Strided: !b.mask.Dense})
		}
	}
	return caps
}

func (b *ref) Devices() ([]backend.DeviceInfo, error) {
	return []backend.DeviceInfo{{Name: "Go interpreter", ISA: "go", Threads: 1}}, nil
}

func (b *ref) Open(i int, _ backend.Options) (backend.Device, error) {
	if i != 0 {
		return nil, &backend.Error{Backend: b.name, Code: backend.NoDevice, Command: -1, Text: fmt.Sprintf("device %d, there is one", i)}
	}
	return &device{b}, nil
}

type device struct{ *ref }

func (d *device) Info() backend.DeviceInfo {
	return backend.DeviceInfo{Name: "Go interpreter", ISA: "go", Threads: 1}
}
func (d *device) NativeBytes() int64 { return 0 }
func (d *device) Close() error       { return nil }

type weights [][]byte

func (weights) Close() error { return nil }

func (d *device) Weights(parent backend.Weights, constants [][]byte) (backend.Weights, error) {
	own, _ := parent.(weights)
	return append(own[:len(own):len(own)], constants...), nil
}

func (d *device) Load(w backend.Weights, words []uint32) (backend.Program, error) {
	p, err := prog.Decode(words)
	if err != nil {
		return nil, &backend.Error{Backend: d.name, Code: backend.BadWords, Command: -1, Text: err.Error()}
	}
	for i, c := range p.Commands {
		if name := lacking(&c); name != "" && !c.Staged {
			return nil, &backend.Error{Backend: d.name, Code: backend.Unsupported, Command: i, Text: name + " has no reference kernel"}
		}
	}
	consts, _ := w.(weights)
	if len(consts) < len(p.Consts) {
		return nil, &backend.Error{Backend: d.name, Code: backend.BadWords, Command: -1, Text: fmt.Sprintf("got %d constants, the words read %d", len(consts), len(p.Consts))}
	}
	for i, t := range p.Consts {
		if n, _ := t.Bytes(); int64(len(consts[i])) != n {
			return nil, &backend.Error{Backend: d.name, Code: backend.BadWords, Command: -1, Text: fmt.Sprintf("constant %d has %d bytes, the words read %d", i, len(consts[i]), n)}
		}
	}
	if d.mask.Private {
		return newPrivate(program{d.name, p, consts}), nil
	}
	return &program{d.name, p, consts}, nil
}

// lacking names the op of the command, or of a command in its bodies, that has no kernel.
func lacking(c *prog.Command) string {
	if kernels[c.Row.Name] == nil {
		return c.Row.Name
	}
	for _, b := range c.Bodies {
		for i := range b.Commands {
			if name := lacking(&b.Commands[i]); name != "" {
				return name
			}
		}
	}
	return ""
}

type program struct {
	name   string
	p      *prog.Program
	consts weights
}

func (p *program) ArenaBytes() int64 { return p.p.ArenaBytes }
func (p *program) Close() error      { return nil }

func (p *program) NewArena() (backend.Arena, error) {
	mem, err := ir.Alloc(p.p.ArenaBytes)
	if err != nil {
		return nil, &backend.Error{Backend: p.name, Code: backend.NoMemory, Command: -1, Text: err.Error()}
	}
	return backend.NewHostArena(mem), nil
}

var start = time.Now()

func (p *program) Run(a *backend.RunArgs) error {
	var mem []byte
	if a.Arena != nil {
		mem = a.Arena.Bytes()
	}
	slots := map[prog.Slot][][]byte{prog.Arena: {mem}, prog.Input: a.Inputs, prog.Output: a.Outputs, prog.Const: p.consts, prog.State: a.States}
	if err := p.check(slots, a); err != nil {
		return err
	}
	return p.stretch(slots, a)
}

// stretch runs the commands that a names on the memory of slots.
func (p *program) stretch(slots map[prog.Slot][][]byte, a *backend.RunArgs) error {
	e := envOf(a)
	for k := range a.Count {
		i := a.First + k
		if a.Arena != nil && a.Arena.Cancel().IsSet() {
			return &backend.Error{Backend: p.name, Code: backend.Cancelled, Command: i, Text: "cancelled"}
		}
		t0 := time.Since(start)
		if err := runCommand(&p.p.Commands[i], slots, e); err != nil {
			return p.wrap(i, err)
		}
		if a.Profile != nil {
			a.Profile[2*k], a.Profile[2*k+1] = uint64(t0), uint64(time.Since(start))
		}
		if a.Counters != nil {
			atomic.AddUint32(&a.Counters[k], 1)
		}
	}
	return nil
}

func (p *program) wrap(i int, err error) error {
	e := &backend.Error{Backend: p.name, Code: backend.BadValue, Command: i, Text: p.p.Commands[i].Row.Name + ": " + err.Error()}
	if errors.Is(err, errCancelled) {
		e.Code = backend.Cancelled
	}
	return e
}

// check holds a run against the words: its commands, and the size of its memory.
func (p *program) check(slots map[prog.Slot][][]byte, a *backend.RunArgs) error {
	bad := func(format string, args ...any) error {
		return &backend.Error{Backend: p.name, Code: backend.BadArgument, Command: -1, Text: fmt.Sprintf(format, args...)}
	}
	if err := p.p.Stretch(a.First, a.Count); err != nil {
		return bad("run: %v", err)
	}
	if a.Profile != nil && len(a.Profile) < 2*a.Count || a.Counters != nil && len(a.Counters) < a.Count {
		return bad("profile of %d and counters of %d entries for %d commands", len(a.Profile), len(a.Counters), a.Count)
	}
	for s, types := range map[prog.Slot][]prog.Type{prog.Input: p.p.Inputs, prog.Output: p.p.Outputs, prog.State: p.p.States} {
		if len(slots[s]) != len(types) {
			return bad("got %d of slot %s, expected %d", len(slots[s]), s, len(types))
		}
		for i, t := range types {
			if n, _ := t.Bytes(); int64(len(slots[s][i])) < n {
				return bad("%s %d has %d bytes, expected %d", s, i, len(slots[s][i]), n)
			}
		}
	}
	if int64(len(slots[prog.Arena][0])) < p.p.ArenaBytes {
		return bad("arena has %d bytes, expected %d", len(slots[prog.Arena][0]), p.p.ArenaBytes)
	}
	return nil
}

// Apply runs one op on tensors, as the constant folder does. Results are fresh.
func Apply(row *ir.Row, attrs any, in []*ir.Tensor, out []ir.Type) ([]*ir.Tensor, error) {
	k := kernels[row.Name]
	if k == nil && row.Composite() {
		return composed(row, attrs, in)
	}
	if k == nil {
		return nil, fmt.Errorf("%s has no reference kernel", row.Name)
	}
	c := &call{cmd: &prog.Command{Row: row, Attrs: attrs}, env: env{seed: op.DefaultSeed}}
	for _, t := range in {
		if t == nil {
			c.in = append(c.in, tensor{})
			continue
		}
		c.in = append(c.in, tensor{present: true, dtype: t.DType(), dims: t.Shape(), data: t.Bytes()})
	}
	results := make([]*ir.Tensor, len(out))
	for i, typ := range out {
		shape, ok := ir.StaticShape(typ.Shape)
		if !ok {
			return nil, fmt.Errorf("%s: result %d has shape %s, expected static dims", row.Name, i, ir.ShapeText(typ.Shape))
		}
		t, err := ir.Zeros(typ.DType, shape...)
		if err != nil {
			return nil, err
		}
		results[i] = t
		c.out = append(c.out, tensor{present: true, dtype: typ.DType, dims: shape, data: t.Bytes()})
	}
	if err := k(c); err != nil {
		return nil, fmt.Errorf("%s: %w", row.Name, err)
	}
	return results, nil
}
