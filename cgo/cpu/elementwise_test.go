//go:build cgo && !windows

package cpu_test

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// The kernels against the reference interpreter, which computes in f64 one element at a time: every function and dtype, over views of
// every kind and over operands that lie in the arena, where results may take their place.

var shapes = [][]int64{{}, {1}, {17}, {2500}, {5, 3, 37}, {3, 300}, {2, 3, 4, 5}, {40, 130}, {0, 3}, {6, 1, 4}}

var corners = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 2.5, -2.5, 3, 6, -6, math.Inf(1), math.Inf(-1), math.NaN(), 1e30, -1e-30, 20, -88,
	100, -128.5, 255.9, 2147483648, -9.3e18, 1.9e19, 65520, 448, 465, 61440, 1e-40, 5e-8, 2e-3}

type suite struct {
	*testing.T
	rng  *rand.Rand
	mild bool // operands of ordinary size only
}

func (s *suite) tensor(d ir.DType, shape []int64) *ir.Tensor {
	t, err := ir.Zeros(d, shape...)
	if err != nil {
		s.Fatal(err)
	}
	b, size := t.Bytes(), d.Size()
	switch {
	case ir.Float.Has(d) || d == ir.C64:
		e, n := d, t.Len()
		if d == ir.C64 {
			e, n = ir.F32, 2*n
		}
		for i := range n {
			v := s.rng.NormFloat64()
			if !s.mild && d != ir.C64 {
				if v *= math.Pow(10, float64(s.rng.Intn(4)-1)); s.rng.Intn(4) == 0 {
					v = corners[s.rng.Intn(len(corners))]
				}
			}
			ir.PutFloat(e, b, i, v)
		}
	case d == ir.Bool:
		for i := range b {
			b[i] = byte(s.rng.Intn(2))
		}
	default: // any bits, small numbers, and the least integer
		s.rng.Read(b)
		for at := 0; ir.Int.Has(d) && at < len(b); at += size {
			switch e := b[at : at+size]; s.rng.Intn(4) {
			case 0, 1:
				v := s.rng.Intn(12) - 6
				for k := range e {
					e[k] = byte(v >> (8 * min(k, 3)))
				}
			case 2:
				clear(e)
				e[size-1] = 0x80
			}
		}
	}
	return t
}

// check builds operands of one shape as views of inputs, and runs what build makes of them on both backends.
func (s *suite) check(label string, dtypes []ir.DType, broadcast bool, bound bound, build func(v []ir.Value) ir.Value) {
	s.Helper()
	shape := shapes[s.rng.Intn(len(shapes))]
	g, feed := ir.NewGraph("test"), rlx.Feed{}
	v := make([]ir.Value, len(dtypes))
	for i, d := range dtypes {
		kind := s.rng.Intn(10)
		if !broadcast {
			kind %= 6
		}
		label += fmt.Sprintf(" %d", kind)
		v[i] = s.view(g, feed, d, shape, kind)
	}
	g.Output("y", build(v))
	if err := g.Err(); err != nil {
		s.Fatal(label, err)
	}
	bound.compare(s.T, fmt.Sprint(label, " ", shape), s.run(g, feed, "cpu"), s.run(g, feed, "ref"))
}

func (s *suite) view(g *ir.Graph, feed rlx.Feed, d ir.DType, shape []int64, kind int) ir.Value {
	in, r := append([]int64{}, shape...), len(shape)
	input := func(dims []int64) ir.Value {
		name := fmt.Sprint("x", len(feed))
		feed[name] = s.tensor(d, dims)
		return g.Input(name, d, ir.Dims(dims...))
	}
	switch {
	case kind == 1 && r >= 2:
		perm := []int{0, 1, 2, 3, 4}[:r]
		in[r-1], in[r-2], perm[r-1], perm[r-2] = in[r-2], in[r-1], r-2, r-1
		return op.Transpose(input(in), perm...)
	case kind == 2 && r >= 1:
		return op.Reverse(input(in), r-1)
	case kind == 3 && r >= 1:
		in[r-1] *= 2
		return op.Slice(input(in), ir.Dims(0), ir.Dims(in[r-1]), []int{r - 1}, []int64{2})
	case kind == 4 && r >= 1:
		for i := range in {
			in[i] = 1
		}
		return op.Expand(input(in), ir.Dims(shape...)...)
	case kind == 5 && ir.Real.Has(d):
		return op.Neg(op.Neg(input(in)))
	case kind == 6 && r >= 1:
		return input(in[1:])
	case kind == 7:
		return input(nil)
	case kind == 8 && r >= 1:
		in[r-1] = 1
	case kind == 9 && r >= 2:
		in[r-2] = 1
	}
	return input(in)
}

func (s *suite) run(g *ir.Graph, feed rlx.Feed, backend string) *ir.Tensor {
	s.Helper()
	p, err := rlx.Compile(context.Background(), g, rlx.On(backend))
	if err != nil {
		s.Fatal(err)
	}
	defer p.Close()
	out, err := p.Run(context.Background(), feed)
	if err != nil {
		s.Fatal(err)
	}
	return out["y"]
}

// bound allows ulps of the result's dtype, plus abs, plus rel of the value; exact results have the zero bound.
type bound struct{ ulps, abs, rel float64 }

// of is the bound of a scalar function in f32, f64 or a half format. 1e-30 is the size below which some functions may give 0.
func of(s *op.Scalar, d ir.DType) bound {
	switch {
	case d == ir.F32:
		return bound{s.ULP + 0.5, s.AbsErr + 2e-30, 0}
	case d == ir.F64:
		return bound{s.ULP + 1.5, s.AbsErr + 2e-30, 0}
	case ir.Float.Has(d):
		return bound{1, s.AbsErr + 2e-30, 0}
	}
	return bound{}
}

func (b bound) compare(t *testing.T, label string, got, want *ir.Tensor) {
	t.Helper()
	d := want.DType()
	if got.DType() != d || fmt.Sprint(got.Shape()) != fmt.Sprint(want.Shape()) {
		t.Errorf("%s: got %s%v, want %s%v", label, got.DType(), got.Shape(), d, want.Shape())
		return
	}
	n, mantissa, least := want.Len(), 23, -126
	switch d {
	case ir.F16:
		mantissa, least = 10, -14
	case ir.BF16:
		mantissa = 7
	case ir.F64:
		mantissa, least = 52, -1022
	case ir.F32:
	case ir.C64:
		n, d = 2*n, ir.F32
	default:
		if string(got.Bytes()) != string(want.Bytes()) {
			t.Errorf("%s: got % x, want % x", label, got.Bytes(), want.Bytes())
		}
		return
	}
	for i := range n {
		x, y := ir.FloatAt(d, got.Bytes(), i), ir.FloatAt(d, want.Bytes(), i)
		_, e := math.Frexp(y)
		slack := b.ulps*math.Ldexp(1, max(e-1, least)-mantissa) + b.abs + b.rel*math.Abs(y)
		same := x == y && (b != bound{} || math.Signbit(x) == math.Signbit(y)) || x != x && y != y
		if !same && !(b != bound{} && math.Abs(x-y) <= slack) {
			t.Errorf("%s: element %d: got %v, want %v", label, i, x, y)
			return
		}
	}
}

// takes says whether fn is defined for d.
func takes(s *op.Scalar, d ir.DType) bool {
	switch {
	case ir.Float.Has(d):
		return s.Takes(op.ScalarFloat)
	case ir.Int.Has(d):
		return s.Takes(op.ScalarInt)
	}
	return d == ir.Bool && s.Takes(op.ScalarBool) || d == ir.C64 && s.Takes(op.ScalarC64)
}

// parameters are numbers that every float format holds, so that both sides compute with the same ones.
func parameters(s *op.Scalar) (alpha, beta float64) {
	alpha, beta = math.NaN(), math.NaN()
	if s.UsesAlpha() {
		alpha = 1.75
	}
	if s.UsesBeta() {
		beta = 0.5
	}
	return alpha, beta
}

func TestScalarFunctions(t *testing.T) {
	s := &suite{T: t, rng: rand.New(rand.NewSource(1))}
	for _, d := range ir.DTypes() {
		for _, name := range op.UnaryNames() {
			f, _ := op.Unary(name)
			if !takes(f, d) {
				continue
			}
			alpha, beta := parameters(f)
			for range 2 {
				s.check(name+" "+d.String(), []ir.DType{d}, false, of(f, d), func(v []ir.Value) ir.Value { return op.Activation(v[0], op.UnaryFn(name), alpha, beta) })
			}
			if f.Deriv(0) == nil || !ir.Float.Has(d) {
				continue
			}
			// The derivative of an f32 is f32: dy of any size would bring its underflow to light.
			s.mild = true
			b := bound{0, 1e-6, 1e-5}
			if d.Size() == 2 {
				b.ulps = 1
			}
			s.check(name+" backward "+d.String(), []ir.DType{d, d}, false, b, func(v []ir.Value) ir.Value {
				return op.ActivationBackward(v[0], v[1], op.UnaryFn(name), alpha, beta)
			})
			s.mild = false
		}
		for _, name := range op.BinaryNames() {
			f, _ := op.Binary(name)
			if !takes(f, d) {
				continue
			}
			b := of(f, d)
			if d == ir.C64 {
				b = bound{1, 1e-6, 0}
			}
			s.mild = name == "pow" && d == ir.F64
			for range 4 {
				s.check(name+" "+d.String(), []ir.DType{d, d}, true, b, func(v []ir.Value) ir.Value { return op.BinaryOp(v[0], v[1], op.BinaryFn(name)) })
			}
			s.mild = false
		}
		for _, name := range op.CompareNames() {
			if f, _ := op.Compare(name); takes(f, d) {
				s.check(name+" "+d.String(), []ir.DType{d, d}, true, bound{}, func(v []ir.Value) ir.Value { return op.CompareOp(v[0], v[1], op.CompareFn(name)) })
			}
		}
	}
}

func TestMoves(t *testing.T) {
	s := &suite{T: t, rng: rand.New(rand.NewSource(2))}
	for _, d := range ir.DTypes() {
		for range 4 {
			s.check("where "+d.String(), []ir.DType{ir.Bool, d, d}, true, bound{}, func(v []ir.Value) ir.Value { return op.Where(v[0], v[1], v[2]) })
		}
		for _, to := range ir.DTypes() {
			if d == ir.C64 && to != ir.C64 {
				continue
			}
			for _, cast := range []func(ir.Value, ir.DType) ir.Value{op.Cast, op.CastUnsaturated} {
				s.check(fmt.Sprintf("cast %s %s", d, to), []ir.DType{d}, false, bound{}, func(v []ir.Value) ir.Value { return cast(v[0], to) })
			}
		}
		if !ir.Real.Has(d) {
			continue
		}
		for range 4 {
			s.check("fma "+d.String(), []ir.DType{d, d, d}, true, bound{}, func(v []ir.Value) ir.Value { return op.Fma(v[0], v[1], v[2]) })
			s.check("clamp "+d.String(), []ir.DType{d}, false, bound{}, func(v []ir.Value) ir.Value { return op.Clamp(v[0], -3, 100) })
		}
		if ir.Float.Has(d) {
			s.check("clamp "+d.String(), []ir.DType{d}, false, bound{}, func(v []ir.Value) ir.Value { return op.Clamp(v[0], 0.1, 0.7) })
			s.check("relu backward "+d.String(), []ir.DType{d, d}, false, bound{}, func(v []ir.Value) ir.Value { return op.ReluBackward(v[0], v[1]) })
		}
	}
	for _, f := range []string{"f16", "bf16", "f8e4m3", "f8e5m2", "f6e2m3", "f6e3m2", "f4e2m1", "f5e1m3", "f8e7m0", "f19m10e8", "f9m4e4", "f32m23e8"} {
		for _, l := range op.ScaleLayout("").EnumValues() {
			for _, size := range []int{1, 5, 32} {
				s.check(fmt.Sprint("round ", f, " ", l, " ", size), []ir.DType{ir.F32}, false, bound{}, func(v []ir.Value) ir.Value {
					return op.RoundToFormat(v[0], f, op.ScaleLayout(l), size)
				})
			}
		}
	}
}

// TestTailBits: an element has the same bits in the middle of a long tensor and in a short one.
func TestTailBits(t *testing.T) {
	s := &suite{T: t, rng: rand.New(rand.NewSource(3))}
	for _, name := range op.UnaryNames() {
		f, _ := op.Unary(name)
		if !f.Takes(op.ScalarFloat) || f.Predicate {
			continue
		}
		x := s.tensor(ir.F32, []int64{3001})
		at := 3 + s.rng.Intn(2900)
		part, err := ir.FromBytes(ir.F32, []int64{5}, x.Bytes()[4*at:4*at+20])
		if err != nil {
			t.Fatal(err)
		}
		y := func(x *ir.Tensor) []byte {
			g := ir.NewGraph("test")
			g.Output("y", op.Activation(g.Input("x", ir.F32, ir.Dims(x.Shape()...)), op.UnaryFn(name), math.NaN(), math.NaN()))
			return s.run(g, rlx.Feed{"x": x}, "cpu").Bytes()
		}
		if whole, short := y(x), y(part); string(whole[4*at:4*at+20]) != string(short) {
			t.Errorf("%s: % x in the middle, % x alone", name, whole[4*at:4*at+20], short)
		}
	}
}

func TestSplines(t *testing.T) {
	s := &suite{T: t, rng: rand.New(rand.NewSource(4)), mild: true}
	for _, d := range ir.Float.List() {
		b := bound{0, 3e-6, 1e-5}
		if d.Size() == 2 {
			b.ulps = 1
		}
		for _, shape := range [][]int64{{5}, {33, 3}, {2, 7, 40}, {300, 17}, {0, 4}, {1}} {
			a := op.SplineAttrs{NumBasis: 2 + s.rng.Intn(9), GridMin: -2, GridMax: 1.5}
			for kind := range 3 {
				g, feed := ir.NewGraph("test"), rlx.Feed{}
				in := func(name string, dims ...int64) ir.Value {
					feed[name] = s.tensor(d, dims)
					return g.Input(name, d, ir.Dims(dims...))
				}
				c, x := shape[len(shape)-1], in("x", shape...)
				switch kind {
				case 0:
					g.Output("y", op.SplineActivation(x, in("c", c, int64(a.NumBasis)), a))
				case 1:
					g.Output("y", op.SplineActivationBackwardX(x, in("c", c, int64(a.NumBasis)), in("dy", shape...), a))
				case 2:
					g.Output("y", op.SplineActivationBackwardCoeff(x, in("dy", shape...), a))
				}
				b.compare(t, fmt.Sprint("spline ", kind, d, shape, a), s.run(g, feed, "cpu"), s.run(g, feed, "ref"))
			}
		}
	}
}
