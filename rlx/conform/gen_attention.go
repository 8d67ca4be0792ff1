package conform

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() {
	generate(attention, "Attention")
	generate(rope, "Rope")
	generate(axialRope2d, "AxialRope2d")
}

// headed is the shape of [b, h, s, d] in the layout of the maker.
func (m *maker) headed(b, h, s, d int64) []int64 {
	switch m.enums["layout"] {
	case "bshd":
		return dims(b, s, h, d)
	case "bsd":
		return dims(b, s, h*d)
	}
	return dims(b, h, s, d)
}

// attentionCall are the sizes of one Attention: queries, keys, size of a head and of a value.
type attentionCall struct{ b, h, kv, sq, sk, d, dv int64 }

func attention(m *maker) {
	// queries of one kv head, keys and sizes on both sides of tiles of 4 to 32, of blocks of 64, and of no elements
	list := []attentionCall{{1, 2, 2, 3, 3, 4, 4}, {2, 4, 2, 2, 5, 3, 5}, {2, 1, 1, 1, 9, 8, 8}, {1, 3, 1, 7, 17, 16, 17}, {1, 2, 1, 9, 4, 5, 1}, {2, 6, 2, 1, 33, 17, 32},
		{1, 1, 1, 31, 65, 33, 16}, {2, 2, 2, 0, 3, 4, 4}, {1, 2, 1, 3, 0, 4, 4}, {0, 2, 1, 3, 2, 4, 4}, {1, 2, 2, 5, 6, 0, 3}, {1, 2, 2, 5, 6, 2, 0}, {1, 1, 1, 1, 1, 1, 1},
		{1, 8, 2, 17, 64, 32, 33}, {1, 4, 4, 6, 100, 64, 64}, {3, 2, 1, 8, 16, 15, 15}, {1, 3, 3, 65, 31, 7, 9}, {1, 16, 1, 1, 70, 32, 32}}
	if m.large {
		list = append(list, attentionCall{1, 2, 1, 70, 150, 64, 64}, attentionCall{1, 2, 2, 130, 130, 40, 40})
	}
	for k, c := range part(m, 5, 9, list) {
		m.attentionCase(k+m.turn, c)
	}
	if m.dtype == ir.F32 {
		q, kv := m.rng.plain(m.dtype, m.headed(2, 1, 2, 4)), m.rng.plain(m.dtype, m.headed(2, 1, 3, 4))
		for _, n := range []int64{-1, 4, math.MinInt64} {
			kvLen := fill(ir.I64, dims(2), func(i int) float64 { return float64(i) * float64(n) })
			m.add(attrs{"num_heads": 1, "window": 2}, q, kv, kv, nil, kvLen).fails = "C5"
		}
	}
}

func (m *maker) attentionCase(k int, c attentionCall) {
	a := attrs{"num_heads": c.h, "num_kv_heads": c.kv, "window": []int64{0, 1, 2, 5, math.MaxInt64, 20}[k%6], "scale": []float64{0, 0.3}[k/2%2], "softcap": []float64{0, 0, 1.5}[k%3]}
	q := m.rng.plain(m.dtype, m.headed(c.b, c.h, c.sq, c.d))
	if k%7 == 3 {
		q = m.rng.odd(m.dtype, q.Shape())
	}
	in := []*ir.Tensor{q, m.rng.plain(m.dtype, m.headed(c.b, c.kv, c.sk, c.d)), m.rng.plain(m.dtype, m.headed(c.b, c.kv, c.sk, c.dv)), m.attnMask(k, c), nil}
	r := m.add(a, in...)
	if k%4 == 1 {
		n := fill([]ir.DType{ir.I32, ir.I64}[k/4%2], dims(c.b), func(int) float64 { return float64(m.rng.Int64N(c.sk + 1)) })
		r.in[4], r.fixed = n, true
		m.spoil(in[1], n)
		m.spoil(in[2], n)
	}
	// Each element is made of values times probabilities.
	r.sizes = func(r *rowCase) []float64 {
		in := append([]*ir.Tensor{}, r.in...)
		in[2] = absolute(in[2])
		y, err := ref.Apply(r.row, r.attrs, in, r.types)
		if err != nil {
			return nil
		}
		return fill64(y[0], y[0].Float)
	}
}

// spoil puts NaN behind the valid keys of k or v.
func (m *maker) spoil(x, valid *ir.Tensor) {
	if x.Len() == 0 {
		return
	}
	each(x.Shape(), func(i int, at []int64) {
		key := at[1]
		if m.enums["layout"] == "bhsd" {
			key = at[2]
		}
		if key >= valid.Int(int(at[0])) {
			put(x, i, math.NaN())
		}
	})
}

// attnMask is none, one of bools, or a bias: small, far from 0, or with rows and elements of -inf.
func (m *maker) attnMask(k int, c attentionCall) *ir.Tensor {
	shape := [][]int64{dims(c.b, c.h, c.sq, c.sk), dims(c.sq, c.sk), dims(c.b, 1, 1, c.sk), dims(c.h, 1, c.sk), dims(c.sk), dims(1, 1, c.sq, 1), dims()}[k/5%7]
	switch k % 5 {
	case 1, 3:
		return fill(ir.Bool, shape, func(int) float64 { return float64(m.rng.IntN(4)) })
	case 2, 4:
		d := []ir.DType{ir.F32, m.dtype}[k/10%2]
		far := []float64{0, 1000, -30000, -math.MaxFloat32}[k/5%4] // the last takes all digits of the scores
		if d == ir.F16 {
			far = max(far, -60000)
		}
		lost := len(shape) > 0 && shape[len(shape)-1] > 1 && k%4 < 2
		return fill(d, shape, func(i int) float64 {
			if lost && (m.rng.chance(4) || int64(i) < c.sk) {
				return math.Inf(-1)
			}
			return far + m.rng.NormFloat64()
		})
	}
	return nil
}

func rope(m *maker) {
	type call struct{ b, h, s, d, rot int64 }
	list := []call{{1, 2, 3, 4, 0}, {2, 1, 5, 8, 4}, {1, 3, 2, 6, 2}, {2, 2, 4, 16, 0}, {1, 1, 1, 2, 0}, {1, 2, 3, 18, 16}, {2, 3, 2, 32, 0}, {1, 1, 9, 34, 0}, {1, 2, 2, 64, 0},
		{1, 1, 3, 66, 66}, {1, 2, 2, 70, 32}, {0, 1, 2, 4, 0}, {2, 1, 0, 4, 0}, {1, 0, 2, 4, 0}, {1, 1, 2, 100, 0}, {3, 4, 7, 14, 0}}
	for k, c := range part(m, 6, len(list), list) {
		for _, interleaved := range []bool{false, true} {
			a := attrs{"num_heads": max(c.h, 1), "rotary_dim": c.rot, "interleaved": interleaved}
			if c.h == 0 && m.enums["layout"] == "bsd" {
				continue
			}
			r := c.rot / 2
			if r == 0 {
				r = c.d / 2
			}
			rows, positions := dims(c.s+3, r+int64(k%2)), (*ir.Tensor)(nil)
			at := func(shape []int64) *ir.Tensor {
				return fill([]ir.DType{ir.I32, ir.I64}[(k+m.turn)%2], shape, func(int) float64 { return float64(m.rng.Int64N(c.s + 3)) })
			}
			switch (k + m.turn) % 5 {
			case 1:
				positions = at(dims(c.s))
			case 2:
				positions = at(dims(c.b, c.s))
			case 3:
				rows = dims(c.b, c.s, r)
			case 4:
				rows = dims(1, c.s, r+1)
			}
			d := m.partner(ir.Float)
			m.add(a, m.rng.plain(m.dtype, m.headed(c.b, c.h, c.s, c.d)), m.rng.plain(d, rows), m.rng.plain(d, rows), positions).least = 4
		}
	}
	if m.dtype == ir.F32 {
		x, t := m.rng.plain(m.dtype, m.headed(1, 1, 3, 4)), m.rng.plain(ir.F32, dims(2, 2))
		m.add(attrs{"num_heads": 1}, x, t, t, nil).fails = "C5"
		none := m.rng.plain(m.dtype, m.headed(0, 1, 3, 4)) // positions count without a token
		m.add(attrs{"num_heads": 1}, none, t, t, fill(ir.I64, dims(1, 3), func(i int) float64 { return float64(-i) })).fails = "C5"
		for _, p := range []int64{2, -1, 1 << 40} {
			m.add(attrs{"num_heads": 1}, x, t, t, fill(ir.I64, dims(3), func(i int) float64 { return float64(int64(i/2) * p) })).fails = "C5"
		}
	}
}

func axialRope2d(m *maker) {
	type call struct{ b, h, w, height, repeat, d int64 }
	list := []call{{1, 2, 3, 2, 1, 4}, {2, 1, 2, 2, 2, 8}, {1, 1, 1, 1, 1, 4}, {1, 3, 5, 1, 3, 16}, {2, 2, 4, 3, 1, 36}, {0, 1, 2, 1, 1, 4}, {1, 1, 8, 8, 1, 64}}
	for k, c := range list {
		a := attrs{"grid_width": c.w, "grid_height": c.height, "repeat_factor": c.repeat, "theta": []float64{10000, 100, 3}[k%3], "num_heads": c.h}
		m.add(a, m.rng.plain(m.dtype, m.headed(c.b, c.h, c.w*c.height*c.repeat, c.d))).least = 4
	}
}
