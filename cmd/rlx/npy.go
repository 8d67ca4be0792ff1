package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/sbinet/npyio/npy"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// readNPY reads a C-ordered, little-endian .npy file.
func readNPY(path string) (*rlx.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := npy.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d := r.Header.Descr
	if d.Fortran {
		return nil, fmt.Errorf("%s: Fortran order, expected C order", path)
	}
	if strings.HasPrefix(d.Type, ">") {
		return nil, fmt.Errorf("%s: dtype %s is big-endian, expected little-endian", path, d.Type)
	}
	t, err := readElements(r, strings.TrimLeft(d.Type, "<|="), d.Shape)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, t.Err()
}

func readElements(r *npy.Reader, dtype string, shape []int) (*rlx.Tensor, error) {
	switch dtype {
	case "f4":
		return readAs[float32](r, shape)
	case "f8":
		return readAs[float64](r, shape)
	case "i1":
		return readAs[int8](r, shape)
	case "i2":
		return readAs[int16](r, shape)
	case "i4":
		return readAs[int32](r, shape)
	case "i8":
		return readAs[int64](r, shape)
	case "u1":
		return readAs[uint8](r, shape)
	case "u2":
		return readAs[uint16](r, shape)
	case "u4":
		return readAs[uint32](r, shape)
	case "u8":
		return readAs[uint64](r, shape)
	case "b1":
		return readAs[bool](r, shape)
	case "c8":
		return readAs[complex64](r, shape)
	}
	return nil, fmt.Errorf("dtype %s is not read, expected one of f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 c8", dtype)
}

func readAs[T ir.Elem](r *npy.Reader, shape []int) (*rlx.Tensor, error) {
	var data []T
	n := 1
	for _, d := range shape {
		n *= d
	}
	if n > 0 {
		if err := r.Read(&data); err != nil {
			return nil, err
		}
	}
	return rlx.New(data, shape...), nil
}

// writeNPY writes t as a .npy file; dtypes that NumPy lacks are written as f32.
func writeNPY(path string, t *rlx.Tensor) error {
	elem, data := elements(t)
	typ := reflect.TypeOf(elem)
	for i := t.Rank() - 1; i >= 0; i-- {
		typ = reflect.ArrayOf(int(t.Shape()[i]), typ)
	}
	v := reflect.New(typ)
	if t.Len() > 0 {
		copyInto(v, data)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := npy.Write(f, v.Elem().Interface()); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.Close()
}

// copyInto fills the (nested) array that v points to from a flat slice of its elements.
func copyInto(v, data reflect.Value) {
	flat := reflect.NewAt(reflect.ArrayOf(data.Len(), data.Type().Elem()), v.UnsafePointer()).Elem()
	reflect.Copy(flat, data)
}

// elements is a zero element and all elements of t as a Go slice that NumPy has a dtype for.
func elements(t *rlx.Tensor) (any, reflect.Value) {
	switch t.DType() {
	case rlx.F64:
		return sliceOf[float64](t)
	case rlx.I8:
		return sliceOf[int8](t)
	case rlx.I16:
		return sliceOf[int16](t)
	case rlx.I32:
		return sliceOf[int32](t)
	case rlx.I64:
		return sliceOf[int64](t)
	case rlx.U8:
		return sliceOf[uint8](t)
	case rlx.U16:
		return sliceOf[uint16](t)
	case rlx.U32:
		return sliceOf[uint32](t)
	case rlx.U64:
		return sliceOf[uint64](t)
	case rlx.Bool:
		return sliceOf[bool](t)
	case rlx.C64:
		return sliceOf[complex64](t)
	case rlx.F32:
		return sliceOf[float32](t)
	}
	f := make([]float32, t.Len())
	for i := range f {
		f[i] = float32(t.Float(i))
	}
	return float32(0), reflect.ValueOf(f)
}

func sliceOf[T ir.Elem](t *rlx.Tensor) (any, reflect.Value) {
	var zero T
	s, _ := rlx.Data[T](t)
	return zero, reflect.ValueOf(s)
}
