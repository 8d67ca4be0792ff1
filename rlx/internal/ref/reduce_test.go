package ref

import (
	"fmt"
	"math"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// evaluate computes v, which depends on constants alone, node by node. With apart set, nodes run as their decompositions.
func evaluate(t *testing.T, v ir.Value, apart bool) *ir.Tensor {
	t.Helper()
	if err := v.Graph().Err(); err != nil {
		t.Fatal(err)
	}
	if c, ok := v.Const(); ok {
		return c
	}
	n := v.Node()
	if apart {
		if parts := n.Row.Decompose(n); parts != nil {
			return evaluate(t, parts[v.Index()], apart)
		}
	}
	in := make([]*ir.Tensor, len(n.In))
	for i, o := range n.In {
		if !o.IsZero() {
			in[i] = evaluate(t, o, apart)
		}
	}
	out, err := Apply(n.Row, n.Attrs, in, n.Types)
	if err != nil {
		t.Fatal(err)
	}
	return out[v.Index()]
}

func text(x *ir.Tensor) string {
	s := ""
	for i := range x.Len() {
		s += fmt.Sprint(x.At(i), " ")
	}
	return s
}

// The sign of a zero: max(-0, +0) = +0 and min = -0, in any order, and TopK moves elements with their bits.
func TestZeroSigns(t *testing.T) {
	negative := math.Copysign(0, -1)
	nan := math.Float64frombits(0x7ff8000000000123)
	g := ir.NewGraph("g")
	for _, pair := range [][]float64{{negative, 0}, {0, negative}} {
		x := g.Constant(ir.New(pair, 2))
		if m := evaluate(t, op.ReduceMax(x), false).Float(0); math.Signbit(m) {
			t.Errorf("max of %v is -0", pair)
		}
		if m := evaluate(t, op.ReduceMin(x), false).Float(0); !math.Signbit(m) {
			t.Errorf("min of %v is +0", pair)
		}
		y, index := op.CumMax(x, 0)
		if m := evaluate(t, y, false).Float(1); math.Signbit(m) {
			t.Errorf("running max of %v ends with -0", pair)
		}
		if got := text(evaluate(t, index, false)); got != "0 0 " {
			t.Errorf("running max of %v stands at %s, expected 0 0", pair, got)
		}
		if got := evaluate(t, op.ArgMax(x, 0), false).Int(0); got != 0 {
			t.Errorf("ArgMax of %v is %d, expected 0", pair, got)
		}
	}
	top, _ := op.TopK(g.Constant(ir.New([]float64{0, nan, negative, 1}, 4)), 4, 0, true)
	got, err := ir.Data[float64](evaluate(t, top, false))
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{nan, 1, 0, negative}; fmt.Sprint(bits(got)) != fmt.Sprint(bits(want)) {
		t.Errorf("TopK gave bits %x, expected %x", bits(got), bits(want))
	}
}

func bits(v []float64) (b []uint64) {
	for _, f := range v {
		b = append(b, math.Float64bits(f))
	}
	return b
}

// Values at the ends of the integers, where a conversion to f64 rounds across an edge; counted by hand.
func TestHistogramEnds(t *testing.T) {
	g := ir.NewGraph("g")
	for _, c := range []struct {
		x      *ir.Tensor
		bins   int64
		lo, hi float64
		want   string
	}{
		{ir.New([]int64{math.MaxInt64, math.MaxInt64 - 1, 0, -1, math.MinInt64}, 5), 2, -0x1p63, 0x1p63, "2 3 "},
		{ir.New([]int64{1 << 53, 1<<53 + 1, 1<<53 + 2}, 3), 1, 0, 0x1p53, "1 "},
		{ir.New([]uint64{math.MaxUint64, 1 << 63, 1<<63 - 1, 0}, 4), 2, 0, 0x1p64, "2 2 "},
		{ir.New([]uint64{0, 1, 5}, 3), 2, -4, 4, "0 2 "},
		{ir.New([]int8{-128, 127, 3}, 3), 3, -1e30, 1e30, "0 3 0 "},
		{ir.New([]int8{-128, 127}, 2), 2, 1e30, 2e30, "0 0 "},
		{ir.New([]float32{0.1, float32(math.Nextafter32(0.1, 0)), 0.3}, 3), 2, 0.1, 0.3, "1 0 "},
		{ir.New([]float64{-1e308, 0, 1.5e308, math.Inf(1), math.NaN()}, 5), 2, -1.6e308, 1.6e308, "1 2 "},
		{ir.New([]float32{math.MaxFloat32, float32(math.Inf(1))}, 2), 1, 0, 1e39, "1 "},
	} {
		for _, apart := range []bool{false, true} {
			y := op.Histogram(g.Constant(c.x), c.bins, c.lo, c.hi)
			if got := text(evaluate(t, y, apart)); got != c.want {
				t.Errorf("%s in %d bins over [%g, %g], apart %v: got %s, expected %s", c.x, c.bins, c.lo, c.hi, apart, got, c.want)
			}
		}
	}
}

// The differences of the maximum are exact here, so the logarithms are too.
func TestLogSoftmax(t *testing.T) {
	g := ir.NewGraph("g")
	y := op.LogSoftmax(g.Constant(ir.New([]float32{1e4, 0, -1e4}, 3)), -1)
	if got := text(evaluate(t, y, false)); got != "0 -10000 -20000 " {
		t.Errorf("got %s", got)
	}
	empty := op.LogSoftmax(g.Constant(ir.New([]float32{}, 2, 0)), 1)
	if got := evaluate(t, empty, false); got.Len() != 0 || got.Rank() != 2 {
		t.Errorf("empty axis: got %s", got)
	}
}

// A product beyond the f16 range on its way comes back; a row far from 0 keeps its spread when it is computed in parts.
func TestAccumulation(t *testing.T) {
	g := ir.NewGraph("g")
	half := func(v ...float64) *ir.Tensor {
		x := make([]ir.Float16, len(v))
		for i, f := range v {
			x[i] = ir.Float16(ir.F16FromF64(f))
		}
		return ir.New(x, len(x))
	}
	y := op.MatMul(g.Constant(half(60000, 60000, -60000)), g.Constant(half(1, 1, 1)))
	if got := evaluate(t, y, false).Float(0); got != 60000 {
		t.Errorf("f16 product: got %g, expected 60000", got)
	}
	x := g.Constant(ir.New([]float32{16777214, 16777215, 16777216, 16777218}, 4)) // mean 16777215.75, variance 2.1875
	ln := evaluate(t, op.LayerNorm(x, ir.Value{}, ir.Value{}, -1, 0), true)
	for i, d := range []float64{-1.75, -0.75, 0.25, 2.25} {
		if want := d / math.Sqrt(2.1875); math.Abs(ln.Float(i)-want) > 1e-5 {
			t.Errorf("LayerNorm in parts, element %d: got %g, expected %g", i, ln.Float(i), want)
		}
	}
}
