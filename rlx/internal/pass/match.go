package pass

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// native says whether the target has a kernel for the row; nothing is native where there is no target yet.
func (m *Match) native(row *ir.Row, d ir.DType) bool {
	return m.Support != nil && m.Support.NativeRow(row, d)
}

// isKind says whether v is the result of a node of the given kind.
func isKind(v ir.Value, kind string) bool { return !v.IsZero() && v.Node().Row.Name == kind }

// fixed is the tensor of a constant or of a bound param; nil for other values.
func fixed(v ir.Value) *ir.Tensor {
	if v.IsZero() {
		return nil
	}
	if t, ok := v.Const(); ok {
		return t
	}
	if name, ok := v.Node().ParamName(); ok {
		return v.Graph().ParamData(name)
	}
	return nil
}

// number is the one number that a constant or param of floats holds in every element.
func number(v ir.Value) (float64, bool) {
	t := fixed(unviewed(v))
	if t == nil || t.Len() == 0 || !ir.Float.Has(t.DType()) {
		return 0, false
	}
	first := t.Float(0)
	for i := 1; i < t.Len(); i++ {
		if t.Float(i) != first {
			return 0, false
		}
	}
	return first, true
}

// unviewed is what v is a view of.
func unviewed(v ir.Value) ir.Value {
	for !v.IsZero() && v.Node().Row.Has(ir.View) && len(v.Node().In) == 1 {
		v = v.Node().In[0]
	}
	return v
}

// asBinary is v as fn of two operands.
func asBinary(v ir.Value, fn op.BinaryFn) (a, b ir.Value, ok bool) {
	if !isKind(v, "Binary") || v.Node().Attrs.(*op.BinaryAttrs).Fn != fn {
		return a, b, false
	}
	return v.Node().In[0], v.Node().In[1], true
}

// asUnary is the operand of v, an Activation of function fn.
func asUnary(v ir.Value, fn op.UnaryFn) (x ir.Value, ok bool) {
	if !isKind(v, "Activation") || v.Node().Attrs.(*op.ActivationAttrs).Fn != fn {
		return x, false
	}
	return v.Node().In[0], true
}

// asTranspose is v as a permutation of the axes of x.
func asTranspose(v ir.Value) (x ir.Value, perm []int, ok bool) {
	if !isKind(v, "Transpose") {
		return x, nil, false
	}
	x = v.Node().In[0]
	perm = make([]int, x.Rank())
	for k := range perm {
		perm[k] = len(perm) - 1 - k
	}
	for k, p := range v.Node().Attrs.(*op.TransposeAttrs).Perm {
		perm[k] = int(p)
	}
	return x, perm, true
}

// timesNumber takes a factor or divisor off v where v is a number times x, of x's shape: v = c * x.
func timesNumber(v ir.Value) (x ir.Value, c float64, ok bool) {
	if a, b, is := asBinary(v, "mul"); is {
		if c, ok = number(b); ok {
			return a, c, a.Type().Equal(v.Type())
		}
		c, ok = number(a)
		return b, c, ok && b.Type().Equal(v.Type())
	}
	if a, b, is := asBinary(v, "div"); is {
		c, ok = number(b)
		return a, 1 / c, ok && a.Type().Equal(v.Type())
	}
	return v, 1, false
}

// sliced says which elements [from, to) of one axis of x v is, with step 1; all other axes are whole.
func sliced(v ir.Value) (x ir.Value, axis int, from, to ir.Dim, ok bool) {
	if v.IsZero() || len(v.Node().In) == 0 {
		return
	}
	x = v.Node().In[0]
	switch a := v.Node().Attrs.(type) {
	case *op.NarrowAttrs:
		at, inside := ir.WrapAxis(a.Axis, x.Rank())
		from = ir.D(a.Start)
		if a.Start < 0 && inside {
			from = x.Dim(at).Add(from)
		}
		return x, at, from, from.Add(ir.D(a.Length)), inside
	case *op.SliceAttrs:
		if len(a.Starts) != 1 || len(a.Ends) != 1 || len(a.Steps) > 0 && a.Steps[0] != 1 {
			return
		}
		if len(a.Axes) > 0 {
			axis = int(a.Axes[0])
		}
		at, inside := ir.WrapAxis(axis, x.Rank())
		if !inside {
			return
		}
		from, to = placeIn(a.Starts[0], x.Dim(at)), placeIn(a.Ends[0], x.Dim(at))
		return x, at, from, to, to.Sub(from) == v.Dim(at)
	}
	return
}

// placeIn is an end of a slice as a place in an axis of n elements.
func placeIn(at, n ir.Dim) ir.Dim {
	k, ok := at.Static()
	switch size, static := n.Static(); {
	case !ok:
		return at
	case k == math.MaxInt64 || k == math.MaxInt32 || static && k > size:
		return n
	case k < 0:
		return n.Add(at)
	}
	return at
}

// extent is the numbers that all elements of v lie between; ok is false where that is not known, or where NaN or an infinity may be among them or
// come up on the way.
func extent(v ir.Value) (lo, hi float64, ok bool) { return extentOf(v, 12) }

func extentOf(v ir.Value, depth int) (lo, hi float64, ok bool) {
	if v.IsZero() || depth == 0 {
		return 0, 0, false
	}
	n := v.Node()
	in := func(i int) (lo, hi float64, ok bool) { return extentOf(n.In[i], depth-1) }
	switch {
	case v.DType() == ir.Bool:
		return 0, 1, true
	case ir.Int.Has(v.DType()):
		size := math.Ldexp(1, 8*v.DType().Size())
		if ir.Unsigned.Has(v.DType()) {
			return 0, size, true
		}
		return -size / 2, size / 2, true
	case fixed(v) != nil:
		lo, hi, ok = extentOfTensor(fixed(v))
	case n.Row.Name == "Where":
		lo, hi, ok = in(1)
		l, h, also := in(2)
		lo, hi, ok = min(lo, l), max(hi, h), ok && also
	case n.Row.Name == "Cast" || n.Row.Name == "Gather" || n.Row.Has(ir.View) && len(n.In) == 1:
		lo, hi, ok = in(0)
	case n.Row.Name == "Binary":
		a0, a1, okA := in(0)
		b0, b1, okB := in(1)
		if !okA || !okB {
			return 0, 0, false
		}
		lo, hi, ok = combine(n.Attrs.(*op.BinaryAttrs).Fn, a0, a1, b0, b1)
	}
	limit := largest(v.DType())
	return lo, hi, ok && lo >= -limit && hi <= limit
}

func combine(fn op.BinaryFn, a0, a1, b0, b1 float64) (lo, hi float64, ok bool) {
	switch fn {
	case "add":
		return a0 + b0, a1 + b1, true
	case "sub":
		return a0 - b1, a1 - b0, true
	case "mul":
		p, q, r, s := a0*b0, a0*b1, a1*b0, a1*b1
		return min(p, q, r, s), max(p, q, r, s), true
	}
	return 0, 0, false
}

// scanned bounds how many elements of a constant are looked at.
const scanned = 1 << 20

func extentOfTensor(t *ir.Tensor) (lo, hi float64, ok bool) {
	if t.Len() == 0 || t.Len() > scanned {
		return 0, 0, false
	}
	lo, hi = math.Inf(1), math.Inf(-1)
	for i := range t.Len() {
		x := t.Float(i)
		if math.IsNaN(x) {
			return 0, 0, false
		}
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi, true
}

// largest is the largest finite number of a float dtype; integers have none that matters.
func largest(d ir.DType) float64 {
	switch d {
	case ir.F16:
		return 65504
	case ir.BF16:
		return 0x1.FEp127
	case ir.F32:
		return math.MaxFloat32
	}
	return math.MaxFloat64
}
