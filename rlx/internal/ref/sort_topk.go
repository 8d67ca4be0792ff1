package ref

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("TopK", topK)
	on("Sort", func(c *call) error { return sortLines(c, &c.out[0], &c.out[1]) })
	on("ArgSort", func(c *call) error { return sortLines(c, nil, &c.out[0]) })
}

// sortLines is op.Sort, and op.ArgSort where values is nil.
func sortLines(c *call, values, index *tensor) error {
	a, x := attrs[op.SortAttrs](c), c.in[0]
	outer, n, inner := around(x.dims, wrap(a.Axis, x.rank()))
	for o := range outer {
		for i := range inner {
			place := func(j int) int { return (o*n+j)*inner + i }
			for r, from := range sorted(x, n, place, a.Descending) {
				if values != nil {
					copy(values.elem(place(r)), x.elem(place(from)))
				}
				index.setInt(place(r), int64(from))
			}
		}
	}
	return nil
}

// topK: see op.TopK.
func topK(c *call) error {
	a, x := attrs[op.TopKAttrs](c), c.in[0]
	axis := wrap(a.Axis, x.rank())
	outer, n, inner := around(x.dims, axis)
	k := int(a.K)
	for o := range outer {
		for i := range inner {
			for r, at := range sorted(x, n, func(j int) int { return (o*n+j)*inner + i }, a.Largest)[:k] {
				to := (o*k+r)*inner + i
				copy(c.out[0].elem(to), x.elem((o*n+at)*inner+i))
				c.out[1].setInt(to, int64(at))
			}
		}
	}
	return nil
}

// sorted lists the places 0..n-1 of a line of x in stable order; at gives the index of a place. NaN is above +inf, -0 equals +0.
func sorted(x tensor, n int, at func(int) int, descending bool) []int {
	line := tensor{present: true, dtype: x.dtype, dims: []int64{int64(n)}}
	for j := range n {
		line.data = append(line.data, x.elem(at(j))...)
	}
	compare := line.order()
	places := make([]int, n)
	for j := range places {
		places[j] = j
	}
	slices.SortStableFunc(places, func(p, q int) int {
		if descending {
			return compare(q, p)
		}
		return compare(p, q)
	})
	return places
}
