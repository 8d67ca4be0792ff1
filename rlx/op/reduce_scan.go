package op

import "github.com/rlx-ml/rlx-go/rlx/ir"

// CumAttrs are the attributes of Cumsum, CumProd and CumsumBackward: exclusive leaves out the element itself, reverse runs from the end.
type CumAttrs struct {
	Axis      int  `default:"-1"`
	Exclusive bool `default:"false"`
	Reverse   bool `default:"false"`
}

// CumMaxAttrs are the attributes of CumMax.
type CumMaxAttrs struct {
	Axis       int      `default:"-1"`
	Exclusive  bool     `default:"false"`
	Reverse    bool     `default:"false"`
	IndexDtype ir.DType `default:"i64" c:"C8"`
}

var (
	cumsum         = ir.Declare[CumAttrs]("reduce", "Cumsum")
	cumProd        = ir.Declare[CumAttrs]("reduce", "CumProd")
	cumMax         = ir.Declare[CumMaxAttrs]("reduce", "CumMax")
	cumsumBackward = ir.Declare[CumAttrs]("reduce", "CumsumBackward")
)

// Cumsum is y_i = sum of x_j for j <= i along axis.
//
// Shapes: y as x, rank >= 1. Dtypes: integers (which wrap), floats, c64; f16 and bf16 keep the running sum in f32 and round each
// output. Errors: C1 dtype, C9 axis outside the rank. Source: ONNX CumSum 14.
func Cumsum(x ir.Value, axis int) ir.Value { return CumsumWith(x, CumAttrs{Axis: axis}) }

// CumsumWith is Cumsum over j < i (exclusive), j >= i (reverse) or j > i (both). An exclusive sum starts from 0.
func CumsumWith(x ir.Value, a CumAttrs) ir.Value { return cumsum.Apply1(a, x) }

// CumProd is y_i = product of x_j for j <= i along axis; see Cumsum. Source: ONNX CumProd 26.
func CumProd(x ir.Value, axis int) ir.Value { return CumProdWith(x, CumAttrs{Axis: axis}) }

// CumProdWith is CumProd over the index sets of CumsumWith. An exclusive product starts from 1.
func CumProdWith(x ir.Value, a CumAttrs) ir.Value { return cumProd.Apply1(a, x) }

// CumMax is y_i = max of x_j for j <= i along axis, and the i64 index of that maximum: of the first one where several are equal.
// From the first NaN on, y is NaN and the index stays there.
//
// Shapes: both as x, rank >= 1. Dtypes: integers, floats. Errors: C1 dtype, C9 axis outside the rank. Source: torch.cummax, which
// takes the last of equals.
func CumMax(x ir.Value, axis int) (y, index ir.Value) {
	return CumMaxWith(x, CumMaxAttrs{Axis: axis, IndexDtype: ir.I64})
}

// CumMaxWith is CumMax over the index sets of CumsumWith. An exclusive maximum starts from -inf, or the least integer, with index -1.
// Errors: as CumMax, and C8 an IndexDtype that cannot count the axis.
func CumMaxWith(x ir.Value, a CumMaxAttrs) (y, index ir.Value) {
	r := cumMax.Apply(a, x)
	return r[0], r[1]
}

// CumsumBackward is the gradient of Cumsum with attributes a: the sum in the other direction.
func CumsumBackward(dy ir.Value, a CumAttrs) ir.Value { return cumsumBackward.Apply1(a, dy) }

func init() {
	for _, r := range []struct {
		op   *ir.Op[CumAttrs]
		doc  string
		in   string
		bits ir.Bits
		back func(*ir.Node, *CumAttrs) []ir.Value
	}{
		{cumsum, "y_i = sum of x_j for j <= i along axis", "x", 0, nil},
		{cumProd, "y_i = product of x_j for j <= i along axis", "x", 0, nil},
		{cumsumBackward, "dx_i = sum of dy_j for j >= i along axis", "dy", ir.Backward, decomposeCumsumBackward},
	} {
		r.op.Define(ir.Def[CumAttrs]{
			Doc:    r.doc,
			In:     []ir.Operand{ir.In(r.in, ir.Numeric)},
			Bits:   ir.Reduction | r.bits,
			DTypeC: "C1",
			Infer: func(t *ir.Infer, a *CumAttrs) {
				scanAxis(t, a.Axis)
				t.Out(t.Type(0))
			},
			Decompose: r.back,
			Tol:       ir.Tolerance{Ulp: 42, Abs: 1e-6}, // 5e-6 relative in f32
		})
	}
	cumMax.Define(ir.Def[CumMaxAttrs]{
		Doc:     "y_i = max of x_j for j <= i along axis, and its index",
		In:      []ir.Operand{ir.In("x", ir.Real)},
		Results: []string{"y", "index"},
		Bits:    ir.Reduction | ir.Exact,
		DTypeC:  "C1",
		Infer: func(t *ir.Infer, a *CumMaxAttrs) {
			x := t.Type(0)
			if axis, ok := scanAxis(t, a.Axis); ok {
				countsAxis(t, a.IndexDtype, x.Shape[axis])
			}
			t.Out(x, ir.Type{DType: a.IndexDtype, Shape: x.Shape})
		},
	})
}

func scanAxis(t *ir.Infer, axis int) (int, bool) {
	rank := len(t.Type(0).Shape)
	i, ok := wrap(axis, rank)
	return i, t.Need(ok, "C9", "axis %d, expected in [%d, %d)", axis, -rank, rank)
}

func decomposeCumsumBackward(n *ir.Node, a *CumAttrs) []ir.Value {
	return []ir.Value{CumsumWith(n.In[0], CumAttrs{a.Axis, a.Exclusive, !a.Reverse})}
}
