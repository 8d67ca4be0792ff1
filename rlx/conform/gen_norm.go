package conform

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() {
	generate(layerNorm, "LayerNorm", "RmsNorm")
	generate(softmax, "Softmax")
}

// rows are shapes whose last axis has every width, then some with other axes.
func rows() [][]int64 {
	var list [][]int64
	for i, w := range widths {
		list = append(list, [][]int64{{w}, {3, w}, {2, 2, w}, {5, w}}[i%4])
	}
	return append(list, dims(0, 4), dims(3, 0), dims(2, 3, 4), dims(3, 130), dims(1, 2, 1, 2, 1, 2, 1, 5))
}

func layerNorm(m *maker) {
	list := rows()
	if m.large {
		list = append(list, dims(5, 1031))
	}
	for k, s := range part(m, 8, len(list), list) {
		x := m.rng.plain(m.dtype, s)
		switch k % 5 {
		case 1: // far from 0
			x = fill(m.dtype, s, func(i int) float64 { return x.Float(i) + 50 })
		case 2: // a NaN and an infinity spoil their rows alone
			x = m.rng.odd(m.dtype, s)
		}
		axis := -1
		if len(s) > 1 && k%3 == 2 {
			axis = -2
		}
		tail := s[len(s)+axis:]
		gamma, beta := m.rng.plain(m.dtype, tail), m.rng.plain(m.dtype, tail)
		switch k % 4 {
		case 1:
			beta = nil
		case 2:
			gamma = nil
		case 3:
			gamma, beta = nil, nil
		}
		c := m.add(attrs{"axis": axis, "eps": []float64{1e-5, 1e-12, 1e-3}[k%3]}, x, gamma, beta)
		c.sizes = normSizes
		if m.dtype == ir.F64 { // ref's own mean of numbers around 50 is off by units in their last place
			c.least, c.fixed = 200, true
		}
	}
}

// normSizes is what each element is made of: a normalised value, which is about 1, times gamma, and beta.
func normSizes(in []*ir.Tensor) []float64 {
	t := make([]float64, in[0].Len())
	for i := range t {
		t[i] = 2
		if gamma := in[1]; gamma != nil {
			t[i] *= math.Abs(gamma.Float(i % gamma.Len()))
		}
		if beta := in[2]; beta != nil {
			t[i] += math.Abs(beta.Float(i % beta.Len()))
		}
	}
	return t
}

func softmax(m *maker) {
	list := rows()
	if m.large {
		list = append(list, dims(3, 5003))
	}
	for k, s := range part(m, 8, len(list), list) {
		x := m.rng.plain(m.dtype, s)
		switch k % 4 {
		case 1: // e^x would overflow
			x = fill(m.dtype, s, func(i int) float64 { return 300 * x.Float(i) })
		case 2:
			x = m.rng.odd(m.dtype, s)
		}
		m.add(attrs{"axis": k%len(s) - len(s)}, x)
	}
}
