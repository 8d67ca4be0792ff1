package op

import "github.com/rlx-ml/rlx-go/rlx/ir"

// GatherAttrs are the attributes of Gather and GatherElements.
type GatherAttrs struct {
	Axis int `default:"0"`
}

// GatherNdAttrs are the attributes of GatherNd.
type GatherNdAttrs struct {
	BatchDims int `default:"0"`
}

// SegmentAttrs are the attributes of ScatterAdd and GatherBackward.
type SegmentAttrs struct {
	Axis int   `default:"0"`
	Size int64 `min:"0"`
}

// ScatterReduction says how an update meets what is there.
type ScatterReduction string

// The reductions of ScatterNd and ScatterElements.
const (
	ScatterNone ScatterReduction = "none"
	ScatterSum  ScatterReduction = "add"
	ScatterMul  ScatterReduction = "mul"
	ScatterMax  ScatterReduction = "max"
	ScatterMin  ScatterReduction = "min"
)

// EnumValues lists the values in the order of the command words.
func (ScatterReduction) EnumValues() []string { return []string{"none", "add", "mul", "max", "min"} }

// ScatterNdAttrs are the attributes of ScatterNd.
type ScatterNdAttrs struct {
	Reduction ScatterReduction `default:"none" c:"C4"`
}

// ScatterElementsAttrs are the attributes of ScatterElements.
type ScatterElementsAttrs struct {
	Axis      int              `default:"0"`
	Reduction ScatterReduction `default:"none" c:"C4"`
}

// KvAppendAttrs are the attributes of KvAppend; Position is nil where the position is an operand.
type KvAppendAttrs struct {
	Axis     int    `default:"-2"`
	Position *int64 `default:"nil"`
}

// OneHotAttrs are the attributes of OneHot.
type OneHotAttrs struct {
	Depth    int64     `min:"0" c:"C1"`
	Axis     int       `default:"-1"`
	OnValue  ir.Number `default:"1"`
	OffValue ir.Number `default:"0"`
	Dtype    ir.DType  `default:"f32"`
}

var (
	gather          = ir.Declare[GatherAttrs]("index", "Gather")
	gatherNd        = ir.Declare[GatherNdAttrs]("index", "GatherNd")
	gatherElements  = ir.Declare[GatherAttrs]("index", "GatherElements")
	scatterAdd      = ir.Declare[SegmentAttrs]("index", "ScatterAdd")
	scatterNd       = ir.Declare[ScatterNdAttrs]("index", "ScatterNd")
	scatterElements = ir.Declare[ScatterElementsAttrs]("index", "ScatterElements")
	gatherBackward  = ir.Declare[SegmentAttrs]("index", "GatherBackward")
	kvAppend        = ir.Declare[KvAppendAttrs]("index", "KvAppend")
	oneHot          = ir.Declare[OneHotAttrs]("index", "OneHot")
)

// All builders of this file take indices of an integer dtype, or integers encoded as f32. Unless a builder says otherwise, an index i
// along a length d is legal in [-d, d), a negative one counts from the end, and anything else fails the run with C7; C8 is an index
// that is no integer, C9 an axis outside the rank.

// Gather takes slices of x along axis: y[a.., i.., b..] = x[a.., index[i..], b..].
//
// Shapes: x [a.., d, b..], index [i..], y [a.., i.., b..]; any dtype. Errors: C7 to C9. Source: ONNX Gather 13, np.take.
func Gather(x, index ir.Value, axis int) ir.Value { return gather.Apply1(GatherAttrs{axis}, x, index) }

// GatherNd takes slices of x at tuples of indices: y[b.., q.., r..] = x[b.., index[b.., q.., 0], .., index[b.., q.., k-1], r..], where
// the first batchDims axes b.. are shared.
//
// Shapes: index [b.., q.., k], y [b.., q.., r..]; any dtype. Errors: C1 batchDims not below both ranks, C2 batch dims differ,
// C3 k outside 1 to rank(x) - batchDims, C7, C8. Source: ONNX GatherND 13.
func GatherNd(x, index ir.Value, batchDims int) ir.Value {
	return gatherNd.Apply1(GatherNdAttrs{batchDims}, x, index)
}

// GatherElements takes one element per index: y[i] = x[i with i[axis] replaced by index[i]].
//
// Shapes: y as index, whose dims are at most x's off the axis; any dtype. Errors: C1 ranks differ, C2 an index dim is too long,
// C7 to C9. Source: ONNX GatherElements 13, torch.gather.
func GatherElements(x, index ir.Value, axis int) ir.Value {
	return gatherElements.Apply1(GatherAttrs{axis}, x, index)
}

// ScatterAdd sums slices of u into size rows: y = base (zeros if absent), then y[.., index[i], ..] += u[.., i, ..] along axis.
//
// Shapes: u [a.., n, b..], index [n], base and y [a.., size, b..]; numeric. f16 and bf16 sum in f32 and round once, integers wrap.
// Errors: C1 index is not [n], C2 base has another shape, C7 to C9. Source: jax.ops.segment_sum, torch.index_add.
func ScatterAdd(u, index, base ir.Value, axis int, size int64) ir.Value {
	return scatterAdd.Apply1(SegmentAttrs{axis, size}, u, index, base)
}

// ScatterNd is x with slices written or combined at tuples of indices: y = x, then y[index[q.., 0..k-1], r..] (op)= u[q.., r..] in
// row-major order, so that the last of several writes stays.
//
// Shapes: index [q.., k], u [q.., r..], y as x; any dtype, numeric where a reduction combines. Errors: C1 index of rank 0, C2 u has
// another shape, C3 k outside 1 to rank(x), C4 unknown reduction or its dtype, C7, C8. Source: ONNX ScatterND 18.
func ScatterNd(x, index, u ir.Value, reduction ScatterReduction) ir.Value {
	return scatterNd.Apply1(ScatterNdAttrs{reduction}, x, index, u)
}

// ScatterElements is x with elements written or combined along axis: y = x, then y[i with i[axis] replaced by index[i]] (op)= u[i].
//
// Shapes: u as index, whose dims are at most x's off the axis, y as x; dtypes as ScatterNd. Errors: C1 ranks differ, C2 an index dim
// is too long, C3 u has another shape than index, C4 as ScatterNd, C7 to C9. Source: ONNX ScatterElements 18, torch.scatter_reduce.
func ScatterElements(x, index, u ir.Value, axis int, reduction ScatterReduction) ir.Value {
	return scatterElements.Apply1(ScatterElementsAttrs{axis, reduction}, x, index, u)
}

// GatherBackward is the gradient of Gather: dx = zeros, then dx[a.., index[i..], b..] += dy[a.., i.., b..].
//
// Shapes: dy [a.., i.., b..], index [i..], dx [a.., size, b..]; numeric. Errors: C1 dy does not hold the shape of index at axis, C7 to
// C9. Source: torch embedding_dense_backward.
func GatherBackward(dy, index ir.Value, axis int, size int64) ir.Value {
	return gatherBackward.Apply1(SegmentAttrs{axis, size}, dy, index)
}

// KvAppend writes rows into a cache at a position that is an operand: y = cache, then y[.., p : p+n, ..] = rows along axis. position
// holds one element, or one per index of axis 0.
//
// Shapes: cache and y [.., capacity, ..], rows [.., n, ..]; any dtype. Errors: C1 rows do not fit the cache, C3 shape of position,
// C4 p < 0 or p+n > capacity, which leaves the cache as it was, C8, C9. Source: key/value caches of decoder transformers.
func KvAppend(cache, rows, position ir.Value, axis int) ir.Value {
	return kvAppend.Apply1(KvAppendAttrs{Axis: axis}, cache, rows, position)
}

// KvAppendAt is KvAppend at a position that is known when the graph is built.
func KvAppendAt(cache, rows ir.Value, axis int, position int64) ir.Value {
	return kvAppend.Apply1(KvAppendAttrs{axis, &position}, cache, rows)
}

// OneHot turns each index into a vector of length depth along a new axis: y[.., j, ..] is a.OnValue if j = index (index + depth where
// it is negative), else a.OffValue. An index outside [-depth, depth) gives a.OffValue throughout.
//
// Shapes: y is index.shape with depth at axis. Errors: C1 depth < 0, C8, C9 axis outside [-r-1, r]. Source: ONNX OneHot 11.
func OneHot(index ir.Value, a OneHotAttrs) ir.Value {
	if a.Dtype == ir.Invalid {
		a.Dtype = ir.F32
	}
	if !a.OnValue.Present() {
		a.OnValue = ir.IntNumber(1)
	}
	return oneHot.Apply1(a, index)
}

func init() {
	x, index, numeric := ir.In("x", ir.AnyDType), ir.In("index", ir.IndexT), ir.Numeric
	gather.Define(ir.Def[GatherAttrs]{
		Doc: "y[a.., i.., b..] = x[a.., index[i..], b..]", In: []ir.Operand{x, index}, Bits: ir.Exact, DTypeC: "C8", Infer: inferGather,
	})
	gatherNd.Define(ir.Def[GatherNdAttrs]{
		Doc: "y[b.., q.., r..] = x[b.., index[b.., q.., :].., r..]", In: []ir.Operand{x, index}, Bits: ir.Exact, DTypeC: "C8",
		Infer: inferGatherNd, Decompose: decomposeGatherNd,
	})
	gatherElements.Define(ir.Def[GatherAttrs]{
		Doc: "y[i] = x[i with i[axis] replaced by index[i]]", In: []ir.Operand{x, index}, Bits: ir.Exact, DTypeC: "C8",
		Infer: inferGatherElements, Decompose: decomposeGatherElements,
	})
	scatterAdd.Define(ir.Def[SegmentAttrs]{
		Doc:  "y = base or zeros; y[.., index[i], ..] += u[.., i, ..] along axis",
		In:   []ir.Operand{ir.In("u", numeric), index, ir.Opt("base", numeric)},
		Bits: ir.Reduction, DTypeC: "C8", SameC: "C2", Infer: inferScatterAdd, Tol: ir.Tolerance{Ulp: 8},
	})
	scatterNd.Define(ir.Def[ScatterNdAttrs]{
		Doc: "y = x; y[index[q.., :].., r..] (reduction)= u[q.., r..]", In: []ir.Operand{x, index, ir.In("u", ir.AnyDType)},
		Bits: ir.InPlace, DTypeC: "C8", SameC: "C2", Infer: inferScatterNd, Tol: ir.Tolerance{Ulp: 8},
	})
	scatterElements.Define(ir.Def[ScatterElementsAttrs]{
		Doc: "y = x; y[i with i[axis] replaced by index[i]] (reduction)= u[i]", In: []ir.Operand{x, index, ir.In("u", ir.AnyDType)},
		Bits: ir.InPlace, DTypeC: "C8", SameC: "C3", Infer: inferScatterElements, Decompose: decomposeScatterElements,
		Tol: ir.Tolerance{Ulp: 8},
	})
	gatherBackward.Define(ir.Def[SegmentAttrs]{
		Doc: "dx = zeros; dx[a.., index[i..], b..] += dy[a.., i.., b..]", In: []ir.Operand{ir.In("dy", numeric), index},
		Results: []string{"dx"}, Bits: ir.Backward | ir.Reduction, DTypeC: "C8", Infer: inferGatherBackward,
		Decompose: decomposeGatherBackward, Tol: ir.Tolerance{Ulp: 8},
	})
	kvAppend.Define(ir.Def[KvAppendAttrs]{
		Doc:  "y = cache; y[.., p : p+n, ..] = rows along axis",
		In:   []ir.Operand{ir.In("cache", ir.AnyDType), ir.In("rows", ir.AnyDType), ir.Opt("position", ir.IndexT)},
		Bits: ir.InPlace | ir.Exact, DTypeC: "C8", SameC: "C1", Infer: inferKvAppend, Decompose: decomposeKvAppend,
	})
	oneHot.Define(ir.Def[OneHotAttrs]{
		Doc: "y[.., j, ..] = on_value if j = index else off_value", In: []ir.Operand{index}, Bits: ir.Exact, DTypeC: "C8",
		Infer: inferOneHot, Decompose: decomposeOneHot, NoGrad: "integer input",
	})
}
