package onnx

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// folding computes constants with the reference kernels, as package rlx does.
func folding() Option {
	return FoldWith(func(g *ir.Graph) ([]*ir.Tensor, error) {
		values := map[*ir.Node][]*ir.Tensor{}
		for _, n := range g.Nodes {
			out, err := runNode(g, n, nil, values)
			if err != nil {
				return nil, err
			}
			values[n] = out
		}
		var out []*ir.Tensor
		for _, o := range g.Outputs {
			out = append(out, values[o.Value.Node()][o.Value.Index()])
		}
		return out, nil
	})
}

// subGraph is an attribute that holds a graph.
func subGraph(name string, parts ...[]byte) []byte {
	return body(5, text(1, name), body(6, parts...), varint(20, 5))
}

// bodyNode is a node of a function, which keeps them in another field than a graph.
func bodyNode(op, in, out string, attrs ...[]byte) []byte {
	return functionNode("", op, in, out, attrs)
}

// bodyCall calls another function.
func bodyCall(op, in, out string, attrs ...[]byte) []byte {
	return functionNode("local", op, in, out, attrs)
}

func functionNode(domain, op, in, out string, attrs [][]byte) []byte {
	parts := [][]byte{text(4, op), text(7, domain), text(3, "node."+out), text(2, out)}
	for _, s := range strings.Fields(in) {
		parts = append(parts, text(1, strings.Trim(s, "_")))
	}
	return body(7, append(parts, attrs...)...)
}

func floatsIn(t *testing.T, out map[string]*ir.Tensor, name string) []float32 {
	t.Helper()
	v, err := ir.Data[float32](out[name])
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func run(t *testing.T, g *ir.Graph, feed map[string]*ir.Tensor) map[string]*ir.Tensor {
	t.Helper()
	out, err := evaluate(g, feed)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFunctions calls a function twice, once inside another; attributes pass through, one with a default.
func TestFunctions(t *testing.T) {
	refers := func(name, to string, kind uint64) []byte {
		return body(5, text(1, name), text(21, to), varint(20, kind))
	}
	function := func(name string, parts ...[]byte) []byte {
		return body(25, append([][]byte{text(1, name), text(10, "local"), body(9, varint(2, 17)), body(9, text(1, "local"), varint(2, 1))}, parts...)...)
	}
	call := func(op, in, out string, attrs ...[]byte) []byte {
		parts := [][]byte{text(4, op), text(7, "local"), text(3, "call."+out), text(2, out)}
		for _, s := range strings.Fields(in) {
			parts = append(parts, text(1, strings.Trim(s, "_")))
		}
		return body(1, append(parts, attrs...)...)
	}
	scale := function("Scale", text(4, "a"), text(4, "b"), text(5, "y"), text(6, "slope"),
		bodyNode("LeakyRelu", "a", "l", refers("alpha", "slope", 1)),
		bodyNode("Clip", "l b", "y"))
	twice := function("Twice", text(4, "x"), text(5, "z"), body(11, text(1, "slope"), fixed32(2, 0x3f000000), varint(20, 1)),
		bodyCall("Scale", "x _", "h", refers("slope", "slope", 1)),
		bodyNode("Add", "h h", "z"))
	data := join(varint(1, 8), body(8, varint(2, 17)), body(8, text(1, "local"), varint(2, 1)), scale, twice,
		body(7, inputOf("x", DataFloat, 2), outputOf("y"), outputOf("z"),
			call("Twice", "x", "y"), call("Twice", "x", "z", floatAttr("slope", 0.25))))
	g := mustImport(t, data)
	out := run(t, g, map[string]*ir.Tensor{"x": ir.New([]float32{3, -4}, 2)})
	// 2 * (3, -4 * 0.5) and 2 * (3, -4 * 0.25), by hand
	if y := floatsIn(t, out, "y"); !slices.Equal(y, []float32{6, -4}) {
		t.Errorf("y is %v, expected [6 -4]", y)
	}
	if z := floatsIn(t, out, "z"); !slices.Equal(z, []float32{6, -2}) {
		t.Errorf("z is %v, expected [6 -2]", z)
	}
	if n := g.Outputs[0].Value.Node(); n.Name != "call.y/node.z" {
		t.Errorf("y comes from %q, expected call.y/node.z", n.Name)
	}
}

// TestEndlessFunctions wants functions that call each other, and ones that double, to end in an error.
func TestEndlessFunctions(t *testing.T) {
	head := join(varint(1, 8), body(8, varint(2, 17)), body(8, text(1, "local"), varint(2, 1)))
	function := func(name string, parts ...[]byte) []byte {
		return body(25, append([][]byte{text(1, name), text(10, "local"), body(9, varint(2, 17)), text(4, "x"), text(5, "y")}, parts...)...)
	}
	graph := func(op string) []byte {
		return body(7, inputOf("x", DataFloat, 2), outputOf("y"), body(1, text(4, op), text(7, "local"), text(1, "x"), text(2, "y")))
	}
	self := join(head, function("Self", bodyCall("Self", "x", "y")), graph("Self"))
	if _, err := Import(self); err == nil || !strings.Contains(err.Error(), "nested") {
		t.Errorf("a function that calls itself: %v", err)
	}
	double := [][]byte{head}
	for i := range 40 {
		inner := string(rune('A'+i/26)) + string(rune('a'+i%26))
		outer := string(rune('A'+(i+1)/26)) + string(rune('a'+(i+1)%26))
		double = append(double, function(outer, bodyCall(inner, "x", "h"), bodyCall(inner, "h", "y")))
	}
	double = append(double, function("Aa", bodyNode("Neg", "x", "y")), graph("Bo"))
	if _, err := Import(join(double...)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("functions that double: %v", err)
	}
}

// TestIfBranches wants the branch that a condition takes alone, whether it is a constant, computed, or an input of the model.
func TestIfBranches(t *testing.T) {
	x := inputOf("x", DataFloat, 3)
	branches := [][]byte{
		subGraph("then_branch", nodeOf("Neg", "x", "t"), outputOf("t")),
		subGraph("else_branch", floatsOf("w", []uint64{3}, 1, 2, 3), nodeOf("Add", "x w", "e"), outputOf("e")),
	}
	for _, c := range []struct {
		name  string
		graph [][]byte
		feed  map[string]*ir.Tensor
		want  []float32
	}{
		{"constant", [][]byte{intsOf("one", 1), intsOf("two", 2), nodeOf("Less", "one two", "c"), nodeOf("If", "c", "y", branches...)}, nil, []float32{-1, -1, -1}},
		{"computed", [][]byte{
			floatsOf("v", []uint64{2}, 0.25, 0.5), floatsOf("half", []uint64{}, 0.5),
			nodeOf("ReduceSum", "v", "s", intAttr("keepdims", 0)), nodeOf("Less", "s half", "c"), nodeOf("If", "c", "y", branches...),
		}, nil, []float32{2, 3, 4}},
		{"input", [][]byte{inputOf("c", DataBool), nodeOf("If", "c", "y", branches...)}, map[string]*ir.Tensor{"c": ir.Scalar(true)}, []float32{-1, -1, -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := inGraph(append([][]byte{x, outputOf("y")}, c.graph...)...)
			g, bound, err := ImportFor(data, c.feed, folding())
			if err != nil {
				t.Fatal(err)
			}
			if len(bound) > 0 {
				t.Errorf("bound are %v, expected none", bound)
			}
			feed := map[string]*ir.Tensor{"x": ir.New([]float32{1, 1, 1}, 3)}
			maps.Copy(feed, c.feed)
			if y := floatsIn(t, run(t, g, feed), "y"); !slices.Equal(y, c.want) {
				t.Errorf("y is %v, expected %v", y, c.want)
			}
		})
	}
	// A condition that is not known lists what its branches need too.
	data := inGraph(x, inputOf("c", DataBool), outputOf("y"), nodeOf("If", "c", "y",
		subGraph("then_branch", nodeOf("StringSplit", "x", "t"), outputOf("t")), subGraph("else_branch", nodeOf("Neg", "x", "e"), outputOf("e"))))
	_, err := Import(data)
	var u *UnsupportedError
	if !errors.As(err, &u) || len(u.Items) != 2 || !slices.Equal(u.Items[0].Needs, []string{"c"}) || u.Items[1].Op != "StringSplit" {
		t.Errorf("got %v, expected that c is needed and StringSplit lacking", err)
	}
}

// TestLoops unrolls: a counted loop with a carried value and a scan output, one that its condition ends, and a Scan.
func TestLoops(t *testing.T) {
	x := inputOf("x", DataFloat, 2)
	loop := func(trips string, cond []byte) []byte {
		return nodeOf("Loop", trips, "y all", subGraph("body",
			inputOf("i", DataInt64), inputOf("go", DataBool), inputOf("v", DataFloat, 2), cond,
			nodeOf("Add", "v x", "next"), nodeOf("Identity", "next", "seen"), outputOf("more"), outputOf("next"), outputOf("seen")))
	}
	always := nodeOf("Identity", "go", "more")
	while := join(scalarOf("1", 1), nodeOf("Less", "i 1", "more"))
	feed := map[string]*ir.Tensor{"x": ir.New([]float32{1, 10}, 2)}
	for _, c := range []struct {
		name      string
		graph     [][]byte
		y, all    []float32
		wantShape []int64
	}{
		{"counted", [][]byte{scalarOf("n", 3), loop("n _ x", always)}, []float32{4, 40}, []float32{2, 20, 3, 30, 4, 40}, []int64{3, 2}},
		{"condition", [][]byte{loop("_ _ x", while)}, []float32{3, 30}, []float32{2, 20, 3, 30}, []int64{2, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := mustImport(t, inGraph(append([][]byte{x, outputOf("y"), outputOf("all")}, c.graph...)...), folding())
			out := run(t, g, feed)
			if y := floatsIn(t, out, "y"); !slices.Equal(y, c.y) {
				t.Errorf("y is %v, expected %v", y, c.y)
			}
			if all := floatsIn(t, out, "all"); !slices.Equal(all, c.all) || !slices.Equal(out["all"].Shape(), c.wantShape) {
				t.Errorf("all is %v, expected %v of shape %v", out["all"], c.all, c.wantShape)
			}
		})
	}
	scan := nodeOf("Scan", "x m", "last rows", intAttr("num_scan_inputs", 1), intsAttr("scan_input_axes", 1), intsAttr("scan_output_axes", 1),
		subGraph("body", inputOf("s", DataFloat, 2), inputOf("r", DataFloat, 2), nodeOf("Add", "s r", "t"), nodeOf("Neg", "t", "o"), outputOf("t"), outputOf("o")))
	g := mustImport(t, inGraph(x, inputOf("m", DataFloat, 2, 3), outputOf("last"), outputOf("rows"), scan))
	feed["m"] = ir.New([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	out := run(t, g, feed)
	// Running sums of the columns from (1, 10) on, by hand
	if y := floatsIn(t, out, "last"); !slices.Equal(y, []float32{7, 25}) {
		t.Errorf("last is %v, expected [7 25]", y)
	}
	if rows := floatsIn(t, out, "rows"); !slices.Equal(rows, []float32{-2, -4, -7, -14, -19, -25}) {
		t.Errorf("rows is %v, expected [-2 -4 -7 -14 -19 -25]", rows)
	}
}

// TestImportFor fixes shapes where values do not suffice, and leaves inputs alone that decide nothing.
func TestImportFor(t *testing.T) {
	data := inGraph(inputOf("x", DataFloat, "n"), inputOf("k", DataInt64, 1), outputOf("y"),
		intsOf("zero", 0), nodeOf("Shape", "x", "s"), nodeOf("Less", "s four", "c"), intsOf("four", 4),
		nodeOf("If", "c", "h", subGraph("then_branch", nodeOf("Neg", "x", "t"), outputOf("t")), subGraph("else_branch", nodeOf("Concat", "x x", "e", intAttr("axis", 0)), outputOf("e"))),
		nodeOf("Cast", "k", "f", intAttr("to", 1)), nodeOf("Mul", "h f", "y"))
	feed := map[string]*ir.Tensor{"x": ir.New([]float32{1, -2}, 2), "k": ir.New([]int64{3}, 1)}
	if _, err := Import(data); err == nil {
		t.Error("a condition that is not known is accepted, though its branches differ in shape")
	}
	g, bound, err := ImportFor(data, feed, folding())
	if err != nil {
		t.Fatal(err)
	}
	if len(bound) > 0 || shapeOf(t, g, "y") != "f32[2]" {
		t.Errorf("bound are %v, y is %s, expected none and f32[2]", bound, shapeOf(t, g, "y"))
	}
	if y := floatsIn(t, run(t, g, feed), "y"); !slices.Equal(y, []float32{-3, 6}) {
		t.Errorf("y is %v, expected [-3 6]", y)
	}
}

// TestLeftOutOperands calls a function without its second argument, which an operator inside cannot do without, and builds a sequence with
// a gap.
func TestLeftOutOperands(t *testing.T) {
	branch := func(name string) []byte { return subGraph(name, nodeOf("Neg", "x", "t"), outputOf("t")) }
	concat := bodyNode("ConcatFromSequence", "t", "y", intAttr("axis", 0))
	for _, c := range []struct {
		node string
		body [][]byte
	}{
		{"y/node.y", [][]byte{bodyNode("Identity", "m", "y")}},
		{"y/node.y", [][]byte{bodyNode("Add", "x m", "y")}},
		{"y/node.y", [][]byte{bodyNode("CastLike", "x m", "y")}},
		{"y/node.y", [][]byte{bodyNode("OptionalGetElement", "m", "y")}},
		{"y/node.y", [][]byte{bodyNode("If", "m", "y", branch("then_branch"), branch("else_branch"))}},
		{"y/node.t", [][]byte{bodyNode("SequenceEmpty", "", "s"), bodyNode("SequenceInsert", "s m", "t"), concat}},
		{"y/node.t", [][]byte{bodyNode("SequenceConstruct", "x m", "t"), concat}},
		{"y/node.t", [][]byte{bodyNode("SequenceConstruct", "x _", "t"), concat}},
	} {
		function := append([][]byte{text(1, "F"), text(10, "local"), body(9, varint(2, 17)), text(4, "x"), text(4, "m"), text(5, "y")}, c.body...)
		_, err := Import(join(varint(1, 8), body(8, varint(2, 17)), body(8, text(1, "local"), varint(2, 1)), body(25, function...),
			body(7, inputOf("x", DataFloat, 2), outputOf("y"), body(1, text(4, "F"), text(7, "local"), text(1, "x"), text(2, "y")))), folding())
		var e *ImportError
		if !errors.As(err, &e) || e.Node != c.node || !strings.Contains(err.Error(), "missing") {
			t.Errorf("got %v, expected that an operand of %s is missing", err, c.node)
		}
	}
}
