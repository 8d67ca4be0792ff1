package fuzz

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

var nan = math.NaN()

// pattern writes a formula out that passes look for, or one that is off it in some place.
func (w *grower) pattern() {
	before := len(w.g.Nodes)
	x := w.pickFloat()
	if slices.Contains(w.shapeOf(x), 0) {
		return
	}
	y := pickOf(w, w.geluErf, w.geluErf, w.geluTanh, w.hardSwish, w.silu, w.swiglu, w.layerNorm, w.layerNorm, w.rmsNorm, w.softmax, w.attention, w.attention,
		w.rotary, w.residualNorm, w.quantised, w.batchNorm, w.softplus, w.piecewise, w.piecewise, w.oneHot)(x)
	if y.IsZero() || !w.compute() {
		return
	}
	for _, n := range w.g.Nodes[before:] {
		if n.Row.Has(ir.Leaf) {
			continue
		}
		for _, v := range n.Results() {
			w.rough[v] = true
			if w.chance(60) {
				w.extra = append(w.extra, v) // another reader of an inner value
			}
		}
	}
	w.rough[y] = true
	w.add(y)
}

// near is c, and now and then a number that is not.
func (w *grower) near(c float64) float64 {
	if w.chance(12) {
		return pickOf(w, c*1.01, c*2, -c, c+0.5)
	}
	return c
}

// swap gives the operands of a commutative function in either order.
func (w *grower) swap(f func(a, b ir.Value) ir.Value, a, b ir.Value) ir.Value {
	if w.chance(2) {
		return f(b, a)
	}
	return f(a, b)
}

// number is a constant of v's dtype: a scalar, or with as many ones for dims as v has.
func (w *grower) number(v ir.Value, c float64) ir.Value {
	var shape []int64
	if w.chance(4) {
		shape = slices.Repeat([]int64{1}, w.IntN(v.Rank()+1))
	}
	t, err := ir.Zeros(v.DType(), shape...)
	if err != nil {
		w.err = err
		return v
	}
	ir.PutFloat(v.DType(), t.Bytes(), 0, w.near(c))
	return w.g.Constant(t)
}

func add(a, b ir.Value) ir.Value { return op.Add(a, b) }
func mul(a, b ir.Value) ir.Value { return op.Mul(a, b) }

// limited is x with its infinities clamped, as far as that is known: there functions of the unary table have limits where their formulas give NaN.
func (w *grower) limited(x ir.Value) ir.Value {
	if !w.compute() || w.finite(x) {
		return x
	}
	return op.Clamp(x, -64, 64)
}

func (w *grower) geluErf(x ir.Value) ir.Value {
	x = w.limited(x)
	var t ir.Value
	if w.chance(2) {
		t = op.Div(x, w.number(x, math.Sqrt2))
	} else {
		t = w.swap(mul, x, w.number(x, math.Sqrt2/2))
	}
	phi := w.swap(add, op.Erf(t), w.number(x, 1))
	switch w.IntN(3) {
	case 0:
		return w.swap(mul, w.swap(mul, x, phi), w.number(x, 0.5))
	case 1:
		return w.swap(mul, w.swap(mul, x, w.number(x, 0.5)), phi)
	}
	return w.swap(mul, x, w.swap(mul, phi, w.number(x, 0.5)))
}

func (w *grower) geluTanh(x ir.Value) ir.Value {
	x = op.Min(op.Max(x, -8.0), 8.0)
	cube := w.swap(mul, op.Mul(x, x), x)
	if w.chance(2) {
		cube = op.Pow(x, w.number(x, 3))
	}
	u := w.swap(mul, w.swap(add, x, w.swap(mul, cube, w.number(x, 0.044715))), w.number(x, math.Sqrt(2/math.Pi)))
	return w.swap(mul, w.swap(mul, x, w.number(x, 0.5)), w.swap(add, op.Tanh(u), w.number(x, 1)))
}

func (w *grower) hardSwish(x ir.Value) ir.Value {
	x = w.limited(x)
	gate := op.Clamp(w.swap(add, x, w.number(x, 3)), 0, 6)
	if w.chance(2) {
		gate = op.Relu6(w.swap(add, x, w.number(x, 3)))
	}
	if w.chance(2) {
		return w.swap(mul, x, op.Div(gate, w.number(x, 6)))
	}
	return op.Div(w.swap(mul, x, gate), w.number(x, 6))
}

func (w *grower) silu(x ir.Value) ir.Value {
	x = w.limited(x)
	return w.swap(mul, x, op.Sigmoid(x))
}

func (w *grower) softplus(x ir.Value) ir.Value {
	return op.Log(w.swap(add, op.Exp(op.Min(x, 8.0)), w.number(x, 1)))
}

// piecewise is one of the functions that are spelled out by cases, or by the greater of two.
func (w *grower) piecewise(x ir.Value) ir.Value {
	x = w.limited(x)
	least := func(u ir.Value) ir.Value { return op.Min(u, w.number(x, 0)) }
	less := func(u ir.Value) ir.Value { return op.Sub(op.Exp(u), w.number(x, 1)) }
	positive := op.Gt(x, w.number(x, 0))
	switch w.IntN(6) {
	case 0:
		return op.Max(x, w.swap(mul, x, w.number(x, 0.25)))
	case 1:
		return op.Where(positive, x, w.swap(mul, x, w.number(x, 0.25)))
	case 2:
		return op.Where(positive, x, w.swap(mul, less(least(x)), w.number(x, 1.5)))
	case 3:
		return w.swap(add, op.Relu(x), least(less(least(x))))
	case 4:
		return op.Div(x, w.swap(add, op.Abs(x), w.number(x, 1)))
	}
	return w.swap(add, op.Relu(x), op.Log(w.swap(add, op.Exp(op.Neg(op.Abs(x))), w.number(x, 1))))
}

// oneHot is a table times one-hot rows of x rounded, some of them of indices outside, beside which x stays.
func (w *grower) oneHot(x ir.Value) ir.Value {
	if x.DType() != ir.F32 || x.Rank() == 0 || x.Rank() > 5 || !allStatic(x) || !w.compute() || !w.finite(x) {
		return ir.Value{}
	}
	n := 1 + w.IntN(9)
	numbers := make([]int32, n)
	for i := range numbers {
		numbers[i] = int32(w.near(float64(i)))
	}
	index := op.Reshape(op.Cast(op.Clamp(x, -2, 12), ir.I32), append(slices.Clone(x.Shape()), ir.D(1))...)
	rows := op.Cast(op.Eq(index, w.g.Constant(ir.New(numbers, n))), ir.F32)
	return op.MatMul(rows, w.weight(ir.F32, 0.5, int64(n), 1+w.Int64N(5)))
}

func (w *grower) swiglu(x ir.Value) ir.Value {
	if x.Rank() == 0 || !static(x, -1) {
		return ir.Value{}
	}
	d, _ := x.Dim(-1).Static()
	if d%2 == 0 && w.chance(2) {
		a, b := op.Narrow(x, -1, 0, d/2), op.Narrow(x, -1, d/2, d/2)
		return w.swap(mul, w.silu(a), b)
	}
	if x.Rank() < 2 {
		return ir.Value{}
	}
	n := 1 + w.Int64N(9)
	a, b := op.MatMul(x, w.weight(x.DType(), 0.5, d, n)), op.MatMul(x, w.weight(x.DType(), 0.5, d, n))
	return w.swap(mul, w.silu(a), b)
}

// affine scales and shifts along the last axis, or not.
func (w *grower) affine(y ir.Value) ir.Value {
	if d, ok := y.Dim(-1).Static(); ok {
		if !w.chance(4) {
			y = w.swap(mul, y, w.weight(y.DType(), 1, d))
		}
		if !w.chance(3) {
			y = w.swap(add, y, w.weight(y.DType(), 1, d))
		}
	}
	return y
}

func (w *grower) layerNorm(x ir.Value) ir.Value {
	if x.Rank() == 0 || !static(x, -1) {
		return ir.Value{}
	}
	axis := x.Rank() - 1
	if w.chance(10) {
		axis = w.IntN(x.Rank())
	}
	mean := func(v ir.Value) ir.Value { return op.Reduce(v, "mean", []int{axis}, true) }
	c := op.Sub(x, mean(x))
	sq := op.Mul(c, c)
	switch w.IntN(4) {
	case 0:
		sq = op.Square(c)
	case 1:
		sq = op.Pow(c, w.number(x, 2))
	}
	v := w.swap(add, mean(sq), w.number(x, 0.1))
	if w.chance(3) {
		return w.affine(w.swap(mul, c, op.Rsqrt(v)))
	}
	return w.affine(op.Div(c, op.Sqrt(v)))
}

func (w *grower) rmsNorm(x ir.Value) ir.Value {
	if x.Rank() == 0 || !static(x, -1) {
		return ir.Value{}
	}
	ms := op.Reduce(op.Mul(x, x), pickOf[op.ReduceFn](w, "mean", "mean", "mean", "sum"), []int{-1}, true)
	v := w.swap(add, ms, w.number(x, 0.1))
	y := op.Div(x, op.Sqrt(v))
	if w.chance(2) {
		y = w.swap(mul, x, op.Rsqrt(v))
	}
	if d, _ := x.Dim(-1).Static(); w.chance(2) {
		y = w.swap(mul, y, w.weight(x.DType(), 1, d))
	}
	return y
}

func (w *grower) softmax(x ir.Value) ir.Value {
	if x.Rank() == 0 {
		return ir.Value{}
	}
	axis := x.Rank() - 1
	if w.chance(3) {
		axis = w.IntN(x.Rank())
	}
	e := op.Exp(op.Sub(x, op.Reduce(x, "max", []int{axis}, true)))
	other := axis
	if w.chance(10) {
		other = w.IntN(x.Rank())
	}
	return op.Div(e, op.Reduce(e, "sum", []int{other}, true))
}

// attention is softmax(q k^T scale + mask) v, of one value or of three. Infinities in q or k could make all scores of a row -inf, which gives 0 or NaN.
func (w *grower) attention(x ir.Value) ir.Value {
	n := w.known(x).base.Len()
	if !allStatic(x) || n < 4 {
		return ir.Value{}
	}
	x = w.limited(x)
	shape := []int64{1 + w.Int64N(2), 1 + w.Int64N(2), 1 + w.Int64N(5), pickOf[int64](w, 1, 2, 3, 4, 8)}
	for i := range shape {
		for shape[0]*shape[1]*shape[2]*shape[3] > int64(n) && shape[i] > 1 {
			shape[i]--
		}
	}
	q := op.ReshapeInts(op.Narrow(op.ReshapeInts(x, int64(n)), 0, 0, shape[0]*shape[1]*shape[2]*shape[3]), shape...)
	keys := shape[2]
	if w.chance(3) {
		keys = 1 + w.Int64N(6)
	}
	k := w.limited(w.weight(x.DType(), 1, shape[0], shape[1], keys, shape[3]))
	v := w.weight(x.DType(), 1, shape[0], shape[1], keys, pickOf[int64](w, shape[3], shape[3], 3))
	if w.chance(4) && keys == shape[2] {
		k = q
	}
	scale := 1 / math.Sqrt(float64(shape[3]))
	kt := op.Transpose(k, 0, 1, 3, 2)
	var s ir.Value
	switch w.IntN(5) {
	case 0:
		s = op.MatMul(w.swap(mul, q, w.number(x, scale)), kt)
	case 1:
		s = op.Div(op.MatMul(q, kt), w.number(x, 1/scale))
	case 2:
		s = op.MatMul(w.swap(mul, q, w.number(x, math.Sqrt(scale))), w.swap(mul, kt, w.number(x, math.Sqrt(scale))))
	case 3:
		s = op.MatMul(q, kt)
	default:
		s = w.swap(mul, op.MatMul(q, kt), w.number(x, scale))
	}
	s = w.masked(s, shape[0], shape[1], shape[2], keys)
	p := op.Softmax(s, -1)
	if w.chance(3) {
		p = w.softmax(s)
	}
	return op.MatMul(p, v)
}

// masked adds a mask to scores, fills by one, or leaves them.
func (w *grower) masked(s ir.Value, b, h, q, k int64) ir.Value {
	shape := pickOf(w, []int64{b, 1, 1, k}, []int64{1, 1, q, k}, []int64{q, k}, []int64{b, h, q, k}, []int64{b, 1, q, k})
	keep, _ := ir.Zeros(ir.Bool, shape...)
	for i := range keep.Len() {
		keep.Bytes()[i] = byte(min(1, w.IntN(4)))
	}
	fill := pickOf(w, math.Inf(-1), -1e4, -1e4)
	t, _ := ir.Zeros(s.DType(), shape...)
	for i := range t.Len() {
		if keep.Bytes()[i] == 0 {
			ir.PutFloat(t.DType(), t.Bytes(), i, fill)
		} else if w.chance(3) {
			ir.PutFloat(t.DType(), t.Bytes(), i, w.NormFloat64())
		}
	}
	switch w.IntN(5) {
	case 0:
		return s
	case 1:
		return op.Where(w.bind(keep, 3), s, fill)
	}
	return w.swap(add, s, w.bind(t, 3))
}

// rotary is x cos + rotate(x) sin with the halves of the last axis exchanged.
func (w *grower) rotary(x ir.Value) ir.Value {
	d, ok := x.Dim(-1).Static()
	if x.Rank() == 0 || !ok || d%2 != 0 || d == 0 {
		return ir.Value{}
	}
	a, b := op.Narrow(x, -1, 0, d/2), op.Narrow(x, -1, d/2, d/2)
	turned := op.Concat(-1, op.Neg(b), a)
	if w.chance(8) {
		turned = op.Concat(-1, a, op.Neg(b))
	}
	shape := []int64{d}
	if x.Rank() > 1 && static(x, -2) {
		s, _ := x.Dim(-2).Static()
		shape = []int64{s, d}
	}
	half := append(slices.Clone(shape[:len(shape)-1]), d/2)
	angles := w.weight(x.DType(), 1, half...)
	both := op.Concat(-1, angles, angles)
	return w.swap(add, w.swap(mul, x, op.Cos(both)), w.swap(mul, turned, op.Sin(both)))
}

func (w *grower) residualNorm(x ir.Value) ir.Value {
	y := w.like(x)
	if x.Rank() == 0 || !slices.Equal(y.Shape(), x.Shape()) || !static(x, -1) {
		return ir.Value{}
	}
	d, _ := x.Dim(-1).Static()
	s := w.swap(add, x, y)
	if w.chance(2) {
		s = op.Add(s, w.weight(x.DType(), 1, d))
	}
	if w.chance(2) {
		w.add(s)
	}
	if w.chance(3) {
		return op.RmsNorm(s, w.weight(x.DType(), 1, d), ir.Value{}, -1, 0.1)
	}
	return op.LayerNorm(s, w.weight(x.DType(), 1, d), w.weight(x.DType(), 1, d), -1, 0.1)
}

// quantised multiplies by int8 weights that are cast and scaled, by column or as a whole.
func (w *grower) quantised(x ir.Value) ir.Value {
	k, ok := x.Dim(-1).Static()
	if x.Rank() < 2 || !ok {
		return ir.Value{}
	}
	n := 1 + w.Int64N(17)
	t, _ := ir.Zeros(ir.I8, k, n)
	for i := range t.Len() {
		t.Bytes()[i] = byte(w.IntN(256))
	}
	scale := pickOf(w, []int64{n}, []int64{}, []int64{1, n}, []int64{k, 1})
	wt := w.swap(mul, op.Cast(w.bind(t, 2), x.DType()), w.weight(x.DType(), 0x1p-6, scale...))
	if w.chance(3) {
		return w.swap(mul, op.MatMul(x, op.Cast(w.g.Constant(t), x.DType())), w.weight(x.DType(), 0x1p-6, n))
	}
	y := op.MatMul(x, wt)
	if w.chance(2) {
		y = op.Add(y, w.weight(x.DType(), 1, n))
	}
	return y
}

// batchNorm scales and shifts the channels of a convolution with arithmetic.
func (w *grower) batchNorm(x ir.Value) ir.Value {
	if x = w.image(x); x.IsZero() {
		return x
	}
	c, _ := x.Dim(1).Static()
	o := 1 + w.Int64N(6)
	y := op.Conv2d(x, w.weight(x.DType(), 0.3, o, c, 1, 1), ir.Value{}, op.ConvAttrs{})
	y = w.swap(mul, y, w.weight(x.DType(), 1, o, 1, 1))
	return w.swap(add, y, w.weight(x.DType(), 1, o, 1, 1))
}

// ---- control ----

// control adds an If with both branches alive, a Scan over rows, or a While with a counter.
func (w *grower) control() {
	x := w.pickFloat()
	if !w.compute() {
		return
	}
	body := func(x ir.Value) ir.Value { return op.Tanh(op.Add(op.Mul(x, 0.5), 0.25)) }
	switch w.IntN(4) {
	case 0, 1:
		pred := ir.Scalar(w.chance(2))
		var p ir.Value
		if s := w.pickIf(func(v ir.Value) bool { return v.DType() == ir.Bool && v.Rank() == 0 && w.exact(v) }); !s.IsZero() && w.chance(2) {
			p = s
		} else {
			p = w.bind(pred, 0)
		}
		swapped := w.chance(2)
		out := op.If(p, []ir.Value{x, x}, func(_ *ir.Graph, in []ir.Value) []ir.Value { return []ir.Value{body(in[0]), in[1]} },
			func(_ *ir.Graph, in []ir.Value) []ir.Value {
				if swapped {
					return []ir.Value{op.Neg(in[1]), op.Relu(op.Relu(in[0]))}
				}
				return []ir.Value{op.Mul(in[0], in[1]), op.Abs(in[0])}
			})
		w.add(out[0])
		w.add(out[1])
	case 2:
		if t, ok := x.Dim(0).Static(); x.Rank() > 0 && ok && t > 0 && t < 20 {
			init := w.weight(x.DType(), 1, w.shapeOf(x)[1:]...)
			if !w.compute() || !init.Type().Equal(ir.Type{DType: x.DType(), Shape: x.Shape()[1:]}) {
				return
			}
			out := op.Scan([]ir.Value{init}, nil, []ir.Value{x}, func(_ *ir.Graph, c, _, xs []ir.Value) []ir.Value {
				y := body(op.Add(op.Mul(c[0], 0.5), xs[0]))
				return []ir.Value{y, op.Neg(y)}
			}, op.ScanOptions{Reverse: w.chance(2)})
			w.add(out[0])
			w.add(out[1])
		}
	case 3:
		limit := w.g.Constant(ir.Scalar(w.Int64N(4)))
		zero := w.g.Constant(ir.Scalar(int64(0)))
		out := op.While([]ir.Value{x, zero}, []ir.Value{limit},
			func(_ *ir.Graph, c, cap []ir.Value) ir.Value { return op.Lt(c[1], cap[0]) },
			func(_ *ir.Graph, c, cap []ir.Value) []ir.Value { return []ir.Value{body(c[0]), op.Add(c[1], 1)} }, op.WhileOptions{})
		w.add(out[0])
	}
}
