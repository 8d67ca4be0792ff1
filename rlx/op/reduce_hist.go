package op

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// HistogramEdges are the n+1 edges of n bins over [lo, hi]: lo + b*((hi-lo)/n) in f64, the last one hi itself.
func HistogramEdges(n int64, lo, hi float64) []float64 {
	e := make([]float64, n+1)
	width := (hi - lo) / float64(n)
	if math.IsInf(width, 0) { // hi - lo is beyond f64
		width = hi/float64(n) - lo/float64(n)
	}
	for b := range e {
		e[b] = lo + float64(float64(b)*width) // converted so that no machine fuses product and sum
	}
	e[n] = hi
	return e
}

// decomposeHistogram counts the elements from each edge on and subtracts neighbours: an element beyond hi is in all counts and
// cancels, a NaN is in none.
func decomposeHistogram(n *ir.Node, a *HistogramAttrs) []ir.Value {
	x, g := n.In[0], n.In[0].Graph()
	switch d := x.DType(); {
	case d == ir.F16 || d == ir.BF16:
		x = Cast(x, ir.F32) // exact, and f32 holds the thresholds as well
	case ir.Int.Has(d) && d != ir.U64:
		x = Cast(x, ir.I64)
	}
	edges := HistogramEdges(a.NumBins, a.Min, a.Max)
	limits, err := thresholds(x.DType(), edges)
	if err != nil {
		return []ir.Value{g.Fail("Histogram", err)}
	}
	from := Ge(Reshape(x, ir.D(1), ir.Count(x.Shape())), g.Constant(limits))
	counts := Reduce(Cast(from, ir.I64), "sum", []int{1}, false)
	if missing := a.NumBins + 1 - limits.Shape()[0]; missing > 0 {
		none, err := ir.Zeros(ir.I64, missing)
		if err != nil {
			return []ir.Value{g.Fail("Histogram", err)}
		}
		counts = Concat(0, counts, g.Constant(none))
	}
	y := Sub(Narrow(counts, 0, 0, a.NumBins), Narrow(counts, 0, 1, a.NumBins))
	return []ir.Value{narrow(y, a.Dtype)}
}

// thresholds is the column of the least values of dtype d that are not below the edges, for the last edge: that are above it, since
// the last bin includes it. Edges above all integers of d are left out: nothing lies there, and ascending edges put them last.
func thresholds(d ir.DType, edges []float64) (*ir.Tensor, error) {
	count := len(edges)
	least, beyond := -0x1p63, 0x1p63
	if d == ir.U64 {
		least, beyond = 0, 0x1p64
	}
	if ir.Int.Has(d) {
		for count > 0 && math.Ceil(edges[count-1]) >= beyond {
			count--
		}
	}
	t, err := ir.Zeros(d, int64(count), 1)
	if err != nil {
		return nil, err
	}
	for i, e := range edges[:count] {
		last := i == len(edges)-1
		switch {
		case ir.Float.Has(d):
			if last {
				e = math.Nextafter(e, math.Inf(1))
			}
			if f := float32(e); d == ir.F32 && float64(f) < e {
				e = float64(math.Nextafter32(f, float32(math.Inf(1))))
			}
			ir.PutFloat(d, t.Bytes(), i, e)
		case last && e >= least:
			ir.PutInt(d, t.Bytes(), i, whole(d, math.Floor(e))+1) // in integers: above 2^53 the next float is further off
		default:
			ir.PutInt(d, t.Bytes(), i, whole(d, max(least, math.Ceil(e))))
		}
	}
	return t, nil
}

// whole is the integer f of dtype i64 or u64, as bits.
func whole(d ir.DType, f float64) int64 {
	if d == ir.U64 {
		return int64(uint64(f))
	}
	return int64(f)
}
