package rlx

import (
	"errors"
	"math"
	"sync"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/onnx"
)

// MemoryError is returned where a model or a program would need more memory than its MemoryLimit.
type MemoryError = onnx.MemoryError

// Limit is an option of both Open and Compile.
type Limit struct{ bytes int64 }

// MemoryLimit caps the memory that tensors take; what would exceed it is a *MemoryError before it is allocated. For Open these are the
// tensors made while the file is read: weights that are not in the file itself, and what is computed to find axes and sizes. For Compile
// they are the program's constants, the arenas of its runs, and the outputs of one run. A program with a limit keeps no second form of
// its weights that is faster to multiply with.
func MemoryLimit(bytes int64) Limit { return Limit{bytes} }

func (l Limit) applyOpen(o *opening) { o.onnx = append(o.onnx, onnx.MemoryLimit(l.bytes)) }
func (l Limit) apply(c *config)      { c.memory = &budget{limit: max(l.bytes, 0)} }

// budget counts what a program has taken of its limit; nil has no limit.
type budget struct {
	limit int64
	mu    sync.Mutex
	used  int64
}

// fits says that so many bytes are left, without taking them.
func (b *budget) fits(what string, bytes int64) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fitsLocked(what, bytes)
}

func (b *budget) fitsLocked(what string, bytes int64) error {
	if bytes > b.limit-b.used {
		return &MemoryError{What: what, Need: saturated(b.used, bytes), Limit: b.limit}
	}
	return nil
}

func (b *budget) take(what string, bytes int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.fitsLocked(what, bytes)
	if err == nil {
		b.used += bytes
	}
	return err
}

func (b *budget) give(bytes int64) {
	b.mu.Lock()
	b.used -= bytes
	b.mu.Unlock()
}

// saturated is a + b of numbers that are not negative.
func saturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// fitsOutputs says that the outputs of a run are within the limit.
func (b *budget) fitsOutputs(what string, g *ir.Graph) error {
	if b == nil {
		return nil
	}
	total := int64(0)
	for _, o := range g.Outputs {
		shape, _ := ir.StaticShape(o.Value.Shape())
		n, err := ir.ByteSize(o.Value.Type().DType, shape)
		if err != nil {
			n = math.MaxInt64
		}
		total = saturated(total, n)
	}
	return b.fits(what, total)
}

// capped is a device whose constants and arenas are counted.
type capped struct {
	backend.Device
	budget *budget
}

type cappedWeights struct {
	backend.Weights
	budget *budget
	bytes  int64
}

// Trim and Read forward to the weights, where they can do that.
func (w *cappedWeights) Trim() ([]bool, error) {
	if t, ok := w.Weights.(backend.Trimmer); ok {
		return t.Trim()
	}
	return nil, nil
}

func (w *cappedWeights) Read(i int, to []byte) error {
	if t, ok := w.Weights.(backend.Trimmer); ok {
		return t.Read(i, to)
	}
	return &backend.Error{Code: backend.Unsupported, Command: -1, Text: "the backend does not give constants back"}
}

// NativeBytes forwards to the weights.
func (w *cappedWeights) NativeBytes() int64 { return exec.NativeBytes(w.Weights) }

func (w *cappedWeights) Close() error {
	w.budget.give(w.bytes)
	w.bytes = 0
	return w.Weights.Close()
}

func bare(w backend.Weights) backend.Weights {
	if c, ok := w.(*cappedWeights); ok {
		return c.Weights
	}
	return w
}

func (d *capped) Weights(parent backend.Weights, constants [][]byte) (backend.Weights, error) {
	total := int64(0)
	for _, c := range constants {
		total += int64(len(c))
	}
	if err := d.budget.take("constants", total); err != nil {
		return nil, err
	}
	w, err := d.Device.Weights(bare(parent), constants)
	if err != nil {
		d.budget.give(total)
		return nil, err
	}
	return &cappedWeights{w, d.budget, total}, nil
}

// Load refuses a program of which not one run would fit.
func (d *capped) Load(w backend.Weights, words []uint32) (backend.Program, error) {
	p, err := d.Device.Load(bare(w), words)
	if err != nil {
		return nil, err
	}
	if err := d.budget.fits("memory of a run", p.ArenaBytes()); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return &cappedProgram{Program: p, budget: d.budget}, nil
}

// Probe forwards to the device.
func (d *capped) Probe(l backend.Limit, threads int, bytes uint64, seconds float64) (rate float64, err error) {
	if p, ok := d.Device.(backend.Prober); ok {
		return p.Probe(l, threads, bytes, seconds)
	}
	return 0, &backend.Error{Code: backend.Unsupported, Command: -1, Text: "the backend does not probe"}
}

// cappedProgram counts its arenas until they, or it, are closed.
type cappedProgram struct {
	backend.Program
	budget *budget
	mu     sync.Mutex
	arenas int64
}

func (p *cappedProgram) NewArena() (backend.Arena, error) {
	n := p.ArenaBytes()
	if err := p.budget.take("memory of a run", n); err != nil {
		return nil, err
	}
	a, err := p.Program.NewArena()
	if err != nil {
		p.budget.give(n)
		return nil, err
	}
	p.mu.Lock()
	p.arenas += n
	p.mu.Unlock()
	return a, nil
}

// NativeBytes forwards to the program.
func (p *cappedProgram) NativeBytes() int64 { return exec.NativeBytes(p.Program) }

// CloseArena closes an arena that NewArena made, and gives its memory back to the limit.
func (p *cappedProgram) CloseArena(a backend.Arena) error {
	p.mu.Lock()
	n := min(p.ArenaBytes(), p.arenas)
	p.budget.give(n)
	p.arenas -= n
	p.mu.Unlock()
	return a.Close()
}

func (p *cappedProgram) Close() error {
	p.mu.Lock()
	p.budget.give(p.arenas)
	p.arenas = 0
	p.mu.Unlock()
	return p.Program.Close()
}

// cap puts the device of a target under the limit of the program.
func (c *config) cap(t *exec.Target) {
	if c.memory != nil {
		t.Device = &capped{t.Device, c.memory}
	}
}
