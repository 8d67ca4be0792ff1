package op

import "github.com/rlx-ml/rlx-go/rlx/ir"

// TopKAttrs are the attributes of TopK.
type TopKAttrs struct {
	K          int64    `min:"0" c:"C1"`
	Axis       int      `default:"-1"`
	Largest    bool     `default:"true"`
	IndexDtype ir.DType `default:"i64" c:"C8"`
}

var topK = ir.Declare[TopKAttrs]("sort", "TopK")

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

func init() {
	topK.Define(ir.Def[TopKAttrs]{
		Doc:     "the k greatest or least elements along axis, in order, and their indices",
		In:      []ir.Operand{ir.In("x", ir.Real|ir.Set(ir.Bool))},
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
			t.Need(!known || a.K <= n, "C1", "k is %d, axis %d has %d elements", a.K, a.Axis, n)
			countsAxis(t, a.IndexDtype, x.Shape[axis])
			shape := append([]ir.Dim{}, x.Shape...)
			shape[axis] = ir.D(a.K)
			t.Out(ir.Type{DType: x.DType, Shape: shape}, ir.Type{DType: a.IndexDtype, Shape: shape})
		},
	})
}
