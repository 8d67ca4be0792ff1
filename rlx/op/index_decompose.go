package op

import "github.com/rlx-ml/rlx-go/rlx/ir"

// computable says that indices of dtype d can be computed with in i64. Those encoded as f32 may be no integers and u64 may be beyond
// i64: kernels refuse them by value, which arithmetic would hide.
func computable(d ir.DType) bool { return ir.Int.Has(d) && d != ir.U64 }

// along is v, of rank 1, placed on axis k of rank axes, to broadcast along the others.
func along(v ir.Value, k, rank int) ir.Value {
	shape := make([]ir.Dim, rank)
	for i := range shape {
		shape[i] = ir.D(1)
	}
	shape[k] = v.Dim(0)
	return Reshape(v, shape...)
}

// flatIndex adds up coordinates times strides over the leading axes dims. Negative coordinates count from the end; a coordinate out
// of range makes the index dims' product, which is out of range too, so that it never lands on another element.
type flatIndex struct {
	sum, bad ir.Value
}

func (f *flatIndex) add(v ir.Value, stride int64) {
	if stride != 1 {
		v = Mul(v, stride)
	}
	if f.sum.IsZero() {
		f.sum = v
	} else {
		f.sum = Add(f.sum, v)
	}
}

// index adds a coordinate that is data, along a length d.
func (f *flatIndex) index(v ir.Value, d, stride int64) {
	v = Cast(v, ir.I64)
	v = Where(Lt(v, 0), Add(v, d), v)
	bad := LogicalOr(Lt(v, 0), Ge(v, d))
	if f.bad.IsZero() {
		f.bad = bad
	} else {
		f.bad = LogicalOr(f.bad, bad)
	}
	f.add(v, stride)
}

func (f *flatIndex) result(total int64) ir.Value {
	beyond := ir.Scalar(total)
	return Where(f.bad, f.sum.Graph().Constant(beyond), f.sum)
}

func decomposeGatherNd(n *ir.Node, a *GatherNdAttrs) []ir.Value {
	x, index := n.In[0], n.In[1]
	if !computable(index.DType()) {
		return nil
	}
	shape, _ := ir.StaticShape(x.Shape())
	ishape, _ := ir.StaticShape(index.Shape())
	q, b := len(ishape)-1, a.BatchDims
	lead := b + int(ishape[q])
	total, stride := int64(1), make([]int64, lead)
	for k := lead - 1; k >= 0; k-- {
		stride[k] = total
		total *= shape[k]
	}
	var f flatIndex
	for k := range lead - b {
		f.index(ReshapeInts(Narrow(index, q, int64(k), 1), ishape[:q]...), shape[b+k], stride[b+k])
	}
	for k := range b {
		f.add(along(Iota(x.Graph(), shape[k], ir.I64), k, q), stride[k])
	}
	flat := ReshapeInts(x, append([]int64{total}, shape[lead:]...)...)
	return []ir.Value{Gather(flat, f.result(total), 0)}
}

func decomposeGatherElements(n *ir.Node, a *GatherAttrs) []ir.Value {
	x, index := n.In[0], n.In[1]
	if !computable(index.DType()) {
		return nil
	}
	shape, _ := ir.StaticShape(x.Shape())
	ishape, _ := ir.StaticShape(index.Shape())
	axis, _ := wrap(a.Axis, len(shape))
	var f flatIndex
	total := int64(1)
	for k := len(shape) - 1; k >= 0; k-- {
		if k == axis {
			f.index(index, shape[k], total)
		} else if ishape[k] > 1 {
			f.add(along(Iota(x.Graph(), ishape[k], ir.I64), k, len(shape)), total)
		}
		total *= shape[k]
	}
	return []ir.Value{Gather(ReshapeInts(x, total), f.result(total), 0)}
}

// decomposeScatterElements names all coordinates of each element and leaves range and sign of the given one to ScatterNd.
func decomposeScatterElements(n *ir.Node, a *ScatterElementsAttrs) []ir.Value {
	x, index, u := n.In[0], n.In[1], n.In[2]
	d := index.DType()
	if d == ir.F32 { // coordinates above 2^24 would not be exact
		return nil
	}
	if d != ir.U64 {
		d = ir.I64
	}
	axis, _ := wrap(a.Axis, x.Rank())
	count := ir.Count(index.Shape())
	coords := make([]ir.Value, x.Rank())
	for k := range coords {
		c := Cast(index, d)
		if k != axis {
			len, _ := index.Dim(k).Static()
			c = Expand(along(Iota(x.Graph(), len, d), k, x.Rank()), index.Shape()...)
		}
		coords[k] = Reshape(c, count, ir.D(1))
	}
	return []ir.Value{ScatterNd(x, Concat(1, coords...), Reshape(u, count), a.Reduction)}
}

func decomposeGatherBackward(n *ir.Node, a *SegmentAttrs) []ir.Value {
	dy, index := n.In[0], n.In[1]
	k, _ := wrap(a.Axis, dy.Rank()-index.Rank()+1)
	count := ir.Count(index.Shape())
	flat := Reshape(dy, joined(dy.Shape()[:k], []ir.Dim{count}, dy.Shape()[k+index.Rank():])...)
	return []ir.Value{ScatterAdd(flat, Reshape(index, count), ir.Value{}, k, a.Size)}
}

func decomposeKvAppend(n *ir.Node, a *KvAppendAttrs) []ir.Value {
	cache, rows := n.In[0], n.In[1]
	k, _ := wrap(a.Axis, cache.Rank())
	capacity, _ := cache.Dim(k).Static()
	count, _ := rows.Dim(k).Static()
	if a.Position != nil {
		p := *a.Position
		return []ir.Value{Concat(k, Narrow(cache, k, 0, p), rows, Narrow(cache, k, p+count, capacity-p-count))}
	}
	p := n.In[2]
	outer, _ := ir.Count(cache.Shape()[:k]).Static()
	inner, _ := ir.Count(cache.Shape()[k+1:]).Static()
	if !computable(p.DType()) || outer*count == 0 { // without an index to write at, no check would happen
		return nil
	}
	g, p64 := cache.Graph(), Cast(p, ir.I64)
	// One position that does not fit moves every write out of range: nothing is written and the run fails.
	bad := LogicalOr(Lt(ReduceMin(p64), 0), Gt(ReduceMax(p64), capacity-count))
	batch, each := int64(1), outer
	if p.Rank() == 1 && !p.Dim(0).Is(1) {
		batch, _ = p.Dim(0).Static()
		each = outer / batch
	}
	at := Add(ReshapeInts(p64, batch, 1, 1), ReshapeInts(Iota(g, count, ir.I64), 1, 1, count))
	at = Where(bad, g.Constant(ir.Scalar(capacity)), at)
	at = ReshapeInts(Expand(at, ir.Dims(batch, each, count)...), outer*count, 1)
	line := Expand(ReshapeInts(Iota(g, outer, ir.I64), outer, 1), ir.Dims(outer, count)...)
	index := Concat(1, ReshapeInts(line, outer*count, 1), at)
	y := ScatterNd(ReshapeInts(cache, outer, capacity, inner), index, ReshapeInts(rows, outer*count, inner), ScatterNone)
	return []ir.Value{Reshape(y, cache.Shape()...)}
}

func decomposeOneHot(n *ir.Node, a *OneHotAttrs) []ir.Value {
	index := n.In[0]
	if !computable(index.DType()) {
		return nil
	}
	rank := index.Rank() + 1
	k, _ := wrap(a.Axis, rank)
	v := Cast(index, ir.I64)
	v = Where(Lt(v, 0), Add(v, a.Depth), v)
	v = Reshape(v, joined(index.Shape()[:k], ir.Dims(1), index.Shape()[k:])...)
	g := index.Graph()
	hot := Eq(v, along(Iota(g, a.Depth, ir.I64), k, rank))
	return []ir.Value{Where(hot, g.Constant(NumberAs(a.Dtype, a.OnValue)), g.Constant(NumberAs(a.Dtype, a.OffValue)))}
}
