package conform

import (
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() {
	generate(random01, "RngUniform")
	generate(randomNormal, "RngNormal")
}

func random01(m *maker) {
	m.draws(attrs{"low": -2.5, "high": 0.75}, attrs{"low": 1.0, "high": 1.0625}, attrs{"low": -1e4, "high": 6e4}, attrs{"low": -3e-8, "high": 3e-8})
	for _, d := range []ir.DType{ir.BF16, ir.F32} { // high - low leaves f32
		m.add(attrs{"dtype": d, "low": -3e38, "high": 3e38, "shape": dims(65)}, nil, nil)
	}
}

func randomNormal(m *maker) {
	m.draws(attrs{"mean": 5.0, "scale": 0.1}, attrs{"mean": -1.5, "scale": 0.0}, attrs{"mean": 0.0, "scale": 3.0})
	m.add(attrs{"dtype": ir.F32, "scale": 1e39, "shape": dims(65)}, nil, nil) // beyond f32, as most results are
}

// draws makes cases for a template of m's dtype, for none, and for a step; others are attributes beside the defaults.
func (m *maker) draws(others ...attrs) {
	shapes := [][]int64{dims(), dims(0, 3), dims(2, 1, 2, 1, 1, 2, 1, 3)}
	for _, w := range widths {
		shapes = append(shapes, dims(w))
	}
	if m.large {
		shapes = append(shapes, dims(3, 4099))
	}
	for i, d := range ir.Float.List() {
		for k, s := range part(m, 3, 6, shapes) {
			m.draw(k+i, d, s, others)
		}
		if m.large {
			m.draw(i, d, dims(3, 4099), others)
		}
		m.turn++
	}
}

func (m *maker) draw(k int, d ir.DType, shape []int64, others []attrs) {
	a := attrs{"dtype": d, "key": uint64(k) << (k % 60)}
	if k%3 > 0 {
		a["seed"] = m.rng.Uint64() // beyond int64 half of the time
	}
	if k%2 == 1 {
		for name, v := range others[k/2%len(others)] {
			a[name] = fmt.Sprint(v)
		}
	}
	in := []*ir.Tensor{nil, nil}
	if k%4 == 2 {
		a["shape"] = shape
	} else {
		in[0] = m.rng.plain(m.dtype, shape)
	}
	if k%3 == 1 {
		in[1] = ir.New([]int64{m.rng.Int64N(1 << 40)}, [][]int{{}, {1}}[k%2]...)
	}
	m.add(a, in...).fixed = true
}
