package ir

import (
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// Tensor is a dense row-major tensor in memory: little-endian elements on every host that the native kernels support.
type Tensor struct {
	dtype DType
	shape []int64
	data  []byte
	err   error
	rest  *rest // of a program's own tensor: where its bytes are
}

// Elem is a Go type that holds one element of a dtype.
type Elem interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | Float16 | BFloat16 | float32 | float64 | complex64
}

// DTypeOf is the dtype that T holds.
func DTypeOf[T Elem]() DType {
	var z T
	switch any(z).(type) {
	case bool:
		return Bool
	case int8:
		return I8
	case int16:
		return I16
	case int32:
		return I32
	case int64:
		return I64
	case uint8:
		return U8
	case uint16:
		return U16
	case uint32:
		return U32
	case uint64:
		return U64
	case Float16:
		return F16
	case BFloat16:
		return BF16
	case float32:
		return F32
	case float64:
		return F64
	}
	return C64
}

// New is the tensor of the given shape over data, which it aliases: data must not change while the tensor is in use. A shape that
// does not fit the data gives a tensor whose Err says so; every function that takes the tensor returns that error.
func New[T Elem](data []T, shape ...int) *Tensor {
	t := &Tensor{dtype: DTypeOf[T](), shape: make([]int64, len(shape))}
	for i, d := range shape {
		t.shape[i] = int64(d)
	}
	n, err := count(t.shape)
	if err == nil && n != int64(len(data)) {
		err = &TensorError{fmt.Sprintf("tensor %s%v", t.dtype, shape), fmt.Sprintf("%d elements", len(data)), fmt.Sprint(n)}
	}
	if err != nil {
		t.err = err
		return t
	}
	t.data = bytesOf(data)
	return t
}

func bytesOf[T any](data []T) []byte {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*int(unsafe.Sizeof(data[0])))
}

// FromBytes is the tensor over little-endian bytes, which it aliases.
func FromBytes(dtype DType, shape []int64, data []byte) (*Tensor, error) {
	n, err := ByteSize(dtype, shape)
	if err != nil {
		return nil, err
	}
	if n != int64(len(data)) {
		return nil, &TensorError{fmt.Sprintf("tensor %s%v", dtype, shape), fmt.Sprintf("%d bytes", len(data)), fmt.Sprint(n)}
	}
	return &Tensor{dtype: dtype, shape: shape, data: data}, nil
}

// Zeros is a tensor of zeros in memory of its own, aligned for every dtype. More than the machine has available is an error. It keeps the slice of a shape given as shape...
func Zeros(dtype DType, shape ...int64) (*Tensor, error) {
	n, err := ByteSize(dtype, shape)
	if err != nil {
		return nil, err
	}
	data, err := Alloc(n)
	if err != nil {
		return nil, fmt.Errorf("tensor %s%v: %w", dtype, shape, err)
	}
	return &Tensor{dtype: dtype, shape: shape, data: data}, nil
}

// Aligned returns n zero bytes that start at a multiple of eight.
func Aligned(n int64) []byte {
	data := bytesOf(make([]uint64, (n+7)/8))[:n:n]
	adviseHuge(data)
	return data
}

// count is the product of the dims; a negative dim and a product beyond int64 are errors.
func count(shape []int64) (int64, error) {
	if len(shape) > MaxRank {
		return 0, &TensorError{fmt.Sprintf("tensor of shape %v", shape), fmt.Sprintf("rank %d", len(shape)), fmt.Sprintf("at most %d", MaxRank)}
	}
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, &TensorError{fmt.Sprintf("tensor of shape %v", shape), fmt.Sprintf("negative dim %d", d), "dims >= 0"}
		}
		n = satMul(n, d)
	}
	if slices.Contains(shape, 0) { // whatever the other dims are
		return 0, nil
	}
	if n == math.MaxInt64 {
		return 0, &TensorError{fmt.Sprintf("tensor of shape %v", shape), "2^63-1 elements or more", "fewer"}
	}
	return n, nil
}

// MaxRank is the largest rank of a tensor.
const MaxRank = 8

// maxBytes is more than any machine's address space gives to one object: make panics beyond it.
const maxBytes = min(1<<47, math.MaxInt)

var errNilTensor = &TensorError{"tensor", "nil", "a tensor"}

// ByteSize is the number of bytes of a tensor; an impossible shape is an error.
func ByteSize(dtype DType, shape []int64) (int64, error) {
	if !dtype.Valid() {
		return 0, &TensorError{"tensor", fmt.Sprintf("%s, which is not a dtype", dtype), "a dtype"}
	}
	n, err := count(shape)
	if err != nil {
		return 0, err
	}
	if n = satMul(n, int64(dtype.Size())); n > maxBytes {
		return 0, &TensorError{fmt.Sprintf("tensor %s%v", dtype, shape), "a size larger than the address space", fmt.Sprintf("at most %d bytes", int64(maxBytes))}
	}
	return n, nil
}

// Scalar is the rank-0 tensor that holds v.
func Scalar[T Elem](v T) *Tensor { return New([]T{v}) }

// Err says what is wrong with a tensor that New could not make.
func (t *Tensor) Err() error {
	if t == nil {
		return errNilTensor
	}
	if t.rest != nil && t.err == nil {
		return t.rest.fail()
	}
	return t.err
}

// DType is the type of the elements.
func (t *Tensor) DType() DType { return t.dtype }

// Shape is the list of dims, outermost first. It must not be changed.
func (t *Tensor) Shape() []int64 { return t.shape }

// Rank is the number of dims.
func (t *Tensor) Rank() int { return len(t.shape) }

// Len is the number of elements.
func (t *Tensor) Len() int { return t.Size() / max(t.dtype.Size(), 1) }

// Size is the number of bytes.
func (t *Tensor) Size() int {
	if t.rest != nil {
		return t.rest.size
	}
	return len(t.data)
}

// Bytes is the memory of the tensor itself.
func (t *Tensor) Bytes() []byte {
	b := t.Within()
	return b[:len(b):len(b)]
}

// Within is Bytes with the capacity of the memory that they are a part of, such as a file's: who must not keep that alive can tell.
func (t *Tensor) Within() []byte {
	if t.rest != nil {
		b, _ := t.rest.bytes()
		return b
	}
	return t.data
}

// Type is the tensor's type, all dims static.
func (t *Tensor) Type() Type {
	shape := make([]Dim, len(t.shape))
	for i, d := range t.shape {
		shape[i] = D(d)
	}
	return Type{t.dtype, shape}
}

// String is the tensor's type and its first elements.
func (t *Tensor) String() string {
	if err := t.Err(); err != nil {
		return err.Error()
	}
	n := min(t.Len(), 8)
	s := fmt.Sprintf("%s%v[", t.dtype, t.shape)
	for i := range n {
		if i > 0 {
			s += " "
		}
		s += fmt.Sprint(t.At(i))
	}
	if t.Len() > n {
		s += " ..."
	}
	return s + "]"
}

// At is element i of the flattened tensor: bool, int64, uint64, float64 or complex64.
func (t *Tensor) At(i int) any {
	switch {
	case t.dtype == Bool:
		return t.Bytes()[i] != 0
	case t.dtype == C64:
		v, _ := Data[complex64](t)
		return v[i]
	case SignedInt.Has(t.dtype):
		return t.Int(i)
	case Unsigned.Has(t.dtype):
		return uint64(t.Int(i))
	}
	return t.Float(i)
}

// Data is a typed view of t's elements, without a copy. A dtype other than T's is an error that names both.
func Data[T Elem](t *Tensor) ([]T, error) {
	if err := t.Err(); err != nil {
		return nil, err
	}
	if want := DTypeOf[T](); t.dtype != want {
		return nil, &TensorError{"tensor " + t.Type().String(), "dtype " + t.dtype.String(), want.String()}
	}
	return view[T](t.Bytes()), nil
}

// view reinterprets bytes; memory that is not aligned for T is copied.
func view[T any](b []byte) []T {
	var z T
	n := len(b) / int(unsafe.Sizeof(z))
	if n == 0 {
		return []T{}
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%unsafe.Alignof(z) != 0 {
		c := make([]T, n)
		copy(bytesOf(c), b)
		return c
	}
	return unsafe.Slice((*T)(p), n)
}
