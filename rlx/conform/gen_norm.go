package conform

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() {
	generate(layerNorm, "LayerNorm", "RmsNorm")
	generate(softmax, "Softmax")
	generate(channelNorm, "LayerNorm2d", "GroupNorm", "BatchNormInference")
	generate(adaLayerNorm, "AdaLayerNorm")
	generate(gatedResidual, "GatedResidual")
	generate(residualNorm, "FusedResidualLN", "FusedResidualRmsNorm")
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
		c.sizes = func(c *rowCase) []float64 { return normSizes(c.in) }
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

// channels are shapes [N, C, ...] with the channel axis and the positions on both sides of vector widths.
var channels = [][]int64{{3, 4}, {2, 6, 1}, {2, 6, 5}, {1, 12, 3, 3}, {2, 4, 7, 9}, {1, 32, 2, 17}, {1, 2, 2, 3, 4}, {1, 1, 9}, {0, 4, 2}, {2, 0, 3},
	{2, 4, 0}, {1, 70, 33}, {1, 2, 1, 2, 1, 2, 1, 5}}

func channelNorm(m *maker) {
	list := channels
	if m.large {
		list = append(list[:len(list):len(list)], dims(1, 12, 40, 41))
	}
	for k, s := range part(m, 8, len(list), list) {
		x, a := m.rng.plain(m.dtype, s), attrs{"eps": []float64{1e-5, 1e-12, 1e-3}[k%3]}
		switch k % 5 {
		case 1: // far from 0
			x = fill(m.dtype, s, func(i int) float64 { return x.Float(i) + 50 })
		case 2:
			x = m.rng.odd(m.dtype, s)
		}
		axis := 1
		switch m.row.Name {
		case "GroupNorm":
			a["num_groups"] = max(1, s[1]>>(k%3)/2)
			if s[1]%max(1, s[1]>>(k%3)/2) != 0 {
				a["num_groups"] = 1
			}
		case "BatchNormInference":
			if axis = k%(len(s)+1) - 1; axis == 0 {
				axis = 1
			}
			a["axis"] = axis
		}
		if axis < 0 {
			axis += len(s)
		}
		width := s[axis : axis+1]
		in := []*ir.Tensor{x, m.rng.plain(m.dtype, width), m.rng.plain(m.dtype, width)}
		if k%4 == 1 || k%4 == 3 {
			in[2] = nil
		}
		if k%4 >= 2 {
			in[1] = nil
		}
		if m.row.Name == "BatchNormInference" {
			in = append(in, m.rng.plain(m.dtype, width), m.rng.near1(m.dtype, width)) // near1 has negative numbers: NaN
		}
		c := m.add(a, in...)
		inner := 1
		for _, d := range s[axis+1:] {
			inner *= int(d)
		}
		c.sizes = func(c *rowCase) []float64 { return channelSizes(c.in, inner, int(max(width[0], 1))) }
		if m.dtype == ir.F64 { // as for LayerNorm
			c.least, c.fixed = 200, true
		}
	}
}

// channelSizes is normSizes with gamma and beta along an axis of n channels, inner elements each. With given statistics, what is
// subtracted counts by its size.
func channelSizes(in []*ir.Tensor, inner, n int) []float64 {
	t := make([]float64, in[0].Len())
	for i := range t {
		c := i / inner % n
		t[i] = 2
		if len(in) > 3 {
			t[i] = (math.Abs(in[0].Float(i)) + math.Abs(in[3].Float(c))) / math.Sqrt(in[4].Float(c))
		}
		if gamma := in[1]; gamma != nil {
			t[i] *= math.Abs(gamma.Float(c))
		}
		if beta := in[2]; beta != nil {
			t[i] += math.Abs(beta.Float(c))
		}
		if math.IsNaN(t[i]) {
			t[i] = 0 // and so is the result
		}
	}
	return t
}

// stretched is a shape that broadcasts one way to s.
func stretched(s []int64, k int) []int64 {
	switch k % 4 {
	case 1:
		return dims(s[len(s)-1])
	case 2:
		out := dims(s...)
		out[max(0, len(s)-2)] = 1
		return out
	case 3:
		return dims(1)
	}
	return s
}

func adaLayerNorm(m *maker) {
	list := rows()
	if m.large {
		list = append(list, dims(5, 1031))
	}
	for k, s := range part(m, 8, len(list), list) {
		x := m.rng.plain(m.dtype, s)
		if k%5 == 2 {
			x = m.rng.odd(m.dtype, s)
		}
		c := m.add(attrs{"eps": []float64{1e-5, 1e-3}[k%2]}, x, m.rng.plain(m.dtype, stretched(s, k)), m.rng.plain(m.dtype, stretched(s, k/4)))
		c.sizes = func(c *rowCase) []float64 {
			in := c.in
			return fill64(in[0], func(i int) float64 {
				return 2*(1+math.Abs(stretchedAt(in[1], s, i))) + math.Abs(stretchedAt(in[2], s, i))
			})
		}
		if m.dtype == ir.F64 {
			c.least, c.fixed = 200, true
		}
	}
}

func gatedResidual(m *maker) {
	for k, s := range part(m, 8, 20, rows()) {
		c := m.add(nil, m.rng.plain(m.dtype, s), m.rng.odd(m.dtype, s), m.rng.plain(m.dtype, stretched(s, k)))
		c.linear = true
	}
}

func residualNorm(m *maker) {
	list := rows()
	if m.large {
		list = append(list, dims(5, 1031))
	}
	for k, s := range part(m, 8, len(list), list) {
		axis := -1
		if len(s) > 1 && k%3 == 2 {
			axis = -2
		}
		tail := s[len(s)+axis:]
		in := []*ir.Tensor{m.rng.plain(m.dtype, s), m.rng.plain(m.dtype, s), m.rng.plain(m.dtype, stretched(s, k)), m.rng.plain(m.dtype, tail),
			m.rng.plain(m.dtype, tail)}
		for i := range 3 {
			if k>>i&1 != 0 && k%8 != 7 {
				in[2+i] = nil
			}
		}
		if k%5 == 2 {
			in[0] = m.rng.odd(m.dtype, s)
		}
		c := m.add(attrs{"axis": axis, "eps": []float64{1e-5, 1e-12, 1e-3}[k%3]}, in...)
		c.sizes = func(c *rowCase) []float64 { return normSizes([]*ir.Tensor{c.in[0], c.in[3], c.in[4]}) }
		c.least, c.fixed = 8, true
		if m.dtype == ir.F64 {
			c.least = 200
		}
	}
}

// fill64 is f of every element's number.
func fill64(x *ir.Tensor, f func(i int) float64) []float64 {
	t := make([]float64, x.Len())
	for i := range t {
		t[i] = f(i)
	}
	return t
}

// stretchedAt is the element of x, broadcast to shape, that meets element i.
func stretchedAt(x *ir.Tensor, shape []int64, i int) float64 {
	at, step := 0, 1
	for k := 1; k <= len(x.Shape()); k++ {
		d := int(shape[len(shape)-k])
		if n := int(x.Shape()[len(x.Shape())-k]); n != 1 {
			at += i % d * step
			step *= n
		}
		i /= d
	}
	return x.Float(at)
}
