package batch

import (
	"fmt"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// shape is a port's shape in a batch of so many rows: x's, with rows and padded length in place of its own.
func (s *signature) shape(p *port, x []int64, r *request, rows int64) []int64 {
	out := slices.Clone(x)
	if p.rows >= 0 {
		out[p.rows] = rows
	}
	for _, axis := range p.padded {
		out[axis] = s.bucket(r.values[s.pad])
	}
	return out
}

// gather puts the rows of requests behind one another. Rows from theirs to size are copies of the last one.
func (s *signature) gather(requests []*request, size int64) (rlx.Feed, error) {
	feed := make(rlx.Feed, len(s.inputs))
	for i := range s.inputs {
		p := &s.inputs[i]
		first := requests[0].feed[p.Name]
		shape := s.shape(p, first.Shape(), requests[0], size)
		y, err := ir.Zeros(p.Type.DType, shape...)
		if err != nil {
			return nil, err
		}
		feed[p.Name] = y
		if p.rows < 0 {
			copy(y.Bytes(), first.Bytes())
			continue
		}
		if p.padding != nil && slices.ContainsFunc(requests, func(r *request) bool { return r.values[s.pad] != s.bucket(r.values[s.pad]) }) {
			fill(y.Bytes(), p.padding)
		}
		at := make([]int64, len(shape))
		for _, r := range requests {
			x := r.feed[p.Name]
			box{to: y, toAt: at, from: x, fromAt: make([]int64, len(shape)), size: x.Shape()}.copy()
			at[p.rows] += x.Shape()[p.rows]
		}
		p.repeat(y, at[p.rows])
	}
	return feed, nil
}

// repeat copies row n-1 of y to the rows from n on.
func (p *port) repeat(y *rlx.Tensor, n int64) {
	if n == 0 {
		return
	}
	row := slices.Clone(y.Shape())
	row[p.rows] = 1
	from, to := make([]int64, len(row)), make([]int64, len(row))
	from[p.rows] = n - 1
	for to[p.rows] = n; to[p.rows] < y.Shape()[p.rows]; to[p.rows]++ {
		box{to: y, toAt: to, from: y, fromAt: from, size: row}.copy()
	}
}

// fill repeats an element over b.
func fill(b, element []byte) {
	for n := copy(b, element); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// check says whether the outputs of a batch are what the signature promises.
func (s *signature) check(out rlx.Feed, r *request, size int64) error {
	for i := range s.outputs {
		p := &s.outputs[i]
		y := out[p.Name]
		if y.Err() != nil {
			return &OutputError{p.Name, p.Type.String(), y.Err().Error()}
		}
		if y.DType() != p.Type.DType || y.Rank() != len(p.Type.Shape) {
			return &OutputError{p.Name, p.Type.String(), typeOf(y)}
		}
		if want := s.shape(p, y.Shape(), r, size); !slices.Equal(want, y.Shape()) {
			return &OutputError{p.Name, fmt.Sprintf("%s%v", p.Type.DType, want), typeOf(y)}
		}
	}
	return nil
}

// cut is the part of a batch's outputs that belongs to a request whose rows begin at start, in memory of its own.
func (s *signature) cut(out rlx.Feed, r *request, start int64) (rlx.Feed, error) {
	part := make(rlx.Feed, len(s.outputs))
	for i := range s.outputs {
		p := &s.outputs[i]
		y := out[p.Name]
		shape, at := slices.Clone(y.Shape()), make([]int64, y.Rank())
		shape[p.rows], at[p.rows] = r.rows, start
		for _, axis := range p.padded {
			shape[axis] = r.values[s.pad]
		}
		if slices.Equal(shape, y.Shape()) { // the request was alone
			part[p.Name] = y
			continue
		}
		x, err := ir.Zeros(y.DType(), shape...)
		if err != nil {
			return nil, err
		}
		box{to: x, toAt: make([]int64, y.Rank()), from: y, fromAt: at, size: shape}.copy()
		part[p.Name] = x
	}
	return part, nil
}

// box is a block of equal size in two tensors of one dtype and rank.
type box struct {
	to, from     *rlx.Tensor
	toAt, fromAt []int64 // first index in each
	size         []int64
}

// copy copies the block, in as long pieces as both tensors have in one.
func (b box) copy() {
	if slices.Contains(b.size, 0) {
		return
	}
	elem := int64(b.to.DType().Size())
	inner, piece := len(b.size), elem // axes from inner on are one piece
	for inner > 0 {
		inner--
		piece *= b.size[inner]
		if b.size[inner] != b.to.Shape()[inner] || b.size[inner] != b.from.Shape()[inner] {
			break
		}
	}
	index := make([]int64, inner)
	for {
		to, from := elem*b.offset(b.to, b.toAt, index), elem*b.offset(b.from, b.fromAt, index)
		copy(b.to.Bytes()[to:to+piece], b.from.Bytes()[from:from+piece])
		k := inner - 1
		for ; k >= 0; k-- {
			if index[k]++; index[k] < b.size[k] {
				break
			}
			index[k] = 0
		}
		if k < 0 {
			return
		}
	}
}

// offset is the element of t that is index steps behind at, along the leading axes.
func (b box) offset(t *rlx.Tensor, at, index []int64) int64 {
	n := int64(0)
	for i, d := range t.Shape() {
		n = n*d + at[i]
		if i < len(index) {
			n += index[i]
		}
	}
	return n
}
