package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("Activation", activation)
	on("ActivationBackward", activationBackward)
	on("Binary", binaryFn)
	on("Compare", compareFn)
	on("Cast", cast)
	on("StopGradient", func(c *call) error { copy(c.out[0].data, c.in[0].data); return nil })
	on("Where", where)
	on("Fma", fma)
	on("Clamp", clamp)
	on("ReluBackward", reluBackward)
}

// meets is tensor.broadcast without divisions where t has one element or only lacks leading axes.
func (t tensor) meets(out []int64) func(i int) int {
	n, suffix := t.len(), true
	for k, d := range t.dims {
		suffix = suffix && d == out[len(out)-len(t.dims)+k]
	}
	switch {
	case n == 1:
		return func(int) int { return 0 }
	case suffix && n > 0 && n < product(out):
		return func(i int) int { return i % n }
	}
	return t.broadcast(out)
}

func width(d ir.DType) (bits uint, signed bool) {
	return uint(8 * d.Size()), ir.SignedInt.Has(d)
}

// activation: see op.Activation.
func activation(c *call) error {
	a, x, y := attrs[op.ActivationAttrs](c), c.in[0], c.out[0]
	s, ok := op.Unary(string(a.Fn))
	if !ok {
		return broken("C1", "unknown fn %s", a.Fn)
	}
	switch {
	case s.Name == "identity":
		copy(y.data, x.data)
	case x.dtype == ir.C64: // neg
		for i := range y.len() {
			y.setComplex(i, -x.complex(i))
		}
	case x.dtype == ir.Bool:
		f := s.BoolFunc()
		for i := range y.len() {
			y.setBool(i, f(x.int(i) != 0, false))
		}
	case x.isInt():
		f := s.IntFunc(width(x.dtype))
		for i := range y.len() {
			y.setInt(i, f(x.int(i), 0))
		}
	default:
		f := s.Func(a.Alpha, a.Beta)
		for i, v := range x.floats() {
			y.set(i, f(v, v))
		}
	}
	return nil
}

func (t tensor) setBool(i int, v bool) {
	t.data[i] = 0
	if v {
		t.data[i] = 1
	}
}

// activationBackward: see op.ActivationBackward.
func activationBackward(c *call) error {
	a := attrs[op.ActivationAttrs](c)
	s, ok := op.Unary(string(a.Fn))
	if !ok || s.Deriv(0) == nil {
		return broken("C1", "%s has no derivative", a.Fn)
	}
	f, dy := s.BackwardFunc(0, a.Alpha, a.Beta), c.in[1].floats()
	for i, x := range c.in[0].floats() {
		c.out[0].set(i, f(x, 0, dy[i]))
	}
	return nil
}

// reluBackward: see op.ReluBackward.
func reluBackward(c *call) error {
	for i, x := range c.in[0].floats() {
		if x <= 0 {
			c.out[0].set(i, 0)
		} else {
			copy(c.out[0].elem(i), c.in[1].elem(i))
		}
	}
	return nil
}

// binaryFn: see op.BinaryOp.
func binaryFn(c *call) error {
	s, ok := op.Binary(string(attrs[op.BinaryAttrs](c).Fn))
	if !ok {
		return broken("C1", "unknown fn %s", attrs[op.BinaryAttrs](c).Fn)
	}
	return pairs(c, s)
}

// compareFn: see op.CompareOp.
func compareFn(c *call) error {
	s, ok := op.Compare(string(attrs[op.CompareAttrs](c).Fn))
	if !ok {
		return broken("C1", "unknown fn %s", attrs[op.CompareAttrs](c).Fn)
	}
	return pairs(c, s)
}

func pairs(c *call, s *op.Scalar) error {
	a, b, y := c.in[0], c.in[1], c.out[0]
	ia, ib := a.meets(y.dims), b.meets(y.dims)
	switch {
	case a.dtype == ir.C64:
		for i := range y.len() {
			complexPair(s.Name, a.complex(ia(i)), b.complex(ib(i)), y, i)
		}
	case a.dtype == ir.Bool:
		f := s.BoolFunc()
		for i := range y.len() {
			y.setBool(i, f(a.int(ia(i)) != 0, b.int(ib(i)) != 0))
		}
	case a.isInt():
		f := s.IntFunc(width(a.dtype))
		for i := range y.len() {
			y.setInt(i, f(a.int(ia(i)), b.int(ib(i))))
		}
	default:
		f, fa, fb := s.Func(math.NaN(), math.NaN()), a.floats(), b.floats()
		for i := range y.len() {
			y.set(i, f(fa[ia(i)], fb[ib(i)]))
		}
	}
	return nil
}

// complexPair computes in c128, whose exponents spare a quotient the overflow of its scale.
func complexPair(fn string, a, b complex128, y tensor, i int) {
	switch fn {
	case "add":
		y.setComplex(i, a+b)
	case "sub":
		y.setComplex(i, a-b)
	case "mul":
		y.setComplex(i, a*b)
	case "div":
		y.setComplex(i, a/b)
	case "eq":
		y.setBool(i, a == b)
	case "ne":
		y.setBool(i, a != b)
	}
}

// where: see op.Where.
func where(c *call) error {
	y := c.out[0]
	ic, ia, ib := c.in[0].meets(y.dims), c.in[1].meets(y.dims), c.in[2].meets(y.dims)
	for i := range y.len() {
		if c.in[0].data[ic(i)] != 0 {
			copy(y.elem(i), c.in[1].elem(ia(i)))
		} else {
			copy(y.elem(i), c.in[2].elem(ib(i)))
		}
	}
	return nil
}

// fma: see op.Fma.
func fma(c *call) error {
	a, b, d, y := c.in[0], c.in[1], c.in[2], c.out[0]
	ia, ib, id := a.meets(y.dims), b.meets(y.dims), d.meets(y.dims)
	if y.isInt() {
		for i := range y.len() {
			y.setInt(i, a.int(ia(i))*b.int(ib(i))+d.int(id(i)))
		}
		return nil
	}
	f := fmaOdd
	if y.dtype == ir.F64 {
		f = math.FMA
	}
	fa, fb, fd := a.floats(), b.floats(), d.floats()
	for i := range y.len() {
		y.set(i, f(fa[ia(i)], fb[ib(i)], fd[id(i)]))
	}
	return nil
}

// fmaOdd is a*b + c for f32 operands, whose product f64 holds, rounded to odd: the rounding to f32 or less that follows is then the
// only one that counts.
func fmaOdd(a, b, c float64) float64 {
	p := float64(a * b)
	s := p + c
	t := s - p
	e := (p - (s - t)) + (c - t)
	bits := math.Float64bits(s)
	if math.IsInf(s, 0) || math.IsNaN(s) || e == 0 || bits&1 == 1 {
		return s
	}
	if (e > 0) == (s > 0) {
		return math.Float64frombits(bits + 1)
	}
	return math.Float64frombits(bits - 1)
}

// clamp: see op.Clamp.
func clamp(c *call) error {
	a, x, y := attrs[op.ClampAttrs](c), c.in[0], c.out[0]
	if x.isInt() {
		lo, hi := a.IntBounds(x.dtype)
		w, signed := width(x.dtype)
		least, most := intFunc("min", w, signed), intFunc("max", w, signed)
		for i := range y.len() {
			y.setInt(i, least(most(x.int(i), lo), hi))
		}
		return nil
	}
	lo, hi := a.FloatBounds(x.dtype)
	for i, v := range x.floats() {
		y.set(i, min(max(v, lo), hi))
	}
	return nil
}

func intFunc(name string, w uint, signed bool) func(a, b int64) int64 {
	s, _ := op.Binary(name)
	return s.IntFunc(w, signed)
}

// cast: see op.Cast.
func cast(c *call) error {
	a, x, y := attrs[op.CastAttrs](c), c.in[0], c.out[0]
	switch {
	case x.dtype == y.dtype:
		copy(y.data, x.data)
	case x.isInt() || x.dtype == ir.Bool:
		for i := range y.len() {
			castInt(x, y, i, a.Saturate)
		}
	default:
		for i, v := range x.floats() {
			castFloat(y, i, v, a.Saturate)
		}
	}
	return nil
}

func castInt(x, y tensor, i int, saturate bool) {
	v := x.int(i)
	switch {
	case y.dtype == ir.Bool:
		y.setBool(i, v != 0)
	case y.isInt():
		y.setInt(i, v)
	case y.dtype == ir.F64 && x.dtype == ir.U64:
		y.set(i, float64(uint64(v)))
	case y.dtype == ir.F64:
		y.set(i, float64(v))
	case x.dtype == ir.U64:
		castFloat(y, i, ir.F64OddFromU64(uint64(v)), saturate)
	default:
		castFloat(y, i, ir.F64OddFromI64(v), saturate)
	}
}

func castFloat(y tensor, i int, v float64, saturate bool) {
	w, signed := width(y.dtype)
	switch {
	case y.dtype == ir.Bool:
		y.setBool(i, v != 0)
	case y.isInt():
		y.setInt(i, ir.IntFromF64(v, w, signed))
	case y.dtype == ir.F8E4M3:
		y.data[i] = ir.F8E4M3FromF64(v, saturate)
	case y.dtype == ir.F8E5M2:
		y.data[i] = ir.F8E5M2FromF64(v, saturate)
	default:
		y.set(i, v)
	}
}
