package op

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// DefaultSeed is the seed of random nodes without one, in runs without one.
const DefaultSeed = 42

// RngUniformAttrs are the attributes of RngUniform. Shape is nil where an operand gives it; an absent Seed is that of the run.
type RngUniformAttrs struct {
	Shape []ir.Dim  `default:"nil"`
	Dtype ir.DType  `default:"f32" c:"C2"`
	Low   float64   `default:"0"`
	High  float64   `default:"1"`
	Seed  ir.Number `default:"nil"`
	Key   uint64    `default:"0"`
}

// RngNormalAttrs are the attributes of RngNormal; see RngUniformAttrs.
type RngNormalAttrs struct {
	Shape []ir.Dim  `default:"nil"`
	Dtype ir.DType  `default:"f32" c:"C2"`
	Mean  float64   `default:"0"`
	Scale float64   `default:"1"`
	Seed  ir.Number `default:"nil"`
	Key   uint64    `default:"0"`
}

var (
	rngUniform = ir.Declare[RngUniformAttrs]("rng", "RngUniform")
	rngNormal  = ir.Declare[RngNormalAttrs]("rng", "RngNormal")
)

// RngUniform draws numbers of [low, high): y = low + k 2^-p (high - low), k a word of Philox4x32-10 cut to the p bits that dtype holds
// between 0 and 1 (f32 24, f16 11, bf16 8, f64 53). The numbers depend on the seed of the run, the node's key and the element's place
// alone; nodes are numbered in order of creation, so that no two share a stream.
//
// Errors: C1 shape, C2 dtype other than f16, bf16, f32, f64, C3 low and high, C5 too many elements. Source: Salmon, Moraes, Dror, Shaw
// 2011; torch.rand.
func RngUniform(g *ir.Graph, dtype ir.DType, low, high float64, shape ...ir.Dim) ir.Value {
	return RngUniformWith(g, RngUniformAttrs{Shape: append([]ir.Dim{}, shape...), Dtype: dtype, Low: low, High: high, Key: nextKey(g)}, ir.Value{}, ir.Value{})
}

// RngUniformWith is RngUniform with all its attributes as they are. like, if present, gives the shape; step, one i64, counts draws of
// one node: a training step, or the index of a scan. C4: step is something else.
func RngUniformWith(g *ir.Graph, a RngUniformAttrs, like, step ir.Value) ir.Value {
	return rngUniform.ApplyIn(g, a, like, step)[0]
}

// RngNormal draws normal numbers y = mean + scale z by Box and Muller's method: elements 2j and 2j+1 are r cos t and r sin t with
// r = sqrt(-2 ln((a+1) 2^-p)), t = 2 pi b 2^-p, a and b draws 2j and 2j+1 of the stream (f64: of 53 bits, else 24).
//
// Keys, dtypes and errors as RngUniform; C3: scale is negative, or mean or scale is not finite. Source: torch.randn.
func RngNormal(g *ir.Graph, dtype ir.DType, mean, scale float64, shape ...ir.Dim) ir.Value {
	return RngNormalWith(g, RngNormalAttrs{Shape: append([]ir.Dim{}, shape...), Dtype: dtype, Mean: mean, Scale: scale, Key: nextKey(g)}, ir.Value{}, ir.Value{})
}

// RngNormalWith is RngNormal with all its attributes as they are; operands as in RngUniformWith.
func RngNormalWith(g *ir.Graph, a RngNormalAttrs, like, step ir.Value) ir.Value {
	return rngNormal.ApplyIn(g, a, like, step)[0]
}

// nextKey counts the random nodes of g.
func nextKey(g *ir.Graph) uint64 {
	n := uint64(0)
	for _, node := range g.Nodes {
		if node.Row.Has(ir.Random) {
			n++
		}
	}
	return n
}

func init() {
	in := []ir.Operand{ir.Opt("like", ir.AnyDType), ir.Opt("step", ir.Set(ir.I64))}
	rngUniform.Define(ir.Def[RngUniformAttrs]{
		Doc:    "uniform numbers in [low, high)",
		In:     in,
		Bits:   ir.Random,
		DTypeC: "C4",
		Infer: func(t *ir.Infer, a *RngUniformAttrs) {
			inferRandom(t, a.Shape, a.Dtype, a.Seed)
			if t.OK() {
				lo, hi := RoundTo(a.Dtype, a.Low), RoundTo(a.Dtype, a.High)
				ok := lo < hi && !math.IsInf(lo, 0) && !math.IsInf(hi, 0) && !math.IsInf(hi-lo, 0)
				t.Need(ok, "C3", "low %g and high %g in %s, expected low < high, both finite, and so their difference", lo, hi, a.Dtype)
			}
		},
		NoGrad: "low and high are attributes",
		Tol:    ir.Tolerance{Ulp: 1},
	})
	rngNormal.Define(ir.Def[RngNormalAttrs]{
		Doc:    "normal numbers",
		In:     in,
		Bits:   ir.Random,
		DTypeC: "C4",
		Infer: func(t *ir.Infer, a *RngNormalAttrs) {
			inferRandom(t, a.Shape, a.Dtype, a.Seed)
			ok := a.Scale >= 0 && !math.IsInf(a.Scale, 0) && !math.IsInf(a.Mean, 0) && !math.IsNaN(a.Mean)
			t.Need(ok, "C3", "mean %g and scale %g, expected finite numbers and scale >= 0", a.Mean, a.Scale)
		},
		NoGrad: "mean and scale are attributes",
		Tol:    ir.Tolerance{Ulp: 16, Abs: 1e-6},
	})
}

// RoundTo is v rounded once to a float dtype.
func RoundTo(d ir.DType, v float64) float64 {
	var b [8]byte
	ir.PutFloat(d, b[:], 0, v)
	return ir.FloatAt(d, b[:], 0)
}

// seedOf is the value of attribute seed; ok is false where it is no u64.
func seedOf(n ir.Number) (seed uint64, ok bool) {
	v, big, ok := n.Int()
	return uint64(v), ok && (big || v >= 0)
}

// SeedOr is the seed of a random node: its own, or that of the run.
func SeedOr(own ir.Number, run uint64) uint64 {
	if !own.Present() {
		return run
	}
	seed, _ := seedOf(own)
	return seed
}

// inferRandom is the result type of the random kinds.
func inferRandom(t *ir.Infer, shape []ir.Dim, d ir.DType, seed ir.Number) {
	if !t.Need(t.Has(0) || shape != nil, "C1", "no shape, expected attribute shape or operand like") {
		return
	}
	for _, n := range shape {
		v, ok := n.Static()
		t.Need(!ok || v >= 0, "C1", "shape %v, expected dims >= 0", shape)
	}
	if t.Has(0) {
		like := t.Type(0).Shape
		t.Need(shape == nil || same(shape, like), "C1", "shape %v and operand like of shape %v, expected equal ones", shape, like)
		shape = like
	}
	t.Need(ir.Float.Has(d), "C2", "dtype %s, expected one of %s", d, ir.Float)
	if t.Has(1) {
		n := ir.Count(t.Type(1).Shape)
		t.Need(!n.Differs(ir.D(1)), "C4", "step has shape %v, expected one element", t.Type(1).Shape)
	}
	needSeed(t, seed)
	most := int64(1) << 34
	if d == ir.F64 {
		most /= 2
	}
	if n, ok := ir.Count(shape).Static(); ok {
		t.Need(n <= most, "C5", "%d elements of %s, expected at most %d", n, d, most)
	}
	t.Out(ir.Type{DType: d, Shape: shape})
}

func needSeed(t *ir.Infer, seed ir.Number) {
	_, ok := seedOf(seed)
	t.Need(ok || !seed.Present(), "", "seed: got %s, expected an integer in [0, 2^64)", seed)
}

// FloatBelow is the largest value of float dtype d below v, a value of d.
func FloatBelow(d ir.DType, v float64) float64 {
	if d == ir.F64 {
		return math.Nextafter(v, math.Inf(-1))
	}
	if d == ir.F32 {
		return float64(math.Nextafter32(float32(v), float32(math.Inf(-1))))
	}
	var b [2]byte
	ir.PutFloat(d, b[:], 0, v)
	switch bits := uint16(b[0]) | uint16(b[1])<<8; {
	case bits&0x7fff == 0: // below both zeros: the negative number nearest to them
		b[0], b[1] = 1, 0x80
	case bits>>15 != 0:
		b[0], b[1] = byte(bits+1), byte((bits+1)>>8)
	default:
		b[0], b[1] = byte(bits-1), byte((bits-1)>>8)
	}
	return ir.FloatAt(d, b[:], 0)
}
