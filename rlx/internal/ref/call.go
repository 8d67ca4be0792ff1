package ref

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// call is one command with its memory. Operands are contiguous here: strided ones were copied, so a kernel never sees strides, and
// an operand that shares memory with a result was copied too, so a kernel may write in any order.
type call struct {
	cmd *prog.Command
	in  []tensor
	out []tensor
	env
	consts [][]byte // of the program, for bodies
}

// env is what commands share with their run.
type env struct {
	cancel backend.Cancel
	seed   uint64
}

func envOf(a *backend.RunArgs) *env {
	e := &env{seed: a.Seed}
	if a.Arena != nil {
		e.cancel = a.Arena.Cancel()
	}
	return e
}

// tensor is one operand or result: contiguous, row-major.
type tensor struct {
	present bool
	dtype   ir.DType
	dims    []int64
	data    []byte
}

// attrs returns the command's attributes as their struct.
func attrs[A any](c *call) *A { return c.cmd.Attrs.(*A) }

// broken is a violated constraint found at run time: "C7: index 9 ...".
func broken(constraint, format string, args ...any) error {
	return errors.New(constraint + ": " + fmt.Sprintf(format, args...))
}

var errCancelled = errors.New("cancelled")

// stopped says that the run was cancelled; long kernels ask now and then and return errCancelled.
func (c *call) stopped() bool { return c.cancel != nil && c.cancel.IsSet() }

// has says whether operand i is present.
func (c *call) has(i int) bool { return i < len(c.in) && c.in[i].present }

// len is the number of elements.
func (t tensor) len() int {
	n := 1
	for _, d := range t.dims {
		n *= int(d)
	}
	return n
}

func (t tensor) rank() int { return len(t.dims) }

// at and set read and write element i as a float64, rounded once to the dtype.
func (t tensor) at(i int) float64     { return ir.FloatAt(t.dtype, t.data, i) }
func (t tensor) set(i int, v float64) { ir.PutFloat(t.dtype, t.data, i, v) }

// int and setInt do the same for integers and bools; setInt keeps the low bits.
func (t tensor) int(i int) int64       { return ir.IntAt(t.dtype, t.data, i) }
func (t tensor) setInt(i int, v int64) { ir.PutInt(t.dtype, t.data, i, v) }

// complex reads element i of a c64 tensor, setComplex writes it.
func (t tensor) complex(i int) complex128 {
	re := math.Float32frombits(binary.LittleEndian.Uint32(t.data[8*i:]))
	im := math.Float32frombits(binary.LittleEndian.Uint32(t.data[8*i+4:]))
	return complex(float64(re), float64(im))
}

func (t tensor) setComplex(i int, v complex128) {
	binary.LittleEndian.PutUint32(t.data[8*i:], math.Float32bits(float32(real(v))))
	binary.LittleEndian.PutUint32(t.data[8*i+4:], math.Float32bits(float32(imag(v))))
}

// elem is the bytes of element i; copyElem moves bits unchanged.
func (t tensor) elem(i int) []byte { s := t.dtype.Size(); return t.data[i*s : (i+1)*s] }

// isFloat and isInt say how to compute: floats through at and set, integers and bool through int and setInt.
func (t tensor) isFloat() bool { return ir.Float.Has(t.dtype) }
func (t tensor) isInt() bool   { return ir.Int.Has(t.dtype) }

// floats is all elements as float64, for kernels that read them many times.
func (t tensor) floats() []float64 {
	f := make([]float64, t.len())
	switch t.dtype {
	case ir.F32:
		for i := range f {
			f[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(t.data[4*i:])))
		}
	case ir.F64:
		for i := range f {
			f[i] = math.Float64frombits(binary.LittleEndian.Uint64(t.data[8*i:]))
		}
	default:
		for i := range f {
			f[i] = t.at(i)
		}
	}
	return f
}

// strides are the row-major strides of dims, in elements.
func strides(dims []int64) []int {
	s := make([]int, len(dims))
	n := 1
	for i := len(dims) - 1; i >= 0; i-- {
		s[i] = n
		n *= int(dims[i])
	}
	return s
}

// broadcast returns, for every element of a tensor of dims out, the index of the element of t that meets it.
func (t tensor) broadcast(out []int64) func(i int) int {
	if len(t.dims) == len(out) && t.len() == product(out) {
		return func(i int) int { return i }
	}
	st, os := strides(t.dims), strides(out)
	lead := len(out) - len(t.dims)
	return func(i int) int {
		at := 0
		for d := lead; d < len(out); d++ {
			if t.dims[d-lead] != 1 {
				at += i / os[d] % int(out[d]) * st[d-lead]
			}
		}
		return at
	}
}

func product(dims []int64) int {
	n := 1
	for _, d := range dims {
		n *= int(d)
	}
	return n
}

// around splits dims at axis: outer = product before it, n = its length, inner = product behind it. Element (o, k, i) is at
// (o*n+k)*inner+i.
func around(dims []int64, axis int) (outer, n, inner int) {
	return product(dims[:axis]), int(dims[axis]), product(dims[axis+1:])
}

// wrap turns a checked axis, negative or not, into one in [0, rank).
func wrap(axis, rank int) int {
	if axis < 0 {
		return axis + rank
	}
	return axis
}

// runCommand gathers the command's memory and runs its kernel.
func runCommand(cmd *prog.Command, slots map[prog.Slot][][]byte, e *env) error {
	c := &call{cmd: cmd, env: *e, consts: slots[prog.Const]}
	for _, o := range cmd.Out {
		c.out = append(c.out, tensor{true, o.DType, o.Dims, window(o, slots)})
	}
	for _, o := range cmd.In {
		if o.Absent {
			c.in = append(c.in, tensor{})
			continue
		}
		t := tensor{true, o.DType, o.Dims, nil}
		if o.IsContiguous() && !overlaps(o, cmd.Out) {
			t.data = window(o, slots)
		} else {
			t.data = gather(o, slots[o.Slot][o.Index])
		}
		c.in = append(c.in, t)
	}
	k := kernels[cmd.Row.Name]
	if k == nil {
		return fmt.Errorf("%s: the interpreter has no kernel", cmd.Row.Name)
	}
	return k(c)
}

// Command runs one command on the memory of a run, for programs that stage ops on the host.
func Command(cmd *prog.Command, a *backend.RunArgs, consts [][]byte) error {
	var mem []byte
	if a.Arena != nil {
		mem = a.Arena.Bytes()
	}
	return runCommand(cmd, map[prog.Slot][][]byte{prog.Arena: {mem}, prog.Input: a.Inputs, prog.Output: a.Outputs, prog.Const: consts, prog.State: a.States}, envOf(a))
}

// window is the memory of a contiguous operand.
func window(o prog.Operand, slots map[prog.Slot][][]byte) []byte {
	n := o.Count() * int64(o.DType.Size())
	return slots[o.Slot][o.Index][o.Offset : o.Offset+n : o.Offset+n]
}

// overlaps says whether o may share memory with a result. Results are contiguous; o is compared by slot alone where that is exact.
func overlaps(o prog.Operand, outs []prog.Operand) bool {
	for _, r := range outs {
		if r.Slot == o.Slot && r.Index == o.Index {
			size := int64(o.DType.Size())
			if o.Offset < r.Offset+r.Count()*int64(r.DType.Size()) && r.Offset < o.Offset+o.Count()*size {
				return true
			}
		}
	}
	return false
}

// gather copies a strided operand into row-major order.
func gather(o prog.Operand, mem []byte) []byte {
	size := int64(o.DType.Size())
	n := o.Count()
	out := make([]byte, n*size)
	for i, at := range o.Places(o.Offset) {
		copy(out[i*size:(i+1)*size], mem[at:at+size])
	}
	return out
}
