package op

import (
	"math"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

const (
	maxInt64 = math.MaxInt64
	minInt64 = math.MinInt64
)

// axisOf checks C9 of one axis and returns it wrapped.
func axisOf(t *ir.Infer, axis, rank int) (int, bool) {
	k, ok := wrap(axis, rank)
	return k, t.Need(ok, "C9", "axis %d, expected in [%d, %d)", axis, -rank, rank)
}

// withDim is shape with axis k replaced by d.
func withDim(shape []ir.Dim, k int, d ir.Dim) []ir.Dim {
	out := append([]ir.Dim{}, shape...)
	out[k] = d
	return out
}

// knownOf prefers a static dim of two that must be equal.
func knownOf(a, b ir.Dim) ir.Dim {
	if a.IsStatic() {
		return a
	}
	return b
}

// nonNegative says that d is at least 0 whatever its symbols are: symbols are lengths, but those of integer inputs (with a #) may
// have any value, and a difference may be negative.
func nonNegative(d ir.Dim) bool {
	if n, ok := d.Static(); ok {
		return n >= 0
	}
	return !strings.ContainsAny(d.String(), "-#")
}

// atLeast0 is max(d, 0), without the max where it is not needed.
func atLeast0(d ir.Dim) ir.Dim {
	if nonNegative(d) {
		return d
	}
	return d.Max(ir.D(0))
}

func inferReshape(t *ir.Infer, a *ReshapeAttrs) {
	x := t.Type(0)
	out := append([]ir.Dim{}, a.Shape...)
	free := -1
	for i, d := range a.Shape {
		n, static := d.Static()
		t.Need(!static || n >= -1, "C1", "shape %v has an entry below -1, expected entries >= -1", a.Shape)
		if d.Is(-1) {
			t.Need(free < 0, "C2", "shape %v has more than one -1, expected at most one", a.Shape)
			free = i
		}
	}
	known := ir.D(1)
	for i, d := range a.Shape {
		if d.Is(0) && !a.AllowZero {
			if !t.Need(i < len(x.Shape), "C5", "shape %v copies dim %d, expected one of x %v", a.Shape, i, x.Shape) {
				return
			}
			out[i] = x.Shape[i]
		}
		if i != free {
			known = known.Mul(out[i])
		}
	}
	count := ir.Count(x.Shape)
	if free >= 0 {
		t.Need(!known.Is(0), "C4", "-1 beside a length of 0 in shape %v is ambiguous, expected lengths that decide it for x %v", a.Shape, x.Shape)
		if n, ok := count.Static(); ok {
			if k, ok := known.Static(); ok && k > 0 {
				t.Need(n%k == 0, "C3", "shape %v, expected one for the %d elements of x %v", a.Shape, n, x.Shape)
			}
		}
		out[free] = count.FloorDiv(known)
	} else {
		t.Need(!known.Differs(count), "C3", "shape %v, expected one for the %s elements of x %v", a.Shape, count, x.Shape)
	}
	t.Out(ir.Type{DType: x.DType, Shape: out})
}

// permutation returns perm wrapped, the reversal where it is empty, and whether it names each axis once.
func permutation(perm []int64, rank int) ([]int, bool) {
	out := make([]int, rank)
	if len(perm) == 0 {
		for k := range out {
			out[k] = rank - 1 - k
		}
		return out, true
	}
	if len(perm) != rank {
		return nil, false
	}
	seen := make([]bool, rank)
	for k, p := range perm {
		if p < -int64(rank) || p >= int64(rank) {
			return nil, false
		}
		i, _ := wrap(int(p), rank)
		if seen[i] {
			return nil, false
		}
		seen[i], out[k] = true, i
	}
	return out, true
}

func inferTranspose(t *ir.Infer, a *TransposeAttrs) {
	x := t.Type(0)
	perm, ok := permutation(a.Perm, len(x.Shape))
	if !t.Need(ok, "C1", "perm %d, expected a permutation of the %d axes of x", a.Perm, len(x.Shape)) {
		return
	}
	out := make([]ir.Dim, len(perm))
	for k, p := range perm {
		out[k] = x.Shape[p]
	}
	t.Out(ir.Type{DType: x.DType, Shape: out})
}

func inferNarrow(t *ir.Infer, a *NarrowAttrs) {
	x := t.Type(0)
	k, ok := axisOf(t, a.Axis, len(x.Shape))
	if !ok {
		return
	}
	if d, ok := x.Shape[k].Static(); ok {
		start := a.Start
		if start < 0 {
			start += d
		}
		t.Need(start >= 0, "C1", "start %d, expected at least %d for axis %d", a.Start, -d, a.Axis)
		t.Need(start <= d && a.Length <= d-start, "C3", "start %d and length %d, expected a range within length %d of axis %d", a.Start, a.Length, d, a.Axis)
	}
	t.Out(ir.Type{DType: x.DType, Shape: withDim(x.Shape, k, ir.D(a.Length))})
}

// axis and step of entry i of the lists.
func (a *SliceAttrs) axis(i int) int {
	if len(a.Axes) == 0 {
		return i
	}
	return int(a.Axes[i])
}

func (a *SliceAttrs) step(i int) int64 {
	if len(a.Steps) == 0 {
		return 1
	}
	return a.Steps[i]
}

func inferSlice(t *ir.Infer, a *SliceAttrs) {
	x, n := t.Type(0), len(a.Starts)
	if !t.Need(len(a.Ends) == n && (len(a.Axes) == 0 || len(a.Axes) == n) && (len(a.Steps) == 0 || len(a.Steps) == n), "C2",
		"starts, ends, axes and steps have %d, %d, %d and %d entries, expected equal lists", n, len(a.Ends), len(a.Axes), len(a.Steps)) {
		return
	}
	axes := a.Axes
	if len(axes) == 0 {
		for i := range n {
			axes = append(axes, int64(i))
		}
	}
	wrapped, ok := wrapAxes(t, "C9", axes, len(x.Shape))
	if !ok {
		return
	}
	out := append([]ir.Dim{}, x.Shape...)
	for i, k := range wrapped {
		if !t.Need(a.step(i) != 0, "C1", "step of axis %d is 0, expected another number", axes[i]) {
			return
		}
		out[k] = sliceLength(x.Shape[k], a.Starts[i], a.Ends[i], a.step(i))
	}
	t.Out(ir.Type{DType: x.DType, Shape: out})
}

// sliceRange is the first index and the number of elements of start:end:step along an axis of length d.
func sliceRange(d, start, end, step int64) (first, n int64) {
	if start < 0 {
		start += d
	}
	if end < 0 {
		end += d
	}
	if step > 0 {
		start, end = min(max(start, 0), d), min(max(end, 0), d)
		if end <= start {
			return start, 0
		}
		return start, (end-start-1)/step + 1
	}
	start, end = min(max(start, 0), d-1), min(max(end, -1), d-1)
	if d == 0 || start <= end {
		return max(start, 0), 0
	}
	return start, int64(uint64(start-end-1)/-uint64(step)) + 1 // -uint64: a step of -2^63 has no int64 opposite
}

// wholeAxis is the least bound that exporters write for "to the end"; only where the axis is symbolic is it taken as that.
const wholeAxis = math.MaxInt32

// sliceLength is the number of elements of start:end:step along d, in dims.
func sliceLength(d, start, end ir.Dim, step int64) ir.Dim {
	if len, ok := d.Static(); ok {
		s, okS := start.Static()
		e, okE := end.Static()
		if okS && okE {
			_, n := sliceRange(len, s, e, step)
			return ir.D(n)
		}
	}
	s, e := fromEnd(start, d), fromEnd(end, d)
	if step > 0 {
		// The lower clamp of end and the upper one of start are idle: they only decide among empty results.
		if n, ok := end.Static(); !d.IsStatic() && ok && n >= wholeAxis {
			e = d
		} else if !e.Is(0) {
			e = e.Min(d)
		}
		return atLeast0(e.Sub(atLeast0(s))).CeilDiv(ir.D(step))
	}
	last := d.Sub(ir.D(1))
	if n, ok := start.Static(); !d.IsStatic() && ok && n >= wholeAxis {
		s = last
	} else if s != last {
		s = atLeast0(s).Min(last)
	}
	if n, ok := end.Static(); !d.IsStatic() && ok && n <= -wholeAxis {
		e = ir.D(-1)
	} else if !nonNegative(e) {
		e = e.Max(ir.D(-1))
	}
	return atLeast0(s.Sub(e)).CeilDiv(ir.D(0).Sub(ir.D(step)))
}

// fromEnd adds d to a negative bound. Where the sign depends on symbols, min(1, max(0, -b)) is 1 for a negative bound and else 0.
func fromEnd(b, d ir.Dim) ir.Dim {
	if n, ok := b.Static(); ok {
		if n < 0 {
			return d.Add(b)
		}
		return b
	}
	if nonNegative(b) {
		return b
	}
	return b.Add(d.Mul(ir.D(0).Sub(b).Max(ir.D(0)).Min(ir.D(1))))
}

func inferConcat(t *ir.Infer, a *ConcatAttrs) {
	x := t.Type(0)
	rank := len(x.Shape)
	if !t.Need(rank > 0, "C2", "x1 has rank 0, expected at least 1: no axis is in range (C9)") {
		return
	}
	k, ok := axisOf(t, a.Axis, rank)
	if !ok {
		return
	}
	out := append([]ir.Dim{}, x.Shape...)
	for i := 1; i < t.Len(); i++ {
		y := t.Type(i).Shape
		if !t.Need(len(y) == rank, "C2", "x%d has rank %d, expected %d", i+1, len(y), rank) {
			return
		}
		for j := range y {
			if j == k {
				out[j] = out[j].Add(y[j])
				continue
			}
			t.Need(!out[j].Differs(y[j]), "C3", "x%d has shape %v, expected %v off axis %d", i+1, y, x.Shape, a.Axis)
			out[j] = knownOf(out[j], y[j])
		}
	}
	t.Out(ir.Type{DType: x.DType, Shape: out})
}

func inferExpand(t *ir.Infer, a *ExpandAttrs) {
	x := t.Type(0)
	rank := max(len(x.Shape), len(a.Shape))
	out := make([]ir.Dim, rank)
	for i := range out {
		have, want := ir.D(1), ir.D(1)
		if k := i - (rank - len(x.Shape)); k >= 0 {
			have = x.Shape[k]
		}
		if k := i - (rank - len(a.Shape)); k >= 0 {
			want = a.Shape[k]
		}
		n, static := want.Static()
		t.Need(!static || n >= -1, "C1", "shape %v has an entry below -1, expected entries >= -1", a.Shape)
		switch {
		case want.Is(-1) || want.Is(1) || have == want:
			out[i] = have
		case have.Is(1):
			out[i] = want
		case have.IsStatic() && static:
			t.Need(false, "C2", "x has shape %v, expected one that broadcasts with %v", x.Shape, a.Shape)
			return
		case have.IsStatic(): // the symbol turns out to be 1, -1 or this
			out[i] = have
		case static:
			out[i] = want
		default:
			out[i] = have.Max(want)
		}
	}
	t.Out(ir.Type{DType: x.DType, Shape: out})
}
