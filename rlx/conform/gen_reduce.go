package conform

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() {
	generate(reduce, "Reduce")
	generate(argReduce, "ArgMax", "ArgMin")
	generate(histogram, "Histogram")
	generate(scan, "Cumsum", "CumProd", "CumsumBackward")
	generate(cumMax, "CumMax")
}

type axesOf struct{ shape, axes []int64 }

func reductions() []axesOf {
	list := []axesOf{{dims(), nil}, {dims(0, 3), dims(1)}, {dims(3, 0), dims(1)}, {dims(0), nil}, {dims(2, 3, 4, 5), dims(0, 2)}, {dims(2, 3, 4, 5), dims(-1, 1)},
		{dims(5, 4, 3), dims(0, 1)}, {dims(3, 17, 2), dims(1)}, {dims(1, 2, 1, 2, 3, 1, 2, 3), dims(1, 4, 7)}, {dims(4, 1, 6), dims(1)}, {dims(200, 3), dims(0)}, {dims(2, 520), nil}}
	for i, w := range widths {
		list = append(list, []axesOf{{dims(3, w), dims(-1)}, {dims(w, 5), dims(0)}, {dims(w), nil}, {dims(9, w), dims(0)}}[i%4])
		list = append(list, axesOf{dims(2, w, w%5+1), dims(1, 2)})
	}
	return list
}

func reduce(m *maker) {
	fn := m.enums["fn"]
	list := reductions()
	picked := part(m, 9, len(list), list)
	if m.large {
		picked = append(picked[:len(picked):len(picked)], axesOf{dims(3, 5003), dims(1)}, axesOf{dims(1025, 9), dims(0)}, axesOf{dims(70, 71), nil})
	}
	for k, s := range picked {
		x := m.rng.plain(m.dtype, s.shape)
		switch {
		case fn == "prod":
			x = m.rng.near1(m.dtype, s.shape)
		case fn == "log_sum":
			x = absolute(x)
		case k%4 == 3:
			x = m.rng.odd(m.dtype, s.shape)
		case k%4 == 1 && ir.Int.Has(m.dtype):
			x = m.rng.wide(m.dtype, s.shape)
		}
		a := attrs{"keep_dims": k%2 == 0}
		if s.axes != nil {
			a["axes"] = s.axes
		}
		c := m.add(a, x)
		c.linear = slices.Contains([]string{"sum", "mean", "l1", "sum_square"}, fn)
		c.optional = x.Len() == 0 && (fn == "max" || fn == "min")
		if fn == "logsumexp" { // m + log(sum e^(x-m)) may cancel
			c.least = 8
		}
	}
}

// along gives each of some shapes an axis, and counts the cases.
func (m *maker) along(few int, f func(k int, shape []int64, axis int)) {
	list := rows()
	for _, w := range widths {
		list = append(list, dims(w, 3))
	}
	for k, s := range part(m, few, len(list), list) {
		f(k, s, k%len(s)-len(s))
	}
	if m.large {
		f(0, dims(3, 2051), -1)
		f(0, dims(1030, 4), 0)
	}
}

var indexResults = []ir.DType{ir.I64, ir.I32, ir.F32}

func argReduce(m *maker) {
	m.along(9, func(k int, s []int64, axis int) {
		x := m.rng.odd(m.dtype, s)
		if k%2 == 1 { // ties
			x = fill(m.dtype, s, func(int) float64 { return float64(m.rng.IntN(3)) })
		}
		a := attrs{"axis": axis, "keep_dims": k%3 == 0, "select_last_index": k%4 > 1, "index_dtype": indexResults[k%3]}
		m.add(a, x).optional = s[(axis+len(s))%len(s)] == 0
	})
	m.add(attrs{"axis": -1}, m.rng.plain(m.dtype, dims(0, 4)))
}

func histogram(m *maker) {
	for k, s := range some(m, 7, rows()) {
		x := m.rng.odd(m.dtype, s)
		if k%2 == 1 {
			x = m.rng.wide(m.dtype, s)
		}
		a := attrs{"num_bins": 1 + (k*5)%17, "min": []float64{-3, 0, -0.5}[k%3], "max": []float64{2, 7, 1e3}[(k+1)%3], "dtype": indexResults[k%3]}
		m.add(a, x)
	}
	if m.large {
		m.add(attrs{"num_bins": 100, "min": -3, "max": 3}, m.rng.plain(m.dtype, dims(3, 2051)))
	}
}

func scan(m *maker) {
	for _, way := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		m.along(5, func(k int, s []int64, axis int) {
			x := m.rng.plain(m.dtype, s)
			switch {
			case m.row.Name == "CumProd":
				x = m.rng.near1(m.dtype, s)
			case k%4 == 3:
				x = m.rng.odd(m.dtype, s)
			case k%4 == 1 && ir.Int.Has(m.dtype):
				x = m.rng.wide(m.dtype, s)
			}
			c := m.add(attrs{"axis": axis, "exclusive": way[0], "reverse": way[1]}, x)
			c.linear = m.row.Name != "CumProd"
		})
		m.turn++
		m.large = false
	}
}

func cumMax(m *maker) {
	for way := range 4 {
		m.along(5, func(k int, s []int64, axis int) {
			x := m.rng.odd(m.dtype, s)
			if k%2 == 1 {
				x = fill(m.dtype, s, func(i int) float64 { return math.Floor(float64(i)/2) - float64(m.rng.IntN(4)) })
			}
			m.add(attrs{"axis": axis, "exclusive": way%2 == 1, "reverse": way > 1, "index_dtype": indexResults[k%3]}, x)
		})
		m.turn++
		m.large = false
	}
}
