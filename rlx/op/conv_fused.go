package op

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// ConvActivation is "none" or the name of a function of floats in the unary table.
type ConvActivation string

// EnumValues are "none", the functions in the order of their numbers in the unary table, then aliases.
func (ConvActivation) EnumValues() []string {
	names := []string{"none"}
	for _, s := range unaryRows {
		if s.Takes(ScalarFloat) && !s.Predicate {
			names = append(names, s.Name)
		}
	}
	return append(names, slices.Sorted(maps.Keys(unaryAlias))...)
}

// FusedConvAttrs are the attributes of FusedConvBiasAct: those of Conv, and a function with its parameters, where NaN stands for the
// function's default.
type FusedConvAttrs struct {
	Stride     []int64        `default:"nil" min:"1" c:"C4"`
	Dilation   []int64        `default:"nil" min:"1" c:"C4"`
	Padding    []int64        `default:"nil" min:"0" c:"C4"`
	AutoPad    AutoPad        `default:"none" c:"C5"`
	Groups     int64          `default:"1" min:"1" c:"C2"`
	Activation ConvActivation `default:"none" c:"C10"`
	Alpha      float64        `default:"nan"`
	Beta       float64        `default:"nan"`
}

// Conv is the part of a that Conv has too.
func (a *FusedConvAttrs) Conv() ConvAttrs {
	return ConvAttrs{a.Stride, a.Dilation, a.Padding, a.AutoPad, a.Groups}
}

var fusedConv = declareFusedConv(ConvActivation("").EnumValues())

// See declareFn: the schema reads the names, so their table comes first.
func declareFusedConv([]string) *ir.Op[FusedConvAttrs] {
	return ir.Declare[FusedConvAttrs]("conv", "FusedConvBiasAct")
}

// FusedConvBiasAct is y = act(conv(x, w) + bias + residual): Conv or Conv3d by the rank of x, and one rounding at the end.
//
// Shapes: x, w and y as [Conv], one to three spatial axes; bias [O] and residual, which has the shape of y, are optional. Dtypes: floats,
// the same for all; sums in f32 (f64 for f64). In a, a Groups of 0 means 1, an empty AutoPad and Activation "none"; Alpha and Beta are
// taken as they are, and NaN stands for the function's default. Errors: C1 to C7 as Conv, C8 shape of bias, C9 shape of residual, C10
// activation. Source: cuDNN's fused convolutions, ONNX Runtime FusedConv.
func FusedConvBiasAct(x, w, bias, residual ir.Value, a FusedConvAttrs) ir.Value {
	a.Groups, a.AutoPad, a.Activation = cmp.Or(a.Groups, 1), cmp.Or(a.AutoPad, "none"), cmp.Or(a.Activation, "none")
	return fusedConv.Apply1(a, x, w, bias, residual)
}

func init() {
	fusedConv.Define(ir.Def[FusedConvAttrs]{
		Doc:       "act(conv(x, w) + bias + residual), 1-D to 3-D",
		In:        []ir.Operand{ir.In("x", ir.Float), ir.In("w", ir.Float), ir.Opt("bias", ir.Float), ir.Opt("residual", ir.Float)},
		Bits:      ir.Fused,
		DTypeC:    "C7",
		SameC:     "C7",
		Infer:     inferFusedConv,
		Decompose: decomposeFusedConv,
		Tol:       ir.Tolerance{Ulp: 32, Abs: 1e-6},
	})
}

func inferFusedConv(t *ir.Infer, a *FusedConvAttrs) {
	c := a.Conv()
	y, ok := convResult(t, &c, 3, 5)
	if !ok {
		return
	}
	if t.Has(2) {
		t.Need(same(t.Type(2).Shape, y.Shape[1:2]), "C8", "bias has shape %v, expected %v", t.Type(2).Shape, y.Shape[1:2])
	}
	if t.Has(3) {
		t.Need(same(t.Type(3).Shape, y.Shape), "C9", "residual has shape %v, expected %v", t.Type(3).Shape, y.Shape)
	}
	act := ActivationAttrs{UnaryFn(a.Activation), a.Alpha, a.Beta}
	t.Out(y)
	if _, ok := act.settle(); ok {
		a.Activation, a.Alpha, a.Beta = ConvActivation(act.Fn), act.Alpha, act.Beta
	} else {
		a.Alpha, a.Beta = math.NaN(), math.NaN()
	}
}

func decomposeFusedConv(n *ir.Node, a *FusedConvAttrs) []ir.Value {
	y := convOf(widen(n.In[0]), widen(n.In[1]), a.Conv())
	if bias := n.In[2]; !bias.IsZero() {
		y = withBias(y, widen(bias), y.Rank())
	}
	if residual := n.In[3]; !residual.IsZero() {
		y = Add(y, widen(residual))
	}
	if a.Activation != "none" {
		y = Activation(y, UnaryFn(a.Activation), a.Alpha, a.Beta)
	}
	return []ir.Value{narrow(y, n.In[0].DType())}
}
