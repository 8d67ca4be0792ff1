package op

import (
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// UnaryFn names a function of the unary table; aliases are read and replaced by the name they stand for.
type UnaryFn string

// BinaryFn names a function of the binary table.
type BinaryFn string

// CompareFn names a comparison.
type CompareFn string

// EnumValues are the names in the order of their numbers, aliases behind them.
func (UnaryFn) EnumValues() []string {
	return append(UnaryNames(), slices.Sorted(maps.Keys(unaryAlias))...)
}

// EnumValues are the names in the order of their numbers.
func (BinaryFn) EnumValues() []string { return BinaryNames() }

// EnumValues are the names in the order of their numbers.
func (CompareFn) EnumValues() []string { return CompareNames() }

// ActivationAttrs are the attributes of Activation and ActivationBackward. A NaN parameter stands for the function's default; it
// is filled in when types are inferred, and parameters that the function does not use become NaN.
type ActivationAttrs struct {
	Fn    UnaryFn `c:"C1"`
	Alpha float64 `default:"nan"`
	Beta  float64 `default:"nan"`
}

// BinaryAttrs are the attributes of Binary.
type BinaryAttrs struct {
	Fn BinaryFn `c:"C1"`
}

// CompareAttrs are the attributes of Compare.
type CompareAttrs struct {
	Fn CompareFn `c:"C1"`
}

// CastAttrs are the attributes of Cast. Saturate is read for f8e4m3 and f8e5m2 only.
type CastAttrs struct {
	Dtype    ir.DType `c:"C1"`
	Saturate bool     `default:"true"`
}

// ElementwiseAttrs are the attributes of rows of this family that have none.
type ElementwiseAttrs struct{}

// ClampAttrs are the attributes of Clamp.
type ClampAttrs struct {
	Min ir.Number `default:"-inf"`
	Max ir.Number `default:"inf"`
}

var (
	activationOp         = declareFn[ActivationAttrs](UnaryFn("").EnumValues(), "Activation")
	activationBackwardOp = declareFn[ActivationAttrs](UnaryFn("").EnumValues(), "ActivationBackward")
	binaryOp             = declareFn[BinaryAttrs](BinaryNames(), "Binary")
	compareOp            = declareFn[CompareAttrs](CompareNames(), "Compare")
	castOp               = ir.Declare[CastAttrs]("elementwise", "Cast")
	stopGradientOp       = ir.Declare[ElementwiseAttrs]("elementwise", "StopGradient")
	whereOp              = ir.Declare[ElementwiseAttrs]("elementwise", "Where")
	fmaOp                = ir.Declare[ElementwiseAttrs]("elementwise", "Fma")
	clampOp              = ir.Declare[ClampAttrs]("elementwise", "Clamp")
	reluBackwardOp       = ir.Declare[ElementwiseAttrs]("elementwise", "ReluBackward")
)

// declareFn declares a row whose attributes name a function. The names are an argument because their table must be filled first: the
// schema reads it through an interface, which does not order the initialisation of package variables.
func declareFn[A any](_ []string, name string) *ir.Op[A] { return ir.Declare[A]("elementwise", name) }

// ---- builders; one for each function stands in builders_gen.go ----

// Activation is y = fn(x) for a function of the unary table, with its parameters; NaN stands for a parameter's default.
//
// Shapes: y as x. Dtypes: y as x, bool for predicates. Errors: C1 unknown fn, C2 dtype not allowed for fn.
// Source: the functions' usual definitions; ONNX Relu, Gelu ..., torch.nn.functional.
func Activation(x ir.Value, fn UnaryFn, alpha, beta float64) ir.Value {
	return activationOp.Apply1(ActivationAttrs{fn, alpha, beta}, x)
}

// ActivationBackward is dx = dy * fn'(x), the gradient of Activation; where relu and relu6 have slope 0, dx is 0 whatever dy is.
//
// Shapes and dtypes: x, dy and dx are equal, floats. Errors: C1 fn has no derivative, C2 shapes or dtypes differ or are no floats.
func ActivationBackward(x, dy ir.Value, fn UnaryFn, alpha, beta float64) ir.Value {
	return activationBackwardOp.Apply1(ActivationAttrs{fn, alpha, beta}, x, dy)
}

// BinaryOp is y = fn(a, b) for a function of the binary table.
//
// Shapes: a and b broadcast. Dtypes: equal; y as a. Errors: C1 unknown fn, C2 dtypes differ, C3 dtype not allowed for fn, C4 shapes
// do not broadcast.
func BinaryOp(a, b ir.Value, fn BinaryFn) ir.Value { return binaryOp.Apply1(BinaryAttrs{fn}, a, b) }

// CompareOp is y = a fn b, bool. With a NaN all comparisons but ne are false.
//
// Shapes: a and b broadcast. Dtypes: equal, not the 8- and 4-bit floats; c64 takes eq and ne only. Errors as [BinaryOp].
func CompareOp(a, b ir.Value, fn CompareFn) ir.Value { return compareOp.Apply1(CompareAttrs{fn}, a, b) }

func unaryOf(fn UnaryFn, x ir.Value) ir.Value { return Activation(x, fn, math.NaN(), math.NaN()) }

func binaryOf[A, B Operand](fn BinaryFn, a A, b B) ir.Value {
	x, y := pair("Binary", a, b)
	return BinaryOp(x, y, fn)
}

func compareOf[A, B Operand](fn CompareFn, a A, b B) ir.Value {
	x, y := pair("Compare", a, b)
	return CompareOp(x, y, fn)
}

// Cast converts x to a dtype in one rounding to nearest, ties to even. Floats become integers by dropping the fraction and clamping
// to the range, NaN gives 0; integers keep their low bits; whatever is not 0 becomes true. The 8-bit floats saturate.
//
// Shapes: y as x. Errors: C1 no dtype, C2 c64 casts only to c64. Source: IEEE 754; OCP 8-bit floating point 1.0; ONNX Cast 23.
func Cast(x ir.Value, dtype ir.DType) ir.Value { return castOp.Apply1(CastAttrs{dtype, true}, x) }

// CastUnsaturated is Cast where what is too large for f8e4m3 becomes NaN, and for f8e5m2 an infinity.
func CastUnsaturated(x ir.Value, dtype ir.DType) ir.Value {
	return castOp.Apply1(CastAttrs{dtype, false}, x)
}

// StopGradient is y = x, through which no gradient flows. Any dtype; y as x. Source: torch.detach, lax.stop_gradient.
func StopGradient(x ir.Value) ir.Value { return stopGradientOp.Apply1(ElementwiseAttrs{}, x) }

// Where selects y = c ? a : b for each element; NaN and infinities of the other side stay out. a or b is a Value.
//
// Shapes: all three broadcast. Dtypes: c bool, a and b equal, any. Errors: C1 c is not bool, C2 dtypes differ, C3 shapes do not
// broadcast. Source: ONNX Where 16, torch.where.
func Where[A, B Operand](c ir.Value, a A, b B) ir.Value {
	_, va := any(a).(ir.Value)
	_, vb := any(b).(ir.Value)
	if !va && !vb && !c.IsZero() {
		return c.Graph().Fail("Where", errors.New("Where: both sides are numbers, expected a Value"), c)
	}
	x, y := pair("Where", a, b)
	return whereOp.Apply1(ElementwiseAttrs{}, c, x, y)
}

// Fma is y = a*b + c in one rounding; integers wrap.
//
// Shapes: all three broadcast. Dtypes: equal, float or integer. Errors: C1 dtypes differ, C2 shapes do not broadcast, C3 dtype.
// Source: IEEE 754 fusedMultiplyAdd.
func Fma(a, b, c ir.Value) ir.Value { return fmaOp.Apply1(ElementwiseAttrs{}, a, b, c) }

// Clamp is y = min(max(x, lo), hi). NaN stays NaN; lo > hi gives hi. A bound that is a Value makes it Max and Min.
//
// Shapes and dtypes: y as x, float or integer. Number bounds are rounded to a float dtype; those beyond an integer range act as its
// ends. Errors: C1 a bound is NaN, C2 a bound of an integer x is no whole number, C3 dtype. Source: ONNX Clip 13, torch.clamp.
func Clamp[A, B Operand](x ir.Value, lo A, hi B) ir.Value {
	_, vlo := any(lo).(ir.Value)
	_, vhi := any(hi).(ir.Value)
	if vlo || vhi {
		return Min(Max(x, lo), hi)
	}
	return clampOp.Apply1(ClampAttrs{numberOf(lo), numberOf(hi)}, x)
}

// numberOf reads a Go number; a Value gives an absent Number.
func numberOf(n any) ir.Number {
	switch v := reflect.ValueOf(n); v.Kind() {
	case reflect.Int, reflect.Int64:
		return ir.IntNumber(v.Int())
	case reflect.Float32, reflect.Float64:
		return ir.FloatNumber(v.Float())
	}
	return ir.Number{}
}

// ReluBackward is dx = x <= 0 ? 0 : dy. A NaN x passes dy.
//
// Shapes and dtypes: x, dy and dx are equal, floats. Errors: C1 shapes or dtypes differ or are no floats.
func ReluBackward(x, dy ir.Value) ir.Value { return reluBackwardOp.Apply1(ElementwiseAttrs{}, x, dy) }

// ---- rows ----

func init() {
	activationOp.Define(ir.Def[ActivationAttrs]{
		Doc:       "y = fn(x), one operand",
		In:        []ir.Operand{ir.In("x", ir.AnyDType)},
		Bits:      ir.Elementwise,
		DTypeC:    "C2",
		Infer:     inferActivation,
		Decompose: decomposeActivation,
		Tol:       ir.Tolerance{Ulp: 10, Abs: 1e-7},
	})
	activationBackwardOp.Define(ir.Def[ActivationAttrs]{
		Doc:       "dx = dy * fn'(x)",
		In:        []ir.Operand{ir.In("x", ir.Float), ir.In("dy", ir.Float)},
		Results:   []string{"dx"},
		Bits:      ir.Elementwise | ir.Backward,
		DTypeC:    "C2",
		SameC:     "C2",
		Infer:     inferActivationBackward,
		Decompose: decomposeActivationBackward,
		Tol:       ir.Tolerance{Ulp: 84, Abs: 1e-6},
	})
	binaryOp.Define(ir.Def[BinaryAttrs]{
		Doc:       "y = fn(a, b), broadcast",
		In:        []ir.Operand{ir.In("a", ir.AnyDType), ir.In("b", ir.AnyDType)},
		Bits:      ir.Elementwise,
		DTypeC:    "C3",
		SameC:     "C2",
		Infer:     inferBinary,
		Decompose: decomposeBinary,
		Tol:       ir.Tolerance{Ulp: 16},
	})
	compareOp.Define(ir.Def[CompareAttrs]{
		Doc:    "y = a fn b, bool",
		In:     []ir.Operand{ir.In("a", ir.AnyDType), ir.In("b", ir.AnyDType)},
		Bits:   ir.Elementwise | ir.Exact | ir.Light,
		DTypeC: "C3",
		SameC:  "C2",
		Infer:  inferCompare,
		NoGrad: "the result is bool",
	})
	castOp.Define(ir.Def[CastAttrs]{
		Doc:  "y = x in another dtype, one rounding",
		In:   []ir.Operand{ir.In("x", ir.AnyDType)},
		Bits: ir.Elementwise | ir.Exact | ir.Light,
		Infer: func(t *ir.Infer, a *CastAttrs) {
			x := t.Type(0)
			t.Need(a.Dtype.Valid(), "C1", "%s is no dtype, expected one of %s", a.Dtype, ir.AnyDType)
			t.Need(x.DType != ir.C64 || a.Dtype == ir.C64, "C2", "c64 to %s is not defined, expected c64: slice the parts or use the squared norm", a.Dtype)
			t.Out(ir.Type{DType: a.Dtype, Shape: x.Shape})
		},
	})
	stopGradientOp.Define(ir.Def[ElementwiseAttrs]{
		Doc:    "y = x, no gradient",
		In:     []ir.Operand{ir.In("x", ir.AnyDType)},
		Bits:   ir.Elementwise | ir.View | ir.Exact,
		Infer:  func(t *ir.Infer, _ *ElementwiseAttrs) { t.Out(t.Type(0)) },
		NoGrad: "by definition",
	})
	registerView(stopGradientOp, identityView[ElementwiseAttrs])
	defineSelects()
}

func defineSelects() {
	whereOp.Define(ir.Def[ElementwiseAttrs]{
		Doc:    "y = c ? a : b",
		In:     []ir.Operand{ir.In("c", ir.Set(ir.Bool)), ir.In("a", ir.AnyDType), ir.In("b", ir.AnyDType)},
		Bits:   ir.Elementwise | ir.Exact | ir.Light,
		DTypeC: "C1",
		Infer: func(t *ir.Infer, _ *ElementwiseAttrs) {
			a, b := t.Type(1), t.Type(2)
			t.Need(a.DType == b.DType, "C2", "operands have dtypes %s and %s, expected one dtype", a.DType, b.DType)
			inferBroadcast(t, "C3", a.DType)
		},
	})
	fmaOp.Define(ir.Def[ElementwiseAttrs]{
		Doc:    "y = a*b + c, one rounding",
		In:     []ir.Operand{ir.In("a", ir.Real), ir.In("b", ir.Real), ir.In("c", ir.Real)},
		Bits:   ir.Elementwise | ir.Light,
		DTypeC: "C3",
		SameC:  "C1",
		Infer:  func(t *ir.Infer, _ *ElementwiseAttrs) { inferBroadcast(t, "C2", t.Type(0).DType) },
		Tol:    ir.Tolerance{Ulp: 1},
	})
	clampOp.Define(ir.Def[ClampAttrs]{
		Doc:       "y = min(max(x, min), max)",
		In:        []ir.Operand{ir.In("x", ir.Real)},
		Bits:      ir.Elementwise | ir.Light,
		DTypeC:    "C3",
		Infer:     inferClamp,
		Decompose: decomposeClamp,
	})
	reluBackwardOp.Define(ir.Def[ElementwiseAttrs]{
		Doc:     "dx = x <= 0 ? 0 : dy",
		In:      []ir.Operand{ir.In("x", ir.Float), ir.In("dy", ir.Float)},
		Results: []string{"dx"},
		Bits:    ir.Elementwise | ir.Backward,
		DTypeC:  "C1",
		SameC:   "C1",
		Infer:   func(t *ir.Infer, _ *ElementwiseAttrs) { inferEqualShapes(t, "C1") },
		Decompose: func(n *ir.Node, _ *ElementwiseAttrs) []ir.Value {
			return []ir.Value{Where(CompareOp(n.In[0], numberLike("Where", n.In[0], 0), "le"), 0, n.In[1])}
		},
		NoGrad: "gradient op",
	})
}
