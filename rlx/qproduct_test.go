package rlx_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// codesOf is a tensor of random codes; extreme ones are all at an end of their range.
func codesOf(r *rand.Rand, d rlx.DType, extreme bool, dims ...int) *rlx.Tensor {
	n := 1
	for _, k := range dims {
		n *= k
	}
	b := make([]uint8, n)
	for i := range b {
		b[i] = uint8(r.Uint32())
		if extreme && d == rlx.U8 {
			b[i] = 255
		} else if extreme {
			b[i] = 128
		}
	}
	if d == rlx.U8 {
		return rlx.New(b, dims...)
	}
	s := make([]int8, n)
	for i := range s {
		s[i] = int8(b[i])
	}
	return rlx.New(s, dims...)
}

// TestProductsOfCodes wants QMatMul, QConv2d and Quantize to equal the interpreter's under every instruction set, each in a process of its own: signed and
// unsigned codes and their extremes, zero points, rows and depths that fill no tile, weights that are constant or not, one thread and two.
func TestProductsOfCodes(t *testing.T) {
	if os.Getenv("RLX_TEST_CODES") != "" {
		r := rand.New(rand.NewPCG(3, 4))
		for i := range 48 {
			productOfCodes(t, r, i)
		}
		halves(t, r)
		return
	}
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	onEveryISA(t, "RLX_TEST_CODES", func(*testing.T, []byte) {})
}

func productOfCodes(t *testing.T, r *rand.Rand, i int) {
	pick := func(n ...int) int { return n[r.IntN(len(n))] }
	dtypes := []rlx.DType{rlx.I8, rlx.U8}
	dx, dw, dy := dtypes[i%2], dtypes[i/2%2], []rlx.DType{rlx.I32, rlx.I8, rlx.U8}[i/4%3]
	zero := func(d rlx.DType) int64 {
		lo, hi := op.IntRange(d)
		return []int64{lo, hi, 0, lo + 128, lo + r.Int64N(256)}[r.IntN(5)]
	}
	constant, convolution, extreme := r.IntN(3) > 0, r.IntN(3) == 0, r.IntN(4) == 0
	m, k, n := pick(1, 2, 3, 5, 13, 14, 29, 130), pick(1, 2, 3, 7, 64, 131, 1030), pick(1, 8, 31, 33, 64, 100)
	q := op.QMatMulAttrs{XZeroPoint: zero(dx), WZeroPoint: zero(dw), Multiplier: 1, Dtype: dy}
	x, w, channels, groups := codesOf(r, dx, extreme, m, k), codesOf(r, dw, extreme, k, n), n, pick(1, 3)
	if convolution {
		x, w = codesOf(r, dx, extreme, 2, 6, pick(5, 9), pick(7, 40)), codesOf(r, dw, extreme, 3*pick(1, 7), 6/groups, 3, 2)
		channels = int(w.Shape()[0])
	}
	bias, factor := make([]int32, channels), make([]float32, channels)
	for j := range bias {
		bias[j], factor[j] = int32(r.Uint32()), r.Float32()*0.003
	}
	g := rlx.NewGraph("codes")
	vx, vw := g.Input("x", dx, x.Type().Shape), g.Input("w", dw, w.Type().Shape)
	feed := rlx.Feed{"x": x, "w": w}
	if constant {
		vw = g.Param("wc", w)
	}
	vb, vm := g.Param("bias", rlx.New(bias, channels)), rlx.Value{}
	if dy != rlx.I32 {
		q.OutZeroPoint, q.Multiplier = zero(dy), 0.001
		if r.IntN(2) == 0 {
			vm = g.Param("multiplier", rlx.New(factor, channels))
		}
	}
	if convolution {
		a := op.QConv2dAttrs{Stride: []int64{1, 2}, Padding: []int64{1, 0, 1, 1}, Groups: int64(groups), XZeroPoint: q.XZeroPoint, WZeroPoint: q.WZeroPoint,
			OutZeroPoint: q.OutZeroPoint, Multiplier: q.Multiplier, Dtype: dy}
		g.Output("y", op.QConv2d(vx, vw, vb, vm, a))
	} else {
		g.Output("y", op.QMatMul(vx, vw, vb, vm, q))
	}
	name := fmt.Sprintf("%d: %s by %s to %s, x %v, w %v, constant %v, %+v", i, dx, dw, dy, x.Shape(), w.Shape(), constant, q)
	want, err := compileGraph(t, g, rlx.On("ref")).Run(t.Context(), feed)
	if err != nil {
		t.Fatal(name, err)
	}
	for threads := 1; threads <= 2; threads++ {
		got, err := compileGraph(t, g, rlx.On("cpu"), rlx.Threads(threads)).Run(t.Context(), feed)
		if err != nil {
			t.Fatal(name, err)
		}
		if !bytes.Equal(got["y"].Bytes(), want["y"].Bytes()) {
			t.Errorf("%s, %d threads: got %s, expected %s", name, threads, got["y"], want["y"])
		}
	}
}

// halves quantises numbers whose quotients lie on a half or next to one, beyond the range, or are no numbers.
func halves(t *testing.T, r *rand.Rand) {
	const rows, n = 40, 300
	x, scale, zero := make([]float32, rows*n), make([]float32, rows), make([]uint8, rows)
	for i := range rows {
		scale[i], zero[i] = float32(math.Exp(3*r.NormFloat64())), uint8(r.Uint32())
		switch i {
		case 0:
			scale[i] = math.SmallestNonzeroFloat32
		case 1:
			scale[i] = math.MaxFloat32
		}
		for j := range n {
			v := (float32(r.IntN(600)-300) + 0.5) * scale[i]
			switch r.IntN(16) {
			case 0, 1, 2, 3:
				v = math.Float32frombits(math.Float32bits(v) + uint32(r.IntN(5)) - 2)
			case 4, 5:
				v = float32(200*r.NormFloat64()) * scale[i]
			}
			x[i*n+j] = v
		}
		x[i*n+i], x[i*n+i+1], x[i*n+i+2], x[i*n+i+3] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.Copysign(0, -1))
	}
	for _, d := range []rlx.DType{rlx.U8, rlx.I8} {
		axis, g := int64(0), rlx.NewGraph("halves")
		z := rlx.Value{}
		if d == rlx.U8 {
			z = g.Param("zero", rlx.New(zero, rows))
		}
		g.Output("y", op.Quantize(g.Input("x", rlx.F32, rlx.Shape(rows, n)), g.Param("scale", rlx.New(scale, rows)), z, op.QuantizeAttrs{Axis: &axis, Dtype: d}))
		feed := rlx.Feed{"x": rlx.New(x, rows, n)}
		want, err := compileGraph(t, g, rlx.On("ref")).Run(t.Context(), feed)
		if err != nil {
			t.Fatal(err)
		}
		got, err := compileGraph(t, g, rlx.On("cpu")).Run(t.Context(), feed)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows * n {
			if got["y"].Int(i) != want["y"].Int(i) {
				t.Fatalf("%s: %v by %v: got %d, expected %d", d, x[i], scale[i/n], got["y"].Int(i), want["y"].Int(i))
			}
		}
	}
}
