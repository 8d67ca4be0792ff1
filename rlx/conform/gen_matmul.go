package conform

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() {
	generate(matMul, "MatMul")
	generate(dotGeneral, "DotGeneral")
	generate(fusedMatMul, "FusedMatMulBiasAct")
	generate(fusedMatMulResidual, "FusedMatMulResidual")
	generate(swiGLU, "FusedSwiGLU")
}

// results lists the dtypes that the attribute dtype may name.
func (m *maker) results() []ir.DType {
	if m.dtype == ir.F16 || m.dtype == ir.BF16 {
		return []ir.DType{m.dtype, ir.F32}
	}
	return []ir.DType{m.dtype}
}

// product is a case of a sum of products. One in four has a NaN or an infinity, which must stay in its row.
func (m *maker) product(a attrs, x, y []int64) {
	in := []*ir.Tensor{m.rng.plain(m.dtype, x), m.rng.plain(m.dtype, y)}
	if (len(m.cases)+m.turn)%4 == 3 {
		in[0] = m.rng.odd(m.dtype, x)
	}
	m.add(a, in...).linear = true
}

func matMul(m *maker) {
	// m, k, n on both sides of tiles of 4, 6, 8, 16, 48 and 64, of groups of 4 along k, and of the small-m path
	list := [][2][]int64{
		{{1, 1}, {1, 1}}, {{1, 8}, {8, 16}}, {{2, 3}, {3, 4}}, {{3, 17}, {17, 15}}, {{4, 16}, {16, 17}}, {{5, 33}, {33, 31}}, {{6, 64}, {64, 32}},
		{{7, 65}, {65, 33}}, {{8, 31}, {31, 64}}, {{9, 100}, {100, 65}}, {{12, 5}, {5, 48}}, {{13, 9}, {9, 49}}, {{17, 32}, {32, 7}},
		{{33, 2}, {2, 100}}, {{65, 15}, {15, 9}}, {{1, 257}, {257, 3}}, {{16, 7}, {7, 128}}, {{64, 33}, {33, 1}}, {{31, 3}, {3, 129}},
		{{7}, {7}}, {{9}, {9, 5}}, {{5, 9}, {9}}, {{3, 2, 9}, {9}}, {{9}, {3, 9, 2}}, {{3, 4, 5}, {5, 6}}, {{2, 3, 4, 5}, {3, 5, 6}}, {{1, 4, 8}, {6, 8, 4}},
		{{2, 1, 3, 16}, {1, 3, 16, 2}}, {{2, 0}, {0, 3}}, {{0, 4}, {4, 3}}, {{3, 4}, {4, 0}}, {{0, 2, 3}, {0, 3, 2}}, {{3, 0, 0}, {0, 0}},
		{{1, 2, 1, 2, 1, 1, 3, 4}, {1, 1, 2, 2, 1, 1, 4, 3}},
	}
	for _, d := range m.results() {
		for _, s := range some(m, 8, list) {
			m.product(attrs{"dtype": d}, s[0], s[1])
		}
		if m.large || !m.short && m.dtype != ir.F32 {
			m.product(attrs{"dtype": d}, dims(70, 300), dims(300, 130))
			m.product(attrs{"dtype": d}, dims(1, 520), dims(520, 200))
		}
		m.turn++
	}
}

func dotGeneral(m *maker) {
	type call struct {
		a    attrs
		x, y []int64
	}
	list := []call{
		{attrs{"lhs_contracting": "[1]", "rhs_contracting": "[0]"}, dims(3, 9), dims(9, 17)},
		{attrs{"lhs_contracting": "[0]", "rhs_contracting": "[1]"}, dims(9, 3), dims(8, 9)},
		{attrs{"lhs_contracting": "[-1]", "rhs_contracting": "[-1]", "lhs_batch": "[0]", "rhs_batch": "[0]"}, dims(2, 5, 16), dims(2, 7, 16)},
		{attrs{"lhs_contracting": "[0, 2]", "rhs_contracting": "[1, 0]"}, dims(3, 4, 5), dims(5, 3, 6)},
		{attrs{"lhs_contracting": "[3]", "rhs_contracting": "[1]", "lhs_batch": "[2, 0]", "rhs_batch": "[0, 3]"}, dims(2, 3, 4, 7), dims(4, 7, 5, 2)},
		{nil, dims(3), dims(5)},
		{attrs{"lhs_contracting": "[0, 1]", "rhs_contracting": "[0, 1]"}, dims(3, 33), dims(3, 33)},
		{attrs{"lhs_contracting": "[1]", "rhs_contracting": "[0]"}, dims(2, 0), dims(0, 3)},
		{attrs{"lhs_batch": "[0]", "rhs_batch": "[1]"}, dims(0, 3), dims(2, 0)},
		{nil, dims(), dims(4, 2)},
	}
	for _, d := range m.results() {
		for _, c := range some(m, 4, list) {
			a := attrs{"dtype": d}
			for k, v := range c.a {
				a[k] = v
			}
			m.product(a, c.x, c.y)
		}
		m.turn++
	}
}

// fused are shapes of a and b of rank 2 or more, around tiles.
var fused = [][2][]int64{
	{{1, 1}, {1, 1}}, {{3, 17}, {17, 15}}, {{1, 8}, {8, 130}}, {{33, 20}, {20, 65}}, {{2, 3, 9}, {9, 40}}, {{2, 3, 9}, {2, 9, 33}}, {{7, 5}, {5, 1}}, {{2, 0}, {0, 3}}, {{0, 4}, {4, 3}}, {{64, 100}, {100, 48}},
}

// productShape is the shape of the product of matrices whose batch dims are a's.
func productShape(a, b []int64) []int64 {
	return append(append([]int64{}, a[:len(a)-1]...), b[len(b)-1])
}

func fusedMatMul(m *maker) {
	for i, s := range part(m, 2, 4, rotated(fused, 3*m.turn)) {
		x, y, bias := m.rng.few(m.dtype, s[0]), m.rng.few(m.dtype, s[1]), m.rng.plain(m.dtype, s[1][len(s[1])-1:])
		if i%4 == 2 && x.Len() > 0 { // sums stay exact: some activations make much of a last bit
			put(x, 0, []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[m.turn%3])
		}
		if i%3 == 1 {
			bias = nil
		}
		m.add(attrs{"dtype": m.results()[i%len(m.results())]}, x, y, bias)
	}
}

func fusedMatMulResidual(m *maker) {
	for i, s := range some(m, 4, fused) {
		x, y := m.rng.plain(m.dtype, s[0]), m.rng.plain(m.dtype, s[1])
		if i%4 == 3 {
			x = m.rng.odd(m.dtype, s[0])
		}
		m.add(nil, x, y, m.rng.plain(m.dtype, productShape(s[0], s[1]))).linear = true
	}
}

func swiGLU(m *maker) {
	for _, s := range some(m, 5, [][]int64{{2}, {3, 16}, {2, 5, 34}, {1, 130}, {4, 0}, {0, 6}, {33, 64}, {2, 1, 2, 1, 2, 1, 3, 4}}) {
		for _, first := range []bool{false, true} {
			for _, d := range m.results() {
				m.add(attrs{"gate_first": first, "dtype": d}, m.rng.odd(m.dtype, s))
			}
		}
	}
}
