package op

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// input is a fresh graph with one f32 input of the given dims, each a number or a symbol.
func input(t *testing.T, dims ...any) ir.Value {
	t.Helper()
	shape := make([]ir.Dim, len(dims))
	for i, d := range dims {
		switch d := d.(type) {
		case int:
			shape[i] = ir.D(int64(d))
		case string:
			shape[i] = ir.Sym(d)
		}
	}
	return ir.NewGraph(t.Name()).Input("x", ir.F32, shape)
}

func shapeIs(t *testing.T, v ir.Value, want string) {
	t.Helper()
	if err := v.Graph().Err(); err != nil {
		t.Error(err)
	} else if got := ir.ShapeText(v.Shape()); got != want {
		t.Errorf("%s: got shape %s, expected %s", v.Node(), got, want)
	}
}

func failsWith(t *testing.T, v ir.Value, words ...string) {
	t.Helper()
	err := v.Graph().Err()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("got error %v, expected one with %q", err, w)
		}
	}
}

func TestViewShapes(t *testing.T) {
	d, to := ir.D, func(n int64) []ir.Dim { return ir.Dims(n) }
	x := func() ir.Value { return input(t, "b", "s", 64) }
	last := []int{1}
	shapeIs(t, Reshape(x(), d(-1), d(64)), "[b*s, 64]")
	shapeIs(t, Reshape(x(), ir.Sym("b"), ir.Sym("s"), d(4), d(-1)), "[b, s, 4, 16]")
	shapeIs(t, ReshapeWith(x(), ReshapeAttrs{Shape: ir.Dims(0, 0, 8, -1)}), "[b, s, 8, 8]")
	shapeIs(t, Slice(x(), to(0), to(math.MaxInt64), last, nil), "[b, s, 64]")
	shapeIs(t, Slice(x(), to(1), to(math.MaxInt32), last, nil), "[b, max(0, s - 1), 64]")
	shapeIs(t, Slice(x(), to(0), to(-1), last, nil), "[b, max(0, s - 1), 64]")
	shapeIs(t, Slice(x(), to(-1), to(math.MinInt64), last, []int64{-1}), "[b, s, 64]")
	shapeIs(t, Slice(x(), to(0), []ir.Dim{ir.Sym("k")}, []int{2}, nil), "[b, s, min(64, k)]")
}

func TestConcatTileExpandShapes(t *testing.T) {
	x := input(t, "b", "s", 64)
	shapeIs(t, Concat(1, x, x), "[b, 2*s, 64]")
	shapeIs(t, Tile(x, ir.D(1), ir.Sym("r"), ir.D(2)), "[b, r*s, 128]")
	shapeIs(t, Expand(x, ir.D(3), ir.D(-1), ir.D(1), ir.D(64)), "[3, b, s, 64]")
	shapeIs(t, Pad(x, ir.Dims(0, 1, 0, 0, 2, 0), PadConstant, ir.Number{}), "[b, s + 3, 64]")
	shapeIs(t, Gather(x, Iota(x.Graph(), 5, ir.I64), -1), "[b, s, 5]")
}

// A bound that depends on the values of an integer input may be negative: then it counts from the end, as a static one does.
func TestSliceByInputValues(t *testing.T) {
	for _, c := range []struct{ d, start, end, step, want int64 }{
		{10, 2, 7, 1, 5}, {10, -3, 10, 1, 3}, {10, 0, -4, 1, 6}, {10, -20, 20, 3, 4}, {10, 8, 3, 1, 0}, {0, -1, 5, 1, 0},
		{10, 7, 2, -2, 3}, {10, -1, math.MinInt64, -1, 10}, {10, math.MaxInt64, 0, -4, 3}, {10, -20, math.MinInt64, -1, 1}, {0, 5, -5, -1, 0},
		{10, math.MinInt64, math.MaxInt64, math.MaxInt64, 1}, {10, math.MaxInt64, math.MinInt64, math.MinInt64, 1},
	} {
		g := ir.NewGraph("")
		x := g.Input("x", ir.F32, []ir.Dim{ir.Sym("d")})
		bounds, err := g.Input("bounds", ir.I64, ir.Dims(2)).InputDims()
		if err != nil {
			t.Fatal(err)
		}
		y := Slice(x, bounds[:1], bounds[1:], nil, []int64{c.step})
		got := y.Dim(0).Bind(map[string]int64{"d": c.d, ir.StaticSymbol("bounds", 0): c.start, ir.StaticSymbol("bounds", 1): c.end})
		if !got.Is(c.want) {
			t.Errorf("%d[%d:%d:%d]: %s gives %s, expected %d", c.d, c.start, c.end, c.step, y.Dim(0), got, c.want)
		}
		if _, n := sliceRange(c.d, c.start, c.end, c.step); n != c.want {
			t.Errorf("%d[%d:%d:%d]: got %d elements, expected %d", c.d, c.start, c.end, c.step, n, c.want)
		}
	}
}

func TestMoveErrors(t *testing.T) {
	x := func() ir.Value { return input(t, 2, 3) }
	failsWith(t, Reshape(x(), ir.D(-1), ir.D(0)), "Reshape: C4", "ambiguous")
	failsWith(t, ReshapeInts(x(), math.MaxInt64, math.MaxInt64), "Reshape: C3")
	failsWith(t, ReshapeInts(x(), -2, 3), "Reshape: C1")
	failsWith(t, ReshapeWith(x(), ReshapeAttrs{Shape: ir.Dims(2, 3, 0)}), "Reshape: C5")
	failsWith(t, Narrow(x(), 1, math.MaxInt64, math.MaxInt64), "Narrow: C3")
	failsWith(t, Narrow(x(), 1, math.MinInt64, 0), "Narrow: C1")
	failsWith(t, Pad(x(), ir.Dims(math.MinInt64, 0), PadConstant, ir.Number{}), "Pad: C2")
	failsWith(t, Concat(0, input(t)), "Concat: C2")
	failsWith(t, Expand(x(), ir.D(-2)), "Expand: C1")
	failsWith(t, Resize(x(), ResizeAttrs{Sizes: ir.Dims(4)}), "Resize: C2")
	failsWith(t, Resize(x(), ResizeAttrs{Scales: []float64{1, math.NaN()}}), "Resize: C3")
}

// The strides are worked out by hand.
func TestViewOf(t *testing.T) {
	x := input(t, 4, 6)
	for _, c := range []struct {
		name          string
		v             ir.Value
		dims, strides []int64 // of x
		offset        int64
		want          []int64
		wantOffset    int64
		copies        bool
	}{
		{"transpose", Transpose(x), []int64{4, 6}, []int64{6, 1}, 5, []int64{1, 6}, 5, false},
		{"narrow", Narrow(x, 1, -2, 2), []int64{4, 6}, []int64{6, 1}, 0, []int64{6, 1}, 4, false},
		{"narrow to nothing at the end", Narrow(x, 0, 4, 0), []int64{4, 6}, []int64{6, 1}, 0, []int64{6, 1}, 0, false},
		{"slice down by 2", Slice(x, ir.Dims(5), ir.Dims(math.MinInt64), []int{1}, []int64{-2}), []int64{4, 6}, []int64{6, 1}, 0, []int64{6, -2}, 5, false},
		{"slice one element", Slice(x, ir.Dims(1), ir.Dims(9), []int{0}, []int64{math.MaxInt64}), []int64{4, 6}, []int64{6, 1}, 0, []int64{6, 1}, 6, false},
		{"expand", Expand(x, ir.Dims(3, 4, 6)...), []int64{4, 6}, []int64{1, 4}, 0, []int64{0, 1, 4}, 0, false},
		{"reverse a reversed axis", Reverse(x, 1), []int64{4, 6}, []int64{6, -1}, 5, []int64{6, 1}, 0, false},
		{"reshape splits an axis", ReshapeInts(x, 4, 2, 3), []int64{4, 6}, []int64{1, 4}, 0, []int64{1, 12, 4}, 0, false},
		{"reshape merges rows without gaps", ReshapeInts(x, 24), []int64{4, 6}, []int64{6, 1}, 7, []int64{1}, 7, false},
		{"reshape merges a reversed whole", ReshapeInts(x, 8, 3), []int64{4, 6}, []int64{-6, -1}, 23, []int64{-3, -1}, 23, false},
		{"reshape merges an expanded whole", ReshapeInts(x, 24), []int64{4, 6}, []int64{0, 0}, 2, []int64{0}, 2, false},
		{"reshape of transposed axes", ReshapeInts(x, 24), []int64{4, 6}, []int64{1, 4}, 0, nil, 0, true},
		{"reshape of rows with gaps", ReshapeInts(x, 2, 12), []int64{4, 6}, []int64{8, 1}, 0, nil, 0, true},
	} {
		_, got, offset, ok := ViewOf(c.v.Node(), c.dims, c.strides, c.offset)
		if ok == c.copies || ok && (!slices.Equal(got, c.want) || offset != c.wantOffset) {
			t.Errorf("%s: got strides %v, offset %d, %v; expected %v, %d, %v", c.name, got, offset, ok, c.want, c.wantOffset, !c.copies)
		}
	}
	if _, _, _, ok := ViewOf(Tile(x, ir.Dims(1, 1)...).Node(), []int64{4, 6}, []int64{6, 1}, 0); ok {
		t.Error("Tile has a view, expected none")
	}
	if err := x.Graph().Err(); err != nil {
		t.Error(err)
	}
}

func TestIndexErrors(t *testing.T) {
	x := func() ir.Value { return input(t, 2, 3) }
	ints := func(v ir.Value, dims ...int64) ir.Value { return v.Graph().Input("i", ir.I64, ir.Dims(dims...)) }
	y := x()
	failsWith(t, Gather(y, y.Graph().Input("i", ir.Bool, nil), 0), "Gather: C8", "bool")
	y = x()
	failsWith(t, Gather(y, y.Graph().Input("i", ir.F64, nil), 0), "Gather: C8", "f64")
	y = x()
	failsWith(t, GatherNd(y, ints(y, 2, 0), 0), "GatherNd: C3")
	y = x()
	failsWith(t, ScatterNd(y, ints(y, 4, 3), y, ScatterNone), "ScatterNd: C3")
	y = x()
	failsWith(t, KvAppendAt(y, y, 0, math.MaxInt64), "KvAppend: C4")
	y = x()
	failsWith(t, KvAppend(y, y, ir.Value{}, 0), "KvAppend: C2")
	y = x()
	failsWith(t, KvAppend(y, y, ints(y, 2), 0), "KvAppend: C3")
	g := ir.NewGraph("")
	b := g.Input("b", ir.Bool, ir.Dims(3))
	failsWith(t, ScatterElements(b, g.Input("i", ir.I64, ir.Dims(3)), b, 0, ScatterSum), "ScatterElements: C4")
}
