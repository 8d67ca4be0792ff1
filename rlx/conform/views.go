package conform

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// via is how an operand reaches its node: as it is, as a constant, out of the arena, or as a view of another tensor, which base makes.
type via struct {
	kind viaKind
	perm []int // transposed: the view's axis k is the base's axis perm[k]
	axis int   // expanded: the stretched axis
	junk *random
}

type viaKind int

const (
	viaInput      viaKind = iota
	viaConstant           // a constant of the graph: prepacked where the backend packs
	viaArena              // copied, so that the node may take over its memory
	viaTransposed         // strides out of order
	viaSliced             // a step of 2 and an offset
	viaReversed           // negative strides
	viaExpanded           // a stride of 0
)

func (v via) String() string {
	return [...]string{"", " constant", " copied", " transposed", " sliced", " reversed", " expanded"}[v.kind]
}

// strided draws a view that gives a tensor of x's shape.
func (r *random) strided(x *ir.Tensor, fixed bool) via {
	kinds := []viaKind{viaSliced, viaReversed}
	if x.Rank() == 0 {
		return via{}
	}
	if x.Rank() >= 2 {
		kinds = append(kinds, viaTransposed)
	}
	v := via{junk: r}
	for k, d := range x.Shape() {
		if d > 1 && !fixed && (r.chance(2) || v.axis == 0) {
			v.axis = k
			kinds = append(kinds, viaExpanded)
		}
	}
	v.kind = kinds[r.IntN(len(kinds))]
	for k := range x.Rank() {
		v.perm = append(v.perm, k)
	}
	r.Shuffle(len(v.perm), func(i, j int) { v.perm[i], v.perm[j] = v.perm[j], v.perm[i] })
	if slices.IsSorted(v.perm) {
		slices.Reverse(v.perm)
	}
	return v
}

// constant along the expanded axis: the values that such a view can have.
func (v via) settle(x *ir.Tensor) *ir.Tensor {
	if v.kind != viaExpanded {
		return x
	}
	return remap(x, x.Shape(), func(i []int64) { i[v.axis] = 0 })
}

// base is the tensor of which view gives x.
func (v via) base(x *ir.Tensor) *ir.Tensor {
	switch v.kind {
	case viaTransposed:
		dims := make([]int64, x.Rank())
		for k, p := range v.perm {
			dims[p] = x.Shape()[k]
		}
		return remap(x, dims, func(i []int64) {
			old := slices.Clone(i)
			for k, p := range v.perm {
				i[k] = old[p]
			}
		})
	case viaSliced:
		dims := slices.Clone(x.Shape())
		for k := range dims {
			dims[k] = 1 + v.step(k, x.Rank())*dims[k]
		}
		b := v.junk.plain(x.DType(), dims)
		each(x.Shape(), func(n int, i []int64) {
			at := slices.Clone(i)
			for k := range at {
				at[k] = 1 + v.step(k, x.Rank())*at[k]
			}
			copyElement(b, offset(dims, at), x, n)
		})
		return b
	case viaReversed:
		return remap(x, x.Shape(), func(i []int64) {
			for k := range i {
				i[k] = x.Shape()[k] - 1 - i[k]
			}
		})
	case viaExpanded:
		dims := slices.Clone(x.Shape())
		dims[v.axis] = 1
		return remap(x, dims, func([]int64) {})
	}
	return x
}

// step is the step of a slice: 2 on the last axis.
func (v via) step(k, rank int) int64 {
	if k == rank-1 {
		return 2
	}
	return 1
}

// view gives x, of the given shape, back from its base.
func (v via) view(b ir.Value, shape []int64) ir.Value {
	switch v.kind {
	case viaArena:
		return op.Copy(b)
	case viaTransposed:
		return op.Transpose(b, v.perm...)
	case viaSliced:
		var starts, ends []ir.Dim
		var steps []int64
		for k := range b.Rank() {
			starts, ends, steps = append(starts, ir.D(1)), append(ends, ir.D(math.MaxInt64)), append(steps, v.step(k, b.Rank()))
		}
		return op.Slice(b, starts, ends, nil, steps)
	case viaReversed:
		axes := make([]int, b.Rank())
		for k := range axes {
			axes[k] = k
		}
		return op.Reverse(b, axes...)
	case viaExpanded:
		return op.Expand(b, ir.Dims(shape...)...)
	}
	return b
}

// remap makes a tensor of dims whose element i is x's at the index that f makes of i.
func remap(x *ir.Tensor, dims []int64, f func(i []int64)) *ir.Tensor {
	y := zeros(x.DType(), dims)
	each(dims, func(n int, i []int64) {
		at := slices.Clone(i)
		f(at)
		copyElement(y, n, x, offset(x.Shape(), at))
	})
	return y
}

// each calls f for every index of dims in row-major order.
func each(dims []int64, f func(n int, i []int64)) {
	total := 1
	for _, d := range dims {
		total *= int(d)
	}
	i := make([]int64, len(dims))
	for n := range total {
		f(n, i)
		for k := len(i) - 1; k >= 0; k-- {
			if i[k]++; i[k] < dims[k] {
				break
			}
			i[k] = 0
		}
	}
}

func offset(dims, i []int64) int {
	n := int64(0)
	for k, d := range dims {
		n = n*d + i[k]
	}
	return int(n)
}

func copyElement(to *ir.Tensor, i int, from *ir.Tensor, j int) {
	s := to.DType().Size()
	copy(to.Bytes()[i*s:(i+1)*s], from.Bytes()[j*s:])
}
