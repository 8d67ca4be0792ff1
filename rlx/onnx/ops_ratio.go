package onnx

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// ratio is a small float tensor whose elements are quotients of dims: what exporters compute sizes and scales by.
type ratio struct{ num, den *dimTensor }

// maxFraction is the greatest denominator of a constant that is read as a fraction: products with it are exact in f32.
const maxFraction = 64

// ratio is input i as quotients, nil if it is none. Dims and small constants are some too.
func (n *node) ratio(i int) *ratio {
	if !n.has(i) || !ir.Float.Has(n.typ(i).DType) {
		return nil
	}
	v := n.in[i]
	switch {
	case v.ratio != nil:
		return v.ratio
	case v.dims != nil:
		return &ratio{v.dims, constantLike(v.dims, 1)}
	case v.konst != nil && v.konst.Len() <= maxTracked:
		return fractions(v.konst)
	}
	return nil
}

func constantLike(t *dimTensor, v int64) *dimTensor {
	out := &dimTensor{t.dtype, t.shape, make([]ir.Dim, len(t.elem))}
	for i := range out.elem {
		out.elem[i] = ir.D(v)
	}
	return out
}

// fractions reads a constant whose elements have powers of two for denominators.
func fractions(t *ir.Tensor) *ratio {
	num := &dimTensor{t.DType(), t.Shape(), nil}
	den := &dimTensor{t.DType(), t.Shape(), nil}
	for i := range t.Len() {
		f, d := t.Float(i), int64(1)
		for ; d < maxFraction && f*float64(d) != math.Trunc(f*float64(d)); d *= 2 {
		}
		if f *= float64(d); f != math.Trunc(f) || math.Abs(f) > 1<<20 {
			return nil
		}
		num.elem, den.elem = append(num.elem, ir.D(int64(f))), append(den.elem, ir.D(d))
	}
	return &ratio{num, den}
}

// binary says that every denominator is a known power of two, small enough for products to be exact.
func (r *ratio) binary() bool {
	for _, d := range r.den.elem {
		if v, ok := d.Static(); !ok || v < 1 || v > maxFraction || v&(v-1) != 0 {
			return false
		}
	}
	return true
}

// follow gives output 0 as quotients, nil if it is none: of products, quotients, and what moves elements.
func (n *node) follow() *ratio {
	if n.row == nil || n.row.domain != "" || len(n.in) == 0 || !ir.Float.Has(n.typ(0).DType) {
		return nil
	}
	switch n.p.OpType {
	case "Mul", "Div":
		a, b := n.ratio(0), n.ratio(1)
		if a == nil || b == nil || !a.binary() || !b.binary() {
			return nil
		}
		if n.p.OpType == "Div" {
			b = &ratio{b.den, b.num}
		}
		num, den := mapDims(a.num.dtype, n.within(mulDims), a.num, b.num), mapDims(a.num.dtype, n.within(mulDims), a.den, b.den)
		return newRatio(num, den)
	case "Concat", "Slice", "Gather", "Squeeze", "Unsqueeze", "Reshape":
		num, den := *n, *n
		num.in, den.in = make([]*value, len(n.in)), make([]*value, len(n.in))
		for i, v := range n.in {
			num.in[i], den.in[i] = v, v
			if v == nil || !ir.Float.Has(v.typ.DType) {
				continue
			}
			r := n.ratio(i)
			if r == nil {
				return nil
			}
			num.in[i], den.in[i] = &value{typ: v.typ, dims: r.num}, &value{typ: v.typ, dims: r.den}
		}
		a, b := n.row.track(&num), n.row.track(&den)
		if len(a) == 1 && len(b) == 1 {
			return newRatio(a[0], b[0])
		}
	}
	return nil
}

func newRatio(num, den *dimTensor) *ratio {
	if num == nil || den == nil || !num.sound() || !den.sound() || len(num.elem) != len(den.elem) {
		return nil
	}
	return &ratio{num, den}
}

// trackRounded follows a rounding of whole numbers, and of quotients by div, which must be certain: of lengths by known numbers.
func trackRounded(div func(a, b ir.Dim) ir.Dim) func(n *node) []*dimTensor {
	return func(n *node) []*dimTensor {
		if t := n.dims(0); t != nil {
			return []*dimTensor{t}
		}
		return []*dimTensor{n.quotients(n.typ(0).DType, div)}
	}
}

func (n *node) quotients(d ir.DType, div func(a, b ir.Dim) ir.Dim) *dimTensor {
	r := n.ratio(0)
	if r == nil {
		return nil
	}
	return mapDims(d, func(e []ir.Dim) (ir.Dim, bool) {
		v, ok := e[1].Static()
		return div(e[0], e[1]), ok && v > 0 && v <= 1<<10 && n.im.lengths.atLeastZero(e[0])
	}, r.num, r.den)
}

// scales are the scales of a Resize in input i, or the sizes that they lead to where they are quotients with the lengths of x.
func (n *node) scales(i int, x ir.Value, axes []int64) (scales []float64, sizes []ir.Dim) {
	if r := n.ratio(i); r != nil && n.known(i) == nil {
		for k, den := range r.den.elem {
			axis := k
			if axes != nil && k < len(axes) {
				axis = n.wrap(axes[k], x.Rank(), "axis")
			}
			switch {
			case axis >= x.Rank():
				n.fail("%d scales for rank %d", len(r.den.elem), x.Rank())
				return nil, nil
			case den == x.Dim(axis):
				sizes = append(sizes, r.num.elem[k])
			case den.Is(1):
				sizes = append(sizes, x.Dim(axis).Mul(r.num.elem[k]))
			default:
				return n.floatsOf(i, "scales"), nil // refused
			}
		}
		return nil, sizes
	}
	return n.floatsOf(i, "scales"), nil
}
