package op

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// ReduceFn is the function of a Reduce.
type ReduceFn string

// EnumValues lists the functions: five primitive ones, then the five that decompose into them.
func (ReduceFn) EnumValues() []string {
	return []string{"sum", "mean", "max", "min", "prod", "logsumexp", "log_sum", "l1", "l2", "sum_square"}
}

// ReduceAttrs are the attributes of Reduce. No axes means all of them.
type ReduceAttrs struct {
	Fn       ReduceFn `c:"C2"`
	Axes     []int    `default:"nil"`
	KeepDims bool     `default:"false"`
}

// ArgAttrs are the attributes of ArgMax and ArgMin.
type ArgAttrs struct {
	Axis            int      `default:"-1"`
	KeepDims        bool     `default:"false"`
	SelectLastIndex bool     `default:"false"`
	IndexDtype      ir.DType `default:"i64" c:"C8"`
}

// HistogramAttrs are the attributes of Histogram: NumBins equal bins over [Min, Max].
type HistogramAttrs struct {
	NumBins int64 `min:"1" c:"C1"`
	Min     float64
	Max     float64
	Dtype   ir.DType `default:"i64" c:"C1"`
}

var (
	reduce    = ir.Declare[ReduceAttrs]("reduce", "Reduce")
	argMax    = ir.Declare[ArgAttrs]("reduce", "ArgMax")
	argMin    = ir.Declare[ArgAttrs]("reduce", "ArgMin")
	histogram = ir.Declare[HistogramAttrs]("reduce", "Histogram")
)

// Reduce is y = fn of x over axes; no axes means all of them.
//
// Shapes: y is x without the reduced dims, or with 1 in their place if keepDims. Dtypes: sum, prod, l1, sum_square take integers and
// floats, max and min also bool (any, all), the others floats; sum, mean and prod also c64. y has x's dtype: integers wrap, f16 and
// bf16 sum in f32 and round once. Of no elements: sum 0, prod 1, mean NaN. A NaN propagates. Errors: C1 dtype, C2 fn, C3 max or min
// of no elements, C9 axes. Source: ONNX Reduce* 18.
func Reduce(x ir.Value, fn ReduceFn, axes []int, keepDims bool) ir.Value {
	return reduce.Apply1(ReduceAttrs{fn, axes, keepDims}, x)
}

// Sum is the sum over axes, which disappear; no axes means all. See Reduce for shapes, dtypes and errors, of the next ones too.
func Sum(x ir.Value, axes ...int) ir.Value { return Reduce(x, "sum", axes, false) }

// Mean is the sum over axes divided by the number of elements. Source: ONNX ReduceMean.
func Mean(x ir.Value, axes ...int) ir.Value { return Reduce(x, "mean", axes, false) }

// Prod is the product over axes. Source: ONNX ReduceProd.
func Prod(x ir.Value, axes ...int) ir.Value { return Reduce(x, "prod", axes, false) }

// ReduceMax is the greatest element over axes; NaN if one is. Source: ONNX ReduceMax.
func ReduceMax(x ir.Value, axes ...int) ir.Value { return Reduce(x, "max", axes, false) }

// ReduceMin is the least element over axes; NaN if one is. Source: ONNX ReduceMin.
func ReduceMin(x ir.Value, axes ...int) ir.Value { return Reduce(x, "min", axes, false) }

// LogSumExp is m + log(sum exp(x-m)) over axes with m = max x, so it does not overflow. Source: ONNX ReduceLogSumExp.
func LogSumExp(x ir.Value, axes ...int) ir.Value { return Reduce(x, "logsumexp", axes, false) }

// LogSum is log(sum x) over axes. Source: ONNX ReduceLogSum.
func LogSum(x ir.Value, axes ...int) ir.Value { return Reduce(x, "log_sum", axes, false) }

// L1 is sum |x| over axes. Source: ONNX ReduceL1.
func L1(x ir.Value, axes ...int) ir.Value { return Reduce(x, "l1", axes, false) }

// L2 is sqrt(sum x*x) over axes. Source: ONNX ReduceL2.
func L2(x ir.Value, axes ...int) ir.Value { return Reduce(x, "l2", axes, false) }

// SumSquare is sum x*x over axes. Source: ONNX ReduceSumSquare.
func SumSquare(x ir.Value, axes ...int) ir.Value { return Reduce(x, "sum_square", axes, false) }

// ArgMax is the i64 index of the greatest element along axis, which disappears. The lowest index wins a tie, and the first NaN wins
// over everything. Use ArgMaxWith for the other attributes.
//
// Dtypes: integers, floats, bool. Errors: C1 dtype or an empty axis, C9 axis outside the rank. Source: ONNX ArgMax 13.
func ArgMax(x ir.Value, axis int) ir.Value {
	return ArgMaxWith(x, ArgAttrs{Axis: axis, IndexDtype: ir.I64})
}

// ArgMin is the index of the least element along axis; see ArgMax. Source: ONNX ArgMin 13.
func ArgMin(x ir.Value, axis int) ir.Value {
	return ArgMinWith(x, ArgAttrs{Axis: axis, IndexDtype: ir.I64})
}

// ArgMaxWith is ArgMax with all attributes: the axis kept as 1, the highest index for ties, or indices as i32 or f32.
// Errors: as ArgMax, and C8 an IndexDtype that cannot count the axis.
func ArgMaxWith(x ir.Value, a ArgAttrs) ir.Value { return argMax.Apply1(a, x) }

// ArgMinWith is ArgMin with all attributes; see ArgMaxWith.
func ArgMinWith(x ir.Value, a ArgAttrs) ir.Value { return argMin.Apply1(a, x) }

// Histogram counts the elements of x in numBins equal bins over [lo, hi], as i64 of shape [numBins]. Bin b holds e_b <= x < e_{b+1}
// with e_b = lo + b*((hi-lo)/numBins) in f64; the last bin includes hi. Values outside, NaN and infinities are dropped.
//
// Dtypes: integers, floats, any rank. Errors: C1 numBins < 1, or not lo < hi and both finite. Source: numpy.histogram.
func Histogram(x ir.Value, numBins int64, lo, hi float64) ir.Value {
	return histogram.Apply1(HistogramAttrs{numBins, lo, hi, ir.I64}, x)
}

func init() {
	reduce.Define(ir.Def[ReduceAttrs]{
		Doc:       "y = fn of x over axes",
		In:        []ir.Operand{ir.In("x", ir.Numeric|ir.Set(ir.Bool))},
		Bits:      ir.Reduction,
		DTypeC:    "C1",
		Infer:     inferReduce,
		Decompose: decomposeReduce,
		Tol:       ir.Tolerance{Ulp: 42, Abs: 1e-6}, // 5e-6 relative in f32
	})
	for o, doc := range map[*ir.Op[ArgAttrs]]string{
		argMax: "index of the greatest element along axis",
		argMin: "index of the least element along axis",
	} {
		o.Define(ir.Def[ArgAttrs]{
			Doc:    doc,
			In:     []ir.Operand{ir.In("x", ir.Real|ir.Set(ir.Bool))},
			Bits:   ir.Reduction | ir.Exact,
			DTypeC: "C1",
			Infer:  inferArg,
			NoGrad: "integer result",
		})
	}
	histogram.Define(ir.Def[HistogramAttrs]{
		Doc:    "counts of x in equal bins over [min, max]",
		In:     []ir.Operand{ir.In("x", ir.Real)},
		Bits:   ir.Reduction | ir.Exact,
		DTypeC: "C1",
		Infer: func(t *ir.Infer, a *HistogramAttrs) {
			finite := !math.IsInf(a.Min, 0) && !math.IsInf(a.Max, 0)
			t.Need(finite && a.Min < a.Max, "C1", "min %g and max %g, expected finite numbers with min < max", a.Min, a.Max)
			t.Need(indexDTypes.Has(a.Dtype), "C1", "dtype %s, expected one of %s", a.Dtype, indexDTypes)
			t.Out(ir.Type{DType: a.Dtype, Shape: ir.Dims(a.NumBins)})
		},
		Decompose: decomposeHistogram,
		NoGrad:    "counts",
	})
}

// indexDTypes are the dtypes that an index result may have.
var indexDTypes = ir.Set(ir.I64, ir.I32, ir.F32)

// countsAxis checks constraint C8: d is a dtype of indices and can count an axis of length n.
func countsAxis(t *ir.Infer, d ir.DType, n ir.Dim) bool {
	length, known := n.Static()
	return t.Need(indexDTypes.Has(d), "C8", "index_dtype %s, expected one of %s", d, indexDTypes) &&
		t.Need(d != ir.F32 || !known || length <= 1<<24, "C8", "index_dtype f32 cannot count an axis of %s, expected at most %d", n, 1<<24) &&
		t.Need(d != ir.I32 || !known || length <= math.MaxInt32+1, "C8", "index_dtype i32 cannot count an axis of %s, expected at most %d", n, int64(math.MaxInt32)+1)
}

// reducedAxes marks the axes that are reduced: all, if none is named.
func reducedAxes(t *ir.Infer, c string, axes []int, rank int) ([]bool, bool) {
	on := make([]bool, rank)
	list, ok := wrapAxes(t, c, axes, rank)
	for _, i := range list {
		on[i] = true
	}
	if len(axes) == 0 {
		for i := range on {
			on[i] = true
		}
	}
	return on, ok
}

// reducedShape is shape without the marked dims, or with 1 in their place.
func reducedShape(shape []ir.Dim, on []bool, keepDims bool) []ir.Dim {
	out := []ir.Dim{}
	for i, d := range shape {
		switch {
		case !on[i]:
			out = append(out, d)
		case keepDims:
			out = append(out, ir.D(1))
		}
	}
	return out
}

func inferReduce(t *ir.Infer, a *ReduceAttrs) {
	x := t.Type(0)
	on, ok := reducedAxes(t, "C9", a.Axes, len(x.Shape))
	if !ok {
		return
	}
	legal := ir.Float
	switch a.Fn {
	case "sum", "prod":
		legal = ir.Numeric
	case "l1", "sum_square":
		legal = ir.Real
	case "mean":
		legal |= ir.Set(ir.C64)
	case "max", "min":
		legal = ir.Real | ir.Set(ir.Bool)
	}
	t.Need(legal.Has(x.DType), "C1", "%s of dtype %s, expected one of %s", a.Fn, x.DType, legal)
	if a.Fn == "max" || a.Fn == "min" {
		// an error only where a result would be made of nothing: with another dim of 0 there is no result at all
		reduced, kept := ir.D(1), true
		for i, d := range x.Shape {
			n, known := d.Static()
			if on[i] {
				reduced = reduced.Mul(d)
			} else {
				kept = kept && known && n != 0
			}
		}
		t.Need(!reduced.Is(0) || !kept, "C3", "%s of no elements: x has shape %v, expected none that is empty over axes %v", a.Fn, x.Shape, a.Axes)
	}
	t.Out(ir.Type{DType: x.DType, Shape: reducedShape(x.Shape, on, a.KeepDims)})
}

func inferArg(t *ir.Infer, a *ArgAttrs) {
	x := t.Type(0)
	axis, ok := wrap(a.Axis, len(x.Shape))
	if !t.Need(ok, "C9", "axis %d, expected in [%d, %d)", a.Axis, -len(x.Shape), len(x.Shape)) {
		return
	}
	t.Need(!x.Shape[axis].Is(0), "C1", "axis %d of shape %v is empty, expected at least one element", a.Axis, x.Shape)
	countsAxis(t, a.IndexDtype, x.Shape[axis])
	on := make([]bool, len(x.Shape))
	on[axis] = true
	t.Out(ir.Type{DType: a.IndexDtype, Shape: reducedShape(x.Shape, on, a.KeepDims)})
}

// decomposeReduce covers the composed functions; sum, mean, max, min and prod are primitive.
func decomposeReduce(n *ir.Node, a *ReduceAttrs) []ir.Value {
	x := widen(n.In[0])
	sum := func(v ir.Value) ir.Value { return Reduce(v, "sum", a.Axes, a.KeepDims) }
	var y ir.Value
	switch a.Fn {
	case "l1":
		y = sum(Abs(x))
	case "sum_square":
		y = sum(Mul(x, x))
	case "l2":
		y = Sqrt(sum(Mul(x, x)))
	case "log_sum":
		y = Log(sum(x))
	case "logsumexp":
		y = logSumExp(n, x, a)
	default:
		return nil
	}
	return []ir.Value{narrow(y, n.In[0].DType())}
}

func logSumExp(n *ir.Node, x ir.Value, a *ReduceAttrs) ir.Value {
	if ir.Count(x.Shape()).Is(0) {
		return Log(Reduce(x, "sum", a.Axes, a.KeepDims)) // log 0 for every result; max of nothing is an error
	}
	m := Reduce(x, "max", a.Axes, true)
	m = Where(IsInf(m), numberLike("Reduce", m, 0), m) // inf - inf would be NaN
	y := Add(m, Log(Reduce(Exp(Sub(x, m)), "sum", a.Axes, true)))
	return Reshape(y, n.Types[0].Shape...)
}
