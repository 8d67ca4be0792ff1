package workload

import (
	"fmt"
	"math"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// products are matrix products with a constant right operand: f32, bf16, and f32 that every run quantises for int8 weights.
func products() (l []Workload) {
	for _, s := range [][3]int{{128, 768, 768}, {512, 512, 512}, {1024, 1024, 1024}, {512, 4096, 4096}, {1, 4096, 4096}} {
		m, n, k := s[0], s[1], s[2]
		size, flop := fmt.Sprintf("%dx%dx%d", m, n, k), 2*float64(m)*float64(n)*float64(k)
		l = append(l,
			Workload{Name: "gemm.f32." + size, Flop: flop, Bytes: 4 * float64(m*k+k*n+m*n), Unit: "f32", Reads: m == 1, define: func(b *Builder) {
				b.Output("y", op.MatMul(b.Rows("a", rlx.F32, m, k), b.Weight("b", k, n)))
			}},
			Workload{Name: "gemm.bf16." + size, Flop: flop, Bytes: 2 * float64(m*k+k*n+m*n), Unit: "bf16", Reads: m == 1, define: func(b *Builder) {
				w := b.Graph.Param("b", b.normal("b", rlx.BF16, 1/math.Sqrt(float64(k)), []int{k, n}))
				b.Output("y", op.MatMul(b.Rows("a", rlx.BF16, m, k), w))
			}},
			Workload{Name: "gemm.i8dyn." + size, Flop: flop, Bytes: float64(4*m*k + k*n + 4*m*n), Unit: "i8", Reads: m == 1, narrow: true, define: func(b *Builder) {
				b.Output("y", quantisedProduct(b, b.Rows("a", rlx.F32, m, k), b.Codes("b", k, n)))
			}},
		)
	}
	return l
}

// quantisedProduct is a b * 0.01 where each row of a becomes u8 around 128, by its greatest magnitude.
func quantisedProduct(b *Builder, a, w rlx.Value) rlx.Value {
	rows, _ := a.Dim(0).Static()
	middle := make([]uint8, rows)
	for i := range middle {
		middle[i] = 128
	}
	axis := int64(0)
	scale := op.Div(op.Reduce(op.Abs(a), "max", []int{1}, false), 127)
	q := op.Quantize(a, scale, b.Constant(rlx.New(middle, int(rows))), op.QuantizeAttrs{Axis: &axis, Dtype: rlx.U8})
	sums := op.QMatMul(q, w, rlx.Value{}, rlx.Value{}, op.QMatMulAttrs{XZeroPoint: 128, Multiplier: 1, Dtype: rlx.I32})
	return op.Mul(op.Cast(sums, rlx.F32), op.Reshape(op.Mul(scale, 0.01), a.Dim(0), ir.D(1)))
}

// format is a block format of GGUF: the bits of a weight, where the f16 numbers of a block are, and what they are for weights of about 1/8.
type format struct {
	scheme op.Scheme
	bits   float64
	scales []blockScale
}

type blockScale struct {
	at    int
	value float64
}

var formats = []format{
	{"q4_0", 4.5, []blockScale{{0, 1.0 / 37}}},
	{"q4_k", 4.5, []blockScale{{0, 1.0 / 1200}, {2, 7.5 / 1200}}},
	{"q5_k", 5.5, []blockScale{{0, 1.0 / 2400}, {2, 15.5 / 2400}}},
	{"q6_k", 6.5625, []blockScale{{208, 1.0 / 11000}}},
	{"q8_0", 8.5, []blockScale{{0, 1.0 / 590}}},
}

// packed are products with weights [4096, 4096] in the block formats of GGUF files.
func packed() (l []Workload) {
	const n, k = 4096, 4096
	for _, f := range formats {
		for _, m := range []int{1, 512} {
			l = append(l, Workload{
				Name: fmt.Sprintf("gguf.%s.%dx%dx%d", f.scheme, m, n, k),
				Flop: 2 * float64(m) * n * k, Bytes: n*k*f.bits/8 + float64(8*m*n), Unit: "i8", Reads: m == 1, narrow: true,
				define: func(b *Builder) {
					w := b.Graph.Param("w", f.weights("w", n, k))
					b.Output("y", op.DequantMatMul(b.Rows("x", rlx.F32, m, k), w, rlx.Value{}, rlx.Value{}, op.DequantMatMulAttrs{Scheme: f.scheme}))
				},
			})
		}
	}
	return l
}

// weights draws codes, all equally often, and scales that differ by a tenth.
func (f format) weights(name string, n, k int) *rlx.Tensor {
	elements, size := f.scheme.Block()
	blocks := n * k / int(elements)
	r, data := stream(name), make([]uint8, blocks*int(size))
	for i := range data {
		data[i] = uint8(r.Uint32())
	}
	for i := range blocks {
		for _, s := range f.scales {
			ir.PutFloat(rlx.F16, data[i*int(size)+s.at:], 0, s.value*(1+0.1*r.NormFloat64()))
		}
	}
	return rlx.New(data, n, k/int(elements)*int(size))
}
