package ref

import (
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("Gather", gatherAxis)
	on("GatherNd", gatherNd)
	on("GatherElements", gatherElements)
	on("ScatterAdd", scatterAdd)
	on("ScatterNd", scatterNd)
	on("ScatterElements", scatterElements)
	on("GatherBackward", gatherBackward)
	on("KvAppend", kvAppend)
	on("OneHot", oneHot)
}

// within is element i of an index operand, wrapped into [0, d).
func (t tensor) within(i int, d int64) (int, error) {
	v, err := t.index(i)
	if err != nil {
		return 0, err
	}
	if v < -d || v >= d {
		return 0, broken("C7", "index %s, expected in [-%d, %d)", t.indexText(i), d, d)
	}
	if v < 0 {
		v += d
	}
	return int(v), nil
}

// indexText is element i as errors show it, exact for u64 too.
func (t tensor) indexText(i int) string {
	x, err := ir.FromBytes(t.dtype, nil, t.elem(i))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(x.At(0))
}

// list is all indices along one axis of d elements, checked and wrapped.
func (t tensor) list(d int64) ([]int, error) {
	out := make([]int, t.len())
	for i := range out {
		v, err := t.within(i, d)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func gatherAxis(c *call) error {
	x, y := c.in[0], c.out[0]
	axis := wrap(attrs[op.GatherAttrs](c).Axis, x.rank())
	index, err := c.in[1].list(x.dims[axis])
	if err != nil || y.len() == 0 {
		return err
	}
	outer, n, inner := around(x.dims, axis)
	run, at := inner*x.dtype.Size(), 0
	for o := range outer {
		for _, i := range index {
			copy(y.data[at:at+run], x.data[(o*n+i)*run:])
			at += run
		}
	}
	return nil
}

// tuples reads index [.., k]: for each tuple the element of x at which its slice starts, in slices of x behind the first b+k axes. The
// first b coordinates are those of the tuple's own batch.
func tuples(x, index tensor, b int) ([]int, error) {
	q := index.rank() - 1
	k := int(index.dims[q])
	lead := index.dims[:q]
	rows := strides(x.dims[:b+k])
	batch := strides(lead)
	out := make([]int, product(lead))
	for t := range out {
		for j := range b {
			out[t] += t / batch[j] % int(lead[j]) * rows[j]
		}
		for j := range k {
			i, err := index.within(t*k+j, x.dims[b+j])
			if err != nil {
				return nil, err
			}
			out[t] += i * rows[b+j]
		}
	}
	return out, nil
}

func gatherNd(c *call) error {
	x, index, y := c.in[0], c.in[1], c.out[0]
	b := attrs[op.GatherNdAttrs](c).BatchDims
	rows, err := tuples(x, index, b)
	if err != nil || y.len() == 0 {
		return err
	}
	run := len(y.data) / len(rows)
	for t, row := range rows {
		copy(y.data[t*run:(t+1)*run], x.data[row*run:])
	}
	return nil
}

// elements is, for each element of index, the element of x at the same place but for axis, where it is the index.
func elements(x, index tensor, axis int) ([]int, error) {
	st, own := strides(x.dims), strides(index.dims)
	out := make([]int, index.len())
	for i := range out {
		v, err := index.within(i, x.dims[axis])
		if err != nil {
			return nil, err
		}
		for k := range st {
			if k != axis {
				out[i] += i / own[k] % int(index.dims[k]) * st[k]
			}
		}
		out[i] += v * st[axis]
	}
	return out, nil
}

func gatherElements(c *call) error {
	x, y := c.in[0], c.out[0]
	from, err := elements(x, c.in[1], wrap(attrs[op.GatherAttrs](c).Axis, x.rank()))
	if err != nil {
		return err
	}
	for i, at := range from {
		copy(y.elem(i), x.elem(at))
	}
	return nil
}

func scatterNd(c *call) error {
	x, index, u, y := c.in[0], c.in[1], c.in[2], c.out[0]
	rows, err := tuples(x, index, 0)
	if err != nil {
		return err
	}
	copy(y.data, x.data)
	if u.len() == 0 {
		return nil
	}
	run := u.len() / len(rows)
	scatter(u, y, attrs[op.ScatterNdAttrs](c).Reduction, func(i int) int { return rows[i/run]*run + i%run })
	return nil
}

func scatterElements(c *call) error {
	a, x, y := attrs[op.ScatterElementsAttrs](c), c.in[0], c.out[0]
	to, err := elements(x, c.in[1], wrap(a.Axis, x.rank()))
	if err != nil {
		return err
	}
	copy(y.data, x.data)
	scatter(c.in[2], y, a.Reduction, func(i int) int { return to[i] })
	return nil
}

func scatterAdd(c *call) error {
	u, y := c.in[0], c.out[0]
	a := attrs[op.SegmentAttrs](c)
	index, err := c.in[1].list(a.Size)
	if err != nil {
		return err
	}
	clear(y.data)
	if c.has(2) {
		copy(y.data, c.in[2].data)
	}
	segments(u, y, index, wrap(a.Axis, u.rank()))
	return nil
}

func gatherBackward(c *call) error {
	dy, dx := c.in[0], c.out[0]
	a := attrs[op.SegmentAttrs](c)
	index, err := c.in[1].list(a.Size)
	if err != nil {
		return err
	}
	axis := wrap(a.Axis, dx.rank())
	dims := append(append([]int64{}, dx.dims[:axis]...), int64(len(index)))
	dy.dims = append(dims, dx.dims[axis+1:]...)
	clear(dx.data)
	segments(dy, dx, index, axis)
	return nil
}

// segments adds slice i of u, along axis, to slice index[i] of y.
func segments(u, y tensor, index []int, axis int) {
	if u.len() == 0 {
		return
	}
	_, n, inner := around(u.dims, axis)
	rows := int(y.dims[axis])
	scatter(u, y, op.ScatterSum, func(i int) int {
		o, k := i/inner/n, i/inner%n
		return (o*rows+index[k])*inner + i%inner
	})
}

func kvAppend(c *call) error {
	a, cache, rows, y := attrs[op.KvAppendAttrs](c), c.in[0], c.in[1], c.out[0]
	axis := wrap(a.Axis, cache.rank())
	at, err := positions(c, a, rows.dims[axis], cache.dims[axis])
	if err != nil {
		return err
	}
	copy(y.data, cache.data)
	if len(at) == 1 {
		if rows.len() > 0 {
			block(rows, y, axis, at[0])
		}
		return nil
	}
	for b, p := range at { // one batch row at a time
		from, to := row(rows, b), row(y, b)
		if from.len() > 0 {
			block(from, to, axis-1, p)
		}
	}
	return nil
}

// positions are the checked positions: nothing is written before all are known to fit.
func positions(c *call, a *op.KvAppendAttrs, n, capacity int64) ([]int, error) {
	count, read := 1, func(int) (int64, error) { return *a.Position, nil }
	if a.Position == nil {
		count, read = c.in[2].len(), c.in[2].index
	}
	out := make([]int, count)
	for i := range out {
		p, err := read(i)
		if err != nil {
			return nil, err
		}
		if p < 0 || p > capacity-n {
			return nil, broken("C4", "position %d and %d rows overflow the cache of %d", p, n, capacity)
		}
		out[i] = int(p)
	}
	return out, nil
}

// row is element b of the first axis.
func row(t tensor, b int) tensor {
	size := len(t.data) / int(t.dims[0])
	return tensor{true, t.dtype, t.dims[1:], t.data[b*size : (b+1)*size]}
}

func oneHot(c *call) error {
	a, index, y := attrs[op.OneHotAttrs](c), c.in[0], c.out[0]
	_, depth, inner := around(y.dims, wrap(a.Axis, y.rank()))
	on, off := op.NumberAs(a.Dtype, a.OnValue).Bytes(), op.NumberAs(a.Dtype, a.OffValue).Bytes()
	for i := range y.len() {
		copy(y.elem(i), off)
	}
	for i := range index.len() {
		v, err := index.index(i)
		if err != nil {
			return err
		}
		if v < 0 {
			v += a.Depth
		}
		if v >= 0 && v < a.Depth {
			copy(y.elem((i/inner*depth+int(v))*inner+i%inner), on)
		}
	}
	return nil
}
