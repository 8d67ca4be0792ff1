package conform

func init() {
	generate(conv, "Conv")
	generate(conv3d, "Conv3d")
	generate(im2col, "Im2Col")
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
	{x: dims(1, 3, 8, 8), w: dims(8, 3, 3, 3), padding: dims(1, 1)},
	{x: dims(2, 16, 7, 9), w: dims(17, 16, 1, 1)},
	{x: dims(1, 8, 9, 7), w: dims(8, 1, 3, 3), groups: 8, padding: dims(1, 1)},
	{x: dims(1, 8, 15, 16), w: dims(16, 1, 3, 5), groups: 8, padding: dims(1, 0, 1, 2), stride: dims(2, 1)},
	{x: dims(2, 5, 11, 13), w: dims(7, 5, 3, 2), stride: dims(2, 3), dilation: dims(2, 1), padding: dims(0, 2, 3, 1)},
	{x: dims(1, 4, 6, 33), w: dims(32, 4, 2, 3), dilation: dims(1, 4)},
	{x: dims(3, 2, 5, 5), w: dims(1, 2, 5, 5)},
	{x: dims(1, 6, 7, 5), w: dims(9, 2, 3, 3), groups: 3, stride: dims(2, 2), padding: dims(1, 0, 1, 0)},
}

var windows3d = []window{
	{x: dims(1, 2, 4, 5, 6), w: dims(3, 2, 2, 3, 1)},
	{x: dims(2, 4, 3, 5, 7), w: dims(6, 2, 3, 3, 3), groups: 2, padding: dims(1, 1, 1)},
	{x: dims(1, 3, 7, 6, 9), w: dims(17, 3, 2, 2, 3), stride: dims(2, 1, 3), dilation: dims(2, 3, 1), padding: dims(1, 0, 2, 0, 3, 1)},
	{x: dims(0, 1, 3, 3, 3), w: dims(1, 1, 1, 1, 1)},
}

func conv(m *maker) {
	list := windows2d
	if m.large {
		list = append(list[:len(list):len(list)], window{x: dims(1, 32, 30, 34), w: dims(48, 32, 3, 3), padding: dims(1, 1), stride: dims(2, 2)})
	}
	m.convs(list)
}

func conv3d(m *maker) {
	list := windows3d
	if m.large {
		list = append(list[:len(list):len(list)], window{x: dims(1, 8, 9, 12, 14), w: dims(20, 8, 3, 3, 3), padding: dims(1, 1, 1)})
	}
	m.convs(list)
}

func (m *maker) convs(list []window) {
	auto := m.enums["auto_pad"]
	picked := part(m, 5, len(list), list)
	if m.large {
		picked = append(picked[:len(picked):len(picked)], list[len(list)-1])
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
