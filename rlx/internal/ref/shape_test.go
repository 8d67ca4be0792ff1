package ref

import (
	"math"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Moved elements keep their bits: a NaN its payload, an 8-bit code its value.
func TestMovesKeepBits(t *testing.T) {
	nan := math.Float32frombits(0x7f812345)
	y, err := indexing(t, false, func(in []ir.Value) ir.Value {
		return op.Pad(in[0], ir.Dims(2), op.PadReflect, ir.Number{})
	}, ir.New([]float32{1, nan}, 2))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := ir.Data[float32](y)
	for i, want := range []uint32{0x3f800000, 0x7f812345, 0x3f800000, 0x7f812345, 0x3f800000, 0x7f812345} {
		if math.Float32bits(got[i]) != want {
			t.Errorf("element %d is %08x, expected %08x", i, math.Float32bits(got[i]), want)
		}
	}
	codes, err := ir.FromBytes(ir.F8E4M3, []int64{2, 2}, []byte{0x7f, 0x01, 0x80, 0xff})
	if err != nil {
		t.Fatal(err)
	}
	y, err = indexing(t, false, func(in []ir.Value) ir.Value { return op.Transpose(in[0]) }, codes)
	if err != nil || !slices.Equal(y.Bytes(), []byte{0x7f, 0x80, 0x01, 0xff}) {
		t.Errorf("got %x, %v, expected 7f8001ff", y.Bytes(), err)
	}
}

// The start of DynamicUpdateSlice is clamped whatever its dtype and size.
func TestDynamicUpdateSliceClamps(t *testing.T) {
	x, u := ir.New([]int32{0, 0, 0, 0}, 4), ir.New([]int32{1, 2}, 2)
	write := func(in []ir.Value) ir.Value { return op.DynamicUpdateSlice(in[0], in[1], in[2], 0) }
	for _, c := range []struct {
		start *ir.Tensor
		want  []int32
	}{
		{ir.Scalar(uint64(math.MaxUint64)), []int32{0, 0, 1, 2}},
		{ir.Scalar(int64(math.MinInt64)), []int32{1, 2, 0, 0}},
		{ir.Scalar(float32(1)), []int32{0, 1, 2, 0}},
		{ir.Scalar(float32(-1e30)), []int32{1, 2, 0, 0}},
	} {
		y, err := indexing(t, false, write, x, u, c.start)
		if err != nil {
			t.Error(err)
		} else if got, _ := ir.Data[int32](y); !slices.Equal(got, c.want) {
			t.Errorf("start %v: got %v, expected %v", c.start, got, c.want)
		}
	}
	y, err := indexing(t, true, write, x, u, ir.Scalar(int8(-3)))
	if err != nil || !slices.Equal(y.Bytes()[:4], []byte{1, 0, 0, 0}) {
		t.Errorf("composed, start -3: got %v, %v, expected [1 2 0 0]", y, err)
	}
}

// An infinity under a tap of weight 0 must not make a NaN: output 2 lies exactly on element 1, next to it.
func TestResizeSkipsZeroWeights(t *testing.T) {
	x := ir.New([]float32{0, 4, float32(math.Inf(1))}, 3)
	resize := func(in []ir.Value) ir.Value {
		return op.Resize(in[0], op.ResizeAttrs{Mode: op.ResizeLinear, CoordinateMode: op.Asymmetric, Scales: []float64{2}})
	}
	for _, composed := range []bool{false, true} {
		y, err := indexing(t, composed, resize, x)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := ir.Data[float32](y)
		if inf := float32(math.Inf(1)); !slices.Equal(got, []float32{0, 2, 4, inf, inf, inf}) {
			t.Errorf("composed %v: got %v, expected [0 2 4 +Inf +Inf +Inf]", composed, got)
		}
	}
}
