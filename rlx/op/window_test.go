package op

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Shapes of window kinds follow symbols, and checks wait until they are bound.
func TestWindowShapesOfSymbols(t *testing.T) {
	x := func() ir.Value { return input(t, "n", 8, "h", 32) }
	two := []int64{2, 2}
	shapeIs(t, MaxPool(x(), PoolAttrs{KernelSize: []int64{3, 3}, Stride: two, Padding: []int64{1, 1}}), "[n, 8, floordiv(h - 1, 2) + 1, 16]")
	shapeIs(t, AvgPool(x(), PoolAttrs{KernelSize: two, CeilMode: true}), "[n, 8, min(ceildiv(h - 2, 2) + 1, ceildiv(h, 2)), 16]")
	shapeIs(t, MaxPool(x(), PoolAttrs{KernelSize: []int64{3, 3}, Stride: two, AutoPad: "same_upper"}), "[n, 8, ceildiv(h, 2), 16]")
	shapeIs(t, GlobalAvgPool(x()), "[n, 8, 1, 1]")
	v := x()
	w := v.Graph().Constant(ir.New(make([]float32, 8*5*2*2), 8, 5, 2, 2))
	shapeIs(t, ConvTranspose2d(v, w, ir.Value{}, ConvTransposeAttrs{Stride: two}), "[n, 5, 2*h, 64]")
	v = x()
	w = v.Graph().Constant(ir.New(make([]float32, 8*5*3*3), 8, 5, 3, 3))
	shapeIs(t, ConvTranspose2d(v, w, ir.Value{}, ConvTransposeAttrs{Stride: two, AutoPad: "same_lower"}), "[n, 5, 2*h, 64]")
}

// Attributes at the ends of int64 are errors of shape, not wraps.
func TestWindowAttributesBeyondMemory(t *testing.T) {
	far := int64(math.MaxInt64 - 3)
	failsWith(t, MaxPool(input(t, 1, 1, 8), PoolAttrs{KernelSize: []int64{far}, Padding: []int64{far - 1}}), "Pool: C6")
	failsWith(t, MaxPool(input(t, 1, 1, 8), PoolAttrs{KernelSize: []int64{2}, Dilation: []int64{far}}), "Pool: C6")
	failsWith(t, MaxPool(input(t, 1, 1, 8), PoolAttrs{KernelSize: []int64{2}, Dilation: []int64{1 << 40}, Padding: []int64{1<<40 - 5, 10}, Stride: []int64{1}}), "Pool: C7")
	v := input(t, 1, 1, 8)
	w := v.Graph().Constant(ir.New(make([]float32, 2), 1, 1, 2))
	failsWith(t, ConvTranspose1d(v, w, ir.Value{}, ConvTransposeAttrs{Stride: []int64{far}}), "ConvTranspose2d: C9")
}

// emptyWindow against a walk over all taps.
func TestEmptyWindow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 20000 {
		size, k, d, s := 1+r.Int64N(6), 1+r.Int64N(4), 1+r.Int64N(9), 1+r.Int64N(5)
		eff := d*(k-1) + 1
		begin, end := r.Int64N(eff), r.Int64N(eff)
		if size+begin+end < eff {
			continue
		}
		dims := ir.Dims(size)
		w := ConvWindow([]int64{s}, []int64{d}, []int64{begin, end}, "none", dims, ir.Dims(k))
		out, _ := w.Out[0].Static()
		want := false
		for p := range out {
			hit := false
			for tap := range k {
				at := p*s + tap*d - begin
				hit = hit || at >= 0 && at < size
			}
			want = want || !hit
		}
		if got := emptyWindow(w, 0, dims[0]); got != want {
			t.Fatalf("size %d kernel %d dilation %d stride %d padding %d %d: got %v, expected %v", size, k, d, s, begin, end, got, want)
		}
		if want {
			found++
		}
	}
	if found == 0 {
		t.Error("no drawn geometry has an empty window")
	}
}
