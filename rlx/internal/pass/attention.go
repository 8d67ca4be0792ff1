package pass

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Attention finds softmax(scale * q k^T + mask) v in the ways that exporters write it. Scores are never kept: memory falls from Sq*Sk to a row.
// NaN scores and fully masked rows come out as the parts have them, with and without the guard that turns NaN probabilities into 0. One
// corner differs: a row whose products q k^T are all -inf by themselves, by overflow or by infinities in q and k, gives 0 where the
// unguarded parts give NaN.
// Products of f16 stay: their scores may overflow where those of Attention, which are f32, do not.
var Attention = Pass{Name: "attention", Rounds: true, Doc: "softmax(scale * q k^T + mask) v that is spelled out becomes one node",
	Rules: []Rule{{"attention", attentionRule}, {"attention_layout", attentionLayout}}}

// scores is what stands in front of a softmax.
type scores struct {
	q       ir.Value
	k       permuted // [.., Sk, D]
	scale   float64
	biases  []ir.Value // added
	keep    ir.Value   // bool, may be absent: keys to keep, or to drop with inverse
	inverse bool
	guarded bool // NaN probabilities become 0
}

// permuted is x with its axes permuted, not written yet.
type permuted struct {
	x    ir.Value
	perm []int
}

func (p permuted) dim(k int) ir.Dim { return p.x.Dim(p.perm[k]) }

func (p permuted) heads() []ir.Dim {
	var s []ir.Dim
	for _, k := range p.perm[:len(p.perm)-2] {
		s = append(s, p.x.Dim(k))
	}
	return s
}

func (p permuted) value() ir.Value {
	for k, at := range p.perm {
		if k != at {
			return op.Transpose(p.x, p.perm...)
		}
	}
	return p.x
}

func attentionRule(m *Match) []ir.Value {
	t := m.Types[0]
	if m.Row.Name != "MatMul" || t.DType != m.In[0].DType() || !attended.Has(t.DType) || !m.native(op.AttentionRow(), t.DType) {
		return nil
	}
	p, v := m.In[0], m.In[1]
	if rank := p.Rank(); rank < 2 || rank > 4 || v.Rank() != rank {
		return nil
	}
	soft, guarded := m.guardedSoftmax(p)
	if soft.IsZero() {
		return nil
	}
	s := scores{scale: 1, guarded: guarded}
	if !m.readScores(&s, soft.Node().In[0]) || !s.fits(v, t) {
		return nil
	}
	return []ir.Value{s.build(v, t)}
}

var attended = ir.Set(ir.F32, ir.F64, ir.BF16)

// attentionLayout writes the heads of a token side by side where the result is turned that way, as a projection of it wants them.
func attentionLayout(m *Match) []ir.Value {
	y, ok := headsTurned(m.Out(0))
	if !ok || !isKind(y, "Attention") || !m.Single(y) || !m.native(op.AttentionRow(), y.DType()) || !m.Support.StridedRow(op.AttentionRow(), y.DType()) {
		return nil
	}
	in, a := y.Node().In, *y.Node().Attrs.(*op.AttentionAttrs)
	if a.Layout != "bhsd" {
		return nil
	}
	a.Layout = "bshd"
	turned := func(v ir.Value) ir.Value {
		if x, ok := headsTurned(v); ok {
			return x
		}
		return op.Transpose(v, 0, 2, 1, 3)
	}
	return []ir.Value{op.Attention(turned(in[0]), turned(in[1]), turned(in[2]), in[3], in[4], a)}
}

// headsTurned is x [B, H, S, D] where v is it as [B, S, H, D], or the other way round.
func headsTurned(v ir.Value) (x ir.Value, ok bool) {
	x, perm, ok := asTranspose(v)
	return x, ok && slices.Equal(perm, []int{0, 2, 1, 3})
}

// guardedSoftmax is the softmax along the last axis that p is, or that it is where that is not NaN and 0 elsewhere.
func (m *Match) guardedSoftmax(p ir.Value) (soft ir.Value, guarded bool) {
	if !m.Single(p) {
		return soft, false
	}
	soft, readers := p, 1
	if isKind(p, "Where") {
		in := p.Node().In
		zero, x := in[1], in[2]
		nan, ok := asUnary(in[0], "is_nan")
		if c, is := number(zero); !ok || !is || c != 0 || math.Signbit(c) || nan != x || !m.Single(in[0]) {
			return ir.Value{}, false
		}
		soft, guarded, readers = x, true, 2
	}
	if !isKind(soft, "Softmax") || m.uses[soft] > readers {
		return ir.Value{}, false
	}
	axis, ok := ir.WrapAxis(soft.Node().Attrs.(*op.SoftmaxAttrs).Axis, soft.Rank())
	if !ok || axis != soft.Rank()-1 {
		return ir.Value{}, false
	}
	return soft, guarded
}

// readScores takes s apart: masks first, then the scale, then the product.
func (m *Match) readScores(r *scores, s ir.Value) bool {
	shape := s.Shape()
	for m.Single(s) && slices.Equal(s.Shape(), shape) {
		if isKind(s, "MatMul") {
			return r.readProduct(s)
		}
		if x, c, ok := timesNumber(s); ok {
			r.scale, s = r.scale*c, x
			continue
		}
		inner, ok := m.masked(r, s)
		if !ok || r.scale != 1 { // a mask would be scaled too
			return false
		}
		s = inner
	}
	return false
}

// masked takes one mask off s and gives what it masks.
func (m *Match) masked(r *scores, s ir.Value) (inner ir.Value, ok bool) {
	if a, b, is := asBinary(s, "add"); is {
		if !m.leadsToProduct(a) {
			a, b = b, a
		}
		r.biases = append(r.biases, b)
		return a, m.leadsToProduct(a)
	}
	if !isKind(s, "Where") || len(r.biases) > 0 || !r.keep.IsZero() {
		return s, false
	}
	in := s.Node().In
	inner, fill := in[1], in[2]
	if !m.leadsToProduct(inner) {
		inner, fill, r.inverse = in[2], in[1], true
	}
	c, is := number(fill)
	if !is || !m.leadsToProduct(inner) {
		return s, false
	}
	// Attention gives 0 for a row without keys, where a finite number in place of its scores gives a mean over them. So every row must have a
	// key, unless the guard does the same, and the number must be so low that other keys have no weight beside it.
	r.keep = in[0]
	open := func(x float64) bool { return (x != 0) != r.inverse }
	return inner, r.guarded && math.IsInf(c, -1) || c <= -largest(s.DType()) && openRows(fixed(unexpanded(in[0])), open)
}

// unexpanded is v without broadcasts, which leave the rows of a mask as they are.
func unexpanded(v ir.Value) ir.Value {
	for isKind(v, "Expand") && v.Rank() == v.Node().In[0].Rank() && v.Dim(v.Rank()-1) == v.Node().In[0].Dim(v.Rank()-1) {
		v = v.Node().In[0]
	}
	return v
}

// leadsToProduct says whether v is a product, perhaps scaled and masked, that nothing else reads.
func (m *Match) leadsToProduct(v ir.Value) bool {
	for range 8 {
		if v.IsZero() || !m.Single(v) {
			return false
		}
		if isKind(v, "MatMul") {
			return true
		}
		x, _, ok := timesNumber(v)
		switch {
		case ok:
			v = x
		case isKind(v, "Where"):
			if _, is := number(v.Node().In[1]); is {
				v = v.Node().In[2]
			} else {
				v = v.Node().In[1]
			}
		default:
			a, b, is := asBinary(v, "add")
			if !is {
				return false
			}
			if v = a; !m.leadsToProduct(a) {
				v = b
			}
		}
	}
	return false
}

// readProduct reads q k^T with factors on either side, in front of the transposition or behind it.
func (r *scores) readProduct(s ir.Value) bool {
	q, kt := s.Node().In[0], s.Node().In[1]
	if q.Rank() != s.Rank() || kt.Rank() != s.Rank() || q.DType() != s.DType() || kt.DType() != s.DType() {
		return false
	}
	r.unscale(&q)
	r.unscale(&kt)
	r.q, r.k = q, transposed(kt)
	r.unscale(&r.k.x)
	return r.scale != 0 && !math.IsInf(r.scale, 0) && !math.IsNaN(r.scale)
}

func (r *scores) unscale(v *ir.Value) {
	if x, c, ok := timesNumber(*v); ok {
		*v, r.scale = x, r.scale*c
	}
}

// transposed is v with its last two axes exchanged: what v is the transposition of, where it is one.
func transposed(v ir.Value) permuted {
	rank := v.Rank()
	x, perm, ok := asTranspose(v)
	if !ok {
		x, perm = v, make([]int, rank)
		for k := range perm {
			perm[k] = k
		}
	}
	perm[rank-2], perm[rank-1] = perm[rank-1], perm[rank-2]
	if y, ok := transposedBetweenReshapes(v); ok {
		x, perm[rank-2], perm[rank-1] = y, rank-2, rank-1
	}
	return permuted{x, perm}
}

// transposedBetweenReshapes is x [.., S, D] where v is its transposition by way of [N, S, D] and [N, D, S].
func transposedBetweenReshapes(v ir.Value) (x ir.Value, ok bool) {
	if !isKind(v, "Reshape") || v.Rank() < 3 {
		return x, false
	}
	y, perm, ok := asTranspose(v.Node().In[0])
	if !ok || !slices.Equal(perm, []int{0, 2, 1}) || !isKind(y, "Reshape") {
		return x, false
	}
	x = y.Node().In[0]
	at := v.Rank() - 2
	return x, x.Rank() == v.Rank() && slices.Equal(x.Shape()[:at], v.Shape()[:at]) && x.Dim(at) == v.Dim(at+1) && x.Dim(at+1) == v.Dim(at) &&
		y.Dim(1) == x.Dim(at) && y.Dim(2) == x.Dim(at+1)
}

// fits says whether the shapes are those of an Attention: one batch, as many heads of v as of k, one or as many as of q, and masks that stretch no
// result.
func (r *scores) fits(v ir.Value, t ir.Type) bool {
	rank := r.q.Rank()
	keys := r.k.dim(rank - 2)
	if !slices.Equal(r.k.heads(), v.Shape()[:rank-2]) || keys != v.Dim(rank-2) || r.q.Dim(rank-1) != r.k.dim(rank-1) {
		return false
	}
	for k, d := range r.k.heads() {
		if d != r.q.Dim(k) && !(rank == 4 && k == 1 && d.Is(1)) || r.q.Dim(k) != t.Shape[k] {
			return false
		}
	}
	all := append(slices.Clone(r.q.Shape()[:rank-1]), keys)
	for _, b := range r.biases {
		if b.DType() != t.DType || b.Rank() == 0 || !stretchesTo(b, all) {
			return false
		}
	}
	return r.keep.IsZero() || len(r.biases) == 0 && stretchesTo(r.keep, all)
}

// stretchesTo says whether v broadcasts one way to the shape.
func stretchesTo(v ir.Value, shape []ir.Dim) bool {
	if v.Rank() > len(shape) {
		return false
	}
	for k, d := range v.Shape() {
		if d != shape[len(shape)-v.Rank()+k] && !d.Is(1) {
			return false
		}
	}
	return true
}

// mask is the mask for which Attention gives what the softmax gives: a row of -inf gives NaN there, unless the guard makes it 0.
func (r *scores) mask() ir.Value {
	if r.inverse {
		return op.LogicalNot(r.keep)
	}
	if len(r.biases) == 0 {
		return r.keep
	}
	sum, lo, finite := r.biases[0], 0.0, true
	for i, b := range r.biases {
		l, _, ok := extent(b)
		lo, finite = lo+l, finite && ok
		if i > 0 {
			sum = op.Add(b, sum)
		}
	}
	open := func(x float64) bool { return !math.IsInf(x, -1) }
	if r.guarded || finite && lo >= -largest(sum.DType()) || len(r.biases) == 1 && openRows(fixed(unexpanded(sum)), open) {
		return sum
	}
	top := op.Reduce(sum, "max", []int{-1}, true)
	return op.Where(op.Eq(top, math.Inf(-1)), math.NaN(), sum)
}

// openRows says whether every row of a constant mask has an element for which open holds.
func openRows(t *ir.Tensor, open func(float64) bool) bool {
	if t == nil || len(t.Shape()) == 0 || t.Len() == 0 || t.Len() > scanned {
		return false
	}
	n := int(t.Shape()[len(t.Shape())-1])
	for row := 0; row < t.Len(); row += n {
		any := false
		for i := row; i < row+n && !any; i++ {
			any = open(t.Float(i))
		}
		if !any {
			return false
		}
	}
	return true
}

// build writes the node, in four axes.
func (r *scores) build(v ir.Value, t ir.Type) ir.Value {
	q, k, mask := r.q, r.k.value(), r.mask()
	if base, ok := unrepeated(k); ok {
		if other, ok := unrepeated(v); ok && other.Dim(1) == base.Dim(1) {
			k, v = base, other
		}
	}
	if !mask.IsZero() && mask.Rank() > 2 && q.Rank() == 3 {
		mask = fourAxes(mask)
	}
	q4, k4, v4 := fourAxes(q), fourAxes(k), fourAxes(v)
	y := op.Attention(q4, k4, v4, mask, ir.Value{}, op.AttentionAttrs{Scale: r.scale})
	if r.guarded {
		y = guard(y, v4)
	}
	if y.Rank() != len(t.Shape) {
		y = op.Reshape(y, t.Shape...)
	}
	return y
}

// fourAxes is x [S, D] or [B, S, D] with batch and heads.
func fourAxes(x ir.Value) ir.Value {
	s := x.Shape()
	switch len(s) {
	case 2:
		return op.Reshape(x, ir.D(1), ir.D(1), s[0], s[1])
	case 3:
		return op.Reshape(x, s[0], ir.D(1), s[1], s[2])
	}
	return x
}

// guard gives rows of NaN and of masked keys what probabilities of 0 give: 0 in the columns of v that are finite, NaN in others. A row of
// probabilities is finite in no other column, so that a finite result there tells a masked row, and an infinite one is right.
func guard(y, v ir.Value) ir.Value {
	zeros := op.Reduce(op.Mul(v, 0), "sum", []int{-2}, true)
	if h := y.Dim(1); v.Dim(1) != h && !v.Dim(1).Is(1) {
		s := v.Shape()
		zeros = op.Reshape(zeros, s[0], s[1], ir.D(1), ir.D(1), s[3])
		zeros = op.Expand(zeros, s[0], s[1], h.FloorDiv(s[1]), ir.D(1), s[3])
		zeros = op.Reshape(zeros, s[0], h, ir.D(1), s[3])
	}
	return op.Where(op.IsNaN(y), op.Add(zeros, 0), op.Where(op.IsInf(y), y, op.Add(y, zeros)))
}

// unrepeated is x [B, Hkv, S, D] where v is it with every head written n times: [B, Hkv*n, S, D].
func unrepeated(v ir.Value) (x ir.Value, ok bool) {
	if v.Rank() != 4 || !isKind(v, "Reshape") || !isKind(v.Node().In[0], "Expand") {
		return x, false
	}
	e := v.Node().In[0]
	u := e.Node().In[0]
	if e.Rank() != 5 || u.Rank() != 5 || !u.Dim(2).Is(1) || e.Dim(0) != v.Dim(0) || e.Dim(3) != v.Dim(2) || e.Dim(4) != v.Dim(3) {
		return x, false
	}
	for _, k := range []int{0, 1, 3, 4} {
		if u.Dim(k) != e.Dim(k) {
			return x, false
		}
	}
	if x = u.Node().In[0]; isKind(u, "Reshape") && x.Rank() == 4 && x.Dim(1) == u.Dim(1) && x.Dim(2) == u.Dim(3) && x.Dim(3) == u.Dim(4) {
		return x, true
	}
	return op.Reshape(u, u.Dim(0), u.Dim(1), u.Dim(3), u.Dim(4)), true
}
