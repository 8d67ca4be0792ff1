package op

import (
	"cmp"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// DequantMatMulAttrs are the attributes of DequantMatMul. BlockSize is read for the int and MLX schemes, WLayout for the int, fp8 and
// nvfp4_block schemes, Bits for mlx_affine.
type DequantMatMulAttrs struct {
	Scheme    Scheme       `c:"C1"`
	BlockSize int64        `default:"0" min:"0" c:"C6"`
	WLayout   WeightLayout `default:"kn" c:"C6"`
	Bits      int64        `default:"4" c:"C6"`
	Compute   Compute      `default:"f32" c:"C6"`
}

// DequantMatMulRegionAttrs are the attributes of DequantMatMulRegion: a body and those of DequantMatMul.
type DequantMatMulRegionAttrs struct {
	Body      *ir.Graph
	Scheme    Scheme       `c:"C1"`
	BlockSize int64        `default:"0" min:"0" c:"C6"`
	WLayout   WeightLayout `default:"kn" c:"C6"`
	Bits      int64        `default:"4" c:"C6"`
	Compute   Compute      `default:"f32" c:"C6"`
}

// Product are the attributes of the product.
func (a *DequantMatMulRegionAttrs) Product() DequantMatMulAttrs {
	return DequantMatMulAttrs{a.Scheme, a.BlockSize, a.WLayout, a.Bits, a.Compute}
}

// DequantMoEWeightsAttrs are the attributes of DequantMoEWeights. NumExperts and RowLength (K) are needed for a flat bank.
type DequantMoEWeightsAttrs struct {
	Scheme     Scheme   `c:"C1"`
	NumExperts int64    `default:"0" min:"0" c:"C9"`
	RowLength  int64    `default:"0" min:"0" c:"C9"`
	Dtype      ir.DType `default:"f32" c:"C6"`
}

var dequantMoEWeights = ir.Declare[DequantMoEWeightsAttrs]("quant", "DequantMoEWeights")

// DequantMoEWeights is W[e, k, n] = weight k of row n of expert e of a bank of a GGUF scheme: what GroupedMatMul takes. One expert
// dequantizes one matrix.
//
// Shapes: w [E, N, row bytes], or flat, W [E, K, N]. Dtypes: w u8, W a.Dtype: f32 (also for the zero DType), f16, bf16. Errors: C1
// scheme, C3 rows of whole blocks, C4 row bytes, C6 dtype, C7 w, C9 a flat bank without num_experts and row_length that fit it.
func DequantMoEWeights(w ir.Value, a DequantMoEWeightsAttrs) ir.Value {
	a.Dtype = cmp.Or(a.Dtype, ir.F32)
	return dequantMoEWeights.Apply1(a, w)
}

var dequantMatMul = ir.Declare[DequantMatMulAttrs]("quant", "DequantMatMul")

// DequantMatMul is y = x . W, W [K, N] the real weights that w, scale and zeroPoint stand for under a.Scheme (docs/spec/quant-schemes.md).
//
// Shapes: x [..., K], y [..., N]. GGUF schemes: w u8 [N, row bytes] or flat, no others. int8_block: w i8 or u8 [K, N], scale [K in
// blocks, N]; int8_block_asym also zeroPoint, as scale; int4_block: two codes a byte, zeroPoint optional. fp8: scale [1] or [N],
// optional. nvfp4_block: scale u8, zeroPoint a global scale. MLX: w a row of codes per output, scale [N, groups], zeroPoint the
// biases of mlx_affine. Dtypes: x f16, bf16, f32; y as x; sums in f32. Errors: C1 scheme, C2 scale and zeroPoint, C3 GGUF blocks, C4 row
// bytes, C5 w's shape, C6 attributes, C7 dtypes and ranks. Source: ONNX Runtime MatMulNBits, MLX quantized_matmul, llama.cpp mul_mat.
func DequantMatMul(x, w, scale, zeroPoint ir.Value, a DequantMatMulAttrs) ir.Value {
	a.WLayout, a.Compute, a.Bits = cmp.Or(a.WLayout, "kn"), cmp.Or(a.Compute, "f32"), cmp.Or(a.Bits, 4)
	return dequantMatMul.Apply1(a, x, w, scale, zeroPoint)
}

var dequantMatMulRegion = declareRegion[DequantMatMulRegionAttrs]("DequantMatMulRegion")

// DequantMatMulRegion is (y_1, ...) = body(x . W, x_1, ...): a product with a packed weight whose elements go through a body while they are in cache. It
// means ElementwiseRegion of DequantMatMul bit for bit: the product is rounded to its dtype first.
//
// Operands: x, w, scale and zero_point as DequantMatMul, scale and zero_point the zero Value where the scheme has none; then each x_i, which broadcasts to
// the shape of the product, which every result has. Dtypes of x: f16, bf16, f32. Errors: C1 to C7 as DequantMatMul, C8 shape of an x_i, C9 the body.
func DequantMatMulRegion(a DequantMatMulRegionAttrs, x ...ir.Value) []ir.Value {
	a.WLayout, a.Compute, a.Bits = cmp.Or(a.WLayout, "kn"), cmp.Or(a.Compute, "f32"), cmp.Or(a.Bits, 4)
	return dequantMatMulRegion.Apply(a, x...)
}

func init() {
	dequantMatMul.Define(ir.Def[DequantMatMulAttrs]{
		Doc: "x times a packed weight",
		In: []ir.Operand{ir.In("x", narrow32), ir.In("w", ir.Set(ir.I8, ir.U8, ir.U32, ir.F8E4M3, ir.F8E5M2)),
			ir.Opt("scale", narrow32|ir.Set(ir.U8, ir.F8E4M3)).Cite("C2"), ir.Opt("zero_point", narrow32).Cite("C2")},
		Bits:      ir.Fused,
		DTypeC:    "C7",
		Infer:     inferDequantMatMul,
		Decompose: decomposeDequantMatMul,
		Tol:       ir.Tolerance{Ulp: 32, Abs: 1e-6},
	})
	dequantMatMulRegion.Define(ir.Def[DequantMatMulRegionAttrs]{
		Doc:       "an elementwise body over the elements of a product with a packed weight",
		In:        append(slices.Clone(dequantMatMul.Row().In), ir.Any("x_i", regional)),
		Results:   []string{"y..."},
		Bits:      ir.Fused,
		DTypeC:    "C7",
		Infer:     inferDequantMatMulRegion,
		Decompose: decomposeDequantMatMulRegion,
		Tol:       ir.Tolerance{Ulp: 64, Abs: 1e-6},
	})
	dequantMoEWeights.Define(ir.Def[DequantMoEWeightsAttrs]{
		Doc:    "packed experts to floats [E, K, N]",
		In:     []ir.Operand{ir.In("w", ir.Set(ir.U8))},
		DTypeC: "C7",
		Infer:  inferDequantMoEWeights,
		NoGrad: "packed bytes are frozen",
	})
}

func inferDequantMoEWeights(t *ir.Infer, a *DequantMoEWeightsAttrs) {
	w := t.Type(0).Shape
	if !t.Need(a.Scheme.GGUF(), "C1", "scheme %s has no blocks, expected one of GGUF files", a.Scheme) ||
		!t.Need(narrow32.Has(a.Dtype), "C6", "dtype %s, expected one of %s", a.Dtype, narrow32) ||
		!t.Need(len(w) == 1 || len(w) == 3, "C7", "w has rank %d, expected 1 or 3", len(w)) {
		return
	}
	elements, bytes := a.Scheme.Block()
	k := ir.D(a.RowLength)
	t.Need(a.RowLength%elements == 0, "C3", "%s: row_length %d, expected a multiple of the block of %d weights", a.Scheme, a.RowLength, elements)
	row := k.FloorDiv(ir.D(elements)).Mul(ir.D(bytes))
	if len(w) == 3 {
		n, known := w[2].Static()
		t.Need(!known || n%bytes == 0, "C3", "%s: rows of %d bytes, expected whole blocks of %d", a.Scheme, n, bytes)
		if a.RowLength == 0 {
			k = w[2].FloorDiv(ir.D(bytes)).Mul(ir.D(elements))
			t.Need(!k.Is(0), "C9", "rows of 0 bytes, expected a row_length")
		} else {
			t.Need(!w[2].Differs(row), "C4", "%s: rows of %s bytes, expected %s for row_length %d", a.Scheme, w[2], row, a.RowLength)
		}
		t.Out(ir.Type{DType: a.Dtype, Shape: []ir.Dim{w[0], k, w[1]}})
		return
	}
	if !t.Need(a.RowLength >= 1, "C9", "a flat bank without row_length, expected one") || !t.Need(a.NumExperts >= 1, "C9", "a flat bank without num_experts, expected one") {
		return
	}
	total, known := w[0].Static()
	t.Need(!known || total%a.NumExperts == 0, "C9", "num_experts is %d, expected a divisor of the bank's %d bytes", a.NumExperts, total)
	each := w[0].FloorDiv(ir.D(a.NumExperts))
	size, static := row.Static()
	t.Need(!known || !static || total/a.NumExperts%size == 0, "C3", "%s: %d bytes of an expert, expected whole rows of %d", a.Scheme, total/a.NumExperts, size)
	t.Out(ir.Type{DType: a.Dtype, Shape: []ir.Dim{ir.D(a.NumExperts), k, each.FloorDiv(row)}})
}

func inferDequantMatMul(t *ir.Infer, a *DequantMatMulAttrs) {
	if y := packedProduct(t, a); t.OK() {
		t.Out(y)
	}
}

// packedProduct is the type of the product of operands 0 and 1, where t is OK.
func packedProduct(t *ir.Infer, a *DequantMatMulAttrs) ir.Type {
	x := t.Type(0)
	last := len(x.Shape) - 1
	if !t.Need(last >= 0, "C7", "x has rank 0, expected 1 or more") {
		return x
	}
	n := packed{t, a, x.Shape[last]}.columns()
	return ir.Type{DType: x.DType, Shape: append(append([]ir.Dim{}, x.Shape[:last]...), n)}
}

func inferDequantMatMulRegion(t *ir.Infer, a *DequantMatMulRegionAttrs) {
	p := a.Product()
	if y := packedProduct(t, &p); t.OK() {
		a.Body = bodyBehind(t, a.Body, y, 4, "C8", "C9")
	}
}

func decomposeDequantMatMulRegion(n *ir.Node, a *DequantMatMulRegionAttrs) []ir.Value {
	y := dequantMatMul.Apply1(a.Product(), n.In[:4]...)
	return spliceBody(n, a.Body, slices.Concat([]ir.Value{y}, n.In[4:]), n.Types[0].Shape)
}

// decomposeDequantMatMul covers the int schemes, and fp8 weights of their own dtype: the others would need their bits taken apart.
func decomposeDequantMatMul(n *ir.Node, a *DequantMatMulAttrs) []ir.Value {
	w := n.In[1]
	switch {
	case a.Scheme == "int4_block":
		w = unpackedNibbles(n, a)
	case a.Scheme == "int8_block" || a.Scheme == "int8_block_asym" || w.DType() == ir.F8E4M3 || w.DType() == ir.F8E5M2:
		w = Cast(w, ir.F32)
	default:
		return nil
	}
	axis := 0
	if a.WLayout == "nk" {
		axis = 1
	}
	x := Cast(n.In[0], ir.F32)
	k := x.Dim(-1)
	if z := n.In[3]; !z.IsZero() {
		w = Sub(w, blockwise(Cast(z, ir.F32), k, a.BlockSize, axis))
	} else if a.Scheme == "int4_block" {
		w = Sub(w, 8)
	}
	if s := n.In[2]; !s.IsZero() && s.Rank() == 2 {
		w = Mul(w, blockwise(Cast(s, ir.F32), k, a.BlockSize, axis))
	} else if !s.IsZero() { // fp8: one, or one a column
		s = Cast(s, ir.F32)
		if axis == 1 {
			s = Reshape(s, s.Dim(0), ir.D(1))
		}
		w = Mul(w, s)
	}
	if axis == 1 {
		w = Transpose(w, 1, 0)
	}
	return []ir.Value{narrow(MatMul(x, w), n.In[0].DType())}
}

// unpackedNibbles are the codes of int4_block as f32 [K, N], or [N, K] for nk.
func unpackedNibbles(n *ir.Node, a *DequantMatMulAttrs) ir.Value {
	k, cols := n.In[0].Dim(-1), n.Types[0].Shape[len(n.Types[0].Shape)-1]
	bytes := Reshape(n.In[1], ir.Count(n.In[1].Shape()), ir.D(1))
	codes := Concat(1, BitAnd(bytes, 15), Shr(bytes, 4)) // low nibble first
	total := k.Mul(cols)
	if a.WLayout == "nk" { // rows end with whole blocks
		row := k.CeilDiv(ir.D(a.BlockSize)).Mul(ir.D(a.BlockSize))
		codes = Slice(Reshape(codes, cols, row), []ir.Dim{ir.D(0)}, []ir.Dim{k}, []int{1}, nil)
		return Cast(codes, ir.F32)
	}
	codes = Reshape(codes, ir.Count(codes.Shape()))
	codes = Slice(codes, []ir.Dim{ir.D(0)}, []ir.Dim{total}, []int{0}, nil)
	return Cast(Reshape(codes, k, cols), ir.F32)
}
