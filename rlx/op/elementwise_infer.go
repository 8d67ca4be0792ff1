package op

import (
	"math"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// scalarKind is the class of d in the tables of scalar functions; 0 for the 8- and 4-bit floats, which no function takes.
func scalarKind(d ir.DType) ScalarKinds {
	switch {
	case ir.Float.Has(d):
		return ScalarFloat
	case ir.Int.Has(d):
		return ScalarInt
	case d == ir.Bool:
		return ScalarBool
	case d == ir.C64:
		return ScalarC64
	}
	return 0
}

// allows says whether s takes dtype d.
func allows(s *Scalar, d ir.DType) bool {
	k := scalarKind(d)
	return k != 0 && s.Takes(k)
}

// inferBroadcast gives one result of dtype d and the broadcast shape of all operands, or violates c.
func inferBroadcast(t *ir.Infer, c string, d ir.DType) {
	shapes := make([][]ir.Dim, t.Len())
	text := ""
	for i := range shapes {
		shapes[i] = t.Type(i).Shape
		if i > 0 {
			text += " and "
		}
		text += ir.ShapeText(shapes[i])
	}
	out, ok := ir.Broadcast(shapes...)
	t.Need(ok, c, "shapes %s do not broadcast, expected equal dims or 1 from the last axis on", text)
	t.Out(ir.Type{DType: d, Shape: out})
}

// inferEqualShapes gives one result of the first operand's type; the second must have its shape, or violates c.
func inferEqualShapes(t *ir.Infer, c string) {
	x, dy := t.Type(0), t.Type(1)
	t.Need(same(x.Shape, dy.Shape), c, "dy has shape %v, expected %v", dy.Shape, x.Shape)
	t.Out(x)
}

// settle replaces an alias by its function, NaN parameters by the function's own, and parameters it ignores by NaN, so that equal
// computations have equal attributes.
func (a *ActivationAttrs) settle() (*Scalar, bool) {
	s, ok := Unary(string(a.Fn))
	if !ok {
		return nil, false
	}
	a.Fn = UnaryFn(s.Name)
	a.Alpha = settled(a.Alpha, s.Alpha, s.UsesAlpha())
	a.Beta = settled(a.Beta, s.Beta, s.UsesBeta())
	return s, true
}

func settled(v, def float64, used bool) float64 {
	switch {
	case !used:
		return math.NaN()
	case math.IsNaN(v):
		return def
	}
	return v
}

func inferActivation(t *ir.Infer, a *ActivationAttrs) {
	s, ok := a.settle()
	if !t.Need(ok, "C1", "unknown fn %s, expected one of %s", a.Fn, strings.Join(UnaryNames(), " ")) {
		return
	}
	x := t.Type(0)
	t.Need(allows(s, x.DType), "C2", "%s of dtype %s is not allowed, expected %s; Cast is explicit", s.Name, x.DType, takes(s))
	if s.Predicate {
		x.DType = ir.Bool
	}
	t.Out(x)
}

func inferActivationBackward(t *ir.Infer, a *ActivationAttrs) {
	s, ok := a.settle()
	t.Need(ok && s.Deriv(0) != nil, "C1", "%s has no derivative, expected a function that has one", a.Fn)
	inferEqualShapes(t, "C2")
}

func inferBinary(t *ir.Infer, a *BinaryAttrs) {
	s, ok := Binary(string(a.Fn))
	if t.Need(ok, "C1", "unknown fn %s, expected one of %s", a.Fn, strings.Join(BinaryNames(), " ")) {
		inferPair(t, s, t.Type(0).DType)
	}
}

func inferCompare(t *ir.Infer, a *CompareAttrs) {
	s, ok := Compare(string(a.Fn))
	if t.Need(ok, "C1", "unknown fn %s, expected one of %s", a.Fn, strings.Join(CompareNames(), " ")) {
		inferPair(t, s, ir.Bool)
	}
}

func inferPair(t *ir.Infer, s *Scalar, result ir.DType) {
	d := t.Type(0).DType
	t.Need(allows(s, d), "C3", "%s of dtype %s is not allowed, expected %s", s.Name, d, takes(s))
	inferBroadcast(t, "C4", result)
}

// takes lists the dtypes of s.
func takes(s *Scalar) ir.DTypeSet {
	var set ir.DTypeSet
	for _, d := range ir.DTypes() {
		if allows(s, d) {
			set |= ir.Set(d)
		}
	}
	return set
}

func inferClamp(t *ir.Infer, a *ClampAttrs) {
	if !a.Min.Present() {
		a.Min = ir.FloatNumber(math.Inf(-1))
	}
	if !a.Max.Present() {
		a.Max = ir.FloatNumber(math.Inf(1))
	}
	x := t.Type(0)
	for i, n := range []ir.Number{a.Min, a.Max} {
		name, f := []string{"min", "max"}[i], n.Float()
		t.Need(!math.IsNaN(f), "C1", "%s is NaN, expected a number", name)
		t.Need(ir.Float.Has(x.DType) || math.IsInf(f, 0) || f == math.Trunc(f), "C2", "%s is %s, expected a whole number for dtype %s", name, n, x.DType)
	}
	t.Out(x)
}

// FloatBounds are the bounds rounded to the float dtype d.
func (a *ClampAttrs) FloatBounds(d ir.DType) (lo, hi float64) {
	round := func(n ir.Number) float64 {
		f := n.Float()
		if v, big, ok := n.Int(); ok && d != ir.F64 { // integers beyond 2^53 round once too
			if f = ir.F64OddFromI64(v); big {
				f = ir.F64OddFromU64(uint64(v))
			}
		}
		var b [8]byte
		ir.PutFloat(d, b[:], 0, f)
		return ir.FloatAt(d, b[:], 0)
	}
	return round(a.Min), round(a.Max)
}

// IntBounds are the bounds as values of the integer dtype d, the bits of a u64 as they are; bounds beyond its range are its ends.
func (a *ClampAttrs) IntBounds(d ir.DType) (lo, hi int64) {
	least, most := intRange(d)
	bound := func(n ir.Number) int64 {
		v, big, ok := n.Int()
		switch {
		case ok && fits(d, v, big):
			return v
		case ok && !big && v < 0, !ok && n.Float() < 0:
			return least
		}
		return most
	}
	return bound(a.Min), bound(a.Max)
}

func intRange(d ir.DType) (least, most int64) {
	bits := uint(8 * d.Size())
	if ir.Unsigned.Has(d) {
		return 0, int64(^uint64(0) >> (64 - bits))
	}
	return math.MinInt64 >> (64 - bits), math.MaxInt64 >> (64 - bits)
}
