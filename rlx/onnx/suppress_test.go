package onnx

import (
	"errors"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// TestNonMaxSuppression holds the boxes that are kept against ONNX Runtime's. What is known only at run time is refused by name.
func TestNonMaxSuppression(t *testing.T) {
	boxes := []float32{0, 0, 4, 4, 4, 5, 1, 1, 0, 0.5, 4, 4, 6, 6, 9, 9, 6, 6.5, 8.5, 9, 2, 2, 2, 5}
	scores := []float32{0.5, 0.75, 0.5, 0.25, 0.75, 0.125, 0.125, 0.5, 0.875, 0.25, 0.5, 1}
	model := func(more []byte, attrs ...[]byte) []byte {
		return inGraph(nodeOf("NonMaxSuppression", "boxes scores most iou least", "y", attrs...), floatsOf("scores", []uint64{1, 2, 6}, scores...),
			intsOf("most", 3), floatsOf("iou", []uint64{1}, 0.4), floatsOf("least", []uint64{1}, 0.125), outputOf("y"), more)
	}
	for _, c := range []struct {
		attr int64
		want []int64
	}{
		{0, []int64{0, 0, 1, 0, 0, 4, 0, 1, 5, 0, 1, 2, 0, 1, 4}},
		{1, []int64{0, 0, 1, 0, 0, 4, 0, 0, 0, 0, 1, 5, 0, 1, 2, 0, 1, 1}},
	} {
		g := mustImport(t, model(floatsOf("boxes", []uint64{1, 6, 4}, boxes...), intAttr("center_point_box", c.attr)))
		out, err := evaluate(g, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ir.Data[int64](out["y"]); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("center_point_box %d: got %v, %v, expected %v", c.attr, got, err, c.want)
		}
	}
	_, err := Import(model(inputOf("boxes", DataFloat, 1, 6, 4)))
	var lacks *UnsupportedError
	if !errors.As(err, &lacks) || len(lacks.Items) != 1 || !slices.Equal(lacks.Items[0].Needs, []string{"boxes"}) {
		t.Errorf("boxes of the run: got %v", err)
	}
}
