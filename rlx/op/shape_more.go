package op

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// TriluAttrs are the attributes of Trilu.
type TriluAttrs struct {
	Lower    bool  `default:"false"`
	Diagonal int64 `default:"0"`
}

// DynamicUpdateSliceAttrs are the attributes of DynamicUpdateSlice.
type DynamicUpdateSliceAttrs struct {
	Axis int
}

// ResizeNearest2xAttrs are the attributes of ResizeNearest2x: none.
type ResizeNearest2xAttrs struct{}

// Interpolate3dAttrs are the attributes of Interpolate3d.
type Interpolate3dAttrs struct {
	Sizes []int64 `min:"0" c:"C2"`
}

var (
	trilu              = ir.Declare[TriluAttrs]("shape", "Trilu")
	dynamicUpdateSlice = ir.Declare[DynamicUpdateSliceAttrs]("shape", "DynamicUpdateSlice")
	resizeNearest2x    = ir.Declare[ResizeNearest2xAttrs]("shape", "ResizeNearest2x")
	interpolate3d      = ir.Declare[Interpolate3dAttrs]("shape", "Interpolate3d")
)

// Trilu keeps a triangle of the last two axes and makes the rest 0: the elements with j-i >= diagonal, or j-i <= diagonal if lower.
// It selects: NaN and inf outside the triangle become 0.
//
// Shapes: y as x, rank 2 or more; numeric or bool. Errors: C1 rank below 2. Source: ONNX Trilu 14, torch.triu.
func Trilu(x ir.Value, lower bool, diagonal int64) ir.Value {
	return trilu.Apply1(TriluAttrs{lower, diagonal}, x)
}

// DynamicUpdateSlice is x with block u written from index start on along axis. start is read at the run and clamped to [0, d - len u].
//
// Shapes: u as x but for axis, start one element of an integer dtype (or an integer as f32), y as x; any dtype. Errors: C1 rank or
// dtype differ, C2 dims differ off the axis, C3 u is longer than x, C4 start is not one element, C9 axis outside the rank. Source:
// stablehlo.dynamic_update_slice.
func DynamicUpdateSlice(x, u, start ir.Value, axis int) ir.Value {
	return dynamicUpdateSlice.Apply1(DynamicUpdateSliceAttrs{axis}, x, u, start)
}

// ResizeNearest2x doubles H and W: y[n,c,i,j] = x[n,c,i/2,j/2], any dtype.
//
// Shapes: x [N,C,H,W], y [N,C,2H,2W]. Errors: C1 rank is not 4. Source: torch.nn.Upsample(scale_factor=2).
func ResizeNearest2x(x ir.Value) ir.Value { return resizeNearest2x.Apply1(ResizeNearest2xAttrs{}, x) }

// Interpolate3d is the nearest resize of a volume: y[n,c,i,j,k] = x[n,c,i*D/D',j*H/H',k*W/W'] in integers, any dtype.
//
// Shapes: x [N,C,D,H,W], y [N,C,D',H',W'] with sizes D', H', W'. Errors: C1 rank is not 5, C2 sizes are not three lengths, C3 an
// empty axis cannot grow. Source: torch.nn.functional.interpolate(mode="nearest").
func Interpolate3d(x ir.Value, sizes ...int64) ir.Value {
	return interpolate3d.Apply1(Interpolate3dAttrs{append([]int64{}, sizes...)}, x)
}

func init() {
	x := ir.In("x", ir.AnyDType)
	trilu.Define(ir.Def[TriluAttrs]{
		Doc: "keeps x[.., i, j] with j-i >= diagonal (lower: <=), else 0", In: []ir.Operand{ir.In("x", ir.Numeric|ir.Set(ir.Bool))},
		Bits: ir.Exact,
		Infer: func(t *ir.Infer, a *TriluAttrs) {
			t.Need(len(t.Type(0).Shape) >= 2, "C1", "x has rank %d, expected at least 2", len(t.Type(0).Shape))
			t.Out(t.Type(0))
		},
		Decompose: decomposeTrilu,
	})
	dynamicUpdateSlice.Define(ir.Def[DynamicUpdateSliceAttrs]{
		Doc: "x with block u written at a run-time start along axis, clamped",
		In:  []ir.Operand{x, ir.In("u", ir.AnyDType), ir.In("start", ir.IndexT)}, Bits: ir.InPlace | ir.Exact,
		DTypeC: "C8", SameC: "C1", Infer: inferDynamicUpdateSlice, Decompose: decomposeDynamicUpdateSlice,
	})
	resizeNearest2x.Define(ir.Def[ResizeNearest2xAttrs]{
		Doc: "y[n,c,i,j] = x[n,c,i/2,j/2]", In: []ir.Operand{x}, Bits: ir.Exact,
		Infer: func(t *ir.Infer, _ *ResizeNearest2xAttrs) {
			s := t.Type(0).Shape
			if t.Need(len(s) == 4, "C1", "x has rank %d, expected 4", len(s)) {
				t.Out(ir.Type{DType: t.Type(0).DType, Shape: []ir.Dim{s[0], s[1], s[2].Mul(ir.D(2)), s[3].Mul(ir.D(2))}})
			}
		},
		Decompose: func(n *ir.Node, _ *ResizeNearest2xAttrs) []ir.Value {
			s, one, two := n.In[0].Shape(), ir.D(1), ir.D(2)
			rows := ir.Count(s[:3])
			y := Expand(Reshape(n.In[0], rows, one, s[3], one), rows, two, s[3], two)
			return []ir.Value{Reshape(y, n.Types[0].Shape...)}
		},
	})
	interpolate3d.Define(ir.Def[Interpolate3dAttrs]{
		Doc: "y[n,c,i,j,k] = x[n,c,i*D/D',j*H/H',k*W/W'], integer division", In: []ir.Operand{x}, Bits: ir.Exact,
		Infer: inferInterpolate3d, Decompose: decomposeInterpolate3d,
	})
}

func decomposeTrilu(n *ir.Node, a *TriluAttrs) []ir.Value {
	x := n.In[0]
	rows, _ := x.Dim(-2).Static()
	cols, _ := x.Dim(-1).Static()
	if c, _ := ir.Count(x.Shape()).Static(); c == 0 {
		return []ir.Value{x}
	}
	mask, err := ir.Zeros(ir.Bool, rows, cols)
	if err != nil {
		return nil
	}
	for i := range rows {
		for j := range cols {
			if a.Keeps(i, j) {
				mask.Bytes()[i*cols+j] = 1
			}
		}
	}
	zero := NumberAs(x.DType(), ir.IntNumber(0))
	return []ir.Value{Where(x.Graph().Constant(mask), x, x.Graph().Constant(zero))}
}

// Keeps says whether row i, column j is in the triangle.
func (a *TriluAttrs) Keeps(i, j int64) bool {
	if a.Lower {
		return j-i <= a.Diagonal
	}
	return j-i >= a.Diagonal
}

func inferDynamicUpdateSlice(t *ir.Infer, a *DynamicUpdateSliceAttrs) {
	x, u, start := t.Type(0), t.Type(1).Shape, t.Type(2).Shape
	k, ok := axisOf(t, a.Axis, len(x.Shape))
	if !ok || !t.Need(len(u) == len(x.Shape), "C1", "u has rank %d, expected %d as x", len(u), len(x.Shape)) {
		return
	}
	fit := withDim(x.Shape, k, u[k])
	t.Need(same(u, fit), "C2", "u has shape %v, expected %v", u, fit)
	n, okN := u[k].Static()
	d, okD := x.Shape[k].Static()
	t.Need(!okN || !okD || n <= d, "C3", "u has length %d on axis %d, expected at most %d", n, a.Axis, d)
	t.Need(!ir.Count(start).Differs(ir.D(1)), "C4", "start has shape %v, expected one element", start)
	t.Out(x)
}

func decomposeDynamicUpdateSlice(n *ir.Node, a *DynamicUpdateSliceAttrs) []ir.Value {
	x, u, start := n.In[0], n.In[1], n.In[2]
	if !computable(start.DType()) {
		return nil
	}
	k, _ := wrap(a.Axis, x.Rank())
	d, _ := x.Dim(k).Static()
	count, _ := u.Dim(k).Static()
	s := Min(Max(Cast(ReshapeInts(start), ir.I64), 0), d-count)
	index := Add(along(Iota(x.Graph(), count, ir.I64), k, x.Rank()), s)
	return []ir.Value{ScatterElements(x, Expand(index, u.Shape()...), u, k, ScatterNone)}
}

func inferInterpolate3d(t *ir.Infer, a *Interpolate3dAttrs) {
	s := t.Type(0).Shape
	if !t.Need(len(s) == 5, "C1", "x has rank %d, expected 5", len(s)) ||
		!t.Need(len(a.Sizes) == 3, "C2", "sizes has %d entries, expected 3", len(a.Sizes)) {
		return
	}
	for i, m := range a.Sizes {
		t.Need(!s[2+i].Is(0) || m == 0, "C3", "length %d for axis %d, expected 0: it is empty", m, 2+i)
	}
	t.Out(ir.Type{DType: t.Type(0).DType, Shape: joined(s[:2], ir.Dims(a.Sizes...))})
}

// NearestMap is floor(j*n/m) for j < m.
func NearestMap(n, m int64) []int64 {
	out := make([]int64, m)
	for j := range out {
		hi, lo := bits.Mul64(uint64(j), uint64(n)) // j < m, so the quotient fits
		q, _ := bits.Div64(hi, lo, uint64(m))
		out[j] = int64(q)
	}
	return out
}

func decomposeInterpolate3d(n *ir.Node, a *Interpolate3dAttrs) []ir.Value {
	if v, ok := emptyResult(n); ok {
		return v
	}
	y := n.In[0]
	in, _ := ir.StaticShape(y.Shape())
	out, _ := ir.StaticShape(n.Types[0].Shape)
	axes := []int{2, 3, 4}
	slices.SortFunc(axes, func(i, j int) int { return cmp.Compare(turn(i, in, out), turn(j, in, out)) })
	for _, k := range axes {
		if in[k] != out[k] {
			y = Gather(y, y.Graph().Constant(indexTensor(NearestMap(in[k], out[k]))), k)
		}
	}
	return []ir.Value{y}
}

// emptyResult is the result of a node that has no elements: nothing is read for it, and an index table could be huge.
func emptyResult(n *ir.Node) ([]ir.Value, bool) {
	shape, _ := ir.StaticShape(n.Types[0].Shape)
	t, err := ir.Zeros(n.Types[0].DType, shape...)
	if err != nil || t.Len() > 0 {
		return nil, false
	}
	return []ir.Value{n.In[0].Graph().Constant(t)}, true
}
