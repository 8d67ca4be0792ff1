package onnx

import (
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// A loop whose condition depends on data, with two carries and an If in its body, stays a loop: it halves v while its sum is above a
// limit and at most n times, n being an input.
func TestRuntimeLoop(t *testing.T) {
	body := subGraph("body",
		inputOf("i", DataInt64), inputOf("go", DataBool), inputOf("v", DataFloat, 2), inputOf("k", DataInt64),
		floatsOf("half", []uint64{}, 0.5), nodeOf("Mul", "v half", "next"), scalarOf("one", 1), nodeOf("Add", "k one", "count"),
		nodeOf("ReduceSum", "next", "sum", intAttr("keepdims", 0)), nodeOf("Greater", "sum limit", "big"),
		nodeOf("If", "big", "more", subGraph("then_branch", nodeOf("Identity", "big", "yes"), outputOf("yes")),
			subGraph("else_branch", nodeOf("Less", "limit sum", "no"), outputOf("no"))),
		outputOf("more"), outputOf("next"), outputOf("count"))
	data := inGraph(inputOf("x", DataFloat, 2), inputOf("n", DataInt64), floatsOf("limit", []uint64{}, 1), scalarOf("zero", 0),
		nodeOf("ReduceSum", "x", "s", intAttr("keepdims", 0)), nodeOf("Greater", "s limit", "first"),
		nodeOf("Loop", "n first x zero", "y trips", body), outputOf("y"), outputOf("trips"))
	g := mustImport(t, data, folding())
	if err := g.Verify(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		x     []float32
		n     int64
		y     []float32
		trips int64
	}{
		{[]float32{4, 8}, 100, []float32{0.25, 0.5}, 4}, // 12, 6, 3, 1.5, 0.75
		{[]float32{4, 8}, 2, []float32{1, 2}, 2},
		{[]float32{4, 8}, 0, []float32{4, 8}, 0},
		{[]float32{0.25, 0.5}, 5, []float32{0.25, 0.5}, 0},
	} {
		out := run(t, g, map[string]*ir.Tensor{"x": ir.New(c.x, 2), "n": ir.Scalar(c.n)})
		if y := floatsIn(t, out, "y"); !slices.Equal(y, c.y) || out["trips"].Int(0) != c.trips {
			t.Errorf("%v, at most %d: got %v after %d trips, expected %v after %d", c.x, c.n, y, out["trips"].Int(0), c.y, c.trips)
		}
	}
}

// A loop of many trips becomes a Scan, its counter and its rows included: the sums 0, 0+1, ... of the trip numbers.
func TestLongLoop(t *testing.T) {
	const n = 300
	body := subGraph("body", inputOf("i", DataInt64), inputOf("go", DataBool), inputOf("v", DataInt64),
		nodeOf("Add", "v i", "next"), nodeOf("Identity", "go", "more"), nodeOf("Identity", "next", "seen"), outputOf("more"), outputOf("next"), outputOf("seen"))
	g := mustImport(t, inGraph(inputOf("x", DataInt64), scalarOf("n", n), nodeOf("Loop", "n _ x", "y all", body), nodeOf("Neg", "all", "z"), outputOf("y"), outputOf("z")), folding())
	if len(g.Nodes) > 20 {
		t.Errorf("%d nodes, expected a loop that is not unrolled", len(g.Nodes))
	}
	out := run(t, g, map[string]*ir.Tensor{"x": ir.Scalar(int64(5))})
	if y := out["y"].Int(0); y != 5+n*(n-1)/2 {
		t.Errorf("y is %d, expected %d", y, 5+n*(n-1)/2)
	}
	for i := range n {
		if z := out["z"].Int(i); z != -int64(5+i*(i+1)/2) {
			t.Fatalf("z[%d] is %d, expected %d", i, z, -(5 + i*(i+1)/2))
		}
	}
}

// A Scan of a length that only the shapes of a run tell, along the second axis and backwards.
func TestScanOfAnyLength(t *testing.T) {
	scan := nodeOf("Scan", "x m", "last rows", intAttr("num_scan_inputs", 1), intsAttr("scan_input_axes", 1), intsAttr("scan_output_axes", 1),
		intsAttr("scan_input_directions", 1), intsAttr("scan_output_directions", 1),
		subGraph("body", inputOf("s", DataFloat, 2), inputOf("r", DataFloat, 2), nodeOf("Add", "s r", "t"), nodeOf("Neg", "t", "o"), outputOf("t"), outputOf("o")))
	g := mustImport(t, inGraph(inputOf("x", DataFloat, 2), inputOf("m", DataFloat, 2, "n"), outputOf("last"), outputOf("rows"), scan), folding())
	bound, err := g.Bind(map[string]int64{"n": 3})
	if err != nil {
		t.Fatal(err)
	}
	out := run(t, bound, map[string]*ir.Tensor{"x": ir.New([]float32{1, 10}, 2), "m": ir.New([]float32{1, 2, 3, 4, 5, 6}, 2, 3)})
	// Sums of the columns from the last on; the row of the first step stands last.
	if y := floatsIn(t, out, "last"); !slices.Equal(y, []float32{7, 25}) {
		t.Errorf("last is %v, expected [7 25]", y)
	}
	if rows := floatsIn(t, out, "rows"); !slices.Equal(rows, []float32{-7, -6, -4, -25, -21, -16}) {
		t.Errorf("rows is %v, expected [-7 -6 -4 -25 -21 -16]", rows)
	}
}
