package ir_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	. "github.com/rlx-ml/rlx-go/rlx/ir"
)

func TestNewAliases(t *testing.T) {
	data := []float32{1, 2, 3, 4, 5, 6}
	x := New(data, 2, 3)
	if err := x.Err(); err != nil {
		t.Fatal(err)
	}
	if x.DType() != F32 || !slices.Equal(x.Shape(), []int64{2, 3}) || x.Rank() != 2 || x.Len() != 6 || len(x.Bytes()) != 24 {
		t.Errorf("got %s", x)
	}
	data[4] = 50
	view, err := Data[float32](x)
	if err != nil || view[4] != 50 || &view[0] != &data[0] {
		t.Errorf("got %v (%v), expected a view of the caller's slice", view, err)
	}
	view[0] = -1
	if data[0] != -1 || x.Float(0) != -1 || x.Int(0) != -1 || x.At(0) != -1.0 {
		t.Error("a write through the view does not show")
	}
	if got := x.Type().String(); got != "f32[2, 3]" {
		t.Errorf("type %s", got)
	}
}

func roundTrip[T Elem](t *testing.T, want DType, at any, data ...T) {
	t.Helper()
	x := New(data, len(data))
	got, err := Data[T](x)
	if err != nil || x.DType() != want || !slices.Equal(got, data) || x.At(len(data)-1) != at {
		t.Errorf("got %s (%v), expected %s%v whose last element is %v", x, err, want, data, at)
	}
	if s := Scalar(data[0]); s.Err() != nil || s.Rank() != 0 || s.Len() != 1 {
		t.Errorf("scalar %s", s)
	}
}

func TestEveryElem(t *testing.T) {
	roundTrip(t, Bool, true, false, true)
	roundTrip(t, I8, int64(-128), int8(1), -128)
	roundTrip(t, I16, int64(-300), int16(1), -300)
	roundTrip(t, I32, int64(-70000), int32(1), -70000)
	roundTrip(t, I64, int64(math.MinInt64), int64(1), math.MinInt64)
	roundTrip(t, U8, uint64(255), uint8(1), 255)
	roundTrip(t, U16, uint64(65535), uint16(1), 65535)
	roundTrip(t, U32, uint64(math.MaxUint32), uint32(1), math.MaxUint32)
	roundTrip(t, U64, uint64(math.MaxUint64), uint64(1), math.MaxUint64)
	roundTrip(t, F16, 1.5, Float16(0), 0x3E00)
	roundTrip(t, BF16, -2.0, BFloat16(0), 0xC000)
	roundTrip(t, F32, 0.5, float32(1), 0.5)
	roundTrip(t, F64, 0x1p-1074, 1.0, 0x1p-1074)
	roundTrip(t, C64, complex64(1-2i), complex64(0), 1-2i)
}

func TestTensorErrors(t *testing.T) {
	for _, tc := range []struct {
		x    *Tensor
		want string
	}{
		{New([]float32{1, 2, 3}, 2), "got 3 elements, expected 2"},
		{New([]float32{1, 2, 3}), "got 3 elements, expected 1"},
		{New([]float32{1}, -1), "negative dim"},
		{New([]float32{1}, 0, -1), "negative dim"},
		{New([]float32{1}, 1, 1, 1, 1, 1, 1, 1, 1, 1), "rank 9"},
		{New([]float32{1}, 1<<40, 1<<40), "elements or more"},
		{nil, "nil"},
	} {
		err := tc.x.Err()
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got error %v, expected %q", err, tc.want)
		}
		if _, derr := Data[float32](tc.x); derr == nil || derr.Error() != err.Error() {
			t.Errorf("Data gives %v, expected %v", derr, err)
		}
		if tc.x != nil && (tc.x.Len() != 0 || tc.x.String() != err.Error()) {
			t.Errorf("%s has %d elements", tc.x, tc.x.Len())
		}
	}
	if _, err := Data[float64](New([]float32{1})); err == nil || err.Error() != "tensor f32[]: got dtype f32, expected f64" {
		t.Errorf("got error %v", err)
	}
}

// A zero dim makes the size zero, however large its neighbours are; sizes that no machine has are errors, not panics.
func TestSizes(t *testing.T) {
	for _, tc := range []struct {
		dtype DType
		shape []int64
		want  int64 // -1 for an error
	}{
		{F32, nil, 4}, {F64, []int64{3, 5}, 120}, {Bool, []int64{7}, 7}, {C64, []int64{2}, 16}, {F4E2M1, []int64{3}, 3},
		{F32, []int64{0}, 0}, {F32, []int64{math.MaxInt64, 0}, 0}, {F32, []int64{0, math.MaxInt64, math.MaxInt64}, 0},
		{U8, []int64{1 << 40}, 1 << 40}, {U8, []int64{math.MaxInt64}, -1}, {F32, []int64{1 << 61}, -1}, {F32, []int64{1 << 62}, -1},
		{F32, []int64{-1}, -1}, {F32, []int64{-1, 0}, -1}, {Invalid, []int64{1}, -1}, {DType(200), []int64{1}, -1},
		{U8, []int64{1, 1, 1, 1, 1, 1, 1, 1}, 1}, {U8, []int64{1, 1, 1, 1, 1, 1, 1, 1, 1}, -1},
	} {
		got, err := ByteSize(tc.dtype, tc.shape)
		if (err != nil) != (tc.want < 0) || err == nil && got != tc.want {
			t.Errorf("%s%v: got %d (%v), expected %d", tc.dtype, tc.shape, got, err, tc.want)
		}
		if tc.want > 1<<20 {
			continue
		}
		z, err := Zeros(tc.dtype, tc.shape...)
		if (err != nil) != (tc.want < 0) || err == nil && int64(len(z.Bytes())) != tc.want {
			t.Errorf("Zeros(%s, %v) is %v (%v)", tc.dtype, tc.shape, z, err)
		}
	}
	if x := New([]int8{}, math.MaxInt, 0); x.Err() != nil || x.Len() != 0 {
		t.Errorf("got %v", x.Err())
	}
}

func TestFromBytes(t *testing.T) {
	b := []byte{1, 0, 0, 0, 2, 0, 0, 0, 9}
	if _, err := FromBytes(I32, []int64{2}, b); err == nil || !strings.Contains(err.Error(), "got 9 bytes, expected 8") {
		t.Errorf("got error %v", err)
	}
	// Memory that is not aligned for the element type is still read right.
	mem := make([]byte, 13)
	copy(mem[1:], []byte{1, 0, 0, 0, 2, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF})
	x, err := FromBytes(I32, []int64{3}, mem[1:])
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Data[int32](x); err != nil || !slices.Equal(got, []int32{1, 2, -1}) || x.Int(2) != -1 {
		t.Errorf("got %v (%v)", got, err)
	}
	if got := x.String(); got != "i32[3][1 2 -1]" {
		t.Errorf("got %s", got)
	}
}

func TestDTypes(t *testing.T) {
	sizes := map[string]int{"bool": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8,
		"c64": 8, "f8e4m3": 1, "f8e5m2": 1, "f4e2m1": 1, "e8m0": 1}
	if len(DTypes()) != len(sizes) {
		t.Errorf("%d dtypes, expected %d", len(DTypes()), len(sizes))
	}
	for name, size := range sizes {
		d, err := ParseDType(name)
		if err != nil || d.String() != name || d.Size() != size || !d.Valid() || !AnyDType.Has(d) {
			t.Errorf("%s: %s of %d bytes (%v)", name, d, d.Size(), err)
		}
	}
	for _, name := range []string{"", "invalid", "float32", "F32"} {
		if _, err := ParseDType(name); err == nil {
			t.Errorf("%q is a dtype", name)
		}
	}
	if Invalid.Valid() || AnyDType.Has(Invalid) || DType(250).Valid() || DType(250).Size() != 0 || DType(250).String() != "dtype(250)" {
		t.Error("an unknown number is a dtype")
	}
	if got := Float.String(); got != "f16 bf16 f32 f64" {
		t.Errorf("got %s", got)
	}
}
