package workload

import (
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// rows are what memory bounds: norms, elementwise steps, and sums along an axis.
func rows() []Workload {
	return []Workload{
		unary("layernorm.f32.4096x768", 8, []int{4096, 768}, func(b *Builder, x rlx.Value) rlx.Value {
			return op.LayerNorm(x, b.Param("gamma", 1, 768), b.Param("beta", 1, 768), -1, 1e-5)
		}),
		unary("rmsnorm.f32.4096x768", 5, []int{4096, 768}, func(b *Builder, x rlx.Value) rlx.Value {
			return op.RmsNorm(x, b.Param("gamma", 1, 768), rlx.Value{}, -1, 1e-5)
		}),
		unary("softmax.f32.4096x1024", 5, []int{4096, 1024}, func(_ *Builder, x rlx.Value) rlx.Value { return op.Softmax(x, -1) }),
		unary("gelu.f32.4194304", 0, []int{1 << 22}, func(_ *Builder, x rlx.Value) rlx.Value { return op.Gelu(x) }),
		unary("exp.f32.4194304", 0, []int{1 << 22}, func(_ *Builder, x rlx.Value) rlx.Value { return op.Exp(x) }),
		unary("chain8.f32.4096x1024", 8, []int{4096, 1024}, chain8),
		unary("cumsum.f32.4096x1024", 1, []int{4096, 1024}, func(_ *Builder, x rlx.Value) rlx.Value { return op.Cumsum(x, -1) }),
		scan(1024, 1024),
	}
}

// unary is a graph of one input; flop counts per element.
func unary(name string, flop float64, shape []int, f func(*Builder, rlx.Value) rlx.Value) Workload {
	n := float64(count(shape))
	return Workload{Name: name, Flop: flop * n, Bytes: 8 * n, define: func(b *Builder) { b.Output("y", f(b, b.Input("x", shape...))) }}
}

// chain8 is y = tanh(x*s + t) * x + relu(x - 0.5) * 0.25.
func chain8(b *Builder, x rlx.Value) rlx.Value {
	s, t := b.Param("s", 1, 1024), b.Param("t", 1, 1024)
	return op.Add(op.Mul(op.Tanh(op.Add(op.Mul(x, s), t)), x), op.Mul(op.Relu(op.Sub(x, 0.5)), 0.25))
}

// scan is h[t] = a[t] * h[t-1] + b[t] from zeros, all h returned.
func scan(steps, lanes int) Workload {
	n := float64(steps * lanes)
	return Workload{Name: fmt.Sprintf("scan.f32.%dx%d", steps, lanes), Flop: 2 * n, Bytes: 12 * n, define: func(b *Builder) {
		a, x := b.bind("a", b.normal("a", rlx.F32, 0.1, []int{steps, lanes})), b.Input("b", steps, lanes)
		zero := b.Constant(b.tensor(rlx.F32, make([]float64, lanes), []int{lanes}))
		y := op.Scan([]rlx.Value{zero}, nil, []rlx.Value{a, x}, func(_ *rlx.Graph, h, _, in []rlx.Value) []rlx.Value {
			next := op.Add(op.Mul(in[0], h[0]), in[1])
			return []rlx.Value{next, next}
		}, op.ScanOptions{})
		b.Output("y", y[len(y)-1])
	}}
}

// modulated are the reverse of the two steps that a diffusion transformer adds around its layers, written with primitive rows.
func modulated() (l []Workload) {
	const note = "composed of primitive rows"
	for _, s := range [][3]int{{2, 128, 64}, {4, 256, 128}, {8, 512, 256}} {
		size, n := fmt.Sprintf("%dx%dx%d", s[0], s[1], s[2]), float64(count(s[:]))
		full, row := s[:], []int{s[0], 1, s[2]}
		l = append(l,
			Workload{Name: "dit.adaln_bwd." + size, Flop: 14 * n, Bytes: 12 * n, Note: note, define: func(b *Builder) {
				normBackward(b, b.Input("x", full...), b.Input("scale", row...), b.Input("dy", full...))
			}},
			Workload{Name: "dit.gate_bwd." + size, Flop: 3 * n, Bytes: 16 * n, Note: note + "; dx is a copy of dout", define: func(b *Builder) {
				y, gate, dout := b.Input("y", full...), b.Input("gate", row...), b.Input("dout", full...)
				b.Output("dx", op.Identity(dout))
				b.Output("dy", op.Mul(dout, gate))
				b.Output("dgate", op.Reduce(op.Mul(dout, y), "sum", []int{1}, true))
			}},
		)
	}
	return l
}

// normBackward is the reverse of y = xhat * (1 + scale) + shift, xhat the standardised rows of x.
func normBackward(b *Builder, x, scale, dy rlx.Value) {
	mean := func(v rlx.Value) rlx.Value { return op.Reduce(v, "mean", []int{2}, true) }
	centred := op.Sub(x, mean(x))
	inverse := op.Rsqrt(op.Add(mean(op.Mul(centred, centred)), 1e-5))
	xhat := op.Mul(centred, inverse)
	g := op.Mul(dy, op.Add(scale, 1))
	b.Output("dx", op.Mul(inverse, op.Sub(op.Sub(g, mean(g)), op.Mul(xhat, mean(op.Mul(g, xhat))))))
	b.Output("dscale", op.Reduce(op.Mul(dy, xhat), "sum", []int{1}, true))
	b.Output("dshift", op.Reduce(dy, "sum", []int{1}, true))
}
