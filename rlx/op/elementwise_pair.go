package op

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// PairFn names a function of DoubleSingle.
type PairFn string

var pairFns = []string{"add", "sub", "mul", "div", "maximum", "matmul", "sum", "max", "sqrt", "exp"}

// EnumValues are the functions: those of two operands, then the reductions, then those of one.
func (PairFn) EnumValues() []string { return pairFns }

func (f PairFn) operands() int {
	if slices.Contains(pairFns[:6], string(f)) {
		return 2
	}
	return 1
}

func (f PairFn) reduces() bool { return f == "sum" || f == "max" }

// DoubleSingleAttrs are the attributes of DoubleSingle. Axes (nil: all) and KeepDims are read for sum and max; axes count the
// leading shape, without the axis of the pairs.
type DoubleSingleAttrs struct {
	Fn       PairFn `c:"C4"`
	Axes     []int  `default:"nil" c:"C3"`
	KeepDims bool   `default:"false"`
}

var doubleSingleOp = declareFn[DoubleSingleAttrs](pairFns, "DoubleSingle")

// DoubleSingle computes fn on values hi + lo that are held as f32 pairs in a trailing axis of 2, to nearly twice the digits of f32:
// add sub mul div maximum (broadcast over the leading axes), matmul (of the last two), sum max (over axes), sqrt exp.
//
// Shapes: operands [..., 2], result the leading result shape and 2. Errors: C1 dtype or last axis, C2 operand count, C3 leading
// shapes do not fit, C4 fn. Source: Dekker 1971; Joldes, Muller, Popescu 2017, algorithms for double-word arithmetic.
func DoubleSingle(a DoubleSingleAttrs, in ...ir.Value) ir.Value {
	return doubleSingleOp.Apply1(a, in...)
}

func init() {
	f32 := ir.Set(ir.F32)
	doubleSingleOp.Define(ir.Def[DoubleSingleAttrs]{
		Doc:       "fn on values hi + lo, held as pairs of f32 in a trailing axis of 2",
		In:        []ir.Operand{ir.In("a", f32), ir.Opt("b", f32)},
		DTypeC:    "C1",
		Infer:     inferDoubleSingle,
		Decompose: decomposeDoubleSingle,
		NoGrad:    "made after differentiation",
		Tol:       ir.Tolerance{Ulp: 1},
	})
}

func inferDoubleSingle(t *ir.Infer, a *DoubleSingleAttrs) {
	want := a.Fn.operands()
	got := 1
	if t.Has(1) {
		got = 2
	}
	if !t.Need(got == want, "C2", "%s: got %d operands, expected %d", a.Fn, got, want) {
		return
	}
	lead := make([][]ir.Dim, want)
	for i := range lead {
		s := t.Type(i).Shape
		ok := len(s) >= 1 && !s[max(0, len(s)-1)].Differs(ir.D(2))
		if !t.Need(ok, "C1", "%s of shape %v, expected f32 pairs: a last axis of 2", a.Fn, s) {
			return
		}
		lead[i] = s[:len(s)-1]
	}
	var out []ir.Dim
	ok := true
	switch {
	case a.Fn == "matmul":
		out, ok = matmulShape(lead[0], lead[1])
	case want == 2:
		out, ok = ir.Broadcast(lead...)
	case a.Fn.reduces():
		out, ok = inferPairReduce(t, a, lead[0])
	default:
		out = lead[0]
	}
	if want == 2 {
		t.Need(ok, "C3", "%s of leading shapes %s and %s, expected leading shapes that fit", a.Fn, ir.ShapeText(lead[0]), ir.ShapeText(lead[1]))
	}
	t.Out(ir.Type{DType: ir.F32, Shape: append(slices.Clone(out), ir.D(2))})
}

// matmulShape is the shape of the product of the last two axes, the others broadcast.
func matmulShape(a, b []ir.Dim) ([]ir.Dim, bool) {
	m, n := len(a)-2, len(b)-2
	if m < 0 || n < 0 || a[m+1].Differs(b[n]) {
		return nil, false
	}
	out, ok := ir.Broadcast(a[:m], b[:n])
	return append(slices.Clone(out), a[m], b[n+1]), ok
}

func inferPairReduce(t *ir.Infer, a *DoubleSingleAttrs, lead []ir.Dim) ([]ir.Dim, bool) {
	axes, ok := a.Axes, true
	if axes == nil {
		axes = from(0, len(lead))
	}
	if axes, ok = wrapAxes(t, "C3", axes, len(lead)); !ok {
		return nil, false
	}
	out := []ir.Dim{}
	for i, d := range lead {
		switch in := slices.Contains(axes, i); {
		case !in:
			out = append(out, d)
		case a.Fn == "max" && !t.Need(!d.Is(0), "C3", "max over axis %d, which is empty, expected an element", i):
			return nil, false
		case a.KeepDims:
			out = append(out, ir.D(1))
		}
	}
	return out, true
}
