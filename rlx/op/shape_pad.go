package op

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// PadMode says what a border holds.
type PadMode string

// The modes of Pad.
const (
	PadConstant  PadMode = "constant"
	PadReflect   PadMode = "reflect"
	PadReplicate PadMode = "replicate"
	PadCircular  PadMode = "circular"
)

// EnumValues lists the values in the order of the command words.
func (PadMode) EnumValues() []string { return []string{"constant", "reflect", "replicate", "circular"} }

// PadAttrs are the attributes of Pad.
type PadAttrs struct {
	Padding []ir.Dim
	Mode    PadMode   `default:"constant" c:"C5"`
	Value   ir.Number `default:"0"`
}

// TileAttrs are the attributes of Tile.
type TileAttrs struct {
	Repeats []ir.Dim
}

// RollAttrs are the attributes of Roll.
type RollAttrs struct {
	Shifts []int64
	Axes   []int64
}

var (
	pad  = ir.Declare[PadAttrs]("shape", "Pad")
	tile = ir.Declare[TileAttrs]("shape", "Tile")
	roll = ir.Declare[RollAttrs]("shape", "Roll")
)

// Pad puts a border around x, any dtype; negative counts crop. padding has one entry per axis for both sides, or all begins and then
// all ends. The border holds value (PadConstant), the nearest element (PadReplicate), the elements mirrored without the edge
// (PadReflect) or those of the other end (PadCircular), and may be longer than x.
//
// Shapes: each dim grows by its two counts. Errors: C1 number of entries, C2 a crop longer than the axis, C3 nothing to repeat,
// C4 value is not in the dtype, C5 unknown mode. Source: ONNX Pad 19, torch.nn.functional.pad.
func Pad(x ir.Value, padding []ir.Dim, mode PadMode, value ir.Number) ir.Value {
	return pad.Apply1(PadAttrs{append([]ir.Dim{}, padding...), mode, value}, x)
}

// Tile repeats x as a whole repeats[k] times along axis k, any dtype.
//
// Shapes: d*repeats. Errors: C1 one entry per axis, C2 a negative entry. Source: ONNX Tile 13, np.tile.
func Tile(x ir.Value, repeats ...ir.Dim) ir.Value {
	return tile.Apply1(TileAttrs{append([]ir.Dim{}, repeats...)}, x)
}

// Roll shifts x cyclically: y[i] = x[(i - shift) mod d] for each pair of shifts and axes; an axis may repeat. Any dtype.
//
// Errors: C1 lists of different length, C9 axis outside the rank. Source: torch.roll, np.roll.
func Roll(x ir.Value, shifts []int64, axes []int) ir.Value {
	return roll.Apply1(RollAttrs{append([]int64{}, shifts...), append([]int64{}, int64s(axes)...)}, x)
}

func init() {
	x := []ir.Operand{ir.In("x", ir.AnyDType)}
	pad.Define(ir.Def[PadAttrs]{
		Doc: "x with a border of before and after elements on each axis; negative counts crop", In: x, Bits: ir.Exact,
		Infer: inferPad, Decompose: decomposePad,
	})
	tile.Define(ir.Def[TileAttrs]{
		Doc: "x repeated repeats[k] times along axis k", In: x, Bits: ir.Exact, Infer: inferTile, Decompose: decomposeTile,
	})
	roll.Define(ir.Def[RollAttrs]{
		Doc: "y[.., i, ..] = x[.., (i - shift) mod d, ..]", In: x, Bits: ir.Exact, Infer: inferRoll, Decompose: decomposeRoll,
	})
}

// NumberAs is the rank-0 tensor of n cast to d: floats round, integers truncate and keep the low bits, bool is n != 0.
func NumberAs(d ir.DType, n ir.Number) *ir.Tensor {
	t, err := ir.Zeros(d)
	if err != nil {
		return t
	}
	f := n.Float()
	v, _, exact := n.Int()
	switch {
	case !n.Present():
	case d == ir.Bool:
		if exact = f != 0; exact {
			ir.PutInt(d, t.Bytes(), 0, 1)
		}
	case !ir.Int.Has(d):
		ir.PutFloat(d, t.Bytes(), 0, f)
	case exact:
		ir.PutInt(d, t.Bytes(), 0, v)
	case !math.IsNaN(f):
		ir.PutInt(d, t.Bytes(), 0, int64(math.Trunc(min(max(f, -0x1p63), 0x1.fffffffffffffp62))))
	}
	return t
}

// counts are the entries of both sides of axis k.
func (a *PadAttrs) counts(k, rank int) (before, after ir.Dim) {
	if len(a.Padding) == rank {
		return a.Padding[k], a.Padding[k]
	}
	return a.Padding[k], a.Padding[rank+k]
}

// PadCounts are the border counts of axis k of a static node; negative ones crop.
func (a *PadAttrs) PadCounts(k, rank int) (before, after int64) {
	b, e := a.counts(k, rank)
	before, _ = b.Static()
	after, _ = e.Static()
	return before, after
}

func inferPad(t *ir.Infer, a *PadAttrs) {
	x := t.Type(0)
	rank := len(x.Shape)
	if !t.Need(len(a.Padding) == rank || len(a.Padding) == 2*rank, "C1", "padding has %d entries, expected %d or %d", len(a.Padding), rank, 2*rank) {
		return
	}
	if a.Value.Present() {
		_, err := scalarOf(x.DType, a.Value)
		t.Need(err == nil, "C4", "value %s, expected one of dtype %s", a.Value, x.DType)
	}
	out := append([]ir.Dim{}, x.Shape...)
	for k, d := range x.Shape {
		before, after := a.counts(k, rank)
		out[k] = d.Add(before).Add(after)
		if n, ok := d.Static(); ok && before.IsStatic() && after.IsStatic() {
			b, e := a.PadCounts(k, rank)
			crop := ir.D(max(-b, 0)).Add(ir.D(max(-e, 0))) // saturates
			if b == minInt64 || e == minInt64 {
				crop = ir.D(maxInt64)
			}
			c, _ := crop.Static()
			t.Need(c <= n, "C2", "padding %d and %d of axis %d, expected to crop at most its length %d", b, e, k, n)
			t.Need(a.Mode == PadConstant || c < n || b <= 0 && e <= 0, "C3", "mode %s on axis %d, which is empty, expected mode constant", string(a.Mode), k)
		}
	}
	t.Out(ir.Type{DType: x.DType, Shape: out})
}

// padSource is the element that output index i (from -before) reads along an axis of n elements, n > 0; -1 is the fill value.
func padSource(mode PadMode, i, n int64) int64 {
	switch mode {
	case PadReplicate:
		return min(max(i, 0), n-1)
	case PadCircular:
		return (i%n + n) % n
	case PadReflect:
		if n == 1 {
			return 0
		}
		period := 2 * (n - 1)
		m := (i%period + period) % period
		return min(m, period-m)
	}
	if i < 0 || i >= n {
		return -1
	}
	return i
}

// PadMap lists, per output index along an axis of length d, the index that it reads, -1 for the fill value.
func PadMap(mode PadMode, d, before, after int64) []int64 {
	crop := max(-before, 0)
	n := d - crop - max(-after, 0)
	var out []int64
	for i := -max(before, 0); i < n+max(after, 0); i++ {
		s := padSource(mode, i, n)
		if s >= 0 {
			s += crop
		}
		out = append(out, s)
	}
	return out
}

func decomposePad(n *ir.Node, a *PadAttrs) []ir.Value {
	if v, ok := emptyResult(n); ok {
		return v
	}
	y, g := n.In[0], n.In[0].Graph()
	for k := range y.Rank() {
		before, after := a.PadCounts(k, y.Rank())
		d, _ := y.Dim(k).Static()
		if before < 0 || after < 0 {
			lo := max(-before, 0)
			y = Narrow(y, k, lo, d-lo-max(-after, 0))
			d = d - lo - max(-after, 0)
			before, after = max(before, 0), max(after, 0)
		}
		if before == 0 && after == 0 {
			continue
		}
		if a.Mode == PadReflect || a.Mode == PadCircular {
			y = Gather(y, g.Constant(indexTensor(PadMap(a.Mode, d, before, after))), k)
			continue
		}
		var parts []ir.Value
		border := func(count, at int64) {
			if count == 0 {
				return
			}
			shape := withDim(y.Shape(), k, ir.D(count))
			if a.Mode == PadReplicate {
				parts = append(parts, Expand(Narrow(y, k, at, 1), shape...))
			} else {
				parts = append(parts, Expand(g.Constant(NumberAs(y.DType(), a.Value)), shape...))
			}
		}
		border(before, 0)
		parts = append(parts, y)
		border(after, d-1)
		y = Concat(k, parts...)
	}
	return []ir.Value{y}
}

// indexTensor is the i64 tensor of v.
func indexTensor(v []int64) *ir.Tensor { return ir.New(v, len(v)) }

func inferTile(t *ir.Infer, a *TileAttrs) {
	x := t.Type(0)
	if !t.Need(len(a.Repeats) == len(x.Shape), "C1", "repeats has %d entries, expected the rank %d", len(a.Repeats), len(x.Shape)) {
		return
	}
	out := append([]ir.Dim{}, x.Shape...)
	for k, r := range a.Repeats {
		n, static := r.Static()
		t.Need(!static || n >= 0, "C2", "repeats has the negative entry %d, expected entries >= 0", n)
		out[k] = out[k].Mul(r)
	}
	t.Out(ir.Type{DType: x.DType, Shape: out})
}

// decomposeTile splits the shape before each repeated axis, stretches the new axes of length 1, and merges. Few axes at a time keep
// the rank within bounds.
func decomposeTile(n *ir.Node, a *TileAttrs) []ir.Value {
	y := n.In[0]
	for k := 0; k < y.Rank(); {
		final := append([]ir.Dim{}, y.Shape()...)
		split, wide := []ir.Dim{ir.Count(y.Shape()[:k])}, []ir.Dim{ir.Count(y.Shape()[:k])}
		for ; k < y.Rank() && len(split)+2 <= ir.MaxRank; k++ {
			if last := len(split) - 1; a.Repeats[k].Is(1) {
				split[last], wide[last] = split[last].Mul(y.Dim(k)), wide[last].Mul(y.Dim(k))
			} else {
				split, wide = append(split, ir.D(1), y.Dim(k)), append(wide, a.Repeats[k], y.Dim(k))
				final[k] = y.Dim(k).Mul(a.Repeats[k])
			}
		}
		rest := ir.Count(y.Shape()[k:])
		last := len(split) - 1
		split[last], wide[last] = split[last].Mul(rest), wide[last].Mul(rest)
		if len(split) > 1 {
			y = Reshape(Expand(Reshape(y, split...), wide...), final...)
		}
	}
	return []ir.Value{y}
}

func inferRoll(t *ir.Infer, a *RollAttrs) {
	rank := len(t.Type(0).Shape)
	t.Need(len(a.Shifts) == len(a.Axes), "C1", "%d shifts and %d axes, expected equal lists", len(a.Shifts), len(a.Axes))
	for _, axis := range a.Axes {
		t.Need(axis >= -int64(rank) && axis < int64(rank), "C9", "axis %d, expected in [%d, %d)", axis, -rank, rank)
	}
	t.Out(t.Type(0))
}

// Total is the sum of the shifts of axis k, of length d, in [0, d).
func (a *RollAttrs) Total(k, rank int, d int64) int64 {
	sum := int64(0)
	for i, axis := range a.Axes {
		if j, _ := wrap(int(axis), rank); j == k && d > 0 {
			sum = (sum + (a.Shifts[i]%d+d)%d) % d
		}
	}
	return sum
}

func decomposeRoll(n *ir.Node, a *RollAttrs) []ir.Value {
	y := n.In[0]
	for k := range y.Rank() {
		d, _ := y.Dim(k).Static()
		if s := a.Total(k, y.Rank(), d); s > 0 {
			y = Concat(k, Narrow(y, k, d-s, s), Narrow(y, k, 0, d-s))
		}
	}
	return []ir.Value{y}
}
