package pass

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Int8 keeps constant int8 weights int8: a product with them reads the codes, and rows of an embedding become floats when they are read. Every
// weight has the bits that folding would give it, and takes a quarter of the memory. It runs before folding makes floats of the codes, and
// only for targets with a kernel for such products. Weights of linear layers lie transposed in files: their codes are transposed once, in folding, and stay
// bytes. A scale for each entry of the contracted axis would be as large as the floats, and moving it to the other operand would round otherwise, so such
// weights fold; and so do those of convolutions, which have no kernel that reads codes.
var Int8 = Pass{Name: "int8", Rounds: true, Doc: "int8 weights stay int8 until they are used",
	Rules: []Rule{{"int8 matmul", int8MatMulRule}, {"int8 gather", int8GatherRule}}}

// codes is a constant weight (q - zero) * scale of f32; zero may be absent. Scale and zero broadcast to q, or hold one number for each block of so many
// entries along an axis.
type codes struct {
	q, scale, zero ir.Value
	block          int64 // 0: no blocks
	axis           int   // of the blocks
}

// transposed is the matrix with its axes changed.
func (c codes) transposed() codes {
	return codes{q: transposeOf(c.q), scale: transposeOf(c.scale), zero: transposeOf(c.zero), block: c.block, axis: 1 - c.axis}
}

// transposeOf is a matrix, or what broadcasts to one, transposed. A number stays, and of two transposes none is left.
func transposeOf(v ir.Value) ir.Value {
	if v.IsZero() || v.Rank() == 0 {
		return v
	}
	if x, perm, ok := asTranspose(v); ok && len(perm) == 2 && perm[0] == 1 {
		return x
	}
	if v.Rank() == 1 {
		return op.Reshape(v, v.Dim(0), ir.D(1))
	}
	if v.Dim(0).Is(1) || v.Dim(1).Is(1) {
		return op.Reshape(v, v.Dim(1), v.Dim(0))
	}
	return op.Transpose(v, 1, 0)
}

// matrixOf reads v, or what v is the transpose of, as codes of a matrix.
func matrixOf(v ir.Value) (c codes, ok bool) {
	x, perm, isTransposed := asTranspose(v)
	if !isTransposed || len(perm) != 2 || perm[0] != 1 {
		c, ok = codesOf(v)
		return c, ok && c.q.Rank() == 2
	}
	if c, ok = codesOf(x); !ok || c.q.Rank() != 2 {
		return c, false
	}
	return c.transposed(), true
}

// codesOf reads v as codes: a cast and a product, or Dequantize.
func codesOf(v ir.Value) (c codes, ok bool) {
	if v.DType() != ir.F32 {
		return c, false
	}
	if isKind(v, "Dequantize") {
		return dequantized(v)
	}
	a, b, ok := asBinary(v, "mul")
	if !ok {
		return c, false
	}
	if fixed(unviewed(a)) != nil && !isKind(a, "Cast") {
		a, b = b, a
	}
	c.scale = b
	if x, z, is := asBinary(a, "sub"); is {
		a, c.zero = x, z
	}
	if !isKind(a, "Cast") || fixed(unviewed(c.scale)) == nil {
		return c, false
	}
	c.q = a.Node().In[0]
	if !c.zero.IsZero() && fixed(unviewed(c.zero)) == nil && !(isKind(c.zero, "Cast") && fixed(c.zero.Node().In[0]) != nil) {
		return c, false
	}
	return c, c.fits()
}

// dequantized is a Dequantize of one scale for all codes, for each entry of one axis, or for each block along an axis of a matrix.
func dequantized(v ir.Value) (c codes, ok bool) {
	n := v.Node()
	a := n.Attrs.(*op.DequantizeAttrs)
	c = codes{q: n.In[0], scale: n.In[1]}
	if len(n.In) > 2 {
		c.zero = n.In[2]
	}
	if fixed(c.scale) == nil || c.scale.DType() != ir.F32 || !c.zero.IsZero() && fixed(c.zero) == nil || !byteCodes.Has(c.q.DType()) {
		return c, false
	}
	if !c.zero.IsZero() {
		c.zero = op.Cast(c.zero, ir.F32)
	}
	if a.BlockSize != 0 {
		at, inside := 0, a.Axis != nil && c.q.Rank() == 2
		if inside {
			at, inside = ir.WrapAxis(int(*a.Axis), 2)
		}
		c.block, c.axis = a.BlockSize, at
		return c, inside && constantCodes(c.q)
	}
	for _, side := range []*ir.Value{&c.scale, &c.zero} {
		if side.IsZero() {
			continue
		}
		shape := ir.Dims(make([]int64, c.q.Rank())...)
		for k := range shape {
			shape[k] = ir.D(1)
		}
		if a.Axis != nil {
			at, inside := ir.WrapAxis(int(*a.Axis), c.q.Rank())
			if !inside {
				return c, false
			}
			shape[at] = c.q.Dim(at)
		}
		*side = op.Reshape(*side, shape...)
	}
	return c, c.fits()
}

var byteCodes = ir.Set(ir.I8, ir.U8)

// constantCodes says that q is a constant, or the transpose of one.
func constantCodes(q ir.Value) bool {
	if isKind(q, "Transpose") {
		q = q.Node().In[0]
	}
	return fixed(q) != nil
}

func (c codes) fits() bool {
	return constantCodes(c.q) && byteCodes.Has(c.q.DType()) && c.scale.DType() == ir.F32 && stretchesTo(c.scale, c.q.Shape()) &&
		(c.zero.IsZero() || c.zero.DType() == ir.F32 && stretchesTo(c.zero, c.q.Shape()))
}

// perColumn is a side of codes [K, N] as [1, N]; ok is false where it changes along K.
func perColumn(side ir.Value, n ir.Dim) (ir.Value, bool) {
	if side.IsZero() {
		return side, true
	}
	if side.Rank() == 2 && !side.Dim(0).Is(1) {
		return side, false
	}
	if ir.Count(side.Shape()).Is(1) {
		return op.Expand(op.Reshape(side, ir.D(1), ir.D(1)), ir.D(1), n), true
	}
	return op.Reshape(side, ir.D(1), n), true
}

func int8MatMulRule(m *Match) []ir.Value {
	if m.Row.Name != "MatMul" || m.Types[0].DType != ir.F32 || m.In[0].DType() != ir.F32 || m.In[1].Rank() != 2 || fixed(m.In[0]) != nil ||
		!m.native(op.DequantMatMulRow(), ir.F32) {
		return nil
	}
	c, ok := matrixOf(m.In[1])
	if !ok {
		return nil
	}
	k, known := c.q.Dim(0).Static()
	if !known || k < 1 {
		return nil
	}
	a := op.DequantMatMulAttrs{Scheme: "int8_block", BlockSize: k}
	if !c.zero.IsZero() {
		a.Scheme = "int8_block_asym"
	}
	if c.block != 0 {
		if a.BlockSize = c.block; c.axis != 0 || c.block < leastBlock {
			return nil
		}
		return []ir.Value{op.DequantMatMul(m.In[0], c.q, c.scale, c.zero, a)}
	}
	scale, okScale := perColumn(c.scale, c.q.Dim(1))
	zero, okZero := perColumn(c.zero, c.q.Dim(1))
	if !okScale || !okZero {
		return nil
	}
	return []ir.Value{op.DequantMatMul(m.In[0], c.q, scale, zero, a)}
}

// leastBlock is from how long blocks on codes and their sides take less than half of the memory of floats.
const leastBlock = 8

// int8GatherRule gathers codes, and the sides that differ along the axis, before they become floats.
func int8GatherRule(m *Match) []ir.Value {
	if m.Row.Name != "Gather" || !m.native(op.DequantMatMulRow(), ir.F32) || fixed(m.In[1]) != nil {
		return nil
	}
	c, ok := codesOf(m.In[0])
	if !ok || c.block != 0 || fixed(c.q) == nil { // a table that is transposed would be copied in every run
		return nil
	}
	axis, ok := ir.WrapAxis(m.Attrs.(*op.GatherAttrs).Axis, c.q.Rank())
	if !ok {
		return nil
	}
	y := op.Cast(op.Gather(c.q, m.In[1], axis), ir.F32)
	if !c.zero.IsZero() {
		y = op.Sub(y, gatheredSide(c.zero, m.In[1], axis, c.q.Rank()))
	}
	return []ir.Value{op.Mul(y, gatheredSide(c.scale, m.In[1], axis, c.q.Rank()))}
}

// gatheredSide is a side of codes of the given rank as it stands behind a Gather.
func gatheredSide(side, index ir.Value, axis, rank int) ir.Value {
	if ir.Count(side.Shape()).Is(1) {
		return op.Reshape(side)
	}
	shape := make([]ir.Dim, rank)
	for k := range shape {
		if shape[k] = ir.D(1); k >= rank-side.Rank() {
			shape[k] = side.Dim(k - rank + side.Rank())
		}
	}
	side = op.Reshape(side, shape...)
	if !shape[axis].Is(1) {
		return op.Gather(side, index, axis)
	}
	ones := make([]ir.Dim, index.Rank())
	for k := range ones {
		ones[k] = ir.D(1)
	}
	return op.Reshape(side, append(append(append([]ir.Dim{}, shape[:axis]...), ones...), shape[axis+1:]...)...)
}
