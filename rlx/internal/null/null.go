// Package null is a backend that validates programs and runs nothing: outputs keep the bytes they came with, which are zeros for a
// fresh tensor. It measures what compiling and calling cost, and it is the skeleton to copy for a new backend:
//
//  1. Copy the package, name the backend, and let its package's init call backend.Register (this one registers on demand only).
//  2. Caps: list the ops and dtypes that have kernels. What is missing is decomposed, staged on the host, or refused by Compile.
//  3. Weights: bring the constants to the device, once per program; a child numbers its constants after its parent's.
//  4. Load: decode the words, choose a kernel for each command that is not staged, refuse what breaks a rule. Run must not fail for a
//     reason that Load can see.
//  5. Run: execute the commands of a stretch in order on the memory of the arguments; ask the arena's cancel word before each. An arena
//     that the host cannot reach has no Bytes, and Write and Read instead.
//  6. Run the conformance suite on it.
package null

import (
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Name is what rlx.On takes.
const Name = "null"

// Register makes the backend known to rlx.On. Programs that never call it cannot pick it by accident.
func Register() { backend.Register(null{}) }

type null struct{}

func (null) Name() string { return Name }

// Check would look for a driver.
func (null) Check() error { return nil }

// Caps claims every op for every dtype, with operands of any strides.
func (null) Caps() []backend.Cap {
	var caps []backend.Cap
	for _, r := range ir.Rows() {
		if !r.Has(ir.Leaf) {
			caps = append(caps, backend.Cap{Op: r.Num(), DTypes: uint32(ir.AnyDType), Strided: true})
		}
	}
	return caps
}

var info = backend.DeviceInfo{Name: "nothing", ISA: "none", Threads: 1}

func (null) Devices() ([]backend.DeviceInfo, error) { return []backend.DeviceInfo{info}, nil }

func (null) Open(i int, _ backend.Options) (backend.Device, error) {
	if i != 0 {
		return nil, fail(backend.NoDevice, -1, "device %d, there is one", i)
	}
	return &device{info}, nil
}

func fail(code backend.Code, command int, format string, args ...any) error {
	return &backend.Error{Backend: Name, Code: code, Command: command, Text: fmt.Sprintf(format, args...)}
}

// device is used by pointer: the runtime tells open devices apart by comparing them.
type device struct{ info backend.DeviceInfo }

func (d *device) Info() backend.DeviceInfo { return d.info }
func (*device) Caps() []backend.Cap        { return null{}.Caps() }
func (*device) NativeBytes() int64         { return 0 }
func (*device) Close() error               { return nil }

// weights is how many bytes each constant has: enough to hold the words against.
type weights []int

func (weights) Close() error { return nil }

func (*device) Weights(parent backend.Weights, constants [][]byte) (backend.Weights, error) {
	own, _ := parent.(weights)
	own = own[:len(own):len(own)] // two children of one parent must not share what they append
	for _, c := range constants {
		own = append(own, len(c))
	}
	return own, nil
}

func (*device) Load(w backend.Weights, words []uint32) (backend.Program, error) {
	p, err := prog.Decode(words)
	if err != nil {
		return nil, fail(backend.BadWords, -1, "%v", err)
	}
	have, _ := w.(weights)
	if len(have) < len(p.Consts) {
		return nil, fail(backend.BadWords, -1, "got %d constants, the words read %d", len(have), len(p.Consts))
	}
	for i, t := range p.Consts {
		if n, _ := t.Bytes(); int64(have[i]) != n {
			return nil, fail(backend.BadWords, -1, "constant %d has %d bytes, the words read %d", i, have[i], n)
		}
	}
	return program{p}, nil
}

type program struct{ p *prog.Program }

func (p program) ArenaBytes() int64 { return p.p.ArenaBytes }
func (program) Close() error        { return nil }

func (p program) NewArena() (backend.Arena, error) {
	return backend.NewHostArena(ir.Aligned(p.p.ArenaBytes)), nil
}

// Run checks the memory that a run brings and honours its cancel word; the commands are what a real backend adds.
func (p program) Run(a *backend.RunArgs) error {
	if err := p.p.Stretch(a.First, a.Count); err != nil {
		return fail(backend.BadArgument, -1, "run: %v", err)
	}
	if a.Arena == nil || int64(len(a.Arena.Bytes())) < p.p.ArenaBytes {
		return fail(backend.BadArgument, -1, "the arena is smaller than %d bytes", p.p.ArenaBytes)
	}
	for _, g := range []struct {
		slot  prog.Slot
		types []prog.Type
		mem   [][]byte
	}{{prog.Input, p.p.Inputs, a.Inputs}, {prog.Output, p.p.Outputs, a.Outputs}, {prog.State, p.p.States, a.States}} {
		if len(g.mem) != len(g.types) {
			return fail(backend.BadArgument, -1, "got %d of slot %s, expected %d", len(g.mem), g.slot, len(g.types))
		}
		for i, t := range g.types {
			if n, _ := t.Bytes(); int64(len(g.mem[i])) < n {
				return fail(backend.BadArgument, -1, "%s %d has %d bytes, expected %d", g.slot, i, len(g.mem[i]), n)
			}
		}
	}
	for i := a.First; i < a.First+a.Count; i++ {
		if a.Arena.Cancel().IsSet() {
			return fail(backend.Cancelled, i, "cancelled")
		}
	}
	return nil
}
