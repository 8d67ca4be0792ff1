package workload

import (
	"fmt"
	"math"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// convShape is c -> k channels over hw x hw, an r x r kernel, stride s, padding r/2, groups g.
type convShape struct{ c, hw, k, r, s, g int }

// convolutions have one image, channels first.
func convolutions() (l []Workload) {
	for _, c := range []convShape{{3, 224, 64, 7, 2, 1}, {64, 56, 64, 1, 1, 1}, {64, 56, 64, 3, 1, 1}, {64, 56, 256, 1, 1, 1}, {128, 28, 128, 3, 1, 1},
		{256, 14, 256, 3, 1, 1}, {512, 7, 512, 3, 1, 1}, {256, 56, 512, 1, 2, 1}, {144, 56, 144, 3, 1, 144}, {384, 14, 384, 3, 1, 384}} {
		l = append(l, c.workload())
	}
	return l
}

// out is the size of the result.
func (c convShape) out() int { return (c.hw+2*(c.r/2)-c.r)/c.s + 1 }

// flop counts the taps that fall on the input.
func (c convShape) flop() float64 {
	taps := 0 // along one axis
	for y := range c.out() {
		for t := range c.r {
			if at := y*c.s + t - c.r/2; at >= 0 && at < c.hw {
				taps++
			}
		}
	}
	return 2 * float64(taps*taps) * float64(c.c/c.g) * float64(c.k)
}

// of convolves x with normal weights of the given deviation.
func (c convShape) of(b *Builder, name string, x rlx.Value, deviation float64) rlx.Value {
	w := b.Param(name, deviation, c.k, c.c/c.g, c.r, c.r)
	s, p := int64(c.s), int64(c.r/2)
	return op.Conv2d(x, w, rlx.Value{}, op.ConvAttrs{Stride: []int64{s, s}, Padding: []int64{p, p}, Groups: int64(c.g)})
}

// terms is how many products a sum has.
func (c convShape) terms() float64 { return float64(c.c / c.g * c.r * c.r) }

func (c convShape) workload() Workload {
	name, o := "conv", c.out()
	if c.g > 1 {
		name = "dw"
	}
	return Workload{
		Name: fmt.Sprintf("%s.f32.c%dx%dk%dr%ds%d", name, c.c, c.hw, c.k, c.r, c.s),
		Flop: c.flop(), Bytes: 4 * float64(c.c*c.hw*c.hw+c.k*o*o+c.k*(c.c/c.g)*c.r*c.r), Unit: "f32",
		define: func(b *Builder) {
			b.Output("y", c.of(b, "w", b.Input("x", 1, c.c, c.hw, c.hw), 1/math.Sqrt(c.terms())))
		},
	}
}
