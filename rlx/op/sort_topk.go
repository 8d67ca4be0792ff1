package op

import "github.com/rlx-ml/rlx-go/rlx/ir"

// TopKAttrs are the attributes of TopK.
type TopKAttrs struct {
	K          int64    `c:"C1"`
	Axis       int      `default:"-1"`
	Largest    bool     `default:"true"`
	IndexDtype ir.DType `default:"i64" c:"C8"`
}

// SortAttrs are the attributes of Sort and ArgSort.
type SortAttrs struct {
	Axis       int      `default:"-1"`
	Descending bool     `default:"false"`
	IndexDtype ir.DType `default:"i64" c:"C8"`
}

var (
	topK    = ir.Declare[TopKAttrs]("sort", "TopK")
	sortOp  = ir.Declare[SortAttrs]("sort", "Sort")
	argSort = ir.Declare[SortAttrs]("sort", "ArgSort")
)

// TopK is the k greatest elements of x along axis in descending order, or the k least in ascending order, and their i64 indices.
// NaN counts as greater than +inf; of equal elements the lower index comes first.
//
// Shapes: both as x, with k in place of the axis. Dtypes: integers, floats, bool. Errors: C1 k below 0 or above the axis, C7 dtype,
// C9 axis outside the rank. Source: ONNX TopK 24.
func TopK(x ir.Value, k int64, axis int, largest bool) (values, index ir.Value) {
	return TopKWith(x, TopKAttrs{K: k, Axis: axis, Largest: largest, IndexDtype: ir.I64})
}

// TopKWith is TopK with all attributes. Errors: as TopK, and C8 an IndexDtype that cannot count the axis.
func TopKWith(x ir.Value, a TopKAttrs) (values, index ir.Value) {
	r := topK.Apply(a, x)
	return r[0], r[1]
}

// Sort is the elements of x in order along axis, and their i64 indices. Equal elements keep the order of their indices in both
// directions. NaN counts as greater than +inf: ascending puts it last, descending first.
//
// Shapes: both as x, rank >= 1. Dtypes: integers, floats, bool. Errors: C7 dtype, C9 axis outside the rank. Source: torch.sort with
// stable=True.
func Sort(x ir.Value, axis int, descending bool) (values, index ir.Value) {
	return SortWith(x, SortAttrs{axis, descending, ir.I64})
}

// SortWith is Sort with all attributes. Errors: as Sort, and C8 an IndexDtype that cannot count the axis.
func SortWith(x ir.Value, a SortAttrs) (values, index ir.Value) {
	r := sortOp.Apply(a, x)
	return r[0], r[1]
}

// ArgSort is the i64 indices of Sort: the permutation that puts x in order along axis. Errors: as Sort. Source: numpy.argsort with
// kind="stable".
func ArgSort(x ir.Value, axis int, descending bool) ir.Value {
	return ArgSortWith(x, SortAttrs{axis, descending, ir.I64})
}

// ArgSortWith is ArgSort with all attributes; see SortWith.
func ArgSortWith(x ir.Value, a SortAttrs) ir.Value { return argSort.Apply1(a, x) }

func init() {
	ordered := []ir.Operand{ir.In("x", ir.Real|ir.Set(ir.Bool))}
	sortOp.Define(ir.Def[SortAttrs]{
		Doc:     "x in order along axis, stable, and the indices",
		In:      ordered,
		Results: []string{"values", "index"},
		Bits:    ir.Exact,
		DTypeC:  "C7",
		Infer: func(t *ir.Infer, a *SortAttrs) {
			sortAxis(t, a)
			t.Out(t.Type(0), ir.Type{DType: a.IndexDtype, Shape: t.Type(0).Shape})
		},
		Decompose: func(n *ir.Node, a *SortAttrs) []ir.Value {
			i := ArgSortWith(n.In[0], SortAttrs{a.Axis, a.Descending, ir.I64})
			return []ir.Value{GatherElements(n.In[0], i, a.Axis), narrow(i, a.IndexDtype)}
		},
	})
	argSort.Define(ir.Def[SortAttrs]{
		Doc:    "indices of the stable sort along axis",
		In:     ordered,
		Bits:   ir.Exact,
		DTypeC: "C7",
		Infer: func(t *ir.Infer, a *SortAttrs) {
			sortAxis(t, a)
			t.Out(ir.Type{DType: a.IndexDtype, Shape: t.Type(0).Shape})
		},
		NoGrad: "integer result",
	})
	topK.Define(ir.Def[TopKAttrs]{
		Doc:     "the k greatest or least elements along axis, in order, and their indices",
		In:      ordered,
		Results: []string{"values", "index"},
		Bits:    ir.Reduction | ir.Exact,
		DTypeC:  "C7",
		Infer: func(t *ir.Infer, a *TopKAttrs) {
			x := t.Type(0)
			axis, ok := scanAxis(t, a.Axis)
			if !ok {
				return
			}
			n, known := x.Shape[axis].Static()
			t.Need(a.K >= 0 && (!known || a.K <= n), "C1", "k is %d, expected 0 to %s, the length of axis %d", a.K, x.Shape[axis], a.Axis)
			countsAxis(t, a.IndexDtype, x.Shape[axis])
			shape := append([]ir.Dim{}, x.Shape...)
			shape[axis] = ir.D(a.K)
			t.Out(ir.Type{DType: x.DType, Shape: shape}, ir.Type{DType: a.IndexDtype, Shape: shape})
		},
		Decompose: func(n *ir.Node, a *TopKAttrs) []ir.Value {
			i := Narrow(ArgSortWith(n.In[0], SortAttrs{a.Axis, a.Largest, ir.I64}), a.Axis, 0, a.K)
			return []ir.Value{GatherElements(n.In[0], i, a.Axis), narrow(i, a.IndexDtype)}
		},
	})
}

func sortAxis(t *ir.Infer, a *SortAttrs) {
	if axis, ok := scanAxis(t, a.Axis); ok {
		countsAxis(t, a.IndexDtype, t.Type(0).Shape[axis])
	}
}
