// Package workload holds the benchmark workloads: graphs with seeded normal inputs, useful flop and least bytes, and a check of the
// result against the interpreter.
package workload

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Workload is one line of the benchmark.
type Workload struct {
	Name  string
	Flop  float64 // useful work, multiply and add are 2
	Bytes float64 // least traffic: each operand read once, each result written once
	Build func(r *Random) (*rlx.Graph, rlx.Feed)
}

// Random makes tensors of seeded normal numbers.
type Random struct{ r *rand.Rand }

// NewRandom returns a source that gives the same numbers for the same workload.
func NewRandom() *Random { return &Random{rand.New(rand.NewPCG(1, 2))} }

// Normal is a tensor of standard normal numbers times scale.
func (r *Random) Normal(scale float64, shape ...int) *rlx.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(scale * r.r.NormFloat64())
	}
	return rlx.New(v, shape...)
}

// All lists the workloads.
func All() []Workload {
	var l []Workload
	for _, s := range [][3]int{{128, 768, 768}, {512, 512, 512}, {1024, 1024, 1024}, {512, 4096, 4096}, {1, 4096, 4096}} {
		l = append(l, gemm(s[0], s[1], s[2]))
	}
	l = append(l,
		unary("layernorm.f32.4096x768", 8, 4096, 768, func(g *rlx.Graph, x rlx.Value, r *Random) rlx.Value {
			return op.LayerNorm(x, g.Param("gamma", r.Normal(1, 768)), g.Param("beta", r.Normal(1, 768)), -1, 1e-5)
		}),
		unary("rmsnorm.f32.4096x768", 5, 4096, 768, func(g *rlx.Graph, x rlx.Value, r *Random) rlx.Value {
			return op.RmsNorm(x, g.Param("gamma", r.Normal(1, 768)), rlx.Value{}, -1, 1e-5)
		}),
		unary("softmax.f32.4096x1024", 5, 4096, 1024, func(_ *rlx.Graph, x rlx.Value, _ *Random) rlx.Value { return op.Softmax(x, -1) }),
		unary("gelu.f32.4194304", 0, 1, 1<<22, func(_ *rlx.Graph, x rlx.Value, _ *Random) rlx.Value { return op.Gelu(x) }),
		unary("exp.f32.4194304", 0, 1, 1<<22, func(_ *rlx.Graph, x rlx.Value, _ *Random) rlx.Value { return op.Exp(x) }),
		unary("chain8.f32.4096x1024", 8, 4096, 1024, chain8),
		unary("cumsum.f32.4096x1024", 1, 4096, 1024, func(_ *rlx.Graph, x rlx.Value, _ *Random) rlx.Value { return op.Cumsum(x, -1) }),
	)
	for _, c := range []convShape{{3, 224, 64, 7, 2, 1}, {64, 56, 64, 1, 1, 1}, {64, 56, 64, 3, 1, 1}, {64, 56, 256, 1, 1, 1}, {128, 28, 128, 3, 1, 1},
		{256, 14, 256, 3, 1, 1}, {512, 7, 512, 3, 1, 1}, {256, 56, 512, 1, 2, 1}, {144, 56, 144, 3, 1, 144}, {384, 14, 384, 3, 1, 384}} {
		l = append(l, c.workload())
	}
	return append(l, adds(1), adds(100))
}

// Service is what the service rows of the benchmark run: a product and what follows it in a network, some milliseconds.
func Service() Workload {
	return Workload{Name: "service", Build: func(r *Random) (*rlx.Graph, rlx.Feed) {
		g := rlx.NewGraph("service")
		x := g.Input("x", rlx.F32, rlx.Shape(128, 768))
		y := op.Gelu(op.MatMul(x, g.Param("w", r.Normal(1/math.Sqrt(768), 768, 768))))
		g.Output("y", op.LayerNorm(op.Add(x, y), g.Param("gamma", r.Normal(1, 768)), g.Param("beta", r.Normal(1, 768)), -1, 1e-5))
		return g, rlx.Feed{"x": r.Normal(1, 128, 768)}
	}}
}

func gemm(m, n, k int) Workload {
	return Workload{
		Name: fmt.Sprintf("gemm.f32.%dx%dx%d", m, n, k), Flop: 2 * float64(m) * float64(n) * float64(k), Bytes: 4 * float64(m*k+k*n+m*n),
		Build: func(r *Random) (*rlx.Graph, rlx.Feed) {
			g := rlx.NewGraph("gemm")
			a := g.Input("a", rlx.F32, rlx.Shape(m, k))
			g.Output("y", op.MatMul(a, g.Param("b", r.Normal(1/math.Sqrt(float64(k)), k, n))))
			return g, rlx.Feed{"a": r.Normal(1, m, k)}
		},
	}
}

// unary is a graph of one input of rows x cols; flop counts per element.
func unary(name string, flop float64, rows, cols int, f func(*rlx.Graph, rlx.Value, *Random) rlx.Value) Workload {
	n := float64(rows) * float64(cols)
	return Workload{Name: name, Flop: flop * n, Bytes: 8 * n, Build: func(r *Random) (*rlx.Graph, rlx.Feed) {
		g := rlx.NewGraph(name)
		g.Output("y", f(g, g.Input("x", rlx.F32, rlx.Shape(rows, cols)), r))
		return g, rlx.Feed{"x": r.Normal(1, rows, cols)}
	}}
}

// chain8 is y = tanh(x*s + t) * x + relu(x - 0.5) * 0.25.
func chain8(g *rlx.Graph, x rlx.Value, r *Random) rlx.Value {
	s, t := g.Param("s", r.Normal(1, 1024)), g.Param("t", r.Normal(1, 1024))
	return op.Add(op.Mul(op.Tanh(op.Add(op.Mul(x, s), t)), x), op.Mul(op.Relu(op.Sub(x, 0.5)), 0.25))
}

// convShape is c -> k channels over hw x hw, an r x r kernel, stride s, padding r/2, groups g.
type convShape struct{ c, hw, k, r, s, g int }

// taps counts the kernel taps along one axis that fall on the input, and the output positions.
func (c convShape) taps() (taps, out int) {
	out = (c.hw+2*(c.r/2)-c.r)/c.s + 1
	for y := range out {
		for t := range c.r {
			if at := y*c.s + t - c.r/2; at >= 0 && at < c.hw {
				taps++
			}
		}
	}
	return taps, out
}

func (c convShape) workload() Workload {
	taps, o := c.taps()
	name := "conv"
	if c.g > 1 {
		name = "dw"
	}
	return Workload{
		Name:  fmt.Sprintf("%s.f32.c%dx%dk%dr%ds%d", name, c.c, c.hw, c.k, c.r, c.s),
		Flop:  2 * float64(taps*taps) * float64(c.c/c.g) * float64(c.k),
		Bytes: 4 * float64(c.c*c.hw*c.hw+c.k*o*o+c.k*(c.c/c.g)*c.r*c.r),
		Build: func(r *Random) (*rlx.Graph, rlx.Feed) {
			g := rlx.NewGraph("conv")
			x := g.Input("x", rlx.F32, rlx.Shape(1, c.c, c.hw, c.hw))
			w := g.Param("w", r.Normal(1/math.Sqrt(float64(c.c/c.g*c.r*c.r)), c.k, c.c/c.g, c.r, c.r))
			s, p := int64(c.s), int64(c.r/2)
			g.Output("y", op.Conv2d(x, w, rlx.Value{}, op.ConvAttrs{Stride: []int64{s, s}, Padding: []int64{p, p}, Groups: int64(c.g)}))
			return g, rlx.Feed{"x": r.Normal(1, 1, c.c, c.hw, c.hw)}
		},
	}
}

// adds is n dependent adds on f32[64]: the fixed cost of a run.
func adds(n int) Workload {
	return Workload{Name: fmt.Sprintf("overhead.ops%d", n), Build: func(r *Random) (*rlx.Graph, rlx.Feed) {
		g := rlx.NewGraph("adds")
		x := g.Input("x", rlx.F32, rlx.Shape(64))
		y := x
		for range n {
			y = op.Add(y, x)
		}
		g.Output("y", y)
		return g, rlx.Feed{"x": r.Normal(1, 64)}
	}}
}
