package ref

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("MatMul", matMul)
	on("DotGeneral", dotGeneral)
}

// matMul: see op.MatMul.
func matMul(c *call) error {
	a, b := c.in[0], c.in[1]
	m, n := 1, 1
	k := int(a.dims[a.rank()-1])
	var batchA, batchB []int64
	if a.rank() > 1 {
		m, batchA = int(a.dims[a.rank()-2]), a.dims[:a.rank()-2]
	}
	if b.rank() > 1 {
		n, batchB = int(b.dims[b.rank()-1]), b.dims[:b.rank()-2]
	}
	drop := 0
	for _, t := range []tensor{a, b} {
		if t.rank() > 1 {
			drop++
		}
	}
	batch := c.out[0].dims[:c.out[0].rank()-drop]
	fromA, fromB := tensor{dims: batchA}.broadcast(batch), tensor{dims: batchB}.broadcast(batch)
	if a.isFloat() {
		return multiply(c, a.floats(), b.floats(), product(batch), m, k, n, fromA, fromB, c.out[0].set)
	}
	return multiply(c, a.ints(), b.ints(), product(batch), m, k, n, fromA, fromB, c.out[0].setInt)
}

// dotGeneral: see op.DotGeneral.
func dotGeneral(c *call) error {
	at, l, r := attrs[op.DotGeneralAttrs](c), c.in[0], c.in[1]
	lb, lc, lf := splitAxes(at.LhsBatch, at.LhsContracting, l.rank())
	rb, rc, rf := splitAxes(at.RhsBatch, at.RhsContracting, r.rank())
	from := permuted(l.dims, slices.Concat(lb, lf, lc))
	to := permuted(r.dims, slices.Concat(rb, rc, rf))
	batch, m, k, n := size(l.dims, lb), size(l.dims, lf), size(l.dims, lc), size(r.dims, rf)
	same := func(i int) int { return i }
	if l.isFloat() {
		return multiply(c, take(l.floats(), from), take(r.floats(), to), batch, m, k, n, same, same, c.out[0].set)
	}
	return multiply(c, take(l.ints(), from), take(r.ints(), to), batch, m, k, n, same, same, c.out[0].setInt)
}

// multiply puts the m x n products of batches of m x k and k x n matrices. fromA and fromB say which matrix a batch reads. No term
// is skipped, so that 0 * inf is NaN.
func multiply[T int64 | float64](c *call, a, b []T, batch, m, k, n int, fromA, fromB func(int) int, put func(int, T)) error {
	row := make([]T, n)
	for at := range batch * m {
		if at%64 == 0 && c.stopped() {
			return errCancelled
		}
		clear(row)
		i := at / m
		x, y := a[(fromA(i)*m+at%m)*k:][:k], b[fromB(i)*k*n:][:k*n]
		for j, v := range x {
			for l, w := range y[j*n : (j+1)*n] {
				row[l] += v * w
			}
		}
		for l, v := range row {
			put(at*n+l, v)
		}
	}
	return nil
}

// ints is all elements as int64; unsigned ones as their bits.
func (t tensor) ints() []int64 {
	v := make([]int64, t.len())
	for i := range v {
		v[i] = t.int(i)
	}
	return v
}

// splitAxes wraps the batch and contracted axes of one side and lists the others.
func splitAxes(batch, contracted []int, rank int) (b, c, free []int) {
	taken := make([]bool, rank)
	for _, l := range []struct {
		from []int
		to   *[]int
	}{{batch, &b}, {contracted, &c}} {
		for _, axis := range l.from {
			*l.to = append(*l.to, wrap(axis, rank))
			taken[wrap(axis, rank)] = true
		}
	}
	for i, t := range taken {
		if !t {
			free = append(free, i)
		}
	}
	return b, c, free
}

func size(dims []int64, axes []int) int {
	n := 1
	for _, a := range axes {
		n *= int(dims[a])
	}
	return n
}

// permuted lists, for each element of the transposed tensor, the index of the element of a tensor of dims.
func permuted(dims []int64, perm []int) []int {
	at, st := []int{0}, strides(dims)
	for _, p := range perm {
		next := make([]int, 0, len(at)*int(dims[p]))
		for _, i := range at {
			for k := range int(dims[p]) {
				next = append(next, i+k*st[p])
			}
		}
		at = next
	}
	return at
}

func take[T any](v []T, from []int) []T {
	out := make([]T, len(from))
	for i, f := range from {
		out[i] = v[f]
	}
	return out
}
