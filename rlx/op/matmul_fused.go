package op

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// FusedMatMulAttrs are the attributes of FusedMatMulBiasAct.
type FusedMatMulAttrs struct {
	Activation ConvActivation `default:"none" c:"C3"`
	Dtype      ir.DType       `default:"nil" c:"C1"`
}

// FusedMatMulResidualAttrs are the attributes of FusedMatMulResidual: none.
type FusedMatMulResidualAttrs struct{}

// SwiGLUAttrs are the attributes of FusedSwiGLU. Dtype is that of the result; the zero DType means the operand's.
type SwiGLUAttrs struct {
	GateFirst bool     `default:"false"`
	Dtype     ir.DType `default:"nil" c:"C1"`
}

var (
	fusedMatMul         = declareFusedMatMul(ConvActivation("").EnumValues())
	fusedMatMulResidual = ir.Declare[FusedMatMulResidualAttrs]("matmul", "FusedMatMulResidual")
	fusedSwiGLU         = ir.Declare[SwiGLUAttrs]("matmul", "FusedSwiGLU")
)

// See declareFn.
func declareFusedMatMul([]string) *ir.Op[FusedMatMulAttrs] {
	return ir.Declare[FusedMatMulAttrs]("matmul", "FusedMatMulBiasAct")
}

// FusedMatMulBiasAct is y = act(a b + bias), bias optional; activation is "none" (or empty) or a function of floats of the unary table with its
// default parameters.
//
// Shapes: a and b as [MatMul], of rank 2 or more; bias [N]. Dtypes: floats, the same for all. Errors: C1 dtypes, C2 as MatMul, C3 activation, C4
// shape of bias. Source: cuBLASLt epilogues, torch.addmm.
func FusedMatMulBiasAct(a, b, bias ir.Value, activation ConvActivation) ir.Value {
	if activation == "" {
		activation = "none"
	}
	return fusedMatMul.Apply1(FusedMatMulAttrs{Activation: activation}, a, b, bias)
}

// FusedMatMulResidual is y = a b + residual.
//
// Shapes: a and b as [MatMul], of rank 2 or more; residual has the shape of the product. Dtypes: floats, the same for all. Errors: C1 dtypes, C2 as MatMul, C3
// shape of residual. Source: BLAS gemm with beta 1.
func FusedMatMulResidual(a, b, residual ir.Value) ir.Value {
	return fusedMatMulResidual.Apply1(FusedMatMulResidualAttrs{}, a, b, residual)
}

// FusedSwiGLU is y = up * silu(gate), where x holds up and then gate along its last axis, gate first with gateFirst; silu(g) = g * sigmoid(g).
//
// Shapes: x [..., 2N], y [..., N]. Dtypes: floats. Errors: C1 dtype, C2 rank 0 or an odd last dim. Source: Shazeer, GLU Variants Improve Transformer.
func FusedSwiGLU(x ir.Value, gateFirst bool) ir.Value {
	return fusedSwiGLU.Apply1(SwiGLUAttrs{GateFirst: gateFirst}, x)
}

func init() {
	tol := ir.Tolerance{Ulp: 32, Abs: 1e-6}
	fusedMatMul.Define(ir.Def[FusedMatMulAttrs]{
		Doc:       "act(a b + bias)",
		In:        []ir.Operand{ir.In("a", ir.Float), ir.In("b", ir.Float), ir.Opt("bias", ir.Float)},
		Bits:      ir.Fused,
		DTypeC:    "C1",
		SameC:     "C1",
		Infer:     inferFusedMatMul,
		Decompose: decomposeFusedMatMul,
		Tol:       tol,
	})
	fusedMatMulResidual.Define(ir.Def[FusedMatMulResidualAttrs]{
		Doc:    "a b + residual",
		In:     []ir.Operand{ir.In("a", ir.Float), ir.In("b", ir.Float), ir.In("residual", ir.Float)},
		Bits:   ir.Fused,
		DTypeC: "C1",
		SameC:  "C1",
		Infer: func(t *ir.Infer, a *FusedMatMulResidualAttrs) {
			shape, ok := fusedProduct(t)
			if ok && t.Need(same(t.Type(2).Shape, shape), "C3", "residual has shape %v, expected %v", t.Type(2).Shape, shape) {
				t.Out(ir.Type{DType: t.Type(0).DType, Shape: shape})
			}
		},
		Decompose: func(n *ir.Node, a *FusedMatMulResidualAttrs) []ir.Value {
			return []ir.Value{narrow(Add(MatMul(widen(n.In[0]), widen(n.In[1])), widen(n.In[2])), n.In[0].DType())}
		},
		Tol: tol,
	})
	fusedSwiGLU.Define(ir.Def[SwiGLUAttrs]{
		Doc:       "up * silu(gate), both halves of the last axis",
		In:        []ir.Operand{ir.In("x", ir.Float)},
		Bits:      ir.Fused,
		DTypeC:    "C1",
		Infer:     inferSwiGLU,
		Decompose: decomposeSwiGLU,
		Tol:       tol,
	})
}

// fusedProduct is the shape of a b for kinds that take matrices only.
func fusedProduct(t *ir.Infer) ([]ir.Dim, bool) {
	a, b := t.Type(0).Shape, t.Type(1).Shape
	if !t.Need(len(a) > 1 && len(b) > 1, "C2", "operands have shapes %v and %v, expected rank 2 or more", a, b) {
		return nil, false
	}
	return matMulShape(t)
}

func inferFusedMatMul(t *ir.Infer, a *FusedMatMulAttrs) {
	d, _ := productDType(t, a.Dtype)
	shape, ok := fusedProduct(t)
	if !ok {
		return
	}
	if t.Has(2) {
		n := shape[len(shape)-1:]
		t.Need(same(t.Type(2).Shape, n), "C4", "bias has shape %v, expected %v", t.Type(2).Shape, n)
	}
	act := ActivationAttrs{UnaryFn(a.Activation), math.NaN(), math.NaN()}
	if _, ok := act.settle(); ok {
		a.Activation = ConvActivation(act.Fn)
	}
	t.Out(ir.Type{DType: d, Shape: shape})
}

func decomposeFusedMatMul(n *ir.Node, a *FusedMatMulAttrs) []ir.Value {
	y := MatMul(widen(n.In[0]), widen(n.In[1]))
	if bias := n.In[2]; !bias.IsZero() {
		y = Add(y, widen(bias))
	}
	if a.Activation != "none" {
		y = unaryOf(UnaryFn(a.Activation), y)
	}
	return []ir.Value{narrow(y, n.Types[0].DType)}
}

func inferSwiGLU(t *ir.Infer, a *SwiGLUAttrs) {
	d, _ := productDType(t, a.Dtype)
	x := t.Type(0).Shape
	if !t.Need(len(x) > 0, "C2", "x has rank 0, expected 1 or more") {
		return
	}
	last := x[len(x)-1]
	if n, ok := last.Static(); ok && !t.Need(n%2 == 0, "C2", "the last dim is %d, expected an even one", n) {
		return
	}
	shape := slices.Clone(x)
	shape[len(x)-1] = last.FloorDiv(ir.D(2))
	t.Out(ir.Type{DType: d, Shape: shape})
}

func decomposeSwiGLU(n *ir.Node, a *SwiGLUAttrs) []ir.Value {
	x := n.In[0]
	shape := n.Types[0].Shape
	half := shape[len(shape)-1]
	low := sliceLast(x, ir.D(0), half)
	high := sliceLast(x, half, half.Mul(ir.D(2)))
	up, gate := low, high
	if a.GateFirst {
		up, gate = high, low
	}
	return []ir.Value{narrow(Mul(widen(up), Silu(widen(gate))), n.Types[0].DType)}
}

// sliceLast is x[..., from:to].
func sliceLast(x ir.Value, from, to ir.Dim) ir.Value {
	return Slice(x, []ir.Dim{from}, []ir.Dim{to}, []int{x.Rank() - 1}, []int64{1})
}
