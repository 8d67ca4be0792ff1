package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
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
