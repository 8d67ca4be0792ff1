// Package op is the op table: one file per family, one row per op, with its builder. See docs/ops.md for the table as text.
//
// Builders append a node to the graph of their operands and return its results. They never fail visibly: the first error is kept by
// the graph (Graph.Err, Compile), and a poisoned value is returned. Where the number of results is the branches' and bodies' to choose, in If,
// While and Scan, it is a slice of one: code that indexes more of them asks Graph.Err first.
package op

import (
	"fmt"
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Operand is a Value or a Go number, which becomes a rank-0 constant of the other operand's dtype: rounded for floats, an error if it
// is no whole number in range for integers.
type Operand interface {
	ir.Value | ~int | ~int64 | ~float32 | ~float64
}

// pair makes values of two operands, at least one of which is a Value.
func pair[A, B Operand](kind string, a A, b B) (ir.Value, ir.Value) {
	va, okA := any(a).(ir.Value)
	vb, okB := any(b).(ir.Value)
	switch {
	case okA && okB:
		return va, vb
	case okA:
		return va, numberLike(kind, va, any(b))
	case okB:
		return numberLike(kind, vb, any(a)), vb
	}
	g := ir.NewGraph("")
	v := g.Fail(kind, fmt.Errorf("%s: both operands are numbers, expected a Value", kind))
	return v, v
}

// numberLike is the constant of value n in the dtype and graph of like.
func numberLike(kind string, like ir.Value, n any) ir.Value {
	if like.IsZero() || like.Poisoned() {
		return like
	}
	f, i, isInt := 0.0, int64(0), true
	switch n := n.(type) {
	case int:
		i, f = int64(n), float64(n)
	case int64:
		i, f = n, float64(n)
	case float32:
		f, isInt = float64(n), false
	case float64:
		f, isInt = n, false
	default: // a named numeric type
		if _, err := fmt.Sscan(fmt.Sprint(n), &f); err != nil {
			return like.Graph().Fail(kind, fmt.Errorf("%s: a %T, expected a number", kind, n), like)
		}
		isInt = false
	}
	num := ir.FloatNumber(f)
	if isInt {
		num = ir.IntNumber(i)
	}
	t, err := scalarOf(like.DType(), num)
	if err != nil {
		return like.Graph().Fail(kind, fmt.Errorf("%s: %w", kind, err), like)
	}
	return like.Graph().Constant(t)
}

// scalarOf is the rank-0 tensor of n in dtype d: floats round, integers and bool must hold n exactly.
func scalarOf(d ir.DType, n ir.Number) (*ir.Tensor, error) {
	t, err := ir.Zeros(d)
	if err != nil {
		return nil, err
	}
	if ir.Float.Has(d) || d == ir.C64 || ir.Code.Has(d) {
		ir.PutFloat(d, t.Bytes(), 0, n.Float())
		return t, nil
	}
	v, big, ok := n.Int()
	if !ok || !fits(d, v, big) {
		return nil, fmt.Errorf("number %v, expected a value of dtype %s", n, d)
	}
	ir.PutInt(d, t.Bytes(), 0, v)
	return t, nil
}

// fits says whether integer v (the bits of a value of at least 2^63 where big is set) is a value of the integer or bool dtype d.
func fits(d ir.DType, v int64, big bool) bool {
	bits := uint(8 * d.Size())
	switch {
	case d == ir.Bool:
		return !big && (v == 0 || v == 1)
	case ir.Unsigned.Has(d):
		return bits == 64 && (big || v >= 0) || bits < 64 && !big && v >= 0 && v < 1<<bits
	}
	return !big && (bits == 64 || v >= math.MinInt64>>(64-bits) && v <= math.MaxInt64>>(64-bits))
}

// wrap turns an axis in [-rank, rank) into one in [0, rank).
func wrap(axis, rank int) (int, bool) { return ir.WrapAxis(axis, rank) }

// wrapAxes checks constraint c of a list of axes, each in [-rank, rank) and named once, and returns them wrapped.
func wrapAxes[I int | int64](t *ir.Infer, c string, axes []I, rank int) ([]int, bool) {
	seen := make([]bool, rank)
	out := make([]int, len(axes))
	for k, a := range axes {
		i, ok := wrap(int(a), rank)
		if !t.Need(ok && int64(a) == int64(int(a)), c, "axis %d, expected in [%d, %d)", a, -rank, rank) ||
			!t.Need(!seen[i], c, "axis %d is named twice, expected each once", a) {
			return nil, false
		}
		seen[i], out[k] = true, i
	}
	return out, true
}

// same says that two shapes have equal rank and no dims that certainly differ.
func same(a, b []ir.Dim) bool { return ir.SameShape(a, b) }

// broadcasts says that shape p may broadcast one way to x.
func broadcasts(p, x []ir.Dim) bool {
	if len(p) > len(x) {
		return false
	}
	for k, d := range x[len(x)-len(p):] {
		if !p[k].Is(1) && p[k].Differs(d) {
			return false
		}
	}
	return true
}

// CopyRow is the row of Copy, which the planner emits.
func CopyRow() *ir.Row { return copyOp.Row() }

// The rows that passes ask backends for before they write them.
func ElementwiseRegionRow() *ir.Row   { return elementwiseRegion.Row() }
func ReduceRegionRow() *ir.Row        { return reduceRegion.Row() }
func MatMulRegionRow() *ir.Row        { return matMulRegion.Row() }
func QMatMulRegionRow() *ir.Row       { return qMatMulRegion.Row() }
func FusedConvRow() *ir.Row           { return fusedConv.Row() }
func AttentionRow() *ir.Row           { return attention.Row() }
func RopeRow() *ir.Row                { return rope.Row() }
func FusedSwiGLURow() *ir.Row         { return fusedSwiGLU.Row() }
func DequantMatMulRow() *ir.Row       { return dequantMatMul.Row() }
func DequantMatMulRegionRow() *ir.Row { return dequantMatMulRegion.Row() }
func GatherRow() *ir.Row              { return gather.Row() }
func ReshapeRow() *ir.Row             { return reshape.Row() }
