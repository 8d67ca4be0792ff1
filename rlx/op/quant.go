package op

import (
	"cmp"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// QuantizeAttrs are the attributes of Quantize. Axis nil: one scale for the whole tensor; else one for each entry along the axis, or,
// with a BlockSize, for each block along it. The zero Dtype means that of the zero point, i8 without one.
type QuantizeAttrs struct {
	Axis      *int64   `default:"nil" c:"C5"`
	BlockSize int64    `default:"0" min:"0" c:"C3"`
	Dtype     ir.DType `default:"nil" c:"C5"`
}

// DequantizeAttrs are the attributes of Dequantize; see QuantizeAttrs.
type DequantizeAttrs struct {
	Axis      *int64   `default:"nil" c:"C5"`
	BlockSize int64    `default:"0" min:"0" c:"C3"`
	Dtype     ir.DType `default:"f32" c:"C5"`
}

var (
	quantize   = ir.Declare[QuantizeAttrs]("quant", "Quantize")
	dequantize = ir.Declare[DequantizeAttrs]("quant", "Dequantize")
)

var (
	codeInts = ir.Set(ir.I8, ir.U8, ir.I16, ir.U16)
	narrow32 = ir.Set(ir.F16, ir.BF16, ir.F32)
)

// Quantize is q = saturate(round_half_even(x / scale) + zero_point): a division in f32, halves to even, NaN as 0.
//
// Shapes: scale and zeroPoint (the zero Value: 0) have one entry; with a.Axis one for each entry along the axis; with a.BlockSize too
// the shape of x with ceil(dim / BlockSize) entries along the axis. Dtypes: x f16, bf16, f32, codes i8, u8, i16, u16. Errors: C1 to C4
// shapes and the zero point's dtype, C5 axis and dtype, C6 operand dtypes; a constant scale <= 0. Source: ONNX QuantizeLinear 21.
func Quantize(x, scale, zeroPoint ir.Value, a QuantizeAttrs) ir.Value {
	return quantize.Apply1(a, x, scale, zeroPoint)
}

// Dequantize is x = (q - zero_point) * scale: the difference is exact, the product one of f32. a.Dtype f32 (also for the zero DType),
// f16 or bf16.
//
// Shapes and errors as Quantize; codes may be i32. Source: ONNX DequantizeLinear 21.
func Dequantize(q, scale, zeroPoint ir.Value, a DequantizeAttrs) ir.Value {
	a.Dtype = cmp.Or(a.Dtype, ir.F32)
	return dequantize.Apply1(a, q, scale, zeroPoint)
}

func init() {
	quantize.Define(ir.Def[QuantizeAttrs]{
		Doc:       "round(x / scale) + zero point, saturated",
		In:        []ir.Operand{ir.In("x", narrow32), ir.In("scale", ir.Float), ir.Opt("zero_point", codeInts).Cite("C5")},
		Bits:      ir.Elementwise,
		DTypeC:    "C6",
		Infer:     inferQuantize,
		Decompose: decomposeQuantize,
	})
	codes := codeInts | ir.Set(ir.I32)
	dequantize.Define(ir.Def[DequantizeAttrs]{
		Doc:       "(q - zero point) * scale",
		In:        []ir.Operand{ir.In("q", codes), ir.In("scale", ir.Float), ir.Opt("zero_point", codes).Cite("C4")},
		Bits:      ir.Elementwise,
		DTypeC:    "C6",
		Infer:     inferDequantize,
		Decompose: decomposeDequantize,
	})
}

func inferQuantize(t *ir.Infer, a *QuantizeAttrs) {
	x := t.Type(0)
	if t.Has(2) {
		z := t.Type(2).DType
		if a.Dtype == ir.Invalid {
			a.Dtype = z
		}
		t.Need(a.Dtype == z, "C5", "dtype %s and a zero_point of dtype %s, expected one dtype (C4)", a.Dtype, z)
	}
	if a.Dtype == ir.Invalid {
		a.Dtype = ir.I8
	}
	t.Need(codeInts.Has(a.Dtype), "C5", "dtype %s, expected one of %s", a.Dtype, codeInts)
	c := checkScale(t, a.Axis, a.BlockSize)
	if s, ok := t.In(1).Const(); ok && s != nil && t.OK() {
		for i := range s.Len() {
			if v := s.Float(i); v <= 0 {
				t.Need(false, c, "scale[%d] is %g, expected > 0", i, v)
				return
			}
		}
	}
	t.Out(ir.Type{DType: a.Dtype, Shape: x.Shape})
}

func inferDequantize(t *ir.Infer, a *DequantizeAttrs) {
	q := t.Type(0)
	t.Need(narrow32.Has(a.Dtype), "C5", "dtype %s, expected one of %s", a.Dtype, narrow32)
	if t.Has(2) {
		z := t.Type(2).DType
		t.Need(z == q.DType, "C4", "zero_point has dtype %s, the codes %s, expected one dtype", z, q.DType)
	}
	checkScale(t, a.Axis, a.BlockSize)
	t.Out(ir.Type{DType: a.Dtype, Shape: q.Shape})
}

// checkScale checks the shapes of a scale and a zero point, operands 1 and 2, and returns the constraint that the scale's is under.
func checkScale(t *ir.Infer, axis *int64, block int64) (c string) {
	x, s := t.Type(0).Shape, t.Type(1).Shape
	if axis == nil {
		c = "C1"
		t.Need(!ir.Count(s).Differs(ir.D(1)), c, "scale has shape %v, expected one entry", s)
	} else {
		at, ok := wrap(int(*axis), len(x))
		if !t.Need(ok && int64(int(*axis)) == *axis, "C5", "axis %d, expected in [%d, %d)", *axis, -len(x), len(x)) {
			return ""
		}
		want := []ir.Dim{x[at]}
		c = "C2"
		if block > 0 {
			c = "C3"
			want = append([]ir.Dim{}, x...)
			want[at] = x[at].CeilDiv(ir.D(block))
		}
		t.Need(same(s, want), c, "scale has shape %v, expected %v", s, want)
	}
	if t.Has(2) {
		t.Need(same(t.Type(2).Shape, s), "C4", "zero_point has shape %v, expected that of scale, %v", t.Type(2).Shape, s)
	}
	return c
}

// spreadScale lays a scale or zero point out so that it broadcasts against x.
func spreadScale(v, x ir.Value, axis *int64, block int64) ir.Value {
	if axis == nil {
		return Reshape(v)
	}
	at, _ := wrap(int(*axis), x.Rank())
	if block > 0 {
		return blockwise(v, x.Dim(at), block, at)
	}
	return alongAxis(v, at, x.Rank())
}

// blockwise repeats each entry of v along an axis block times, cut to n entries.
func blockwise(v ir.Value, n ir.Dim, block int64, axis int) ir.Value {
	count, _ := n.Static()
	index := make([]int64, count)
	for i := range index {
		index[i] = int64(i) / block
	}
	return Gather(v, v.Graph().Constant(indexTensor(index)), axis)
}

func decomposeQuantize(n *ir.Node, a *QuantizeAttrs) []ir.Value {
	x := n.In[0]
	v := Div(Cast(x, ir.F32), spreadScale(Cast(n.In[1], ir.F32), x, a.Axis, a.BlockSize))
	zero := x.Graph().Constant(ir.Scalar(float32(0)))
	if z := n.In[2]; !z.IsZero() {
		zero = spreadScale(Cast(z, ir.F32), x, a.Axis, a.BlockSize)
	}
	return []ir.Value{saturated(v, zero, a.Dtype)}
}

// saturated rounds f32 v, halves to even and NaN to 0, adds zero and clamps to integer dtype d. Sums that f32 does not hold are outside
// of what it clamps to.
func saturated(v, zero ir.Value, d ir.DType) ir.Value {
	v = Where(IsNaN(v), 0, Round(v))
	lo, hi := IntRange(d)
	return Cast(Clamp(Add(v, zero), lo, hi), d)
}

// IntRange is the least and the greatest value of an integer dtype of at most 32 bits.
func IntRange(d ir.DType) (lo, hi int64) {
	bits := 8 * d.Size()
	if ir.Unsigned.Has(d) {
		return 0, 1<<bits - 1
	}
	return -1 << (bits - 1), 1<<(bits-1) - 1
}

func decomposeDequantize(n *ir.Node, a *DequantizeAttrs) []ir.Value {
	q := n.In[0]
	v := q
	if z := n.In[2]; !z.IsZero() {
		wide := ir.I32
		if q.DType() == ir.I32 {
			wide = ir.I64
		}
		v = Sub(Cast(q, wide), spreadScale(Cast(z, wide), q, a.Axis, a.BlockSize))
	}
	y := Mul(Cast(v, ir.F32), spreadScale(Cast(n.In[1], ir.F32), q, a.Axis, a.BlockSize))
	return []ir.Value{narrow(y, a.Dtype)}
}
