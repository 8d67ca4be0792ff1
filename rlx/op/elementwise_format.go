package op

import (
	"math"
	"regexp"
	"strconv"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// ScaleLayout says what part of a tensor shares a scale in RoundToFormat.
type ScaleLayout string

// EnumValues are the layouts: no scale, one for the tensor, a power of two for each block, a scale of three mantissa bits for each
// block.
func (ScaleLayout) EnumValues() []string {
	return []string{"none", "per_tensor", "block", "fine_block"}
}

// RoundToFormatAttrs are the attributes of RoundToFormat. BlockSize is a length along the last axis, read for the block layouts.
type RoundToFormatAttrs struct {
	Format      string      `c:"C1"`
	ScaleLayout ScaleLayout `default:"none" c:"C2"`
	BlockSize   int         `default:"32" min:"1" c:"C2"`
}

var roundToFormatOp = ir.Declare[RoundToFormatAttrs]("elementwise", "RoundToFormat")

// RoundToFormat is y = s * round(x / s): x rounded to the nearest value of a small float format, ties to even, saturating at the
// largest value, NaN kept; f32 subnormals become zeros. The scale s is 1 or follows from the largest |x| of the tensor or block.
//
// Shapes: y as x, f32. Formats: f16 bf16 f8e4m3 f8e5m2, f<N>e<X>m<Y> with every code finite, f<N>m<Y>e<X> with the top exponent
// reserved. Errors: C1 format, C2 layout or block size, C3 x is not f32.
// Source: OCP Microscaling Formats 1.0; IEEE 754 roundTiesToEven.
func RoundToFormat(x ir.Value, format string, layout ScaleLayout, blockSize int) ir.Value {
	return roundToFormatOp.Apply1(RoundToFormatAttrs{format, layout, blockSize}, x)
}

func init() {
	roundToFormatOp.Define(ir.Def[RoundToFormatAttrs]{
		Doc:    "y = s * round(x / s), round to a small float format, x stays f32",
		In:     []ir.Operand{ir.In("x", ir.Set(ir.F32))},
		Bits:   ir.Exact, // a block's scale reads its neighbours, so the row is not Elementwise
		DTypeC: "C3",
		Infer: func(t *ir.Infer, a *RoundToFormatAttrs) {
			_, ok := ParseSmallFloat(a.Format)
			t.Need(ok, "C1", "bad format %q, expected f16 bf16 f8e4m3 f8e5m2 f<N>e<X>m<Y> or f<N>m<Y>e<X>", a.Format)
			t.Out(t.Type(0))
		},
	})
}

// SmallFloat is a float format with gradual underflow, of which RoundToFormat keeps the finite values.
type SmallFloat struct {
	Mantissa int     // bits behind the point
	MinExp   int     // exponent of the smallest normal value
	Max      float64 // largest finite value
}

var (
	smallFloats = map[string]SmallFloat{
		"f16":    {10, -14, 65504},
		"bf16":   {7, -126, (2 - 0x1p-7) * 0x1p127},
		"f8e5m2": {2, -14, 57344},
		"f8e4m3": {3, -6, 448}, // the top code is NaN
	}
	allFinite   = regexp.MustCompile(`^f([0-9]+)e([0-9]+)m([0-9]+)$`)
	topReserved = regexp.MustCompile(`^f([0-9]+)m([0-9]+)e([0-9]+)$`)
)

// ParseSmallFloat reads the name of a format.
func ParseSmallFloat(name string) (SmallFloat, bool) {
	if f, ok := smallFloats[name]; ok {
		return f, true
	}
	if n, e, m, ok := formatFields(allFinite, name); ok {
		return finiteFormat(e, m), e >= 1 && n <= 8 && n == 1+e+m
	}
	n, m, e, ok := formatFields(topReserved, name)
	if !ok || e < 1 || e > 8 || m > 23 || n != 1+e+m {
		return SmallFloat{}, false
	}
	bias := 1<<(e-1) - 1
	top := math.Ldexp(2-math.Ldexp(1, -m), bias)
	return SmallFloat{m, 1 - bias, min(top, math.MaxFloat32)}, true
}

func finiteFormat(e, m int) SmallFloat {
	if e < 1 || e > 7 || m > 6 {
		return SmallFloat{}
	}
	bias := 1<<(e-1) - 1
	return SmallFloat{m, 1 - bias, math.Ldexp(2-math.Ldexp(1, -m), 1<<e-1-bias)}
}

func formatFields(re *regexp.Regexp, name string) (a, b, c int, ok bool) {
	g := re.FindStringSubmatch(name)
	if g == nil {
		return 0, 0, 0, false
	}
	var v [3]int
	for i := range v {
		n, err := strconv.Atoi(g[i+1])
		if err != nil || n > 64 {
			return 0, 0, 0, false
		}
		v[i] = n
	}
	return v[0], v[1], v[2], true
}
