package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

var npyHeader = regexp.MustCompile(`^\{\s*'descr':\s*'([<>|=])([a-z]\d+)',\s*'fortran_order':\s*(True|False),\s*'shape':\s*\(([\d, ]*)\),?\s*\}\s*$`)

// readNPY reads a C-ordered, little-endian .npy file (formats 1 to 3). The data must be exactly what the header says.
func readNPY(path string) (*rlx.Tensor, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := parseNPY(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func parseNPY(b []byte) (*rlx.Tensor, error) {
	if len(b) < 12 || string(b[:6]) != "\x93NUMPY" {
		return nil, fmt.Errorf("is no .npy file, which numpy.save writes: it begins with %.16q", b[:min(len(b), 16)])
	}
	start, n := 10, int(binary.LittleEndian.Uint16(b[8:]))
	if b[6] > 1 {
		start, n = 12, int(binary.LittleEndian.Uint32(b[8:]))
	}
	if n > len(b)-start {
		return nil, fmt.Errorf("header of %d bytes, but the file has %d", n, len(b)-start)
	}
	m := npyHeader.FindStringSubmatch(string(b[start : start+n]))
	if m == nil {
		return nil, fmt.Errorf("header %.80q is not understood", b[start:start+n])
	}
	d, ok := npyDTypes[m[2]]
	switch {
	case !ok:
		return nil, fmt.Errorf("dtype %s is not read, expected one of %s", m[2], strings.Join(slices.Sorted(maps.Keys(npyDTypes)), " "))
	case m[1] == ">":
		return nil, fmt.Errorf("dtype >%s is big-endian, expected little-endian: x.astype('<%s') in NumPy", m[2], m[2])
	case m[3] == "True":
		return nil, errors.New("Fortran order, expected C order: numpy.ascontiguousarray(x)")
	}
	shape := []int64{}
	for _, s := range strings.Split(m[4], ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("shape (%s): %w", m[4], err)
		}
		shape = append(shape, v)
	}
	return ir.FromBytes(d, shape, b[start+n:])
}

var npyDTypes = map[string]rlx.DType{"b1": rlx.Bool, "i1": rlx.I8, "i2": rlx.I16, "i4": rlx.I32, "i8": rlx.I64, "u1": rlx.U8, "u2": rlx.U16, "u4": rlx.U32,
	"u8": rlx.U64, "f2": rlx.F16, "f4": rlx.F32, "f8": rlx.F64, "c8": rlx.C64}

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
