package pass

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Int8 keeps constant int8 weights int8: a product with them reads the codes, and rows of an embedding become floats when they are read. Every
// weight has the bits that folding would give it, and takes a quarter of the memory. It runs before folding makes floats of the codes, and
// only for targets with a kernel for such products.
var Int8 = Pass{Name: "int8", Rounds: true, Doc: "int8 weights stay int8 until they are used",
	Rules: []Rule{{"int8 matmul", int8MatMulRule}, {"int8 gather", int8GatherRule}}}

// codes is a constant weight (q - zero) * scale of f32; zero may be absent. Scale and zero broadcast to q.
type codes struct {
	q, scale, zero ir.Value
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

// dequantized is a Dequantize of one scale for all codes or for each entry of one axis.
func dequantized(v ir.Value) (c codes, ok bool) {
	n := v.Node()
	a := n.Attrs.(*op.DequantizeAttrs)
	c = codes{q: n.In[0], scale: n.In[1]}
	if len(n.In) > 2 {
		c.zero = n.In[2]
	}
	if a.BlockSize != 0 || fixed(c.scale) == nil || c.scale.DType() != ir.F32 || !c.zero.IsZero() && fixed(c.zero) == nil || !byteCodes.Has(c.q.DType()) {
		return c, false
	}
	if !c.zero.IsZero() {
		c.zero = op.Cast(c.zero, ir.F32)
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

func (c codes) fits() bool {
	return fixed(c.q) != nil && byteCodes.Has(c.q.DType()) && c.scale.DType() == ir.F32 && stretchesTo(c.scale, c.q.Shape()) &&
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
	c, ok := codesOf(m.In[1])
	if !ok {
		return nil
	}
	k, known := c.q.Dim(0).Static()
	scale, okScale := perColumn(c.scale, c.q.Dim(1))
	zero, okZero := perColumn(c.zero, c.q.Dim(1))
	if !known || k < 1 || !okScale || !okZero {
		return nil
	}
	a := op.DequantMatMulAttrs{Scheme: "int8_block", BlockSize: k}
	if !zero.IsZero() {
		a.Scheme = "int8_block_asym"
	}
	return []ir.Value{op.DequantMatMul(m.In[0], c.q, scale, zero, a)}
}

// int8GatherRule gathers codes, and the sides that differ along the axis, before they become floats.
func int8GatherRule(m *Match) []ir.Value {
	if m.Row.Name != "Gather" || !m.native(op.DequantMatMulRow(), ir.F32) || fixed(m.In[1]) != nil {
		return nil
	}
	c, ok := codesOf(m.In[0])
	if !ok {
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
