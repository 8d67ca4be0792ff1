package rlx_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// sumCase is a Reduce of x, of which result i adds the elements groups[i].
type sumCase struct {
	name   string
	fn     op.ReduceFn
	dims   []int
	x      []float32
	groups [][]int
}

// sumValues are what sums in f32 hold, and what they do not: sums that overflow on the way, squares that overflow or vanish, numbers that are none.
func sumValues(r *rand.Rand, n, spread int) []float32 {
	x := normals(r, n)
	for i := range x {
		switch spread {
		case 1:
			x[i] = float32(float64(x[i]) * 1e38)
		case 2:
			x[i] *= 1e-30
		case 3:
			x[i] *= drawFrom[float32](r, 0, 1e-42, 1e-22, 1, 1e18, 1e25)
		case 5:
			x[i] = float32(math.Copysign(0, -1)) // their sum is +0
		case 4:
			if r.IntN(n) < 2 {
				x[i] = drawFrom(r, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()))
			}
		}
	}
	return x
}

func sumMap(fn op.ReduceFn, v float64) float64 {
	switch fn {
	case "l1":
		return math.Abs(v)
	case "l2", "sum_square":
		return v * v
	}
	return v
}

// bounds gives the sum in f64, and how far one in another order may be from it once it is rounded.
func (c *sumCase) bounds(i int) (want, off float64) {
	var all float64
	for _, k := range c.groups[i] {
		v := sumMap(c.fn, float64(c.x[k]))
		want, all = want+v, all+math.Abs(v)
	}
	const unit, least = 0x1p-24, 0x1p-149
	switch off = 0x1p-52 * float64(len(c.groups[i])) * all; c.fn {
	case "mean":
		want, off = want/float64(len(c.groups[i])), off/float64(len(c.groups[i]))
	case "l2":
		want = math.Sqrt(want)
		off = 0x1p-52 * float64(len(c.groups[i])) * want
	}
	return want, off + unit*math.Abs(want) + least
}

// Sums are taken in f64 and rounded once, on every instruction set, for rows, columns and axes apart, of a tensor and of the body of a region.
func TestSumsInF64(t *testing.T) {
	if os.Getenv("RLX_TEST_SUMS") == "" {
		if !slices.Contains(backends(), "cpu") {
			t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
		}
		onEveryISA(t, "RLX_TEST_SUMS", func(*testing.T, []byte) {})
		return
	}
	r := rand.New(rand.NewPCG(9, 4))
	g, feed := rlx.NewGraph(""), rlx.Feed{}
	var cases []*sumCase
	for _, fn := range []op.ReduceFn{"sum", "mean", "l1", "l2", "sum_square"} {
		for n := 1; n < 2000; n += 1 + n/2 + r.IntN(5) {
			for layout, dims := range [][]int{{7, n, 1}, {1, n, 1 + r.IntN(40)}, {3, n, 5}, {2, n, 270}} {
				for spread := range 6 {
					c := &sumCase{name: fmt.Sprintf("%s%d.%d.%d", fn, n, layout, spread), fn: fn, dims: dims}
					c.x = sumValues(r, dims[0]*dims[1]*dims[2], spread)
					axes := []int{1}
					if layout == 2 && n%2 == 0 {
						axes = []int{0, 2} // apart
					}
					c.groups = groupsOf(dims, axes)
					cases = append(cases, c)
					feed[c.name] = rlx.New(c.x, dims...)
					x := g.Input(c.name, rlx.F32, rlx.Shape(dims[0], dims[1], dims[2]))
					g.Output(c.name, op.Reduce(x, fn, axes, false))
					g.Output(c.name+".region", op.Reduce(op.Mul(x, 1), fn, axes, false))
					signed, signs := slices.Clone(c.x), make([]float32, len(c.x)) // whose products are x
					for i := range signs {
						signs[i] = drawFrom[float32](r, -1, 1)
						signed[i] *= signs[i]
					}
					feed[c.name+".signed"], feed[c.name+".signs"] = rlx.New(signed, dims...), rlx.New(signs, dims...)
					a := g.Input(c.name+".signed", rlx.F32, rlx.Shape(dims[0], dims[1], dims[2]))
					b := g.Input(c.name+".signs", rlx.F32, rlx.Shape(dims[0], dims[1], dims[2]))
					g.Output(c.name+".products", op.Reduce(op.Mul(a, b), fn, axes, false))
				}
			}
		}
	}
	out, err := compileGraph(t, g, rlx.On("cpu")).Run(t.Context(), feed)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		for i := range c.groups {
			want, off := c.bounds(i)
			got := out[c.name].Float(i)
			for _, of := range []string{"region", "products"} {
				if region := out[c.name+"."+of].Float(i); got != region && (got == got || region == region) {
					t.Errorf("%s, result %d: Reduce gives %g, ReduceRegion of %s %g", c.name, i, got, of, region)
				}
			}
			switch {
			case want != want:
				if got == got {
					t.Errorf("%s, result %d: got %g, expected NaN", c.name, i, got)
				}
			case math.Abs(want) > math.MaxFloat32: // or infinite
				if got != float64(float32(want)) {
					t.Errorf("%s, result %d: got %g, expected %g", c.name, i, got, float32(want))
				}
			case !(math.Abs(got-want) <= off) || (got == 0 && math.Signbit(got) && strings.HasSuffix(c.name, ".5")):
				t.Errorf("%s, result %d: got %g, expected %g within %g", c.name, i, got, want, off)
			}
		}
	}
}

// groupsOf gives the elements of each result of a Reduce over axes.
func groupsOf(dims, axes []int) [][]int {
	at := map[[3]int]int{}
	var groups [][]int
	for e := range dims[0] * dims[1] * dims[2] {
		index := [3]int{e / (dims[1] * dims[2]), e / dims[2] % dims[1], e % dims[2]}
		for _, a := range axes {
			index[a] = 0
		}
		i, ok := at[index]
		if !ok {
			i = len(groups)
			at[index], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], e)
	}
	return groups
}
