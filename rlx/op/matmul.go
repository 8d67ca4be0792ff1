package op

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// MatMulAttrs are the attributes of MatMul. Dtype is that of the result; the zero DType means the operands'.
type MatMulAttrs struct {
	Dtype ir.DType `default:"nil" c:"C1"`
}

// DotGeneralAttrs are the attributes of DotGeneral: axes pair up in list order.
type DotGeneralAttrs struct {
	LhsContracting []int    `default:"nil"`
	RhsContracting []int    `default:"nil"`
	LhsBatch       []int    `default:"nil"`
	RhsBatch       []int    `default:"nil"`
	Dtype          ir.DType `default:"nil" c:"C1"`
}

var (
	matMul     = ir.Declare[MatMulAttrs]("matmul", "MatMul")
	dotGeneral = ir.Declare[DotGeneralAttrs]("matmul", "DotGeneral")
)

// products are the dtypes that MatMul and DotGeneral multiply.
var products = ir.Float | ir.Set(ir.I32, ir.I64, ir.U32, ir.U64)

// MatMul is the matrix product over the last two dims: y[.., m, n] = sum_k a[.., m, k] * b[.., k, n].
//
// Shapes: a [..., M, K], b [..., K, N], y [..., M, N]; the dims in front broadcast. A vector a is a row and a vector b a column,
// whose dim of 1 is dropped from y. Dtypes: floats, i32, i64, u32, u64, the same for all; f16, bf16 and f32 sum in f32, f64 in f64,
// integers wrap. K = 0 gives zeros. Errors: C1 dtypes, C2 rank 0, different K, or batch dims that do not broadcast.
// Source: numpy.matmul, ONNX MatMul 13.
func MatMul(a, b ir.Value) ir.Value { return matMul.Apply1(MatMulAttrs{}, a, b) }

// MatMulTo is MatMul with a result of dtype d: f32 for f16 or bf16 operands, which saves the rounding at the end.
func MatMulTo(d ir.DType, a, b ir.Value) ir.Value { return matMul.Apply1(MatMulAttrs{d}, a, b) }

// DotGeneral sums lhs * rhs over the contracted axes, for every index of the shared batch axes and of the free axes of each side.
//
// Shapes: y is the batch dims in the order of LhsBatch, the free dims of lhs, then those of rhs. Dtypes: as MatMul. Errors: C1
// dtypes, C2 axes outside the rank, named twice, or lists of different length, C3 paired axes of different size.
// Source: StableHLO dot_general.
func DotGeneral(lhs, rhs ir.Value, a DotGeneralAttrs) ir.Value { return dotGeneral.Apply1(a, lhs, rhs) }

func init() {
	operands := func(a, b string) []ir.Operand { return []ir.Operand{ir.In(a, products), ir.In(b, products)} }
	matMul.Define(ir.Def[MatMulAttrs]{
		Doc:    "matrix product over the last two dims, batch dims broadcast",
		In:     operands("a", "b"),
		DTypeC: "C1",
		SameC:  "C1",
		Infer: func(t *ir.Infer, a *MatMulAttrs) {
			d, _ := productDType(t, a.Dtype)
			shape, _ := matMulShape(t)
			t.Out(ir.Type{DType: d, Shape: shape})
		},
		Tol: ir.Tolerance{Ulp: 32, Abs: 1e-6},
	})
	dotGeneral.Define(ir.Def[DotGeneralAttrs]{
		Doc:       "product with named batch and contracted axes",
		In:        operands("lhs", "rhs"),
		DTypeC:    "C1",
		SameC:     "C1",
		Infer:     inferDotGeneral,
		Decompose: decomposeDotGeneral,
		Tol:       ir.Tolerance{Ulp: 32, Abs: 1e-6},
	})
}

// productDType checks attribute dtype against the operands' dtype and returns the dtype of the result.
func productDType(t *ir.Infer, d ir.DType) (ir.DType, bool) {
	in := t.Type(0).DType
	if d == ir.Invalid || d == in {
		return in, true
	}
	ok := d == ir.F32 && (in == ir.F16 || in == ir.BF16)
	return d, t.Need(ok, "C1", "dtype %s for operands of %s, expected theirs, or f32 for f16 and bf16", d, in)
}

// matMulShape checks constraint C2 of operands 0 and 1 and returns the shape of their product.
func matMulShape(t *ir.Infer) ([]ir.Dim, bool) {
	a, b := t.Type(0).Shape, t.Type(1).Shape
	if !t.Need(len(a) > 0 && len(b) > 0, "C2", "operands have shapes %v and %v, expected rank 1 or more", a, b) {
		return nil, false
	}
	k, batchA, batchB, m, n := b[0], []ir.Dim(nil), []ir.Dim(nil), []ir.Dim(nil), []ir.Dim(nil)
	if len(a) > 1 {
		batchA, m = a[:len(a)-2], a[len(a)-2:len(a)-1]
	}
	if len(b) > 1 {
		k, batchB, n = b[len(b)-2], b[:len(b)-2], b[len(b)-1:]
	}
	if !t.Need(!a[len(a)-1].Differs(k), "C2", "contracted sizes are %s and %s (shapes %v and %v), expected equal ones", a[len(a)-1], k, a, b) {
		return nil, false
	}
	batch, ok := ir.Broadcast(batchA, batchB)
	if !t.Need(ok, "C2", "batch dims of shapes %v and %v do not broadcast, expected equal dims or 1", a, b) {
		return nil, false
	}
	return slices.Concat(batch, m, n), true
}

// dotAxes are the wrapped axes of a DotGeneral: batch, contracted and free ones of each side.
type dotAxes struct {
	lb, lc, lf []int
	rb, rc, rf []int
}

func inferDotGeneral(t *ir.Infer, a *DotGeneralAttrs) {
	l, r := t.Type(0), t.Type(1)
	d, _ := productDType(t, a.Dtype)
	t.Need(len(a.LhsContracting) == len(a.RhsContracting), "C2", "lhs_contracting names %d axes and rhs_contracting %d, expected as many",
		len(a.LhsContracting), len(a.RhsContracting))
	t.Need(len(a.LhsBatch) == len(a.RhsBatch), "C2", "lhs_batch names %d axes and rhs_batch %d, expected as many", len(a.LhsBatch), len(a.RhsBatch))
	lhs, okL := wrapAxes(t, "C2", slices.Concat(a.LhsBatch, a.LhsContracting), len(l.Shape))
	rhs, okR := wrapAxes(t, "C2", slices.Concat(a.RhsBatch, a.RhsContracting), len(r.Shape))
	if !okL || !okR || !t.OK() {
		return
	}
	for i := range lhs {
		p, q := l.Shape[lhs[i]], r.Shape[rhs[i]]
		t.Need(!p.Differs(q), "C3", "lhs axis %d has size %s and rhs axis %d has size %s, expected equal ones", lhs[i], p, rhs[i], q)
	}
	x := splitDot(a, len(l.Shape), len(r.Shape))
	t.Out(ir.Type{DType: d, Shape: slices.Concat(at(l.Shape, x.lb), at(l.Shape, x.lf), at(r.Shape, x.rf))})
}

// splitDot sorts checked axes into batch, contracted and free ones.
func splitDot(a *DotGeneralAttrs, lhsRank, rhsRank int) dotAxes {
	side := func(batch, contracted []int, rank int) (b, c, f []int) {
		taken := make([]bool, rank)
		for i, list := range [][]int{batch, contracted} {
			for _, axis := range list {
				k, _ := wrap(axis, rank)
				taken[k] = true
				if i == 0 {
					b = append(b, k)
				} else {
					c = append(c, k)
				}
			}
		}
		for k := range rank {
			if !taken[k] {
				f = append(f, k)
			}
		}
		return b, c, f
	}
	var x dotAxes
	x.lb, x.lc, x.lf = side(a.LhsBatch, a.LhsContracting, lhsRank)
	x.rb, x.rc, x.rf = side(a.RhsBatch, a.RhsContracting, rhsRank)
	return x
}

// at picks the dims of the given axes.
func at(shape []ir.Dim, axes []int) []ir.Dim {
	out := make([]ir.Dim, len(axes))
	for i, k := range axes {
		out[i] = shape[k]
	}
	return out
}

func decomposeDotGeneral(n *ir.Node, a *DotGeneralAttrs) []ir.Value {
	lhs, rhs := n.In[0], n.In[1]
	x := splitDot(a, lhs.Rank(), rhs.Rank())
	size := func(v ir.Value, axes []int) ir.Dim { return ir.Count(at(v.Shape(), axes)) }
	l := Reshape(Transpose(lhs, slices.Concat(x.lb, x.lf, x.lc)...), size(lhs, x.lb), size(lhs, x.lf), size(lhs, x.lc))
	r := Reshape(Transpose(rhs, slices.Concat(x.rb, x.rc, x.rf)...), size(rhs, x.rb), size(rhs, x.rc), size(rhs, x.rf))
	y := matMul.Apply1(MatMulAttrs{a.Dtype}, l, r)
	return []ir.Value{Reshape(y, n.Types[0].Shape...)}
}
