package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
)

// What inspect says in JSON is what was put into the models by hand.
func TestInspectJSON(t *testing.T) {
	see := func(args ...string) inspection {
		code, out, errOut := rlxRun(t, append([]string{"inspect", "--backend", "ref", "--json"}, args...)...)
		var in inspection
		if err := json.Unmarshal([]byte(out), &in); err != nil || code != exitDone {
			t.Fatalf("%v: exit code %d, %v: %s%s", args, code, err, out, errOut)
		}
		return in
	}
	in := see(rates(t), "--dim", "batch=2")
	if in.Producer != "by hand" || in.IRVersion != 8 || in.Opsets["ai.onnx"] != 17 {
		t.Errorf("got %+v", in)
	}
	if want := (tensorInfo{"x", "f32[batch, 3, len]", "f32[2, 3, 8]"}); in.Inputs[0] != want || in.Outputs[0].Sized != "f32[2, 3, 4]" {
		t.Errorf("got %+v and %+v, expected %+v", in.Inputs, in.Outputs, want)
	}
	want := []dimInfo{{"batch", []string{"axis 0 of x"}, 2, "--dim"}, {"len", []string{"axis 2 of x"}, 8, "the smallest size tried that compiles"}}
	if !reflect.DeepEqual(in.Dims, want) || !strings.Contains(in.TooSmall, "Pool: C6") {
		t.Errorf("got %+v (%s), expected %+v", in.Dims, in.TooSmall, want)
	}
	if ops := map[string]int{"MaxPool": 1, "Constant": 1, "Equal": 1, "If": 1, "Relu": 1, "Neg": 1}; !reflect.DeepEqual(in.Operators, ops) {
		t.Errorf("got operators %v, expected %v", in.Operators, ops)
	}

	in = see(sums(t), "--in", "axes=1")
	if len(in.Constants) != 1 || in.Constants[0].Input != "axes" || in.Constants[0].Value != "1" || !strings.HasSuffix(in.Constants[0].Give, "sums.onnx --in axes=VALUE --in x=FILE.npy") ||
		!reflect.DeepEqual(in.Constants[0].Nodes, []string{"ReduceSum sum"}) {
		t.Errorf("got %+v", in.Constants)
	}

	in = see("demo/digits.onnx", "--dim", "batch=3")
	ops := []opPlacement{{Op: "Binary", Nodes: 3, Native: 3}, {Op: "MatMul", Nodes: 3, Native: 3}, {Op: "Activation", Nodes: 2, Native: 2}, {Op: "Softmax", Nodes: 1, Native: 1}}
	b := in.Compiled[0]
	if !reflect.DeepEqual(b.Ops, ops) || b.Commands != 9 || b.Memory.Inputs != 3*64*4 || b.Memory.Outputs != 3*10*4 || b.Memory.Arena < b.Memory.ArenaBound {
		t.Errorf("got %+v with %+v", b, *b.Memory)
	}
	// Layers of 128, 64 and 10 on 64 pixels, with a bias each.
	if values := int64(64*128 + 128 + 128*64 + 64 + 64*10 + 10); in.Parameters.Values != values || in.Parameters.Bytes != 4*values || in.Parameters.Tensors != 6 {
		t.Errorf("got %+v, expected %d values", *in.Parameters, values)
	}
}

// becoming is a model whose nodes become what their names say.
func becoming(t *testing.T) string {
	tensor := func(name string) []byte {
		return message(5, number(1, 3), number(2, f32), text(8, name), message(4, make([]byte, 12)))
	}
	return writeModel(t, "becoming.onnx", value(11, "x", f32, 2, 3), value(11, "r", f32, 2, 3), value(12, "y", f32, 2, 3), value(12, "p", f32, 2, 2), tensor("a"), tensor("b"),
		node("Exp", "constant", []string{"a"}, []string{"c"}), node("Exp", "unused", []string{"x"}, []string{"nobody"}),
		node("Transpose", "view", []string{"r"}, []string{"t"}), node("MatMul", "product", []string{"x", "t"}, []string{"p"}),
		node("Add", "fused", []string{"x", "r"}, []string{"s"}), node("LayerNormalization", "norm", []string{"s", "c", "b"}, []string{"y"}))
}

// What became of each node, and of which command another is a part.
func TestInspectNodes(t *testing.T) {
	path := becoming(t)
	code, out, errOut := rlxRun(t, "inspect", "--backend", "ref", "--json", path)
	var in inspection
	if err := json.Unmarshal([]byte(out), &in); err != nil || code != exitDone {
		t.Fatalf("exit code %d, %v: %s", code, err, errOut)
	}
	ln := []string{"FusedResidualLN"}
	want := []nodeFate{{Node: "constant", Op: "Activation", Became: "constant"}, {Node: "unused", Op: "Activation", Became: "unused"}, {Node: "view", Op: "Transpose", Became: "view"},
		{Node: "product", Op: "MatMul", Became: "native", Run: []string{"MatMul"}}, {Node: "fused", Op: "Binary", Became: "fused", By: "norm", Run: ln},
		{Node: "norm", Op: "LayerNorm", Became: "native", Run: ln}}
	if got := in.Compiled[0].Nodes; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, expected %+v", got, want)
	}
	code, out, errOut = rlxRun(t, "inspect", "--backend", "ref", "--nodes", path)
	for _, w := range []string{"2 native, 0 composed, 0 host, 1 views, 1 fused, 1 constants, 1 unused", "folded to a constant", "removed: unused", "1 N native as FusedResidualLN 1",
		"fused into norm (FusedResidualLN)"} {
		if !strings.Contains(out, w) || code != exitDone {
			t.Errorf("exit code %d: no %q in\n%s%s", code, w, out, errOut)
		}
	}
}

func TestInspectText(t *testing.T) {
	bad := writeModel(t, "bad.onnx", value(11, "x", f32, 2), value(12, "y", f32, 2), node("Frobnicate", "odd", []string{"x"}, []string{"y"}))
	for _, c := range []struct {
		args  []string
		code  int
		words []string
	}{
		{[]string{"demo/digits.onnx"}, exitDone, []string{"f32[batch, 64]", "on ref", "1 N native", "lower bound", "rlx-demo"}},
		{[]string{"demo/digits.onnx", "--backend", "ref", "--text"}, exitDone, []string{"MatMul", "pixels"}},
		{[]string{"demo/digits.onnx", "--backend", "ref", "--passes"}, exitDone, []string{"once, before any size is known", "for the sizes of the run", "legalize", "nodes ->"}},
		{[]string{becoming(t), "--backend", "ref", "--passes"}, exitDone, []string{"layer norm 1"}},
		{[]string{"demo/digits.onnx", "--backend", "ref", "--passes=bind"}, exitDone, []string{"before\ngraph", "[batch, 64]", "after\ngraph", "[1, 64]"}},
		{[]string{"demo/digits.onnx", "--passes=frob"}, exitUsage, []string{"frob", "expected one of dce"}},
		{[]string{rates(t), "--backend", "ref"}, exitDone, []string{"batch", "axis 2 of x", "with 1", "MaxPool 1"}},
		{[]string{bad}, exitFailed, []string{"unsupported: Frobnicate", "(odd)", "1 operators or attributes are unsupported", "f32[2]"}},
		{[]string{"demo/digits.onnx", "--dim", "n=1"}, exitFailed, []string{"there are: batch"}},
		{[]string{"demo/digits.onnx", "--backend", "gpu"}, exitFailed, []string{"gpu"}},
	} {
		code, out, errOut := rlxRun(t, append([]string{"inspect"}, c.args...)...)
		if code != c.code {
			t.Errorf("%v: exit code %d, expected %d: %s", c.args, code, c.code, errOut)
		}
		for _, w := range c.words {
			if !strings.Contains(out+errOut, w) {
				t.Errorf("%v: no %q in\n%s%s", c.args, w, out, errOut)
			}
		}
	}
}

// inspect lists all that a model needs and rlx lacks, with the names of the nodes, and what the library's error says of each.
func TestInspectUnsupported(t *testing.T) {
	path := writeModel(t, "bad.onnx", value(11, "x", f32, 2), value(12, "y", f32, 2),
		node("Frobnicate", "first", []string{"x"}, []string{"a"}), node("Frobnicate", "second", []string{"a"}, []string{"b"}),
		node("Abs", "third", []string{"b"}, []string{"c"}, message(5, text(1, "speed"), number(3, 3), number(20, 2))),
		node("Gelu", "fourth", []string{"c"}, []string{"d"}), // an operator of a later set
		node("Twiddle", "fifth", []string{"d"}, []string{"y"}))
	want := []unsupportedInfo{
		{"Frobnicate: operator is not supported", []string{"first", "second"}},
		{"Abs attribute speed: attribute is not supported", []string{"third"}},
		{"Gelu: operator set 17, supported from 20 on", []string{"fourth"}},
		{"Twiddle: operator is not supported", []string{"fifth"}},
	}
	code, out, errOut := rlxRun(t, "inspect", "--backend", "ref", "--json", path)
	var in inspection
	if err := json.Unmarshal([]byte(out), &in); err != nil || code != exitFailed || !reflect.DeepEqual(in.Unsupported, want) {
		t.Errorf("exit code %d, %v: got %+v, expected %+v\n%s", code, err, in.Unsupported, want, errOut)
	}
	_, err := rlx.Open(path)
	_, plain, _ := rlxRun(t, "inspect", "--backend", "ref", path)
	for _, u := range want {
		for _, w := range append(u.Nodes, u.What) {
			if err == nil || !strings.Contains(err.Error(), w) || !strings.Contains(plain, w) {
				t.Errorf("no %q in the error %v or in\n%s", w, err, plain)
			}
		}
	}
}
