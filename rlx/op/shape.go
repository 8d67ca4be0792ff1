package op

import "github.com/rlx-ml/rlx-go/rlx/ir"

// ReshapeAttrs are the attributes of Reshape.
type ReshapeAttrs struct {
	Shape     []ir.Dim
	AllowZero bool `default:"false"`
}

// TransposeAttrs are the attributes of Transpose; an empty Perm reverses the axes.
type TransposeAttrs struct {
	Perm []int64 `default:"nil"`
}

// NarrowAttrs are the attributes of Narrow.
type NarrowAttrs struct {
	Axis   int
	Start  int64
	Length int64 `min:"0" c:"C2"`
}

// SliceAttrs are the attributes of Slice. Empty Axes mean 0..n-1, empty Steps mean 1.
type SliceAttrs struct {
	Starts []ir.Dim
	Ends   []ir.Dim
	Axes   []int64 `default:"nil"`
	Steps  []int64 `default:"nil"`
}

// ConcatAttrs are the attributes of Concat.
type ConcatAttrs struct {
	Axis int
}

// ExpandAttrs are the attributes of Expand.
type ExpandAttrs struct {
	Shape []ir.Dim
}

// ReverseAttrs are the attributes of Reverse.
type ReverseAttrs struct {
	Axes []int64
}

// CopyAttrs are the attributes of Copy: none.
type CopyAttrs struct{}

var (
	reshape   = ir.Declare[ReshapeAttrs]("shape", "Reshape")
	transpose = ir.Declare[TransposeAttrs]("shape", "Transpose")
	narrowOp  = ir.Declare[NarrowAttrs]("shape", "Narrow")
	slice     = ir.Declare[SliceAttrs]("shape", "Slice")
	concat    = ir.Declare[ConcatAttrs]("shape", "Concat")
	expandOp  = ir.Declare[ExpandAttrs]("shape", "Expand")
	reverse   = ir.Declare[ReverseAttrs]("shape", "Reverse")
	copyOp    = ir.Declare[CopyAttrs]("shape", "Copy")
)

// Reshape is x's elements in row-major order under new dims, any dtype. One dim may be -1: it becomes the elements of x divided by
// the product of the others. A 0 is a length of zero.
//
// Errors: C1 a dim below -1, C2 two dims of -1, C3 another number of elements, C4 a -1 beside a product of 0. Source: ONNX Reshape 21
// with allowzero, torch.reshape.
func Reshape(x ir.Value, dims ...ir.Dim) ir.Value {
	return ReshapeWith(x, ReshapeAttrs{Shape: append([]ir.Dim{}, dims...), AllowZero: true})
}

// ReshapeInts is Reshape to dims given as integers.
func ReshapeInts(x ir.Value, dims ...int64) ir.Value { return Reshape(x, ir.Dims(dims...)...) }

// ReshapeWith is Reshape with all attributes: unless AllowZero is set, a 0 copies x's dim at the same place, and C5 is a 0 beyond the
// rank of x.
func ReshapeWith(x ir.Value, a ReshapeAttrs) ir.Value { return reshape.Apply1(a, x) }

// Transpose permutes the axes: axis k of y is axis perm[k] of x, any dtype. Without perm the axes are reversed.
//
// Errors: C1 perm is no permutation of x's axes. Source: ONNX Transpose 21, torch.permute.
func Transpose(x ir.Value, perm ...int) ir.Value {
	return transpose.Apply1(TransposeAttrs{int64s(perm)}, x)
}

// Narrow is the piece x[start : start+length] of one axis, any dtype. A negative start counts from the end; nothing is clamped.
//
// Errors: C1 start outside the axis, C2 length < 0, C3 the piece runs past the end, C9 axis outside the rank. Source: torch.narrow.
func Narrow(x ir.Value, axis int, start, length int64) ir.Value {
	return narrowOp.Apply1(NarrowAttrs{axis, start, length}, x)
}

// Slice is x[starts[k] : ends[k] : steps[k]] on axes[k], any dtype. Bounds count from the end if negative and are clamped, so an end
// of 2^63-1 means to the end, and -2^63 to the first element when the step is negative. Nil axes mean 0..n-1, nil steps mean 1.
//
// Errors: C1 step 0, C2 lists of different length, C9 axis outside the rank or named twice. Source: ONNX Slice 13.
func Slice(x ir.Value, starts, ends []ir.Dim, axes []int, steps []int64) ir.Value {
	return slice.Apply1(SliceAttrs{append([]ir.Dim{}, starts...), append([]ir.Dim{}, ends...), int64s(axes), steps}, x)
}

// Concat joins xs one after the other along axis, any dtype.
//
// Errors: C1 dtypes differ, C2 ranks differ or are 0, C3 dims differ off the axis, C9 axis outside the rank. Source: ONNX Concat 13.
func Concat(axis int, xs ...ir.Value) ir.Value { return concat.Apply1(ConcatAttrs{axis}, xs...) }

// Expand broadcasts x against dims, two-way, any dtype: 1 and -1 keep x's dim, and an x dim of 1 stretches.
//
// Errors: C1 a dim below -1, C2 aligned dims that are neither equal nor 1. Source: ONNX Expand 13, torch.Tensor.expand.
func Expand(x ir.Value, dims ...ir.Dim) ir.Value {
	return expandOp.Apply1(ExpandAttrs{append([]ir.Dim{}, dims...)}, x)
}

// Reverse flips the given axes, any dtype: y[i] = x[d-1-i]. Without axes it is x.
//
// Errors: C9 axis outside the rank or named twice. Source: torch.flip, stablehlo.reverse.
func Reverse(x ir.Value, axes ...int) ir.Value {
	return reverse.Apply1(ReverseAttrs{append([]int64{}, int64s(axes)...)}, x)
}

// Copy is x in memory of its own, contiguous. The planner emits it where a view must become memory.
func Copy(x ir.Value) ir.Value { return copyOp.Apply1(CopyAttrs{}, x) }

// Iota is the constant 0, 1, ... n-1 of an integer or float dtype in graph g.
func Iota(g *ir.Graph, n int64, dtype ir.DType) ir.Value {
	t, err := ir.Zeros(dtype, n)
	if err != nil {
		return g.Fail("Iota", err)
	}
	for i := range t.Len() {
		ir.PutInt(dtype, t.Bytes(), i, int64(i))
	}
	return g.Constant(t)
}

func init() {
	x := []ir.Operand{ir.In("x", ir.AnyDType)}
	reshape.Define(ir.Def[ReshapeAttrs]{
		Doc: "the same elements in row-major order under new dims", In: x, Bits: ir.View | ir.Exact, Infer: inferReshape,
	})
	transpose.Define(ir.Def[TransposeAttrs]{
		Doc: "axis k of y is axis perm[k] of x", In: x, Bits: ir.View | ir.Exact, Infer: inferTranspose,
	})
	narrowOp.Define(ir.Def[NarrowAttrs]{
		Doc: "y = x[start : start+length] along axis", In: x, Bits: ir.View | ir.Exact, Infer: inferNarrow,
		Decompose: func(n *ir.Node, a *NarrowAttrs) []ir.Value {
			first, d := a.Start, n.In[0].Dim(a.Axis)
			if len, ok := d.Static(); ok && first < 0 {
				first += len
			}
			return []ir.Value{Slice(n.In[0], ir.Dims(first), ir.Dims(first+a.Length), []int{a.Axis}, nil)}
		},
	})
	slice.Define(ir.Def[SliceAttrs]{
		Doc: "y = x[start : end : step] along each listed axis, bounds clamped", In: x, Bits: ir.View | ir.Exact, Infer: inferSlice,
	})
	concat.Define(ir.Def[ConcatAttrs]{
		Doc: "x1 .. xn one after the other along axis", In: []ir.Operand{ir.Many("x", ir.AnyDType)}, SameC: "C1", Bits: ir.Exact,
		Infer: inferConcat,
	})
	expandOp.Define(ir.Def[ExpandAttrs]{
		Doc: "x broadcast two-way against shape", In: x, Bits: ir.View | ir.Exact, Infer: inferExpand,
	})
	reverse.Define(ir.Def[ReverseAttrs]{
		Doc: "y = x with the listed axes flipped", In: x, Bits: ir.View | ir.Exact,
		Infer: func(t *ir.Infer, a *ReverseAttrs) {
			wrapAxes(t, "C9", a.Axes, len(t.Type(0).Shape))
			t.Out(t.Type(0))
		},
		Decompose: decomposeReverse,
	})
	copyOp.Define(ir.Def[CopyAttrs]{
		Doc: "y = x, contiguous; emitted by the planner where a view must become memory", In: x, Bits: ir.Elementwise | ir.Exact,
		Infer:  func(t *ir.Infer, _ *CopyAttrs) { t.Out(t.Type(0)) },
		NoGrad: "emitted by the planner, after autodiff",
	})
	registerView(reshape, reshapeView)
	registerView(transpose, transposeView)
	registerView(narrowOp, narrowView)
	registerView(slice, sliceView)
	registerView(expandOp, expandView)
	registerView(reverse, reverseView)
}

func decomposeReverse(n *ir.Node, a *ReverseAttrs) []ir.Value {
	if len(a.Axes) == 0 {
		return []ir.Value{n.In[0]}
	}
	var starts, ends []ir.Dim
	var steps []int64
	for range a.Axes {
		starts, ends, steps = append(starts, ir.D(maxInt64)), append(ends, ir.D(minInt64)), append(steps, -1)
	}
	return []ir.Value{slice.Apply1(SliceAttrs{starts, ends, a.Axes, steps}, n.In[0])}
}

// int64s converts a list of axes; nil stays nil.
func int64s(list []int) []int64 {
	if list == nil {
		return nil
	}
	out := make([]int64, len(list))
	for i, v := range list {
		out[i] = int64(v)
	}
	return out
}
