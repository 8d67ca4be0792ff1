package op

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// LayerNorm2dAttrs are the attributes of LayerNorm2d.
type LayerNorm2dAttrs struct {
	Eps float64 `default:"1e-5"`
}

// GroupNormAttrs are the attributes of GroupNorm.
type GroupNormAttrs struct {
	NumGroups int64   `min:"1" c:"C4"`
	Eps       float64 `default:"1e-5"`
}

// BatchNormAttrs are the attributes of BatchNormInference.
type BatchNormAttrs struct {
	Axis int     `default:"1" c:"C1"`
	Eps  float64 `default:"1e-5"`
}

var (
	layerNorm2d = ir.Declare[LayerNorm2dAttrs]("norm", "LayerNorm2d")
	groupNorm   = ir.Declare[GroupNormAttrs]("norm", "GroupNorm")
	batchNorm   = ir.Declare[BatchNormAttrs]("norm", "BatchNormInference")
)

// LayerNorm2d is LayerNorm over the channels of x [N, C, ...], for each item and position: not over H and W.
//
// Shapes: gamma and beta [C], each optional; y as x. Accumulates as LayerNorm. Errors: C1 rank below 2, C2 gamma or beta of another
// shape, C5 eps < 0. Source: the LayerNorm2d of ConvNeXt and SAM.
func LayerNorm2d(x, gamma, beta ir.Value, eps float64) ir.Value {
	return layerNorm2d.Apply1(LayerNorm2dAttrs{eps}, x, gamma, beta)
}

// GroupNorm normalises x [N, C, ...] over the C/groups channels of a group and all positions: y = (x - mean) / sqrt(var + eps) *
// gamma[c] + beta[c]. As many groups as channels make it instance norm.
//
// Shapes: gamma and beta [C], each optional; y as x. Accumulates as LayerNorm. Errors: C1 rank below 2, C2 gamma or beta of another
// shape, C4 groups does not divide C, C5 eps < 0. Source: Wu, He 2018; ONNX GroupNormalization 21.
func GroupNorm(x, gamma, beta ir.Value, groups int64, eps float64) ir.Value {
	return groupNorm.Apply1(GroupNormAttrs{groups, eps}, x, gamma, beta)
}

// BatchNormInference is y = (x - mean[c]) / sqrt(var[c] + eps) * gamma[c] + beta[c] with c along axis.
//
// Shapes: mean and var [C], gamma and beta [C] or absent; y as x. Errors: C1 axis outside the rank, C2 a parameter of another shape, C5
// eps < 0. Source: Ioffe, Szegedy 2015; ONNX BatchNormalization 15.
func BatchNormInference(x, gamma, beta, mean, variance ir.Value, axis int, eps float64) ir.Value {
	return batchNorm.Apply1(BatchNormAttrs{axis, eps}, x, gamma, beta, mean, variance)
}

func init() {
	affineIn := []ir.Operand{ir.In("x", ir.Float), ir.Opt("gamma", ir.Float), ir.Opt("beta", ir.Float)}
	layerNorm2d.Define(ir.Def[LayerNorm2dAttrs]{
		Doc:   "LayerNorm over the channel axis of [N, C, ...]",
		In:    affineIn,
		SameC: "C2",
		Infer: func(t *ir.Infer, a *LayerNorm2dAttrs) {
			if channelsFirst(t) {
				inferChannels(t, 1, a.Eps, "gamma", "beta")
			}
		},
		Decompose: decomposeLayerNorm2d,
		Tol:       ir.Tolerance{Ulp: 16, Abs: 1e-6},
	})
	groupNorm.Define(ir.Def[GroupNormAttrs]{
		Doc:       "standardise each group of channels together with space",
		In:        affineIn,
		SameC:     "C2",
		Infer:     inferGroupNorm,
		Decompose: decomposeGroupNorm,
		Tol:       ir.Tolerance{Ulp: 16, Abs: 1e-6},
	})
	batchNorm.Define(ir.Def[BatchNormAttrs]{
		Doc:   "(x - mean) / sqrt(var + eps) * gamma + beta along axis, with given mean and var",
		In:    append(slices.Clone(affineIn), ir.In("mean", ir.Float), ir.In("var", ir.Float)),
		SameC: "C2",
		Infer: func(t *ir.Infer, a *BatchNormAttrs) {
			x := t.Type(0)
			axis, ok := wrap(a.Axis, len(x.Shape))
			if t.Need(ok, "C1", "axis %d, expected one of x, which has rank %d", a.Axis, len(x.Shape)) {
				inferChannels(t, axis, a.Eps, "gamma", "beta", "mean", "var")
			}
		},
		Decompose: decomposeBatchNorm,
		Tol:       ir.Tolerance{Ulp: 16, Abs: 1e-6},
	})
}

func channelsFirst(t *ir.Infer) bool {
	rank := len(t.Type(0).Shape)
	return t.Need(rank >= 2, "C1", "x has rank %d, expected [N, C, ...]", rank)
}

// inferChannels checks that operands 1 and on, with the given names, have one entry per element of axis, and gives a result as x.
func inferChannels(t *ir.Infer, axis int, eps float64, names ...string) {
	x := t.Type(0)
	for i, name := range names {
		if t.Has(1 + i) {
			p := t.Type(1 + i).Shape
			t.Need(same(p, x.Shape[axis:axis+1]), "C2", "%s has shape %v, expected %v", name, p, x.Shape[axis:axis+1])
		}
	}
	t.Need(eps >= 0, "C5", "eps %g, expected >= 0", eps)
	t.Out(x)
}

func inferGroupNorm(t *ir.Infer, a *GroupNormAttrs) {
	if !channelsFirst(t) {
		return
	}
	c, known := t.Type(0).Shape[1].Static()
	t.Need(!known || c%a.NumGroups == 0, "C4", "num_groups is %d, expected a divisor of the %d channels of x", a.NumGroups, c)
	inferChannels(t, 1, a.Eps, "gamma", "beta")
}

func decomposeLayerNorm2d(n *ir.Node, a *LayerNorm2dAttrs) []ir.Value {
	rank := n.In[0].Rank()
	last, first := []int{0}, []int{0, rank - 1}
	for i := 2; i < rank; i++ {
		last, first = append(last, i), append(first, i-1)
	}
	y := LayerNorm(Transpose(n.In[0], append(last, 1)...), n.In[1], n.In[2], -1, a.Eps)
	return []ir.Value{Transpose(y, first...)}
}

func decomposeGroupNorm(n *ir.Node, a *GroupNormAttrs) []ir.Value {
	x := widen(n.In[0])
	g := ir.D(a.NumGroups)
	flat := Reshape(x, x.Dim(0), g, ir.Count(x.Shape()[1:]).FloorDiv(g))
	y := Reshape(LayerNorm(flat, ir.Value{}, ir.Value{}, -1, a.Eps), x.Shape()...)
	if gamma := n.In[1]; !gamma.IsZero() {
		y = Mul(y, alongAxis(widen(gamma), 1, x.Rank()))
	}
	if beta := n.In[2]; !beta.IsZero() {
		y = Add(y, alongAxis(widen(beta), 1, x.Rank()))
	}
	return []ir.Value{narrow(y, n.In[0].DType())}
}

func decomposeBatchNorm(n *ir.Node, a *BatchNormAttrs) []ir.Value {
	x := widen(n.In[0])
	axis, _ := wrap(a.Axis, x.Rank())
	column := func(v ir.Value) ir.Value { return alongAxis(v, axis, x.Rank()) }
	factor := Rsqrt(Add(widen(n.In[4]), a.Eps))
	if gamma := n.In[1]; !gamma.IsZero() {
		factor = Mul(factor, widen(gamma))
	}
	y := Mul(Sub(x, column(widen(n.In[3]))), column(factor))
	if beta := n.In[2]; !beta.IsZero() {
		y = Add(y, column(widen(beta)))
	}
	return []ir.Value{narrow(y, n.In[0].DType())}
}

// alongAxis is v [C] with dims of 1 around it, so that it broadcasts along axis of a tensor of the given rank.
func alongAxis(v ir.Value, axis, rank int) ir.Value {
	shape := make([]ir.Dim, rank)
	for i := range shape {
		shape[i] = ir.D(1)
	}
	shape[axis] = v.Dim(0)
	return Reshape(v, shape...)
}
