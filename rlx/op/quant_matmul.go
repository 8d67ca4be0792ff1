package op

import (
	"cmp"
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// QMatMulAttrs are the attributes of QMatMul. Multiplier is x_scale * w_scale / out_scale.
type QMatMulAttrs struct {
	XZeroPoint   int64    `default:"0"`
	WZeroPoint   int64    `default:"0"`
	OutZeroPoint int64    `default:"0"`
	Multiplier   float64  `default:"1"`
	Dtype        ir.DType `default:"i8" c:"C5"`
}

// QConv2dAttrs are the attributes of QConv2d: those of Conv, then those of QMatMul.
type QConv2dAttrs struct {
	Stride       []int64  `default:"nil" min:"1" c:"C4"`
	Dilation     []int64  `default:"nil" min:"1" c:"C4"`
	Padding      []int64  `default:"nil" min:"0" c:"C4"`
	AutoPad      AutoPad  `default:"none" c:"C5"`
	Groups       int64    `default:"1" min:"1" c:"C2"`
	XZeroPoint   int64    `default:"0"`
	WZeroPoint   int64    `default:"0"`
	OutZeroPoint int64    `default:"0"`
	Multiplier   float64  `default:"1"`
	Dtype        ir.DType `default:"i8" c:"C10"`
}

// Conv is the geometry as Conv has it.
func (a *QConv2dAttrs) Conv() *ConvAttrs {
	return &ConvAttrs{a.Stride, a.Dilation, a.Padding, a.AutoPad, a.Groups}
}

// Requant is how accumulators become results.
func (a *QConv2dAttrs) Requant() *QMatMulAttrs {
	return &QMatMulAttrs{a.XZeroPoint, a.WZeroPoint, a.OutZeroPoint, a.Multiplier, a.Dtype}
}

var (
	qMatMul = ir.Declare[QMatMulAttrs]("quant", "QMatMul")
	qConv2d = ir.Declare[QConv2dAttrs]("quant", "QConv2d")
)

// QMatMul is y = requantize(sum_k (x - x_zero_point) * (w - w_zero_point) + bias). Sums are exact modulo 2^32; requantize is f32(sum) *
// multiplier, halves to even, plus out_zero_point, saturated to a.Dtype (i8, also for the zero DType, u8; i32: the sums themselves).
//
// Shapes: x [..., K], w [K, N], bias [N], multiplier [N] (replaces a.Multiplier), y [..., N]; bias and multiplier may be the zero
// Value. Dtypes: x, w i8 or u8, bias i32, multiplier f32. Errors: C1 K, C2 a zero point outside its dtype, C3 bias and multiplier,
// C4 dtype i32 with a multiplier or out_zero_point, C5 dtypes. Source: ONNX QLinearMatMul, MatMulInteger.
func QMatMul(x, w, bias, multiplier ir.Value, a QMatMulAttrs) ir.Value {
	a.Dtype = cmp.Or(a.Dtype, ir.I8)
	return qMatMul.Apply1(a, x, w, bias, multiplier)
}

// QConv2d is y = requantize(conv(x - x_zero_point, w - w_zero_point) + bias): Conv2d and Conv1d of codes. Padding adds 0.
//
// Shapes: x [N, C, S..], w [O, C/groups, k..], bias and multiplier [O]. In a, a Groups of 0 means 1, an empty AutoPad "none". Errors:
// C1 to C6 as Conv, C7 to C10 as C2 to C5 of QMatMul. Source: ONNX QLinearConv, ConvInteger.
func QConv2d(x, w, bias, multiplier ir.Value, a QConv2dAttrs) ir.Value {
	a.Groups, a.AutoPad, a.Dtype = cmp.Or(a.Groups, 1), cmp.Or(a.AutoPad, "none"), cmp.Or(a.Dtype, ir.I8)
	return qConv2d.Apply1(a, x, w, bias, multiplier)
}

var codeBytes = ir.Set(ir.I8, ir.U8)

func init() {
	in := func(side string) []ir.Operand {
		return []ir.Operand{ir.In("x", codeBytes), ir.In("w", codeBytes),
			ir.Opt("bias", ir.Set(ir.I32)).Cite(side), ir.Opt("multiplier", ir.Set(ir.F32)).Cite(side)}
	}
	qMatMul.Define(ir.Def[QMatMulAttrs]{
		Doc:       "matrix product of 8-bit codes, i32 sums, requantized",
		In:        in("C3"),
		Bits:      ir.Fused,
		DTypeC:    "C5",
		Infer:     inferQMatMul,
		Decompose: decomposeQMatMul,
	})
	qConv2d.Define(ir.Def[QConv2dAttrs]{
		Doc:       "1-D or 2-D convolution of 8-bit codes, i32 sums, requantized",
		In:        in("C8"),
		Bits:      ir.Fused,
		DTypeC:    "C10",
		Infer:     inferQConv2d,
		Decompose: decomposeQConv2d,
	})
}

func inferQMatMul(t *ir.Infer, a *QMatMulAttrs) {
	if shape, ok := qMatMulShape(t); ok {
		checkRequant(t, a, shape[len(shape)-1], [4]string{"C2", "C3", "C4", "C5"})
		t.Out(ir.Type{DType: a.Dtype, Shape: shape})
	}
}

// qMatMulShape is that of the sums of operands 0 and 1; ok is false where their ranks allow none.
func qMatMulShape(t *ir.Infer) (shape []ir.Dim, ok bool) {
	x, w := t.Type(0).Shape, t.Type(1).Shape
	if !t.Need(len(x) >= 1 && len(w) == 2, "C1", "x has rank %d and w rank %d, expected >= 1 and 2", len(x), len(w)) {
		return nil, false
	}
	last := len(x) - 1
	t.Need(!x[last].Differs(w[0]), "C1", "x has K %s (shape %v) and w K %s (shape %v), expected equal ones", x[last], x, w[0], w)
	return append(append([]ir.Dim{}, x[:last]...), w[1]), true
}

// checkZero checks a zero point of codes of dtype d.
func checkZero(t *ir.Infer, name string, zero int64, d ir.DType, c string) {
	lo, hi := IntRange(d)
	t.Need(zero >= lo && zero <= hi, c, "%s is %d, expected a value of %s", name, zero, d)
}

func inferQConv2d(t *ir.Infer, a *QConv2dAttrs) {
	if y, ok := convResult(t, a.Conv(), 3, 4); ok {
		checkRequant(t, a.Requant(), y.Shape[1], [4]string{"C7", "C8", "C9", "C10"})
		t.Out(ir.Type{DType: a.Dtype, Shape: y.Shape})
	}
}

// checkRequant checks what QMatMul and QConv2d share; channels are those of the result, c the constraints for zero points, sides, i32
// results and dtypes.
func checkRequant(t *ir.Infer, a *QMatMulAttrs, channels ir.Dim, c [4]string) {
	t.Need(ir.Set(ir.I8, ir.U8, ir.I32).Has(a.Dtype), c[3], "dtype %s, expected i8, u8 or i32", a.Dtype)
	checkZero(t, "x_zero_point", a.XZeroPoint, t.Type(0).DType, c[0])
	checkZero(t, "w_zero_point", a.WZeroPoint, t.Type(1).DType, c[0])
	checkZero(t, "out_zero_point", a.OutZeroPoint, a.Dtype, c[0])
	for i, name := range []string{"bias", "multiplier"} {
		if t.Has(2 + i) {
			s := t.Type(2 + i).Shape
			t.Need(same(s, []ir.Dim{channels}), c[1], "%s has shape %v, expected [%s]", name, s, channels)
		}
	}
	t.Need(a.Dtype != ir.I32 || !t.Has(3) && a.Multiplier == 1 && a.OutZeroPoint == 0, c[2],
		"dtype i32 with a multiplier or out_zero_point %d, expected neither", a.OutZeroPoint)
}

// centred is codes minus their zero point in dtype d.
func centred(x ir.Value, zero int64, d ir.DType) ir.Value {
	x = Cast(x, d)
	if zero != 0 {
		x = Sub(x, zero)
	}
	return x
}

func decomposeQMatMul(n *ir.Node, a *QMatMulAttrs) []ir.Value {
	acc := MatMul(centred(n.In[0], a.XZeroPoint, ir.I32), centred(n.In[1], a.WZeroPoint, ir.I32))
	return []ir.Value{requantized(n, acc, a, func(v ir.Value) ir.Value { return v })}
}

// requantized adds the bias to i32 sums and rounds them to the result's dtype; lay lays a side operand out against them.
func requantized(n *ir.Node, acc ir.Value, a *QMatMulAttrs, lay func(ir.Value) ir.Value) ir.Value {
	if bias := n.In[2]; !bias.IsZero() {
		acc = Add(acc, lay(bias))
	}
	if a.Dtype == ir.I32 {
		return acc
	}
	g := acc.Graph()
	m := g.Constant(ir.Scalar(float32(a.Multiplier)))
	if !n.In[3].IsZero() {
		m = lay(n.In[3])
	}
	return saturated(Mul(Cast(acc, ir.F32), m), g.Constant(ir.Scalar(float32(a.OutZeroPoint))), a.Dtype)
}

// decomposeQConv2d convolves in f64, which holds the sums of up to 2^36 products exactly, and wraps them to i32.
func decomposeQConv2d(n *ir.Node, a *QConv2dAttrs) []ir.Value {
	terms, ok := ir.Count(n.In[1].Shape()[1:]).Static()
	if !ok || terms > math.MaxInt32 {
		return nil
	}
	acc := Conv(centred(n.In[0], a.XZeroPoint, ir.F64), centred(n.In[1], a.WZeroPoint, ir.F64), *a.Conv())
	acc = Cast(Cast(acc, ir.I64), ir.I32)
	rank := acc.Rank()
	return []ir.Value{requantized(n, acc, a.Requant(), func(v ir.Value) ir.Value { return alongAxis(v, 1, rank) })}
}
