package conform

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() {
	generate(sorted, "Sort", "ArgSort")
	generate(topK, "TopK")
	generate(sampled, "Sample")
}

// orderable draws values with ties, NaN, infinities and zeros of both signs.
func (m *maker) orderable(k int, s []int64) *ir.Tensor {
	switch k % 3 {
	case 0:
		return m.rng.odd(m.dtype, s)
	case 1:
		return fill(m.dtype, s, func(int) float64 { return float64(m.rng.IntN(4) - 1) })
	}
	return m.rng.wide(m.dtype, s)
}

func sorted(m *maker) {
	for _, down := range []bool{false, true} {
		m.along(8, func(k int, s []int64, axis int) {
			m.add(attrs{"axis": axis, "descending": down, "index_dtype": indexResults[k%3]}, m.orderable(k, s))
		})
		m.turn++
	}
}

func topK(m *maker) {
	for _, largest := range []bool{true, false} {
		m.along(8, func(k int, s []int64, axis int) {
			d := s[(axis+len(s))%len(s)]
			count := []int64{d, min(d, 1), d / 2, 0}[k%4]
			m.add(attrs{"axis": axis, "k": count, "largest": largest, "index_dtype": indexResults[k%3]}, m.orderable(k, s))
		})
		m.turn++
	}
}

func sampled(m *maker) {
	list := rows()
	for k, s := range part(m, 8, len(list), list) {
		m.sample(k, s)
	}
	if m.large { // radix sort, the heap, and many rows
		for k := range 6 {
			m.sample(3*k, dims(2, 4099))
			m.sample(k, dims(257, 3))
		}
	}
	x, lead := m.logits(1, dims(3, 4)), dims(3)
	for _, v := range []float64{math.NaN(), math.Inf(1)} { // in one row, also where it is greedy
		bad := fill(m.dtype, dims(3, 4), func(i int) float64 { return x.Float(i) })
		put(bad, 5, v)
		m.add(attrs{"top_k": 2}, bad).fails = "C1"
		m.add(attrs{"temperature": 0}, bad).fails = "C1"
	}
	m.add(nil, fill(m.dtype, dims(2, 3), func(i int) float64 { return []float64{0, math.Inf(-1)}[i/3] })).fails = "C1"
	for _, v := range []float64{-1, math.NaN(), math.Inf(1)} {
		m.add(nil, x, nil, fill(m.partner(ir.Float), lead, func(i int) float64 { return []float64{0, 1, v}[i] })).fails = "C2"
	}
	for _, v := range []float64{-0.5, math.NaN(), 1} {
		m.add(nil, x, fill(m.partner(ir.Float), lead, func(i int) float64 { return []float64{0, 0.5, v}[i] })).fails = "C3"
	}
}

// sample makes a case of logits of shape s: operands, filters and temperatures change with k.
func (m *maker) sample(k int, s []int64) {
	lead := s[:len(s)-1]
	a := attrs{"index_dtype": indexResults[k%3], "temperature": []float64{1, 0.3, 2.5, 0, 1e-9}[k%5]}
	if k/2%2 == 1 {
		a["top_k"] = []int64{s[len(s)-1]/16 + 1, s[len(s)-1]/2 + 1, -3}[k/4%3]
	}
	if k/3%2 == 1 {
		a["top_p"] = []float64{0.9, 0.5, 0, -1, 0.99, 2}[k/6%6]
	}
	in := []*ir.Tensor{m.logits(k, s), nil, nil, nil}
	if k%2 == 0 {
		d := m.partner(ir.Float)
		steps := math.Ldexp(1, 24) // that the dtype holds below 1
		if d.Size() == 2 {
			steps = math.Ldexp(1, 8)
		}
		in[1] = fill(d, lead, func(int) float64 { return math.Floor(m.rng.Float64()*steps) / steps })
	} else {
		a["key"] = uint64(k) << (k % 60)
		if k%3 > 0 {
			a["seed"] = m.rng.Uint64()
		}
		if k%4 == 3 {
			in[3] = ir.New([]int64{m.rng.Int64N(1 << 40)}, [][]int{{}, {1}}[k/4%2]...)
		}
	}
	if k%3 == 1 {
		shape := lead
		if k%2 == 0 {
			shape = dims()
		}
		in[2] = fill(m.partner(ir.Float), shape, func(int) float64 { return []float64{0, 0.5, 1, 8}[m.rng.IntN(4)] })
	}
	c := m.add(a, in...)
	c.optional, c.fixed = s[len(s)-1] == 0, true // else a row may be all -inf
}

// logits draws rows with ties and, but for the first of a row, with -inf.
func (m *maker) logits(k int, s []int64) *ir.Tensor {
	return fill(m.dtype, s, func(i int) float64 {
		switch {
		case m.rng.chance(5) && int64(i)%s[len(s)-1] > 0:
			return math.Inf(-1)
		case k%3 == 2:
			return float64(m.rng.IntN(4))
		}
		return 3 * m.rng.NormFloat64()
	})
}
