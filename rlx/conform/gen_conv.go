package conform

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() {
	generate(conv, "Conv")
	generate(conv3d, "Conv3d")
	generate(im2col, "Im2Col")
	generate(convTranspose, "ConvTranspose2d", "ConvTranspose3d")
	generate(fusedConv, "FusedConvBiasAct")
}

// window is one geometry: stride, dilation and padding are left out where nil.
type window struct {
	x, w                      []int64
	stride, dilation, padding []int64
	groups                    int64
}

func (w window) attrs(auto string) attrs {
	a := attrs{}
	if w.stride != nil {
		a["stride"] = w.stride
	}
	if w.dilation != nil {
		a["dilation"] = w.dilation
	}
	if w.padding != nil && auto == "none" {
		a["padding"] = w.padding
	}
	if w.groups > 0 {
		a["groups"] = w.groups
	}
	return a
}

var windows2d = []window{
	{x: dims(1, 1, 7), w: dims(1, 1, 3), stride: dims(2), dilation: dims(2), padding: dims(2, 0)},
	{x: dims(2, 3, 17), w: dims(4, 3, 5), padding: dims(2)},
	{x: dims(2, 4, 9), w: dims(6, 2, 3), groups: 2, stride: dims(3)},
	{x: dims(0, 3, 5), w: dims(2, 3, 3)},
	{x: dims(2, 0, 5), w: dims(3, 0, 2)},
	{x: dims(1, 3, 5), w: dims(4, 3, 2), stride: dims(math.MaxInt64), padding: dims(1, 0)},
	{x: dims(2, 3, 5, 6), w: dims(3, 1, 1, 3), groups: 3, stride: dims(2, 1<<62), dilation: dims(math.MaxInt64, 1)},
	{x: dims(1, 3, 8, 8), w: dims(8, 3, 3, 3), padding: dims(1, 1)},
	{x: dims(2, 16, 7, 9), w: dims(17, 16, 1, 1)},
	{x: dims(1, 8, 9, 7), w: dims(8, 1, 3, 3), groups: 8, padding: dims(1, 1)},
	{x: dims(1, 8, 15, 16), w: dims(16, 1, 3, 5), groups: 8, padding: dims(1, 0, 1, 2), stride: dims(2, 1)},
	{x: dims(2, 5, 11, 13), w: dims(7, 5, 3, 2), stride: dims(2, 3), dilation: dims(2, 1), padding: dims(0, 2, 3, 1)},
	{x: dims(1, 4, 6, 33), w: dims(32, 4, 2, 3), dilation: dims(1, 4)},
	{x: dims(3, 2, 5, 5), w: dims(1, 2, 5, 5)},
	{x: dims(1, 6, 7, 5), w: dims(9, 2, 3, 3), groups: 3, stride: dims(2, 2), padding: dims(1, 0, 1, 0)},
	{x: dims(2, 3, 13, 19), w: dims(6, 1, 2, 3), groups: 3, stride: dims(3, 5), dilation: dims(4, 2), padding: dims(2, 1, 0, 3)},
}

var windows3d = []window{
	{x: dims(1, 2, 4, 5, 6), w: dims(3, 2, 2, 3, 1)},
	{x: dims(2, 4, 3, 5, 7), w: dims(6, 2, 3, 3, 3), groups: 2, padding: dims(1, 1, 1)},
	{x: dims(1, 3, 7, 6, 9), w: dims(17, 3, 2, 2, 3), stride: dims(2, 1, 3), dilation: dims(2, 3, 1), padding: dims(1, 0, 2, 0, 3, 1)},
	{x: dims(1, 2, 5, 6, 7), w: dims(2, 1, 3, 2, 3), groups: 2, stride: dims(2, 3, 1), dilation: dims(1, 1, 2), padding: dims(1, 0, 2)},
	{x: dims(0, 1, 3, 3, 3), w: dims(1, 1, 1, 1, 1)},
}

// fewChannels have few result channels for each group, or strides of more than 2.
var fewChannels = []window{
	{x: dims(1, 9, 20, 50), w: dims(1, 9, 5, 3), padding: dims(2, 1)},
	{x: dims(2, 6, 14, 70), w: dims(10, 3, 3, 7), groups: 2, stride: dims(1, 3), dilation: dims(2, 1), padding: dims(1, 3, 2, 0)},
	{x: dims(1, 5, 40, 64), w: dims(20, 5, 3, 9), padding: dims(1, 4)},
	{x: dims(1, 700, 9, 33), w: dims(3, 700, 3, 3), padding: dims(1, 1)},
	{x: dims(1, 3, 90, 31), w: dims(12, 3, 4, 2), stride: dims(2, 4), padding: dims(0, 1)},
}

func conv(m *maker) {
	auto := m.enums["auto_pad"]
	m.convs(windows2d, window{x: dims(1, 32, 30, 34), w: dims(48, 32, 3, 3), padding: dims(1, 1), stride: dims(2, 2)},
		window{x: dims(1, 2, 150, 140), w: dims(4, 1, 3, 3), groups: 2, padding: dims(1, 1), stride: dims(1, 2)},
		window{x: dims(1, 2, 5000), w: dims(2, 1, 4), groups: 2, padding: dims(1, 2)},
		window{x: dims(1, 2, 75, 56), w: dims(4, 1, 3, 3), groups: 2, padding: dims(1, 1)},
		window{x: dims(1, 2, 41, 130), w: dims(2, 1, 3, 3), groups: 2, padding: dims(1, 1), stride: dims(2, 2)},
		window{x: dims(1, 2, 9, 37), w: dims(2, 1, 5, 5), groups: 2, padding: dims(2, 2)},
		window{x: dims(1, 2, 28, 76), w: dims(2, 1, 5, 5), groups: 2, padding: dims(1, 1, 2, 2), stride: dims(2, 2)},
		window{x: dims(1, 3, 30, 60), w: dims(33, 3, 7, 7), padding: dims(3, 3), stride: dims(2, 2)},
		window{x: dims(1, 3, 12, 64), w: dims(64, 3, 7, 7), padding: dims(3, 3), stride: dims(2, 2)},
		window{x: dims(1, 2, 5, 530), w: dims(20, 2, 3, 3), padding: dims(1, 1), stride: dims(2, 2)}, // rows in pieces
		window{x: dims(2, 4, 11, 37), w: dims(40, 2, 3, 3), groups: 2, padding: dims(2, 3), stride: dims(1, 2), dilation: dims(2, 3)},
		window{x: dims(2, 20, 5, 7), w: dims(30, 20, 1, 1)},
		window{x: dims(1, 20, 12, 17), w: dims(48, 10, 3, 3), groups: 2, padding: dims(2, 2), dilation: dims(2, 2)},
		window{x: dims(2, 130, 7, 7), w: dims(50, 130, 1, 1)},
		window{x: dims(1, 100, 7, 7), w: dims(36, 100, 3, 3), padding: dims(1, 1)},
		window{x: dims(1, 16, 16, 16), w: dims(30, 16, 1, 1)},
		window{x: dims(2, 40, 17, 21), w: dims(70, 20, 3, 3), groups: 2, padding: dims(1, 1)},
		window{x: dims(1, 150, 9, 12), w: dims(20, 150, 3, 3), padding: dims(2, 0, 1, 3)},
		window{x: dims(1, 16, 9, 235), w: dims(50, 16, 3, 3)}, // rows in pieces
		window{x: dims(1, 32, 14, 14), w: dims(32, 32, 3, 3), padding: dims(1, 1)})
	if m.large {
		m.convs(nil, fewChannels...)
	}
	if m.large && auto == "none" { // positions further apart than planes reach
		m.convs(nil, window{x: dims(1, 2, 9), w: dims(2, 1, 2), groups: 2, dilation: dims(2000000), padding: dims(1999999, 0)},
			window{x: dims(1, 2, 7, 22), w: dims(2, 1, 3, 3), groups: 2, stride: dims(2, 2), padding: dims(1, 1, 1, 26)}, // padding of whole vectors
			window{x: dims(1, 2, 7, 22), w: dims(2, 1, 5, 5), groups: 2, stride: dims(1, 2), padding: dims(2, 2, 2, 40)},
			window{x: dims(1, 2, 5000), w: dims(17, 2, 3), padding: dims(1)}) // a row in pieces
	}
}

func conv3d(m *maker) {
	m.convs(windows3d, window{x: dims(1, 8, 9, 12, 14), w: dims(20, 8, 3, 3, 3), padding: dims(1, 1, 1)},
		window{x: dims(1, 3, 6, 20, 40), w: dims(2, 3, 3, 3, 3), padding: dims(1, 1, 1), stride: dims(2, 1, 1)})
}

func (m *maker) convs(list []window, large ...window) {
	auto := m.enums["auto_pad"]
	picked := part(m, 5, len(list), list)
	if m.large {
		picked = slices.Concat(picked, large)
	}
	for _, w := range picked {
		m.product(w.attrs(auto), w.x, w.w)
	}
}

func im2col(m *maker) {
	auto := m.enums["auto_pad"]
	if m.large {
		m.add(attrs{"kernel_size": "[3, 3]"}, m.rng.plain(m.dtype, dims(2, 3, 30, 34)))
	}
	for _, w := range part(m, 5, len(windows2d)+len(windows3d), append(windows3d, windows2d...)) {
		a := w.attrs(auto)
		delete(a, "groups")
		a["kernel_size"] = w.w[2:]
		m.add(a, m.rng.odd(m.dtype, w.x))
	}
}

// transposed is one geometry of a transposed convolution; output is its output_padding.
type transposed struct {
	window
	output []int64
}

var transposed2d = []transposed{
	{window{x: dims(1, 1, 7), w: dims(1, 1, 3), stride: dims(2), dilation: dims(2), padding: dims(2, 0)}, nil},
	{window{x: dims(2, 3, 17), w: dims(3, 4, 5), padding: dims(2), stride: dims(3)}, dims(2)},
	{window{x: dims(2, 4, 9), w: dims(4, 3, 3), groups: 2}, nil},
	{window{x: dims(0, 3, 5), w: dims(3, 700, 3)}, nil}, // more weights than a small arena holds by chance
	{window{x: dims(9, 3, 70), w: dims(3, 0, 3)}, nil},
	{window{x: dims(2, 3, 5), w: dims(3, 4, 0), stride: dims(2)}, nil},
	{window{x: dims(2, 0, 5), w: dims(0, 3, 2), stride: dims(2)}, nil},
	{window{x: dims(1, 2, 5), w: dims(2, 0, 2)}, nil},
	{window{x: dims(1, 2, 1), w: dims(2, 3, 1), stride: dims(5), padding: dims(1, 0)}, dims(4)},
	{window{x: dims(1, 3, 8, 8), w: dims(3, 8, 2, 2), stride: dims(2, 2)}, nil},
	{window{x: dims(2, 3, 1), w: dims(3, 2, 3), stride: dims(1 << 40), padding: dims(1)}, nil},
	{window{x: dims(1, 3, 1, 4), w: dims(3, 2, 3, 1), stride: dims(math.MaxInt64, 2), dilation: dims(1, math.MaxInt64)}, nil},
	{window{x: dims(2, 16, 7, 9), w: dims(16, 17, 3, 3), stride: dims(2, 2), padding: dims(1, 1)}, dims(1, 1)},
	{window{x: dims(1, 8, 9, 7), w: dims(8, 1, 3, 3), groups: 8, padding: dims(1, 1), stride: dims(2, 1)}, nil},
	{window{x: dims(1, 6, 5, 20), w: dims(6, 2, 4, 3), groups: 3, padding: dims(2, 0, 1, 2), stride: dims(1, 2), dilation: dims(2, 3)}, dims(0, 1)},
	{window{x: dims(3, 5, 4, 5), w: dims(5, 3, 1, 1)}, nil},
}

var transposed3d = []transposed{
	{window{x: dims(1, 2, 4, 5, 6), w: dims(2, 3, 2, 3, 1)}, nil},
	{window{x: dims(2, 4, 3, 2, 7), w: dims(4, 3, 3, 3, 3), groups: 2, padding: dims(1, 1, 1), stride: dims(1, 2, 2)}, dims(0, 1, 0)},
	{window{x: dims(1, 3, 2, 3, 4), w: dims(3, 5, 2, 2, 3), stride: dims(2, 1, 3), dilation: dims(2, 3, 1), padding: dims(1, 0, 2, 0, 3, 1)}, nil},
	{window{x: dims(0, 1, 3, 3, 3), w: dims(1, 1, 1, 1, 1)}, nil},
}

func convTranspose(m *maker) {
	list, large := transposed2d, []transposed{
		{window{x: dims(1, 40, 12, 15), w: dims(40, 30, 3, 3), padding: dims(1, 1), stride: dims(2, 2)}, dims(1, 0)},
		{window{x: dims(1, 4, 40, 41), w: dims(4, 70, 3, 3), padding: dims(1, 0), stride: dims(2, 2)}, nil},
	}
	if m.row.Name == "ConvTranspose3d" {
		list, large = transposed3d, []transposed{{window{x: dims(1, 9, 5, 13, 27), w: dims(9, 24, 3, 2, 3), stride: dims(2, 2, 2)}, nil}}
	}
	picked := part(m, 5, len(list), list)
	if m.large {
		picked = slices.Concat(picked, large)
	}
	auto := m.enums["auto_pad"]
	for _, t := range picked {
		a := t.attrs(auto)
		if t.output != nil {
			a["output_padding"] = t.output
		}
		m.product(a, t.x, t.w)
	}
}

// fusedConv takes numbers whose sums are exact where there is a function: it may be as steep as it likes.
func fusedConv(m *maker) {
	auto, none := m.enums["auto_pad"], m.enums["activation"] == "none"
	list := append(windows3d[:len(windows3d):len(windows3d)], windows2d...)
	if m.large && none {
		list = append(list, window{x: dims(1, 32, 30, 34), w: dims(48, 32, 3, 3), padding: dims(1, 1), stride: dims(2, 2)})
		list = append(list, fewChannels...)
	}
	few := 1
	if none {
		few = 5
	}
	for i, w := range part(m, few, 4*few, list) {
		draw := func(shape []int64) *ir.Tensor {
			if none {
				return m.rng.plain(m.dtype, shape)
			}
			return fill(m.dtype, shape, func(int) float64 { return float64(m.rng.IntN(9)-4) / 4 })
		}
		in := []*ir.Tensor{draw(w.x), draw(w.w), draw(w.w[:1]), nil}
		if i%3 == 1 {
			in[2] = nil
		}
		if out, ok := w.result(auto); ok && (i+m.turn)%2 == 0 {
			in[3] = draw(out)
		}
		c := m.add(w.attrs(auto), in...)
		c.linear = none
	}
}

// result is the shape of a convolution, found by inference.
func (w window) result(auto string) ([]int64, bool) {
	row, err := ir.RowByName("FusedConvBiasAct")
	if err != nil {
		return nil, false
	}
	given := map[string]string{"auto_pad": auto}
	for k, v := range w.attrs(auto) {
		given[k] = attrValue(v)
	}
	a, err := row.NewAttrs(given)
	if err != nil {
		return nil, false
	}
	g := ir.NewGraph("")
	n, err := g.Add(row, "", a, g.Input("x", ir.F32, ir.Dims(w.x...)), g.Input("w", ir.F32, ir.Dims(w.w...)))
	if err != nil {
		return nil, false
	}
	return ir.StaticShape(n.Types[0].Shape)
}
