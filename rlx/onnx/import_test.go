package onnx

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rlx-ml/rlx-go/internal/golden"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// ---- models, written by hand ----

// nodeOf is a node with space-separated inputs and outputs; "_" is an input left out. It is named after its first output.
func nodeOf(op, in, out string, attrs ...[]byte) []byte {
	parts := [][]byte{text(4, op)}
	for _, s := range strings.Fields(in) {
		parts = append(parts, text(1, strings.Trim(s, "_")))
	}
	for _, s := range strings.Fields(out) {
		parts = append(parts, text(2, s))
	}
	parts = append(parts, text(3, "node."+strings.Fields(out)[0]))
	return body(1, append(parts, attrs...)...)
}

func intAttr(name string, v int64) []byte {
	return body(5, text(1, name), varint(3, uint64(v)), varint(20, 2))
}

func floatAttr(name string, v float32) []byte {
	return body(5, text(1, name), fixed32(2, math.Float32bits(v)), varint(20, 1))
}

func intsAttr(name string, v ...int64) []byte {
	u := make([]uint64, len(v))
	for i := range v {
		u[i] = uint64(v[i])
	}
	return body(5, text(1, name), varints(8, u...), varint(20, 7))
}

func stringAttr(name, v string) []byte { return body(5, text(1, name), text(4, v), varint(20, 3)) }

// inputOf declares a graph input; dims are int, a name, or nil for unknown.
func inputOf(name string, elem int32, dims ...any) []byte {
	var shape [][]byte
	for _, d := range dims {
		switch d := d.(type) {
		case int:
			shape = append(shape, body(1, varint(1, uint64(d))))
		case string:
			shape = append(shape, body(1, text(2, d)))
		default:
			shape = append(shape, body(1))
		}
	}
	return body(11, text(1, name), body(2, body(1, varint(1, uint64(elem)), body(2, shape...))))
}

func outputOf(name string) []byte { return body(12, text(1, name)) }

// intsOf is an i64 initializer: a scalar if scalar is set, else a vector.
func intsOf(name string, v ...int64) []byte {
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(x))
	}
	return body(5, varints(1, uint64(len(v))), varint(2, uint64(DataInt64)), text(8, name), body(9, raw))
}

func scalarOf(name string, v int64) []byte {
	return body(5, varint(2, uint64(DataInt64)), text(8, name), body(9, binary.LittleEndian.AppendUint64(nil, uint64(v))))
}

func floatsOf(name string, shape []uint64, v ...float32) []byte {
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return body(5, varints(1, shape...), varint(2, uint64(DataFloat)), text(8, name), body(9, raw))
}

func mustImport(t *testing.T, data []byte, opts ...Option) *ir.Graph {
	t.Helper()
	g, err := Import(data, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// kinds lists the kinds of the nodes that outputs need.
func kinds(t *testing.T, g *ir.Graph) string {
	t.Helper()
	live, err := g.Rebuild(false, func(*ir.Graph, *ir.Node, []ir.Value) ([]ir.Value, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	var l []string
	for _, n := range live.Nodes {
		l = append(l, n.Row.Name)
	}
	return strings.Join(l, " ")
}

// ---- tests ----

func TestImportStructure(t *testing.T) {
	data := inGraph(
		inputOf("x", DataFloat, "batch", 3), outputOf("y"),
		floatsOf("w", []uint64{2, 3}, 1, 2, 3, 4, 5, 6), floatsOf("b", []uint64{2}, 10, 20), floatsOf("unused", []uint64{1}, 7),
		nodeOf("Gemm", "x w b", "h", intAttr("transB", 1), floatAttr("alpha", 2)),
		nodeOf("Relu", "h", "y"),
	)
	g := mustImport(t, data)
	if got, want := kinds(t, g), "Input Param Param Transpose MatMul Constant Binary Binary Activation"; got != want {
		t.Errorf("nodes are %s, expected %s", got, want)
	}
	if got := shapeOf(t, g, "y"); got != "f32[batch, 2]" {
		t.Errorf("y is %s, expected f32[batch, 2]", got)
	}
	if n := g.Outputs[0].Value.Node(); n.Name != "node.y" {
		t.Errorf("y comes from node %q, expected node.y", n.Name)
	}
	for _, n := range g.Nodes {
		if n.Row.Name == "MatMul" && (n.From != ir.Origin{Op: "Gemm", Name: "node.h"}) {
			t.Errorf("MatMul is part of %v, expected Gemm node.h", n.From)
		}
	}
	if g.ParamData("w") == nil || g.ParamData("unused") != nil {
		t.Errorf("params: w %v, unused %v, expected w alone", g.ParamData("w"), g.ParamData("unused"))
	}
	out, err := evaluate(g, map[string]*ir.Tensor{"x": ir.New([]float32{1, 0, -1}, 1, 3)})
	if err != nil {
		t.Fatal(err)
	}
	// 2 * (1-3, 4-6) + (10, 20), by hand
	if y, _ := ir.Data[float32](out["y"]); !slices.Equal(y, []float32{6, 16}) {
		t.Errorf("y is %v, expected [6 16]", y)
	}
}

func TestImportReaders(t *testing.T) {
	data := inGraph(inputOf("x", DataFloat, 2), outputOf("y"), nodeOf("Abs", "x", "y"))
	if _, err := ImportReader(strings.NewReader(string(data)), int64(len(data))); err != nil {
		t.Error(err)
	}
	if _, err := ImportReader(strings.NewReader(string(data)), int64(len(data))+1); err == nil {
		t.Error("a short file is accepted")
	}
	if _, err := ImportFS(fstest.MapFS{"m.onnx": {Data: data}}, "m.onnx"); err != nil {
		t.Error(err)
	}
	if _, err := ImportFS(fstest.MapFS{}, "m.onnx"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, expected that the file does not exist", err)
	}
	if _, err := Import([]byte("GGUF....")); !errors.Is(err, ErrNotONNX) {
		t.Errorf("got %v, expected %v", err, ErrNotONNX)
	}
}

// TestUnsupported wants every operator, attribute and value in one error, with node names.
func TestUnsupported(t *testing.T) {
	data := join(varint(1, 8), body(8, varint(2, 17)), body(8, text(1, "com.acme"), varint(2, 1)),
		body(25, text(1, "Twice"), text(10, "local")),
		body(7,
			inputOf("x", DataFloat, 2), inputOf("s", DataString, 1), outputOf("z"),
			body(5, varint(2, 1), text(8, "ext"), body(13, text(1, "location"), text(2, "w.bin")), varint(14, 1)),
			nodeOf("StringConcat", "x x", "a"),
			nodeOf("Abs", "a", "b", intAttr("speed", 3)), // behind a node that is not read
			nodeOf("Pad", "b ext", "c", stringAttr("mode", "mirror")),
			body(1, text(1, "c"), text(2, "d"), text(3, "node.d"), text(4, "Fancy"), text(7, "com.acme")),
			body(1, text(1, "d"), text(2, "e"), text(3, "node.e"), text(4, "Thrice"), text(7, "local")),
			nodeOf("Gelu", "e", "z"),
		))
	_, err := Import(data)
	var u *UnsupportedError
	if !errors.As(err, &u) {
		t.Fatalf("got %v, expected an UnsupportedError", err)
	}
	want := []Unsupported{
		{Node: "s", Reason: "input: element type STRING is not supported"},
		{Op: "StringConcat", Node: "node.a", Reason: "operator is not supported"},
		{Op: "Abs", Node: "node.b", Attr: "speed", Reason: "attribute is not supported"},
		{Op: "Pad", Node: "node.c", Attr: "mode", Reason: "value mirror is not supported, expected one of constant, reflect, edge, wrap"},
		{Op: "Fancy", Domain: "com.acme", Node: "node.d", Reason: "operator is not supported"},
		{Op: "Thrice", Domain: "local", Node: "node.e", Reason: "operator is not supported"},
		{Op: "Gelu", Node: "node.z", Reason: "operator set 17, supported from 20 on"},
	}
	if !slices.EqualFunc(u.Items, want, func(a, b Unsupported) bool { return a.String() == b.String() && a.Node == b.Node }) {
		t.Errorf("got\n%v\nexpected\n%v", u.Items, want)
	}
	for _, w := range []string{"7 unsupported", "StringConcat: operator is not supported (\"node.a\")", "com.acme.Fancy", "Abs attribute speed"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q lacks %q", err, w)
		}
	}
}

func TestImportErrors(t *testing.T) {
	x := inputOf("x", DataFloat, 2, 3)
	for _, c := range []struct {
		name, node string
		want       string
		graph      [][]byte
	}{
		{"no shape", "x", "no shape given", [][]byte{body(11, text(1, "x"), body(2, body(1, varint(1, 1))))}},
		{"no type", "x", "no type given", [][]byte{body(11, text(1, "x"))}},
		{"unknown input", "node.y", `input "q" is not defined`, [][]byte{x, nodeOf("Abs", "q", "y")}},
		{"unknown output", "z", "no node computes it", [][]byte{x, outputOf("z")}},
		{"defined twice", "node.y", `value "y" is defined twice`, [][]byte{x, nodeOf("Abs", "x", "y"), nodeOf("Neg", "x", "y")}},
		{"attribute missing", "node.y", "attribute axis is missing", [][]byte{x, nodeOf("Concat", "x x", "y")}},
		{"attribute type", "node.y", "attribute axis has type 1, expected 2", [][]byte{x, nodeOf("Concat", "x x", "y", floatAttr("axis", 1))}},
		{"input count", "node.y", "got 1 inputs, expected 2 to 2", [][]byte{x, nodeOf("Add", "x", "y")}},
		{"axis", "node.y", "axis is 2, expected in [-2, 2)", [][]byte{x, nodeOf("Softmax", "x", "y", intAttr("axis", 2))}},
		{"shapes", "node.y", "C4", [][]byte{x, inputOf("b", DataFloat, 4), nodeOf("Add", "x b", "y")}},
		{"dtypes", "node.y", "C2", [][]byte{x, inputOf("b", DataDouble, 3), nodeOf("Add", "x b", "y")}},
		{"initializer size", "w", "need 8 bytes, found 4", [][]byte{floatsOf("w", []uint64{2}, 1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Import(inGraph(c.graph...))
			var e *ImportError
			if !errors.As(err, &e) {
				t.Fatalf("got %v, expected an ImportError", err)
			}
			if e.Node != c.node || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got node %q, %v, expected node %q, %q", e.Node, err, c.node, c.want)
			}
		})
	}
}

// TestUnsortedNodes imports nodes that stand before those they need, one of them from inside a graph.
func TestUnsortedNodes(t *testing.T) {
	branch := func(name, out string) []byte {
		return body(5, text(1, name), body(6, nodeOf("Add", "b b", out), outputOf(out)), varint(20, 5))
	}
	g := mustImport(t, inGraph(inputOf("x", DataFloat, 2), outputOf("y"), body(5, varint(2, uint64(DataBool)), text(8, "yes"), body(9, []byte{1})),
		nodeOf("Neg", "c", "y"), nodeOf("If", "yes", "c", branch("then_branch", "d"), branch("else_branch", "e")), nodeOf("Abs", "a", "b"), nodeOf("Neg", "x", "a")))
	out, err := evaluate(g, map[string]*ir.Tensor{"x": ir.New([]float32{1, -2}, 2)})
	if err != nil {
		t.Fatal(err)
	}
	if y, _ := ir.Data[float32](out["y"]); !slices.Equal(y, []float32{-2, -4}) { // -2 |-x|
		t.Errorf("y is %v, expected [-2 -4]", y)
	}
}

// TestShapePlumbing imports the shape arithmetic of real exporters; no node of it may stay. Expected dims by hand.
func TestShapePlumbing(t *testing.T) {
	x := inputOf("x", DataFloat, "batch", "seq", 8)
	for _, c := range []struct {
		name, want, kinds string
		graph             [][]byte
	}{
		{"split heads", "f32[batch, seq, 2, 4]", "Input Reshape", [][]byte{
			intsOf("zero", 0), intsOf("one", 1), intsOf("two", 2), intsOf("rest", 2, -1),
			nodeOf("Shape", "x", "s"), nodeOf("Slice", "s zero one", "b"), nodeOf("Slice", "s one two", "n"),
			nodeOf("Concat", "b n rest", "t", intAttr("axis", 0)), nodeOf("Reshape", "x t", "y"),
		}},
		{"gather and unsqueeze", "f32[batch, 8*seq]", "Input Reshape", [][]byte{
			scalarOf("0", 0), intsOf("axes", 0), intsOf("-1", -1),
			nodeOf("Shape", "x", "s"), nodeOf("Gather", "s 0", "b"), nodeOf("Unsqueeze", "b axes", "b1"),
			nodeOf("Concat", "b1 -1", "t", intAttr("axis", 0)), nodeOf("Reshape", "x t", "y"),
		}},
		{"expand with where", "f32[batch, seq, 8]", "Input Expand", [][]byte{
			intsOf("minus", -1), intsOf("want", 1, -1, 8), intsOf("ones", 1, 1, 1),
			nodeOf("Equal", "want minus", "e"), nodeOf("Where", "e ones want", "t"), nodeOf("Expand", "x t", "y"),
		}},
		{"where on a length", "f32[batch, seq, 8]", "Input Expand", [][]byte{
			intsOf("minus", -1), intsOf("ones", 1, 1, 1),
			nodeOf("Shape", "x", "s"), nodeOf("Equal", "s minus", "e"), nodeOf("Where", "e ones s", "t"), nodeOf("Expand", "x t", "y"),
		}},
		{"half by float", "f32[batch, seq, 4]", "Input Slice", [][]byte{
			intsOf("axes", 2), intsOf("zero", 0), intsOf("last", -1), floatsOf("two", []uint64{1}, 2),
			nodeOf("Shape", "x", "s"), nodeOf("Gather", "s last", "d"), nodeOf("Cast", "d", "f", intAttr("to", 1)),
			nodeOf("Div", "f two", "h"), nodeOf("Floor", "h", "k"), nodeOf("Cast", "k", "i", intAttr("to", 7)),
			nodeOf("Slice", "x zero i axes", "y"),
		}},
		{"torch pad", "f32[batch, seq + 3, 8]", "Input Pad", [][]byte{ // last axis first, begin and end in turn
			intsOf("p", 0, 0, 1, 2, 0, 0), intsOf("pair", -1, 2), intsOf("from", -1), intsOf("to", math.MinInt64), intsOf("axis", 0),
			intsOf("flat", -1),
			nodeOf("Reshape", "p pair", "a"), nodeOf("Slice", "a from to axis from", "b"), nodeOf("Transpose", "b", "c", intsAttr("perm", 1, 0)),
			nodeOf("Reshape", "c flat", "d"), nodeOf("Pad", "x d", "y"),
		}},
		{"arithmetic", "f32[2*batch + min(1, batch), seq, 8]", "Input Slice Concat", [][]byte{
			intsOf("zero", 0), intsOf("one", 1), intsOf("two", 2),
			nodeOf("Shape", "x", "s", intAttr("end", 1)), nodeOf("Mul", "s two", "m"), nodeOf("Add", "m one", "a"), nodeOf("Sub", "a m", "u"),
			nodeOf("Slice", "x zero u zero", "f"), nodeOf("Concat", "x x f", "y", intAttr("axis", 0)), // u is 1
		}},
		{"element count", "f32[8*batch*seq]", "Input Reshape", [][]byte{
			intsOf("axes", 0), nodeOf("Size", "x", "n"), nodeOf("Unsqueeze", "n axes", "v"), nodeOf("Reshape", "x v", "y"),
		}},
		{"fill", "f32[batch, seq]", "Constant Expand", [][]byte{
			nodeOf("Shape", "x", "s", intAttr("end", -1)), nodeOf("ConstantOfShape", "s", "y"),
		}},
		{"split of a shape", "f32[seq, batch, 8]", "Input Reshape", [][]byte{
			nodeOf("Shape", "x", "s"), nodeOf("Split", "s", "a b c"), nodeOf("Concat", "b a c", "t", intAttr("axis", 0)), nodeOf("Reshape", "x t", "y"),
		}},
		{"product", "f32[batch*seq, 8]", "Input Reshape", [][]byte{
			intsOf("d", 8),
			nodeOf("Shape", "x", "s", intAttr("end", 2)), nodeOf("ReduceProd", "s", "p"), nodeOf("Concat", "p d", "t", intAttr("axis", 0)),
			nodeOf("Reshape", "x t", "y"),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := mustImport(t, inGraph(append([][]byte{x, outputOf("y")}, c.graph...)...))
			if got := shapeOf(t, g, "y"); got != c.want {
				t.Errorf("y is %s, expected %s", got, c.want)
			}
			if got := kinds(t, g); strings.TrimPrefix(got, "Input ") != strings.TrimPrefix(c.kinds, "Input ") {
				t.Errorf("nodes are %s, expected %s", got, c.kinds)
			}
		})
	}
}

// TestTrackedAsData needs values that are known as dims as data: lengths, a range up to one, and elements of an integer input.
func TestTrackedAsData(t *testing.T) {
	g := mustImport(t, inGraph(
		inputOf("x", DataFloat, "batch", "seq", 8), inputOf("k", DataInt64, 2),
		outputOf("shape"), outputOf("less"), outputOf("range"), outputOf("sum"), outputOf("cut"),
		scalarOf("0", 0), scalarOf("1", 1), scalarOf("3", 3), scalarOf("axis", 1), intsOf("axes", 1), intsOf("first", 0), intsOf("zero", 0),
		nodeOf("Shape", "x", "shape"),
		nodeOf("Sub", "1 shape", "less"),
		nodeOf("Gather", "shape axis", "n"),
		nodeOf("Range", "1 n 3", "range"),
		nodeOf("Add", "k 3", "sum"),
		nodeOf("Gather", "k first", "k0"),
		nodeOf("Slice", "x zero k0 axes", "cut"),
	))
	if got := shapeOf(t, g, "cut"); !strings.Contains(got, "k#0") {
		t.Errorf("cut is %s, expected a length that depends on k#0", got)
	}
	for _, c := range []struct{ batch, seq int }{{2, 7}, {0, 1}, {3, 8}} {
		x := ir.New(make([]float32, c.batch*c.seq*8), c.batch, c.seq, 8)
		out, err := evaluate(g, map[string]*ir.Tensor{"x": x, "k": ir.New([]int64{-1, -40}, 2)})
		if err != nil {
			t.Fatal(err)
		}
		b, s := int64(c.batch), int64(c.seq)
		steps := []int64{}
		for i := int64(1); i < s; i += 3 {
			steps = append(steps, i)
		}
		for name, want := range map[string][]int64{"shape": {b, s, 8}, "less": {1 - b, 1 - s, -7}, "range": steps, "sum": {2, -37}} {
			if got, err := ir.Data[int64](out[name]); err != nil || !slices.Equal(got, want) {
				t.Errorf("batch %d, seq %d: %s is %v, expected %v, %v", b, s, name, got, want, err)
			}
		}
		if got := out["cut"].Shape(); !slices.Equal(got, []int64{b, s - 1, 8}) {
			t.Errorf("batch %d, seq %d: cut has shape %v, expected [%d %d 8]", b, s, got, b, s-1)
		}
	}
}

func TestDims(t *testing.T) {
	graph := inGraph(
		inputOf("ids", DataInt64, "batch", nil), inputOf("mask", DataInt64, "batch", "my seq"), inputOf("m2", DataInt64, "my-seq", 4),
		outputOf("ids"),
	)
	want := func(g *ir.Graph, shapes ...string) {
		t.Helper()
		for i, s := range shapes {
			if got := g.Inputs[i].Types[0].String(); got != s {
				t.Errorf("input %d is %s, expected %s", i, got, s)
			}
		}
	}
	// Two names that become one symbol stay two, because they may be two lengths.
	want(mustImport(t, graph), "i64[batch, ids.1]", "i64[batch, my_seq]", "i64[my_seq_, 4]")
	want(mustImport(t, graph, BindDim("batch", 1), BindDim("my seq", 9)), "i64[1, ids.1]", "i64[1, 9]", "i64[my_seq_, 4]")

	bind := inGraph(inputOf("x", DataFloat, 2, 3), inputOf("to", DataInt64, 1), outputOf("y"), nodeOf("ReduceSum", "x to", "y"))
	var u *UnsupportedError
	if _, err := Import(bind); !errors.As(err, &u) || u.Items[0].Node != "node.y" {
		t.Errorf("got %v, expected that the axes must be known", err)
	}
	g := mustImport(t, bind, BindInput("to", ir.New([]int64{0}, 1)))
	if got := shapeOf(t, g, "y"); got != "f32[1, 3]" || len(g.Inputs) != 1 {
		t.Errorf("y is %s with %d inputs, expected f32[1, 3] with one", got, len(g.Inputs))
	}
	if _, err := Import(bind, BindInput("to", ir.New([]float32{0}, 1))); err == nil || !strings.Contains(err.Error(), `"to"`) {
		t.Errorf("got %v, expected an error about input to", err)
	}
}

func TestBindingsThatNameNothing(t *testing.T) {
	data := inGraph(inputOf("x", DataFloat, "n"), outputOf("y"), nodeOf("Abs", "x", "y"))
	for want, o := range map[string]Option{`dim "m"`: BindDim("m", 1), `input "z"`: BindInput("z", ir.Scalar(int64(1)))} {
		if _, err := Import(data, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected an error about %s", err, want)
		}
	}
}

// TestNameClash has a node, an initializer and an output of one name: ONNX keeps node names apart, a graph does not.
func TestNameClash(t *testing.T) {
	g := mustImport(t, inGraph(
		inputOf("x", DataFloat, 2), outputOf("y"), floatsOf("w", []uint64{2}, 1, 2), floatsOf("binary_1", []uint64{2}, 3, 4),
		body(1, text(1, "x"), text(1, "x"), text(2, "h"), text(3, "w"), text(4, "Mul")),
		nodeOf("Add", "h w", "k"), nodeOf("Add", "k binary_1", "y"),
	))
	out, err := evaluate(g, map[string]*ir.Tensor{"x": ir.New([]float32{3, 4}, 2)})
	if err != nil {
		t.Fatal(err)
	}
	if y, _ := ir.Data[float32](out["y"]); !slices.Equal(y, []float32{13, 22}) {
		t.Errorf("y is %v, expected [13 22]", y)
	}
}

// TestHostileShapes imports models whose shape arithmetic would explode; they must end quickly, with or without an error.
func TestHostileShapes(t *testing.T) {
	x := inputOf("x", DataFloat, "n", "m")
	chain := func(op string, n int) []byte {
		g := [][]byte{x, outputOf("v"), nodeOf("Shape", "x", "v0")}
		last := "v0"
		for i := 1; i <= n; i++ {
			next := "v" + strings.Repeat("'", i%3) + string(rune('a'+i%26)) + strings.Repeat(".", i/26)
			g = append(g, nodeOf(op, last+" "+last, next))
			last = next
		}
		return inGraph(append(g, nodeOf("Identity", last, "v"))...)
	}
	for _, op := range []string{"Mul", "Add", "Sub", "Max", "Div"} {
		if _, err := Import(chain(op, 400), Limit(1<<24)); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
	tile := [][]byte{x, outputOf("v39")}
	last := "x"
	for i := range 40 {
		name := "v" + strconv.Itoa(i)
		tile = append(tile, nodeOf("Shape", last, "s"+name), nodeOf("Tile", last+" s"+name, name))
		last = name
	}
	if _, err := Import(inGraph(tile...)); err == nil || !strings.Contains(err.Error(), "characters") {
		t.Errorf("dims that double 40 times: got %v, expected an error", err)
	}
	for _, size := range []int64{math.MaxInt64, -1, math.MinInt64, 1 << 40} {
		_, err := Import(inGraph(outputOf("y"), intsOf("s", size, size), nodeOf("ConstantOfShape", "s", "y")))
		if size != 1<<40 && err == nil {
			t.Errorf("a length of %d is accepted", size)
		}
	}
}

// TestHostileAttributes wants an error about the node where lists are too short or lengths have no data behind them.
func TestHostileAttributes(t *testing.T) {
	image := [][]byte{inputOf("x", DataFloat, 1, 4, 4), intsOf("size", 4, 4), intsOf("block", 2, 2)}
	empty := [][]byte{floatsOf("x", []uint64{1 << 40, 0})}
	volume := inputOf("x", DataFloat, 1, 4, 4, 4)
	grams := func(indexes ...int64) []byte {
		return nodeOf("TfIdfVectorizer", "x", "y", intAttr("max_gram_length", 1), intAttr("min_gram_length", 1), intAttr("max_skip_count", 0),
			stringAttr("mode", "IDF"), intsAttr("ngram_counts", 0), intsAttr("ngram_indexes", indexes...), intsAttr("pool_int64s", 7),
			body(5, text(1, "weights"), fixed32(7, 0), fixed32(7, 0), varint(20, 6)))
	}
	for _, c := range []struct {
		want  string
		graph [][]byte
	}{
		{"strides has 1 entries, expected 2", append(image, nodeOf("Col2Im", "x size block", "y", intsAttr("strides", 2)))},
		{"strides are [2 0]", append(image, nodeOf("Col2Im", "x size block", "y", intsAttr("strides", 2, 0)))},
		{"pads has 2 entries, expected 4", append(image, nodeOf("Col2Im", "x size block", "y", intsAttr("pads", 0, 0)))},
		{"strides has 1 entries, expected 2", [][]byte{volume, inputOf("i", DataInt64, 1, 4, 4, 4),
			nodeOf("MaxUnpool", "x i", "y", intsAttr("kernel_shape", 2, 2), intsAttr("strides", 2))}},
		{"dilations has 3 entries, expected 2", [][]byte{volume, inputOf("w", DataFloat, 4, 4, 2, 2), inputOf("o", DataFloat, 1, 8, 3, 3),
			nodeOf("DeformConv", "x w o", "y", intsAttr("dilations", 1, 1, 1))}},
		{"a table of f32[1 -2]", [][]byte{volume, inputOf("r", DataFloat, 1, 4), inputOf("b", DataInt64, 1),
			nodeOf("RoiAlign", "x r b", "y", intAttr("output_height", -1), intAttr("sampling_ratio", 2))}},
		{"ngram_indexes [0 -5]", [][]byte{inputOf("x", DataInt64, 3), grams(0, -5)}},
		{"shape [1099511627776 0]", append(empty, nodeOf("Unique", "x", "y", intAttr("axis", 0)))},
		{"shape [1099511627776 0]", append(empty, nodeOf("Unique", "x", "y", intAttr("axis", 1)))},
	} {
		_, err := Import(join(varint(1, 8), body(8, varint(2, 24)), body(7, append([][]byte{outputOf("y")}, c.graph...)...)), folding())
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"node.y"`) {
			t.Errorf("got %v, expected an error about node.y with %q", err, c.want)
		}
	}
}

// FuzzImport wants an error or a graph for any bytes, also where the inputs are bound to small values. With RLX_MODELS set it starts from
// ONNX's operator tests.
func FuzzImport(f *testing.F) {
	f.Add(smallModel())
	f.Add(inGraph(inputOf("x", DataFloat, "n", 3), outputOf("y"), nodeOf("Shape", "x", "s"), nodeOf("Reshape", "x s", "y")))
	f.Add(inGraph(inputOf("x", DataFloat, 1, 4, 4, 4), outputOf("y"), nodeOf("DepthToSpace", "x", "y", intAttr("blocksize", 2))))
	if root, skip := golden.ModelPath("onnx-node-tests"); skip == "" {
		models, _ := filepath.Glob(filepath.Join(root, "*", "model.onnx"))
		for _, m := range models {
			if data, err := os.ReadFile(m); err == nil {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, _, err := ImportFor(data, smallFeed(data), folding())
		if err == nil && g.Err() != nil {
			t.Errorf("imported with error %v", g.Err())
		}
	})
}

// smallFeed has zeros for the inputs of a model that are small enough to be bound.
func smallFeed(data []byte) map[string]*ir.Tensor {
	feed := map[string]*ir.Tensor{}
	m, err := Decode(data)
	if err != nil {
		return feed
	}
	for _, in := range m.Graph.Inputs {
		shape := make([]int64, len(in.Shape))
		for i, d := range in.Shape {
			shape[i] = min(max(d.Value, 0), 64)
		}
		if t, err := ir.Zeros(dtypes[in.ElemType], shape...); err == nil && t.Len() <= maxTracked {
			feed[in.Name] = t
		}
	}
	return feed
}
