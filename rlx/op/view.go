package op

import "github.com/rlx-ml/rlx-go/rlx/ir"

// Strided is a tensor's layout: element i_0, i_1, ... is at Offset + sum i_k*Strides[k]. All three count elements; strides may be
// negative (Reverse) or 0 (Expand).
type Strided struct {
	Dims, Strides []int64
	Offset        int64
}

// viewFn lays the result, of dims out, over operand 0. ok is false where no strides express it.
type viewFn func(attrs any, in Strided, out []int64) (s Strided, ok bool)

var views = map[*ir.Row]viewFn{}

// registerView binds the strided form of a row with the View bit; the row's family calls it in init.
func registerView[A any](o *ir.Op[A], f func(a *A, in Strided, out []int64) (Strided, bool)) {
	views[o.Row()] = func(attrs any, in Strided, out []int64) (Strided, bool) { return f(attrs.(*A), in, out) }
}

// identityView is the strided form of rows whose result is the operand.
func identityView[A any](_ *A, in Strided, _ []int64) (Strided, bool) { return in, true }

// ViewOf returns dims, strides and offset under which the result of n lies in the memory of its operand 0, whose layout is given;
// all count elements. ok is false where strides cannot express the result: rows without a strided form, and a Reshape whose operand
// must be made contiguous first. The node's shapes are static.
func ViewOf(n *ir.Node, dims, strides []int64, offset int64) (outDims, outStrides []int64, outOffset int64, ok bool) {
	out, ok := ir.StaticShape(n.Types[0].Shape)
	if !ok {
		return nil, nil, 0, false
	}
	s, ok := ViewLayout(n.Row, n.Attrs, Strided{dims, strides, offset}, out)
	return s.Dims, s.Strides, s.Offset, ok
}

// ViewLayout is ViewOf without a node: the layout of row's result, of dims out, over an operand of layout in.
func ViewLayout(row *ir.Row, attrs any, in Strided, out []int64) (Strided, bool) {
	f := views[row]
	if f == nil {
		return Strided{}, false
	}
	s, ok := f(attrs, in, out)
	s.Dims = out
	return s, ok
}

// rowMajor are the strides of contiguous dims.
func rowMajor(dims []int64) []int64 {
	s := make([]int64, len(dims))
	n := int64(1)
	for i := len(dims) - 1; i >= 0; i-- {
		s[i] = n
		n *= max(dims[i], 1)
	}
	return s
}

// reshapeView regroups the axes: a run of old axes and a run of new axes with the same product share memory if the old run is one
// arithmetic progression, that is stride[k] = dim[k+1]*stride[k+1] within it.
func reshapeView(_ *ReshapeAttrs, in Strided, out []int64) (Strided, bool) {
	strides := rowMajor(out)
	for _, d := range out {
		if d == 0 {
			return Strided{Strides: strides, Offset: in.Offset}, true
		}
	}
	var dims, old []int64 // without axes of length 1, whose strides say nothing
	for i, d := range in.Dims {
		if d != 1 {
			dims, old = append(dims, d), append(old, in.Strides[i])
		}
	}
	for i, j := 0, 0; i < len(dims); {
		i0, j0 := i, j
		have, want := dims[i], out[j]
		for i, j = i+1, j+1; have != want; {
			if have < want {
				have *= dims[i]
				i++
			} else {
				want *= out[j]
				j++
			}
		}
		for k := i0; k+1 < i; k++ {
			if old[k] != dims[k+1]*old[k+1] {
				return Strided{}, false
			}
		}
		step := old[i-1]
		for k := j - 1; k >= j0; k-- {
			strides[k] = step
			step *= out[k]
		}
	}
	return Strided{Strides: strides, Offset: in.Offset}, true
}

func transposeView(a *TransposeAttrs, in Strided, out []int64) (Strided, bool) {
	perm, ok := permutation(a.Perm, len(in.Dims))
	strides := make([]int64, len(perm))
	for k, p := range perm {
		strides[k] = in.Strides[p]
	}
	return Strided{Strides: strides, Offset: in.Offset}, ok
}

func narrowView(a *NarrowAttrs, in Strided, out []int64) (Strided, bool) {
	k, ok := wrap(a.Axis, len(in.Dims))
	if !ok {
		return Strided{}, false
	}
	start := a.Start
	if start < 0 {
		start += in.Dims[k]
	}
	s := Strided{Strides: in.Strides, Offset: in.Offset}
	if a.Length > 0 { // an empty piece may start behind the memory
		s.Offset += start * in.Strides[k]
	}
	return s, true
}

func sliceView(a *SliceAttrs, in Strided, out []int64) (Strided, bool) {
	s := Strided{Strides: append([]int64{}, in.Strides...), Offset: in.Offset}
	for i := range a.Starts {
		k, ok := wrap(a.axis(i), len(in.Dims))
		start, okStart := a.Starts[i].Static()
		end, okEnd := a.Ends[i].Static()
		if !ok || !okStart || !okEnd {
			return Strided{}, false
		}
		first, n := sliceRange(in.Dims[k], start, end, a.step(i))
		if n > 0 {
			s.Offset += first * in.Strides[k]
		}
		if n > 1 { // one element needs no stride, and a step may be too large for one
			s.Strides[k] *= a.step(i)
		}
	}
	return s, true
}

func expandView(_ *ExpandAttrs, in Strided, out []int64) (Strided, bool) {
	strides := make([]int64, len(out))
	lead := len(out) - len(in.Dims)
	for k := range in.Dims {
		if in.Dims[k] == out[lead+k] {
			strides[lead+k] = in.Strides[k]
		}
	}
	return Strided{Strides: strides, Offset: in.Offset}, true
}

func reverseView(a *ReverseAttrs, in Strided, out []int64) (Strided, bool) {
	s := Strided{Strides: append([]int64{}, in.Strides...), Offset: in.Offset}
	for _, axis := range a.Axes {
		k, ok := wrap(int(axis), len(in.Dims))
		if !ok {
			return Strided{}, false
		}
		if in.Dims[k] > 0 {
			s.Offset += (in.Dims[k] - 1) * in.Strides[k]
		}
		s.Strides[k] = -s.Strides[k]
	}
	return s, true
}
