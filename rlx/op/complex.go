package op

import "github.com/rlx-ml/rlx-go/rlx/ir"

var (
	complexNormSq         = ir.Declare[ElementwiseAttrs]("complex", "ComplexNormSq")
	complexNormSqBackward = ir.Declare[ElementwiseAttrs]("complex", "ComplexNormSqBackward")
	conjugate             = ir.Declare[ElementwiseAttrs]("complex", "Conjugate")
)

// ComplexNormSq is y = re(z)^2 + im(z)^2: f32 of the shape of z, a c64. Large parts overflow to infinity, as squares do; it is no
// hypot. Errors: C1 another dtype. Source: lax.real(z * lax.conj(z)).
func ComplexNormSq(z ir.Value) ir.Value { return complexNormSq.Apply1(ElementwiseAttrs{}, z) }

// ComplexNormSqBackward is the cotangent of z in ComplexNormSq: 2 g z, each part on its own. g is f32 of the shape of z.
// Errors: C1 dtypes, C2 shapes differ.
func ComplexNormSqBackward(z, g ir.Value) ir.Value {
	return complexNormSqBackward.Apply1(ElementwiseAttrs{}, z, g)
}

// Conjugate is y = re(z) - i im(z): it flips the sign bit of the imaginary part, of zeros and NaN too. Errors: C1 dtype other than
// c64. Source: numpy.conj.
func Conjugate(z ir.Value) ir.Value { return conjugate.Apply1(ElementwiseAttrs{}, z) }

func init() {
	c64 := ir.Set(ir.C64)
	complexNormSq.Define(ir.Def[ElementwiseAttrs]{
		Doc:    "re(z)^2 + im(z)^2",
		In:     []ir.Operand{ir.In("z", c64)},
		Bits:   ir.Elementwise,
		DTypeC: "C1",
		Infer: func(t *ir.Infer, _ *ElementwiseAttrs) {
			t.Out(ir.Type{DType: ir.F32, Shape: t.Type(0).Shape})
		},
		Tol: ir.Tolerance{Ulp: 1.5},
	})
	complexNormSqBackward.Define(ir.Def[ElementwiseAttrs]{
		Doc:    "2 g z, the cotangent of z in ComplexNormSq",
		In:     []ir.Operand{ir.In("z", c64), ir.In("g", ir.Set(ir.F32))},
		Bits:   ir.Elementwise | ir.Backward,
		DTypeC: "C1",
		Infer: func(t *ir.Infer, _ *ElementwiseAttrs) {
			z, g := t.Type(0), t.Type(1)
			t.Need(same(z.Shape, g.Shape), "C2", "g has shape %v, expected that of z, %v", g.Shape, z.Shape)
			t.Out(z)
		},
		Tol: ir.Tolerance{Ulp: 1},
	})
	conjugate.Define(ir.Def[ElementwiseAttrs]{
		Doc:    "re(z) - i im(z)",
		In:     []ir.Operand{ir.In("z", c64)},
		Bits:   ir.Elementwise | ir.Exact,
		DTypeC: "C1",
		Infer:  func(t *ir.Infer, _ *ElementwiseAttrs) { t.Out(t.Type(0)) },
	})
}
