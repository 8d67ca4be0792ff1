package rlx_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Convolutions of 3 x 3 kernels, whose results two by two share products: values within rounding of the interpreter's, NaNs, infinities and huge numbers
// exactly where a window reads one, and the same bits on one thread and several, in a batch and alone. Under every instruction set, each in a process of its own.
func TestConv3x3(t *testing.T) {
	if os.Getenv("RLX_TEST_CONV3X3") != "" {
		r := rand.New(rand.NewPCG(3, 33))
		for range 60 {
			newConv3x3(r).check(t)
		}
		return
	}
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	onEveryISA(t, "RLX_TEST_CONV3X3", func(*testing.T, []byte) {})
}

type conv3x3 struct {
	x, w     *ir.Tensor
	attrs    op.ConvAttrs
	constant bool // w is
}

func newConv3x3(r *rand.Rand) *conv3x3 {
	groups, per, outs := 1+r.IntN(2), 16+r.IntN(30), 16+r.IntN(60)
	high, wide := 12+r.IntN(20), 14+r.IntN(30)
	switch r.IntN(8) {
	case 0:
		per, high, wide = 130+r.IntN(40), 6+r.IntN(6), 7+r.IntN(6) // channels in several slices
	case 1:
		high, wide = 3+r.IntN(4), 230+r.IntN(20) // rows in several pieces
	}
	pad := func() int64 { return int64(r.IntN(3)) }
	c := &conv3x3{constant: r.IntN(3) > 0, attrs: op.ConvAttrs{Groups: int64(groups), Padding: []int64{pad(), pad(), pad(), pad()}}}
	items := 1 + r.IntN(3)
	c.x = ir.New(normals(r, items*groups*per*high*wide), items, groups*per, high, wide)
	c.w = ir.New(normals(r, groups*outs*per*9), groups*outs, per, 3, 3)
	odd := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e30, -2000}
	spoil := func(v *ir.Tensor, n int) {
		for range n {
			ir.PutFloat(ir.F32, v.Bytes(), r.IntN(v.Len()), float64(odd[r.IntN(len(odd))]))
		}
	}
	switch r.IntN(4) {
	case 0:
		spoil(c.x, 1+r.IntN(6))
	case 1:
		c.attrs.Padding = nil // where 0 times an infinity may be 0 or a NaN
		spoil(c.w, 1+r.IntN(3))
	}
	return c
}

func (c *conv3x3) run(t *testing.T, x *ir.Tensor, opts ...rlx.Option) *ir.Tensor {
	t.Helper()
	g := ir.NewGraph("conv")
	feed := rlx.Feed{"x": x}
	w := g.Constant(c.w)
	if !c.constant {
		w, feed["w"] = g.Input("w", ir.F32, ir.Dims(c.w.Shape()...)), c.w
	}
	g.Output("y", op.Conv2d(g.Input("x", ir.F32, ir.Dims(x.Shape()...)), w, ir.Value{}, c.attrs))
	out, err := compileGraph(t, g, opts...).Run(t.Context(), feed)
	if err != nil {
		t.Fatal(err)
	}
	return out["y"]
}

func (c *conv3x3) check(t *testing.T) {
	t.Helper()
	got, want := c.run(t, c.x, rlx.On("cpu"), rlx.Threads(1)), c.run(t, c.x, rlx.On("ref"))
	// Windows that read a huge number round in its size, the others as if there were none.
	const huge = 1000
	most := map[bool]float64{}
	for i := range want.Len() {
		if v := math.Abs(want.Float(i)); !math.IsInf(v, 0) && !math.IsNaN(v) {
			most[v > huge] = max(most[v > huge], v)
		}
	}
	for i := range want.Len() {
		a, b := got.Float(i), want.Float(i)
		if a != b && !(math.IsNaN(a) && math.IsNaN(b)) && !(math.Abs(a-b) <= 1e-5*most[math.Abs(b) > huge]) {
			t.Errorf("x %v, w %v, %+v: element %d: got %v, expected %v", c.x.Shape(), c.w.Shape(), c.attrs, i, a, b)
			break
		}
	}
	for n := 2; n <= 4; n++ {
		if !bytes.Equal(c.run(t, c.x, rlx.On("cpu"), rlx.Threads(n)).Bytes(), got.Bytes()) {
			t.Errorf("x %v, w %v, %+v: other bits on %d threads", c.x.Shape(), c.w.Shape(), c.attrs, n)
		}
	}
	shape := c.x.Shape()
	size, row := len(c.x.Bytes())/int(shape[0]), len(got.Bytes())/int(shape[0])
	for i := range int(shape[0]) {
		one, err := ir.Zeros(ir.F32, append([]int64{1}, shape[1:]...)...)
		if err != nil {
			t.Fatal(err)
		}
		copy(one.Bytes(), c.x.Bytes()[i*size:])
		if !bytes.Equal(c.run(t, one, rlx.On("cpu"), rlx.Threads(2)).Bytes(), got.Bytes()[i*row:(i+1)*row]) {
			t.Errorf("x %v, w %v, %+v: item %d has other bits alone", shape, c.w.Shape(), c.attrs, i)
		}
	}
}
