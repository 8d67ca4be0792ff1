package onnx

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// oldModel is a model of operator set 5.
func oldModel(parts ...[]byte) []byte {
	return slices.Concat(varint(1, 3), body(7, parts...), body(8, varint(2, 5)))
}

// TestFirstForms runs operators as they were before operator set 7. Expected values are by hand.
func TestFirstForms(t *testing.T) {
	x := ir.New([]float32{1, -2, 3, -4, 5, -6, 7, -8}, 1, 2, 2, 2)
	two := []uint64{2}
	for _, c := range []struct {
		name  string
		node  []byte
		extra []byte
		want  []float32
	}{
		{"along axis 1", nodeOf("Add", "x b", "y", intAttr("broadcast", 1), intAttr("axis", 1)), floatsOf("b", two, 10, 20), []float32{11, 8, 13, 6, 25, 14, 27, 12}},
		{"along axis -2", nodeOf("Add", "x b", "y", intAttr("broadcast", 1), intAttr("axis", -2)), floatsOf("b", two, 10, 20), []float32{11, 8, 23, 16, 15, 4, 27, 12}},
		{"along the last axes", nodeOf("Mul", "x b", "y", intAttr("broadcast", 1)), floatsOf("b", two, 10, 20), []float32{10, -40, 30, -80, 50, -120, 70, -160}},
		{"consumed inputs", nodeOf("Sub", "x x", "y", intsAttr("consumed_inputs", 0, 0)), nil, make([]float32, 8)},
		{"two axes", nodeOf("Sub", "x b", "y", intAttr("broadcast", 1), intAttr("axis", 1)), floatsOf("b", []uint64{2, 2}, 1, 2, 3, 4), []float32{0, -3, 1, -6, 2, -9, 3, -12}},
		{"a slope for each channel", nodeOf("PRelu", "x b", "y"), floatsOf("b", two, 10, 100), []float32{1, -20, 3, -40, 5, -600, 7, -800}},
		{"one slope", nodeOf("PRelu", "x b", "y"), floatsOf("b", []uint64{1}, 10), []float32{1, -20, 3, -40, 5, -60, 7, -80}},
		{"clip below", nodeOf("Clip", "x", "y", floatAttr("min", -3)), nil, []float32{1, -2, 3, -3, 5, -3, 7, -3}},
		{"relu", nodeOf("Relu", "x", "y", intsAttr("consumed_inputs", 0)), nil, []float32{1, 0, 3, 0, 5, 0, 7, 0}},
		{"dropout", nodeOf("Dropout", "x", "y", intAttr("is_test", 1)), nil, []float32{1, -2, 3, -4, 5, -6, 7, -8}},
	} {
		g := mustImport(t, oldModel(c.node, c.extra, inputOf("x", DataFloat, 1, 2, 2, 2), outputOf("y")))
		out, err := evaluate(g, map[string]*ir.Tensor{"x": x})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, err := ir.Data[float32](out["y"]); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, expected %v", c.name, got, err, c.want)
		}
	}
}

func TestFirstFormsRefused(t *testing.T) {
	b := floatsOf("b", []uint64{2}, 1, 2)
	for _, c := range []struct {
		node []byte
		word string
	}{
		{nodeOf("Add", "x b", "y"), "not broadcast"},
		{nodeOf("Add", "b x", "y", intAttr("broadcast", 1)), "not broadcast"},
		{nodeOf("Add", "x b", "y", intAttr("broadcast", 1), intAttr("axis", 4)), "axis is 4"},
		{nodeOf("Dropout", "x", "y"), "training is not supported"},
		{nodeOf("BatchNormalization", "x b b b b", "y"), "training is not supported"},
	} {
		if _, err := Import(oldModel(c.node, b, inputOf("x", DataFloat, 1, 2, 2, 2), outputOf("y"))); err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("got %v, expected %q", err, c.word)
		}
	}
}
