package op

import (
	"cmp"
	"math"
	"math/big"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// PoolFn says what Pool makes of a window: "max", "avg" or "sum".
type PoolFn string

// EnumValues lists the functions.
func (PoolFn) EnumValues() []string { return []string{"max", "avg", "sum"} }

// PoolAttrs are the attributes of Pool. Lists have one entry per spatial axis; an empty Stride means KernelSize, an empty Dilation 1s.
// Padding may have twice as many entries: all begins, then all ends. Global takes one window over everything, and no other list.
type PoolAttrs struct {
	Fn              PoolFn  `default:"max" c:"C3"`
	KernelSize      []int64 `default:"nil" min:"1" c:"C4"`
	Stride          []int64 `default:"nil" min:"1" c:"C4"`
	Padding         []int64 `default:"nil" min:"0" c:"C4"`
	Dilation        []int64 `default:"nil" min:"1" c:"C4"`
	CeilMode        bool    `default:"false"`
	CountIncludePad bool    `default:"false"`
	AutoPad         AutoPad `default:"none" c:"C5"`
	Global          bool    `default:"false"`
}

var pool = ir.Declare[PoolAttrs]("pool", "Pool")

// Pool is y[n,c,p] = fn over the taps t of x[n, c, p*stride + t*dilation - begin], where taps outside x take no part. An average divides
// by the taps inside x, with CountIncludePad by those inside x and its padding.
//
// Shapes: x [N, C, S..] with one to three spatial axes, y [N, C, out..] with out = floor((S + begin + end - dilation*(k-1) - 1) / stride)
// + 1; with CeilMode the division rounds up, but no window starts behind x. Dtypes: floats; max also integers. Sums in f32 (f64 for f64),
// rounds once. In a, an empty Fn means "max" and an empty AutoPad "none". Errors: C1 rank, C2 dtype, C3 fn, or lists beside Global,
// C4 lists, C5 auto_pad, C6 the kernel does not fit, C7 a window without an element of x. Source: ONNX MaxPool 22, AveragePool 22.
func Pool(x ir.Value, a PoolAttrs) ir.Value {
	a.Fn, a.AutoPad = cmp.Or(a.Fn, "max"), cmp.Or(a.AutoPad, "none")
	return pool.Apply1(a, x)
}

// MaxPool is Pool with fn "max". Source: torch max_pool1d, max_pool2d, max_pool3d.
func MaxPool(x ir.Value, a PoolAttrs) ir.Value { a.Fn = "max"; return Pool(x, a) }

// AvgPool is Pool with fn "avg". torch counts padding unless told otherwise: CountIncludePad. Source: torch avg_pool1d, ...
func AvgPool(x ir.Value, a PoolAttrs) ir.Value { a.Fn = "avg"; return Pool(x, a) }

// GlobalMaxPool is the maximum of each channel, [N, C, 1..]. Source: ONNX GlobalMaxPool 22.
func GlobalMaxPool(x ir.Value) ir.Value { return MaxPool(x, PoolAttrs{Global: true}) }

// GlobalAvgPool is the mean of each channel, [N, C, 1..]. Source: ONNX GlobalAveragePool 22.
func GlobalAvgPool(x ir.Value) ir.Value { return AvgPool(x, PoolAttrs{Global: true}) }

func init() {
	pool.Define(ir.Def[PoolAttrs]{
		Doc:       "max, average or sum over windows, 1-D to 3-D",
		In:        []ir.Operand{ir.In("x", ir.Real)},
		Bits:      ir.Reduction,
		DTypeC:    "C2",
		Infer:     inferPool,
		Decompose: decomposePool,
		Tol:       ir.Tolerance{Ulp: 16},
	})
}

// PoolWindow is the geometry of a Pool over spatial size, and the sizes of its kernel. It checks nothing: see ConvWindow.
func PoolWindow(a *PoolAttrs, size []ir.Dim) (w Window, kernel []ir.Dim) {
	if a.Global {
		return ConvWindow(nil, nil, nil, "none", size, size), size
	}
	stride := a.Stride
	if len(stride) == 0 {
		stride = a.KernelSize
	}
	kernel = ir.Dims(a.KernelSize...)
	w = ConvWindow(stride, a.Dilation, a.Padding, a.AutoPad, size, kernel)
	if !a.CeilMode || a.AutoPad.same() {
		return w, kernel
	}
	for i, s := range size {
		front, step := s.Add(w.Begin[i]), ir.D(w.Stride[i])
		// the last window starts in x or in the padding before it
		w.Out[i] = front.Add(w.End[i]).Sub(w.eff[i]).CeilDiv(step).Add(ir.D(1)).Min(front.CeilDiv(step))
	}
	return w, kernel
}

func inferPool(t *ir.Infer, a *PoolAttrs) {
	x := t.Type(0)
	rank := len(x.Shape)
	if !t.Need(rank >= 3 && rank <= 5, "C1", "x has rank %d, expected 3 to 5", rank) ||
		!t.Need(a.Fn == "max" || ir.Float.Has(x.DType), "C2", "x has dtype %s, expected %s for fn %s", x.DType, ir.Float, string(a.Fn)) {
		return
	}
	size := x.Shape[2:]
	if a.Global {
		lists := len(a.KernelSize) + len(a.Stride) + len(a.Padding) + len(a.Dilation)
		t.Need(lists == 0, "C3", "global beside kernel_size %v, stride %v, padding %v, dilation %v, expected none of them", a.KernelSize, a.Stride, a.Padding, a.Dilation)
		for i, s := range size {
			t.Need(!s.Is(0), "C7", "spatial axis %d of x is empty, expected an element in the window", i)
		}
	} else if !poolFits(t, a, size) {
		return
	}
	w, _ := PoolWindow(a, size)
	t.Out(ir.Type{DType: x.DType, Shape: append([]ir.Dim{x.Shape[0], x.Shape[1]}, w.Out...)})
}

// poolFits checks constraints C4 to C7 of windows that are not global, in this order.
func poolFits(t *ir.Infer, a *PoolAttrs, size []ir.Dim) bool {
	if !t.Need(len(a.KernelSize) == len(size), "C4", "kernel_size %v has %d entries, expected %d", a.KernelSize, len(a.KernelSize), len(size)) {
		return false
	}
	if !listsFit(t, a.Stride, a.Dilation, a.Padding, a.AutoPad, len(size)) {
		return false
	}
	w, kernel := PoolWindow(a, size)
	for i := range size {
		for _, p := range []ir.Dim{w.Begin[i], w.End[i]} {
			over, known := p.Sub(w.eff[i]).Static()
			t.Need(a.AutoPad != "none" || !known || over < 0, "C4", "padding %s of spatial axis %d, expected less than the %s elements of a window", p, i, w.eff[i])
		}
	}
	if !t.OK() {
		return false
	}
	if _, ok := checkWindow(t, a.Stride, a.Dilation, a.Padding, a.AutoPad, size, kernel); !ok {
		return false
	}
	for i, s := range size {
		t.Need(!emptyWindow(w, i, s), "C7", "a window along spatial axis %d holds padding only, expected an element of x", i)
	}
	return t.OK()
}

// emptyWindow says that some window along axis i certainly misses all of x. Windows that start in x do not, and padding is shorter than
// a window; so only a tap of those that start before x can jump over it: the first one at or behind its start is at
// (p*stride - begin) mod dilation.
func emptyWindow(w Window, i int, size ir.Dim) bool {
	s, okS := size.Static()
	begin, okB := w.Begin[i].Static()
	out, okO := w.Out[i].Static()
	d, step := w.Dilation[i], w.Stride[i]
	if !okS || !okB || !okO || s >= d || begin == 0 {
		return false
	}
	early := min(out, (begin-1)/step+1) // windows that start before x
	if early <= 0 {
		return false
	}
	// v mod d >= s is 1 more in floor((v + d - s) / d) than in floor(v / d)
	return floorSum(early, d, step, d-s-begin).Cmp(floorSum(early, d, step, -begin)) != 0
}

// floorSum is the sum of floor((step*p + first) / d) for p in [0, n).
func floorSum(n, d, step, first int64) *big.Int {
	num := big.NewInt
	return floorSumOf(num(n), num(d), num(step), num(first))
}

func floorSumOf(n, d, a, b *big.Int) *big.Int {
	sum := new(big.Int)
	if n.Sign() == 0 {
		return sum
	}
	pairs := new(big.Int).Mul(n, new(big.Int).Sub(n, big.NewInt(1)))
	pairs.Rsh(pairs, 1)
	qa, ra := new(big.Int).DivMod(a, d, new(big.Int)) // Euclidean: the rest is not negative
	qb, rb := new(big.Int).DivMod(b, d, new(big.Int))
	sum.Add(new(big.Int).Mul(qa, pairs), new(big.Int).Mul(qb, n))
	top := new(big.Int).Add(new(big.Int).Mul(ra, n), rb)
	rows, rest := new(big.Int).DivMod(top, d, new(big.Int))
	if rows.Sign() == 0 {
		return sum
	}
	return sum.Add(sum, floorSumOf(rows, ra, d, rest))
}

// PoolCounts is how many taps of each window along each axis an average counts: those in x, or in x and its padding. All dims are static.
func PoolCounts(w Window, kernel, size []ir.Dim, includePad bool) [][]int64 {
	counts := make([][]int64, len(size))
	for i := range size {
		var v [5]int64
		for k, d := range []ir.Dim{size[i], kernel[i], w.Begin[i], w.End[i], w.Out[i]} {
			v[k], _ = d.Static()
		}
		low, high := int64(0), v[0]
		if includePad {
			low, high = -v[2], v[0]+v[3]
		}
		d := w.Dilation[i]
		for p := range v[4] {
			at := p*w.Stride[i] - v[2]
			first := int64(0) // the first tap at or behind low
			if at < low {
				first = (low-at-1)/d + 1
			}
			counts[i] = append(counts[i], min((high-1-at)/d+1, v[1])-first)
		}
	}
	return counts
}

// decomposePool folds the taps of one axis after the other: maxima and sums of a box are those of its rows.
func decomposePool(n *ir.Node, a *PoolAttrs) []ir.Value {
	x := n.In[0]
	d, size := x.DType(), x.Shape()[2:]
	if a.Fn != "max" {
		x = widen(x)
	}
	if a.Global {
		fn := map[PoolFn]ReduceFn{"max": "max", "avg": "mean", "sum": "sum"}[a.Fn]
		return []ir.Value{narrow(Reduce(x, fn, from(2, x.Rank()), true), d)}
	}
	w, kernel := PoolWindow(a, size)
	if n, ok := ir.Count(w.Out).Static(); a.Fn == "avg" && (!ok || n > maxDivisors) {
		return nil
	}
	for i := range size {
		x = foldTaps(x, a.Fn, w, i, a.KernelSize[i])
	}
	if a.Fn == "avg" {
		x = Div(x, divisors(x, PoolCounts(w, kernel, size, a.CountIncludePad)))
	}
	return []ir.Value{narrow(x, d)}
}

// maxDivisors is the most windows of an image that an average is composed for: their divisors are a constant.
const maxDivisors = 1 << 22

// foldTaps pools along spatial axis i: one strided slice of the padded x per tap, joined by max or add.
func foldTaps(x ir.Value, fn PoolFn, w Window, i int, k int64) ir.Value {
	axis := 2 + i
	reach := w.Out[i].Sub(ir.D(1)).Mul(ir.D(w.Stride[i])) // where the last window starts
	pads := make([]ir.Dim, 2*x.Rank())
	pads[axis] = w.Begin[i]
	pads[x.Rank()+axis] = reach.Add(w.eff[i]).Sub(w.Begin[i]).Sub(x.Dim(axis)).Max(ir.D(0))
	if !pads[axis].Is(0) || !pads[x.Rank()+axis].Is(0) {
		value := ir.IntNumber(0)
		if fn == "max" {
			value = least(x.DType())
		}
		x = Pad(x, pads, PadConstant, value)
	}
	var y ir.Value
	for t := range k {
		start := ir.D(t).Mul(ir.D(w.Dilation[i]))
		tap := Slice(x, []ir.Dim{start}, []ir.Dim{start.Add(reach).Add(ir.D(1))}, []int{axis}, []int64{w.Stride[i]})
		switch {
		case t == 0:
			y = tap
		case fn == "max":
			y = Max(y, tap)
		default:
			y = Add(y, tap)
		}
	}
	return y
}

// least is the value of d below all others.
func least(d ir.DType) ir.Number {
	switch {
	case ir.Float.Has(d):
		return ir.FloatNumber(math.Inf(-1))
	case ir.Unsigned.Has(d):
		return ir.IntNumber(0)
	}
	return ir.IntNumber(math.MinInt64 >> (64 - 8*d.Size()))
}

// divisors is the constant of the products of counts, one per window, in the dtype and graph of x.
func divisors(x ir.Value, counts [][]int64) ir.Value {
	shape, values := make([]int64, len(counts)), []float64{1}
	for i, axis := range counts {
		shape[i] = int64(len(axis))
		var next []float64
		for _, v := range values {
			for _, c := range axis {
				next = append(next, v*float64(c))
			}
		}
		values = next
	}
	t, err := ir.Zeros(x.DType(), shape...)
	if err != nil {
		return x.Graph().Fail("Pool", err)
	}
	for i, v := range values {
		ir.PutFloat(t.DType(), t.Bytes(), i, v)
	}
	return x.Graph().Constant(t)
}
