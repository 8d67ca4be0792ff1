package conform

import (
	"maps"
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	generate(quantize, "Quantize")
	generate(dequantize, "Dequantize")
	generate(qMatMul, "QMatMul")
	generate(qConv2d, "QConv2d")
}

// scaled is one way to lay scales out: the shapes of x and of the scale.
type scaled struct {
	x, scale []int64
	attrs    attrs
}

func scaledShapes(m *maker) []scaled {
	list := []scaled{
		{dims(), dims(), nil}, {dims(7), dims(1), nil}, {dims(0, 3), dims(), nil}, {dims(3, 33), dims(1, 1), nil}, {dims(2, 1, 3, 1, 2, 1, 2, 3), dims(), nil},
		{dims(2, 3, 4), dims(3), attrs{"axis": 1}}, {dims(5, 17), dims(17), attrs{"axis": -1}}, {dims(4, 33), dims(4), attrs{"axis": -2}},
		{dims(1, 65), dims(65), attrs{"axis": 1}}, {dims(9), dims(9), attrs{"axis": 0}}, {dims(2, 0), dims(0), attrs{"axis": 1}},
		{dims(2, 10), dims(2, 3), attrs{"axis": -1, "block_size": 4}}, {dims(10, 3), dims(2, 3), attrs{"axis": 0, "block_size": 5}},
		{dims(3, 100), dims(3, 4), attrs{"axis": 1, "block_size": 32}}, {dims(2, 7, 16), dims(2, 3, 16), attrs{"axis": 1, "block_size": 3}},
		{dims(3, 5), dims(3, 5), attrs{"axis": 1, "block_size": 1}}, {dims(4, 6), dims(4, 1), attrs{"axis": 1, "block_size": 1000}},
		{dims(0, 6), dims(0, 2), attrs{"axis": 1, "block_size": 3}}, {dims(2, 0), dims(2, 0), attrs{"axis": 1, "block_size": 3}},
	}
	if m.large {
		list = append(list, scaled{dims(3, 4099), dims(3), attrs{"axis": 0}}, scaled{dims(5, 1031), dims(5, 33), attrs{"axis": 1, "block_size": 32}})
	}
	return list
}

func (s scaled) with(more attrs) attrs {
	a := attrs{}
	maps.Copy(a, s.attrs)
	maps.Copy(a, more)
	return a
}

func quantize(m *maker) {
	for _, d := range []ir.DType{ir.I8, ir.U8, ir.I16, ir.U16} {
		list := scaledShapes(m)
		for k, s := range part(m, 5, len(list), list) {
			x := fill(m.dtype, s.x, func(int) float64 { // ties among them
				return float64(m.rng.IntN(1200)-600) / 4 * math.Ldexp(1, m.rng.IntN(3))
			})
			if k%3 == 1 {
				x = m.rng.wide(m.dtype, s.x)
			}
			scale := fill(m.partner(ir.Float), s.scale, func(int) float64 { return []float64{0.5, 1, 0.25, 0.1, 3, 1.0 / 256, 0.011}[m.rng.IntN(7)] })
			if k%5 == 4 && scale.Len() > 0 {
				put(scale, m.rng.IntN(scale.Len()), []float64{math.NaN(), math.Inf(1), 1e-7}[m.rng.IntN(3)])
			}
			var zero *ir.Tensor
			a := s.with(attrs{"dtype": d})
			if k%2 == 0 {
				zero = m.rng.wide(d, s.scale)
				if k%4 == 0 {
					delete(a, "dtype")
				}
			}
			m.add(a, x, scale, zero)
		}
		m.turn++
	}
}

func dequantize(m *maker) {
	for _, d := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
		list := scaledShapes(m)
		for k, s := range part(m, 5, len(list), list) {
			scale := m.rng.odd(m.partner(ir.Float), s.scale)
			var zero *ir.Tensor
			if k%2 == 0 {
				zero = m.rng.wide(m.dtype, s.scale)
			}
			m.add(s.with(attrs{"dtype": d}), m.rng.wide(m.dtype, s.x), scale, zero)
		}
		m.turn++
	}
}

var bytes8 = []ir.DType{ir.I8, ir.U8}

// requant draws the attributes and the side operands of a requantized sum of so many products into n channels.
func (m *maker) requant(a attrs, w ir.DType, n, products int64) (bias, multiplier *ir.Tensor) {
	k := len(m.cases) + m.turn
	out := []ir.DType{ir.I8, ir.U8, ir.I32}[k%3]
	a["dtype"] = out
	for name, d := range map[string]ir.DType{"x_zero_point": m.dtype, "w_zero_point": w, "out_zero_point": out} {
		if lo, hi := op.IntRange(d); d != ir.I32 && k%4 != 0 {
			a[name] = lo + m.fixedDraw(name, k)%(hi-lo+1)
		}
	}
	if k%5 > 1 {
		bias = m.rng.wide(ir.I32, dims(n))
	}
	if out == ir.I32 {
		return bias, nil
	}
	a["multiplier"] = math.Ldexp([]float64{1, 0.7, 1.3}[k%3], -6-int(math.Log2(float64(products+1))/2))
	if k%4 == 3 {
		multiplier = fill(ir.F32, dims(n), func(int) float64 { return 0.004 * m.rng.Float64() })
		if n > 2 {
			put(multiplier, 1, math.NaN())
			put(multiplier, 2, math.Inf(1))
		}
	}
	return bias, multiplier
}

// fixedDraw is a number that depends on a name and a count alone, so that the order of a map does not matter.
func (m *maker) fixedDraw(name string, k int) int64 {
	return int64(newRandom(uint64(k), uint64(len(name))<<8+uint64(name[0])).Int32N(1 << 16))
}

// bytes draws codes over the whole range, or its ends alone, where pairs of products are greatest.
func (m *maker) bytes(d ir.DType, shape []int64) *ir.Tensor {
	lo, hi := op.IntRange(d)
	if (len(m.cases)+m.turn)%3 == 2 {
		return fill(d, shape, func(int) float64 { return float64([]int64{lo, hi}[m.rng.IntN(2)]) })
	}
	return fill(d, shape, func(int) float64 { return float64(lo + m.rng.Int64N(hi-lo+1)) })
}

func qMatMul(m *maker) {
	list := [][2][]int64{
		{{1, 1}, {1, 1}}, {{2, 3}, {3, 4}}, {{8}, {8, 5}}, {{3, 17}, {17, 15}}, {{4, 16}, {16, 17}}, {{5, 33}, {33, 31}}, {{6, 64}, {64, 32}},
		{{7, 65}, {65, 33}}, {{1, 257}, {257, 3}}, {{2, 3, 9}, {9, 16}}, {{13, 9}, {9, 49}}, {{2, 0}, {0, 3}}, {{0, 4}, {4, 3}}, {{3, 4}, {4, 0}},
		{{1, 2, 1, 2, 1, 2, 1, 5}, {5, 7}}, {{33, 2}, {2, 100}}, {{65, 15}, {15, 9}}, {{31, 3}, {3, 129}},
	}
	for _, w := range bytes8 {
		shapes := part(m, 7, len(list), list)
		if m.large {
			shapes = append(shapes[:len(shapes):len(shapes)], [2][]int64{{70, 300}, {300, 130}}, [2][]int64{{1, 1100}, {1100, 200}})
		}
		for _, s := range shapes {
			a := attrs{}
			bias, multiplier := m.requant(a, w, s[1][1], s[1][0])
			m.add(a, m.bytes(m.dtype, s[0]), m.bytes(w, s[1]), bias, multiplier)
		}
		m.turn++
	}
}

func qConv2d(m *maker) {
	for _, w := range bytes8 {
		list := part(m, 5, len(windows2d), windows2d)
		if m.large {
			list = append(list[:len(list):len(list)], window{x: dims(1, 32, 30, 34), w: dims(48, 32, 3, 3), padding: dims(1, 1), stride: dims(2, 2)})
		}
		for _, g := range list {
			a := g.attrs(m.enums["auto_pad"])
			products := int64(1)
			for _, d := range g.w[1:] {
				products *= d
			}
			bias, multiplier := m.requant(a, w, g.w[0], products)
			m.add(a, m.bytes(m.dtype, g.x), m.bytes(w, g.w), bias, multiplier)
		}
		m.turn++
	}
}
