package op

import "github.com/rlx-ml/rlx-go/rlx/ir"

// joined is the concatenation of shapes in memory of its own.
func joined(parts ...[]ir.Dim) []ir.Dim {
	out := []ir.Dim{}
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func inferGather(t *ir.Infer, a *GatherAttrs) {
	x, index := t.Type(0), t.Type(1).Shape
	if k, ok := axisOf(t, a.Axis, len(x.Shape)); ok {
		t.Out(ir.Type{DType: x.DType, Shape: joined(x.Shape[:k], index, x.Shape[k+1:])})
	}
}

// tupleLength checks the last dim k of an index of tuples against the axes that it may name.
func tupleLength(t *ir.Infer, index []ir.Dim, axes int) (int, bool) {
	k, ok := index[len(index)-1].Static()
	ok = t.Need(ok && k >= 1 && k <= int64(axes), "C3", "index has shape %v, expected a last dim of 1 to %d", index, axes)
	return int(k), ok
}

func inferGatherNd(t *ir.Infer, a *GatherNdAttrs) {
	x, index, n := t.Type(0), t.Type(1).Shape, a.BatchDims
	if !t.Need(n >= 0 && n < min(len(x.Shape), len(index)), "C1", "batch_dims %d, expected fewer than the axes of x %v and index %v", n, x.Shape, index) ||
		!t.Need(same(x.Shape[:n], index[:n]), "C2", "x has shape %v and index %v, expected the first %d dims to be equal", x.Shape, index, n) {
		return
	}
	if k, ok := tupleLength(t, index, len(x.Shape)-n); ok {
		t.Out(ir.Type{DType: x.DType, Shape: joined(index[:len(index)-1], x.Shape[n+k:])})
	}
}

// inferAlong checks C9, C1 and C2 of the kinds that index elements along an axis.
func inferAlong(t *ir.Infer, axis int) bool {
	x, index := t.Type(0).Shape, t.Type(1).Shape
	if !t.Need(len(x) > 0, "C1", "x has rank 0, expected at least 1: no axis is in range (C9)") {
		return false
	}
	k, ok := axisOf(t, axis, len(x))
	if !ok || !t.Need(len(index) == len(x), "C1", "index has rank %d, expected %d as x", len(index), len(x)) {
		return false
	}
	for i := range x {
		have, okX := x[i].Static()
		got, okI := index[i].Static()
		if i != k && okX && okI && !t.Need(got <= have, "C2", "index has shape %v, expected at most %v off axis %d", index, x, axis) {
			return false
		}
	}
	return true
}

func inferGatherElements(t *ir.Infer, a *GatherAttrs) {
	if inferAlong(t, a.Axis) {
		t.Out(ir.Type{DType: t.Type(0).DType, Shape: t.Type(1).Shape})
	}
}

func inferScatterAdd(t *ir.Infer, a *SegmentAttrs) {
	u, index := t.Type(0), t.Type(1).Shape
	k, ok := axisOf(t, a.Axis, len(u.Shape))
	if !ok || !t.Need(len(index) == 1 && !index[0].Differs(u.Shape[k]), "C1", "index has shape %v, expected [%s]", index, u.Shape[k]) {
		return
	}
	out := withDim(u.Shape, k, ir.D(a.Size))
	if t.Has(2) {
		t.Need(same(t.Type(2).Shape, out), "C2", "base has shape %v, expected %v", t.Type(2).Shape, out)
	}
	t.Out(ir.Type{DType: u.DType, Shape: out})
}

// needNumeric checks C4's second half: what combines must be a number.
func needNumeric(t *ir.Infer, r ScatterReduction) bool {
	d := t.Type(0).DType
	return t.Need(r == ScatterNone || ir.Numeric.Has(d), "C4", "reduction %s of dtype %s, expected one of %s", string(r), d, ir.Numeric)
}

func inferScatterNd(t *ir.Infer, a *ScatterNdAttrs) {
	x, index, u := t.Type(0), t.Type(1).Shape, t.Type(2).Shape
	if !t.Need(len(index) > 0, "C1", "index has rank 0, expected at least 1") {
		return
	}
	k, ok := tupleLength(t, index, len(x.Shape))
	if !ok {
		return
	}
	want := joined(index[:len(index)-1], x.Shape[k:])
	t.Need(same(u, want), "C2", "updates have shape %v, expected %v", u, want)
	needNumeric(t, a.Reduction)
	t.Out(x)
}

func inferScatterElements(t *ir.Infer, a *ScatterElementsAttrs) {
	index, u := t.Type(1).Shape, t.Type(2).Shape
	if !inferAlong(t, a.Axis) || !t.Need(same(index, u), "C3", "updates have shape %v, expected %v as index", u, index) {
		return
	}
	needNumeric(t, a.Reduction)
	t.Out(t.Type(0))
}

func inferGatherBackward(t *ir.Infer, a *SegmentAttrs) {
	dy, index := t.Type(0), t.Type(1).Shape
	rank := len(dy.Shape) - len(index) + 1
	if !t.Need(rank >= 1, "C1", "dy has shape %v, expected one that holds index's %v", dy.Shape, index) {
		return
	}
	k, ok := axisOf(t, a.Axis, rank)
	if !ok || !t.Need(same(dy.Shape[k:k+len(index)], index), "C1", "dy has shape %v, expected index's %v at axis %d", dy.Shape, index, k) {
		return
	}
	t.Out(ir.Type{DType: dy.DType, Shape: joined(dy.Shape[:k], ir.Dims(a.Size), dy.Shape[k+len(index):])})
}

func inferKvAppend(t *ir.Infer, a *KvAppendAttrs) {
	cache, rows := t.Type(0), t.Type(1).Shape
	k, ok := axisOf(t, a.Axis, len(cache.Shape))
	if !ok || !t.Need(len(rows) == len(cache.Shape), "C1", "rows have rank %d, expected %d as the cache", len(rows), len(cache.Shape)) {
		return
	}
	fit := withDim(cache.Shape, k, rows[k])
	t.Need(same(rows, fit), "C1", "rows have shape %v, expected %v", rows, fit)
	t.Need(t.Has(2) != (a.Position != nil), "C2", "position is given %s, expected an operand or an attribute", map[bool]string{false: "nowhere", true: "twice"}[t.Has(2)])
	if t.Has(2) {
		p := t.Type(2).Shape
		ok := len(p) == 0 || len(p) == 1 && (!p[0].Differs(ir.D(1)) || k != 0 && !p[0].Differs(cache.Shape[0]))
		t.Need(ok, "C3", "position has shape %v, expected one element or [%s]", p, cache.Shape[0])
	} else if a.Position != nil {
		capacity, okC := cache.Shape[k].Static()
		n, okN := rows[k].Static()
		t.Need(*a.Position >= 0 && !(okC && okN && *a.Position > capacity-n), "C4",
			"position %d and %s rows, expected a place within the cache of %s", *a.Position, rows[k], cache.Shape[k])
	}
	t.Out(cache)
}

func inferOneHot(t *ir.Infer, a *OneHotAttrs) {
	index := t.Type(0).Shape
	k, ok := axisOf(t, a.Axis, len(index)+1)
	if !ok {
		return
	}
	t.Need((ir.Real | ir.Set(ir.Bool)).Has(a.Dtype), "", "dtype %s, expected one of %s", a.Dtype, ir.Real|ir.Set(ir.Bool))
	t.Out(ir.Type{DType: a.Dtype, Shape: joined(index[:k], ir.Dims(a.Depth), index[k:])})
}
