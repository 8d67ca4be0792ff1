package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	for _, name := range []string{"Reshape", "Transpose", "Narrow", "Slice", "Expand", "Reverse"} {
		on(name, viewed)
	}
	on("Copy", func(c *call) error { copy(c.out[0].data, c.in[0].data); return nil })
	on("Concat", concat)
	on("Pad", pad)
	on("Tile", tile)
	on("Trilu", trilu)
	on("Roll", roll)
	on("DynamicUpdateSlice", dynamicUpdateSlice)
	on("ResizeNearest2x", resizeNearest2x)
	on("Interpolate3d", interpolate3d)
	on("Resize", resize)
}

// viewed copies the elements that a view of operand 0 shows, in row-major order.
func viewed(c *call) error {
	x, y := c.in[0], c.out[0]
	in := op.Strided{Dims: x.dims, Strides: make([]int64, len(x.dims))}
	for k, s := range strides(x.dims) {
		in.Strides[k] = int64(s)
	}
	v, ok := op.ViewLayout(c.cmd.Row, c.cmd.Attrs, in, y.dims)
	if !ok {
		return broken("view", "shape %v has no layout of shape %v", x.dims, y.dims)
	}
	if y.len() == 0 {
		return nil
	}
	size := int64(y.dtype.Size())
	// A run of trailing axes that lies in one piece is copied at once.
	run, k := int64(1), len(v.Dims)
	for k > 0 && (v.Dims[k-1] == 1 || v.Strides[k-1] == run) {
		k--
		run *= v.Dims[k]
	}
	idx, at := make([]int64, k), v.Offset
	for to := int64(0); to < int64(len(y.data)); to += run * size {
		copy(y.data[to:to+run*size], x.data[at*size:(at+run)*size])
		for d := k - 1; d >= 0; d-- {
			idx[d]++
			if at += v.Strides[d]; idx[d] < v.Dims[d] {
				break
			}
			at -= idx[d] * v.Strides[d]
			idx[d] = 0
		}
	}
	return nil
}

// block copies rows of n elements along an axis into to, from row at on.
func block(from, to tensor, axis, at int) {
	outer, n, inner := around(from.dims, axis)
	size := to.dtype.Size()
	have, full := n*inner*size, int(to.dims[axis])*inner*size
	for o := range outer {
		copy(to.data[o*full+at*inner*size:][:have], from.data[o*have:])
	}
}

func concat(c *call) error {
	y, at := c.out[0], 0
	axis := wrap(attrs[op.ConcatAttrs](c).Axis, y.rank())
	if y.len() == 0 {
		return nil
	}
	for _, x := range c.in {
		block(x, y, axis, at)
		at += int(x.dims[axis])
	}
	return nil
}

// mapped fills y from x by one table per axis: element i of axis k of y reads element table[k][i] of x, and fill where any is -1. A
// nil table is the identity.
func mapped(x, y tensor, tables [][]int64, fill []byte) {
	if y.len() == 0 {
		return
	}
	size, st := y.dtype.Size(), strides(x.dims)
	last := y.rank() - 1
	idx := make([]int, y.rank())
	read := func(k, i int) int { // -1 for fill, else the distance in elements
		if tables[k] == nil {
			return i * st[k]
		}
		if s := int(tables[k][i]); s >= 0 {
			return s * st[k]
		}
		return -1
	}
	for i, n := 0, y.len(); i < n; i++ {
		at := 0
		for k := range idx {
			s := read(k, idx[k])
			if s < 0 {
				at = -1
				break
			}
			at += s
		}
		if at < 0 {
			copy(y.data[i*size:(i+1)*size], fill)
		} else {
			copy(y.data[i*size:(i+1)*size], x.data[at*size:(at+1)*size])
		}
		for d := last; d >= 0; d-- {
			if idx[d]++; int64(idx[d]) < y.dims[d] {
				break
			}
			idx[d] = 0
		}
	}
}

func pad(c *call) error {
	a, x, y := attrs[op.PadAttrs](c), c.in[0], c.out[0]
	if y.len() == 0 {
		return nil
	}
	tables := make([][]int64, x.rank())
	for k, d := range x.dims {
		before, after := a.PadCounts(k, x.rank())
		tables[k] = op.PadMap(a.Mode, d, before, after)
	}
	mapped(x, y, tables, op.NumberAs(x.dtype, a.Value).Bytes())
	return nil
}

// modulo is the table of n*times entries that reads an axis of n elements again and again, from entry from on.
func modulo(n, length, from int64) []int64 {
	t := make([]int64, length)
	for i := range t {
		t[i] = (int64(i) + from) % n
	}
	return t
}

func tile(c *call) error {
	x, y := c.in[0], c.out[0]
	if y.len() == 0 {
		return nil
	}
	tables := make([][]int64, x.rank())
	for k, d := range x.dims {
		tables[k] = modulo(d, y.dims[k], 0)
	}
	mapped(x, y, tables, nil)
	return nil
}

func roll(c *call) error {
	a, x, y := attrs[op.RollAttrs](c), c.in[0], c.out[0]
	if y.len() == 0 {
		return nil
	}
	tables := make([][]int64, x.rank())
	for k, d := range x.dims {
		tables[k] = modulo(d, d, d-a.Total(k, x.rank(), d))
	}
	mapped(x, y, tables, nil)
	return nil
}

func trilu(c *call) error {
	a, x, y := attrs[op.TriluAttrs](c), c.in[0], c.out[0]
	rows, cols := x.dims[x.rank()-2], x.dims[x.rank()-1]
	clear(y.data)
	for i := range x.len() {
		if a.Keeps(int64(i)/cols%rows, int64(i)%cols) {
			copy(y.elem(i), x.elem(i))
		}
	}
	return nil
}

func dynamicUpdateSlice(c *call) error {
	x, u, y := c.in[0], c.in[1], c.out[0]
	axis := wrap(attrs[op.DynamicUpdateSliceAttrs](c).Axis, x.rank())
	start, err := c.in[2].index(0)
	if err != nil {
		return err
	}
	copy(y.data, x.data)
	if u.len() > 0 {
		block(u, y, axis, int(min(max(start, 0), x.dims[axis]-u.dims[axis])))
	}
	return nil
}

// index reads element i of an index operand. Integers beyond int64 become its ends: no axis is that long.
func (t tensor) index(i int) (int64, error) {
	if t.isInt() {
		v := t.int(i)
		if t.dtype == ir.U64 && v < 0 {
			return math.MaxInt64, nil
		}
		return v, nil
	}
	f := t.at(i)
	switch {
	case f != math.Trunc(f) || math.IsInf(f, 0):
		return 0, broken("C8", "index %v is not an integer", f)
	case f >= 0x1p63:
		return math.MaxInt64, nil
	case f < -0x1p63:
		return math.MinInt64, nil
	}
	return int64(f), nil
}

func resizeNearest2x(c *call) error {
	x, y := c.in[0], c.out[0]
	mapped(x, y, [][]int64{nil, nil, op.NearestMap(x.dims[2], y.dims[2]), op.NearestMap(x.dims[3], y.dims[3])}, nil)
	return nil
}

func interpolate3d(c *call) error {
	x, y := c.in[0], c.out[0]
	if y.len() == 0 {
		return nil
	}
	tables := make([][]int64, 5)
	for k := 2; k < 5; k++ {
		tables[k] = op.NearestMap(x.dims[k], y.dims[k])
	}
	mapped(x, y, tables, nil)
	return nil
}
