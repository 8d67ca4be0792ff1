package conform

import "github.com/rlx-ml/rlx-go/rlx/ir"

func init() {
	generate(sorted, "Sort", "ArgSort")
	generate(topK, "TopK")
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
