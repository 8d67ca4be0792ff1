package op

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// splitHeads is x of the given layout as [B, H, S, D].
func splitHeads(x ir.Value, layout HeadLayout, count int64) ir.Value {
	switch s := x.Shape(); layout {
	case "bshd":
		return Transpose(x, 0, 2, 1, 3)
	case "bsd":
		h := ir.D(count)
		return Transpose(Reshape(x, s[0], s[1], h, s[2].FloorDiv(h)), 0, 2, 1, 3)
	}
	return x
}

// mergeHeads is x [B, H, S, D] in the given layout, where it has shape.
func mergeHeads(x ir.Value, layout HeadLayout, shape []ir.Dim) ir.Value {
	if layout == "bhsd" {
		return x
	}
	return Reshape(Transpose(x, 0, 2, 1, 3), shape...)
}

// scores is what the parts of a decomposed Attention share.
type scores struct {
	a      *AttentionAttrs
	b, h   int64 // batch, query heads
	sq, sk int64
	n      ir.Value // [B, 1, 1, 1] valid keys, i64; zero where all are
	key    ir.Value // [Sk] 0, 1, ...; zero until asked for
}

func decomposeAttention(n *ir.Node, a *AttentionAttrs) []ir.Value {
	out := n.Types[0]
	q, k, v := splitHeads(widen(n.In[0]), a.Layout, a.NumHeads), splitHeads(widen(n.In[1]), a.Layout, a.KvHeads()), splitHeads(widen(n.In[2]), a.Layout, a.KvHeads())
	dims, _ := ir.StaticShape(q.Shape())
	kv, _ := ir.StaticShape(v.Shape())
	s := &scores{a: a, b: dims[0], h: dims[1], sq: dims[2], sk: kv[2]}
	g := q.Graph()
	if n.In[4].IsZero() {
		if s.b*s.h*s.sq*s.sk*kv[3] == 0 {
			zero := narrow(g.Constant(ir.Scalar(float32(0))), out.DType)
			return []ir.Value{Expand(zero, out.Shape...)}
		}
	} else if s.n = s.lengths(n.In[4]); s.sk == 0 {
		return nil // the lengths must be checked, and the greatest of no scores is an error
	} else { // what lies behind the valid keys may be anything
		v = Where(Reshape(Lt(s.keys(g), s.n), ir.Dims(s.b, 1, s.sk, 1)...), v, 0.0)
	}
	y := s.apply(q, k, v, n.In[3], dims[3])
	return []ir.Value{narrow(mergeHeads(y, a.Layout, out.Shape), out.DType)}
}

// lengths is kvLen [B] as i64 [B, 1, 1, 1]; a length outside 0..Sk fails, as an index.
func (s *scores) lengths(kvLen ir.Value) ir.Value {
	n := Cast(kvLen, ir.I64)
	at := Where(Lt(n, 0), s.sk+1, n)
	return ReshapeInts(Gather(Iota(n.Graph(), s.sk+1, ir.I64), at, 0), s.b, 1, 1, 1)
}

func (s *scores) keys(g *ir.Graph) ir.Value {
	if s.key.IsZero() {
		s.key = Iota(g, s.sk, ir.I64)
	}
	return s.key
}

// apply is softmax(scores) v. Query heads that share a kv head meet it by broadcasting.
func (s *scores) apply(q, k, v, mask ir.Value, d int64) ir.Value {
	kvHeads, _ := k.Dim(1).Static()
	width, _ := v.Dim(3).Static()
	shared := func(x ir.Value, last int64) ir.Value { return ReshapeInts(x, s.b, kvHeads, 1, s.sk, last) }
	qs := ReshapeInts(q, s.b, kvHeads, s.h/kvHeads, s.sq, d)
	z := ReshapeInts(MatMul(qs, Transpose(shared(k, d), 0, 1, 2, 4, 3)), s.b, s.h, s.sq, s.sk)
	z = Mul(z, attentionScale(s.a.Scale, d))
	if c := s.a.Softcap; c > 0 {
		z = Mul(Tanh(Div(z, c)), c)
	}
	keep := s.keep(q.Graph())
	if !mask.IsZero() && mask.DType() == ir.Bool {
		keep = both(keep, mask)
	} else if !mask.IsZero() {
		z = addBias(z, mask, keep)
	}
	if !keep.IsZero() {
		z = Where(keep, z, math.Inf(-1))
	}
	empty := Eq(Reduce(z, "max", []int{-1}, true), math.Inf(-1))
	p := ReshapeInts(Where(empty, 0.0, Softmax(z, -1)), s.b, kvHeads, s.h/kvHeads, s.sq, s.sk)
	return ReshapeInts(MatMul(p, shared(v, width)), s.b, s.h, s.sq, width)
}

func attentionScale(scale float64, d int64) float64 {
	if scale == 0 {
		return 1 / math.Sqrt(float64(max(d, 1)))
	}
	return scale
}

// addBias is z + bias as f64 would add them, less the greatest kept bias of each row, which changes no probability: in f32 a bias of
// -1e9 on a whole row would take the digits of its scores. One of -1e30 does so in f64 too, and the keys share the row alike. Rows whose
// greatest bias is not finite just add.
func addBias(z, mask, keep ir.Value) ir.Value {
	bias := Cast(mask, z.DType())
	if z.DType() == ir.F64 {
		return Add(z, bias)
	}
	if bias.Rank() == 0 {
		bias = ReshapeInts(bias, 1)
	}
	kept := bias
	if !keep.IsZero() {
		kept = Where(keep, bias, math.Inf(-1))
	}
	top := Reduce(kept, "max", []int{-1}, true)
	top = Where(IsFinite(top), top, 0.0)
	digits := Mul(top, 0x1.8p-29) // the f32 whose last place is that of top in f64: adding it rounds z there
	return Add(Sub(Add(z, digits), digits), Sub(bias, top))
}

func both(a, b ir.Value) ir.Value {
	if a.IsZero() {
		return b
	}
	return LogicalAnd(a, b)
}

// keep is what kv_len and the positional mask keep, to broadcast over [B, H, Sq, Sk]; zero where that is all.
func (s *scores) keep(g *ir.Graph) ir.Value {
	var keep ir.Value
	if !s.n.IsZero() {
		keep = Lt(s.keys(g), s.n)
	}
	if s.a.Mask == "none" {
		return keep
	}
	at := ReshapeInts(Iota(g, s.sq, ir.I64), s.sq, 1)
	switch {
	case s.a.Align == "top_left":
	case s.n.IsZero():
		at = Add(at, s.sk-s.sq)
	default:
		at = Add(at, Sub(s.n, s.sq))
	}
	keep = both(keep, Le(s.keys(g), at))
	if s.a.Mask == "sliding_window" {
		window := min(*s.a.Window, s.sq+s.sk) // which is all of them
		keep = LogicalAnd(keep, Ge(s.keys(g), Sub(at, window)))
	}
	return keep
}
