package conform

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() {
	generate(gather, "Gather")
	generate(gatherNd, "GatherNd")
	generate(gatherElements, "GatherElements")
	generate(scatterAdd, "ScatterAdd", "GatherBackward")
	generate(scatterNd, "ScatterNd")
	generate(scatterElements, "ScatterElements")
	generate(kvAppend, "KvAppend")
	generate(oneHot, "OneHot")
}

// outside adds the cases that must fail at run time: an index past the end, one before the beginning, and one that is no integer.
func (m *maker) outside(a attrs, n int64, make func(index *ir.Tensor) []*ir.Tensor, shape []int64) {
	if m.dtype != ir.F32 {
		return
	}
	for _, v := range []float64{float64(n), -float64(n) - 1, 1 << 40} {
		m.add(a, make(fill(ir.I64, shape, func(int) float64 { return v }))...).fails = "C7"
	}
	for _, v := range []float64{0.5, math.NaN()} {
		m.add(a, make(fill(ir.F32, shape, func(int) float64 { return v }))...).fails = "C8"
	}
}

func gather(m *maker) {
	type call struct {
		x, index []int64
		axis     int
	}
	list := []call{{dims(5), dims(), 0}, {dims(5, 0), dims(2), 0}, {dims(3, 4), dims(0), 1}, {dims(2, 3, 4), dims(2, 2), 1}, {dims(2, 3, 4), dims(5), -1},
		{dims(1, 2, 1, 2, 1, 2, 3), dims(2), -1}, {dims(200, 3), dims(17), 0}, {dims(0, 3), dims(0), 0}}
	for i, w := range widths {
		list = append(list, []call{{dims(4, w), dims(3), 0}, {dims(w, 3), dims(9), 0}, {dims(2, w), dims(w), 1}, {dims(3, w), dims(2, 1), -1}}[i%4])
	}
	if m.large {
		list = append(list, call{dims(300, 70), dims(50, 9), 0})
	}
	for _, c := range part(m, 7, len(list), list) {
		n := c.x[(c.axis+len(c.x))%len(c.x)]
		m.add(attrs{"axis": c.axis}, m.rng.wide(m.dtype, c.x), m.rng.index(m.indexDType(n), c.index, n))
	}
	for _, r := range some(m, 2, []int64{2, 3, 4, 8}) { // neighbours, each so often, from the second one on
		repeated := fill(ir.I64, dims(10*r), func(i int) float64 { return float64(1 + int64(i)/r) })
		m.add(attrs{"axis": 1}, m.rng.wide(m.dtype, dims(3, 12)), repeated)
		if m.large {
			m.add(attrs{"axis": 1}, m.rng.plain(m.dtype, dims(900, 12)), repeated)
		}
	}
	x := m.rng.plain(m.dtype, dims(3, 2))
	m.outside(attrs{"axis": 0}, 3, func(i *ir.Tensor) []*ir.Tensor { return []*ir.Tensor{x, i} }, dims(4))
}

// tuplesOf draws an index of tuples into the leading dims of x.
func (m *maker) tuplesOf(x []int64, lead []int64, k int, d ir.DType) *ir.Tensor {
	columns := make([]*ir.Tensor, k)
	for i := range columns {
		columns[i] = m.rng.index(d, lead, x[i])
	}
	t := zeros(d, append(dims(lead...), int64(k)))
	for i := range t.Len() {
		copyElement(t, i, columns[i%k], i/k)
	}
	return t
}

func gatherNd(m *maker) {
	type call struct {
		x, lead []int64 // lead: index without its last dim
		k       int
		batch   int
	}
	list := []call{{dims(5), dims(3), 1, 0}, {dims(4, 5), dims(7), 2, 0}, {dims(4, 5, 9), dims(2, 3), 2, 0}, {dims(2, 4, 17), dims(2, 3), 1, 1},
		{dims(2, 3, 4, 5), dims(2, 3, 2), 1, 2}, {dims(4, 33), dims(9), 1, 0}, {dims(3, 4), dims(0), 2, 0}, {dims(3, 4, 5), dims(), 3, 0}, {dims(130, 3), dims(65), 2, 0}}
	for _, c := range some(m, 5, list) {
		index := m.tuplesOf(c.x[c.batch:], c.lead, c.k, m.indexDType(c.x[0]))
		m.add(attrs{"batch_dims": c.batch}, m.rng.wide(m.dtype, c.x), index).fixed = true
	}
	x := m.rng.plain(m.dtype, dims(3, 3))
	m.outside(nil, 3, func(i *ir.Tensor) []*ir.Tensor { return []*ir.Tensor{x, i} }, dims(2, 2))
}

type elementsCall struct {
	x, index []int64
	axis     int
}

func elementsCalls() []elementsCall {
	list := []elementsCall{{dims(5), dims(3), 0}, {dims(3, 4), dims(2, 4), 0}, {dims(3, 4), dims(3, 9), 1}, {dims(2, 3, 4), dims(2, 5, 4), 1},
		{dims(2, 3, 4), dims(1, 2, 2), -1}, {dims(3, 4), dims(0, 4), 0}, {dims(1, 2, 1, 2, 1, 2, 1, 3), dims(1, 2, 1, 2, 1, 1, 1, 5), -1}}
	for i, w := range widths {
		list = append(list, []elementsCall{{dims(3, w), dims(3, w), -1}, {dims(w, 3), dims(2, 3), 0}, {dims(4, w), dims(2, w), 0}}[i%3])
	}
	return list
}

func (c elementsCall) dim() int64 { return c.x[(c.axis+len(c.x))%len(c.x)] }

func gatherElements(m *maker) {
	list := elementsCalls()
	for _, c := range part(m, 6, len(list), list) {
		m.add(attrs{"axis": c.axis}, m.rng.wide(m.dtype, c.x), m.rng.index(m.indexDType(c.dim()), c.index, c.dim()))
	}
	if m.large {
		m.add(attrs{"axis": 0}, m.rng.plain(m.dtype, dims(70, 130)), m.rng.index(ir.I32, dims(90, 130), 70))
	}
	x := m.rng.plain(m.dtype, dims(3, 2))
	m.outside(nil, 3, func(i *ir.Tensor) []*ir.Tensor { return []*ir.Tensor{x, i} }, dims(1, 2))
}

func scatterAdd(m *maker) {
	type call struct {
		u    []int64
		axis int
		size int64
	}
	list := []call{{dims(5), 0, 3}, {dims(4, 3), 0, 2}, {dims(2, 9), 1, 4}, {dims(2, 3, 5), 1, 7}, {dims(0, 3), 0, 2}, {dims(3, 0), 0, 2}, {dims(65, 9), 0, 5}, {dims(7, 33), -1, 3}}
	for _, w := range widths {
		list = append(list, call{dims(9, w), 0, 4})
	}
	if m.large {
		list = append(list, call{dims(500, 70), 0, 40})
	}
	for k, c := range part(m, 7, len(list), list) {
		a := attrs{"axis": c.axis, "size": c.size}
		axis := (c.axis + len(c.u)) % len(c.u)
		u, index := m.rng.plain(m.dtype, c.u), m.rng.index(m.indexDType(c.size), dims(c.u[axis]), c.size)
		if k%4 == 2 {
			u = m.rng.odd(m.dtype, c.u)
		}
		in := []*ir.Tensor{u, index}
		if m.row.Name == "ScatterAdd" && k%2 == 0 {
			base := dims(c.u...)
			base[axis] = c.size
			in = append(in, m.rng.plain(m.dtype, base))
		}
		m.add(a, in...).linear = true
	}
	u := m.rng.plain(m.dtype, dims(4, 2))
	m.outside(attrs{"axis": 0, "size": 3}, 3, func(i *ir.Tensor) []*ir.Tensor { return []*ir.Tensor{u, i} }, dims(4))
}

// combined draws the operand and the updates of a scatter, and says how its errors are measured.
func (m *maker) combined(c *rowCase) *rowCase {
	c.linear = m.enums["reduction"] == "add"
	return c
}

func (m *maker) updates(k int, s []int64) *ir.Tensor {
	switch {
	case m.enums["reduction"] == "mul":
		return m.rng.near1(m.dtype, s)
	case k%3 == 2:
		return m.rng.odd(m.dtype, s)
	}
	return m.rng.plain(m.dtype, s)
}

func scatterNd(m *maker) {
	type call struct {
		x, lead []int64
		k       int
	}
	list := []call{{dims(5), dims(7), 1}, {dims(4, 5), dims(9), 2}, {dims(4, 9), dims(3), 1}, {dims(3, 4, 17), dims(2, 3), 2}, {dims(4, 33), dims(6), 1},
		{dims(3, 4), dims(0), 1}, {dims(2, 3, 4), dims(), 3}, {dims(3, 100), dims(9), 1}, {dims(0, 3), dims(0), 1}}
	for k, c := range some(m, 5, list) {
		index := m.tuplesOf(c.x, c.lead, c.k, m.indexDType(c.x[0]))
		u := append(dims(c.lead...), c.x[c.k:]...)
		m.combined(m.add(nil, m.updates(k, c.x), index, m.updates(k, u))).fixed = true // an index tuple has a range for each column
	}
	if m.large {
		m.combined(m.add(nil, m.updates(0, dims(60, 70)), m.tuplesOf(dims(60), dims(90), 1, ir.I64), m.updates(0, dims(90, 70))))
	}
	x, u := m.rng.plain(m.dtype, dims(3, 2)), m.rng.plain(m.dtype, dims(4, 2))
	m.outside(nil, 3, func(i *ir.Tensor) []*ir.Tensor { return []*ir.Tensor{x, i, u} }, dims(4, 1))
}

func scatterElements(m *maker) {
	list := elementsCalls()
	for k, c := range part(m, 4, 12, list) {
		index := m.rng.index(m.indexDType(c.dim()), c.index, c.dim())
		m.combined(m.add(attrs{"axis": c.axis}, m.updates(k, c.x), index, m.updates(k, c.index)))
	}
	if m.large {
		m.combined(m.add(nil, m.updates(0, dims(50, 70)), m.rng.index(ir.I32, dims(90, 70), 50), m.updates(0, dims(90, 70))))
	}
	x, u := m.rng.plain(m.dtype, dims(3, 2)), m.rng.plain(m.dtype, dims(1, 2))
	m.outside(nil, 3, func(i *ir.Tensor) []*ir.Tensor { return []*ir.Tensor{x, i, u} }, dims(1, 2))
}

func kvAppend(m *maker) {
	type call struct {
		cache    []int64
		axis     int
		n        int64
		position []int64 // shape; nil: attribute
	}
	list := []call{{dims(2, 3, 8, 5), -2, 1, dims()}, {dims(2, 8, 3, 5), 1, 3, dims(1)}, {dims(3, 2, 9, 16), -2, 2, dims(3)}, {dims(4, 7), 0, 2, nil},
		{dims(2, 9, 17), -2, 9, dims()}, {dims(2, 5, 33), 1, 0, dims()}, {dims(2, 64, 4), 1, 1, dims(2)}, {dims(1, 3, 5), 1, 2, nil}}
	for _, c := range some(m, 4, list) {
		axis := (c.axis + len(c.cache)) % len(c.cache)
		rows := dims(c.cache...)
		rows[axis] = c.n
		a, room := attrs{"axis": c.axis}, c.cache[axis]-c.n+1
		in := []*ir.Tensor{m.rng.wide(m.dtype, c.cache), m.rng.wide(m.dtype, rows)}
		if c.position == nil {
			a["position"] = m.rng.Int64N(room)
		} else {
			in = append(in, fill(m.partner(ir.IndexT), c.position, func(int) float64 { return float64(m.rng.Int64N(room)) }))
		}
		m.add(a, in...)
	}
	x, u := m.rng.plain(m.dtype, dims(2, 4, 3)), m.rng.plain(m.dtype, dims(2, 2, 3))
	for _, p := range []int64{3, -1, math.MaxInt64} {
		m.add(attrs{"axis": 1}, x, u, ir.Scalar(p)).fails = "C4"
	}
}

func oneHot(m *maker) {
	for k, d := range (ir.Real | ir.Set(ir.Bool)).List() {
		for _, s := range some(m, 2, [][]int64{{7}, {2, 3}, {}, {0}, {33}, {4, 17}}) {
			depth := int64(1 + k%9)
			index := fill(m.dtype, s, func(int) float64 { return float64(m.rng.Int64N(2*depth+4) - depth - 2) })
			a := attrs{"depth": depth, "axis": k%(len(s)+1) - len(s) - 1, "dtype": d}
			if d != ir.Bool {
				a["on_value"], a["off_value"] = 3, 1
			}
			m.add(a, index)
		}
		m.turn++
	}
	m.add(attrs{"depth": 0}, zeros(m.dtype, dims(3)))
	if m.dtype == ir.F32 {
		m.add(attrs{"depth": 3}, ir.New([]float32{0.5}, 1)).fails = "C8"
	}
}
