package ref

import (
	"math"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// apply builds one node on tensors and runs it.
func apply(t *testing.T, kind string, given map[string]string, in ...*ir.Tensor) *ir.Tensor {
	t.Helper()
	row, err := ir.RowByName(kind)
	if err != nil {
		t.Fatal(err)
	}
	a, err := row.NewAttrs(given)
	if err != nil {
		t.Fatal(err)
	}
	g := ir.NewGraph("test")
	values := make([]ir.Value, len(in))
	for i, x := range in {
		values[i] = g.Constant(x)
	}
	n, err := g.Add(row, "", a, values...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Apply(row, n.Attrs, in, n.Types)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func wantBits[T ir.Elem](t *testing.T, got *ir.Tensor, want ...T) {
	t.Helper()
	if w := ir.New(want, len(want)); string(got.Bytes()) != string(w.Bytes()) {
		t.Errorf("got %v, want %v", got, w)
	}
}

func TestClampReadsIntegerBoundsExactly(t *testing.T) {
	x := ir.New([]int64{math.MinInt64, -1, math.MaxInt64}, 3)
	wantBits(t, apply(t, "Clamp", map[string]string{"min": "-9223372036854775807", "max": "9223372036854775806"}, x),
		int64(math.MinInt64+1), -1, math.MaxInt64-1)
	u := ir.New([]uint64{0, 5, math.MaxUint64}, 3)
	wantBits(t, apply(t, "Clamp", map[string]string{"min": "-1", "max": "18446744073709551614"}, u), uint64(0), 5, math.MaxUint64-1)
	wantBits(t, apply(t, "Clamp", map[string]string{"min": "1e30"}, u), uint64(math.MaxUint64), math.MaxUint64, math.MaxUint64)
}

// 2^60 + 2^36 + 1 lies just above the tie between the f32 neighbours 2^60 and 2^60 + 2^37; by way of f64 it would be the tie and go
// down. 1 + 2^-8 + 2^-30 lies just above the tie of bf16; by way of f32 it would be the tie and go down to 1.
func TestCastRoundsOnce(t *testing.T) {
	x := ir.New([]int64{1<<60 + 1<<36 + 1, -(1<<60 + 1<<36 + 1)}, 2)
	wantBits(t, apply(t, "Cast", map[string]string{"dtype": "f32"}, x), float32(1<<60+1<<37), -(1<<60 + 1<<37))
	y := ir.New([]float64{1 + 0x1p-8 + 0x1p-30}, 1)
	wantBits(t, apply(t, "Cast", map[string]string{"dtype": "bf16"}, y), ir.BFloat16(0x3F81))
}

// (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 exactly, where two roundings give 0; 2^100 + 2^-100 in f64 is 2^100, whose odd neighbour must
// not show in f32.
func TestFmaRoundsOnce(t *testing.T) {
	a := ir.New([]float32{1 + 0x1p-12, 0x1p50}, 2)
	c := ir.New([]float32{-(1 + 0x1p-11), 0x1p-100}, 2)
	wantBits(t, apply(t, "Fma", nil, a, a, c), float32(0x1p-24), 0x1p100)
}

func TestCompareUnsigned(t *testing.T) {
	a, b := ir.New([]uint64{math.MaxUint64, 1 << 63}, 2), ir.New([]uint64{1, 1<<63 + 1}, 2)
	wantBits(t, apply(t, "Compare", map[string]string{"fn": "lt"}, a, b), false, true)
}

func TestAliasesAndDefaults(t *testing.T) {
	x := ir.New([]float32{4, -2}, 2)
	wantBits(t, apply(t, "Activation", map[string]string{"fn": "recip"}, x), float32(0.25), -0.5)
	wantBits(t, apply(t, "Activation", map[string]string{"fn": "leaky_relu", "alpha": "0.5", "beta": "7"}, x), float32(4), -1)
	wantBits(t, apply(t, "Activation", map[string]string{"fn": "thresholded_relu"}, x), float32(4), 0)
}

func TestUnaryErrorNamesFunctionAndDtype(t *testing.T) {
	row, err := ir.RowByName("Activation")
	if err != nil {
		t.Fatal(err)
	}
	for fn, dtype := range map[string]ir.DType{"exp": ir.F8E4M3, "relu": ir.C64, "not": ir.U8} {
		a, err := row.NewAttrs(map[string]string{"fn": fn})
		if err != nil {
			t.Fatal(err)
		}
		g := ir.NewGraph("test")
		_, err = g.Add(row, "", a, g.Input("x", dtype, nil))
		if err == nil || !strings.Contains(err.Error(), "Activation: C2: "+fn+" of dtype "+dtype.String()) {
			t.Errorf("%s of %s: got error %v", fn, dtype, err)
		}
	}
}
