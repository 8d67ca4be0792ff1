package workload

import (
	"fmt"
	"math"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// attentions are self attention of one sequence; a causal mask halves the work.
func attentions() (l []Workload) {
	for _, a := range []struct {
		name                string
		heads, kv, d, q, kS int
		causal              bool
	}{{"prefill", 12, 12, 64, 512, 512, false}, {"prefill_causal", 8, 2, 128, 512, 512, true}, {"decode", 32, 8, 128, 1, 4096, false}} {
		flop, mask := 4*float64(a.heads)*float64(a.q)*float64(a.kS)*float64(a.d), op.AttentionMask("none")
		if a.causal {
			flop, mask = flop/2, "causal"
		}
		l = append(l, Workload{
			Name: fmt.Sprintf("attn.%s.f32.h%dkv%dd%ds%d", a.name, a.heads, a.kv, a.d, a.kS),
			Flop: flop, Bytes: 4 * float64(a.d) * float64(2*a.kv*a.kS+2*a.heads*a.q), Unit: "f32", Reads: a.q == 1,
			define: func(b *Builder) {
				q, k, v := b.Input("q", 1, a.heads, a.q, a.d), b.Input("k", 1, a.kv, a.kS, a.d), b.Input("v", 1, a.kv, a.kS, a.d)
				b.Output("y", op.Attention(q, k, v, rlx.Value{}, rlx.Value{}, op.AttentionAttrs{Mask: mask}))
			},
		})
	}
	return l
}

// recurrent is an LSTM layer over one sequence.
func recurrent() []Workload {
	const t, h = 128, 256
	return []Workload{{Name: "lstm.f32.b1t128h256", Flop: t * 2 * 4 * h * 2 * h, Bytes: 4 * 4 * h * 2 * h, Unit: "f32", define: func(b *Builder) {
		scale := 1 / math.Sqrt(h)
		w := op.RnnWeights{Wih: b.Param("w_ih", scale, 1, 4*h, h), Whh: b.Param("w_hh", scale, 1, 4*h, h),
			Bih: b.Param("b_ih", 0.01, 1, 4*h), Bhh: b.Param("b_hh", 0.01, 1, 4*h)}
		y, _, _ := op.Lstm(b.Input("x", 1, t, h), w, rlx.Value{}, rlx.Value{}, op.LstmAttrs{})
		b.Output("y", y)
	}}}
}

// transforms are complex Fourier transforms: powers of two, lengths of small factors, and a prime.
func transforms() (l []Workload) {
	for _, n := range []int{256, 1024, 4096, 65536, 1 << 20, 1000, 1155, 1009} {
		batch := max(1, 65536/n)
		l = append(l, Workload{
			Name: fmt.Sprintf("fft.c64.b%dn%d", batch, n), Flop: math.Floor(5 * float64(batch*n) * math.Log2(float64(n))), Bytes: float64(16 * batch * n),
			Unit: "f32", narrow: true,
			define: func(b *Builder) {
				r, v := stream("x"), make([]complex64, batch*n)
				for i := range v {
					v[i] = complex(float32(r.NormFloat64()), float32(r.NormFloat64()))
				}
				b.Output("y", op.FFT(b.bind("x", rlx.New(v, batch, n)), 0, -1))
			},
		})
	}
	return l
}
