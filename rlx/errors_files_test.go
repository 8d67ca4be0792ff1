package rlx_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/onnx"
	"github.com/rlx-ml/rlx-go/rlx/op"
	"google.golang.org/protobuf/encoding/protowire"
)

// The parts of an ONNX model: messages by field number, as onnx.proto numbers them.

func pbInt(field protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), uint64(v))
}

func pbOf(field protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), bytes.Join(parts, nil))
}

func pbText(field protowire.Number, s string) []byte { return pbOf(field, []byte(s)) }

// onnxModel is a model of operator set 17.
func onnxModel(graph ...[]byte) []byte { return onnxOf(17, graph...) }

func onnxOf(opset int64, graph ...[]byte) []byte {
	return slices.Concat(pbInt(1, 8), pbOf(8, pbInt(2, opset)), pbOf(7, append([][]byte{pbText(2, "main")}, graph...)...))
}

// onnxNode is called node.OUT. _ stands for an absent input.
func onnxNode(kind, in, out string, attrs ...[]byte) []byte {
	parts := [][]byte{pbText(4, kind), pbText(3, "node."+out), pbText(2, out)}
	for _, s := range strings.Fields(in) {
		parts = append(parts, pbText(1, strings.Trim(s, "_")))
	}
	return pbOf(1, append(parts, attrs...)...)
}

// onnxAttr is an attribute of the given type: v is its field.
func onnxAttr(name string, kind int64, v ...[]byte) []byte {
	return pbOf(5, append([][]byte{pbText(1, name), pbInt(20, kind)}, v...)...)
}

// onnxX is the input called name, f32 of the given dims.
func onnxX(name string, dims ...int64) []byte {
	var shape [][]byte
	for _, d := range dims {
		shape = append(shape, pbOf(1, pbInt(1, d)))
	}
	return pbOf(11, pbText(1, name), pbOf(2, pbOf(1, pbInt(1, 1), pbOf(2, shape...))))
}

func onnxY(name string) []byte { return pbOf(12, pbText(1, name)) }

// wantFile expects a *FileError about model.onnx. offset -1 stands for none, 0 for some byte of the file.
func wantFile(offset int64, field string, words ...string) fault {
	return func(t *testing.T, err error) []string {
		e := as[*rlx.FileError](t, err)
		sameText(t, "File", filepath.Base(e.File), "model.onnx")
		sameText(t, "Field", e.Field, field)
		if e.Err == nil || (e.Offset < 0) != (offset < 0) {
			t.Errorf("fields: %+v", e)
		}
		return append(words, "model.onnx", field)
	}
}

// wantImport expects a *FileError about a node of the file, or about what else has a name in it.
func wantImport(kind, name string, words ...string) fault {
	return func(t *testing.T, err error) []string {
		e := as[*onnx.ImportError](t, err)
		sameText(t, "Op", e.Op, kind)
		sameText(t, "Node", e.Node, name)
		field := kind + " node " + name
		if name == "" {
			field = ""
		}
		return append(wantFile(-1, field, words...)(t, err), name)
	}
}

// wantModel expects a *ModelError with one entry for each of the items: kind, node and attribute.
func wantModel(items [][3]string, words ...string) fault {
	return func(t *testing.T, err error) []string {
		e := as[*rlx.ModelError](t, err)
		sameText(t, "File", e.File, "model.onnx")
		var got [][3]string
		for _, u := range e.Items {
			got = append(got, [3]string{u.Op, u.Node, u.Attr})
			if u.Reason == "" {
				t.Errorf("no reason: %+v", u)
			}
		}
		if !slices.Equal(got, items) {
			t.Errorf("got %q, expected %q", got, items)
		}
		return append(words, "model.onnx", items[0][0], items[0][1])
	}
}

// openOf is a use that writes data to model.onnx in a folder of its own, opens and compiles it.
func openOf(data []byte, opts ...rlx.OpenOption) func(*testing.T) error {
	return func(t *testing.T) error {
		path := filepath.Join(t.TempDir(), "model.onnx")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		m, err := rlx.Open(path, opts...)
		if err != nil {
			return err
		}
		p, err := m.Compile(t.Context())
		if err == nil {
			p.Close()
		}
		return err
	}
}

func badFiles() []badUse {
	x, y := onnxX("x", 2, 3), onnxY("y")
	relu := onnxNode("Relu", "x", "y")
	// outside is a weight that lies in a file elsewhere.
	outside := func(path string) []byte {
		return pbOf(5, pbInt(1, 3), pbInt(2, 1), pbText(8, "w"), pbInt(14, 1), pbOf(13, pbText(1, "location"), pbText(2, path)))
	}
	add := onnxNode("Add", "x w", "y")
	list := []badUse{
		{"missing file", func(*testing.T) error { _, err := rlx.Open("no/such/model.onnx"); return err },
			wantBoth(wantFile(-1, "", "no/such/model.onnx"), wantIs(fs.ErrNotExist))},
		{"empty file", openOf(nil), wantFile(0, "ModelProto", "empty", "ONNX")},
		{"text", openOf([]byte("this is a text file\nwith two lines\n")), wantFile(0, "ModelProto", "text", "ONNX")},
		{"GGUF", openOf([]byte("GGUF\x03\x00\x00\x00")), wantFile(0, "magic", "GGUF", "expected ONNX")},
		{"no file system", func(*testing.T) error { _, err := rlx.OpenFS(nil, "model.onnx"); return err }, wantFile(-1, "", "nil", "expected")},
		{"no reader", func(*testing.T) error { _, err := rlx.OpenReader("model.onnx", nil, 3); return err }, wantFile(-1, "", "nil", "expected")},
		{"reader that ends early", func(*testing.T) error {
			_, err := rlx.OpenReader("model.onnx", bytes.NewReader([]byte{8}), 3)
			return err
		},
			wantFile(-1, "", "got 1 bytes", "expected 3")},
		{"unknown operator", openOf(onnxModel(x, y, onnxNode("Frobnicate", "x", "a"), onnxNode("Twiddle", "a", "y"))),
			wantModel([][3]string{{"Frobnicate", "node.a", ""}, {"Twiddle", "node.y", ""}}, "2 unsupported")},
		{"operator set of the future", openOf(onnxOf(99, x, y, relu)), wantModel([][3]string{{"", "main", ""}}, "99", "28")},
		{"operator set 0", openOf(onnxOf(0, x, y, relu)), wantModel([][3]string{{"Relu", "node.y", ""}}, "operator set 0", "from 1 on")},
		{"attribute of another type", openOf(onnxModel(x, y, onnxNode("LeakyRelu", "x", "y", onnxAttr("alpha", 2, pbInt(3, 1))))),
			wantImport("LeakyRelu", "node.y", "alpha", "type 2", "expected 1")},
		{"attribute that is missing", openOf(onnxModel(x, y, onnxNode("Cast", "x", "y"))), wantImport("Cast", "node.y", "to", "missing")},
		{"initializer that is missing", openOf(onnxModel(x, y, add)), wantImport("Add", "node.y", `"w"`)},
		{"cycle", openOf(onnxModel(x, y, onnxNode("Add", "x b", "a"), onnxNode("Relu", "a", "b"), onnxNode("Relu", "b", "y"))), wantImport("Add", "node.a", `"b"`)},
		{"two values of one name", openOf(onnxModel(x, y, onnxNode("Abs", "x", "y"), relu)), wantImport("Relu", "node.y", `"y"`, "twice", "expected")},
		{"output that no node computes", openOf(onnxModel(x, onnxY("z"), relu)), wantImport("output", "z", "no node computes it")},
		{"one operand too many", openOf(onnxModel(x, y, onnxNode("Relu", "x x", "y"))), wantImport("Relu", "node.y", "2", "1", "expected")},
		{"sizes that do not multiply", openOf(onnxModel(x, onnxX("b", 4, 2), y, onnxNode("MatMul", "x b", "y"))), wantBoth(
			wantImport("MatMul", "node.y", "expected equal ones"), wantShapes("MatMul", "C2", "contracted sizes are 3 and 4 (shapes [2, 3] and [4, 2])", "equal ones", "f32[2, 3]", "f32[4, 2]"))},
		{"perm of another rank", openOf(onnxModel(x, y, onnxNode("Transpose", "x", "y", onnxAttr("perm", 7, pbInt(8, 0))))), wantImport("Transpose", "node.y", "perm has 1 entries", "rank 2")},
		{"equation of another rank", openOf(onnxModel(x, y, onnxNode("Einsum", "x", "y", onnxAttr("equation", 3, pbText(4, "ijk->k"))))),
			wantImport("Einsum", "node.y", `"ijk->k"`, "rank 2")},
		{"equation of other operands", openOf(onnxModel(x, y, onnxNode("Einsum", "x", "y", onnxAttr("equation", 3, pbText(4, "ij,jk->ik"))))),
			wantImport("Einsum", "node.y", `"ij,jk->ik"`, "2 operands")},
		{"weight outside of the folder", openOf(onnxModel(x, y, outside("../w.bin"), add)), wantImport("initializer", "w", "../w.bin")},
		{"weight at the root", openOf(onnxModel(x, y, outside("/etc/hostname"), add)), wantImport("initializer", "w", "/etc/hostname")},
		{"weight in a file that is missing", openOf(onnxModel(x, y, outside("w.bin"), add)), wantBoth(wantImport("initializer", "w", "w.bin"), wantIs(onnx.ErrExternal))},
		{"data shorter than the dims", openOf(onnxModel(x, y, pbOf(5, pbInt(1, 3), pbInt(2, 1), pbText(8, "w"), pbOf(9, make([]byte, 8))), add)),
			wantImport("initializer", "w", "12", "8")},
		{"bound input that is not there", openOf(onnxModel(x, y, relu), rlx.Bind("z", zeros[float32](1))), wantImport("input", "z", "no such input")},
		{"input bound to another type", openOf(onnxModel(x, y, relu), rlx.Bind("x", zeros[float32](5))), wantImport("input", "x", "f32[5]", "expected f32[2, 3]")},
		{"input bound to nothing", openOf(onnxModel(x, y, relu), rlx.Bind("x", nil)), wantOption("Bind", "x: nil", "a tensor")},
		{"dim that is not there", openOf(onnxModel(x, y, relu), rlx.BindDim("n", 2)), wantImport("dim", "n", "no input has such a dim")},
	}
	digits, err := os.ReadFile(digitsModel)
	return append(list, badUse{"truncated file", func(t *testing.T) error {
		if err != nil {
			t.Fatal(err)
		}
		return openOf(digits[:len(digits)/2])(t)
	}, func(t *testing.T, err error) []string {
		if e := as[*rlx.FileError](t, err); e.Offset < 0 || e.Offset > int64(len(digits)/2) || e.Field == "" {
			t.Errorf("fields: %+v", e)
		}
		return []string{"model.onnx", "byte", "truncated"}
	}})
}

// wantShapes is wantNode where the file names the node.
func wantShapes(kind, constraint, got, expected string, operands ...string) fault {
	return func(t *testing.T, err error) []string {
		return nodeFields(t, err, kind, constraint, got, expected, operands)
	}
}

// runsOn are the backends of this build that compute the same.
func runsOn(t *testing.T) (names []string) {
	for _, b := range rlx.Backends() {
		if b.Err == nil && (b.Name == "cpu" || b.Name == "ref") {
			names = append(names, b.Name)
		}
	}
	if len(names) == 0 {
		t.Fatal("no backend")
	}
	return names
}

// faulty is a graph that runs into an error on feed: at a node called it.
func faulty(build func(g *graph) value, feed rlx.Feed) func(t *testing.T) error {
	return func(t *testing.T) error {
		var all []error
		for _, b := range runsOn(t) {
			g := rlx.NewGraph("bad")
			g.Output("y", build(g).Named("it"))
			err := runOf(t, g, feed, rlx.On(b))
			if err == nil {
				t.Errorf("%s: no error", b)
			}
			all = append(all, err)
		}
		return errors.Join(all...)
	}
}

// wantRun expects an *ExecError on every backend: of a node called it, or of a part of one.
func wantRun(kind, part, constraint, got, expected string, operands ...string) fault {
	return func(t *testing.T, err error) []string {
		list := []error{err}
		if all, ok := err.(interface{ Unwrap() []error }); ok {
			list = all.Unwrap()
		}
		for i, err := range list {
			e := as[*rlx.ExecError](t, err)
			sameText(t, "Backend", e.Backend, runsOn(t)[i])
			sameText(t, "Node", e.Node, "it")
			sameText(t, "Op", e.Op, kind)
			sameText(t, "Part", e.Part, part)
			sameText(t, "Constraint", e.Constraint, constraint)
			sameText(t, "Got", e.Got, got)
			sameText(t, "Expected", e.Expected, expected)
			sameText(t, "Operands", typeList(e.Operands), strings.Join(operands, ", "))
			for _, w := range slices.Concat([]string{"node it", kind, part, constraint, got, expected}, operands) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("text lacks %q: %v", w, err)
				}
			}
		}
		return nil
	}
}

func badRuns() []badUse {
	index := func(v ...int64) *rlx.Tensor { return rlx.New(v, len(v)) }
	x := zeros[float32](3, 2)
	table := func(g *graph) value { return g.Input("x", rlx.F32, rlx.Shape("n", 2)) }
	i := func(g *graph) value { return g.Input("i", rlx.I64, rlx.Shape("k")) }
	return []badUse{
		{"index of an embedding", faulty(func(g *graph) value { return op.Gather(table(g), i(g), 0) }, rlx.Feed{"x": x, "i": index(0, 7)}),
			wantRun("Gather", "", "C7", "index 7", "in [-3, 3)", "f32[3, 2]", "i64[2]")},
		{"index below the first", faulty(func(g *graph) value { return op.Gather(table(g), i(g), 1) }, rlx.Feed{"x": x, "i": index(-3)}),
			wantRun("Gather", "", "C7", "index -3", "in [-2, 2)", "f32[3, 2]", "i64[1]")},
		{"index of GatherElements", faulty(func(g *graph) value { return op.GatherElements(table(g), g.Input("i", rlx.I64, rlx.Shape(1, 2)), 0) },
			rlx.Feed{"x": x, "i": rlx.New([]int64{0, math.MaxInt64}, 1, 2)}),
			wantRun("GatherElements", "", "C7", "index 9223372036854775807", "in [-3, 3)", "f32[3, 2]", "i64[1, 2]")},
		{"index of GatherNd", faulty(func(g *graph) value { return op.GatherNd(table(g), g.Input("i", rlx.I64, rlx.Shape(1, 2)), 0) },
			rlx.Feed{"x": x, "i": rlx.New([]int64{0, 2}, 1, 2)}),
			wantRun("GatherNd", "", "C7", "index 2", "in [-2, 2)", "f32[3, 2]", "i64[1, 2]")},
		{"index of ScatterNd", faulty(func(g *graph) value {
			return op.ScatterNd(table(g), g.Input("i", rlx.I64, rlx.Shape(1, 1)), g.Constant(zeros[float32](1, 2)), op.ScatterSum)
		}, rlx.Feed{"x": x, "i": rlx.New([]int64{3}, 1, 1)}), wantRun("ScatterNd", "", "C7", "index 3", "in [-3, 3)", "f32[3, 2]", "i64[1, 1]", "f32[1, 2]")},
		{"index of ScatterElements", faulty(func(g *graph) value {
			return op.ScatterElements(table(g), g.Input("i", rlx.I64, rlx.Shape(1, 1)), g.Constant(zeros[float32](1, 1)), 0, op.ScatterNone)
		}, rlx.Feed{"x": x, "i": rlx.New([]int64{-4}, 1, 1)}), wantRun("ScatterElements", "", "C7", "index -4", "in [-3, 3)", "f32[3, 2]", "i64[1, 1]", "f32[1, 1]")},
		{"index that is no whole number", faulty(func(g *graph) value { return op.Gather(table(g), g.Input("i", rlx.F32, rlx.Shape("k")), 0) },
			rlx.Feed{"x": x, "i": rlx.New([]float32{0.5}, 1)}), wantRun("Gather", "", "C8", "index 0.5 is not an integer", "", "f32[3, 2]", "f32[1]")},
		{"keys beyond the cache", faulty(func(g *graph) value {
			q := g.Constant(zeros[float32](1, 1, 1, 2))
			k := g.Constant(zeros[float32](1, 1, 4, 2))
			return op.Attention(q, k, k, value{}, g.Input("i", rlx.I64, rlx.Shape("k")), op.AttentionAttrs{})
		}, rlx.Feed{"i": index(5)}), wantRun("Attention", "", "C5", "kv_len 5", "in 0..4", "f32[1, 1, 1, 2]", "f32[1, 1, 4, 2]", "f32[1, 1, 4, 2]", "none", "i64[1]")},
		{"value that is not finite", func(t *testing.T) error {
			g := rlx.NewGraph("bad")
			g.Output("y", op.Log(g.Input("x", rlx.F32, rlx.Shape("n", 2))).Named("it"))
			p, err := rlx.Compile(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			_, err = p.Run(t.Context(), rlx.Feed{"x": x}, rlx.CheckFinite())
			return err
		}, func(t *testing.T, err error) []string {
			e := as[*rlx.NonFiniteError](t, err)
			sameText(t, "Node", e.Node, "it")
			sameText(t, "Op", e.Op, "Activation")
			sameText(t, "Type", e.Type.String(), "f32[3, 2]")
			if len(e.Operands) != 1 || !e.Operands[0].Type.Equal(ir.Type{DType: rlx.F32, Shape: ir.Dims(3, 2)}) || !math.IsInf(e.Value, -1) || e.Index != 0 {
				t.Errorf("fields: %+v", e)
			}
			return []string{"it", "got -Inf", "expected finite values", "f32[3, 2]"}
		}},
	}
}
