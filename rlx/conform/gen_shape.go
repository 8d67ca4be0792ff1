package conform

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() {
	generate(ofShapes([]shaped{
		{dims(6), attrs{"shape": "[2, 3]"}}, {dims(2, 3, 4), attrs{"shape": "[-1, 3]"}}, {dims(0, 3), attrs{"shape": "[3, 0]", "allow_zero": true}},
		{dims(), attrs{"shape": "[1, 1]"}}, {dims(1), attrs{"shape": "[]"}}, {dims(4, 16), attrs{"shape": "[0, 2, -1]"}}, {dims(3, 33), attrs{"shape": "[99]"}},
		{dims(256), attrs{"shape": "[2, 2, 2, 2, 2, 2, 2, 2]"}}, {dims(9, 7), attrs{"shape": "[7, 9]"}},
	}), "Reshape")
	generate(ofShapes([]shaped{
		{dims(7), nil}, {dims(3, 5), nil}, {dims(17, 33), attrs{"perm": "[1, 0]"}}, {dims(2, 3, 4), attrs{"perm": "[1, 2, 0]"}}, {dims(2, 3, 4, 5), attrs{"perm": "[0, 2, 1, 3]"}},
		{dims(2, 16, 8, 9), attrs{"perm": "[0, 2, 3, 1]"}}, {dims(0, 3), nil}, {dims(), nil}, {dims(1, 2, 1, 3, 1, 2, 1, 3), nil}, {dims(65, 64), nil}, {dims(100, 9), nil},
	}), "Transpose")
	generate(ofShapes([]shaped{
		{dims(7), attrs{"axis": 0, "start": 2, "length": 3}}, {dims(3, 17), attrs{"axis": -1, "start": -5, "length": 5}}, {dims(9, 4), attrs{"axis": 0, "start": 0, "length": 9}},
		{dims(3, 4), attrs{"axis": 1, "start": 1, "length": 0}}, {dims(2, 33, 3), attrs{"axis": 1, "start": 16, "length": 17}},
	}), "Narrow")
	generate(ofShapes([]shaped{
		{dims(9), attrs{"starts": "[1]", "ends": "[7]"}}, {dims(9), attrs{"starts": "[8]", "ends": "[-100]", "steps": "[-1]"}}, {dims(4, 33), attrs{"starts": "[-3, 2]", "ends": "[100, -1]", "steps": "[1, 3]"}},
		{dims(5, 17), attrs{"starts": "[16]", "ends": "[0]", "axes": "[-1]", "steps": "[-4]"}}, {dims(3, 4), attrs{"starts": "[2]", "ends": "[2]"}}, {dims(0, 3), attrs{"starts": "[0]", "ends": "[-1]", "steps": "[-1]"}},
		{dims(2, 3, 4, 65), attrs{"starts": "[1, 0]", "ends": "[9223372036854775807, 64]", "axes": "[2, 3]", "steps": "[2, 2]"}},
	}), "Slice")
	generate(ofShapes([]shaped{
		{dims(1), attrs{"shape": "[7]"}}, {dims(3, 1), attrs{"shape": "[3, 17]"}}, {dims(4), attrs{"shape": "[2, 3, 4]"}}, {dims(1, 5), attrs{"shape": "[-1, 1]"}}, {dims(), attrs{"shape": "[2, 9]"}},
		{dims(1, 3), attrs{"shape": "[0, 3]"}}, {dims(2, 1, 3, 1), attrs{"shape": "[2, 8, 1, 33]"}}, {dims(3), attrs{"shape": "[1, 2, 1, 2, 1, 2, 1, 3]"}},
	}), "Expand")
	generate(ofShapes([]shaped{
		{dims(7), attrs{"axes": "[0]"}}, {dims(3, 17), attrs{"axes": "[-1]"}}, {dims(3, 16, 2), attrs{"axes": "[0, 2]"}}, {dims(3, 4), attrs{"axes": "[]"}}, {dims(0, 3), attrs{"axes": "[0]"}}, {dims(4, 65), attrs{"axes": "[1, 0]"}},
	}), "Reverse")
	generate(ofShapes([]shaped{
		{dims(3, 3), nil}, {dims(4, 7), attrs{"lower": true}}, {dims(2, 9, 5), attrs{"diagonal": 2}}, {dims(17, 16), attrs{"lower": true, "diagonal": -3}}, {dims(3, 33), attrs{"diagonal": -40}},
		{dims(0, 3), nil}, {dims(2, 3, 8, 8), attrs{"lower": true, "diagonal": 1}}, {dims(5, 65), attrs{"diagonal": 60}},
	}), "Trilu")
	generate(ofShapes([]shaped{
		{dims(1, 1, 1, 1), nil}, {dims(2, 3, 4, 5), nil}, {dims(1, 2, 3, 17), nil}, {dims(2, 0, 3, 3), nil}, {dims(1, 3, 9, 33), nil},
	}), "ResizeNearest2x")
	generate(ofShapes([]shaped{
		{dims(1, 2, 3, 4, 5), attrs{"sizes": "[6, 8, 10]"}}, {dims(2, 1, 4, 5, 9), attrs{"sizes": "[3, 7, 4]"}}, {dims(1, 1, 2, 2, 2), attrs{"sizes": "[0, 3, 3]"}}, {dims(1, 3, 1, 5, 17), attrs{"sizes": "[4, 5, 33]"}},
	}), "Interpolate3d")
	generate(ofShapes([]shaped{
		{dims(7), attrs{"padding": "[2]"}}, {dims(3, 4), attrs{"padding": "[1, 0, 2, 3]"}}, {dims(3, 9), attrs{"padding": "[-1, 2, 0, -3]"}}, {dims(2, 3, 17), attrs{"padding": "[0, 4, 5]"}},
		{dims(5), attrs{"padding": "[12, 7]"}}, {dims(2, 2, 5, 6), attrs{"padding": "[0, 0, 1, 1, 0, 0, 2, 1]"}}, {dims(1, 33), attrs{"padding": "[0, 16, 0, 15]"}}, {dims(3, 0), attrs{"padding": "[1, 0]"}},
	}), "Pad")
	generate(ofShapes([]shaped{
		{dims(3), attrs{"repeats": "[4]"}}, {dims(2, 5), attrs{"repeats": "[3, 1]"}}, {dims(2, 9), attrs{"repeats": "[1, 7]"}}, {dims(1, 3, 2, 2), attrs{"repeats": "[2, 1, 3, 2]"}}, {dims(2, 3), attrs{"repeats": "[0, 2]"}},
		{dims(), attrs{"repeats": "[]"}}, {dims(1, 33), attrs{"repeats": "[3, 2]"}}, {dims(1, 2, 1, 2, 1, 2, 1, 2), attrs{"repeats": "[2, 1, 2, 1, 2, 1, 2, 1]"}},
	}), "Tile")
	generate(ofShapes([]shaped{
		{dims(7), attrs{"shifts": "[2]", "axes": "[0]"}}, {dims(3, 17), attrs{"shifts": "[-20, 1]", "axes": "[-1, 0]"}}, {dims(5, 9), attrs{"shifts": "[3, 3]", "axes": "[1, 1]"}}, {dims(0, 3), attrs{"shifts": "[1]", "axes": "[0]"}},
		{dims(4, 33), attrs{"shifts": "[]", "axes": "[]"}}, {dims(2, 64), attrs{"shifts": "[1000000007]", "axes": "[1]"}},
	}), "Roll")
	generate(resize, "Resize")
	generate(concat, "Concat")
	generate(dynamicUpdateSlice, "DynamicUpdateSlice")
}

// shaped is one call of a row with one operand.
type shaped struct {
	x []int64
	a attrs
}

func ofShapes(list []shaped) generator {
	return func(m *maker) {
		for k, c := range part(m, 4, len(list), list) {
			x := m.rng.wide(m.dtype, c.x)
			m.add(c.a, x)
			if k == 0 && m.large && len(c.x) > 0 { // longer than a block, with the attributes of the short one where they still fit
				big := dims(c.x...)
				big[len(big)-1] *= 1024
				m.add(c.a, m.rng.wide(m.dtype, big)).optional = true
			}
		}
	}
}

func resize(m *maker) {
	crop := m.enums["coordinate_mode"] == "tf_crop_and_resize"
	list := []shaped{
		{dims(4), attrs{"scales": "[1.5]"}}, {dims(1, 1, 4, 5), attrs{"sizes": "[1, 1, 7, 3]"}}, {dims(2, 3), attrs{"axes": "[1]", "scales": "[2.0]"}}, {dims(5), attrs{"scales": "[0.6]"}},
		{dims(2, 2, 3, 9), attrs{"axes": "[2, 3]", "sizes": "[6, 17]"}}, {dims(1, 3), attrs{"sizes": "[1, 1]"}}, {dims(0, 4), attrs{"axes": "[1]", "sizes": "[8]"}},
		{dims(3, 5), attrs{"axes": "[-1, 0]", "scales": "[1.3, 2]"}},
	}
	for k, c := range part(m, 1, 3, list) {
		a := attrs{}
		for name, v := range c.a {
			a[name] = v
		}
		if crop {
			n := 2 * len(listItems([]byte(first(attrValue(a["sizes"]), attrValue(a["scales"])))))
			roi := make([]float64, n)
			for i := range roi {
				roi[i] = []float64{0.25, -0.1}[i%2]
				if i >= n/2 {
					roi[i] = []float64{0.9, 1.2}[i%2]
				}
			}
			a["roi"], a["extrapolation_value"] = roi, 7
		}
		if m.enums["mode"] == "cubic" {
			a["exclude_outside"], a["cubic_coeff_a"] = k%2 == 0, []float64{-0.75, -0.5}[k%2]
		}
		x := m.rng.plain(m.dtype, c.x)
		y := m.add(a, x)
		if m.enums["mode"] != "nearest" {
			y.least = 6 // weights of either sign, values of a few units
		}
	}
	m.turn++
}

func first(list ...string) string {
	for _, s := range list {
		if s != "<nil>" {
			return s
		}
	}
	return ""
}

func concat(m *maker) {
	type call struct {
		axis   int
		shapes [][]int64
	}
	list := []call{{0, [][]int64{{3}, {4}}}, {-1, [][]int64{{2, 3}, {2, 17}, {2, 1}}}, {0, [][]int64{{2, 9}}}, {1, [][]int64{{2, 3, 4}, {2, 0, 4}, {2, 5, 4}}}, {0, [][]int64{{0, 2}, {1, 2}}},
		{-1, [][]int64{{3, 15}, {3, 16}, {3, 33}}}, {0, [][]int64{{0}, {0}}}, {2, [][]int64{{1, 2, 1, 1, 2, 1, 1, 3}, {1, 2, 3, 1, 2, 1, 1, 3}}}, {1, [][]int64{{5, 64}, {5, 65}}}}
	for _, c := range some(m, 4, list) {
		var in []*ir.Tensor
		for _, s := range c.shapes {
			in = append(in, m.rng.wide(m.dtype, s))
		}
		m.add(attrs{"axis": c.axis}, in...)
	}
	if m.large {
		m.add(attrs{"axis": 1}, m.rng.wide(m.dtype, dims(70, 60)), m.rng.wide(m.dtype, dims(70, 131)))
	}
}

func dynamicUpdateSlice(m *maker) {
	type call struct {
		x, u []int64
		axis int
	}
	list := []call{{dims(7), dims(3), 0}, {dims(3, 17), dims(3, 5), -1}, {dims(2, 9, 4), dims(2, 2, 4), 1}, {dims(4, 3), dims(0, 3), 0}, {dims(3, 33), dims(3, 33), 1}, {dims(8, 64), dims(1, 64), 0}}
	for k, c := range some(m, 4, list) {
		n := c.x[(c.axis+len(c.x))%len(c.x)]
		start := fill(m.partner(ir.IndexT), []([]int64){{}, {1}}[k%2], func(int) float64 { return float64(m.rng.Int64N(2*n) - n/2) })
		m.add(attrs{"axis": c.axis}, m.rng.wide(m.dtype, c.x), m.rng.wide(m.dtype, c.u), start)
	}
	x, u := m.rng.plain(m.dtype, dims(5)), m.rng.plain(m.dtype, dims(2))
	m.add(attrs{"axis": 0}, x, u, ir.Scalar(int64(math.MaxInt64)))
	m.add(attrs{"axis": 0}, x, u, ir.Scalar(int64(math.MinInt64)))
}
