//go:build vulkan && cgo && !windows

package vulkan_test

import (
	"math"
	"math/rand"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// wide draws f32 values of every size: any bits, ordinary numbers, numbers near 1, and the places where functions break.
func wide(rng *rand.Rand, n int) []float32 {
	corners := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 0.49999997, 1.5, 2.5, -2.5, 3, -3, 6, math.Inf(1), math.Inf(-1), math.NaN(), 1e30, -1e-30,
		88.7, 89.41, -87.4, -103.9, 128.5, -149.5, 8388607.5, 16777217, 3.4e38, 1e-45, -1e-40, 1.1754942e-38, math.Pi / 2, math.Pi, 1e5, 355. / 113}
	v := make([]float32, n)
	for i := range v {
		switch rng.Intn(5) {
		case 0:
			v[i] = math.Float32frombits(rng.Uint32())
		case 1:
			v[i] = float32(rng.NormFloat64() * math.Pow(10, float64(rng.Intn(5)-2)))
		case 2:
			v[i] = float32(1 + rng.NormFloat64()*math.Pow(10, -6*rng.Float64()))
		case 3:
			v[i] = float32(corners[rng.Intn(len(corners))])
		default:
			v[i] = float32(rng.NormFloat64())
		}
	}
	return v
}

// within says whether y is the rounded w but for the error that row s allows on a GPU. Results below the normal numbers may be flushed, those
// of functions made of others from 1e-30 on.
func within(s *op.Scalar, y float32, w float64) bool {
	if math.IsNaN(w) || math.IsNaN(float64(y)) {
		return math.IsNaN(w) && math.IsNaN(float64(y))
	}
	if math.IsInf(float64(float32(w)), 0) || math.IsInf(float64(y), 0) {
		return y == float32(w) || math.Abs(w) > 3.4028e38 && math.Signbit(w) == math.Signbit(float64(y)) && math.Abs(float64(y)) > 3.4028e38
	}
	_, e := math.Frexp(w)
	slack := s.AbsErr + 0x1p-126
	if !s.Primitive {
		slack += 1e-30
	}
	return math.Abs(float64(y)-w) <= (max(s.ULPGPU, 0.5)+0.5)*math.Ldexp(1, max(e-1, -126)-23)+slack
}

// Every function of one and of two f32 keeps the error bound of its row, against an evaluation in f64.
func TestScalarAccuracy(t *testing.T) {
	device(t)
	n := 1 << 15
	if testing.Short() {
		n = 1 << 11
	}
	rng := rand.New(rand.NewSource(5))
	a, b := wide(rng, n), wide(rng, n)
	feed := rlx.Feed{"a": rlx.New(a, n), "b": rlx.New(b, n)}
	check := func(s *op.Scalar, build func(a, b ir.Value) ir.Value) {
		if !s.Takes(op.ScalarFloat) || s.Predicate {
			return
		}
		g := rlx.NewGraph(s.Name)
		x := g.Input("a", rlx.F32, rlx.Shape(n))
		g.Output("y", build(x, g.Input("b", rlx.F32, rlx.Shape(n))))
		alpha, beta := s.Params32(s.Alpha, s.Beta)
		f, bad := s.Func(float64(alpha), float64(beta)), 0
		for i, y := range values(t, compile(t, g, "vulkan"), feed) {
			if w := f(float64(a[i]), float64(b[i])); !within(s, y, w) {
				if bad++; bad <= 3 {
					t.Errorf("%s(%g, %g): got %g, want %g", s.Name, a[i], b[i], y, w)
				}
			}
		}
	}
	for _, name := range op.UnaryNames() {
		s, _ := op.Unary(name)
		check(s, func(x, _ ir.Value) ir.Value { return op.Activation(x, op.UnaryFn(name), math.NaN(), math.NaN()) })
	}
	for _, name := range op.BinaryNames() {
		s, _ := op.Binary(name)
		check(s, func(x, y ir.Value) ir.Value { return op.BinaryOp(x, y, op.BinaryFn(name)) })
	}
}

// Fma rounds once, whatever the device's own fma does: all bits are those of ref, also where the product and c cancel.
func TestFmaBits(t *testing.T) {
	device(t)
	const n = 1 << 13
	rng := rand.New(rand.NewSource(6))
	a, b, c := wide(rng, n), wide(rng, n), wide(rng, n)
	for i := 0; i < n; i += 2 {
		c[i] = -a[i] * b[i]
	}
	feed := rlx.Feed{"a": rlx.New(a, n), "b": rlx.New(b, n), "c": rlx.New(c, n)}
	for _, d := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
		g := rlx.NewGraph("fma")
		in := func(name string) ir.Value { return op.Cast(g.Input(name, rlx.F32, rlx.Shape(n)), d) }
		g.Output("y", op.Cast(op.Fma(in("a"), in("b"), in("c")), ir.F32))
		got, want := values(t, compile(t, g, "vulkan"), feed), values(t, compile(t, g, "ref"), feed)
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
				t.Fatalf("%s: %g * %g + %g: got %g, want %g", d, a[i], b[i], c[i], got[i], want[i])
			}
		}
	}
}
