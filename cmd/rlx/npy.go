package main

import (
	"fmt"
	"os"
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

// writeNPY writes t as a .npy file (format 1.0); dtypes that NumPy lacks are written as f32.
func writeNPY(path string, t *rlx.Tensor) error {
	descr, data := npyDType(t.DType()), t.Bytes()
	if descr == "" {
		f := make([]float32, t.Len())
		for i := range f {
			f[i] = float32(t.Float(i))
		}
		descr, data = "<f4", rlx.New(f, len(f)).Bytes()
	}
	shape := ""
	for _, d := range t.Shape() {
		shape += fmt.Sprintf("%d, ", d)
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n" // data start at a multiple of 64
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	return os.WriteFile(path, append(append(out, head...), data...), 0o666)
}

// npyDType is NumPy's name of a dtype, "" where it has none.
func npyDType(d rlx.DType) string {
	switch {
	case d == rlx.Bool:
		return "|b1"
	case d == rlx.C64:
		return "<c8"
	case ir.SignedInt.Has(d):
		return fmt.Sprintf("<i%d", d.Size())
	case ir.Unsigned.Has(d):
		return fmt.Sprintf("<u%d", d.Size())
	case d == rlx.F16 || d == rlx.F32 || d == rlx.F64:
		return fmt.Sprintf("<f%d", d.Size())
	}
	return ""
}
