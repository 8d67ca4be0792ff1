package fuzz

import (
	"slices"
	"sync"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// permutation draws an order of the axes.
func (w *grower) permutation(rank int) []int {
	p := make([]int, rank)
	for i := range p {
		p[i] = i
	}
	w.Shuffle(rank, func(i, j int) { p[i], p[j] = p[j], p[i] })
	return p
}

// view adds one to three moves of elements, most of which are views.
func (w *grower) view() {
	x := w.pick()
	for range 1 + w.IntN(3) {
		y := w.move(x)
		if y.IsZero() || y.Poisoned() || !w.compute() {
			return
		}
		w.add(y)
		x = y
	}
}

func (w *grower) move(x ir.Value) ir.Value {
	axis, ok := w.axis(x)
	if !ok {
		if x.Rank() == 0 {
			return op.Reshape(x, ir.Dims(1, 1)...)
		}
		return op.Transpose(x, w.permutation(x.Rank())...)
	}
	d, _ := x.Dim(axis).Static()
	switch w.IntN(13) {
	case 0, 1:
		return op.Transpose(x, w.permutation(x.Rank())...)
	case 2:
		return op.Reverse(x, axis)
	case 3:
		start := w.Int64N(d + 1)
		return op.Narrow(x, axis, start, w.Int64N(d-start+1))
	case 4:
		if w.chance(3) {
			return op.Slice(x, ir.Dims(d), ir.Dims(-d-1), []int{axis}, []int64{-1 - w.Int64N(2)})
		}
		return op.Slice(x, ir.Dims(d/3), ir.Dims(d), []int{axis}, []int64{1 + w.Int64N(3)})
	case 5:
		if x.Rank() > 5 {
			return op.Copy(x)
		}
		return op.Reshape(x, append(ir.Dims(1), x.Shape()...)...)
	case 6: // the axis and its neighbour in one, or in two parts
		if shape := slices.Clone(x.Shape()); axis > 0 && w.chance(2) {
			shape[axis-1] = shape[axis-1].Mul(shape[axis])
			return op.Reshape(x, slices.Delete(shape, axis, axis+1)...)
		} else if d%2 == 0 && x.Rank() < 6 {
			return op.Reshape(x, slices.Replace(shape, axis, axis+1, ir.D(2), ir.D(d/2))...)
		}
		return op.Reshape(x, ir.Count(x.Shape()))
	case 7, 8:
		if d == 1 {
			shape := slices.Clone(x.Shape())
			shape[axis] = ir.D(1 + w.Int64N(5))
			return op.Expand(x, shape...)
		}
		if x.Rank() < 5 {
			return op.Expand(op.Reshape(x, append(ir.Dims(1), x.Shape()...)...), append(ir.Dims(1+w.Int64N(3)), x.Shape()...)...)
		}
		return op.Transpose(x, w.permutation(x.Rank())...)
	case 9:
		pads := make([]int64, x.Rank())
		pads[axis] = min(1, d-1)
		if d == 0 || !allStatic(x) || !ir.Real.Has(x.DType()) {
			return ir.Value{}
		}
		return op.Pad(x, ir.Dims(pads...), pickOf(w, op.PadConstant, op.PadReflect, op.PadReplicate, op.PadCircular), ir.IntNumber(1))
	case 10:
		if d == 0 || ir.Code.Has(x.DType()) {
			return ir.Value{}
		}
		return op.Roll(x, []int64{w.Int64N(2*d+1) - d}, []int{axis})
	case 11:
		repeats := slices.Repeat(ir.Dims(1), x.Rank())
		repeats[axis] = ir.D(2)
		return op.Tile(x, repeats...)
	}
	if isFloat(x) && x.Rank() > 1 && allStatic(x) {
		return op.Trilu(x, w.chance(2), w.Int64N(3)-1)
	}
	return op.Copy(x)
}

func allStatic(x ir.Value) bool {
	_, ok := ir.StaticShape(x.Shape())
	return ok
}

func (w *grower) gatherStep() {
	x := w.pick()
	axis, ok := w.axis(x)
	if !ok {
		return
	}
	d, _ := x.Dim(axis).Static()
	if d == 0 {
		return
	}
	index, _ := ir.Zeros(pickOf(w, ir.I64, ir.I32), w.shape(w.IntN(2))...)
	for i := range index.Len() {
		ir.PutInt(index.DType(), index.Bytes(), i, w.Int64N(2*d)-d)
	}
	switch w.IntN(4) {
	case 0:
		if allStatic(x) {
			shape := slices.Clone(w.shapeOf(x))
			shape[axis] = 1 + w.Int64N(3)
			e, _ := ir.Zeros(ir.I64, shape...)
			for i := range e.Len() {
				ir.PutInt(ir.I64, e.Bytes(), i, w.Int64N(d))
			}
			w.add(op.GatherElements(x, w.bind(e, 0), axis))
		}
	case 1:
		if isFloat(x) {
			start := w.g.Constant(ir.Scalar(w.Int64N(d)))
			w.add(op.DynamicUpdateSlice(x, op.Neg(op.Narrow(x, axis, 0, 1)), start, axis))
		}
	default:
		w.add(op.Gather(x, w.bind(index, 0), axis))
	}
}

// concat joins values along an axis, or splits one and joins the pieces in another order.
func (w *grower) concat() {
	x := w.pick()
	axis, ok := w.axis(x)
	if !ok {
		return
	}
	d, _ := x.Dim(axis).Static()
	if w.chance(2) {
		cut := w.Int64N(d + 1)
		a, b := op.Narrow(x, axis, 0, cut), op.Narrow(x, axis, cut, d-cut)
		if isFloat(x) {
			a = op.Relu(a)
		}
		if w.chance(2) {
			a, b = b, a
		}
		w.add(op.Concat(axis, a, b))
		return
	}
	parts := []ir.Value{x}
	for range 1 + w.IntN(2) {
		y := w.pickIf(func(y ir.Value) bool {
			if y.Rank() != x.Rank() || y.DType() != x.DType() {
				return false
			}
			for k := range y.Rank() {
				if k != axis && y.Dim(k) != x.Dim(k) {
					return false
				}
			}
			return true
		})
		if !y.IsZero() {
			parts = append(parts, y)
		}
	}
	w.add(op.Concat(axis, append(parts, x)...))
}

// ---- reductions and norms ----

func (w *grower) reduce() {
	x := w.pickFloat()
	axis, ok := w.axis(x)
	if !ok || slices.Contains(w.shapeOf(x), 0) {
		return
	}
	keep := w.chance(2)
	switch w.IntN(11) {
	case 0, 1:
		w.add(op.Reduce(x, pickOf[op.ReduceFn](w, "max", "min"), []int{axis}, keep))
	case 2, 3:
		axes := []int{axis}
		if other := w.IntN(x.Rank()); other != axis {
			axes = append(axes, other)
		}
		w.add(op.Reduce(x, pickOf[op.ReduceFn](w, "sum", "mean"), axes, keep))
	case 4:
		w.add(op.Reduce(x, pickOf[op.ReduceFn](w, "logsumexp", "l1", "sum_square"), []int{axis}, keep))
	case 5, 6:
		w.add(op.Softmax(x, axis))
	case 7:
		w.add(op.LogSoftmax(x, axis))
	case 8:
		w.add(op.Cumsum(x, axis))
	case 9:
		if w.exact(x) {
			w.add(pickOf(w, op.ArgMax, op.ArgMin)(x, axis))
		}
	case 10:
		if !w.exact(x) || !w.moderate(w.known(x).base) {
			return
		}
		if d, _ := x.Dim(axis).Static(); d > 1 && w.chance(2) {
			v, i := op.TopK(x, 1+w.Int64N(d-1), axis, w.chance(2))
			w.add(v)
			w.add(i)
			return
		}
		v, i := op.Sort(x, axis, w.chance(2))
		w.add(v)
		w.add(i)
	}
}

func (w *grower) norm() {
	x := w.pickFloat()
	if x.Rank() == 0 || !static(x, -1) || slices.Contains(w.shapeOf(x), 0) {
		return
	}
	d, _ := x.Dim(-1).Static()
	vector := func() ir.Value {
		if w.chance(3) {
			return ir.Value{}
		}
		return w.weight(x.DType(), 1, d)
	}
	switch w.IntN(5) {
	case 0, 1:
		w.add(op.LayerNorm(x, vector(), vector(), -1, 0.1))
	case 2:
		w.add(op.RmsNorm(x, vector(), ir.Value{}, -1, 0.1))
	case 3:
		y := w.like(x)
		if y.Rank() == x.Rank() && slices.Equal(y.Shape(), x.Shape()) {
			a, b := op.FusedResidualLN(x, y, ir.Value{}, w.weight(x.DType(), 1, d), ir.Value{}, -1, 0.1)
			w.add(a)
			w.add(b)
		}
	case 4:
		if x.Rank() > 1 && static(x, 1) {
			c, _ := x.Dim(1).Static()
			w.add(op.BatchNormInference(x, w.weight(x.DType(), 1, c), w.weight(x.DType(), 1, c), w.weight(x.DType(), 1, c), w.variance(x.DType(), c), 1, 0.01))
		}
	}
}

// variance is a weight of positive numbers.
func (w *grower) variance(d ir.DType, n int64) ir.Value {
	t := w.tensor(d, []int64{n})
	for i := range t.Len() {
		ir.PutFloat(d, t.Bytes(), i, 0.5+w.Float64())
	}
	return w.bind(t, 3)
}

// ---- products ----

// tail is what comes after a product: a bias, an activation, a residual, in any order and number.
func (w *grower) tail(y ir.Value, bias func() ir.Value) {
	for range w.IntN(5) {
		if !w.compute() || !w.known(y).steady() {
			return
		}
		switch w.IntN(5) {
		case 0, 1:
			y = op.Add(y, bias())
		case 2:
			y = op.Activation(y, pickOf[op.UnaryFn](w, "relu", "gelu", "silu", "tanh", "sigmoid", "gelu_tanh", "hard_swish"), nan, nan)
		case 3:
			y = op.Add(w.residual(y), y)
		case 4:
			y = op.Mul(y, pickOf(w, 0.5, 2.0, 0.125))
		}
		if w.chance(3) {
			w.add(y)
		}
	}
	w.add(y)
}

// residual is a value of y's shape, or one that broadcasts.
func (w *grower) residual(y ir.Value) ir.Value {
	if !w.compute() || !allStatic(y) || w.chance(2) {
		return w.like(y)
	}
	return w.weight(y.DType(), 1, w.shapeOf(y)...)
}

func (w *grower) product() {
	x := w.pickFloat()
	if x.Rank() == 0 || !static(x, -1) || !w.finite(x) {
		return
	}
	k, _ := x.Dim(-1).Static()
	if x.Rank() == 1 {
		x = op.Reshape(x, ir.D(1), x.Dim(0))
	}
	n := 1 + w.Int64N(20)
	if y := w.pickIf(func(y ir.Value) bool {
		return y.DType() == x.DType() && y.Rank() >= 2 && y.Dim(-2) == x.Dim(-1) && w.finite(y)
	}); !y.IsZero() && w.chance(2) {
		if allStatic(x) && allStatic(y) {
			if _, ok := ir.Broadcast(x.Shape()[:x.Rank()-2], y.Shape()[:y.Rank()-2]); ok {
				w.add(op.MatMul(x, y))
				return
			}
		}
	}
	wt := w.weight(x.DType(), 0.5, k, n)
	if w.chance(3) {
		wt = op.Transpose(w.weight(x.DType(), 0.5, n, k), 1, 0)
	}
	w.tail(op.MatMul(x, wt), func() ir.Value { return w.weight(x.DType(), 1, n) })
}

// image is a value as [N, C, H, W] with static dims, cut out of x.
func (w *grower) image(x ir.Value) ir.Value {
	if !allStatic(x) || !w.finite(x) {
		return ir.Value{}
	}
	n := int64(w.known(x).base.Len())
	shape := []int64{1 + w.Int64N(2), pickOf[int64](w, 1, 2, 4, 8), 1 + w.Int64N(6), 1 + w.Int64N(7)}
	for i := 3; i >= 0; i-- {
		for shape[0]*shape[1]*shape[2]*shape[3] > n && shape[i] > 1 {
			shape[i]--
		}
	}
	if total := shape[0] * shape[1] * shape[2] * shape[3]; n > 0 {
		return op.ReshapeInts(op.Narrow(op.ReshapeInts(x, n), 0, 0, total), shape...)
	}
	return ir.Value{}
}

func (w *grower) convolution() {
	x := w.pickIf(func(v ir.Value) bool {
		return isFloat(v) && v.Rank() == 4 && allStatic(v) && !slices.Contains(w.shapeOf(v), 0)
	})
	if x.IsZero() {
		f := w.pickFloat()
		if x = w.image(f); x.IsZero() {
			return
		}
	}
	c, _ := x.Dim(1).Static()
	d := x.DType()
	if w.chance(6) {
		w.add(pickOf(w, op.GlobalAvgPool, op.GlobalMaxPool)(x))
		return
	}
	if w.chance(5) && c%2 == 0 {
		w.add(op.GroupNorm(x, w.weight(d, 1, c), w.weight(d, 1, c), 2, 0.1))
		return
	}
	o, k, groups := 1+w.Int64N(9), pickOf[int64](w, 1, 3, 3, 2), int64(1)
	if w.chance(4) { // depthwise
		o, groups = c, c
	}
	pad := k / 2
	a := op.ConvAttrs{Padding: []int64{pad, pad, pad, pad}, Groups: groups}
	if w.chance(3) && k > 1 {
		a.Stride = []int64{2, 2}
	}
	var bias ir.Value
	if w.chance(2) {
		bias = w.weight(d, 1, o)
	}
	if h, _ := x.Dim(2).Static(); h+2*pad < k {
		return
	}
	if h, _ := x.Dim(3).Static(); h+2*pad < k {
		return
	}
	y := op.Conv2d(x, w.weight(d, 0.3, o, c/groups, k, k), bias, a)
	if w.chance(2) {
		y = op.BatchNormInference(y, w.weight(d, 1, o), w.weight(d, 1, o), w.weight(d, 1, o), w.variance(d, o), 1, 0.01)
	} else if w.chance(4) {
		y = op.Mul(y, w.weight(d, 1, 1, o, 1, 1))
	}
	w.tail(y, func() ir.Value { return w.weight(d, 1, 1, o, 1, 1) })
}

// ---- any row ----

// interpreted are the rows that package ref has, by number; it has others written out.
var interpreted = sync.OnceValue(func() map[int]bool {
	rows := map[int]bool{}
	if b, _, err := rlx.Lookup("ref"); err == nil {
		for _, c := range b.Caps() {
			rows[c.Op] = true
		}
	}
	return rows
})

// generic adds a node of any row of the table, with operands as the conformance suite makes them: some are values of the pool of that
// type, or made of such a value.
func (w *grower) generic() {
	rows := ir.Rows()
	row := rows[w.IntN(len(rows))]
	if row.Has(ir.Leaf) || row.Has(ir.Random) || !interpreted()[row.Num()] {
		return
	}
	d := w.float
	if list := row.In[0].DTypes.List(); !row.In[0].DTypes.Has(d) || w.chance(3) {
		d = list[w.IntN(len(list))]
	}
	samples := conform.Samples(row, d, w.Uint64())
	if len(samples) == 0 {
		return
	}
	s := samples[w.IntN(len(samples))]
	total := 0
	for _, x := range s.In {
		if x == nil {
			continue
		}
		total += x.Len()
		if !row.Has(ir.Elementwise) && !row.Has(ir.Exact) && !allFinite(x) {
			return
		}
	}
	for _, t := range s.Types {
		n, ok := ir.Count(t.Shape).Static()
		if !ok {
			return
		}
		total += int(n)
	}
	if total > 4096 {
		return
	}
	in := make([]ir.Value, len(s.In))
	for i, x := range s.In {
		if x == nil {
			continue
		}
		in[i] = w.pickIf(func(v ir.Value) bool { // of the same type, and with numbers as tame as those of the sample
			return isFloat(v) && v.Type().Equal(x.Type()) && w.exact(v) && i == 0 && row.Has(ir.Elementwise)
		})
		if in[i].IsZero() {
			in[i] = w.bind(x, 4)
		}
	}
	n, err := w.g.Add(row, "", s.Attrs, in...)
	if err != nil { // some attributes hold for these operands only
		return
	}
	if !w.compute() {
		return
	}
	for _, v := range n.Results() {
		w.add(v)
	}
}
