package op

import (
	"cmp"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// HeadLayout says which axes of a tensor are batch, heads, sequence and head size: "bhsd" [B, H, S, D], "bshd" [B, S, H, D], "bsd"
// [B, S, H*D] with the heads one after the other.
type HeadLayout string

// EnumValues lists the layouts.
func (HeadLayout) EnumValues() []string { return []string{"bhsd", "bshd", "bsd"} }

// AttentionMask is the positional mask of Attention.
type AttentionMask string

// EnumValues lists the masks.
func (AttentionMask) EnumValues() []string { return []string{"none", "causal", "sliding_window"} }

// AttentionAlign says where the queries stand among the keys: the last query at the last valid key, or the first at the first.
type AttentionAlign string

// EnumValues lists the alignments.
func (AttentionAlign) EnumValues() []string { return []string{"bottom_right", "top_left"} }

// AttentionAttrs are the attributes of Attention. A Window of w keeps w + 1 keys: the query's own position and w before it. A Scale
// of 0 means 1/sqrt(D), a Softcap of 0 none, NumKvHeads of 0 NumHeads; the head counts are for layout bsd alone.
type AttentionAttrs struct {
	Mask       AttentionMask  `default:"none" c:"C7"`
	Window     *int64         `default:"nil" min:"0" c:"C7"`
	Align      AttentionAlign `default:"bottom_right" c:"C7"`
	Scale      float64        `default:"0"`
	Softcap    float64        `default:"0" min:"0" c:"C6"`
	Layout     HeadLayout     `default:"bhsd" c:"C1"`
	NumHeads   int64          `default:"0" min:"0" c:"C1"`
	NumKvHeads int64          `default:"0" min:"0" c:"C1"`
}

func (a AttentionAttrs) filled() AttentionAttrs {
	a.Mask, a.Align, a.Layout = cmp.Or(a.Mask, "none"), cmp.Or(a.Align, "bottom_right"), cmp.Or(a.Layout, "bhsd")
	return a
}

// KvHeads is the number of kv heads in layout bsd.
func (a *AttentionAttrs) KvHeads() int64 { return cmp.Or(a.NumKvHeads, a.NumHeads) }

var attention = ir.Declare[AttentionAttrs]("attention", "Attention")

// Attention is y = p v with p = softmax(mask(softcap(scale * q k^T) + bias)), for each batch item and query head.
//
// Shapes, in layout bhsd: q [B, H, Sq, D], k [B, Hkv, Sk, D], v [B, Hkv, Sk, Dv], y [B, H, Sq, Dv]; query head h reads kv head
// h / (H/Hkv). attnMask broadcasts to [B, H, Sq, Sk]: bool keeps the keys that are true, a float is added to the scores. kvLen [B] is
// the number of valid keys; those behind it are never read. Both may be the zero Value. Query i stands at i (top_left) or at
// n - Sq + i (bottom_right, n the valid keys); causal keeps keys up to it. A row without keys gives zeros, a NaN score NaN.
// Dtypes: floats, the same for q, k, v and y; a float attnMask is of that dtype or f32; kvLen i32 or i64. f16 and bf16 compute in
// f32. In a, an empty Mask, Align or Layout is its default.
// Errors: C1 layout, ranks, head counts, C2 sizes disagree, C3 Hkv does not divide H, C4 attnMask, C5 kvLen outside 0..Sk, C6
// softcap < 0, C7 mask, align, window. Source: Vaswani et al. 2017; ONNX Attention 23; torch scaled_dot_product_attention.
func Attention(q, k, v, attnMask, kvLen ir.Value, a AttentionAttrs) ir.Value {
	return attention.Apply1(a.filled(), q, k, v, attnMask, kvLen)
}

func init() {
	attention.Define(ir.Def[AttentionAttrs]{
		Doc: "softmax(scale * q k^T, capped, biased, masked) v",
		In: []ir.Operand{ir.In("q", ir.Float), ir.In("k", ir.Float), ir.In("v", ir.Float), ir.Opt("attn_mask", ir.Float|ir.Set(ir.Bool)),
			ir.Opt("kv_len", ir.Set(ir.I32, ir.I64))},
		Bits:      ir.Fused,
		DTypeC:    "C2",
		SameC:     "C2",
		Infer:     inferAttention,
		Decompose: decomposeAttention,
		Tol:       ir.Tolerance{Ulp: 64, Abs: 1e-6},
	})
}

// heads is the shape [B, H, S, D] of operand i in the given layout.
func heads(t *ir.Infer, i int, name string, layout HeadLayout, count int64) (s [4]ir.Dim, ok bool) {
	x, rank := t.Type(i).Shape, 4
	if layout == "bsd" {
		rank = 3
	}
	if !t.Need(len(x) == rank, "C1", "%s has shape %v, expected rank %d in layout %s", name, x, rank, layout) {
		return s, false
	}
	switch layout {
	case "bshd":
		return [4]ir.Dim{x[0], x[2], x[1], x[3]}, true
	case "bsd":
		if !t.Need(count >= 1, "C1", "layout bsd with %d heads, expected 1 or more", count) {
			return s, false
		}
		h := ir.D(count)
		n, static := x[2].Static()
		if !t.Need(!static || n%count == 0, "C1", "%s has width %d, expected a multiple of %d heads", name, n, count) {
			return s, false
		}
		return [4]ir.Dim{x[0], h, x[1], x[2].FloorDiv(h)}, true
	}
	return [4]ir.Dim{x[0], x[1], x[2], x[3]}, true
}

// joinHeads is the shape of [B, H, S, D] in the given layout.
func joinHeads(s [4]ir.Dim, layout HeadLayout) []ir.Dim {
	switch layout {
	case "bshd":
		return []ir.Dim{s[0], s[2], s[1], s[3]}
	case "bsd":
		return []ir.Dim{s[0], s[2], s[1].Mul(s[3])}
	}
	return s[:]
}

func inferAttention(t *ir.Infer, a *AttentionAttrs) {
	q, okQ := heads(t, 0, "q", a.Layout, a.NumHeads)
	k, okK := heads(t, 1, "k", a.Layout, a.KvHeads())
	v, okV := heads(t, 2, "v", a.Layout, a.KvHeads())
	if !okQ || !okK || !okV {
		return
	}
	t.Need(!q[0].Differs(k[0]) && !q[0].Differs(v[0]), "C2", "batches of q, k and v are %s, %s and %s, expected equal ones", q[0], k[0], v[0])
	t.Need(!k[1].Differs(v[1]), "C2", "k has %s heads and v %s, expected as many", k[1], v[1])
	t.Need(!k[2].Differs(v[2]), "C2", "k has %s keys and v %s, expected as many", k[2], v[2])
	t.Need(!q[3].Differs(k[3]), "C2", "head sizes of q and k are %s and %s, expected equal ones", q[3], k[3])
	h, staticH := q[1].Static()
	g, staticG := k[1].Static()
	t.Need(!staticG || g >= 1 && (!staticH || h%g == 0), "C3", "%s query heads on %s kv heads, expected a multiple", q[1], k[1])
	if t.Has(3) {
		needAttnMask(t, []ir.Dim{q[0], q[1], q[2], k[2]})
	}
	if t.Has(4) {
		t.Need(same(t.Type(4).Shape, q[:1]), "C5", "kv_len has shape %v, expected %v", t.Type(4).Shape, q[:1])
	}
	t.Need(a.Softcap >= 0, "C6", "softcap %g, expected >= 0", a.Softcap)
	t.Need(a.Mask != "sliding_window" || a.Window != nil, "C7", "mask sliding_window without window, expected window >= 0")
	t.Out(ir.Type{DType: t.Type(0).DType, Shape: joinHeads([4]ir.Dim{q[0], q[1], q[2], v[3]}, a.Layout)})
}

// needAttnMask checks constraint C4 of operand 3 against the shape of the scores.
func needAttnMask(t *ir.Infer, scores []ir.Dim) {
	m, d := t.Type(3), t.Type(0).DType
	t.Need(m.DType == ir.Bool || m.DType == ir.F32 || m.DType == d, "C4", "attn_mask has dtype %s, expected one of bool f32 %s", m.DType, d)
	t.Need(broadcasts(m.Shape, scores), "C4", "attn_mask has shape %v, expected one that broadcasts to %v", m.Shape, scores)
}
